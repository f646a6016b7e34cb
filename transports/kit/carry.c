// Each element of a reduction is ((x0 + x1) + x2) + …, in the order of ranks, on one rank for all or on each for itself: all
// get the same bits.
#include "transports/kit/call.h"

#include "transports/kit/reduce.h"

// One function for each element and operation, so that each is one loop over one type.

// The loop of one operation. `expression` is of a and b, which `load` makes from the stored type;
// `more` may lie at any address.
#define LOOP(name, stored, computed, load, store, expression)                    \
    static void name(void *total, const void *more, size_t count)                \
    {                                                                            \
        stored *into = total;                                                    \
        for (size_t i = 0; i < count; i++) {                                     \
            stored other;                                                        \
            memcpy(&other, (const char *)more + i * sizeof other, sizeof other); \
            const computed a = load(into[i]);                                    \
            const computed b = load(other);                                      \
            into[i] = (stored)store(expression);                                 \
        }                                                                        \
    }

#define DIVIDE(name, stored, computed, load, store)                   \
    static void name(void *total, size_t count, uint32_t ranks)       \
    {                                                                 \
        stored *into = total;                                         \
        for (size_t i = 0; i < count; i++)                            \
            into[i] = (stored)store(load(into[i]) / (computed)ranks); \
    }

#define SAME(value) (value)

