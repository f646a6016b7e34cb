// Functions in place of libclc's. Most are libdevice's: by CUDA's documentation their errors are within OpenCL C's
// bounds, and they are 2 to 8 times shorter. Some of libclc's are wrong at the ends of the range, for
// signs of zeros, for infinities or NaN.

#define ONE(f, T, of_libdevice)         \
    T of_libdevice(T x);                \
    GIVES(T, f, (T x), of_libdevice(x)) \
    PARTS_OF_ONE(f, T)

#define TWO(f, T, S, of_libdevice)              \
    T of_libdevice(T x, S y);                   \
    GIVES(T, f, (T x, S y), of_libdevice(x, y)) \
    PARTS_OF_TWO(f, T, S)

// Of single precision, with -cl-fast-relaxed-math those that nvcc takes with --use_fast_math.
#ifdef __FAST_RELAXED_MATH__
#define FASTER(name) __nv_fast_##name##f
#else
#define FASTER(name) __nv_##name##f
#endif

#define BOTH(name)                   \
    ONE(name, float, __nv_##name##f) \
    ONE(name, double, __nv_##name)
#define BOTH_FASTER(name)          \
    ONE(name, float, FASTER(name)) \
    ONE(name, double, __nv_##name)

BOTH_FASTER(exp)
BOTH(exp2)
BOTH_FASTER(exp10)
BOTH(expm1)
BOTH_FASTER(log)
BOTH_FASTER(log2)
BOTH_FASTER(log10)
BOTH(log1p)
BOTH(cbrt)
BOTH(erf)
BOTH(erfc)
BOTH(tgamma)
BOTH(lgamma)
BOTH_FASTER(sin)
BOTH_FASTER(cos)
BOTH_FASTER(tan)
BOTH(sinpi)
BOTH(cospi)
BOTH(asin)
BOTH(acos)
BOTH(atan)
BOTH(sinh)
BOTH(cosh)
BOTH_FASTER(tanh)
BOTH(asinh)
BOTH(acosh)
BOTH(atanh)

#ifdef __FAST_RELAXED_MATH__
#define POW __nv_fast_powf
#else
// The questions for special cases are a fourth of __nv_powf: where x is positive and both are finite, which takes four
// instructions to find out, none is asked.
#define POW usual_pow
float __nv_powf(float x, float y);

static __attribute__((noinline)) float any_pow(float x, float y)
{
    return __nv_powf(x, y);
}

static float usual_pow(float x, float y)
{
    if (as_uint(x) - 1 >= 0x7f7fffff || (as_uint(y) & 0x7fffffff) >= 0x7f800000)
        return any_pow(x, y);
    __builtin_assume(x > 0.0f && x < INFINITY && fabs(y) < INFINITY);
    return __nv_powf(x, y);
}
#endif

#define BOTH_OF_TWO(name)                   \
    TWO(name, float, float, __nv_##name##f) \
    TWO(name, double, double, __nv_##name)

BOTH_OF_TWO(atan2)
BOTH_OF_TWO(fmod)
BOTH_OF_TWO(hypot)
TWO(pow, float, float, POW)
TWO(pow, double, double, __nv_pow)
BOTH_OF_TWO(remainder)
TWO(ldexp, float, int, __nv_ldexpf)
TWO(ldexp, double, int, __nv_ldexp)

VECTORS(SCALED, float)
VECTORS(SCALED, double)

// Without an equal in libdevice.

#define OF_PI(f, T, part)               \
    GIVES(T, f##pi, (T x), f(x) * part) \
    PARTS_OF_ONE(f##pi, T)

#define ANGLES(T, suffix, part)                                           \
    GIVES(T, tanpi, (T x), __nv_sinpi##suffix(x) / __nv_cospi##suffix(x)) \
    PARTS_OF_ONE(tanpi, T)                                                \
    OF_PI(asin, T, part)                                                  \
    OF_PI(acos, T, part)                                                  \
    OF_PI(atan, T, part)                                                  \
    GIVES(T, atan2pi, (T y, T x), __nv_atan2##suffix(y, x) * part)        \
    PARTS_OF_TWO(atan2pi, T, T)

ANGLES(float, f, M_1_PI_F)
ANGLES(double, , M_1_PI)

#define POWR(T)                                                                                  \
    FUNCTION T powr(T x, T y)                                                                    \
    {                                                                                            \
        const bool unknown = (x == 0 && y == 0) || (isinf(x) && y == 0) || (x == 1 && isinf(y)); \
        return x < 0 || isnan(x) || isnan(y) || unknown ? NAN : pow(fabs(x), y);                 \
    }                                                                                            \
    PARTS_OF_TWO(powr, T, T)
POWR(float)
POWR(double)

FUNCTION float rootn(float x, int n)
{
    if (n == 0 || (x < 0 && n % 2 == 0))
        return NAN;
    const float root = (float)__nv_pow(fabs((double)x), 1.0 / n);
    return n % 2 == 0 ? root : copysign(root, x);
}
PARTS_OF_TWO(rootn, float, int)

// libclc's has the sign of a NaN.
#define SIGN(T)                                                            \
    GIVES(T, sign, (T x), isnan(x) ? 0 : copysign((T)(x == 0 ? 0 : 1), x)) \
    PARTS_OF_ONE(sign, T)
SIGN(float)
SIGN(double)

// With a second result.

// Variables for the second results of a vector's parts.
#define SECONDS(S, n)        \
    S##n both;               \
    __typeof__(both.lo) low; \
    __typeof__(both.REST_##n) rest

#define PART_OF_PAIR(f, T, S, space, n)                                 \
    FUNCTION T##n f(T##n x, space S##n *second)                         \
    {                                                                   \
        SECONDS(S, n);                                                  \
        const T##n first = (T##n)(f(x.lo, &low), f(x.REST_##n, &rest)); \
        *second = (S##n)(low, rest);                                    \
        return first;                                                   \
    }

#define PAIR(f, T, S, space)              \
    FUNCTION T f(T x, space S *second)    \
    {                                     \
        S own;                            \
        const T first = f##_and(x, &own); \
        *second = own;                    \
        return first;                     \
    }                                     \
    VECTORS(PART_OF_PAIR, f, T, S, space)

#define PAIRS(f, T, S)       \
    PAIR(f, T, S, __private) \
    PAIR(f, T, S, __global)  \
    PAIR(f, T, S, __local)

#define WITH_WHOLE(T, most)                               \
    OWN T modf_and(T x, T *whole)                         \
    {                                                     \
        *whole = trunc(x);                                \
        return copysign(isinf(x) ? (T)0 : x - *whole, x); \
    }                                                     \
    OWN T fract_and(T x, T *whole)                        \
    {                                                     \
        *whole = floor(x);                                \
        if (x == 0 || isinf(x) || isnan(x))               \
            return isnan(x) ? x : copysign((T)0, x);      \
        return fmin(x - *whole, most);                    \
    }

WITH_WHOLE(float, 0x1.fffffep-1f)
WITH_WHOLE(double, 0x1.fffffffffffffp-1)

// 0 at the poles.
OWN int sign_of_gamma(double x)
{
    const double whole = floor(x);
    if (x == 0 || (x < 0 && x == whole))
        return 0;
    return x < 0 && floor(whole / 2) * 2 != whole ? -1 : 1;
}

#define WITH_SECOND(T, gamma, both)     \
    OWN T lgamma_r_and(T x, int *sign)  \
    {                                   \
        *sign = sign_of_gamma(x);       \
        return gamma(x);                \
    }                                   \
    void both(T x, T *sine, T *cosine); \
    OWN T sincos_and(T x, T *cosine)    \
    {                                   \
        T sine;                         \
        both(x, &sine, cosine);         \
        return sine;                    \
    }                                   \
    PAIRS(modf, T, T)                   \
    PAIRS(fract, T, T)                  \
    PAIRS(lgamma_r, T, int)             \
    PAIRS(sincos, T, T)

WITH_SECOND(float, __nv_lgammaf, FASTER(sincos))
WITH_SECOND(double, __nv_lgamma, __nv_sincos)

// libclc's takes floats below 2^-126 for 0. libdevice's has three bits of the quotient, and OpenCL C
// seven: those of what is left of x after multiples of 128 y.
OWN float remquo_and(float x, float y, int *quotient)
{
    const float size = fabs(y);
    const float left = __nv_fmodf(fabs(x), 128 * size);
    const float rest = __nv_remainderf(left, size);
    const int bits = isnan(rest) ? 0 : (int)rint(left / size - rest / size) & 127;
    *quotient = signbit(x) == signbit(y) ? bits : -bits;
    return signbit(x) ? -rest : rest;
}

#define PART_OF_REMQUO(space, n)                                                         \
    FUNCTION float##n remquo(float##n x, float##n y, space int##n *quotient)             \
    {                                                                                    \
        SECONDS(int, n);                                                                 \
        const float##n left =                                                            \
            (float##n)(remquo(x.lo, y.lo, &low), remquo(x.REST_##n, y.REST_##n, &rest)); \
        *quotient = (int##n)(low, rest);                                                 \
        return left;                                                                     \
    }

#define REMQUO(space)                                            \
    FUNCTION float remquo(float x, float y, space int *quotient) \
    {                                                            \
        int own;                                                 \
        const float rest = remquo_and(x, y, &own);               \
        *quotient = own;                                         \
        return rest;                                             \
    }                                                            \
    VECTORS(PART_OF_REMQUO, space)

REMQUO(__private)
REMQUO(__global)
REMQUO(__local)

// The native functions that libclc leaves to the compiler, which has none of the kind for a GPU:
// the instructions ex2.approx and lg2.approx.

#define LOG2_E 1.442695041f
#define LN_2 0.693147181f
#define LOG10_2 0.301029996f

FUNCTION float native_exp(float x)
{
    return __nvvm_ex2_approx_f(x * LOG2_E);
}

FUNCTION float native_log2(float x)
{
    return __nvvm_lg2_approx_f(x);
}

FUNCTION float native_log(float x)
{
    return __nvvm_lg2_approx_f(x) * LN_2;
}

FUNCTION float native_log10(float x)
{
    return __nvvm_lg2_approx_f(x) * LOG10_2;
}

FUNCTION float native_powr(float x, float y)
{
    return __nvvm_ex2_approx_f(y * __nvvm_lg2_approx_f(x));
}

PARTS_OF_ONE(native_exp, float)
PARTS_OF_ONE(native_log2, float)
PARTS_OF_ONE(native_log, float)
PARTS_OF_ONE(native_log10, float)
PARTS_OF_TWO(native_powr, float, float)

// isinf of a vector: libclc's elements are 1 where they should be -1.
#define ISINF(T, bits, n) GIVES(bits##n, isinf, (T##n x), fabs(x) == (T##n)(T)INFINITY)
VECTORS(ISINF, float, int)
VECTORS(ISINF, double, long)

// mad_sat of long: libclc saturates the product before the sum, which can then come back into range.
FUNCTION long mad_sat(long a, long b, long c)
{
    ulong low = (ulong)a * (ulong)b;
    ulong sum = low + (ulong)c;
    long high = mul_hi(a, b) + (c >> 63) + (sum < low ? 1 : 0);
    if (high == (long)sum >> 63)
        return (long)sum;
    return high < 0 ? LONG_MIN : LONG_MAX;
}

VECTORS(PART_OF_THREE, mad_sat, long)
