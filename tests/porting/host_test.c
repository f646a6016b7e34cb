// The host side of docs/porting.md: what it says to write in place of CUDA's runtime API, run on a
// device. Results of kernels are looked at where the device runs kernels, which null does not.
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "tests/porting/host.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    COUNT = 256,
    BLOCK = 64
};
static const size_t bytes = COUNT * sizeof(float);

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_buffer *memory, *other; // on the device
    weir_buffer *pinned;         // on the host
    bool runs_kernels;
};

static weir_buffer *make(weir_device *device, weir_placement placement)
{
    struct weir_buffer_params params = {.struct_size = sizeof params, .size = bytes};
    weir_buffer *buffer = NULL;
    params.placement = placement;
    EXPECT_OK(weir_buffer_create(device, &params, &buffer));
    return buffer;
}

static void start_with(struct rig *rig, bool timed)
{
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &host_kernels};
    const struct weir_device_params first = {.struct_size = sizeof first,
                                             .select = "0",
                                             .default_timing = timed};
    *rig = (struct rig){0};
    EXPECT_OK(weir_open(NULL, &rig->runtime));
    EXPECT_OK(weir_device_open(rig->runtime, &first, &rig->device));
    EXPECT_OK(weir_queue_create(rig->device, NULL, &rig->queue));
    EXPECT_OK(weir_program_create(rig->device, &program, &rig->program));
    rig->memory = make(rig->device, WEIR_PLACE_DEVICE);
    rig->other = make(rig->device, WEIR_PLACE_DEVICE);
    rig->pinned = make(rig->device, WEIR_PLACE_HOST);
    rig->runs_kernels = strcmp(weir_runtime_backend(rig->runtime), "null") != 0;
}

static void start(struct rig *rig)
{
    start_with(rig, false);
}

static void finish(struct rig *rig)
{
    weir_buffer_destroy(&rig->pinned);
    weir_buffer_destroy(&rig->other);
    weir_buffer_destroy(&rig->memory);
    weir_program_destroy(&rig->program);
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

#define RIG_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, (start(rig), !weir_test_has_failed()), finish(rig))

static void count_up(float *numbers)
{
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)i;
}

// cudaGetDeviceCount(), cudaGetDeviceProperties().
RIG_TEST(Porting, Devices)
{
    struct weir_device_info info = {.struct_size = sizeof info};
    weir_runtime *runtime = rig->runtime;
    weir_device *device = rig->device;
    EXPECT_TRUE(weir_device_count(runtime) > 0);
    EXPECT_OK(weir_device_describe(runtime, 0, &info));
    const struct weir_limits *limits = weir_device_limits(device);
    EXPECT_STR_EQ(weir_device_get_info(device)->name, info.name);
    EXPECT_TRUE(limits->memory_bytes > 0);
    EXPECT_TRUE(limits->max_buffer_bytes > 0);
    EXPECT_TRUE(limits->max_block_items >= BLOCK);
    EXPECT_TRUE(limits->max_block.x >= BLOCK && limits->max_grid.x >= COUNT / BLOCK);
    EXPECT_TRUE(limits->max_local_bytes >= BLOCK * sizeof(float));
    EXPECT_TRUE(limits->compute_units > 0);
    EXPECT_TRUE(limits->argument_alignment_bytes > 0);
    EXPECT_TRUE(limits->priority_lowest <= limits->priority_highest);
    EXPECT_TRUE(limits->concurrent_kernels < 100000 && limits->unified_memory < 2 &&
                limits->copy_engines_to_device < 100 && limits->copy_engines_to_host < 100 &&
                limits->host_in_kernels < 2);
}

