// What the library libweir_locks.so tells of a program's own locks, and to whom: the plugin check
// listens. The library is preloaded, so its functions stand before those of the C library for the
// whole process; it is the same file for all runtimes.
#ifndef WEIR_BASE_LOCK_LISTENER_H
#define WEIR_BASE_LOCK_LISTENER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    WEIR_LOCK_SOURCE_VERSION = 1
};

// A key is an address that stands for a lock. All functions are called one at a time, by the thread
// that is meant, which may hold any lock of the program's, and with none of the library's that Weir
// takes. They call no function that the library replaces, but for memory.
struct weir_lock_listener {
    struct weir_lock_listener *next; // the library's
    void *user;
    // What the thread has done comes before what threads do after they acquire the key. With `signal`
    // the thread may be in a signal handler: nothing is allocated. False: it cannot be noted now.
    bool (*release)(void *user, const void *key, bool signal);
    bool (*acquire)(void *user, const void *key);
    // The key's lock is gone; its address may be another one's.
    void (*forget)(void *user, const void *key);
    // The thread with this number ends.
    void (*end)(void *user, uint64_t thread);
};

struct weir_lock_source {
    uint32_t version;
    // Adds a listener. False, and nothing is added, if calls of Weir's cannot be told from the
    // program's: `code`, a function of the library, is the program's for all that can be seen.
    bool (*listen)(struct weir_lock_listener *listener, const void *code);
    // After it returns the listener is not called.
    void (*leave)(struct weir_lock_listener *listener);
    // The number of the calling thread, from 1, which no other thread has later.
    uint64_t (*thread)(void);
    // A listener raises it when what a thread or a key knows has changed. While it stays, the library
    // leaves out calls that would change nothing.
    _Atomic uint64_t *news;
    // The library raises it when something was left out that orders threads: all that threads have done
    // is to count as done before what follows.
    _Atomic uint64_t *lost;
};

// The one symbol that listeners look for, with dlsym(RTLD_DEFAULT, WEIR_LOCK_SOURCE).
#define WEIR_LOCK_SOURCE "weir_lock_source"
typedef const struct weir_lock_source *(*weir_lock_source_function)(void);

#endif
