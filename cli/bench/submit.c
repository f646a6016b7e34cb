// weir bench submit: what a call costs the thread that submits, on the device that the configuration names;
// and what it costs above the backend, on the null backend. That one does next to nothing in a call, so the
// time of a loop of public calls, less the time of a loop that calls its slots with the same operations, is
// the front end's. No time makes the command fail.
#include <stdio.h>
#include <string.h>

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
    struct bench *bench;
    uint64_t operations; // in each turn
};

// One device.
struct calls {
    struct bench *bench;
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
};

// Set-up.

static weir_status fill(struct calls *c)
{
    void *numbers;
    const weir_status status = weir_host_begin(c->pinned, 0, BYTES, WEIR_ACCESS_WRITE, &numbers);
    for (uint32_t i = 0; i < NUMBERS && status == WEIR_OK; i++)
        ((uint32_t *)numbers)[i] = i;
    return status == WEIR_OK ? weir_host_end(c->pinned, 0, BYTES, WEIR_ACCESS_WRITE) : status;
}

static bool make_calls(struct calls *c)
{
    weir_queue **const queues[] = {&c->queue, &c->other, &c->direct};
    for (int i = 0; i < 3; i++)
        if (!bench_queue_on(c->bench, c->device, "bench", queues[i]))
            return false;
    if (!bench_kernel_on(c->bench, c->device, &conformance_kernels, "increment", &c->program,
                         &c->kernel) ||
        !bench_buffer_on(c->bench, c->device, "bench", BYTES, WEIR_PLACE_DEVICE, &c->memory) ||
        !bench_buffer_on(c->bench, c->device, "bench", BYTES, WEIR_PLACE_HOST, &c->pinned) ||
        !bench_fine(c->bench, fill(c)))
        return false;
    c->arguments[0] = weir_inout(c->memory, 0, BYTES);
    c->arguments[1] = weir__argument_u32(1);
    c->arguments[2] = weir__argument_u32(LAUNCHED);
    return true;
}

static void destroy_calls(struct calls *c)
{
    weir_buffer_destroy(&c->pinned);
    weir_buffer_destroy(&c->memory);
    weir_kernel_destroy(&c->kernel);
    weir_program_destroy(&c->program);
    weir_queue_destroy(&c->direct);
    weir_queue_destroy(&c->other);
    weir_queue_destroy(&c->queue);
}

// The sequence and two launches, or with `direct` the copy of the slot: each launch adds 1.
static bool check(struct calls *c, bool direct, uint32_t launches)
{
    static const uint32_t nothing = 0xffffffff;
    uint32_t numbers[NUMBERS];
    if (weir_queue_fill(c->queue, c->memory, 0, BYTES, &nothing, sizeof nothing) < 0 ||
        weir_queue_sync(c->queue, WEIR_FOREVER) < 0 ||
        (direct ? copy_direct(c, 1) : sequence_call(c, 1)) < 0 ||
        (!direct && launch_call(c, 2) < 0) ||
        weir_download(c->queue, numbers, c->memory, 0, BYTES) < 0)
        return bench_fail_weir(c->bench);
    c->bench->checked++;
    for (uint32_t i = 0; i < c->bytes / sizeof *numbers; i++) {
        const uint32_t right = i < LAUNCHED ? i + launches : i;
        if (numbers[i] != right)
            return bench_fail_result(c->bench, "number %u must be %u and is %u; nothing was timed",
                                     (unsigned)i, (unsigned)right, (unsigned)numbers[i]);
    }
    return true;
}

// Measuring.

// Nanoseconds a call, negative on failure.
static double time_calls(struct calls *c, const struct kind *kind, bool direct, uint64_t operations)
{
    uint64_t total = 0;
    for (uint64_t done = 0; done < operations;) {
        const size_t count = operations - done < BATCH ? (size_t)(operations - done) : BATCH;
        if (kind->prepare && kind->prepare(c, count) < 0)
            return -1;
        const uint64_t began = cli_now_ns();
        if ((direct ? kind->direct : kind->call)(c, count) < 0)
            return -1;
        total += cli_now_ns() - began;
        if (weir_queue_sync(c->queue, WEIR_FOREVER) < 0 ||
            weir_queue_sync(c->other, WEIR_FOREVER) < 0)
            return -1;
        done += count;
    }
    return (double)total / (double)operations;
}

