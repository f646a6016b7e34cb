// The products of matrices, against float64: those that kernels compute; and those that cuBLAS computes, the tests'
// libcublas on the tests' libcuda, or the real ones. WEIR_TEST_CUBLAS is the path of a libcublas.so that the dynamic
// linker does not find, and WEIR_TEST_FAKE says that these are the tests' own.
#include <math.h>

#include "base/random.h"
#include "kernels/train/train_bf16.h"
#include "kernels/train/train_f32.h"
#include "pipelines/train/product.h"
#include "tests/pipelines/train/rig.h"

// Factors are multiples of 1/8 of 5 bits, which bfloat16 holds. Results lie inside a buffer; what is around them must
// stay.

enum {
    LEAST_AROUND = 256, // bytes before and after a result
    MARK = 0x3f
};

// A tile, parts of one and several, sides of one, depths above the least for several parts.
static const struct {
    uint32_t m, n, k;
} sizes[] = {{1, 1, 1},     {64, 64, 16}, {65, 63, 17},  {5, 130, 33},
             {130, 70, 64}, {3, 7, 2047}, {9, 10, 2048}, {65, 3, 5000}};

struct factor {
    float *values;
    void *stored; // as elements
    size_t count, bytes;
};

static struct factor make(bool bf16, size_t count, uint64_t seed)
{
    struct factor factor = {rig_alloc(count, sizeof(float)), rig_alloc(count, sizeof(float)), count,
                            count * (bf16 ? 2 : 4)};
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        const float value = (float)((int)(weir_random(seed, 5, i) % 31) - 15) / 8.0f;
        factor.values[i] = value;
        memcpy(&bits, &value, sizeof bits);
        if (bf16)
            ((uint16_t *)factor.stored)[i] = (uint16_t)(bits >> 16);
        else
            ((float *)factor.stored)[i] = value;
    }
    return factor;
}

static void free_factor(struct factor *factor)
{
    free(factor->values);
    free(factor->stored);
}
#define own_factor OWN(free_factor) struct factor

// The product at one place, exactly: all sums are below 2^24 of their unit.
static double exact(const struct train_product *p, const float *a, const float *b, uint32_t row,
                    uint32_t column)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->k; i++)
        sum += (double)a[p->turned_a ? (size_t)i * p->m + row : (size_t)row * p->k + i] *
               (double)b[p->turned_b ? (size_t)column * p->k + i : (size_t)i * p->n + column];
    return sum;
}

// A result begins where a launch's argument may.
static size_t around_of(const struct test_device *rig)
{
    const size_t alignment = (size_t)weir_device_limits(rig->device)->argument_alignment_bytes;
    return alignment > LEAST_AROUND ? alignment : LEAST_AROUND;
}

static void check_result(const struct train_product *p, const float *a, const float *b,
                         const unsigned char *bytes, double before)
{
    const size_t around = p->c.offset;
    const size_t count = (size_t)p->m * p->n;
    OWN_MEMORY float *values = rig_alloc(count, sizeof *values);
    memcpy(values, bytes + around, count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        const double wanted =
            exact(p, a, b, (uint32_t)(i / p->n), (uint32_t)(i % p->n)) + (p->add ? before : 0);
        if ((double)values[i] != wanted)
            EXPECT_DOUBLE_EQ((double)values[i], wanted);
    }
    for (size_t i = 0; i < around; i++) {
        EXPECT_UINT_EQ(bytes[i], MARK);
        EXPECT_UINT_EQ(bytes[around + count * sizeof(float) + i], MARK);
    }
}

