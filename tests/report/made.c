#include "tests/report/made.h"

#include <stdarg.h>

// xorshift32, from 0 to `limit` - 1.
static uint32_t below(uint32_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return limit > 0 ? *state % limit : 0;
}

void made_begin(struct made *made, size_t queue_count, ...)
{
    va_list labels;
    *made = (struct made){
        .meta = {.program = "made",
                 .weir = "0.1.0",
                 .backend = "null",
                 .plugins = "trace",
                 .source = "driver",
                 .base_unix_ns = 1700000000123456789,
                 .process = 4711},
        .device_count = 1,
    };
    made->devices[0] = (struct weir_trace_device){
        .index = 0,
        .name = "a device",
        .platform = "a platform",
        .driver = "1.2",
        .label = "",
        .memory_bytes = 1000,
        .compute_units = 4,
        .copy_engines_to_device = 1,
        .copy_engines_to_host = 1,
        .concurrent_kernels = 16,
        .kind = WEIR_DEVICE_GPU,
    };
    va_start(labels, queue_count);
    while (made->queue_count < queue_count)
        made_queue(made, va_arg(labels, const char *));
    va_end(labels);
}

void made_queue(struct made *made, const char *label)
{
    made->queues[made->queue_count] =
        (struct weir_trace_queue){.id = 10 + made->queue_count, .label = label};
    made->queue_count++;
}

static uint64_t last_sequence(const struct made *made, uint64_t queue)
{
    uint64_t sequence = 0;
    for (size_t i = 0; i < made->operation_count; i++)
        if (made->operations[i].queue == queue)
            sequence = made->operations[i].sequence;
    return sequence;
}

static void set_places(struct weir_trace_operation *operation)
{
    static const enum weir_trace_memory places[WEIR_ENGINE_COUNT][2] = {
        [WEIR_ENGINE_TO_DEVICE] = {WEIR_TRACE_PINNED_MEMORY, WEIR_TRACE_DEVICE_MEMORY},
        [WEIR_ENGINE_TO_HOST] = {WEIR_TRACE_DEVICE_MEMORY, WEIR_TRACE_PINNED_MEMORY},
        [WEIR_ENGINE_ON_DEVICE] = {WEIR_TRACE_DEVICE_MEMORY, WEIR_TRACE_DEVICE_MEMORY},
    };
    operation->src_memory = places[operation->engine][0];
    operation->dst_memory = places[operation->engine][1];
}

struct weir_trace_operation *made_operation(struct made *made, size_t queue,
                                            enum weir_trace_engine engine, uint64_t start_ns,
                                            uint64_t end_ns)
{
    const uint64_t id = made->queues[queue].id;
    const uint64_t sequence = last_sequence(made, id) + 2;
    const uint64_t submit = start_ns > 1000 ? start_ns - 1000 : 0;
    const bool copies = engine >= WEIR_ENGINE_TO_DEVICE && engine <= WEIR_ENGINE_ON_DEVICE;
    struct weir_trace_operation *operation = &made->operations[made->operation_count++];
    *operation = (struct weir_trace_operation){
        .queue = id,
        .sequence = sequence,
        .kind = engine == WEIR_ENGINE_HOST ? WEIR_TRACE_HOST_CALL
                : copies                   ? WEIR_TRACE_COPY
                                           : WEIR_TRACE_LAUNCH,
        .engine = engine,
        .bytes = copies ? 100 : 0,
        .name = engine == WEIR_ENGINE_KERNELS ? "scale" : "",
        .label = "",
        .dst_label = copies ? "b" : "",
        .src_label = copies ? "a" : "",
        .file = "made.c",
        .line = (int)made->operation_count,
        .region = "",
        .thread = 99,
        .submit_ns = submit,
        .submit_end_ns = submit + 100,
        .timed = true,
        .start_ns = start_ns,
        .end_ns = end_ns,
    };
    set_places(operation);
    return operation;
}

