// weir bench submit: what a call costs the thread that submits, on the device that the configuration names;
// and what it costs above the backend, on the null backend. That one does next to nothing in a call, so the
// time of a loop of public calls, less the time of a loop that calls its slots with the same operations, is
// the front end's. No time makes the command fail.
#include <weir/inspect.h>
#include <weir/module/module.h>

#include "cli/bench/work.h"
#include "kernels/conformance/conformance.h"

enum {
    BATCH = 200, // between two waits for the device: well below what makes a driver block
    NUMBERS = 1024,
    BYTES = 4 * NUMBERS,
    LAUNCHED = 64,
    OPERATIONS_MOST = 100000000
};

struct submit {
    uint64_t operations; // in each turn
};

// One device.
struct calls {
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;  // its events are waited for
    weir_queue *direct; // of calls to the slot
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *memory, *pinned;
    struct weir_argument arguments[3];
    const struct weir_link *backend;
    uint64_t sequence; // of `direct`
    size_t bytes;      // of a copy
    struct weir_event events[BATCH];
};

// One kind of call: a batch of it through the API, and one through the slot. `prepare` is not timed.
struct kind {
    const char *name;
    const char *about;
    weir_status (*prepare)(struct calls *c, size_t count);
    weir_status (*call)(struct calls *c, size_t count);
    weir_status (*direct)(struct calls *c, size_t count);
};

// Public calls.

static weir_status copy_once(struct calls *c)
{
    return weir_queue_copy(c->queue, c->memory, 0, c->pinned, 0, c->bytes);
}

static weir_status launch_once(struct calls *c)
{
    return weir_queue_launch(c->queue, c->kernel, weir_dim(1, 1, 1), weir_dim(LAUNCHED, 1, 1),
                             weir_inout(c->memory, 0, BYTES), 1u, (uint32_t)LAUNCHED);
}

// The body of a function that repeats a call, in which `i` counts.
#define REPEAT(call)                                        \
    weir_status status = WEIR_OK;                           \
    for (size_t i = 0; i < count && status == WEIR_OK; i++) \
        status = (call);                                    \
    return status

static weir_status copy_call(struct calls *c, size_t count)
{
    REPEAT(copy_once(c));
}

static weir_status launch_call(struct calls *c, size_t count)
{
    REPEAT(launch_once(c));
}

static weir_status record_call(struct calls *c, size_t count)
{
    REPEAT(weir_queue_record(c->queue, &c->events[i]));
}

// Each wait is for a later event than the one before it; otherwise it would be implied and skipped.
static weir_status record_others(struct calls *c, size_t count)
{
    REPEAT(weir_queue_record(c->other, &c->events[i]));
}

static weir_status wait_call(struct calls *c, size_t count)
{
    REPEAT(weir_queue_wait(c->queue, c->events[i]));
}

#undef REPEAT

static weir_status host_call(struct calls *c, size_t count)
{
    void *pointer;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        if ((status = weir_host_begin(c->pinned, 0, BYTES, WEIR_ACCESS_READ, &pointer)) == WEIR_OK)
            status = weir_host_end(c->pinned, 0, BYTES, WEIR_ACCESS_READ);
    return status;
}

static weir_status sequence_call(struct calls *c, size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++) {
        if ((status = copy_once(c)) == WEIR_OK && (status = launch_once(c)) == WEIR_OK &&
            (status = weir_queue_record(c->queue, &c->events[i])) == WEIR_OK)
            status = weir_queue_wait(c->other, c->events[i]);
    }
    return status;
}

static weir_status round_trip_call(struct calls *c, size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        if ((status = launch_once(c)) == WEIR_OK &&
            (status = weir_queue_record(c->queue, &c->events[i])) == WEIR_OK)
            status = weir_event_sync(c->events[i], WEIR_FOREVER);
    return status;
}

// The null backend's slots.

static weir_status repeat_direct(struct calls *c, struct weir_operation *operation, size_t count)
{
    weir_status status = WEIR_OK;
    operation->struct_size = sizeof *operation;
    operation->file = __FILE__;
    operation->line = __LINE__;
    for (size_t i = 0; i < count && status == WEIR_OK; i++) {
        operation->sequence = ++c->sequence;
        status = c->backend->ops->queue_submit(c->backend, c->direct, operation);
    }
    return status;
}

