// Weir on CUDA beside raw driver calls: what a copy, a launch, a record and a wait cost
// the thread that submits them, together and each alone. Except for `round_trip`, waiting
// for the device is not timed.
#include <stdio.h>
#include <string.h>

#include "cli/bench/peer_cuda.h"
#include "cli/bench/submit.h"
#include "kernels/conformance/conformance.h"

enum {
    BATCH = 200, // between two waits for the device: well below what makes a driver block
    LAUNCHED = 64,
    BYTES = BENCH_CUDA_NUMBERS * 4
};

struct cuda_bench {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue, *other;
    weir_program *program;
    weir_kernel *increment;
    weir_buffer *memory, *pinned;
    bench_cuda *peer;
    struct weir_event events[BATCH];
};

// `prepare` is repeated before, and not timed.
struct kind {
    const char *name;
    const char *about;
    unsigned prepare;
    unsigned steps;
    bool without_context; // on the thread, for Weir; the driver's calls need one
};

#define SEQUENCE (BENCH_CUDA_COPY | BENCH_CUDA_LAUNCH | BENCH_CUDA_RECORD | BENCH_CUDA_WAIT)

static const struct kind kinds[] = {
    {"sequence", "copy, launch, record, wait", 0, SEQUENCE, false},
    {"sequence_no_context", "the same, no context current for Weir", 0, SEQUENCE, true},
    {"copy", "copy of 4 KiB up", 0, BENCH_CUDA_COPY, false},
    {"launch", "launch with 3 arguments", 0, BENCH_CUDA_LAUNCH, false},
    {"record", "record", 0, BENCH_CUDA_RECORD, false},
    {"wait", "wait for another queue", BENCH_CUDA_RECORD, BENCH_CUDA_WAIT, false},
    {"round_trip", "launch, record, and the host waits", 0, BENCH_CUDA_LAUNCH | BENCH_CUDA_SYNC,
     false},
};

enum {
    KIND_COUNT = sizeof kinds / sizeof *kinds
};

static bool weir_repeat(struct cuda_bench *b, unsigned steps, size_t count)
{
    const struct weir_extent one = weir_dim(1, 1, 1), block = weir_dim(LAUNCHED, 1, 1);
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++) {
        if (steps & BENCH_CUDA_COPY)
            status = weir_queue_copy(b->queue, b->memory, 0, b->pinned, 0, BYTES);
        if (steps & BENCH_CUDA_LAUNCH && status == WEIR_OK)
            status = weir_queue_launch(b->queue, b->increment, one, block,
                                       weir_inout(b->memory, 0, BYTES), 1u, (uint32_t)LAUNCHED);
        if (steps & (BENCH_CUDA_RECORD | BENCH_CUDA_SYNC) && status == WEIR_OK)
            status = weir_queue_record(b->queue, &b->events[i]);
        if (steps & BENCH_CUDA_WAIT && status == WEIR_OK)
            status = weir_queue_wait(b->other, b->events[i]);
        if (steps & BENCH_CUDA_SYNC && status == WEIR_OK)
            status = weir_event_sync(b->events[i], WEIR_FOREVER);
    }
    return status == WEIR_OK;
}

static bool weir_finish(struct cuda_bench *b)
{
    return weir_queue_sync(b->queue, WEIR_FOREVER) == WEIR_OK &&
           weir_queue_sync(b->other, WEIR_FOREVER) == WEIR_OK;
}

static bool repeat(struct cuda_bench *b, bool weir, unsigned steps, size_t count)
{
    return weir ? weir_repeat(b, steps, count) : bench_cuda_repeat(b->peer, steps, count);
}

// Nanoseconds a repetition; negative on failure.
static double time_side(struct cuda_bench *b, const struct kind *kind, bool weir,
                        uint64_t operations)
{
    uint64_t total = 0;
    bool fine = bench_cuda_use(b->peer, !(weir && kind->without_context));
    for (uint64_t done = 0; done < operations && fine;) {
        const size_t count = operations - done < BATCH ? (size_t)(operations - done) : BATCH;
        fine = kind->prepare == 0 || repeat(b, weir, kind->prepare, count);
        const uint64_t began = cli_now_ns();
        fine = fine && repeat(b, weir, kind->steps, count);
        total += cli_now_ns() - began;
        fine = fine && (weir ? weir_finish(b) : bench_cuda_finish(b->peer));
        done += count;
    }
    bench_cuda_use(b->peer, true);
    return fine ? (double)total / (double)operations : -1;
}

// The order of the two changes from turn to turn.
static bool measure(struct submit *submit, struct cuda_bench *b, struct submit_row *rows)
{
    struct bench *bench = submit->bench;
    for (bench_start(bench, UINT64_C(2) * KIND_COUNT); bench_turn(bench);)
        for (size_t i = 0; i < KIND_COUNT; i++) {
            const bool weir_first = bench->turn % 2 == 0;
            const double first = time_side(b, &kinds[i], weir_first, submit->operations);
            const double second = time_side(b, &kinds[i], !weir_first, submit->operations);
            if (first < 0 || second < 0)
                return bench_fail(bench, CLI_SETUP, "'%s' failed on CUDA while it was timed: %s",
                                  kinds[i].about, weir_last_error_text());
            bench_keep(bench, &rows[i].weir, weir_first ? first : second);
            bench_keep(bench, &rows[i].other, weir_first ? second : first);
        }
    return true;
}

