// Occupancy, and launches whose blocks wait for each other. A device whose blocks cannot has grids of one
// block, on which the kernels do the same.

#include "kernels/cooperative/cooperative.h"
#include "tests/conformance/suite.h"

#define N 100000u
#define BLOCK 32u

static const struct weir_extent block = {BLOCK, 1, 1};
static const struct weir_extent one = {1, 1, 1};

struct rig {
    weir_queue *queue;
    weir_program *program;
    weir_kernel *kernel;
    uint32_t most; // blocks of a cooperative launch of it
};

static struct rig make_rig(struct fixture *f, const char *kernel, size_t local_bytes)
{
    struct rig rig = {.queue = conform_queue(f, "q")};
    EXPECT_OK(weir_program_create(f->device,
                                  WEIR_PARAMS(weir_program, .label = "cooperative",
                                              .bundle = &cooperative_kernels),
                                  &rig.program));
    EXPECT_OK(weir_kernel_create(rig.program, kernel, &rig.kernel));
    EXPECT_OK(weir_kernel_cooperative_blocks(rig.kernel, block, local_bytes, &rig.most));
    EXPECT_UINT_GE(rig.most, 1);
    return rig;
}

static void destroy_rig(struct rig *rig)
{
    EXPECT_SYNC(rig->queue);
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    weir_queue_destroy(&rig->queue);
}

#define own_rig OWN(destroy_rig) struct rig

// A test whose body gets a rig `x` of that kernel too.
#define CONFORM_RIG(suite_, name_, kernel_, bytes_) \
    CONFORM_OF(suite_, name_, struct rig, x, make_rig(f, kernel_, bytes_), destroy_rig)

// Launches `exchange`.
static weir_status exchange(weir_queue *queue, const struct rig *x, struct weir_extent grid,
                            weir_buffer *numbers, weir_buffer *count, uint32_t rounds)
{
    return weir_queue_launch_cooperative(queue, x->kernel, grid, block,
                                         weir_inout(numbers, 0, weir_buffer_size(numbers)),
                                         weir_inout(count, 0, 4), rounds);
}

CONFORM_RIG(Cooperative, SumInOneLaunch, "sum", 4 * BLOCK)
{
    CONFORM_NEEDS_KERNELS(f);
    static uint32_t values[N];
    uint32_t expected = 0;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < N; i++)
        expected += values[i] = i * 2654435761u;
    own_buffer in = conform_device_buffer(f, sizeof values);
    own_buffer partial = conform_device_buffer(f, (size_t)4 * x->most);
    own_buffer out = conform_device_buffer(f, 4);
    ASSERT_OK(weir_upload(x->queue, in, 0, values, sizeof values));
    ASSERT_OK(weir_queue_launch_cooperative(x->queue, x->kernel, weir_dim(x->most, 1, 1), block,
                                            weir_in(in, 0, sizeof values),
                                            weir_inout(partial, 0, (size_t)4 * x->most),
                                            weir_out(out, 0, 4), weir_local((size_t)4 * BLOCK), N));
    ASSERT_OK(weir_download(x->queue, &sum, out, 0, 4));
    EXPECT_UINT_EQ(sum, expected);
}

// Of all grids from one block to the largest.
static void expect_exchange(struct fixture *f, struct rig *x, uint32_t blocks, uint32_t rounds)
{
    const size_t bytes = (size_t)4 * blocks * BLOCK;
    uint32_t wrong = 0;
    OWN_MEMORY uint32_t *numbers = calloc(1, bytes);
    own_buffer memory = conform_device_buffer(f, bytes);
    own_buffer count = conform_device_buffer(f, 4);
    ASSERT_TRUE(numbers);
    ASSERT_OK(weir_upload(x->queue, memory, 0, numbers, bytes));
    ASSERT_OK(weir_upload(x->queue, count, 0, &wrong, 4));
    ASSERT_OK(exchange(x->queue, x, weir_dim(blocks, 1, 1), memory, count, rounds));
    ASSERT_OK(weir_download(x->queue, numbers, memory, 0, bytes));
    ASSERT_OK(weir_download(x->queue, &wrong, count, 0, 4));
    EXPECT_UINT_EQ(wrong, 0);
    for (uint32_t i = 0; i < blocks * BLOCK; i++)
        ASSERT_UINT_EQ(numbers[i], (rounds - 1) * 2654435761u + i);
}

