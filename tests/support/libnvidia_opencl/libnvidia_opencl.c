// See control.h.
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <weir/kit/signature.h>

#include "backends/clc/symbols.h"
#include "tests/support/libnvidia_opencl/control.h"
#include "tests/support/twins/twins.h"

#include <CL/cl_icd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    TABLE_SIZE = 123, // of OpenCL 1.2
    PAGE = 65536,
    STRUCTURE_BYTES = 16,
};

typedef void (*any_function)(void);

// Ends before an unreadable page.
static any_function *table;

// Each object begins with the table.
static struct _cl_platform_id {
    const any_function *dispatch;
} platform;
static struct _cl_device_id {
    const any_function *dispatch;
} device;
struct _cl_context {
    const any_function *dispatch;
};
struct _cl_program {
    const any_function *dispatch;
    char *text;
    bool described; // built with -cl-kernel-arg-info
    struct weir_kit_signatures *signatures;
    char *ptx;
    char log[512];
};
struct _cl_kernel {
    const any_function *dispatch;
    const struct _cl_program *program;
    const struct weir_kernel_signature *signature;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned architecture = 90;
static const char *driver = "580.0";
static bool strange;
static long live;
static char last_options[512];
static char *last_text;

// Kernels are never run here.
bool twin_may_write(const void *pointer, size_t size)
{
    return false;
}

// Counting calls, and failing on request.

// What the CUDA backend calls of it.
#define FUNCTIONS(X)             \
    X(clGetPlatformInfo)         \
    X(clGetDeviceIDs)            \
    X(clGetDeviceInfo)           \
    X(clCreateContext)           \
    X(clReleaseContext)          \
    X(clCreateProgramWithSource) \
    X(clReleaseProgram)          \
    X(clBuildProgram)            \
    X(clGetProgramInfo)          \
    X(clGetProgramBuildInfo)     \
    X(clCreateKernel)            \
    X(clCreateKernelsInProgram)  \
    X(clReleaseKernel)           \
    X(clGetKernelInfo)           \
    X(clGetKernelWorkGroupInfo)  \
    X(clGetKernelArgInfo)

static const char *const names[] = {
#define NAME(name) #name,
    FUNCTIONS(NAME)
#undef NAME
        "clIcdGetPlatformIDsKHR",
};

#define NAME_COUNT (sizeof names / sizeof *names)

#include "tests/support/calls.h"

// The function's own name is "fake_" and that of the call.
static cl_int admit(const char *function)
{
    return calls_strike(function + strlen("fake_")) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

#define ADMIT()                            \
    do {                                   \
        cl_int admitted = admit(__func__); \
        if (admitted != CL_SUCCESS)        \
            return admitted;               \
    } while (0)

#define ADMIT_CREATE(code)                 \
    do {                                   \
        cl_int admitted = admit(__func__); \
        if (code)                          \
            *(code) = admitted;            \
        if (admitted != CL_SUCCESS)        \
            return NULL;                   \
    } while (0)

static void count(long change)
{
    pthread_mutex_lock(&lock);
    live += change;
    pthread_mutex_unlock(&lock);
}

// Answers of any size.

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

static cl_int answer_text(const char *text, size_t size, void *out, size_t *out_size)
{
    return answer(text, strlen(text) + 1, size, out, out_size);
}

// Platform and device.

static cl_int fake_clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *out, cl_uint *out_count)
{
    ADMIT();
    if (out && room > 0)
        out[0] = &platform;
    if (out_count)
        *out_count = 1;
    return CL_SUCCESS;
}

static cl_int fake_clGetPlatformInfo(cl_platform_id of, cl_platform_info what, size_t size,
                                     void *out, size_t *out_size)
{
    ADMIT();
    if (of != &platform || what != CL_PLATFORM_VERSION)
        return CL_INVALID_VALUE;
    return answer_text("OpenCL 1.2 CUDA 9.1 of the tests", size, out, out_size);
}

static cl_int fake_clGetDeviceIDs(cl_platform_id of, cl_device_type type, cl_uint room,
                                  cl_device_id *out, cl_uint *out_count)
{
    ADMIT();
    if (of != &platform || !(type & CL_DEVICE_TYPE_GPU))
        return CL_DEVICE_NOT_FOUND;
    if (out && room > 0)
        out[0] = &device;
    if (out_count)
        *out_count = 1;
    return CL_SUCCESS;
}

static cl_int fake_clGetDeviceInfo(cl_device_id of, cl_device_info what, size_t size, void *out,
                                   size_t *out_size)
{
    ADMIT();
    const cl_uint major = architecture / 10;
    const cl_uint minor = architecture % 10;
    if (of != &device)
        return CL_INVALID_VALUE;
    switch (what) {
    case OCL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV:
        return answer(&major, sizeof major, size, out, out_size);
    case OCL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV:
        return answer(&minor, sizeof minor, size, out, out_size);
    case CL_DRIVER_VERSION:
        return answer_text(driver, size, out, out_size);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_context fake_clCreateContext(const cl_context_properties *properties,
                                       cl_uint device_count, const cl_device_id *devices,
                                       void (*notice)(const char *, const void *, size_t, void *),
                                       void *user, cl_int *code)
{
    ADMIT_CREATE(code);
    if (device_count != 1 || devices[0] != &device)
        abort();
    cl_context context = calloc(1, sizeof *context);
    context->dispatch = table;
    count(1);
    return context;
}

// As what is released in general: gone even when the call is made to fail.
static cl_int fake_clReleaseContext(cl_context context)
{
    cl_int code = admit(__func__);
    free(context);
    count(-1);
    return code;
}

// Text that grows.

static void append(char **text, const char *format, ...) WEIR_PRINTF(2, 3);

static void append(char **text, const char *format, ...)
{
    char *whole;
    char *more;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&more, format, arguments) < 0)
        abort();
    va_end(arguments);
    if (asprintf(&whole, "%s%s", *text ? *text : "", more) < 0)
        abort();
    free(more);
    free(*text);
    *text = whole;
}

// Programs.

static cl_program fake_clCreateProgramWithSource(cl_context context, cl_uint parts,
                                                 const char **texts, const size_t *lengths,
                                                 cl_int *code)
{
    ADMIT_CREATE(code);
    if (!context || lengths)
        abort();
    cl_program program = calloc(1, sizeof *program);
    program->dispatch = table;
    for (cl_uint i = 0; i < parts; i++)
        append(&program->text, "%s", texts[i]);
    count(1);
    return program;
}

static void forget_build(cl_program program)
{
    free(program->signatures);
    free(program->ptx);
    program->signatures = NULL;
    program->ptx = NULL;
    program->log[0] = '\0';
}

static cl_int fake_clReleaseProgram(cl_program program)
{
    cl_int code = admit(__func__);
    forget_build(program);
    free(program->text);
    free(program);
    count(-1);
    return code;
}

static weir_status no_error(const struct weir_error *detail, size_t size)
{
    return detail->status;
}

static void *allocate(size_t size)
{
    return calloc(1, size);
}

static const struct weir_host host = {
    .struct_size = sizeof host,
    .error = no_error,
    .allocate = allocate,
    .release = free,
};

// "sizeof(struct x)" becomes "16", padded with spaces.
static char *without_sizes(const char *text)
{
    char *copy = strdup(text);
    for (char *at = strstr(copy, "sizeof("); at; at = strstr(at, "sizeof(")) {
        const size_t length = strcspn(at, ")") + 1;
        char number[8];
        memset(at, ' ', length);
        memcpy(at, number, (size_t)snprintf(number, sizeof number, "%d", STRUCTURE_BYTES));
    }
    return copy;
}

// Lines are counted from what "#line 1" precedes.
static void refuse_kernel(cl_program program, const char *name)
{
    const char *marker = strstr(program->text, "#line 1 \"source\"\n");
    const char *start = marker ? strchr(marker, '\n') + 1 : program->text;
    const char *at = strstr(start, name);
    unsigned line = 1;
    for (const char *c = start; c < at; c++)
        line += *c == '\n';
    while (at > start && at[-1] != '\n')
        at--;
    snprintf(program->log, sizeof program->log,
             "source:%u:1: error: the device has no function '%s': %.*s\n", line, name,
             (int)strcspn(at, "\n"), at);
}

static bool is_probe(const struct weir_kernel_signature *kernel)
{
    return strcmp(kernel->name, "weir__size_probe") == 0;
}

static void write_parameter(char **ptx, const char *kernel, uint32_t index,
                            const struct weir_parameter *parameter, bool last)
{
    static const char *const types[] = {[1] = ".u8", [2] = ".u16", [4] = ".u32", [8] = ".u64"};
    const char *end = last ? "" : ",";
    const uint32_t size = parameter->size ? parameter->size : STRUCTURE_BYTES;
    if (parameter->kind == WEIR_PARAMETER_LOCAL)
        append(ptx, "\t.param .u64 .ptr .shared .align 4 %s_param_%u%s\n", kernel, index, end);
    else if (parameter->kind == WEIR_PARAMETER_BUFFER)
        append(ptx, "\t.param .u64 .ptr .global .align 4 %s_param_%u%s\n", kernel, index, end);
    else if (size <= 8 && types[size])
        append(ptx, "\t.param %s %s_param_%u%s\n", types[size], kernel, index, end);
    else
        append(ptx, "\t.param .align 8 .b8 %s_param_%u[%u]%s\n", kernel, index, size, end);
}

static void write_kernel(char **ptx, const struct weir_kernel_signature *kernel)
{
    append(ptx, ".entry %s(\n", kernel->name);
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        write_parameter(ptx, kernel->name, i, &kernel->parameters[i],
                        i + 1 == kernel->parameter_count);
    append(ptx, ")\n{\n\t.reg .b64 \t%%rd<9>;\n");
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        if (kernel->parameters[i].kind == WEIR_PARAMETER_LOCAL)
            append(ptx, "\t%s.u64 \t%%rd1, [%s_param_%u];\n", strange ? "mov" : "ld.param",
                   kernel->name, i);
    append(ptx, "\tret;\n}\n");
}

static bool describe(cl_program program)
{
    char *text = without_sizes(program->text);
    const weir_status status = weir_kit_signatures_read(&host, text, &program->signatures);
    free(text);
    if (status < 0) {
        snprintf(program->log, sizeof program->log, "source:1:1: error: no kernel is understood\n");
        return false;
    }
    for (uint32_t i = 0; i < program->signatures->kernel_count; i++) {
        const struct weir_kernel_signature *kernel = &program->signatures->kernels[i];
        if (!is_probe(kernel) && !twin_find(kernel->name)) {
            refuse_kernel(program, kernel->name);
            return false;
        }
        if (program->described && kernel->parameter_count == 0)
            return false;
    }
    return true;
}

static void keep_build(const char *text, const char *options)
{
    pthread_mutex_lock(&lock);
    free(last_text);
    last_text = strdup(text);
    snprintf(last_options, sizeof last_options, "%s", options);
    pthread_mutex_unlock(&lock);
}

static cl_int fake_clBuildProgram(cl_program program, cl_uint device_count,
                                  const cl_device_id *devices, const char *options,
                                  void (*notice)(cl_program, void *), void *user)
{
    ADMIT();
    if (device_count != 1 || devices[0] != &device)
        abort();
    keep_build(program->text, options);
    forget_build(program);
    program->described = strstr(options, "-cl-kernel-arg-info") != NULL;
    if (!describe(program))
        return CL_BUILD_PROGRAM_FAILURE;
    append(&program->ptx,
           "//\n// made by a driver\n//\n.version 8.0\n.target sm_%u, texmode_independent\n"
           ".address_size 64\n\n",
           architecture);
    if (strstr(program->text, "printf("))
        append(&program->ptx,
               ".func  (.param .b32 func_retval0) vprintf\n(\n"
               "\t.param .b64 vprintf_param_0,\n\t.param .b64 vprintf_param_1\n)\n;\n");
    for (uint32_t i = 0; i < program->signatures->kernel_count; i++)
        write_kernel(&program->ptx, &program->signatures->kernels[i]);
    return CL_SUCCESS;
}

static cl_int fake_clGetProgramInfo(cl_program program, cl_program_info what, size_t size,
                                    void *out, size_t *out_size)
{
    ADMIT();
    const size_t length = strlen(program->ptx);
    if (what == CL_PROGRAM_BINARY_SIZES)
        return answer(&length, sizeof length, size, out, out_size);
    if (what != CL_PROGRAM_BINARIES || size != sizeof(char *))
        return CL_INVALID_VALUE;
    memcpy(*(char **)out, program->ptx, length);
    return CL_SUCCESS;
}

static cl_int fake_clGetProgramBuildInfo(cl_program program, cl_device_id of,
                                         cl_program_build_info what, size_t size, void *out,
                                         size_t *out_size)
{
    ADMIT();
    if (of != &device || what != CL_PROGRAM_BUILD_LOG)
        return CL_INVALID_VALUE;
    return answer_text(program->log, size, out, out_size);
}

// Kernels.

static cl_kernel make_kernel(cl_program program, const struct weir_kernel_signature *signature)
{
    cl_kernel kernel = calloc(1, sizeof *kernel);
    *kernel = (struct _cl_kernel){table, program, signature};
    count(1);
    return kernel;
}

static cl_kernel fake_clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    ADMIT_CREATE(code);
    for (uint32_t i = 0; i < program->signatures->kernel_count; i++)
        if (strcmp(program->signatures->kernels[i].name, name) == 0)
            return make_kernel(program, &program->signatures->kernels[i]);
    return NULL;
}

