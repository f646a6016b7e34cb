// What devices, platforms, programs and kernels tell, contexts, and what kernels print.
#include <stdio.h>
#include <string.h>

#include "tests/support/libopencl/fake.h"

static bool offers_prints;
static struct {
    void (*function)(const char *, size_t, size_t, void *);
    void *user;
} printer;

void fake_offer_prints(int offered)
{
    offers_prints = offered;
    printer.function = NULL;
}

int fake_print(const char *text, size_t size, size_t is_last)
{
    if (printer.function)
        printer.function(text, size, is_last, printer.user);
    return printer.function != NULL;
}

static void (*hear)(const char *, const void *, size_t, void *);

void fake_notice(const char *text)
{
    hear(text, NULL, 0, NULL);
}

EXPORT cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                       cl_kernel_work_group_info what, size_t size, void *value,
                                       size_t *used)
{
    cl_int code = fake_admit("clGetKernelWorkGroupInfo");
    if (code != CL_SUCCESS)
        return code;
    code = fake_real.clGetKernelWorkGroupInfo(kernel, device, what, size, value, used);
    if (fake_plays(WEIR_TEST_OPENCL_SMALL_TOLD) && what == CL_KERNEL_WORK_GROUP_SIZE && value)
        *(size_t *)value = 32;
    return code;
}

EXPORT cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **parts,
                                            const size_t *sizes, cl_int *error)
{
    static const char without[] = "#define wait_group_events(count, events) not_in_the_library\n";
    const char *longer[5] = {without};
    cl_int code = fake_admit("clCreateProgramWithSource");
    if (code != CL_SUCCESS) {
        if (error)
            *error = code;
        return NULL;
    }
    if (!fake_plays(WEIR_TEST_OPENCL_NO_GROUP_WAITS) || sizes || count > 4)
        return fake_real.clCreateProgramWithSource(context, count, parts, sizes, error);
    memcpy(longer + 1, parts, count * sizeof *parts);
    return fake_real.clCreateProgramWithSource(context, count + 1, longer, NULL, error);
}

EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                             const char *options, void (*notify)(cl_program, void *), void *user)
{
    const cl_int code = fake_admit("clBuildProgram");
    if (code != CL_SUCCESS)
        return code;
    if (fake_plays(WEIR_TEST_OPENCL_NO_C_2) && options && strstr(options, "-cl-std=CL2"))
        return CL_INVALID_BUILD_OPTIONS;
    return fake_real.clBuildProgram(program, count, devices, options, notify, user);
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size,
                                void *value, size_t *used)
{
    cl_int code = fake_admit("clGetPlatformInfo");
    if (code != CL_SUCCESS)
        return code;
    code = fake_real.clGetPlatformInfo(platform, what, size, value, used);
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
    const cl_int code = fake_admit("clCreateContext");
    if (error)
        *error = code;
    if (code != CL_SUCCESS)
        return NULL;
    hear = message;
    for (; properties && *properties; properties += 2) {
        if (properties[0] == OCL_PRINTF_CALLBACK_ARM) {
            memcpy(&printer.function, &properties[1], sizeof printer.function);
            printer.user = user;
        } else if (properties[0] != OCL_PRINTF_BUFFERSIZE_ARM && used + 3 < 16) {
            kept[used++] = properties[0];
            kept[used++] = properties[1];
        }
    }
    return fake_real.clCreateContext(kept, count, devices, message, user, error);
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
    cl_int code = fake_admit("clGetDeviceInfo");
    if (code != CL_SUCCESS)
        return code;
    if (offers_prints && what == CL_DEVICE_EXTENSIONS)
        return list_extensions(device, " cl_arm_printf", size, value, used);
    if (fake_plays(WEIR_TEST_OPENCL_ERRORS_STAY) && what == CL_DEVICE_EXTENSIONS)
        return list_extensions(device, " cl_nv_device_attribute_query", size, value, used);
    if (fake_plays(WEIR_TEST_OPENCL_NEW_NAMES) && what == CL_DEVICE_NAME)
        return tell_new_name(device, size, value, used);
    code = fake_real.clGetDeviceInfo(device, what, size, value, used);
    if (fake_hides_svm && what == CL_DEVICE_SVM_CAPABILITIES && value && code == CL_SUCCESS)
        memset(value, 0, sizeof(cl_device_svm_capabilities));
    if (value && code == CL_SUCCESS)
        play_limits(what, value);
    return code;
}
