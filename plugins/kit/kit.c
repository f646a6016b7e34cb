#include "plugins/kit/kit.h"

weir_status plugin_refuse_second(const struct weir_link *link, const char *remedy)
{
    for (const struct weir_link *at = link->next; at; at = at->next)
        if (strcmp(at->name, link->name) == 0)
            return weir_host_fail(link->host, WEIR_ERROR_CONFIG, remedy,
                                  "the plugin %.60s is twice in the chain", link->name);
    return WEIR_OK;
}

uint64_t plugin_collective_bytes(const struct weir_operation *operation)
{
    struct weir_note_range range;
    uint64_t read = 0;
    uint64_t written = 0;
    for (uint32_t i = 0; weir_operation_range_at(operation, i, &range); i++)
        *(range.access == WEIR_ACCESS_READ ? &read : &written) += range.size;
    return read > written ? read : written;
}

double plugin_scalar_value(weir_scalar scalar, uint64_t bits)
{
    float f32;
    double f64;
    switch (scalar) {
    case WEIR_SCALAR_I8:
        return (double)(int8_t)bits;
    case WEIR_SCALAR_I16:
        return (double)(int16_t)bits;
    case WEIR_SCALAR_I32:
        return (double)(int32_t)bits;
    case WEIR_SCALAR_I64:
        return (double)(int64_t)bits;
    case WEIR_SCALAR_F32:
        memcpy(&f32, &bits, sizeof f32);
        return (double)f32;
    case WEIR_SCALAR_F64:
        memcpy(&f64, &bits, sizeof f64);
        return f64;
    case WEIR_SCALAR_BOOL:
    case WEIR_SCALAR_U8:
    case WEIR_SCALAR_U16:
    case WEIR_SCALAR_U32:
    case WEIR_SCALAR_U64:
        return (double)bits;
    default:
        return 0;
    }
}
