// Collectives, messages and parts.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/comm/matrix.h"
#include "tests/transports/local/large_memory.h"
#include "tests/transports/mpi/ranks.h"

// The conformance matrix, with elements that are small, and one size above what is moved at once.

static char *allocate(size_t size)
{
    char *memory = calloc(1, size);
    EXPECT(memory);
    return memory;
}

static bool run_case(void *group, const struct matrix_case *it)
{
    size_t src_offset;
    size_t dst_offset;
    char text[256] = "";
    const size_t read = matrix_read(it, rank, &src_offset);
    const size_t written = matrix_written(it, rank, &dst_offset);
    char *src = allocate(count * MATRIX_BYTES);
    char *dst = it->in_place ? src : allocate(count * MATRIX_BYTES);
    matrix_fill(it, rank, src + src_offset);
    EXPECT(run(group, (struct weir_transport_call){
                          .kind = it->kind,
                          .element = it->element,
                          .reduction = it->reduction,
                          .root = matrix_root(it),
                          .count = it->count,
                          .src = read > 0 || it->count == 0 ? src + src_offset : NULL,
                          .dst = written > 0 || it->count == 0 ? dst + dst_offset : NULL,
                          .line = __LINE__,
                      }) == WEIR_OK);
    const bool right = written == 0 || matrix_check(it, rank, dst + dst_offset, text, sizeof text);
    if (!right)
        fprintf(stderr, "%s\n", text);
    if (dst != src)
        free(dst);
    free(src);
    return right;
}

void do_collectives(void)
{
    void *group = join_all();
    EXPECT(matrix_each(count, run_case, group));
    EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_BARRIER}) == WEIR_OK);
    ops->leave(group);
}

// The order of additions is that of ranks, whatever the size: the bits are those of a plain loop.
void do_order(void)
{
    enum {
        SIZE = 70001
    };
    static float src[SIZE];
    static float dst[SIZE];
    void *group = join_all();
    const size_t sizes[] = {5, SIZE};
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < sizes[s]; i++)
            src[i] = 1.0f / (float)(1 + rank * 31 + i % 977);
        EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                       .element = WEIR_F32,
                                                       .reduction = WEIR_SUM,
                                                       .count = sizes[s],
                                                       .src = src,
                                                       .dst = dst}) == WEIR_OK);
        for (size_t i = 0; i < sizes[s]; i++) {
            float sum = 1.0f / (float)(1 + i % 977);
            for (uint32_t r = 1; r < count; r++)
                sum += 1.0f / (float)(1 + r * 31 + i % 977);
            // No sum is zero or no number, so equal values are equal bits.
            EXPECT(sum == dst[i]);
        }
    }
    ops->leave(group);
}

// Counts beyond 2^31, which MPI's ints do not hold.
void do_large(void)
{
    void *group = join_all();
    unsigned char *src = large_memory();
    unsigned char *dst = large_memory();
    EXPECT(src && dst);
    memset(src + LARGE_COUNT - 5, 2 + (int)rank, 5);
    struct weir_transport_call call = {.kind = WEIR_BROADCAST,
                                       .element = WEIR_U8,
                                       .root = 1,
                                       .count = LARGE_COUNT,
                                       .src = src,
                                       .dst = dst};
    EXPECT(run(group, call) == WEIR_OK);
    EXPECT(memcmp(dst + LARGE_COUNT - 5, "\3\3\3\3\3", 6) == 0);
    call.kind = rank == 0 ? WEIR_SEND : WEIR_RECV;
    call.root = 1 - rank;
    EXPECT(run(group, call) == WEIR_OK);
    EXPECT(rank == 0 || memcmp(dst + LARGE_COUNT - 5, "\2\2\2\2\2", 6) == 0);
    munmap(src, LARGE_MAPPED);
    munmap(dst, LARGE_MAPPED);
    ops->leave(group);
}

