// Checks that the fake libcuda cannot make: a program for a machine with a GPU. It
// prints one line per check, with the figure if there is one, and exits with 1 if
// any failed.
//
//     gpu_check          all that leaves the device as it was
//     gpu_check fault    a kernel that leaves its buffer, and what is said of it,
//                        without attribute_faults and with it; and one that prints
//     gpu_check messages the part of the first about bad input and a killed process
//     gpu_check graphs   the part of the first about graphs
//
// The environment chooses modules and configuration, as for every program.
#include "tests/cuda/gpu_check.h"

#include "backends/cuda/symbols.h"
#include "base/clock.h"
#include "kernels/conformance/conformance.h"

static struct cu_symbols raw;

weir_buffer *buffer_of(const struct bench *bench, size_t size, weir_placement placement)
{
    weir_buffer *buffer = NULL;
    if (weir_buffer_create(bench->device,
                           WEIR_PARAMS(weir_buffer, .size = size, .placement = placement),
                           &buffer) != WEIR_OK)
        check(false, "weir_buffer_create of %zu bytes", size);
    return buffer;
}

static weir_queue *queue_of(const struct bench *bench, bool timing)
{
    weir_queue *queue = NULL;
    if (weir_queue_create(bench->device, WEIR_PARAMS(weir_queue, .timing = timing), &queue) !=
        WEIR_OK)
        check(false, "weir_queue_create");
    return queue;
}

static void destroy_all(struct bench *bench)
{
    weir_buffer_destroy(&bench->memory);
    weir_buffer_destroy(&bench->pinned);
    weir_kernel_destroy(&bench->iota);
    weir_kernel_destroy(&bench->spin);
    weir_program_destroy(&bench->program);
    weir_queue_destroy(&bench->queue);
    weir_queue_destroy(&bench->other);
}

static bool create_all(struct bench *bench, const char *config)
{
    if (weir_open(WEIR_PARAMS(weir_open, .config_path = config ? "gpu_check" : NULL,
                              .config_text = config, .backend = "cuda"),
                  &bench->runtime) != WEIR_OK ||
        weir_device_open(bench->runtime, NULL, &bench->device) != WEIR_OK ||
        weir_program_create(bench->device,
                            WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                            &bench->program) != WEIR_OK ||
        weir_kernel_create(bench->program, "iota", &bench->iota) != WEIR_OK ||
        weir_kernel_create(bench->program, "spin", &bench->spin) != WEIR_OK)
        return false;
    bench->queue = queue_of(bench, false);
    bench->other = queue_of(bench, false);
    bench->memory = buffer_of(bench, (size_t)64 << 20, WEIR_PLACE_DEVICE);
    bench->pinned = buffer_of(bench, (size_t)64 << 20, WEIR_PLACE_HOST);
    return bench->queue && bench->other && bench->memory && bench->pinned;
}

bool start_with(struct bench *bench, const char *config)
{
    memset(bench, 0, sizeof *bench);
    if (create_all(bench, config))
        return true;
    destroy_all(bench);
    WEIR_IGNORE(weir_device_close(&bench->device));
    WEIR_IGNORE(weir_close(&bench->runtime));
    return false;
}

static bool start(struct bench *bench)
{
    const bool good = start_with(bench, NULL);
    if (!good)
        check(false, "opening the CUDA backend and its kernels");
    return good;
}

void finish(struct bench *bench)
{
    destroy_all(bench);
    check(weir_device_close(&bench->device) == WEIR_OK, "the device closes");
    check(weir_close(&bench->runtime) == WEIR_OK, "the runtime closes");
}

static void print_device(const struct bench *bench)
{
    const struct weir_device_info *info = weir_device_get_info(bench->device);
    const struct weir_limits *limits = weir_device_limits(bench->device);
    printf("      %s, %s, %llu MiB\n", info->name, info->driver,
           (unsigned long long)(info->memory_bytes >> 20));
    printf("      priorities %d to %d, engines %u/%u, %u multiprocessors, local %llu bytes\n",
           limits->priority_lowest, limits->priority_highest, limits->copy_engines_to_device,
           limits->copy_engines_to_host, limits->compute_units,
           (unsigned long long)limits->max_local_bytes);
}

// One work-item that runs for about `milliseconds`, found by doubling.
static uint64_t steps_for(const struct bench *bench, double milliseconds)
{
    for (uint64_t steps = 100000;; steps *= 2) {
        const uint64_t begin = weir_clock_now_ns();
        WEIR_IGNORE(weir_queue_launch(bench->queue, bench->spin, weir_dim(1, 1, 1),
                                      weir_dim(1, 1, 1), weir_out(bench->memory, 0, 64), 1u,
                                      steps));
        WEIR_IGNORE(weir_queue_sync(bench->queue, WEIR_FOREVER));
        const double took = (double)(weir_clock_now_ns() - begin) * 1e-6;
        if (took > 20 || steps > UINT64_C(1) << 40)
            return (uint64_t)((double)steps * milliseconds / took);
    }
}

