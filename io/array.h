// Element types and shapes, shared by npy and safetensors files. Arrays are in C
// order, little endian.
//
// Threads: all functions are safe; none keeps state.
#ifndef WEIR_IO_ARRAY_H
#define WEIR_IO_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/error.h"

// The element types of the safetensors format that take whole bytes; npy files are of F32
// and I32 only.
enum weir_io_dtype {
    WEIR_IO_F32,
    WEIR_IO_I32,
    WEIR_IO_BOOL,
    WEIR_IO_U8,
    WEIR_IO_I8,
    WEIR_IO_F8_E5M2,
    WEIR_IO_F8_E4M3,
    WEIR_IO_F8_E8M0,
    WEIR_IO_U16,
    WEIR_IO_I16,
    WEIR_IO_F16,
    WEIR_IO_BF16,
    WEIR_IO_U32,
    WEIR_IO_U64,
    WEIR_IO_I64,
    WEIR_IO_F64,
    WEIR_IO_C64,
    WEIR_IO_DTYPE_COUNT
};

#define WEIR_IO_MAX_RANK 8

// Long enough for any shape that weir_io_shape_text() writes.
#define WEIR_IO_SHAPE_TEXT 192

// A dimension that matches every size where a wanted shape is compared.
#define WEIR_IO_ANY_SIZE UINT64_MAX

// The name that safetensors uses ("F32") and the size of one element.
extern const struct weir_io_dtype_facts {
    const char *name;
    size_t bytes;
} weir_io_dtypes[WEIR_IO_DTYPE_COUNT];

// Multiplies the dimensions and the size of an element. A scalar (rank 0) has one
// element. False if the product does not fit in 63 bits; a dimension of zero makes
// it zero, whichever dimension it is.
bool weir_io_shape_bytes(enum weir_io_dtype dtype, int rank, const uint64_t *shape,
                         uint64_t *out_bytes);

// Writes "[64, 13]" into `text` of WEIR_IO_SHAPE_TEXT bytes, "any" for
// WEIR_IO_ANY_SIZE, and returns `text`. `rank` is at most WEIR_IO_MAX_RANK.
const char *weir_io_shape_text(int rank, const uint64_t *shape, char *text);

// True if all `count` values are finite. Otherwise the message names the first
// that is not and its index; `what` names the values in a word or two.
bool weir_io_check_finite(const char *path, const char *what, const float *values, size_t count,
                          struct weir_io_error *error);

#endif
