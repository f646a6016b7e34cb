// weir bench submit: what a call costs the thread that submits, on the device that the configuration names;
// and what it costs above the backend, on the null backend. That one does next to nothing in a call, so the
// time of public calls, less the time of calls of its slots with the same operations, is the front end's. No time
// makes the command fail.
#include "cli/bench/side.h"

#include <weir/inspect.h>
#include <weir/module/module.h>

#include "kernels/conformance/conformance.h"

enum {
    BATCH = 200, // between two waits for the device: well below what makes a driver block
    LAUNCHED = 64,
    SEED = 12345,
    OPERATIONS_MOST = 100000000
};

enum kernel {
    INCREMENT,
    SPIN_KERNEL
};

// Measuring.

// The null backend takes no notes of such uses: all that they cost is the front end's.
static void use_on_host(struct side *side)
{
    weir_buffer *buffer = side->weir.pinned[0];
    void *pointer;
    bench_fine(weir_host_begin(buffer, 0, SUBMIT_BYTES, WEIR_ACCESS_READ, &pointer));
    bench_fine(weir_host_end(buffer, 0, SUBMIT_BYTES, WEIR_ACCESS_READ));
}

static void run_steps(const struct submit *s, struct side *side, unsigned steps, size_t count)
{
    const struct side_calls *calls = side->calls;
    const struct side_launch launch = {INCREMENT, 0,        SUBMIT_BYTES, 1,    LAUNCHED,
                                       1,         LAUNCHED, false,        false};
    const struct side_launch spin = {SPIN_KERNEL, 0,        SUBMIT_BYTES, 1,    1,
                                     SEED,        s->spins, true,         false};
    const struct side_launch empty = {INCREMENT, 0,     SUBMIT_BYTES,           1, 1, 1,
                                      0,         false, steps & SUBMIT_SET_ONCE};
    for (unsigned i = 0; i < count; i++) {
        if (steps & SUBMIT_COPY)
            calls->copy(side, 0, true, 0, s->copied);
        if (steps & SUBMIT_LAUNCH)
            calls->launch(side, 0, &launch);
        if (steps & SUBMIT_SPIN)
            calls->launch(side, 0, &spin);
        if (steps & SUBMIT_EMPTY)
            calls->launch(side, 0, &empty);
        if (steps & SUBMIT_RECORD)
            calls->record(side, 0, i);
        // Each wait is for a later event than the one before it; otherwise it would be implied and skipped.
        if (steps & SUBMIT_WAIT)
            calls->wait(side, 1, i);
        if (steps & SUBMIT_SYNC)
            calls->sync(side, i);
        if (steps & SUBMIT_HOST && side == s->sides[0])
            use_on_host(side);
    }
}

static void finish(struct side *side)
{
    side->calls->finish(side, 0);
    side->calls->finish(side, 1);
}

static void use_context(struct side *side, bool current)
{
    if (side && side->calls->use_context)
        side->calls->use_context(side, current);
}

double bench_submit_time(struct submit *s, const struct submit_kind *kind, unsigned index)
{
    struct side *side = s->sides[index];
    uint64_t total = 0;
    if (kind->steps & SUBMIT_NO_CONTEXT && index == 0)
        use_context(s->sides[1], false);
    for (uint64_t done = 0; done < s->operations;) {
        const uint64_t left = s->operations - done;
        const size_t count = left < BATCH ? (size_t)left : BATCH;
        if (kind->prepare)
            run_steps(s, side, kind->prepare, count);
        const uint64_t began = cli_now_ns();
        run_steps(s, side, kind->steps, count);
        const uint64_t submitted = cli_now_ns();
        finish(side);
        total += (s->to_the_end ? cli_now_ns() : submitted) - began;
        done += count;
    }
    use_context(s->sides[1], true);
    return (double)total / (double)s->operations;
}

