#include <ctype.h>
#include <math.h>
#include <string.h>

#include "kernels/compare/compare.h"

static const struct {
    const char *name;
    weir_scalar scalar;
    size_t size;
} types[] = {
    {"char", WEIR_SCALAR_I8, 1},    {"uchar", WEIR_SCALAR_U8, 1},  {"short", WEIR_SCALAR_I16, 2},
    {"ushort", WEIR_SCALAR_U16, 2}, {"int", WEIR_SCALAR_I32, 4},   {"uint", WEIR_SCALAR_U32, 4},
    {"long", WEIR_SCALAR_I64, 8},   {"ulong", WEIR_SCALAR_U64, 8}, {"float", WEIR_SCALAR_F32, 4},
    {"double", WEIR_SCALAR_F64, 8},
};

enum {
    TYPES = sizeof types / sizeof *types
};

// 1, 2, 3, 4, 8 or 16 from what stands after a type's name; 0: another.
static unsigned lanes_of(const char *text)
{
    static const unsigned known[] = {2, 3, 4, 8, 16};
    const char *rest = text + strspn(text, "0123456789");
    const unsigned number = rest > text ? (unsigned)strtoul(text, NULL, 10) : 1;
    bool fine = rest == text;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        fine = fine || known[i] == number;
    rest += strspn(rest, " *");
    return !fine || *rest ? 0 : number == 3 ? 4 : number;
}

bool compare_type(const char *type, weir_scalar *out_scalar, unsigned *out_lanes)
{
    static const char constant[] = "const ";
    if (strncmp(type, constant, sizeof constant - 1) == 0)
        type += sizeof constant - 1;
    for (size_t i = 0; i < TYPES; i++) {
        const size_t length = strlen(types[i].name);
        if (strncmp(type, types[i].name, length) != 0 ||
            (*out_lanes = lanes_of(type + length)) == 0)
            continue;
        *out_scalar = types[i].scalar;
        return true;
    }
    return false;
}

size_t compare_scalar_size(weir_scalar scalar)
{
    for (size_t i = 0; i < TYPES; i++)
        if (types[i].scalar == scalar)
            return types[i].size;
    return 0;
}

bool compare_is_float(weir_scalar scalar)
{
    return scalar == WEIR_SCALAR_F32 || scalar == WEIR_SCALAR_F64;
}

#define EACH_TYPE(DO)             \
    DO(WEIR_SCALAR_I8, int8_t)    \
    DO(WEIR_SCALAR_U8, uint8_t)   \
    DO(WEIR_SCALAR_I16, int16_t)  \
    DO(WEIR_SCALAR_U16, uint16_t) \
    DO(WEIR_SCALAR_I32, int32_t)  \
    DO(WEIR_SCALAR_U32, uint32_t) \
    DO(WEIR_SCALAR_I64, int64_t)  \
    DO(WEIR_SCALAR_U64, uint64_t) \
    DO(WEIR_SCALAR_F32, float)    \
    DO(WEIR_SCALAR_F64, double)

double compare_get(weir_scalar scalar, const void *data, size_t index)
{
    switch (scalar) {
#define GET(which, type) \
    case which:          \
        return (double)((const type *)data)[index];
        EACH_TYPE(GET)
#undef GET
    default:
        return 0;
    }
}

void compare_set(weir_scalar scalar, void *data, size_t index, double value)
{
    switch (scalar) {
#define SET(which, type)                     \
    case which:                              \
        ((type *)data)[index] = (type)value; \
        break;
        EACH_TYPE(SET)
#undef SET
    default:
        break;
    }
}

// By how much of the tolerance the element differs: above 1 is too much.
static double excess(const struct compare_case *one, double x, double y, bool same, double *out)
{
    const double allowed = one->absolute + one->relative * fabs(y);
    *out = fabs(x - y);
    if (same)
        return 0;
    if (allowed > 0 && *out <= allowed)
        return *out / allowed;
    return isnan(*out) ? INFINITY : allowed > 0 ? *out / allowed : INFINITY;
}

void compare_results(const struct compare_case *one, const struct compare_argument *argument,
                     const void *x, const void *y, struct compare_difference *out)
{
    const size_t size = compare_scalar_size(argument->scalar);
    double most = -1;
    *out = (struct compare_difference){0};
    for (size_t i = 0; i < argument->count; i++) {
        const double a = compare_get(argument->scalar, x, i);
        const double b = compare_get(argument->scalar, y, i);
        const bool same =
            memcmp((const char *)x + i * size, (const char *)y + i * size, size) == 0 ||
            (compare_is_float(argument->scalar) && a == b);
        double difference;
        const double beyond = excess(one, a, b, same, &difference);
        out->beyond += beyond > 1;
        out->nans += isnan(b) != 0;
        if (beyond > most) {
            most = beyond;
            out->worst = i;
            out->largest = difference;
        }
    }
}

static bool fails(FILE *to, const struct compare_case *one, const struct compare_argument *argument,
                  const char *sentence)
{
    fprintf(to, "FAIL  %s: '%s': %s\n", one->name, argument->parameter->name, sentence);
    return false;
}

bool compare_judge(FILE *to, const struct compare_case *one,
                   const struct compare_argument *argument, const void *x, const void *y)
{
    struct compare_difference found;
    char sentence[256];
    compare_results(one, argument, x, y, &found);
    if (found.nans > 0)
        return fails(to, one, argument,
                     "the OpenCL C writes NaN, which nothing can be compared "
                     "with; give it other values");
    if (memcmp(y, argument->data, argument->size) == 0)
        return fails(to, one, argument,
                     "the OpenCL C leaves it as it was, so nothing is compared; "
                     "give it other values");
    if (found.beyond == 0 && found.largest <= 0) {
        fprintf(to, "ok    %s: '%s': %zu elements, equal\n", one->name, argument->parameter->name,
                argument->count);
        return true;
    }
    snprintf(sentence, sizeof sentence,
             "%zu of %zu elements differ too much; element %zu: %.9g, "
             "and %.9g by the OpenCL C",
             found.beyond, argument->count, found.worst,
             compare_get(argument->scalar, x, found.worst),
             compare_get(argument->scalar, y, found.worst));
    if (found.beyond > 0)
        return fails(to, one, argument, sentence);
    fprintf(to, "ok    %s: '%s': %zu elements; the worst, %zu, differs by %.3g\n", one->name,
            argument->parameter->name, argument->count, found.worst, found.largest);
    return true;
}
