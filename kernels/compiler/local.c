// Variables in local memory of which a driver may give each work-item a copy. PoCL 3.1 hands LLVM
// local memory as ordinary memory, and a kernel as code of one thread; if every load of a variable
// comes after a store that every work-item makes, LLVM keeps the variable in a register, and what
// another work-item stores is lost. So where it may happen clang compiles the text in the same way,
// for a processor, and what is gone from its module is warned of, at the first store.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "kernels/compiler/compiler.h"

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
static const char *find_node(const char *ir, unsigned long number)
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
    const char *place = location ? find_node(ir, location) : NULL;
    const unsigned long scope = number_in(place, "scope: !");
    const unsigned long file = scope ? number_in(find_node(ir, scope), "file: !") : 0;
    const char *node = file ? find_node(ir, file) : NULL;
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
static bool compile(const struct kc_tools *tools, const struct kc_language *language,
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

void kc_check_local(const struct kc_tools *tools, const struct kc_language *language,
                    const char *ir, const char *folder, struct weir_long_text *report)
{
    struct modules modules = {NULL, NULL};
    char name[NAME_SIZE];
    if (!any_may_differ(ir))
        return;
    if (compile(tools, language, folder, &modules))
        for (const char *at = ir; (at = next_variable(at, name));)
            if (may_differ(ir, name) && !is_left(modules.processor, name))
                warn(&modules, name, report);
    free(modules.processor);
    free(modules.places);
}