// cudaMemcpy() of each kind, and cudaMemset().
RIG_TEST(Porting, Copies)
{
    float numbers[COUNT], back[COUNT] = {0};
    void *pointer = NULL;
    weir_queue *queue = rig->queue;
    weir_buffer *memory = rig->memory, *other = rig->other, *pinned = rig->pinned;
    count_up(numbers);
    EXPECT_OK(weir_upload(queue, memory, 0, numbers, bytes));
    EXPECT_OK(weir_queue_copy(queue, other, 0, memory, 0, bytes));
    EXPECT_OK(weir_download(queue, back, other, 0, bytes));
    EXPECT_TRUE(back[1] == 1 && back[COUNT - 1] == COUNT - 1);

    EXPECT_OK(weir_host_begin(pinned, 0, bytes, WEIR_ACCESS_WRITE, &pointer));
    memcpy(pointer, numbers, bytes);
    EXPECT_OK(weir_host_end(pinned, 0, bytes, WEIR_ACCESS_WRITE));
    EXPECT_OK(weir_queue_copy(queue, memory, 0, pinned, 0, bytes));

    const unsigned char zero = 0;
    EXPECT_OK(weir_queue_fill(queue, memory, 0, bytes, &zero, 1));
    EXPECT_OK(weir_download(queue, back, memory, 0, bytes));
    EXPECT_TRUE(back[0] == 0 && back[COUNT - 1] == 0);

    const float one = 1;
    EXPECT_OK(weir_queue_fill(queue, memory, 0, bytes, &one, sizeof one));
    EXPECT_OK(weir_download(queue, back, memory, 0, bytes));
    EXPECT_TRUE(back[0] == 1 && back[COUNT - 1] == 1);
}

// cudaMemcpy2DAsync(), cudaMemset2DAsync(), cudaMemcpy3DAsync(): 16 rows of 16 numbers.
RIG_TEST(Porting, Rectangles)
{
    float numbers[COUNT], back[COUNT] = {0};
    const size_t pitch = 16 * sizeof(float), width = 4 * sizeof(float), height = 3, depth = 2;
    const float nine = 9;
    weir_queue *queue = rig->queue;
    count_up(numbers);
    EXPECT_OK(weir_upload(queue, rig->memory, 0, numbers, bytes));
    struct weir_plane dst = {rig->other, 0, width};
    struct weir_plane src = {rig->memory, 2 * pitch, pitch};
    EXPECT_OK(weir_queue_copy_2d(queue, dst, src, width, height));
    EXPECT_OK(weir_download(queue, back, rig->other, 0, width * height));
    EXPECT_TRUE(back[0] == 32 && back[4] == 48 && back[11] == 67);

    EXPECT_OK(weir_queue_fill_2d(queue, src, width, height, &nine, sizeof nine));
    EXPECT_OK(weir_download(queue, back, rig->memory, 0, bytes));
    EXPECT_TRUE(back[32] == 9 && back[35] == 9 && back[36] == 36 && back[64] == 9 &&
                back[80] == 80);

    struct weir_volume box = {rig->other, 0, width, width * height};
    struct weir_volume whole = {rig->memory, 0, pitch, 4 * pitch};
    EXPECT_OK(weir_queue_copy_3d(queue, box, whole, width, height, depth));
    EXPECT_OK(weir_download(queue, back, rig->other, 0, width * height * depth));
    EXPECT_TRUE(back[0] == 0 && back[4] == 16 && back[12] == 9 && back[16] == 80);
}

// cudaMemcpyToSymbol(): a buffer that the kernel has as __constant.
RIG_TEST(Porting, Symbols)
{
    static const float table[4] = {1, 10, 100, 1000};
    float back[COUNT] = {0};
    own_kernel look_up = NULL;
    own_buffer constants = NULL;
    weir_queue *queue = rig->queue;
    EXPECT_OK(weir_kernel_create(rig->program, "look_up", &look_up));
    EXPECT_OK(weir_program_constant(rig->program, "table", table, sizeof table, &constants));
    EXPECT_OK(weir_queue_launch(queue, look_up, weir_dim(COUNT / BLOCK, 1, 1),
                                weir_dim(BLOCK, 1, 1), weir_in(constants, 0, sizeof table),
                                weir_out(rig->other, 0, bytes)));
    EXPECT_OK(weir_download(queue, back, rig->other, 0, bytes));
    EXPECT_TRUE(!rig->runs_kernels || (back[0] == 1 && back[COUNT - 1] == 1000));
}

