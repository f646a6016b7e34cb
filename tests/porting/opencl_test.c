// What docs/opencl.md says to write in place of OpenCL's API, run on PoCL.
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    COUNT = 1000, // no multiple of a block
    BLOCK = 64,
    BYTES = COUNT * sizeof(float)
};

static const char source[] =
    "__kernel void scale(__global const float *in, __global float *out, float factor, uint n)\n"
    "{\n"
    "    uint i = (uint)get_global_id(0);\n"
    "    if (i < n)\n"
    "        out[i] = factor * in[i];\n"
    "}\n"
    "__kernel void rows(__global float *out, uint width, uint height, uint first)\n"
    "{\n"
    "    uint x = (uint)get_global_id(0), y = (uint)get_global_id(1);\n"
    "    if (x < width && y < height)\n"
    "        out[y * width + x] = (float)(first + y * width + x);\n"
    "}\n"
    "__kernel void sum(__global const float *in, __global float *out, __local float *scratch)\n"
    "{\n"
    "    uint t = (uint)get_local_id(0);\n"
    "    scratch[t] = in[get_global_id(0)];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (t == 0) {\n"
    "        float all = 0;\n"
    "        for (uint i = 0; i < get_local_size(0); i++)\n"
    "            all += scratch[i];\n"
    "        out[get_group_id(0)] = all;\n"
    "    }\n"
    "}\n"
    "__kernel void contract(__global float *out, float a, float b)\n"
    "{\n"
    "    out[0] = a * a + b;\n"
    "}\n";

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue, *other; // with times
    weir_program *program;
    weir_kernel *scale;
    weir_buffer *memory, *result; // on the device
    weir_buffer *host;            // its numbers count up
};

static void open_rig(struct rig *rig)
{
    const struct weir_device_params first = {.struct_size = sizeof first, .select = "0"};
    const struct weir_queue_params timed = {.struct_size = sizeof timed, .timing = true};
    const struct weir_program_params text = {.struct_size = sizeof text, .source = source};
    const struct weir_buffer_params device = {.struct_size = sizeof device, .size = BYTES};
    void *pointer = NULL;
    *rig = (struct rig){0};
    EXPECT_OK(weir_open(NULL, &rig->runtime));
    EXPECT_OK(weir_device_open(rig->runtime, &first, &rig->device));
    EXPECT_OK(weir_queue_create(rig->device, &timed, &rig->queue));
    EXPECT_OK(weir_queue_create(rig->device, &timed, &rig->other));
    EXPECT_OK(weir_program_create(rig->device, &text, &rig->program));
    EXPECT_OK(weir_kernel_create(rig->program, "scale", &rig->scale));
    EXPECT_OK(weir_buffer_create(rig->device, &device, &rig->memory));
    rig->result = test_buffer(rig->device, "result", BYTES, WEIR_PLACE_DEVICE);
    rig->host = test_buffer(rig->device, "host", BYTES, WEIR_PLACE_HOST);
    EXPECT_OK(weir_host_begin(rig->host, 0, BYTES, WEIR_ACCESS_WRITE, &pointer));
    for (int i = 0; pointer && i < COUNT; i++)
        ((float *)pointer)[i] = (float)i;
    EXPECT_OK(weir_host_end(rig->host, 0, BYTES, WEIR_ACCESS_WRITE));
    EXPECT_OK(weir_queue_copy(rig->queue, rig->memory, 0, rig->host, 0, BYTES));
}

