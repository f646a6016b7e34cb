// A libOpenCL.so.1 for tests: it forwards every call that the OpenCL backend makes to
// the machine's own libOpenCL, and interferes on request.
//
//   WEIR_TEST_REAL_OPENCL=PATH     the library to forward to; by default the
//                                  libOpenCL.so.1 of the usual system folders. Always
//                                  a path: the bare name would find this file again.
//   WEIR_TEST_OPENCL_WITHHOLD=1    holds back what is enqueued until its queue is
//                                  flushed. Each queue has a gate, which is a user
//                                  event that every command waits for beside its own
//                                  wait list; clFlush and clFinish of the queue,
//                                  blocking commands and its release open the gate,
//                                  and the next command gets a new one. Waiting for an
//                                  event opens nothing. So if the backend misses a
//                                  flush, the waiter hangs, and the test times out.
//                                  For PoCL's threaded device: on its serial one
//                                  commands do not wait for user events.
//   WEIR_TEST_OPENCL_NO_SVM=1      every device says that it has no shared virtual
//                                  memory, so that HOST buffers are pinned memory.
//   WEIR_TEST_OPENCL_NO_TIMES=1    every device says that it has no times.
//   WEIR_TEST_OPENCL_ERRORS_STAY=1 every device has NVIDIA's extension.
//   WEIR_TEST_OPENCL_WIDE_BASE=1   sub-buffers begin at multiples of 512 bytes.
//
// The environment is read once, when the library is loaded. In the process that
// loaded it, a test may look up `weir_test_opencl` in it: control.h.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/libopencl/fake.h"

cl_event (*fake_create_user_event)(cl_context, cl_int *);
cl_int (*fake_set_user_event_status)(cl_event, cl_int);

struct ocl_symbols fake_real;
bool fake_withholds;
static bool hides_svm;
unsigned fake_played;
atomic_long fake_live;

// Failing on request.

static const char *const names[] = {
#define NAME(since, name) #name,
    OCL_SYMBOLS(NAME)
#undef NAME
#ifdef FAKE_DRIVER
        "clIcdGetPlatformIDsKHR",
#endif
};

#define NAME_COUNT (sizeof names / sizeof *names)

#include "tests/support/calls.h"

static int failing_code;

static const char *const real_paths[] = {
    "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1",
    "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1",
    "/usr/lib64/libOpenCL.so.1",
    "/usr/lib/libOpenCL.so.1",
};

