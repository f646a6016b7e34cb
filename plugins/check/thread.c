// Threads of the host as actors of their own, for `threads = strict`, and what orders them: keys, which
// the program releases and acquires, or which stand for its locks, if the library of locks/ is there to
// see those.
//
// A thread's count rises with each access and with all that it learns, so an actor that knows the count
// knows what the thread knew then. A key is a clock: what the threads that released it knew.
#include "plugins/check/parts.h"

#include <dlfcn.h>

WEIR_MODULE_THREAD_LOCAL unsigned check_inside;

struct check_thread {
    struct check_actor actor;
    struct check_thread *next;
    uint64_t id; // 0: it has ended
};

enum {
    ENDED_MOST = 256, // threads whose order with new ones is kept
    KEYS_MOST = 1 << 16,
    SPARES = 8,
};

// The thread of the calling thread, of one link.
static WEIR_MODULE_THREAD_LOCAL struct {
    uint64_t check;
    struct check_thread *thread;
} current;

void check_news(const struct check *check)
{
    if (check->source)
        atomic_fetch_add_explicit(check->source->news, 1, memory_order_acq_rel);
}

// Threads.

// Without the library an id is that of a thread that may have ended: the next one goes on from there.
static uint64_t own_id(const struct check *check)
{
    return check->source ? check->source->thread() : (uint64_t)(uintptr_t)pthread_self();
}

static struct check_thread *thread_with(const struct check *check, uint64_t id)
{
    struct check_thread *thread = check->threads;
    while (thread && thread->id != id)
        thread = thread->next;
    return thread;
}

static struct check_thread *find_thread(const struct check *check)
{
    if (current.check == check->number)
        return current.thread;
    struct check_thread *thread = thread_with(check, own_id(check));
    if (thread) {
        current.check = check->number;
        current.thread = thread;
    }
    return thread;
}

// A thread that has ended, of which the clock knows all that it did: a new one may go on in its place.
static struct check_thread *find_known_end(const struct check *check, const uint64_t *counts)
{
    struct check_thread *thread = check->threads;
    while (thread &&
           (thread->id || (check->actors.floor[thread->actor.index] < thread->actor.last &&
                           !(counts && counts[thread->actor.index] >= thread->actor.last))))
        thread = thread->next;
    return thread;
}

static void remove_thread(struct check *check, struct check_thread **at)
{
    struct check_thread *thread = *at;
    *at = thread->next;
    check_actor_remove(&check->actors, &thread->actor);
    free(thread);
}

// With too many ended ones: all that the oldest did, and knew, then counts as done before what follows.
static void remove_an_ended(struct check *check)
{
    struct check_thread **oldest = NULL;
    size_t count = 0;
    for (struct check_thread **at = &check->threads; *at; at = &(*at)->next)
        if ((*at)->id == 0) {
            oldest = at;
            count++;
        }
    if (count > ENDED_MOST)
        remove_thread(check, oldest);
}

// The calling thread's, made now if need be: with the clock that it begins with, or NULL. NULL if out of
// memory.
static struct check_thread *take_thread(struct check *check, const uint64_t *counts)
{
    struct check_thread *thread = find_thread(check);
    if (thread)
        return thread;
    thread = find_known_end(check, counts);
    if (!thread) {
        thread = calloc(1, sizeof *thread);
        if (!thread || !check_actor_add(&check->actors, &thread->actor)) {
            free(thread);
            return NULL;
        }
        thread->next = check->threads;
        check->threads = thread;
        check_threads_more(check);
    }
    thread->id = own_id(check);
    current.check = check->number;
    current.thread = thread;
    check_news(check);
    return thread;
}

struct check_actor *check_thread_self(struct check *check)
{
    struct check_thread *thread = take_thread(check, NULL);
    return thread ? &thread->actor : NULL;
}

// Keys.

static struct check_key **head_of(struct check_keys *keys, const void *key)
{
    const uintptr_t number = (uintptr_t)key;
    return &keys->heads[(number >> 3 ^ number >> 12 ^ number) % CHECK_KEY_HEADS];
}

