// Signatures of kernels that were compiled from source at run time. The driver
// tells them only for a program built from source, so they are written as text
// that is kept beside the cached binary, and always read back from that text:
//
//     k <tab> kernel <tab> parameters <tab> block x <tab> y <tab> z
//     p <tab> kind <tab> writable <tab> scalar <tab> size <tab> name <tab> type
//
// Types are spelt as in the signatures that weir_kernels makes.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

#define KERNEL_FIELDS 6
#define PARAMETER_FIELDS 7

struct text {
    const struct weir_host *host;
    char *data;
    size_t used;
    size_t capacity;
    bool failed;
};

static void append(struct text *text, const char *format, ...) WEIR_PRINTF(2, 3);

static void append(struct text *text, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line) {
        text->failed = true;
        return;
    }
    if (text->capacity - text->used <= (size_t)length) {
        const size_t capacity = 2 * text->capacity + sizeof line;
        char *data = text->host->allocate(capacity);
        if (!data) {
            text->failed = true;
            return;
        }
        if (text->data)
            memcpy(data, text->data, text->used);
        text->host->release(text->data);
        text->data = data;
        text->capacity = capacity;
    }
    memcpy(text->data + text->used, line, (size_t)length + 1);
    text->used += (size_t)length;
}

struct scalar_type {
    const char *name;
    weir_scalar scalar;
    uint32_t size;
};

static const struct scalar_type scalar_types[] = {
    {"char", WEIR_SCALAR_I8, 1},    {"uchar", WEIR_SCALAR_U8, 1},  {"short", WEIR_SCALAR_I16, 2},
    {"ushort", WEIR_SCALAR_U16, 2}, {"int", WEIR_SCALAR_I32, 4},   {"uint", WEIR_SCALAR_U32, 4},
    {"long", WEIR_SCALAR_I64, 8},   {"ulong", WEIR_SCALAR_U64, 8}, {"float", WEIR_SCALAR_F32, 4},
    {"double", WEIR_SCALAR_F64, 8},
};

// The bytes of "float4" and its like: three components take the room of four.
// Zero for what is no vector.
static uint32_t vector_size(const char *name)
{
    for (size_t i = 0; i < sizeof scalar_types / sizeof *scalar_types; i++) {
        const size_t length = strlen(scalar_types[i].name);
        const unsigned long components =
            strncmp(scalar_types[i].name, name, length) == 0 ? strtoul(name + length, NULL, 10) : 0;
        if (components > 1)
            return scalar_types[i].size * (components == 3 ? 4 : (uint32_t)components);
    }
    return 0;
}

// No call tells the size of a structure. But a kernel's required block is known
// without running it, so a kernel that requires a block of that size tells.
static uint32_t probe_size(const struct ocl_device *device, const struct ocl_source *source,
                           const char *type)
{
    const struct ocl_symbols *cl = &device->module->cl;
    const cl_device_id native = device->listed->device;
    char probe[256];
    snprintf(probe, sizeof probe,
             "\n__kernel __attribute__((reqd_work_group_size(sizeof(%s), 1, 1)))"
             " void weir__size_probe(__global uint *unused) {}\n",
             type);
    const char *parts[] = {source->prelude, source->between, source->text, probe};
    size_t block[3] = {0, 0, 0};
    cl_kernel kernel = NULL;
    cl_program program = cl->clCreateProgramWithSource(device->context, 4, parts, NULL, NULL);
    if (program &&
        cl->clBuildProgram(program, 1, &native, source->options, NULL, NULL) == CL_SUCCESS)
        kernel = cl->clCreateKernel(program, "weir__size_probe", NULL);
    if (kernel) {
        cl->clGetKernelWorkGroupInfo(kernel, native, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                     sizeof block, block, NULL);
        cl->clReleaseKernel(kernel);
    }
    if (program)
        cl->clReleaseProgram(program);
    return (uint32_t)block[0];
}

