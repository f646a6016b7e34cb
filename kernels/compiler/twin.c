// CUDA C++, or images that are there already, in place of the OpenCL C's own images. nvcc compiles one
// source for each architecture. Then every image, a cubin or PTX, is read, and the kernels of PTX are compared with
// the signatures: the launch passes what these say.
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

enum {
    PATH_SIZE = 1024
};

// Which kernels an image has, and which GPU it is for.

// A cubin is an ELF file. The GPU is in the flags of its header, whose layout changed with the version
// of the ABI (7, and 8 from CUDA 13 on); a letter ("sm_90a") stands in a note only, from 8 on. Its kernels are
// compared when a device loads it.

enum {
    MACHINE_CUDA = 190,
    ABI_7 = 7,
    ABI_8 = 8,
    FLAG_ACCELERATORS = 0x800 // of ABI 7: the letter 'a'
};

struct reader {
    const char *name; // of the image
    struct kc_kernels *kernels;
    struct weir_long_text *report;
    char *target; // of KC_TARGET_SIZE
};

#define NEITHER "is neither a cubin nor PTX: name a file that nvcc -cubin or nvcc -ptx has made"

static bool refuse(const struct reader *reader, const char *sentence)
{
    weir_long_text_add(reader->report, "error: %s %s\n", reader->name, sentence);
    return false;
}

// A kernel's parameters have their sizes, and nothing else.
static bool add_size(struct kc_kernel *kernel, unsigned size)
{
    struct weir_parameter *parameter = kc_parameter_add(kernel);
    if (parameter)
        parameter->size = size;
    return parameter != NULL;
}

// The letter of "-arch sm_90a" in the note about the tools.
static char letter_of(const char *at, const char *end, unsigned sm)
{
    char wanted[32];
    const size_t length = (size_t)snprintf(wanted, sizeof wanted, "-arch sm_%u", sm);
    while ((at = memmem(at, (size_t)(end - at), wanted, length))) {
        at += length;
        if (at < end && *at >= 'a' && *at <= 'z')
            return *at;
    }
    return '\0';
}

static bool read_cubin(const struct reader *reader, const char *data, size_t size)
{
    Elf64_Ehdr head = {.e_type = ET_NONE};
    memcpy(&head, data, size < sizeof head ? size : sizeof head);
    const unsigned abi = head.e_ident[EI_ABIVERSION];
    const unsigned sm = abi == ABI_7 ? head.e_flags & 0xff : head.e_flags >> 8 & 0xff;
    char letter[2] = "";
    if (size < sizeof head || head.e_ident[EI_CLASS] != ELFCLASS64)
        return refuse(reader, "is a damaged cubin: make it again");
    if (head.e_machine != MACHINE_CUDA)
        return refuse(reader, "is an ELF file, but not for an NVIDIA GPU: name a file that nvcc "
                              "-cubin has made");
    if ((abi != ABI_7 && abi != ABI_8) || sm == 0)
        return refuse(reader, "is a cubin of a form that is not known here, so its GPU cannot be "
                              "read: make it with CUDA 11, 12 or 13, or use PTX");
    if (head.e_type != ET_EXEC)
        return refuse(reader, "is a cubin that is not linked: make it with nvcc -cubin, without "
                              "-rdc=true");
    letter[0] = abi == ABI_8                       ? letter_of(data, data + size, sm)
                : head.e_flags & FLAG_ACCELERATORS ? 'a'
                                                   : '\0';
    snprintf(reader->target, KC_TARGET_SIZE, "sm_%u%s", sm, letter);
    return true;
}

// The head of each kernel in PTX: ".visible .entry NAME(", then parameters such as
// ".param .u64 .ptr .global .align 4 NAME_param_0" and ".param .align 8 .b8 NAME_param_1[16]".

#define SPACES " \t\r\n"

