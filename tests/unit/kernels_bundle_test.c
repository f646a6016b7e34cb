// The output of the rule weir_kernels: signatures as the sources declare them,
// and every image. HAVE_CUDA is 1 if the build found a CUDA toolkit.
//
// clang-tidy: -DHAVE_CUDA=1

#include <stdbool.h>
#include <string.h>

#include <weir/program.h>

#include "kernels/arr_coc/arr_coc.h"
#include "kernels/conformance/conformance.h"
#include "tests/support/test.h"

static const struct weir_kernel_signature *find(const struct weir_bundle *bundle, const char *name)
{
    for (uint32_t i = 0; i < bundle->kernel_count; i++)
        if (strcmp(bundle->kernels[i].name, name) == 0)
            return &bundle->kernels[i];
    return NULL;
}

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
    EXPECT_UINT_EQ(conformance_kernels.kernel_count, 21);
    EXPECT_STR_EQ(arr_coc_kernels.name, "//kernels/arr_coc");
    EXPECT_UINT_EQ(arr_coc_kernels.kernel_count, 7);
    EXPECT_NULL(find(&arr_coc_kernels, "vector_add"));
}

WEIR_TEST(Bundle, ReadsEverySizeOfValue)
{
    static const struct {
        const char *type;
        weir_scalar scalar;
        uint32_t size;
    } wanted[] = {
        {"uchar", WEIR_SCALAR_U8, 1},  {"ushort", WEIR_SCALAR_U16, 2},
        {"uint", WEIR_SCALAR_U32, 4},  {"ulong", WEIR_SCALAR_U64, 8},
        {"char", WEIR_SCALAR_I8, 1},   {"short", WEIR_SCALAR_I16, 2},
        {"int", WEIR_SCALAR_I32, 4},   {"long", WEIR_SCALAR_I64, 8},
        {"float", WEIR_SCALAR_F32, 4}, {"struct conformance_values", WEIR_SCALAR_OTHER, 16},
    };
    const struct weir_kernel_signature *kernel = find(&conformance_kernels, "store_values");
    ASSERT_NOT_NULL(kernel);
    ASSERT_UINT_EQ(kernel->parameter_count, 1 + sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct weir_parameter *p = &kernel->parameters[1 + i];
        EXPECT_STR_EQ(p->type_name, wanted[i].type);
        EXPECT_INT_EQ(p->kind, WEIR_PARAMETER_VALUE);
        EXPECT_INT_EQ(p->scalar, wanted[i].scalar);
        EXPECT_UINT_EQ(p->size, wanted[i].size);
    }
}

// What a value consists of, and what a pointer points to.
WEIR_TEST(Bundle, ReadsElements)
{
    static const struct {
        const char *kernel;
        uint32_t parameter;
        weir_scalar element;
        uint32_t width;
        uint32_t alignment;
        uint32_t constant;
    } wanted[] = {
        {"store_values", 4, WEIR_SCALAR_U64, 1, 0, 0},
        {"store_values", 10, WEIR_SCALAR_OTHER, 0, 0, 0},
        {"store_vectors", 0, WEIR_SCALAR_U32, 1, 4, 0},
        {"store_vectors", 1, WEIR_SCALAR_F32, 4, 0, 0},
        {"store_vectors", 2, WEIR_SCALAR_I32, 2, 0, 0},
        {"store_vectors", 3, WEIR_SCALAR_F32, 3, 0, 0},
        {"store_vectors", 4, WEIR_SCALAR_U8, 16, 0, 0},
        {"store_vectors", 5, WEIR_SCALAR_U64, 2, 0, 0},
        {"count_kinds", 0, WEIR_SCALAR_U8, 1, 1, 0},
        {"count_kinds", 1, WEIR_SCALAR_I64, 1, 8, 0},
        {"count_kinds", 2, WEIR_SCALAR_F32, 4, 16, 0},
        {"count_kinds", 3, WEIR_SCALAR_OTHER, 0, 8, 0},
        {"count_kinds", 4, WEIR_SCALAR_U32, 1, 4, 0},
        {"weigh", 0, WEIR_SCALAR_F32, 1, 4, 1},
        {"weigh", 1, WEIR_SCALAR_U32, 1, 4, 0},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct weir_kernel_signature *kernel = find(&conformance_kernels, wanted[i].kernel);
        ASSERT_NOT_NULL(kernel);
        const struct weir_parameter *p = &kernel->parameters[wanted[i].parameter];
        weir_test_note("%s, %s", wanted[i].kernel, p->name);
        EXPECT_INT_EQ(p->element, wanted[i].element);
        EXPECT_UINT_EQ(p->width, wanted[i].width);
        EXPECT_UINT_EQ(p->alignment, wanted[i].alignment);
        EXPECT_UINT_EQ(p->constant, wanted[i].constant);
    }
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