CONFORM_RIG(Cooperative, NoBlockLeavesTheBarrierBeforeAllHaveCome, "exchange", 0)
{
    CONFORM_NEEDS_KERNELS(f);
    expect_exchange(f, x, 1, 20);
    for (uint32_t blocks = 2; blocks < x->most; blocks = 3 * blocks + 1)
        expect_exchange(f, x, blocks, 50);
    expect_exchange(f, x, x->most, 200);
    expect_exchange(f, x, x->most, 1); // an odd number of barriers, and then again
    expect_exchange(f, x, x->most, 3);
}

// Each launch has a barrier of its own.
CONFORM_RIG(Cooperative, TwoLaunchesAtOnce, "exchange", 0)
{
    CONFORM_NEEDS_KERNELS(f);
    enum {
        QUEUES = 2,
        LAUNCHES = 8
    };
    own_queues queues = {NULL};
    own_buffers numbers = {NULL};
    own_buffers counts = {NULL};
    const uint32_t blocks = x->most > 1 ? x->most / 2 : 1;
    const size_t bytes = (size_t)4 * blocks * BLOCK;
    for (int i = 0; i < QUEUES; i++) {
        const uint32_t zero = 0;
        queues[i] = conform_queue(f, i ? "second" : "first");
        numbers[i] = conform_device_buffer(f, bytes);
        counts[i] = conform_device_buffer(f, 4);
        ASSERT_OK(weir_queue_fill(queues[i], counts[i], 0, 4, &zero, 4));
    }
    for (int i = 0; i < QUEUES * LAUNCHES; i++)
        ASSERT_OK(exchange(queues[i % QUEUES], x, weir_dim(blocks, 1, 1), numbers[i % QUEUES],
                           counts[i % QUEUES], 100u));
    for (int i = 0; i < QUEUES; i++) {
        uint32_t wrong = 1;
        ASSERT_OK(weir_download(queues[i], &wrong, counts[i], 0, 4));
        EXPECT_UINT_EQ(wrong, 0);
    }
}

CONFORM_RIG(Cooperative, InGraphs, "exchange", 0)
{
    uint32_t node = 0;
    uint32_t wrong = 0;
    const struct weir_extent grid = weir_dim(x->most, 1, 1);
    const size_t bytes = (size_t)4 * x->most * BLOCK;
    own_buffer numbers = conform_device_buffer(f, bytes);
    own_buffer count = conform_device_buffer(f, 4);
    const uint32_t rounds = 30;
    const struct weir_argument arguments[] = {weir_inout(numbers, 0, bytes),
                                              weir_inout(count, 0, 4), weir_value(&rounds, 4)};
    ASSERT_OK(weir_upload(x->queue, count, 0, &wrong, 4));
    ASSERT_OK(weir_capture_begin(x->queue));
    ASSERT_OK(exchange(x->queue, x, grid, numbers, count, 20u));
    ASSERT_OK(weir_capture_node(x->queue, &node));
    own_graph graph = conform_end(x->queue);
    ASSERT_OK(weir_queue_graph(x->queue, graph));
    ASSERT_OK(weir_queue_graph(x->queue, graph));
    // The node stays cooperative.
    ASSERT_OK(weir_graph_set_launch(graph, node, grid, block, arguments, 3));
    EXPECT_REFUSED(weir_graph_set_launch(graph, node, weir_dim(x->most + 1, 1, 1), block, arguments,
                                         3),
                   WEIR_ERROR_UNSUPPORTED, "can wait for each other");
    ASSERT_OK(weir_queue_graph(x->queue, graph));
    ASSERT_OK(weir_download(x->queue, &wrong, count, 0, 4));
    EXPECT_UINT_EQ(wrong, 0);
    if (conform_kernels_run(f)) {
        uint32_t number = 0;
        ASSERT_OK(weir_download(x->queue, &number, numbers, bytes - 4, 4));
        EXPECT_UINT_EQ(number, (rounds - 1) * 2654435761u + x->most * BLOCK - 1);
    }
}

