#include "tests/comm/matrix.h"

#include <math.h>

#include "transports/kit/reduce.h"

// Numbers to bits and back. The conversions are tested with those of the transports.

static bool is_float(weir_datatype element)
{
    return element >= WEIR_F16;
}

static bool is_signed(weir_datatype element)
{
    return is_float(element) || element % 2;
}

// The bytes of an integer are its low ones.
static void store(char *to, weir_datatype element, size_t index, double value)
{
    const size_t size = weir_datatype_size(element);
    const float single = (float)value;
    const int64_t whole = element == WEIR_F16    ? weir_half_to_f16(single)
                          : element == WEIR_BF16 ? weir_half_to_bf16(single)
                                                 : (int64_t)value;
    const void *from = element == WEIR_F64   ? (const void *)&value
                       : element == WEIR_F32 ? (const void *)&single
                                             : (const void *)&whole;
    memcpy(to + index * size, from, size);
}

static double load(const char *from, weir_datatype element, size_t index)
{
    const size_t size = weir_datatype_size(element);
    const unsigned unused = 64 - 8 * (unsigned)size;
    double value = 0;
    float single = 0;
    uint64_t whole = 0;
    void *to = element == WEIR_F64   ? (void *)&value
               : element == WEIR_F32 ? (void *)&single
                                     : (void *)&whole;
    memcpy(to, from + index * size, size);
    if (element == WEIR_F64 || element == WEIR_F32)
        return element == WEIR_F64 ? value : (double)single;
    if (is_float(element))
        return element == WEIR_F16 ? (double)weir_half_from_f16((uint16_t)whole)
                                   : (double)weir_half_from_bf16((uint16_t)whole);
    return is_signed(element) ? (double)((int64_t)(whole << unused) >> unused) : (double)whole;
}

