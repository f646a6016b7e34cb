// PTX and cubins of the module that clang makes of OpenCL C: libclc and libdevice are linked in, it is
// optimised once, and then there is code for each architecture.
//
// The module is changed between the two as text:
//   - clang 20 and later put a kernel's code into a function beside it, `__clang_ocl_kern_imp_`,
//     and never inline that: here it is. Functions that are no kernels become internal; so do those that
//     are declared `inline`, which clang else takes to be defined elsewhere too.
//   - The architecture of the first step is taken away.
//   - What a `restrict` pointer points to is taken to change at barriers.
//   - The block that a kernel requires, which clang does not pass on, is added.
//   - Memory of the address space `constant` becomes global memory: that of CUDA has 64 KiB and no
//     pointers from the host, and caches for data that is only read are as good: loads
//     from it are marked as invariant, so that they become ld.global.nc.
//   - The code of a kernel with images is there for RGBA of float, and for other formats.
//   - printf becomes the driver's vprintf: LLVM puts its arguments into memory as that wants them, and
//     kernels/ptx replaces it.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "kernels/compiler/compiler.h"
#include "kernels/ptx/ptx.h"

#define TARGET "nvptx64-unknown-nvidiacl"
#define INLINED "#999999"
#define LOWEST "sm_75" // of the steps before code is made
// Of the steps before code is made. clang would take the version of PTX from the CUDA toolkit that
// it finds, and the oldest without one; so it is told, and finds none.
#define MARCH_LOWEST "-march=sm_75", NO_TOOLKIT, "+ptx63"
#define NO_TOOLKIT "--cuda-path=/nonexistent", "-Xclang", "-target-feature", "-Xclang"

enum {
    IR_LIMIT = 256 << 20,
    ARCHITECTURES_MOST = 16,
    PATH_SIZE = 1024
};

struct cuda_build {
    struct kc_context *context;
    const struct kc_tools *tools;
    const struct kc_language *language;
    struct kc_kernels *kernels;
    unsigned library; // what they need of kernels/library
    const char *folder;
    struct weir_long_text *report;
    const char *architectures[ARCHITECTURES_MOST]; // that images are wanted for: "90"
    unsigned targets[ARCHITECTURES_MOST]; // theirs, or the newest up to it that clang knows
    size_t count;
    bool images; // a kernel has images
    bool huge;   // a block of the kernels has more instructions than HUGE_BLOCK
};

static bool refuse(const struct cuda_build *build, const char *sentence)
{
    weir_long_text_add(build->report, "error: %s\n", sentence);
    return false;
}

static bool read_file(const struct cuda_build *build, const char *path, char **out_text,
                      size_t *out_size)
{
    char message[512];
    void *data;
    if (!weir_file_read(path, IR_LIMIT, &data, out_size, message, sizeof message))
        return refuse(build, message);
    *out_text = data;
    return true;
}

static bool write_file(const struct cuda_build *build, const char *path, const char *text)
{
    char message[512];
    return weir_file_write(path, text, strlen(text), message, sizeof message) ||
           refuse(build, message);
}

// The lines of a report but those of linking modules of two layouts, which are the same for what
// libclc uses.
static void add_report(const struct cuda_build *build, const char *errors)
{
    for (const char *line = errors; line && *line;) {
        const char *newline = strchr(line, '\n');
        const size_t length = newline ? (size_t)(newline + 1 - line) : strlen(line);
        if (strncmp(line, "warning: Linking two modules", 28) != 0)
            weir_long_text_add(build->report, "%.*s", (int)length, line);
        line += length;
    }
}

// Reports what the jobs that failed say. False: one did.
static bool judge(const struct cuda_build *build, struct kc_job *jobs, size_t count,
                  const char *what)
{
    bool fine = true;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].status != 0)
            add_report(build, jobs[i].errors);
        fine = fine && jobs[i].status == 0;
    }
    kc_jobs_finish(jobs, count);
    return fine || refuse(build, what);
}

static bool run(const struct cuda_build *build, struct kc_job *jobs, size_t count, const char *what)
{
    kc_run(jobs, count);
    return judge(build, jobs, count, what);
}

static void add_all(struct kc_job *job, const char *const *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kc_job_add(job, arguments[i]);
}

#define ADD(job, ...)                                      \
    do {                                                   \
        const char *const list_[] = {__VA_ARGS__};         \
        add_all(job, list_, sizeof list_ / sizeof *list_); \
    } while (0)

#define FLUSHED "-fdenormal-fp-math-f32=preserve-sign"
#define NO_CRASH_FILES "-fno-crash-diagnostics"

