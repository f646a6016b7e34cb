// Compiling the OpenCL C, and what is told of it: kernels that no bundle has, at their lines, what CUDA has no room
// for, and what only some devices do as it was meant.
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kernels/compiler/compiler.h"

enum {
    NAME_SIZE = 512,
    PATH_SIZE = 1024
};

// Compiling.

static bool run_clang(struct kc_context *context, const char *source, const char *const *more,
                      const char *out)
{
    struct kc_job job = {.input = NULL};
    kc_job_add_language(&job, context->tools, context->language);
    if (!context->without_cuda)
        kc_job_add_cuda(&job, context->language);
    // C that other compilers take, and clang only warned of for long.
    if (!context->language->strict)
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

// `name` is of the files on the way.
static bool compile(struct kc_context *context, const char *text, const char *name,
                    const char *const *more, struct kc_module *out)
{
    char source[PATH_SIZE], ir[PATH_SIZE], *data;
    size_t size;
    snprintf(source, sizeof source, "%s/%s.cl", context->folder, name);
    snprintf(ir, sizeof ir, "%s/%s.ll", context->folder, name);
    return kc_write(source, text, context->report) && run_clang(context, source, more, ir) &&
           kc_read(ir, &data, &size, context->report) &&
           (kc_module_read(data, out) ||
            kc_error(context->report, "no memory for the kernels' module"));
}

// Without optimisation clang leaves out inline functions, and what they call.
#define AS_IT_IS "-O3", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm"

// What CUDA alone has, outside of a part for it (#ifdef __NVPTX__), is no OpenCL C.
static bool check_others(struct kc_context *context, const struct kc_module *module)
{
    static const char *const more[] = {"-target",      "spir64",  "-fsyntax-only",  "-w",
                                       KC_IS_COMPILER, "-Xclang", "-fgnu-keywords", NULL};
    char source[PATH_SIZE];
    bool any = false;
    for (size_t i = 0; i < module->symbol_count && !any; i++)
        any = kc_starts_with(module->symbols[i].name, "llvm.nvvm.");
    if (!any && !strstr(module->text, " asm "))
        return true;
    struct kc_context others = *context;
    others.without_cuda = true;
    snprintf(source, sizeof source, "%s/kernels.cl", context->folder);
    return run_clang(&others, source, more, source);
}

static bool compile_for_cuda(struct kc_context *context, struct kc_module *out)
{
    static const char *const quiet[] = {AS_IT_IS, "-cl-kernel-arg-info", "-w", NULL};
    static const char *const strict[] = {AS_IT_IS, "-cl-kernel-arg-info", "-Wall", "-Werror", NULL};
    static const char *const usual[] = {AS_IT_IS, "-cl-kernel-arg-info", "-Wall", NULL};
    const struct kc_language *language = context->language;
    if (compile(context, context->text, "kernels",
                language->quiet    ? quiet
                : language->strict ? strict
                                   : usual,
                out) &&
        check_others(context, out))
        return true;
    weir_long_text_add(context->report, "error: this does not compile as OpenCL C (%s)\n",
                       language->standard);
    return false;
}

// The module with places in the source, which is made when a message needs one. NULL: it cannot be made.
static const struct kc_module *with_places(struct kc_context *context)
{
    static const char *const more[] = {AS_IT_IS, "-gline-tables-only", "-w", NULL};
    struct weir_long_text ignored = {0};
    struct kc_context quiet = *context;
    quiet.report = &ignored;
    if (!context->places.text && !context->has_no_places)
        context->has_no_places = !compile(&quiet, context->text, "places", more, &context->places);
    free(ignored.text);
    return context->has_no_places ? NULL : &context->places;
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
    bool *reached = symbol ? kc_module_reach(places, kernel->name) : NULL;
    const char *line = used && reached ? use_of(places, reached, used) : NULL;
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (places && symbol)
        kc_module_add_place(places, line ? line : symbol->line, context->report);
    weir_long_text_add(context->report, "%s: kernel '%s' %s%s\n",
                       context->skip ? "warning" : "error", kernel->name,
                       context->skip ? "is left out: it " : "", sentence);
    kernel->refused = true;
    free(reached);
}

bool kc_drop_refused(struct kc_context *context, struct kc_kernels *kernels, bool *out_any)
{
    size_t kept = 0;
    *out_any = false;
    for (size_t i = 0; i < kernels->count; i++)
        *out_any = *out_any || kernels->items[i].refused;
    if (!*out_any)
        return true;
    if (!context->skip) {
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
    if (kept == 0)
        weir_long_text_add(context->report, "error: no kernel is left\n");
    return kept > 0;
}

#define NO_IMAGES "images of depth and of several samples are not built; use image2d_t, or a buffer"
#define NO_PIPES "pipes are not built for CUDA; use a buffer"
#define NO_QUEUES "kernels cannot enqueue kernels on CUDA; launch from the host"

// Types of OpenCL C's own that are left once kernels/images has changed the text. Images and pipes are known by
// their access.
static const char *sentence_of(const struct kc_context *context, const struct kc_kernel *kernel,
                               size_t index)
{
    const char *type = kernel->parameters[index].type_name;
    if (kernel->opaque != KC_PLAIN && kernel->opaque_at == index)
        return kernel->opaque == KC_PIPE ? NO_PIPES : NO_IMAGES;
    const bool is_20 = strcmp(context->language->standard, "CL2") > 0;
    return is_20 && (strcmp(type, "queue_t") == 0 || strcmp(type, "clk_event_t") == 0) ? NO_QUEUES
                                                                                       : NULL;
}

// What clang calls.
static const struct {
    const char *part; // of the symbol
    const char *sentence;
} outside[] = {
    {"ocl_image", NO_IMAGES},
    {"__get_pipe_", NO_PIPES},
    {"_read_pipe", NO_PIPES},
    {"_write_pipe", NO_PIPES},
};

enum {
    OUTSIDE = sizeof outside / sizeof *outside
};

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

static void check_parameters(struct kc_context *context, struct kc_kernel *kernel)
{
    for (size_t p = 0; p < kernel->parameter_count && !kernel->refused; p++) {
        const struct weir_parameter *parameter = &kernel->parameters[p];
        const char *sentence = sentence_of(context, kernel, p);
        if (sentence)
            kc_refuse(context, kernel, NULL, "has the parameter '%s', of the type %s: %s",
                      parameter->name, parameter->type_name, sentence);
    }
}

// "_Z11read_imagef14ocl_image2d_ro...", "read_imagef".
void kc_plain_name(const struct kc_symbol *symbol, char *out, size_t size)
{
    char *end;
    const bool mangled = symbol->length > 3 && strncmp(symbol->name, "_Z", 2) == 0;
    const unsigned long length = mangled ? strtoul(symbol->name + 2, &end, 10) : 0;
    const bool known = length > 0 && end + length <= symbol->name + symbol->length;
    snprintf(out, size, "%.*s", known ? (int)length : (int)symbol->length,
             known ? end : symbol->name);
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

static void check_calls(struct kc_context *context, const struct kc_module *module,
                        struct kc_kernel *kernel)
{
    kernel->waits = strstr(module->text, " asm ") != NULL;
    bool *reached = kc_module_reach(module, kernel->name);
    for (size_t s = 0; reached && s < module->symbol_count && !kernel->refused; s++) {
        const struct kc_symbol *symbol = &module->symbols[s];
        char whole[NAME_SIZE], name[NAME_SIZE];
        if (!reached[s] || symbol->kind != KC_DECLARED)
            continue;
        snprintf(whole, sizeof whole, "%.*s", (int)symbol->length, symbol->name);
        kc_plain_name(symbol, name, sizeof name);
        for (size_t i = 0; i < OUTSIDE && !kernel->refused; i++)
            if (strstr(whole, outside[i].part))
                kc_refuse(context, kernel, whole, "uses %s: %s", name, outside[i].sentence);
        kernel->waits = kernel->waits || is_meeting(name);
        kernel->grid_barrier = kernel->grid_barrier || strcmp(whole, KC_GRID_BARRIER) == 0;
    }
    context->report->failed = context->report->failed || !reached;
    free(reached);
}

// Of what is warned of, as clang has it.
static const char *severity(struct kc_context *context)
{
    context->has_warnings = true;
    return context->language->strict ? "error" : "warning";
}

// `long long` has 128 bits in OpenCL C.
static void check_long_long(struct kc_context *context, const struct kc_module *module)
{
    const char *line = module->text;
    const struct kc_module *places;
    while (line && !(*line == ' ' && kc_in_line(line, "i128 ")))
        line = kc_next_line(line);
    if (!line || !(places = with_places(context)))
        return;
    for (line = places->text;
         line && !(*line == ' ' && kc_in_line(line, "i128 ") && kc_in_line(line, "!dbg "));)
        line = kc_next_line(line);
    if (line)
        kc_module_add_place(places, line, context->report);
    weir_long_text_add(context->report, "%s: 'long long' has 128 bits in OpenCL C; 'long' has 64\n",
                       severity(context));
}

// CUDA's limits: of blocks and parameters, which the signature says; and of a kernel's own memory, the local arrays
// that it declares and what each work-item has, of which the PTX says:
//
//     .shared .align 4 .b8 NAME_$_VARIABLE[65536];
//     .visible .entry NAME(
//         .local .align 4 .b8 __local_depot0[800000];

enum {
    BLOCK_MOST = 1024,
    BLOCK_DEPTH_MOST = 64,
    SUB_GROUP = 32,
    PARAMETERS_MOST = 32764,
    LOCAL_MOST = 48 << 10,
    PRIVATE_MOST = 512 << 10
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

// "NAME[65536]" at the end of a declaration.
static unsigned long long bytes_of(const char *line)
{
    const char *open = kc_in_line(line, "[");
    return open ? strtoull(open + 1, NULL, 10) : 0;
}

// The kernel of a variable in local memory.
static struct kc_kernel *owner_of(struct kc_kernels *kernels, const char *line)
{
    const char *mark = kc_in_line(line, "_$_");
    const char *start = mark;
    while (start && start > line && !isspace((unsigned char)start[-1]))
        start--;
    return mark ? kc_kernels_find(kernels, start, (size_t)(mark - start)) : NULL;
}

static struct kc_kernel *entry_of(struct kc_kernels *kernels, const char *line)
{
    const char *at = kc_in_line(line, ".entry ");
    return at ? kc_kernels_find(kernels, at + 7, strcspn(at + 7, "( \t\n")) : NULL;
}

static void check_local_bytes(struct kc_context *context, struct kc_kernel *kernel,
                              unsigned long long bytes)
{
    if (bytes > LOCAL_MOST && !kernel->refused)
        kc_refuse(
            context, kernel, NULL,
            "has __local arrays of %llu bytes: CUDA has %d for what a kernel declares; pass a "
            "__local pointer (weir_local())",
            bytes, LOCAL_MOST);
}

static void check_private_bytes(struct kc_context *context, struct kc_kernel *kernel,
                                unsigned long long bytes)
{
    if (bytes > PRIVATE_MOST && !kernel->refused)
        kc_refuse(context, kernel, NULL,
                  "has %llu bytes of variables in each work-item: CUDA has %d; use a buffer", bytes,
                  PRIVATE_MOST);
}

void kc_check_memory(struct kc_context *context, const char *ptx, struct kc_kernels *kernels)
{
    unsigned long long *local = calloc(kernels->count + 1, sizeof *local);
    struct kc_kernel *current = NULL, *found;
    for (const char *line = ptx; line && local; line = kc_next_line(line)) {
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, ".shared ", 8) == 0 && (found = owner_of(kernels, line)))
            local[found - kernels->items] += bytes_of(line);
        else if (kc_in_line(line, ".entry ") || kc_in_line(line, ".func "))
            current = entry_of(kernels, line);
        else if (strncmp(at, ".local ", 7) == 0 && current)
            check_private_bytes(context, current, bytes_of(line));
    }
    for (size_t i = 0; i < kernels->count && local; i++)
        check_local_bytes(context, &kernels->items[i], local[i]);
    context->report->failed = context->report->failed || !local;
    free(local);
}

static bool check(struct kc_context *context, const struct kc_module *module,
                  struct kc_kernels *kernels)
{
    if (!context->language->quiet)
        check_long_long(context, module);
    if (context->language->strict && context->has_warnings)
        return false;
    if (kernels->count == 0) {
        weir_long_text_add(context->report,
                           "error: there is no kernel: a source needs a __kernel function\n");
        return false;
    }
    for (size_t i = 0; i < kernels->count; i++) {
        check_name(context, &kernels->items[i]);
        check_parameters(context, &kernels->items[i]);
        check_calls(context, module, &kernels->items[i]);
        if (!kernels->items[i].refused)
            check_limits(context, &kernels->items[i]);
    }
    bool any;
    return kc_drop_refused(context, kernels, &any);
}

bool kc_compile(struct kc_context *context, struct kc_module *out, struct kc_kernels *out_kernels)
{
    return compile_for_cuda(context, out) && kc_signatures(out, out_kernels, context->report) &&
           check(context, out, out_kernels);
}
