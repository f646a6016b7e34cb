// Collectives through the front end and the transport `local` on real backends: kinds, datatypes,
// reductions, in place and not, sizes from 0 to more than a transport's piece, with 2 and 4 ranks of
// this process. Results are compared with the same computed in float64, and between the ranks bit by
// bit. The environment names the backend.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/comm/rig.h"

enum {
    MOST = 70001,          // elements of a rank
    LONG = MOST,           // more than what travels in one piece
    BUFFER = MOST * 8 * 4, // four ranks of the largest elements
};

static const size_t few_sizes[] = {0, 1, 7, 1000};

static struct {
    struct comm_rig rig;
    weir_buffer *src[COMM_RIG_MOST];
    weir_buffer *dst[COMM_RIG_MOST];
    char sent[COMM_RIG_MOST][BUFFER];
    char got[COMM_RIG_MOST][BUFFER];
} all;

// Numbers to bits and back, apart from how the transport does it.

static uint16_t half_bits(double value, int mantissa, int bias)
{
    int exponent;
    const double part = frexp(fabs(value), &exponent); // 0.5 to 1
    if (value == 0)
        return 0;
    const unsigned fraction = (unsigned)lround(ldexp(part * 2 - 1, mantissa));
    return (uint16_t)((value < 0 ? 0x8000u : 0) |
                      (((unsigned)(exponent - 1 + bias) << mantissa) + fraction));
}

static double half_value(uint16_t bits, int mantissa, int bias)
{
    const unsigned rest = bits & 0x7FFFu;
    if (rest == 0)
        return 0;
    const double part = 1 + ldexp(rest & ((1u << mantissa) - 1), -mantissa);
    const double value = ldexp(part, (int)(rest >> mantissa) - bias);
    return bits & 0x8000u ? -value : value;
}

#define STORE(type)                                                    \
    do {                                                               \
        const type stored_ = (type)value;                              \
        memcpy(to + index * sizeof stored_, &stored_, sizeof stored_); \
    } while (0)

static void store(char *to, weir_datatype element, size_t index, double value)
{
    switch (element) {
    case WEIR_I8:
    case WEIR_U8:
        STORE(int8_t);
        break;
    case WEIR_I16:
    case WEIR_U16:
        STORE(int16_t);
        break;
    case WEIR_I32:
    case WEIR_U32:
        STORE(int32_t);
        break;
    case WEIR_I64:
    case WEIR_U64:
        STORE(int64_t);
        break;
    case WEIR_F16:
        value = half_bits(value, 10, 15);
        STORE(uint16_t);
        break;
    case WEIR_BF16:
        value = half_bits(value, 7, 127);
        STORE(uint16_t);
        break;
    case WEIR_F32:
        STORE(float);
        break;
    case WEIR_F64:
        STORE(double);
        break;
    }
}

#define LOAD(type)                                                       \
    do {                                                                 \
        type loaded_;                                                    \
        memcpy(&loaded_, from + index * sizeof loaded_, sizeof loaded_); \
        return (double)loaded_;                                          \
    } while (0)

static double load(const char *from, weir_datatype element, size_t index)
{
    uint16_t bits;
    memcpy(&bits, from + index * weir_datatype_size(element),
           weir_datatype_size(element) > 1 ? 2 : 1);
    switch (element) {
    case WEIR_I8:
        LOAD(int8_t);
    case WEIR_U8:
        LOAD(uint8_t);
    case WEIR_I16:
        LOAD(int16_t);
    case WEIR_U16:
        LOAD(uint16_t);
    case WEIR_I32:
        LOAD(int32_t);
    case WEIR_U32:
        LOAD(uint32_t);
    case WEIR_I64:
        LOAD(int64_t);
    case WEIR_U64:
        LOAD(uint64_t);
    case WEIR_F16:
        return half_value(bits, 10, 15);
    case WEIR_BF16:
        return half_value(bits, 7, 127);
    case WEIR_F32:
        LOAD(float);
    case WEIR_F64:
        LOAD(double);
    }
    return 0;
}

static bool is_float(weir_datatype element)
{
    return element >= WEIR_F16;
}

static bool is_signed(weir_datatype element)
{
    return is_float(element) || element % 2;
}

// Small enough that no sum or product of four overflows eight bits, and with quarters for floats.
static double number(weir_datatype element, uint32_t rank, size_t index)
{
    const int whole = (int)((index * 7 + rank * 3) % 3) + 1;
    const double value = whole + (is_float(element) ? 0.25 : 0);
    return is_signed(element) && (index + rank) % 5 == 0 ? -value : value;
}

static double combine(weir_reduction reduction, double a, double b)
{
    switch (reduction) {
    case WEIR_PRODUCT:
        return a * b;
    case WEIR_MINIMUM:
        return a < b ? a : b;
    case WEIR_MAXIMUM:
        return a > b ? a : b;
    default:
        return a + b;
    }
}

