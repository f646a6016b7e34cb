// Signatures as text, and the names of types in them. The text is stored with a cached program:
//
//     k <tab> kernel <tab> parameters <tab> block x <tab> y <tab> z
//     p <tab> kind <tab> access <tab> scalar <tab> size <tab> name <tab> type
//
// `access` is 1 for a pointer to what the kernel may write, 2 for one to __constant memory. Types are
// spelt as in the signatures that weir_kernels makes.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/signature.h>

#include "backends/kit/calls.h"

#define KERNEL_FIELDS 6
#define PARAMETER_FIELDS 7

static void append(struct weir_kit_signature_text *text, const char *format, ...) WEIR_PRINTF(2, 3);

static void append(struct weir_kit_signature_text *text, const char *format, ...)
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

void weir_kit_signature_text_kernel(struct weir_kit_signature_text *text,
                                    const struct weir_kernel_signature *kernel)
{
    const struct weir_extent block = kernel->required_block;
    append(text, "k\t%s\t%u\t%u\t%u\t%u\n", kernel->name, (unsigned)kernel->parameter_count,
           (unsigned)block.x, (unsigned)block.y, (unsigned)block.z);
}

void weir_kit_signature_text_parameter(struct weir_kit_signature_text *text,
                                       const struct weir_parameter *parameter)
{
    append(text, "p\t%d\t%u\t%d\t%u\t%s\t%s\n", (int)parameter->kind,
           parameter->constant ? 2 : (unsigned)parameter->writable, (int)parameter->scalar,
           (unsigned)parameter->size, parameter->name, parameter->type_name);
}

// Splits a line of exactly `count` fields at its tabs, in place, and stores the beginning of the
// next line.
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
        .struct_size = sizeof *parameter,
        .name = fields[5],
        .type_name = fields[6],
        .kind = (weir_parameter_kind)number(fields[1]),
        .writable = number(fields[2]) == 1,
        .constant = number(fields[2]) == 2,
    };
    weir_kit_parameter_describe(parameter, false);
    parameter->scalar = (weir_scalar)number(fields[3]);
    parameter->size = number(fields[4]);
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
        .struct_size = sizeof *kernel,
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

struct weir_kit_signatures *weir_signatures_make(const struct weir_host *host, size_t kernels,
                                                 size_t parameters, size_t text_bytes,
                                                 char **out_text)
{
    const size_t kernels_size = kernels * sizeof(struct weir_kernel_signature);
    const size_t parameters_size = parameters * sizeof(struct weir_parameter);
    struct weir_kit_signatures *all =
        host->allocate(sizeof *all + kernels_size + parameters_size + text_bytes);
    if (!all)
        return NULL;
    char *rest = (char *)(all + 1);
    all->kernels = (struct weir_kernel_signature *)(void *)rest;
    all->parameters = (struct weir_parameter *)(void *)(rest + kernels_size);
    *out_text = rest + kernels_size + parameters_size;
    return all;
}

static size_t count_lines(const char *text, char kind)
{
    size_t count = text[0] == kind;
    for (const char *end = strchr(text, '\n'); end; end = strchr(end + 1, '\n'))
        count += end[1] == kind;
    return count;
}

