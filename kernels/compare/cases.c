// Everything in the file is known: a key or a value that is not is an error, which names the nearest
// place.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "kernels/compare/compare.h"

// Where a sentence about the file goes, and what it begins with.
struct reader {
    char *message;
    const char *name;      // of the case
    const char *parameter; // NULL: it is about the case
};

static bool refuse(const struct reader *reader, const char *format, ...) WEIR_PRINTF(2, 3);

static bool refuse(const struct reader *reader, const char *format, ...)
{
    char sentence[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (reader->parameter)
        snprintf(reader->message, COMPARE_MESSAGE, "case '%.80s', parameter '%.80s': %s",
                 reader->name, reader->parameter, sentence);
    else
        snprintf(reader->message, COMPARE_MESSAGE, "case '%.80s': %s", reader->name, sentence);
    return false;
}

// `known` ends with NULL.
static bool check_keys(const struct reader *reader, const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return refuse(reader, "there is no key '%.40s'; docs/kernels.md lists them", key);
    }
    return true;
}

#define FILE_LIMIT ((size_t)64 << 20)

json_t *compare_read_file(const char *path, char *message)
{
    static const char *const keys[] = {"cases", NULL};
    const struct reader reader = {message, "", NULL};
    json_error_t error;
    void *text;
    size_t size;
    if (!weir_file_read(path, FILE_LIMIT, &text, &size, message, COMPARE_MESSAGE))
        return NULL;
    json_t *root = weir_json_load(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!root) {
        snprintf(message, COMPARE_MESSAGE, "%.200s:%d: %s", path, error.line, error.text);
        return NULL;
    }
    json_t *cases = json_object_get(root, "cases");
    const bool fine = json_array_size(cases) > 0 && check_keys(&reader, root, keys);
    if (!fine)
        snprintf(message, COMPARE_MESSAGE,
                 "%.200s: it is an object with one key, 'cases', an array that is not empty", path);
    json_incref(fine ? cases : NULL);
    json_decref(root);
    return fine ? cases : NULL;
}

static bool read_extent(const struct reader *reader, const json_t *from, const char *key,
                        struct weir_extent *out)
{
    const json_t *list = json_object_get(from, key);
    uint32_t values[3] = {1, 1, 1};
    const size_t count = json_array_size(list);
    bool fine = count >= 1 && count <= 3;
    for (size_t i = 0; i < count && fine; i++) {
        const json_int_t value = json_integer_value(json_array_get(list, i));
        fine = value > 0 && value <= UINT32_MAX;
        values[i] = fine ? (uint32_t)value : 1;
    }
    *out = (struct weir_extent){values[0], values[1], values[2]};
    return fine || refuse(reader, "'%s' is an array of one to three numbers from 1 on", key);
}

static bool read_tolerance(const struct reader *reader, const json_t *from,
                           struct compare_case *one)
{
    static const char *const keys[] = {"absolute", "relative", NULL};
    const json_t *tolerance = json_object_get(from, "tolerance");
    if (!tolerance)
        return true;
    if (!json_is_object(tolerance))
        return refuse(reader, "'tolerance' is an object with 'absolute', 'relative' or both");
    one->absolute = json_number_value(json_object_get(tolerance, "absolute"));
    one->relative = json_number_value(json_object_get(tolerance, "relative"));
    if (one->absolute < 0 || one->relative < 0 || one->absolute + one->relative <= 0)
        return refuse(reader, "'tolerance' has numbers above 0; without it results are equal");
    return check_keys(reader, tolerance, keys);
}

// Values.

static bool fits(weir_scalar scalar, double value)
{
    static const double lowest[] = {[WEIR_SCALAR_I8] = -0x1p7,
                                    [WEIR_SCALAR_I16] = -0x1p15,
                                    [WEIR_SCALAR_I32] = -0x1p31,
                                    [WEIR_SCALAR_I64] = -0x1p63,
                                    [WEIR_SCALAR_F64] = 0};
    static const double beyond[] = {
        [WEIR_SCALAR_I8] = 0x1p7,   [WEIR_SCALAR_U8] = 0x1p8,   [WEIR_SCALAR_I16] = 0x1p15,
        [WEIR_SCALAR_U16] = 0x1p16, [WEIR_SCALAR_I32] = 0x1p31, [WEIR_SCALAR_U32] = 0x1p32,
        [WEIR_SCALAR_I64] = 0x1p63, [WEIR_SCALAR_U64] = 0x1p64, [WEIR_SCALAR_F64] = 0};
    if (scalar == WEIR_SCALAR_F32)
        return fabs(value) <= 0x1.fffffep127;
    return scalar == WEIR_SCALAR_F64 ||
           (value >= lowest[scalar] && value < beyond[scalar] && floor(value) == value);
}

