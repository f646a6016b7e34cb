// The kernels' x^2.4 and cube root against libm in double, over every float of
// their domains: four octaves of sRGB values and seven of XYZ. The header is
// compiled twice, with a*b + c rounded once and rounded twice, because a device
// may do either.

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/test.h"

static int32_t as_int(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float as_float(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define weir_srgb_power once_srgb_power
#define weir_srgb_to_linear once_srgb_to_linear
#define weir_cube_root once_cube_root
#define weir_lab_f once_lab_f
#define weir_fma(a, b, c) fmaf(a, b, c)
#include "kernels/arr_coc/color_math.cl.h"

#undef WEIR_KERNELS_ARR_COC_COLOR_MATH_CL_H
#undef weir_srgb_power
#undef weir_srgb_to_linear
#undef weir_cube_root
#undef weir_lab_f
#undef weir_fma

#define weir_srgb_power twice_srgb_power
#define weir_srgb_to_linear twice_srgb_to_linear
#define weir_cube_root twice_cube_root
#define weir_lab_f twice_lab_f
#define weir_fma(a, b, c) ((a) * (b) + (c))
#include "kernels/arr_coc/color_math.cl.h"

static double exact_to_linear(double v)
{
    return v <= 0.04045f ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double exact_lab_f(double t)
{
    return t > 0.008856f ? cbrt(t) : 7.787 * t + 16.0 / 116.0;
}

struct error {
    double absolute, relative;
};

static void note(struct error *error, double value, double exact)
{
    double off = fabs(value - exact);
    // Written so that a NaN is kept.
    error->absolute = off <= error->absolute ? error->absolute : off;
    error->relative = off / exact <= error->relative ? error->relative : off / exact;
}

static void sweep(float (*once)(float), float (*twice)(float), double (*exact)(double), float from,
                  float to, struct error out[2])
{
    memset(out, 0, 2 * sizeof *out);
    for (int32_t bits = as_int(from); bits <= as_int(to); bits++) {
        float x = as_float(bits);
        double right = exact(x);
        note(&out[0], once(x), right);
        note(&out[1], twice(x), right);
    }
}

WEIR_TEST(ArrCocMath, SrgbToLinearOverEveryFloatOfTheCurve)
{
    struct error error[2];
    sweep(once_srgb_to_linear, twice_srgb_to_linear, exact_to_linear, 0.04f, 1.0f, error);
    EXPECT_DOUBLE_LE(error[0].absolute, 3.1e-7);
    EXPECT_DOUBLE_LE(error[0].relative, 3.5e-7);
    EXPECT_DOUBLE_LE(error[1].absolute, 3.1e-7);
    EXPECT_DOUBLE_LE(error[1].relative, 3.7e-7);
}

WEIR_TEST(ArrCocMath, LabFOverEveryFloatOfTheRoot)
{
    struct error error[2];
    sweep(once_lab_f, twice_lab_f, exact_lab_f, 0.0088f, 1.11f, error);
    EXPECT_DOUBLE_LE(error[0].absolute, 1.2e-7);
    EXPECT_DOUBLE_LE(error[0].relative, 1.2e-7);
    EXPECT_DOUBLE_LE(error[1].absolute, 1.3e-7);
    EXPECT_DOUBLE_LE(error[1].relative, 1.5e-7);
}

// On the linear parts the roots are computed too and discarded: their results
// there must not be used. 2^-24 is below any step of interpolation.
WEIR_TEST(ArrCocMath, StraightPiecesNearZero)
{
    struct error error[2];
    sweep(once_srgb_to_linear, twice_srgb_to_linear, exact_to_linear, 0x1p-24f, 0x1.1p-24f, error);
    EXPECT_DOUBLE_LE(error[0].relative, 1.2e-7);
    EXPECT_DOUBLE_LE(error[1].relative, 1.2e-7);
    sweep(once_lab_f, twice_lab_f, exact_lab_f, 0x1p-24f, 0x1.1p-24f, error);
    EXPECT_DOUBLE_LE(error[0].absolute, 3e-8);
    EXPECT_DOUBLE_LE(error[1].absolute, 3e-8);
}

WEIR_TEST(ArrCocMath, Zero)
{
    EXPECT_DOUBLE_EQ(once_srgb_to_linear(0.0f), 0.0);
    EXPECT_DOUBLE_EQ(twice_srgb_to_linear(0.0f), 0.0);
    EXPECT_DOUBLE_EQ(once_lab_f(0.0f), 16.0f / 116.0f);
    EXPECT_DOUBLE_EQ(twice_lab_f(0.0f), 16.0f / 116.0f);
    EXPECT_TRUE(isfinite(once_cube_root(0.0f)));
    EXPECT_TRUE(isfinite(twice_cube_root(0.0f)));
}
