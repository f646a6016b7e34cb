// What kernels/library adds to OpenCL C for CUDA, against its definition in plain C. A kernel says in
// its first result whether the device has the functions; else its test is skipped. On CUDA all are there.
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/library/atomics.h"
#include "tests/kernels/library/atomics64.h"
#include "tests/kernels/library/dot_products.h"
#include "tests/kernels/library/generic.h"
#include "tests/kernels/library/half.h"
#include "tests/kernels/library/linear_ids.h"
#include "tests/kernels/library/sub_groups.h"
#include "tests/kernels/library/work_groups.h"
#include "tests/kernels/library/work_items.h"
#include "tests/support/device.h"
#include "tests/support/numbers.h"

struct run {
    const struct weir_bundle *bundle;
    struct weir_extent grid, block;
    uint32_t *in, *out;
    size_t in_count, out_count;
    bool pocl;
    int pocl_before; // the first version of PoCL that ends the process; 0: none
};

static bool make(struct run *run)
{
    run->in = calloc(run->in_count, sizeof *run->in);
    run->out = calloc(run->out_count, sizeof *run->out);
    return run->in && run->out;
}

static void finish(struct run *run)
{
    free(run->in);
    free(run->out);
}

static void launch(const struct test_device *on, const struct run *run, weir_program *program)
{
    const size_t in_size = run->in_count * sizeof *run->in;
    const size_t out_size = run->out_count * sizeof *run->out;
    own_buffer in = test_buffer(on->device, "in", in_size, WEIR_PLACE_DEVICE);
    own_buffer out = test_buffer(on->device, "out", out_size, WEIR_PLACE_DEVICE);
    own_kernel kernel = NULL;
    ASSERT_OK(weir_kernel_create(program, "run", &kernel));
    EXPECT_OK(weir_upload(on->queue, in, 0, run->in, in_size));
    EXPECT_OK(weir_upload(on->queue, out, 0, run->out, out_size));
    EXPECT_OK(weir_queue_launch(on->queue, kernel, run->grid, run->block, weir_in(in, 0, in_size),
                                weir_inout(out, 0, out_size)));
    EXPECT_OK(weir_download(on->queue, run->out, out, 0, out_size));
}

// False: the device has not these functions, which CUDA must.
static bool execute(struct run *run)
{
    own_test_device on;
    own_program program = NULL;
    if (!test_device_open(&on))
        return false;
    run->pocl = strstr(weir_device_get_info(on.device)->platform, "Portable") != NULL;
    const int version = atoi(weir_device_get_info(on.device)->driver);
    const bool ends = run->pocl && run->pocl_before > 0 && version >= run->pocl_before;
    // PoCL 5 has OpenCL C 1.2 and 3.0, and refuses what is in between.
    if (!ends && weir_program_create(on.device, WEIR_PARAMS(weir_program, .bundle = run->bundle),
                                     &program) != WEIR_OK) {
        if (!run->pocl || !strstr(weir_last_error_text(), "doesn't support that OpenCL C version"))
            weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    } else if (!ends)
        launch(&on, run, program);
    if (strcmp(weir_runtime_backend(on.runtime), "cuda") == 0)
        EXPECT_INT_EQ(run->out[0], 1);
    return run->out[0] == 1;
}

// A test of one bundle, with so many blocks of work-items, and so many words of arguments and results.
#define LIBRARY_TEST(name, subject, blocks, items, in_words, out_words) \
    WEIR_TEST_WITH(Library, name, struct run, run,                      \
                   (*run = (struct run){.bundle = &library_##subject,   \
                                        .grid = blocks,                 \
                                        .block = items,                 \
                                        .in_count = in_words,           \
                                        .out_count = out_words},        \
                    make(run)),                                         \
                   finish(run))
#define SKIP_LACKING(what) WEIR_SKIP("this device's OpenCL C does not have %s", what)