static struct scalar_type value_type(const struct ocl_device *device,
                                     const struct ocl_source *source, const char *name)
{
    for (size_t i = 0; i < sizeof scalar_types / sizeof *scalar_types; i++) {
        if (strcmp(scalar_types[i].name, name) == 0)
            return scalar_types[i];
    }
    const uint32_t size = vector_size(name);
    return (struct scalar_type){name, WEIR_SCALAR_OTHER,
                                size > 0 ? size : probe_size(device, source, name)};
}

// What the driver says of one parameter.
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
    return code;
}

static void describe_parameter(struct text *text, const struct ocl_device *device,
                               const struct ocl_source *source, struct raw_parameter *raw)
{
    if (raw->space == CL_KERNEL_ARG_ADDRESS_PRIVATE) {
        const struct scalar_type type = value_type(device, source, raw->type);
        append(text, "p\t%d\t0\t%d\t%u\t%s\t%s\n", WEIR_PARAMETER_VALUE, (int)type.scalar,
               (unsigned)type.size, raw->name, raw->type);
        return;
    }
    const bool local = raw->space == CL_KERNEL_ARG_ADDRESS_LOCAL;
    const bool constant = raw->space == CL_KERNEL_ARG_ADDRESS_CONSTANT;
    const bool is_const = constant || (raw->qualifiers & CL_KERNEL_ARG_TYPE_CONST);
    raw->type[strcspn(raw->type, " *")] = '\0';
    append(text, "p\t%d\t%d\t%d\t0\t%s\t%s%s *\n",
           local ? WEIR_PARAMETER_LOCAL : WEIR_PARAMETER_BUFFER, !local && !is_const,
           WEIR_SCALAR_OTHER, raw->name, is_const ? "const " : "", raw->type);
}

static weir_status describe_kernel(struct text *text, const struct ocl_device *device,
                                   const struct ocl_source *source, cl_kernel kernel)
{
    const struct ocl_module *module = device->module;
    const struct ocl_symbols *cl = &module->cl;
    char name[256] = "";
    cl_uint count = 0;
    size_t block[3] = {0, 0, 0};
    const char *call = "clGetKernelInfo";
    cl_int code = cl->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (code == CL_SUCCESS) {
        call = "clGetKernelWorkGroupInfo";
        code = cl->clGetKernelWorkGroupInfo(kernel, device->listed->device,
                                            CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof block, block,
                                            NULL);
    }
    append(text, "k\t%s\t%u\t%zu\t%zu\t%zu\n", name, (unsigned)count, block[0], block[1], block[2]);
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++) {
        struct raw_parameter raw;
        call = "clGetKernelArgInfo";
        code = ask_parameter(cl, kernel, i, &raw);
        describe_parameter(text, device, source, &raw);
    }
    if (code == CL_SUCCESS)
        return WEIR_OK;
    return ocl_native_error(module, call, code, "the signature of kernel '%s'", name);
}

weir_status ocl_signatures_describe(const struct ocl_device *device,
                                    const struct ocl_source *source, cl_program program,
                                    char **out_text)
{
    const struct ocl_module *module = device->module;
    const struct ocl_symbols *cl = &module->cl;
    struct text text = {.host = module->host};
    cl_uint count = 0;
    *out_text = NULL;

    cl_int code = cl->clCreateKernelsInProgram(program, 0, NULL, &count);
    cl_kernel *kernels = module->host->allocate((count + 1) * sizeof *kernels);
    if (!kernels)
        return weir_host_no_memory(module->host, "the signatures of a program");
    if (code == CL_SUCCESS && count > 0)
        code = cl->clCreateKernelsInProgram(program, count, kernels, NULL);
    weir_status status = WEIR_OK;
    if (code != CL_SUCCESS)
        status =
            ocl_native_error(module, "clCreateKernelsInProgram", code, "the kernels of a program");
    append(&text, "%s", "");
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++) {
        if (status == WEIR_OK)
            status = describe_kernel(&text, device, source, kernels[i]);
        cl->clReleaseKernel(kernels[i]);
    }
    module->host->release(kernels);
    if (status == WEIR_OK && text.failed)
        status = weir_host_no_memory(module->host, "the signatures of a program");
    if (status == WEIR_OK)
        *out_text = text.data;
    else
        module->host->release(text.data);
    return status;
}

