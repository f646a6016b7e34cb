// The kernels' signatures stand in the metadata that clang attaches to each kernel of a spir64
// module: `define ... spir_kernel ... @name(...) ... !kernel_arg_type !7`, `!7 = !{!"int*"}`. Only
// a compiler knows the sizes of structures, so a second compilation asks for those.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/calls.h"
#include "base/file.h"
#include "kernels/compiler/compiler.h"

#define SIZE_NAME "weir__size_of_"

enum {
    SPACE_CONSTANT = 2,
    SPACE_LOCAL = 3,
    ITEM_SIZE = 512,
    IR_LIMIT = 256 << 20
};

static const struct {
    const char *type;
    const char *scalar;
    unsigned size;
} scalars[] = {
    {"char", "I8", 1},   {"uchar", "U8", 1},   {"short", "I16", 2}, {"ushort", "U16", 2},
    {"int", "I32", 4},   {"uint", "U32", 4},   {"long", "I64", 8},  {"ulong", "U64", 8},
    {"float", "F32", 4}, {"double", "F64", 8}, {"half", "F16", 2},
};

static const char *line_end(const char *line)
{
    const char *newline = strchr(line, '\n');
    return newline ? newline : line + strlen(line);
}

// The body of node `!number`, after "!{", or NULL.
static const char *find_node(const char *ir, unsigned number)
{
    char start[32];
    snprintf(start, sizeof start, "\n!%u = ", number);
    const char *node = strstr(ir, start);
    const char *body = node ? strstr(node, "!{") : NULL;
    return body && body < line_end(node + 1) ? body + 2 : NULL;
}

// The node that the definition refers to by that name.
static const char *attached(const char *ir, const char *line, const char *name)
{
    char reference[64];
    snprintf(reference, sizeof reference, "!%s !", name);
    const char *found = strstr(line, reference);
    if (!found || found > line_end(line))
        return NULL;
    return find_node(ir, (unsigned)strtoul(found + strlen(reference), NULL, 10));
}

// The next text or number of a node's body; false at its end.
static bool next_item(const char **at, char *out)
{
    const char *end = line_end(*at);
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

static bool is_value(const struct kc_parameter *parameter)
{
    return parameter->kind == KC_VALUE;
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
static void describe_type(struct kc_parameter *parameter, const char *type)
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

static void describe(struct kc_parameter *parameter, const char *name, const char *type,
                     const char *base, const char *qualifiers, unsigned space)
{
    const bool constant = strstr(qualifiers, "const") != NULL;
    const size_t length = strlen(type);
    const bool pointer = length > 0 && type[length - 1] == '*';
    parameter->name = strdup(name);
    parameter->scalar = parameter->element = "OTHER";
    parameter->kind = !pointer ? KC_VALUE : space == SPACE_LOCAL ? KC_LOCAL : KC_BUFFER;
    describe_type(parameter, base);
    if (!pointer)
        parameter->alignment = 0;
    if (pointer) {
        parameter->type = show_pointer(type, constant);
        parameter->constant = space == SPACE_CONSTANT;
        parameter->writable = parameter->kind == KC_BUFFER && !constant && !parameter->constant;
        return;
    }
    parameter->type = strdup(type);
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        if (strcmp(type, scalars[i].type) != 0)
            continue;
        parameter->scalar = scalars[i].scalar;
        parameter->size = scalars[i].size;
    }
}

static bool read_parameters(const char *ir, const char *line, struct kc_kernel *kernel)
{
    const char *spaces = attached(ir, line, "kernel_arg_addr_space");
    const char *types = attached(ir, line, "kernel_arg_type");
    const char *bases = attached(ir, line, "kernel_arg_base_type");
    const char *qualifiers = attached(ir, line, "kernel_arg_type_qual");
    const char *names = attached(ir, line, "kernel_arg_name");
    char name[ITEM_SIZE], type[ITEM_SIZE], base[ITEM_SIZE], qualifier[ITEM_SIZE], space[ITEM_SIZE];
    while (spaces && types && bases && qualifiers && names && next_item(&names, name) &&
           next_item(&types, type) && next_item(&bases, base) &&
           next_item(&qualifiers, qualifier) && next_item(&spaces, space)) {
        struct kc_parameter *grown =
            realloc(kernel->parameters, (kernel->parameter_count + 1) * sizeof *grown);
        if (!grown)
            return false;
        kernel->parameters = grown;
        grown += kernel->parameter_count++;
        *grown = (struct kc_parameter){0};
        describe(grown, name, type, base, qualifier, (unsigned)strtoul(space, NULL, 10));
    }
    return true;
}

static void read_block(const char *ir, const char *line, struct kc_kernel *kernel)
{
    const char *sizes = attached(ir, line, "reqd_work_group_size");
    char number[ITEM_SIZE];
    for (int i = 0; sizes && i < 3 && next_item(&sizes, number); i++)
        kernel->block[i] = (unsigned)strtoul(number, NULL, 10);
}

static bool read_kernels(const char *ir, struct kc_kernels *kernels)
{
    for (const char *line = ir; *line;
         line = *line_end(line) ? line_end(line) + 1 : line_end(line)) {
        const char *name = strchr(line, '@');
        const char *convention = strstr(line, " spir_kernel ");
        if (strncmp(line, "define ", 7) != 0 || !convention || !name ||
            convention > line_end(line) || name > line_end(line))
            continue;
        struct kc_kernel *grown = realloc(kernels->items, (kernels->count + 1) * sizeof *grown);
        if (!grown)
            return false;
        kernels->items = grown;
        grown += kernels->count++;
        *grown = (struct kc_kernel){.name = strndup(name + 1, strcspn(name + 1, "("))};
        if (!grown->name || !read_parameters(ir, line, grown))
            return false;
        read_block(ir, line, grown);
    }
    return true;
}

void kc_kernels_finish(struct kc_kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        struct kc_kernel *kernel = &kernels->items[i];
        for (size_t p = 0; p < kernel->parameter_count; p++) {
            free(kernel->parameters[p].name);
            free(kernel->parameters[p].type);
        }
        free(kernel->parameters);
        free(kernel->name);
    }
    free(kernels->items);
    *kernels = (struct kc_kernels){0};
}

