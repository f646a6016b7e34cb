// What a rank waits in, in another group of its own, while a group waits for it: communicators that the
// ranks use in another order end so. A rank is known by its process and its place in the group that all
// its groups are parts of.
//
// Within a process each looks at the other's. Between processes a rank whose time is nearly over says in
// its other groups that it waits.
#include <pthread.h>
#include <stdio.h>

#include "transports/local/local.h"

static struct {
    pthread_mutex_t lock;
    struct local_group *first;
} groups = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
    pthread_mutex_lock(&groups.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&groups.lock);
}

// A child has nothing of its parent's groups but memory.
static void in_child(void)
{
    groups.first = NULL;
    pthread_mutex_unlock(&groups.lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

void local_enlist(struct local_group *group)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (group->listed)
        return;
    pthread_once(&once, watch_forks);
    group->listed = true;
    group->origin_rank = group->rank;
    group->origin_count = group->count;
    pthread_mutex_lock(&groups.lock);
    group->next = groups.first;
    groups.first = group;
    pthread_mutex_unlock(&groups.lock);
}

void local_enlist_part(const struct local_group *whole, struct local_group *part)
{
    local_enlist(part);
    pthread_mutex_lock(&groups.lock);
    part->origin_rank = whole->origin_rank;
    part->origin_count = whole->origin_count;
    pthread_mutex_unlock(&groups.lock);
}

void local_delist(struct local_group *group)
{
    if (!group->listed)
        return;
    pthread_mutex_lock(&groups.lock);
    struct local_group **at = &groups.first;
    while (*at && *at != group)
        at = &(*at)->next;
    if (*at)
        *at = group->next;
    pthread_mutex_unlock(&groups.lock);
}

static bool is_of_the_same_rank(const struct local_group *a, const struct local_group *b)
{
    return a->host == b->host && a->origin_rank == b->origin_rank &&
           a->origin_count == b->origin_count;
}

void local_describe_elsewhere(const struct local_group *group, const struct local_head *head,
                              uint32_t awaits, char text[LOCAL_ELSEWHERE_SIZE])
{
    char call[LOCAL_CALL_SIZE];
    local_describe(head, call, sizeof call);
    snprintf(text, LOCAL_ELSEWHERE_SIZE, "%.80s of '%s' for its rank %u", call, group->label,
             awaits);
}

void local_for_others(const struct local_group *own,
                      void (*visit)(struct local_group *group, void *user), void *user)
{
    pthread_mutex_lock(&groups.lock);
    for (struct local_group *group = groups.first; group; group = group->next)
        if (group != own && is_of_the_same_rank(group, own))
            visit(group, user);
    pthread_mutex_unlock(&groups.lock);
}

bool local_find_listed(bool (*is_it)(const struct local_group *group, const void *user),
                       const void *user, struct local_group *out_group)
{
    pthread_mutex_lock(&groups.lock);
    const struct local_group *group = groups.first;
    while (group && !is_it(group, user))
        group = group->next;
    if (group)
        *out_group = *group;
    pthread_mutex_unlock(&groups.lock);
    return group;
}
