// The module that clang makes of OpenCL C, ready for code of CUDA: what the kernels reach, with libclc, libdevice and
// kernels/library linked in, changed and optimised.
#include <ctype.h>

#include "kernels/compiler/compiler.h"
#include "kernels/library/grid_barrier.h"
#include "kernels/library/library.h"

// Which functions of kernels/library a module calls, and the files that have them.

// Files of kernels/library in the order in which they are linked: work-groups call sub-groups, and conversions of
// halves those of floats.
static const struct subject {
    const char *name;
    const char *const *text;
    bool generic; // a pointer without an address space is one to the generic
    bool lazy; // of what it defines it calls no other types, so clang may declare what it comes to
} subjects[] = {
    {"atomics", &weir_library_atomics, true, false},
    {"atomics64", &weir_library_atomics64, false, true},
    {"dot_products", &weir_library_dot_products, false, true},
    {"generic", &weir_library_generic, true, true},
    {"grid_barrier", &weir_library_grid_barrier, false, true},
    {"half", &weir_library_half, false, false},
    {"half_conversions", &weir_library_half_conversions, false, false},
    {"conversions", &weir_library_conversions, false, true},
    {"math", &weir_library_math, false, true},
    {"work_groups", &weir_library_work_groups, false, true},
    {"sub_groups", &weir_library_sub_groups, false, true},
    {"work_items", &weir_library_work_items, false, true},
};

enum {
    SUBJECTS = sizeof subjects / sizeof *subjects
};

// A function's mangled name has its types: "Dh" is half, "Vl" and "Vm" are volatile long and ulong.
// The first row whose parts are both in the name decides.
static const struct {
    const char *part;
    const char *type;
    const char *subjects; // names
} functions[] = {
    {"convert_half", "", "half_conversions"},
    {"convert_", "Dh", "half_conversions conversions"},
    {"convert_", "_sat", "conversions"},
    {KC_GRID_BARRIER, "", "grid_barrier"},
    {"sub_group", "", "sub_groups"},
    {"dot_4x8packed_", "", "dot_products"},
    {"dot_acc_sat", "", "dot_products"},
    {"_Z3dotDv4_h", "", "dot_products"},
    {"_Z3dotDv4_c", "", "dot_products"},
    {"atomic_", "VU7_Atomic", "atomics"},
    {"atomic_work_item_fence", "", "atomics"},
    {"__to_", "", "generic"},
    {"get_fence", "", "generic"},
    {"work_group_barrier", "", "work_items"},
    {"work_group_", "", "work_groups sub_groups"},
    {"atom_", "Vl", "atomics64"},
    {"atom_", "Vm", "atomics64"},
    {"get_global_id", "", "work_items"},
    {"get_global_size", "", "work_items"},
    {"get_global_offset", "", "work_items"},
    {"get_work_dim", "", "work_items"},
    {"get_enqueued_local_size", "", "work_items"},
    {"get_global_linear_id", "", "work_items"},
    {"get_local_linear_id", "", "work_items"},
    {"vstore", "_rtp", "half_conversions"},
    {"vstore", "_rtn", "half_conversions"},
    {"load", "_half", ""}, // libclc has these
    {"store", "_half", ""},
    {"", "Dh", "half math"},
    {"_Z3nant", "", "half"},
    {"_Z3nanDv", "_t", "half"},
};

// Those of MATH, as words.
static const char math[] =
    "exp exp2 exp10 expm1 log log2 log10 log1p cbrt erf erfc tgamma lgamma sin cos tan sinpi "
    "cospi asin acos atan sinh cosh tanh asinh acosh atanh sincos asinpi acospi atanpi tanpi "
    "atan2 atan2pi fmod hypot pow powr remainder ldexp rootn modf fract lgamma_r remquo sign "
    "isinf mad_sat native_exp native_log native_log2 native_log10 native_powr";

static bool has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        const size_t here = strcspn(at, " ");
        if (here == length && strncmp(word, at, length) == 0)
            return true;
        at += here;
    }
    return false;
}

static const char *subjects_of(const char *name)
{
    char plain[512];
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strstr(name, functions[i].part) && strstr(name, functions[i].type))
            return functions[i].subjects;
    kc_plain_name(name, plain, sizeof plain);
    return kc_starts_with(name, "_Z") && has_word(math, plain) ? "math" : "";
}