// What kernels/images has.
#define IMAGES                                                                       \
    ",+__opencl_c_images,+__opencl_c_3d_image_writes,+__opencl_c_read_write_images," \
    "+cl_khr_3d_image_writes"

void kc_job_add_language(struct kc_job *job, const struct kc_tools *tools,
                         const struct kc_language *language)
{
    snprintf(job->standard, sizeof job->standard, "-cl-std=%s", language->standard);
    ADD(job, tools->clang, "-x", "cl", job->standard, NO_CRASH_FILES, "-Xclang",
        KC_EXTENSIONS IMAGES, KC_DEVICE_VERSION, "-D__IMAGE_SUPPORT__=1");
    if (language->fast)
        kc_job_add(job, KC_FAST);
}

static void add_math(struct kc_job *job, const struct kc_language *language)
{
    // Functions of kernels/library too are the fast ones with __FAST_RELAXED_MATH__, which KC_FAST defines.
    if (language->fast)
        ADD(job, KC_FAST, "-ffp-contract=fast", "-Xclang", FLUSHED);
    else
        ADD(job, "-cl-fp32-correctly-rounded-divide-sqrt", "-ffp-contract=on");
}

void kc_job_add_cuda(struct kc_job *job, const struct kc_language *language)
{
    ADD(job, "-target", TARGET, MARCH_LOWEST, KC_IS_COMPILER, "-Xclang", "-fgnu-keywords");
    add_math(job, language);
}

// What kernels/library is compiled with: pointers of each address space, and, but for files where clang may
// declare what it comes to, its header, which declares every function before the first definition.
#define WITHOUT_GENERIC KC_EXTENSIONS ",-__opencl_c_generic_address_space"

static void add_subject(const struct cuda_build *build, struct kc_job *job,
                        const struct kc_subject *subject, const char *source, const char *out)
{
    ADD(job, build->tools->clang, "-x", "cl", NO_CRASH_FILES, KC_DEVICE_VERSION, "-O3", "-w",
        "-Xclang", "-disable-llvm-passes");
    kc_job_add_cuda(job, build->language);
    if (!subject->lazy)
        ADD(job, "-cl-no-stdinc", "-Xclang", "-finclude-default-header");
    ADD(job, "-cl-std=CL3.0", "-Xclang", subject->generic ? KC_EXTENSIONS : WITHOUT_GENERIC,
        "-emit-llvm", "-c", source, "-o", out);
}

// The needed files of kernels/library, as LLVM's bitcode.
struct library {
    char modules[KC_SUBJECTS][PATH_SIZE];
    size_t count;
};

static bool compile_library(const struct cuda_build *build, struct library *out)
{
    struct kc_subject subjects[KC_SUBJECTS];
    struct kc_job jobs[KC_SUBJECTS] = {{0}};
    char sources[KC_SUBJECTS][PATH_SIZE];
    out->count = kc_library(build->library, subjects);
    for (size_t i = 0; i < out->count; i++) {
        snprintf(sources[i], PATH_SIZE, "%s/%s.cl", build->folder, subjects[i].name);
        snprintf(out->modules[i], PATH_SIZE, "%s/%s.bc", build->folder, subjects[i].name);
        if (!write_file(build, sources[i], subjects[i].text))
            return false;
        add_subject(build, &jobs[i], &subjects[i], sources[i], out->modules[i]);
    }
    return run(build, jobs, out->count, "this clang does not take Weir's functions for CUDA");
}

// Ours come first: they call libclc's, and take the place of some.
static bool link_libraries(const struct cuda_build *build, const char *in, const char *out)
{
    struct kc_job job = {0};
    struct library library;
    if (!compile_library(build, &library))
        return false;
    ADD(&job, build->tools->clang, "-target", TARGET, "-x", "ir", "-O3", "-w", NO_CRASH_FILES,
        MARCH_LOWEST, "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", in, "-o", out);
    for (size_t i = 0; i < library.count; i++)
        ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", library.modules[i]);
    // LLVM inlines no function into one that treats denormals in another way: clang gives libraries this one.
    if (build->language->fast)
        ADD(&job, "-Xclang", FLUSHED);
    ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", build->tools->libclc);
    if (build->tools->libdevice[0] != '\0')
        ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", build->tools->libdevice);
    return run(build, &job, 1, "this is OpenCL C, but does not compile for CUDA");
}

// Changing the module.

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

// How many bytes to leave out at `at`, and what to put there.
static size_t change(const char *at, const char **out_instead)
{
    static const char constant[] = "addrspace(4)";
    static const char print[] = "@printf(";
    *out_instead = "";
    if (starts_with(at, print)) {
        *out_instead = "@vprintf(";
        return sizeof print - 1;
    }
    if (starts_with(at, constant)) {
        *out_instead = "addrspace(1)";
        return sizeof constant - 1;
    }
    if (starts_with(at, "\"target-cpu\"=\"") || starts_with(at, "\"target-features\"=\"")) {
        const char *value = strchr(at, '=') + 2;
        const char *end = strchr(value, '"');
        return end ? (size_t)(end + 1 - at) : 0;
    }
    return 0;
}