struct weir_kit_signatures *weir_kit_signatures_parse(const struct weir_host *host,
                                                      const char *text)
{
    const size_t kernels = count_lines(text, 'k');
    const size_t parameters = count_lines(text, 'p');
    const size_t size = strlen(text) + 1;
    char *at;
    struct weir_kit_signatures *all = weir_signatures_make(host, kernels, parameters, size, &at);
    if (!all)
        return NULL;
    memcpy(at, text, size);
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

// Types, as the compilers of OpenCL C report them and as people write them in CUDA C++.

#define MOST_COMPONENTS 16

struct scalar_type {
    const char *name;
    weir_scalar scalar;
    uint32_t size;
};

static const struct scalar_type types[] = {
    {"char", WEIR_SCALAR_I8, 1},       {"uchar", WEIR_SCALAR_U8, 1},
    {"short", WEIR_SCALAR_I16, 2},     {"ushort", WEIR_SCALAR_U16, 2},
    {"int", WEIR_SCALAR_I32, 4},       {"uint", WEIR_SCALAR_U32, 4},
    {"long", WEIR_SCALAR_I64, 8},      {"ulong", WEIR_SCALAR_U64, 8},
    {"float", WEIR_SCALAR_F32, 4},     {"double", WEIR_SCALAR_F64, 8},
    {"half", WEIR_SCALAR_F16, 2},      {"longlong", WEIR_SCALAR_I64, 8}, // from here on CUDA's
    {"ulonglong", WEIR_SCALAR_U64, 8}, {"__half", WEIR_SCALAR_F16, 2},
};

// What there are no vectors of.
static const struct scalar_type other_types[] = {
    {"bool", WEIR_SCALAR_BOOL, 1},          {"signed char", WEIR_SCALAR_I8, 1},
    {"int8_t", WEIR_SCALAR_I8, 1},          {"unsigned char", WEIR_SCALAR_U8, 1},
    {"uint8_t", WEIR_SCALAR_U8, 1},         {"int16_t", WEIR_SCALAR_I16, 2},
    {"unsigned short", WEIR_SCALAR_U16, 2}, {"uint16_t", WEIR_SCALAR_U16, 2},
    {"int32_t", WEIR_SCALAR_I32, 4},        {"unsigned int", WEIR_SCALAR_U32, 4},
    {"unsigned", WEIR_SCALAR_U32, 4},       {"uint32_t", WEIR_SCALAR_U32, 4},
    {"long long", WEIR_SCALAR_I64, 8},      {"int64_t", WEIR_SCALAR_I64, 8},
    {"unsigned long", WEIR_SCALAR_U64, 8},  {"unsigned long long", WEIR_SCALAR_U64, 8},
    {"uint64_t", WEIR_SCALAR_U64, 8},       {"size_t", WEIR_SCALAR_U64, 8},
    {"void", WEIR_SCALAR_OTHER, 1},
};

static const struct scalar_type *find(const struct scalar_type *table, size_t count,
                                      const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return &table[i];
    return NULL;
}

// Splits "float4"; the name of a structure may begin or end like one.
static const struct scalar_type *find_vector(const char *name, size_t length, uint32_t *out_width)
{
    size_t letters = length;
    while (letters > 0 && name[letters - 1] >= '0' && name[letters - 1] <= '9')
        letters--;
    const unsigned long width = strtoul(name + letters, NULL, 10);
    const bool is_width = letters < length && name[letters] != '0' && width > 1 &&
                          width <= MOST_COMPONENTS && (width <= 4 || (width & (width - 1)) == 0);
    *out_width = (uint32_t)width;
    return is_width ? find(types, sizeof types / sizeof *types, name, letters) : NULL;
}

// CUDA has no larger vectors; a type of such a name is the program's own.
static bool is_cudas(const struct scalar_type *type, uint32_t width)
{
    return type->scalar == WEIR_SCALAR_F16 ? width <= 2 : width <= 4;
}

static const struct scalar_type *find_type(const char *name, size_t length, bool cuda,
                                           uint32_t *out_width)
{
    *out_width = 1;
    const struct scalar_type *type = find(types, sizeof types / sizeof *types, name, length);
    if (!type)
        type = find(other_types, sizeof other_types / sizeof *other_types, name, length);
    if (!type)
        type = find_vector(name, length, out_width);
    return type && cuda && !is_cudas(type, *out_width) ? NULL : type;
}

static uint32_t bytes_of(const struct scalar_type *type, uint32_t width, bool cuda)
{
    return type->size * (width == 3 && !cuda ? 4 : width);
}

// CUDA aligns a vector to 16 bytes at most, and one of three as its element.
static uint32_t alignment_of(const struct scalar_type *type, uint32_t width, bool cuda)
{
    const uint32_t bytes = bytes_of(type, width, cuda);
    if (cuda && width == 3)
        return type->size;
    return cuda && bytes > 16 ? 16 : bytes;
}

void weir_kit_parameter_describe(struct weir_parameter *parameter, bool cuda)
{
    const char *name = parameter->type_name;
    if (strncmp(name, "const ", 6) == 0)
        name += 6;
    size_t length = strlen(name);
    while (length > 0 && (name[length - 1] == '*' || name[length - 1] == ' '))
        length--;
    uint32_t width;
    const struct scalar_type *type = find_type(name, length, cuda, &width);
    if (!type)
        return;
    parameter->element = type->scalar;
    parameter->width = type->scalar == WEIR_SCALAR_OTHER ? 0 : width;
    if (parameter->kind == WEIR_PARAMETER_VALUE) {
        parameter->scalar = width == 1 ? type->scalar : WEIR_SCALAR_OTHER;
        parameter->size = bytes_of(type, width, cuda);
    } else {
        parameter->alignment = alignment_of(type, width, cuda);
    }
}
