// The kernels in C: they compute what their README.md says; and the kernels that the tests compile at
// run time.
#include "tests/support/twins/twins.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void *address(const struct twin_launch *launch, size_t index)
{
    void *pointer;
    memcpy(&pointer, launch->values[index], sizeof pointer);
    return pointer;
}

static uint32_t word(const struct twin_launch *launch, size_t index)
{
    uint32_t value;
    memcpy(&value, launch->values[index], sizeof value);
    return value;
}

static float real(const struct twin_launch *launch, size_t index)
{
    float value;
    memcpy(&value, launch->values[index], sizeof value);
    return value;
}

static size_t blocks(const struct twin_launch *launch)
{
    return (size_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

static size_t lanes(const struct twin_launch *launch)
{
    return (size_t)launch->block[0] * launch->block[1] * launch->block[2];
}

// The number of the `n` elements that the launch covers.
static size_t reached(const struct twin_launch *launch, uint32_t n)
{
    const size_t items = blocks(launch) * lanes(launch);
    return items < n ? items : n;
}

static void vector_add(const struct twin_launch *launch)
{
    const float *a = address(launch, 0);
    const float *b = address(launch, 1);
    float *sum = address(launch, 2);
    for (size_t i = 0; i < reached(launch, word(launch, 3)); i++)
        sum[i] = a[i] + b[i];
}

static void scale(const struct twin_launch *launch)
{
    const float *in = address(launch, 0);
    float *out = address(launch, 1);
    for (size_t i = 0; i < reached(launch, word(launch, 3)); i++)
        out[i] = in[i] * real(launch, 2);
}

static void saxpy(const struct twin_launch *launch)
{
    float *y = address(launch, 0);
    const float *x = address(launch, 1);
    for (size_t i = 0; i < reached(launch, word(launch, 3)); i++)
        y[i] = fmaf(real(launch, 2), x[i], y[i]);
}

// The one kernel that checks its writes: tests make it leave its buffer.
static void iota(const struct twin_launch *launch)
{
    uint32_t *out = address(launch, 0);
    if (!twin_may_write(out, sizeof *out * reached(launch, word(launch, 2))))
        return;
    for (size_t i = 0; i < reached(launch, word(launch, 2)); i++)
        out[i] = word(launch, 1) + (uint32_t)i;
}

static void increment(const struct twin_launch *launch)
{
    uint32_t *values = address(launch, 0);
    for (size_t i = 0; i < reached(launch, word(launch, 2)); i++)
        values[i] += word(launch, 1);
}

static void spin(const struct twin_launch *launch)
{
    uint32_t *result = address(launch, 0);
    uint64_t steps;
    memcpy(&steps, launch->values[2], sizeof steps);
    for (size_t i = 0; i < reached(launch, UINT32_MAX); i++) {
        uint32_t x = word(launch, 1) + (uint32_t)i;
        for (uint64_t step = 0; step < steps; step++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x += 0x9e3779b9u;
        }
        result[i] = x;
    }
}

static void block_sum(const struct twin_launch *launch)
{
    const uint32_t *in = address(launch, 0);
    uint32_t *sums = address(launch, 1);
    const uint32_t n = word(launch, 3);
    for (size_t block = 0; block < blocks(launch); block++) {
        sums[block] = 0;
        for (size_t i = block * lanes(launch); i < (block + 1) * lanes(launch) && i < n; i++)
            sums[block] += in[i];
    }
}

static uint64_t offset(const struct twin_launch *launch, size_t index)
{
    uint64_t value;
    memcpy(&value, launch->values[index], sizeof value);
    return value;
}

// For the types of the kernel.
static bool offsets_fit(const struct twin_launch *launch)
{
    return offset(launch, 2) == 0 && offset(launch, 3) % 16 == 0 &&
           offset(launch, 3) >= 4 * lanes(launch);
}

static void two_locals(const struct twin_launch *launch)
{
    const uint32_t *in = address(launch, 0);
    uint32_t *out = address(launch, 1);
    const size_t size = lanes(launch);
    for (size_t i = 0; i < blocks(launch) * size && offsets_fit(launch); i++)
        out[i] = in[i / size * size + (size - 1 - i % size)];
}

static void barrier_in_helper(const struct twin_launch *launch)
{
    const uint32_t *in = address(launch, 0);
    uint32_t *sums = address(launch, 1);
    for (size_t block = 0; block < blocks(launch); block++) {
        sums[2 * block] = 0;
        sums[2 * block + 1] = 0;
        for (size_t i = block * lanes(launch); i < (block + 1) * lanes(launch); i++) {
            sums[2 * block] += in[i];
            sums[2 * block + 1] += in[i] * in[i];
        }
    }
}

static void store_values(const struct twin_launch *launch)
{
    // The sizes of the values after the first parameter; the second four have a sign.
    static const unsigned char sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4};
    uint64_t *out = address(launch, 0);
    for (size_t i = 0; i < sizeof sizes; i++) {
        const unsigned unused = 64 - 8u * sizes[i];
        uint64_t value = 0;
        memcpy(&value, launch->values[1 + i], sizes[i]);
        out[i] = i / 4 == 1 ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
    }
    uint32_t half[2];
    memcpy(half, launch->values[10], sizeof half);
    out[9] = half[0];
    out[10] = half[1];
    memcpy(&out[11], launch->values[10] + 8, sizeof out[11]);
}

static void required_block(const struct twin_launch *launch)
{
    uint32_t *out = address(launch, 0);
    for (size_t i = 0; i < 64 * blocks(launch); i++)
        out[i] = (uint32_t)(1000 * (i / 64) + i % 64);
}

static void geometry(const struct twin_launch *launch)
{
    uint32_t *out = address(launch, 0);
    size_t size[3];
    for (size_t axis = 0; axis < 3; axis++)
        size[axis] = (size_t)launch->grid[axis] * launch->block[axis];
    for (size_t at = 0; at < size[0] * size[1] * size[2]; at++) {
        const size_t id[3] = {at % size[0], at / size[0] % size[1], at / size[0] / size[1]};
        for (size_t axis = 0; axis < 3; axis++) {
            out[12 * at + axis] = (uint32_t)id[axis];
            out[12 * at + 3 + axis] = (uint32_t)(id[axis] / launch->block[axis]);
            out[12 * at + 6 + axis] = launch->block[axis];
            out[12 * at + 9 + axis] = launch->grid[axis];
        }
    }
}

static uint8_t pattern(uint32_t index)
{
    return (uint8_t)(index * 31u + (index >> 8) * 7u + 11u);
}

static void fill_pattern(const struct twin_launch *launch)
{
    uint8_t *out = address(launch, 0);
    for (size_t i = 0; i < reached(launch, word(launch, 2)); i++)
        out[i] = pattern(word(launch, 1) + (uint32_t)i);
}

static void check_pattern(const struct twin_launch *launch)
{
    const uint8_t *in = address(launch, 0);
    uint32_t *mismatches = address(launch, 1);
    for (size_t i = 0; i < reached(launch, word(launch, 3)); i++)
        *mismatches += in[i] != pattern(word(launch, 2) + (uint32_t)i);
}

static void fused(const struct twin_launch *launch)
{
    const float *in = address(launch, 0);
    float *out = address(launch, 1);
    out[0] = fmaf(in[0], in[1], in[2]);
}

static void twice(const struct twin_launch *launch)
{
    const uint32_t *in = address(launch, 0);
    uint32_t *out = address(launch, 1);
    for (size_t i = 0; i < reached(launch, word(launch, 2)); i++)
        out[i] = 2u * in[i];
}

static void advance(const struct twin_launch *launch)
{
    uint32_t *values = address(launch, 0);
    for (size_t i = 0; i < reached(launch, word(launch, 2)); i++)
        for (uint32_t round = 0; round < word(launch, 1); round++)
            values[i] = 1664525u * values[i] + 1013904223u;
}

static void print_items(const struct twin_launch *launch)
{
    int32_t *results = address(launch, 0);
    for (size_t i = 0; i < reached(launch, word(launch, 2)); i++)
        results[i] = printf("item %u of %s: %d%%, %.1f\n", word(launch, 1) + (uint32_t)i, "print",
                            -(int)i, 0.5 * (double)i);
}

static void store_vectors(const struct twin_launch *launch)
{
    uint32_t *out = address(launch, 0);
    memcpy(out, launch->values[1], 16);
    memcpy(out + 4, launch->values[2], 8);
    memcpy(out + 6, launch->values[3], 12);
    memcpy(out + 9, launch->values[4], 16);
    memcpy(out + 13, launch->values[5], 16);
}

static void store_present(const struct twin_launch *launch)
{
    uint32_t *out = address(launch, 0);
    const uint32_t *a = address(launch, 1);
    const uint32_t *b = address(launch, 2);
    out[0] = a ? a[0] : 1000;
    out[1] = b ? b[0] : 2000;
}

static void add_words(const struct twin_launch *launch)
{
    const uint32_t *a = address(launch, 0);
    const uint32_t *b = address(launch, 1);
    uint32_t *sum = address(launch, 2);
    for (size_t i = 0; i < reached(launch, word(launch, 3)); i++)
        sum[i] = a[i] + b[i];
}

static void count_kinds(const struct twin_launch *launch)
{
    uint8_t *bytes = address(launch, 0);
    const int64_t *wide = address(launch, 1);
    const float *vectors = address(launch, 2);
    const uint32_t *values = address(launch, 3);
    for (size_t i = 0; i < blocks(launch) * lanes(launch); i++) {
        const size_t lane = lanes(launch) - 1 - i % lanes(launch);
        bytes[i] = (uint8_t)((uint32_t)wide[lane] + (uint32_t)vectors[4 * lane + 3] + values[0]);
    }
}

static void follow_addresses(const struct twin_launch *launch)
{
    uint64_t *out = address(launch, 1);
    out[0] = out[1] = 0;
    for (uint64_t *node = address(launch, 0); node; node = (uint64_t *)(uintptr_t)node[0]) {
        out[0] += ++node[1];
        out[1]++;
    }
}

static void weigh(const struct twin_launch *launch)
{
    const float *weights = address(launch, 0);
    const uint32_t *in = address(launch, 1);
    float *out = address(launch, 2);
    for (size_t i = 0; i < reached(launch, word(launch, 3)); i++)
        out[i] = weights[in[i]];
}

// Of tests/conformance/arguments.c.
static void widen(const struct twin_launch *launch)
{
    uint32_t *out = address(launch, 0);
    uint16_t half;
    memcpy(&half, launch->values[2], sizeof half);
    out[0] = launch->values[1][0];
    out[1] = half;
}

static void take(const struct twin_launch *launch)
{
    float *out = address(launch, 0);
    float a;
    int32_t b[2];
    memcpy(&a, launch->values[1], sizeof a);
    memcpy(b, launch->values[2], sizeof b);
    out[0] = a + (float)b[1];
}

static void nothing(const struct twin_launch *launch)
{
}

// The elements that its blocks of 128 x 64 cover.
static void matmul(const struct twin_launch *launch)
{
    const float *a = address(launch, 0), *b = address(launch, 1);
    float *c = address(launch, 2);
    const size_t m = word(launch, 3), n = word(launch, 4), k = word(launch, 5);
    for (size_t row = 0; row < m && row < (size_t)launch->grid[1] * 128; row++)
        for (size_t column = 0; column < n && column < (size_t)launch->grid[0] * 64; column++) {
            float sum = 0;
            for (size_t i = 0; i < k; i++)
                sum = fmaf(a[row * k + i], b[i * n + column], sum);
            c[row * n + column] = sum;
        }
}

// kernels/cooperative.

static void sum(const struct twin_launch *launch)
{
    const uint32_t *in = address(launch, 0);
    uint32_t *partial = address(launch, 1);
    uint32_t *out = address(launch, 2);
    out[0] = 0;
    for (size_t block = 0; block < blocks(launch); block++)
        partial[block] = 0;
    const size_t parts = blocks(launch);
    for (size_t i = 0; parts > 0 && i < word(launch, 4); i++) {
        partial[i / lanes(launch) % parts] += in[i];
        out[0] += in[i];
    }
}

static void exchange(const struct twin_launch *launch)
{
    uint32_t *numbers = address(launch, 0);
    const uint32_t rounds = word(launch, 2);
    for (uint32_t i = 0; rounds > 0 && i < blocks(launch) * lanes(launch); i++)
        numbers[i] = (rounds - 1) * 2654435761u + i;
}

static void clear(const struct twin_launch *launch)
{
    memset(address(launch, 0), 0, sizeof(uint32_t) * blocks(launch) * lanes(launch));
}

static const struct twin twins[] = {
    {"vector_add", 1024, vector_add, {8, 8, 8, 4}},
    {"scale", 1024, scale, {8, 8, 4, 4}},
    {"saxpy", 1024, saxpy, {8, 8, 4, 4}},
    {"iota", 1024, iota, {8, 4, 4}},
    {"increment", 1024, increment, {8, 4, 4}},
    {"spin", 1024, spin, {8, 4, 8}},
    {"block_sum", 1024, block_sum, {8, 8, 8, 4}},
    {"two_locals", 1024, two_locals, {8, 8, 8, 8}},
    {"barrier_in_helper", 1024, barrier_in_helper, {8, 8, 8}},
    {"store_values", 1024, store_values, {8, 1, 2, 4, 8, 1, 2, 4, 8, 4, 16}},
    {"required_block", 64, required_block, {8}},
    {"geometry", 1024, geometry, {8}},
    {"fill_pattern", 1024, fill_pattern, {8, 4, 4}},
    {"check_pattern", 1024, check_pattern, {8, 8, 4, 4}},
    {"fused", 1024, fused, {8, 8}},
    {"twice", 1024, twice, {8, 8, 4}},
    {"store_vectors", 1024, store_vectors, {8, 16, 8, 16, 16, 16}},
    {"store_present", 1024, store_present, {8, 8, 8}},
    {"add_words", 1024, add_words, {8, 8, 8, 4}},
    {"count_kinds", 1024, count_kinds, {8, 8, 8, 8, 8}},
    {"follow_addresses", 1024, follow_addresses, {8, 8}},
    {"weigh", 1024, weigh, {8, 8, 8, 4}},
    {"widen", 1024, widen, {8, 1, 2}},
    {"take", 1024, take, {8, 16, 8}},
    {"nothing", 1024, nothing, {0}},
    {"kinds", 1024, nothing, {8, 8, 8, 8, 8, 16, 8}},
    {"advance", 1024, advance, {8, 4, 4}},
    {"print_items", 1024, print_items, {8, 4, 4}},
    {"matmul", 128, matmul, {8, 8, 8, 4, 4, 4}},
    {"sum", 1024, sum, {8, 8, 8, 8, 4}},
    {"exchange", 1024, exchange, {8, 8, 4}},
    {"clear", 1024, clear, {8}},
};

bool twin_has_grid_barrier(const struct twin *twin)
{
    return twin->run == sum || twin->run == exchange;
}

const struct twin *twin_find(const char *name)
{
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++) {
        if (strcmp(twins[i].name, name) == 0)
            return &twins[i];
    }
    return NULL;
}