static void close_rig(struct rig *rig)
{
    weir_buffer_destroy(&rig->host);
    weir_buffer_destroy(&rig->result);
    weir_buffer_destroy(&rig->memory);
    weir_kernel_destroy(&rig->scale);
    weir_program_destroy(&rig->program);
    weir_queue_destroy(&rig->other);
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

#define RIG_TEST(suite, name)                                                              \
    WEIR_TEST_WITH(suite, name, struct rig, rig, (open_rig(rig), !weir_test_has_failed()), \
                   close_rig(rig))

static float number_of(weir_queue *queue, weir_buffer *buffer, size_t index)
{
    float number = -1;
    EXPECT_OK(weir_download(queue, &number, buffer, index * sizeof number, sizeof number));
    return number;
}

// A global size with local = NULL, in one and two dimensions; the same by blocks; a global offset.
RIG_TEST(OpenCL, Launches)
{
    own_kernel rows = NULL;
    uint32_t items = 0;
    weir_queue *queue = rig->queue;
    weir_kernel *scale = rig->scale;
    weir_buffer *in = rig->memory, *out = rig->result;
    EXPECT_OK(weir_queue_launch_count(queue, scale, COUNT, weir_whole_in(in), weir_whole_out(out),
                                      2.0f, COUNT));
    EXPECT_TRUE(number_of(queue, out, COUNT - 1) == 2 * (COUNT - 1));

    EXPECT_OK(weir_kernel_suggest_block(scale, 0, &items));
    EXPECT_OK(weir_queue_launch(queue, scale, weir_dim((COUNT + BLOCK - 1) / BLOCK, 1, 1),
                                weir_dim(BLOCK, 1, 1), weir_whole_in(in), weir_whole_out(out), 3.0f,
                                COUNT));
    EXPECT_TRUE(items > 0 && number_of(queue, out, COUNT - 1) == 3 * (COUNT - 1));

    EXPECT_OK(weir_kernel_create(rig->program, "rows", &rows));
    EXPECT_OK(weir_queue_launch(queue, rows, weir_dim((40 + 7) / 8, (25 + 7) / 8, 1),
                                weir_dim(8, 8, 1), weir_whole_out(out), 40u, 25u, 7u));
    EXPECT_TRUE(number_of(queue, out, 999) == 1006);
}

// clSetKernelArg(kernel, 2, bytes, NULL); clEnqueueTask() is a block of one work-item.
RIG_TEST(OpenCL, LocalMemory)
{
    own_kernel sum = NULL;
    EXPECT_OK(weir_kernel_create(rig->program, "sum", &sum));
    EXPECT_OK(weir_queue_launch(rig->queue, sum, weir_dim(2, 1, 1), weir_dim(BLOCK, 1, 1),
                                weir_whole_in(rig->memory), weir_whole_out(rig->result),
                                weir_local(BLOCK * sizeof(float))));
    EXPECT_TRUE(number_of(rig->queue, rig->result, 1) == 6112);
}

// What a program computes of `a * a + b`, where a product and a sum that round apart give 0.
static float contracted(struct rig *rig, weir_program *program)
{
    own_kernel contract = NULL;
    EXPECT_OK(weir_kernel_create(program, "contract", &contract));
    EXPECT_OK(weir_queue_launch(rig->queue, contract, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_whole_out(rig->result), 1 + 0x1p-12f, -1 - 0x1p-11f));
    return number_of(rig->queue, rig->result, 0);
}

RIG_TEST(OpenCL, Contraction)
{
    own_program exact = NULL;
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .source = source,
                                               .exact = true};
    EXPECT_OK(weir_program_create(rig->device, &params, &exact));
    EXPECT_TRUE(contracted(rig, exact) == 0);
    const float free = contracted(rig, rig->program); // the compiler's choice
    EXPECT_TRUE(free == 0 || free == 0x1p-24f);
}

