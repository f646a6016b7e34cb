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

// The times of a queue's last records, oldest overwritten first.
struct null_timing {
    pthread_mutex_t lock;
    uint64_t count; // of all records so far
    struct null_record records[NULL_TIMING_HISTORY];
};

// Times of operations; those that are not fetched are overwritten, oldest first.
struct null_times {
    pthread_mutex_t lock;
    uint64_t kept;    // of all operations so far
    uint64_t fetched; // those that left the ring
    struct weir_operation_time ring[NULL_OPERATION_TIMES];
};

struct null_queue {
    _Atomic uint64_t finished;  // sequence of the last record
    struct null_timing *timing; // NULL without timing
    struct null_times *times;   // NULL unless a plugin requests them
};

// An object's label for a message.
static inline const char *null_label(const char *label)
{
    return label[0] ? label : "(no label)";
}

struct null_buffer {
    unsigned char *bytes;
};

static inline const struct null_module *null_module_of(const struct weir_link *link)
{
    return link->state;
}

static inline struct null_queue *null_queue_of(const struct weir_link *link,
                                               const weir_queue *queue)
{
    return weir_queue_data(link, queue);
}

static inline struct null_buffer *null_buffer_of(const struct weir_link *link,
                                                 const weir_buffer *buffer)
{
    return weir_buffer_data(link, buffer);
}

// Those of source; NULL of a bundle.
static inline struct weir_kit_signatures *null_signatures_of(const struct weir_link *link,
                                                             const weir_program *program)
{
    return weir_program_data(link, program);
}

// The slots, as <weir/module/module.h> describes them.

weir_status null_open(struct weir_link *link, const struct weir_setting *const *settings,
                      void **out_state);
void null_close(const struct weir_link *link);

size_t null_device_count(const struct weir_link *link);
weir_status null_device_describe(const struct weir_link *link, size_t index,
                                 struct weir_device_info *out_info);
weir_status null_device_create(const struct weir_link *link, weir_device *device,
                               const struct weir_device_setup *setup, void **out_data);
void null_device_destroy(const struct weir_link *link, weir_device *device);
void null_device_limits(const struct weir_link *link, weir_device *device,
                        struct weir_limits *limits);
weir_status null_device_peer(const struct weir_link *link, weir_device *device, weir_device *other,
                             bool *out_peers);

weir_status null_device_reach(const struct weir_link *link, weir_device *device, weir_device *other,
                              weir_buffer *buffer, bool *out_reaches);

weir_status null_queue_create(const struct weir_link *link, weir_device *device, weir_queue *queue,
                              const struct weir_queue_setup *setup, void **out_data);
void null_queue_destroy(const struct weir_link *link, weir_queue *queue);
weir_status null_queue_submit(const struct weir_link *link, weir_queue *queue,
                              const struct weir_operation *operation);
weir_status null_queue_finish(const struct weir_link *link, weir_queue *queue);

weir_status null_event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence);
weir_status null_event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                            uint64_t timeout_ns);
weir_status null_event_time(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                            uint64_t *out_time_ns);

weir_status null_queue_times(const struct weir_link *link, weir_queue *queue,
                             struct weir_operation_time *times, size_t time_size, size_t capacity,
                             size_t *out_count);

weir_status null_buffer_create(const struct weir_link *link, weir_device *device,
                               weir_buffer *buffer, const struct weir_buffer_setup *setup,
                               void **out_data, void **out_pointer);
void null_buffer_destroy(const struct weir_link *link, weir_buffer *buffer);
weir_status null_buffer_address(const struct weir_link *link, weir_buffer *buffer,
                                uint64_t *out_address);

weir_status null_program_create(const struct weir_link *link, weir_device *device,
                                weir_program *program, const struct weir_program_params *params,
                                void **out_data);
void null_program_destroy(const struct weir_link *link, weir_program *program);
weir_status null_program_signatures(const struct weir_link *link, weir_program *program,
                                    const struct weir_kernel_signature **out_signatures,
                                    uint32_t *out_count);
weir_status null_kernel_create(const struct weir_link *link, weir_program *program,
                               weir_kernel *kernel, const struct weir_kernel_signature *signature,
                               struct weir_kernel_info *info, void **out_data);
void null_kernel_destroy(const struct weir_link *link, weir_kernel *kernel);

#endif
