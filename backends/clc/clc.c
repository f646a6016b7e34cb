// A program of OpenCL C, built with a driver's compiler, and the signatures of its kernels.
#include <ctype.h>
#include <weir/kit/cache.h>
#include <weir/module/error.h>

#include "backends/clc/clc.h"

#define STANDARD "-cl-std=CL1.2 "
#define WITH_SIGNATURES "-cl-kernel-arg-info "

// Signatures of kernels that were compiled from source at run time. The driver reports them only
// for a program built from source, so the kernels' heads are written as text, which is stored with the cached
// binary, and signatures are always read from that text. Types are spelt as in the signatures that
// weir_kernels makes.

// No call tells the size of a structure. But a kernel's required block is known
// without running it, so a kernel that requires a block of that size tells.
static uint32_t probe_size(const struct clc_build *build, const char *type)
{
    const struct ocl_symbols *cl = build->cl;
    char probe[256];
    snprintf(probe, sizeof probe,
             "\n__kernel __attribute__((reqd_work_group_size(sizeof(%s), 1, 1)))"
             " void weir__size_probe(__global uint *unused) {}\n",
             type);
    const char *parts[] = {build->before, build->text, probe, build->after};
    size_t block[3] = {0, 0, 0};
    cl_kernel kernel = NULL;
    cl_program program = cl->clCreateProgramWithSource(build->context, 4, parts, NULL, NULL);
    if (program &&
        cl->clBuildProgram(program, 1, &build->device, build->options, NULL, NULL) == CL_SUCCESS)
        kernel = cl->clCreateKernel(program, "weir__size_probe", NULL);
    if (kernel) {
        cl->clGetKernelWorkGroupInfo(kernel, build->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                     sizeof block, block, NULL);
        cl->clReleaseKernel(kernel);
    }
    if (program)
        cl->clReleaseProgram(program);
    return (uint32_t)block[0];
}

// One parameter, as the driver reports it.
struct raw_parameter {
    char name[128];
    char type[128];
    cl_kernel_arg_address_qualifier space;
    cl_kernel_arg_type_qualifier qualifiers;
};

static cl_int ask_parameter(const struct ocl_symbols *cl, cl_kernel kernel, cl_uint index,
                            struct raw_parameter *raw)
{
    memset(raw, 0, sizeof *raw);
    cl_int code = cl->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                         sizeof raw->space, &raw->space, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER,
                                      sizeof raw->qualifiers, &raw->qualifiers, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_NAME, sizeof raw->name,
                                      raw->name, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof raw->type,
                                      raw->type, NULL);
    if (raw->name[0] == '\0')
        snprintf(raw->name, sizeof raw->name, "parameter_%u", (unsigned)index);
    return code;
}

// Types of OpenCL C, of which a structure's name may be the beginning or the end.
static bool is_object(const struct raw_parameter *raw)
{
    static const char *const names[] = {"sampler_t", "queue_t", "pipe"};
    const size_t length = strcspn(raw->type, " *");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (length == strlen(names[i]) && strncmp(raw->type, names[i], length) == 0)
            return true;
    return strncmp(raw->type, "image", 5) == 0 && isdigit((unsigned char)raw->type[5]) &&
           raw->type[6] == 'd' && strncmp(raw->type + length - 2, "_t", 2) == 0;
}

// Those of structures are told.
static weir_status write_value(FILE *heads, const struct clc_build *build, const char *kernel,
                               const struct raw_parameter *raw)
{
    struct weir_parameter parameter = {.kind = WEIR_PARAMETER_VALUE, .type_name = raw->type};
    weir_kit_parameter_describe(&parameter, false);
    const uint32_t size = parameter.size ? 0 : probe_size(build, raw->type);
    if (parameter.size)
        fprintf(heads, "%s %s", raw->type, raw->name);
    else if (size)
        fprintf(heads, "%s:%u %s", raw->type, (unsigned)size, raw->name);
    else
        return weir_host_fail(build->host, WEIR_ERROR_UNSUPPORTED, "pass the values one by one",
                              "kernel '%s': the driver does not tell the size of '%s', of "
                              "parameter '%s'",
                              kernel, raw->type, raw->name);
    return WEIR_OK;
}

