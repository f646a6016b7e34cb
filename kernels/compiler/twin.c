// CUDA C++, or images that are there already, in place of the OpenCL C's own images. nvcc compiles one
// source for each architecture. Then every image, a cubin or PTX, is read, and its kernels are compared with
// the signatures: the launch passes what these say.
#include <ctype.h>
#include <elf.h>

#include "kernels/compiler/compiler.h"

// Which kernels an image has, and which GPU it is for.

// A cubin is an ELF file. The GPU is in the flags of its header, whose layout changed with the version
// of the ABI (7, and 8 from CUDA 13 on); a letter ("sm_90a") stands in a note only, from 8 on. A
// kernel is a symbol with the mark ENTRY, and section ".nv.info.NAME" has its parameters, as
// records of NVIDIA's: format, attribute, and with format 4 the size of what follows.

enum {
    MACHINE_CUDA = 190,
    ABI_7 = 7,
    ABI_8 = 8,
    FLAG_ACCELERATORS = 0x800, // of ABI 7: the letter 'a'
    SYMBOL_ENTRY = 0x10,       // of a symbol's st_other
    FORMAT_SIZED = 4,
    ATTRIBUTE_PARAMETER = 0x17,
    PARAMETER_BYTES = 12,
    PARAMETERS_MOST = 4096
};

struct reader {
    const char *name; // of the image
    struct kc_kernels *kernels;
    struct weir_long_text *report;
    char *target; // of KC_TARGET_SIZE
};

struct cubin {
    const struct reader *reader;
    const unsigned char *data;
    size_t size;
    Elf64_Ehdr head;
    Elf64_Shdr names; // the section with the sections' names
};

#define NEITHER "is neither a cubin nor PTX: name a file that nvcc -cubin or nvcc -ptx has made"

static bool refuse(const struct reader *reader, const char *sentence)
{
    return kc_error(reader->report, "%s %s", reader->name, sentence);
}

// A kernel's parameters have their sizes, and nothing else.
static bool add_size(struct kc_kernel *kernel, unsigned size)
{
    struct weir_parameter *parameter = kc_parameter_add(kernel);
    if (parameter)
        parameter->size = size;
    return parameter != NULL;
}

// Copies `count` bytes from there; false: they are not in the file.
static bool get(const struct cubin *cubin, uint64_t at, void *out, size_t count)
{
    if (at > cubin->size || count > cubin->size - at)
        return false;
    memcpy(out, cubin->data + at, count);
    return true;
}

static bool get_section(const struct cubin *cubin, unsigned index, Elf64_Shdr *out)
{
    return get(cubin, cubin->head.e_shoff + (uint64_t)index * sizeof *out, out, sizeof *out) &&
           (out->sh_type == SHT_NOBITS ||
            (out->sh_offset <= cubin->size && out->sh_size <= cubin->size - out->sh_offset));
}

// A text of a section of texts; "" if there is none.
static const char *text_at(const struct cubin *cubin, const Elf64_Shdr *texts, uint32_t at)
{
    const char *start = (const char *)cubin->data + texts->sh_offset;
    if (texts->sh_type == SHT_NOBITS || at >= texts->sh_size ||
        !memchr(start + at, '\0', texts->sh_size - at))
        return "";
    return start + at;
}

// The first section of that name; false: there is none.
static bool find_section(const struct cubin *cubin, const char *name, Elf64_Shdr *out)
{
    for (unsigned i = 0; i < cubin->head.e_shnum; i++)
        if (get_section(cubin, i, out) &&
            strcmp(text_at(cubin, &cubin->names, out->sh_name), name) == 0)
            return out->sh_type != SHT_NOBITS;
    return false;
}

// The letter of "-arch sm_90a" in the note about the tools.
static char letter_of(const struct cubin *cubin, unsigned sm)
{
    Elf64_Shdr note;
    char wanted[32];
    const size_t length = (size_t)snprintf(wanted, sizeof wanted, "-arch sm_%u", sm);
    if (!find_section(cubin, ".note.nv.tkinfo", &note))
        return '\0';
    const unsigned char *at = cubin->data + note.sh_offset;
    for (uint64_t i = 0; i + length < note.sh_size; i++)
        if (memcmp(at + i, wanted, length) == 0 && at[i + length] >= 'a' && at[i + length] <= 'z')
            return (char)at[i + length];
    return '\0';
}

