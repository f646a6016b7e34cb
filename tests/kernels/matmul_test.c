// The matrix product on a device that runs kernels: against float64 with the bound of
// float32 sums, and bit for bit against fma() in the same order; on tensor cores with its own bound. The matrices are
// inside larger buffers full of NaN, so that a read past an edge is noticed.
#include <stdlib.h>
#include <string.h>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_tensor.h"
#include "kernels/matmul/tile.cl.h"
#include "tests/support/device.h"
#include "tests/support/numbers.h"

enum {
    // In floats; a multiple of every device's argument alignment.
    MARGIN = 1024
};

struct size {
    uint32_t m, n, k;
};

// One element, exact tiles, one more or less on every side, long and thin matrices,
// several blocks, nothing to sum.
static const struct size sizes[] = {
    {1, 1, 1},      {128, 64, 16},  {256, 128, 64}, {129, 65, 17}, {127, 63, 15},
    {1, 300, 7},    {300, 1, 7},    {5, 3, 1000},   {200, 33, 1},  {128, 64, 15},
    {128, 64, 17},  {130, 64, 32},  {128, 70, 32},  {37, 211, 83}, {8, 16, 48},
    {257, 193, 31}, {384, 320, 48}, {512, 512, 64}, {130, 70, 0},
};

// The product in float, and the one on tensor cores, which CUDA devices have.
struct form {
    const struct weir_bundle *bundle;
    bool same_bits; // as fma() in order
    double more;    // of the bound: (k + more) unit
    double unit;
};

static const struct form in_float = {&matmul_kernels, true, 0, 0x1p-24};
static const struct form on_tensor_cores = {&matmul_tensor_kernels, false, 16, 0x1p-23};

static struct test_device on;
static weir_kernel *kernel;

// A matrix in the middle of NaNs, here and on the device.
struct matrix {
    size_t count;
    size_t all; // floats, margins included
    float *host;
    weir_buffer *buffer;
};

static float *at(const struct matrix *matrix)
{
    return matrix->host + MARGIN;
}

static struct matrix make(size_t count)
{
    struct matrix matrix = {.count = count, .all = count + 2 * (size_t)MARGIN};
    const size_t size = matrix.all * sizeof(float);
    matrix.buffer = test_buffer(on.device, "matrix", size, WEIR_PLACE_DEVICE);
    matrix.host = malloc(size);
    if (!matrix.host)
        abort();
    for (size_t i = 0; i < matrix.all; i++)
        matrix.host[i] = NAN;
    return matrix;
}

static void send(const struct matrix *matrix)
{
    EXPECT_OK(weir_upload(on.queue, matrix->buffer, 0, matrix->host, matrix->all * sizeof(float)));
}

static void finish(struct matrix *matrix)
{
    weir_buffer_destroy(&matrix->buffer);
    free(matrix->host);
}

// Between -1 and 1, including some large and small magnitudes.
static void fill(const struct matrix *matrix, uint32_t seed)
{
    uint32_t state = seed;
    for (size_t i = 0; i < matrix->count; i++)
        at(matrix)[i] = ldexpf((float)(int32_t)test_next(&state), -31 + (int)(i % 7));
}

static struct weir_argument range(const struct matrix *matrix, weir_access access)
{
    return (struct weir_argument){.kind = WEIR_PARAMETER_BUFFER,
                                  .access = access,
                                  .buffer = matrix->buffer,
                                  .offset = MARGIN * sizeof(float),
                                  .size = (matrix->count ? matrix->count : 1) * sizeof(float)};
}

static void launch(const struct size *size, const struct matrix *a, const struct matrix *b,
                   const struct matrix *c)
{
    const struct weir_extent grid = weir_dim((size->n + MATMUL_COLUMNS - 1) / MATMUL_COLUMNS,
                                             (size->m + MATMUL_ROWS - 1) / MATMUL_ROWS, 1);
    EXPECT_OK(weir_queue_launch(on.queue, kernel, grid, weir_dim(MATMUL_BLOCK_X, MATMUL_BLOCK_Y, 1),
                                range(a, WEIR_ACCESS_READ), range(b, WEIR_ACCESS_READ),
                                range(c, WEIR_ACCESS_WRITE), size->m, size->n, size->k));
    EXPECT_OK(weir_download(on.queue, c->host, c->buffer, 0, c->all * sizeof(float)));
}

struct found {
    size_t beyond_bound;
    size_t other_bits;
    size_t margins_touched;
};

static struct found compare(const struct form *form, const struct size *size, const float *a,
                            const float *b, const struct matrix *c)
{
    // gamma(k) of the standard model of rounding.
    const double unit = form->unit * (size->k + form->more);
    const double gamma = unit / (1 - unit);
    struct found found = {0};
    for (size_t i = 0; i < size->m; i++)
        for (size_t j = 0; j < size->n; j++) {
            double exact = 0, sizes_of = 0;
            float same = 0;
            for (size_t d = 0; d < size->k; d++) {
                const float x = a[i * size->k + d], y = b[d * size->n + j];
                exact += (double)x * y;
                sizes_of += fabs((double)x * y);
                same = fmaf(x, y, same);
            }
            const float got = at(c)[i * size->n + j];
            found.beyond_bound += !(fabs(got - exact) <= gamma * sizes_of);
            found.other_bits += form->same_bits && test_bits_of(got) != test_bits_of(same);
        }
    for (size_t i = 0; i < MARGIN; i++)
        found.margins_touched += !isnan(c->host[i]) + !isnan(c->host[c->all - 1 - i]);
    return found;
}

static void check(const struct form *form, const struct size *size)
{
    OWN(finish) struct matrix a = make((size_t)size->m * size->k);
    OWN(finish) struct matrix b = make((size_t)size->k * size->n);
    OWN(finish) struct matrix c = make((size_t)size->m * size->n);
    fill(&a, 1 + size->m);
    fill(&b, 100 + size->n);
    send(&a);
    send(&b);
    send(&c);
    launch(size, &a, &b, &c);
    const struct found found = compare(form, size, at(&a), at(&b), &c);
    if (found.beyond_bound || found.other_bits || found.margins_touched)
        weir_test_fail(__FILE__, __LINE__,
                       "%u x %u x %u: %zu beyond the bound, %zu with other bits, %zu past the edge",
                       size->m, size->n, size->k, found.beyond_bound, found.other_bits,
                       found.margins_touched);
}

static void check_sizes(const struct form *form)
{
    own_program program = NULL;
    ASSERT_OK(weir_program_create(
        on.device, WEIR_PARAMS(weir_program, .label = "matmul", .bundle = form->bundle), &program));
    ASSERT_OK(weir_kernel_create(program, "matmul", &kernel));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check(form, &sizes[i]);
    weir_kernel_destroy(&kernel);
}

#define MATMUL_TEST(suite) \
    WEIR_TEST_BETWEEN(suite, AnySize, EXPECT_TRUE(test_device_open(&on)), test_device_close(&on))

MATMUL_TEST(Matmul)
{
    check_sizes(&in_float);
}

// Elsewhere the bundle's kernel is the one in float.
MATMUL_TEST(MatmulOnTensorCores)
{
    if (strcmp(weir_runtime_backend(on.runtime), "cuda") != 0)
        WEIR_SKIP("it needs a CUDA device");
    check_sizes(&on_tensor_cores);
}
