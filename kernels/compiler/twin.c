// CUDA C++, or images that are there already, in place of the OpenCL C's own images. nvcc compiles one
// source for each architecture. Then every image is read, and its kernels are compared with
// the signatures: the launch passes what these say.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

enum {
    IMAGES_MOST = 32,
    PATH_SIZE = 1024
};

struct twin_build {
    const struct kc_build *build;
    const struct kc_tools *tools;
    const char *folder;
    struct kc_result *result;
    struct weir_long_text *report;
    const char *opencl; // where the signatures come from, for messages
};

// nvcc.

// nvcc says "k.cu(3): error: ...", and editors look for "k.cu:3: error: ...".
static void add_report(struct weir_long_text *report, const char *errors)
{
    for (const char *line = errors; line && *line;) {
        const char *newline = strchr(line, '\n');
        const char *end = newline ? newline : line + strlen(line);
        const char *open = memchr(line, '(', (size_t)(end - line));
        const size_t digits = open ? strspn(open + 1, "0123456789") : 0;
        if (digits > 0 && strncmp(open + 1 + digits, "): ", 3) == 0)
            weir_long_text_add(report, "%.*s:%.*s%.*s\n", (int)(open - line), line, (int)digits,
                               open + 1, (int)(end - open - 2 - (long)digits), open + 2 + digits);
        else
            weir_long_text_add(report, "%.*s\n", (int)(end - line), line);
        line = newline ? newline + 1 : end;
    }
}

// "-DNAME=VALUE" and "-IFOLDER".
struct words {
    char *items[64];
    size_t count;
};

static bool add_words(struct words *words, const char *option, const struct kc_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const size_t size = strlen(option) + strlen(list->items[i]) + 1;
        if (words->count == sizeof words->items / sizeof *words->items)
            return false;
        char *word = malloc(size);
        if (!word)
            return false;
        snprintf(word, size, "%s%s", option, list->items[i]);
        words->items[words->count++] = word;
    }
    return true;
}

struct target {
    const char *architecture; // "90a"
    const char *flag;         // "-cubin"
    const char *prefix;       // "-arch=sm_"
    const char *suffix;       // ".cubin"
    char arch[64];
    char path[PATH_SIZE];
    const char *depends; // where nvcc writes what it read; NULL: nowhere
};

static void prepare(const struct twin_build *twin, struct target *target, const struct words *words,
                    struct kc_job *job)
{
    const struct kc_build *build = twin->build;
    snprintf(target->arch, sizeof target->arch, "%s%s", target->prefix, target->architecture);
    snprintf(target->path, sizeof target->path, "%s/twin_%s%s", twin->folder, target->architecture,
             target->suffix);
    job->output_too = true;
    KC_ADD(job, twin->tools->nvcc, target->flag, target->arch);
    if (build->language.fast)
        kc_job_add(job, "--use_fast_math");
    for (size_t i = 0; i < build->twin.options.count; i++)
        kc_job_add(job, build->twin.options.items[i]);
    for (size_t i = 0; i < words->count; i++)
        kc_job_add(job, words->items[i]);
    if (target->depends)
        KC_ADD(job, "-MMD", "-MF", target->depends);
    KC_ADD(job, build->twin.source, "-o", target->path);
}

// A mistake is told once, and not for each architecture.
static bool run(const struct twin_build *twin, struct kc_job *jobs, size_t count)
{
    bool fine = true;
    kc_run(jobs, count);
    for (size_t i = 0; i < count && fine; i++) {
        fine = jobs[i].status == 0;
        if (i == 0 || !fine)
            add_report(twin->report, jobs[i].errors);
    }
    kc_jobs_finish(jobs, count);
    if (!fine)
        weir_long_text_add(twin->report, "error: %s does not compile as CUDA C++\n",
                           twin->build->twin.source);
    return fine;
}

static bool compile(const struct twin_build *twin, struct target *targets, size_t count)
{
    struct kc_job jobs[IMAGES_MOST] = {{0}};
    struct words words = {.count = 0};
    bool fine = add_words(&words, "-I", &twin->build->sources.folders) &&
                add_words(&words, "-D", &twin->build->sources.definitions);
    for (size_t i = 0; i < count; i++)
        prepare(twin, &targets[i], &words, &jobs[i]);
    if (!fine)
        kc_error(twin->report, "more than 64 folders and definitions for nvcc");
    fine = fine && run(twin, jobs, count);
    for (size_t i = 0; i < words.count; i++)
        free(words.items[i]);
    return fine;
}

// Comparing.

static const struct kc_entry *find_entry(const struct kc_entries *entries, const char *name)
{
    for (size_t i = 0; i < entries->count; i++)
        if (strcmp(entries->items[i].name, name) == 0)
            return &entries->items[i];
    return NULL;
}

