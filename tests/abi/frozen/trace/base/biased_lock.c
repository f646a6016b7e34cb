// See the header. The owner stores `held` and then loads `owner`. A thread that revokes the bias
// stores `owner`, makes the kernel run a memory barrier on every running thread of the process, and
// then loads `held`. So at least one of the two sees the other's store.
#include "tests/abi/frozen/trace/base/biased_lock.h"

#include "tests/abi/frozen/trace/base/barrier.h"
#include "tests/abi/frozen/trace/base/clock.h"

// Values of `owner` that are not a thread: no thread has taken the lock yet, and the bias was
// revoked.
#define UNOWNED ((uintptr_t)0)
#define UNBIASED ((uintptr_t)1)

void weir_biased_lock_init(struct weir_biased_lock *lock, const struct weir_lock_kind *kind)
{
    weir_barrier_init();
    atomic_init(&lock->owner, weir_barrier_is_shared ? UNOWNED : UNBIASED);
    atomic_init(&lock->held, false);
    lock->by_owner = false;
    pthread_mutex_init(&lock->mutex, NULL);
    lock->kind = kind;
}

void weir_biased_lock_finish(struct weir_biased_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

// With the mutex held. The owner may hold the lock for as long as a driver's call takes.
static void revoke_bias(struct weir_biased_lock *lock)
{
    atomic_store(&lock->owner, UNBIASED);
    weir_barrier_heavy();
    for (uint64_t pause_ns = 200; atomic_load_explicit(&lock->held, memory_order_acquire);
         pause_ns = pause_ns < 100000 ? 2 * pause_ns : 100000)
        weir_clock_sleep_ns(pause_ns);
}

void weir_biased_lock_take_slowly(struct weir_biased_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    const uintptr_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);
    if (owner == UNOWNED)
        atomic_store_explicit(&lock->owner, weir_biased_lock_self(), memory_order_release);
    else if (owner != UNBIASED)
        revoke_bias(lock);
    lock->by_owner = false;
}
