// What the layer and its program `weir-opencl-trial` say to each other: a file in memory that both have, which begins with
// a struct trial, and a socket, on which a byte asks and a byte answers.
//
// The program runs a launch again and again on copies of its buffers, and finds the bytes that it uses. It is a process
// of its own, since a kernel that gets other data than it was written for may do anything.
#ifndef WEIR_LAYERS_OPENCL_TRIAL_H
#define WEIR_LAYERS_OPENCL_TRIAL_H

#include <stddef.h>
#include <stdint.h>

enum {
    TRIAL_ARGUMENTS = 64,
    TRIAL_BUFFERS = 32,
    TRIAL_RANGES = 8,      // of one buffer
    TRIAL_ALL_RANGES = 64, // of a launch
    TRIAL_VALUE_BYTES = 128,
    TRIAL_NAME = 256,
    TRIAL_FILE = 3, // the descriptor of the file; the socket is standard input
};

#define TRIAL_PROGRAM "weir-opencl-trial"

enum trial_kind {
    TRIAL_VALUE,
    TRIAL_LOCAL, // memory of work-groups
    TRIAL_BUFFER,
};

struct trial_argument {
    uint32_t kind;
    uint32_t buffer;
    uint64_t size;
    unsigned char value[TRIAL_VALUE_BYTES];
};

// Rows of `size` bytes, as struct weir_note_range has them.
struct trial_range {
    uint64_t offset, size, rows, pitch;
    uint32_t access;
    uint32_t assumed;
};

struct trial_buffer {
    uint64_t at; // of its contents in the file
    uint64_t size;
    uint32_t access;  // at most, of weir_access
    uint32_t fragile; // a run with other contents did not end well, so there is none
    // Found.
    uint32_t range_count;
    struct trial_range ranges[TRIAL_RANGES];
};

enum trial_result {
    TRIAL_FAILED,
    TRIAL_RANDOM, // two runs differ
    TRIAL_FOUND,
};

struct trial {
    uint64_t size; // of the file
    uint32_t platform, device;
    uint64_t binary_at, binary_size, binary_hash;
    char name[TRIAL_NAME];
    uint32_t dimensions, has_offset, has_local;
    size_t offset[3], global[3], local[3];
    uint32_t argument_count, buffer_count;
    struct trial_argument arguments[TRIAL_ARGUMENTS];
    struct trial_buffer buffers[TRIAL_BUFFERS];
    // Found.
    uint32_t result;
    uint32_t steady;  // with other contents it wrote the same bytes
    uint32_t changed; // 1 + the buffer that had other contents last; 0: none yet
};

#endif
