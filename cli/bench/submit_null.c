// What a public call costs above the backend. The null backend does next to nothing
// in a call, so the time of a loop of public calls, less the time of a loop that
// calls the backend's own slots with the same operations, is the front end's.
#include <stdio.h>
#include <string.h>

#include <weir/module/module.h>

#include "cli/bench/submit.h"
#include "cli/common/progress.h"
#include "core/runtime/runtime.h"
#include "kernels/conformance/conformance.h"

enum {
    BATCH = 500,
    COPY_BYTES = 64
};

struct null_bench {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;    // of public calls
    weir_queue *producer; // of the events that `queue` waits on
    weir_queue *direct;   // of calls to the slot
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *source;
    weir_buffer *target;
    struct weir_argument arguments[3];
    const struct weir_link *backend;
    uint64_t sequence; // of `direct`
    struct weir_event events[BATCH];
};

// One kind of call: a batch of it through the API, and one through the slot.
// `prepare` is not timed.
struct kind {
    const char *name;
    const char *about;
    weir_status (*prepare)(struct null_bench *b, size_t count);
    weir_status (*call)(struct null_bench *b, size_t count);
    weir_status (*direct)(struct null_bench *b, size_t count);
};

static weir_status submit_direct(struct null_bench *b, struct weir_operation *operation)
{
    operation->sequence = ++b->sequence;
    return b->backend->ops->queue_submit(b->backend, b->direct, operation);
}

static weir_status repeat_direct(struct null_bench *b, struct weir_operation *operation,
                                 size_t count)
{
    operation->file = __FILE__;
    operation->line = __LINE__;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = submit_direct(b, operation);
    return status;
}

static weir_status copy_call(struct null_bench *b, size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_queue_copy(b->queue, b->target, 0, b->source, 0, COPY_BYTES);
    return status;
}

static weir_status copy_direct(struct null_bench *b, size_t count)
{
    struct weir_operation operation = {.struct_size = sizeof(struct weir_operation),
                                       .kind = WEIR_OPERATION_COPY};
    operation.u.copy.dst = b->target;
    operation.u.copy.src = b->source;
    operation.u.copy.size = COPY_BYTES;
    return repeat_direct(b, &operation, count);
}

static weir_status launch_call(struct null_bench *b, size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_queue_launch(b->queue, b->kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                   weir_inout(b->target, 0, COPY_BYTES), 1u, 0u);
    return status;
}

static weir_status launch_direct(struct null_bench *b, size_t count)
{
    struct weir_operation operation = {.struct_size = sizeof(struct weir_operation),
                                       .kind = WEIR_OPERATION_LAUNCH};
    operation.u.launch.kernel = b->kernel;
    operation.u.launch.grid = weir_dim(1, 1, 1);
    operation.u.launch.block = weir_dim(1, 1, 1);
    operation.u.launch.arguments = b->arguments;
    operation.u.launch.argument_count = 3;
    return repeat_direct(b, &operation, count);
}

static weir_status record_call(struct null_bench *b, size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_queue_record(b->queue, &b->events[i]);
    return status;
}

static weir_status record_direct(struct null_bench *b, size_t count)
{
    struct weir_operation operation = {.struct_size = sizeof(struct weir_operation),
                                       .kind = WEIR_OPERATION_RECORD};
    return repeat_direct(b, &operation, count);
}

// Each wait is for a later event than the one before it; otherwise it would be implied and
// skipped.
static weir_status record_events(struct null_bench *b, size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_queue_record(b->producer, &b->events[i]);
    return status;
}

static weir_status wait_call(struct null_bench *b, size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_queue_wait(b->queue, b->events[i]);
    return status;
}

static weir_status wait_direct(struct null_bench *b, size_t count)
{
    struct weir_operation operation = {.struct_size = sizeof(struct weir_operation),
                                       .kind = WEIR_OPERATION_WAIT};
    operation.u.wait.event = b->events[0];
    operation.u.wait.producer = b->producer;
    return repeat_direct(b, &operation, count);
}

static weir_status host_call(struct null_bench *b, size_t count)
{
    void *pointer;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        if ((status = weir_host_begin(b->source, 0, COPY_BYTES, WEIR_ACCESS_READ, &pointer)) ==
            WEIR_OK)
            status = weir_host_end(b->source, 0, COPY_BYTES, WEIR_ACCESS_READ);
    return status;
}

static const struct kind kinds[] = {
    {"copy", "copy of 64 bytes", NULL, copy_call, copy_direct},
    {"launch", "launch with 3 arguments", NULL, launch_call, launch_direct},
    {"record", "record", NULL, record_call, record_direct},
    {"wait", "wait for another queue", record_events, wait_call, wait_direct},
    // The backend takes no notes of these two.
    {"host_begin_end", "host_begin and host_end", NULL, host_call, NULL},
};

enum {
    KIND_COUNT = sizeof kinds / sizeof *kinds
};

// Set-up.

static weir_status make_buffer(struct null_bench *b, weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "bench",
                                              .size = 4096,
                                              .placement = WEIR_PLACE_HOST};
    return weir_buffer_create(b->device, &params, out_buffer);
}