// A name in quotes, @"gr\C3\B6\C3\9Fe": PTX has the letters of ASCII only. Returns what follows.
static const char *add_ascii(const char *at, const char *end, struct weir_long_text *out)
{
    const char *stop = memchr(at + 2, '"', (size_t)(end - at - 2));
    weir_long_text_add(out, "@weir_utf8_");
    for (at += 2; at < end && at < stop; at++)
        weir_long_text_add(out, "%c", weir_text_is_word(*at) ? *at : '_');
    return stop ? stop + 1 : end;
}

static void change_part(const char *line, const char *end, struct weir_long_text *out)
{
    const char *kept = line;
    for (const char *at = line; at < end;) {
        const char *instead;
        if (*at == '@' && at + 2 < end && at[1] == '"') {
            weir_long_text_add(out, "%.*s", (int)(at - kept), kept);
            kept = at = add_ascii(at, end, out);
            continue;
        }
        const size_t length = *at == 'a' || *at == '"' || *at == '@' ? change(at, &instead) : 0;
        if (length == 0) { // what a program's own string says is left alone
            at = *at == '"' ? kc_string_end(at) : at + 1;
            continue;
        }
        weir_long_text_add(out, "%.*s%s", (int)(at - kept), kept, instead);
        kept = at += length;
    }
    weir_long_text_add(out, "%.*s", (int)(end - kept), kept);
}

// Formats of <weir/image.h>, and what says that one is none of these. The first one is any with pixels of 16 bytes.
#define RGBA_32 0x10de10b5u
#define RGBA_HALF 0x10dd10b5u
#define RGBA_UNORM8 0x10d210b5u
#define ANY_FORMAT 0x80000000u // WEIR__ANY of images.cl

// The first number of nodes that the module does not have.
#define FIRST_NODE 1000000u
#define NO_FIELDS "!999998"

// Whether the line loads from __constant memory.
static bool loads_constant(const char *line)
{
    const char *load = line + strspn(line, " ");
    load += strcspn(load, " \n");
    if (!starts_with(load, " = load ") || starts_with(load, " = load volatile"))
        return false;
    const char *from = kc_in_line(load, ", ptr");
    return from && starts_with(from, ", ptr addrspace(4) ");
}

static void change_line(const char *line, const char *end, struct weir_long_text *out)
{
    change_part(line, end, out);
    weir_long_text_add(out, "%s\n", loads_constant(line) ? ", !invariant.load " NO_FIELDS : "");
}

static const struct kc_kernel *kernel_of(const struct kc_kernels *kernels, const char *line)
{
    const char *name = kc_in_line(line, KC_KERNEL_CODE);
    name = name ? name + strlen(KC_KERNEL_CODE) : kc_in_line(line, "ptx_kernel void @");
    name += name && starts_with(name, "ptx_kernel ") ? strlen("ptx_kernel void @") : 0;
    for (size_t i = 0; name && i < kernels->count; i++) {
        const size_t length = strlen(kernels->items[i].name);
        if (strncmp(name, kernels->items[i].name, length) == 0 && name[length] == '(')
            return &kernels->items[i];
    }
    return NULL;
}

static bool any_waits(const struct kc_kernels *kernels)
{
    bool any = false;
    for (size_t i = 0; i < kernels->count; i++)
        any = any || kernels->items[i].waits;
    return any;
}

// LLVM takes it that a barrier leaves alone what a `noalias` pointer points to, although other work-items write that:
// such a pointer is to global memory, and in a kernel that waits for others it is const.
static bool may_be_noalias(const struct kc_kernels *kernels, const struct kc_kernel *kernel,
                           size_t index)
{
    if (!kernel)
        return !any_waits(kernels);
    return index < kernel->parameter_count &&
           (!kernel->waits || !kernel->parameters[index].writable);
}

