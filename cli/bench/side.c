// Weir's side of a comparison.
#include "cli/bench/side.h"

static bool weir_open_side(struct side *side, const struct weir_bundle *bundle, char *message,
                           size_t size)
{
    struct side_weir *weir = &side->weir;
    if (!weir->device) {
        cli_fine(weir_device_open(NULL, NULL, &weir->device));
        cli_own_device(weir->device);
    }
    weir->bundle = bundle;
    return true;
}

static void weir_kernel_of(struct side *side, unsigned kernel, const char *name)
{
    bench_kernel(side->weir.device, side->weir.bundle, name, &side->weir.kernels[kernel]);
}

static void weir_open_queue(struct side *side, unsigned queue)
{
    bench_queue(side->weir.device, "bench", 0, &side->weir.queues[queue]);
}

static void weir_memory(struct side *side, size_t size)
{
    bench_buffer(side->weir.device, "memory", size, WEIR_PLACE_DEVICE, &side->weir.memory);
}

static void weir_pinned(struct side *side, unsigned pinned, size_t size)
{
    bench_buffer(side->weir.device, "pinned", size, WEIR_PLACE_HOST, &side->weir.pinned[pinned]);
    side->pinned_last = pinned;
}

static void weir_copy(struct side *side, unsigned queue, bool up, size_t at, size_t size)
{
    const struct side_weir *weir = &side->weir;
    weir_buffer *device = weir->memory, *host = weir->pinned[up ? 0 : side->pinned_last];
    bench_fine(
        weir_queue_copy(weir->queues[queue], up ? device : host, at, up ? host : device, at, size));
}

void side_arguments(const struct side *side, const struct side_launch *launch,
                    struct weir_argument arguments[SIDE_ARGUMENTS])
{
    arguments[0] = weir_inout(side->weir.memory, launch->at, launch->size);
    arguments[1] = weir__argument_u32(launch->a);
    arguments[2] =
        launch->wide ? weir__argument_u64(launch->b) : weir__argument_u32((uint32_t)launch->b);
}

static void weir_launch(struct side *side, unsigned queue, const struct side_launch *launch)
{
    const struct side_weir *weir = &side->weir;
    struct weir_argument arguments[SIDE_ARGUMENTS];
    side_arguments(side, launch, arguments);
    bench_fine(weir_queue_launch_array(weir->queues[queue], weir->kernels[launch->kernel],
                                       weir_dim(launch->blocks, 1, 1),
                                       weir_dim(launch->block, 1, 1), arguments, SIDE_ARGUMENTS));
}

static void weir_record(struct side *side, unsigned queue, unsigned event)
{
    bench_fine(weir_queue_record(side->weir.queues[queue], &side->weir.events[event]));
}

static void weir_wait(struct side *side, unsigned queue, unsigned event)
{
    bench_fine(weir_queue_wait(side->weir.queues[queue], side->weir.events[event]));
}

static void weir_flush(struct side *side, unsigned queue)
{
    bench_fine(weir_queue_flush(side->weir.queues[queue]));
}

static void weir_sync(struct side *side, unsigned event)
{
    bench_fine(weir_event_sync(side->weir.events[event], WEIR_FOREVER));
}

static void weir_finish(struct side *side, unsigned queue)
{
    bench_sync(side->weir.queues[queue]);
}

static void weir_upload_all(struct side *side, const void *from, size_t size)
{
    cli_fine(weir_upload(side->weir.queues[0], side->weir.memory, 0, from, size));
}

static void weir_download_all(struct side *side, void *to, size_t size)
{
    cli_fine(weir_download(side->weir.queues[0], to, side->weir.memory, 0, size));
}

static void weir_begin_graph(struct side *side, unsigned queues)
{
    cli_fine(weir_capture_begin(side->weir.queues[0]));
}

static void *weir_end_graph(struct side *side, unsigned queues)
{
    weir_graph *graph;
    cli_fine(
        weir_capture_end(side->weir.queues[0], WEIR_PARAMS(weir_graph, .label = "bench"), &graph));
    return graph;
}

static void weir_launch_graph(struct side *side, void *graph)
{
    bench_fine(weir_queue_graph(side->weir.queues[0], graph));
}

static void weir_end_of_graph(struct side *side, void *graph)
{
    weir_graph *it = graph;
    weir_graph_destroy(&it);
}

const struct side_calls side_weir_calls = {
    .name = "Weir",
    .open = weir_open_side,
    .kernel = weir_kernel_of,
    .open_queue = weir_open_queue,
    .memory = weir_memory,
    .pinned = weir_pinned,
    .copy = weir_copy,
    .launch = weir_launch,
    .record = weir_record,
    .wait = weir_wait,
    .flush = weir_flush,
    .sync = weir_sync,
    .finish = weir_finish,
    .upload = weir_upload_all,
    .download = weir_download_all,
    .begin_graph = weir_begin_graph,
    .end_graph = weir_end_graph,
    .launch_graph = weir_launch_graph,
    .destroy_graph = weir_end_of_graph,
};

bool side_open(struct side *side, const struct side_calls *calls, weir_device *beside,
               const struct weir_bundle *bundle)
{
    char message[1024];
    side->calls = calls;
    side->weir.device = beside;
    if (calls->open(side, bundle, message, sizeof message))
        return true;
    bench_note("not measured: %s: %.250s", calls->name, message);
    return false;
}

void side_queues(struct side *side, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        side->calls->open_queue(side, i);
}
