// Signatures as text, stored with a cached program:
//
//     k <tab> kernel <tab> parameters <tab> block x <tab> y <tab> z
//     p <tab> kind <tab> access <tab> scalar <tab> size <tab> name <tab> type
//
// `access` is 1 for a pointer to what the kernel may write, 2 for one to __constant memory. Types are
// spelt as in the signatures that weir_kernels makes.
#include <weir/kit/signature.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// One block for the structure, its arrays and the text, so that one call frees all.
static struct weir_kit_signatures *allocate(const struct weir_host *host, const char *text,
                                            size_t kernels, size_t parameters)
{
    const size_t kernels_size = kernels * sizeof(struct weir_kernel_signature);
    const size_t parameters_size = parameters * sizeof(struct weir_parameter);
    const size_t text_size = strlen(text) + 1;
    struct weir_kit_signatures *all =
        host->allocate(sizeof *all + kernels_size + parameters_size + text_size);
    if (!all)
        return NULL;
    char *rest = (char *)(all + 1);
    all->kernels = (struct weir_kernel_signature *)(void *)rest;
    all->parameters = (struct weir_parameter *)(void *)(rest + kernels_size);
    memcpy(rest + kernels_size + parameters_size, text, text_size);
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
    struct weir_kit_signatures *all = allocate(host, text, kernels, parameters);
    if (!all)
        return NULL;

    char *at = (char *)(all->parameters + parameters); // the copy of the text
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