static void check_product(const struct test_device *rig, struct train_engine engine,
                          struct train_product product)
{
    weir_queue *queue = rig->queue;
    const size_t around = around_of(rig);
    const size_t result = (size_t)product.m * product.n * sizeof(float);
    const size_t size = result + 2 * around;
    const float before = 3;
    const unsigned char mark = MARK;
    own_factor a = make(engine.bf16, (size_t)product.m * product.k, 1);
    own_factor b = make(engine.bf16, (size_t)product.k * product.n, 2);
    const uint64_t parts = train_product_divide(&product);
    engine.parts = parts ? rig_buffer(rig, parts) : NULL;
    product.a = (struct train_range){rig_buffer(rig, a.bytes), 0, a.bytes};
    product.b = (struct train_range){rig_buffer(rig, b.bytes), 0, b.bytes};
    product.c = (struct train_range){rig_buffer(rig, size), around, result};
    OWN_MEMORY unsigned char *bytes = rig_alloc(size, 1);
    EXPECT_OK(weir_upload(queue, product.a.buffer, 0, a.stored, a.bytes));
    EXPECT_OK(weir_upload(queue, product.b.buffer, 0, b.stored, b.bytes));
    EXPECT_OK(weir_queue_fill(queue, product.c.buffer, 0, size, &mark, 1));
    EXPECT_OK(weir_queue_fill(queue, product.c.buffer, around, result, &before, sizeof before));
    EXPECT_OK(train_product_prepare(&engine, &product));
    // The tests' libcublas computes when it is called.
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_OK(train_product_submit(&engine, queue, &product));
    EXPECT_OK(weir_download(queue, bytes, product.c.buffer, 0, size));
    check_result(&product, a.values, b.values, bytes, (double)before);
    weir_buffer_destroy(&product.a.buffer);
    weir_buffer_destroy(&product.b.buffer);
    weir_buffer_destroy(&product.c.buffer);
    weir_buffer_destroy(&engine.parts);
}

// Of both orders of both factors, alone and added to what is there.
static void check_products(const struct test_device *rig, const struct train_engine *engine)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < 8; form++) {
            const struct train_product product = {.m = sizes[i].m,
                                                  .n = sizes[i].n,
                                                  .k = sizes[i].k,
                                                  .turned_a = form & 1,
                                                  .turned_b = form & 2,
                                                  .add = form & 4};
            weir_test_note("%u x %u x %u, form %d", product.m, product.n, product.k, form);
            check_product(rig, *engine, product);
        }
    weir_test_note(NULL);
}

// --- by kernels ---

static void run_kernels(const struct test_device *rig, const struct weir_bundle *bundle, bool bf16)
{
    struct train_engine engine = {.bf16 = bf16};
    own_program program = NULL;
    ASSERT_OK(weir_program_load(rig->device, bundle, &program));
    ASSERT_OK(weir_kernel_create(program, "product", &engine.product));
    ASSERT_OK(weir_kernel_create(program, "sum_parts", &engine.sum_parts));
    check_products(rig, &engine);
    weir_kernel_destroy(&engine.product);
    weir_kernel_destroy(&engine.sum_parts);
}

DEVICE_TEST(TrainProduct, OfKernelsIsExact, rig)
{
    run_kernels(rig, &train_f32_kernels, false);
    run_kernels(rig, &train_bf16_kernels, true);
}

// Whole numbers, whose sums are exact.
static void check_columns(const struct test_device *rig, const struct train_engine *engine,
                          uint32_t rows, uint32_t columns, bool add)
{
    const size_t count = (size_t)rows * columns;
    const float three = 3;
    OWN_MEMORY float *values = rig_alloc(count, sizeof *values);
    OWN_MEMORY double *wanted = rig_alloc(columns, sizeof *wanted);
    OWN_MEMORY float *sums = rig_alloc(columns, sizeof *sums);
    struct train_engine with_parts = *engine;
    const uint64_t parts = train_columns_divide(rows, columns);
    with_parts.parts = parts ? rig_buffer(rig, parts) : NULL;
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(int)(i * 2654435761u % 15) - 7;
        wanted[i % columns] += (double)values[i];
    }
    struct train_columns c = {.from = {rig_buffer(rig, count * sizeof *values), 0,
                                       count * sizeof *values},
                              .to = {rig_buffer(rig, columns * sizeof *sums), 0,
                                     columns * sizeof *sums},
                              .rows = rows,
                              .columns = columns,
                              .add = add};
    EXPECT_OK(weir_upload(rig->queue, c.from.buffer, 0, values, c.from.size));
    EXPECT_OK(weir_queue_fill(rig->queue, c.to.buffer, 0, c.to.size, &three, sizeof three));
    EXPECT_OK(train_columns_submit(&with_parts, rig->queue, &c));
    EXPECT_OK(weir_download(rig->queue, sums, c.to.buffer, 0, c.to.size));
    for (uint32_t i = 0; i < columns; i++)
        EXPECT_DOUBLE_EQ((double)sums[i], wanted[i] + (add ? 3 : 0));
    weir_buffer_destroy(&c.from.buffer);
    weir_buffer_destroy(&c.to.buffer);
    weir_buffer_destroy(&with_parts.parts);
}