static void expect(const char *what, size_t item, double got, double wanted)
{
    if (!(got == wanted))
        weir_test_fail(__FILE__, __LINE__, "%s, work-item %zu: %.17g, not %.17g", what, item, got,
                       wanted);
}

// Work-items: blocks of 8 x 3 x 2, of which there are 2 x 3 x 2.

enum {
    ITEMS = 16 * 9 * 4
};

LIBRARY_TEST(WorkItems, work_items, weir_dim(2, 3, 2), weir_dim(8, 3, 2), ITEMS, 1 + 3 * ITEMS)
{
    for (uint32_t i = 0; i < ITEMS; i++)
        run->in[i] = i * 7;
    ASSERT_TRUE(execute(run));
    for (size_t i = 0; i < ITEMS; i++) {
        expect("get_global_offset", i, run->out[1 + 3 * i], 0);
        expect("get_work_dim", i, run->out[2 + 3 * i], 3);
        expect("a value", i, run->out[3 + 3 * i], (double)i * 7);
    }
}

LIBRARY_TEST(LinearIds, linear_ids, weir_dim(2, 3, 2), weir_dim(8, 3, 2), ITEMS, 1 + 3 * ITEMS)
{
    if (!execute(run))
        SKIP_LACKING("get_global_linear_id");
    for (size_t i = 0; i < ITEMS; i++) {
        const size_t x = i % 16, y = i / 16 % 9, z = i / 16 / 9;
        expect("get_global_linear_id", i, run->out[1 + 3 * i], (double)i);
        expect("get_local_linear_id", i, run->out[2 + 3 * i],
               (double)((z % 2 * 3 + y % 3) * 8 + x % 8));
        expect("get_enqueued_local_size", i, run->out[3 + 3 * i], 3);
    }
}

// Halves.

enum {
    HALVES = 65536,
    HALF_RESULTS = 22,
    INFINITE = 0x7c00
};

// Halves in their order; both zeros are 0.
static int order_of(uint32_t half)
{
    return half & 0x8000 ? -(int)(half & 0x7fff) : (int)(half & 0x7fff);
}

// The place in that order of `x`, rounded to the nearest ('e', and ties to even), to zero ('z'), up
// ('p') or down ('n').
static int rounded(double x, char mode)
{
    const double size = fabs(x);
    uint32_t low = 0, high = INFINITE;
    if (isinf(x))
        return x < 0 ? -INFINITE : INFINITE;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        *(test_half_value(middle) <= size ? &low : &high) = middle;
    }
    const double below = size - test_half_value(low);
    const double above = (high == INFINITE ? 65536 : test_half_value(high)) - size;
    const bool away = mode == 'e'   ? above < below || (above == below && low % 2 == 1)
                      : mode == 'z' ? false
                                    : below > 0 && (x < 0) == (mode == 'n');
    const int place = (int)(away ? high : low);
    return x < 0 ? -place : place;
}

