// PTX and cubins of the module that clang makes of OpenCL C: libclc, libdevice and kernels/library are linked in,
// change.c makes it fit for CUDA, optimise.c optimises it once, and then there is code for each architecture.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/compiler/compiler.h"
#include "kernels/ptx/ptx.h"

#define LOWEST "sm_75" // of the steps before code is made

enum {
    ARCHITECTURES_MOST = 16,
    PATH_SIZE = 1024
};

struct cuda_build {
    struct kc_context *context;
    struct kc_kernels *kernels;
    unsigned library;                              // what they need of kernels/library
    const char *architectures[ARCHITECTURES_MOST]; // that images are wanted for: "90"
    unsigned targets[ARCHITECTURES_MOST]; // theirs, or the newest up to it that clang knows
    size_t count;
    bool huge;   // kc_optimise() says so
    bool shared; // several kernels call one function
};

#define FLUSHED "-fdenormal-fp-math-f32=preserve-sign"

// What kernels/images has.
#define IMAGES                                                                       \
    ",+__opencl_c_images,+__opencl_c_3d_image_writes,+__opencl_c_read_write_images," \
    "+cl_khr_3d_image_writes"

void kc_job_add_language(struct kc_job *job, const struct kc_tools *tools,
                         const struct kc_language *language)
{
    snprintf(job->standard, sizeof job->standard, "-cl-std=%s", language->standard);
    KC_ADD(job, tools->clang, "-x", "cl", job->standard, KC_NO_CRASH_FILES, "-Xclang",
           KC_EXTENSIONS IMAGES, KC_DEVICE_VERSION, "-D__IMAGE_SUPPORT__=1");
    if (language->fast)
        kc_job_add(job, KC_FAST);
}

static void add_math(struct kc_job *job, const struct kc_language *language)
{
    // Functions of kernels/library too are the fast ones with __FAST_RELAXED_MATH__, which KC_FAST defines.
    if (language->fast)
        KC_ADD(job, KC_FAST, "-ffp-contract=fast", "-Xclang", FLUSHED);
    else
        KC_ADD(job, "-cl-fp32-correctly-rounded-divide-sqrt", "-ffp-contract=on");
}

void kc_job_add_cuda(struct kc_job *job, const struct kc_language *language)
{
    KC_ADD(job, "-target", KC_TARGET, KC_MARCH_LOWEST, KC_IS_COMPILER, "-Xclang", "-fgnu-keywords");
    add_math(job, language);
}

// What kernels/library is compiled with: pointers of each address space, and, but for files where clang may
// declare what it comes to, its header, which declares every function before the first definition.
#define WITHOUT_GENERIC KC_EXTENSIONS ",-__opencl_c_generic_address_space"

static void add_subject(const struct cuda_build *build, struct kc_job *job,
                        const struct kc_subject *subject, const char *source, const char *out)
{
    KC_ADD(job, build->context->tools->clang, "-x", "cl", KC_NO_CRASH_FILES, KC_DEVICE_VERSION,
           "-O3", "-w", "-Xclang", "-disable-llvm-passes");
    kc_job_add_cuda(job, build->context->language);
    if (!subject->lazy)
        KC_ADD(job, "-cl-no-stdinc", "-Xclang", "-finclude-default-header");
    KC_ADD(job, "-cl-std=CL3.0", "-Xclang", subject->generic ? KC_EXTENSIONS : WITHOUT_GENERIC,
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
        snprintf(sources[i], PATH_SIZE, "%s/%s.cl", build->context->folder, subjects[i].name);
        snprintf(out->modules[i], PATH_SIZE, "%s/%s.bc", build->context->folder, subjects[i].name);
        if (!kc_write(sources[i], subjects[i].text, build->context->report))
            return false;
        add_subject(build, &jobs[i], &subjects[i], sources[i], out->modules[i]);
    }
    return kc_run_well(jobs, out->count, "this clang does not take Weir's functions for CUDA",
                       build->context->report);
}

// Ours come first: they call libclc's, and take the place of some.
static bool link_libraries(const struct cuda_build *build, const char *in, const char *out)
{
    struct kc_job job = {0};
    struct library library;
    if (!compile_library(build, &library))
        return false;
    KC_ADD(&job, build->context->tools->clang, "-target", KC_TARGET, "-x", "ir", "-O3", "-w",
           KC_NO_CRASH_FILES, KC_MARCH_LOWEST, "-Xclang", "-disable-llvm-passes", "-S",
           "-emit-llvm", in, "-o", out);
    for (size_t i = 0; i < library.count; i++)
        KC_ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", library.modules[i]);
    // LLVM inlines no function into one that treats denormals in another way: clang gives libraries this one.
    if (build->context->language->fast)
        KC_ADD(&job, "-Xclang", FLUSHED);
    KC_ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", build->context->tools->libclc);
    if (build->context->tools->libdevice[0] != '\0')
        KC_ADD(&job, "-Xclang", "-mlink-builtin-bitcode", "-Xclang",
               build->context->tools->libdevice);
    return kc_run_well(&job, 1, "this is OpenCL C, but does not compile for CUDA",
                       build->context->report);
}