// Arguments of other kinds than buffers.
RIG_TEST(Porting, Arguments)
{
    float back = 0;
    own_kernel arguments = NULL;
    weir_queue *queue = rig->queue;
    weir_buffer *out = rig->other;
    const struct weir_extent grid = weir_dim(COUNT / BLOCK, 1, 1), block = weir_dim(BLOCK, 1, 1);
    const bool flag = true;
    EXPECT_OK(weir_kernel_create(rig->program, "arguments", &arguments));
    const weir_status launched =
        weir_queue_launch(queue, arguments, grid, block, weir_null(), flag, (char)-2,
                          weir_vector(float, 1, 2, 3, 4), weir_out(out, 0, bytes));
    EXPECT_OK(launched);
    EXPECT_OK(weir_download(queue, &back, out, 0, sizeof back));
    EXPECT_TRUE(!rig->runs_kernels || back == 1); // -1 + 1 - 2 + 3
}

// printf: on the standard output.
RIG_TEST(Porting, Printf)
{
    own_kernel say = NULL;
    EXPECT_OK(weir_kernel_create(rig->program, "say", &say));
    EXPECT_OK(weir_queue_launch(rig->queue, say, weir_dim(1, 1, 1), weir_dim(BLOCK, 1, 1), 7));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
}

// Pointers into buffers, and addresses inside device memory.
RIG_TEST(Porting, Addresses)
{
    float numbers[COUNT], back = 0;
    own_kernel follow = NULL;
    own_kernel scale = NULL;
    uint64_t address = 0;
    weir_queue *queue = rig->queue;
    weir_buffer *in = rig->memory, *out = rig->other;
    const struct weir_limits *limits = weir_device_limits(rig->device);
    const struct weir_extent grid = weir_dim(1, 1, 1), block = weir_dim(BLOCK, 1, 1);
    const size_t size = BLOCK * sizeof(float);
    count_up(numbers);
    EXPECT_OK(weir_upload(queue, in, 0, numbers, bytes));
    EXPECT_OK(weir_kernel_create(rig->program, "follow", &follow));
    EXPECT_OK(weir_kernel_create(rig->program, "scale", &scale));
    if (limits->byte_offsets) {
        EXPECT_OK(weir_queue_launch(queue, scale, grid, block, weir_in(in, 3 * sizeof(float), size),
                                    weir_out(out, 0, size), 1.0f));
        EXPECT_OK(weir_download(queue, &back, out, 0, sizeof back));
        EXPECT_TRUE(!rig->runs_kernels || back == 3);
    }
    if (limits->device_addresses) {
        EXPECT_OK(weir_buffer_address(in, &address));
        EXPECT_OK(weir_queue_launch(queue, follow, grid, block, address + 5 * sizeof(float),
                                    weir_out(out, 0, size)));
        EXPECT_OK(weir_download(queue, &back, out, 0, sizeof back));
        EXPECT_TRUE(!rig->runs_kernels || back == 5);
    }
}

// kernel<<<grid, block, shared, stream>>>(), cudaLaunchKernel(), cudaFuncGetAttributes().
RIG_TEST(Porting, Launches)
{
    float numbers[COUNT], back[COUNT] = {0};
    own_kernel kernel = NULL;
    own_kernel scale = NULL;
    weir_queue *queue = rig->queue;
    weir_buffer *in = rig->memory, *out = rig->other;
    const struct weir_extent grid = weir_dim(COUNT / BLOCK, 1, 1), block = weir_dim(BLOCK, 1, 1);
    const size_t shared = BLOCK * sizeof(float);
    count_up(numbers);
    EXPECT_OK(weir_upload(queue, in, 0, numbers, bytes));
    EXPECT_OK(weir_kernel_create(rig->program, "sum", &kernel));
    EXPECT_OK(weir_queue_launch(queue, kernel, grid, block, weir_in(in, 0, bytes),
                                weir_out(out, 0, bytes), weir_local(shared)));
    EXPECT_OK(weir_download(queue, back, out, 0, bytes));
    EXPECT_TRUE(!rig->runs_kernels || (back[0] == 2016 && back[COUNT - 1] == 14304));
    EXPECT_TRUE(weir_kernel_get_info(kernel)->max_block_items >= BLOCK);
    EXPECT_UINT_EQ(weir_kernel_get_signature(kernel)->parameter_count, 3);

    EXPECT_OK(weir_kernel_create(rig->program, "scale", &scale));
    const struct weir_argument arguments[] = {weir_in(in, 0, bytes), weir_out(out, 0, bytes),
                                              weir_value(&(float){2}, sizeof(float))};
    EXPECT_OK(weir_queue_launch_array(queue, scale, grid, block, arguments, 3));
    EXPECT_OK(weir_download(queue, back, out, 0, bytes));
    EXPECT_TRUE(!rig->runs_kernels || back[COUNT - 1] == 2 * (COUNT - 1));

    // What CUDA does not check.
    EXPECT_FAILURE(weir_queue_launch(queue, scale, grid, block, weir_in(in, 0, bytes),
                                     weir_out(out, 0, bytes), 2.0),
                   WEIR_ERROR_INVALID, "parameter 2, 'factor', is a float; it got a double");
}

