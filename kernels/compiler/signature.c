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

// Variables in local memory of which a driver may give each work-item a copy. PoCL 3.1 hands LLVM
// local memory as ordinary memory, and a kernel as code of one thread; if every load of a variable
// comes after a store that every work-item makes, LLVM keeps the variable in a register, and what
// another work-item stores is lost. So where it may happen clang compiles the text in the same way,
// for a processor, and what is gone from its module is warned of, at the first store.

enum {
    NAME_SIZE = 256,
    PATH_SIZE = 1024,
    IR_LIMIT = 256 << 20
};

// The modules, as text.
struct modules {
    char *processor; // optimised, with local memory as ordinary memory
    char *places;    // as clang makes it, with places in the source
};

static const char *next_line(const char *line)
{
    const char *newline = strchr(line, '\n');
    return newline ? newline + 1 : NULL;
}

// The next variable in local memory that a kernel declares: "@kernel.name = internal ...".
static const char *next_variable(const char *line, char *out_name)
{
    for (; line; line = next_line(line)) {
        const size_t length = strcspn(line, " \n");
        if (*line != '@' || length >= NAME_SIZE ||
            strncmp(line + length, " = internal addrspace(3) global ", 32) != 0)
            continue;
        snprintf(out_name, NAME_SIZE, "%.*s", (int)length, line);
        return next_line(line);
    }
    return NULL;
}

static bool has_name(const char *line, const char *name)
{
    const char *end = line + strcspn(line, "\n");
    const char *at = strstr(line, name);
    const char after = at && at < end ? at[strlen(name)] : '_';
    return !isalnum((unsigned char)after) && after != '_' && after != '.';
}

// The first line from `line` on that stores to the variable.
static const char *next_store(const char *line, const char *name)
{
    static const char store[] = "  store ", fixed[] = "  store volatile ";
    for (; line; line = next_line(line))
        if (strncmp(line, store, sizeof store - 1) == 0 &&
            strncmp(line, fixed, sizeof fixed - 1) != 0 && has_name(line, name))
            return line;
    return NULL;
}

static bool is_used_otherwise(const char *ir, const char *name)
{
    for (const char *line = ir; line; line = next_line(line))
        if (line[0] == ' ' && strncmp(line, "  store ", 8) != 0 && has_name(line, name))
            return true;
    return false;
}

// With one store alone each work-item reads what it wrote itself.
static bool may_differ(const char *ir, const char *name)
{
    const char *first = next_store(ir, name);
    return first && next_store(next_line(first), name) && is_used_otherwise(ir, name);
}

static bool any_may_differ(const char *ir)
{
    char name[NAME_SIZE];
    for (const char *at = ir; (at = next_variable(at, name));)
        if (may_differ(ir, name))
            return true;
    return false;
}

// A structure may be left as its parts, "@kernel.name.1".
static bool is_left(const char *ir, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = ir; line; line = next_line(line))
        if (strncmp(line, name, length) == 0 && (line[length] == ' ' || line[length] == '.'))
            return true;
    return false;
}

// The line of node `number`.
static const char *find_place_node(const char *ir, unsigned long number)
{
    char start[32];
    snprintf(start, sizeof start, "\n!%lu = ", number);
    const char *node = strstr(ir, start);
    return node ? node + 1 : NULL;
}

// The number after `key` in a line; 0: there is none.
static unsigned long number_in(const char *line, const char *key)
{
    const char *at = line ? strstr(line, key) : NULL;
    return at && at < line + strcspn(line, "\n") ? strtoul(at + strlen(key), NULL, 10) : 0;
}

// "k.cl:3:5: ", or nothing.
static void add_place(const char *ir, const char *store, struct weir_long_text *report)
{
    static const char key[] = "filename: \"";
    const unsigned long location = number_in(store, "!dbg !");
    const char *place = location ? find_place_node(ir, location) : NULL;
    const unsigned long scope = number_in(place, "scope: !");
    const unsigned long file = scope ? number_in(find_place_node(ir, scope), "file: !") : 0;
    const char *node = file ? find_place_node(ir, file) : NULL;
    const char *name = node ? strstr(node, key) : NULL;
    if (name)
        weir_long_text_add(report, "%.*s:%lu:%lu: ", (int)strcspn(name + sizeof key - 1, "\""),
                           name + sizeof key - 1, number_in(place, "line: "),
                           number_in(place, "column: "));
}