// The wait list of a command, and its event; a barrier of two queues; user events and callbacks.
static weir_status note(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

static weir_status until_set(void *user)
{
    return sem_wait(user) == 0 ? WEIR_OK : WEIR_ERROR_SYSTEM;
}

RIG_TEST(OpenCL, WaitListsAndCallbacks)
{
    int calls = 0;
    struct weir_event events[2], done;
    weir_queue *queue = rig->queue, *other = rig->other;
    EXPECT_OK(weir_queue_fill(other, rig->result, 0, BYTES, &(float){1}, sizeof(float)));
    EXPECT_OK(weir_queue_record(other, &events[0]));
    EXPECT_OK(weir_queue_wait(queue, events[0]));
    EXPECT_OK(weir_queue_copy(queue, rig->host, 0, rig->result, 0, BYTES));
    EXPECT_OK(weir_queue_record(queue, &events[1]));
    EXPECT_OK(weir_event_sync_all(events, 2, WEIR_FOREVER));

    // The callback holds up the queue that it is in, and only that.
    EXPECT_OK(weir_queue_wait(other, events[1]));
    EXPECT_OK(weir_queue_host_call(other, note, &calls));
    EXPECT_OK(weir_queue_record(other, &done));
    EXPECT_OK(weir_event_sync(done, WEIR_FOREVER));
    EXPECT_INT_EQ(calls, 1);
    EXPECT_OK(weir_event_query(done));
    EXPECT_TRUE(number_of(queue, rig->host, 5) == 1);

    // A user event is the record after a function that returns when it is to be set.
    sem_t set;
    sem_init(&set, 0, 0);
    EXPECT_OK(weir_queue_host_call(other, until_set, &set));
    EXPECT_OK(weir_queue_record(other, &done));
    EXPECT_INT_EQ(weir_event_query(done), WEIR_NOT_READY);
    sem_post(&set);
    EXPECT_OK(weir_event_sync(done, WEIR_FOREVER));
    sem_destroy(&set);
}

// CL_PROFILING_COMMAND_START and _END.
RIG_TEST(OpenCL, Profiling)
{
    struct weir_event start, end;
    int64_t elapsed_ns = -1;
    uint64_t end_ns = 0;
    weir_queue *queue = rig->queue;
    EXPECT_OK(weir_queue_record(queue, &start));
    EXPECT_OK(weir_queue_copy(queue, rig->result, 0, rig->memory, 0, BYTES));
    EXPECT_OK(weir_queue_record(queue, &end));
    EXPECT_OK(weir_event_sync(end, WEIR_FOREVER));
    EXPECT_OK(weir_event_elapsed_ns(start, end, &elapsed_ns));
    EXPECT_OK(weir_event_time_ns(end, &end_ns));
    EXPECT_TRUE(elapsed_ns > 0 && end_ns > 0);
}

// A context, a queue with times, a file of device code, exact global sizes, both kinds of memory.
WEIR_TEST(OpenCL, ShortForms)
{
    static const char text[] = "__kernel void number(__global float *out)\n"
                               "{\n"
                               "    size_t at = get_global_id(1) * get_global_size(0);\n"
                               "    out[at + get_global_id(0)] = (float)(at + get_global_id(0));\n"
                               "}\n";
    const struct weir_event never = {0, 0};
    own_device device = NULL;
    own_queue queue = NULL;
    own_queue other = NULL;
    own_kernel number = NULL;
    own_buffer memory = NULL;
    own_buffer host = NULL;
    const float *numbers = NULL;
    int64_t elapsed_ns = 0;
    char path[1024];
    snprintf(path, sizeof path, "%s/number.cl", getenv("TEST_TMPDIR"));
    FILE *file = fopen(path, "w");
    EXPECT_TRUE(file && fputs(text, file) >= 0 && fclose(file) == 0);

    EXPECT_OK(weir_device_open_index(NULL, 0, &device));
    EXPECT_TRUE(weir_device_limits(device)->kind == WEIR_DEVICE_CPU);
    EXPECT_OK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .timing = true), &queue));
    EXPECT_OK(weir_queue_create(device, NULL, &other));
    EXPECT_OK(weir_kernel_load_file(device, path, "number", &number));
    EXPECT_OK(weir_buffer_pair(device, BYTES, &memory, &host));
    EXPECT_OK(weir_queue_wait_if(queue, never));
    EXPECT_OK(weir_queue_launch_global(queue, number, weir_dim(40, 25, 1), weir_whole_out(memory)));
    EXPECT_OK(
        weir_queue_timed(queue, weir_queue_copy(queue, host, 0, memory, 0, BYTES), &elapsed_ns));
    EXPECT_TRUE(elapsed_ns > 0);
    EXPECT_OK(weir_host_whole(host, WEIR_ACCESS_READ, &numbers));
    EXPECT_TRUE(numbers && numbers[999] == 999);
    EXPECT_OK(weir_host_whole_end(host, WEIR_ACCESS_READ));
    EXPECT_OK(weir_queue_after(other, queue));
    EXPECT_TRUE(number_of(other, memory, 7) == 7);
}

