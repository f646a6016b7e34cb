// Shorter forms of other calls: launches of a count and of a size, whole buffers, times, <weir/short.h>.
#include <unistd.h>

#include "kernels/conformance/conformance.h"
#include "tests/conformance/suite.h"

#define N 1000u
#define BYTES ((size_t)4 * N)

// A count that is no multiple of a block, less than one, and 0.
CONFORM_BENCH(Short, LaunchOfACount, "iota")
{
    static const uint32_t counts[] = {0, 1, 77, N};
    uint32_t out[N];

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const uint32_t count = counts[i];
        const uint32_t none = 9;
        ASSERT_OK(weir_queue_fill(x->queue, x->a, 0, BYTES, &none, sizeof none));
        ASSERT_OK(
            weir_queue_launch_count(x->queue, x->kernel, count, weir_whole_out(x->a), 5u, count));
        LAUNCH(x, weir_dim(0, 1, 1), weir_dim(32, 1, 1), weir_whole_out(x->a), 8u, N); // nothing
        ASSERT_OK(weir_download(x->queue, out, x->a, 0, BYTES));
        for (uint32_t j = 0; x->runs && j < N; j++)
            ASSERT_UINT_EQ(out[j], j < count ? 5 + j : 9);
    }
    const struct weir_argument arguments[] = {weir_whole_out(x->a), weir__argument_u32(1),
                                              weir__argument_u32(N)};
    ASSERT_OK(weir_queue_launch_count_array(x->queue, x->kernel, N, arguments, 3));
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, BYTES));
    if (x->runs)
        EXPECT_UINT_EQ(out[N - 1], N);
    EXPECT_INVALID(weir_queue_launch_count(x->queue, x->kernel, SIZE_MAX, weir_whole_out(x->a), 5u,
                                           N),
                   "a grid has at most");
    EXPECT_INVALID(weir_queue_launch_count(x->queue, NULL, 1, weir_whole_out(x->a), 5u, N),
                   "kernel");
    EXPECT_INVALID(weir_queue_launch_count(NULL, x->kernel, 1, weir_whole_out(x->a), 5u, N),
                   "queue");
}

// Each of the work-items sees its own index, and sizes whose product is what was asked for; those
// beyond write nothing.
static void expect_items(struct fixture *f, struct bench *x, struct weir_extent items)
{
    enum {
        WORDS = 12,
        MOST = 240
    };
    static const uint32_t none = 0x99999999u;
    static uint32_t out[WORDS * (MOST + 1)];
    const uint32_t height = items.y ? items.y : 1, depth = items.z ? items.z : 1;
    const uint32_t count = items.x * height * depth;
    own_buffer memory = conform_device_buffer(f, sizeof out);
    ASSERT_UINT_LE(count, MOST);
    ASSERT_OK(weir_queue_fill(x->queue, memory, 0, sizeof out, &none, sizeof none));
    ASSERT_OK(weir_queue_launch_global(x->queue, x->kernel, items, weir_whole_out(memory)));
    ASSERT_OK(weir_download(x->queue, out, memory, 0, sizeof out));
    for (uint32_t at = 0; at < count; at++) {
        const uint32_t *item = out + WORDS * at;
        const uint32_t sizes[] = {items.x, height, depth};
        const uint32_t ids[] = {at % items.x, at / items.x % height, at / items.x / height};
        for (int axis = 0; axis < 3; axis++) {
            ASSERT_UINT_EQ(item[axis], ids[axis]);
            ASSERT_UINT_EQ(item[6 + axis] * item[9 + axis], sizes[axis]);
        }
    }
    for (size_t i = WORDS * (size_t)count; i < sizeof out / sizeof *out; i++)
        ASSERT_UINT_EQ(out[i], none);
}

CONFORM_BENCH(Short, LaunchOfAGlobalSize, "geometry")
{
    CONFORM_NEEDS_KERNELS(f);
    expect_items(f, x, weir_dim(1, 0, 0));
    expect_items(f, x, weir_dim(97, 1, 1));
    expect_items(f, x, weir_dim(240, 1, 1));
    expect_items(f, x, weir_dim(15, 11, 0));
    expect_items(f, x, weir_dim(8, 6, 5));
    expect_items(f, x, weir_dim(0, 6, 5));
}