static double clamped(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

static int after(uint32_t x, uint32_t y)
{
    const int from = order_of(x), to = order_of(y);
    return from < to ? from + 1 : from > to ? from - 1 : from;
}

static void check_floats(size_t i, const uint32_t *in, const uint32_t *got)
{
    const double x = test_half_value(in[0]), y = test_half_value(in[1]), z = test_half_value(in[2]);
    expect("+", i, order_of(got[0]), rounded(x + y, 'e'));
    expect("*", i, order_of(got[1]), rounded(x * y, 'e'));
    expect("fma", i, order_of(got[2]), rounded(x * y + z, 'e'));
    if (abs(order_of(got[3]) - rounded(exp(x), 'e')) > 1)
        expect("exp", i, test_half_value(got[3]), exp(x));
    if (x >= 0)
        expect("sqrt", i, order_of(got[4]), rounded(sqrt(x), 'e'));
    expect("fabs", i, got[5], in[0] & 0x7fff);
    expect("nextafter", i, order_of(got[6]), after(in[0], in[1]));
    if (isfinite(x))
        expect("fmod", i, order_of(got[7]), rounded(fmod(x, y), 'e'));
    expect("isnormal", i, got[16], isfinite(x) && fabs(x) >= 0x1p-14);
    expect("isless", i, (int32_t)got[17], x < y ? -1 : 0);
    expect("select", i, got[18], in[2]);
    expect("isinf", i, (int32_t)got[21], isinf(x) ? -1 : 0);
    expect("fmax", i, order_of(got[20]), order_of(x > y ? in[0] : in[1]));
}

static void check_conversions(size_t i, const uint32_t *in, const uint32_t *got)
{
    const double x = test_half_value(in[0]);
    const double f = test_float_of(in[3]);
    expect("convert_float", i, test_float_of(got[8]), x);
    expect("convert_int_sat_rte", i, (int32_t)got[9], clamped(rint(x), INT32_MIN, INT32_MAX));
    expect("convert_uchar_sat_rtz", i, got[10], clamped(trunc(x), 0, 255));
    expect("convert_half", i, order_of(got[11]), rounded(f, 'e'));
    expect("convert_half_rtz", i, order_of(got[12]), rounded(f, 'z'));
    expect("convert_half_rtp", i, order_of(got[13]), rounded(f, 'p'));
    expect("convert_half_rtn", i, order_of(got[14]), rounded(f, 'n'));
    expect("convert_half4_rtn", i, order_of(got[15]), rounded(f, 'n'));
    expect("convert_half_rtp of int", i, order_of(got[19]), rounded((int32_t)in[3], 'p'));
}

// Every half, with two others of 2^-4 to 2^4 and a float in the range of halves.
static void fill_halves(struct run *run)
{
    uint32_t state = 1;
    for (uint32_t i = 0; i < HALVES; i++) {
        uint32_t *in = run->in + 4 * (size_t)i;
        in[0] = i;
        in[1] = (test_next(&state) & 0x83ff) | (11 + test_next(&state) % 8) << 10;
        in[2] = (test_next(&state) & 0x83ff) | (11 + test_next(&state) % 8) << 10;
        in[3] = (test_next(&state) & 0x807fffff) | (100 + test_next(&state) % 45) << 23;
        if (i % 8 == 0)
            in[3] = test_bits_of((float)test_half_value(i)); // exact; a NaN is replaced below
        if (i % 8 == 1)
            in[3] = test_bits_of(
                (float)((test_half_value(i & 0x7bfe) + test_half_value((i & 0x7bfe) + 1)) / 2));
        if (isnan(test_float_of(in[3])))
            in[3] = 0;
    }
}

LIBRARY_TEST(Half, half, weir_dim(HALVES / 64, 1, 1), weir_dim(64, 1, 1), (size_t)4 * HALVES,
             1 + (size_t)HALF_RESULTS * HALVES)
{
    fill_halves(run);
    if (!execute(run))
        SKIP_LACKING("cl_khr_fp16");
    for (size_t i = 0; i < HALVES; i++) {
        const uint32_t *in = run->in + 4 * i, *got = run->out + 1 + HALF_RESULTS * i;
        if (!isnan(test_half_value(in[0]))) {
            check_floats(i, in, got);
            check_conversions(i, in, got);
        } else {
            for (size_t k = 0; k < 5; k++)
                EXPECT_TRUE(isnan(test_half_value(got[k])));
        }
    }
}

// Sub-groups: a block of 80, so that on CUDA the third has 16 work-items.

enum {
    GROUP_ITEMS = 80,
    GROUP_RESULTS = 26,
    WARP = 32
};

struct group {
    size_t first, size;
    const int32_t *values;
};

// Of the first values of a group.
struct folded {
    int32_t sum, least, most;
    uint32_t ballot; // of their last bits
    bool has_seven;
};

static struct folded fold(const struct group *group, size_t count)
{
    struct folded all = {.least = INT32_MAX, .most = INT32_MIN};
    for (size_t i = 0; i < count; i++) {
        const int32_t value = group->values[i];
        all.sum += value;
        all.least = value < all.least ? value : all.least;
        all.most = value > all.most ? value : all.most;
        all.ballot |= i < WARP ? (uint32_t)(value & 1) << i : 0;
        all.has_seven = all.has_seven || value == 7;
    }
    return all;
}

static void check_scans(const struct group *group, size_t lane, const uint32_t *got)
{
    const size_t item = group->first + lane;
    const struct folded all = fold(group, group->size);
    const struct folded before = fold(group, lane), with = fold(group, lane + 1);
    expect("reduce_add", item, (int32_t)got[5], all.sum);
    expect("reduce_min", item, (int32_t)got[6], all.least);
    expect("reduce_max of float", item, test_float_of(got[7]), all.most);
    expect("scan_inclusive_add", item, (int32_t)got[8], with.sum);
    expect("scan_exclusive_add", item, (int32_t)got[9], before.sum);
    expect("scan_exclusive_min", item, (int32_t)got[10], before.least);
    expect("scan_inclusive_max of long", item, (int32_t)got[11], with.most);
    expect("reduce_add of ulong", item, got[13] & 0xffff, (uint32_t)all.sum & 0xffff);
    expect("scan_exclusive_max of float", item, test_float_of(got[24]),
           lane ? before.most : -INFINITY);
    expect("reduce_max of double", item, got[25], all.most);
}

static void check_shuffles(const struct group *group, size_t lane, const uint32_t *got)
{
    const size_t item = group->first + lane;
    const struct folded all = fold(group, group->size);
    const int32_t *v = group->values;
    expect("broadcast", item, (int32_t)got[12], v[5]);
    expect("shuffle", item, (int32_t)got[14], v[lane ^ 1]);
    expect("shuffle_xor of long", item, (int32_t)got[15], v[lane ^ 2]);
    if (lane > 0)
        expect("shuffle_up", item, (int32_t)got[16], v[lane - 1]);
    if (lane + 1 < group->size)
        expect("shuffle_down", item, (int32_t)got[17], v[lane + 1]);
    expect("rotate", item, (int32_t)got[23], v[(lane + 3) % group->size]);
    expect("all", item, got[18], 1);
    expect("any", item, got[19], all.has_seven);
    expect("ballot", item, got[20], all.ballot);
    expect("ballot_bit_count", item, got[21], __builtin_popcount(all.ballot));
    expect("ballot_exclusive_scan", item, got[22], __builtin_popcount(fold(group, lane).ballot));
}

// Arguments, of which one is seven.
static void fill_groups(struct run *run, int32_t *values, size_t seven)
{
    uint32_t state = 5;
    for (size_t i = 0; i < run->in_count; i++) {
        values[i] = i == seven ? 7 : (int32_t)(test_next(&state) % 2000) + 8;
        run->in[i] = (uint32_t)values[i];
    }
}

LIBRARY_TEST(SubGroups, sub_groups, weir_dim(1, 1, 1), weir_dim(GROUP_ITEMS, 1, 1), GROUP_ITEMS,
             1 + GROUP_RESULTS * GROUP_ITEMS)
{
    int32_t values[GROUP_ITEMS];
    fill_groups(run, values, 40);
    if (!execute(run))
        SKIP_LACKING("sub-groups with ballots, shuffles and rotations");
    for (size_t i = 0; i < GROUP_ITEMS; i++) {
        const uint32_t *got = run->out + 1 + GROUP_RESULTS * i;
        const size_t lane = i % WARP, first = i - lane;
        const size_t size = GROUP_ITEMS - first < WARP ? GROUP_ITEMS - first : WARP;
        const struct group group = {first, size, values + first};
        expect("get_sub_group_size", i, got[0], (double)size);
        expect("get_max_sub_group_size", i, got[1], WARP);
        expect("get_num_sub_groups", i, got[2], 3);
        expect("get_sub_group_id", i, got[3], (double)(i / WARP));
        expect("get_sub_group_local_id", i, got[4], (double)lane);
        check_scans(&group, lane, got);
        check_shuffles(&group, lane, got);
    }
}

// Work-groups of 8 x 5 x 2 work-items, which are three sub-groups, the last of 16.

enum {
    BLOCK_ITEMS = 8 * 5 * 2,
    BLOCKS = 3,
    BLOCK_RESULTS = 13
};

static void check_block(const struct group *group, size_t item, const uint32_t *got)
{
    const size_t at = group->first + item;
    const struct folded all = fold(group, group->size);
    const struct folded before = fold(group, item), with = fold(group, item + 1);
    expect("work_group_all", at, got[0], 1);
    expect("work_group_all of some", at, got[1], !all.has_seven);
    expect("work_group_any", at, got[2], all.has_seven);
    expect("work_group_broadcast", at, (int32_t)got[3], group->values[3 + 8 * (2 + 5 * 1)]);
    expect("work_group_broadcast of float", at, test_float_of(got[4]), group->values[1 + 8 * 4]);
    expect("work_group_reduce_add", at, (int32_t)got[5], all.sum);
    expect("work_group_reduce_min of ulong", at, (int32_t)got[6], all.least);
    expect("work_group_reduce_max of float", at, test_float_of(got[7]), all.most);
    expect("work_group_scan_inclusive_add", at, (int32_t)got[8], with.sum);
    expect("work_group_scan_exclusive_add", at, (int32_t)got[9], before.sum);
    expect("work_group_scan_exclusive_min", at, (int32_t)got[10], before.least);
    expect("work_group_scan_inclusive_max of long", at, (int32_t)got[11], with.most);
    expect("work_group_scan_inclusive_min of double", at, (int32_t)got[12], with.least);
}

LIBRARY_TEST(WorkGroups, work_groups, weir_dim(BLOCKS, 1, 1), weir_dim(8, 5, 2),
             BLOCKS *BLOCK_ITEMS, 1 + BLOCK_RESULTS * BLOCKS * BLOCK_ITEMS)
{
    int32_t values[BLOCKS * BLOCK_ITEMS];
    fill_groups(run, values, 100);
    if (!execute(run))
        SKIP_LACKING("functions of work-groups");
    for (size_t i = 0; i < BLOCKS * BLOCK_ITEMS; i++) {
        const size_t first = i / BLOCK_ITEMS * BLOCK_ITEMS;
        const struct group group = {first, BLOCK_ITEMS, values + first};
        check_block(&group, i - first, run->out + 1 + BLOCK_RESULTS * i);
    }
}

// Atomics of OpenCL C 2.0.

enum {
    ATOMIC_ITEMS = 1024,
    ATOMIC_BLOCK = 64,
    ATOMIC_BLOCKS = ATOMIC_ITEMS / ATOMIC_BLOCK,
    ATOMIC_WORDS = 40 + 2 * ATOMIC_ITEMS + 2 * ATOMIC_BLOCKS
};

// What all values together give.
struct totals {
    uint32_t sum, set, least, most, parity;
};

static struct totals totals_of(const uint32_t *values)
{
    struct totals totals = {.least = UINT32_MAX};
    for (size_t i = 0; i < ATOMIC_ITEMS; i++) {
        totals.sum += values[i];
        totals.set |= 1u << values[i] % 32;
        totals.least = values[i] < totals.least ? values[i] : totals.least;
        totals.most = values[i] > totals.most ? values[i] : totals.most;
        totals.parity ^= values[i];
    }
    return totals;
}

static double wide_at(const uint32_t *words, size_t index)
{
    int64_t value;
    memcpy(&value, words + index, sizeof value);
    return (double)value;
}

static void check_words(const struct totals *totals, const uint32_t *got)
{
    expect("atomic_fetch_add", 0, got[0], totals->sum);
    expect("atomic_fetch_sub", 0, got[1], (uint32_t)-totals->sum);
    expect("atomic_fetch_or", 0, got[2], totals->set);
    expect("atomic_fetch_and", 0, got[3], (uint32_t)~totals->set);
    expect("atomic_fetch_xor", 0, got[4], totals->parity);
    expect("atomic_fetch_min of int", 0, (int32_t)got[5], -(double)totals->most);
    expect("atomic_fetch_max of int", 0, (int32_t)got[6], (double)totals->most - 1000);
    expect("atomic_fetch_min of uint", 0, got[7], (uint32_t)~totals->most);
    expect("atomic_exchange", 0, got[8] + got[9], totals->sum);
    expect("atomic_compare_exchange_weak", 0, got[10], totals->sum);
    expect("atomic_flag_test_and_set", 0, got[12], 1);
    expect("atomic_fetch_add of ulong", 0, wide_at(got, 16), (double)totals->sum * (1 << 20));
    expect("atomic_fetch_max of long", 0, wide_at(got, 18),
           ((double)totals->most - 1000) * 4294967296.0);
    expect("atomic_fetch_xor of ulong", 0, wide_at(got, 20),
           (double)((uint64_t)totals->parity << 40));
    expect("atomic_compare_exchange_strong of float", 0, test_float_of(got[32]), totals->sum);
    expect("what blocks have released", 0, got[34], totals->sum + 5 * ATOMIC_BLOCKS);
    expect("what blocks have fenced", 0, got[35], totals->sum + 5 * ATOMIC_BLOCKS);
}

// Values are below 1000, so that floats add them without rounding.
LIBRARY_TEST(Atomics, atomics, weir_dim(ATOMIC_BLOCKS, 1, 1), weir_dim(ATOMIC_BLOCK, 1, 1),
             ATOMIC_ITEMS, 2 + ATOMIC_WORDS)
{
    uint32_t state = 3;
    for (size_t i = 0; i < ATOMIC_ITEMS; i++)
        run->in[i] = test_next(&state) % 990 + 1;
    run->out[2 + 3] = run->out[2 + 7] = UINT32_MAX;
    run->out[2 + 6] = run->out[2 + 19] = 0x80000000;
    if (!execute(run))
        SKIP_LACKING("atomics of OpenCL C 2.0");
    const struct totals totals = totals_of(run->in);
    check_words(&totals, run->out + 2);
    for (size_t i = 0; i < ATOMIC_ITEMS; i++) {
        expect("atomic_store", i, run->out[2 + 40 + 2 * i], run->in[i]);
        expect("atomic_compare_exchange_strong", i, run->out[2 + 41 + 2 * i], run->in[i]);
    }
}

// Pointers to any address space.

LIBRARY_TEST(Generic, generic, weir_dim(2, 1, 1), weir_dim(64, 1, 1), 128, 1 + 6 * 128)
{
    run->pocl_before = 7;
    for (uint32_t i = 0; i < run->in_count; i++)
        run->in[i] = 3 * i;
    if (!execute(run))
        SKIP_LACKING("pointers to any address space");
    for (size_t i = 0; i < run->in_count; i++) {
        const uint32_t *got = run->out + 1 + 6 * i, v = run->in[i];
        expect("of global memory", i, got[0], 2 * v);
        expect("of private memory", i, got[1], 2 * (v + 1));
        expect("of local memory", i, got[2], 2 * (v + 2));
        expect("of either", i, got[3], 2 * (v + (v % 2 ? 1 : 2)));
        // A processor has one kind of memory: PoCL's functions say yes of each.
        if (run->pocl)
            continue;
        expect("to_global, to_private and to_local", i, got[4], 1 | 4 << 4 | 2 << 8);
        expect("get_fence", i, got[5], v % 2 ? 1 : 3);
    }
}

// Packed dot products.

static int64_t part_of(uint32_t packed, unsigned part, bool is_signed)
{
    const uint8_t byte = (uint8_t)(packed >> 8 * part);
    return is_signed ? (int8_t)byte : byte;
}

static int64_t dot_of(uint32_t x, uint32_t y, bool x_signed, bool y_signed)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum += part_of(x, i, x_signed) * part_of(y, i, y_signed);
    return sum;
}

