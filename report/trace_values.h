// Values of a row. One that is missing or of another type reads as 0 or "".
#ifndef WEIR_REPORT_TRACE_VALUES_H
#define WEIR_REPORT_TRACE_VALUES_H

#include <jansson.h>

#include "report/trace_rows.h"
#include "report/trace_storage.h"

static inline const char *weir__text_of(const struct weir__rows *rows, const json_t *object,
                                        const char *key)
{
    const char *text =
        weir__trace_intern(rows->trace->storage, json_string_value(json_object_get(object, key)));
    return text ? text : "";
}

static inline uint64_t weir__whole(const json_t *value)
{
    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    const double number = json_real_value(value);
    return number >= 1 && number < 9e18 ? (uint64_t)number : 0;
}

static inline uint64_t weir__uint_of(const json_t *object, const char *key)
{
    return weir__whole(json_object_get(object, key));
}

static inline uint32_t weir__small(const json_t *value)
{
    const uint64_t number = weir__whole(value);
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static inline uint32_t weir__small_of(const json_t *object, const char *key)
{
    return weir__small(json_object_get(object, key));
}

static inline int weir__int(const json_t *value)
{
    const json_int_t number = json_integer_value(value);
    return number > INT32_MAX ? INT32_MAX : number < INT32_MIN ? INT32_MIN : (int)number;
}

static inline uint64_t weir__ns_of(const json_t *object, const char *key)
{
    const double us = json_number_value(json_object_get(object, key));
    return !(us > 0) ? 0 : us < 9e15 ? (uint64_t)(us * 1000 + 0.5) : 9000000000000000000u;
}

static inline const char *weir__string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

#endif
