// From a lock to the listeners.
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "locks/parts.h"

atomic_bool locks_on;
struct locks_table locks_table;

// Guards the listeners, and is held while they are called: a listener that leaves is not in use.
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static struct weir_lock_listener *listeners;

static _Atomic uint64_t news = 1;
static _Atomic uint64_t lost;
static _Atomic uint64_t threads; // numbers given

// A key as the thread dealt with it last: nothing has changed since while the news are the same.
struct recent {
    const void *key;
    uint64_t released;
    uint64_t acquired;
};

enum {
    RECENT = 16
};

static LOCKS_THREAD_LOCAL struct self {
    uint64_t number;
    unsigned hidden; // > 0: calls are not the program's
    struct recent recent[RECENT];
} self;

void locks_hide(void)
{
    self.hidden++;
}

void locks_show(void)
{
    self.hidden--;
}

uint64_t locks_thread(void)
{
    if (self.number == 0) {
        self.number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
        locks_watch_end();
    }
    return self.number;
}

// The gate.

static bool wait_for_gate(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOCKS_PATIENCE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return LOCKS_REAL(pthread_mutex_timedlock)(&gate, &until) == 0;
}

static void lose(void)
{
    atomic_fetch_add(&lost, 1);
    atomic_fetch_add(&news, 1);
}

static bool enter(void)
{
    const int error = errno;
    self.hidden++;
    const bool entered = LOCKS_REAL(pthread_mutex_trylock)(&gate) == 0 || wait_for_gate();
    errno = error;
    if (!entered)
        self.hidden--;
    return entered;
}

static void leave(void)
{
    LOCKS_REAL(pthread_mutex_unlock)(&gate);
    self.hidden--;
}

// Telling. Functions that lock do not change errno.

enum what {
    RELEASE,
    RELEASE_IN_HANDLER,
    ACQUIRE,
};

static bool tell(const void *key, enum what what)
{
    const int error = errno;
    if (!enter())
        return false;
    bool told = true;
    for (struct weir_lock_listener *at = listeners; at; at = at->next)
        told = (what == ACQUIRE ? at->acquire(at->user, key)
                                : at->release(at->user, key, what == RELEASE_IN_HANDLER)) &&
               told;
    leave();
    errno = error;
    return told;
}

static struct recent *recent_of(const void *key)
{
    const uintptr_t number = (uintptr_t)key;
    struct recent *recent = &self.recent[(number >> 3 ^ number >> 9) % RECENT];
    if (recent->key != key)
        *recent = (struct recent){.key = key};
    return recent;
}

// `seen` is the news at which the thread did the same with the key last.
static void tell_unless_known(const void *key, enum what what, uint64_t *seen)
{
    const uint64_t now = atomic_load_explicit(&news, memory_order_acquire);
    if (*seen == now)
        return;
    if (tell(key, what))
        *seen = now;
    else
        lose();
}

void locks_release_own(const void *key)
{
    tell_unless_known(key, RELEASE, &recent_of(key)->released);
}

void locks_acquire_own(const void *key)
{
    tell_unless_known(key, ACQUIRE, &recent_of(key)->acquired);
}

// Nothing of the thread's is changed but what no other part of it looks at.
void locks_release_in_handler(const void *key)
{
    if (self.hidden || !tell(key, RELEASE_IN_HANDLER))
        lose();
}

void locks_release(const void *key)
{
    if (self.hidden == 0)
        locks_release_own(key);
}

void locks_acquire(const void *key)
{
    if (self.hidden == 0)
        locks_acquire_own(key);
}

// A key that cannot be forgotten now orders what need not be in order, as one whose lock is not destroyed.
void locks_forget(const void *key)
{
    if (self.hidden || !enter())
        return;
    for (struct weir_lock_listener *at = listeners; at; at = at->next)
        at->forget(at->user, key);
    leave();
}

void locks_end(uint64_t thread)
{
    if (!locks_is_on() || self.hidden || !enter())
        return;
    for (struct weir_lock_listener *at = listeners; at; at = at->next)
        at->end(at->user, thread);
    leave();
}

// Listeners come and go.

static void close_gate(void)
{
    self.hidden++;
    LOCKS_REAL(pthread_mutex_lock)(&gate);
}

static bool listen(struct weir_lock_listener *listener, const void *code)
{
    if (!locks_can_tell() || !locks_is_other(code))
        return false;
    close_gate();
    listener->next = listeners;
    listeners = listener;
    atomic_fetch_add(&news, 1);
    atomic_store(&locks_on, true);
    leave();
    return true;
}

static void stop_listening(struct weir_lock_listener *listener)
{
    close_gate();
    struct weir_lock_listener **at = &listeners;
    while (*at && *at != listener)
        at = &(*at)->next;
    if (*at)
        *at = listener->next;
    if (!listeners)
        atomic_store(&locks_on, false);
    leave();
}

// In a forked process Weir cannot be used, and other threads, which are not there, may have held locks.
static void forked(void)
{
    static const pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&locks_on, false);
    listeners = NULL;
    memcpy(&gate, &open, sizeof gate);
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, forked);
}

LOCKS_EXPORTED const struct weir_lock_source *weir_lock_source(void);

const struct weir_lock_source *weir_lock_source(void)
{
    static const struct weir_lock_source source = {
        .version = WEIR_LOCK_SOURCE_VERSION,
        .listen = listen,
        .leave = stop_listening,
        .thread = locks_thread,
        .news = &news,
        .lost = &lost,
    };
    return &source;
}
