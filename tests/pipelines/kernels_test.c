// Kernels that do not fit the pipeline: this program has another bundle in
// place of the real one, whose source and list of kernels the tests change.
#include <stdio.h>
#include <string.h>

#include "kernels/arr_coc/arr_coc.h"
#include "tests/pipelines/rig.h"

#define KERNELS 7

static struct weir_kernel_signature signatures[KERNELS];
static struct weir_image image;

const struct weir_bundle arr_coc_kernels = {
    .struct_size = sizeof arr_coc_kernels,
    .name = "arr_coc",
    .kernels = signatures,
    .kernel_count = KERNELS,
    .images = &image,
    .image_count = 1,
};

static const char *const names[KERNELS] = {
    "texture_position", "position_means",  "texture_image",   "patch_scores",
    "relevance",        "allocate_tokens", "compress_tokens",
};

// Kernels with the names above, without parameters, preceded by `source`.
static void set_bundle(const char *source)
{
    static char text[2048];
    size_t used = (size_t)snprintf(text, sizeof text, "%s\n", source);

    for (int i = 0; i < KERNELS; i++) {
        signatures[i] =
            (struct weir_kernel_signature){.struct_size = sizeof signatures[i], .name = names[i]};
        used += (size_t)snprintf(text + used, sizeof text - used, "__kernel void %s(void) {}\n",
                                 names[i]);
    }
    image = (struct weir_image){.struct_size = sizeof(struct weir_image),
                                .target = "",
                                .format = WEIR_IMAGE_OPENCL_C,
                                .data = text,
                                .size = used};
}

static void expect_create_fails(weir_status wanted, const char *part, const char *second_part)
{
    const struct weir_arr_coc_sizes sizes = {64, 4, 256};
    weir_arr_coc *arr_coc = NULL;
    struct rig rig;

    ASSERT_TRUE(rig_open(&rig, 0, RIG_SMALL_WEIGHTS));
    const struct weir_arr_coc_params params = rig_params(&rig, &sizes, 100);
    EXPECT_INT_EQ(weir_arr_coc_create(&params, &arr_coc), wanted);
    EXPECT_NULL(arr_coc);
    EXPECT_CONTAINS(weir_last_error_text(), part);
    EXPECT_CONTAINS(weir_last_error_text(), second_part);
    rig_close(&rig);
}

WEIR_TEST(ArrCocKernels, Missing)
{
    set_bundle("");
    signatures[KERNELS - 1].name = "compress_token";
    expect_create_fails(WEIR_ERROR_NOT_FOUND, "compress_tokens", "compress_token");
}

WEIR_TEST(ArrCocKernels, DoNotBuild)
{
    set_bundle("this is no OpenCL C");
    expect_create_fails(WEIR_ERROR_BUILD, "arr-coc", "error");
}

WEIR_TEST(ArrCocKernels, NoImageForTheDevice)
{
    set_bundle("");
    image.format = WEIR_IMAGE_PTX;
    expect_create_fails(WEIR_ERROR_UNSUPPORTED, "arr-coc", "image");
}

WEIR_TEST(ArrCocKernels, OtherParameters)
{
    set_bundle("");
    expect_create_fails(WEIR_ERROR_INVALID, "texture_position", "0");
}