void made_wait(struct made *made, size_t queue)
{
    struct weir_trace_operation *operation = &made->operations[made->operation_count - 1];
    struct weir_trace_wait *wait = &made->waits[made->wait_count++];
    *wait = (struct weir_trace_wait){
        .queue = made->queues[queue].id,
        .sequence = last_sequence(made, made->queues[queue].id) + 1,
        .file = "wait.c",
        .line = (int)made->wait_count,
    };
    if (operation->wait_count++ == 0)
        operation->waits = wait;
}

static void add_random(struct made *made, uint32_t *state, uint64_t cell_ns, uint32_t cells[])
{
    static const char *const names[] = {"scale", "blur", "ncclKernel_AllReduce"};
    static const char *const regions[] = {"", "frame 1/a", "frame 2/a", "frame 2/b"};
    const size_t queue = below(state, (uint32_t)made->queue_count);
    const uint64_t start = cells[queue] + below(state, 4);
    const uint64_t end = start + below(state, 9);
    const enum weir_trace_engine engine = (enum weir_trace_engine)(1 + below(state, 6));
    struct weir_trace_operation *operation =
        made_operation(made, queue, engine, start * cell_ns, end * cell_ns);
    cells[queue] = (uint32_t)end;
    operation->submit_ns = below(state, (uint32_t)start + 1) * cell_ns;
    operation->submit_end_ns = operation->submit_ns + 10;
    operation->start_is_earliest = below(state, 4) == 0;
    operation->region = regions[below(state, 4)];
    if (engine == WEIR_ENGINE_KERNELS)
        operation->name = names[below(state, 3)];
    if (made->wait_count < MADE_WAITS - 2 && below(state, 3) == 0) {
        const size_t other = below(state, (uint32_t)made->queue_count);
        if (other != queue)
            made_wait(made, other);
    }
}

void made_random(struct made *made, uint32_t seed, uint64_t cell_ns)
{
    static const char *const labels[MADE_QUEUES] = {"up", "run", "down", "side", "", "last"};
    uint32_t state = 2463534242u ^ seed * 2654435761u;
    uint32_t cells[MADE_QUEUES] = {0};
    if (state == 0)
        state = 1;
    made_begin(made, 0);
    made->devices[1] = made->devices[0];
    made->devices[1].index = 1;
    made->devices[1].name = "another";
    made->device_count = 1 + below(&state, 2);
    for (size_t i = 1 + below(&state, MADE_QUEUES); i > 0; i--)
        made_queue(made, labels[made->queue_count]);
    for (size_t i = 0; i < made->queue_count; i++)
        made->queues[i].device = below(&state, (uint32_t)made->device_count);
    for (size_t i = 1 + below(&state, MADE_OPERATIONS); i > 0; i--)
        add_random(made, &state, cell_ns, cells);
}

bool made_try_write(const struct made *made, const char *path, char *message, size_t size)
{
    weir_trace_writer *writer = weir_trace_writer_create(path, &made->meta, message, size);
    if (!writer)
        return false;
    for (size_t i = 0; i < made->device_count; i++)
        weir_trace_writer_device(writer, &made->devices[i]);
    for (size_t i = 0; i < made->queue_count; i++)
        weir_trace_writer_queue(writer, &made->queues[i]);
    weir_trace_writer_thread(writer, &(struct weir_trace_thread){.id = 99, .name = "main"});
    for (size_t i = 0; i < made->operation_count; i++)
        weir_trace_writer_operation(writer, &made->operations[i]);
    for (size_t i = 0; i < made->span_count; i++)
        weir_trace_writer_span(writer, &made->spans[i]);
    return weir_trace_writer_close(&writer, &made->meta, message, size);
}

void made_write(const struct made *made, const char *path)
{
    char message[512] = "";
    if (!made_try_write(made, path, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
}

weir_report *made_report(const struct made *made, const struct weir_report_params *params)
{
    weir_report *report = NULL;
    made_write(made, weir_test_path("trace.json"));
    if (weir_report_read(weir_test_path("trace.json"), params, &report) != WEIR_OK)
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return report;
}