// Sizes.

// OpenCL C that, after the kernels, puts what is not known of a parameter's type into the module: the
// size of a value, the alignment of what a pointer points to.
static bool probe(struct weir_long_text *text, const struct kc_parameter *parameter, size_t kernel,
                  size_t index)
{
    const char *before = NULL;
    if (is_value(parameter) && parameter->size == 0)
        before = "sizeof(";
    if (parameter->kind == KC_BUFFER && parameter->alignment == 0 && !strchr(parameter->type, '['))
        before = "__alignof__(*(";
    if (before)
        weir_long_text_add(text, "__constant uint " SIZE_NAME "%zu_%zu = %s%s)%s;\n", kernel, index,
                           before, parameter->type, is_value(parameter) ? "" : "0)");
    return before;
}

static bool add_probe(const struct kc_kernels *kernels, struct weir_long_text *text)
{
    bool any = false;
    for (size_t k = 0; k < kernels->count; k++)
        for (size_t p = 0; p < kernels->items[k].parameter_count; p++)
            any = probe(text, &kernels->items[k].parameters[p], k, p) || any;
    return any;
}

static void read_sizes(const char *ir, struct kc_kernels *kernels)
{
    for (size_t k = 0; k < kernels->count; k++)
        for (size_t p = 0; p < kernels->items[k].parameter_count; p++) {
            struct kc_parameter *parameter = &kernels->items[k].parameters[p];
            char start[64];
            snprintf(start, sizeof start, "\n@" SIZE_NAME "%zu_%zu = ", k, p);
            const char *line = strstr(ir, start);
            const char *size = line ? strstr(line, "constant i32 ") : NULL;
            if (size && size < line_end(line + 1))
                *(is_value(parameter) ? &parameter->size : &parameter->alignment) =
                    (unsigned)strtoul(size + strlen("constant i32 "), NULL, 10);
        }
}

// Compiling.

