// The kernels' signatures stand in the metadata that clang attaches to each kernel, `define ... @name(...) ...
// !kernel_arg_type !7`, `!7 = !{!"int*"}`, and sizes in the types of its parameters.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

enum {
    SPACE_CONSTANT = 2,
    SPACE_LOCAL = 3,
    ITEM_SIZE = 512,
    NAME_SIZE = 512
};

static const struct {
    const char *type;
    weir_scalar scalar;
    uint32_t size;
} scalars[] = {
    {"char", WEIR_SCALAR_I8, 1},    {"uchar", WEIR_SCALAR_U8, 1},  {"short", WEIR_SCALAR_I16, 2},
    {"ushort", WEIR_SCALAR_U16, 2}, {"int", WEIR_SCALAR_I32, 4},   {"uint", WEIR_SCALAR_U32, 4},
    {"long", WEIR_SCALAR_I64, 8},   {"ulong", WEIR_SCALAR_U64, 8}, {"float", WEIR_SCALAR_F32, 4},
    {"double", WEIR_SCALAR_F64, 8}, {"half", WEIR_SCALAR_F16, 2},
};

// The node that the definition refers to by that name: after "!{"; NULL: there is none.
static const char *attached(const struct kc_module *module, const char *line, const char *name)
{
    char reference[64];
    snprintf(reference, sizeof reference, "!%s !", name);
    const char *found = kc_in_line(line, reference);
    const char *node =
        found ? kc_module_node(module, strtoul(found + strlen(reference), NULL, 10)) : NULL;
    const char *body = node ? kc_in_line(node, "!{") : NULL;
    return body ? body + 2 : NULL;
}

// The next text or number of a node's body; false at its end.
static bool next_item(const char **at, char *out)
{
    const char *end = *at + kc_line_length(*at);
    while (*at < end && **at != '"' && !isdigit((unsigned char)**at) && **at != '}')
        *at += **at == 'i' ? strcspn(*at, " ") : 1; // the type of a number, "i32"
    if (*at >= end || **at == '}')
        return false;
    const bool text = **at == '"';
    const char *start = *at + text;
    const size_t length = strcspn(start, text ? "\"" : ",} ");
    snprintf(out, ITEM_SIZE, "%.*s", (int)length, start);
    *at = start + length + text;
    return true;
}

// "int*" becomes "const int *".
static char *show_pointer(const char *type, bool constant)
{
    char shown[ITEM_SIZE + 16];
    size_t length = strlen(type) - 1;
    while (length > 0 && type[length - 1] == ' ')
        length--;
    snprintf(shown, sizeof shown, "%s%.*s *", constant ? "const " : "", (int)length, type);
    return strdup(shown);
}

// What the type consists of without typedefs: "float", "float __attribute__((ext_vector_type(4)))", a
// pointer or an array of one of these. Of a structure nothing is set.
static void describe_type(struct weir_parameter *parameter, const char *type)
{
    static const char vector[] = " __attribute__((ext_vector_type(";
    const size_t length = strcspn(type, " *[");
    const char *width = strstr(type, vector);
    if (strchr(type, '*') != strrchr(type, '*')) { // to pointers
        parameter->alignment = 8;
        return;
    }
    if (strncmp(type, "void", length) == 0)
        parameter->alignment = 1;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        if (strlen(scalars[i].type) != length || strncmp(type, scalars[i].type, length) != 0)
            continue;
        parameter->element = scalars[i].scalar;
        parameter->width = width ? (unsigned)strtoul(width + strlen(vector), NULL, 10) : 1;
        parameter->alignment = scalars[i].size * (parameter->width == 3 ? 4 : parameter->width);
    }
}