static bool set(const struct reader *reader, struct compare_argument *argument, size_t index,
                const json_t *value)
{
    const double number = json_number_value(value);
    if (!json_is_number(value))
        return refuse(reader, "its values are numbers");
    if (!fits(argument->scalar, number))
        return refuse(reader, "%g is no %s", number, argument->parameter->type_name);
    compare_set(argument->scalar, argument->data, index, number);
    return true;
}

static bool set_all(const struct reader *reader, struct compare_argument *argument,
                    const json_t *value)
{
    for (size_t i = 0; i < argument->count; i++)
        if (!set(reader, argument, i, value))
            return false;
    return true;
}

static bool set_list(const struct reader *reader, struct compare_argument *argument,
                     const json_t *list)
{
    for (size_t i = 0; i < argument->count; i++)
        if (!set(reader, argument, i, json_array_get(list, i)))
            return false;
    return true;
}

static uint64_t seed_of(const char *name)
{
    uint64_t seed = 1;
    for (; *name; name++)
        seed = seed * 31 + (unsigned char)*name;
    return seed;
}

// Numbers between the two, the same in every run; whole ones for whole types.
static bool set_random(const struct reader *reader, struct compare_argument *argument,
                       const json_t *range)
{
    const double low = json_number_value(json_array_get(range, 0));
    const double high = json_number_value(json_array_get(range, 1));
    const bool whole = !compare_is_float(argument->scalar);
    uint64_t state = seed_of(reader->parameter) * 0x9e3779b97f4a7c15u;
    if (json_array_size(range) != 2 || !(low < high) || !fits(argument->scalar, low) ||
        !fits(argument->scalar, high))
        return refuse(reader, "'random' is an array of the lowest and the highest %s",
                      argument->parameter->type_name);
    for (size_t i = 0; i < argument->count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double part = (double)(state >> 11) * 0x1p-53;
        const double value = low + part * (high - low + (whole ? 1 : 0));
        compare_set(argument->scalar, argument->data, i, whole ? fmin(floor(value), high) : value);
    }
    return true;
}

static bool set_from(const struct reader *reader, struct compare_argument *argument,
                     const json_t *first)
{
    const double from = json_number_value(first);
    if (!json_is_number(first) || !fits(argument->scalar, from) ||
        !fits(argument->scalar, from + (double)argument->count - 1))
        return refuse(reader, "'from' is the first of %zu numbers, each one more, and a %s",
                      argument->count, argument->parameter->type_name);
    for (size_t i = 0; i < argument->count; i++)
        compare_set(argument->scalar, argument->data, i, from + (double)i);
    return true;
}

// Arguments.

static bool find_type(const struct reader *reader, const json_t *from,
                      struct compare_argument *argument)
{
    const char *type = argument->parameter->type_name;
    const json_t *given = json_object_get(from, "type");
    if (given)
        type = json_is_string(given) ? json_string_value(given) : "";
    return compare_type(type, &argument->scalar, &argument->lanes) ||
           refuse(reader,
                  "a %.60s is no number or vector of numbers; if it is made of those, say of "
                  "which with 'type', such as \"float\"",
                  argument->parameter->type_name);
}

static bool allocate(const struct reader *reader, struct compare_argument *argument)
{
    const size_t each = compare_scalar_size(argument->scalar);
    if (argument->count == 0)
        return refuse(reader, "it has no elements, or too many");
    argument->size = argument->count * each;
    argument->data = calloc(argument->count, each);
    return argument->data || refuse(reader, "no memory for %zu elements", argument->count);
}

static bool read_buffer(const struct reader *reader, const json_t *from,
                        struct compare_argument *argument)
{
    static const char *const keys[] = {"count", "type", "random", "fill", "from", "values", NULL};
    const json_t *values = json_object_get(from, "values");
    const json_t *fill = json_object_get(from, "fill"), *first = json_object_get(from, "from");
    const json_t *random = json_object_get(from, "random");
    const json_t *count = json_object_get(from, "count");
    if (!check_keys(reader, from, keys) || !find_type(reader, from, argument))
        return false;
    if ((values != NULL) + (fill != NULL) + (first != NULL) + (random != NULL) != 1 ||
        (count != NULL) == (values != NULL))
        return refuse(reader, "a buffer has 'values', or a 'count' and one of 'random', 'fill' and "
                              "'from'");
    const json_int_t elements = json_integer_value(count);
    argument->count = values                               ? json_array_size(values)
                      : elements > 0 && elements < 1 << 30 ? (size_t)elements * argument->lanes
                                                           : 0;
    if (!allocate(reader, argument))
        return false;
    return values   ? set_list(reader, argument, values)
           : fill   ? set_all(reader, argument, fill)
           : random ? set_random(reader, argument, random)
                    : set_from(reader, argument, first);
}