CONFORM_RIG(Cooperative, WhatWouldNeverEndIsRefused, "exchange", 0)
{
    ASSERT_TRUE(x->kernel != NULL);
    const size_t bytes = (size_t)4 * (x->most + 1) * BLOCK;
    own_buffer numbers = conform_device_buffer(f, bytes);
    own_buffer count = conform_device_buffer(f, 4);
    EXPECT_UINT_EQ(weir_kernel_get_signature(x->kernel)->grid_barrier, 1);
    EXPECT_INVALID(weir_queue_launch(x->queue, x->kernel, one, block, weir_inout(numbers, 0, bytes),
                                     weir_inout(count, 0, 4), 1u),
                   "weir_grid_barrier()");
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_queue_launch_cooperative()");
    EXPECT_REFUSED(exchange(x->queue, x, weir_dim(x->most + 1, 1, 1), numbers, count, 1u),
                   WEIR_ERROR_UNSUPPORTED, "can wait for each other");
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_kernel_cooperative_blocks()");
    EXPECT_REFUSED(exchange(x->queue, x, weir_dim(65535, 65535, 65535), numbers, count, 1u),
                   WEIR_ERROR_UNSUPPORTED, "can wait for each other");
    // Neither has failed the queue.
    EXPECT_OK(exchange(x->queue, x, one, numbers, count, 1u));
    EXPECT_OK(exchange(x->queue, x, weir_dim(0, 1, 1), numbers, count, 1u));
    EXPECT_INVALID(weir_queue_launch_cooperative(NULL, x->kernel, one, block, 1u), "queue");
    EXPECT_INVALID(weir_queue_launch_cooperative(x->queue, NULL, one, block, 1u), "kernel");
    EXPECT_INVALID(weir_queue_launch_cooperative_array(x->queue, x->kernel, one, block, NULL, 3),
                   "arguments");
}

// A kernel without a barrier is launched by either call, the one beside it or not.
CONFORM_RIG(Cooperative, KernelsWithoutABarrier, "clear", 0)
{
    CONFORM_NEEDS_KERNELS(f);
    uint32_t numbers[2 * BLOCK];
    EXPECT_UINT_EQ(weir_kernel_get_signature(x->kernel)->grid_barrier, 0);
    memset(numbers, 0xff, sizeof numbers);
    own_buffer memory = conform_device_buffer(f, sizeof numbers);
    ASSERT_OK(weir_upload(x->queue, memory, 0, numbers, sizeof numbers));
    EXPECT_OK(weir_queue_launch_cooperative(x->queue, x->kernel, one, block,
                                            weir_out(memory, 0, sizeof numbers)));
    ASSERT_OK(weir_download(x->queue, numbers, memory, 0, sizeof numbers));
    EXPECT_UINT_EQ(numbers[0], 0);
    EXPECT_UINT_EQ(numbers[BLOCK - 1], 0);
    EXPECT_UINT_EQ(numbers[BLOCK], UINT32_MAX);
    EXPECT_OK(weir_queue_launch(x->queue, x->kernel, weir_dim(2, 1, 1), block,
                                weir_out(memory, 0, sizeof numbers)));
    ASSERT_OK(weir_download(x->queue, numbers, memory, 0, sizeof numbers));
    EXPECT_UINT_EQ(numbers[2 * BLOCK - 1], 0);
}

