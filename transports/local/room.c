// What the threads of this process find by one lock: the names at which its ranks meet, the rooms of groups whose
// ranks are all threads of it, and its groups. A child of fork() has nothing of them.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transports/local/meeting.h"

static struct {
    pthread_mutex_t lock;
    struct local_name *names;
    struct local_room *rooms;
    struct local_group *groups;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&process.lock);
}

static void in_child(void)
{
    process.names = NULL;
    process.rooms = NULL;
    process.groups = NULL;
    pthread_mutex_unlock(&process.lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

static void lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&process.lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&process.lock);
}

// Names.

static struct local_name **find_name(const char *text)
{
    struct local_name **at = &process.names;
    while (*at && strcmp((*at)->text, text) != 0)
        at = &(*at)->next;
    return at;
}

bool local_name_give(struct local_name *name)
{
    lock();
    const bool is_free = !*find_name(name->text);
    if (is_free) {
        name->next = process.names;
        process.names = name;
    }
    unlock();
    return is_free;
}

bool local_name_find(const char *text, struct local_name *out_name)
{
    lock();
    const struct local_name *name = *find_name(text);
    if (name)
        *out_name = *name;
    unlock();
    return name;
}

void local_name_take(const struct local_name *name)
{
    lock();
    struct local_name **at = &process.names;
    while (*at && *at != name)
        at = &(*at)->next;
    if (*at)
        *at = name->next;
    unlock();
}

// Rooms.

static struct local_room *find_room(uint64_t token)
{
    struct local_room *room = process.rooms;
    while (room && room->token != token)
        room = room->next;
    return room;
}

struct local_room *local_room_enter(const struct local_group *group, uint64_t token, int wake)
{
    lock();
    struct local_room *room = find_room(token);
    if (!room) {
        room = group->host->allocate(sizeof *room + group->count * sizeof room->windows[0]);
        if (room) {
            room->token = token;
            room->next = process.rooms;
            process.rooms = room;
        }
    }
    if (room) {
        room->members++;
        room->windows[group->rank].wake = wake + 1;
    }
    unlock();
    return room;
}

void local_room_wake(struct local_room *room, uint32_t rank)
{
    const uint64_t one = 1;
    lock();
    if (room->windows[rank].wake > 0)
        (void)!write(room->windows[rank].wake - 1, &one, sizeof one);
    unlock();
}

void local_room_leave(const struct local_group *group, struct local_room *room)
{
    lock();
    room->windows[group->rank].wake = 0;
    const bool is_empty = --room->members == 0;
    struct local_room **at = &process.rooms;
    while (is_empty && *at && *at != room)
        at = &(*at)->next;
    if (is_empty && *at)
        *at = room->next;
    unlock();
    if (is_empty)
        group->host->release(room);
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
