// Functions of libdevice in place of libclc's: by CUDA's documentation their errors are within OpenCL C's
// bounds, and they are 2 to 8 times shorter. Some of libclc's are wrong at the ends of the range, for
// signs of zeros, for infinities or NaN. A vector's parts are computed one by one.
#define FUNCTION __attribute__((overloadable))

#define PARTS_OF_ONE(f, T)                     \
    FUNCTION T##2 f(T##2 x)                    \
    {                                          \
        return (T##2)(f(x.x), f(x.y));         \
    }                                          \
    FUNCTION T##3 f(T##3 x)                    \
    {                                          \
        return (T##3)(f(x.x), f(x.y), f(x.z)); \
    }                                          \
    FUNCTION T##4 f(T##4 x)                    \
    {                                          \
        return (T##4)(f(x.lo), f(x.hi));       \
    }                                          \
    FUNCTION T##8 f(T##8 x)                    \
    {                                          \
        return (T##8)(f(x.lo), f(x.hi));       \
    }                                          \
    FUNCTION T##16 f(T##16 x)                  \
    {                                          \
        return (T##16)(f(x.lo), f(x.hi));      \
    }

#define PARTS_OF_TWO(f, T, S)                                 \
    FUNCTION T##2 f(T##2 x, S##2 y)                           \
    {                                                         \
        return (T##2)(f(x.x, y.x), f(x.y, y.y));              \
    }                                                         \
    FUNCTION T##3 f(T##3 x, S##3 y)                           \
    {                                                         \
        return (T##3)(f(x.x, y.x), f(x.y, y.y), f(x.z, y.z)); \
    }                                                         \
    FUNCTION T##4 f(T##4 x, S##4 y)                           \
    {                                                         \
        return (T##4)(f(x.lo, y.lo), f(x.hi, y.hi));          \
    }                                                         \
    FUNCTION T##8 f(T##8 x, S##8 y)                           \
    {                                                         \
        return (T##8)(f(x.lo, y.lo), f(x.hi, y.hi));          \
    }                                                         \
    FUNCTION T##16 f(T##16 x, S##16 y)                        \
    {                                                         \
        return (T##16)(f(x.lo, y.lo), f(x.hi, y.hi));         \
    }

#define ONE(f, T, of_libdevice) \
    T of_libdevice(T x);        \
    FUNCTION T f(T x)           \
    {                           \
        return of_libdevice(x); \
    }                           \
    PARTS_OF_ONE(f, T)

#define TWO(f, T, S, of_libdevice) \
    T of_libdevice(T x, S y);      \
    FUNCTION T f(T x, S y)         \
    {                              \
        return of_libdevice(x, y); \
    }                              \
    PARTS_OF_TWO(f, T, S)

// Of single precision, with -cl-fast-relaxed-math those that nvcc takes with --use_fast_math.
#ifdef __FAST_RELAXED_MATH__
#define FASTER(name) __nv_fast_##name##f
#else
#define FASTER(name) __nv_##name##f
#endif

ONE(exp, float, FASTER(exp))
ONE(exp2, float, __nv_exp2f)
ONE(exp10, float, FASTER(exp10))
ONE(expm1, float, __nv_expm1f)
ONE(log, float, FASTER(log))
ONE(log2, float, FASTER(log2))
ONE(log10, float, FASTER(log10))
ONE(log1p, float, __nv_log1pf)
ONE(cbrt, float, __nv_cbrtf)
ONE(erf, float, __nv_erff)
ONE(erfc, float, __nv_erfcf)
ONE(tgamma, float, __nv_tgammaf)
ONE(lgamma, float, __nv_lgammaf)
ONE(sin, float, FASTER(sin))
ONE(cos, float, FASTER(cos))
ONE(tan, float, FASTER(tan))
ONE(sinpi, float, __nv_sinpif)
ONE(cospi, float, __nv_cospif)
ONE(asin, float, __nv_asinf)
ONE(acos, float, __nv_acosf)
ONE(atan, float, __nv_atanf)
ONE(sinh, float, __nv_sinhf)
ONE(cosh, float, __nv_coshf)
ONE(tanh, float, FASTER(tanh))
ONE(asinh, float, __nv_asinhf)
ONE(acosh, float, __nv_acoshf)
ONE(atanh, float, __nv_atanhf)

ONE(exp, double, __nv_exp)
ONE(exp2, double, __nv_exp2)
ONE(exp10, double, __nv_exp10)
ONE(expm1, double, __nv_expm1)
ONE(log, double, __nv_log)
ONE(log2, double, __nv_log2)
ONE(log10, double, __nv_log10)
ONE(log1p, double, __nv_log1p)
ONE(cbrt, double, __nv_cbrt)
ONE(erf, double, __nv_erf)
ONE(erfc, double, __nv_erfc)
ONE(tgamma, double, __nv_tgamma)
ONE(lgamma, double, __nv_lgamma)
ONE(sin, double, __nv_sin)
ONE(cos, double, __nv_cos)
ONE(tan, double, __nv_tan)
ONE(sinpi, double, __nv_sinpi)
ONE(cospi, double, __nv_cospi)
ONE(asin, double, __nv_asin)
ONE(acos, double, __nv_acos)
ONE(atan, double, __nv_atan)
ONE(sinh, double, __nv_sinh)
ONE(cosh, double, __nv_cosh)
ONE(tanh, double, __nv_tanh)
ONE(asinh, double, __nv_asinh)
ONE(acosh, double, __nv_acosh)
ONE(atanh, double, __nv_atanh)

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

TWO(atan2, float, float, __nv_atan2f)
TWO(fmod, float, float, __nv_fmodf)
TWO(hypot, float, float, __nv_hypotf)
TWO(pow, float, float, POW)
TWO(remainder, float, float, __nv_remainderf)
TWO(ldexp, float, int, __nv_ldexpf)
TWO(atan2, double, double, __nv_atan2)
TWO(fmod, double, double, __nv_fmod)
TWO(hypot, double, double, __nv_hypot)
TWO(pow, double, double, __nv_pow)
TWO(remainder, double, double, __nv_remainder)
TWO(ldexp, double, int, __nv_ldexp)

#define SCALED(T, n)                       \
    FUNCTION T##n ldexp(T##n x, int power) \
    {                                      \
        return ldexp(x, (int##n)power);    \
    }
#define WIDTHS(define, T) define(T, 2) define(T, 3) define(T, 4) define(T, 8) define(T, 16)
WIDTHS(SCALED, float)
WIDTHS(SCALED, double)

// Without an equal in libdevice.

FUNCTION float tanpi(float x)
{
    return __nv_sinpif(x) / __nv_cospif(x);
}
PARTS_OF_ONE(tanpi, float)

FUNCTION double tanpi(double x)
{
    return __nv_sinpi(x) / __nv_cospi(x);
}
PARTS_OF_ONE(tanpi, double)

#define OF_PI(f)                  \
    FUNCTION float f##pi(float x) \
    {                             \
        return f(x) * M_1_PI_F;   \
    }                             \
    PARTS_OF_ONE(f##pi, float)
OF_PI(asin)
OF_PI(acos)
OF_PI(atan)

FUNCTION float atan2pi(float y, float x)
{
    return __nv_atan2f(y, x) * M_1_PI_F;
}
PARTS_OF_TWO(atan2pi, float, float)

FUNCTION double asinpi(double x)
{
    return __nv_asin(x) * M_1_PI;
}
PARTS_OF_ONE(asinpi, double)

FUNCTION double acospi(double x)
{
    return __nv_acos(x) * M_1_PI;
}
PARTS_OF_ONE(acospi, double)

FUNCTION double atanpi(double x)
{
    return __nv_atan(x) * M_1_PI;
}
PARTS_OF_ONE(atanpi, double)

FUNCTION double atan2pi(double y, double x)
{
    return __nv_atan2(y, x) * M_1_PI;
}
PARTS_OF_TWO(atan2pi, double, double)

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
#define SIGN(T)                                                 \
    FUNCTION T sign(T x)                                        \
    {                                                           \
        return isnan(x) ? 0 : copysign((T)(x == 0 ? 0 : 1), x); \
    }                                                           \
    PARTS_OF_ONE(sign, T)
SIGN(float)
SIGN(double)

// With a second result.

#define PARTS_OF_PAIR(f, T, S, space)                                  \
    FUNCTION T##2 f(T##2 x, space S##2 * second)                       \
    {                                                                  \
        S a, b;                                                        \
        const T##2 first = (T##2)(f(x.x, &a), f(x.y, &b));             \
        *second = (S##2)(a, b);                                        \
        return first;                                                  \
    }                                                                  \
    FUNCTION T##3 f(T##3 x, space S##3 * second)                       \
    {                                                                  \
        S a, b, c;                                                     \
        const T##3 first = (T##3)(f(x.x, &a), f(x.y, &b), f(x.z, &c)); \
        *second = (S##3)(a, b, c);                                     \
        return first;                                                  \
    }                                                                  \
    HALVES(f, T, S, space, 2, 4)                                       \
    HALVES(f, T, S, space, 4, 8)                                       \
    HALVES(f, T, S, space, 8, 16)

#define HALVES(f, T, S, space, half_of, n)                   \
    FUNCTION T##n f(T##n x, space S##n *second)              \
    {                                                        \
        S##half_of a, b;                                     \
        const T##n first = (T##n)(f(x.lo, &a), f(x.hi, &b)); \
        *second = (S##n)(a, b);                              \
        return first;                                        \
    }

#define PAIR(f, T, S, space)              \
    FUNCTION T f(T x, space S *second)    \
    {                                     \
        S own;                            \
        const T first = f##_and(x, &own); \
        *second = own;                    \
        return first;                     \
    }                                     \
    PARTS_OF_PAIR(f, T, S, space)

#define PAIRS(f, T, S)       \
    PAIR(f, T, S, __private) \
    PAIR(f, T, S, __global)  \
    PAIR(f, T, S, __local)

#define OWN FUNCTION static

OWN float modf_and(float x, float *whole)
{
    *whole = trunc(x);
    return copysign(isinf(x) ? 0.0f : x - *whole, x);
}

OWN double modf_and(double x, double *whole)
{
    *whole = trunc(x);
    return copysign(isinf(x) ? 0.0 : x - *whole, x);
}

OWN float fract_and(float x, float *whole)
{
    *whole = floor(x);
    if (x == 0 || isinf(x) || isnan(x))
        return isnan(x) ? x : copysign(0.0f, x);
    return fmin(x - *whole, 0x1.fffffep-1f);
}

OWN double fract_and(double x, double *whole)
{
    *whole = floor(x);
    if (x == 0 || isinf(x) || isnan(x))
        return isnan(x) ? x : copysign(0.0, x);
    return fmin(x - *whole, 0x1.fffffffffffffp-1);
}

// 0 at the poles.
OWN int sign_of_gamma(double x)
{
    const double whole = floor(x);
    if (x == 0 || (x < 0 && x == whole))
        return 0;
    return x < 0 && floor(whole / 2) * 2 != whole ? -1 : 1;
}

OWN float lgamma_r_and(float x, int *sign)
{
    *sign = sign_of_gamma(x);
    return __nv_lgammaf(x);
}

OWN double lgamma_r_and(double x, int *sign)
{
    *sign = sign_of_gamma(x);
    return __nv_lgamma(x);
}

void __nv_fast_sincosf(float x, float *sine, float *cosine);
void __nv_sincosf(float x, float *sine, float *cosine);
void __nv_sincos(double x, double *sine, double *cosine);

OWN float sincos_and(float x, float *cosine)
{
    float sine;
    FASTER(sincos)(x, &sine, cosine);
    return sine;
}

OWN double sincos_and(double x, double *cosine)
{
    double sine;
    __nv_sincos(x, &sine, cosine);
    return sine;
}

PAIRS(modf, float, float)
PAIRS(modf, double, double)
PAIRS(fract, float, float)
PAIRS(fract, double, double)
PAIRS(lgamma_r, float, int)
PAIRS(lgamma_r, double, int)
PAIRS(sincos, float, float)
PAIRS(sincos, double, double)

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

#define REMQUO_HALVES(space, half_of, n)                                                  \
    FUNCTION float##n remquo(float##n x, float##n y, space int##n *quotient)              \
    {                                                                                     \
        int##half_of a, b;                                                                \
        const float##n rest = (float##n)(remquo(x.lo, y.lo, &a), remquo(x.hi, y.hi, &b)); \
        *quotient = (int##n)(a, b);                                                       \
        return rest;                                                                      \
    }

#define REMQUO(space)                                                               \
    FUNCTION float remquo(float x, float y, space int *quotient)                    \
    {                                                                               \
        int own;                                                                    \
        const float rest = remquo_and(x, y, &own);                                  \
        *quotient = own;                                                            \
        return rest;                                                                \
    }                                                                               \
    REMQUO_HALVES(space, , 2)                                                       \
    FUNCTION float3 remquo(float3 x, float3 y, space int3 *quotient)                \
    {                                                                               \
        int2 a;                                                                     \
        int b;                                                                      \
        const float3 rest = (float3)(remquo(x.xy, y.xy, &a), remquo(x.z, y.z, &b)); \
        *quotient = (int3)(a, b);                                                   \
        return rest;                                                                \
    }                                                                               \
    REMQUO_HALVES(space, 2, 4)                                                      \
    REMQUO_HALVES(space, 4, 8)                                                      \
    REMQUO_HALVES(space, 8, 16)

REMQUO(__private)
REMQUO(__global)
REMQUO(__local)
