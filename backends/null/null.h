// Shared by the files of the null backend: its state, one accessor for each type that has any, and
// the slots that module.c puts in the ops table.
//
// The null backend has real memory. Copies and fills are done before the submit
// returns, kernels do nothing, and a record is complete at once. It is the skeleton to copy for a
// new backend (docs/writing-a-backend.md), and measures the cost of a call without a driver.
#ifndef WEIR_BACKENDS_NULL_NULL_H
#define WEIR_BACKENDS_NULL_NULL_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/kit/signature.h>
#include <weir/module/error.h>
#include <weir/module/module.h>

enum {
    NULL_ALIGNMENT = 64,         // of buffers and of argument offsets, in bytes
    NULL_TIMING_HISTORY = 1024,  // timed records that a queue keeps
    NULL_OPERATION_TIMES = 8192, // times of operations that have not been fetched
};

// The keys of section [null], in the order of the settings that `open` gets.
enum null_key {
    NULL_KEY_DEVICES,
    NULL_KEY_COUNT,
};

struct null_module {
    size_t device_count;
};

struct null_record {
    uint64_t sequence;
    uint64_t time_ns;
};

// The times of a queue's last records, and of operations that are not fetched; the oldest are overwritten.
struct null_times {
    pthread_mutex_t lock;
    uint64_t count; // of all records so far
    struct null_record records[NULL_TIMING_HISTORY];
    uint64_t kept;    // of all operations so far
    uint64_t fetched; // those that left the ring
    struct weir_operation_time ring[NULL_OPERATION_TIMES];
};

struct null_queue {
    _Atomic uint64_t finished; // sequence of the last record
    struct null_times *times;  // NULL without timing, and unless a plugin requests them
};

// An object's label for a message.
static inline const char *null_label(const char *label)
{
    return label[0] ? label : "(no label)";
}

struct null_buffer {
    unsigned char *bytes;
};

WEIR_STATE_OF(null_module_of, const struct null_module)
WEIR_DATA_OF(null_queue_of, struct null_queue, weir_queue)
WEIR_DATA_OF(null_buffer_of, struct null_buffer, weir_buffer)

// Those of source; NULL of a bundle.
WEIR_DATA_OF(null_signatures_of, struct weir_kit_signatures, weir_program)

// What is in the ops table, of the types that <weir/module/module.h> gives: null_open() is its `open`.
// clang-format off
#define NULL_SLOTS(X)                                                                            \
    X(open) X(close) X(device_count) X(device_describe) X(device_create) X(device_destroy)       \
    X(device_limits) X(queue_create) X(queue_destroy) X(queue_submit) X(queue_finish)            \
    X(event_query) X(event_wait) X(event_time) X(queue_times) X(buffer_create) X(buffer_destroy) \
    X(buffer_address) X(program_create) X(program_destroy) X(program_signatures)                 \
    X(kernel_create) X(kernel_destroy) X(device_peer) X(device_reach)
// clang-format on

#define NULL_DECLARE(slot) WEIR_SLOT(slot) null_##slot;
NULL_SLOTS(NULL_DECLARE)

#endif
