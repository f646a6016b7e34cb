// The kernels of device.cl and sub_groups.cl against plain C: what docs/porting.md says to write in
// place of CUDA's device code does what it says.
#include <string.h>
#include <weir/weir.h>

#include "tests/porting/device.h"
#include "tests/porting/sub_groups.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    BLOCK = 64,
    COUNT = 256
};
static const size_t bytes = COUNT * sizeof(uint32_t);

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_buffer *in, *out;
};

// PoCL 5 has OpenCL C 1.2 and 3.0, and refuses 2.0, which sub-groups are built for.
static void refused(void)
{
    if (!strstr(weir_last_error_text(), "doesn't support that OpenCL C version"))
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    else
        weir_test_skip(__FILE__, __LINE__, "this device's OpenCL C does not have version 2.0");
}

static bool start(struct rig *rig, const struct weir_bundle *bundle)
{
    uint32_t numbers[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        numbers[i] = i + 1;
    *rig = (struct rig){0};
    EXPECT_OK(weir_open(NULL, &rig->runtime));
    EXPECT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    EXPECT_OK(weir_queue_create(rig->device, NULL, &rig->queue));
    if (weir_program_create(rig->device, WEIR_PARAMS(weir_program, .bundle = bundle),
                            &rig->program) != WEIR_OK)
        refused();
    rig->in = test_buffer(rig->device, "in", bytes, WEIR_PLACE_DEVICE);
    rig->out = test_buffer(rig->device, "out", bytes, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_upload(rig->queue, rig->in, 0, numbers, bytes));
    return rig->program && rig->in && rig->out;
}

static void finish(struct rig *rig)
{
    weir_buffer_destroy(&rig->out);
    weir_buffer_destroy(&rig->in);
    weir_program_destroy(&rig->program);
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

static void run(struct rig *rig, const char *name, uint32_t out[COUNT])
{
    const uint32_t zero = 0;
    own_kernel kernel = NULL;
    memset(out, 0xff, bytes);
    EXPECT_OK(weir_kernel_create(rig->program, name, &kernel));
    if (!kernel)
        return;
    EXPECT_OK(weir_queue_fill(rig->queue, rig->out, 0, bytes, &zero, sizeof zero));
    EXPECT_OK(weir_queue_launch(rig->queue, kernel, weir_dim(COUNT / BLOCK, 1, 1),
                                weir_dim(BLOCK, 1, 1), weir_in(rig->in, 0, bytes),
                                weir_inout(rig->out, 0, bytes),
                                weir_local(BLOCK * sizeof(uint32_t))));
    EXPECT_OK(weir_download(rig->queue, out, rig->out, 0, bytes));
}

// What the kernels compute, for work-item `i`, which gets the number i + 1.

#define WANTED(name, expression)     \
    static uint32_t name(uint32_t i) \
    {                                \
        (void)i;                     \
        return expression;           \
    }

WANTED(first_of, i / BLOCK * BLOCK + 1)

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

WANTED(sum_of_block, BLOCK *(2 * first_of(i) + BLOCK - 1) / 2)
WANTED(indices, i + 1 + COUNT / BLOCK)
WANTED(number, i + 1)
// The number's bits, as a denormal float or not, are its own.
WANTED(number_as_float, bits_of(0) + i + 1)

static uint32_t transposed(uint32_t i)
{
    const uint32_t t = i % BLOCK;
    return first_of(i) + t % 8 * 8 + t / 8;
}

WANTED(reversed, first_of(i) + BLOCK - 1 - i % BLOCK)

static uint32_t neighbour(uint32_t i)
{
    const uint32_t next = i / BLOCK * BLOCK + (i + 1) % BLOCK;
    return i >= 250 ? 0 : next < 250 ? next + 1 : 0;
}

static uint32_t votes(uint32_t i)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < BLOCK; t++)
        count += (first_of(i) + t) % 3 == 0;
    return count + 100;
}