static weir_status copy_direct(struct calls *c, size_t count)
{
    struct weir_operation operation = {.kind = WEIR_OPERATION_COPY};
    operation.u.copy.dst = c->memory;
    operation.u.copy.src = c->pinned;
    operation.u.copy.size = c->bytes;
    return repeat_direct(c, &operation, count);
}

static weir_status launch_direct(struct calls *c, size_t count)
{
    struct weir_operation operation = {.kind = WEIR_OPERATION_LAUNCH};
    operation.u.launch.kernel = c->kernel;
    operation.u.launch.grid = weir_dim(1, 1, 1);
    operation.u.launch.block = weir_dim(LAUNCHED, 1, 1);
    operation.u.launch.arguments = c->arguments;
    operation.u.launch.argument_count = 3;
    return repeat_direct(c, &operation, count);
}

static weir_status record_direct(struct calls *c, size_t count)
{
    struct weir_operation operation = {.kind = WEIR_OPERATION_RECORD};
    return repeat_direct(c, &operation, count);
}

static weir_status wait_direct(struct calls *c, size_t count)
{
    struct weir_operation operation = {.kind = WEIR_OPERATION_WAIT};
    operation.u.wait.event = c->events[0];
    operation.u.wait.producer = c->other;
    return repeat_direct(c, &operation, count);
}

static const struct kind kinds[] = {
    {"copy", "copy up", NULL, copy_call, copy_direct},
    {"launch", "launch with 3 arguments", NULL, launch_call, launch_direct},
    {"record", "record", NULL, record_call, record_direct},
    {"wait", "wait for another queue", record_others, wait_call, wait_direct},
    // The backend takes no notes of these two.
    {"host_begin_end", "host_begin and host_end", NULL, host_call, NULL},
    {"sequence", "copy, launch, record, wait", NULL, sequence_call, NULL},
    {"round_trip", "launch, record, and the host waits", NULL, round_trip_call, NULL},
};

enum {
    ABOVE_NULL = 5, // of the kinds
    KIND_COUNT = sizeof kinds / sizeof *kinds
};

struct row {
    struct bench_samples weir;   // nanoseconds a call
    struct bench_samples direct; // the same through the slot
    struct bench_samples added;  // by Weir
};

// Set-up.

static void make_calls(struct calls *c)
{
    weir_queue **const queues[] = {&c->queue, &c->other, &c->direct};
    for (int i = 0; i < 3; i++)
        bench_queue(c->device, "bench", 0, queues[i]);
    bench_kernel(c->device, &conformance_kernels, "increment", &c->program, &c->kernel);
    bench_buffer(c->device, "bench", BYTES, WEIR_PLACE_DEVICE, &c->memory);
    bench_buffer(c->device, "bench", BYTES, WEIR_PLACE_HOST, &c->pinned);
    uint32_t *numbers = bench_begin(c->pinned, WEIR_ACCESS_WRITE);
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    bench_end(c->pinned, WEIR_ACCESS_WRITE);
    c->arguments[0] = weir_inout(c->memory, 0, BYTES);
    c->arguments[1] = weir__argument_u32(1);
    c->arguments[2] = weir__argument_u32(LAUNCHED);
}

// The sequence and two launches, or with `direct` the copy of the slot: each launch adds 1.
static void check(struct calls *c, bool direct, uint32_t launches)
{
    uint32_t numbers[NUMBERS];
    bench_fill(c->queue, c->memory, BYTES);
    cli_fine(direct ? copy_direct(c, 1) : sequence_call(c, 1));
    if (!direct)
        cli_fine(launch_call(c, 2));
    cli_fine(weir_download(c->queue, numbers, c->memory, 0, BYTES));
    bench.checked++;
    for (uint32_t i = 0; i < c->bytes / sizeof *numbers; i++) {
        const uint32_t right = i < LAUNCHED ? i + launches : i;
        if (numbers[i] != right)
            cli_fail(CLI_FAILED, "number %u must be %u and is %u; nothing was timed", (unsigned)i,
                     (unsigned)right, (unsigned)numbers[i]);
    }
}

