// What the pairs of C share: a device with two queues and two buffers, and the lines of a pair's two commands.
#ifndef WEIR_TESTS_LAYERS_PAIR_H
#define WEIR_TESTS_LAYERS_PAIR_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    N = 4096,
    BYTES = 4 * N,
    SIDE = 64,
};

static cl_device_id device;
static cl_context context;
static cl_program program;
static cl_command_queue one, two;
static cl_mem a, b;
static float host[N];
static int first, second;

// The two commands of a pair, and other calls.
#define A(...) (first = __LINE__, check(__VA_ARGS__, __LINE__))
#define B(...) (second = __LINE__, check(__VA_ARGS__, __LINE__))
#define DO(...) check(__VA_ARGS__, __LINE__)

static void check(cl_int code, int line)
{
    if (code == CL_SUCCESS)
        return;
    fprintf(stderr, "line %d: error %d\n", line, code);
    exit(3);
}

static cl_mem filled(const void *from, size_t size)
{
    return clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size,
                          (void *)(size_t)from, NULL);
}

static cl_kernel kernel(const char *name, const cl_mem *arguments, cl_uint count)
{
    cl_kernel made = clCreateKernel(program, name, NULL);
    for (cl_uint i = 0; i < count; i++)
        DO(clSetKernelArg(made, i, sizeof(cl_mem), &arguments[i]));
    return made;
}

static void open_device(const char *const sources[2], const char *options)
{
    cl_platform_id platform;
    cl_int code;
    DO(clGetPlatformIDs(1, &platform, NULL));
    DO(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    DO(code);
    program = clCreateProgramWithSource(context, 2, (const char **)sources, NULL, &code);
    DO(code);
    DO(clBuildProgram(program, 1, &device, options, NULL, NULL));
    one = clCreateCommandQueue(context, device, 0, NULL);
    two = clCreateCommandQueue(context, device, 0, NULL);
}

#endif