static cl_int fake_clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel *out,
                                            cl_uint *out_count)
{
    ADMIT();
    const uint32_t all = program->signatures->kernel_count;
    if (out && room < all)
        return CL_INVALID_VALUE;
    for (uint32_t i = 0; out && i < all; i++)
        out[i] = make_kernel(program, &program->signatures->kernels[i]);
    if (out_count)
        *out_count = all;
    return CL_SUCCESS;
}

static cl_int fake_clReleaseKernel(cl_kernel kernel)
{
    cl_int code = admit(__func__);
    free(kernel);
    count(-1);
    return code;
}

static cl_int fake_clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t size, void *out,
                                   size_t *out_size)
{
    ADMIT();
    const cl_uint parameters = kernel->signature->parameter_count;
    if (what == CL_KERNEL_FUNCTION_NAME)
        return answer_text(kernel->signature->name, size, out, out_size);
    if (what == CL_KERNEL_NUM_ARGS)
        return answer(&parameters, sizeof parameters, size, out, out_size);
    return CL_INVALID_VALUE;
}

static cl_int fake_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id of,
                                            cl_kernel_work_group_info what, size_t size, void *out,
                                            size_t *out_size)
{
    ADMIT();
    const struct weir_extent required = kernel->signature->required_block;
    const size_t block[3] = {required.x, required.y, required.z};
    if (of != &device || what != CL_KERNEL_COMPILE_WORK_GROUP_SIZE)
        return CL_INVALID_VALUE;
    return answer(block, sizeof block, size, out, out_size);
}