// Messages: a ring of large ones at once, several to one peer, to itself, and pairs.
void do_messages(void)
{
    enum {
        SIZE = 200003
    };
    static uint32_t out[SIZE];
    static uint32_t in[SIZE];
    uint8_t small[4] = {0};
    uint8_t none = 0;
    void *group = join_all();
    const uint32_t right = (rank + 1) % count;
    const uint32_t left = (rank + count - 1) % count;
    for (size_t i = 0; i < SIZE; i++)
        out[i] = rank * 1000000 + (uint32_t)i;
    uint8_t mine[2] = {(uint8_t)rank, (uint8_t)(100 + rank)};
    const struct weir_transport_part parts[] = {
        {sizeof *parts, right, false, WEIR_U32, SIZE, out},
        {sizeof *parts, left, true, WEIR_U32, SIZE, in},
        {sizeof *parts, right, false, WEIR_U8, 1, &mine[0]},
        {sizeof *parts, right, false, WEIR_U8, 1, &mine[1]},
        {sizeof *parts, left, true, WEIR_U8, 1, &small[0]},
        {sizeof *parts, left, true, WEIR_U8, 1, &small[1]},
        {sizeof *parts, rank, true, WEIR_U8, 1, &small[2]},
        {sizeof *parts, rank, false, WEIR_U8, 1, &mine[1]},
        {sizeof *parts, right, false, WEIR_F64, 0, &none},
        {sizeof *parts, left, true, WEIR_F64, 0, &none},
    };
    for (int turn = 0; turn < 3; turn++)
        EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_EXCHANGE,
                                                       .parts = parts,
                                                       .part_count = 10}) == WEIR_OK);
    for (size_t i = 0; i < SIZE; i++)
        EXPECT(in[i] == left * 1000000 + (uint32_t)i);
    EXPECT(small[0] == left && small[1] == 100 + left && small[2] == 100 + rank);
    const struct weir_transport_call message = {.kind = rank == 0 ? WEIR_SEND : WEIR_RECV,
                                                .element = WEIR_U32,
                                                .count = SIZE,
                                                .root = 1 - rank,
                                                .src = rank == 0 ? out : NULL,
                                                .dst = rank == 0 ? NULL : in};
    if (rank < 2)
        EXPECT(run(group, message) == WEIR_OK);
    EXPECT(rank != 1 || in[SIZE - 1] == SIZE - 1);
    ops->leave(group);
}

static void *split(void *group, int32_t color, int32_t key)
{
    void *part;
    EXPECT(try_split(group, color, key, &part) == WEIR_OK);
    return part;
}

uint64_t sum_of_ranks(void *group, uint64_t value)
{
    uint64_t sum = 0;
    EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                   .element = WEIR_U64,
                                                   .reduction = WEIR_SUM,
                                                   .count = 1,
                                                   .src = &value,
                                                   .dst = &sum}) == WEIR_OK);
    return sum;
}

// Parts, a rank without one, the order by keys, a part that outlives the whole, and many of them.
void do_groups(void)
{
    uint32_t own;
    uint32_t all;
    void *group = join_all();
    void *again = join_all();
    const uint64_t total = (uint64_t)count * (count - 1) / 2;
    void *halves = split(group, (int32_t)(rank % 2), 0);
    next = 0;
    EXPECT(sum_of_ranks(halves, 1) == count / 2 + (rank % 2 == 0 && count % 2));
    const uint64_t of_halves = next;
    next = 0;
    void *others = split(again, rank == 0 ? WEIR_NO_COLOR : 3, -(int32_t)rank);
    EXPECT((others == NULL) == (rank == 0));
    ops->leave(group);
    if (others) {
        ops->place(others, &own, &all);
        EXPECT(all == count - 1 && own == count - 1 - rank);
        next = 0;
        EXPECT(sum_of_ranks(others, rank) == total);
        ops->leave(others);
    }
    next = of_halves;
    EXPECT(sum_of_ranks(halves, 1) > 0);
    ops->leave(halves);
    next = 1;
    long before = 0;
    for (int i = 0; i < 40; i++) {
        void *copy = split(again, 0, 0);
        if (i % 20 == 0) {
            const uint64_t whole = next;
            next = 0;
            EXPECT(sum_of_ranks(copy, rank) == total);
            next = whole;
        }
        ops->leave(copy);
        before = i == 10 ? ranks_blocks() : before;
    }
    EXPECT(ranks_blocks() < before + 64);
    ops->leave(again);
}