// One parameter, of so many bytes of text.
static bool read_parameter(const struct reader *reader, const char *text, size_t length,
                           struct kc_kernel *kernel)
{
    const char *end = text + length, *type = text, *bracket = memchr(text, '[', length);
    const unsigned long count = bracket ? strtoul(bracket + 1, NULL, 10) : 1;
    if (memmem(text, length, ".shared", strlen(".shared")))
        return refuse(reader, "has a kernel with a pointer to shared memory as a parameter, which "
                              "CUDA's driver does not load; build the OpenCL C that it comes from");
    while ((type = memchr(type, '.', (size_t)(end - type))) &&
           !(type[1] && strchr("busf", type[1]) && isdigit((unsigned char)type[2])))
        type++;
    return !type || // an empty list
           add_size(kernel, (unsigned)(strtoul(type + 2, NULL, 10) / 8 * count)) ||
           refuse(reader, "does not fit into memory");
}

static bool read_entry(const struct reader *reader, const char *text)
{
    const char *name = text + strspn(text, SPACES);
    const size_t length = strcspn(name, SPACES "({;");
    const char *open = name + length + strspn(name + length, SPACES);
    struct kc_kernel *kernel = kc_kernel_add(reader->kernels, name, length);
    if (!kernel)
        return refuse(reader, "does not fit into memory");
    for (const char *at = open; *at == (at == open ? '(' : ',');) {
        const size_t part = strcspn(at + 1, ",)");
        if (!read_parameter(reader, at + 1, part, kernel))
            return false;
        at += 1 + part;
    }
    return true;
}

// What follows the directive of that name at the start of a line; NULL: there is none.
static const char *find_directive(const char *text, const char *name)
{
    for (const char *line = text; line; line = kc_next_line(line)) {
        const char *at = line + strspn(line, SPACES);
        if (kc_starts_with(at, name) && strchr(SPACES, at[strlen(name)]))
            return at + strlen(name);
    }
    return NULL;
}

// "sm_90" and what follows it.
static bool read_target(const struct reader *reader, const char *text)
{
    const char *at = find_directive(text, ".target");
    if (!at)
        return refuse(reader, NEITHER);
    at += strspn(at, SPACES);
    if (!kc_starts_with(at, "sm_") || !isdigit((unsigned char)at[3]))
        return refuse(reader, "is PTX for something else than an sm_ architecture");
    snprintf(reader->target, KC_TARGET_SIZE, "%.*s", (int)strcspn(at, SPACES ","), at);
    return !kc_in_line(at, "texmode_independent") ||
           refuse(reader, "is PTX of an OpenCL compiler (texmode_independent), which CUDA's driver "
                          "does not load; build the OpenCL C that it comes from");
}

static bool read_ptx(const struct reader *reader, const char *text)
{
    static const char mark[] = ".entry";
    bool fine = read_target(reader, text);
    for (const char *at = text; fine && (at = strstr(at, mark));) {
        at += strlen(mark);
        fine = !isspace((unsigned char)*at) || read_entry(reader, at);
    }
    return fine;
}

bool kc_image_read(const char *name, const void *data, size_t size, const char **out_format,
                   char out_target[KC_TARGET_SIZE], struct kc_kernels *out_kernels,
                   struct weir_long_text *report)
{
    static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
    const struct reader reader = {name, out_kernels, report, out_target};
    const bool is_cubin = size > 4 && memcmp(data, "\177ELF", 4) == 0;
    *out_format = is_cubin ? WEIR_IMAGE_CUBIN : WEIR_IMAGE_PTX;
    if (is_cubin)
        return read_cubin(&reader, data, size);
    if (size > 4 && memcmp(data, fatbin, sizeof fatbin) == 0)
        return refuse(&reader, "is a fatbin: take the cubins out of it with cuobjdump "
                               "--extract-elf all");
    if (memchr(data, '\0', size))
        return refuse(&reader, NEITHER);
    return read_ptx(&reader, data);
}

char *kc_image_add(struct kc_images *images, const char *format, const void *data, size_t size)
{
    char *target = images->targets[images->count];
    images->items[images->count++] =
        (struct weir_image){sizeof(struct weir_image), format, target, data, size};
    return target;
}

// The twin.

struct twin_build {
    const struct kc_build *build;
    const struct kc_tools *tools;
    const char *folder;
    struct kc_result *result;
    struct weir_long_text *report;
    const char *opencl; // where the signatures come from, for messages
};

#define TOO_MANY "more than 32 CUDA images in one bundle"

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

