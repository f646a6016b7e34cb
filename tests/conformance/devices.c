// One program for several devices: two of the runtime, or the same one opened twice, and one of another
// runtime.

#include "kernels/conformance/conformance.h"
#include "tests/conformance/suite.h"

#define N 1000u
#define BYTES ((size_t)4 * N)

static const struct weir_extent grid = {32, 1, 1};
static const struct weir_extent block = {32, 1, 1};

struct pair {
    weir_runtime *own; // NULL: all devices are of the fixture's runtime
    weir_device *devices[2];
    weir_queue *queues[2];
    weir_buffer *memory[2];
    weir_program *program;
    weir_kernel *kernel;
};

static weir_device *open_device(weir_runtime *runtime, const char *select)
{
    weir_device *device = NULL;
    EXPECT_OK(weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = select), &device));
    return device;
}

// The environment is stronger than a configuration.
static weir_status open_null(weir_runtime **out_runtime)
{
    const char *before = getenv("WEIR_BACKEND");
    OWN_MEMORY char *kept = before ? strdup(before) : NULL;
    setenv("WEIR_BACKEND", "null", 1);
    const weir_status status = weir_open(NULL, out_runtime);
    if (kept)
        setenv("WEIR_BACKEND", kept, 1);
    else
        unsetenv("WEIR_BACKEND");
    return status;
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        weir_buffer_destroy(&pair->memory[i]);
        weir_queue_destroy(&pair->queues[i]);
    }
    weir_kernel_destroy(&pair->kernel);
    weir_program_destroy(&pair->program);
    EXPECT_OK(weir_device_close(&pair->devices[1]));
    EXPECT_OK(weir_close(&pair->own));
}

#define own_pair OWN(close_pair) struct pair

static weir_status make_program(struct pair *pair, const char *source)
{
    return weir_program_create(pair->devices[0],
                               WEIR_PARAMS(weir_program, .label = "of two",
                                           .bundle = source ? NULL : &conformance_kernels,
                                           .source = source, .devices = pair->devices,
                                           .device_count = 2),
                               &pair->program);
}

static struct pair make_objects(struct pair pair)
{
    EXPECT_OK(make_program(&pair, NULL));
    EXPECT_OK(weir_kernel_create(pair.program, "iota", &pair.kernel));
    for (int i = 0; i < 2; i++) {
        struct fixture of_device = {.device = pair.devices[i]};
        pair.queues[i] = conform_queue(&of_device, i ? "second's" : "first's");
        pair.memory[i] = conform_device_buffer(&of_device, BYTES);
    }
    return pair;
}

static struct pair open_pair(struct fixture *f)
{
    const char *second = weir_device_count(f->runtime) > 1 ? "1" : "0";
    return make_objects((struct pair){.devices = {f->device, open_device(f->runtime, second)}});
}

// The second device is the null backend's, if that module is there.
#define OPEN_MIXED_PAIR(f, pair)                         \
    own_pair pair = {.devices = {(f)->device}};          \
    if (open_null(&(pair).own) != WEIR_OK)               \
        CONFORM_SKIP("the null backend is not at hand"); \
    (pair).devices[1] = open_device((pair).own, NULL)

static void expect_iota(struct pair *pair, int i, uint32_t first)
{
    uint32_t values[N];
    ASSERT_OK(weir_download(pair->queues[i], values, pair->memory[i], 0, BYTES));
    for (uint32_t at = 0; at < N; at++)
        ASSERT_UINT_EQ(values[at], first + at);
}

CONFORM(Devices, AKernelRunsOnTheQueuesOfEach)
{
    CONFORM_NEEDS_KERNELS(f);
    own_pair x = open_pair(f);
    weir_program_destroy(&x.program); // its kernels stay usable
    for (int i = 0; i < 2; i++)
        EXPECT_OK(weir_queue_launch(x.queues[i], x.kernel, grid, block,
                                    weir_out(x.memory[i], 0, BYTES), 100u * (unsigned)i, N));
    for (int i = 0; i < 2; i++)
        expect_iota(&x, i, 100u * (unsigned)i);
}

CONFORM(Devices, EachHasItsOwnFigures)
{
    own_pair x = open_pair(f);
    weir_kernel *second = weir_kernel_on(x.kernel, x.devices[1]);
    ASSERT_TRUE(second);
    EXPECT_TRUE(second != x.kernel);
    EXPECT_TRUE(weir_kernel_on(x.kernel, x.devices[0]) == x.kernel);
    EXPECT_TRUE(weir_kernel_on(second, x.devices[0]) == x.kernel);
    EXPECT_NULL(weir_kernel_on(x.kernel, NULL));
    EXPECT_NULL(weir_kernel_on(NULL, x.devices[0]));
    EXPECT_UINT_GE(weir_kernel_get_info(second)->max_block_items, 1);
    EXPECT_STR_EQ(weir_kernel_get_signature(second)->name, "iota");
    struct weir_occupancy occupancy;
    EXPECT_OK(weir_kernel_occupancy(second, block, 0, &occupancy));
    EXPECT_UINT_EQ(occupancy.compute_units, weir_device_limits(x.devices[1])->compute_units);
    // It is launched as the kernel itself is, on either queue.
    EXPECT_OK(weir_queue_launch(x.queues[0], second, grid, block, weir_out(x.memory[0], 0, BYTES),
                                0u, N));
    // And goes with it.
    weir_kernel *handle = second;
    weir_error_set(NULL);
    weir_kernel_destroy(&handle);
    EXPECT_NULL(handle);
    EXPECT_CONTAINS(weir_last_error()->message, "weir_kernel_on()");
    EXPECT_OK(weir_queue_launch(x.queues[1], second, grid, block, weir_out(x.memory[1], 0, BYTES),
                                0u, N));
    for (int i = 0; i < 2; i++)
        EXPECT_SYNC(x.queues[i]);
}