// Source that is compiled at run time. All kernels of a program that calls the barrier are for cooperative launches.
static const char source[] =
    "void both(void) { weir_grid_barrier(); }\n"
    "__kernel void exchange(__global uint *numbers, __global uint *wrong, uint rounds)\n"
    "{\n"
    "    uint items = (uint)get_global_size(0), item = (uint)get_global_id(0);\n"
    "    for (uint round = 0; round < rounds; round++) {\n"
    "        uint other = (item + (uint)get_local_size(0)) % items;\n"
    "        numbers[item] = round * 2654435761u + item;\n"
    "        both();\n"
    "        if (numbers[other] != round * 2654435761u + other)\n"
    "            atomic_add(wrong, 1u);\n"
    "        both();\n"
    "    }\n"
    "}\n"
    "__kernel void clear(__global uint *numbers) { numbers[get_global_id(0)] = 0; }\n";

CONFORM(Cooperative, SourceAtRunTime)
{
    CONFORM_NEEDS_KERNELS(f);
    own_rig x = {.queue = conform_queue(f, "q")};

    weir_status status =
        weir_program_create(f->device, WEIR_PARAMS(weir_program, .source = source), &x.program);
    if (status == WEIR_ERROR_UNSUPPORTED)
        CONFORM_SKIP("the device compiles no source: %s", weir_last_error_text());
    ASSERT_OK(status);
    ASSERT_OK(weir_kernel_create(x.program, "clear", &x.kernel));
    EXPECT_UINT_EQ(weir_kernel_get_signature(x.kernel)->grid_barrier, 1);
    weir_kernel_destroy(&x.kernel);
    ASSERT_OK(weir_kernel_create(x.program, "exchange", &x.kernel));
    EXPECT_UINT_EQ(weir_kernel_get_signature(x.kernel)->grid_barrier, 1);
    ASSERT_OK(weir_kernel_cooperative_blocks(x.kernel, block, 0, &x.most));
    expect_exchange(f, &x, x.most, 100);
    EXPECT_INVALID(weir_queue_launch_array(x.queue, x.kernel, one, block, NULL, 0), "arguments");
}

CONFORM_RIG(Occupancy, IsWithinTheDevicesLimits, "clear", 0)
{
    struct weir_occupancy full, half;
    ASSERT_NOT_NULL(x->kernel);
    const struct weir_kernel_info *info = weir_kernel_get_info(x->kernel);
    const uint32_t items = info->max_block_items < f->limits->max_block.x ? info->max_block_items
                                                                          : f->limits->max_block.x;
    ASSERT_OK(weir_kernel_occupancy(x->kernel, weir_dim(items, 1, 1), 0, &full));
    ASSERT_OK(weir_kernel_occupancy(x->kernel, weir_dim((items + 1) / 2, 0, 0), 0, &half));
    EXPECT_TRUE(WEIR_HAS(&full, cooperative_blocks));
    EXPECT_UINT_EQ(full.compute_units, f->limits->compute_units);
    EXPECT_UINT_GE(half.unit_blocks, full.unit_blocks);
    EXPECT_UINT_GE(full.cooperative_blocks, 1);
    EXPECT_TRUE(full.cooperative_blocks == 1 ||
                full.cooperative_blocks <= full.compute_units * full.unit_blocks);
    EXPECT_UINT_GE(full.unit_items, full.unit_blocks * items);
    if (full.max_unit_items > 0)
        EXPECT_UINT_LE(full.unit_items, full.max_unit_items);
    if (full.unit_blocks == 0)
        EXPECT_INT_EQ(full.limit, WEIR_OCCUPANCY_UNKNOWN);
}