static void warn(const struct modules *modules, const char *name, struct weir_long_text *report)
{
    const char *variable = strchr(name, '.');
    add_place(modules->places, next_store(modules->places, name), report);
    weir_long_text_add(report,
                       "warning: the __local variable '%s' is written by every work-item before "
                       "it is read, and written again: PoCL gives each a copy of its own, and what "
                       "one writes the others do not see; let one work-item write it here, if "
                       "(get_local_id(0) == 0), or declare it volatile\n",
                       variable ? variable + 1 : name);
}

static void add_clang(struct kc_job *job, const struct kc_tools *tools,
                      const struct kc_language *language, const char *standard,
                      const char *const *more, size_t count)
{
    const char *const common[] = {tools->clang,
                                  "-x",
                                  "cl",
                                  standard,
                                  "-S",
                                  "-w",
                                  "-emit-llvm",
                                  "-Wno-incompatible-pointer-types",
                                  "-Xclang",
                                  KC_EXTENSIONS,
                                  KC_DEVICE_VERSION,
                                  "-U__IMAGE_SUPPORT__"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        kc_job_add(job, common[i]);
    for (size_t i = 0; i < count; i++)
        kc_job_add(job, more[i]);
    if (language->fast)
        kc_job_add(job, KC_FAST);
}

// False if there is nothing to look at: what failed is no reason to refuse the kernels.
static bool compile_twice(const struct kc_tools *tools, const struct kc_language *language,
                          const char *folder, struct modules *out)
{
    char source[PATH_SIZE], processor[PATH_SIZE], places[PATH_SIZE], standard[64], message[512];
    size_t size;
    void *data[2] = {NULL, NULL};
    struct kc_job jobs[2] = {{0}};
    snprintf(source, sizeof source, "%s/kernels.cl", folder);
    snprintf(processor, sizeof processor, "%s/kernels.processor.ll", folder);
    snprintf(places, sizeof places, "%s/kernels.places.ll", folder);
    snprintf(standard, sizeof standard, "-cl-std=%s", language->standard);
    const char *const first[] = {"-target", "x86_64", "-O2", source, "-o", processor};
    const char *const second[] = {"-target", "spir64",  "-O1",
                                  "-g",      "-Xclang", "-disable-llvm-passes",
                                  source,    "-o",      places};
    add_clang(&jobs[0], tools, language, standard, first, sizeof first / sizeof *first);
    add_clang(&jobs[1], tools, language, standard, second, sizeof second / sizeof *second);
    kc_run(jobs, 2);
    const bool fine =
        jobs[0].status == 0 && jobs[1].status == 0 &&
        weir_file_read(processor, IR_LIMIT, &data[0], &size, message, sizeof message) &&
        weir_file_read(places, IR_LIMIT, &data[1], &size, message, sizeof message);
    kc_jobs_finish(jobs, 2);
    *out = (struct modules){data[0], data[1]};
    return fine;
}

// Warns of variables in local memory that PoCL keeps for each work-item on its own. `ir` is the
// module of kernels.cl in `folder`, before it is optimised.
static void kc_check_local(const struct kc_tools *tools, const struct kc_language *language,
                           const char *ir, const char *folder, struct weir_long_text *report)
{
    struct modules modules = {NULL, NULL};
    char name[NAME_SIZE];
    if (!any_may_differ(ir))
        return;
    if (compile_twice(tools, language, folder, &modules))
        for (const char *at = ir; (at = next_variable(at, name));)
            if (may_differ(ir, name) && !is_left(modules.processor, name))
                warn(&modules, name, report);
    free(modules.processor);
    free(modules.places);
}

#define SIZE_NAME "weir__size_of_"

enum {
    SPACE_CONSTANT = 2,
    SPACE_LOCAL = 3,
    ITEM_SIZE = 512
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