// The names of two devices may be the same.
CONFORM(Devices, AreToldApart)
{
    const bool only_one = weir_device_count(f->runtime) == 1;
    const char *expected[] = {only_one ? "as it was opened another time" : "belongs to device",
                              "of another runtime"};
    struct fixture others[2] = {*f, *f};
    weir_runtime *runtime;
    others[0].device = open_device(f->runtime, "0");
    const bool has_null = open_null(&runtime) == WEIR_OK;
    if (has_null)
        others[1].device = open_device(runtime, NULL);
    for (int i = 0; i < (has_null ? 2 : 1); i++) {
        weir_buffer *buffer = conform_device_buffer(&others[i], BYTES);
        EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 0, 1, "", 1), expected[i]);
        weir_buffer_destroy(&buffer);
        EXPECT_OK(weir_device_close(&others[i].device));
    }
    if (has_null)
        EXPECT_OK(weir_close(&runtime));
}

CONFORM(Devices, GraphsOfEach)
{
    CONFORM_NEEDS_KERNELS(f);
    own_pair x = open_pair(f);
    weir_graph *graphs[2];
    uint32_t node = 0;
    const uint32_t first = 500, count = N;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weir_capture_begin(x.queues[i]));
        EXPECT_OK(weir_queue_launch(x.queues[i], x.kernel, grid, block,
                                    weir_out(x.memory[i], 0, BYTES), 7u, N));
        EXPECT_OK(weir_capture_node(x.queues[i], &node));
        ASSERT_OK(weir_capture_end(x.queues[i], NULL, &graphs[i]));
    }
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(weir_queue_graph(x.queues[i], graphs[i]));
        expect_iota(&x, i, 7);
        const struct weir_argument arguments[] = {weir_out(x.memory[i], 0, BYTES),
                                                  weir_value(&first, 4), weir_value(&count, 4)};
        EXPECT_OK(weir_graph_set_launch(graphs[i], node, grid, block, arguments, 3));
        EXPECT_OK(weir_queue_graph(x.queues[i], graphs[i]));
        expect_iota(&x, i, first);
    }
    weir_kernel_destroy(&x.kernel); // the graphs keep it
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(weir_queue_graph(x.queues[i], graphs[i]));
        EXPECT_SYNC(x.queues[i]);
        weir_graph_destroy(&graphs[i]);
    }
}

CONFORM(Devices, OthersAreRefused)
{
    own_pair x = open_pair(f);
    weir_kernel_destroy(&x.kernel);
    x.kernel = conform_kernel(f, "iota"); // of the fixture's device alone
    EXPECT_NULL(weir_kernel_on(x.kernel, x.devices[1]));
    EXPECT_INVALID(weir_queue_launch(x.queues[1], x.kernel, grid, block,
                                     weir_out(x.memory[1], 0, BYTES), 0u, N),
                   "belongs to another device than queue 'second's'");
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_program_params.devices");
}

CONFORM(Devices, NoneClosesBeforeTheProgram)
{
    own_pair x = open_pair(f);
    EXPECT_INVALID(weir_device_close(&x.devices[1]), "of two");
    weir_program_destroy(&x.program);
    EXPECT_INVALID(weir_device_close(&x.devices[1]), "iota");
}

CONFORM(Devices, BadArrays)
{
    own_program program = NULL;
    struct weir_program_params params = {.struct_size = sizeof params,
                                         .bundle = &conformance_kernels,
                                         .device_count = 2};
    weir_kernel *kernel;
    weir_device *same[] = {f->device, f->device};
    weir_device *absent[] = {f->device, NULL};

    EXPECT_INVALID(weir_program_create(f->device, &params, &program), "devices");
    params.devices = absent;
    EXPECT_INVALID(weir_program_create(f->device, &params, &program), "devices");
    EXPECT_NULL(program);
    // A device counts once.
    params.devices = same;
    ASSERT_OK(weir_program_create(f->device, &params, &program));
    ASSERT_OK(weir_kernel_create(program, "iota", &kernel));
    EXPECT_TRUE(weir_kernel_on(kernel, f->device) == kernel);
    weir_kernel_destroy(&kernel);
    EXPECT_REFUSED(weir_kernel_create(program, "iot", &kernel), WEIR_ERROR_NOT_FOUND, "iota");
    EXPECT_NULL(kernel);
}

CONFORM(Devices, OfSeveralRuntimes)
{
    OPEN_MIXED_PAIR(f, x);
    x = make_objects(x);
    for (int i = 0; i < 2; i++)
        EXPECT_OK(weir_queue_launch(x.queues[i], x.kernel, grid, block,
                                    weir_out(x.memory[i], 0, BYTES), 9u, N));
    if (conform_kernels_run(f))
        expect_iota(&x, 0, 9);
    EXPECT_SYNC(x.queues[1]);
}

CONFORM(Devices, AFailureNamesItsDevice)
{
    OPEN_MIXED_PAIR(f, x);
    weir_error_set(NULL);
    // Where the first device has a compiler, the second has none, which would expand the macro.
    EXPECT_INT_EQ(make_program(&x, "#define COUNTS (__global uint *out, uint first, uint n)\n"
                                   "__kernel void iota COUNTS\n"
                                   "{\n"
                                   "    uint i = (uint)get_global_id(0);\n"
                                   "    if (i < n)\n"
                                   "        out[i] = first + i;\n"
                                   "}\n"),
                  WEIR_ERROR_BUILD);
    EXPECT_NULL(x.program);
    EXPECT_CONTAINS(weir_last_error()->message, "device '");
    if (conform_kernels_run(f))
        EXPECT_CONTAINS(weir_last_error()->message, "device 'null device 0'");
}