// Set-up.

static weir_status make_buffer(struct cuda_bench *b, weir_placement placement,
                               weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "bench",
                                              .size = BYTES,
                                              .placement = placement};
    return weir_buffer_create(b->device, &params, out_buffer);
}

static weir_status open_weir(struct cuda_bench *b)
{
    const struct weir_device_params device = {.struct_size = sizeof device, .select = "0"};
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "bench"};
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "bench",
                                                .bundle = &conformance_kernels};
    void *pointer;
    weir_status status;
    if ((status = (weir_device_open)(b->runtime, &device, &b->device)) ||
        (status = weir_queue_create(b->device, &queue, &b->queue)) ||
        (status = weir_queue_create(b->device, &queue, &b->other)) ||
        (status = weir_program_create(b->device, &program, &b->program)) ||
        (status = weir_kernel_create(b->program, "increment", &b->increment)) ||
        (status = make_buffer(b, WEIR_PLACE_DEVICE, &b->memory)) ||
        (status = make_buffer(b, WEIR_PLACE_HOST, &b->pinned)) ||
        (status = weir_host_begin(b->pinned, 0, BYTES, WEIR_ACCESS_WRITE, &pointer)))
        return status;
    for (uint32_t i = 0; i < BENCH_CUDA_NUMBERS; i++)
        ((uint32_t *)pointer)[i] = i;
    return weir_host_end(b->pinned, 0, BYTES, WEIR_ACCESS_WRITE);
}

static void close_all(struct cuda_bench *b)
{
    bench_cuda_close(&b->peer);
    weir_buffer_destroy(&b->pinned);
    weir_buffer_destroy(&b->memory);
    weir_kernel_destroy(&b->increment);
    weir_program_destroy(&b->program);
    weir_queue_destroy(&b->other);
    weir_queue_destroy(&b->queue);
    weir_device_close(&b->device);
    weir_close(&b->runtime);
}

// Both sides run the sequence and launch twice more; their results are compared with the
// expected ones.
static bool check_results(struct submit *submit, struct cuda_bench *b)
{
    uint32_t weir[BENCH_CUDA_NUMBERS], peer[BENCH_CUDA_NUMBERS];
    if (!weir_repeat(b, SEQUENCE, 1) || !weir_repeat(b, BENCH_CUDA_LAUNCH, 2) ||
        weir_download(b->queue, weir, b->memory, 0, BYTES) != WEIR_OK)
        return bench_fail_weir(submit->bench);
    if (!bench_cuda_repeat(b->peer, SEQUENCE, 1) ||
        !bench_cuda_repeat(b->peer, BENCH_CUDA_LAUNCH, 2) || !bench_cuda_read(b->peer, peer))
        return bench_fail(submit->bench, CLI_SETUP, "the raw driver calls of the peer failed");
    for (uint32_t i = 0; i < BENCH_CUDA_NUMBERS; i++) {
        const uint32_t right = i < LAUNCHED ? i + 3 : i;
        if (weir[i] != right || peer[i] != right)
            return bench_fail_result(submit->bench,
                                     "on CUDA number %u must be %u; Weir's is %u, that of the raw "
                                     "driver calls %u; nothing was timed",
                                     (unsigned)i, (unsigned)right, (unsigned)weir[i],
                                     (unsigned)peer[i]);
    }
    submit->bench->checked += 2;
    return true;
}

static bool open_all(struct submit *submit, struct cuda_bench *b, bool *out_absent)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "",
                                            .backend = "cuda",
                                            .plugins = ""};
    char message[512];
    *out_absent = (weir_open)(&params, &b->runtime) < 0;
    if (*out_absent) {
        bench_note(submit->bench, "not measured: CUDA: %s", weir_last_error()->message);
        return false;
    }
    if (open_weir(b) != WEIR_OK)
        return bench_fail_weir(submit->bench);
    b->peer = bench_cuda_open(&conformance_kernels, message, sizeof message);
    return b->peer || bench_fail(submit->bench, CLI_SETUP, "%s", message);
}

bool submit_cuda(struct submit *submit)
{
    struct cuda_bench b = {0};
    struct submit_row rows[KIND_COUNT] = {0};
    char title[256];
    bool absent;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        rows[i].name = kinds[i].name;
        rows[i].about = kinds[i].about;
    }
    const bool fine =
        open_all(submit, &b, &absent) && check_results(submit, &b) && measure(submit, &b, rows);
    if (fine) {
        snprintf(title, sizeof title, "beside raw driver calls on %s, ns",
                 weir_device_get_info(b.device)->name);
        submit_table(submit->bench, "cuda", title, "raw CUDA", rows, KIND_COUNT, true);
    }
    close_all(&b);
    return fine || absent;
}
