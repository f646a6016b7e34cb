// The native functions that libclc leaves to the compiler, which has none of the kind for a GPU:
// the instructions ex2.approx and lg2.approx.
#define FUNCTION __attribute__((overloadable))
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

#define HALVES(function, n)                                \
    FUNCTION float##n function(float##n x)                 \
    {                                                      \
        return (float##n)(function(x.lo), function(x.hi)); \
    }

#define VECTORS(function)                                             \
    HALVES(function, 2)                                               \
    FUNCTION float3 function(float3 x)                                \
    {                                                                 \
        return (float3)(function(x.x), function(x.y), function(x.z)); \
    }                                                                 \
    HALVES(function, 4)                                               \
    HALVES(function, 8)                                               \
    HALVES(function, 16)

VECTORS(native_exp)
VECTORS(native_log2)
VECTORS(native_log)
VECTORS(native_log10)

#define POWR(n)                                                              \
    FUNCTION float##n native_powr(float##n x, float##n y)                    \
    {                                                                        \
        return (float##n)(native_powr(x.lo, y.lo), native_powr(x.hi, y.hi)); \
    }

POWR(2)
FUNCTION float3 native_powr(float3 x, float3 y)
{
    return (float3)(native_powr(x.x, y.x), native_powr(x.y, y.y), native_powr(x.z, y.z));
}
POWR(4)
POWR(8)
POWR(16)