// PTX and cubins.

static void path_of(const struct cuda_build *build, const char *architecture, const char *suffix,
                    char *out)
{
    snprintf(out, PATH_SIZE, "%s/sm_%s.%s", build->context->folder, architecture, suffix);
}

// A clang that is older than a GPU makes code for an earlier one, which ptxas and the driver take. True: it is
// that clang that has failed, and knows these targets.
static bool choose_targets(struct cuda_build *build)
{
    struct kc_job job = {0};
    bool any = false;
    KC_ADD(&job, build->context->tools->clang, "--target=" KC_TARGET, "--print-supported-cpus");
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
        KC_ADD(&jobs[i], build->context->tools->clang, KC_NO_CRASH_FILES, "-target", KC_TARGET,
               "-x", "ir", build->huge ? "-O0" : "-O3", march[i], KC_NO_TOOLKIT,
               ptx_version_of(build, build->targets[i]), "-Xclang", "-disable-llvm-passes", "-S",
               module, "-o", outs[i]);
    }
    kc_run(jobs, build->count);
    bool fine = true;
    for (size_t i = 0; i < build->count; i++)
        fine = fine && jobs[i].status == 0;
    if (fine || !choose_targets(build))
        return kc_judge(jobs, build->count, "clang cannot make PTX of the kernels",
                        build->context->report);
    kc_jobs_finish(jobs, build->count);
    return make_ptx(build, module);
}

// Of libdevice, which need not be there for a check; of printf; LLVM's own.
static bool is_there(const char *name)
{
    return kc_starts_with(name, "__nv_") || kc_starts_with(name, "vprintf") ||
           kc_starts_with(name, "llvm.");
}

// Refuses the kernel if it calls a function that neither library has. `seen`: what the kernels before it come to.
static void check_reached(struct cuda_build *build, const struct kc_module *module,
                          struct kc_kernel *kernel, bool *seen)
{
    bool *reached = kc_module_reach(module, kernel->name);
    for (size_t i = 0; reached && i < module->symbol_count && !kernel->refused; i++) {
        const struct kc_symbol *symbol = &module->symbols[i];
        char whole[512], name[512];
        build->shared = build->shared || (reached[i] && seen[i] && symbol->kind == KC_DEFINED);
        seen[i] = seen[i] || reached[i];
        if (!reached[i] || symbol->kind != KC_DECLARED || is_there(symbol->name))
            continue;
        snprintf(whole, sizeof whole, "%.*s", (int)symbol->length, symbol->name);
        kc_plain_name(symbol, name, sizeof name);
        kc_refuse(build->context, kernel, whole,
                  "uses '%s': function '%s' is not there for CUDA: define it in the source, or do "
                  "without it (docs/kernels.md lists what is)",
                  name, name);
    }
    build->context->report->failed = build->context->report->failed || !reached;
    free(reached);
}

// `ir` is the optimised module, and no longer the caller's.
static bool check_complete(struct cuda_build *build, char *ir)
{
    struct kc_module module;
    bool *seen = NULL;
    const bool fine =
        kc_module_read(ir, &module) && (seen = calloc(module.symbol_count + 1, sizeof *seen));
    build->shared = false;
    for (size_t i = 0; i < build->kernels->count && fine; i++)
        check_reached(build, &module, &build->kernels->items[i], seen);
    free(seen);
    kc_module_finish(&module);
    return fine || kc_error(build->context->report, "no memory for the kernels' module");
}

static bool finish_ptx(const struct cuda_build *build, const char *architecture, bool first)
{
    struct weir_long_text *report = build->context->report;
    char path[PATH_SIZE], message[512];
    char *ptx;
    size_t size;
    path_of(build, architecture, "ptx", path);
    if (!kc_read(path, &ptx, &size, report))
        return false;
    if (first)
        kc_check_memory(build->context, ptx, build->kernels);
    char *changed = weir_ptx_for_cuda(ptx, size, message, sizeof message);
    const bool fine = changed ? kc_write(path, changed, report) : kc_error(report, message);
    free(changed);
    free(ptx);
    return fine;
}

