// A launch beside another kernel took longer than it would have alone, which says nothing about what
// it takes, so it is counted and left out.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sim/fit.h"

enum {
    ARGUMENTS = 16 // of a kernel, on which a model's cost may depend
};

// One operation of the kernels' engine.
struct run {
    const struct weir_trace_operation *operation;
    uint32_t device;
    bool beside;
};

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->operation->start_ns != y->operation->start_ns)
        return x->operation->start_ns < y->operation->start_ns ? -1 : 1;
    return 0;
}

// It is enough to compare each run with the one of those before it that ends last: if an earlier
// one is also at work then, these two were at work together.
static void mark_beside(struct run *runs, size_t count)
{
    size_t last = 0;
    for (size_t i = 1; i < count; i++) {
        const bool same = runs[i].device == runs[last].device;
        if (same && runs[i].operation->start_ns < runs[last].operation->end_ns)
            runs[i].beside = runs[last].beside = true;
        if (!same || runs[i].operation->end_ns > runs[last].operation->end_ns)
            last = i;
    }
}

static size_t take_runs(struct run *runs, const struct weir_trace *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        if (operation->timed && operation->engine == WEIR_ENGINE_KERNELS)
            runs[count++] = (struct run){
                .operation = operation,
                .device = trace->queues[operation->queue_index].device,
            };
    }
    qsort(runs, count, sizeof *runs, compare_runs);
    mark_beside(runs, count);
    return count;
}

static void *grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    const size_t more = *capacity ? 2 * *capacity : 16;
    void *grown = realloc(items, more * size);
    if (grown)
        *capacity = more;
    return grown;
}

// Where the kernel of that name is, or belongs.
static size_t place_of(const struct sim_kernels *kernels, const char *name)
{
    size_t low = 0;
    size_t high = kernels->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(kernels->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sim_kernel *kernel_of(struct sim_kernels *kernels, const char *name)
{
    const size_t place = place_of(kernels, name);
    if (place < kernels->count && strcmp(kernels->items[place].name, name) == 0)
        return &kernels->items[place];
    struct sim_kernel *items =
        grow(kernels->items, kernels->count, &kernels->capacity, sizeof *items);
    if (!items)
        return NULL;
    kernels->items = items;
    char *copy = strdup(name);
    if (!copy)
        return NULL;
    memmove(&items[place + 1], &items[place], (kernels->count - place) * sizeof *items);
    items[place] = (struct sim_kernel){.name = copy};
    kernels->count++;
    return &items[place];
}

static double volume(const uint32_t extent[3])
{
    return (double)extent[0] * extent[1] * extent[2];
}

// Where the argument of that place is among the kernel's scalars, or SIM_SCALARS.
static size_t scalar_of(struct sim_kernel *kernel, uint32_t argument)
{
    size_t i = 0;
    while (i < kernel->argument_count && kernel->arguments[i] != argument)
        i++;
    if (i == kernel->argument_count && i < SIM_SCALARS && argument < ARGUMENTS)
        kernel->arguments[kernel->argument_count++] = argument;
    return i < kernel->argument_count ? i : SIM_SCALARS;
}

static void add_scalars(struct sim_kernel *kernel, struct sim_launch *launch,
                        const struct weir_trace_operation *operation)
{
    for (size_t i = 0; i < operation->scalar_count; i++) {
        const size_t scalar = scalar_of(kernel, operation->scalars[i].argument);
        const double value = operation->scalars[i].value;
        if (scalar == SIM_SCALARS || !isfinite(value))
            continue;
        launch->terms[SIM_TERM_ARGUMENT + scalar] = value;
        launch->terms[SIM_TERM_ITEM_ARGUMENT + scalar] = value * launch->terms[SIM_TERM_ITEM];
    }
}

static bool add_launch(struct sim_kernel *kernel, const struct weir_trace_operation *operation)
{
    struct sim_launch *launches =
        grow(kernel->launches, kernel->count, &kernel->capacity, sizeof *launches);
    if (!launches)
        return false;
    const double blocks = volume(operation->grid);
    kernel->launches = launches;
    launches[kernel->count] = (struct sim_launch){
        .terms = {1, blocks * volume(operation->block), blocks, (double)operation->argument_bytes},
        .ns = (double)(operation->end_ns - operation->start_ns),
    };
    add_scalars(kernel, &launches[kernel->count++], operation);
    return true;
}

static bool add_run(struct sim_kernels *kernels, const struct run *run)
{
    if (run->operation->kind != WEIR_TRACE_LAUNCH)
        return true;
    struct sim_kernel *kernel = kernel_of(kernels, run->operation->name);
    if (!kernel)
        return false;
    if (run->beside)
        kernel->beside++;
    else if (run->operation->start_is_earliest)
        kernel->inexact++;
    else
        return add_launch(kernel, run->operation);
    return true;
}

bool sim_kernels_add(struct sim_kernels *kernels, const struct weir_trace *trace,
                     size_t *out_launches)
{
    *out_launches = 0;
    struct run *runs = calloc(trace->operation_count + 1, sizeof *runs);
    if (!runs)
        return false;
    const size_t count = take_runs(runs, trace);
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        *out_launches += runs[i].operation->kind == WEIR_TRACE_LAUNCH;
        ok = add_run(kernels, &runs[i]);
    }
    free(runs);
    return ok;
}

void sim_kernels_finish(struct sim_kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        free((char *)kernels->items[i].name);
        free(kernels->items[i].launches);
    }
    free(kernels->items);
    *kernels = (struct sim_kernels){0};
}
