// What an operation is to the engine.
#include <string.h>

#include "plugins/sim/sim.h"

bool sim_is_placed(const struct weir_operation *operation)
{
    return !(operation->flags & (WEIR_OPERATION_EMPTY | WEIR_OPERATION_IMPLIED)) &&
           operation->kind != WEIR_OPERATION_POOL_ALLOCATE &&
           operation->kind != WEIR_OPERATION_POOL_FREE;
}

// Copies.

// Copies within the host's memory use the engine of uploads.
static enum sim_kind kind_of_copy(const struct weir_link *link, const weir_buffer *dst_object,
                                  const weir_buffer *src_object)
{
    const struct sim_virtual_buffer *dst = sim_buffer_of(link, dst_object);
    const struct sim_virtual_buffer *src = sim_buffer_of(link, src_object);
    if (src->on_host)
        return SIM_H2D;
    if (dst->on_host)
        return SIM_D2H;
    return dst->device == src->device ? SIM_D2D : SIM_PEER;
}

static weir_status describe_bytes(const struct weir_link *link, struct sim_work *work,
                                  enum sim_kind kind, uint64_t bytes)
{
    const uint64_t most = SIM_BYTES_MOST;
    work->kind = kind;
    work->bytes = bytes;
    if (bytes < most)
        return WEIR_OK;
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED, "copy in parts",
                          "sim: %llu bytes at once are more than it can time, which is 16 TiB",
                          (unsigned long long)bytes);
}

static weir_status describe_copy(const struct weir_link *link, struct sim_work *work,
                                 const weir_buffer *dst, const weir_buffer *src, uint64_t bytes)
{
    work->device = sim_buffer_of(link, src)->device;
    return describe_bytes(link, work, kind_of_copy(link, dst, src), bytes);
}

// Launches.

static double value_of(const struct weir_argument *argument)
{
    const uint64_t bits = argument->bits;
    float f32;
    double f64;
    switch (argument->scalar) {
    case WEIR_SCALAR_I8:
        return (double)(int8_t)bits;
    case WEIR_SCALAR_I16:
        return (double)(int16_t)bits;
    case WEIR_SCALAR_I32:
        return (double)(int32_t)bits;
    case WEIR_SCALAR_I64:
        return (double)(int64_t)bits;
    case WEIR_SCALAR_F32:
        memcpy(&f32, &bits, sizeof f32);
        return (double)f32;
    case WEIR_SCALAR_F64:
        memcpy(&f64, &bits, sizeof f64);
        return f64;
    case WEIR_SCALAR_BOOL:
    case WEIR_SCALAR_U8:
    case WEIR_SCALAR_U16:
    case WEIR_SCALAR_U32:
    case WEIR_SCALAR_U64:
        return (double)bits;
    default: // a half, a structure
        return 0;
    }
}

static double volume(struct weir_extent extent)
{
    return (double)extent.x * (double)extent.y * (double)extent.z;
}

struct sim_launch sim_launch_of(const struct weir_link *link,
                                const struct weir_operation *operation)
{
    struct sim_launch launch = {
        .kernel = weir_kernel_data(link, operation->u.launch.kernel),
        .blocks = volume(operation->u.launch.grid),
    };
    launch.items = launch.blocks * volume(operation->u.launch.block);
    for (size_t i = 0; i < operation->u.launch.argument_count; i++) {
        const struct weir_argument *argument = &operation->u.launch.arguments[i];
        if (argument->kind == WEIR_PARAMETER_BUFFER)
            launch.bytes += (double)argument->size;
        else if (argument->kind == WEIR_PARAMETER_VALUE && !argument->pointer && i < SIM_ARGUMENTS)
            launch.arguments[i] = value_of(argument);
    }
    return launch;
}

static weir_status describe_launch(const struct weir_link *link,
                                   const struct weir_operation *operation, struct sim_work *work)
{
    const struct sim *sim = sim_of(link);
    const struct sim_launch launch = sim_launch_of(link, operation);
    work->kind = SIM_KERNEL;
    work->places = sim_kernel_places(sim->model, launch.blocks);
    if (sim_kernel_ns(sim->model, &launch, &work->duration_ns) ||
        sim_scale_find(&sim->scale, &launch, &work->duration_ns)) {
        work->yield_ns = sim_kernel_yield_ns(sim->model, &launch, work->duration_ns);
        return WEIR_OK;
    }
    if (sim->scale.factor > 0)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "launch it once outside the graph with these sizes, or give it a "
                              "cost",
                              "sim: the kernel '%.200s' of a graph has no cost, and was not "
                              "measured",
                              launch.kernel);
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                          "write a section [kernel NAME], or let `weir sim learn` write it from "
                          "traces, and name the file with `costs` in [sim]",
                          "sim: the kernel '%.200s' has no cost on the GPU '%.60s'", launch.kernel,
                          sim->model->name);
}