// cudaOccupancyMaxActiveBlocksPerMultiprocessor(), cudaOccupancyMaxPotentialBlockSize().
RIG_TEST(Porting, Occupancy)
{
    own_kernel kernel = NULL;
    struct weir_occupancy occupancy = {.struct_size = sizeof occupancy};
    uint32_t items = 0;
    const struct weir_extent block = weir_dim(BLOCK, 1, 1);
    const size_t shared = BLOCK * sizeof(float);
    EXPECT_OK(weir_kernel_create(rig->program, "sum", &kernel));
    EXPECT_OK(weir_kernel_occupancy(kernel, block, shared, &occupancy));
    EXPECT_UINT_EQ(occupancy.compute_units, weir_device_limits(rig->device)->compute_units);
    EXPECT_OK(weir_kernel_suggest_block(kernel, shared, &items));
    EXPECT_TRUE(items > 0 && items <= weir_kernel_get_info(kernel)->max_block_items);
}

// cudaLaunchCooperativeKernel() and grid.sync(), with as many blocks as the device allows.
RIG_TEST(Porting, Cooperation)
{
    float numbers[COUNT], back[COUNT] = {0};
    own_kernel exchange = NULL;
    uint32_t blocks = 0;
    weir_queue *queue = rig->queue;
    weir_buffer *in = rig->memory, *out = rig->other;
    own_buffer middle = make(rig->device, WEIR_PLACE_DEVICE);
    const struct weir_extent block = weir_dim(BLOCK, 1, 1);
    count_up(numbers);
    EXPECT_OK(weir_upload(queue, in, 0, numbers, bytes));
    EXPECT_OK(weir_kernel_create(rig->program, "exchange", &exchange));
    EXPECT_OK(weir_kernel_cooperative_blocks(exchange, block, 0, &blocks));
    EXPECT_TRUE(blocks > 0);
    blocks = blocks < COUNT / BLOCK ? blocks : COUNT / BLOCK;
    EXPECT_OK(weir_queue_launch_cooperative(queue, exchange, weir_dim(blocks, 1, 1), block,
                                            weir_in(in, 0, bytes), weir_inout(middle, 0, bytes),
                                            weir_out(out, 0, bytes)));
    EXPECT_OK(weir_download(queue, back, out, 0, bytes));
    EXPECT_TRUE(!rig->runs_kernels || back[1] == (blocks == 1 ? 1 : BLOCK + 1));
}

// Streams with their flags and priorities; waits between them.
RIG_TEST(Porting, Streams)
{
    own_queue urgent = NULL;
    weir_queue *legacy = NULL, *mine = NULL;
    struct weir_event done, all;
    const float one = 1;
    weir_device *device = rig->device;
    weir_queue *queue = rig->queue;
    struct weir_queue_params params = {.struct_size = sizeof params};
    params.priority = weir_device_limits(device)->priority_highest;
    EXPECT_OK(weir_queue_create(device, &params, &urgent));
    EXPECT_OK(weir_queue_fill(queue, rig->memory, 0, bytes, &one, sizeof one));
    EXPECT_OK(weir_queue_record(queue, &done));
    EXPECT_OK(weir_queue_wait(urgent, done));
    EXPECT_OK(weir_queue_copy(urgent, rig->other, 0, rig->memory, 0, bytes));
    EXPECT_OK(weir_queue_record(urgent, &all));
    EXPECT_TRUE(weir_event_query(all) >= WEIR_OK); // or WEIR_NOT_READY
    EXPECT_OK(weir_event_sync(all, WEIR_FOREVER));
    EXPECT_OK(weir_event_query(all));
    EXPECT_OK(weir_legacy_queue(device, &legacy));
    EXPECT_OK(weir_thread_queue(device, &mine));
    EXPECT_OK(weir_queue_fill(mine, rig->memory, 0, bytes, &one, sizeof one));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_OK(weir_device_sync(device, WEIR_FOREVER)); // cudaDeviceSynchronize()
}

