// The preloaded library libweir_locks.so: under `weir check` it sees the program's locks and threads,
// and tells the plugin check what orders what (base/lock_listener.h).
//
//   table.h   the functions that it replaces, and the C library's own
//   caller.c  whether a call is the program's, or one of Weir's or a driver's; libraries that go
//   notice.c  from a lock to the listeners; threads that begin, end and are joined; once
//   wrap.c    locks
//
// Without a listener, which is without a runtime with the plugin, each function calls the C library's
// and looks at one variable.
//
// Nothing here may wait for the program: the lock of notice.c is given up after LOCKS_PATIENCE_NS, since
// the program's malloc(), of which a listener makes use, may have locks of its own. What is left out
// then counts as an order that is there.
#ifndef WEIR_LOCKS_PARTS_H
#define WEIR_LOCKS_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock_listener.h"
#include "locks/table.h"

#define LOCKS_PATIENCE_NS 200000000

#define LOCKS_EXPORTED __attribute__((visibility("default")))
#define LOCKS_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

// Where the function that calls this one was called from.
#define LOCKS_CALLER __builtin_return_address(0)

// caller.c

// Whether objects can be told apart, nothing else replaces the same functions, and `code` is of Weir or of a driver.
bool locks_can_tell(const void *code);

// What is known of addresses: each in its place, with the answer in the lowest bit.
enum {
    LOCKS_PLACES = 4096
};

extern _Atomic uintptr_t locks_places[LOCKS_PLACES];

static inline _Atomic uintptr_t *locks_place_of(uintptr_t address)
{
    return &locks_places[(address ^ address >> 12) % LOCKS_PLACES];
}

// Finds out what is not known.
bool locks_look_at(const void *address);

// Whether a call that returns to that address is the program's, and not Weir's or a driver's.
static inline bool locks_is_program(const void *address)
{
    const uintptr_t number = (uintptr_t)address;
    const uintptr_t answer = atomic_load_explicit(locks_place_of(number), memory_order_relaxed);
    return answer >> 1 == number ? answer & 1 : locks_look_at(address);
}

// notice.c

extern atomic_bool locks_on; // there is a listener

static inline bool locks_is_on(void)
{
    return atomic_load_explicit(&locks_on, memory_order_acquire);
}

// Whether a call from `caller` is to be told.
static inline bool locks_hears(const void *caller)
{
    return locks_is_on() && locks_is_program(caller);
}

// For such calls, unless the thread is hidden.
// `in_handler`: in a function that a signal handler may call.
void locks_release(const void *key, bool in_handler);
void locks_acquire(const void *key);
void locks_forget(const void *key);

// What the calling thread does until the other call is not the program's.
void locks_hide(void);
void locks_show(void);

#endif
