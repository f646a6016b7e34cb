// See the header. Factors are multiples of 1/8 of 5 bits, which bfloat16 holds.
#include "tests/pipelines/train/product_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

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
static size_t around_of(const struct rig *rig)
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

static void check_product(const struct rig *rig, struct train_engine engine,
                          struct train_product product)
{
    weir_queue *queue = rig->queue;
    const size_t around = around_of(rig);
    const size_t result = (size_t)product.m * product.n * sizeof(float);
    const size_t size = result + 2 * around;
    const float before = 3;
    const unsigned char mark = MARK;
    struct factor a = make(engine.bf16, (size_t)product.m * product.k, 1);
    struct factor b = make(engine.bf16, (size_t)product.k * product.n, 2);
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
    free_factor(&a);
    free_factor(&b);
}

void check_products(const struct rig *rig, const struct train_engine *engine)
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