static bool has_kernel(const struct kc_kernels *kernels, const char *name)
{
    for (size_t i = 0; i < kernels->count; i++)
        if (strcmp(kernels->items[i].name, name) == 0)
            return true;
    return false;
}

// A kernel that is no C function is "_Z6matmulPKf...".
static const char *find_mangled(const struct kc_entries *entries, const char *name)
{
    char start[512];
    snprintf(start, sizeof start, "_Z%zu%s", strlen(name), name);
    for (size_t i = 0; i < entries->count; i++)
        if (strncmp(entries->items[i].name, start, strlen(start)) == 0)
            return entries->items[i].name;
    return NULL;
}

static bool is_missing(const struct twin_build *twin, const char *file,
                       const struct kc_entries *entries, const char *name)
{
    const char *mangled = find_mangled(entries, name);
    if (mangled)
        weir_long_text_add(twin->report,
                           "error: kernel '%s' of %s has a name of C++ in %s, %s: declare it "
                           "extern \"C\" __global__ void\n",
                           name, twin->opencl, file, mangled);
    else
        weir_long_text_add(twin->report,
                           "error: kernel '%s' of %s is missing in %s: a twin has all kernels, so "
                           "write it there as extern \"C\" __global__ void, or put it into a "
                           "bundle of its own\n",
                           name, twin->opencl, file);
    return false;
}

static const char *remedy_for(const struct kc_parameter *parameter)
{
    const size_t length = strlen(parameter->type);
    if (parameter->kind == KC_BUFFER)
        return "it is a pointer in both";
    if (parameter->kind == KC_LOCAL)
        return "local memory is a size_t in CUDA C++, its offset in the dynamic shared memory "
               "(docs/kernels.md, weir_local)";
    if (length > 1 && parameter->type[length - 1] == '3')
        return "a vector of 3 takes as much as one of 4 in OpenCL C, so use that";
    return "give it types of one size";
}

static bool check_sizes(const struct twin_build *twin, const char *file,
                        const struct kc_kernel *kernel, const struct kc_entry *entry)
{
    bool fine = true;
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const struct kc_parameter *parameter = &kernel->parameters[i];
        const unsigned wanted =
            parameter->kind == KC_VALUE ? parameter->size : (unsigned)sizeof(uint64_t);
        if (entry->sizes[i] == wanted)
            continue;
        weir_long_text_add(twin->report,
                           "error: kernel '%s', parameter %zu, '%s': %s%s has %u bytes in %s, and "
                           "%u in %s: %s\n",
                           kernel->name, i + 1, parameter->name,
                           parameter->kind == KC_LOCAL ? "local " : "", parameter->type, wanted,
                           twin->opencl, entry->sizes[i], file, remedy_for(parameter));
        fine = false;
    }
    return fine;
}

static bool check_kernel(const struct twin_build *twin, const char *file,
                         const struct kc_kernel *kernel, const struct kc_entries *entries)
{
    const struct kc_entry *entry = find_entry(entries, kernel->name);
    if (!entry)
        return is_missing(twin, file, entries, kernel->name);
    if (entry->count == kernel->parameter_count)
        return check_sizes(twin, file, kernel, entry);
    weir_long_text_add(twin->report,
                       "error: kernel '%s' has %zu parameter%s in %s, and %zu in %s: give it the "
                       "same in both, in one order\n",
                       kernel->name, kernel->parameter_count,
                       kernel->parameter_count == 1 ? "" : "s", twin->opencl, entry->count, file);
    return false;
}

// A kernel that only the twin has could not be launched: it has no signature. Images may have such.
static bool check_more(const struct twin_build *twin, const char *file,
                       const struct kc_entries *entries)
{
    bool fine = true;
    for (size_t i = 0; i < entries->count && twin->build->twin.source; i++) {
        const char *name = entries->items[i].name;
        if (strncmp(name, "_Z", 2) == 0 || has_kernel(&twin->result->kernels, name))
            continue;
        weir_long_text_add(twin->report,
                           "error: kernel '%s' of %s is missing in %s, which every other device "
                           "runs: write it there too, or take it out\n",
                           name, file, twin->opencl);
        fine = false;
    }
    return fine;
}

static bool check(const struct twin_build *twin, const char *file, const struct kc_entries *entries)
{
    const struct kc_kernels *kernels = &twin->result->kernels;
    bool fine = true;
    for (size_t i = 0; i < kernels->count; i++)
        fine = check_kernel(twin, file, &kernels->items[i], entries) && fine;
    return check_more(twin, file, entries) && fine;
}

// Images.