// Cuts a line of exactly `count` fields at its tabs, in place, and stores where
// the next line begins.
static bool cut_line(char *line, char **fields, size_t count, char **out_next)
{
    char *end = strchr(line, '\n');
    if (!end)
        return false;
    *end = '\0';
    *out_next = end + 1;
    for (size_t i = 0; i < count; i++) {
        fields[i] = line;
        char *tab = strchr(line, '\t');
        if (!tab != (i + 1 == count))
            return false;
        if (tab) {
            *tab = '\0';
            line = tab + 1;
        }
    }
    return true;
}

static uint32_t number(const char *field)
{
    return (uint32_t)strtoul(field, NULL, 10);
}

static bool parse_parameter(char **at, struct weir_parameter *parameter)
{
    char *fields[PARAMETER_FIELDS];
    if ((*at)[0] != 'p' || !cut_line(*at, fields, PARAMETER_FIELDS, at))
        return false;
    *parameter = (struct weir_parameter){
        .name = fields[5],
        .type_name = fields[6],
        .kind = (weir_parameter_kind)number(fields[1]),
        .writable = number(fields[2]),
        .scalar = (weir_scalar)number(fields[3]),
        .size = number(fields[4]),
    };
    return true;
}

// `parameters` has room for `room` of them.
static bool parse_kernel(char **at, struct weir_kernel_signature *kernel,
                         struct weir_parameter *parameters, size_t room)
{
    char *fields[KERNEL_FIELDS];
    if ((*at)[0] != 'k' || !cut_line(*at, fields, KERNEL_FIELDS, at))
        return false;
    *kernel = (struct weir_kernel_signature){
        .name = fields[1],
        .parameters = parameters,
        .parameter_count = number(fields[2]),
        .required_block = weir_dim(number(fields[3]), number(fields[4]), number(fields[5])),
    };
    bool good = kernel->parameter_count <= room;
    for (uint32_t i = 0; i < kernel->parameter_count && good; i++)
        good = parse_parameter(at, &parameters[i]);
    return good;
}

// One block for the structure, its arrays and the text, so that it is released
// as a whole.
static struct ocl_signatures *allocate(const struct weir_host *host, const char *text,
                                       size_t kernels, size_t parameters)
{
    const size_t kernels_size = kernels * sizeof(struct weir_kernel_signature);
    const size_t parameters_size = parameters * sizeof(struct weir_parameter);
    const size_t text_size = strlen(text) + 1;
    struct ocl_signatures *all =
        host->allocate(sizeof *all + kernels_size + parameters_size + text_size);
    if (!all)
        return NULL;
    char *rest = (char *)(all + 1);
    all->kernels = (struct weir_kernel_signature *)(void *)rest;
    all->parameters = (struct weir_parameter *)(void *)(rest + kernels_size);
    all->text = rest + kernels_size + parameters_size;
    memcpy(all->text, text, text_size);
    return all;
}

static size_t count_lines(const char *text, char kind)
{
    size_t count = text[0] == kind;
    for (const char *end = strchr(text, '\n'); end; end = strchr(end + 1, '\n'))
        count += end[1] == kind;
    return count;
}

struct ocl_signatures *ocl_signatures_parse(const struct weir_host *host, const char *text)
{
    const size_t kernels = count_lines(text, 'k');
    const size_t parameters = count_lines(text, 'p');
    struct ocl_signatures *all = allocate(host, text, kernels, parameters);
    if (!all)
        return NULL;

    char *at = all->text;
    size_t used = 0;
    bool good = true;
    for (size_t i = 0; i < kernels && good; i++) {
        good = parse_kernel(&at, &all->kernels[i], all->parameters + used, parameters - used);
        used += all->kernels[i].parameter_count;
    }
    if (!good || used != parameters || *at != '\0') {
        host->release(all);
        return NULL;
    }
    all->kernel_count = (uint32_t)kernels;
    return all;
}