// cudaEventElapsedTime(), and an event that was never recorded.
RIG_TEST(Porting, Events)
{
    own_queue timed = NULL;
    struct weir_event before, after, never = {0, 0};
    int64_t elapsed_ns = 0;
    const float one = 1;
    weir_device *device = rig->device;
    const struct weir_queue_params params = {.struct_size = sizeof params, .timing = true};
    if (weir_device_limits(device)->timing_history > 0) {
        EXPECT_OK(weir_queue_create(device, &params, &timed));
        EXPECT_OK(weir_queue_record(timed, &before));
        EXPECT_OK(weir_queue_fill(timed, rig->memory, 0, bytes, &one, sizeof one));
        EXPECT_OK(weir_queue_record(timed, &after));
        EXPECT_OK(weir_event_sync(after, WEIR_FOREVER));
        EXPECT_OK(weir_event_elapsed_ns(before, after, &elapsed_ns));
        EXPECT_TRUE(elapsed_ns >= 0);
    }
    EXPECT_FAILURE(weir_queue_wait(rig->queue, never), WEIR_ERROR_INVALID,
                   "the event is zero; it was never recorded");
    EXPECT_INT_EQ(weir_event_query(never), WEIR_ERROR_INVALID);
}

static weir_status count_call(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

// cuCtxRecordEvent(), an event in stream 0 that ends the work of all streams, and cudaEventElapsedTime() in
// stream 0.
WEIR_TEST(Porting, AnEventOfTheDevice)
{
    struct rig rig;
    weir_queue *second = NULL, *legacy = NULL;
    struct weir_event before, whole;
    int64_t elapsed_ns = -1;
    int calls[2] = {0};
    start(&rig);
    const bool timed = weir_device_limits(rig.device)->timing_history > 0;
    finish(&rig);
    start_with(&rig, timed);
    weir_device *device = rig.device;
    EXPECT_OK(weir_queue_create(device, NULL, &second));
    EXPECT_OK(weir_legacy_queue(device, &legacy));
    EXPECT_OK(weir_queue_record(legacy, &before));
    EXPECT_OK(weir_queue_host_call(rig.queue, count_call, &calls[0]));
    EXPECT_OK(weir_queue_host_call(second, count_call, &calls[1]));
    EXPECT_OK(weir_queue_record(legacy, &whole));
    EXPECT_OK(weir_event_sync(whole, WEIR_FOREVER));
    EXPECT_INT_EQ(calls[0] + calls[1], 2);
    if (timed) {
        EXPECT_OK(weir_event_elapsed_ns(before, whole, &elapsed_ns));
        EXPECT_TRUE(elapsed_ns >= 0);
    }
    weir_queue_destroy(&second);
    finish(&rig);
}

static weir_status fail(void *user)
{
    (void)user;
    return WEIR_ERROR_IO;
}

// cudaLaunchHostFunc(); errors, and what CUDA's sticky errors become.
RIG_TEST(Porting, CallbacksAndErrors)
{
    int calls = 0;
    weir_queue *queue = rig->queue;
    EXPECT_OK(weir_queue_host_call(queue, count_call, &calls));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_INT_EQ(calls, 1);

    EXPECT_OK(weir_queue_host_call(queue, fail, NULL));
    const weir_status status = weir_queue_sync(queue, WEIR_FOREVER);
    EXPECT_INT_EQ(status, WEIR_ERROR_IO);
    EXPECT_STR_EQ(weir_status_name(status), "WEIR_ERROR_IO");
    EXPECT_STR_EQ(weir_status_text(status), "a file cannot be read or written");
    EXPECT_CONTAINS(weir_last_error_text(), "host_test.c");
    EXPECT_INT_EQ(weir_queue_host_call(queue, count_call, &calls), WEIR_ERROR_IO);
    EXPECT_OK(weir_queue_recover(queue));
    EXPECT_OK(weir_queue_host_call(queue, count_call, &calls));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_INT_EQ(calls, 2);
}

// Memory: cudaMallocAsync(), cudaHostRegister(), offsets in place of pointers.
RIG_TEST(Porting, Memory)
{
    own_pool pool = NULL;
    own_buffer registered = NULL;
    weir_buffer *scratch = NULL;
    float numbers[COUNT] = {0}, back = 0;
    const float one = 1;
    weir_device *device = rig->device;
    weir_queue *queue = rig->queue;
    EXPECT_OK(weir_pool_create(device, NULL, &pool));
    EXPECT_OK(weir_pool_allocate(pool, queue, bytes, &scratch));
    EXPECT_OK(weir_queue_fill(queue, scratch, 0, bytes, &one, sizeof one));
    const struct weir_wrap_params wrap = {.struct_size = sizeof wrap,
                                          .pointer = numbers,
                                          .size = bytes};
    EXPECT_OK(weir_buffer_wrap(device, &wrap, &registered));
    EXPECT_OK(weir_queue_copy(queue, registered, 0, scratch, 0, bytes));
    EXPECT_OK(weir_pool_free(queue, &scratch));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_TRUE(numbers[COUNT - 1] == 1);
    const size_t offset = 100 * sizeof(float);
    EXPECT_OK(weir_queue_fill(queue, rig->memory, offset, sizeof one, &one, sizeof one));
    EXPECT_OK(weir_download(queue, &back, rig->memory, offset, sizeof back));
    EXPECT_TRUE(back == 1);
}

// cudaMallocManaged(), where the device has such memory.
RIG_TEST(Porting, ManagedMemory)
{
    own_buffer managed = NULL;
    void *pointer = NULL;
    const float one = 1;
    weir_device *device = rig->device;
    weir_queue *queue = rig->queue;
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = bytes,
                                              .placement = WEIR_PLACE_MANAGED};
    const struct weir_limits *limits = weir_device_limits(device);
    const weir_status status = weir_buffer_create(device, &params, &managed);
    EXPECT_INT_EQ(status, limits->managed_memory ? WEIR_OK : WEIR_ERROR_UNSUPPORTED);
    if (managed) {
        EXPECT_OK(weir_queue_fill(queue, managed, 0, bytes, &one, sizeof one));
        EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
        EXPECT_OK(weir_host_begin(managed, 0, bytes, WEIR_ACCESS_READ, &pointer));
        EXPECT_TRUE(((float *)pointer)[COUNT - 1] == 1);
        EXPECT_OK(weir_host_end(managed, 0, bytes, WEIR_ACCESS_READ));
    }
}

