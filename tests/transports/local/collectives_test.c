// Each collective with each element, reduction and shape, against float64; and the same bits on all
// ranks and in each run. WIRE is defined in the BUILD file.
// clang-tidy: -DWIRE='"process"'
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"
#include "transports/kit/reduce.h"

#define UNTOUCHED 0xEE
#define LARGE 70001u // elements: more than one segment for each of four ranks

struct trial {
    weir_collective kind;
    weir_datatype element;
    weir_reduction reduction;
    uint32_t root;
    uint64_t count;
    bool in_place;
    unsigned char *dst[RANKS_MAX]; // what each rank's memory holds afterwards
    size_t size;                   // of each
};

static void store(weir_datatype element, void *memory, size_t index, double value)
{
    char *at = (char *)memory + index * weir_datatype_size(element);
    const int64_t integer = (int64_t)value;
    const float single = (float)value;
    const uint16_t half =
        element == WEIR_F16 ? weir_half_to_f16(single) : weir_half_to_bf16(single);
    if (element == WEIR_F64)
        memcpy(at, &value, sizeof value);
    else if (element == WEIR_F32)
        memcpy(at, &single, sizeof single);
    else if (element == WEIR_F16 || element == WEIR_BF16)
        memcpy(at, &half, sizeof half);
    else
        memcpy(at, &integer, weir_datatype_size(element)); // little-endian
}

static bool is_signed(weir_datatype element)
{
    return element == WEIR_I8 || element == WEIR_I16 || element == WEIR_I32 || element == WEIR_I64;
}

static double load(weir_datatype element, const void *memory, size_t index)
{
    const size_t size = weir_datatype_size(element);
    const char *at = (const char *)memory + index * size;
    double value = 0;
    float single = 0;
    uint16_t half = 0;
    memcpy(&value, at, element == WEIR_F64 ? sizeof value : 0);
    memcpy(&single, at, element == WEIR_F32 ? sizeof single : 0);
    memcpy(&half, at, size == 2 ? sizeof half : 0);
    if (element == WEIR_F64)
        return value;
    if (element == WEIR_F32)
        return single;
    if (element == WEIR_F16)
        return weir_half_from_f16(half);
    if (element == WEIR_BF16)
        return weir_half_from_bf16(half);
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    const unsigned unused = 64 - 8 * (unsigned)size;
    return is_signed(element) ? (double)((int64_t)(bits << unused) >> unused) : (double)bits;
}

// Small integers, so that every type holds every result but an average exactly.
static double value_of(const struct trial *trial, uint32_t rank, size_t index)
{
    const int value = (int)((index * 5 + rank * 3 + index / 7) % 7);
    return trial->element >= WEIR_F16 || is_signed(trial->element) ? value - 3 : value % 4;
}

static double combine(weir_reduction reduction, double a, double b)
{
    switch (reduction) {
    case WEIR_PRODUCT:
        return a * b;
    case WEIR_MINIMUM:
        return fmin(a, b);
    case WEIR_MAXIMUM:
        return fmax(a, b);
    case WEIR_SUM:
    case WEIR_AVERAGE:
        break;
    }
    return a + b;
}

static double reduced(const struct trial *trial, uint32_t ranks, size_t index)
{
    double total = value_of(trial, 0, index);
    for (uint32_t rank = 1; rank < ranks; rank++)
        total = combine(trial->reduction, total, value_of(trial, rank, index));
    if (trial->reduction != WEIR_AVERAGE)
        return total;
    return trial->element < WEIR_F16 ? trunc(total / ranks) : total / ranks;
}

// Whether the kind's source has a part for each rank, and its result one of each.
static bool has_wide_source(weir_collective kind)
{
    return kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_TO_ALL || kind == WEIR_SCATTER;
}

static bool has_wide_result(weir_collective kind)
{
    return kind == WEIR_ALL_GATHER || kind == WEIR_ALL_TO_ALL || kind == WEIR_GATHER;
}

