// What an operation costs alone.
#include <stdlib.h>
#include <string.h>

#include "plugins/sim/engine.h"

uint64_t sim_copy_ns(const struct sim_model *model, enum sim_kind kind, uint64_t bytes)
{
    const uint64_t bytes_per_ms = model->copies[kind].bytes_per_s / 1000;
    const uint64_t millionths = bytes * 1000000;
    return model->copies[kind].latency_ns + millionths / bytes_per_ms +
           (millionths % bytes_per_ms > 0);
}

uint32_t sim_kernel_places(const struct sim_model *model, double blocks)
{
    if (model->multiprocessors == 0 || blocks >= (double)model->multiprocessors)
        return model->kernels;
    const double places = blocks * (double)model->kernels / (double)model->multiprocessors;
    return places > 1 ? (uint32_t)(places + 0.5) : 1;
}

// Blocks of a kernel that is larger than the GPU end all the time, but for those of one that has just
// begun: half of what a block takes is the mean of both.
uint64_t sim_kernel_yield_ns(const struct sim_model *model, const struct sim_launch *launch,
                             uint64_t duration_ns)
{
    const double held = (double)model->multiprocessors * (double)model->threads;
    if (held == 0 || launch->items <= held)
        return 0;
    return 1 + (uint64_t)((double)duration_ns * held / launch->items / 2);
}

static int compare(const void *name, const void *cost)
{
    return strcmp(name, ((const struct sim_cost *)cost)->kernel);
}

// In one order, so that every machine rounds alike.
static double sum(const struct sim_cost *cost, const struct sim_launch *launch)
{
    double ns = cost->fixed_ns;
    ns += cost->per_block_ns * launch->blocks;
    ns += cost->per_item_ns * launch->items;
    ns += cost->per_byte_ns * launch->bytes;
    for (size_t i = 0; i < SIM_ARGUMENTS; i++)
        ns += cost->per_argument_ns[i] * launch->arguments[i];
    for (size_t i = 0; i < SIM_ARGUMENTS; i++)
        ns += cost->per_item_argument_ns[i] * launch->items * launch->arguments[i];
    return ns;
}

bool sim_kernel_ns(const struct sim_model *model, const struct sim_launch *launch, uint64_t *out_ns)
{
    const struct sim_cost *cost = model->cost_count
                                      ? bsearch(launch->kernel, model->costs, model->cost_count,
                                                sizeof *model->costs, compare)
                                      : NULL;
    if (!cost)
        return false;
    const double ns = sum(cost, launch);
    // A negative argument may make it negative; a year is more than any kernel runs.
    const double most = 365.0 * 86400e9;
    *out_ns = ns > 0 ? (uint64_t)((ns < most ? ns : most) + 0.5) : 0;
    return true;
}
