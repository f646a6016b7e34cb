// Arguments: the corner cases of their types, in all pairs or some triples, then random numbers.
#include <math.h>

#include "tests/kernels/builtins/table.h"

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1d;
}

void store_value(enum type type, const struct value *value, void *at)
{
    const float single = (float)value->x;
    const double twice = (double)value->x;
    const uint64_t whole = (uint64_t)value->i;
    memcpy(at,
           type == FLOAT    ? (const void *)&single
           : type == DOUBLE ? (const void *)&twice
                            : &whole,
           type_size(type));
}

struct value load_value(enum type type, const void *at)
{
    float single;
    double twice;
    uint64_t whole = 0;
    memcpy(&whole, at, type_size(type));
    memcpy(&single, &whole, sizeof single);
    memcpy(&twice, &whole, sizeof twice);
    struct value value = {.x = type == FLOAT ? (long double)single : (long double)twice};
    const unsigned beyond = 64 - type_bits(type);
    value.i = is_signed(type) ? (integer)((int64_t)(whole << beyond) >> beyond) : (integer)whole;
    return value;
}

integer bits_at(const struct call *call, unsigned number, unsigned lane)
{
    const struct value *value = &(call - call->lane + lane)->argument[number];
    uint64_t image = 0;
    if (!is_real(call->type))
        return value->i;
    store_value(call->type, value, &image);
    return (integer)image;
}

// Corner cases of whole numbers; those of `bits` are relative to the type.
static size_t whole_corners(enum type type, struct value *out)
{
    const integer least = type_least(type), most = type_most(type), bits = type_bits(type);
    const integer corners[] = {0, 1, 2, most, least, most - 1, -1, least + 1,
                               // Counts of shifts, and halves and thirds of the range.
                               bits, bits - 1, bits + 1, most / 2, most / 2 + 1, -2, 3, 7, most / 3,
                               most / 3 * 2, 32, -bits, 100, -100, 2 * bits + 3, least / 2};
    const size_t count = sizeof corners / sizeof *corners;
    for (size_t i = 0; i < count; i++)
        out[i].i = corners[i];
    return count;
}

// Corner cases of floats and doubles, the most telling ones first.
static size_t real_corners(enum type type, struct value *out)
{
    const bool twice = type == DOUBLE;
    const long double most = twice ? 0x1.fffffffffffffp1023L : 0x1.fffffep127L;
    const long double least = twice ? 0x1p-1022L : 0x1p-126L; // that is normal
    const long double step = twice ? 0x1p-52L : 0x1p-23L;
    const long double sizes[] = {
        0, 1, INFINITY, most, least * step, least, 0.5L, 2,
        // Neighbours of 1, and numbers whose fraction is a half or nothing.
        1 + step, 1 - step / 2, 1.5L, 1 / step, least - least * step, 2.5L, 3, 0x1p31L, 0x1p63L, 10,
        0.1L, 3.14159265358979L, 1 / step - 0.5L, 64, 0.25L, 100.75L};
    size_t count = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        out[count++].x = sizes[i];
        out[count++].x = -sizes[i];
    }
    out[count] = out[6];
    out[6].x = NAN;
    count++;
    return count;
}

static size_t corners_of(enum type type, struct value *out)
{
    return is_real(type) ? real_corners(type, out) : whole_corners(type, out);
}

// Of every size: as many bits as another random number says.
static integer random_whole(uint64_t *state)
{
    const integer size = (integer)(next(state) >> (next(state) & 63));
    return next(state) & 1 ? size : -size;
}

// Any bits; or a number near 1; or one of many.
static long double random_real(enum type type, uint64_t *state)
{
    const uint64_t image = next(state);
    const int range = next(state) & 1 ? 4 : type == FLOAT ? 100 : 900;
    if (image % 3 == 0)
        return load_value(type, &(uint64_t){next(state)}).x;
    const long double digits = (long double)(int64_t)next(state) / 0x1p63L;
    return ldexpl(digits, (int)(next(state) % (2 * (unsigned)range)) - range);
}

static long double random_between(double low, double high, uint64_t *state)
{
    return (long double)low +
           (long double)(next(state) >> 11) * 0x1p-53L * (long double)(high - low);
}

static struct value random_value(const struct row *row, enum type type, uint64_t *state)
{
    uint64_t image = 0;
    const bool inside = row->high > row->low && next(state) % 3 == 0;
    const struct value value = {.i = random_whole(state),
                                .x = !is_real(type) ? 0
                                     : inside       ? random_between(row->low, row->high, state)
                                                    : random_real(type, state)};
    store_value(type, &value, &image);
    return load_value(type, &image);
}

// The corner cases of call `index`, as a number whose digits choose one for each argument.
static bool take_corners(const enum type *types, size_t arguments, size_t index, struct call *call)
{
    struct value corners[64];
    for (size_t k = 0; k < arguments; k++) {
        size_t count = corners_of(types[k], corners);
        if (arguments == 3 && count > 13)
            count = 13;
        uint64_t image = 0;
        store_value(types[k], &corners[index % count], &image);
        call->argument[k] = load_value(types[k], &image);
        index /= count;
    }
    return index == 0;
}

void make_calls(const struct row *row, enum type type, struct call *calls)
{
    const size_t arguments = strlen(row->arguments);
    enum type types[ARGUMENTS];
    uint64_t state = 88172645463325252;
    for (size_t k = 0; k < arguments; k++)
        types[k] = letter_type(row->arguments[k], type, true);
    for (size_t i = 0; i < COUNT; i++) {
        calls[i] = (struct call){.type = type};
        if (!take_corners(types, arguments, i, &calls[i]))
            for (size_t k = 0; k < arguments; k++)
                calls[i].argument[k] = random_value(row, types[k], &state);
        if (row->fit)
            row->fit(&calls[i]);
    }
}