static bool read_cubin_target(const struct cubin *cubin)
{
    const Elf64_Ehdr *head = &cubin->head;
    const unsigned abi = head->e_ident[EI_ABIVERSION];
    const unsigned sm = abi == ABI_7 ? head->e_flags & 0xff : head->e_flags >> 8 & 0xff;
    char letter[2] = "";
    if (head->e_machine != MACHINE_CUDA)
        return refuse(cubin->reader,
                      "is an ELF file, but not for an NVIDIA GPU: name a file that nvcc "
                      "-cubin has made");
    if ((abi != ABI_7 && abi != ABI_8) || sm == 0)
        return refuse(cubin->reader,
                      "is a cubin of a form that is not known here, so its GPU cannot be "
                      "read: make it with CUDA 11, 12 or 13, or use PTX");
    if (head->e_type != ET_EXEC)
        return refuse(cubin->reader,
                      "is a cubin that is not linked: make it with nvcc -cubin, without "
                      "-rdc=true");
    letter[0] = abi == ABI_8                        ? letter_of(cubin, sm)
                : head->e_flags & FLAG_ACCELERATORS ? 'a'
                                                    : '\0';
    snprintf(cubin->reader->target, KC_TARGET_SIZE, "sm_%u%s", sm, letter);
    return true;
}

// The parameters are in any order.
static bool read_parameters(const struct cubin *cubin, const Elf64_Shdr *info,
                            struct kc_kernel *kernel)
{
    unsigned sizes[PARAMETERS_MOST] = {0};
    size_t count = 0;
    for (uint64_t at = 0; at + 4 <= info->sh_size;) {
        const unsigned char *record = cubin->data + info->sh_offset + at;
        const uint64_t size = record[0] == FORMAT_SIZED ? record[2] | record[3] << 8u : 0;
        if (size > info->sh_size - at - 4)
            return false;
        if (record[0] == FORMAT_SIZED && record[1] == ATTRIBUTE_PARAMETER) {
            if (size < PARAMETER_BYTES)
                return false;
            const unsigned number = record[8] | (unsigned)record[9] << 8;
            uint32_t packed;
            if (number >= PARAMETERS_MOST)
                return false;
            memcpy(&packed, record + 12, sizeof packed);
            sizes[number] = packed >> 18;
            count = number >= count ? number + 1 : count;
        }
        at += 4 + size;
    }
    for (size_t i = 0; i < count; i++)
        if (!add_size(kernel, sizes[i]))
            return false;
    return true;
}

static bool read_kernels(const struct cubin *cubin)
{
    Elf64_Shdr symbols, names, info;
    Elf64_Sym symbol;
    char section[1024];
    if (!find_section(cubin, ".symtab", &symbols) || !get_section(cubin, symbols.sh_link, &names))
        return false;
    for (uint64_t at = 0; at + sizeof symbol <= symbols.sh_size; at += sizeof symbol) {
        if (!get(cubin, symbols.sh_offset + at, &symbol, sizeof symbol))
            return false;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & SYMBOL_ENTRY))
            continue;
        const char *name = text_at(cubin, &names, symbol.st_name);
        struct kc_kernel *kernel = kc_kernel_add(cubin->reader->kernels, name, strlen(name));
        snprintf(section, sizeof section, ".nv.info.%s", name);
        if (!kernel ||
            (find_section(cubin, section, &info) && !read_parameters(cubin, &info, kernel)))
            return false;
    }
    return true;
}