static bool is_new(const struct twin_build *twin, const char *path, const struct kc_image *image)
{
    const struct kc_images *images = &twin->result->images;
    for (size_t i = 0; i < images->count; i++) {
        const struct kc_image *other = &images->items[i];
        if (strcmp(other->format, image->format) != 0 || strcmp(other->target, image->target) != 0)
            continue;
        weir_long_text_add(twin->report,
                           "error: %s is a second %s for %s: a bundle has one, so leave one out\n",
                           path, strcmp(image->format, "PTX") == 0 ? "PTX" : "cubin",
                           image->target);
        return false;
    }
    return true;
}

// `shown` is the file that people know it by.
static bool take_image(const struct twin_build *twin, const char *path, const char *shown)
{
    struct kc_images *images = &twin->result->images;
    struct kc_image *image = &images->items[images->count];
    struct kc_entries entries = {NULL, 0};
    char *data;
    if (images->count == IMAGES_MOST)
        return kc_error(twin->report, "more than 32 CUDA images in one bundle");
    *image = (struct kc_image){.format = NULL};
    if (!kc_read(path, &data, &image->size, twin->report))
        return false;
    image->data = data;
    const bool fine = kc_image_read(shown, data, image->size, image, &entries, twin->report) &&
                      check(twin, shown, &entries) && is_new(twin, shown, image);
    kc_entries_finish(&entries);
    if (fine)
        images->count++;
    else
        free(data);
    return fine;
}

static bool take_files(const struct twin_build *twin)
{
    const struct kc_list *files = &twin->build->twin.images;
    bool fine = true;
    for (size_t i = 0; i < files->count; i++) {
        fine = take_image(twin, files->items[i], files->items[i]) && fine;
        weir_long_text_add(&twin->result->twin, "%s%s", i > 0 ? ", " : "", files->items[i]);
    }
    return fine;
}

// "k.o : k.cu h.h".
static void read_depends(const struct twin_build *twin, const char *path)
{
    struct weir_long_text ignored = {0};
    char *rule;
    size_t size;
    const bool is_there = kc_read(path, &rule, &size, &ignored);
    free(ignored.text);
    if (!is_there)
        return;
    const char *colon = strstr(rule, " : ");
    size_t length = colon ? strlen(colon + 3) : 0;
    while (length > 0 && strchr(" \\\n", colon[2 + length]))
        length--;
    if (length > 0)
        weir_long_text_add(&twin->result->twin_includes, "%.*s", (int)length, colon + 3);
    free(rule);
}

static bool make_images(const struct twin_build *twin)
{
    const struct kc_build *build = twin->build;
    const size_t count = build->cubins.count + build->ptx.count;
    struct target targets[IMAGES_MOST];
    char depends[PATH_SIZE];
    if (count > IMAGES_MOST)
        return kc_error(twin->report, "more than 32 CUDA images in one bundle");
    for (size_t i = 0; i < build->cubins.count; i++)
        targets[i] = (struct target){.architecture = build->cubins.items[i],
                                     .flag = "-cubin",
                                     .prefix = "-arch=sm_",
                                     .suffix = ".cubin"};
    for (size_t i = 0; i < build->ptx.count; i++)
        targets[build->cubins.count + i] = (struct target){.architecture = build->ptx.items[i],
                                                           .flag = "-ptx",
                                                           .prefix = "-arch=compute_",
                                                           .suffix = ".ptx"};
    weir_long_text_add(&twin->result->twin, "%s", build->twin.source);
    snprintf(depends, sizeof depends, "%s/twin.d", twin->folder);
    if (count > 0)
        targets[0].depends = depends;
    bool fine = compile(twin, targets, count);
    if (fine && count > 0)
        read_depends(twin, depends);
    for (size_t i = 0; i < count && fine; i++)
        fine = take_image(twin, targets[i].path, build->twin.source);
    return fine;
}

// The one file that the kernels are in, if there is one.
static const char *name_opencl(const struct kc_list *sources)
{
    return sources->count == 1 ? sources->items[0] : "the OpenCL C";
}

// Also where nothing is compiled, a wrong name is told.
static bool check_source(const struct twin_build *twin)
{
    const char *source = twin->build->twin.source;
    const size_t length = strlen(source);
    char *text;
    size_t size;
    if (length < 4 || strcmp(source + length - 3, ".cu") != 0) {
        weir_long_text_add(twin->report, "error: %s: nvcc takes files whose names end in .cu\n",
                           source);
        return false;
    }
    if (!kc_read(source, &text, &size, twin->report))
        return false;
    free(text);
    return true;
}

bool kc_twin_images(const struct kc_build *build, const struct kc_tools *tools, const char *folder,
                    struct kc_result *result, struct weir_long_text *report)
{
    const struct twin_build twin = {.build = build,
                                    .tools = tools,
                                    .folder = folder,
                                    .result = result,
                                    .report = report,
                                    .opencl = name_opencl(&build->sources.files)};
    return build->twin.source ? check_source(&twin) && make_images(&twin) : take_files(&twin);
}
