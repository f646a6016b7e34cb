// Sizes stay below 2^63, so they can be used as file offsets without a check.
#include "io/array.h"

#include <math.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "io/ copies arrays as they lie in memory, and files are little endian"
#endif

const struct weir_io_dtype_facts weir_io_dtypes[WEIR_IO_DTYPE_COUNT] = {
    [WEIR_IO_F32] = {"F32", 4},         [WEIR_IO_I32] = {"I32", 4},
    [WEIR_IO_BOOL] = {"BOOL", 1},       [WEIR_IO_U8] = {"U8", 1},
    [WEIR_IO_I8] = {"I8", 1},           [WEIR_IO_F8_E5M2] = {"F8_E5M2", 1},
    [WEIR_IO_F8_E4M3] = {"F8_E4M3", 1}, [WEIR_IO_F8_E8M0] = {"F8_E8M0", 1},
    [WEIR_IO_U16] = {"U16", 2},         [WEIR_IO_I16] = {"I16", 2},
    [WEIR_IO_F16] = {"F16", 2},         [WEIR_IO_BF16] = {"BF16", 2},
    [WEIR_IO_U32] = {"U32", 4},         [WEIR_IO_U64] = {"U64", 8},
    [WEIR_IO_I64] = {"I64", 8},         [WEIR_IO_F64] = {"F64", 8},
    [WEIR_IO_C64] = {"C64", 8},
};

bool weir_io_shape_bytes(enum weir_io_dtype dtype, int rank, const uint64_t *shape,
                         uint64_t *out_bytes)
{
    *out_bytes = 0;
    for (int i = 0; i < rank; i++) {
        if (shape[i] == 0)
            return true;
    }
    uint64_t bytes = weir_io_dtypes[dtype].bytes;
    for (int i = 0; i < rank; i++) {
        if (shape[i] > (uint64_t)INT64_MAX / bytes)
            return false;
        bytes *= shape[i];
    }
    *out_bytes = bytes;
    return true;
}

const char *weir_io_shape_text(int rank, const uint64_t *shape, char *text)
{
    size_t used = 0;
    weir_text_append(text, WEIR_IO_SHAPE_TEXT, &used, "[");
    for (int i = 0; i < rank; i++) {
        const char *gap = i > 0 ? ", " : "";
        if (shape[i] == WEIR_IO_ANY_SIZE)
            weir_text_append(text, WEIR_IO_SHAPE_TEXT, &used, "%sany", gap);
        else
            weir_text_append(text, WEIR_IO_SHAPE_TEXT, &used, "%s%llu", gap,
                             (unsigned long long)shape[i]);
    }
    weir_text_append(text, WEIR_IO_SHAPE_TEXT, &used, "]");
    return text;
}

bool weir_io_check_finite(const char *path, const char *what, const float *values, size_t count,
                          struct weir_io_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return weir_io_fail(error, path,
                                "the %s at index %zu is %s; every value must be a finite number",
                                what, i, isnan(values[i]) ? "NaN" : "infinite");
    }
    return true;
}