static weir_status write_parameter(FILE *heads, const struct clc_build *build, const char *kernel,
                                   const struct raw_parameter *raw)
{
    char place[32] = "";
    if (is_object(raw)) {
        const unsigned line = weir_kit_parameter_line(build->text, kernel, raw->name);
        if (line > 0)
            snprintf(place, sizeof place, "source:%u: ", line);
        return weir_host_fail(build->host, WEIR_ERROR_UNSUPPORTED,
                              "pass image2d_t and its like, or a buffer",
                              "%skernel '%s': parameter '%s' is of type %s, and a launch passes "
                              "values, buffers and local memory",
                              place, kernel, raw->name, raw->type);
    }
    if (raw->space == CL_KERNEL_ARG_ADDRESS_PRIVATE)
        return write_value(heads, build, kernel, raw);
    fprintf(heads, "%s %s%.*s *%s",
            raw->space == CL_KERNEL_ARG_ADDRESS_LOCAL      ? "__local"
            : raw->space == CL_KERNEL_ARG_ADDRESS_CONSTANT ? "__constant"
                                                           : "__global",
            raw->qualifiers & CL_KERNEL_ARG_TYPE_CONST ? "const " : "",
            (int)strcspn(raw->type, "*"), raw->type, raw->name);
    return WEIR_OK;
}

static weir_status write_kernel(FILE *heads, const struct clc_build *build, cl_kernel kernel)
{
    const struct ocl_symbols *cl = build->cl;
    char name[256] = "";
    cl_uint count = 0;
    size_t block[3] = {0, 0, 0};
    const char *call = "clGetKernelInfo";
    cl_int code = cl->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (code == CL_SUCCESS) {
        call = "clGetKernelWorkGroupInfo";
        code =
            cl->clGetKernelWorkGroupInfo(kernel, build->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                         sizeof block, block, NULL);
    }
    fprintf(heads, "__kernel __attribute__((reqd_work_group_size(%zu, %zu, %zu))) void %s(",
            block[0], block[1], block[2], name);
    weir_status status = WEIR_OK;
    for (cl_uint i = 0; i < count && code == CL_SUCCESS && status == WEIR_OK; i++) {
        struct raw_parameter raw;
        call = "clGetKernelArgInfo";
        code = ask_parameter(cl, kernel, i, &raw);
        fprintf(heads, "%s", i > 0 ? ", " : "");
        if (code == CL_SUCCESS)
            status = write_parameter(heads, build, name, &raw);
    }
    fprintf(heads, ") {}\n");
    return code == CL_SUCCESS
               ? status
               : clc_native_error(build->host, call, code, "the signature of kernel '%s'", name);
}

static weir_status write_kernels(FILE *heads, const struct clc_build *build)
{
    const struct ocl_symbols *cl = build->cl;
    const struct weir_host *host = build->host;
    cl_uint count = 0;

    cl_int code = cl->clCreateKernelsInProgram(build->program, 0, NULL, &count);
    cl_kernel *kernels = host->allocate((count + 1) * sizeof *kernels);
    if (!kernels)
        return weir_host_no_memory(host, "the signatures of a program");
    if (code == CL_SUCCESS && count > 0)
        code = cl->clCreateKernelsInProgram(build->program, count, kernels, NULL);
    weir_status status = WEIR_OK;
    if (code != CL_SUCCESS)
        status =
            clc_native_error(host, "clCreateKernelsInProgram", code, "the kernels of a program");
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++) {
        if (status == WEIR_OK)
            status = write_kernel(heads, build, kernels[i]);
        cl->clReleaseKernel(kernels[i]);
    }
    host->release(kernels);
    return status;
}