// Adds a definition with `noalias` where that is right.
static void change_parameters(const struct cuda_build *build, const char *line, const char *end,
                              struct weir_long_text *out)
{
    static const char noalias[] = " noalias", global[] = "ptr addrspace(1)",
                      constant[] = "ptr addrspace(4)";
    const struct kc_kernel *kernel = kernel_of(build->kernels, line);
    const char *kept = line, *at = kc_in_line(line, "@");
    size_t depth = 0, index = 0;
    bool is_fit = false;
    at = at ? at + strcspn(at, "(\n") : end;
    for (bool begins = true; at < end && (begins || depth > 0); at++) {
        depth += *at == '(';
        depth -= *at == ')';
        index += depth == 1 && *at == ',';
        if (begins || (depth == 1 && *at == ',')) {
            const char *type = at + (begins ? 1 : 2);
            is_fit = (starts_with(type, global) || starts_with(type, constant)) &&
                     may_be_noalias(build->kernels, kernel, index);
            begins = false;
            if (is_fit && build->language->restricted && kernel) {
                type += sizeof global - 1;
                weir_long_text_add(out, "%.*s%s", (int)(type - kept), kept,
                                   starts_with(type, noalias) ? "" : noalias);
                kept = type;
            }
        }
        if (!is_fit && starts_with(at, noalias)) {
            weir_long_text_add(out, "%.*s", (int)(at - kept), kept);
            kept = at + sizeof noalias - 1;
        }
    }
    weir_long_text_add(out, "%.*s", (int)(end - kept), kept);
}

// A definition. Only kernels are visible from outside; a kernel's code is always inlined.
static void change_definition(const char *line, const char *end, struct weir_long_text *out)
{
    static const char visible[] = "define dso_local ";
    static const char inline_only[] = "define available_externally dso_local ";
    const char *code = kc_in_line(line, KC_KERNEL_CODE);
    const char *rest = line + sizeof visible - 1;
    const char *attributes = NULL;
    if (starts_with(line, inline_only)) {
        weir_long_text_add(out, "define internal ");
        change_line(line + sizeof inline_only - 1, end, out);
        return;
    }
    if (!starts_with(line, visible) || starts_with(rest, "ptx_kernel ")) {
        change_line(line, end, out);
        return;
    }
    weir_long_text_add(out, "define internal ");
    for (const char *at = rest; code && code < end && at + 2 < end; at++)
        if (at[0] == ' ' && at[1] == '#' && isdigit((unsigned char)at[2]))
            attributes = at + 1;
    if (attributes) {
        change_part(rest, attributes, out);
        weir_long_text_add(out, INLINED);
        rest = attributes + strcspn(attributes, " \n");
    }
    change_line(rest, end, out);
}

// Reads the format of each layout among the arguments of a call, and whether they are the same. Returns how many there
// are.
static size_t add_layouts(const char *line, const char *end, struct weir_long_text *out)
{
    static const char layout[] = "byval(%struct.weir_image_layout) align 4 %";
    size_t k = 0;
    for (const char *at = line; at < end && (at = kc_in_line(at, layout)); k++) {
        at += sizeof layout - 1;
        const unsigned long value = strtoul(at, NULL, 10);
        weir_long_text_add(out,
                           "  %%weir.at.%zu = getelementptr i8, ptr %%%lu, i64 20\n"
                           "  %%weir.bytes.%zu = getelementptr i8, ptr %%%lu, i64 24\n"
                           "  %%weir.format.%zu = load i32, ptr %%weir.at.%zu, align 4\n"
                           "  %%weir.size.%zu = load i32, ptr %%weir.bytes.%zu, align 4\n"
                           "  %%weir.plain.%zu = and i32 %%weir.format.%zu, %u\n"
                           "  %%weir.long.%zu = icmp eq i32 %%weir.size.%zu, 16\n",
                           k, value, k, value, k, k, k, k, k, k, ~ANY_FORMAT, k, k);
        weir_long_text_add(
            out,
            "  %%weir.key.%zu = select i1 %%weir.long.%zu, i32 %u, "
            "i32 %%weir.format.%zu\n"
            "  %%weir.is.%zu = icmp eq i32 %%weir.key.%zu, %%weir.key.0\n"
            "  %%weir.same.%zu = select i1 %%weir.is.%zu, i32 %%weir.%s.%zu, i32 0\n",
            k, k, RGBA_32, k, k, k, k, k, k > 0 ? "same" : "key", k - (k > 0));
    }
    return k;
}