// Measuring.

// Nanoseconds a call.
static double time_calls(struct calls *c, const struct kind *kind, bool direct, uint64_t operations)
{
    weir_status (*call)(struct calls *, size_t) = direct ? kind->direct : kind->call;
    uint64_t total = 0;
    for (uint64_t done = 0; call && done < operations;) {
        const size_t count = operations - done < BATCH ? (size_t)(operations - done) : BATCH;
        if (kind->prepare)
            cli_fine(kind->prepare(c, count));
        const uint64_t began = cli_now_ns();
        const weir_status status = call(c, count);
        total += cli_now_ns() - began;
        cli_fine(status);
        bench_sync(c->queue);
        bench_sync(c->other);
        done += count;
    }
    return (double)total / (double)operations;
}

static void measure_row(struct submit *submit, struct calls *c, size_t kind, struct row *row)
{
    const double ns = time_calls(c, &kinds[kind], false, submit->operations);
    bench_keep(&row->weir, ns);
    if (!c->backend)
        return;
    const double direct = time_calls(c, &kinds[kind], true, submit->operations);
    bench_keep(&row->direct, direct);
    bench_add(&row->added, ns - direct);
}

// With the null backend's slots beside them. Those do next to nothing, so a ratio would be meaningless.
static void report(const struct row *rows, size_t count, bool above_null)
{
    static const struct bench_column columns[] = {
        {"name", "call", BENCH_TEXT, 0},        {"about", "", BENCH_TEXT, 0},
        {"weir_ns", "Weir", BENCH_SPREAD, 1},   {"other_ns", "its slot", BENCH_SPREAD, 1},
        {"added_ns", "added", BENCH_SPREAD, 1},
    };
    struct bench_table *table =
        above_null
            ? bench_table_of("null", "above the null backend, ns a call; copies of 64 bytes",
                             columns, 5)
            : bench_table_of("calls", "of this device, ns a call; copies of 4 KiB", columns, 3);
    bench_plot("The cost of submitting", "", "ns a call");
    for (size_t i = 0; i < count; i++) {
        bench_row(table, kinds[i].name, kinds[i].about, &rows[i].weir, &rows[i].direct,
                  &rows[i].added);
        if (!above_null)
            bench_plot_bar("Weir", kinds[i].name, &rows[i].weir);
    }
}

static void measure(struct submit *submit, struct calls *c)
{
    const size_t count = c->backend ? ABOVE_NULL : KIND_COUNT;
    struct row rows[KIND_COUNT] = {0};
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < count; i++)
            measure_row(submit, c, i, &rows[i]);
    report(rows, count, c->backend != NULL);
}

static void run(void *user)
{
    static struct calls device = {.bytes = BYTES}, null = {.bytes = 64};
    struct submit *submit = user;
    bench_parameter("operations", (double)submit->operations);
    device.device = bench.device;
    make_calls(&device);
    check(&device, false, bench.runs_kernels ? 3 : 0);
    measure(submit, &device);
    if (cli_clock_is_virtual())
        return;
    weir_runtime *runtime = cli_open_with(&(struct weir_open_params){
        .struct_size = sizeof(struct weir_open_params),
        .config_path = "",
        .backend = "null",
        .plugins = "",
    });
    null.device = cli_device(runtime, NULL, NULL);
    null.backend = weir_inspect_backend(runtime);
    make_calls(&null);
    check(&null, false, 0);
    check(&null, true, 0);
    measure(submit, &null);
}

int cli_bench_submit(int argc, char **argv)
{
    static struct submit submit = {.operations = 10000};
    static const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &submit.operations, 1,
         OPERATIONS_MOST},
    };
    static const struct bench_program program = {
        .name = "submit",
        .about =
            "Measures what a call costs the thread that submits, and how much of that is above\n"
            "the backend, by the null backend.\n\n"
            "  weir bench submit\n"
            "  weir bench submit --turns 31 --json",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .run = run,
    };
    return bench_main(&program, &submit, argc, argv);
}
