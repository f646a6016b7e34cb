// Compiling the OpenCL C, the kernels' signatures, and what is told of them: kernels that no bundle has, at their
// lines, and what only some devices do as it was meant.
#include <ctype.h>

#include "kernels/compiler/compiler.h"

enum {
    NAME_SIZE = 512
};

// Compiling.

static bool run_clang(const struct kc_context *context, bool cuda, const char *source,
                      const char *const *more, const char *out, const char *records)
{
    struct kc_job job = {.output = records};
    kc_job_add_language(&job, context->build);
    if (cuda)
        kc_job_add_cuda(&job, &context->build->language);
    // C that other compilers take, and clang only warned of for long.
    if (!context->build->language.strict)
        KC_ADD(&job, "-Wno-error=incompatible-pointer-types", "-Wno-error=parentheses");
    kc_job_add_all(&job, more);
    KC_ADD(&job, source, "-o", out);
    kc_run(&job, 1);
    const bool fine = job.status == 0;
    if (job.errors)
        weir_long_text_add(context->report, "%s", job.errors);
    kc_jobs_finish(&job, 1);
    return fine;
}

// `name` is of the files on the way; with more options clang may say more in `records`.
static bool compile(struct kc_context *context, const char *name, const char *const *more,
                    const char *records, struct kc_module *out)
{
    char source[KC_PATH_SIZE], ir[KC_PATH_SIZE], *data;
    size_t size;
    snprintf(source, sizeof source, "%s/%s.cl", context->folder, name);
    snprintf(ir, sizeof ir, "%s/%s.ll", context->folder, name);
    return kc_write(source, context->result->text.text, context->report) &&
           run_clang(context, true, source, more, ir, records) &&
           kc_read(ir, &data, &size, context->report) &&
           (kc_module_read(data, out) ||
            kc_error(context->report, "no memory for the kernels' module"));
}

// Without optimisation clang leaves out inline functions, and what they call.
#define AS_IT_IS "-O3", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm"

// What CUDA alone has, outside of a part for it (#ifdef __NVPTX__), is no OpenCL C.
static bool check_others(struct kc_context *context)
{
    const struct kc_module *module = &context->module;
    static const char *const more[] = {"-target",      "spir64",  "-fsyntax-only",  "-w",
                                       KC_IS_COMPILER, "-Xclang", "-fgnu-keywords", NULL};
    char source[KC_PATH_SIZE];
    bool any = false;
    for (size_t i = 0; i < module->symbol_count && !any; i++)
        any = kc_starts_with(module->symbols[i].name, "llvm.nvvm.");
    if (!any && !strstr(module->text, " asm "))
        return true;
    snprintf(source, sizeof source, "%s/kernels.cl", context->folder);
    return run_clang(context, false, source, more, source, NULL);
}

// The module with places in the source, which is made when a message needs one. NULL: it cannot be made.
static const struct kc_module *with_places(struct kc_context *context)
{
    static const char *const more[] = {AS_IT_IS, "-gline-tables-only", "-w", NULL};
    struct weir_long_text ignored = {0};
    struct kc_context quiet = *context;
    quiet.report = &ignored;
    if (!context->places.text && !context->has_no_places)
        context->has_no_places = !compile(&quiet, "places", more, NULL, &context->places);
    free(ignored.text);
    return context->has_no_places ? NULL : &context->places;
}

// The kernels' signatures stand in the metadata that clang attaches to each kernel, `define ... @name(...) ...
// !kernel_arg_type !7`, `!7 = !{!"int*"}`, and sizes of structures in what it tells of records.

#define NO_IMAGES "images of depth and of several samples are not built; use image2d_t, or a buffer"
#define NO_PIPES "pipes are not built for CUDA; use a buffer"

enum {
    SPACE_CONSTANT = 2,
    SPACE_LOCAL = 3,
    ITEM_SIZE = 512
};

#define SEVERAL_SIZES UINT32_MAX