// A kernel with images is there for each of some formats that all of its images may have, where no access has branches
// that keep loads apart and take registers, and for any formats. Its code is inlined in all places.
static void add_formats(struct cuda_build *build, const char *line, const char *end,
                        struct weir_long_text *out)
{
    static const char call[] = "  call void " KC_KERNEL_CODE;
    static const unsigned formats[] = {RGBA_32, RGBA_HALF, RGBA_UNORM8}, bytes[] = {16, 8, 4};
    const size_t count = starts_with(line, call) ? add_layouts(line, end, out) : 0;
    if (count == 0)
        return;
    build->images = true;
    weir_long_text_add(out, "  switch i32 %%weir.same.%zu, label %%weir.any [", count - 1);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        weir_long_text_add(out, " i32 %u, label %%weir.known.%zu", formats[i], i);
    weir_long_text_add(out, " ]\n");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        weir_long_text_add(out, "weir.known.%zu:\n", i);
        for (size_t k = 0; k < count; k++)
            weir_long_text_add(out,
                               "  %%weir.%zu.%zu = select i1 %s, i32 %%weir.plain.%zu, i32 %u\n"
                               "  store i32 %%weir.%zu.%zu, ptr %%weir.at.%zu, align 4\n"
                               "  store i32 %u, ptr %%weir.bytes.%zu, align 4\n",
                               i, k, formats[i] == RGBA_32 ? "true" : "false", k, formats[i], i, k,
                               k, bytes[i], k);
        change_line(line, end, out);
        weir_long_text_add(out, "  ret void\n");
    }
    weir_long_text_add(out, "weir.any:\n");
    for (size_t k = 0; k < count; k++)
        weir_long_text_add(out,
                           "  %%weir.any.%zu = or i32 %%weir.format.%zu, %u\n"
                           "  store i32 %%weir.any.%zu, ptr %%weir.at.%zu, align 4\n",
                           k, k, ANY_FORMAT, k, k);
}

static void add_blocks(const struct kc_kernels *kernels, struct weir_long_text *out)
{
    for (size_t i = 0; i < kernels->count; i++) {
        const struct kc_kernel *kernel = &kernels->items[i];
        if (kernel->block[0] > 0)
            weir_long_text_add(out,
                               "!nvvm.annotations = !{!%zu}\n"
                               "!%zu = !{ptr @%s, !\"reqntidx\", i32 %u, !\"reqntidy\", i32 %u, "
                               "!\"reqntidz\", i32 %u}\n",
                               FIRST_NODE + i, FIRST_NODE + i, kernel->name, kernel->block[0],
                               kernel->block[1], kernel->block[2]);
    }
}

static bool change_module(struct cuda_build *build, const char *in, const char *path)
{
    struct weir_long_text out = {0};
    char *ir;
    size_t size;
    if (!read_file(build, in, &ir, &size))
        return false;
    for (const char *line = ir; *line;) {
        const char *newline = strchr(line, '\n');
        const char *end = newline ? newline : line + strlen(line);
        if (starts_with(line, "define ")) {
            struct weir_long_text definition = {0};
            change_parameters(build, line, end, &definition);
            if (definition.text)
                change_definition(definition.text, definition.text + definition.used, &out);
            out.failed = out.failed || definition.failed;
            free(definition.text);
        } else {
            add_formats(build, line, end, &out);
            change_line(line, end, &out);
        }
        line = newline ? newline + 1 : end;
    }
    weir_long_text_add(&out,
                       "attributes " INLINED
                       " = { alwaysinline convergent norecurse nounwind }\n" NO_FIELDS " = !{}\n");
    add_blocks(build->kernels, &out);
    if (build->language->fast) // libdevice asks by __nvvm_reflect("__CUDA_FTZ")
        weir_long_text_add(&out,
                           "!llvm.module.flags = !{!%u}\n"
                           "!%u = !{i32 4, !\"nvvm-reflect-ftz\", i32 1}\n",
                           FIRST_NODE - 1, FIRST_NODE - 1);
    free(ir);
    const bool fine = !out.failed ? write_file(build, path, out.text)
                                  : refuse(build, "no memory for the kernels' module");
    free(out.text);
    return fine;
}

// Limits of unrolling: the size of a loop that is unrolled whole, and of one that is unrolled in part.
struct limits {
    const char *whole;
    const char *part;
};

static bool optimise_within(const struct cuda_build *build, const char *in, const char *out,
                            struct limits limits)
{
    struct kc_job job = {0};
    ADD(&job, build->tools->clang, NO_CRASH_FILES, "-target", TARGET, "-x", "ir", "-O3",
        MARCH_LOWEST, "-S", "-emit-llvm", in, "-o", out, "-mllvm", limits.whole, "-mllvm",
        limits.part);
    // A loop whose number of turns takes some instructions to compute is unrolled too, and one of more
    // than 256 turns gains nothing by being unrolled wholly.
    ADD(&job, "-mllvm", "-scev-cheap-expansion-budget=40", "-mllvm", "-unroll-full-max-count=256");
    // Both sides of `i < n && j < n` are computed before one branch, so that reads of ids and parameters do not wait
    // for each other.
    ADD(&job, "-mllvm", "-bonus-inst-threshold=10", "-mllvm", "-instcombine-code-sinking=0");
    return run(build, &job, 1, "clang cannot optimise the kernels for CUDA");
}