static cl_int answer_space(const struct weir_parameter *parameter, size_t size, void *out,
                           size_t *out_size)
{
    const cl_kernel_arg_address_qualifier space =
        parameter->kind == WEIR_PARAMETER_LOCAL    ? CL_KERNEL_ARG_ADDRESS_LOCAL
        : parameter->constant                      ? CL_KERNEL_ARG_ADDRESS_CONSTANT
        : parameter->kind == WEIR_PARAMETER_BUFFER ? CL_KERNEL_ARG_ADDRESS_GLOBAL
                                                   : CL_KERNEL_ARG_ADDRESS_PRIVATE;
    return answer(&space, sizeof space, size, out, out_size);
}

// "const float *" is of type "float*" and has a qualifier.
static cl_int answer_type(const struct weir_parameter *parameter, size_t size, void *out,
                          size_t *out_size)
{
    const bool marked = strncmp(parameter->type_name, "const ", 6) == 0;
    char type[128];
    snprintf(type, sizeof type, "%s", parameter->type_name + (marked ? 6 : 0));
    char *space = strstr(type, " *");
    if (space)
        memmove(space, space + 1, strlen(space));
    return answer_text(type, size, out, out_size);
}

static cl_int fake_clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what,
                                      size_t size, void *out, size_t *out_size)
{
    ADMIT();
    if (!kernel->program->described)
        return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    if (index >= kernel->signature->parameter_count)
        return CL_INVALID_VALUE;
    const struct weir_parameter *parameter = &kernel->signature->parameters[index];
    const cl_kernel_arg_type_qualifier qualifiers =
        strncmp(parameter->type_name, "const ", 6) == 0 ? CL_KERNEL_ARG_TYPE_CONST : 0;
    switch (what) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
        return answer_space(parameter, size, out, out_size);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
        return answer(&qualifiers, sizeof qualifiers, size, out, out_size);
    case CL_KERNEL_ARG_NAME:
        return answer_text(parameter->name, size, out, out_size);
    case CL_KERNEL_ARG_TYPE_NAME:
        return answer_type(parameter, size, out, out_size);
    default:
        return CL_INVALID_VALUE;
    }
}