static weir_status spin(const struct bench *bench, uint64_t steps)
{
    return weir_queue_launch(bench->queue, bench->spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                             weir_out(bench->memory, 0, 64), 1u, steps);
}

// Contexts.

static void check_context(const struct bench *bench)
{
    CUcontext context = NULL;
    CUcontext before = NULL;
    struct weir_event event;
    raw.cuCtxGetCurrent(&before);
    weir_buffer *buffer = buffer_of(bench, 4096, WEIR_PLACE_DEVICE);
    WEIR_IGNORE(weir_queue_copy(bench->queue, buffer, 0, bench->pinned, 0, 4096));
    WEIR_IGNORE(weir_queue_record(bench->queue, &event));
    WEIR_IGNORE(weir_event_sync(event, WEIR_FOREVER));
    weir_buffer_destroy(&buffer);
    raw.cuCtxGetCurrent(&context);
    check(context == before, "the current context is left as found (%p)", (void *)before);
}

// Calls that must not wait while a kernel runs.

static uint64_t clock_start;

void begin_call(void)
{
    clock_start = weir_clock_now_ns();
}

void end_call(const char *what)
{
    const double took = (double)(weir_clock_now_ns() - clock_start) * 1e-6;
    check(took < 20, "%8.3f ms  %s", took, what);
}

static void time_buffers(const struct bench *bench)
{
    static _Alignas(4096) unsigned char wrapped_memory[1 << 20];
    weir_buffer *buffer = NULL;
    TIMED("create a DEVICE buffer of 32 MiB",
          buffer = buffer_of(bench, (size_t)32 << 20, WEIR_PLACE_DEVICE));
    TIMED("destroy it", weir_buffer_destroy(&buffer));
    TIMED("create a HOST buffer of 4 MiB",
          buffer = buffer_of(bench, (size_t)4 << 20, WEIR_PLACE_HOST));
    TIMED("destroy it", weir_buffer_destroy(&buffer));
    TIMED("wrap 1 MiB",
          WEIR_IGNORE(weir_buffer_wrap(bench->device,
                                       WEIR_PARAMS(weir_wrap, .pointer = wrapped_memory,
                                                   .size = sizeof wrapped_memory),
                                       &buffer)));
    TIMED("destroy it", weir_buffer_destroy(&buffer));
}

static void time_others(const struct bench *bench, weir_program **spare)
{
    weir_kernel *kernel = NULL;
    weir_queue *queue = NULL;
    TIMED("create a queue", queue = queue_of(bench, false));
    TIMED("destroy it", weir_queue_destroy(&queue));
    TIMED("create a queue with timing", queue = queue_of(bench, true));
    TIMED("destroy it", weir_queue_destroy(&queue));
    TIMED("create a kernel", WEIR_IGNORE(weir_kernel_create(bench->program, "scale", &kernel)));
    TIMED("destroy it", weir_kernel_destroy(&kernel));
    TIMED("destroy a program", weir_program_destroy(spare));
}

static void fill_often(const struct bench *bench, weir_buffer *dst, size_t offset)
{
    static const unsigned char pattern[16] = {1, 2, 3};
    for (size_t unit = 1; unit <= 16; unit *= 2)
        WEIR_IGNORE(weir_queue_fill(bench->queue, dst, offset, 1 << 20, pattern, unit));
}

static void time_submits(const struct bench *bench, weir_buffer *second)
{
    const struct weir_plane to = {second, 0, 4096};
    const struct weir_plane from = {bench->pinned, 0, 8192};
    TIMED("submit a copy from HOST to HOST of 20 MiB",
          WEIR_IGNORE(
              weir_queue_copy(bench->queue, second, 0, bench->pinned, 0, (size_t)20 << 20)));
    TIMED("submit a 2-D copy from HOST to HOST",
          WEIR_IGNORE(weir_queue_copy_2d(bench->queue, to, from, 1000, 1000)));
    TIMED("submit five fills of a HOST buffer", fill_often(bench, second, 0));
    TIMED("submit five fills of a DEVICE buffer", fill_often(bench, bench->memory, 1 << 20));
}

