// How the ranks of a process meet: in a list of hubs that are not complete, by name.
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/local/hub.h"

#define REMEDY "start as many ranks as the count says, each with a number of its own"

static struct {
    pthread_mutex_t lock; // taken before a hub's
    struct hub *hubs;
    uint64_t made;
} meeting = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct hub *hub_create(const struct weir_host *host, const char *name, uint32_t count)
{
    const size_t name_size = strlen(name) + 1;
    struct hub *hub = host->allocate(sizeof *hub + name_size);
    struct hub_rank *ranks = host->allocate(count * sizeof *ranks);
    struct hub_post **posts = host->allocate((size_t)count * count * sizeof *posts);
    if (!hub || !ranks || !posts) {
        host->release(posts);
        host->release(ranks);
        host->release(hub);
        return NULL;
    }
    hub->host = host;
    hub->count = count;
    hub->ranks = ranks;
    hub->posts = posts;
    memcpy(hub->name, name, name_size);
    pthread_mutex_init(&hub->lock, NULL);
    init_condition(&hub->changed);
    return hub;
}

static void hub_destroy(struct hub *hub)
{
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    hub->host->release(hub->posts);
    hub->host->release(hub->ranks);
    hub->host->release(hub);
}

// With the meeting's lock. A hub in which a rank has given up is none.
static struct hub *find(const char *name)
{
    for (struct hub *hub = meeting.hubs; hub; hub = hub->next) {
        if (strcmp(hub->name, name) == 0)
            return hub;
    }
    return NULL;
}

static void unlist(struct hub *hub)
{
    struct hub **link = &meeting.hubs;
    while (*link && *link != hub)
        link = &(*link)->next;
    if (*link)
        *link = hub->next;
}

// With the meeting's lock: the hub of that name, or a new one.
static struct hub *obtain(const struct weir_host *host, const char *name, uint32_t count)
{
    struct hub *hub = find(name);
    if (hub)
        return hub;
    hub = hub_create(host, name, count);
    if (!hub)
        return NULL;
    hub->id = ++meeting.made;
    hub->next = meeting.hubs;
    meeting.hubs = hub;
    return hub;
}

// With both locks: why the rank cannot join, or false.
static bool refused(struct hub *hub, const struct weir_transport_setup *setup, char *cause)
{
    uint32_t other = 0;
    while (other < hub->count && !hub->ranks[other].here)
        other++;
    if (setup->count != hub->count) {
        snprintf(cause, LOCAL_CAUSE_SIZE,
                 "'%s': rank %u says that there are %u ranks, and rank %u that there are %u",
                 setup->label, setup->rank, setup->count, other, hub->count);
        hub->failed = true;
        memcpy(hub->cause.text, cause, sizeof hub->cause.text);
        pthread_cond_broadcast(&hub->changed);
        return true;
    }
    if (hub->ranks[setup->rank].here)
        snprintf(cause, LOCAL_CAUSE_SIZE, "'%s': another rank %u is at process:%s already",
                 setup->label, setup->rank, hub->name);
    return hub->ranks[setup->rank].here;
}

// With the meeting's lock. NULL if it is refused, or, with an empty cause, if no memory is left.
static struct hub *enter(const struct weir_host *host, const struct weir_transport_setup *setup,
                         const char *name, char *cause)
{
    struct hub *hub = obtain(host, name, setup->count);
    if (!hub)
        return NULL;
    pthread_mutex_lock(&hub->lock);
    const bool entered = !refused(hub, setup, cause);
    if (entered) {
        hub->ranks[setup->rank].here = true;
        hub->joined++;
        hub->members++;
    }
    hub->complete = hub->complete || (hub->joined == hub->count && !hub->failed);
    if (hub->joined == hub->count || hub->failed)
        unlist(hub);
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    return entered ? hub : NULL;
}

// With the hub's lock. Names the first of the ranks that are missing, and how many there are.
static void give_up(struct hub *hub, const struct weir_transport_setup *setup)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    uint32_t missing = 0;
    while (hub->ranks[missing].here)
        missing++;
    snprintf(hub->cause.text, sizeof hub->cause.text,
             "'%s': rank %u has not come to process:%s in %s; %u of %u ranks are there",
             setup->label, missing, hub->name,
             weir_text_duration(duration, (double)setup->timeout_ns), hub->joined, hub->count);
    hub->failed = true;
    pthread_cond_broadcast(&hub->changed);
}

// Waits for all ranks. False with the cause if they do not come; the hub is not listed then. A rank that
// has joined may have failed or left before others wake: they have joined too.
static bool gather(struct hub *hub, const struct weir_transport_setup *setup, char *cause)
{
    const uint64_t now_ns = weir_clock_now_ns();
    const uint64_t deadline_ns =
        setup->timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + setup->timeout_ns;
    pthread_mutex_lock(&hub->lock);
    bool in_time = true;
    while (in_time && !hub->failed && !hub->complete)
        in_time = local_hub_wait(hub, deadline_ns);
    if (!hub->failed && !hub->complete)
        give_up(hub, setup);
    const bool gathered = hub->complete;
    memcpy(cause, hub->cause.text, sizeof hub->cause.text);
    pthread_mutex_unlock(&hub->lock);
    return gathered;
}

static void drop(struct hub *hub, uint32_t rank)
{
    pthread_mutex_lock(&meeting.lock);
    unlist(hub);
    pthread_mutex_unlock(&meeting.lock);

    pthread_mutex_lock(&hub->lock);
    hub->ranks[rank].left = true;
    const uint32_t members = --hub->members;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    if (members == 0)
        hub_destroy(hub);
}

weir_status local_hub_join(const struct weir_host *host, const struct weir_transport_setup *setup,
                           const char *name, struct local_group **out_group)
{
    char cause[LOCAL_CAUSE_SIZE] = "";
    struct hub_group *group = host->allocate(sizeof *group);
    if (!group)
        return weir_host_no_memory(host, "a group");

    pthread_mutex_lock(&meeting.lock);
    struct hub *hub = enter(host, setup, name, cause);
    pthread_mutex_unlock(&meeting.lock);
    const bool gathered = hub && gather(hub, setup, cause);
    if (!gathered) {
        if (hub)
            drop(hub, setup->rank);
        host->release(group);
        return cause[0] ? weir_host_fail(host, WEIR_ERROR_COMM, REMEDY, "%s", cause)
                        : weir_host_no_memory(host, "a group");
    }
    group->hub = hub;
    group->local = (struct local_group){.wire = &local_hub_wire,
                                        .host = host,
                                        .rank = setup->rank,
                                        .count = setup->count};
    snprintf(group->local.label, sizeof group->local.label, "%s", setup->label);
    local_enlist(&group->local);
    *out_group = &group->local;
    return WEIR_OK;
}

// Both the whole's number and the split's are in the name, and one byte that is in no other name.
weir_status local_hub_split(struct local_run *run, const struct local_part *part,
                            struct local_group **out_group)
{
    char name[64];
    if (part->count == 0)
        return WEIR_OK;
    snprintf(name, sizeof name, "\x01%llu.%llu.%d", (unsigned long long)local_hub_of(run)->id,
             (unsigned long long)run->head.number, (int)part->color);
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = part->label,
        .rank = part->rank,
        .count = part->count,
        .timeout_ns = run->timeout_ns,
    };
    const weir_status status = local_hub_join(run->group->host, &setup, name, out_group);
    if (status == WEIR_OK)
        local_enlist_part(run->group, *out_group);
    return status;
}

void local_hub_leave(struct local_group *group)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    const struct weir_host *host = group->host;
    local_delist(group);
    drop(hub, group->rank);
    host->release(group);
}