static bool read_cubin(const struct reader *reader, const void *data, size_t size)
{
    struct cubin cubin = {.reader = reader, .data = data, .size = size};
    bool whole = get(&cubin, 0, &cubin.head, sizeof cubin.head) &&
                 cubin.head.e_ident[EI_CLASS] == ELFCLASS64;
    for (unsigned i = 0; whole && i < cubin.head.e_shnum; i++)
        whole = get_section(&cubin, i, &cubin.names);
    whole = whole && get_section(&cubin, cubin.head.e_shstrndx, &cubin.names);
    if (whole && !read_cubin_target(&cubin))
        return false;
    return (whole && read_kernels(&cubin)) || refuse(reader, "is a damaged cubin: make it again");
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

// The first line that begins with ".target sm_90".
static bool read_target(const struct reader *reader, const char *text)
{
    static const char directive[] = ".target";
    const char *at = NULL;
    for (const char *line = text; line && !at; line = kc_next_line(line)) {
        const char *start = line + strspn(line, SPACES);
        if (kc_starts_with(start, directive) && strchr(SPACES, start[strlen(directive)]))
            at = start + strlen(directive);
    }
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

// Where the signatures come from, for messages.
static const char *opencl_of(const struct kc_context *context)
{
    const struct weir_words *files = &context->build->sources.files;
    return files->count == 1 ? files->items[0] : "the OpenCL C";
}

// nvcc.

// nvcc says "k.cu(3): error: ...", and editors look for "k.cu:3: error: ...".
static void add_report(struct weir_long_text *report, const char *errors)
{
    for (const char *line = errors; line && *line; line = kc_next_line(line)) {
        const char *end = line + kc_line_length(line), *open = kc_in_line(line, "(");
        const size_t digits = open ? strspn(open + 1, "0123456789") : 0;
        if (digits > 0 && strncmp(open + 1 + digits, "): ", 3) == 0)
            weir_long_text_add(report, "%.*s:%.*s%.*s\n", (int)(open - line), line, (int)digits,
                               open + 1, (int)(end - open - 2 - (long)digits), open + 2 + digits);
        else
            weir_long_text_add(report, "%.*s\n", (int)(end - line), line);
    }
}

static void add_list(struct kc_job *job, const char *option, const struct weir_words *list)
{
    for (size_t i = 0; i < list->count; i++)
        kc_job_add(job, "%s%s", option, list->items[i]);
}

// One image: "90a", "-cubin", "-arch=sm_" and ".cubin".
static void prepare(const struct kc_context *context, const char *architecture, bool cubin,
                    struct kc_job *job)
{
    const struct kc_build *build = context->build;
    job->output_too = true;
    KC_ADD(job, context->build->tools.nvcc, cubin ? "-cubin" : "-ptx");
    kc_job_add(job, "-arch=%s_%s", cubin ? "sm" : "compute", architecture);
    if (build->language.fast)
        kc_job_add(job, "--use_fast_math");
    add_list(job, "", &build->twin.options);
    add_list(job, "-I", &build->sources.folders);
    add_list(job, "-D", &build->sources.definitions);
}

// A mistake is told once, and not for each architecture.
static bool run(const struct kc_context *context, struct kc_job *jobs, size_t count)
{
    bool fine = true;
    kc_run(jobs, count);
    for (size_t i = 0; i < count && fine; i++) {
        fine = jobs[i].status == 0;
        if (i == 0 || !fine)
            add_report(context->report, jobs[i].errors);
    }
    kc_jobs_finish(jobs, count);
    return fine || kc_error(context->report, "%s does not compile as CUDA C++",
                            context->build->twin.source);
}

// Comparing.

// A kernel that is no C function is "_Z6matmulPKf...".
static bool is_missing(const struct kc_context *context, const char *file,
                       const struct kc_kernels *image, const char *name)
{
    const char *mangled = NULL;
    char start[512];
    snprintf(start, sizeof start, "_Z%zu%s", strlen(name), name);
    for (size_t i = 0; i < image->count && !mangled; i++)
        if (kc_starts_with(image->items[i].name, start))
            mangled = image->items[i].name;
    if (mangled)
        return kc_error(context->report,
                        "kernel '%s' of %s has a name of C++ in %s, %s: declare it extern \"C\" "
                        "__global__ void",
                        name, opencl_of(context), file, mangled);
    return kc_error(context->report,
                    "kernel '%s' of %s is missing in %s: a twin has all kernels, so write it there "
                    "as extern \"C\" __global__ void, or put it into a bundle of its own",
                    name, opencl_of(context), file);
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

static bool check_sizes(const struct kc_context *context, const char *file,
                        const struct kc_kernel *kernel, const struct kc_kernel *other)
{
    bool fine = true;
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const struct weir_parameter *parameter = &kernel->parameters[i];
        const unsigned wanted =
            parameter->kind == WEIR_PARAMETER_VALUE ? parameter->size : (unsigned)sizeof(uint64_t);
        if (other->parameters[i].size == wanted)
            continue;
        fine = kc_error(context->report,
                        "kernel '%s', parameter %zu, '%s': %s%s has %u bytes in %s, and %u in %s: "
                        "%s",
                        kernel->name, i + 1, parameter->name,
                        parameter->kind == WEIR_PARAMETER_LOCAL ? "local " : "",
                        parameter->type_name, wanted, opencl_of(context), other->parameters[i].size,
                        file, remedy_for(parameter));
    }
    return fine;
}

static bool check_kernel(const struct kc_context *context, const char *file,
                         const struct kc_kernel *kernel, const struct kc_kernels *image)
{
    const struct kc_kernel *other = kc_kernels_find(image, kernel->name, strlen(kernel->name));
    if (!other)
        return is_missing(context, file, image, kernel->name);
    if (other->parameter_count == kernel->parameter_count)
        return check_sizes(context, file, kernel, other);
    return kc_error(context->report,
                    "kernel '%s' has %u parameter%s in %s, and %u in %s: give it the same in both, "
                    "in one order",
                    kernel->name, kernel->parameter_count, kernel->parameter_count == 1 ? "" : "s",
                    opencl_of(context), other->parameter_count, file);
}

// A kernel that only the twin has could not be launched: it has no signature. Images may have such.
static bool check(const struct kc_context *context, const char *file,
                  const struct kc_kernels *image)
{
    const struct kc_kernels *kernels = &context->result->kernels;
    bool fine = true;
    for (size_t i = 0; i < kernels->count; i++)
        fine = check_kernel(context, file, &kernels->items[i], image) && fine;
    for (size_t i = 0; i < image->count && context->build->twin.source; i++) {
        const char *name = image->items[i].name;
        if (!kc_starts_with(name, "_Z") && !kc_kernels_find(kernels, name, strlen(name)))
            fine = kc_error(context->report,
                            "kernel '%s' of %s is missing in %s, which every other device runs: "
                            "write it there too, or take it out",
                            name, file, opencl_of(context));
    }
    return fine;
}

// Images.

static bool is_new(const struct kc_context *context, const char *path, const char *format,
                   const char *target)
{
    const struct kc_images *images = &context->result->images;
    for (size_t i = 0; i < images->count; i++) {
        if (strcmp(images->items[i].format, format) != 0 ||
            strcmp(images->items[i].target, target) != 0)
            continue;
        return kc_error(context->report,
                        "%s is a second %s for %s: a bundle has one, so leave one out", path,
                        strcmp(format, WEIR_IMAGE_PTX) == 0 ? "PTX" : "cubin", target);
    }
    return true;
}

// `shown` is the file that people know it by.
static bool take_image(const struct kc_context *context, const char *path, const char *shown)
{
    struct kc_images *images = &context->result->images;
    struct kc_kernels kernels = {NULL, 0};
    const char *format;
    char target[KC_TARGET_SIZE], *data;
    size_t size;
    if (images->count > KC_IMAGES_MOST) // the OpenCL C is one of them
        return kc_error(context->report, KC_TOO_MANY);
    if (!kc_read(path, &data, &size, context->report))
        return false;
    const bool fine =
        kc_image_read(shown, data, size, &format, target, &kernels, context->report) &&
        check(context, shown, &kernels) && is_new(context, shown, format, target);
    kc_kernels_finish(&kernels);
    if (fine)
        snprintf(kc_image_add(images, format, data, size), sizeof target, "%s", target);
    else
        free(data);
    return fine;
}

static bool make_images(const struct kc_context *context)
{
    const struct kc_build *build = context->build;
    const size_t cubins = build->cubins.count, count = cubins + build->ptx.count;
    struct kc_job jobs[KC_IMAGES_MOST] = {{0}};
    char paths[KC_IMAGES_MOST][KC_PATH_SIZE], depends[KC_PATH_SIZE];
    snprintf(depends, sizeof depends, "%s/twin.d", context->folder);
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], KC_PATH_SIZE, "%s/twin_%zu.%s", context->folder, i,
                 i < cubins ? "cubin" : "ptx");
        prepare(context, i < cubins ? build->cubins.items[i] : build->ptx.items[i - cubins],
                i < cubins, &jobs[i]);
        if (i == 0)
            KC_ADD(&jobs[i], "-MMD", "-MF", depends);
        KC_ADD(&jobs[i], build->twin.source, "-o", paths[i]);
    }
    weir_long_text_add(&context->result->twin, "%s", build->twin.source);
    bool fine = run(context, jobs, count);
    if (fine && count > 0)
        kc_add_depends(depends, &context->result->depends);
    for (size_t i = 0; i < count && fine; i++)
        fine = take_image(context, paths[i], build->twin.source);
    return fine;
}

// Also where nothing is compiled, a wrong name is told.
static bool check_source(const struct kc_context *context)
{
    const char *source = context->build->twin.source;
    const size_t length = strlen(source);
    char *text;
    size_t size;
    if (length < 4 || strcmp(source + length - 3, ".cu") != 0)
        return kc_error(context->report, "%s: nvcc takes files whose names end in .cu", source);
    if (!kc_read(source, &text, &size, context->report))
        return false;
    free(text);
    return true;
}

bool kc_twin_images(const struct kc_context *context)
{
    const struct weir_words *images = &context->build->twin.images;
    bool fine = true;
    if (context->build->twin.source)
        return check_source(context) && make_images(context);
    for (size_t i = 0; i < images->count; i++) {
        fine = take_image(context, images->items[i], images->items[i]) && fine;
        weir_long_text_add(&context->result->twin, "%s%s", i > 0 ? ", " : "", images->items[i]);
    }
    return fine;
}
