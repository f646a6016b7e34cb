#include <stdlib.h>

#include "kernels/compiler/compiler.h"

static bool refuse(struct weir_long_text *report, const char *lack)
{
    weir_long_text_add(report, "error: %s\n", lack);
    return false;
}

// Also a check needs libclc; without it the kernels are only held against OpenCL C. With a twin the
// OpenCL C is checked all the same, and its own images are not made.
static bool make_images(const struct kc_build *build, const struct kc_tools *tools,
                        const char *folder, struct kc_result *result, struct weir_long_text *report)
{
    const struct kc_list none = {NULL, 0};
    const bool own = !kc_twin_is_there(&build->twin);
    const bool wanted = build->ptx.count + build->cubins.count > 0;
    const char *lack =
        own ? kc_tools_lack(tools, build->cubins.count > 0) : kc_tools_lack_nvcc(tools);
    if (wanted && lack)
        return refuse(report, lack);
    return (tools->libclc[0] == '\0' ||
            kc_cuda_images(tools, &build->language, result->text.text, &result->kernels, folder,
                           own ? &build->ptx : &none, own ? &build->cubins : &none, &result->images,
                           report)) &&
           (own || kc_twin_images(build, tools, folder, result, report));
}

bool kc_build(const struct kc_build *build, struct kc_result *result, struct weir_long_text *report)
{
    struct kc_tools tools = build->tools;
    char folder[512];
    kc_tools_find(&tools);
    bool fine =
        kc_join(&build->sources, &build->folders, &build->definitions, &result->text, report) &&
        kc_folder_create(folder, sizeof folder, report);
    if (fine) {
        fine = kc_signatures(&tools, &build->language, result->text.text, folder, &result->kernels,
                             report) &&
               make_images(build, &tools, folder, result, report);
        kc_folder_remove(folder);
    }
    if (fine && build->bundle)
        fine = kc_bundle_write(build->bundle, &build->language, result, report);
    report->failed = report->failed || (!fine && !report->text); // what nothing was said of
    return fine;
}

void kc_result_finish(struct kc_result *result)
{
    free(result->text.text);
    free(result->twin.text);
    kc_kernels_finish(&result->kernels);
    kc_images_finish(&result->images);
    *result = (struct kc_result){0};
}
