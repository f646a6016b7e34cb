// The libnvidia-opencl.so.1 of tests: it stands for the OpenCL compiler of NVIDIA's driver. As that one it exports
// clGetExtensionFunctionAddress alone: the others are in the table at which its platform begins, and which ends with
// the functions of OpenCL 1.2. PoCL compiles, and what is handed out is PTX with the kernels' parameters and none of
// their work, annotated as the driver's.
//
// In that driver a program in which some kernel has no parameters does not build with -cl-kernel-arg-info.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/libopencl/fake.h"

#include <CL/cl_icd.h>

enum {
    TABLE_SIZE = 123, // of OpenCL 1.2
    PAGE = 65536,
};

typedef void (*any_function)(void);

// Ends before an unreadable page.
static any_function *table;

static struct _cl_platform_id {
    const any_function *dispatch;
} platform;

// What the CUDA backend calls: the functions of this file, and those of libopencl.c.
#define OWN(X)                   \
    X(clGetPlatformInfo)         \
    X(clGetDeviceIDs)            \
    X(clGetDeviceInfo)           \
    X(clCreateProgramWithSource) \
    X(clBuildProgram)            \
    X(clGetProgramInfo)          \
    X(clGetKernelArgInfo)
#define OTHERS(X)               \
    X(clCreateContext)          \
    X(clReleaseContext)         \
    X(clReleaseProgram)         \
    X(clGetProgramBuildInfo)    \
    X(clCreateKernel)           \
    X(clCreateKernelsInProgram) \
    X(clReleaseKernel)          \
    X(clGetKernelInfo)          \
    X(clGetKernelWorkGroupInfo)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned architecture = 90;
static const char *driver = "580.0";
static bool strange;
static bool described; // the last build, with -cl-kernel-arg-info
static char last_options[512];
static char last_text[16384];

#define DRIVER_ADMIT() ADMIT_AS(__func__ + strlen("driver_"))

static cl_int answer(const void *value, size_t value_size, size_t size, void *out, size_t *out_size)
{
    if (out && size < value_size)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, value_size);
    if (out_size)
        *out_size = value_size;
    return CL_SUCCESS;
}

// Platform and device.

static cl_int driver_clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *out, cl_uint *out_count)
{
    DRIVER_ADMIT();
    if (out && room > 0)
        out[0] = &platform;
    if (out_count)
        *out_count = 1;
    return CL_SUCCESS;
}

static cl_int driver_clGetPlatformInfo(cl_platform_id of, cl_platform_info what, size_t size,
                                       void *out, size_t *out_size)
{
    static const char version[] = "OpenCL 1.2 CUDA 9.1 of the tests";
    DRIVER_ADMIT();
    if (of != &platform || what != CL_PLATFORM_VERSION)
        return CL_INVALID_VALUE;
    return answer(version, sizeof version, size, out, out_size);
}

static cl_int driver_clGetDeviceIDs(cl_platform_id of, cl_device_type type, cl_uint room,
                                    cl_device_id *out, cl_uint *out_count)
{
    cl_platform_id real;
    DRIVER_ADMIT();
    if (of != &platform || !(type & CL_DEVICE_TYPE_GPU))
        return CL_DEVICE_NOT_FOUND;
    const cl_int code = fake_real.clGetPlatformIDs(1, &real, NULL);
    return code == CL_SUCCESS
               ? fake_real.clGetDeviceIDs(real, CL_DEVICE_TYPE_ALL, room, out, out_count)
               : code;
}

static cl_int driver_clGetDeviceInfo(cl_device_id of, cl_device_info what, size_t size, void *out,
                                     size_t *out_size)
{
    DRIVER_ADMIT();
    const cl_uint capability[] = {architecture / 10, architecture % 10};
    if (what == CL_DRIVER_VERSION)
        return answer(driver, strlen(driver) + 1, size, out, out_size);
    if (what != OCL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV &&
        what != OCL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV)
        return CL_INVALID_VALUE;
    return answer(&capability[what == OCL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV], sizeof capability[0],
                  size, out, out_size);
}

// Programs.

static cl_program driver_clCreateProgramWithSource(cl_context context, cl_uint count,
                                                   const char **parts, const size_t *sizes,
                                                   cl_int *error)
{
    size_t used = 0;
    pthread_mutex_lock(&lock);
    last_text[0] = '\0';
    for (cl_uint i = 0; i < count && used < sizeof last_text; i++)
        used += (size_t)snprintf(last_text + used, sizeof last_text - used, "%s", parts[i]);
    pthread_mutex_unlock(&lock);
    return clCreateProgramWithSource(context, count, parts, sizes, error);
}

// What a kernel of the program tells; `user` is the caller's.
typedef void (*visitor)(void *user, cl_kernel kernel, const char *name, cl_uint parameters);

static void visit_kernels(cl_program program, visitor visit, void *user)
{
    cl_kernel kernels[64];
    cl_uint count = 0;
    if (fake_real.clCreateKernelsInProgram(program, 64, kernels, &count) != CL_SUCCESS)
        count = 0;
    for (cl_uint i = 0; i < count; i++) {
        char name[128] = "";
        cl_uint parameters = 0;
        fake_real.clGetKernelInfo(kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
        fake_real.clGetKernelInfo(kernels[i], CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters,
                                  NULL);
        visit(user, kernels[i], name, parameters);
        fake_real.clReleaseKernel(kernels[i]);
    }
}

static void see_empty(void *user, cl_kernel kernel, const char *name, cl_uint parameters)
{
    *(bool *)user |= parameters == 0;
}

static cl_int driver_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                    const char *options, void (*notify)(cl_program, void *),
                                    void *user)
{
    bool is_empty = false;
    pthread_mutex_lock(&lock);
    described = strstr(options, "-cl-kernel-arg-info") != NULL;
    const bool refuses = described;
    snprintf(last_options, sizeof last_options, "%s", options);
    pthread_mutex_unlock(&lock);
    const cl_int code = clBuildProgram(program, count, devices, options, notify, user);
    if (code == CL_SUCCESS && refuses)
        visit_kernels(program, see_empty, &is_empty);
    return is_empty ? CL_BUILD_PROGRAM_FAILURE : code;
}

