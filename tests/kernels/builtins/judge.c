// Results against the reference.
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "tests/kernels/builtins/table.h"

// Numbers of a type.

static int digits_of(enum type type)
{
    return type == FLOAT ? FLT_MANT_DIG : DBL_MANT_DIG;
}

static int least_power(enum type type)
{
    return type == FLOAT ? FLT_MIN_EXP - 1 : DBL_MIN_EXP - 1;
}

static long double most_of(enum type type)
{
    return type == FLOAT ? (long double)FLT_MAX : (long double)DBL_MAX;
}

// The distance of the numbers on both sides of `x`, or to the nearer one.
static long double ulp_of(enum type type, long double x)
{
    int power;
    const long double part = frexpl(fabsl(x), &power);
    power -= part == 0.5L ? 2 : 1;
    if (x == 0 || power < least_power(type))
        power = least_power(type);
    return ldexpl(1, power - digits_of(type) + 1);
}

long double next_number(enum type type, long double x, long double y)
{
    return type == FLOAT ? (long double)nextafterf((float)x, (float)y)
                         : (long double)nextafter((double)x, (double)y);
}

long double rounded(enum type type, long double x)
{
    return type == FLOAT ? (long double)(float)x : (long double)(double)x;
}

// What is beyond the largest number counts as the power of two there.
static long double error_of(enum type type, long double got, long double exact)
{
    const long double most = most_of(type);
    if (isinf(got) && !isinf(exact)) {
        if (fabsl(exact) <= most && rounded(type, exact) != got)
            got = copysignl(ldexpl(1, type == FLOAT ? FLT_MAX_EXP : DBL_MAX_EXP), got);
        else
            return (got > 0) == (exact > 0) ? 0 : INFINITY;
    }
    if (fabsl(exact) > most)
        exact = isinf(exact) ? exact : fminl(fabsl(exact), most * 2) * (exact < 0 ? -1 : 1);
    return got == exact ? 0 : fabsl(got - exact) / ulp_of(type, exact);
}

struct judged {
    const struct row *row;
    const struct call *call;
    unsigned device;
    enum type type; // of the result
    bool second;
    float ulp; // the bound
    struct verdict *verdict;
};

static bool is_right_zero(const struct judged *judged, long double got, long double exact)
{
    return got == 0 && (judged->row->any_zero || signbit(got) == signbit(exact));
}

static long double allowance(const struct judged *judged)
{
    const struct row *row = judged->row;
    return row->allowance ? row->allowance(judged->call) : (long double)row->absolute;
}

// The error in ulp, or 0 within the absolute bound, or infinity.
static long double judge_number(const struct judged *judged, long double got, long double exact)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (exact == 0 && got == 0)
        return is_right_zero(judged, got, exact) ? 0 : INFINITY;
    if (isinf(exact))
        return got == exact ? 0 : INFINITY;
    if (fabsl(got - exact) <= allowance(judged))
        return 0;
    return error_of(judged->type, got, exact);
}

static long double least_normal(enum type type)
{
    return ldexpl(1, least_power(type));
}

static long double reference(const struct judged *judged, const struct call *call)
{
    const struct row *row = judged->row;
    const long double x = call->argument[0].x;
    const long double exact = judged->second ? row->second_real(call)
                              : row->of_x    ? row->of_x(x)
                              : row->of_xy   ? row->of_xy(x, call->argument[1].x)
                                             : row->real(call);
    return judged->ulp == 0 ? rounded(judged->type, exact) : exact;
}

// The result if floats below 2^-126 are 0, among arguments or results.
static bool is_right_flushed(const struct judged *judged, long double got, long double exact)
{
    struct call call = *judged->call;
    if (call.type != FLOAT)
        return false;
    if (got == 0 && fabsl(exact) <= least_normal(judged->type))
        return true;
    for (unsigned mask = 1; mask < 1 << ARGUMENTS; mask++) {
        call = *judged->call;
        for (size_t k = 0; k < ARGUMENTS; k++)
            if (mask >> k & 1 && fabsl(call.argument[k].x) < least_normal(FLOAT))
                call.argument[k].x = copysignl(0, call.argument[k].x);
        exact = reference(judged, &call);
        if (judge_number(judged, got, exact) <= (long double)judged->ulp ||
            (got == 0 && fabsl(exact) <= least_normal(judged->type)))
            return true;
    }
    return false;
}

// Texts.

struct line {
    char *text;
    size_t size, used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(line->text + line->used, line->size - line->used, format, arguments);
    va_end(arguments);
    line->used += length < 0 ? 0 : (size_t)length;
    if (line->used >= line->size)
        line->used = line->size - 1;
}