// What the time for making code grows with.
struct extent {
    size_t block;  // the most instructions between two labels
    size_t blocks; // the most labels of a function
    size_t all;    // instructions
};

static void measure(const char *ir, struct extent *out)
{
    size_t block = 0, blocks = 0;
    *out = (struct extent){0};
    for (const char *line = ir; line; line = kc_next_line(line)) {
        const bool instruction = starts_with(line, "  ");
        block = instruction ? block + 1 : 0;
        blocks = *line == '}' ? 0 : blocks + (kc_in_line(line, ":  ") && !instruction);
        out->all += instruction;
        out->block = block > out->block ? block : out->block;
        out->blocks = blocks > out->blocks ? blocks : out->blocks;
    }
}

static bool measure_file(const struct cuda_build *build, const char *path, struct extent *out)
{
    char *ir;
    size_t length;
    if (!read_file(build, path, &ir, &length))
        return false;
    measure(ir, out);
    free(ir);
    return true;
}

enum {
    LARGE_MODULE = 8000,
    LARGE_BLOCK = 900,
    HUGE_BLOCK = 2500,
    MANY_BLOCKS = 400
};

static bool is_worth(struct extent far, struct extent near)
{
    return (far.block <= LARGE_BLOCK || near.block > far.block / 2) &&
           (far.blocks <= MANY_BLOCKS || near.blocks > far.blocks / 2);
}

// A GPU hides the time of loads by issuing many, so loops are unrolled further than on a CPU: with
// LLVM's own limits the relevance of ARR-COC took 46 us on an H200, and 26 with these. LLVM's limits
// hold for modules that are large before, and where they halve what code takes minutes to make for:
// the largest block, or the number of blocks, which loops with conditions in them multiply. They hold
// for kernels with images too, whose loops of reads would take so many registers that few blocks run
// at once: a convolution of 3 x 3 took 909 us with the further limits, and 347.
static bool optimise(struct cuda_build *build, const char *in, const char *out)
{
    static const struct limits far = {"-unroll-threshold=2000", "-unroll-partial-threshold=1000"},
                               near = {"-unroll-threshold=300", "-unroll-partial-threshold=150"};
    char other[PATH_SIZE];
    struct extent before, after, less;
    snprintf(other, sizeof other, "%s/near.ll", build->folder);
    if (!measure_file(build, in, &before))
        return false;
    const bool least = build->images || before.all > LARGE_MODULE;
    if (!optimise_within(build, in, out, least ? near : far) || !measure_file(build, out, &after))
        return false;
    build->huge = after.block > HUGE_BLOCK;
    if (least || (after.block <= LARGE_BLOCK && after.blocks <= MANY_BLOCKS))
        return true;
    if (!optimise_within(build, in, other, near) || !measure_file(build, other, &less))
        return false;
    if (is_worth(after, less))
        return true;
    build->huge = less.block > HUGE_BLOCK;
    return rename(other, out) == 0 || refuse(build, "a file on the way cannot be renamed");
}

// PTX and cubins.

static void path_of(const struct cuda_build *build, const char *architecture, const char *suffix,
                    char *out)
{
    snprintf(out, PATH_SIZE, "%s/sm_%s.%s", build->folder, architecture, suffix);
}

// A clang that is older than a GPU makes code for an earlier one, which ptxas and the driver take. True: it is
// that clang that has failed, and knows these targets.
static bool choose_targets(struct cuda_build *build)
{
    struct kc_job job = {0};
    bool any = false;
    ADD(&job, build->tools->clang, "--target=" TARGET, "--print-supported-cpus");
    kc_run(&job, 1);
    for (size_t i = 0; i < build->count; i++) {
        unsigned best = 0;
        for (const char *at = job.errors; at && (at = strstr(at, "\tsm_"));) {
            char *end;
            const unsigned known = (unsigned)strtoul(at += strlen("\tsm_"), &end, 10);
            if (*end == '\n' && known <= build->targets[i] && known > best)
                best = known;
        }
        any = any || (best > 0 && best < build->targets[i]);
        build->targets[i] = best > 0 ? best : build->targets[i];
    }
    kc_jobs_finish(&job, 1);
    return any;
}

// More than 4,352 bytes take PTX 8.1, of CUDA 12.1.
static bool has_long_parameters(const struct cuda_build *build)
{
    bool any = false;
    for (size_t i = 0; i < build->kernels->count; i++)
        any = any || kc_parameter_bytes(&build->kernels->items[i]) > 4352;
    return any;
}

static const char *at_least(const char *wanted, const char *feature)
{
    return strcmp(wanted, feature) > 0 ? wanted : feature;
}