static void write_kernel(void *ptx, cl_kernel kernel, const char *name, cl_uint parameters)
{
    cl_kernel_arg_address_qualifier space[64] = {0};
    fprintf(ptx, ".entry %s(\n", name);
    for (cl_uint i = 0; i < parameters; i++) {
        fake_real.clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space[i],
                                     &space[i], NULL);
        fprintf(ptx, "\t.param .u64%s %s_param_%u%s\n",
                space[i] == CL_KERNEL_ARG_ADDRESS_LOCAL     ? " .ptr .shared .align 4"
                : space[i] == CL_KERNEL_ARG_ADDRESS_PRIVATE ? ""
                                                            : " .ptr .global .align 4",
                name, i, i + 1 == parameters ? "" : ",");
    }
    fprintf(ptx, ")\n{\n\t.reg .b64 \t%%rd<9>;\n");
    for (cl_uint i = 0; i < parameters; i++)
        if (space[i] == CL_KERNEL_ARG_ADDRESS_LOCAL)
            fprintf(ptx, "\t%s.u64 \t%%rd1, [%s_param_%u];\n", strange ? "mov" : "ld.param", name,
                    i);
    fprintf(ptx, "\tret;\n}\n");
}

static char *make_ptx(cl_program program, size_t *out_size)
{
    char *text = NULL;
    FILE *ptx = open_memstream(&text, out_size);
    if (!ptx)
        abort();
    fprintf(ptx,
            "//\n// made by a driver\n//\n.version 8.0\n.target sm_%u, texmode_independent\n"
            ".address_size 64\n\n",
            architecture);
    if (strstr(last_text, "printf("))
        fprintf(ptx, ".func  (.param .b32 func_retval0) vprintf\n(\n"
                     "\t.param .b64 vprintf_param_0,\n\t.param .b64 vprintf_param_1\n)\n;\n");
    visit_kernels(program, write_kernel, ptx);
    if (fclose(ptx) != 0)
        abort();
    return text;
}

static cl_int driver_clGetProgramInfo(cl_program program, cl_program_info what, size_t size,
                                      void *out, size_t *out_size)
{
    size_t length = 0;
    cl_int code = CL_SUCCESS;
    DRIVER_ADMIT();
    char *ptx = make_ptx(program, &length);
    if (what == CL_PROGRAM_BINARY_SIZES)
        code = answer(&length, sizeof length, size, out, out_size);
    else if (what == CL_PROGRAM_BINARIES && size == sizeof(char *))
        memcpy(*(char **)out, ptx, length);
    else
        code = CL_INVALID_VALUE;
    free(ptx);
    return code;
}

static cl_int driver_clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what,
                                        size_t size, void *out, size_t *out_size)
{
    const cl_int code = clGetKernelArgInfo(kernel, index, what, size, out, out_size);
    return code == CL_SUCCESS && !described ? CL_KERNEL_ARG_INFO_NOT_AVAILABLE : code;
}

// What is exported.

__attribute__((visibility("default"))) void *clGetExtensionFunctionAddress(const char *name);
void *clGetExtensionFunctionAddress(const char *name)
{
    void *address = NULL;
    any_function function = (any_function)driver_clIcdGetPlatformIDsKHR;
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        memcpy(&address, &function, sizeof address);
    return address;
}

// Index of the functions that may be called.
static const char *name_of(size_t index)
{
    static const char *const names[] = {
#define NAME(name) #name,
        OWN(NAME) OTHERS(NAME)
#undef NAME
            "clIcdGetPlatformIDsKHR",
        NULL};
    return names[index];
}

static void set_driver(unsigned wanted, const char *version, int is_strange)
{
    architecture = wanted;
    driver = version;
    strange = is_strange;
}

static const char *get_text(void)
{
    return last_text;
}

static const char *get_options(void)
{
    return last_options;
}

static long count_live(void)
{
    return fake_live;
}

__attribute__((
    visibility("default"))) extern const struct weir_test_opencl_driver weir_test_opencl_driver;
const struct weir_test_opencl_driver weir_test_opencl_driver = {
    .calls = &weir_test_opencl,
    .name = name_of,
    .live = count_live,
    .set = set_driver,
    .text = get_text,
    .options = get_options,
};

__attribute__((constructor)) static void start(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE) != 0)
        abort();
    table = (any_function *)(void *)(pages + PAGE) - TABLE_SIZE;
    platform.dispatch = table;
    for (size_t i = 0; i < TABLE_SIZE && !getenv("WEIR_TEST_OPENCL_LACKING"); i++)
        table[i] = abort; // what no test calls
#define ENTRY(name, function) \
    table[offsetof(cl_icd_dispatch, name) / sizeof(any_function)] = (any_function)(function);
#define OWN_ENTRY(name) ENTRY(name, driver_##name)
#define OTHER_ENTRY(name) ENTRY(name, name)
    OWN(OWN_ENTRY)
    OTHERS(OTHER_ENTRY)
#undef OTHER_ENTRY
#undef OWN_ENTRY
#undef ENTRY
}
