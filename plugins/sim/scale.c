// What kernels without a cost take, if `kernels = scale`: what the first launch of each size took on
// the next link, times a factor. To be measured a launch runs alone in its queue, and its submit
// waits for it; later ones of the size do not. Sizes are in a hash table with open addressing.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread_local.h"
#include "plugins/sim/sim.h"

#define MOST_NS (365.0 * 86400e9)

struct sim_measured {
    struct sim_launch launch; // the kernel's name is this structure's; NULL: free
    uint64_t ns;
};

// A function of the host, in which nothing is measured: the queue that would have to finish may be
// its own. One that never ran, since its queue failed, stays until the end.
struct sim_call {
    struct sim *sim;
    struct sim_call *next;
    struct sim_call *next_free;
    weir_host_function function;
    void *user;
};

static WEIR_MODULE_THREAD_LOCAL bool in_host_call;

// Sizes.

// A value that is no number is equal to itself here.
static uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t hash(const struct sim_launch *launch)
{
    uint64_t value = UINT64_C(14695981039346656037);
    const double numbers[] = {launch->blocks, launch->items, launch->bytes};
    for (const char *c = launch->kernel; *c; c++)
        value = (value ^ (unsigned char)*c) * UINT64_C(1099511628211);
    for (size_t i = 0; i < 3; i++)
        value = (value ^ bits_of(numbers[i])) * UINT64_C(1099511628211);
    for (size_t i = 0; i < SIM_ARGUMENTS; i++)
        value = (value ^ bits_of(launch->arguments[i])) * UINT64_C(1099511628211);
    return value ^ value >> 32;
}

static bool is_same(const struct sim_launch *a, const struct sim_launch *b)
{
    bool same = a->blocks == b->blocks && a->items == b->items && a->bytes == b->bytes;
    for (size_t i = 0; i < SIM_ARGUMENTS && same; i++)
        same = bits_of(a->arguments[i]) == bits_of(b->arguments[i]);
    return same && strcmp(a->kernel, b->kernel) == 0;
}

// Where it is, or would be. There is room.
static struct sim_measured *place_of(struct sim_measured *items, size_t room,
                                     const struct sim_launch *launch)
{
    size_t at = hash(launch) & (room - 1);
    while (items[at].launch.kernel && !is_same(&items[at].launch, launch))
        at = (at + 1) & (room - 1);
    return &items[at];
}

static bool reserve(struct sim_scale *scale)
{
    if (2 * scale->count < scale->room)
        return true;
    const size_t room = scale->room ? 2 * scale->room : 64;
    struct sim_measured *items = calloc(room, sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < scale->room; i++)
        if (scale->items[i].launch.kernel)
            *place_of(items, room, &scale->items[i].launch) = scale->items[i];
    free(scale->items);
    scale->items = items;
    scale->room = room;
    return true;
}

static bool add(struct sim_scale *scale, const struct sim_launch *launch, double ns)
{
    char *kernel = strdup(launch->kernel);
    if (!kernel || !reserve(scale)) {
        free(kernel);
        return false;
    }
    struct sim_measured *at = place_of(scale->items, scale->room, launch);
    if (at->launch.kernel) { // by another thread meanwhile
        free(kernel);
        return true;
    }
    at->launch = *launch;
    at->launch.kernel = kernel;
    at->ns = (uint64_t)(ns * scale->factor < MOST_NS ? ns * scale->factor + 0.5 : MOST_NS);
    scale->count++;
    return true;
}

bool sim_scale_find(const struct sim_scale *scale, const struct sim_launch *launch,
                    uint64_t *out_ns)
{
    if (scale->count == 0)
        return false;
    const struct sim_measured *at = place_of(scale->items, scale->room, launch);
    *out_ns = at->ns;
    return at->launch.kernel;
}

void sim_scale_finish(struct sim_scale *scale)
{
    for (size_t i = 0; i < scale->room; i++)
        free((char *)scale->items[i].launch.kernel);
    free(scale->items);
    while (scale->calls) {
        struct sim_call *next = scale->calls->next;
        free(scale->calls);
        scale->calls = next;
    }
}