static bool read_value(const struct reader *reader, const json_t *from,
                       struct compare_argument *argument)
{
    static const char *const keys[] = {"value", "type", NULL};
    const json_t *value = json_object_get(from, "value");
    if (!value)
        return refuse(reader, "it is passed by value, so it has 'value'");
    if (!check_keys(reader, from, keys) || !find_type(reader, from, argument))
        return false;
    argument->count = json_is_array(value) ? json_array_size(value) : 1;
    if (!allocate(reader, argument))
        return false;
    if (argument->size != argument->parameter->size)
        return refuse(reader, "a %.60s has %u bytes, and the value %zu",
                      argument->parameter->type_name, (unsigned)argument->parameter->size,
                      argument->size);
    return json_is_array(value) ? set_list(reader, argument, value)
                                : set(reader, argument, 0, value);
}

static bool read_local(const struct reader *reader, const json_t *from,
                       struct compare_argument *argument)
{
    static const char *const keys[] = {"local", NULL};
    const json_int_t bytes = json_integer_value(json_object_get(from, "local"));
    argument->size = (size_t)bytes;
    if (bytes <= 0)
        return refuse(reader, "it is local memory, so it has 'local', its bytes");
    return check_keys(reader, from, keys);
}

static bool read_argument(const struct reader *reader, const json_t *from,
                          struct compare_argument *argument)
{
    switch (argument->parameter->kind) {
    case WEIR_PARAMETER_BUFFER:
        return read_buffer(reader, from, argument);
    case WEIR_PARAMETER_LOCAL:
        return read_local(reader, from, argument);
    default:
        return read_value(reader, from, argument);
    }
}

static bool read_arguments(struct reader *reader, const json_t *from,
                           const struct weir_kernel_signature *kernel, struct compare_case *one)
{
    const json_t *list = json_object_get(from, "arguments");
    if (kernel->parameter_count > COMPARE_ARGUMENTS)
        return refuse(reader, "kernel '%.60s' has more than %d parameters", kernel->name,
                      COMPARE_ARGUMENTS);
    if (json_array_size(list) != kernel->parameter_count)
        return refuse(reader, "'arguments' has %zu, and kernel '%.60s' %u", json_array_size(list),
                      kernel->name, (unsigned)kernel->parameter_count);
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        one->arguments[i].parameter = weir_signature_parameter(kernel, i);
        one->argument_count = i + 1;
        reader->parameter = one->arguments[i].parameter->name;
        if (!read_argument(reader, json_array_get(list, i), &one->arguments[i]))
            return false;
    }
    reader->parameter = NULL;
    return true;
}

static const struct weir_kernel_signature *find_kernel(const struct weir_bundle *bundle,
                                                       const char *name)
{
    for (uint32_t i = 0; name && i < bundle->kernel_count; i++)
        if (strcmp(weir_bundle_kernel(bundle, i)->name, name) == 0)
            return weir_bundle_kernel(bundle, i);
    return NULL;
}

bool compare_read_case(const json_t *from, const struct weir_bundle *bundle,
                       struct compare_case *out_case, char *message)
{
    static const char *const keys[] = {"name",      "kernel",    "grid", "block",
                                       "arguments", "tolerance", NULL};
    const char *name = json_string_value(json_object_get(from, "name"));
    struct reader reader = {message, name ? name : "?", NULL};
    *out_case = (struct compare_case){.name = reader.name};
    message[0] = '\0';
    if (!name)
        return refuse(&reader, "a case is an object with a 'name'");
    out_case->kernel = json_string_value(json_object_get(from, "kernel"));
    const struct weir_kernel_signature *kernel = find_kernel(bundle, out_case->kernel);
    if (!kernel)
        return refuse(&reader, "'kernel' names none of %.100s", bundle->name);
    return check_keys(&reader, from, keys) && read_extent(&reader, from, "grid", &out_case->grid) &&
           read_extent(&reader, from, "block", &out_case->block) &&
           read_tolerance(&reader, from, out_case) &&
           read_arguments(&reader, from, kernel, out_case);
}

void compare_case_finish(struct compare_case *one)
{
    for (size_t i = 0; i < one->argument_count; i++)
        free(one->arguments[i].data);
    *one = (struct compare_case){0};
}