// cudaStreamBeginCapture() to cudaGraphLaunch().
RIG_TEST(Porting, Graphs)
{
    own_graph graph = NULL;
    own_graph clone = NULL;
    int calls = 0;
    int other = 0;
    uint32_t node = 0, call = 0;
    float one = 1, two = 2, back = 0;
    weir_queue *queue = rig->queue;
    EXPECT_OK(weir_capture_begin(queue));
    EXPECT_OK(weir_queue_fill(queue, rig->memory, 0, bytes, &one, sizeof one));
    EXPECT_OK(weir_capture_node(queue, &node));
    EXPECT_OK(weir_queue_copy(queue, rig->other, 0, rig->memory, 0, bytes));
    EXPECT_OK(weir_queue_host_call(queue, count_call, &calls));
    EXPECT_OK(weir_capture_node(queue, &call));
    EXPECT_OK(weir_capture_end(queue, NULL, &graph));
    EXPECT_OK(weir_queue_graph(queue, graph));
    EXPECT_OK(weir_download(queue, &back, rig->other, 0, sizeof back));
    EXPECT_TRUE(back == 1);
    EXPECT_OK(weir_graph_set_fill(graph, node, rig->memory, 0, bytes, &two, sizeof two));
    EXPECT_OK(weir_queue_graph(queue, graph));
    EXPECT_OK(weir_download(queue, &back, rig->other, 0, sizeof back));
    EXPECT_TRUE(back == 2);
    EXPECT_OK(weir_graph_clone(graph, NULL, &clone));
    EXPECT_OK(weir_graph_set_fill(graph, node, rig->memory, 0, bytes, &one, sizeof one));
    EXPECT_OK(weir_graph_set_enabled(graph, node, false));
    EXPECT_OK(weir_graph_set_host_call(graph, call, count_call, &other));
    EXPECT_OK(weir_queue_graph(queue, graph));
    EXPECT_OK(weir_download(queue, &back, rig->other, 0, sizeof back));
    EXPECT_TRUE(back == 2);
    EXPECT_OK(weir_queue_graph(queue, clone));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_INT_EQ(calls, 3);
    EXPECT_INT_EQ(other, 1);
}