// The first version of PTX that has the architecture: drivers take theirs and older ones.
static const char *ptx_version_of(const struct cuda_build *build, unsigned target)
{
    static const struct {
        unsigned target;
        const char *feature;
    } versions[] = {{120, "+ptx87"}, {110, "+ptx90"}, {103, "+ptx88"}, {100, "+ptx86"},
                    {88, "+ptx78"},  {87, "+ptx74"},  {86, "+ptx71"},  {80, "+ptx70"}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (target >= versions[i].target)
            return at_least(has_long_parameters(build) ? "+ptx81" : "", versions[i].feature);
    return has_long_parameters(build) ? "+ptx81" : "+ptx63";
}

static bool make_ptx(struct cuda_build *build, const char *module)
{
    struct kc_job jobs[ARCHITECTURES_MOST] = {{0}};
    char march[ARCHITECTURES_MOST][32];
    char outs[ARCHITECTURES_MOST][PATH_SIZE];
    for (size_t i = 0; i < build->count; i++) {
        snprintf(march[i], sizeof march[i], "-march=sm_%u", build->targets[i]);
        path_of(build, build->architectures[i], "ptx", outs[i]);
        // For straight code of thousands of instructions LLVM's last passes take minutes.
        ADD(&jobs[i], build->tools->clang, NO_CRASH_FILES, "-target", TARGET, "-x", "ir",
            build->huge ? "-O0" : "-O3", march[i], NO_TOOLKIT,
            ptx_version_of(build, build->targets[i]), "-Xclang", "-disable-llvm-passes", "-S",
            module, "-o", outs[i]);
    }
    kc_run(jobs, build->count);
    bool fine = true;
    for (size_t i = 0; i < build->count; i++)
        fine = fine && jobs[i].status == 0;
    if (fine || !choose_targets(build))
        return judge(build, jobs, build->count, "clang cannot make PTX of the kernels");
    kc_jobs_finish(jobs, build->count);
    return make_ptx(build, module);
}

// Of libdevice, which need not be there for a check; of printf; LLVM's own.
static bool is_there(const char *name)
{
    return starts_with(name, "__nv_") || starts_with(name, "vprintf") || starts_with(name, "llvm.");
}

// A function that neither library has.
static void find_missing(const struct cuda_build *build, const struct kc_module *module,
                         struct kc_kernel *kernel)
{
    bool *reached = kc_module_reach(module, kernel->name);
    for (size_t i = 0; reached && i < module->symbol_count && !kernel->refused; i++) {
        const struct kc_symbol *symbol = &module->symbols[i];
        char whole[512], name[512];
        if (!reached[i] || symbol->kind != KC_DECLARED || is_there(symbol->name))
            continue;
        snprintf(whole, sizeof whole, "%.*s", (int)symbol->length, symbol->name);
        kc_plain_name(symbol, name, sizeof name);
        kc_refuse(build->context, kernel, whole,
                  "uses '%s': function '%s' is not there for CUDA: define it in the source, or do "
                  "without it (docs/kernels.md lists what is)",
                  name, name);
    }
    build->report->failed = build->report->failed || !reached;
    free(reached);
}

static bool check_complete(const struct cuda_build *build, const char *path)
{
    struct kc_module module;
    char *ir;
    size_t size;
    if (!read_file(build, path, &ir, &size))
        return false;
    const bool fine = kc_module_read(ir, &module);
    for (size_t i = 0; i < build->kernels->count && fine; i++)
        find_missing(build, &module, &build->kernels->items[i]);
    kc_module_finish(&module);
    return fine || refuse(build, "no memory for the kernels' module");
}

static bool finish_ptx(const struct cuda_build *build, const char *architecture, bool first)
{
    char path[PATH_SIZE], message[512];
    char *ptx;
    size_t size;
    path_of(build, architecture, "ptx", path);
    if (!read_file(build, path, &ptx, &size))
        return false;
    if (first)
        kc_check_memory(build->context, ptx, build->kernels);
    char *changed = weir_ptx_for_cuda(ptx, size, message, sizeof message);
    const bool fine = changed ? write_file(build, path, changed) : refuse(build, message);
    free(changed);
    free(ptx);
    return fine;
}

static bool make_cubins(const struct cuda_build *build, const struct kc_list *cubins)
{
    struct kc_job jobs[ARCHITECTURES_MOST] = {{0}};
    char arch[ARCHITECTURES_MOST][32];
    char ins[ARCHITECTURES_MOST][PATH_SIZE], outs[ARCHITECTURES_MOST][PATH_SIZE];
    for (size_t i = 0; i < cubins->count; i++) {
        snprintf(arch[i], sizeof arch[i], "-arch=sm_%s", cubins->items[i]);
        path_of(build, cubins->items[i], "ptx", ins[i]);
        path_of(build, cubins->items[i], "cubin", outs[i]);
        ADD(&jobs[i], build->tools->ptxas, arch[i], ins[i], "-o", outs[i]);
    }
    return run(build, jobs, cubins->count, "ptxas does not take the kernels");
}

static unsigned target_of(const struct cuda_build *build, const char *architecture)
{
    size_t i = 0;
    while (i + 1 < build->count && strcmp(build->architectures[i], architecture) != 0)
        i++;
    return build->targets[i];
}

static bool take_images(const struct cuda_build *build, const struct kc_list *list,
                        const char *suffix, const char *format, struct kc_images *images)
{
    for (size_t i = 0; i < list->count; i++) {
        struct kc_image *image = &images->items[images->count];
        char path[PATH_SIZE];
        char *data;
        path_of(build, list->items[i], suffix, path);
        if (!read_file(build, path, &data, &image->size))
            return false;
        images->count++;
        image->data = data;
        image->format = format;
        snprintf(image->target, sizeof image->target, "sm_%s", list->items[i]);
        if (strcmp(suffix, "ptx") == 0)
            snprintf(image->target, sizeof image->target, "sm_%u",
                     target_of(build, list->items[i]));
    }
    return true;
}

static void need(struct cuda_build *build, const struct kc_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        bool known = false;
        for (size_t j = 0; j < build->count; j++)
            known = known || strcmp(build->architectures[j], list->items[i]) == 0;
        if (!known) {
            build->targets[build->count] = (unsigned)strtoul(list->items[i], NULL, 10);
            build->architectures[build->count++] = list->items[i];
        }
    }
}