static double saturated(int64_t sum)
{
    return clamped((double)sum, INT32_MIN, INT32_MAX);
}

LIBRARY_TEST(DotProducts, dot_products, weir_dim(64, 1, 1), weir_dim(64, 1, 1), 3 * 4096,
             1 + 10 * 4096)
{
    uint32_t state = 3;
    for (size_t i = 0; i < run->in_count; i++)
        run->in[i] = i % 9 == 2 ? 0x7fffff00 : i % 9 == 5 ? 0x80000100 : test_next(&state);
    if (!execute(run))
        SKIP_LACKING("packed integer dot products");
    for (size_t i = 0; i < run->in_count / 3; i++) {
        const uint32_t x = run->in[3 * i], y = run->in[3 * i + 1], sum = run->in[3 * i + 2];
        const uint32_t *got = run->out + 1 + 10 * i;
        const int64_t uu = dot_of(x, y, false, false), ss = dot_of(x, y, true, true);
        const int64_t us = dot_of(x, y, false, true), su = dot_of(x, y, true, false);
        expect("uu", i, got[0], (double)uu);
        expect("ss", i, (int32_t)got[1], (double)ss);
        expect("us", i, (int32_t)got[2], (double)us);
        expect("su", i, (int32_t)got[3], (double)su);
        expect("uu, a sum", i, got[4], clamped((double)(uu + sum), 0, UINT32_MAX));
        expect("ss, a sum", i, (int32_t)got[5], saturated(ss + (int32_t)sum));
        expect("us, a sum", i, (int32_t)got[6], saturated(us + (int32_t)sum));
        expect("su, a sum", i, (int32_t)got[7], saturated(su + (int32_t)sum));
        expect("uchar4, char4", i, (int32_t)got[8], (double)us);
        expect("char4, a sum", i, (int32_t)got[9], saturated(ss + (int32_t)sum));
    }
}