// A large prime number has no block but one of 1 work-item. The kernel compares, so that it may run.
CONFORM_BENCH(Short, LaunchOfAPrimeGlobalSize, "iota")
{
    const struct weir_extent prime = {1000003, 1, 1};
    if (weir_kernel_get_info(x->kernel)->preferred_block_items > 1)
        EXPECT_INVALID(weir_queue_launch_global(x->queue, x->kernel, prime, weir_whole_out(x->a),
                                                5u, N),
                       "1000003×1×1 work-items the largest is 1×1×1");
    else
        EXPECT_OK(
            weir_queue_launch_global(x->queue, x->kernel, prime, weir_whole_out(x->a), 5u, N));
    const struct weir_argument arguments[] = {weir_whole_out(x->a), weir__argument_u32(5),
                                              weir__argument_u32(N)};
    EXPECT_OK(weir_queue_launch_global_array(x->queue, x->kernel, weir_dim(N, 1, 1), arguments, 3));
    EXPECT_INVALID(weir_queue_launch_global(x->queue, NULL, prime, weir_whole_out(x->a)), "kernel");
    EXPECT_INVALID(weir_queue_launch_global(NULL, x->kernel, prime, weir_whole_out(x->a)), "queue");
    const int line = __LINE__ + 1;
    EXPECT_INVALID(weir_queue_launch_global(x->queue, x->kernel, weir_dim(8, 1, 1), 5u),
                   "argument");
    EXPECT_INT_EQ(weir_last_error()->line, line);
}

// Blocks of 8 x 4 x 2.
CONFORM_BENCH(Short, LaunchOfAGlobalSizeOfARequiredBlock, "required_block")
{
    uint32_t out[N];
    ASSERT_OK(
        weir_queue_launch_global(x->queue, x->kernel, weir_dim(16, 4, 4), weir_whole_out(x->a)));
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, BYTES));
    for (uint32_t i = 0; conform_kernels_run(f) && i < 256; i++)
        ASSERT_UINT_EQ(out[i], 1000 * (i / 64) + i % 64);
    EXPECT_OK(
        weir_queue_launch_global(x->queue, x->kernel, weir_dim(0, 1, 1), weir_whole_out(x->a)));
    EXPECT_INVALID(weir_queue_launch_global(x->queue, x->kernel, weir_dim(16, 4, 3),
                                            weir_whole_out(x->a)),
                   "16×4×3 work-items are not whole blocks of 8×4×2");
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_queue_launch_count()");
    EXPECT_INVALID(weir_queue_launch_count(x->queue, x->kernel, 64, weir_whole_out(x->a)),
                   "requires blocks of more than one dimension");
}

static uint32_t first_of(weir_buffer *host)
{
    uint32_t *words, first;
    if (!IS_OK(weir_host_whole(host, WEIR_ACCESS_READ, &words)))
        return 0;
    first = words[0];
    EXPECT_OK(weir_host_whole_end(host, WEIR_ACCESS_READ));
    return first;
}

