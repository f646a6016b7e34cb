// The plugin's data for the front end's objects.
#include <stdlib.h>
#include <string.h>

#include "plugins/sim/sim.h"

// Devices.

weir_status sim_device_create(const struct weir_link *link, weir_device *object,
                              const struct weir_device_setup *setup, void **out_data)
{
    struct sim *sim = sim_of(link);
    struct sim_virtual_device *device = calloc(1, sizeof *device);
    (void)object;
    (void)setup;
    sim_take(sim);
    const bool added = device && sim_engine_add_device(sim->engine, sim->model, &device->index);
    pthread_mutex_unlock(&sim->lock);
    if (added) {
        *out_data = device;
        return WEIR_OK;
    }
    free(device);
    return weir_host_no_memory(link->host, "a device in virtual time");
}

// The engine keeps its device: one that is opened again is another one.
void sim_device_destroy(const struct weir_link *link, weir_device *object)
{
    free(sim_device_of(link, object));
}

static uint32_t lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// What every GPU of CUDA refuses: its programming guide, "Technical specifications per compute capability".
static void limit_launches(struct weir_limits *limits)
{
    limits->max_grid.x = lower(limits->max_grid.x, INT32_MAX);
    limits->max_grid.y = lower(limits->max_grid.y, UINT16_MAX);
    limits->max_grid.z = lower(limits->max_grid.z, UINT16_MAX);
    limits->max_block.x = lower(limits->max_block.x, 1024);
    limits->max_block.y = lower(limits->max_block.y, 1024);
    limits->max_block.z = lower(limits->max_block.z, 64);
    limits->max_block_items = lower(limits->max_block_items, 1024);
}

// Work that sim does not see cannot be placed, so there are no native handles.
void sim_device_limits(const struct weir_link *link, weir_device *object,
                       struct weir_limits *limits)
{
    const struct sim_model *model = sim_of(link)->model;
    (void)object;
    limits->concurrent_kernels = model->kernels;
    limits->unified_memory = 0; // a program that asks would leave out the copies
    limits->copy_engines_to_device = 1;
    limits->copy_engines_to_host = model->copy_engines > 1;
    limits->priority_lowest = 0;
    // A model has CUDA's number, of which a smaller one goes first.
    limits->priority_highest = -model->greatest_priority;
    if (model->multiprocessors) {
        limits->compute_units = model->multiprocessors;
        limit_launches(limits);
    }
    limits->timing_resolution_ns = 1;
    limits->timing_history = SIM_HISTORY;
    limits->native = 0;
}

static weir_status refuse_native(const struct weir_link *link)
{
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED, "ask limits.native first",
                          "with the plugin sim there are no native handles: it could not place "
                          "what is done with them");
}

weir_status sim_device_native(const struct weir_link *link, weir_device *device,
                              struct weir_native_device *out_native)
{
    (void)device;
    (void)out_native;
    return refuse_native(link);
}

weir_status sim_queue_native(const struct weir_link *link, weir_queue *queue,
                             struct weir_native_queue *out_native)
{
    (void)queue;
    (void)out_native;
    return refuse_native(link);
}

weir_status sim_buffer_native(const struct weir_link *link, weir_buffer *buffer,
                              struct weir_native_buffer *out_native)
{
    (void)buffer;
    (void)out_native;
    return refuse_native(link);
}

// Queues.

static bool reserve_queue(struct sim *sim, uint32_t index)
{
    size_t room = sim->queue_room ? sim->queue_room : 16;
    while (room <= index)
        room *= 2;
    if (room == sim->queue_room)
        return true;
    struct sim_virtual_queue **queues = realloc(sim->queues, room * sizeof(*queues));
    if (!queues)
        return false;
    memset(queues + sim->queue_room, 0, (room - sim->queue_room) * sizeof(*queues));
    sim->queues = queues;
    sim->queue_room = room;
    return true;
}

static bool reserve_lane(struct sim_virtual_queue *queue)
{
    const size_t count = queue->lane_count + 1;
    uint32_t *lanes = realloc(queue->lanes, count * sizeof *lanes);
    if (lanes)
        queue->lanes = lanes;
    struct sim_point *last = realloc(queue->last, count * sizeof *last);
    if (last)
        queue->last = last;
    return lanes && last;
}

bool sim_lane_add(struct sim_virtual_queue *queue)
{
    struct sim *sim = queue->sim;
    uint32_t index;
    if (!reserve_lane(queue) || !sim_engine_add_queue(sim->engine, &queue->params, &index))
        return false;
    if (!reserve_queue(sim, index)) {
        sim_engine_end_queue(sim->engine, index);
        return false;
    }
    sim->queues[index] = queue;
    queue->lanes[queue->lane_count] = index;
    queue->last[queue->lane_count++] = sim_engine_last(sim->engine, index);
    return true;
}

static void free_queue(struct sim_virtual_queue *queue)
{
    free(queue->lanes);
    free(queue->last);
    free(queue->points);
    free(queue->records);
    free(queue->times);
    free(queue);
}

weir_status sim_queue_create(const struct weir_link *link, weir_device *device, weir_queue *object,
                             const struct weir_queue_setup *setup, void **out_data)
{
    struct sim *sim = sim_of(link);
    struct sim_virtual_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "a queue in virtual time");
    (void)object;
    queue->sim = sim;
    queue->device = sim_device_of(link, device);
    queue->params =
        (struct sim_queue_params){.device = queue->device->index, .priority = -setup->priority};
    queue->keeps_times = setup->times;
    queue->graph_start_ns = UINT64_MAX;
    sim_take(sim);
    const bool added = sim_lane_add(queue);
    pthread_mutex_unlock(&sim->lock);
    if (added) {
        *out_data = queue;
        return WEIR_OK;
    }
    free_queue(queue);
    return weir_host_no_memory(link->host, "a queue in virtual time");
}

void sim_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    struct sim *sim = queue->sim;
    sim_take(sim);
    for (uint32_t i = 0; i < queue->lane_count; i++) {
        sim->queues[queue->lanes[i]] = NULL;
        sim_engine_end_queue(sim->engine, queue->lanes[i]);
    }
    pthread_mutex_unlock(&sim->lock);
    free_queue(queue);
}

// Buffers and kernels.

weir_status sim_buffer_create(const struct weir_link *link, weir_device *device,
                              weir_buffer *object, const struct weir_buffer_setup *setup,
                              void **out_data, void **out_pointer)
{
    struct sim_virtual_buffer *buffer = link->host->allocate(sizeof *buffer);
    (void)object;
    (void)out_pointer;
    if (!buffer)
        return weir_host_no_memory(link->host, "a buffer in virtual time");
    buffer->on_host = setup->placement == WEIR_PLACE_HOST;
    buffer->device = sim_device_of(link, device)->index;
    *out_data = buffer;
    return WEIR_OK;
}

void sim_buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
    link->host->release(weir_buffer_data(link, object));
}

weir_status sim_kernel_create(const struct weir_link *link, weir_program *program,
                              weir_kernel *object, const struct weir_kernel_signature *signature,
                              struct weir_kernel_info *info, void **out_data)
{
    const size_t size = strlen(signature->name) + 1;
    char *name = malloc(size);
    (void)program;
    (void)object;
    (void)info;
    if (!name)
        return weir_host_no_memory(link->host, "a kernel in virtual time");
    *out_data = memcpy(name, signature->name, size);
    return WEIR_OK;
}

void sim_kernel_destroy(const struct weir_link *link, weir_kernel *object)
{
    free(weir_kernel_data(link, object));
}