DEVICE_TEST(TrainProduct, SumsOfColumnsAreExact, rig)
{
    static const uint32_t shapes[][2] = {{1, 1},    {15, 17},   {16, 16},   {2047, 3},
                                         {2048, 3}, {5000, 33}, {200000, 2}};
    struct train_engine engine = {NULL};
    own_program program = NULL;
    ASSERT_OK(weir_program_load(rig->device, &train_f32_kernels, &program));
    ASSERT_OK(weir_kernel_create(program, "column_sums", &engine.column_sums));
    ASSERT_OK(weir_kernel_create(program, "sum_parts", &engine.sum_parts));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int add = 0; add < 2; add++) {
            weir_test_note("%u x %u, add %d", shapes[i][0], shapes[i][1], add);
            check_columns(rig, &engine, shapes[i][0], shapes[i][1], add);
        }
    weir_test_note(NULL);
    weir_kernel_destroy(&engine.column_sums);
    weir_kernel_destroy(&engine.sum_parts);
}

// --- by cuBLAS ---

// NULL: the one that the linker finds.
static const char *cublas_path(void)
{
    const char *path = getenv("WEIR_TEST_CUBLAS");
    return path && *path ? path : NULL;
}

static weir_status open_blas(const struct test_device *rig, struct train_blas **out_blas)
{
    return train_blas_open(rig->device, cublas_path(), out_blas);
}

DEVICE_TEST(TrainBlas, ProductsAreExact, rig)
{
    struct train_engine engine = {NULL};
    ASSERT_OK(open_blas(rig, &engine.blas));
    check_products(rig, &engine);
    engine.bf16 = true;
    check_products(rig, &engine);
    train_blas_close(&engine.blas);
}

static void expect_not_opened(const struct test_device *rig, const char *path, weir_status wanted,
                              const char *part)
{
    struct train_blas *blas;
    EXPECT_FAILURE(train_blas_open(rig->device, path, &blas), wanted, part);
    EXPECT_NULL(blas);
}

DEVICE_TEST(TrainBlas, WithoutALibrary, rig)
{
    expect_not_opened(rig, "/none/libcublas.so", WEIR_ERROR_UNSUPPORTED,
                      "the library cannot be opened: /none/libcublas.so");
    expect_not_opened(rig, "libm.so.6", WEIR_ERROR_UNSUPPORTED,
                      "the library lacks the function cublasCreate_v2");
}

DEVICE_TEST(TrainBlas, ALibraryThatRefuses, rig)
{
    struct train_engine engine = {0};
    struct train_product product = {.m = 1, .n = 1, .k = 1, .engine = &engine};
    if (!getenv("WEIR_TEST_FAKE"))
        WEIR_SKIP("only the tests' libcublas refuses");
    ASSERT_INT_EQ(setenv("FAKE_CUBLAS", "create", 1), 0);
    expect_not_opened(rig, NULL, WEIR_ERROR_DEVICE, "cuBLAS refused the device");
    ASSERT_INT_EQ(setenv("FAKE_CUBLAS", "multiply", 1), 0);
    ASSERT_OK(open_blas(rig, &engine.blas));
    EXPECT_FAILURE(weir_queue_native_array(rig->queue, train_blas_multiply, &product, NULL, 0),
                   WEIR_ERROR_DEVICE, "cuBLAS refused a product");
    EXPECT_STR_EQ(weir_last_error()->native_call, "cublasGemmEx");
    unsetenv("FAKE_CUBLAS");
    ASSERT_OK(weir_queue_recover(rig->queue));
    train_blas_close(&engine.blas);
}

// On a real GPU: the gradients of both ways.
DEVICE_TEST(TrainBlas, GivesTheGradientsOfKernels, rig)
{
    float result[2];
    if (getenv("WEIR_TEST_FAKE"))
        WEIR_SKIP("the kernels of models need a GPU");
    for (int network = 0; network < RIG_NETWORKS; network++) {
        float *gradients[2];
        struct rig_scene scene;
        struct weir_train_model_params params = rig_params(rig, (enum rig_network)network, 64);
        params.cublas = cublas_path();
        for (int way = 0; way < 2; way++) {
            params.products = way ? WEIR_TRAIN_CUBLAS : WEIR_TRAIN_KERNELS;
            ASSERT_TRUE(rig_scene_open(&scene, rig, &params, 7));
            ASSERT_TRUE(rig_scene_run(&scene, result));
            gradients[way] = rig_scene_gradients(&scene);
            rig_scene_close(&scene);
        }
        for (size_t i = 0; i < scene.parameters; i++)
            EXPECT_NEAR((double)gradients[0][i], (double)gradients[1][i],
                        1e-4 * (1 + fabs((double)gradients[0][i])));
        free(gradients[0]);
        free(gradients[1]);
    }
}