// Small enough that no sum or product of four overflows eight bits, and with quarters for floats.
static double number(weir_datatype element, uint32_t rank, size_t index)
{
    const int whole = (int)((index * 7 + rank * 3 + index / 1021) % 3) + 1;
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

static double reduced(const struct matrix_case *it, size_t index)
{
    double value = number(it->element, 0, index);
    for (uint32_t rank = 1; rank < it->ranks; rank++)
        value = combine(it->reduction, value, number(it->element, rank, index));
    if (it->reduction == WEIR_AVERAGE)
        value = value / it->ranks;
    return it->reduction == WEIR_AVERAGE && !is_float(it->element) ? trunc(value) : value;
}

static double tolerance(weir_datatype element, double value)
{
    static const double epsilon[] = {
        [WEIR_F16] = 0x1p-10, [WEIR_BF16] = 0x1p-7, [WEIR_F32] = 0x1p-23, [WEIR_F64] = 0x1p-52};
    return is_float(element) ? 4 * epsilon[element] * fabs(value) : 0;
}

// The shapes.

uint32_t matrix_root(const struct matrix_case *it)
{
    return it->ranks - 1;
}

static bool has_wide_source(weir_collective kind)
{
    return kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_TO_ALL || kind == WEIR_SCATTER;
}

static bool has_wide_result(weir_collective kind)
{
    return kind == WEIR_ALL_GATHER || kind == WEIR_ALL_TO_ALL || kind == WEIR_GATHER;
}

static size_t bytes_of(const struct matrix_case *it)
{
    return it->count * weir_datatype_size(it->element);
}

// In place, the smaller range is the rank's part of the larger one.
size_t matrix_read(const struct matrix_case *it, uint32_t rank, size_t *out_src_offset)
{
    const bool wide = has_wide_source(it->kind);
    const bool part = it->in_place && !wide && has_wide_result(it->kind);
    const bool at_root = it->kind == WEIR_BROADCAST || it->kind == WEIR_SCATTER;
    *out_src_offset = part ? rank * bytes_of(it) : 0;
    return at_root && rank != matrix_root(it) ? 0 : bytes_of(it) * (wide ? it->ranks : 1);
}

size_t matrix_written(const struct matrix_case *it, uint32_t rank, size_t *out_dst_offset)
{
    const bool wide = has_wide_result(it->kind);
    const bool part = it->in_place && !wide && has_wide_source(it->kind);
    const bool at_root = it->kind == WEIR_REDUCE || it->kind == WEIR_GATHER;
    *out_dst_offset = part ? rank * bytes_of(it) : 0;
    return at_root && rank != matrix_root(it) ? 0 : bytes_of(it) * (wide ? it->ranks : 1);
}

bool matrix_is_equal(const struct matrix_case *it)
{
    return it->kind == WEIR_ALL_REDUCE || it->kind == WEIR_BROADCAST || it->kind == WEIR_ALL_GATHER;
}

void matrix_fill(const struct matrix_case *it, uint32_t rank, char *to)
{
    size_t offset;
    const size_t count = matrix_read(it, rank, &offset) / weir_datatype_size(it->element);
    for (size_t i = 0; i < count; i++)
        store(to, it->element, i, number(it->element, rank, i));
}

// What element `index` of the rank's result has to be.
static double expected(const struct matrix_case *it, uint32_t rank, size_t index)
{
    switch (it->kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_REDUCE:
        return reduced(it, index);
    case WEIR_REDUCE_SCATTER:
        return reduced(it, rank * it->count + index);
    case WEIR_BROADCAST:
        return number(it->element, matrix_root(it), index);
    case WEIR_SCATTER:
        return number(it->element, matrix_root(it), rank * it->count + index);
    case WEIR_ALL_TO_ALL:
        return number(it->element, (uint32_t)(index / it->count),
                      rank * it->count + index % it->count);
    default: // gathers
        return number(it->element, (uint32_t)(index / it->count), index % it->count);
    }
}

bool matrix_check(const struct matrix_case *it, uint32_t rank, const char *got, char *text,
                  size_t size)
{
    size_t offset;
    const size_t count = matrix_written(it, rank, &offset) / weir_datatype_size(it->element);
    for (size_t i = 0; i < count; i++) {
        const double want = expected(it, rank, i);
        const double found = load(got, it->element, i);
        if (fabs(want - found) <= tolerance(it->element, want))
            continue;
        snprintf(text, size, "%s of %zu %s, %s%s, rank %u of %u: element %zu is %g and not %g",
                 weir_collective_name(it->kind), it->count, weir_datatype_name(it->element),
                 weir_reduction_name(it->reduction), it->in_place ? ", in place" : "", rank,
                 it->ranks, i, found, want);
        return false;
    }
    return true;
}

// The cases.

static bool is_reduction(weir_collective kind)
{
    return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

static size_t large(const struct matrix_case *it)
{
    return MATRIX_BYTES / weir_datatype_size(it->element) - 1;
}

static bool each_size(struct matrix_case *it, bool (*run)(void *, const struct matrix_case *),
                      void *user)
{
    const size_t sizes[] = {0, 1, 7, 1001, large(it)};
    const size_t sums = weir_datatype_size(it->element) < 4 ? 4 : 5;
    const size_t most = it->reduction == WEIR_SUM ? sums : it->kind == WEIR_ALL_REDUCE ? 4 : 3;
    for (size_t i = 0; i < most; i++) {
        it->count = sizes[i];
        for (int in_place = 0; in_place < 2; in_place++) {
            it->in_place = in_place == 1;
            if (!run(user, it))
                return false;
        }
    }
    return true;
}

bool matrix_each(uint32_t ranks, bool (*run)(void *, const struct matrix_case *), void *user)
{
    struct matrix_case it = {.ranks = ranks};
    for (it.kind = WEIR_ALL_REDUCE; it.kind <= WEIR_SCATTER; it.kind++) {
        const weir_reduction last = is_reduction(it.kind) ? WEIR_AVERAGE : WEIR_SUM;
        for (it.element = WEIR_I8; it.element <= WEIR_F64; it.element++)
            for (it.reduction = WEIR_SUM; it.reduction <= last; it.reduction++)
                if (!each_size(&it, run, user))
                    return false;
    }
    return true;
}
