// The plugin's keys, a link's life, its data for the front end's objects, and its ops table.
#define _GNU_SOURCE // tdestroy
#include <search.h>
#include <stdatomic.h>

#include "plugins/kit/kit.h"
#include "plugins/sim/sim.h"

// The virtual timeline begins here, so that 0 is never a time.
#define BEGINNING_NS UINT64_C(1000000000)

#define LEAST_SCALE 1e-6
#define MOST_SCALE 1e6

// In the order of the key table.
enum key {
    KEY_GPU,
    KEY_CHANGES,
    KEY_COSTS,
    KEY_HOST,
    KEY_KERNELS,
    KEY_KERNEL_SCALE,
    KEY_JITTER,
    KEY_SEED,
    KEY_COUNT
};

// In the order of enum sim_host.
static const char *const hosts[] = {"fixed", "none", NULL};

static const char *const kernels[] = {"refuse", "scale", NULL};

static const struct weir_key keys[KEY_COUNT] = {
    [KEY_GPU] =
        WEIR_TEXT_KEY("gpu", "",
                      "The GPU: the name of a model, such as h200, or an INI file (with a / in its "
                      "name, or .ini at its end)."),
    [KEY_CHANGES] =
        WEIR_TEXT_KEY("changes", "",
                      "What is different on that GPU: keys of its model, as copy_engines=1, "
                      "h2d_gb_per_s=12."),
    [KEY_COSTS] =
        WEIR_TEXT_KEY("costs", "",
                      "A file with a section [kernel NAME] for each kernel, beside those of the "
                      "model."),
    [KEY_HOST] =
        WEIR_CHOICE_KEY("host", "fixed", hosts,
                        "How the host's time passes. fixed: by what the model says of submits and "
                        "waits, so that runs are the same, as docs/sim.md says; none: only by "
                        "waiting."),
    [KEY_KERNELS] = WEIR_CHOICE_KEY(
        "kernels", "refuse", kernels,
        "What becomes of a kernel without a cost. refuse: its launch fails; scale: it "
        "takes kernel_scale times what its first launch of that size takes on the "
        "next link, which runs alone."),
    [KEY_KERNEL_SCALE] = WEIR_TEXT_KEY(
        "kernel_scale", "1",
        "How much of the time that was measured the modelled GPU takes, a number such "
        "as 0.05: with kernels = scale on the next link's device, and of costs that "
        "were learnt on another kind of device, which are refused without it."),
    [KEY_JITTER] = WEIR_INTEGER_KEY(
        "jitter", "0", 0, 90,
        "By up to how many percent a copy, a kernel or a call of the host takes less "
        "or more than the model says; one in a hundred calls takes ten times as long."),
    [KEY_SEED] = WEIR_INTEGER_KEY("seed", "1", 0, INT64_MAX,
                                  "The seed of jitter: the same one gives the same times."),
};

// Opening.

// The sentence begins with the file and the line of the key, or its variable. One that is not set has
// none: the core adds the line that lists the plugin.
static weir_status refuse(const struct sim *sim, const struct weir_setting *setting,
                          const char *remedy, const char *sentence)
{
    char message[sizeof((struct weir_error *)0)->message];
    if (*setting->text || strcmp(setting->origin, "default") != 0)
        weir_text_about(message, sizeof message, setting->origin, "%s", sentence);
    else
        snprintf(message, sizeof message, "%s", sentence);
    return weir_host_fail(sim->link->host, WEIR_ERROR_CONFIG, remedy, "%s", message);
}

static weir_status read_gpu(struct sim *sim, const struct weir_setting *const *settings,
                            double scale)
{
    const struct weir_setting *gpu = settings[KEY_GPU];
    const struct weir_setting *costs = settings[KEY_COSTS];
    const struct weir_setting *changes = settings[KEY_CHANGES];
    char message[512];
    if (!*gpu->text)
        return refuse(sim, gpu, "name one with `gpu` in [sim] or in WEIR_SIM_GPU, such as h200",
                      "the plugin sim has no GPU");
    if (!sim_gpu_open(gpu->text, &sim->gpu, message, sizeof message))
        return refuse(sim, gpu, NULL, message);
    if (!sim_gpu_change(sim->gpu, changes->text, message, sizeof message))
        return refuse(sim, changes, NULL, message);
    if (*costs->text && !sim_gpu_add_costs(sim->gpu, costs->text, scale, message, sizeof message))
        return refuse(sim, costs, NULL, message);
    sim->model = &sim->gpu->model;
    return WEIR_OK;
}

// `*out_told` is 0 where the factor is the default.
static weir_status read_scale(struct sim *sim, const struct weir_setting *const *settings,
                              double *out_told)
{
    const char *text = settings[KEY_KERNEL_SCALE]->text;
    char message[256];
    double factor;
    if (!sim_read_number(text, true, &factor) || !(factor >= LEAST_SCALE && factor <= MOST_SCALE)) {
        snprintf(message, sizeof message,
                 "`kernel_scale` of [sim] is a number from %g to %g, not '%.60s'", LEAST_SCALE,
                 MOST_SCALE, text);
        return refuse(sim, settings[KEY_KERNEL_SCALE],
                      "write how much of a kernel's time on this machine the GPU takes", message);
    }
    if (strcmp(settings[KEY_KERNELS]->text, "scale") == 0)
        sim->scale.factor = factor;
    *out_told = strcmp(settings[KEY_KERNEL_SCALE]->origin, "default") != 0 ? factor : 0;
    return WEIR_OK;
}