static void add_list(struct kc_job *job, const char *option, const struct kc_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        kc_job_add(job, "%s%s", option, list->items[i]);
}

// One image: "90a", "-cubin", "-arch=sm_" and ".cubin".
static void prepare(const struct twin_build *twin, const char *architecture, bool cubin,
                    struct kc_job *job)
{
    const struct kc_build *build = twin->build;
    job->output_too = true;
    KC_ADD(job, twin->tools->nvcc, cubin ? "-cubin" : "-ptx");
    kc_job_add(job, "-arch=%s_%s", cubin ? "sm" : "compute", architecture);
    if (build->language.fast)
        kc_job_add(job, "--use_fast_math");
    add_list(job, "", &build->twin.options);
    add_list(job, "-I", &build->sources.folders);
    add_list(job, "-D", &build->sources.definitions);
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

// Comparing.

// A kernel that is no C function is "_Z6matmulPKf...".
static const char *find_mangled(const struct kc_kernels *image, const char *name)
{
    char start[512];
    snprintf(start, sizeof start, "_Z%zu%s", strlen(name), name);
    for (size_t i = 0; i < image->count; i++)
        if (strncmp(image->items[i].name, start, strlen(start)) == 0)
            return image->items[i].name;
    return NULL;
}

static bool is_missing(const struct twin_build *twin, const char *file,
                       const struct kc_kernels *image, const char *name)
{
    const char *mangled = find_mangled(image, name);
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

static const char *remedy_for(const struct weir_parameter *parameter)
{
    const size_t length = strlen(parameter->type_name);
    if (parameter->kind == WEIR_PARAMETER_BUFFER)
        return "it is a pointer in both";
    if (parameter->kind == WEIR_PARAMETER_LOCAL)
        return "local memory is a size_t in CUDA C++, its offset in the dynamic shared memory "
               "(docs/kernels.md, weir_local)";
    if (length > 1 && parameter->type_name[length - 1] == '3')
        return "a vector of 3 takes as much as one of 4 in OpenCL C, so use that";
    return "give it types of one size";
}

static bool check_sizes(const struct twin_build *twin, const char *file,
                        const struct kc_kernel *kernel, const struct kc_kernel *other)
{
    bool fine = true;
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const struct weir_parameter *parameter = &kernel->parameters[i];
        const unsigned wanted =
            parameter->kind == WEIR_PARAMETER_VALUE ? parameter->size : (unsigned)sizeof(uint64_t);
        if (other->parameters[i].size == wanted)
            continue;
        weir_long_text_add(twin->report,
                           "error: kernel '%s', parameter %zu, '%s': %s%s has %u bytes in %s, and "
                           "%u in %s: %s\n",
                           kernel->name, i + 1, parameter->name,
                           parameter->kind == WEIR_PARAMETER_LOCAL ? "local " : "",
                           parameter->type_name, wanted, twin->opencl, other->parameters[i].size,
                           file, remedy_for(parameter));
        fine = false;
    }
    return fine;
}

static bool check_kernel(const struct twin_build *twin, const char *file,
                         const struct kc_kernel *kernel, const struct kc_kernels *image)
{
    const struct kc_kernel *other = kc_kernels_find(image, kernel->name, strlen(kernel->name));
    if (!other)
        return is_missing(twin, file, image, kernel->name);
    if (other->parameter_count == kernel->parameter_count)
        return check_sizes(twin, file, kernel, other);
    weir_long_text_add(twin->report,
                       "error: kernel '%s' has %u parameter%s in %s, and %u in %s: give it the "
                       "same in both, in one order\n",
                       kernel->name, kernel->parameter_count,
                       kernel->parameter_count == 1 ? "" : "s", twin->opencl,
                       other->parameter_count, file);
    return false;
}

// A kernel that only the twin has could not be launched: it has no signature. Images may have such.
static bool check_more(const struct twin_build *twin, const char *file,
                       const struct kc_kernels *image)
{
    bool fine = true;
    for (size_t i = 0; i < image->count && twin->build->twin.source; i++) {
        const char *name = image->items[i].name;
        if (strncmp(name, "_Z", 2) == 0 ||
            kc_kernels_find(&twin->result->kernels, name, strlen(name)))
            continue;
        weir_long_text_add(twin->report,
                           "error: kernel '%s' of %s is missing in %s, which every other device "
                           "runs: write it there too, or take it out\n",
                           name, file, twin->opencl);
        fine = false;
    }
    return fine;
}

static bool check(const struct twin_build *twin, const char *file, const struct kc_kernels *image)
{
    const struct kc_kernels *kernels = &twin->result->kernels;
    bool fine = true;
    for (size_t i = 0; i < kernels->count; i++)
        fine = check_kernel(twin, file, &kernels->items[i], image) && fine;
    return check_more(twin, file, image) && fine;
}

// Images.

static bool is_new(const struct twin_build *twin, const char *path, const char *format,
                   const char *target)
{
    const struct kc_images *images = &twin->result->images;
    for (size_t i = 0; i < images->count; i++) {
        if (strcmp(images->items[i].format, format) != 0 ||
            strcmp(images->items[i].target, target) != 0)
            continue;
        weir_long_text_add(twin->report,
                           "error: %s is a second %s for %s: a bundle has one, so leave one out\n",
                           path, strcmp(format, WEIR_IMAGE_PTX) == 0 ? "PTX" : "cubin", target);
        return false;
    }
    return true;
}

// Reads an image, and compares its kernels if it is PTX. `shown` is the file that people know it by.
static bool take_image(const struct twin_build *twin, const char *path, const char *shown,
                       bool is_wanted)
{
    struct kc_images *images = &twin->result->images;
    struct kc_kernels kernels = {NULL, 0};
    const char *format;
    char target[KC_TARGET_SIZE], *data;
    size_t size;
    if (images->count > KC_IMAGES_MOST) // the OpenCL C is one of them
        return kc_error(twin->report, TOO_MANY);
    if (!kc_read(path, &data, &size, twin->report))
        return false;
    const bool fine = kc_image_read(shown, data, size, &format, target, &kernels, twin->report) &&
                      (strcmp(format, WEIR_IMAGE_CUBIN) == 0 || check(twin, shown, &kernels)) &&
                      (!is_wanted || is_new(twin, shown, format, target));
    kc_kernels_finish(&kernels);
    if (fine && is_wanted)
        snprintf(kc_image_add(images, format, data, size), sizeof target, "%s", target);
    else
        free(data);
    return fine;
}

static bool take_files(const struct twin_build *twin)
{
    const struct kc_list *files = &twin->build->twin.images;
    bool fine = true;
    for (size_t i = 0; i < files->count; i++) {
        fine = take_image(twin, files->items[i], files->items[i], true) && fine;
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

// Cubins alone come with PTX too, for its kernels.
static bool make_images(const struct twin_build *twin)
{
    const struct kc_build *build = twin->build;
    const size_t cubins = build->cubins.count, wanted = cubins + build->ptx.count;
    const size_t count = wanted + (wanted > 0 && build->ptx.count == 0);
    struct kc_job jobs[KC_IMAGES_MOST + 1] = {{0}};
    char paths[KC_IMAGES_MOST + 1][PATH_SIZE], depends[PATH_SIZE];
    if (wanted > KC_IMAGES_MOST)
        return kc_error(twin->report, TOO_MANY);
    snprintf(depends, sizeof depends, "%s/twin.d", twin->folder);
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], PATH_SIZE, "%s/twin_%zu.%s", twin->folder, i,
                 i < cubins ? "cubin" : "ptx");
        prepare(twin,
                i < cubins        ? build->cubins.items[i]
                : count == wanted ? build->ptx.items[i - cubins]
                                  : build->cubins.items[0],
                i < cubins, &jobs[i]);
        if (i == 0)
            KC_ADD(&jobs[i], "-MMD", "-MF", depends);
        KC_ADD(&jobs[i], build->twin.source, "-o", paths[i]);
    }
    weir_long_text_add(&twin->result->twin, "%s", build->twin.source);
    bool fine = run(twin, jobs, count);
    if (fine && count > 0)
        read_depends(twin, depends);
    for (size_t i = 0; i < count && fine; i++)
        fine = take_image(twin, paths[i], build->twin.source, i < wanted);
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
