// A test program finds an OpenCL device and compiles and runs a kernel, from its own
// empty cache. Under the address sanitizer this also tests lsan.supp: with a cold
// cache PoCL leaks.

#include "tests/support/test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

static const char *const source =
    "__kernel void twice(__global int *x) { x[get_global_id(0)] *= 2; }";

// clCreateX -> create_x: the functions that the test calls.
static struct {
    cl_int (*platform_ids)(cl_uint, cl_platform_id *, cl_uint *);
    cl_int (*device_ids)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
    cl_context (*create_context)(const cl_context_properties *, cl_uint, const cl_device_id *,
                                 void *, void *, cl_int *);
    cl_command_queue (*create_queue)(cl_context, cl_device_id, cl_command_queue_properties,
                                     cl_int *);
    cl_program (*create_program)(cl_context, cl_uint, const char **, const size_t *, cl_int *);
    cl_int (*build_program)(cl_program, cl_uint, const cl_device_id *, const char *, void *,
                            void *);
    cl_kernel (*create_kernel)(cl_program, const char *, cl_int *);
    cl_mem (*create_buffer)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    cl_int (*set_arg)(cl_kernel, cl_uint, size_t, const void *);
    cl_int (*launch)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                     const size_t *, cl_uint, const cl_event *, cl_event *);
    cl_int (*read_buffer)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint,
                          const cl_event *, cl_event *);
    cl_int (*release_buffer)(cl_mem);
    cl_int (*release_kernel)(cl_kernel);
    cl_int (*release_program)(cl_program);
    cl_int (*release_queue)(cl_command_queue);
    cl_int (*release_context)(cl_context);
} cl;

// ISO C has no cast from dlsym's pointer to a function's; POSIX makes the copy work.
static bool find(void *library, const char *name, void *out_function)
{
    void *symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_opencl(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != NULL && find(library, "clGetPlatformIDs", &cl.platform_ids) &&
           find(library, "clGetDeviceIDs", &cl.device_ids) &&
           find(library, "clCreateContext", &cl.create_context) &&
           find(library, "clCreateCommandQueue", &cl.create_queue) &&
           find(library, "clCreateProgramWithSource", &cl.create_program) &&
           find(library, "clBuildProgram", &cl.build_program) &&
           find(library, "clCreateKernel", &cl.create_kernel) &&
           find(library, "clCreateBuffer", &cl.create_buffer) &&
           find(library, "clSetKernelArg", &cl.set_arg) &&
           find(library, "clEnqueueNDRangeKernel", &cl.launch) &&
           find(library, "clEnqueueReadBuffer", &cl.read_buffer) &&
           find(library, "clReleaseMemObject", &cl.release_buffer) &&
           find(library, "clReleaseKernel", &cl.release_kernel) &&
           find(library, "clReleaseProgram", &cl.release_program) &&
           find(library, "clReleaseCommandQueue", &cl.release_queue) &&
           find(library, "clReleaseContext", &cl.release_context);
}

static bool folder_is_empty(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return true;
    bool empty = true;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            empty = false;
    }
    closedir(folder);
    return empty;
}

static void run_twice(cl_context context, cl_command_queue queue, cl_program program)
{
    int numbers[4] = {1, 2, 3, 4};
    const int doubled[4] = {2, 4, 6, 8};
    const size_t count = 4;
    cl_int error = CL_SUCCESS;
    cl_kernel kernel = cl.create_kernel(program, "twice", &error);
    ASSERT_INT_EQ(error, CL_SUCCESS);
    cl_mem buffer =
        cl.create_buffer(context, CL_MEM_COPY_HOST_PTR, sizeof numbers, numbers, &error);
    ASSERT_INT_EQ(error, CL_SUCCESS);
    EXPECT_INT_EQ(cl.set_arg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    EXPECT_INT_EQ(cl.launch(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL), CL_SUCCESS);
    EXPECT_INT_EQ(cl.read_buffer(queue, buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL),
                  CL_SUCCESS);
    EXPECT_MEM_EQ(numbers, doubled, sizeof numbers);
    EXPECT_INT_EQ(cl.release_buffer(buffer), CL_SUCCESS);
    EXPECT_INT_EQ(cl.release_kernel(kernel), CL_SUCCESS);
}

WEIR_TEST(Pocl, CompilesIntoThePrivateCache)
{
    const char *cache = weir_test_temp_dir();
    setenv("POCL_CACHE_DIR", cache, 1);
    ASSERT_TRUE(folder_is_empty(cache));
    ASSERT_TRUE(load_opencl());

    cl_platform_id platform = NULL;
    cl_device_id device = NULL;
    cl_int error = CL_SUCCESS;
    ASSERT_INT_EQ(cl.platform_ids(1, &platform, NULL), CL_SUCCESS);
    ASSERT_INT_EQ(cl.device_ids(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
    cl_context context = cl.create_context(NULL, 1, &device, NULL, NULL, &error);
    ASSERT_INT_EQ(error, CL_SUCCESS);
    cl_command_queue queue = cl.create_queue(context, device, 0, &error);
    ASSERT_INT_EQ(error, CL_SUCCESS);
    const char *text = source;
    cl_program program = cl.create_program(context, 1, &text, NULL, &error);
    ASSERT_INT_EQ(error, CL_SUCCESS);
    ASSERT_INT_EQ(cl.build_program(program, 1, &device, "", NULL, NULL), CL_SUCCESS);
    run_twice(context, queue, program);
    EXPECT_INT_EQ(cl.release_program(program), CL_SUCCESS);
    EXPECT_INT_EQ(cl.release_queue(queue), CL_SUCCESS);
    EXPECT_INT_EQ(cl.release_context(context), CL_SUCCESS);

    EXPECT_FALSE(folder_is_empty(cache));
}