// The order of the two changes from turn to turn.
void bench_submit_measure(struct submit *s, const char *key, const char *title)
{
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < s->count; i++)
            for (unsigned k = 0; k < 2; k++) {
                const unsigned side = (bench.turn + k) % 2;
                if (s->sides[side])
                    bench_keep(&s->ns[i][side], bench_submit_time(s, &s->kinds[i], side));
            }
    struct bench_table *table = bench_table(key, title);
    for (size_t i = 0; i < s->count; i++) {
        const struct bench_samples weir = s->ns[i][0], other = s->ns[i][1];
        bench_text(table, "name", "call", s->kinds[i].name);
        bench_text(table, "about", "", s->kinds[i].about);
        bench_value(table, "weir_ns", "Weir", 1, weir);
        if (!s->sides[1]) {
            bench_plot_bar("Weir", s->kinds[i].name, weir);
            continue;
        }
        bench_value(table, "other_ns", s->sides[1]->calls->name, 1, other);
        bench_value(table, "added_ns", "added", 1, bench_difference(weir, other));
        bench_value(table, "ratio", "ratio", 3, bench_ratio(weir, other));
    }
}

// Set-up.

bool bench_submit_open(struct side *side, const struct side_calls *calls, weir_device *device)
{
    uint32_t numbers[SUBMIT_NUMBERS];
    if (!side_open(side, calls, device, &conformance_kernels))
        return false;
    for (uint32_t i = 0; i < SUBMIT_NUMBERS; i++)
        numbers[i] = i;
    side_queues(side, 2);
    calls->kernel(side, INCREMENT, "increment");
    calls->kernel(side, SPIN_KERNEL, "spin");
    calls->memory(side, SUBMIT_BYTES);
    calls->pinned(side, 0, SUBMIT_BYTES);
    calls->upload(side, numbers, SUBMIT_BYTES);
    calls->copy(side, 0, false, 0, SUBMIT_BYTES);
    finish(side);
    return true;
}

// The sequence and two launches, or a long kernel, on numbers that are none of the right ones.
static void prove(struct submit *s, struct side *side, uint32_t *found)
{
    memset(found, 0xff, SUBMIT_BYTES);
    side->calls->upload(side, found, SUBMIT_BYTES);
    run_steps(s, side, s->spins ? SUBMIT_SPIN : SUBMIT_SEQUENCE, 1);
    if (!s->spins)
        run_steps(s, side, SUBMIT_LAUNCH, 2);
    finish(side);
    side->calls->download(side, found, SUBMIT_BYTES);
    bench.checked++;
}

void bench_submit_check(struct submit *s)
{
    uint32_t found[2][SUBMIT_NUMBERS];
    const size_t count = s->spins ? 1 : s->copied / sizeof **found;
    for (int k = 1; k >= 0; k--) {
        if (!s->sides[k])
            continue;
        prove(s, s->sides[k], found[k]);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t right = s->spins ? found[1][i] : i < LAUNCHED ? i + 3 * s->added : i;
            if (found[k][i] != right)
                cli_fail(CLI_FAILED, "%s: number %u must be %u and is %u; nothing was timed",
                         s->sides[k]->calls->name, (unsigned)i, (unsigned)right,
                         (unsigned)found[k][i]);
        }
    }
}

// The null backend's slots, with its objects.

static struct {
    const struct weir_link *backend;
    weir_queue *queue;
    uint64_t sequence;
    struct weir_argument arguments[SIDE_ARGUMENTS];
    struct weir_operation copy, launch, record, wait;
} slots;

static void submit_slot(struct weir_operation *operation)
{
    operation->sequence = ++slots.sequence;
    bench_fine(slots.backend->ops->queue_submit(slots.backend, slots.queue, operation));
}

static void slot_copy(struct side *side, unsigned queue, bool up, size_t at, size_t size)
{
    slots.copy.u.box.width = size;
    submit_slot(&slots.copy);
}

static void slot_launch(struct side *side, unsigned queue, const struct side_launch *launch)
{
    side_arguments(side, launch, slots.arguments);
    submit_slot(&slots.launch);
}

static void slot_record(struct side *side, unsigned queue, unsigned event)
{
    submit_slot(&slots.record);
}

static void slot_wait(struct side *side, unsigned queue, unsigned event)
{
    submit_slot(&slots.wait);
}

