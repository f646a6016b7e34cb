// Threads of the host as actors of their own, for `threads = strict`. A thread's count rises with
// each access and with all that it learns, so an actor that knows the count knows what the thread
// knew then. A key of weir_check_release() is an actor too, which learns from the threads that
// release it.
#include <pthread.h>
#include <stdlib.h>

#include "plugins/check/parts.h"

struct check_thread {
    struct check_actor actor;
    struct check_thread *next;
    pthread_t id; // of a thread that may have ended; the next one with it goes on from there
};

struct check_key {
    struct check_actor actor;
    struct check_key *next;
    const void *key;
};

struct check_actor *check_thread_self(struct check *check)
{
    const pthread_t self = pthread_self();
    struct check_thread *thread = check->threads;
    while (thread && !pthread_equal(thread->id, self))
        thread = thread->next;
    if (thread)
        return &thread->actor;
    thread = calloc(1, sizeof *thread);
    if (!thread || !check_actor_add(&check->actors, &thread->actor)) {
        free(thread);
        return NULL;
    }
    thread->id = self;
    thread->next = check->threads;
    check->threads = thread;
    return &thread->actor;
}

void check_thread_submits(struct check *check, struct check_actor *queue, uint64_t count)
{
    const struct check_actor *self = check_thread_self(check);
    if (self)
        check_actor_learn(&check->actors, queue, count, self, self->last);
}

void check_host_learns(struct check *check, const struct check_actor *producer, uint64_t count,
                       bool everywhere)
{
    struct check_actor *self = check->strict && !everywhere ? check_thread_self(check) : NULL;
    if (self)
        check_actor_learn(&check->actors, self, ++self->last, producer, count);
    else
        check_floor_learn(&check->actors, producer, count);
}

// Keys.

static struct check_actor *key_actor(struct check *check, const void *key)
{
    struct check_key *found = check->keys;
    while (found && found->key != key)
        found = found->next;
    if (found)
        return &found->actor;
    found = calloc(1, sizeof *found);
    if (!found || !check_actor_add(&check->actors, &found->actor)) {
        free(found);
        return NULL;
    }
    found->key = key;
    found->next = check->keys;
    check->keys = found;
    return &found->actor;
}

static void pass_on(struct check_actors *actors, struct check_actor *to, struct check_actor *from)
{
    if (to && from)
        check_actor_learn(actors, to, ++to->last, from, from->last);
}

void check_release(void *user, const void *key)
{
    struct check *check = user;
    if (!check->strict)
        return;
    check_lock(check);
    struct check_actor *actor = key_actor(check, key);
    pass_on(&check->actors, actor, check_thread_self(check));
    if (actor)
        check_call_release(check, actor);
    check_unlock(check);
}

void check_acquire(void *user, const void *key)
{
    struct check *check = user;
    if (!check->strict)
        return;
    check_lock(check);
    pass_on(&check->actors, check_thread_self(check), key_actor(check, key));
    check_unlock(check);
}

void check_threads_finish(struct check *check)
{
    while (check->threads) {
        struct check_thread *thread = check->threads;
        check->threads = thread->next;
        check_actor_remove(&check->actors, &thread->actor);
        free(thread);
    }
    while (check->keys) {
        struct check_key *key = check->keys;
        check->keys = key->next;
        check_actor_remove(&check->actors, &key->actor);
        free(key);
    }
}