// Measuring.

// The driver's time of the operation, if the next link keeps times, as it does for the plugin trace.
static void read_time(const struct weir_link *next, weir_queue *object, uint64_t sequence,
                      double *ns)
{
    struct weir_operation_time times[16];
    size_t count = 1;
    while (count > 0 &&
           next->ops->queue_times(next, object, times, sizeof *times, 16, &count) == WEIR_OK)
        for (size_t i = 0; i < count; i++)
            if (times[i].sequence == sequence)
                *ns = (double)(times[i].end_ns - times[i].start_ns);
}

static weir_status run_alone(const struct weir_link *next, weir_queue *object,
                             const struct weir_operation *operation, double *out_ns)
{
    weir_status status = next->ops->queue_finish(next, object);
    const uint64_t began = weir_clock_now_ns();
    if (status == WEIR_OK)
        status = next->ops->queue_submit(next, object, operation);
    if (status == WEIR_OK)
        status = next->ops->queue_finish(next, object);
    *out_ns = (double)(weir_clock_now_ns() - began);
    if (status == WEIR_OK)
        read_time(next, object, operation->sequence, out_ns);
    return status;
}

static weir_status measure(const struct weir_link *link, weir_queue *object,
                           const struct weir_operation *operation, const struct sim_launch *launch)
{
    struct sim *sim = sim_of(link);
    double ns;
    if (in_host_call)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "launch it with these sizes from another thread first, or give it a "
                              "cost",
                              "sim: the kernel '%.200s' has no cost, and cannot be measured in a "
                              "function of the host",
                              launch->kernel);
    sim_go(sim);
    const weir_status status = run_alone(link->next, object, operation, &ns);
    sim_return(sim);
    if (status < 0)
        return status;
    return add(&sim->scale, launch, ns) ? WEIR_OK
                                        : weir_host_no_memory(link->host, "a kernel's time");
}

weir_status sim_scale_launch(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation, bool *out_ran)
{
    const struct sim *sim = sim_of(link);
    uint64_t ns;
    *out_ran = false;
    if (sim->scale.factor == 0 || operation->kind != WEIR_OPERATION_LAUNCH)
        return WEIR_OK;
    const struct sim_launch launch = sim_launch_of(link, operation);
    if (sim_kernel_ns(sim->model, &launch, &ns) || sim_scale_find(&sim->scale, &launch, &ns))
        return WEIR_OK;
    *out_ran = true;
    return measure(link, object, operation, &launch);
}

// Functions of the host.

static weir_status call(void *user)
{
    struct sim_call *own = user;
    struct sim *sim = own->sim;
    in_host_call = true;
    const weir_status status = own->function(own->user);
    in_host_call = false;
    pthread_mutex_lock(&sim->lock);
    own->next_free = sim->scale.free_calls;
    sim->scale.free_calls = own;
    pthread_mutex_unlock(&sim->lock);
    return status;
}

static struct sim_call *take_call(struct sim_scale *scale)
{
    struct sim_call *own = scale->free_calls;
    if (own) {
        scale->free_calls = own->next_free;
        return own;
    }
    own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->next = scale->calls;
    scale->calls = own;
    return own;
}

weir_status sim_scale_call(const struct weir_link *link, struct weir_operation *operation)
{
    struct sim *sim = sim_of(link);
    if (sim->scale.factor == 0 || operation->kind != WEIR_OPERATION_HOST_CALL)
        return WEIR_OK;
    struct sim_call *own = take_call(&sim->scale);
    if (!own)
        return weir_host_no_memory(link->host, "a function of the host");
    own->sim = sim;
    own->function = operation->u.host_call.function;
    own->user = operation->u.host_call.user;
    operation->u.host_call.function = call;
    operation->u.host_call.user = own;
    return WEIR_OK;
}