// What the kernels reach, of clang's module.
static bool write_reached(const struct cuda_build *build, const struct kc_module *module,
                          const char *path)
{
    bool *reached = calloc(module->symbol_count + 1, sizeof *reached);
    struct weir_long_text out = {0};
    bool fine = reached != NULL;
    for (size_t i = 0; i < build->kernels->count && fine; i++)
        fine = kc_module_reach_too(module, build->kernels->items[i].name, reached);
    if (fine)
        kc_module_add_reached(module, reached, &out);
    if (!fine || out.failed)
        fine = refuse(build, "no memory for the kernels' module");
    fine = fine && write_file(build, path, out.text);
    free(out.text);
    free(reached);
    return fine;
}

// Again without the kernels that are found to be refused, if they are to be skipped.
static bool make_code(struct cuda_build *build, const struct kc_module *module)
{
    char kept[PATH_SIZE], linked[PATH_SIZE], changed[PATH_SIZE], optimised[PATH_SIZE];
    bool any = true;
    snprintf(kept, sizeof kept, "%s/reached.ll", build->folder);
    snprintf(linked, sizeof linked, "%s/linked.ll", build->folder);
    snprintf(changed, sizeof changed, "%s/changed.ll", build->folder);
    snprintf(optimised, sizeof optimised, "%s/optimised.ll", build->folder);
    while (any) {
        if (!write_reached(build, module, kept) || !link_libraries(build, kept, linked) ||
            !change_module(build, linked, changed) || !optimise(build, changed, optimised) ||
            !check_complete(build, optimised) || !make_ptx(build, optimised))
            return false;
        for (size_t i = 0; i < build->count; i++)
            if (!finish_ptx(build, build->architectures[i], i == 0))
                return false;
        if (!kc_drop_refused(build->context, build->kernels, &any))
            return false;
    }
    return true;
}

bool kc_cuda_images(struct kc_context *context, const struct kc_module *module,
                    struct kc_kernels *kernels, const struct kc_list *ptx,
                    const struct kc_list *cubins, struct kc_images *images)
{
    struct cuda_build build = {.context = context,
                               .tools = context->tools,
                               .language = context->language,
                               .kernels = kernels,
                               .library = kc_library_needed(module->text),
                               .folder = context->folder,
                               .report = context->report};
    if (ptx->count + cubins->count > ARCHITECTURES_MOST)
        return refuse(&build, "more than 16 CUDA images in one bundle");
    const struct kc_list check = {(const char *const[]){LOWEST + strlen("sm_")}, 1};
    need(&build, ptx->count + cubins->count > 0 ? ptx : &check);
    need(&build, cubins);
    return make_code(&build, module) && make_cubins(&build, cubins) &&
           take_images(&build, cubins, "cubin", "CUBIN", images) &&
           take_images(&build, ptx, "ptx", "PTX", images);
}

void kc_images_finish(struct kc_images *images)
{
    for (size_t i = 0; i < images->count; i++)
        free(images->items[i].data);
    images->count = 0;
}
