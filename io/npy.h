// NumPy's .npy files, format version 1.0
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html):
// float32 and int32, C order, little endian, up to WEIR_IO_MAX_RANK dimensions.
#ifndef WEIR_IO_NPY_H
#define WEIR_IO_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "io/array.h"
#include "io/error.h"

// An array read from a file. `data` holds `count` elements; it is never NULL after
// a success, even if the count is zero.
struct weir_io_npy {
    enum weir_io_dtype dtype;
    int rank;
    uint64_t shape[WEIR_IO_MAX_RANK];
    uint64_t count;
    void *data;
};

// Reads a file that must hold elements of type `dtype`, F32 or I32. Other versions,
// types, Fortran order, big endian, a header without its keys, a body that is too short,
// bytes after it and more than 4 GiB are refused. NaN is accepted: see weir_io_check_finite().
//
// Ownership: `out_array` is the caller's, until weir_io_npy_finish().
// Threads: safe.
// Errors: false; `*out_array` is all zero.
bool weir_io_npy_read(const char *path, enum weir_io_dtype dtype, struct weir_io_npy *out_array,
                      struct weir_io_error *error);

// Frees the data and zeroes the array. A zeroed array is accepted.
void weir_io_npy_finish(struct weir_io_npy *array);

// Writes `data` of the given type (F32 or I32) and shape, which is that of memory,
// atomically as base/file.h describes. The header is padded so that the data starts at a
// multiple of 64 bytes. `data` may be NULL only if a dimension is zero.
//
// Threads: safe; after two concurrent writes to one path the file of one of them
// remains.
// Errors: false; the path is as it was.
bool weir_io_npy_write(const char *path, enum weir_io_dtype dtype, int rank, const uint64_t *shape,
                       const void *data, struct weir_io_error *error);

#endif
