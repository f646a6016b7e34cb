// Both forms are compiled here, to bundles in memory, and run on the device that the configuration
// names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "cli/kernels/kernels.h"
#include "cli/runtime/open.h"
#include "kernels/compare/compare.h"

static const char about[] = "Runs the kernels twice, as OpenCL C and as CUDA C++ or the images "
                            "named, on the CUDA device that\n"
                            "the configuration names, with the arguments of the cases in a JSON "
                            "file, and compares what they\n"
                            "write. On another device it says so, and only runs the OpenCL C.";

struct request {
    struct kernels_source source;
    struct kernels_twin twin;
    const char *cases;
    const char *architecture;
    struct kernels_architectures all; // "90a", or none
    struct kernels_architectures own; // of the OpenCL C: "90"
};

static bool take_architectures(struct request *request)
{
    const char *text = request->architecture ? request->architecture : "90";
    char number[16];
    if (!kernels_architectures_parse("arch", text, request->twin.cuda != NULL, &request->all))
        return false;
    if (request->all.count != 1) {
        cli_error("--arch takes one architecture, such as 90, not '%s'", text);
        return false;
    }
    snprintf(number, sizeof number, "%lu", strtoul(text, NULL, 10));
    return kernels_architectures_parse("arch", number, false, &request->own);
}