static bool writes(const struct trial *trial, uint32_t rank)
{
    return (trial->kind != WEIR_REDUCE && trial->kind != WEIR_GATHER) || rank == trial->root;
}

static bool reads(const struct trial *trial, uint32_t rank)
{
    return (trial->kind != WEIR_BROADCAST && trial->kind != WEIR_SCATTER) || rank == trial->root;
}

static double expected(const struct trial *trial, uint32_t ranks, uint32_t rank, size_t index)
{
    const size_t count = (size_t)trial->count;
    switch (trial->kind) {
    case WEIR_BROADCAST:
        return value_of(trial, trial->root, index);
    case WEIR_ALL_GATHER:
    case WEIR_GATHER:
        return value_of(trial, (uint32_t)(index / count), index % count);
    case WEIR_REDUCE_SCATTER:
        return reduced(trial, ranks, rank * count + index);
    case WEIR_ALL_TO_ALL:
        return value_of(trial, (uint32_t)(index / count), rank * count + index % count);
    case WEIR_SCATTER:
        return value_of(trial, trial->root, rank * count + index);
    default:
        return reduced(trial, ranks, index);
    }
}

// In place the smaller one is part `rank` of the larger one.
static weir_status one_rank(struct rank *rank)
{
    struct trial *trial = rank->user;
    const size_t size = weir_datatype_size(trial->element);
    const size_t part = (size_t)trial->count * size;
    const bool wide_source = has_wide_source(trial->kind);
    const bool wide_result = has_wide_result(trial->kind);
    const size_t source_count = (size_t)trial->count * (wide_source ? rank->count : 1);
    unsigned char *src = malloc(trial->size);
    unsigned char *dst = trial->dst[rank->rank];
    unsigned char *from = trial->in_place ? dst : src;
    unsigned char *to = dst;
    memset(src, UNTOUCHED, trial->size);
    memset(dst, UNTOUCHED, trial->size);
    if (trial->in_place && writes(trial, rank->rank) && reads(trial, rank->rank)) {
        from += wide_result && !wide_source ? rank->rank * part : 0;
        to += wide_source && !wide_result ? rank->rank * part : 0;
    }
    for (size_t i = 0; reads(trial, rank->rank) && i < source_count; i++)
        store(trial->element, from, i, value_of(trial, rank->rank, i));
    const struct weir_transport_call call = {
        .kind = trial->kind,
        .element = trial->element,
        .reduction = trial->reduction,
        .root = trial->root,
        .count = trial->count,
        .src = reads(trial, rank->rank) ? from : NULL,
        .dst = writes(trial, rank->rank) ? to : NULL,
    };
    const weir_status status = rank_call(rank, call);
    if (to != dst)
        memmove(dst, to, part);
    free(src);
    return status;
}

static double tolerance(const struct trial *trial, double value)
{
    if (trial->reduction != WEIR_AVERAGE || trial->element < WEIR_F16)
        return 0;
    const double epsilon = trial->element == WEIR_BF16  ? 0x1p-8
                           : trial->element == WEIR_F16 ? 0x1p-11
                           : trial->element == WEIR_F32 ? 0x1p-24
                                                        : 0x1p-53;
    return epsilon * fabs(value);
}

static void check(const struct trial *trial, uint32_t ranks)
{
    const size_t count = (size_t)trial->count * (has_wide_result(trial->kind) ? ranks : 1);
    size_t wrong = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (size_t i = 0; writes(trial, rank) && i < count; i++) {
            const double value = expected(trial, ranks, rank, i);
            const double got = load(trial->element, trial->dst[rank], i);
            wrong += !(fabs(got - value) <= tolerance(trial, value));
        }
        const size_t end = writes(trial, rank) && !trial->in_place
                               ? count * weir_datatype_size(trial->element)
                               : trial->size - 1;
        for (size_t i = end; i < trial->size; i++)
            wrong += trial->dst[rank][i] != UNTOUCHED;
    }
    if (wrong > 0)
        WEIR_FAIL("%zu values are wrong: %s of %s, %s, %u ranks, root %u, %zu elements%s", wrong,
                  weir_collective_name(trial->kind), weir_datatype_name(trial->element),
                  weir_reduction_name(trial->reduction), ranks, trial->root, (size_t)trial->count,
                  trial->in_place ? ", in place" : "");
}