// Integers wrap, which only unsigned arithmetic of at least an int's width does by the language;
// the order of signed ones is that of their own type.
#define INTEGER(name, stored, wide, divided)                        \
    LOOP(name##_sum, stored, wide, (wide)SAME, SAME, a + b)         \
    LOOP(name##_product, stored, wide, (wide)SAME, SAME, a *b)      \
    LOOP(name##_minimum, stored, stored, SAME, SAME, b < a ? b : a) \
    LOOP(name##_maximum, stored, stored, SAME, SAME, b > a ? b : a) \
    DIVIDE(name##_average, stored, divided, SAME, SAME)

#define FLOATING(name, stored, computed, load, store)                  \
    LOOP(name##_sum, stored, computed, load, store, a + b)             \
    LOOP(name##_product, stored, computed, load, store, a *b)          \
    LOOP(name##_minimum, stored, computed, load, store, b < a ? b : a) \
    LOOP(name##_maximum, stored, computed, load, store, b > a ? b : a) \
    DIVIDE(name##_average, stored, computed, load, store)

INTEGER(i8, int8_t, uint32_t, int64_t)
INTEGER(u8, uint8_t, uint32_t, uint64_t)
INTEGER(i16, int16_t, uint32_t, int64_t)
INTEGER(u16, uint16_t, uint32_t, uint64_t)
INTEGER(i32, int32_t, uint32_t, int64_t)
INTEGER(u32, uint32_t, uint32_t, uint64_t)
INTEGER(i64, int64_t, uint64_t, int64_t)
INTEGER(u64, uint64_t, uint64_t, uint64_t)
FLOATING(f16, uint16_t, float, weir_half_from_f16, weir_half_to_f16)
FLOATING(bf16, uint16_t, float, weir_half_from_bf16, weir_half_to_bf16)
FLOATING(f32, float, float, SAME, SAME)
FLOATING(f64, double, double, SAME, SAME)

#undef FLOATING
#undef INTEGER
#undef SAME
#undef DIVIDE
#undef LOOP

#define ROW(name)                                   \
    {                                               \
        .reduce = {[WEIR_SUM] = name##_sum,         \
                   [WEIR_PRODUCT] = name##_product, \
                   [WEIR_MINIMUM] = name##_minimum, \
                   [WEIR_MAXIMUM] = name##_maximum, \
                   [WEIR_AVERAGE] = name##_sum},    \
        .divide = name##_average                    \
    }

static const struct {
    void (*reduce[WEIR_AVERAGE + 1])(void *total, const void *more, size_t count);
    void (*divide)(void *total, size_t count, uint32_t ranks);
} elements[] = {
    [WEIR_I8] = ROW(i8),   [WEIR_U8] = ROW(u8),     [WEIR_I16] = ROW(i16), [WEIR_U16] = ROW(u16),
    [WEIR_I32] = ROW(i32), [WEIR_U32] = ROW(u32),   [WEIR_I64] = ROW(i64), [WEIR_U64] = ROW(u64),
    [WEIR_F16] = ROW(f16), [WEIR_BF16] = ROW(bf16), [WEIR_F32] = ROW(f32), [WEIR_F64] = ROW(f64),
};

#undef ROW

void weir_reduce(weir_datatype element, weir_reduction reduction, void *total, const void *more,
                 size_t count)
{
    elements[element].reduce[reduction](total, more, count);
}

void weir_reduce_divide(weir_datatype element, void *total, size_t count, uint32_t ranks)
{
    elements[element].divide(total, count, ranks);
}

// Segments.

// What is added up at once, so that it stays in a core's own cache.
#define BLOCK_BYTES ((size_t)32 << 10)

// Which ranks give, and get, one part or a part for each rank.
struct shape {
    weir_collective moved;
    bool root_gives;
    bool gives_parts;
    bool reduces;
    bool root_gets;
    bool gets_parts;
};

static const struct shape shapes[] = {
    [WEIR_ALL_REDUCE] = {.moved = WEIR_ALL_GATHER, .reduces = true}, // in one move
    [WEIR_REDUCE] = {.moved = WEIR_GATHER, .reduces = true, .root_gets = true},
    [WEIR_BROADCAST] = {.moved = WEIR_BROADCAST, .root_gives = true},
    [WEIR_ALL_GATHER] = {.moved = WEIR_ALL_GATHER, .gets_parts = true},
    [WEIR_REDUCE_SCATTER] = {.moved = WEIR_ALL_TO_ALL, .gives_parts = true, .reduces = true},
    [WEIR_ALL_TO_ALL] = {.moved = WEIR_ALL_TO_ALL, .gives_parts = true, .gets_parts = true},
    [WEIR_GATHER] = {.moved = WEIR_GATHER, .root_gets = true, .gets_parts = true},
    [WEIR_SCATTER] = {.moved = WEIR_SCATTER, .root_gives = true, .gives_parts = true},
};

struct carried {
    const struct weir_carrier *by;
    const struct weir_transport_call *call;
    size_t size; // of an element
    const char
        *own; // what this rank has for itself in the segment, which is not given; NULL: it is
};

static bool move(const struct carried *it, weir_collective kind, size_t count)
{
    return it->by->move(it->by->user, kind, count * it->size);
}

static const char *given(const struct carried *it, uint32_t from)
{
    return it->own && from == it->by->rank ? it->own : it->by->given(it->by->user, from);
}

// These three count in elements.

static const char *source(const struct carried *it, size_t offset)
{
    return (const char *)it->call->src + offset * it->size;
}

static void give(const struct carried *it, size_t at, size_t offset, size_t count)
{
    memcpy(it->by->give(it->by->user) + at * it->size, source(it, offset), count * it->size);
}

// The rank that this one takes from in a turn: all take from different ones at a time.
static uint32_t in_turn(const struct carried *it, uint32_t turn)
{
    return (it->by->rank + 1 + turn) % it->by->count;
}

// In place a rank's own is there.
static void take(const struct carried *it, uint32_t from, size_t offset, size_t count)
{
    char *to = (char *)it->call->dst + offset * it->size;
    if (to != given(it, from))
        memcpy(to, given(it, from), count * it->size);
}

static void reduce(const struct carried *it, char *total, size_t count)
{
    const struct weir_transport_call *call = it->call;
    const size_t block = BLOCK_BYTES / it->size;
    for (size_t at = 0; at < count; at += block) {
        const size_t length = count - at < block ? count - at : block;
        char *to = total + at * it->size;
        memcpy(to, given(it, 0) + at * it->size, length * it->size);
        for (uint32_t i = 1; i < it->by->count; i++)
            weir_reduce(call->element, call->reduction, to, given(it, i) + at * it->size, length);
        if (call->reduction == WEIR_AVERAGE)
            weir_reduce_divide(call->element, to, length, it->by->count);
    }
}

// Of a part that begins there; 0 at the end.
static size_t length_at(size_t at, size_t part, size_t count)
{
    const size_t left = at < count ? count - at : 0;
    return left < part ? left : part;
}

// Each rank adds up a part of the elements, and all get all parts. The last ones may be shorter, or empty: the rest
// of their memory is not added up, since it may hold no numbers, for which a program may have a trap.
static bool all_reduce(struct carried *it, size_t offset, size_t count)
{
    const uint32_t own = it->by->rank;
    const size_t part = (count + it->by->count - 1) / it->by->count;
    const size_t length = length_at(own * part, part, count);
    it->own = length > 0 ? source(it, offset + own * part) : NULL;
    for (size_t i = 0, at = 0; at < count; i++, at += part)
        if (i != own)
            give(it, at, offset + at, length_at(at, part, count));
    if (!move(it, WEIR_ALL_TO_ALL, part))
        return false;
    reduce(it, it->by->give(it->by->user), length);
    it->own = NULL;
    if (!move(it, WEIR_ALL_GATHER, part))
        return false;
    for (uint32_t i = 0; i < it->by->count; i++) {
        const size_t at = in_turn(it, i) * part;
        if (at < count)
            take(it, in_turn(it, i), offset + at, length_at(at, part, count));
    }
    return true;
}

// A total may lie where the rank's own is.
static bool carry_shape(struct carried *it, size_t offset, size_t count)
{
    const struct weir_transport_call *call = it->call;
    const struct shape *shape = &shapes[call->kind];
    const uint32_t own = it->by->rank;
    const bool gives = own == call->root || !shape->root_gives;
    const size_t own_part = shape->gives_parts ? own * call->count : 0;
    it->own = gives && !shape->reduces ? source(it, own_part + offset) : NULL;
    for (uint32_t i = 0; gives && i < (shape->gives_parts ? it->by->count : 1); i++)
        if (!it->own || !shape->gives_parts || i != own)
            give(it, i * count, i * call->count + offset, count);
    if (!move(it, shape->moved, count))
        return false;
    if (!call->dst || (shape->root_gets && own != call->root))
        return true;
    if (shape->reduces)
        reduce(it, (char *)call->dst + offset * it->size, count);
    else if (!shape->gets_parts)
        take(it, call->root, offset, count);
    for (uint32_t i = 0; shape->gets_parts && i < it->by->count; i++)
        take(it, in_turn(it, i), in_turn(it, i) * call->count + offset, count);
    return true;
}

bool weir_carry(const struct weir_carrier *carrier, const struct weir_transport_call *call)
{
    if (call->kind == WEIR_BARRIER || call->count == 0 || (!call->src && !call->dst))
        return true;
    struct carried it = {carrier, call, weir_datatype_size(call->element), NULL};
    const bool small = call->count * it.size <= carrier->small;
    size_t most = shapes[call->kind].gives_parts ? carrier->each : carrier->one;
    if (call->kind == WEIR_ALL_REDUCE)
        most = small ? carrier->small : carrier->each * carrier->count;
    else if (call->kind == WEIR_BROADCAST)
        most = carrier->whole;
    most /= it.size;
    bool ok = true;
    for (size_t offset = 0; offset < call->count && ok; offset += most) {
        const size_t left = (size_t)call->count - offset;
        const size_t count = left < most ? left : most;
        ok = call->kind == WEIR_ALL_REDUCE && !small ? all_reduce(&it, offset, count)
                                                     : carry_shape(&it, offset, count);
    }
    return ok;
}