static bool parse(struct request *request, int argc, char **argv, int *out_exit)
{
    const struct cli_option options[] = {
        {"cases", "FILE", "the cases, as JSON; weir-kernels(1) has their form", CLI_FILE,
         &request->cases, 0, 0},
        {"arch", "A", "the architecture of the device; without it, 90", CLI_TEXT,
         &request->architecture, 0, 0},
        {"cuda", "FILE.cu", "the same kernels in CUDA C++", CLI_FILE, &request->twin.cuda, 0, 0},
        {"nvcc-option", "O", "an option of nvcc for it; may be repeated", CLI_LIST,
         &request->twin.nvcc_options, 0, 0},
        {"cuda-image", "FILE", "a cubin or PTX of the same kernels; may be\nrepeated", CLI_FILES,
         &request->twin.images, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM_PLAIN("weir kernels compare", about, "weir-kernels(1)", options);
    if (!kernels_parse(&request->source, usage, argc, argv, out_exit))
        return false;
    *out_exit = CLI_USAGE;
    if (!request->cases)
        cli_error("weir kernels compare needs --cases FILE, the launches to compare");
    else if (!request->twin.cuda && request->twin.images.count == 0)
        cli_error("weir kernels compare needs --cuda FILE.cu or --cuda-image FILE, the other form");
    else
        return kernels_twin_take(&request->twin, false, &request->source) &&
               take_architectures(request);
    return false;
}

// Bundles.

struct made {
    struct weir_bundle bundle;
    struct weir_kernel_signature *kernels;
    struct weir_parameter *parameters;
    struct weir_image *images;
    char target[KC_TARGET_SIZE];
};

static weir_scalar scalar_of(const char *name)
{
    static const char *const names[] = {
        [WEIR_SCALAR_I8] = "I8",   [WEIR_SCALAR_U8] = "U8",   [WEIR_SCALAR_I16] = "I16",
        [WEIR_SCALAR_U16] = "U16", [WEIR_SCALAR_I32] = "I32", [WEIR_SCALAR_U32] = "U32",
        [WEIR_SCALAR_I64] = "I64", [WEIR_SCALAR_U64] = "U64", [WEIR_SCALAR_F32] = "F32",
        [WEIR_SCALAR_F64] = "F64"};
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (weir_scalar)i;
    return WEIR_SCALAR_OTHER;
}

static struct weir_parameter parameter_of(const struct kc_parameter *from)
{
    static const weir_parameter_kind kinds[] = {[KC_BUFFER] = WEIR_PARAMETER_BUFFER,
                                                [KC_VALUE] = WEIR_PARAMETER_VALUE,
                                                [KC_LOCAL] = WEIR_PARAMETER_LOCAL};
    return (struct weir_parameter){.struct_size = sizeof(struct weir_parameter),
                                   .name = from->name,
                                   .type_name = from->type,
                                   .kind = kinds[from->kind],
                                   .writable = from->writable,
                                   .scalar = scalar_of(from->scalar),
                                   .size = from->size};
}

static void take_kernels(struct made *made, const struct kc_kernels *kernels)
{
    struct weir_parameter *parameter = made->parameters;
    for (size_t i = 0; i < kernels->count; i++) {
        const struct kc_kernel *from = &kernels->items[i];
        made->kernels[i] =
            (struct weir_kernel_signature){.struct_size = sizeof *made->kernels,
                                           .name = from->name,
                                           .parameters = parameter,
                                           .parameter_count = (uint32_t)from->parameter_count,
                                           .required_block = {from->block[0], from->block[1],
                                                              from->block[2]}};
        for (size_t p = 0; p < from->parameter_count; p++)
            *parameter++ = parameter_of(&from->parameters[p]);
    }
}

static void add_image(struct made *made, const char *format, const char *target, const void *data,
                      size_t size)
{
    made->images[made->bundle.image_count++] =
        (struct weir_image){.struct_size = sizeof(struct weir_image),
                            .format = format,
                            .target = target,
                            .data = data,
                            .size = size};
}

static void take_images(struct made *made, const struct kc_result *result)
{
    add_image(made, WEIR_IMAGE_OPENCL_C, made->target, result->text.text, result->text.used);
    for (size_t i = 0; i < result->images.count; i++) {
        const struct kc_image *image = &result->images.items[i];
        add_image(made, strcmp(image->format, "PTX") == 0 ? WEIR_IMAGE_PTX : WEIR_IMAGE_CUBIN,
                  image->target, image->data, image->size);
    }
    if (result->twin.used > 0)
        add_image(made, WEIR_IMAGE_TWIN, "", result->twin.text, result->twin.used);
}

static size_t count_parameters(const struct kc_kernels *kernels)
{
    size_t count = 0;
    for (size_t i = 0; i < kernels->count; i++)
        count += kernels->items[i].parameter_count;
    return count;
}

// What the result holds is not copied.
static bool make(struct made *made, const struct kc_language *language,
                 const struct kc_result *result, const char *name)
{
    const size_t kernels = result->kernels.count;
    made->kernels = calloc(kernels + 1, sizeof *made->kernels);
    made->parameters = calloc(count_parameters(&result->kernels) + 1, sizeof *made->parameters);
    made->images = calloc(result->images.count + 2, sizeof *made->images);
    if (!made->kernels || !made->parameters || !made->images) {
        cli_error("no memory for the kernels");
        return false;
    }
    made->bundle = (struct weir_bundle){.struct_size = sizeof made->bundle,
                                        .name = name,
                                        .kernels = made->kernels,
                                        .kernel_count = (uint32_t)kernels,
                                        .images = made->images};
    kc_source_target(language, made->target);
    take_kernels(made, &result->kernels);
    take_images(made, result);
    return true;
}

static void finish(struct made *made)
{
    free(made->kernels);
    free(made->parameters);
    free(made->images);
}

static bool can_make_images(struct request *request)
{
    const struct kc_tools *tools = &request->source.build.tools;
    const char *lack = kc_tools_lack(tools, true);
    if (!lack && request->twin.cuda)
        lack = kc_tools_lack_nvcc(tools);
    if (lack)
        cli_error("%s", lack);
    return !lack;
}

// PTX too, which drivers of later GPUs take.
static void name_images(struct kc_build *build, struct kernels_architectures *architectures)
{
    build->cubins = build->ptx = kernels_architectures_list(architectures);
}

// What compilers say of the OpenCL C was told.
static int compile_twin(const struct kc_build *build, struct kc_result *result)
{
    struct weir_long_text report = {0};
    const bool fine = kc_build(build, result, &report);
    if (!fine)
        kernels_print_report(&report);
    free(report.text);
    return fine ? CLI_OK : CLI_FAILED;
}

static int compare(struct request *request, weir_runtime *runtime, bool cuda)
{
    struct kc_build twin = request->source.build, own = request->source.build;
    struct kc_result twin_result = {0}, own_result = {0};
    struct made twin_made = {0}, own_made = {0};
    own.twin = (struct kc_twin){0};
    if (cuda && twin.twin.source)
        name_images(&twin, &request->all);
    if (cuda)
        name_images(&own, &request->own);
    int code = kernels_compile(&own, &own_result);
    if (code == CLI_OK)
        code = compile_twin(&twin, &twin_result);
    if (code == CLI_OK &&
        (!make(&twin_made, &twin.language, &twin_result, twin.sources.files.items[0]) ||
         !make(&own_made, &own.language, &own_result, own.sources.files.items[0])))
        code = CLI_FAILED;
    if (code == CLI_OK) {
        const struct compare_params params = {.twin = &twin_made.bundle,
                                              .opencl = &own_made.bundle,
                                              .cases = request->cases,
                                              .runtime = runtime};
        code = compare_kernels(&params) == 0 ? CLI_OK : CLI_FAILED;
    }
    finish(&twin_made);
    finish(&own_made);
    kc_result_finish(&twin_result);
    kc_result_finish(&own_result);
    return code;
}

int kernels_compare_main(int argc, char **argv)
{
    struct request request = {0};
    weir_runtime *runtime = NULL;
    weir_device *none = NULL;
    int code;
    if (!parse(&request, argc, argv, &code))
        return code;
    if (cli_open(NULL, NULL, &runtime) < 0)
        return cli_weir_error();
    const bool cuda = strcmp(weir_runtime_backend(runtime), "cuda") == 0;
    code = !cuda || can_make_images(&request) ? compare(&request, runtime, cuda) : CLI_SETUP;
    return cli_close(&none, &runtime, code);
}
