// A mutex that is biased towards the first thread that takes it: as long as no other thread takes
// it, it costs that thread two plain stores and no atomic read-modify-write. The first other thread
// revokes the bias with a membarrier() system call; from then on the lock is an ordinary mutex. For
// locks that nearly always only one thread uses.
//
// In place of a mutex it saves 4 to 6 ns a call on the null backend (docs/benchmarks.md).
#ifndef WEIR_BASE_BIASED_LOCK_H
#define WEIR_BASE_BIASED_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cold.h"
#include "base/lock_order.h"

struct weir_biased_lock {
    atomic_uintptr_t owner; // the thread it is biased towards, or one of the states below
    atomic_bool held;       // by the owner, without the mutex
    bool by_owner;          // the holder took it without the mutex
    pthread_mutex_t mutex;
    const struct weir_lock_kind *kind; // its place in the order of locks: base/lock.h
};

// If the kernel lacks membarrier(), the lock is an ordinary mutex from the start. `kind` must
// outlive the lock.
void weir_biased_lock_init(struct weir_biased_lock *lock, const struct weir_lock_kind *kind);
void weir_biased_lock_finish(struct weir_biased_lock *lock);

// Called by weir_biased_lock_take() if the lock is not biased towards this thread.
WEIR_COLD void weir_biased_lock_take_slowly(struct weir_biased_lock *lock);

#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
#define WEIR_THREAD_POINTER
#endif
#endif

// As pthread_self(), without a call if the compiler can.
static inline uintptr_t weir_biased_lock_self(void)
{
#ifdef WEIR_THREAD_POINTER
    return (uintptr_t)__builtin_thread_pointer();
#else
    return (uintptr_t)pthread_self();
#endif
}

// As weir_lock_take_another().
static inline void weir_biased_lock_take_another(struct weir_biased_lock *lock)
{
    const uintptr_t self = weir_biased_lock_self();
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == self) {
        // An earlier thread may have had the same identity; this orders this thread after it.
        (void)atomic_load_explicit(&lock->held, memory_order_acquire);
        atomic_store_explicit(&lock->held, true, memory_order_relaxed);
        // A thread that revokes the bias makes every processor order the store and the load.
        atomic_signal_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&lock->owner, memory_order_acquire) == self) {
            lock->by_owner = true;
            return;
        }
        atomic_store_explicit(&lock->held, false, memory_order_release);
    }
    weir_biased_lock_take_slowly(lock);
}

static inline void weir_biased_lock_release_another(struct weir_biased_lock *lock)
{
    if (lock->by_owner)
        atomic_store_explicit(&lock->held, false, memory_order_release);
    else
        pthread_mutex_unlock(&lock->mutex);
}

// Not recursive.
static inline void weir_biased_lock_take(struct weir_biased_lock *lock)
{
    weir_lock_order_enter(lock->kind);
    weir_biased_lock_take_another(lock);
}

static inline void weir_biased_lock_release(struct weir_biased_lock *lock)
{
    weir_biased_lock_release_another(lock);
    weir_lock_order_leave(lock->kind);
}

#endif