// Linking.

#define FLUSHED "-fdenormal-fp-math-f32=preserve-sign"

// What kernels/images has.
#define IMAGES                                                                       \
    ",+__opencl_c_images,+__opencl_c_3d_image_writes,+__opencl_c_read_write_images," \
    "+cl_khr_3d_image_writes"

void kc_job_add_language(struct kc_job *job, const struct kc_build *build)
{
    KC_ADD(job, build->tools.clang, "-x", "cl", KC_NO_CRASH_FILES, "-Xclang", KC_EXTENSIONS IMAGES,
           KC_DEVICE_VERSION, "-D__IMAGE_SUPPORT__=1");
    kc_job_add(job, "-cl-std=%s", build->language.standard);
    if (build->language.fast)
        kc_job_add(job, KC_FAST);
}

void kc_job_add_cuda(struct kc_job *job, const struct kc_language *language)
{
    KC_ADD(job, "-target", KC_TARGET, KC_MARCH_LOWEST, KC_IS_COMPILER, "-Xclang", "-fgnu-keywords");
    // Functions of kernels/library too are the fast ones with __FAST_RELAXED_MATH__, which KC_FAST defines.
    if (language->fast)
        KC_ADD(job, KC_FAST, "-ffp-contract=fast", "-Xclang", FLUSHED);
    else
        KC_ADD(job, "-cl-fp32-correctly-rounded-divide-sqrt", "-ffp-contract=on");
}

// What kernels/library is compiled with: pointers of each address space, and, but for files where clang may
// declare what it comes to, its header, which declares every function before the first definition.
#define WITHOUT_GENERIC KC_EXTENSIONS ",-__opencl_c_generic_address_space"

// Adds the subject's file as LLVM's bitcode to what is linked.
static bool add_subject(const struct kc_context *context, const struct subject *subject,
                        struct kc_job *job, struct kc_job *link)
{
    char source[KC_PATH_SIZE];
    snprintf(source, sizeof source, "%s/%s.cl", context->folder, subject->name);
    KC_ADD(job, context->build->tools.clang, "-x", "cl", KC_NO_CRASH_FILES, KC_DEVICE_VERSION,
           "-O3", "-w", "-Xclang", "-disable-llvm-passes");
    kc_job_add_cuda(job, &context->build->language);
    if (!subject->lazy)
        KC_ADD(job, "-cl-no-stdinc", "-Xclang", "-finclude-default-header");
    KC_ADD(job, "-cl-std=CL3.0", "-Xclang", subject->generic ? KC_EXTENSIONS : WITHOUT_GENERIC,
           "-emit-llvm", "-c", source, "-o");
    kc_job_add(job, "%s/%s.bc", context->folder, subject->name);
    KC_ADD(link, "-Xclang", "-mlink-builtin-bitcode", "-Xclang");
    kc_job_add(link, "%s/%s.bc", context->folder, subject->name);
    return kc_write(source, *subject->text, context->report);
}

static bool add_library(const struct kc_context *context, struct kc_job *link)
{
    const struct kc_module *module = &context->module;
    struct kc_job jobs[SUBJECTS] = {{0}};
    bool needed[SUBJECTS] = {false};
    size_t count = 0;
    bool fine = true;
    for (size_t i = 0; i < module->symbol_count; i++) {
        const bool declared = module->symbols[i].kind == KC_DECLARED;
        const char *names = declared ? subjects_of(module->symbols[i].name) : "";
        for (size_t s = 0; s < SUBJECTS; s++)
            needed[s] = needed[s] || has_word(names, subjects[s].name);
    }
    for (size_t i = 0; i < SUBJECTS && fine; i++)
        if (needed[i])
            fine = add_subject(context, &subjects[i], &jobs[count++], link);
    if (fine)
        return kc_run_well(jobs, count, "this clang does not take Weir's functions for CUDA",
                           context->report);
    kc_jobs_finish(jobs, count);
    return false;
}