static void describe(struct weir_parameter *parameter, const char *name, const char *type,
                     const char *base, const char *qualifiers, unsigned space)
{
    const bool constant = strstr(qualifiers, "const") != NULL;
    const size_t length = strlen(type);
    const bool pointer = length > 0 && type[length - 1] == '*';
    parameter->name = strdup(name);
    parameter->kind = !pointer               ? WEIR_PARAMETER_VALUE
                      : space == SPACE_LOCAL ? WEIR_PARAMETER_LOCAL
                                             : WEIR_PARAMETER_BUFFER;
    describe_type(parameter, base);
    if (!pointer)
        parameter->alignment = 0;
    if (pointer) {
        parameter->type_name = show_pointer(type, constant);
        parameter->constant = space == SPACE_CONSTANT;
        parameter->writable =
            parameter->kind == WEIR_PARAMETER_BUFFER && !constant && !parameter->constant;
        return;
    }
    parameter->type_name = strdup(type);
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        if (strcmp(type, scalars[i].type) != 0)
            continue;
        parameter->scalar = scalars[i].scalar;
        parameter->size = scalars[i].size;
    }
}

static bool read_parameters(const struct kc_module *module, const char *line,
                            struct kc_kernel *kernel)
{
    const char *spaces = attached(module, line, "kernel_arg_addr_space");
    const char *types = attached(module, line, "kernel_arg_type");
    const char *bases = attached(module, line, "kernel_arg_base_type");
    const char *qualifiers = attached(module, line, "kernel_arg_type_qual");
    const char *names = attached(module, line, "kernel_arg_name");
    const char *accesses = attached(module, line, "kernel_arg_access_qual");
    char access[ITEM_SIZE], name[ITEM_SIZE], type[ITEM_SIZE], base[ITEM_SIZE], qualifier[ITEM_SIZE],
        space[ITEM_SIZE];
    while (spaces && types && bases && qualifiers && names && accesses && next_item(&names, name) &&
           next_item(&accesses, access) && next_item(&types, type) && next_item(&bases, base) &&
           next_item(&qualifiers, qualifier) && next_item(&spaces, space)) {
        struct weir_parameter *parameter = kc_parameter_add(kernel);
        if (!parameter)
            return false;
        describe(parameter, name, type, base, qualifier, (unsigned)strtoul(space, NULL, 10));
        if (strcmp(access, "none") != 0 && kernel->opaque == KC_PLAIN) {
            kernel->opaque = strstr(qualifier, "pipe") ? KC_PIPE : KC_IMAGE;
            kernel->opaque_at = kernel->parameter_count - 1;
        }
    }
    return true;
}

static void read_block(const struct kc_module *module, const char *line, struct kc_kernel *kernel)
{
    const char *sizes = attached(module, line, "reqd_work_group_size");
    char number[ITEM_SIZE];
    uint32_t *const block[] = {&kernel->block.x, &kernel->block.y, &kernel->block.z};
    for (int i = 0; sizes && i < 3 && next_item(&sizes, number); i++)
        *block[i] = (uint32_t)strtoul(number, NULL, 10);
    sizes = attached(module, line, "intel_reqd_sub_group_size");
    if (sizes && next_item(&sizes, number))
        kernel->sub_group = (unsigned)strtoul(number, NULL, 10);
}

// Sizes.

struct layout {
    unsigned size;
    unsigned alignment;
};

static struct layout layout_of(const struct kc_module *module, const char **at, unsigned depth);

static unsigned rounded(unsigned size, unsigned alignment)
{
    return alignment > 0 ? (size + alignment - 1) / alignment * alignment : size;
}

// "{ i32, [3 x float] }", "<{ i8, i32 }>".
static struct layout structure(const struct kc_module *module, const char **at, unsigned depth,
                               bool packed)
{
    struct layout all = {0, 1};
    while (**at && **at != '\n' && **at != '}') {
        const char *before = *at;
        const struct layout part = layout_of(module, at, depth + 1);
        const unsigned alignment = packed ? 1 : part.alignment;
        all.size = rounded(all.size, alignment) + part.size;
        all.alignment = alignment > all.alignment ? alignment : all.alignment;
        *at += strspn(*at, ", ");
        if (*at == before)
            break;
    }
    *at += (**at == '}') + (packed && strncmp(*at, "}>", 2) == 0);
    all.size = rounded(all.size, all.alignment);
    return all;
}

