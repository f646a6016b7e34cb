// Common and geometric functions: sections 6.12.4 and 6.12.5 of OpenCL C 1.2. Bounds are those of
// OpenCL C 3.0, since 1.2 has none.
#include "tests/kernels/builtins/rows.h"

REAL(clamp, fminl(fmaxl(X, Y), Z))
REAL(degrees, 180 / PI * X)
REAL(radians, PI / 180 * X)
REAL(max, X < Y ? Y : X)
REAL(min, Y < X ? Y : X)
REAL(mix, X + (Y - X) * Z)
REAL(step, Y < X ? 0 : 1)
REAL(sign, X > 0 ? 1 : X < 0 ? -1 : isnan(X) ? 0 : X)

static long double ref_smoothstep(const struct call *call)
{
    const long double part = fminl(fmaxl((Z - X) / (Y - X), 0), 1);
    return part * part * (3 - 2 * part);
}

// The vector that a call belongs to.

static long double part(const struct call *call, unsigned number, unsigned lane)
{
    return (call - call->lane + lane)->argument[number].x;
}

static long double ref_dot(const struct call *call)
{
    long double sum = 0;
    for (unsigned i = 0; i < call->width; i++)
        sum += part(call, 0, i) * part(call, 1, i);
    return sum;
}

static long double ref_length(const struct call *call)
{
    long double sum = 0;
    for (unsigned i = 0; i < call->width; i++)
        sum += part(call, 0, i) * part(call, 0, i);
    return sqrtl(sum);
}

static long double ref_distance(const struct call *call)
{
    long double sum = 0;
    for (unsigned i = 0; i < call->width; i++)
        sum += powl(part(call, 0, i) - part(call, 1, i), 2);
    return sqrtl(sum);
}

static long double ref_normalize(const struct call *call)
{
    const long double length = ref_length(call);
    return length == 0 ? X : X / length;
}

static long double ref_cross(const struct call *call)
{
    const unsigned next = (call->lane + 1) % 3, last = (call->lane + 2) % 3;
    if (call->lane == 3)
        return 0;
    return part(call, 0, next) * part(call, 1, last) - part(call, 0, last) * part(call, 1, next);
}

static long double largest_product(const struct call *call)
{
    long double most = 0;
    for (unsigned i = 0; i < call->width; i++)
        most = fmaxl(most, fmaxl(fabsl(part(call, 0, i)), fabsl(part(call, 1, i))));
    return most * most * (call->type == FLOAT ? 0x1p-23L : 0x1p-52L);
}

static long double within_dot(const struct call *call)
{
    return largest_product(call) * (2 * call->width - 1);
}

static long double within_cross(const struct call *call)
{
    return largest_product(call) * 3;
}

// Squares that neither overflow nor vanish, and no NaN.
static void fit_geometry(struct call *call)
{
    for (size_t k = 0; k < ARGUMENTS; k++) {
        long double *x = &call->argument[k].x;
        int power;
        if (!isfinite(*x))
            *x = 1;
        else if (*x != 0 && (fabsl(*x) < 0x1p-30L || fabsl(*x) > 0x1p30L))
            *x = frexpl(*x, &power);
    }
}

static void fit_part(struct call *call)
{
    fit_geometry(call);
    for (size_t k = 0; k < ARGUMENTS; k++)
        if (fabsl(call->argument[k].x) > 16)
            call->argument[k].x = frexpl(call->argument[k].x, &(int){0});
    Z = fabsl(Z) > 1 ? 1 : fabsl(Z);
}

static void fit_edges(struct call *call)
{
    fit_part(call);
    if (Y - X < 0.125L)
        Y = X + 1;
    Y = rounded(call->type, Y);
}

static bool has_nan(const struct call *call)
{
    return isnan(X) || isnan(Y) || isnan(Z);
}

static bool is_unordered(const struct call *call)
{
    return has_nan(call) || Y > Z;
}

#define LOOSE(id, expression, takes, within, fitted)                                       \
    ROW(id, expression, takes, 'T', .absolute = within, .any_zero = true, .real = ref_mix, \
        .fit = fitted)
#define EXACT(id, like, expression, takes, opened) \
    ROW(id, expression, takes, 'T', .real = ref_##like, .any_zero = true, .open = opened)
#define VECTOR(id, of, like, takes, parts, ...)                                                   \
    ROW_OF(id, #id "(" takes ")", of, &"TT"[sizeof takes == sizeof "a"], 'T', .real = ref_##like, \
           .widths = parts, .fit = fit_geometry, .any_zero = true, __VA_ARGS__)

static const struct row rows[] = {
    EXACT(clamp, clamp, "clamp(a, b, c)", "TTT", is_unordered),
    EXACT(clamp_scalar, clamp, "clamp(a, b, c)", "Ttt", is_unordered),
    ULP(degrees, "degrees(a)", "T", 2),
    ULP(radians, "radians(a)", "T", 2),
    EXACT(max, max, "max(a, b)", "TT", has_nan),
    EXACT(min, min, "min(a, b)", "TT", has_nan),
    EXACT(max_scalar, max, "max(a, b)", "Tt", has_nan),
    EXACT(min_scalar, min, "min(a, b)", "Tt", has_nan),
    LOOSE(mix, "mix(a, b, c)", "TTT", 1e-3F, fit_part),
    LOOSE(mix_scalar, "mix(a, b, c)", "TTt", 1e-3F, fit_part),
    EXACT(step, step, "step(a, b)", "TT", has_nan),
    EXACT(step_scalar, step, "step(a, b)", "tT", has_nan),
    ROW(smoothstep, "smoothstep(a, b, c)", "TTT", 'T', .absolute = 1e-5F, .real = ref_smoothstep,
        .fit = fit_edges),
    ROW(smoothstep_scalar, "smoothstep(a, b, c)", "ttT", 'T', .absolute = 1e-5F,
        .real = ref_smoothstep, .fit = fit_edges),
    ULP(sign, "sign(a)", "T", 0, .known = {{NVIDIA, REALS, "sign(-0) = 0"}}),
    VECTOR(dot, REALS, dot, "a, b", UP_TO_4, .allowance = within_dot),
    VECTOR(length, REALS, length, "a", UP_TO_4, .ulp = 2.75F, .each_part = 0.5F),
    VECTOR(distance, REALS, distance, "a, b", UP_TO_4, .ulp = 2.5F, .each_part = 2),
    VECTOR(normalize, REALS, normalize, "a", UP_TO_4, .ulp = 2, .each_part = 1),
    VECTOR(cross, REALS, cross, "a, b", OF_3_AND_4, .allowance = within_cross),
    VECTOR(fast_length, 1 << FLOAT, length, "a", UP_TO_4, .ulp = 8191.5F, .each_part = 1),
    VECTOR(fast_distance, 1 << FLOAT, distance, "a, b", UP_TO_4, .ulp = 8191.5F, .each_part = 2),
    VECTOR(fast_normalize, 1 << FLOAT, normalize, "a", UP_TO_4, .ulp = 8192, .each_part = 1),
};

const struct group common_group = {"common", rows, sizeof rows / sizeof *rows};
