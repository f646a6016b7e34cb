// Functions on half: those on float, whose results are rounded to half once more. A float has more than
// twice the digits of a half, so sums, products, quotients and square roots come out as if rounded once.
// To half; from it wide() of shared.cl.h.

OWN half narrow(float x)
{
    return (half)x;
}

OWN half narrow(half x)
{
    return x;
}

#define NARROW(unused, n) \
    GIVES(static half##n, narrow, (float##n x), __builtin_convertvector(x, half##n))

VECTORS(NARROW, )

// Functions of one, two and three numbers.

#define ONE_OF(f, n) GIVES(half##n, f, (half##n x), narrow(f(wide(x))))

#define TWO_OF(f, n) GIVES(half##n, f, (half##n x, half##n y), narrow(f(wide(x), wide(y))))

#define THREE_OF(f, n) \
    GIVES(half##n, f, (half##n x, half##n y, half##n z), narrow(f(wide(x), wide(y), wide(z))))

#define ONE(f) WIDTHS(ONE_OF, f)
#define TWO(f) WIDTHS(TWO_OF, f)
#define THREE(f) WIDTHS(THREE_OF, f)

ONE(acos)
ONE(acosh)
ONE(acospi)
ONE(asin)
ONE(asinh)
ONE(asinpi)
ONE(atan)
ONE(atanh)
ONE(atanpi)
ONE(cbrt)
ONE(ceil)
ONE(cos)
ONE(cosh)
ONE(cospi)
ONE(degrees)
ONE(erf)
ONE(erfc)
ONE(exp)
ONE(exp10)
ONE(exp2)
ONE(expm1)
ONE(fabs)
ONE(floor)
ONE(lgamma)
ONE(log)
ONE(log10)
ONE(log1p)
ONE(log2)
ONE(logb)
ONE(radians)
ONE(rint)
ONE(round)
ONE(rsqrt)
ONE(sign)
ONE(sin)
ONE(sinh)
ONE(sinpi)
ONE(sqrt)
ONE(tan)
ONE(tanh)
ONE(tanpi)
ONE(tgamma)
ONE(trunc)
TWO(atan2)
TWO(atan2pi)
TWO(copysign)
TWO(fdim)
TWO(fmax)
TWO(fmin)
TWO(fmod)
TWO(hypot)
TWO(max)
TWO(maxmag)
TWO(min)
TWO(minmag)
TWO(pow)
TWO(powr)
TWO(remainder)
TWO(step)
THREE(clamp)
THREE(mad)
THREE(mix)
THREE(smoothstep)

// The same with one number for all parts of a vector.

#define SCALAR_SECOND(f, n) GIVES(half##n, f, (half##n x, half y), f(x, (half##n)y))

VECTORS(SCALAR_SECOND, fmax)
VECTORS(SCALAR_SECOND, fmin)
VECTORS(SCALAR_SECOND, max)
VECTORS(SCALAR_SECOND, min)

#define SCALARS(unused, n)                                                           \
    GIVES(half##n, clamp, (half##n x, half least, half most),                        \
          clamp(x, (half##n)least, (half##n)most))                                   \
    GIVES(half##n, mix, (half##n x, half##n y, half part), mix(x, y, (half##n)part)) \
    GIVES(half##n, step, (half edge, half##n x), step((half##n)edge, x))             \
    GIVES(half##n, smoothstep, (half from, half to, half##n x),                      \
          smoothstep((half##n)from, (half##n)to, x))

VECTORS(SCALARS, )

// The sum in float may be rounded where the halves' has a digit more, so fma is the machine's own.

FUNCTION half fma(half x, half y, half z)
{
    return __builtin_fmaf16(x, y, z);
}

VECTORS(PART_OF_THREE, fma, half)

FUNCTION half nextafter(half x, half y)
{
    const short bits = as_short(x);
    if (x != x || y != y)
        return x + y;
    if (x == y)
        return y;
    if (x == 0.0h)
        return y > 0.0h ? as_half((ushort)1) : as_half((ushort)0x8001);
    return as_half((short)((x < y) == (bits >= 0) ? bits + 1 : bits - 1));
}

PARTS_OF_TWO(nextafter, half, half)

// With whole numbers.

#define POWER_OF(f, n) GIVES(half##n, f, (half##n x, int##n y), narrow(f(wide(x), y)))

WIDTHS(POWER_OF, ldexp)
WIDTHS(POWER_OF, pown)
WIDTHS(POWER_OF, rootn)

#define WHOLE_OF(unused, n)                           \
    GIVES(int##n, ilogb, (half##n x), ilogb(wide(x))) \
    GIVES(half##n, nan, (ushort##n code), as_half##n((ushort##n)(code | (ushort)0x7e00)))

WIDTHS(WHOLE_OF, )

VECTORS(SCALED, half)

// With a second result.

#define REAL_SECOND(f, space, n, result)                  \
    FUNCTION half##n f(half##n x, space half##n *second)  \
    {                                                     \
        float##n other;                                   \
        const half##n first = narrow(f(wide(x), &other)); \
        *second = narrow(other);                          \
        return result;                                    \
    }

#define WHOLE_SECOND(f, space, n)                         \
    FUNCTION half##n f(half##n x, space int##n *second)   \
    {                                                     \
        int##n other;                                     \
        const half##n first = narrow(f(wide(x), &other)); \
        *second = other;                                  \
        return first;                                     \
    }

#define SECOND(space, n)                                                  \
    REAL_SECOND(fract, space, n, fmin(first, (half##n)0x1.ffcp-1h))       \
    REAL_SECOND(modf, space, n, first)                                    \
    REAL_SECOND(sincos, space, n, first)                                  \
    WHOLE_SECOND(frexp, space, n)                                         \
    WHOLE_SECOND(lgamma_r, space, n)                                      \
    FUNCTION half##n remquo(half##n x, half##n y, space int##n *quotient) \
    {                                                                     \
        int##n i;                                                         \
        half##n rest = narrow(remquo(wide(x), wide(y), &i));              \
        *quotient = i;                                                    \
        return rest;                                                      \
    }

WIDTHS(SECOND, __private)
WIDTHS(SECOND, __global)
WIDTHS(SECOND, __local)

// Geometry.

#define GEOMETRY(n)                                                                   \
    GIVES(half, dot, (half##n x, half##n y), narrow(dot(wide(x), wide(y))))           \
    GIVES(half, distance, (half##n x, half##n y), narrow(distance(wide(x), wide(y)))) \
    GIVES(half, length, (half##n x), narrow(length(wide(x))))                         \
    ONE_OF(normalize, n)

GEOMETRY()
GEOMETRY(2)
GEOMETRY(3)
GEOMETRY(4)

TWO_OF(cross, 3)
TWO_OF(cross, 4)

// Comparisons: 1 for a number, -1 for a vector's parts.

#define COMPARE_TWO(f, n) \
    GIVES(short##n, f, (half##n x, half##n y), convert_short##n(f(wide(x), wide(y))))

#define COMPARE_ONE(f, n) GIVES(short##n, f, (half##n x), convert_short##n(f(wide(x))))

#define COMPARISON_OF_TWO(f)                             \
    GIVES(int, f, (half x, half y), f(wide(x), wide(y))) \
    VECTORS(COMPARE_TWO, f)

#define COMPARISON_OF_ONE(f)            \
    GIVES(int, f, (half x), f(wide(x))) \
    VECTORS(COMPARE_ONE, f)

COMPARISON_OF_TWO(isequal)
COMPARISON_OF_TWO(isnotequal)
COMPARISON_OF_TWO(isgreater)
COMPARISON_OF_TWO(isgreaterequal)
COMPARISON_OF_TWO(isless)
COMPARISON_OF_TWO(islessequal)
COMPARISON_OF_TWO(islessgreater)
COMPARISON_OF_TWO(isordered)
COMPARISON_OF_TWO(isunordered)
COMPARISON_OF_ONE(isfinite)
COMPARISON_OF_ONE(isinf)
COMPARISON_OF_ONE(isnan)
COMPARISON_OF_ONE(signbit)

// A half that is no normal number is a normal float.

FUNCTION int isnormal(half x)
{
    const float size = fabs(wide(x));
    return size >= 0x1p-14f && size < INFINITY;
}

#define ISNORMAL_OF(unused, n)                                                            \
    FUNCTION short##n isnormal(half##n x)                                                 \
    {                                                                                     \
        const float##n size = fabs(wide(x));                                              \
        return convert_short##n(size >= (float##n)0x1p-14f && size < (float##n)INFINITY); \
    }

VECTORS(ISNORMAL_OF, )

// Choices.

#define CHOICES(unused, n)                                            \
    GIVES(half##n, select, (half##n x, half##n y, short##n chosen),   \
          as_half##n(select(as_short##n(x), as_short##n(y), chosen))) \
    GIVES(half##n, select, (half##n x, half##n y, ushort##n chosen),  \
          as_half##n(select(as_short##n(x), as_short##n(y), chosen))) \
    GIVES(half##n, bitselect, (half##n x, half##n y, half##n mask),   \
          as_half##n(bitselect(as_ushort##n(x), as_ushort##n(y), as_ushort##n(mask))))

WIDTHS(CHOICES, )

// Memory and the order of parts: those of ushort.

#define LOAD_OF(space, n)                                        \
    GIVES(half##n, vload##n, (size_t i, const space half *from), \
          as_half##n(vload##n(i, (const space ushort *)from)))

#define MEMORY_OF(space, n)                                      \
    LOAD_OF(space, n)                                            \
    FUNCTION void vstore##n(half##n x, size_t i, space half *to) \
    {                                                            \
        vstore##n(as_ushort##n(x), i, (space ushort *)to);       \
    }

VECTORS(MEMORY_OF, __private)
VECTORS(MEMORY_OF, __global)
VECTORS(MEMORY_OF, __local)
VECTORS(LOAD_OF, __constant)

#define COPY_OF(n, to_space, from_space)                                                        \
    GIVES(event_t, async_work_group_copy,                                                       \
          (to_space half##n * to, const from_space half##n *from, size_t count, event_t event), \
          async_work_group_copy((to_space ushort##n *)to, (const from_space ushort##n *)from,   \
                                count, event))                                                  \
    GIVES(event_t, async_work_group_strided_copy,                                               \
          (to_space half##n * to, const from_space half##n *from, size_t count, size_t stride,  \
           event_t event),                                                                      \
          async_work_group_strided_copy((to_space ushort##n *)to,                               \
                                        (const from_space ushort##n *)from, count, stride, event))

#define COPIES(unused, n)                                              \
    COPY_OF(n, __local, __global)                                      \
    COPY_OF(n, __global, __local)                                      \
    FUNCTION void prefetch(const __global half##n *from, size_t count) \
    {                                                                  \
        prefetch((const __global ushort##n *)from, count);             \
    }

WIDTHS(COPIES, )

#define SHUFFLE_OF(n, m)                                              \
    GIVES(half##n, shuffle, (half##m x, ushort##n order),             \
          as_half##n(shuffle(as_ushort##m(x), order)))                \
    GIVES(half##n, shuffle2, (half##m x, half##m y, ushort##n order), \
          as_half##n(shuffle2(as_ushort##m(x), as_ushort##m(y), order)))

#define SHUFFLES(n) SHUFFLE_OF(n, 2) SHUFFLE_OF(n, 4) SHUFFLE_OF(n, 8) SHUFFLE_OF(n, 16)

SHUFFLES(2)
SHUFFLES(4)
SHUFFLES(8)
SHUFFLES(16)