CONFORM_RIG(Occupancy, SuggestsABlockThatCanBeLaunched, "clear", 0)
{
    uint32_t items = 0;
    uint32_t blocks = 0;
    const uint32_t memory = 4096;

    ASSERT_NOT_NULL(x->kernel);
    const struct weir_kernel_info *info = weir_kernel_get_info(x->kernel);
    ASSERT_OK(weir_kernel_suggest_block(x->kernel, 0, &items));
    EXPECT_UINT_GE(items, 1);
    EXPECT_UINT_LE(items, info->max_block_items);
    if (info->preferred_block_items > 0 && info->preferred_block_items <= info->max_block_items)
        EXPECT_UINT_EQ(items % info->preferred_block_items, 0);
    EXPECT_OK(weir_kernel_cooperative_blocks(x->kernel, weir_dim(items, 1, 1), memory, &blocks));
    EXPECT_OK(weir_kernel_suggest_block(x->kernel, memory, &items));

    own_kernel fixed = conform_kernel(f, "required_block");
    EXPECT_OK(weir_kernel_suggest_block(fixed, 0, &items));
    EXPECT_UINT_EQ(items, 8 * 4 * 2);
}

CONFORM_RIG(Occupancy, RefusesWhatALaunchWould, "clear", 0)
{
    struct weir_occupancy occupancy;
    uint32_t count = 7;
    const size_t too_much = (size_t)f->limits->max_local_bytes + 1;
    const uint32_t items = f->limits->max_block.x;
    EXPECT_REFUSED(weir_kernel_occupancy(x->kernel, weir_dim(0, 1, 1), 0, &occupancy),
                   WEIR_ERROR_INVALID, "block.x");
    EXPECT_UINT_EQ(occupancy.compute_units, 0);
    EXPECT_REFUSED(weir_kernel_cooperative_blocks(x->kernel, weir_dim(items + 1, 1, 1), 0, &count),
                   WEIR_ERROR_INVALID, "block.x");
    EXPECT_UINT_EQ(count, 0);
    EXPECT_REFUSED(weir_kernel_cooperative_blocks(x->kernel, weir_dim(items, 2, 2), 0, &count),
                   WEIR_ERROR_INVALID, "work-items");
    EXPECT_REFUSED(weir_kernel_occupancy(x->kernel, one, too_much, &occupancy), WEIR_ERROR_INVALID,
                   "local memory");
    EXPECT_REFUSED(weir_kernel_suggest_block(x->kernel, too_much, &count), WEIR_ERROR_INVALID,
                   "local memory");
    EXPECT_UINT_EQ(count, 0);
    EXPECT_REFUSED(weir_kernel_occupancy(NULL, one, 0, &occupancy), WEIR_ERROR_INVALID, "kernel");
    EXPECT_REFUSED(weir_kernel_cooperative_blocks(NULL, one, 0, &count), WEIR_ERROR_INVALID,
                   "kernel");
    EXPECT_REFUSED(weir_kernel_cooperative_blocks(x->kernel, one, 0, NULL), WEIR_ERROR_INVALID,
                   "out_blocks");
    EXPECT_REFUSED(weir_kernel_suggest_block(NULL, 0, &count), WEIR_ERROR_INVALID, "kernel");
}

// Each array of local memory begins at a multiple of 16 bytes, so two whose sum is the limit may not fit.
CONFORM(Occupancy, LocalArraysAreAligned)
{
    own_kernel kernel = conform_kernel(f, "two_locals");
    const size_t second = f->limits->argument_alignment_bytes > 4 * BLOCK
                              ? f->limits->argument_alignment_bytes
                              : 4 * BLOCK;
    own_buffer memory = conform_device_buffer(f, second + 4 * BLOCK);
    const size_t limit = (size_t)f->limits->max_local_bytes;
    const size_t odd = 4 * BLOCK + 1;

    EXPECT_INVALID(weir_queue_launch(f->queue, kernel, one, block, weir_in(memory, 0, 4 * BLOCK),
                                     weir_out(memory, second, 4 * BLOCK), weir_local(odd),
                                     weir_local(limit - odd)),
                   "'lanes', asks for");
    EXPECT_SYNC(f->queue);
}