// Where the list has it, or ends.
static struct check_key **place_of(struct check_keys *keys, const void *key)
{
    struct check_key **at = head_of(keys, key);
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

static struct check_key *find_key(struct check *check, const void *key)
{
    return *place_of(&check->keys, key);
}

static void remove_key(struct check_key **at, uint32_t *count)
{
    struct check_key *key = *at;
    *at = key->next;
    (*count)--;
    free(key->counts);
    free(key);
}

// If out of memory, what a key knows counts as done before what follows.
static void grow_keys(struct check *check, struct check_key **at, uint32_t *count)
{
    while (*at) {
        struct check_key *key = *at;
        if (check_clock_grow(&key->counts, check->keys.capacity, check->actors.capacity)) {
            at = &key->next;
            continue;
        }
        check_floor_join(&check->actors, key->counts, check->keys.capacity);
        remove_key(at, count);
    }
}

// Not in a signal handler.
static void keep_spares(struct check_keys *keys)
{
    while (keys->spare_count < SPARES) {
        struct check_key *spare = calloc(1, sizeof *spare);
        if (!spare || !check_clock_grow(&spare->counts, 0, keys->capacity)) {
            free(spare);
            return;
        }
        spare->next = keys->spares;
        keys->spares = spare;
        keys->spare_count++;
    }
}

void check_threads_more(struct check *check)
{
    struct check_keys *keys = &check->keys;
    if (keys->capacity < check->actors.capacity) {
        for (size_t i = 0; i < CHECK_KEY_HEADS; i++)
            grow_keys(check, &keys->heads[i], &keys->count);
        grow_keys(check, &keys->spares, &keys->spare_count);
        keys->capacity = check->actors.capacity;
    }
    if (check->source)
        keep_spares(keys);
}

// There are too many: what the first one of a list knows counts as done before what follows.
static void drop_a_key(struct check *check)
{
    size_t i = check->drop_from;
    while (!check->keys.heads[i])
        i = (i + 1) % CHECK_KEY_HEADS;
    check->drop_from = (i + 1) % CHECK_KEY_HEADS;
    check_floor_join(&check->actors, check->keys.heads[i]->counts, check->keys.capacity);
    remove_key(&check->keys.heads[i], &check->keys.count);
}

// NULL if out of memory, or of spare ones.
static struct check_key *add_key(struct check *check, const void *key, bool signal)
{
    struct check_keys *keys = &check->keys;
    if (!signal)
        keep_spares(keys);
    struct check_key *made = keys->spares;
    if (!made)
        return NULL;
    keys->spares = made->next;
    keys->spare_count--;
    if (keys->count >= KEYS_MOST && !signal)
        drop_a_key(check);
    struct check_key **head = head_of(keys, key);
    made->key = key;
    made->next = *head;
    *head = made;
    keys->count++;
    return made;
}

// The key learns from the calling thread, and in the function of a host call from what is at the place of the call. A
// thread that has no actor knows nothing that not all know.
static bool release_key(struct check *check, const void *key, bool signal)
{
    const struct check_thread *thread = find_thread(check);
    uint64_t count;
    const struct check_actor *queue = check_call_place(check, &count);
    if (!thread && !queue)
        return true;
    struct check_key *found = find_key(check, key);
    if (!found)
        found = add_key(check, key, signal);
    if (!found)
        return false;
    bool is_new = thread && check_clock_join(&check->actors, found->counts, &thread->actor,
                                             thread->actor.last);
    if (queue)
        is_new = check_clock_join(&check->actors, found->counts, queue, count) || is_new;
    if (is_new)
        check_news(check);
    return true;
}

// What was left out counts as order that is there: all threads know what all have done.
static void catch_up(struct check *check)
{
    const uint64_t lost = check->source ? atomic_load(check->source->lost) : 0;
    if (lost == check->lost)
        return;
    check->lost = lost;
    for (struct check_thread *thread = check->threads; thread; thread = thread->next)
        check_clock_join(&check->actors, check->actors.floor, &thread->actor, thread->actor.last);
}

// What the function of a host call learns is known to what its queue is given later, too.
static bool acquire_key(struct check *check, const void *key)
{
    catch_up(check);
    const struct check_key *found = find_key(check, key);
    if (!found)
        return true;
    struct check_thread *thread = take_thread(check, found->counts);
    if (!thread)
        return false;
    found = find_key(check, key); // it may have gone where clocks had to grow
    if (!found)
        return true;
    if (check_actor_join(&check->actors, &thread->actor, thread->actor.last + 1, found->counts)) {
        thread->actor.last++;
        check_news(check);
    }
    uint64_t count;
    struct check_actor *queue = check_call_place(check, &count);
    if (queue)
        check_actor_join(&check->actors, queue, count, found->counts);
    return true;
}

void check_release(void *user, const void *key)
{
    struct check *check = user;
    if (!check->strict)
        return;
    check_lock(check);
    release_key(check, key, false);
    check_unlock(check);
}

void check_acquire(void *user, const void *key)
{
    struct check *check = user;
    if (!check->strict)
        return;
    check_lock(check);
    acquire_key(check, key);
    check_unlock(check);
}

// The program's locks. The thread may hold one that malloc() takes, and another thread the lock of the
// link in malloc(): neither waits for the other for ever.

static bool enter(struct check *check)
{
    if (check_inside)
        return false;
    check_inside++;
    if (weir_lock_take_within(&check->lock, CHECK_PATIENCE_NS))
        return true;
    check_inside--;
    return false;
}

// A thread that is in the plugin already is in malloc(), or in a signal handler.
static bool hear_release(void *user, const void *key, bool signal)
{
    struct check *check = user;
    if (check_inside)
        return !signal;
    if (!enter(check))
        return false;
    const bool done = release_key(check, key, signal);
    check_unlock(check);
    return done;
}

static bool hear_acquire(void *user, const void *key)
{
    struct check *check = user;
    if (check_inside)
        return true;
    if (!enter(check))
        return false;
    const bool done = acquire_key(check, key);
    check_unlock(check);
    return done;
}

static void hear_forget(void *user, const void *key)
{
    struct check *check = user;
    if (!enter(check))
        return;
    if (find_key(check, key)) {
        remove_key(place_of(&check->keys, key), &check->keys.count);
        check_news(check);
    }
    check_unlock(check);
}

static void hear_end(void *user, uint64_t id)
{
    struct check *check = user;
    if (!enter(check))
        return;
    struct check_thread *thread = thread_with(check, id);
    if (thread) {
        thread->id = 0;
        current.check = 0;
        remove_an_ended(check);
    }
    check_unlock(check);
}

// The life of a link.

void check_threads_open(struct check *check, const char *threads)
{
    static _Atomic uint64_t numbers;
    check->number = atomic_fetch_add(&numbers, 1) + 1;
    check->strict = strcmp(threads, "strict") == 0;
    // Hints are about one actor.
    if (strcmp(threads, "one") == 0 || (strcmp(threads, "auto") == 0 && check->hints))
        return;
    weir_lock_source_function function;
    *(void **)&function = dlsym(RTLD_DEFAULT, WEIR_LOCK_SOURCE);
    const struct weir_lock_source *source = function ? function() : NULL;
    if (!source || source->version != WEIR_LOCK_SOURCE_VERSION)
        return;
    check->listener = (struct weir_lock_listener){
        .user = check,
        .release = hear_release,
        .acquire = hear_acquire,
        .forget = hear_forget,
        .end = hear_end,
    };
    check->source = source;
    check->lost = atomic_load(source->lost);
    const void *code;
    memcpy(&code, &check->link->host->log, sizeof code);
    if (source->listen(&check->listener, code))
        check->strict = true;
    else
        check->source = NULL;
}

void check_threads_close(struct check *check)
{
    if (check->source)
        check->source->leave(&check->listener);
    while (check->threads)
        remove_thread(check, &check->threads);
    struct check_keys *keys = &check->keys;
    for (size_t i = 0; i < CHECK_KEY_HEADS; i++)
        while (keys->heads[i])
            remove_key(&keys->heads[i], &keys->count);
    while (keys->spares)
        remove_key(&keys->spares, &keys->spare_count);
}