// What is exported.

EXPORT void *clGetExtensionFunctionAddress(const char *name);
void *clGetExtensionFunctionAddress(const char *name)
{
    void *address = NULL;
    any_function function = (any_function)fake_clIcdGetPlatformIDsKHR;
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        memcpy(&address, &function, sizeof address);
    return address;
}

static long count_live(void)
{
    return live;
}

static void set_architecture(unsigned wanted)
{
    architecture = wanted;
}

static void set_driver(const char *version)
{
    driver = version;
}

static void set_strange(int on)
{
    strange = on;
}

static const char *get_text(void)
{
    return last_text ? last_text : "";
}

static const char *get_options(void)
{
    return last_options;
}

EXPORT extern const struct weir_test_nvidia_opencl weir_test_nvidia_opencl;
const struct weir_test_nvidia_opencl weir_test_nvidia_opencl = {
    .fail = calls_fail,
    .struck = calls_struck,
    .name = calls_name,
    .calls = calls_count,
    .live = count_live,
    .set_architecture = set_architecture,
    .set_driver = set_driver,
    .set_strange = set_strange,
    .text = get_text,
    .options = get_options,
};

static void make_table(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE) != 0)
        abort();
    table = (any_function *)(void *)(pages + PAGE) - TABLE_SIZE;
    platform.dispatch = table;
    device.dispatch = table;
}

__attribute__((constructor)) static void start(void)
{
    make_table();
#define ENTRY(name) \
    table[offsetof(cl_icd_dispatch, name) / sizeof(any_function)] = (any_function)fake_##name;
    FUNCTIONS(ENTRY)
#undef ENTRY
}

__attribute__((destructor)) static void end(void)
{
    munmap((char *)(table + TABLE_SIZE) - PAGE, 2 * PAGE);
    free(last_text);
}
