// A test program finds an OpenCL device and compiles a kernel into its own empty
// cache. Under the address sanitizer this is also the test of lsan.supp: on a
// cold cache PoCL leaks.

#include "tests/support/test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

static const char *const source =
    "__kernel void twice(__global int *x) { x[get_global_id(0)] *= 2; }";

// POSIX makes this conversion work; ISO C has no cast for it.
static void find(void *library, const char *name, void *out_function)
{
    void *symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol);
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

WEIR_TEST(Pocl, CompilesIntoThePrivateCache)
{
    ASSERT_TRUE(folder_is_empty(getenv("POCL_CACHE_DIR")));

    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NOT_NULL(library);
    cl_int(CL_API_CALL * platform_ids)(cl_uint, cl_platform_id *, cl_uint *) = NULL;
    cl_int(CL_API_CALL * device_ids)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *,
                                     cl_uint *) = NULL;
    cl_context(CL_API_CALL * create_context)(const cl_context_properties *, cl_uint,
                                             const cl_device_id *, void *, void *, cl_int *) = NULL;
    cl_program(CL_API_CALL * create_program)(cl_context, cl_uint, const char **, const size_t *,
                                             cl_int *) = NULL;
    cl_int(CL_API_CALL * build)(cl_program, cl_uint, const cl_device_id *, const char *, void *,
                                void *) = NULL;
    cl_int(CL_API_CALL * release_program)(cl_program) = NULL;
    cl_int(CL_API_CALL * release_context)(cl_context) = NULL;
    find(library, "clGetPlatformIDs", &platform_ids);
    find(library, "clGetDeviceIDs", &device_ids);
    find(library, "clCreateContext", &create_context);
    find(library, "clCreateProgramWithSource", &create_program);
    find(library, "clBuildProgram", &build);
    find(library, "clReleaseProgram", &release_program);
    find(library, "clReleaseContext", &release_context);

    cl_platform_id platform = NULL;
    cl_device_id device = NULL;
    cl_int error = CL_SUCCESS;
    ASSERT_INT_EQ(platform_ids(1, &platform, NULL), CL_SUCCESS);
    ASSERT_INT_EQ(device_ids(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
    cl_context context = create_context(NULL, 1, &device, NULL, NULL, &error);
    ASSERT_INT_EQ(error, CL_SUCCESS);
    const char *text = source;
    cl_program program = create_program(context, 1, &text, NULL, &error);
    ASSERT_INT_EQ(error, CL_SUCCESS);
    EXPECT_INT_EQ(build(program, 1, &device, "", NULL, NULL), CL_SUCCESS);
    EXPECT_INT_EQ(release_program(program), CL_SUCCESS);
    EXPECT_INT_EQ(release_context(context), CL_SUCCESS);

    EXPECT_FALSE(folder_is_empty(getenv("POCL_CACHE_DIR")));
}
