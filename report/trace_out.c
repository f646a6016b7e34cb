// JSON as traces and pages have it. Text that does not fit into memory is a failure, after which nothing is added.
#include "report/trace_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/text.h"

void weir__out_fail(struct weir__out *out, const char *reason)
{
    if (!out->text.failed)
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    out->text.failed = true;
    out->text.used = 0;
}

const char *weir__out_reason(const struct weir__out *out)
{
    return *out->reason ? out->reason : "there is no memory";
}

static void put(struct weir__out *out, const char *bytes, size_t size)
{
    weir_long_text_put(&out->text, bytes, size);
}

void weir__out_raw(struct weir__out *out, const char *text)
{
    put(out, text, strlen(text));
}

void weir__out_string(struct weir__out *out, const char *text)
{
    const char *at = text ? text : "";
    put(out, "\"", 1);
    while (*at) {
        const size_t length = weir_text_character(at, SIZE_MAX);
        char escape[8];
        if (length == 0) {
            put(out, "?", 1);
        } else if (*at == '"' || *at == '\\') {
            escape[0] = '\\';
            escape[1] = *at;
            put(out, escape, 2);
        } else if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*at);
            put(out, escape, 6);
        } else {
            put(out, at, length);
        }
        at += length ? length : 1;
    }
    put(out, "\"", 1);
}

void weir__out_uint(struct weir__out *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    if (number > INT64_MAX)
        number = INT64_MAX;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(out, digits + at, sizeof digits - at);
}

void weir__out_int(struct weir__out *out, int64_t number)
{
    if (number < 0)
        put(out, "-", 1);
    weir__out_uint(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

// Microseconds with three decimals, of nanoseconds.
static void weir__out_us(struct weir__out *out, uint64_t ns)
{
    const unsigned rest = (unsigned)(ns % 1000);
    const char decimals[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                              (char)('0' + rest % 10)};
    weir__out_uint(out, ns / 1000);
    put(out, decimals, sizeof decimals);
}

void weir__out_double(struct weir__out *out, double number)
{
    char text[40];
    weir_c_format(text, sizeof text, "%.17g", isfinite(number) ? number : 0.0);
    weir__out_raw(out, text);
}

void weir__out_key(struct weir__out *out, const char *name)
{
    const bool first = out->text.used > 0 && out->text.text[out->text.used - 1] == '{';
    weir__out_raw(out, first ? "\"" : ",\"");
    weir__out_raw(out, name);
    weir__out_raw(out, "\":");
}

void weir__out_string_field(struct weir__out *out, const char *name, const char *text)
{
    weir__out_key(out, name);
    weir__out_string(out, text);
}

void weir__out_uint_field(struct weir__out *out, const char *name, uint64_t number)
{
    weir__out_key(out, name);
    weir__out_uint(out, number);
}

void weir__out_us_field(struct weir__out *out, const char *name, uint64_t ns)
{
    weir__out_key(out, name);
    weir__out_us(out, ns);
}

void weir__out_double_field(struct weir__out *out, const char *name, double number)
{
    weir__out_key(out, name);
    weir__out_double(out, number);
}

static void put_triple(struct weir__out *out, const uint32_t triple[3])
{
    for (size_t i = 0; i < 3; i++) {
        put(out, i == 0 ? "[" : ",", 1);
        weir__out_uint(out, triple[i]);
    }
    put(out, "]", 1);
}

static void put_value(struct weir__out *out, const struct weir__field *field, const void *value)
{
    switch (field->type) {
    case WEIR__TEXT:
        weir__out_string(out, *(const char *const *)value);
        break;
    case WEIR__COUNT:
        weir__out_uint(out, *(const uint64_t *)value);
        break;
    case WEIR__SMALL:
        weir__out_uint(out, *(const uint32_t *)value);
        break;
    case WEIR__INT:
        weir__out_int(out, *(const int *)value);
        break;
    case WEIR__BOOL:
        weir__out_raw(out, field->name ? "true" : *(const bool *)value ? "1" : "0");
        break;
    case WEIR__REAL:
        weir__out_double(out, *(const double *)value);
        break;
    case WEIR__TRIPLE:
        put_triple(out, value);
        break;
    default:
        weir__out_string(out, weir__trace_name(field->type, *(const unsigned *)value));
        break;
    }
}

static bool is_there(const struct weir__field *field, const void *value)
{
    switch (field->type) {
    case WEIR__TEXT:
        return *(const char *const *)value && **(const char *const *)value;
    case WEIR__COUNT:
        return *(const uint64_t *)value > 0;
    case WEIR__BOOL:
        return *(const bool *)value;
    default:
        return *(const unsigned *)value != 0; // also of an int, and the first of a triple
    }
}

void weir__out_fields(struct weir__out *out, const struct weir__field *fields, const void *item)
{
    for (const struct weir__field *field = fields; field->type != WEIR__END; field++) {
        const void *value = (const char *)item + field->offset;
        if (!field->always && !is_there(field, value))
            continue;
        weir__out_key(out, field->name);
        put_value(out, field, value);
    }
}

void weir__out_list(struct weir__out *out, const struct weir__field *fields, const void *item)
{
    for (const struct weir__field *field = fields; field->type != WEIR__END; field++) {
        put(out, field == fields ? "[" : ",", 1);
        put_value(out, field, (const char *)item + field->offset);
    }
    put(out, "]", 1);
}