WANTED(old_values, i % BLOCK > 0 ? 0 : 5 + 8 + 7 + 20 + 10 + 12 + 8 + 9 + 10 + 100)
WANTED(float_sum, bits_of((float)sum_of_block(i)))
WANTED(wrapped_count, BLOCK % 10)
WANTED(wide_sum, 1 + BLOCK - 1)
WANTED(templates, i + 1 + 3 * (4 + 9 + 2 + 3))

static uint32_t weighted(uint32_t i)
{
    static const uint32_t weights[] = {1, 10, 100, 1000};
    return (i + 1) * weights[i % 4];
}

WANTED(is_true, 1)
WANTED(all_conversions, 127)

static uint32_t integers(uint32_t i)
{
    const uint32_t x = i + 1;
    uint32_t ones = 0, zeros = 0, low = 1;
    for (uint32_t bit = 0; bit < 32; bit++)
        ones += x >> bit & 1;
    while (!(x >> (31 - zeros) & 1))
        zeros++;
    while (!(x >> (low - 1) & 1))
        low++;
    return ones + zeros * 2 + low * 100 + 2 + x / 2 + 3 * x + (x > 9 ? x - 9 : 9 - x) +
           (x + 1) / 2 + (x + 2) / 2 + (x > 5 ? x : 5) + (x < 5 ? x : 5);
}

static uint32_t vectors(uint32_t i)
{
    const uint32_t k = i % 64;
    return (2 * (i + 1) + 1) + (3 * k + 3) + (4 * k + 2) + (4 * k + 1) + 1000;
}

WANTED(structures, 3 + i + 1 + 1000)
WANTED(no_error, 0)

// Between the centres of two texels; at the right edge the last one is repeated.
WANTED(textures, 2 * (i + 1) + (i % 16 < 15))
WANTED(short_floats, i + 1 + (i + 1 >= 64 ? 1000 : 0))

static uint32_t four_in_a_row(uint32_t i)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 4; k++)
        sum += (i + k) % COUNT + 1;
    return sum;
}

static const struct row {
    const char *kernel;
    uint32_t (*wanted)(uint32_t i);
} rows[] = {
    {"indices", indices},
    {"grid_stride", number},
    {"functions_and_pointers", number_as_float},
    {"static_shared", transposed},
    {"dynamic_shared", reversed},
    {"no_early_return", neighbour},
    {"votes", votes},
    {"block_sum", sum_of_block},
    {"fences", number},
    {"atomics", old_values},
    {"float_atomics", float_sum},
    {"wrapping_increment", wrapped_count},
    {"wide_atomics", wide_sum},
    {"templates", templates},
    {"constants", weighted},
    {"fast_functions", is_true},
    {"functions", is_true},
    {"conversions", all_conversions},
    {"integers", integers},
    {"vectors", vectors},
    {"structures", structures},
    {"sizes", is_true},
    {"asserts", no_error},
    {"textures", textures},
    {"short_floats", short_floats},
    {"doubles", number},
    {"launch_bounds", four_in_a_row},
    {"blocks_of_memory", number},
};

static void expect(struct rig *rig, const char *kernel, uint32_t (*wanted)(uint32_t i))
{
    uint32_t out[COUNT];
    run(rig, kernel, out);
    for (uint32_t i = 0; i < COUNT; i++)
        if (out[i] != wanted(i)) {
            weir_test_fail(__FILE__, __LINE__, "%s, work-item %u: %u, not %u", kernel, (unsigned)i,
                           (unsigned)out[i], (unsigned)wanted(i));
            return;
        }
}

WEIR_TEST(Porting, Device)
{
    struct rig rig;
    if (start(&rig, &device_kernels))
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            expect(&rig, rows[i].kernel, rows[i].wanted);
    // Every kernel of the file has a row.
    EXPECT_UINT_EQ(device_kernels.kernel_count, sizeof rows / sizeof *rows);
    finish(&rig);
}

WEIR_TEST(Porting, SubGroups)
{
    struct rig rig;
    if (start(&rig, &sub_groups_kernels))
        expect(&rig, "warps", no_error);
    finish(&rig);
}