static const struct scalar {
    const char *type;
    weir_scalar scalar;
    uint32_t size;
} scalars[] = {
    {"char", WEIR_SCALAR_I8, 1},    {"uchar", WEIR_SCALAR_U8, 1},  {"short", WEIR_SCALAR_I16, 2},
    {"ushort", WEIR_SCALAR_U16, 2}, {"int", WEIR_SCALAR_I32, 4},   {"uint", WEIR_SCALAR_U32, 4},
    {"long", WEIR_SCALAR_I64, 8},   {"ulong", WEIR_SCALAR_U64, 8}, {"float", WEIR_SCALAR_F32, 4},
    {"double", WEIR_SCALAR_F64, 8}, {"half", WEIR_SCALAR_F16, 2},
};

// NULL: it is none.
static const struct scalar *scalar_of(const char *type, size_t length)
{
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (strlen(scalars[i].type) == length && strncmp(type, scalars[i].type, length) == 0)
            return &scalars[i];
    return NULL;
}

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
    const struct scalar *scalar = scalar_of(type, length);
    if (!scalar)
        return;
    parameter->element = scalar->scalar;
    parameter->width = width ? (unsigned)strtoul(width + strlen(vector), NULL, 10) : 1;
    parameter->alignment = scalar->size * (parameter->width == 3 ? 4 : parameter->width);
}

// How many bytes a structure or a union has, "         0 | struct pair", "           | [sizeof=16, align=8]"; 0: it is
// none. Structures of several blocks may have one name.
static unsigned record_size(const char *records, const char *type)
{
    static const char key[] = "[sizeof=";
    char head[ITEM_SIZE + 16];
    unsigned size = 0, count = 0;
    snprintf(head, sizeof head, "\n         0 | %s\n", type);
    for (const char *at = strstr(records, head); at; at = strstr(at, head)) {
        at = strstr(at, key);
        if (!at)
            return 0;
        const unsigned other = (unsigned)strtoul(at + strlen(key), NULL, 10);
        if (count++ > 0 && size != other)
            return SEVERAL_SIZES;
        size = other;
    }
    return size;
}

static void describe(struct weir_parameter *parameter, const char *name, const char *type,
                     const char *base, const char *qualifiers, unsigned space, const char *records)
{
    const bool constant = strstr(qualifiers, "const") != NULL;
    const size_t length = strlen(type);
    const bool pointer = length > 0 && type[length - 1] == '*';
    parameter->name = strdup(name);
    parameter->kind = !pointer               ? WEIR_PARAMETER_VALUE
                      : space == SPACE_LOCAL ? WEIR_PARAMETER_LOCAL
                                             : WEIR_PARAMETER_BUFFER;
    describe_type(parameter, base);
    if (pointer) {
        parameter->type_name = show_pointer(type, constant);
        parameter->constant = space == SPACE_CONSTANT;
        parameter->writable =
            parameter->kind == WEIR_PARAMETER_BUFFER && !constant && !parameter->constant;
        return;
    }
    const struct scalar *scalar = scalar_of(type, length), *plain = scalar_of(base, strlen(base));
    parameter->type_name = strdup(type);
    parameter->scalar = scalar ? scalar->scalar : WEIR_SCALAR_OTHER;
    parameter->size = plain                  ? plain->size
                      : parameter->width > 1 ? parameter->alignment
                                             : record_size(records, base);
    parameter->alignment = 0;
}

