// The output of the rule weir_kernels: every image. HAVE_CUDA is 1 if the build found a CUDA toolkit.
//
// clang-tidy: -DHAVE_CUDA=1

#include <stdbool.h>
#include <string.h>

#include <weir/program.h>

#include "kernels/arr_coc/arr_coc.h"
#include "kernels/conformance/conformance.h"
#include "tests/support/test.h"

static const struct weir_image *image_of(const struct weir_bundle *bundle, const char *format,
                                         uint32_t architecture)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(&bundle->images[i], format) &&
            weir_image_sm(&bundle->images[i]) == architecture)
            return &bundle->images[i];
    return NULL;
}

WEIR_TEST(Bundle, NamesItselfAndItsKernels)
{
    EXPECT_UINT_EQ(conformance_kernels.struct_size, sizeof(struct weir_bundle));
    EXPECT_STR_EQ(conformance_kernels.name, "//kernels/conformance");
    EXPECT_STR_EQ(arr_coc_kernels.name, "//kernels/arr_coc");
    EXPECT_UINT_EQ(arr_coc_kernels.kernel_count, 7);
}

// The source is text, complete, and knows where each line came from.
static void expect_source(const struct weir_bundle *bundle, const char *file, const char *kernel)
{
    const struct weir_image *image = image_of(bundle, WEIR_IMAGE_OPENCL_C, 0);
    ASSERT_NOT_NULL(image);
    const char *text = image->data;
    ASSERT_UINT_EQ(strlen(text), image->size);
    EXPECT_CONTAINS(text, file);
    EXPECT_CONTAINS(text, kernel);
    EXPECT_NOT_CONTAINS(text, "#include");
}

WEIR_TEST(Bundle, HoldsItsSource)
{
    expect_source(&conformance_kernels, "#line 1 \"kernels/conformance/conformance.cl\"",
                  "void fused(");
    expect_source(&arr_coc_kernels, "#line 1 \"kernels/arr_coc/color_math.cl.h\"",
                  "void compress_tokens(");
}

static bool is_elf(const struct weir_image *image)
{
    return image->size > 64 && memcmp(image->data, "\177ELF", 4) == 0;
}

static void expect_cuda_images(const struct weir_bundle *bundle, const char *entry)
{
    static const uint32_t cubins[] = {80, 90};
    static const uint32_t ptx[] = {75, 120};
    for (size_t i = 0; i < 2; i++) {
        const struct weir_image *image = image_of(bundle, WEIR_IMAGE_CUBIN, cubins[i]);
        ASSERT_NOT_NULL(image);
        EXPECT_TRUE(is_elf(image));
        image = image_of(bundle, WEIR_IMAGE_PTX, ptx[i]);
        ASSERT_NOT_NULL(image);
        ASSERT_UINT_EQ(strlen(image->data), image->size);
        EXPECT_CONTAINS(image->data, entry);
        // The architecture's own version of PTX, not that of the toolkit.
        EXPECT_CONTAINS(image->data, ptx[i] == 75 ? ".version 6.3\n" : ".version 8.7\n");
    }
}

WEIR_TEST(Bundle, HoldsCudaImagesWhereThereIsAToolkit)
{
    if (HAVE_CUDA) {
        expect_cuda_images(&conformance_kernels, ".entry vector_add(");
        expect_cuda_images(&arr_coc_kernels, ".entry texture_image(");
        return;
    }
    EXPECT_UINT_EQ(conformance_kernels.image_count, 1);
    EXPECT_UINT_EQ(arr_coc_kernels.image_count, 1);
}

// a * b + c is not fused: the kernels write fma() where they need it.
WEIR_TEST(Bundle, FusesNothingUnasked)
{
    const struct weir_image *image = image_of(&conformance_kernels, WEIR_IMAGE_PTX, 75);
    if (!image)
        WEIR_SKIP("built without a CUDA toolkit");
    const char *saxpy = strstr(image->data, ".entry saxpy(");
    ASSERT_NOT_NULL(saxpy);
    EXPECT_CONTAINS(saxpy, "fma.rn.f32");
    const char *texture = image_of(&arr_coc_kernels, WEIR_IMAGE_PTX, 75)->data;
    EXPECT_CONTAINS(texture, "mul.rn.f32");
    EXPECT_NOT_CONTAINS(texture, "mad.rn.f32");
}
