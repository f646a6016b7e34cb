// The ranks of a hub that go on after it has failed: those that come before the last has come, or
// before the first of them loses patience.
#include "base/clock.h"
#include "transports/local/hub.h"

// With the lock: whether every rank that has not left has come.
static bool all_have_come(const struct hub *hub)
{
    for (uint32_t i = 0; i < hub->count; i++)
        if (!hub->ranks[i].shrinks && !hub->ranks[i].left)
            return false;
    return true;
}

// With the lock: waits until it is known which ranks go on. False: this one does not.
static bool gather(struct hub *hub, uint32_t rank, uint64_t deadline_ns)
{
    bool in_time = true;
    if (hub->shrunk)
        return hub->ranks[rank].shrinks; // once more, after its group had no memory
    hub->ranks[rank].shrinks = true;
    pthread_cond_broadcast(&hub->changed);
    while (!hub->shrunk && in_time && !all_have_come(hub))
        in_time = local_hub_wait(hub, deadline_ns);
    hub->shrunk = true;
    pthread_cond_broadcast(&hub->changed);
    return true;
}

static uint32_t count_before(const struct hub *hub, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < end; i++)
        count += hub->ranks[i].shrinks;
    return count;
}

weir_status local_hub_shrink(struct local_group *group, const struct weir_transport_shrink *shrink,
                             struct local_group **out_group)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    char name[64];
    pthread_mutex_lock(&hub->lock);
    const bool goes_on =
        gather(hub, group->rank, weir_clock_now_ns() + local_shrink_patience(shrink));
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = shrink->label,
        .rank = count_before(hub, group->rank),
        .count = count_before(hub, hub->count),
        .timeout_ns = shrink->timeout_ns,
    };
    pthread_mutex_unlock(&hub->lock);
    if (!goes_on)
        return local_shrink_without(group);
    snprintf(name, sizeof name, "\x01%llu.left", (unsigned long long)hub->id);
    return local_hub_join(group->host, &setup, name, out_group);
}
