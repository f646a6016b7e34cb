// Threads. Each that the program makes has a record, which is the key of its begin and its end, and
// which is found by the thread's id while it can be joined. Ids are used again, so the record is looked
// up before the join and acquired after it.
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "locks/parts.h"

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

static pthread_key_t end_key;
static bool has_end_key;
static struct thread foreign; // any thread that another part of the process made

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
    if (thread == &foreign) {
        locks_end(locks_thread());
        return;
    }
    if (locks_is_on())
        locks_release_own(thread);
    if (++thread->rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
        pthread_setspecific(end_key, thread) == 0)
        return;
    locks_end(locks_thread());
    drop(thread);
}

void locks_watch_end(void)
{
    if (has_end_key && !pthread_getspecific(end_key))
        pthread_setspecific(end_key, &foreign);
}

// Of other threads nothing is left, nor of their records, which are leaked: they may have been half in the
// table.
static void forked(void)
{
    static const pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&table_lock, &open, sizeof table_lock);
    memset(heads, 0, sizeof heads);
}

__attribute__((constructor)) static void begin_threads(void)
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
        locks_acquire_own(thread);
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
        locks_release_own(thread);
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
            locks_acquire_own(thread);
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
    locks_release_own(call->key);
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