static void *open_real(void)
{
    const char *path = getenv("WEIR_TEST_REAL_OPENCL");
    if (path)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof real_paths / sizeof *real_paths; i++) {
        void *library = dlopen(real_paths[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

static void find(void *library, const char *name, void *out_function)
{
    void *address = dlsym(library, name);
    memcpy(out_function, &address, sizeof address);
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && strcmp(value, "1") == 0;
}

static void set_failure(const char *name, long n, int code)
{
    failing_code = code ? code : CL_OUT_OF_RESOURCES;
    calls_fail(name, n);
}

cl_int fake_admit(const char *name)
{
    return calls_strike(name) ? failing_code : CL_SUCCESS;
}

static void hide_svm(int hidden)
{
    hides_svm = hidden;
}

static void play(unsigned bits)
{
    fake_played = bits;
    fake_misused = false;
}

static void (*hear)(const char *, const void *, size_t, void *);

static void notice(const char *text)
{
    hear(text, NULL, 0, NULL);
}

static int misused(void)
{
    return fake_misused;
}

const struct weir_test_opencl weir_test_opencl = {
    .fail = set_failure,
    .struck = calls_struck,
    .calls = calls_count,
    .name = calls_name,
    .hide_svm = hide_svm,
    .fail_launch = fake_fail_launch,
    .fail_command = fake_fail_command,
    .play = play,
    .notice = notice,
    .misused = misused,
};

// Of programs that are started.
static const struct {
    const char *variable;
    unsigned bit;
} plays[] = {
    {"WEIR_TEST_OPENCL_NO_TIMES", WEIR_TEST_OPENCL_NO_TIMES},
    {"WEIR_TEST_OPENCL_ERRORS_STAY", WEIR_TEST_OPENCL_ERRORS_STAY},
    {"WEIR_TEST_OPENCL_SMALL_TOLD", WEIR_TEST_OPENCL_SMALL_TOLD},
    {"WEIR_TEST_OPENCL_NEW_NAMES", WEIR_TEST_OPENCL_NEW_NAMES},
    {"WEIR_TEST_OPENCL_WIDE_BASE", WEIR_TEST_OPENCL_WIDE_BASE},
};

__attribute__((constructor)) static void start(void)
{
    void *library = open_real();
    if (!library) {
        fprintf(stderr,
                "tests/support/libopencl: no real libOpenCL.so.1 (%s); set "
                "WEIR_TEST_REAL_OPENCL to its path\n",
                dlerror());
        exit(1);
    }
#define FIND(since, name) find(library, #name, &fake_real.name);
    OCL_SYMBOLS(FIND)
#undef FIND
    find(library, "clCreateUserEvent", &fake_create_user_event);
    find(library, "clSetUserEventStatus", &fake_set_user_event_status);

    fake_withholds = is_set("WEIR_TEST_OPENCL_WITHHOLD");
    hides_svm = is_set("WEIR_TEST_OPENCL_NO_SVM");
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++)
        if (is_set(plays[i].variable))
            fake_played |= plays[i].bit;
}

// Calls that are forwarded unchanged.
#define FORWARD(name, parameters, arguments) \
    EXPORT cl_int name parameters            \
    {                                        \
        ADMIT();                             \
        return fake_real.name arguments;     \
    }

// A call that releases something does so even when it is made to fail.
#define FORWARD_RELEASE(name, parameters, arguments)    \
    EXPORT cl_int name parameters                       \
    {                                                   \
        const cl_int code = fake_admit(#name);          \
        const cl_int answer = fake_real.name arguments; \
        fake_live--;                                    \
        return code == CL_SUCCESS ? answer : code;      \
    }

static void *made(void *object)
{
    fake_live += object != NULL;
    return object;
}

// Calls that store an error code and return a handle.
#define FORWARD_CREATE(result, name, parameters, arguments) \
    EXPORT result name parameters                           \
    {                                                       \
        ADMIT_CREATE();                                     \
        return made(fake_real.name arguments);              \
    }

// clang-format off
FORWARD(clGetPlatformIDs, (cl_uint size, cl_platform_id *list, cl_uint *count), (size, list, count))
FORWARD(clGetDeviceIDs, (cl_platform_id platform, cl_device_type type, cl_uint size, cl_device_id *list, cl_uint *count), (platform, type, size, list, count))
FORWARD_RELEASE(clReleaseContext, (cl_context context), (context))
FORWARD_CREATE(cl_command_queue, clCreateCommandQueue, (cl_context context, cl_device_id device, cl_command_queue_properties flags, cl_int *error), (context, device, flags, error))
FORWARD_CREATE(cl_command_queue, clCreateCommandQueueWithProperties, (cl_context context, cl_device_id device, const cl_queue_properties *properties, cl_int *error), (context, device, properties, error))
FORWARD(clRetainCommandQueue, (cl_command_queue queue), (queue))
FORWARD(clGetCommandQueueInfo, (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value, size_t *used), (queue, what, size, value, used))
FORWARD(clRetainMemObject, (cl_mem memory), (memory))
FORWARD(clWaitForEvents, (cl_uint count, const cl_event *events), (count, events))
FORWARD(clRetainEvent, (cl_event event), (event))
FORWARD_RELEASE(clReleaseEvent, (cl_event event), (event))
FORWARD_CREATE(cl_program, clCreateProgramWithBinary, (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *sizes, const unsigned char **binaries, cl_int *states, cl_int *error), (context, count, devices, sizes, binaries, states, error))
FORWARD(clGetProgramInfo, (cl_program program, cl_program_info what, size_t size, void *value, size_t *used), (program, what, size, value, used))
FORWARD(clGetProgramBuildInfo, (cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value, size_t *used), (program, device, what, size, value, used))
FORWARD_RELEASE(clReleaseProgram, (cl_program program), (program))
FORWARD_CREATE(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *error), (program, name, error))
FORWARD_RELEASE(clReleaseKernel, (cl_kernel kernel), (kernel))
FORWARD(clGetKernelInfo, (cl_kernel kernel, cl_kernel_info what, size_t size, void *value, size_t *used), (kernel, what, size, value, used))
FORWARD(clGetKernelArgInfo, (cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t size, void *value, size_t *used), (kernel, index, what, size, value, used))
FORWARD(clSetKernelArgSVMPointer, (cl_kernel kernel, cl_uint index, const void *pointer), (kernel, index, pointer))
// clang-format on

// What devices, platforms, programs and kernels tell, and contexts.

EXPORT cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                       cl_kernel_work_group_info what, size_t size, void *value,
                                       size_t *used)
{
    ADMIT();
    cl_int code = fake_real.clGetKernelWorkGroupInfo(kernel, device, what, size, value, used);
    if (fake_plays(WEIR_TEST_OPENCL_SMALL_TOLD) && what == CL_KERNEL_WORK_GROUP_SIZE && value)
        *(size_t *)value = 32;
    return code;
}

EXPORT cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **parts,
                                            const size_t *sizes, cl_int *error)
{
    static const char without[] = "#define wait_group_events(count, events) not_in_the_library\n";
    const char *longer[5] = {without};
    ADMIT_CREATE();
    if (!fake_plays(WEIR_TEST_OPENCL_NO_GROUP_WAITS) || sizes || count > 4)
        return made(fake_real.clCreateProgramWithSource(context, count, parts, sizes, error));
    memcpy(longer + 1, parts, count * sizeof *parts);
    return made(fake_real.clCreateProgramWithSource(context, count + 1, longer, NULL, error));
}