// "[3 x float]", "<4 x i32>": a vector takes a power of two.
static struct layout repeated(const struct kc_module *module, const char **at, unsigned depth,
                              bool vector)
{
    char *end;
    const unsigned count = (unsigned)strtoul(*at, &end, 10);
    *at = strncmp(end, " x ", 3) == 0 ? end + 3 : end;
    struct layout part = layout_of(module, at, depth + 1);
    unsigned size = part.size * count;
    *at += **at == (vector ? '>' : ']');
    if (vector) {
        for (part.alignment = 1; part.alignment < size;)
            part.alignment *= 2;
        size = part.alignment;
    }
    return (struct layout){size, part.alignment};
}

static struct layout named(const struct kc_module *module, const char **at, unsigned depth)
{
    char name[NAME_SIZE];
    const size_t length =
        **at && (*at)[1] == '"' ? strcspn(*at + 2, "\"") + 3 : strcspn(*at, " ,)}]>*\n");
    snprintf(name, sizeof name, "%.*s", (int)length, *at);
    const struct kc_symbol *type = kc_module_find(module, name);
    *at += length;
    const char *inner = type && type->kind == KC_TYPE ? type->line : "";
    return layout_of(module, &inner, depth + 1);
}

// Of a type of LLVM's, after which *at is then. Sizes and alignments are those of CUDA and of every OpenCL device.
static struct layout layout_of(const struct kc_module *module, const char **at, unsigned depth)
{
    static const struct {
        const char *name;
        unsigned size;
    } types[] = {{"i8", 1},   {"i16", 2},   {"i32", 4},    {"i64", 8}, {"i128", 16},
                 {"half", 2}, {"float", 4}, {"double", 8}, {"ptr", 8}, {"i1", 1}};
    const char *start = *at;
    const size_t length = strcspn(start, " ,)}]>*\n");
    if (depth > 64)
        return (struct layout){0, 1};
    if (*start == '%')
        return named(module, at, depth);
    *at += *start == '{' || *start == '[' || *start == '<';
    if (strncmp(start, "<{", 2) == 0) {
        *at += 1 + strspn(*at + 1, " ");
        return structure(module, at, depth, true);
    }
    if (*start == '{') {
        *at += strspn(*at, " ");
        return structure(module, at, depth, false);
    }
    if (*start == '[' || *start == '<')
        return repeated(module, at, depth, *start == '<');
    *at += length;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == length && memcmp(start, types[i].name, length) == 0)
            return (struct layout){types[i].size, types[i].size};
    return (struct layout){0, 1};
}

// The next of a function's parameters: up to a comma outside of brackets. NULL: there is none.
static const char *next_parameter(const char *at)
{
    int depth = 0;
    for (; *at && *at != '\n'; at++) {
        depth += strchr("([{<", *at) ? 1 : strchr(")]}>", *at) ? -1 : 0;
        if (depth < 0)
            return NULL;
        if (depth == 0 && *at == ',')
            return at + 2;
    }
    return NULL;
}

static void find_size(const struct kc_module *module, const char *at,
                      struct weir_parameter *parameter)
{
    const char *next = next_parameter(at);
    const char *value = kc_in_line(at, "byval(");
    const char *alignment = kc_in_line(at, " align ");
    if (parameter->kind == WEIR_PARAMETER_VALUE && parameter->size == 0) {
        const char *type = value && (!next || value < next) ? value + strlen("byval(") : at;
        parameter->size = layout_of(module, &type, 0).size;
    }
    if (parameter->kind == WEIR_PARAMETER_BUFFER && parameter->alignment == 0 &&
        !strchr(parameter->type_name, '[') && alignment && (!next || alignment < next))
        parameter->alignment = (unsigned)strtoul(alignment + strlen(" align "), NULL, 10);
}

