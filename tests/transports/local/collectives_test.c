// Collectives of ranks: the order of additions, integers that wrap, and messages. All kinds, types and shapes
// are in tests/comm/matrix.c.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <fenv.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

// Sums whose rounding depends on the order of additions.
static weir_status sum_thirds(struct rank *rank)
{
    float *results = rank->user;
    float src[999];
    for (size_t i = 0; i < 999; i++)
        src[i] = (float)(1 + i) / (float)(3 + 7 * rank->rank);
    return rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                        .element = WEIR_F32,
                                                        .reduction = WEIR_SUM,
                                                        .count = 999,
                                                        .src = src,
                                                        .dst = results + 999 * (size_t)rank->rank});
}

WEIR_TEST(Collectives, AddInTheOrderOfRanks)
{
    static float results[4 * 999];
    struct rank ranks[RANKS_MAX];
    ranks_run("file", 4, sum_thirds, results, ranks);
    for (size_t i = 0; i < 999; i++) {
        float sum = (float)(1 + i) / 3.0F;
        for (int rank = 1; rank < 4; rank++)
            sum += (float)(1 + i) / (float)(3 + 7 * rank);
        for (size_t rank = 0; rank < 4; rank++)
            ASSERT_TRUE(results[rank * 999 + i] == sum);
    }
}

static weir_status wrap(struct rank *rank)
{
    const int16_t src = INT16_MAX;
    int16_t *dst = rank->user;
    return rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                        .element = WEIR_I16,
                                                        .reduction = WEIR_SUM,
                                                        .count = 1,
                                                        .src = &src,
                                                        .dst = dst + rank->rank});
}

WEIR_TEST(Collectives, WrapIntegers)
{
    int16_t results[2] = {0};
    struct rank ranks[RANKS_MAX];
    ranks_run("file", 2, wrap, results, ranks);
    EXPECT_INT_EQ(results[0], -2);
    EXPECT_INT_EQ(results[1], -2);
}

// Elements that no rank has are not added up: what an earlier collective has left there may be no number, for which the
// program may have a trap.
static weir_status add_a_few(struct rank *rank)
{
    enum {
        WORDS = 64,
        FEW = 5
    };
    uint32_t no_numbers[WORDS];
    uint32_t all[4 * WORDS];
    float few[FEW] = {1, 2, 3, 4, 5};
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < WORDS; i++)
        no_numbers[i] = 0x7fa00000; // signals
    for (int i = 0; i < 2 && status == WEIR_OK; i++)
        status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_GATHER,
                                                              .element = WEIR_U32,
                                                              .count = WORDS,
                                                              .src = no_numbers,
                                                              .dst = all});
    feclearexcept(FE_ALL_EXCEPT);
    if (status == WEIR_OK)
        status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                              .element = WEIR_F32,
                                                              .reduction = WEIR_SUM,
                                                              .count = FEW,
                                                              .src = few,
                                                              .dst = few});
    return !status && (fetestexcept(FE_INVALID) || few[4] != 20) ? WEIR_ERROR_INVALID : status;
}

WEIR_TEST(Collectives, AddTheElementsAlone)
{
    struct rank ranks[RANKS_MAX];
    ranks_run("file", 4, add_a_few, NULL, ranks);
    for (size_t i = 0; i < 4; i++)
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
}

// Memory of `count` numbers, all `value`, that ends where a page begins that nothing may touch.
static int32_t *at_the_end_of_memory(size_t count, int32_t value)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = (count * sizeof value + page - 1) / page * page;
    char *memory =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + size, page, PROT_NONE) != 0)
        return NULL;
    int32_t *numbers = (int32_t *)(void *)(memory + size) - count;
    for (size_t i = 0; i < count; i++)
        numbers[i] = value;
    return numbers;
}

