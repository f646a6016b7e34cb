// Collectives, messages and parts.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/transports/local/large_memory.h"
#include "tests/transports/mpi/ranks.h"

// Collectives. Elements are small whole numbers, which all types hold and add exactly.

// Of types that C has.
#define FOR_EACH_TYPE(CASE)  \
    CASE(WEIR_I8, int8_t)    \
    CASE(WEIR_U8, uint8_t)   \
    CASE(WEIR_I16, int16_t)  \
    CASE(WEIR_U16, uint16_t) \
    CASE(WEIR_I32, int32_t)  \
    CASE(WEIR_U32, uint32_t) \
    CASE(WEIR_I64, int64_t)  \
    CASE(WEIR_U64, uint64_t) \
    CASE(WEIR_F32, float)    \
    CASE(WEIR_F64, double)

#define GET(name, type) \
    case name:          \
        return (double)((const type *)memory)[i];

static double get(const void *memory, weir_datatype element, size_t i)
{
    switch (element) {
        FOR_EACH_TYPE(GET)
    case WEIR_F16: {
        const unsigned bits = ((const uint16_t *)memory)[i];
        const int exponent = (int)(bits >> 10 & 31);
        const double value = exponent ? (1024 + (bits & 1023)) / 1024.0 : 0;
        return exponent > 15 ? value * (1 << (exponent - 15)) : value / (1 << (15 - exponent));
    }
    case WEIR_BF16: {
        const uint32_t bits = (uint32_t)((const uint16_t *)memory)[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    }
    return -1;
}

#define SET(name, type)                    \
    case name:                             \
        ((type *)memory)[i] = (type)value; \
        break;

static void set(void *memory, weir_datatype element, size_t i, unsigned value)
{
    switch (element) {
        FOR_EACH_TYPE(SET)
    case WEIR_F16: // 0 to 7
        ((uint16_t *)memory)[i] =
            (uint16_t[]){0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}[value];
        break;
    case WEIR_BF16:
        ((uint16_t *)memory)[i] =
            (uint16_t[]){0, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0}[value];
        break;
    }
}

// Element i of what a rank reads; 1 to 3.
static unsigned value_of(uint32_t of, size_t i)
{
    return 1 + (unsigned)((of * 7 + i * 5 + i / 11) % 3);
}

static double reduced(weir_reduction reduction, size_t i)
{
    double result = value_of(0, i);
    for (uint32_t r = 1; r < count; r++) {
        const double value = value_of(r, i);
        if (reduction == WEIR_SUM || reduction == WEIR_AVERAGE)
            result += value;
        else if (reduction == WEIR_PRODUCT)
            result *= value;
        else if (reduction == WEIR_MINIMUM ? value < result : value > result)
            result = value;
    }
    return result;
}

static double averaged(weir_datatype element, double sum)
{
    const double value = sum / count;
    return element <= WEIR_U64 ? (double)(long long)value : value;
}

// One call of a kind: how many elements are read and written, and what comes of it.
struct shape {
    weir_collective kind;
    bool rooted;
    bool reads_all;  // n * size, else size
    bool writes_all; // the same
};

static const struct shape shapes[] = {
    {WEIR_ALL_REDUCE, false, false, false},    {WEIR_REDUCE, true, false, false},
    {WEIR_BROADCAST, true, false, false},      {WEIR_ALL_GATHER, false, false, true},
    {WEIR_REDUCE_SCATTER, false, true, false}, {WEIR_ALL_TO_ALL, false, true, true},
    {WEIR_GATHER, true, false, true},          {WEIR_SCATTER, true, true, false},
};

static double wanted(const struct shape *shape, const struct weir_transport_call *call, size_t i)
{
    const size_t size = (size_t)call->count;
    double value;
    if (size == 0)
        return 0;
    const size_t from = i / size;
    switch (shape->kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_REDUCE:
        value = reduced(call->reduction, i);
        return call->reduction == WEIR_AVERAGE ? averaged(call->element, value) : value;
    case WEIR_REDUCE_SCATTER:
        value = reduced(call->reduction, rank * size + i);
        return call->reduction == WEIR_AVERAGE ? averaged(call->element, value) : value;
    case WEIR_BROADCAST:
        return value_of(call->root, i);
    case WEIR_SCATTER:
        return value_of(call->root, rank * size + i);
    case WEIR_ALL_TO_ALL:
        return value_of((uint32_t)from, rank * size + i % size);
    default: // gathers
        return value_of((uint32_t)from, i % size);
    }
}

static bool is_near(double got, double value, weir_datatype element)
{
    const double difference = got > value ? got - value : value - got;
    return difference <= (element == WEIR_BF16 ? 0.05 : element == WEIR_F16 ? 0.01 : 1e-6);
}

static void check(const struct shape *shape, const struct weir_transport_call *call)
{
    const size_t written = (size_t)call->count * (shape->writes_all ? count : 1);
    for (size_t i = 0; i < written; i++)
        if (!is_near(get(call->dst, call->element, i), wanted(shape, call, i), call->element)) {
            fprintf(stderr,
                    "rank %u: %s of %s %s, %" PRIu64 " elements, root %u: element %zu is %g\n",
                    rank, weir_collective_name(shape->kind), weir_reduction_name(call->reduction),
                    weir_datatype_name(call->element), call->count, call->root, i,
                    get(call->dst, call->element, i));
            abort();
        }
}

static void run_one(void *group, const struct shape *shape, weir_datatype element,
                    weir_reduction reduction, size_t size, uint32_t root, bool in_place)
{
    const size_t bytes = weir_datatype_size(element);
    const size_t room = (size * count + 1) * bytes;
    char *src = calloc(1, room);
    char *dst = calloc(1, room);
    const bool reads =
        !shape->rooted || shape->kind == WEIR_REDUCE || shape->kind == WEIR_GATHER || rank == root;
    const bool writes = !shape->rooted || shape->kind == WEIR_BROADCAST ||
                        shape->kind == WEIR_SCATTER || rank == root;
    char *from = src;
    char *to = dst;
    if (in_place && reads && writes) {
        from = shape->writes_all && !shape->reads_all ? dst + rank * size * bytes : dst;
        to = shape->reads_all && !shape->writes_all ? dst + rank * size * bytes : dst;
    }
    for (size_t i = 0; reads && i < size * (shape->reads_all ? count : 1); i++)
        set(from, element, i, value_of(rank, i));
    const struct weir_transport_call call = {.kind = shape->kind,
                                             .element = element,
                                             .reduction = reduction,
                                             .root = root,
                                             .count = size,
                                             .src = reads ? from : NULL,
                                             .dst = writes ? to : NULL,
                                             .line = __LINE__};
    EXPECT(run(group, call) == WEIR_OK);
    if (writes)
        check(shape, &call);
    free(src);
    free(dst);
}

void do_collectives(void)
{
    static const size_t sizes[] = {0, 1, 7, 3001};
    void *group = join_all();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (weir_datatype element = WEIR_I8; element <= WEIR_F64; element++)
            for (weir_reduction reduction = WEIR_SUM; reduction <= WEIR_AVERAGE; reduction++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                    for (int in_place = 0; in_place < 2; in_place++) {
                        const bool reduces = s == 0 || s == 1 || s == 4;
                        if (reduces || reduction == WEIR_SUM)
                            run_one(group, &shapes[s], element, reduction, sizes[i],
                                    (uint32_t)(i % count), in_place);
                    }
    // Above what is moved at once.
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int in_place = 0; in_place < 2; in_place++)
            run_one(group, &shapes[s], WEIR_F32, WEIR_SUM, 600001, count - 1, in_place);
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
        before = i == 10 ? blocks : before;
    }
    EXPECT(blocks < before + 64);
    ops->leave(again);
}