static weir_status open_null(struct null_bench *b)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "",
                                            .backend = "null",
                                            .plugins = ""};
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "bench",
                                                .bundle = &conformance_kernels};
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "bench"};
    weir_status status;
    if ((status = (weir_open)(&params, &b->runtime)) ||
        (status = (weir_device_open)(b->runtime, NULL, &b->device)) ||
        (status = weir_queue_create(b->device, &queue, &b->queue)) ||
        (status = weir_queue_create(b->device, &queue, &b->producer)) ||
        (status = weir_queue_create(b->device, &queue, &b->direct)) ||
        (status = weir_program_create(b->device, &program, &b->program)) ||
        (status = weir_kernel_create(b->program, "increment", &b->kernel)) ||
        (status = make_buffer(b, &b->source)) || (status = make_buffer(b, &b->target)))
        return status;
    b->backend = weir__chain_backend(&b->runtime->chain);
    b->arguments[0] = weir_inout(b->target, 0, COPY_BYTES);
    b->arguments[1] = weir__argument_u32(1);
    b->arguments[2] = weir__argument_u32(0);
    return WEIR_OK;
}

static void close_null(struct null_bench *b)
{
    weir_buffer_destroy(&b->target);
    weir_buffer_destroy(&b->source);
    weir_kernel_destroy(&b->kernel);
    weir_program_destroy(&b->program);
    weir_queue_destroy(&b->direct);
    weir_queue_destroy(&b->producer);
    weir_queue_destroy(&b->queue);
    weir_device_close(&b->device);
    weir_close(&b->runtime);
}

// Fills the source with one byte, clears the target, lets `copy` run once and
// says whether the bytes arrived.
static bool copies(struct null_bench *b, weir_status (*copy)(struct null_bench *, size_t),
                   unsigned char byte)
{
    void *from;
    void *to;
    if (weir_host_begin(b->source, 0, COPY_BYTES, WEIR_ACCESS_WRITE, &from) < 0 ||
        weir_host_begin(b->target, 0, COPY_BYTES, WEIR_ACCESS_READ_WRITE, &to) < 0)
        return false;
    memset(from, byte, COPY_BYTES);
    memset(to, 0, COPY_BYTES);
    const bool fine = copy(b, 1) == WEIR_OK && weir_queue_sync(b->queue, WEIR_FOREVER) == WEIR_OK &&
                      memcmp(from, to, COPY_BYTES) == 0;
    weir_host_end(b->target, 0, COPY_BYTES, WEIR_ACCESS_READ_WRITE);
    weir_host_end(b->source, 0, COPY_BYTES, WEIR_ACCESS_WRITE);
    return fine;
}

// Nanoseconds a call, negative on failure.
static double time_calls(struct null_bench *b, const struct kind *kind,
                         weir_status (*call)(struct null_bench *, size_t), uint64_t operations)
{
    uint64_t total = 0;
    uint64_t done = 0;
    while (done < operations) {
        const size_t count = operations - done < BATCH ? (size_t)(operations - done) : BATCH;
        if (kind->prepare && kind->prepare(b, count) < 0)
            return -1;
        const uint64_t began = cli_now_ns();
        if (call(b, count) < 0)
            return -1;
        total += cli_now_ns() - began;
        if (weir_queue_sync(b->queue, WEIR_FOREVER) < 0)
            return -1;
        done += count;
    }
    return (double)total / (double)operations;
}

static bool measure(struct submit *submit, struct null_bench *b, struct submit_row *rows)
{
    for (bench_start(submit->bench, UINT64_C(2) * KIND_COUNT); bench_turn(submit->bench);)
        for (size_t i = 0; i < KIND_COUNT; i++) {
            const struct kind *kind = &kinds[i];
            const double weir = time_calls(b, kind, kind->call, submit->operations);
            const double other =
                kind->direct ? time_calls(b, kind, kind->direct, submit->operations) : 0;
            if (weir < 0 || other < 0)
                return bench_fail_weir(submit->bench);
            bench_keep(submit->bench, &rows[i].weir, weir);
            bench_keep(submit->bench, &rows[i].other, other);
        }
    return true;
}

bool submit_null(struct submit *submit)
{
    struct null_bench b = {0};
    struct submit_row rows[KIND_COUNT] = {0};
    for (size_t i = 0; i < KIND_COUNT; i++) {
        rows[i].name = kinds[i].name;
        rows[i].about = kinds[i].about;
    }
    bool fine = open_null(&b) == WEIR_OK || bench_fail_weir(submit->bench);
    if (fine && (!copies(&b, copy_call, 0x5a) || !copies(&b, copy_direct, 0xa5)))
        fine = bench_fail_result(submit->bench,
                                 "the null backend's copy gave a wrong result; nothing was timed");
    if (fine)
        submit->bench->checked += 2;
    fine = fine && measure(submit, &b, rows);
    if (fine)
        // The slots do next to nothing, so a ratio to their time would be meaningless.
        submit_table(submit->bench, "null", "above the null backend, ns a call", "its slot", rows,
                     KIND_COUNT, false);
    close_null(&b);
    return fine;
}