// Several devices, each opened by its index; cudaMemcpyPeer(); one program for them, whose kernel is launched on
// queues of each.
RIG_TEST(Porting, SeveralDevices)
{
    own_device second = NULL;
    own_queue afar = NULL;
    own_program both = NULL;
    own_kernel scale = NULL;
    float one = 1, back = 0;
    if (weir_device_count(rig->runtime) > 1) {
        const struct weir_device_params params = {.struct_size = sizeof params, .select = "1"};
        EXPECT_OK(weir_device_open(rig->runtime, &params, &second));
        const struct weir_program_params program = {.struct_size = sizeof program,
                                                    .bundle = &host_kernels,
                                                    .devices = &second,
                                                    .device_count = 1};
        EXPECT_OK(weir_program_create(rig->device, &program, &both));
        EXPECT_OK(weir_kernel_create(both, "scale", &scale));
        EXPECT_OK(weir_queue_create(second, NULL, &afar));
        own_buffer in = make(second, WEIR_PLACE_DEVICE);
        own_buffer there = make(second, WEIR_PLACE_DEVICE);
        EXPECT_OK(weir_queue_fill(rig->queue, rig->memory, 0, bytes, &one, sizeof one));
        EXPECT_TRUE(weir_device_can_reach(rig->device, rig->device));
        if (weir_device_can_peer(rig->device, second)) {
            EXPECT_OK(weir_queue_copy(rig->queue, there, 0, rig->memory, 0, bytes));
            EXPECT_OK(weir_queue_copy(rig->queue, rig->other, 0, there, 0, bytes));
            EXPECT_OK(weir_download(rig->queue, &back, rig->other, 0, sizeof back));
            EXPECT_TRUE(back == 1);
        }
        EXPECT_OK(weir_queue_fill(afar, in, 0, bytes, &one, sizeof one));
        EXPECT_OK(weir_queue_launch(afar, scale, weir_dim(COUNT / BLOCK, 1, 1),
                                    weir_dim(BLOCK, 1, 1), weir_in(in, 0, bytes),
                                    weir_out(there, 0, bytes), 3.0f));
        EXPECT_OK(weir_download(afar, &back, there, 0, sizeof back));
        EXPECT_TRUE(!rig->runs_kernels || back == 3);
    }
}

// Source at run time, as NVRTC compiles it; regions, as NVTX marks them.
RIG_TEST(Porting, SourceAndRegions)
{
    static const char source[] = "__kernel void set(__global int *out) { out[0] = N; }";
    own_program program = NULL;
    own_kernel set = NULL;
    int back = 0;
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .source = source,
                                               .options = "-DN=4"};
    weir_region_push(rig->runtime, "set", 1);
    EXPECT_OK(weir_program_create(rig->device, &params, &program));
    EXPECT_OK(weir_kernel_create(program, "set", &set));
    EXPECT_OK(weir_queue_launch(rig->queue, set, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(rig->memory, 0, bytes)));
    EXPECT_OK(weir_download(rig->queue, &back, rig->memory, 0, sizeof back));
    if (rig->runs_kernels)
        EXPECT_INT_EQ(back, 4);
    weir_region_pop(rig->runtime);
}
