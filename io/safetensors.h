// Reader and writer of safetensors files, the format in which neural network weights
// are published (https://github.com/huggingface/safetensors#format): a length of 8
// bytes, a JSON header of that length, then the tensors' bytes.
//
// The reader is at least as strict as the reference: the header has at most
// 100,000,000 bytes and at least "{}", every type is known, every shape's size equals
// the bytes that its offsets span, and the tensors fill the body without overlaps,
// gaps or bytes left over. In addition, names must be unique, an entry has no key but
// `dtype`, `shape` and `data_offsets`, a tensor has at most WEIR_IO_MAX_RANK
// dimensions, and types of less than one byte are not known.
#ifndef WEIR_IO_SAFETENSORS_H
#define WEIR_IO_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/array.h"
#include "io/error.h"

#define WEIR_IO_SAFETENSORS_HEADER_LIMIT 100000000

// One tensor. `size_bytes` is the shape's size, and `begin` where its bytes begin in the file's body; the writer
// ignores both.
struct weir_io_tensor {
    const char *name;
    enum weir_io_dtype dtype;
    int rank;
    uint64_t shape[WEIR_IO_MAX_RANK];
    const void *data;
    uint64_t size_bytes;
    uint64_t begin;
};

// A file that was read. Closed.
typedef struct weir_io_safetensors {
    struct weir_io_tensor *tensors; // in the file's order, one after the other
    size_t count;
    char *path;
    struct json_t *header; // owns the names
    unsigned char *body;
} weir_io_safetensors;

// Reads the whole file into memory. The header is checked against the file's size
// before memory for the tensors is taken.
//
// Ownership: `*out_file` is the caller's, until weir_io_safetensors_destroy(); tensors
// found in it are valid until then.
// Threads: safe; any number of threads may read an open file.
// Errors: false; `*out_file` is NULL.
bool weir_io_safetensors_open(const char *path, weir_io_safetensors **out_file,
                              struct weir_io_error *error);

// Frees the file and sets `*file` to NULL. NULL and a pointer to NULL are accepted.
void weir_io_safetensors_destroy(weir_io_safetensors **file);

// Returns the tensor with this name, of any type and shape, or NULL.
const struct weir_io_tensor *weir_io_safetensors_get(const weir_io_safetensors *file,
                                                     const char *name);

// Finds the F32 tensor with this name and shape, in which WEIR_IO_ANY_SIZE matches
// every size, and stores a pointer to its values, all of which are finite.
//
// Errors: false, `*out_values` is NULL; the message has the expected and the actual
// shape, the first value that is not finite, or the nearest name if there is no tensor with that name.
bool weir_io_safetensors_find(const weir_io_safetensors *file, const char *name, int rank,
                              const uint64_t *shape, const float **out_values,
                              struct weir_io_error *error);

// Writes tensors in the given order, atomically as base/file.h describes. Names are UTF-8,
// and no two are equal. The header is padded with spaces to a multiple of 8 bytes. The same
// tensors give the same bytes.
//
// Threads: safe.
// Errors: false, the path is as it was: the disk, or memory.
bool weir_io_safetensors_write(const char *path, const struct weir_io_tensor *tensors, size_t count,
                               struct weir_io_error *error);

#endif