static double reduced(weir_datatype element, weir_reduction reduction, size_t index)
{
    double value = number(element, 0, index);
    for (uint32_t rank = 1; rank < all.rig.count; rank++)
        value = combine(reduction, value, number(element, rank, index));
    if (reduction == WEIR_AVERAGE)
        value = value / all.rig.count;
    return reduction == WEIR_AVERAGE && !is_float(element) ? trunc(value) : value;
}

static double tolerance(weir_datatype element, double value)
{
    static const double epsilon[] = {
        [WEIR_F16] = 0x1p-10, [WEIR_BF16] = 0x1p-7, [WEIR_F32] = 0x1p-23, [WEIR_F64] = 0x1p-52};
    return is_float(element) ? 4 * epsilon[element] * fabs(value) : 0;
}

// One collective on all ranks.
struct round {
    weir_collective kind;
    weir_datatype element;
    weir_reduction reduction;
    size_t count;
    bool in_place;
};

static uint32_t parts_read(weir_collective kind)
{
    return kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_TO_ALL || kind == WEIR_SCATTER
               ? all.rig.count
               : 1;
}

static uint32_t parts_written(weir_collective kind)
{
    return kind == WEIR_ALL_GATHER || kind == WEIR_ALL_TO_ALL || kind == WEIR_GATHER ? all.rig.count
                                                                                     : 1;
}

// In place, the smaller range is the rank's part of the larger one.
static void submit(const struct round *round, uint32_t rank)
{
    const size_t bytes = round->count * weir_datatype_size(round->element);
    const bool both = round->in_place;
    const uint32_t reads = parts_read(round->kind);
    const uint32_t writes = parts_written(round->kind);
    const struct weir_collective_params params = {
        .struct_size = sizeof params,
        .kind = round->kind,
        .element = round->element,
        .reduction = round->reduction,
        .root = all.rig.count - 1,
        .src = all.src[rank],
        .src_offset = both && reads < writes ? rank * bytes : 0,
        .dst = both ? all.src[rank] : all.dst[rank],
        .dst_offset = both && writes < reads ? rank * bytes : 0,
        .count = round->count,
    };
    weir_queue *queue = all.rig.queues[rank];
    for (size_t i = 0; i < round->count * reads; i++)
        store(all.sent[rank], round->element, i, number(round->element, rank, i));
    EXPECT_OK(weir_upload(queue, all.src[rank], params.src_offset, all.sent[rank], bytes * reads));
    EXPECT_OK(weir_queue_collective(queue, all.rig.comms[rank], &params));
}

static void fetch(const struct round *round, uint32_t rank)
{
    const size_t bytes = round->count * weir_datatype_size(round->element);
    const uint32_t reads = parts_read(round->kind);
    const uint32_t writes = parts_written(round->kind);
    const size_t offset = round->in_place && writes < reads ? rank * bytes : 0;
    EXPECT_OK(weir_download(all.rig.queues[rank], all.got[rank],
                            round->in_place ? all.src[rank] : all.dst[rank], offset,
                            bytes * writes));
}

// What element `index` of this rank's result has to be.
static double expected(const struct round *round, uint32_t rank, size_t index)
{
    const weir_datatype element = round->element;
    const size_t count = round->count;
    const uint32_t root = all.rig.count - 1;
    const uint32_t part = (uint32_t)(index / count);
    const size_t inside = index % count;
    switch (round->kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_REDUCE:
        return reduced(element, round->reduction, index);
    case WEIR_REDUCE_SCATTER:
        return reduced(element, round->reduction, rank * count + index);
    case WEIR_BROADCAST:
        return number(element, root, index);
    case WEIR_SCATTER:
        return number(element, root, rank * count + index);
    case WEIR_ALL_TO_ALL:
        return number(element, part, rank * count + inside);
    default: // gathers
        return number(element, part, inside);
    }
}

static void compare(const struct round *round, uint32_t rank)
{
    const size_t count = round->count * parts_written(round->kind);
    for (size_t i = 0; i < count; i++) {
        const double want = expected(round, rank, i);
        const double got = load(all.got[rank], round->element, i);
        if (fabs(want - got) <= tolerance(round->element, want))
            continue;
        WEIR_FAIL("%s of %zu %s, %s%s, rank %u of %u: element %zu is %g and not %g",
                  weir_collective_name(round->kind), round->count,
                  weir_datatype_name(round->element), weir_reduction_name(round->reduction),
                  round->in_place ? ", in place" : "", rank, all.rig.count, i, got, want);
        return;
    }
}

static void run(const struct round *round)
{
    const uint32_t root = all.rig.count - 1;
    const bool rooted = round->kind == WEIR_REDUCE || round->kind == WEIR_GATHER;
    const size_t bytes = round->count * weir_datatype_size(round->element);
    for (uint32_t rank = 0; rank < all.rig.count; rank++)
        submit(round, rank);
    for (uint32_t rank = 0; rank < all.rig.count; rank++) {
        fetch(round, rank);
        if (!rooted || rank == root)
            compare(round, rank);
        if (round->kind == WEIR_ALL_REDUCE && round->count)
            EXPECT_INT_EQ(memcmp(all.got[0], all.got[rank], bytes), 0);
    }
}