static bool run_clang(const struct kc_tools *tools, const struct kc_language *language,
                      const char *source, const char *out, struct weir_long_text *report)
{
    char standard[64];
    snprintf(standard, sizeof standard, "-cl-std=%s", language->standard);
    // Without optimisation clang leaves out inline functions, and what they call.
    struct kc_job job = {.arguments = {tools->clang,
                                       "-x",
                                       "cl",
                                       standard,
                                       "-target",
                                       "spir64",
                                       "-O1",
                                       "-S",
                                       "-emit-llvm",
                                       "-cl-kernel-arg-info",
                                       "-Wall",
                                       "-Wno-error=incompatible-pointer-types",
                                       "-Xclang",
                                       "-disable-llvm-passes",
                                       "-Xclang",
                                       KC_EXTENSIONS,
                                       KC_DEVICE_VERSION,
                                       KC_IS_COMPILER,
                                       "-U__IMAGE_SUPPORT__",
                                       source,
                                       "-o",
                                       out}};
    if (language->fast)
        kc_job_add(&job, KC_FAST);
    kc_run(&job, 1);
    const bool fine = job.status == 0;
    if (job.errors)
        weir_long_text_add(report, "%s", job.errors);
    if (!fine)
        weir_long_text_add(report, "error: this does not compile as OpenCL C (%s)\n",
                           language->standard);
    kc_jobs_finish(&job, 1);
    return fine;
}

static bool compile(const struct kc_tools *tools, const struct kc_language *language,
                    const char *text, const char *folder, char **out_ir,
                    struct weir_long_text *report)
{
    char source[1024], out[1024], message[512];
    void *ir = NULL;
    size_t size;
    snprintf(source, sizeof source, "%s/kernels.cl", folder);
    snprintf(out, sizeof out, "%s/kernels.spir.ll", folder);
    bool fine = weir_file_write(source, text, strlen(text), message, sizeof message);
    if (fine && !run_clang(tools, language, source, out, report))
        return false;
    fine = fine && weir_file_read(out, IR_LIMIT, &ir, &size, message, sizeof message);
    if (!fine)
        weir_long_text_add(report, "error: %s\n", message);
    *out_ir = ir;
    return fine;
}

// Warnings were told already.
static bool find_sizes(const struct kc_tools *tools, const struct kc_language *language,
                       const char *text, const char *folder, struct kc_kernels *kernels,
                       struct weir_long_text *report)
{
    struct weir_long_text longer = {0};
    struct weir_long_text again = {0};
    char *ir = NULL;
    weir_long_text_add(&longer, "%s\n", text);
    bool fine = true;
    if (add_probe(kernels, &longer)) {
        fine = !longer.failed && compile(tools, language, longer.text, folder, &ir, &again);
        if (fine)
            read_sizes(ir, kernels);
        else
            weir_long_text_add(report,
                               "%serror: the sizes of the kernels' parameters cannot be found\n",
                               again.text ? again.text : "");
    }
    free(ir);
    free(again.text);
    free(longer.text);
    return fine;
}

bool kc_signatures(const struct kc_tools *tools, const struct kc_language *language,
                   const char *text, const char *folder, struct kc_kernels *out_kernels,
                   struct weir_long_text *report)
{
    char *ir = NULL;
    *out_kernels = (struct kc_kernels){0};
    if (tools->clang[0] == '\0') {
        weir_long_text_add(report,
                           "error: clang is not installed, and kernels are checked with it; "
                           "install the package clang-22, or clang\n");
        return false;
    }
    bool fine = kc_check_outside(tools, language, text, folder, report) &&
                compile(tools, language, text, folder, &ir, report);
    if (fine && !(fine = read_kernels(ir, out_kernels)))
        weir_long_text_add(report, "error: no memory for the kernels' signatures\n");
    if (fine)
        out_kernels->library = kc_library_needed(ir);
    if (fine)
        kc_check_local(tools, language, ir, folder, report);
    for (size_t i = 0; i < out_kernels->count && fine; i++)
        out_kernels->items[i].grid_barrier =
            weir_calls(text, out_kernels->items[i].name, KC_GRID_BARRIER);
    free(ir);
    if (fine && out_kernels->count == 0) {
        weir_long_text_add(report,
                           "error: there is no kernel: a source needs a __kernel function\n");
        return false;
    }
    return fine && find_sizes(tools, language, text, folder, out_kernels, report);
}