// All trials of a group of ranks, one after the other on each rank.
struct trials {
    struct trial *list;
    size_t count;
};

static weir_status all_trials(struct rank *rank)
{
    const struct trials *trials = rank->user;
    weir_status status = WEIR_OK;
    for (size_t i = 0; !status && i < trials->count; i++) {
        rank->user = &trials->list[i];
        status = one_rank(rank);
    }
    return status;
}

static void free_trials(struct trials *trials, uint32_t ranks)
{
    for (size_t i = 0; i < trials->count; i++) {
        for (uint32_t rank = 0; rank < ranks; rank++)
            free(trials->list[i].dst[rank]);
    }
    trials->count = 0;
}

static void run_trials(struct trials *trials, uint32_t count)
{
    struct rank ranks[RANKS_MAX];
    for (size_t i = 0; i < trials->count; i++) {
        struct trial *trial = &trials->list[i];
        trial->size = (size_t)trial->count * count * weir_datatype_size(trial->element) + 1;
        for (uint32_t rank = 0; rank < count; rank++)
            trial->dst[rank] = malloc(trial->size);
    }
    ranks_run(WIRE, count, all_trials, trials, ranks);
    for (uint32_t rank = 0; rank < count; rank++)
        EXPECT_STR_EQ(ranks[rank].status ? ranks[rank].error.message : "", "");
    for (size_t i = 0; i < trials->count; i++)
        check(&trials->list[i], count);
    free_trials(trials, count);
}

static bool is_reduction(weir_collective kind)
{
    return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

// A kind with one element, all its reductions, in place and not, and each root. With many elements one
// of each will do.
static void add(struct trials *trials, uint32_t ranks, weir_collective kind, weir_datatype element,
                uint64_t count)
{
    const bool rooted = kind == WEIR_REDUCE || kind == WEIR_BROADCAST || kind == WEIR_GATHER ||
                        kind == WEIR_SCATTER;
    const int last = is_reduction(kind) && count < LARGE ? WEIR_AVERAGE : WEIR_SUM;
    const uint32_t first_root = rooted && count == LARGE ? ranks - 1 : 0;
    for (int reduction = WEIR_SUM; reduction <= last; reduction++) {
        for (uint32_t root = first_root; root < (rooted ? ranks : 1); root++) {
            for (int in_place = 0; in_place < 2; in_place++)
                trials->list[trials->count++] = (struct trial){
                    .kind = kind,
                    .element = element,
                    .reduction = (weir_reduction)reduction,
                    .root = root,
                    .count = count,
                    .in_place = in_place,
                };
        }
    }
}

static void check_kinds(uint32_t ranks, uint64_t count, weir_datatype first, weir_datatype last)
{
    static struct trial list[1000];
    struct trials trials = {.list = list};
    for (int element = (int)first; element <= (int)last; element++) {
        for (int kind = WEIR_ALL_REDUCE; kind <= WEIR_SCATTER; kind++)
            add(&trials, ranks, (weir_collective)kind, (weir_datatype)element, count);
        run_trials(&trials, ranks);
    }
}

WEIR_TEST(Collectives, OfOneRank)
{
    check_kinds(1, 5, WEIR_I8, WEIR_F64);
}

WEIR_TEST(Collectives, OfNoElements)
{
    check_kinds(3, 0, WEIR_F32, WEIR_F32);
}

WEIR_TEST(Collectives, OfOneElement)
{
    check_kinds(2, 1, WEIR_I8, WEIR_F64);
    check_kinds(4, 1, WEIR_F16, WEIR_F64);
}

WEIR_TEST(Collectives, OfAnOddCount)
{
    check_kinds(2, 7, WEIR_I8, WEIR_F64);
    check_kinds(3, 101, WEIR_I8, WEIR_F64);
    check_kinds(4, 13, WEIR_I8, WEIR_F64);
}

WEIR_TEST(Collectives, OfSeveralSegments)
{
    check_kinds(2, LARGE, WEIR_F64, WEIR_F64);
    check_kinds(4, LARGE, WEIR_F64, WEIR_F64);
}

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
    ranks_run(WIRE, 4, sum_thirds, results, ranks);
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
    ranks_run(WIRE, 2, wrap, results, ranks);
    EXPECT_INT_EQ(results[0], -2);
    EXPECT_INT_EQ(results[1], -2);
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
        ranks_run(WIRE, count, ring, NULL, ranks);
        for (uint32_t i = 0; i < count; i++)
            EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
    }
}