// What the other queue has at the moment is waited for, and a pair holds what was copied.
CONFORM(Short, AfterAnotherQueue)
{
    const uint32_t value = 7;
    own_queue work = conform_queue(f, "work");
    own_queue copy = conform_queue(f, "copy");
    own_buffer memory = NULL;
    own_buffer host = NULL;
    uint32_t *words;

    ASSERT_OK(weir_buffer_pair(f->device, BYTES, &memory, &host));
    EXPECT_INT_EQ(weir_buffer_placement(memory), WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(weir_buffer_placement(host), WEIR_PLACE_HOST);
    EXPECT_UINT_EQ(weir_buffer_size(memory), BYTES);
    EXPECT_UINT_EQ(weir_buffer_size(host), BYTES);
    ASSERT_OK(weir_host_whole(host, WEIR_ACCESS_WRITE, &words));
    words[0] = 1;
    ASSERT_OK(weir_host_whole_end(host, WEIR_ACCESS_WRITE));

    own_gate gate = gate_on(work);
    ASSERT_OK(weir_queue_fill(work, memory, 0, BYTES, &value, sizeof value));
    ASSERT_OK(weir_queue_after(copy, work));
    ASSERT_OK(weir_queue_copy(copy, host, 0, memory, 0, BYTES));
    EXPECT_INT_EQ(weir_queue_sync(copy, 0), WEIR_TIMEOUT);
    gate_open(gate);
    ASSERT_SYNC(copy);
    EXPECT_UINT_EQ(first_of(host), value);

    const int line = __LINE__ + 1;
    EXPECT_INVALID(weir_queue_after(copy, NULL), "queue");
    EXPECT_INT_EQ(weir_last_error()->line, line);
    EXPECT_INVALID(weir_queue_after(NULL, copy), "queue");
    EXPECT_INVALID(weir_host_whole(memory, WEIR_ACCESS_READ, &words), "DEVICE");
    EXPECT_NULL(words);
    EXPECT_INVALID(weir_host_whole(NULL, WEIR_ACCESS_READ, &words), "buffer");
    weir_buffer *none[2] = {memory, host};
    EXPECT_INVALID(weir_buffer_pair(f->device, 0, &none[0], &none[1]), "0 bytes");
    EXPECT_NULL(none[0]);
    EXPECT_NULL(none[1]);
}

CONFORM(Short, ZeroedEventsWhereTheProgramSaysSo)
{
    const struct weir_event none = {0, 0};
    own_queue first = conform_queue(f, "first");
    own_queue second = conform_queue(f, "second");

    EXPECT_OK(weir_queue_wait_if(second, none));
    EXPECT_OK(weir_event_sync_if(none, HANG_GUARD_NS));
    EXPECT_INVALID(weir_queue_wait_if(NULL, none), "queue");
    EXPECT_INVALID(weir_queue_wait_if(second, ((struct weir_event){0, 1})), "event");
    own_gate gate = gate_on(first);
    const struct weir_event event = test_record(first);
    EXPECT_INT_EQ(weir_event_sync_if(event, 0), WEIR_TIMEOUT);
    ASSERT_OK(weir_queue_wait_if(second, event));
    EXPECT_INT_EQ(weir_queue_sync(second, 0), WEIR_TIMEOUT);
    gate_open(gate);
    EXPECT_SYNC(second);
    EXPECT_OK(weir_event_sync_if(event, 0));
}

// A new file with that text.
static void write_file(char path[1024], const char *text, size_t size)
{
    snprintf(path, 1024, "%s/kernel.cl", weir_test_temp_dir());
    FILE *file = fopen(path, "w");
    EXPECT_TRUE(file && fwrite(text, 1, size, file) == size && fclose(file) == 0);
}

CONFORM_BENCH(Short, KernelsOfBundlesAndFiles, "iota")
{
    static const char text[] = "__kernel void clear(__global uint *out)\n"
                               "{\n"
                               "    out[get_global_id(0)] = 0u;\n"
                               "}\n";
    own_kernel loaded = NULL;
    own_kernel put = NULL;
    char path[1024];
    uint32_t value;

    ASSERT_OK(weir_kernel_load(f->device, &conformance_kernels, "iota", &loaded));
    ASSERT_OK(weir_queue_launch_count(x->queue, loaded, N, weir_whole_out(x->a), 3u, N));
    ASSERT_OK(weir_download(x->queue, &value, x->a, 4, sizeof value));
    if (conform_kernels_run(f))
        EXPECT_UINT_EQ(value, 4);
    weir_kernel *none = loaded;
    EXPECT_REFUSED(weir_kernel_load(f->device, &conformance_kernels, "iotas", &none),
                   WEIR_ERROR_NOT_FOUND, "'iota'");
    EXPECT_NULL(none);
    EXPECT_REFUSED(weir_kernel_load_file(f->device, "/no/such/file.cl", "clear", &none),
                   WEIR_ERROR_IO, "/no/such/file.cl");
    EXPECT_NULL(none);

    write_file(path, text, sizeof text);
    EXPECT_INVALID(weir_kernel_load_file(f->device, path, "clear", &none), "zero byte");
    ASSERT_INT_EQ(truncate(path, sizeof text - 1), 0);
    const weir_status status = weir_kernel_load_file(f->device, path, "clear", &put);
    EXPECT_INVALID(weir_program_create(f->device,
                                       WEIR_PARAMS(weir_program, .path = path, .source = text),
                                       &(weir_program *){NULL}),
                   "path and source");
    EXPECT_INVALID(weir_program_create(f->device,
                                       WEIR_PARAMS(weir_program, .path = path,
                                                   .bundle = &conformance_kernels),
                                       &(weir_program *){NULL}),
                   "bundle and source");
    EXPECT_INT_EQ(unlink(path), 0); // the kernel needs it no more
    CONFORM_COMPILED(status);
    ASSERT_OK(weir_queue_launch_global(x->queue, put, weir_dim(1, 1, 1), weir_whole_out(x->a)));
    ASSERT_OK(weir_download(x->queue, &value, x->a, 0, sizeof value));
    if (conform_kernels_run(f))
        EXPECT_UINT_EQ(value, 0);
}

CONFORM(Short, TimeOfOneOperation)
{
    CONFORM_NEEDS_TIMES(f);
    own_queue queue = conform_timed_queue(f, "timed");
    own_queue untimed = conform_queue(f, "untimed");
    own_buffer memory = conform_device_buffer(f, BYTES);
    const uint32_t value = 7;
    uint32_t found;
    int64_t ns = -1;

    ASSERT_OK(weir_queue_timed(queue,
                               weir_queue_fill(queue, memory, 0, BYTES, &value, sizeof value),
                               &ns));
    EXPECT_TRUE(ns >= 0);
    ASSERT_OK(weir_download(queue, &found, memory, 0, sizeof found));
    EXPECT_UINT_EQ(found, value);
    EXPECT_REFUSED(weir_queue_timed(queue,
                                    weir_queue_fill(queue, memory, 1, 4, &value, sizeof value),
                                    &ns),
                   WEIR_ERROR_INVALID, "multiple");
    EXPECT_INT_EQ(ns, 0);
    EXPECT_INVALID(weir_queue_timed(untimed, weir_queue_flush(untimed), &ns), "timing");
    EXPECT_INT_EQ(ns, 0);
    EXPECT_INVALID(weir_queue_timed((weir_queue *)NULL, weir_queue_flush(queue), &ns), "queue");
}

// Devices of the default runtime share it, and the last one closes it. It is opened by the suite's
// environment, as the fixture's.
CONFORM(Short, DefaultRuntime)
{
    weir_device *devices[3];
    weir_queue *queues[2];
    ASSERT_OK(weir_device_open(NULL, NULL, &devices[0]));
    weir_runtime *runtime = weir_device_runtime(devices[0]);
    EXPECT_STR_EQ(weir_runtime_backend(runtime), weir_runtime_backend(f->runtime));
    EXPECT_TRUE(runtime != f->runtime);
    ASSERT_OK(weir_device_open_index(NULL, 0, &devices[1]));
    EXPECT_TRUE(weir_device_runtime(devices[1]) == runtime);
    ASSERT_OK(weir_device_open_index(runtime, 0, &devices[2]));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weir_queue_create(devices[i], NULL, &queues[i]));
    EXPECT_OK(weir_queue_after(queues[0], queues[1]));
    EXPECT_SYNC(queues[0]);
    for (int i = 0; i < 2; i++)
        weir_queue_destroy(&queues[i]);
    weir_runtime *same = runtime;
    EXPECT_INVALID(weir_close(&same), "open");
    EXPECT_OK(weir_device_close(&devices[0]));
    EXPECT_OK(weir_device_close(&devices[1]));
    EXPECT_UINT_EQ(weir_device_count(runtime), weir_device_count(f->runtime)); // it is still there
    EXPECT_OK(weir_device_close(&devices[2]));

    // A failed call leaves nothing open, and the next one opens it again.
    const int line = __LINE__ + 1;
    EXPECT_REFUSED(weir_device_open_index(NULL, 4096, &devices[0]), WEIR_ERROR_NO_DEVICE, "4096");
    EXPECT_INT_EQ(weir_last_error()->line, line);
    EXPECT_NULL(devices[0]);
    ASSERT_OK(weir_device_open(NULL, WEIR_PARAMS(weir_device, .label = "again"), &devices[0]));
    EXPECT_OK(weir_device_close(&devices[0]));
    EXPECT_OK(weir_device_close(&devices[0]));
}

// The same device opened twice has two timelines.
CONFORM(Short, TimesOfTwoDevices)
{
    own_device other = NULL;
    struct weir_event events[2];
    own_queues queues = {NULL};
    int64_t elapsed;
    CONFORM_NEEDS_TIMES(f);
    ASSERT_OK(weir_device_open(f->runtime, WEIR_PARAMS(weir_device, .select = "0"), &other));
    queues[0] = conform_timed_queue(f, "here");
    queues[1] = conform_timed_queue(&(struct fixture){.device = other}, "there");
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weir_queue_record(queues[i], &events[i]));
        ASSERT_OK(weir_event_sync(events[i], HANG_GUARD_NS));
    }
    EXPECT_INVALID(weir_event_elapsed_ns(events[0], events[1], &elapsed), "of two devices");
    EXPECT_INT_EQ(elapsed, 0);
}