static weir_status touch_no_more(struct rank *rank)
{
    static const struct {
        weir_collective kind;
        uint32_t src, dst;   // how many times the count
        int32_t first, last; // in the root's or each rank's `dst`
    } kinds[] = {
        {WEIR_ALL_REDUCE, 1, 1, 10, 10},     {WEIR_REDUCE, 1, 1, 10, 10},
        {WEIR_BROADCAST, 1, 1, 2, 2},        {WEIR_ALL_GATHER, 1, 4, 1, 4},
        {WEIR_REDUCE_SCATTER, 4, 1, 10, 10}, {WEIR_ALL_TO_ALL, 4, 4, 1, 4},
        {WEIR_GATHER, 1, 4, 1, 4},           {WEIR_SCATTER, 4, 1, 2, 2},
    };
    static const size_t counts[] = {1, 5, 999, 200001}; // by several ways
    const uint32_t root = 1;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < 4 * sizeof kinds / sizeof *kinds && status == WEIR_OK; i++) {
        const size_t count = counts[i % 4], dst_count = count * kinds[i / 4].dst;
        int32_t *src = at_the_end_of_memory(count * kinds[i / 4].src, (int32_t)rank->rank + 1);
        int32_t *dst = at_the_end_of_memory(dst_count, 0);
        const bool gets = rank->rank == root ||
                          (kinds[i / 4].kind != WEIR_REDUCE && kinds[i / 4].kind != WEIR_GATHER);
        if (!src || !dst)
            return WEIR_ERROR_OUT_OF_MEMORY;
        status = rank_call(rank, (struct weir_transport_call){.kind = kinds[i / 4].kind,
                                                              .element = WEIR_I32,
                                                              .reduction = WEIR_SUM,
                                                              .count = count,
                                                              .root = root,
                                                              .src = src,
                                                              .dst = dst});
        if (!status && gets &&
            (dst[0] != kinds[i / 4].first || dst[dst_count - 1] != kinds[i / 4].last))
            status = WEIR_ERROR_INVALID;
    }
    return status;
}

WEIR_TEST(Collectives, TouchNoMemoryBeyondTheirElements)
{
    struct rank ranks[RANKS_MAX];
    ranks_run("file", 4, touch_no_more, NULL, ranks);
    for (size_t i = 0; i < 4; i++)
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
}

// A ring: each rank sends to the next, large messages too, and twice to the same rank.
static weir_status ring(struct rank *rank)
{
    const size_t count = (size_t)1 << 18;
    const uint32_t next = (rank->rank + 1) % rank->count;
    const uint32_t previous = (rank->rank + rank->count - 1) % rank->count;
    uint32_t *memory = calloc(4 * count, sizeof *memory);
    struct weir_transport_part parts[4];
    for (size_t i = 0; i < 4; i++)
        parts[i] = (struct weir_transport_part){
            .struct_size = sizeof parts[i],
            .peer = i % 2 ? previous : next,
            .receive = i % 2,
            .element = WEIR_U32,
            .count = count - i / 2,
            .memory = memory + i * count,
        };
    for (size_t i = 0; i < count; i++) {
        memory[i] = rank->rank + (uint32_t)i;
        memory[2 * count + i] = 7 * rank->rank + (uint32_t)i;
    }
    weir_status status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_EXCHANGE,
                                                                      .parts = parts,
                                                                      .part_count = 4});
    bool right = memory[2 * count - 1] == previous + (uint32_t)count - 1;
    for (size_t i = 0; i < count - 1; i++)
        right =
            right && memory[count + i] == previous + i && memory[3 * count + i] == 7 * previous + i;
    right = right && memory[4 * count - 1] == 0;
    if (!status && !right)
        status = WEIR_ERROR_INVALID;
    free(memory);
    return status;
}

WEIR_TEST(Collectives, ExchangeARing)
{
    struct rank ranks[RANKS_MAX];
    for (uint32_t count = 2; count <= 4; count++) {
        ranks_run("file", count, ring, NULL, ranks);
        for (uint32_t i = 0; i < count; i++)
            EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
    }
}