// Messages between two ranks while the third one takes part in collectives only.
static weir_status ping(struct rank *rank)
{
    int32_t value = 40 + (int32_t)rank->rank;
    weir_status status = WEIR_OK;
    struct weir_transport_call call = {.element = WEIR_I32, .count = 1};
    for (int i = 0; i < 100 && !status && rank->rank < 2; i++) {
        call.kind = i % 2 == (int)rank->rank ? WEIR_SEND : WEIR_RECV;
        call.root = 1 - rank->rank;
        call.src = &value;
        call.dst = &value;
        status = rank_call(rank, call);
        value += call.kind == WEIR_RECV;
    }
    if (!status)
        status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_BARRIER});
    *((int32_t *)rank->user + rank->rank) = value;
    return status;
}

WEIR_TEST(Collectives, SendAndReceive)
{
    int32_t values[3] = {0};
    struct rank ranks[RANKS_MAX];
    ranks_run(WIRE, 3, ping, values, ranks);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
    EXPECT_INT_EQ(values[0], 140);
    EXPECT_INT_EQ(values[1], 139);
    EXPECT_INT_EQ(values[2], 42);
}

struct parts {
    uint32_t rank[4];
    uint32_t count[4];
    int32_t sum[4];
};

// Ranks 3, 2 and 0 form one part, in that order; rank 1 gets none.
static weir_status split(struct rank *rank)
{
    static const int32_t keys[] = {9, 0, 4, -1};
    struct parts *parts = rank->user;
    const uint32_t own = rank->rank;
    const struct weir_transport_split split = {.color = own == 1 ? WEIR_NO_COLOR : 5,
                                               .key = keys[own]};
    struct rank part = {.number = 0};
    weir_status status = rank_split(rank, split, &part.group);
    rank_leave(rank); // the part lives on
    if (status || own == 1)
        return status ? status : part.group ? WEIR_ERROR_INVALID : WEIR_OK;
    ranks_ops()->place(part.group, &parts->rank[own], &parts->count[own]);
    const int32_t value = 1 << own;
    status = rank_call(&part, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                           .element = WEIR_I32,
                                                           .reduction = WEIR_SUM,
                                                           .count = 1,
                                                           .src = &value,
                                                           .dst = &parts->sum[own]});
    rank_leave(&part);
    return status;
}

WEIR_TEST(Collectives, Split)
{
    struct parts parts = {.rank = {0}};
    struct rank ranks[RANKS_MAX];
    ranks_run(WIRE, 4, split, &parts, ranks);
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
        EXPECT_UINT_EQ(parts.count[i], i == 1 ? 0u : 3u);
        EXPECT_INT_EQ(parts.sum[i], i == 1 ? 0 : 13);
    }
    EXPECT_UINT_EQ(parts.rank[3], 0u);
    EXPECT_UINT_EQ(parts.rank[2], 1u);
    EXPECT_UINT_EQ(parts.rank[0], 2u);
}
