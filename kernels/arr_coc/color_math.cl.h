// sRGB decoding and the L*a*b* cube root without branches, tables, divisions
// or library calls, in the common subset of C11, OpenCL C and CUDA C++.
//
// A library pow costs more than the rest of the texture stage together. Both
// roots here start from an estimate y of x^(-1/n) that is computed from the bits
// of x (the bits of a positive float grow like its logarithm) and is within 3.2
// %. The residue r = 1 - x y^n is then the exact error, and one polynomial in r
// corrects it; no Newton step is needed. The products are arranged so that r
// includes most of the rounding before it.
//
// The code is straight-line per element, so that a compiler vectorises it
// across work-items.
//
// OpenCL C, and C with as_int() and as_float(), which are the bits of a float as an int and back.
// Before including this file, define
//   weir_fma(a, b, c)       a * b + c, rounded once or twice: the bounds hold for
//                           both, and tests/unit/arr_coc_math_test.c shows it
//                           over every float of each domain
// The other products may be contracted too; builds whose bits must agree have
// to be given the same freedom.
//
// Largest errors, once / twice rounded:
//                           absolute            relative
//   weir_srgb_to_linear     3.1e-7 / 3.1e-7     3.5e-7 / 3.7e-7
//   weir_lab_f              1.2e-7 / 1.3e-7     1.2e-7 / 1.5e-7
// The relative bound matters as much: the slope of f(t) near black makes an
// error in linear light nine times larger in L*/100.

#ifndef WEIR_KERNELS_ARR_COC_COLOR_MATH_CL_H
#define WEIR_KERNELS_ARR_COC_COLOR_MATH_CL_H

// ((v + 0.055) / 1.055)^2.4 for v in [0.04, 1].
//
// With w = v + 0.055 and y near w^(-1/5): w^2.4 = w^2 (w y^3) (1 - r)^(-0.6),
// r = 1 - w y^5. The factor 1.055^(-2.4) is in the polynomial's coefficients.
static inline float weir_srgb_power(float v)
{
    float w = v + 0.055f;
    float y = as_float((int)weir_fma((float)as_int(w), -0.2f, 1277905280.0f));
    float y2 = y * y;
    float base = w * (y2 * y);
    float r = weir_fma(-base, y2, 1.0f);
    float p = weir_fma(r, 0.294825286f, 0.314370245f);
    p = weir_fma(r, p, 0.329078585f);
    p = weir_fma(r, p, 0.365698755f);
    p = weir_fma(r, p, 0.422120214f);
    p = weir_fma(r, p, 0.527649701f);
    p = weir_fma(r, p, 0.879415452f);
    return (w * w) * base * p;
}

// sRGB to linear light for v in [0, 1].
static inline float weir_srgb_to_linear(float v)
{
    float curve = weir_srgb_power(v);
    float line = v * (1.0f / 12.92f);
    return v <= 0.04045f ? line : curve;
}

// The cube root for t in [0.0088, 1.11]. From t = 0 to 0.0088 the result is
// finite, but not a cube root.
//
// With y near t^(-1/3): t^(1/3) = (t y^2) (1 - r)^(-2/3), r = 1 - (t y^2) y.
static inline float weir_cube_root(float t)
{
    float y = as_float((int)weir_fma((float)as_int(t), -(1.0f / 3.0f), 1419900416.0f));
    float base = t * (y * y);
    float r = weir_fma(-base, y, 1.0f);
    float q = weir_fma(r, 0.429063141f, 0.45897752f);
    q = weir_fma(r, q, 0.4937962f);
    q = weir_fma(r, q, 0.555530846f);
    q = weir_fma(r, q, 0.666666687f);
    return weir_fma(base * r, q, base);
}

// f(t) of L*a*b* for t in [0, 1.11], t being X, Y or Z over the white.
static inline float weir_lab_f(float t)
{
    float root = weir_cube_root(t);
    float line = weir_fma(t, 7.787f, 16.0f / 116.0f);
    return t > 0.008856f ? root : line;
}

#endif
