// An OpenCL program with its own command queue and buffer, which Weir uses too: a Weir
// kernel counts, an OpenCL command clears the second half, and a Weir kernel adds one
// to every element.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

#include <weir/weir.h>

enum {
    COUNT = 1024,
    BLOCK = 64
};

#define BYTES (COUNT * sizeof(cl_uint))

static const char source[] = "__kernel void count(__global uint *out)\n"
                             "{\n"
                             "    out[get_global_id(0)] = (uint)get_global_id(0);\n"
                             "}\n"
                             "__kernel void add(__global uint *out, uint n)\n"
                             "{\n"
                             "    out[get_global_id(0)] += n;\n"
                             "}\n";

struct job {
    cl_mem memory;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_program *program;
    weir_kernel *count, *add;
};

// Called after all earlier work was handed to the driver; enqueues its own.
static weir_status clear_half(const struct weir_native_queue *native, void *user)
{
    const struct job *job = user;
    const cl_uint zero = 0;
    cl_int code = clEnqueueFillBuffer(native->queue, job->memory, &zero, sizeof zero, BYTES / 2,
                                      BYTES / 2, 0, NULL, NULL);
    return code == CL_SUCCESS ? WEIR_OK : WEIR_ERROR_DEVICE;
}

// The program's own objects, in the context that Weir uses.
static weir_status make_own(weir_device *device, struct job *job)
{
    struct weir_native_device native;
    cl_int code;
    weir_status status = weir_device_get_native(device, &native);
    if (status < 0)
        return status;
    cl_command_queue queue = clCreateCommandQueue(native.context, native.device, 0, &code);
    job->memory = clCreateBuffer(native.context, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    if (!queue || !job->memory)
        return WEIR_ERROR_DEVICE;

    const struct weir_queue_wrap_params wrap = {.struct_size = sizeof wrap, .native = queue};
    const struct weir_adopt_params adopt = {
        .struct_size = sizeof adopt,
        .native = (uint64_t)(uintptr_t)job->memory,
        .size = BYTES,
    };
    if ((status = weir_queue_wrap(device, &wrap, &job->queue)) == WEIR_OK)
        status = weir_buffer_adopt(device, &adopt, &job->buffer);
    // Weir has taken a reference on each.
    clReleaseCommandQueue(queue);
    clReleaseMemObject(job->memory);
    return status;
}

static weir_status run(weir_device *device, struct job *job, cl_uint *results)
{
    const struct weir_program_params params = {.struct_size = sizeof params, .source = source};
    const struct weir_extent grid = weir_dim(COUNT / BLOCK, 1, 1);
    const struct weir_extent block = weir_dim(BLOCK, 1, 1);
    weir_status status;
    if ((status = make_own(device, job)) ||
        (status = weir_program_create(device, &params, &job->program)) ||
        (status = weir_kernel_create(job->program, "count", &job->count)) ||
        (status = weir_kernel_create(job->program, "add", &job->add)) ||
        (status = weir_queue_launch(job->queue, job->count, grid, block,
                                    weir_out(job->buffer, 0, BYTES))) ||
        (status = weir_queue_native(job->queue, clear_half, job,
                                    weir_out(job->buffer, BYTES / 2, BYTES / 2))) ||
        (status = weir_queue_launch(job->queue, job->add, grid, block,
                                    weir_inout(job->buffer, 0, BYTES), 1u)))
        return status;
    return weir_download(job->queue, results, job->buffer, 0, BYTES);
}

int main(void)
{
    const struct weir_open_params open = {.struct_size = sizeof open, .backend = "opencl"};
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    struct job job = {0};
    static cl_uint results[COUNT];

    weir_status status = weir_open(&open, &runtime);
    if (status == WEIR_OK)
        status = weir_device_open(runtime, NULL, &device);
    if (status == WEIR_OK)
        status = run(device, &job, results);
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text());
    else
        printf("%u %u %u %u\n", results[0], results[COUNT / 2 - 1], results[COUNT / 2],
               results[COUNT - 1]);

    weir_kernel_destroy(&job.add);
    weir_kernel_destroy(&job.count);
    weir_program_destroy(&job.program);
    weir_buffer_destroy(&job.buffer);
    weir_queue_destroy(&job.queue);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return status == WEIR_OK ? 0 : 1;
}