// Atomics of 64 bits.

static uint64_t *wide(struct run *run)
{
    return (uint64_t *)(void *)(run->out + 2);
}

LIBRARY_TEST(Atomics64, atomics64, weir_dim(4, 1, 1), weir_dim(64, 1, 1), 256, 2 + 2 * 11)
{
    enum {
        START = 1 << 20
    };
    uint64_t sum = 0, most = 0, all = ~(uint64_t)0, any = 0, odd = START, first_block = 0;
    for (size_t i = 0; i < run->in_count; i++) {
        const uint64_t value = (uint64_t)(i * 40503 % 65536) << 24;
        run->in[i] = (uint32_t)(value >> 24);
        sum += value;
        first_block += i < 64 ? value : 0;
        most = value > most ? value : most;
        all &= ~value;
        any |= value;
        odd ^= value;
    }
    for (size_t i = 0; i < 11; i++)
        wide(run)[i] = i == 6 ? ~(uint64_t)0 : START;
    if (!execute(run))
        SKIP_LACKING("atomics of 64 bits");
    const uint64_t wanted[] = {START + sum,
                               START - sum,
                               START + run->in_count,
                               START - run->in_count,
                               0 - most,
                               most,
                               all,
                               any | START,
                               odd,
                               START + sum,
                               first_block};
    for (size_t i = 0; i < 11; i++)
        if (wide(run)[i] != wanted[i])
            weir_test_fail(__FILE__, __LINE__, "result %zu: %llx, not %llx", i,
                           (unsigned long long)wide(run)[i], (unsigned long long)wanted[i]);
}
