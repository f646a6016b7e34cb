// What this process has for all its groups, by one lock: the descriptors of its sockets, and its groups. A child of
// fork() has nothing of them.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for accept4()
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transports/local/local.h"

static struct {
    // Held while a descriptor is opened or closed, so that no fork comes between that and the set.
    pthread_mutex_t lock;
    int *held; // descriptors
    size_t held_count;
    size_t held_room;
    unsigned forks;
    struct local_group *groups;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int handlers_error;

static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&process.lock);
}

// Of the system's calls nothing but close(): other threads of the parent may have held the allocator's locks.
static void in_child(void)
{
    while (process.held_count > 0)
        close(process.held[--process.held_count]);
    process.forks++;
    process.groups = NULL;
    pthread_mutex_unlock(&process.lock);
}

static void set_handlers(void)
{
    handlers_error = pthread_atfork(before_fork, after_fork, in_child);
}

static void lock(void)
{
    pthread_once(&once, set_handlers);
    pthread_mutex_lock(&process.lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&process.lock);
}

// Descriptors.

static bool has_room(void)
{
    const size_t room = process.held_room ? 2 * process.held_room : 64;
    if (process.held_count < process.held_room)
        return true;
    int *more = realloc(process.held, room * sizeof *more);
    if (!more)
        return false;
    process.held = more;
    process.held_room = room;
    return true;
}

// Of a call with the lock, which ends here.
static int keep(int descriptor)
{
    int error = errno;
    if (descriptor >= 0 && (handlers_error || !has_room())) {
        close(descriptor);
        descriptor = -1;
        error = ENOMEM;
    }
    if (descriptor >= 0)
        process.held[process.held_count++] = descriptor;
    unlock();
    errno = error;
    return descriptor;
}

int local_descriptor_socket(int family)
{
    lock();
    return keep(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int local_descriptor_accept(int listener, struct sockaddr *address, socklen_t *size)
{
    lock();
    return keep(accept4(listener, address, size, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

// Only changed where there is no other thread.
unsigned local_descriptor_forks(void)
{
    return process.forks;
}

// The set goes with its last one: nothing else would free it when the module is closed.
void local_descriptor_close(int descriptor)
{
    size_t at = 0;
    lock();
    close(descriptor);
    while (at < process.held_count && process.held[at] != descriptor)
        at++;
    if (at < process.held_count)
        process.held[at] = process.held[--process.held_count];
    if (process.held_count == 0) {
        free(process.held);
        process.held = NULL;
        process.held_room = 0;
    }
    unlock();
}

// Other groups of a rank.

// What a rank waits in, in another group of its own, while a group waits for it: communicators that the
// ranks use in another order end so. A rank is known by its place in the group that all its groups are parts
// of.
// A rank whose time is nearly over says in its other groups that it waits.

void local_enlist(struct local_group *group)
{
    if (group->listed)
        return;
    group->listed = true;
    group->origin_rank = group->rank;
    group->origin_count = group->count;
    lock();
    group->next = process.groups;
    process.groups = group;
    unlock();
}

void local_enlist_part(const struct local_group *whole, struct local_group *part)
{
    local_enlist(part);
    lock();
    part->origin_rank = whole->origin_rank;
    part->origin_count = whole->origin_count;
    unlock();
}

void local_delist(struct local_group *group)
{
    if (!group->listed)
        return;
    lock();
    struct local_group **at = &process.groups;
    while (*at && *at != group)
        at = &(*at)->next;
    if (*at)
        *at = group->next;
    unlock();
}

static bool is_of_the_same_rank(const struct local_group *a, const struct local_group *b)
{
    return a->host == b->host && a->origin_rank == b->origin_rank &&
           a->origin_count == b->origin_count;
}

void local_for_others(const struct local_group *own,
                      void (*visit)(struct local_group *group, void *user), void *user)
{
    lock();
    for (struct local_group *group = process.groups; group; group = group->next)
        if (group != own && is_of_the_same_rank(group, own))
            visit(group, user);
    unlock();
}
