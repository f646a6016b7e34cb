// Groups as the front end sees them: their life, a call's check, and the report of its failure.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/local/local.h"

// The groups of the process.

// What a rank waits in, in another group of its own, while a group waits for it: communicators that the
// ranks use in another order end so. A rank is known by its place in the group that all its groups are parts
// of.
// A rank whose time is nearly over says in its other groups that it waits.

static struct local_group *groups; // of this process, by its lock

void local_enlist(struct local_group *group)
{
    local_process_lock();
    group->next = groups;
    groups = group;
    local_process_unlock();
}

void local_say_elsewhere(const struct local_group *own, const char *text)
{
    local_process_lock();
    for (struct local_group *group = groups; group; group = group->next) {
        const bool is_of_rank = group->base.host == own->base.host &&
                                group->origin_rank == own->origin_rank &&
                                group->origin_count == own->origin_count;
        struct mesh_window *window = local_window_of(group, group->base.rank);
        if (group != own && is_of_rank && window)
            local_text_write(&window->elsewhere, text);
    }
    local_process_unlock();
}

// Their life.

struct local_group *local_mesh_create(const struct weir_host *host, const char *label,
                                      uint32_t rank, uint32_t count)
{
    struct local_group *group = host->allocate(sizeof *group);
    if (!group)
        return NULL;
    group->base.host = host;
    group->base.rank = rank;
    group->base.count = count;
    group->origin_rank = rank;
    group->origin_count = count;
    group->base.fail = local_mesh_fail;
    snprintf(group->base.label, sizeof group->base.label, "%s", label);
    pthread_mutex_init(&group->lock, NULL);
    group->eager = (long)count <= sysconf(_SC_NPROCESSORS_ONLN);
    group->peers = host->allocate(count * sizeof *group->peers);
    group->polls = host->allocate((2 * (size_t)count + DOOR_POLLS) * sizeof *group->polls);
    for (uint32_t i = 0; group->peers && i < count; i++) {
        group->peers[i].data = -1;
        group->peers[i].control = -1;
    }
    if (!group->peers || !group->polls) {
        local_mesh_destroy(group);
        return NULL;
    }
    return group;
}

void local_mesh_destroy(struct local_group *group)
{
    const struct weir_host *host = group->base.host;
    local_process_lock();
    struct local_group **at = &groups;
    while (*at && *at != group)
        at = &(*at)->next;
    if (*at)
        *at = group->next;
    local_process_unlock();
    for (uint32_t i = 0; group->peers && i < group->base.count; i++) {
        local_close(&group->peers[i].data);
        local_close(&group->peers[i].control);
    }
    for (uint32_t i = 0; group->windows && i < group->base.count; i++)
        if (group->windows[i])
            munmap(group->windows[i], LOCAL_WINDOW_BYTES);
    host->release(group->windows);
    pthread_mutex_destroy(&group->lock);
    host->release(group->polls);
    host->release(group->peers);
    host->release(group);
}

#define MPI_REMEDY \
    "run it under mpirun with WEIR_COMM_TRANSPORT=mpi, which carries host memory between machines"

// Between machines: what makes and watches an engine's communicator, and compares calls.
static bool fits_the_line(const struct weir_transport_call *call)
{
    const bool may = call->kind == WEIR_ALL_GATHER || !weir_is_numbered(call->kind);
    const size_t most = may ? LOCAL_CONTROL_BYTES : 0;
    bool fits =
        (!call->src && !call->dst) || call->count * weir_datatype_size(call->element) <= most;
    for (uint32_t i = 0; i < call->part_count && fits; i++) {
        const struct weir_transport_part *part = weir_transport_part_at(call, i);
        fits = part->count * weir_datatype_size(part->element) <= most;
    }
    return fits;
}

weir_status local_run_call(void *group, const struct weir_transport_call *call)
{
    struct local_run run = local_run_begin(group, weir_head_of(call), call->timeout_ns);
    run.call = call;
    const weir_status status = weir_group_report(group, WEIR_ERROR_COMM, NULL);
    if (status)
        return status;
    if (!local_carries_data(group) && !fits_the_line(call)) {
        // Strangers on the way could read, and change, what goes to another machine.
        weir_caller_fail(
            &run.by,
            "rank %u is asked to send host memory to another machine, and 'local' does not",
            run.group->base.rank);
        return weir_group_report(group, WEIR_ERROR_UNSUPPORTED, MPI_REMEDY);
    }
    return local_carry(&run) ? WEIR_OK : weir_group_report(group, WEIR_ERROR_COMM, NULL);
}

bool local_carries_data(const void *group)
{
    const struct local_group *local = group;
    return local->windows;
}
