// Shared by the files of the Tarn backend.
//
//   module.c   open: the library, its devices; the ops table
//   device.c   contexts, entering them, limits
//   queue.c    streams, and submit
//   event.c    records and waits, over the kit
//   buffer.c   memory, and deferred frees
//   program.c  compiling and kernels
//   error.c    status and remedy of Tarn's results
#ifndef TRN_H
#define TRN_H

#include <pthread.h>
#include <tarn.h>
#include <weir/kit/cache.h>
#include <weir/kit/error.h>
#include <weir/kit/idle.h>
#include <weir/kit/records.h>
#include <weir/kit/signature.h>
#include <weir/module/error.h>
#include <weir/module/module.h>

// X(name, parameters) for every function that is used; all of them return a tarn_result.
#define TRN_SYMBOLS(X)                                                                     \
    X(tarn_init, (void))                                                                   \
    X(tarn_version, (int *))                                                               \
    X(tarn_device_count, (int *))                                                          \
    X(tarn_device_describe, (int, struct tarn_device_info *))                              \
    X(tarn_context_create, (tarn_context **, int))                                         \
    X(tarn_context_destroy, (tarn_context *))                                              \
    X(tarn_context_get_current, (tarn_context **))                                         \
    X(tarn_context_set_current, (tarn_context *))                                          \
    X(tarn_stream_create, (tarn_stream **, int))                                           \
    X(tarn_stream_destroy, (tarn_stream *))                                                \
    X(tarn_stream_query, (tarn_stream *))                                                  \
    X(tarn_stream_synchronize, (tarn_stream *))                                            \
    X(tarn_stream_wait_event, (tarn_stream *, tarn_event *))                               \
    X(tarn_event_create, (tarn_event **))                                                  \
    X(tarn_event_destroy, (tarn_event *))                                                  \
    X(tarn_event_record, (tarn_event *, tarn_stream *))                                    \
    X(tarn_event_query, (tarn_event *))                                                    \
    X(tarn_event_synchronize, (tarn_event *))                                              \
    X(tarn_event_time, (tarn_event *, uint64_t *))                                         \
    X(tarn_memory_allocate, (void **, size_t))                                             \
    X(tarn_memory_free, (void *))                                                          \
    X(tarn_memory_query, (const void *, size_t))                                           \
    X(tarn_host_allocate, (void **, size_t))                                               \
    X(tarn_host_free, (void *))                                                            \
    X(tarn_host_register, (void *, size_t))                                                \
    X(tarn_host_unregister, (void *))                                                      \
    X(tarn_copy, (void *, const void *, size_t, tarn_stream *))                            \
    X(tarn_copy_2d, (void *, size_t, const void *, size_t, size_t, size_t, tarn_stream *)) \
    X(tarn_fill, (void *, size_t, const void *, size_t, tarn_stream *))                    \
    X(tarn_launch, (tarn_kernel *, const uint32_t *, const uint32_t *,                     \
                    const struct tarn_argument *, size_t, tarn_stream *))                  \
    X(tarn_compile, (const char *, const char *, void **, size_t *, char *, size_t))       \
    X(tarn_module_load, (tarn_module **, const void *, size_t))                            \
    X(tarn_module_unload, (tarn_module *))                                                 \
    X(tarn_module_kernel, (tarn_module *, const char *, tarn_kernel **))                   \
    X(tarn_kernel_describe, (tarn_kernel *, struct tarn_kernel_info *))

struct trn_symbols {
    const char *(*tarn_result_name)(tarn_result);
#define TRN_SYMBOL(name, parameters) tarn_result(*name) parameters;
    TRN_SYMBOLS(TRN_SYMBOL)
#undef TRN_SYMBOL
};

enum {
    TRN_TIMING_HISTORY = 1024, // timed records that a queue keeps
    TRN_ALIGNMENT = 16,        // of argument offsets
    TRN_PARAMETER_LIMIT = 64,  // of a kernel
    TRN_DEVICE_LIMIT = 16,
};

struct trn_module {
    const struct weir_host *host;
    struct trn_symbols tarn;
    struct tarn_device_info devices[TRN_DEVICE_LIMIT];
    size_t device_count;
    weir_kit_cache *cache; // NULL: off
    char driver[32];
};