static void check_waits(const struct bench *bench)
{
    struct weir_event event;
    weir_program *spare = NULL;
    const uint64_t steps = steps_for(bench, 400);
    WEIR_IGNORE(weir_program_create(bench->device,
                                    WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                    &spare));
    weir_buffer *second = buffer_of(bench, (size_t)64 << 20, WEIR_PLACE_HOST);
    printf("      beside a kernel of about 400 ms:\n");
    spin(bench, steps);
    WEIR_IGNORE(weir_queue_record(bench->queue, &event));
    time_buffers(bench);
    time_others(bench, &spare);
    time_submits(bench, second);
    check(weir_event_query(event) == WEIR_NOT_READY, "the kernel still runs after all of these");
    WEIR_IGNORE(weir_queue_sync(bench->queue, WEIR_FOREVER));
    weir_buffer_destroy(&second);
}

// Times over several anchors against the host's clock.
static void check_times(const struct bench *bench)
{
    struct weir_event events[2];
    uint64_t device_ns[2] = {0, 0};
    uint64_t host_ns[2];
    weir_queue *queue = queue_of(bench, true);
    for (int i = 0; i < 2; i++) {
        for (int pause = 0; i > 0 && pause < 30;
             pause++) { // three seconds, with records on the way
            weir_clock_sleep_ns(100000000);
            WEIR_IGNORE(weir_queue_record(queue, &events[1]));
        }
        WEIR_IGNORE(weir_queue_record(queue, &events[i]));
        WEIR_IGNORE(weir_event_sync(events[i], WEIR_FOREVER));
        host_ns[i] = weir_clock_now_ns();
        if (weir_event_time_ns(events[i], &device_ns[i]) != WEIR_OK)
            check(false, "weir_event_time_ns");
    }
    const double host = (double)(host_ns[1] - host_ns[0]) * 1e-3;
    const double device = (double)(device_ns[1] - device_ns[0]) * 1e-3;
    check(device > host - 2000 && device < host + 2000,
          "three seconds by the device's clock: %.1f us, by the host's: %.1f us", device, host);
    weir_queue_destroy(&queue);
}

// The cost of progress words, which [cuda] attribute_faults writes after every launch: launches without one and
// with one, in turns.

enum {
    BATCH = 200,
    ROUNDS = 11,
};

// Nanoseconds per launch.
static double time_launches(const struct bench *bench)
{
    const uint64_t start_ns = weir_clock_now_ns();
    for (uint32_t i = 0; i < BATCH; i++)
        WEIR_IGNORE(weir_queue_launch(bench->queue, bench->iota, weir_dim(1, 1, 1),
                                      weir_dim(64, 1, 1), weir_out(bench->memory, 0, 256), 3u,
                                      64u));
    const uint64_t took = weir_clock_now_ns() - start_ns;
    WEIR_IGNORE(weir_queue_sync(bench->queue, WEIR_FOREVER));
    return (double)took / BATCH;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_words(const struct bench *bench)
{
    struct bench attributed;
    double times[2][ROUNDS];
    if (!start_with(&attributed, "[cuda]\nattribute_faults = 1\n")) {
        check(false, "opening the device with attribute_faults = 1");
        return;
    }
    for (int i = -1; i < ROUNDS; i++) { // the first one warms up
        times[0][i < 0 ? 0 : i] = time_launches(bench);
        times[1][i < 0 ? 0 : i] = time_launches(&attributed);
    }
    for (int i = 0; i < 2; i++)
        qsort(times[i], ROUNDS, sizeof times[i][0], by_value);
    check(times[1][ROUNDS / 2] < 2 * times[0][ROUNDS / 2],
          "attribute_faults: a launch takes %.1f ns with it, %.1f without", times[1][ROUNDS / 2],
          times[0][ROUNDS / 2]);
    finish(&attributed);
}

static bool open_driver(void)
{
    char message[512];
    int version = 0;
    const char *library = getenv("WEIR_CUDA_LIBRARY");
    if (!cu_symbols_load(library ? library : "", &raw, &version, message, sizeof message)) {
        fprintf(stderr, "gpu_check: %s\n", message);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct bench bench;
    if (argc > 1 && strcmp(argv[1], "graphs") == 0) {
        if (!start(&bench))
            return 1;
        check_graphs(&bench, spin, steps_for(&bench, 400));
        finish(&bench);
        return check_failures != 0;
    }
    if (argc > 1) {
        const int status = run_mode(argv[0], argv[1], argc > 2 ? argv[2] : "");
        return status ? status : check_failures != 0;
    }
    check_killed(argv[0]);
    if (!open_driver() || !start(&bench))
        return 1;
    print_device(&bench);
    check_context(&bench);
    check_messages(&bench);
    check_waits(&bench);
    check_graphs(&bench, spin, steps_for(&bench, 400));
    check_times(&bench);
    check_words(&bench);
    finish(&bench);
    printf("%s\n", check_failures ? "FAILED" : "all checks passed");
    return check_failures != 0;
}