// Runs the tool, with `option` if it is not NULL, for each architecture.
static bool run_each(const struct cuda_build *build, const struct kc_list *architectures,
                     const char *tool, const char *option, const char *in_suffix,
                     const char *out_suffix)
{
    struct kc_job jobs[ARCHITECTURES_MOST] = {{0}};
    char arch[ARCHITECTURES_MOST][32], what[PATH_SIZE];
    char ins[ARCHITECTURES_MOST][PATH_SIZE], outs[ARCHITECTURES_MOST][PATH_SIZE];
    const char *slash = strrchr(tool, '/');
    for (size_t i = 0; i < architectures->count; i++) {
        snprintf(arch[i], sizeof arch[i], "-arch=sm_%s", architectures->items[i]);
        path_of(build, architectures->items[i], in_suffix, ins[i]);
        path_of(build, architectures->items[i], out_suffix, outs[i]);
        KC_ADD(&jobs[i], tool, arch[i], ins[i], "-o", outs[i], option);
    }
    snprintf(what, sizeof what, "%s does not take the kernels", slash ? slash + 1 : tool);
    return kc_run_well(jobs, architectures->count, what, build->context->report);
}

static bool same_blocks(const struct kc_kernels *kernels)
{
    size_t i = 1;
    while (i < kernels->count && memcmp(kernels->items[i].block, kernels->items[0].block,
                                        sizeof kernels->items[0].block) == 0)
        i++;
    return i >= kernels->count;
}

// Beside ptxas.
static bool find_nvlink(const struct cuda_build *build, char out[PATH_SIZE])
{
    const char *ptxas = build->context->tools->ptxas, *slash = strrchr(ptxas, '/');
    snprintf(out, PATH_SIZE, "%.*snvlink", slash ? (int)(slash + 1 - ptxas) : 0, ptxas);
    return access(out, X_OK) == 0;
}

// ptxas makes a function anew for each kernel that calls it. For huge ones it is told to make each once, and nvlink
// joins them: 20 functions of hashcat's m13732 took 12 s before, and 3. A function then has no more registers than
// the largest of the blocks leaves, so all blocks are to be the same.
static bool make_cubins(const struct cuda_build *build, const struct kc_list *cubins)
{
    const char *ptxas = build->context->tools->ptxas;
    char nvlink[PATH_SIZE];
    if (!build->huge || !build->shared || !same_blocks(build->kernels) ||
        !find_nvlink(build, nvlink))
        return run_each(build, cubins, ptxas, NULL, "ptx", "cubin");
    return run_each(build, cubins, ptxas, "-c", "ptx", "o") &&
           run_each(build, cubins, nvlink, NULL, "o", "cubin");
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
        if (!kc_read(path, &data, &image->size, build->context->report))
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
        fine = kc_error(build->context->report, "no memory for the kernels' module");
    fine = fine && kc_write(path, out.text, build->context->report);
    free(out.text);
    free(reached);
    return fine;
}

static bool change(const struct cuda_build *build, const char *linked, struct weir_long_text *out,
                   bool *out_images)
{
    char *ir;
    size_t size;
    if (!kc_read(linked, &ir, &size, build->context->report))
        return false;
    *out_images = kc_change_module(build->context, build->kernels, ir, out);
    free(ir);
    return !out->failed || kc_error(build->context->report, "no memory for the kernels' module");
}

// The module `kept`, linked, changed and optimised, goes to the file `out`, and its text to *out_ir, which is the
// caller's.
static bool make_module(struct cuda_build *build, const char *kept, const char *out, char **out_ir)
{
    struct weir_long_text changed = {0};
    char linked[PATH_SIZE];
    bool images;
    snprintf(linked, sizeof linked, "%s/linked.ll", build->context->folder);
    const bool fine = link_libraries(build, kept, linked) &&
                      change(build, linked, &changed, &images) &&
                      kc_optimise(build->context, changed.text, images, out, out_ir, &build->huge);
    free(changed.text);
    return fine;
}

// Again without the kernels that are found to be refused, if they are to be skipped.
static bool make_code(struct cuda_build *build, const struct kc_module *module)
{
    char kept[PATH_SIZE], optimised[PATH_SIZE], *ir;
    bool any = true;
    snprintf(kept, sizeof kept, "%s/reached.ll", build->context->folder);
    snprintf(optimised, sizeof optimised, "%s/optimised.ll", build->context->folder);
    while (any) {
        if (!write_reached(build, module, kept) || !make_module(build, kept, optimised, &ir) ||
            !check_complete(build, ir) || !make_ptx(build, optimised))
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
                               .kernels = kernels,
                               .library = kc_library_needed(module->text)};
    if (ptx->count + cubins->count > ARCHITECTURES_MOST)
        return kc_error(context->report, "more than 16 CUDA images in one bundle");
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