EXPORT cl_int clCreateKernelsInProgram(cl_program program, cl_uint size, cl_kernel *list,
                                       cl_uint *count)
{
    cl_uint all = 0;
    ADMIT();
    cl_int code = fake_real.clCreateKernelsInProgram(program, size, list, &all);
    if (code == CL_SUCCESS && list)
        fake_live += all;
    if (count)
        *count = all;
    return code;
}

EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                             const char *options, void (*notify)(cl_program, void *), void *user)
{
    ADMIT();
    if (fake_plays(WEIR_TEST_OPENCL_NO_C_2) && options && strstr(options, "-cl-std=CL2"))
        return CL_INVALID_BUILD_OPTIONS;
    return fake_real.clBuildProgram(program, count, devices, options, notify, user);
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size,
                                void *value, size_t *used)
{
    ADMIT();
    cl_int code = fake_real.clGetPlatformInfo(platform, what, size, value, used);
    if (what == CL_PLATFORM_NAME && value && fake_plays(WEIR_TEST_OPENCL_ANOTHER_NAME))
        snprintf(value, size, "the platform of the tests");
    if (what != CL_PLATFORM_VERSION || !value)
        return code;
    if (fake_plays(WEIR_TEST_OPENCL_SUB_BUFFERS))
        snprintf(value, size, "OpenCL 3.0 PoCL 7.1 of the tests");
    if (fake_plays(WEIR_TEST_OPENCL_NO_C_2))
        snprintf(value, size, "OpenCL 3.0 PoCL 6.0 of the tests");
    if (fake_plays(WEIR_TEST_OPENCL_NO_GROUP_WAITS))
        snprintf(value, size, "OpenCL 3.0 PoCL 5.0 of the tests");
    return code;
}

