// What kernels print: the ring that their printf writes to (kernels/ptx/printf.ptx), and text of its
// records.
#ifndef WEIR_BACKENDS_CUDA_PRINT_H
#define WEIR_BACKENDS_CUDA_PRINT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"

// The name of a module's variable, of 64 bits, that holds the ring's address on the device.
#define CU_RING_SYMBOL "weir_printf"

// In pinned memory. Places count all bytes since the beginning; one lies at its remainder by
// `capacity`, a power of two. Free bytes are zero.
struct cu_ring {
    _Atomic uint64_t head; // the device's: what is reserved
    _Atomic uint64_t tail; // the host's: what has been read
    uint64_t capacity;     // of `data`
    _Atomic uint64_t lost; // the device's: records for which there was no room
    uint64_t unused[4];
    unsigned char data[];
};

// A record begins with two words of 32 bits: its size, a multiple of 8, which is odd once all is
// written, and that of the arguments. These, the format and the texts to which arguments of %s point
// follow, each text with its zero. An argument lies at a multiple of its size.

// Adds the text of a record's contents, which follow its two words. printf is that of OpenCL C 1.2,
// section 6.12.13. A conversion that is none of its own, and each after it, becomes "<?>".
void cu_print_format(const unsigned char *contents, size_t size, size_t argument_bytes,
                     struct weir_long_text *out);

#endif