static struct side *open_slots(const struct side *weir, const struct weir_link *backend)
{
    static struct side_calls calls;
    static struct side side;
    const struct side_weir *of = &weir->weir;
    const struct weir_operation operation = {.struct_size = sizeof operation,
                                             .file = __FILE__,
                                             .line = __LINE__};
    side = *weir;
    calls = side_weir_calls;
    calls.name = "its slot";
    calls.copy = slot_copy;
    calls.launch = slot_launch;
    calls.record = slot_record;
    calls.wait = slot_wait;
    side.calls = &calls;
    slots.backend = backend;
    slots.copy = slots.launch = slots.record = slots.wait = operation;
    slots.copy.kind = WEIR_OPERATION_COPY;
    weir_box_row(&slots.copy.u.box, of->memory, 0, of->pinned[0], 0, 0);
    slots.launch.kind = WEIR_OPERATION_LAUNCH;
    slots.launch.u.launch.kernel = of->kernels[INCREMENT];
    slots.launch.u.launch.grid = weir_dim(1, 1, 1);
    slots.launch.u.launch.block = weir_dim(LAUNCHED, 1, 1);
    slots.launch.u.launch.arguments = slots.arguments;
    slots.launch.u.launch.argument_count = SIDE_ARGUMENTS;
    slots.record.kind = WEIR_OPERATION_RECORD;
    slots.wait.kind = WEIR_OPERATION_WAIT;
    cli_fine(weir_queue_record(of->queues[0], &slots.wait.u.wait.event));
    slots.wait.u.wait.producer = of->queues[0];
    bench_queue(of->device, "bench", 0, &slots.queue);
    return &side;
}

// The command.

static const struct submit_kind kinds[] = {
    {"copy", "copy up", 0, SUBMIT_COPY},
    {"launch", "launch with 3 arguments", 0, SUBMIT_LAUNCH},
    {"record", "record", 0, SUBMIT_RECORD},
    {"wait", "wait for another queue", SUBMIT_RECORD, SUBMIT_WAIT},
    {"host_begin_end", "host_begin and host_end", 0, SUBMIT_HOST},
    {"sequence", "copy, launch, record, wait", 0, SUBMIT_SEQUENCE},
    {"round_trip", "launch, record, and the host waits", 0,
     SUBMIT_LAUNCH | SUBMIT_RECORD | SUBMIT_SYNC},
};

enum {
    ABOVE_NULL = 5 // of the kinds
};

static void run(void *user)
{
    static struct side device, null;
    const uint64_t operations = *(const uint64_t *)user;
    static struct submit submit = {.kinds = kinds,
                                   .count = BENCH_COUNT(kinds),
                                   .copied = SUBMIT_BYTES};
    static struct submit above = {.kinds = kinds, .count = ABOVE_NULL, .copied = 64};
    bench_parameter("operations", (double)operations);
    submit.operations = above.operations = operations;
    submit.sides[0] = &device;
    submit.added = bench.runs_kernels;
    (void)bench_submit_open(&device, &side_weir_calls, bench.device);
    bench_submit_check(&submit);
    bench_plot("The cost of submitting", "", "ns a call");
    bench_submit_measure(&submit, "calls", "of this device, ns a call; copies of 4 KiB");
    if (cli_clock_is_virtual())
        return;
    weir_runtime *runtime = cli_open_with(&(struct weir_open_params){
        .struct_size = sizeof(struct weir_open_params),
        .config_path = "",
        .backend = "null",
        .plugins = "",
    });
    (void)bench_submit_open(&null, &side_weir_calls, cli_device(runtime, NULL, NULL));
    above.sides[0] = &null;
    above.sides[1] = open_slots(&null, weir_inspect_backend(runtime));
    bench_submit_check(&above);
    bench_submit_measure(&above, "null", "above the null backend, ns a call; copies of 64 bytes");
}

int cli_bench_submit(int argc, char **argv)
{
    static uint64_t operations = 10000;
    static const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &operations, 1, OPERATIONS_MOST},
    };
    static const struct bench_program program = {
        .about =
            "Measures what a call costs the thread that submits, and how much of that is above\n"
            "the backend, by the null backend.\n\n"
            "  weir bench submit\n"
            "  weir bench submit --turns 31 --json",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run,
    };
    return bench_main(&program, &operations, argc, argv);
}