// The driver's list and one name more.
static cl_int list_extensions(cl_device_id device, const char *more, size_t size, void *value,
                              size_t *used)
{
    const size_t more_length = strlen(more);
    size_t length = 0;
    cl_int code = fake_real.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &length);
    if (code == CL_SUCCESS && value && size < length + more_length)
        code = CL_OUT_OF_RESOURCES;
    if (code == CL_SUCCESS && value)
        code = fake_real.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, length, value, NULL);
    if (code == CL_SUCCESS && value)
        memcpy((char *)value + length - 1, more, more_length + 1);
    if (code == CL_SUCCESS && used)
        *used = length + more_length;
    return code;
}

// The driver is not told of what only this library offers.
EXPORT cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                                  const cl_device_id *devices,
                                  void (*message)(const char *, const void *, size_t, void *),
                                  void *user, cl_int *error)
{
    cl_context_properties kept[16] = {0};
    size_t used = 0;
    ADMIT_CREATE();
    hear = message;
    for (; properties && *properties; properties += 2) {
        if (used + 3 < 16) {
            kept[used++] = properties[0];
            kept[used++] = properties[1];
        }
    }
    return made(fake_real.clCreateContext(kept, count, devices, message, user, error));
}

static void play_limits(cl_device_info what, void *value)
{
    if (fake_plays(WEIR_TEST_OPENCL_SYSTEM_SVM) && what == CL_DEVICE_SVM_CAPABILITIES)
        *(cl_device_svm_capabilities *)value |= CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    // PoCL 6 has it, and then no parts of buffers are made.
    if (fake_plays(WEIR_TEST_OPENCL_SUB_BUFFERS) && what == CL_DEVICE_SVM_CAPABILITIES)
        *(cl_device_svm_capabilities *)value &=
            ~(cl_device_svm_capabilities)CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    if (fake_plays(WEIR_TEST_OPENCL_WIDE_BASE) && what == CL_DEVICE_MEM_BASE_ADDR_ALIGN)
        *(cl_uint *)value = 8 * 512;
    if (fake_plays(WEIR_TEST_OPENCL_NO_TIMES) && what == CL_DEVICE_PROFILING_TIMER_RESOLUTION)
        *(size_t *)value = 0;
    if (fake_plays(WEIR_TEST_OPENCL_NO_BLOCKS) && what == CL_DEVICE_MAX_WORK_GROUP_SIZE)
        *(size_t *)value = 0;
    if (fake_plays(WEIR_TEST_OPENCL_NO_BUFFERS) && what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        *(cl_ulong *)value = 0;
}

// PoCL's device as PoCL 6 calls it: the part of its name before the processor's is another.
static cl_int tell_new_name(cl_device_id device, size_t size, void *value, size_t *used)
{
    char name[256] = "";
    char renamed[280];
    cl_int code = fake_real.clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
    if (code != CL_SUCCESS)
        return code;
    const char *rest = strchr(name, '-');
    snprintf(renamed, sizeof renamed, "%s%s",
             strncmp(name, "basic", 5) == 0 ? "cpu-minimal" : "cpu", rest ? rest : "");
    if (used)
        *used = strlen(renamed) + 1;
    if (value && size <= strlen(renamed))
        return CL_OUT_OF_RESOURCES;
    if (value)
        memcpy(value, renamed, strlen(renamed) + 1);
    return CL_SUCCESS;
}

EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *value,
                              size_t *used)
{
    ADMIT();
    if (fake_plays(WEIR_TEST_OPENCL_ERRORS_STAY) && what == CL_DEVICE_EXTENSIONS)
        return list_extensions(device, " cl_nv_device_attribute_query", size, value, used);
    if (fake_plays(WEIR_TEST_OPENCL_NEW_NAMES) && what == CL_DEVICE_NAME)
        return tell_new_name(device, size, value, used);
    cl_int code = fake_real.clGetDeviceInfo(device, what, size, value, used);
    if (hides_svm && what == CL_DEVICE_SVM_CAPABILITIES && value && code == CL_SUCCESS)
        memset(value, 0, sizeof(cl_device_svm_capabilities));
    if (value && code == CL_SUCCESS)
        play_limits(what, value);
    return code;
}