struct trn_device {
    struct trn_module *module;
    const struct tarn_device_info *info;
    tarn_context *context;
    weir_kit_idle *idle;
    weir_kit_blocks *on_device; // kept for reuse, since freeing waits
    weir_kit_blocks *on_host;
    pthread_mutex_t lock;     // guards what follows
    struct trn_queue *queues; // that have a stream
};

struct trn_queue {
    struct trn_device *device;
    tarn_stream *stream;
    weir_kit_records *records;
    struct trn_queue *next;
};

struct trn_buffer {
    struct trn_device *device;
    weir_placement placement;
    char *address;                              // for copies and kernels, and for the host
    struct weir_kit_block *block;               // NULL: wrapped
    struct weir_kit_registration *registration; // of wrapped memory; NULL: pinned already
};

struct trn_program {
    struct weir_kit_idle_entry idle; // first; unloading is deferred
    struct trn_device *device;
    tarn_module *module;
    struct weir_kit_signatures *signatures; // NULL for bundles
};

static inline struct trn_module *trn_module_of(const struct weir_link *link)
{
    return link->state;
}

static inline struct trn_device *trn_device_of(const struct weir_link *link,
                                               const weir_device *device)
{
    return weir_device_data(link, device);
}

static inline struct trn_queue *trn_queue_of(const struct weir_link *link, const weir_queue *queue)
{
    return weir_queue_data(link, queue);
}

static inline struct trn_buffer *trn_buffer_of(const struct weir_link *link,
                                               const weir_buffer *buffer)
{
    return weir_buffer_data(link, buffer);
}

static inline struct trn_program *trn_program_of(const struct weir_link *link,
                                                 const weir_program *program)
{
    return weir_program_data(link, program);
}

// error.c

// Reports that `call` returned `result`; `format` says what was attempted.
weir_status trn_error(const struct trn_module *module, const char *call, tarn_result result,
                      const char *format, ...) WEIR_PRINTF(4, 5);

// device.c

// Makes the device's context current and stores the caller's, and restores that.
weir_status trn_enter(const struct trn_device *device, tarn_context **out_before);
void trn_leave(const struct trn_device *device, tarn_context *before);

weir_status trn_device_create(const struct weir_link *link, weir_device *object,
                              const struct weir_device_setup *setup, void **out_data);
void trn_device_destroy(const struct weir_link *link, weir_device *object);
void trn_device_limits(const struct weir_link *link, weir_device *object,
                       struct weir_limits *limits);
weir_status trn_device_trim(const struct weir_link *link, weir_device *object);

// queue.c

weir_status trn_queue_create(const struct weir_link *link, weir_device *device, weir_queue *object,
                             const struct weir_queue_setup *setup, void **out_data);
void trn_queue_destroy(const struct weir_link *link, weir_queue *object);
weir_status trn_queue_submit(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation);
weir_status trn_queue_finish(const struct weir_link *link, weir_queue *object);

// event.c

weir_status trn_records_create(struct trn_queue *queue, bool timing);
weir_status trn_submit_record(struct trn_queue *queue, uint64_t sequence);
weir_status trn_submit_wait(struct trn_queue *queue, struct trn_queue *producer, uint64_t sequence);
weir_status trn_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence);
weir_status trn_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns);
weir_status trn_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns);

// buffer.c

weir_status trn_idle_create(struct trn_device *device);
// Frees the kept memory. Within the device's context; waits for the device.
void trn_blocks_release(struct trn_device *device);
weir_status trn_buffer_create(const struct weir_link *link, weir_device *device,
                              weir_buffer *object, const struct weir_buffer_setup *setup,
                              void **out_data, void **out_pointer);
void trn_buffer_destroy(const struct weir_link *link, weir_buffer *object);

// program.c

weir_status trn_program_create(const struct weir_link *link, weir_device *device,
                               weir_program *object, const struct weir_program_params *params,
                               void **out_data);
void trn_program_destroy(const struct weir_link *link, weir_program *object);
weir_status trn_program_signatures(const struct weir_link *link, weir_program *object,
                                   const struct weir_kernel_signature **out_signatures,
                                   uint32_t *out_count);
weir_status trn_kernel_create(const struct weir_link *link, weir_program *program,
                              weir_kernel *object, const struct weir_kernel_signature *signature,
                              struct weir_kernel_info *info, void **out_data);
void trn_kernel_destroy(const struct weir_link *link, weir_kernel *object);

#endif
