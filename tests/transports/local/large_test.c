// Counts beyond 2^31.
#include <string.h>
#include <sys/mman.h>

#include "tests/support/test.h"
#include "tests/transports/local/large_memory.h"
#include "tests/transports/local/ranks.h"

static struct {
    unsigned char *src[2];
    unsigned char *dst[2];
} all;

static weir_status call_all(struct rank *rank)
{
    const uint32_t own = rank->rank;
    struct weir_transport_call call = {.kind = WEIR_BROADCAST,
                                       .element = WEIR_U8,
                                       .root = 1,
                                       .count = LARGE_COUNT,
                                       .src = all.src[own],
                                       .dst = all.dst[own]};
    weir_status status = rank_call(rank, call);
    if (!status && memcmp(all.dst[own] + LARGE_COUNT - 5, "\3\3\3\3\3", 6) != 0)
        return WEIR_ERROR_INVALID;
    call.kind = WEIR_ALL_REDUCE;
    call.reduction = WEIR_SUM;
    if (!status)
        status = rank_call(rank, call);
    if (!status && memcmp(all.dst[own] + LARGE_COUNT - 5, "\5\5\5\5\5", 6) != 0)
        return WEIR_ERROR_INVALID;
    call.kind = own == 0 ? WEIR_SEND : WEIR_RECV;
    call.root = 1 - own;
    if (!status)
        status = rank_call(rank, call);
    if (!status && own == 1 && memcmp(all.dst[own] + LARGE_COUNT - 5, "\2\2\2\2\2", 6) != 0)
        return WEIR_ERROR_INVALID;
    return status;
}

WEIR_TEST(Large, BeyondTwoToThe31)
{
    struct rank ranks[2];
    for (int i = 0; i < 2; i++) {
        all.src[i] = large_memory();
        all.dst[i] = large_memory();
        ASSERT_NOT_NULL(all.src[i]);
        ASSERT_NOT_NULL(all.dst[i]);
        memset(all.src[i] + LARGE_COUNT - 5, 2 + i, 5);
    }
    ranks_run("file", 2, call_all, NULL, ranks);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
        munmap(all.src[i], LARGE_MAPPED);
        munmap(all.dst[i], LARGE_MAPPED);
    }
}