static void release(struct sim *sim)
{
    tdestroy(sim->scale.measured, free);
    sim_engine_destroy(&sim->engine);
    sim_gpu_destroy(&sim->gpu);
    pthread_cond_destroy(&sim->moved);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

static weir_status start(struct sim *sim, const struct weir_setting *const *settings)
{
    // The inner one's times would be the outer one's measured ones.
    weir_status status =
        plugin_refuse_second(sim->link, "list it once; two GPUs are compared in two runs");
    double scale = 0;
    while (strcmp(settings[KEY_HOST]->text, hosts[sim->host]) != 0)
        sim->host++;
    if (status == WEIR_OK)
        status = read_scale(sim, settings, &scale);
    if (status == WEIR_OK)
        status = read_gpu(sim, settings, scale);
    sim->jitter.share = (double)settings[KEY_JITTER]->integer / 100;
    sim->jitter.state = (uint64_t)settings[KEY_SEED]->integer;
    if (status < 0)
        return status;
    sim->engine = sim_engine_create(sim_record_done);
    return sim->engine ? WEIR_OK : weir_host_no_memory(sim->link->host, "the plugin sim");
}

static weir_status sim_open(struct weir_link *link, const struct weir_setting *const *settings,
                            void **out_state)
{
    static atomic_uint_fast64_t last_number;
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return weir_host_no_memory(link->host, "the plugin sim");
    sim->link = link;
    sim->graphs = link->backend->ops->graph_create != NULL;
    sim->clock = (struct weir_host_clock){sim_clock_now_ns, sim};
    sim->number = atomic_fetch_add(&last_number, 1) + 1;
    sim->woken_ns = BEGINNING_NS;
    pthread_cond_init(&sim->moved, NULL);
    pthread_mutex_init(&sim->lock, NULL);
    const weir_status status = start(sim, settings);
    if (status < 0) {
        release(sim);
        return status;
    }
    *out_state = sim;
    return WEIR_OK;
}

static void sim_close(const struct weir_link *link)
{
    release(sim_of(link));
}

static const void *sim_extension(const struct weir_link *link, const char *name)
{
    if (strcmp(name, WEIR_HOST_CLOCK) == 0)
        return &sim_of(link)->clock;
    return link->next->ops->extension(link->next, name);
}

// Objects.

// Devices.

static weir_status device_create(const struct weir_link *link, weir_device *object,
                                 const struct weir_device_setup *setup, void **out_data)
{
    struct sim *sim = sim_of(link);
    struct sim_virtual_device *device = calloc(1, sizeof *device);
    pthread_mutex_lock(&sim->lock);
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
static void device_destroy(const struct weir_link *link, weir_device *object)
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
static void device_limits(const struct weir_link *link, weir_device *object,
                          struct weir_limits *limits)
{
    const struct sim_model *model = sim_of(link)->model;
    limits->kind = model->processor ? WEIR_DEVICE_CPU : WEIR_DEVICE_GPU;
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

// Queues.

static void free_queue(struct sim_virtual_queue *queue)
{
    free(queue->lanes);
    free(queue->points);
    free(queue->records);
    free(queue->times);
    free(queue);
}

static weir_status queue_create(const struct weir_link *link, weir_device *device,
                                weir_queue *object, const struct weir_queue_setup *setup,
                                void **out_data)
{
    struct sim *sim = sim_of(link);
    struct sim_virtual_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "a queue in virtual time");
    queue->sim = sim;
    queue->device = sim_device_of(link, device);
    queue->params = (struct sim_queue_params){.device = queue->device->index,
                                              .priority = -setup->priority,
                                              .owner = queue};
    queue->keeps_times = setup->times;
    queue->graph_start_ns = UINT64_MAX;
    pthread_mutex_lock(&sim->lock);
    const bool added = sim_lane_add(queue);
    pthread_mutex_unlock(&sim->lock);
    if (added) {
        *out_data = queue;
        return WEIR_OK;
    }
    free_queue(queue);
    return weir_host_no_memory(link->host, "a queue in virtual time");
}

static void queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    struct sim *sim = queue->sim;
    pthread_mutex_lock(&sim->lock);
    for (uint32_t i = 0; i < queue->lane_count; i++)
        sim_engine_end_queue(sim->engine, queue->lanes[i]);
    pthread_mutex_unlock(&sim->lock);
    free_queue(queue);
}

// Buffers.

static weir_status buffer_create(const struct weir_link *link, weir_device *device,
                                 weir_buffer *object, const struct weir_buffer_setup *setup,
                                 void **out_data, void **out_pointer)
{
    *out_data = setup->placement == WEIR_PLACE_HOST ? NULL : sim_device_of(link, device);
    return WEIR_OK;
}

static void buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
}

// The table.

static const struct weir_module_ops ops = {
    .open = sim_open,
    .close = sim_close,
    .device_create = device_create,
    .device_destroy = device_destroy,
    .device_limits = device_limits,
    .device_clock = sim_device_clock,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = sim_queue_submit,
    .queue_finish = sim_queue_finish,
    .queue_times = sim_queue_times,
    .event_query = sim_event_query,
    .event_wait = sim_event_wait,
    .event_time = sim_event_time,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .host_note = sim_host_note,
    .extension = sim_extension,
};

static const char *const about[] = {
    "summary",
    "Places all operations in virtual time on the GPU of a model, so that times, traces and "
    "reports are those of that GPU, on any machine.",
    NULL,
};

PLUGIN_MODULE("sim", keys, KEY_COUNT, 0)
