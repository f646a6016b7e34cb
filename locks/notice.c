// From a lock to the listeners, and what they hear of threads and of functions that are called once.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
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

static pthread_key_t end_key;
static bool has_end_key;
static char foreign; // the key's value in any thread that another part of the process made

// The number of the calling thread, whose end is to be told from its first use on.
static uint64_t number_of_self(void)
{
    if (self.number == 0) {
        self.number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
        if (has_end_key && !pthread_getspecific(end_key))
            pthread_setspecific(end_key, &foreign);
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

// These two also of a thread that is hidden.

static void release_own(const void *key)
{
    tell_unless_known(key, RELEASE, &recent_of(key)->released);
}

static void acquire_own(const void *key)
{
    tell_unless_known(key, ACQUIRE, &recent_of(key)->acquired);
}

// In a handler nothing of the thread's is changed but what no other part of it looks at.
void locks_release(const void *key, bool in_handler)
{
    if (in_handler && (self.hidden || !tell(key, RELEASE_IN_HANDLER)))
        lose();
    else if (!in_handler && self.hidden == 0)
        release_own(key);
}

void locks_acquire(const void *key)
{
    if (self.hidden == 0)
        acquire_own(key);
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

// The calling thread ends.
static void end_self(void)
{
    const uint64_t number = number_of_self();
    if (!locks_is_on() || self.hidden || !enter())
        return;
    for (struct weir_lock_listener *at = listeners; at; at = at->next)
        at->end(at->user, number);
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
    if (!locks_can_tell(code))
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

LOCKS_EXPORTED const struct weir_lock_source *weir_lock_source(void);

const struct weir_lock_source *weir_lock_source(void)
{
    static const struct weir_lock_source source = {
        .version = WEIR_LOCK_SOURCE_VERSION,
        .listen = listen,
        .leave = stop_listening,
        .thread = number_of_self,
        .news = &news,
        .lost = &lost,
    };
    return &source;
}

// Threads. Each that the program makes has a record, which is the key of its begin and its end, and
// which is found by the thread's id while it can be joined. Ids are used again, so the record is looked
// up before the join and acquired after it.

struct thread {
    struct thread *next; // with the same hash
    pthread_t id;
    bool placed, detached;
    unsigned references; // the creator, the thread, and the table or the joiner
    int rounds;          // of its end
    void *(*start)(void *argument);
    thrd_start_t start_c11;
    void *argument;
};

enum {
    HEADS = 256
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; // guards what follows
static struct thread *heads[HEADS];

static void lock_table(void)
{
    LOCKS_REAL(pthread_mutex_lock)(&table_lock);
}

static void unlock_table(void)
{
    LOCKS_REAL(pthread_mutex_unlock)(&table_lock);
}

static struct thread **head_of(pthread_t id)
{
    return &heads[((uintptr_t)id >> 12 ^ (uintptr_t)id >> 20) % HEADS];
}

// With the table's lock.
static void place(struct thread *thread, pthread_t id)
{
    if (thread->placed || thread->detached)
        return;
    thread->placed = true;
    thread->id = id;
    thread->references++;
    struct thread **head = head_of(id);
    thread->next = *head;
    *head = thread;
}

static void drop(struct thread *thread)
{
    lock_table();
    const bool last = --thread->references == 0;
    unlock_table();
    if (!last)
        return;
    if (locks_is_on())
        locks_forget(thread);
    locks_hide();
    free(thread);
    locks_show();
}

// The record of a thread that can be joined, which the caller then holds too.
static struct thread *find(pthread_t id)
{
    lock_table();
    struct thread *thread = *head_of(id);
    while (thread && !pthread_equal(thread->id, id))
        thread = thread->next;
    if (thread)
        thread->references++;
    unlock_table();
    return thread;
}

// It is joined or detached. What another thread did so before is gone already.
static void take_out(struct thread *thread)
{
    lock_table();
    struct thread **at = head_of(thread->id);
    while (*at && *at != thread)
        at = &(*at)->next;
    const bool found = *at != NULL;
    if (found)
        *at = thread->next;
    thread->detached = true;
    unlock_table();
    if (found)
        drop(thread);
}

// The end, by a key's destructor: after all that the thread does, but for the last destructors of other
// keys. It runs as often as there are turns, since those may still do something.

static void end(void *user)
{
    struct thread *thread = user;
    if (user == &foreign) {
        end_self();
        return;
    }
    if (locks_is_on())
        release_own(thread);
    if (++thread->rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
        pthread_setspecific(end_key, thread) == 0)
        return;
    end_self();
    drop(thread);
}

// In a forked process Weir cannot be used, and other threads, which are not there, may have held locks. Their records
// are leaked: they may have been half in the table.
static void forked(void)
{
    static const pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&locks_on, false);
    listeners = NULL;
    memcpy(&gate, &open, sizeof gate);
    memcpy(&table_lock, &open, sizeof table_lock);
    memset(heads, 0, sizeof heads);
}

__attribute__((constructor)) static void prepare(void)
{
    has_end_key = pthread_key_create(&end_key, end) == 0;
    pthread_atfork(NULL, NULL, forked);
}

// The beginning.

static void begin_thread(struct thread *thread)
{
    lock_table();
    place(thread, pthread_self());
    unlock_table();
    if (has_end_key)
        pthread_setspecific(end_key, thread);
    if (locks_is_on())
        acquire_own(thread);
}

static void *begin(void *user)
{
    struct thread *thread = user;
    begin_thread(thread);
    return thread->start(thread->argument);
}

static int begin_c11(void *user)
{
    struct thread *thread = user;
    begin_thread(thread);
    return thread->start_c11(thread->argument);
}

// Two references: the creator's and the thread's.
static struct thread *make(const pthread_attr_t *attributes)
{
    int state = PTHREAD_CREATE_JOINABLE;
    locks_hide();
    struct thread *thread = calloc(1, sizeof *thread);
    locks_show();
    if (!thread)
        return NULL;
    if (attributes)
        pthread_attr_getdetachstate(attributes, &state);
    thread->detached = state == PTHREAD_CREATE_DETACHED;
    thread->references = 2;
    if (locks_is_on())
        release_own(thread);
    return thread;
}

// A thread that has begun is in the table already, and may have ended; one that has not has its id.
static void made(struct thread *thread, bool is_made, const pthread_t *id)
{
    if (is_made) {
        lock_table();
        place(thread, *id);
        unlock_table();
    } else {
        drop(thread);
    }
    drop(thread);
}

LOCKS_EXPORTED int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attributes,
                                  void *(*start)(void *), void *restrict argument)
{
    struct thread *thread = locks_is_program(LOCKS_CALLER) ? make(attributes) : NULL;
    if (!thread)
        return LOCKS_REAL(pthread_create)(id, attributes, start, argument);
    thread->start = start;
    thread->argument = argument;
    const int error = LOCKS_REAL(pthread_create)(id, attributes, begin, thread);
    made(thread, error == 0, id);
    return error;
}

LOCKS_EXPORTED int thrd_create(thrd_t *id, thrd_start_t start, void *argument)
{
    struct thread *thread = locks_is_program(LOCKS_CALLER) ? make(NULL) : NULL;
    if (!thread)
        return LOCKS_REAL(thrd_create)(id, start, argument);
    thread->start_c11 = start;
    thread->argument = argument;
    const int error = LOCKS_REAL(thrd_create)(id, begin_c11, thread);
    made(thread, error == thrd_success, id);
    return error;
}

// Joins. The C library's own functions do not change errno.

static int joined(struct thread *thread, int error)
{
    if (!thread)
        return error;
    if (error == 0) {
        if (locks_is_on())
            acquire_own(thread);
        take_out(thread);
    }
    drop(thread);
    return error;
}

#define JOINS(name, parameters, arguments)                 \
    LOCKS_EXPORTED int name parameters                     \
    {                                                      \
        struct thread *thread = find(id);                  \
        return joined(thread, LOCKS_REAL(name) arguments); \
    }

JOINS(pthread_join, (pthread_t id, void **result), (id, result))
JOINS(pthread_tryjoin_np, (pthread_t id, void **result), (id, result))
JOINS(pthread_timedjoin_np, (pthread_t id, void **result, const struct timespec *until),
      (id, result, until))
JOINS(pthread_clockjoin_np,
      (pthread_t id, void **result, clockid_t clock, const struct timespec *until),
      (id, result, clock, until))
JOINS(thrd_join, (thrd_t id, int *result), (id, result))
#undef JOINS

static void detached(struct thread *thread, bool is_detached)
{
    if (!thread)
        return;
    if (is_detached)
        take_out(thread);
    drop(thread);
}

LOCKS_EXPORTED int pthread_detach(pthread_t id)
{
    struct thread *thread = find(id);
    const int error = LOCKS_REAL(pthread_detach)(id);
    detached(thread, error == 0);
    return error;
}

LOCKS_EXPORTED int thrd_detach(thrd_t id)
{
    struct thread *thread = find(id);
    const int error = LOCKS_REAL(thrd_detach)(id);
    detached(thread, error == thrd_success);
    return error;
}

// Once. What the function does comes before the return of every call.

// If the function throws or ends its thread, its call stays the last one, which nothing looks at.
struct once {
    void (*function)(void);
    const void *key;
    struct once *outer;
};

static LOCKS_THREAD_LOCAL struct once *once;

static void run_once(void)
{
    const struct once *call = once;
    call->function();
    release_own(call->key);
}

static int call_once_from(pthread_once_t *control, void (*function)(void), const void *caller)
{
    if (!locks_hears(caller))
        return LOCKS_REAL(pthread_once)(control, function);
    struct once call = {function, control, once};
    once = &call;
    const int error = LOCKS_REAL(pthread_once)(control, run_once);
    once = call.outer;
    if (error == 0)
        locks_acquire(control);
    return error;
}

LOCKS_EXPORTED int pthread_once(pthread_once_t *control, void (*function)(void))
{
    return call_once_from(control, function, LOCKS_CALLER);
}

// The C library's flags are controls.
LOCKS_EXPORTED void call_once(once_flag *flag, void (*function)(void))
{
    (void)call_once_from((pthread_once_t *)(void *)flag, function, LOCKS_CALLER);
}