static weir_status describe(struct clc_build *build)
{
    size_t size;
    FILE *heads = open_memstream(&build->heads, &size);
    if (!heads)
        return weir_host_no_memory(build->host, "the signatures of a program");
    fprintf(heads, "#line 1\n"); // the lines are not the caller's
    if (weir_kit_names_barrier(build->text))
        fprintf(heads, "void " WEIR_KIT_GRID_BARRIER "(void);\n");
    const weir_status status = write_kernels(heads, build);
    const bool written = !ferror(heads);
    if (fclose(heads) == 0 && written)
        return status;
    return status < 0 ? status : weir_host_no_memory(build->host, "the signatures of a program");
}

// Building.

char *clc_options(const struct weir_host *host, const char *user, const char *more)
{
    const bool own = strstr(user, "-cl-std=") || strstr(more, "-cl-std=");
    char *options = weir_kit_format(host, "%s%s %s", own ? "" : STANDARD, user, more);
    size_t length = options ? strlen(options) : 0;
    while (length > 0 && (options[length - 1] == '\n' || options[length - 1] == ' '))
        options[--length] = '\0';
    return options;
}

// With the compiler's log.
static weir_status report(const struct clc_build *build, cl_int code)
{
    const struct ocl_symbols *cl = build->cl;
    size_t size = 0;
    cl->clGetProgramBuildInfo(build->program, build->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = build->host->allocate(size + 1);
    if (log)
        cl->clGetProgramBuildInfo(build->program, build->device, CL_PROGRAM_BUILD_LOG, size, log,
                                  NULL);
    const struct weir_kit_build result = {
        .source = build->name,
        .log = log,
        .options = build->options,
        .sought = "error:",
        .failed = code != CL_SUCCESS,
        .call = "clBuildProgram",
        .code = code,
        .name = clc_native_name(code),
    };
    const weir_status status = weir_kit_build_report(build->host, &result);
    build->host->release(log);
    return status;
}

// NVIDIA's compiler fails to record signatures if a kernel has no parameters; a program in which no
// kernel has any is built without them.
static weir_status compile(const struct clc_build *build)
{
    char *options = weir_kit_format(build->host, "%s%s", build->signatures ? WITH_SIGNATURES : "",
                                    build->options);
    if (!options)
        return weir_host_no_memory(build->host, "the options of a program");
    cl_int code = build->cl->clBuildProgram(build->program, 1, &build->device, options, NULL, NULL);
    if (code != CL_SUCCESS && build->signatures)
        code = build->cl->clBuildProgram(build->program, 1, &build->device, build->options, NULL,
                                         NULL);
    build->host->release(options);
    return report(build, code);
}

weir_status clc_build(struct clc_build *build)
{
    const char *parts[] = {build->before, build->text, build->after};
    cl_int code;
    build->program = build->cl->clCreateProgramWithSource(build->context, 3, parts, NULL, &code);
    if (!build->program)
        return clc_native_error(build->host, "clCreateProgramWithSource", code,
                                "cannot take the program's source");
    weir_status status = compile(build);
    if (status == WEIR_OK && build->signatures)
        status = describe(build);
    return status;
}

cl_int clc_entry(const struct clc_build *build, char **out_entry, size_t *out_size)
{
    const char *heads = build->heads ? build->heads : "";
    const size_t begin = strlen(heads) + 1;
    size_t size = 0;
    cl_int code = build->cl->clGetProgramInfo(build->program, CL_PROGRAM_BINARY_SIZES, sizeof size,
                                              &size, NULL);
    char *entry = code == CL_SUCCESS ? malloc(begin + size) : NULL;
    if (!entry)
        return code == CL_SUCCESS ? CL_OUT_OF_HOST_MEMORY : code;
    memcpy(entry, heads, begin);
    char *binary = entry + begin;
    code = build->cl->clGetProgramInfo(build->program, CL_PROGRAM_BINARIES, sizeof binary, &binary,
                                       NULL);
    if (code != CL_SUCCESS) {
        free(entry);
        return code;
    }
    *out_entry = entry;
    *out_size = begin + size;
    return code;
}

void clc_drop(struct clc_build *build)
{
    if (build->program)
        build->cl->clReleaseProgram(build->program);
    build->program = NULL;
    free(build->heads);
    build->heads = NULL;
}
