// The collectives, in segments that fit the group's memory: from the caller's memory into `src`, one
// of MPI's collectives from there to `dst`, and on to the caller's.
#include <string.h>

#include "transports/kit/reduce.h"
#include "transports/mpi/mpi.h"

// An all-reduce up to this size takes one step: all ranks get all, and each adds it up.
#define ONE_STEP_BYTES 4096

static size_t element_size(const struct mpi_run *run)
{
    return weir_datatype_size(run->call->element);
}

static bool finish(struct mpi_run *run, const char *function, int error,
                   struct mpi_request *request)
{
    if (error)
        return mpi_fail_in(run, function, error);
    *request = (struct mpi_request){.handle = request->handle, .active = true};
    const enum mpi_wait result = mpi_wait_all(run, request, 1, run->deadline_ns);
    return result == MPI_DONE ||
           (result == MPI_LATE && mpi_blame(run, WEIR_FAULT_SILENT, UINT32_MAX,
                                            "a rank has begun and has not finished in time: it "
                                            "is stopped, or cut off"));
}

// `size` is that of one rank's part.

static bool all_gather(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Iallgather",
                  mpi_library()->all_gather(group->src, group->dst, (int)size, group->comm,
                                            &request->handle),
                  request);
}

static bool all_to_all(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Ialltoall",
                  mpi_library()->all_to_all(group->src, group->dst, (int)size, group->comm,
                                            &request->handle),
                  request);
}

static bool gather(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Igather",
                  mpi_library()->gather(group->src, group->dst, (int)size, (int)run->call->root,
                                        group->comm, &request->handle),
                  request);
}

static bool scatter(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Iscatter",
                  mpi_library()->scatter(group->src, group->dst, (int)size, (int)run->call->root,
                                         group->comm, &request->handle),
                  request);
}

static bool broadcast(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Ibcast",
                  mpi_library()->broadcast(group->src, (int)size, (int)run->call->root, group->comm,
                                           &request->handle),
                  request);
}

// Adds up the ranks' parts in `dst`, in the order of ranks, into the first.
static void reduce(struct mpi_run *run, size_t stride, size_t count)
{
    struct mpi_group *group = run->group;
    const struct weir_transport_call *call = run->call;
    for (uint32_t i = 1; i < group->count; i++)
        weir_reduce(call->element, call->reduction, group->dst, group->dst + i * stride, count);
    if (call->reduction == WEIR_AVERAGE)
        weir_reduce_divide(call->element, group->dst, count, group->count);
}

// What is at `offset`, in elements, in each of the parts of `count` elements that the caller's memory
// consists of, and the group's parts.
static void pack(struct mpi_run *run, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    for (uint32_t i = 0; i < run->group->count; i++)
        memcpy(run->group->src + i * count * size,
               (const char *)run->call->src + (i * run->call->count + offset) * size, count * size);
}

static void unpack(struct mpi_run *run, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    for (uint32_t i = 0; i < run->group->count; i++)
        memcpy((char *)run->call->dst + (i * run->call->count + offset) * size,
               run->group->dst + i * count * size, count * size);
}

static void load(struct mpi_run *run, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    memcpy(run->group->src, (const char *)run->call->src + offset * size, count * size);
}

static void store(struct mpi_run *run, const char *from, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    memcpy((char *)run->call->dst + offset * size, from, count * size);
}

// One segment of each kind: `count` elements at `offset`.

static bool segment_all_reduce(struct mpi_run *run, size_t offset, size_t count)
{
    struct mpi_group *group = run->group;
    const size_t size = element_size(run);
    const size_t part = (count + group->count - 1) / group->count;
    load(run, offset, count);
    if (count * size <= ONE_STEP_BYTES) {
        if (!all_gather(run, count * size))
            return false;
        reduce(run, count * size, count);
        store(run, group->dst, offset, count);
        return true;
    }
    if (!all_to_all(run, part * size))
        return false;
    reduce(run, part * size, part);
    memcpy(group->src, group->dst, part * size);
    if (!all_gather(run, part * size))
        return false;
    store(run, group->dst, offset, count);
    return true;
}

static bool segment_reduce(struct mpi_run *run, size_t offset, size_t count)
{
    load(run, offset, count);
    if (!gather(run, count * element_size(run)))
        return false;
    if (run->group->rank == run->call->root) {
        reduce(run, count * element_size(run), count);
        store(run, run->group->dst, offset, count);
    }
    return true;
}

static bool segment_broadcast(struct mpi_run *run, size_t offset, size_t count)
{
    if (run->group->rank == run->call->root)
        load(run, offset, count);
    if (!broadcast(run, count * element_size(run)))
        return false;
    if (run->call->dst && run->call->dst != run->call->src)
        store(run, run->group->src, offset, count);
    return true;
}

static bool segment_all_gather(struct mpi_run *run, size_t offset, size_t count)
{
    load(run, offset, count);
    if (!all_gather(run, count * element_size(run)))
        return false;
    unpack(run, offset, count);
    return true;
}

static bool segment_reduce_scatter(struct mpi_run *run, size_t offset, size_t count)
{
    pack(run, offset, count);
    if (!all_to_all(run, count * element_size(run)))
        return false;
    reduce(run, count * element_size(run), count);
    store(run, run->group->dst, offset, count);
    return true;
}

static bool segment_all_to_all(struct mpi_run *run, size_t offset, size_t count)
{
    pack(run, offset, count);
    if (!all_to_all(run, count * element_size(run)))
        return false;
    unpack(run, offset, count);
    return true;
}

static bool segment_gather(struct mpi_run *run, size_t offset, size_t count)
{
    load(run, offset, count);
    if (!gather(run, count * element_size(run)))
        return false;
    if (run->group->rank == run->call->root)
        unpack(run, offset, count);
    return true;
}

static bool segment_scatter(struct mpi_run *run, size_t offset, size_t count)
{
    if (run->group->rank == run->call->root)
        pack(run, offset, count);
    if (!scatter(run, count * element_size(run)))
        return false;
    store(run, run->group->dst, offset, count);
    return true;
}

static bool (*const segments[])(struct mpi_run *run, size_t offset, size_t count) = {
    [WEIR_ALL_REDUCE] = segment_all_reduce,
    [WEIR_REDUCE] = segment_reduce,
    [WEIR_BROADCAST] = segment_broadcast,
    [WEIR_ALL_GATHER] = segment_all_gather,
    [WEIR_REDUCE_SCATTER] = segment_reduce_scatter,
    [WEIR_ALL_TO_ALL] = segment_all_to_all,
    [WEIR_GATHER] = segment_gather,
    [WEIR_SCATTER] = segment_scatter,
};

bool mpi_collective(struct mpi_run *run)
{
    const weir_collective kind = run->call->kind;
    if (kind == WEIR_BARRIER)
        return true;
    // These two move one segment as a whole, the others a part for each rank.
    const bool whole = kind == WEIR_ALL_REDUCE || kind == WEIR_BROADCAST;
    const size_t most = run->group->block * (whole ? run->group->count : 1) / element_size(run);
    bool ok = true;
    for (size_t offset = 0; offset < run->call->count && ok; offset += most) {
        const size_t left = (size_t)run->call->count - offset;
        ok = segments[kind](run, offset, left < most ? left : most);
    }
    return ok;
}