static void add_value(struct line *line, enum type type, const struct value *value)
{
    if (is_real(type))
        add(line, "%.*Lg", type == FLOAT ? 9 : 17, value->x);
    else if (is_signed(type))
        add(line, "%lld", (long long)value->i);
    else
        add(line, "%llu", (unsigned long long)value->i);
}

static void add_arguments(struct line *line, const struct row *row, const struct call *call)
{
    for (size_t k = 0; row->arguments[k] != '\0'; k++) {
        add(line, k == 0 ? "" : ", ");
        add_value(line, letter_type(row->arguments[k], call->type, call->width > 1),
                  &call->argument[k]);
    }
}

static void count_wrong(const struct judged *judged, const struct value *got,
                        const struct value *wanted)
{
    struct verdict *verdict = judged->verdict;
    struct line line = {verdict->example, sizeof verdict->example, 0};
    if (verdict->wrong++ > 0)
        return;
    add(&line, "%s of %s, width %u, %s(", judged->row->name, type_name(judged->call->type),
        judged->call->width, judged->second ? "second result, " : "");
    add_arguments(&line, judged->row, judged->call);
    add(&line, ") = ");
    add_value(&line, judged->type, got);
    add(&line, ", not ");
    add_value(&line, judged->type, wanted);
}

// Judging.

static void judge_real(const struct judged *judged, const struct value *got)
{
    struct verdict *verdict = judged->verdict;
    const struct value wanted = {.x = reference(judged, judged->call)};
    const long double error = judge_number(judged, got->x, wanted.x);
    const bool right = judged->ulp < 0 ? !isinf(error) : error <= (long double)judged->ulp;
    if (!right && (judged->row->flushes & judged->device) &&
        is_right_flushed(judged, got->x, wanted.x)) {
        verdict->flushed++;
        return;
    }
    if (!right)
        count_wrong(judged, got, &wanted);
    if (error > (long double)verdict->worst) {
        struct line line = {verdict->at, sizeof verdict->at, 0};
        verdict->worst = (double)error;
        add_arguments(&line, judged->row, judged->call);
    }
}

static void judge_whole(const struct judged *judged, const struct value *got)
{
    const struct row *row = judged->row;
    const integer exact =
        judged->second ? row->second_whole(judged->call) : row->whole(judged->call);
    const uint64_t image = (uint64_t)(row->truth && judged->call->width > 1 ? -exact : exact);
    const struct value wanted = load_value(judged->type, &image);
    if (got->i != wanted.i)
        count_wrong(judged, got, &wanted);
}

static void judge_one(struct judged *judged, const void *results, size_t index)
{
    const enum type kind = judged->type;
    const struct value got = load_value(kind, (const char *)results + index * type_size(kind));
    if (judged->row->open && judged->row->open(judged->call))
        return;
    if (is_real(kind))
        judge_real(judged, &got);
    else
        judge_whole(judged, &got);
}

// The calls that a kernel made with vectors of this width, in which a scalar argument is the first
// of its vector's.
static void take_width(const struct row *row, unsigned width, const struct call *calls,
                       struct call *out_made)
{
    for (unsigned i = 0; i < COUNT; i++) {
        const unsigned lane = i % CHUNK % width;
        out_made[i] = calls[i];
        out_made[i].width = width;
        out_made[i].lane = lane;
        for (size_t k = 0; row->arguments[k] != '\0'; k++)
            if (letter_is_scalar(row->arguments[k]))
                out_made[i].argument[k] = calls[i - lane].argument[k];
    }
}

static void judge_width(const struct judged *like, const struct call *made, unsigned index,
                        const char *results)
{
    const struct row *row = like->row;
    const unsigned width = widths[index], filled = CHUNK / width * width;
    for (size_t i = 0; i < COUNT; i++) {
        struct judged judged = *like;
        judged.call = &made[i];
        if (i % CHUNK >= filled)
            continue;
        judged.type = letter_type(row->result, made[i].type, true);
        judge_one(&judged, results, index * COUNT + i);
        judged.second = true;
        if (row->second) {
            judged.type = letter_type(row->second, made[i].type, true);
            judge_one(&judged, results + SECOND_AT, index * COUNT + i);
        }
    }
}

void judge(const struct row *row, enum type type, unsigned device, const struct call *calls,
           const void *results, struct verdict *out)
{
    static struct call made[COUNT];
    struct judged judged = {.row = row, .device = device, .verdict = out};
    const bool exact = (row->exact_devices & device) || (row->exact_types >> type & 1);
    const float ulp = exact ? 0 : row->ulp;
    *out = (struct verdict){0};
    for (unsigned w = 0; w < WIDTHS; w++) {
        if (!row_has_width(row, type, w))
            continue;
        judged.ulp = ulp + row->each_part * (float)widths[w];
        take_width(row, widths[w], calls, made);
        judge_width(&judged, made, w, results);
    }
}