// clEnqueueMapBuffer() of a buffer on the device, of one in pinned memory; sub-buffers; rectangles;
// memory of the program.
RIG_TEST(OpenCL, Memory)
{
    static float mine[COUNT] = {[100] = 100};
    void *pointer = NULL;
    own_buffer wrapped = NULL;
    weir_queue *queue = rig->queue;
    weir_buffer *host = rig->host;
    EXPECT_OK(weir_queue_copy(queue, host, 0, rig->memory, 0, BYTES));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_OK(weir_host_begin(host, 0, BYTES, WEIR_ACCESS_READ, &pointer));
    EXPECT_TRUE(pointer && ((const float *)pointer)[COUNT - 1] == COUNT - 1);
    EXPECT_OK(weir_host_end(host, 0, BYTES, WEIR_ACCESS_READ));
    EXPECT_INT_EQ(weir_host_begin(rig->memory, 0, BYTES, WEIR_ACCESS_READ, &pointer),
                  WEIR_ERROR_INVALID);

    const size_t at = weir_device_limits(rig->device)->argument_alignment_bytes;
    EXPECT_OK(weir_queue_launch_count(queue, rig->scale, 10, weir_in(rig->memory, at, 40),
                                      weir_out(rig->result, 0, 40), 1.0f, 10));
    EXPECT_TRUE(number_of(queue, rig->result, 0) == (float)(at / sizeof(float)));

    const struct weir_wrap_params wrap = {.struct_size = sizeof wrap,
                                          .pointer = mine,
                                          .size = sizeof mine};
    EXPECT_OK(weir_buffer_wrap(rig->device, &wrap, &wrapped));
    struct weir_plane src = {wrapped, 0, 400}, dst = {rig->result, 0, 200};
    EXPECT_OK(weir_queue_copy_2d(queue, dst, src, 200, 10));
    EXPECT_TRUE(number_of(queue, rig->result, 50) == 100);
}

// Images; the log of a compiler.
RIG_TEST(OpenCL, Images)
{
    static const char picture[] =
        "__kernel void look(read_only image2d_t image, sampler_t how, __global float *out)\n"
        "{\n"
        "    out[0] = read_imagef(image, how, (int2)(2, 1)).x;\n"
        "}\n";
    own_program program = NULL;
    weir_program *wrong = NULL;
    own_kernel look = NULL;
    struct weir_program_params params = {.struct_size = sizeof params, .source = picture};
    EXPECT_OK(weir_program_create(rig->device, &params, &program));
    EXPECT_OK(weir_kernel_create(program, "look", &look));
    const struct weir_image_layout layout = weir_image_2d(WEIR_ORDER_R, WEIR_CHANNEL_FLOAT, 10, 10);
    EXPECT_OK(weir_queue_launch(rig->queue, look, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_image_in(rig->memory, 0, &layout), WEIR_FILTER_NEAREST,
                                weir_whole_out(rig->result)));
    EXPECT_TRUE(number_of(rig->queue, rig->result, 0) == number_of(rig->queue, rig->memory, 12));
    params.source = "__kernel void wrong(";
    EXPECT_FAILURE(weir_program_create(rig->device, &params, &wrong), WEIR_ERROR_BUILD, "error:");
}
