// Collectives of ranks: the order of additions, integers that wrap, and messages. All kinds, types and shapes
// are in tests/comm/matrix.c.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <fenv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

WEIR_TEST(Collectives, AddInTheOrderOfRanks)
{
    ranks_expect("file", 4, rank_sum_in_order, NULL);
}

static weir_status wrap(struct rank *rank)
{
    const int16_t src = INT16_MAX;
    int16_t *dst = rank->user;
    return rank_call(rank, call_of(WEIR_ALL_REDUCE, WEIR_I16, 1, &src, dst + rank->rank));
}

WEIR_TEST(Collectives, WrapIntegers)
{
    int16_t results[2] = {0};
    ranks_expect("file", 2, wrap, results);
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
        status = rank_call(rank, call_of(WEIR_ALL_GATHER, WEIR_U32, WORDS, no_numbers, all));
    feclearexcept(FE_ALL_EXCEPT);
    if (status == WEIR_OK)
        status = rank_call(rank, call_of(WEIR_ALL_REDUCE, WEIR_F32, FEW, few, few));
    return !status && (fetestexcept(FE_INVALID) || few[4] != 20) ? WEIR_ERROR_INVALID : status;
}

WEIR_TEST(Collectives, AddTheElementsAlone)
{
    ranks_expect("file", 4, add_a_few, NULL);
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
        struct weir_transport_call call = call_of(kinds[i / 4].kind, WEIR_I32, count, src, dst);
        call.root = root;
        status = rank_call(rank, call);
        if (!status && gets &&
            (dst[0] != kinds[i / 4].first || dst[dst_count - 1] != kinds[i / 4].last))
            status = WEIR_ERROR_INVALID;
    }
    return status;
}

WEIR_TEST(Collectives, TouchNoMemoryBeyondTheirElements)
{
    ranks_expect("file", 4, touch_no_more, NULL);
}

WEIR_TEST(Collectives, ExchangeARing)
{
    for (uint32_t count = 2; count <= 4; count++)
        ranks_expect("file", count, rank_pass_on, NULL);
}

WEIR_TEST(Large, BeyondTwoToThe31)
{
    ranks_expect("file", 2, rank_call_large, NULL);
}