// Collectives.

static bool is_part(weir_collective kind)
{
    return kind == WEIR_ALL_GATHER || kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_TO_ALL ||
           kind == WEIR_GATHER || kind == WEIR_SCATTER;
}

static double larger_side(const struct weir_operation *operation)
{
    struct weir_collective_range range;
    double read = 0;
    double written = 0;
    for (uint32_t i = 0; weir_collective_range_at(operation, i, &range); i++)
        *(range.access == WEIR_ACCESS_READ ? &read : &written) += (double)range.size;
    return read > written ? read : written;
}

// What a ring moves through the slowest link: bus bandwidth is defined by it
// (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
static double bus_bytes(const struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    const double ranks = operation->u.collective.rank_count;
    const double one = (double)operation->u.collective.count *
                       (double)weir_datatype_size(operation->u.collective.element);
    if (kind == WEIR_EXCHANGE)
        return larger_side(operation);
    if (kind == WEIR_BARRIER || ranks < 2)
        return 0;
    if (kind == WEIR_ALL_REDUCE)
        return 2 * one * (ranks - 1) / ranks;
    return is_part(kind) ? one * (ranks - 1) : one;
}

static weir_status describe_collective(const struct weir_link *link,
                                       const struct weir_operation *operation,
                                       struct sim_work *work)
{
    const struct sim_model *model = sim_of(link)->model;
    const double bytes = bus_bytes(operation);
    if (model->copies[SIM_COLLECTIVE].bytes_per_s > 0)
        return describe_bytes(link, work, SIM_COLLECTIVE,
                              bytes < 0x1p63 ? (uint64_t)bytes : UINT64_MAX);
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                          "set collective_gb_per_s and collective_latency_ns in the model, or in "
                          "`changes` of [sim]",
                          "sim: a collective has no cost on the GPU '%.60s'", model->name);
}

// All of them.

weir_status sim_describe(const struct weir_link *link, const struct weir_operation *operation,
                         struct sim_work *work)
{
    const struct weir_operation *o = operation;
    if (o->flags & WEIR_OPERATION_EMPTY) { // a node that is disabled
        work->kind = SIM_MARK;
        return WEIR_OK;
    }
    switch (o->kind) {
    case WEIR_OPERATION_COPY:
        return describe_copy(link, work, o->u.copy.dst, o->u.copy.src, o->u.copy.size);
    case WEIR_OPERATION_COPY_2D:
        return describe_copy(link, work, o->u.copy_2d.dst.buffer, o->u.copy_2d.src.buffer,
                             (uint64_t)o->u.copy_2d.width * o->u.copy_2d.height);
    case WEIR_OPERATION_COPY_3D:
        return describe_copy(link, work, o->u.copy_3d.dst.buffer, o->u.copy_3d.src.buffer,
                             (uint64_t)o->u.copy_3d.width * o->u.copy_3d.height *
                                 o->u.copy_3d.depth);
    case WEIR_OPERATION_FILL:
        return describe_bytes(link, work, SIM_D2D, o->u.fill.size);
    case WEIR_OPERATION_FILL_2D:
        return describe_bytes(link, work, SIM_D2D,
                              (uint64_t)o->u.fill_2d.width * o->u.fill_2d.height);
    case WEIR_OPERATION_LAUNCH:
        return describe_launch(link, o, work);
    case WEIR_OPERATION_COLLECTIVE:
        return describe_collective(link, o, work);
    case WEIR_OPERATION_HOST_CALL:
        work->kind = SIM_HOST;
        return WEIR_OK;
    case WEIR_OPERATION_RECORD:
    case WEIR_OPERATION_WAIT:
        work->kind = SIM_MARK;
        return WEIR_OK;
    default:
        return weir_host_fail(
            link->host, WEIR_ERROR_UNSUPPORTED, "leave out the plugin sim for this program",
            "sim cannot tell how long the caller's own work takes, nor operations "
            "of kind %d",
            (int)o->kind);
    }
}
