// The collectives of graphs. A launch takes as many numbers and turns of each communicator as the graph
// has collectives of it, of all communicators at once: so two launches come in one order everywhere.
#include <stdlib.h>

#include "core/graph/graph.h"
#include "core/object/comm.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

static uint32_t count_collectives(const struct weir__graph_parts *parts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < parts->node_count; i++)
        count += parts->owned[i]->kind == WEIR_OPERATION_COLLECTIVE;
    return count;
}

static struct weir__graph_comm *find(struct weir__graph_comms *comms, weir_comm *comm)
{
    for (uint32_t i = 0; i < comms->count; i++)
        if (comms->comms[i].comm == comm)
            return &comms->comms[i];
    comms->comms[comms->count] = (struct weir__graph_comm){.comm = comm};
    return &comms->comms[comms->count++];
}

// SEND, RECV and EXCHANGE have the number of the one before them.
static void add(struct weir__graph_comms *comms, struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    struct weir__graph_comm *own = find(comms, operation->u.collective.comm);
    own->numbered += kind != WEIR_SEND && kind != WEIR_RECV && kind != WEIR_EXCHANGE;
    operation->u.collective.turn = own->count++;
    operation->u.collective.number = (uint64_t)own->numbered - 1;
    comms->collectives[comms->collective_count++] = operation;
}

static int by_id(const void *a, const void *b)
{
    const struct weir__graph_comm *x = a;
    const struct weir__graph_comm *y = b;
    const uint64_t first = x->comm->member.object.id;
    const uint64_t second = y->comm->member.object.id;
    return (first > second) - (first < second);
}

bool weir__graph_comms_find(struct weir__graph_comms *comms, const struct weir__graph_parts *parts)
{
    const uint32_t count = count_collectives(parts);
    if (count == 0)
        return true;
    comms->collectives = weir__allocate(count * sizeof *comms->collectives);
    comms->comms = weir__allocate(count * sizeof *comms->comms);
    comms->launch = weir__allocate(count * sizeof *comms->launch);
    if (!comms->collectives || !comms->comms || !comms->launch)
        return false;
    for (uint32_t i = 0; i < parts->node_count; i++)
        if (parts->owned[i]->kind == WEIR_OPERATION_COLLECTIVE)
            add(comms, parts->owned[i]);
    qsort(comms->comms, comms->count, sizeof *comms->comms, by_id);
    return true;
}

void weir__graph_comms_finish(struct weir__graph_comms *comms)
{
    weir__release((void *)(uintptr_t)comms->collectives);
    weir__release(comms->comms);
    weir__release(comms->launch);
}

// In the order of ids.
static void take_locks(const struct weir__graph_comms *comms)
{
    for (uint32_t i = 0; i < comms->count; i++)
        if (i == 0)
            weir_biased_lock_take(&comms->comms[i].comm->submit_lock);
        else
            weir_biased_lock_take_another(&comms->comms[i].comm->submit_lock);
}

static void release_locks(const struct weir__graph_comms *comms)
{
    for (uint32_t i = comms->count; i-- > 0;)
        if (i == 0)
            weir_biased_lock_release(&comms->comms[i].comm->submit_lock);
        else
            weir_biased_lock_release_another(&comms->comms[i].comm->submit_lock);
}

weir_status weir__graph_comms_begin(struct weir__graph_comms *comms, struct weir_operation *launch)
{
    weir_status status = WEIR_OK;
    if (comms->count == 0)
        return WEIR_OK;
    take_locks(comms);
    for (uint32_t i = 0; i < comms->count && status == WEIR_OK; i++) {
        weir_comm *comm = comms->comms[i].comm;
        status = comm->ops->status(comm); // it may be destroyed, and be kept by the graph
        comms->launch[i] = (struct weir_graph_comm){
            .comm = comm,
            .number = comm->number + 1,
            .turn = comm->next_turn,
            .count = comms->comms[i].count,
        };
    }
    if (status < 0)
        release_locks(comms);
    launch->flags |= WEIR_OPERATION_COLLECTIVES;
    launch->u.graph_comms.comms = comms->launch;
    launch->u.graph_comms.count = comms->count;
    return status;
}

void weir__graph_comms_end(struct weir__graph_comms *comms, const struct weir_operation *launch)
{
    if (comms->count == 0)
        return;
    for (uint32_t i = 0; i < comms->count && launch->sequence; i++) {
        comms->comms[i].comm->number += comms->comms[i].numbered;
        comms->comms[i].comm->next_turn += comms->comms[i].count;
    }
    release_locks(comms);
}