static void open_ranks(uint32_t count, weir_placement placement)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = BUFFER,
                                              .placement = placement};
    comm_rig_open(&all.rig, "", count, placement);
    for (uint32_t rank = 0; rank < count; rank++) {
        ASSERT_OK(weir_buffer_create(all.rig.devices[rank], &params, &all.src[rank]));
        ASSERT_OK(weir_buffer_create(all.rig.devices[rank], &params, &all.dst[rank]));
    }
}

static void close_ranks(void)
{
    for (uint32_t rank = 0; rank < COMM_RIG_MOST; rank++) {
        weir_buffer_destroy(&all.src[rank]);
        weir_buffer_destroy(&all.dst[rank]);
    }
    comm_rig_close(&all.rig);
}

static void run_reductions(weir_collective kind, weir_datatype element, size_t count, bool in_place)
{
    for (weir_reduction reduction = WEIR_SUM; reduction <= WEIR_AVERAGE; reduction++)
        run(&(struct round){kind, element, reduction, count, in_place});
}

static void run_all_reduces(void)
{
    for (weir_datatype element = WEIR_I8; element <= WEIR_F64; element++)
        for (size_t i = 0; i < sizeof few_sizes / sizeof *few_sizes; i++)
            for (int in_place = 0; in_place < 2; in_place++)
                run_reductions(WEIR_ALL_REDUCE, element, few_sizes[i], in_place);
}

WEIR_TEST(CommConformance, AllReduceOfTwo)
{
    open_ranks(2, WEIR_PLACE_DEVICE);
    run_all_reduces();
    close_ranks();
}

WEIR_TEST(CommConformance, AllReduceOfFour)
{
    open_ranks(4, WEIR_PLACE_HOST);
    run_all_reduces();
    close_ranks();
}

static void run_kinds(void)
{
    static const weir_collective kinds[] = {WEIR_REDUCE,        WEIR_BROADCAST, WEIR_ALL_GATHER,
                                            WEIR_ALL_TO_ALL,    WEIR_GATHER,    WEIR_SCATTER,
                                            WEIR_REDUCE_SCATTER};
    static const weir_datatype elements[] = {WEIR_U8, WEIR_BF16, WEIR_F64};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (size_t element = 0; element < 3; element++)
            for (size_t i = 0; i < sizeof few_sizes / sizeof *few_sizes; i++)
                for (int in_place = 0; in_place < 2; in_place++)
                    run(&(struct round){kinds[kind], elements[element], WEIR_SUM, few_sizes[i],
                                        in_place});
}

WEIR_TEST(CommConformance, KindsOfTwo)
{
    open_ranks(2, WEIR_PLACE_DEVICE);
    run_kinds();
    close_ranks();
}

WEIR_TEST(CommConformance, KindsOfFour)
{
    open_ranks(4, WEIR_PLACE_DEVICE);
    run_kinds();
    close_ranks();
}

WEIR_TEST(CommConformance, LongerThanAPiece)
{
    for (weir_placement placement = WEIR_PLACE_DEVICE; placement <= WEIR_PLACE_HOST; placement++) {
        open_ranks(4, placement);
        run(&(struct round){WEIR_ALL_REDUCE, WEIR_F32, WEIR_SUM, LONG, true});
        run(&(struct round){WEIR_ALL_GATHER, WEIR_F64, WEIR_SUM, LONG, false});
        run(&(struct round){WEIR_REDUCE_SCATTER, WEIR_I64, WEIR_SUM, LONG, false});
        close_ranks();
    }
}

// The transport's sentence about two ranks that differ comes through to both queues.
WEIR_TEST(CommConformance, RanksThatDiffer)
{
    open_ranks(2, WEIR_PLACE_DEVICE);
    const struct comm_rig *rig = &all.rig;
    EXPECT_OK(weir_queue_barrier(rig->queues[0], rig->comms[0]));
    EXPECT_OK(weir_queue_broadcast(rig->queues[1], rig->comms[1], all.dst[1], 0, all.src[1], 0, 5,
                                   WEIR_F32, 1));
    for (uint32_t rank = 0; rank < 2; rank++) {
        COMM_RIG_EXPECT_CAUSE(rig->queues[rank], "'grads'", "barrier", "broadcast",
                              "conformance_test.c:");
        EXPECT_INT_EQ(weir_comm_error(rig->comms[rank]), WEIR_ERROR_COMM);
    }
    close_ranks();
}

// The same inputs give the same bits again.
WEIR_TEST(CommConformance, SameBitsAgain)
{
    static char first[1000 * 2];
    const struct round round = {WEIR_ALL_REDUCE, WEIR_F16, WEIR_PRODUCT, 1000, false};
    for (int again = 0; again < 3; again++) {
        open_ranks(4, WEIR_PLACE_DEVICE);
        run(&round);
        if (again)
            EXPECT_INT_EQ(memcmp(first, all.got[0], sizeof first), 0);
        memcpy(first, all.got[0], sizeof first);
        close_ranks();
    }
}