static bool read_parameters(const struct kc_module *module, const char *records, const char *line,
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
        describe(parameter, name, type, base, qualifier, (unsigned)strtoul(space, NULL, 10),
                 records);
        if (strcmp(access, "none") != 0 && !kernel->opaque) {
            kernel->opaque = strstr(qualifier, "pipe") ? NO_PIPES : NO_IMAGES;
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

// "define dso_local ptx_kernel void @k(ptr addrspace(1) noundef align 4 %0, i128 noundef %1)": the alignment of what a
// pointer points to, and the size of an integer that is no scalar.
static void read_head(const char *line, struct kc_kernel *kernel)
{
    static const char key[] = " align ";
    const char *at = kc_first_parameter(line);
    for (size_t p = 0; at && p < kernel->parameter_count; p++) {
        struct weir_parameter *parameter = &kernel->parameters[p];
        const char *next = kc_next_parameter(at);
        const char *alignment = kc_in_line(at, key);
        if (parameter->kind == WEIR_PARAMETER_VALUE && parameter->size == 0 && *at == 'i')
            parameter->size = (unsigned)strtoul(at + 1, NULL, 10) / 8;
        if (parameter->kind == WEIR_PARAMETER_BUFFER && parameter->alignment == 0 &&
            !strchr(parameter->type_name, '[') && alignment && (!next || alignment < next))
            parameter->alignment = (unsigned)strtoul(alignment + strlen(key), NULL, 10);
        at = next;
    }
}

static bool read_kernels(const struct kc_module *module, const char *records,
                         struct kc_kernels *kernels)
{
    for (size_t i = 0; i < module->symbol_count; i++) {
        const struct kc_symbol *symbol = &module->symbols[i];
        struct kc_kernel *kernel =
            symbol->is_kernel ? kc_kernel_add(kernels, symbol->name, strlen(symbol->name)) : NULL;
        if (!symbol->is_kernel)
            continue;
        if (!kernel || !read_parameters(module, records, symbol->line, kernel))
            return false;
        read_block(module, symbol->line, kernel);
        read_head(symbol->line, kernel);
    }
    return true;
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

// What a bundle cannot have.

// The line of a function that is reached that names the symbol `used`; NULL: there is none.
static const char *use_of(const struct kc_module *module, const bool *reached, const char *used)
{
    char word[NAME_SIZE];
    const size_t length = strlen(used);
    if (length + 3 > sizeof word)
        return NULL;
    snprintf(word, sizeof word, "@%s", used);
    for (size_t i = 0; i < module->symbol_count; i++) {
        const struct kc_symbol *symbol = &module->symbols[i];
        if (!reached[i] || symbol->kind != KC_DEFINED)
            continue;
        for (const char *line = kc_next_line(symbol->line); line && *line != '}';
             line = kc_next_line(line)) {
            const char *at = kc_in_line(line, word);
            if (at && !weir_text_is_word(at[length + 1]) && at[length + 1] != '.')
                return line;
        }
    }
    return NULL;
}

void kc_refuse(struct kc_context *context, struct kc_kernel *kernel, const char *used,
               const char *format, ...)
{
    const struct kc_module *places = with_places(context);
    const struct kc_symbol *symbol = places ? kc_module_find(places, kernel->name) : NULL;
    bool *reached = symbol ? kc_module_reach(places, kernel->name, NULL) : NULL;
    const char *line = used && reached ? use_of(places, reached, used) : NULL;
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (places && symbol)
        kc_module_add_place(places, line ? line : symbol->line, context->report);
    weir_long_text_add(context->report, "%s: kernel '%s' %s%s\n",
                       context->build->skip ? "warning" : "error", kernel->name,
                       context->build->skip ? "is left out: it " : "", sentence);
    kernel->refused = true;
    free(reached);
}

bool kc_drop_refused(struct kc_context *context, bool *out_any)
{
    struct kc_kernels *kernels = &context->result->kernels;
    size_t kept = 0;
    *out_any = false;
    for (size_t i = 0; i < kernels->count; i++)
        *out_any = *out_any || kernels->items[i].refused;
    if (!*out_any)
        return true;
    if (!context->build->skip) {
        if (kernels->count > 1)
            weir_long_text_add(context->report,
                               "note: --skip leaves such kernels out, and builds the others\n");
        return false;
    }
    for (size_t i = 0; i < kernels->count; i++) {
        if (kernels->items[i].refused)
            kc_kernel_finish(&kernels->items[i]);
        else
            kernels->items[kept++] = kernels->items[i];
    }
    kernels->count = kept;
    return kept > 0 || kc_error(context->report, "no kernel is left");
}

static void check_name(struct kc_context *context, struct kc_kernel *kernel)
{
    const char *at = kernel->name;
    while (weir_text_is_word(*at))
        at++;
    if (*at)
        kc_refuse(context, kernel, NULL,
                  "has a name with other letters than those of ASCII: CUDA has none; rename it");
    else if (strcmp(kernel->name, "WARP_SZ") == 0)
        kc_refuse(context, kernel, NULL, "has a name that is a number in PTX; rename it");
}

// Types of OpenCL C's own that are left once kernels/images has changed the text. Images and pipes are known by
// their access.
static void check_parameters(struct kc_context *context, struct kc_kernel *kernel)
{
    const bool is_20 = strcmp(context->build->language.standard, "CL2") > 0;
    for (size_t p = 0; p < kernel->parameter_count && !kernel->refused; p++) {
        const struct weir_parameter *parameter = &kernel->parameters[p];
        const char *type = parameter->type_name;
        const char *sentence = kernel->opaque_at == p ? kernel->opaque : NULL;
        if (!sentence && is_20 &&
            (strcmp(type, "queue_t") == 0 || strcmp(type, "clk_event_t") == 0))
            sentence = "kernels cannot enqueue kernels on CUDA; launch from the host";
        if (!sentence && parameter->kind == WEIR_PARAMETER_VALUE && parameter->size == 0)
            sentence = "clang does not tell its size; use a buffer";
        if (!sentence && parameter->kind == WEIR_PARAMETER_VALUE &&
            parameter->size == SEVERAL_SIZES)
            sentence = "two structures of different sizes have this name; rename one";
        if (sentence)
            kc_refuse(context, kernel, NULL, "has the parameter '%s', of the type %s: %s",
                      parameter->name, type, sentence);
    }
}

// "_Z11read_imagef14ocl_image2d_ro...", "read_imagef".
void kc_plain_name(const char *symbol, char *out, size_t size)
{
    char *end = NULL;
    const unsigned long length = kc_starts_with(symbol, "_Z") ? strtoul(symbol + 2, &end, 10) : 0;
    const bool known = length > 0 && length <= strlen(end);
    snprintf(out, size, "%.*s", known ? (int)length : (int)strlen(symbol), known ? end : symbol);
}

// Whether a function makes a work-item wait for others, or see what they write.
static bool is_meeting(const char *name)
{
    static const char *const parts[] = {"barrier",     "fence",      "atom",
                                        "work_group_", "sub_group_", "wait_group"};
    bool found = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        found = found || strstr(name, parts[i]);
    return found;
}

static void check_calls(struct kc_context *context, struct kc_kernel *kernel)
{
    static const struct {
        const char *part; // of the name of what clang calls
        const char *sentence;
    } outside[] = {
        {"ocl_image", NO_IMAGES},
        {"__get_pipe_", NO_PIPES},
        {"_read_pipe", NO_PIPES},
        {"_write_pipe", NO_PIPES},
    };
    const struct kc_module *module = &context->module;
    kernel->waits = strstr(module->text, " asm ") != NULL;
    bool *reached = kc_module_reach(module, kernel->name, NULL);
    for (size_t s = 0; reached && s < module->symbol_count && !kernel->refused; s++) {
        const struct kc_symbol *symbol = &module->symbols[s];
        char name[NAME_SIZE];
        if (!reached[s] || symbol->kind != KC_DECLARED)
            continue;
        kc_plain_name(symbol->name, name, sizeof name);
        for (size_t i = 0; i < sizeof outside / sizeof *outside && !kernel->refused; i++)
            if (strstr(symbol->name, outside[i].part))
                kc_refuse(context, kernel, symbol->name, "uses %s: %s", name, outside[i].sentence);
        kernel->waits = kernel->waits || is_meeting(name);
        kernel->grid_barrier = kernel->grid_barrier || strcmp(symbol->name, KC_GRID_BARRIER) == 0;
    }
    context->report->failed = context->report->failed || !reached;
    free(reached);
}

// `long long` has 128 bits in OpenCL C, which is warned of. False: that is an error.
static bool check_long_long(struct kc_context *context)
{
    const char *line = context->module.text;
    const struct kc_module *places;
    while (line && !(*line == ' ' && kc_in_line(line, "i128 ")))
        line = kc_next_line(line);
    if (!line || !(places = with_places(context)))
        return true;
    for (line = places->text;
         line && !(*line == ' ' && kc_in_line(line, "i128 ") && kc_in_line(line, "!dbg "));)
        line = kc_next_line(line);
    if (line)
        kc_module_add_place(places, line, context->report);
    weir_long_text_add(context->report, "%s: 'long long' has 128 bits in OpenCL C; 'long' has 64\n",
                       context->build->language.strict ? "error" : "warning");
    return !context->build->language.strict;
}

// CUDA's limits of blocks and parameters.

enum {
    BLOCK_MOST = 1024,
    BLOCK_DEPTH_MOST = 64,
    SUB_GROUP = 32,
    PARAMETERS_MOST = 32764
};

unsigned kc_parameter_bytes(const struct kc_kernel *kernel)
{
    unsigned bytes = 0;
    for (size_t i = 0; i < kernel->parameter_count; i++)
        bytes += kernel->parameters[i].kind == WEIR_PARAMETER_VALUE
                     ? (kernel->parameters[i].size + 7) / 8 * 8
                     : 8;
    return bytes;
}

// Refuses a kernel whose block or whose parameters are larger than CUDA's.
static void check_limits(struct kc_context *context, struct kc_kernel *kernel)
{
    const struct weir_extent block = kernel->block;
    const uint64_t items = (uint64_t)block.x * block.y * block.z;
    const unsigned bytes = kc_parameter_bytes(kernel);
    if (items > BLOCK_MOST)
        kc_refuse(
            context, kernel, NULL,
            "requires blocks of %u x %u x %u, %llu work-items: a block of CUDA has at most %d; "
            "require a smaller one",
            block.x, block.y, block.z, (unsigned long long)items, BLOCK_MOST);
    else if (block.z > BLOCK_DEPTH_MOST)
        kc_refuse(
            context, kernel, NULL,
            "requires blocks of %u in the third dimension: CUDA has at most %d; use the first",
            block.z, BLOCK_DEPTH_MOST);
    if (kernel->sub_group > 0 && kernel->sub_group != SUB_GROUP)
        kc_refuse(context, kernel, NULL,
                  "requires sub-groups of %u work-items: CUDA's have %d; require these, or take "
                  "get_sub_group_size()",
                  kernel->sub_group, SUB_GROUP);
    if (bytes > PARAMETERS_MOST)
        kc_refuse(context, kernel, NULL,
                  "has parameters of %u bytes: CUDA takes at most %d; pass a buffer", bytes,
                  PARAMETERS_MOST);
}

static bool check(struct kc_context *context)
{
    const struct kc_kernels *kernels = &context->result->kernels;
    if (!context->build->language.quiet && !check_long_long(context))
        return false;
    if (kernels->count == 0)
        return kc_error(context->report, "there is no kernel: a source needs a __kernel function");
    for (size_t i = 0; i < kernels->count; i++) {
        check_name(context, &kernels->items[i]);
        check_parameters(context, &kernels->items[i]);
        check_calls(context, &kernels->items[i]);
        if (!kernels->items[i].refused)
            check_limits(context, &kernels->items[i]);
    }
    bool any;
    return kc_drop_refused(context, &any);
}

bool kc_compile(struct kc_context *context)
{
    const struct kc_language *language = &context->build->language;
    const bool strict = language->strict && !language->quiet;
    const char *const more[] = {AS_IT_IS,
                                "-cl-kernel-arg-info",
                                "-Xclang",
                                "-fdump-record-layouts",
                                language->quiet ? "-w" : "-Wall",
                                strict ? "-Werror" : NULL,
                                NULL};
    char path[KC_PATH_SIZE], *records;
    size_t size;
    snprintf(path, sizeof path, "%s/records.txt", context->folder);
    if (!compile(context, "kernels", more, path, &context->module) || !check_others(context))
        return kc_error(context->report, "this does not compile as OpenCL C (%s)",
                        language->standard);
    if (!kc_read(path, &records, &size, context->report))
        return false;
    const bool fine = read_kernels(&context->module, records, &context->result->kernels) ||
                      kc_error(context->report, "no memory for the kernels' signatures");
    free(records);
    return fine && check(context);
}