// Ours come first: they call libclc's, and take the place of some.
static bool link_libraries(const struct kc_context *context, const char *in, const char *out)
{
    struct kc_job job = {0};
    KC_ADD(&job, context->build->tools.clang, "-target", KC_TARGET, "-x", "ir", "-O3", "-w",
           KC_NO_CRASH_FILES, KC_MARCH_LOWEST, "-Xclang", "-disable-llvm-passes", "-S",
           "-emit-llvm", in, "-o", out);
    if (!add_library(context, &job)) {
        kc_jobs_finish(&job, 1);
        return false;
    }
    // LLVM inlines no function into one that treats denormals in another way: clang gives libraries this one.
    if (context->build->language.fast)
        KC_ADD(&job, "-Xclang", FLUSHED);
    KC_ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", context->build->tools.libclc);
    if (context->build->tools.libdevice[0] != '\0')
        KC_ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang",
               context->build->tools.libdevice);
    return kc_run_well(&job, 1, "this is OpenCL C, but does not compile for CUDA", context->report);
}

// The module that clang makes of OpenCL C, and libclc and libdevice are linked into, made fit for CUDA as text:
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

#define INLINED "#999999"

// How many bytes to leave out at `at`, and what to put there.
static size_t change(const char *at, const char **out_instead)
{
    static const char *const words[][2] = {{"@printf(", "@vprintf("},
                                           {"addrspace(4)", "addrspace(1)"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *out_instead = words[i][1];
        if (kc_starts_with(at, words[i][0]))
            return strlen(words[i][0]);
    }
    *out_instead = "";
    if (!kc_starts_with(at, "\"target-cpu\"=\"") && !kc_starts_with(at, "\"target-features\"=\""))
        return 0;
    const char *end = strchr(strchr(at, '=') + 2, '"');
    return end ? (size_t)(end + 1 - at) : 0;
}

// A name in quotes, @"gr\C3\B6\C3\9Fe": PTX has the letters of ASCII only. Returns what follows.
static const char *add_ascii(const char *at, struct weir_long_text *out)
{
    weir_long_text_add(out, "@weir_utf8_");
    for (at += 2; *at && *at != '"'; at++)
        weir_long_text_add(out, "%c", weir_text_is_word(*at) ? *at : '_');
    return at + (*at == '"');
}

static void change_part(const char *line, size_t length, struct weir_long_text *out)
{
    const char *kept = line, *end = line + length;
    for (const char *at = line; at < end;) {
        const char *instead = "";
        const size_t replaced = *at == 'a' || *at == '"' || *at == '@' ? change(at, &instead) : 0;
        const bool named = at[0] == '@' && at[1] == '"';
        if (replaced == 0 && !named) { // what a program's own string says is left alone
            at = *at == '"' ? kc_string_end(at) : at + 1;
            continue;
        }
        weir_long_text_add(out, "%.*s%s", (int)(at - kept), kept, instead);
        kept = at = named ? add_ascii(at, out) : at + replaced;
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
    load += strcspn(load, " ");
    if (!kc_starts_with(load, " = load ") || kc_starts_with(load, " = load volatile"))
        return false;
    const char *from = strstr(load, ", ptr");
    return from && kc_starts_with(from, ", ptr addrspace(4) ");
}

static void change_line(const char *line, struct weir_long_text *out)
{
    change_part(line, strlen(line), out);
    weir_long_text_add(out, "%s\n", loads_constant(line) ? ", !invariant.load " NO_FIELDS : "");
}

static const struct kc_kernel *kernel_of(const struct kc_kernels *kernels, const char *line)
{
    static const char *const heads[] = {KC_KERNEL_CODE, "ptx_kernel void @"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *name = strstr(line, heads[i]);
        if (name)
            return kc_kernels_find(kernels, name + strlen(heads[i]),
                                   strcspn(name + strlen(heads[i]), "("));
    }
    return NULL;
}

// LLVM takes it that a barrier leaves alone what a `noalias` pointer points to, although other work-items write that:
// such a pointer is to global memory, and in a kernel that waits for others it is const.
static bool may_be_noalias(const struct kc_kernels *kernels, const struct kc_kernel *kernel,
                           size_t index)
{
    bool any_waits = false;
    for (size_t i = 0; i < kernels->count; i++)
        any_waits = any_waits || kernels->items[i].waits;
    if (!kernel)
        return !any_waits;
    return index < kernel->parameter_count &&
           (!kernel->waits || !kernel->parameters[index].writable);
}

// Adds a definition with `noalias` where that is right.
static void change_parameters(const struct kc_language *language, const struct kc_kernels *kernels,
                              const char *line, struct weir_long_text *out)
{
    static const char noalias[] = " noalias", global[] = "ptr addrspace(1)",
                      constant[] = "ptr addrspace(4)";
    const struct kc_kernel *kernel = kernel_of(kernels, line);
    const char *kept = line, *next, *at = kc_first_parameter(line);
    for (size_t index = 0; at; index++, at = next) {
        next = kc_next_parameter(at);
        const size_t length = next ? (size_t)(next - at) : strlen(at);
        const char *found = memmem(at, length, noalias, strlen(noalias));
        const bool global_type = kc_starts_with(at, global) || kc_starts_with(at, constant);
        const bool is_fit = global_type && may_be_noalias(kernels, kernel, index);
        const char *type_end = at + strlen(global);
        if (found && !is_fit) {
            weir_long_text_add(out, "%.*s", (int)(found - kept), kept);
            kept = found + strlen(noalias);
        } else if (!found && is_fit && language->restricted && kernel) {
            weir_long_text_add(out, "%.*s%s", (int)(type_end - kept), kept, noalias);
            kept = type_end;
        }
    }
    weir_long_text_add(out, "%s", kept);
}

// A definition. Only kernels are visible from outside; a kernel's code is always inlined.
static void change_definition(const char *line, struct weir_long_text *out)
{
    static const char *const heads[] = {"define available_externally dso_local ",
                                        "define dso_local "};
    const char *rest = line, *attributes = NULL;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (kc_starts_with(line, heads[i]))
            rest = line + strlen(heads[i]);
    if (rest == line || kc_starts_with(rest, "ptx_kernel ")) {
        change_line(line, out);
        return;
    }
    weir_long_text_add(out, "define internal ");
    for (const char *at = strstr(line, KC_KERNEL_CODE); at && (at = strstr(at, " #")); at++)
        attributes = isdigit((unsigned char)at[2]) ? at + 1 : attributes;
    if (attributes) {
        change_part(rest, (size_t)(attributes - rest), out);
        weir_long_text_add(out, INLINED);
        rest = attributes + strcspn(attributes, " ");
    }
    change_line(rest, out);
}

// Reads the format of each layout among the arguments of a call, and whether they are the same. Returns how many there
// are.
static size_t add_layouts(const char *line, struct weir_long_text *out)
{
    static const char layout[] = "byval(%struct.weir_image_layout) align 4 %";
    size_t k = 0;
    for (const char *at = line; (at = strstr(at, layout)); k++) {
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
// that keep loads apart and take registers, and for any formats. Its code is inlined in all places. Whether the line is
// the call of such a kernel.
static bool add_formats(const char *line, struct weir_long_text *out)
{
    static const char call[] = "  call void " KC_KERNEL_CODE;
    static const unsigned formats[] = {RGBA_32, RGBA_HALF, RGBA_UNORM8}, bytes[] = {16, 8, 4};
    const size_t count = kc_starts_with(line, call) ? add_layouts(line, out) : 0;
    if (count == 0)
        return false;
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
        change_line(line, out);
        weir_long_text_add(out, "  ret void\n");
    }
    weir_long_text_add(out, "weir.any:\n");
    for (size_t k = 0; k < count; k++)
        weir_long_text_add(out,
                           "  %%weir.any.%zu = or i32 %%weir.format.%zu, %u\n"
                           "  store i32 %%weir.any.%zu, ptr %%weir.at.%zu, align 4\n",
                           k, k, ANY_FORMAT, k, k);
    return true;
}

static void add_blocks(const struct kc_kernels *kernels, struct weir_long_text *out)
{
    for (size_t i = 0; i < kernels->count; i++) {
        const struct kc_kernel *kernel = &kernels->items[i];
        if (kernel->block.x > 0)
            weir_long_text_add(out,
                               "!nvvm.annotations = !{!%zu}\n"
                               "!%zu = !{ptr @%s, !\"reqntidx\", i32 %u, !\"reqntidy\", i32 %u, "
                               "!\"reqntidz\", i32 %u}\n",
                               FIRST_NODE + i, FIRST_NODE + i, kernel->name, kernel->block.x,
                               kernel->block.y, kernel->block.z);
    }
}

// Adds the module `ir`, changed, to the text. True: kernels have images. `ir` is cut into lines.
static bool change_module(const struct kc_context *context, char *ir, struct weir_long_text *out)
{
    const struct kc_kernels *kernels = &context->result->kernels;
    bool images = false;
    for (char *line; (line = strsep(&ir, "\n"));) {
        if (kc_starts_with(line, "define ")) {
            struct weir_long_text definition = {0};
            change_parameters(&context->build->language, kernels, line, &definition);
            if (definition.text)
                change_definition(definition.text, out);
            out->failed = out->failed || definition.failed;
            free(definition.text);
        } else {
            images = add_formats(line, out) || images;
            change_line(line, out);
        }
    }
    weir_long_text_add(out,
                       "attributes " INLINED
                       " = { alwaysinline convergent norecurse nounwind }\n" NO_FIELDS " = !{}\n");
    add_blocks(kernels, out);
    if (context->build->language.fast) // libdevice asks by __nvvm_reflect("__CUDA_FTZ")
        weir_long_text_add(out,
                           "!llvm.module.flags = !{!%u}\n"
                           "!%u = !{i32 4, !\"nvvm-reflect-ftz\", i32 1}\n",
                           FIRST_NODE - 1, FIRST_NODE - 1);
    return images;
}

// Optimising: how far loops are unrolled, by what comes of that.

// Limits of unrolling: the size of a loop that is unrolled whole, and of one that is unrolled in part.
struct limits {
    const char *whole;
    const char *part;
};

// What the time for making code grows with.
enum {
    BLOCK,  // the most instructions between two labels
    BLOCKS, // the most labels of a function
    ALL,    // instructions
    EXTENTS
};

// From here on it is worth to make less code of the same source.
static const size_t large[EXTENTS] = {[BLOCK] = 900, [BLOCKS] = 400, [ALL] = 8000};

enum {
    HUGE_BLOCK = 2500
};

// A module on its way: the text of what came out, and its extents.
struct outcome {
    char *ir;
    size_t extents[EXTENTS];
};

static void measure(const char *ir, size_t out[EXTENTS])
{
    size_t block = 0, blocks = 0;
    memset(out, 0, EXTENTS * sizeof *out);
    for (const char *line = ir; line; line = kc_next_line(line)) {
        const bool instruction = kc_starts_with(line, "  ");
        block = instruction ? block + 1 : 0;
        blocks = *line == '}' ? 0 : blocks + (kc_in_line(line, ":  ") && !instruction);
        out[ALL] += instruction;
        out[BLOCK] = block > out[BLOCK] ? block : out[BLOCK];
        out[BLOCKS] = blocks > out[BLOCKS] ? blocks : out[BLOCKS];
    }
}

static bool optimise_within(const struct kc_context *context, const char *in, struct limits limits,
                            const char *path, struct outcome *out)
{
    struct kc_job job = {0};
    size_t size;
    KC_ADD(&job, context->build->tools.clang, KC_NO_CRASH_FILES, "-target", KC_TARGET, "-x", "ir",
           "-O3", KC_MARCH_LOWEST, "-S", "-emit-llvm", in, "-o", path, "-mllvm", limits.whole,
           "-mllvm", limits.part);
    // A loop whose number of turns takes some instructions to compute is unrolled too, and one of more
    // than 256 turns gains nothing by being unrolled wholly.
    KC_ADD(&job, "-mllvm", "-scev-cheap-expansion-budget=40", "-mllvm",
           "-unroll-full-max-count=256");
    // Both sides of `i < n && j < n` are computed before one branch, so that reads of ids and parameters do not wait
    // for each other.
    KC_ADD(&job, "-mllvm", "-bonus-inst-threshold=10", "-mllvm", "-instcombine-code-sinking=0");
    if (!kc_run_well(&job, 1, "clang cannot optimise the kernels for CUDA", context->report) ||
        !kc_read(path, &out->ir, &size, context->report))
        return false;
    measure(out->ir, out->extents);
    return true;
}

static bool is_large(const struct outcome *outcome)
{
    bool any = false;
    for (size_t i = 0; i < EXTENTS; i++)
        any = any || outcome->extents[i] > large[i];
    return any;
}

// Puts the module of lower limits in the place of that of the higher ones, if it is much smaller.
static bool make_less(const struct kc_context *context, const char *in, struct limits limits,
                      const char *path, struct outcome *outcome)
{
    struct outcome less = {0};
    bool halved = false;
    const bool made = optimise_within(context, in, limits, path, &less);
    for (size_t i = 0; i < EXTENTS && made; i++)
        halved = halved ||
                 (outcome->extents[i] > large[i] && less.extents[i] <= outcome->extents[i] / 2);
    free(halved ? outcome->ir : less.ir);
    if (halved)
        *outcome = less;
    return made && (halved || kc_write(path, outcome->ir, context->report));
}

// A GPU hides the time of loads by issuing many, so loops are unrolled further than on a CPU: with
// LLVM's own limits the relevance of ARR-COC took 46 us on an H200, and 26 with the first of these. Where code comes of
// that which takes minutes to make (its largest block, the number of blocks, which loops with conditions in them
// multiply, or all), the next limits hold if they halve it: 64 turns of tanh are unrolled by eight, as nvcc has it.
// The last hold for modules that are large before, and for kernels with images, whose loops of reads
// would take so many registers that few blocks run at once: a convolution of 3 x 3 took 909 us with the
// first, and 347.
static bool optimise(const struct kc_context *context, const char *ir, bool images,
                     const char *path, char **out_ir, bool *out_huge)
{
    static const struct limits falling[] = {
        {"-unroll-threshold=2000", "-unroll-partial-threshold=1000"},
        {"-unroll-threshold=300", "-unroll-partial-threshold=300"},
        {"-unroll-threshold=300", "-unroll-partial-threshold=150"},
    };
    enum {
        COUNT = sizeof falling / sizeof *falling
    };
    char in[KC_PATH_SIZE];
    size_t before[EXTENTS];
    struct outcome outcome = {0};
    snprintf(in, sizeof in, "%s/changed.ll", context->folder);
    measure(ir, before);
    size_t at = images || before[ALL] > large[ALL] ? COUNT - 1 : 0;
    bool fine = kc_write(in, ir, context->report) &&
                optimise_within(context, in, falling[at], path, &outcome);
    while (fine && is_large(&outcome) && ++at < COUNT)
        fine = make_less(context, in, falling[at], path, &outcome);
    *out_huge = outcome.extents[BLOCK] > HUGE_BLOCK;
    *out_ir = fine ? outcome.ir : NULL;
    if (!fine)
        free(outcome.ir);
    return fine;
}

// What the kernels reach, of clang's module.
static bool write_reached(const struct kc_context *context, const char *path)
{
    const struct kc_kernels *kernels = &context->result->kernels;
    const struct kc_module *module = &context->module;
    bool *reached = kc_module_reach(module, "", NULL);
    struct weir_long_text out = {0};
    for (size_t i = 0; i < kernels->count && reached; i++)
        reached = kc_module_reach(module, kernels->items[i].name, reached);
    if (reached)
        kc_module_add_reached(module, reached, &out);
    const bool fine = reached && !out.failed
                          ? kc_write(path, out.text, context->report)
                          : kc_error(context->report, "no memory for the kernels' module");
    free(out.text);
    free(reached);
    return fine;
}

bool kc_link(const struct kc_context *context, const char *path, char **out_ir, bool *out_huge)
{
    struct weir_long_text changed = {0};
    char kept[KC_PATH_SIZE], linked[KC_PATH_SIZE], *ir = NULL;
    size_t size;
    bool images = false;
    snprintf(kept, sizeof kept, "%s/reached.ll", context->folder);
    snprintf(linked, sizeof linked, "%s/linked.ll", context->folder);
    bool fine = write_reached(context, kept) && link_libraries(context, kept, linked) &&
                kc_read(linked, &ir, &size, context->report);
    if (fine)
        images = change_module(context, ir, &changed);
    free(ir);
    if (changed.failed)
        fine = kc_error(context->report, "no memory for the kernels' module");
    fine = fine && optimise(context, changed.text, images, path, out_ir, out_huge);
    free(changed.text);
    return fine;
}