// "define dso_local ptx_kernel void @k(ptr addrspace(1) noundef align 4 %0, ptr byval(%struct.pair) align 4 %1)".
static void find_sizes(const struct kc_module *module, const char *line, struct kc_kernel *kernel)
{
    const char *at = kc_in_line(line, "@");
    at = at ? kc_in_line(at, "(") : NULL;
    at = at ? at + 1 : NULL;
    for (size_t p = 0; at && p < kernel->parameter_count; p++) {
        find_size(module, at, &kernel->parameters[p]);
        at = next_parameter(at);
    }
}

static bool read_kernel(const struct kc_module *module, const struct kc_symbol *symbol,
                        struct kc_kernels *kernels)
{
    struct kc_kernel *kernel = kc_kernel_add(kernels, symbol->name, symbol->length);
    if (!kernel || !read_parameters(module, symbol->line, kernel))
        return false;
    read_block(module, symbol->line, kernel);
    find_sizes(module, symbol->line, kernel);
    return true;
}

static int by_line(const void *a, const void *b)
{
    const struct kc_symbol *const *first = a, *const *second = b;
    return (*first)->line < (*second)->line ? -1 : 1;
}

// In the order of the text.
static bool read_kernels(const struct kc_module *module, struct kc_kernels *kernels)
{
    const struct kc_symbol **found = malloc((module->symbol_count + 1) * sizeof *found);
    size_t count = 0;
    bool fine = found != NULL;
    for (size_t i = 0; fine && i < module->symbol_count; i++)
        if (module->symbols[i].is_kernel)
            found[count++] = &module->symbols[i];
    if (fine)
        qsort(found, count, sizeof *found, by_line);
    for (size_t i = 0; i < count && fine; i++)
        fine = read_kernel(module, found[i], kernels);
    free(found);
    return fine;
}

struct weir_parameter *kc_parameter_add(struct kc_kernel *kernel)
{
    struct weir_parameter *grown =
        realloc(kernel->parameters, (kernel->parameter_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    kernel->parameters = grown;
    grown += kernel->parameter_count++;
    *grown = (struct weir_parameter){.struct_size = sizeof *grown};
    return grown;
}

struct kc_kernel *kc_kernel_add(struct kc_kernels *kernels, const char *name, size_t length)
{
    struct kc_kernel *grown = realloc(kernels->items, (kernels->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    kernels->items = grown;
    grown += kernels->count++;
    *grown = (struct kc_kernel){.name = strndup(name, length)};
    return grown->name ? grown : NULL;
}

struct kc_kernel *kc_kernels_find(const struct kc_kernels *kernels, const char *name, size_t length)
{
    for (size_t i = 0; i < kernels->count; i++)
        if (strlen(kernels->items[i].name) == length &&
            memcmp(kernels->items[i].name, name, length) == 0)
            return &kernels->items[i];
    return NULL;
}

void kc_kernel_finish(struct kc_kernel *kernel)
{
    for (size_t p = 0; p < kernel->parameter_count; p++) {
        free((char *)(uintptr_t)kernel->parameters[p].name);
        free((char *)(uintptr_t)kernel->parameters[p].type_name);
    }
    free(kernel->parameters);
    free(kernel->name);
}

void kc_kernels_finish(struct kc_kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++)
        kc_kernel_finish(&kernels->items[i]);
    free(kernels->items);
    *kernels = (struct kc_kernels){0};
}

bool kc_signatures(const struct kc_module *module, struct kc_kernels *out_kernels,
                   struct weir_long_text *report)
{
    *out_kernels = (struct kc_kernels){0};
    if (read_kernels(module, out_kernels))
        return true;
    weir_long_text_add(report, "error: no memory for the kernels' signatures\n");
    return false;
}
