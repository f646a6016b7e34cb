// Conversions from and to half. From half: through float, which holds every half. To half: the nearest,
// and its neighbour where that lies on the wrong side. Whole numbers go through float in the same
// direction; those that float rounds are beyond the largest half. Stores that round up or down are
// here too: libclc's take what is below the smallest half to the wrong side.
// The neighbour towards an infinity: `step` is 1 towards the positive one, and -1.
OWN half neighbour(half x, short step)
{
    const short bits = as_short(x);
    if (x == 0.0h)
        return as_half((ushort)(step > 0 ? 0x0001 : 0x8001));
    return as_half((short)(bits >= 0 ? bits + step : bits - step));
}

#define ROUNDINGS(type)                                              \
    GIVES(static half, rounded, (type x), (half)x)                   \
    GIVES(static half, rounded_rte, (type x), (half)x)               \
    OWN half rounded_rtp(type x)                                     \
    {                                                                \
        const half nearest = (half)x;                                \
        return (type)nearest < x ? neighbour(nearest, 1) : nearest;  \
    }                                                                \
    OWN half rounded_rtn(type x)                                     \
    {                                                                \
        const half nearest = (half)x;                                \
        return (type)nearest > x ? neighbour(nearest, -1) : nearest; \
    }                                                                \
    GIVES(static half, rounded_rtz, (type x), x > 0 ? rounded_rtn(x) : rounded_rtp(x))

ROUNDINGS(float)
ROUNDINGS(double)

#define ROUNDED(type, mode, n)                        \
    GIVES(static half##n, rounded##mode, (type##n x), \
          (half##n)(rounded##mode(x.lo), rounded##mode(x.REST_##n)))
#define ROUNDED_VECTORS(type, mode) VECTORS(ROUNDED, type, mode)

#define MODES(define, ...)                                                    \
    define(__VA_ARGS__, ) define(__VA_ARGS__, _rte) define(__VA_ARGS__, _rtz) \
        define(__VA_ARGS__, _rtp) define(__VA_ARGS__, _rtn)

MODES(ROUNDED_VECTORS, float)
MODES(ROUNDED_VECTORS, double)

// To float and double, which is exact, and to half.

#define FLOATS(n, mode)                                                    \
    GIVES(half##n, convert_half##n##mode, (half##n x), x)                  \
    GIVES(half##n, convert_half##n##mode, (float##n x), rounded##mode(x))  \
    GIVES(half##n, convert_half##n##mode, (double##n x), rounded##mode(x)) \
    GIVES(float##n, convert_float##n##mode, (half##n x), wide(x))          \
    GIVES(double##n, convert_double##n##mode, (half##n x), convert_double##n##mode(wide(x)))

#define FLOATS_OF(unused, n) MODES(FLOATS, n)
WIDTHS(FLOATS_OF, )

// From and to whole numbers.

#define FROM_HALF(type, n, saturated, mode)                         \
    GIVES(type##n, convert_##type##n##saturated##mode, (half##n x), \
          convert_##type##n##saturated##mode(wide(x)))

#define TO_HALF(type, n, mode) \
    GIVES(half##n, convert_half##n##mode, (type##n x), rounded##mode(convert_float##n##mode(x)))

#define WHOLE_OF(type, n)           \
    MODES(FROM_HALF, type, n, )     \
    MODES(FROM_HALF, type, n, _sat) \
    MODES(TO_HALF, type, n)

#define WHOLE(type) WIDTHS(WHOLE_OF, type)

WHOLE(char)
WHOLE(uchar)
WHOLE(short)
WHOLE(ushort)
WHOLE(int)
WHOLE(uint)
WHOLE(long)
WHOLE(ulong)

// Stores: vstorea_half3 has places of four.

#define STORE_VECTOR(type, space, mode, n, half_of)                               \
    FUNCTION void vstore_half##n##mode(type##n x, size_t offset, space half *to)  \
    {                                                                             \
        vstore_half##half_of##mode(x.lo, 2 * offset, to);                         \
        vstore_half##half_of##mode(x.hi, 2 * offset + 1, to);                     \
    }                                                                             \
    FUNCTION void vstorea_half##n##mode(type##n x, size_t offset, space half *to) \
    {                                                                             \
        ((space half##n *)to)[offset] = rounded##mode(x);                         \
    }

#define STORES(type, space, mode)                                               \
    FUNCTION void vstore_half##mode(type x, size_t offset, space half *to)      \
    {                                                                           \
        to[offset] = rounded##mode(x);                                          \
    }                                                                           \
    FUNCTION void vstorea_half##mode(type x, size_t offset, space half *to)     \
    {                                                                           \
        to[offset] = rounded##mode(x);                                          \
    }                                                                           \
    FUNCTION void vstore_half3##mode(type##3 x, size_t offset, space half *to)  \
    {                                                                           \
        to[3 * offset] = rounded##mode(x.x);                                    \
        to[3 * offset + 1] = rounded##mode(x.y);                                \
        to[3 * offset + 2] = rounded##mode(x.z);                                \
    }                                                                           \
    FUNCTION void vstorea_half3##mode(type##3 x, size_t offset, space half *to) \
    {                                                                           \
        vstorea_half2##mode(x.xy, 2 * offset, to);                              \
        to[4 * offset + 2] = rounded##mode(x.z);                                \
    }                                                                           \
    STORE_VECTOR(type, space, mode, 2, )                                        \
    STORE_VECTOR(type, space, mode, 4, 2)                                       \
    STORE_VECTOR(type, space, mode, 8, 4)                                       \
    STORE_VECTOR(type, space, mode, 16, 8)

#define STORES_TO(space)        \
    STORES(float, space, _rtp)  \
    STORES(float, space, _rtn)  \
    STORES(double, space, _rtp) \
    STORES(double, space, _rtn)

STORES_TO(__global)
STORES_TO(__local)
STORES_TO(__private)