static bool measure_row(struct submit *submit, struct calls *c, size_t kind, struct row *row)
{
    const double weir = time_calls(c, &kinds[kind], false, submit->operations);
    if (weir < 0)
        return bench_fail_weir(submit->bench);
    bench_keep(submit->bench, &row->weir, weir);
    if (!c->backend)
        return true;
    const double direct =
        kinds[kind].direct ? time_calls(c, &kinds[kind], true, submit->operations) : 0;
    if (direct < 0)
        return bench_fail_weir(submit->bench);
    bench_keep(submit->bench, &row->direct, direct);
    return true;
}

static void plot_rows(struct bench *bench, const struct row *rows, size_t count)
{
    struct cli_plot *plot = &bench->plot;
    snprintf(plot->title, sizeof plot->title, "The cost of submitting");
    snprintf(plot->y_name, sizeof plot->y_name, "ns a call");
    for (size_t i = 0; i < count; i++) {
        bench_plot_bar(bench, "Weir", kinds[i].name, &rows[i].weir);
    }
}

// With the null backend's slots beside them. Those do next to nothing, so a ratio would be meaningless.
static void report(struct bench *bench, const struct row *rows, size_t count, bool above_null)
{
    static const struct bench_column columns[] = {
        {"name", "call", BENCH_TEXT, 0},        {"about", "", BENCH_TEXT, 0},
        {"weir_ns", "Weir", BENCH_SPREAD, 1},   {"other_ns", "its slot", BENCH_SPREAD, 1},
        {"added_ns", "added", BENCH_SPREAD, 1},
    };
    struct bench_table *table =
        above_null
            ? bench_table(bench, "null", "above the null backend, ns a call; copies of 64 bytes",
                          columns, 5)
            : bench_table(bench, "calls", "of this device, ns a call; copies of 4 KiB", columns, 3);
    for (size_t i = 0; i < count; i++) {
        const struct bench_samples added = bench_difference(&rows[i].weir, &rows[i].direct);
        bench_row(table, kinds[i].name, kinds[i].about, &rows[i].weir, &rows[i].direct, &added);
    }
    if (!above_null)
        plot_rows(bench, rows, count);
}

static bool measure(struct submit *submit, struct calls *c)
{
    const size_t count = c->backend ? ABOVE_NULL : KIND_COUNT;
    struct row rows[KIND_COUNT] = {0};
    for (bench_start(submit->bench); bench_turn(submit->bench);)
        for (size_t i = 0; i < count; i++)
            if (!measure_row(submit, c, i, &rows[i]))
                return false;
    report(submit->bench, rows, count, c->backend != NULL);
    return true;
}

static bool measure_device(struct submit *submit)
{
    struct bench *bench = submit->bench;
    struct calls c = {.bench = bench, .device = bench->device, .bytes = BYTES};
    const bool fine =
        make_calls(&c) && check(&c, false, bench->runs_kernels ? 3 : 0) && measure(submit, &c);
    destroy_calls(&c);
    return fine;
}

static bool measure_null(struct submit *submit)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "",
                                            .backend = "null",
                                            .plugins = ""};
    struct calls c = {.bench = submit->bench, .bytes = 64};
    weir_runtime *runtime = NULL;
    bool fine = (weir_open_at(&params, &runtime, NULL, 0) == WEIR_OK &&
                 weir_device_open_at(runtime, NULL, &c.device, NULL, 0) == WEIR_OK) ||
                bench_fail_weir(submit->bench);
    if (fine)
        c.backend = weir_inspect_backend(runtime);
    fine =
        fine && make_calls(&c) && check(&c, false, 0) && check(&c, true, 0) && measure(submit, &c);
    destroy_calls(&c);
    WEIR_IGNORE(weir_device_close(&c.device));
    WEIR_IGNORE(weir_close(&runtime));
    return fine;
}

static bool run(struct bench *bench, void *user)
{
    struct submit *submit = user;
    submit->bench = bench;
    bench_parameter(bench, "operations", (double)submit->operations);
    return measure_device(submit) && (cli_clock_is_virtual() || measure_null(submit));
}

static int submit_main(int argc, char **argv)
{
    struct submit submit = {.operations = 10000};
    const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &submit.operations, 1,
         OPERATIONS_MOST},
    };
    const struct bench_program program = {
        .name = "submit",
        .about =
            "Measures what a call costs the thread that submits, and how much of that is above\n"
            "the backend, by the null backend.\n\n"
            "  weir bench submit\n"
            "  weir bench submit --turns 31 --json",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .run = run,
    };
    return bench_main(&program, &submit, argc, argv);
}

const struct cli_command cli_bench_submit = {
    .name = "submit",
    .summary = "the cost of submitting work",
    .main = submit_main,
};
