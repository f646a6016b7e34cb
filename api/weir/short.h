// Short forms of calls that programs write together, made of the public API alone. Each records its
// caller's file:line, as what it calls does, and an error names the call that failed.
//
//     weir_device *device;
//     weir_queue *queue;
//     weir_kernel *scale;
//     weir_buffer *memory, *host;
//     float *numbers;
//     WEIR_CHECK(weir_device_open(NULL, NULL, &device)); // the default runtime
//     WEIR_CHECK(weir_queue_create(device, NULL, &queue));
//     WEIR_CHECK(weir_kernel_load(device, &scale_kernels, "scale", &scale));
//     WEIR_CHECK(weir_buffer_pair(device, bytes, &memory, &host));
//     WEIR_CHECK(weir_host_whole(host, WEIR_ACCESS_WRITE, &numbers));
//
// Threads: as the calls that they are made of.
#ifndef WEIR_SHORT_H
#define WEIR_SHORT_H

#include <stdio.h>
#include <string.h>

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/device.h>
#include <weir/event.h>
#include <weir/program.h>
#include <weir/queue.h>
#include <weir/status.h>

// Opens device `index` of the runtime, or of the default runtime if that is NULL.
//
// Ownership, errors: as weir_device_open().
#define weir_device_open_index(...) weir__device_open_index(__VA_ARGS__, __FILE__, __LINE__)
static inline WEIR_CHECKED weir_status weir__device_open_index(weir_runtime *runtime, size_t index,
                                                               weir_device **out_device,
                                                               const char *file, int line)
{
    char digits[24];
    struct weir_device_params params;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.select = digits;
    snprintf(digits, sizeof digits, "%zu", index);
    return weir_device_open_at(runtime, &params, out_device, file, line);
}

// Creates a DEVICE and a HOST buffer of `size` bytes each. On an error both are NULL.
//
// Errors: as weir_buffer_create().
#define weir_buffer_pair(...) weir__buffer_pair(__VA_ARGS__, __FILE__, __LINE__)
static inline WEIR_CHECKED weir_status weir__buffer_pair(weir_device *device, size_t size,
                                                         weir_buffer **out_memory,
                                                         weir_buffer **out_host, const char *file,
                                                         int line)
{
    struct weir_buffer_params params;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.size = size;
    params.placement = WEIR_PLACE_HOST;
    weir_status status = weir_buffer_create_at(device, &params, out_host, file, line);
    params.placement = WEIR_PLACE_DEVICE;
    if (status != WEIR_OK) {
        if (out_memory)
            *out_memory = NULL;
        return status;
    }
    status = weir_buffer_create_at(device, &params, out_memory, file, line);
    if (status != WEIR_OK)
        weir_buffer_destroy_at(out_host, file, line);
    return status;
}

// Begins the host's access to a whole HOST or MANAGED buffer through the pointer that it stores in
// `*out_pointer`, a pointer to any type, or NULL on an error. weir_host_whole_end() ends it. Orders
// nothing and does not wait, as weir_host_begin().
//
//     float *numbers;
//     WEIR_CHECK(weir_host_whole(host, WEIR_ACCESS_WRITE, &numbers));
//     for (size_t i = 0; i < count; i++)
//         numbers[i] = 1;
//     WEIR_CHECK(weir_host_whole_end(host, WEIR_ACCESS_WRITE));
//
// Ownership: the memory is the buffer's.
// Errors: as weir_host_begin() and weir_host_end().
#define weir_host_whole(...) weir__host_whole(__VA_ARGS__, __FILE__, __LINE__)
#define weir_host_whole_end(buffer, access) weir__host_whole_end(buffer, access, __FILE__, __LINE__)
static inline void *weir__host_whole_begin(weir_buffer *buffer, weir_access access,
                                           const char *file, int line)
{
    void *pointer = NULL;
    return weir_host_begin_at(buffer, 0, weir_buffer_size(buffer), access, &pointer, file, line) ==
                   WEIR_OK
               ? pointer
               : NULL;
}
static inline WEIR_CHECKED weir_status weir__host_whole_status(const void *pointer)
{
    return pointer ? WEIR_OK : weir_last_error()->status;
}
static inline WEIR_CHECKED weir_status weir__host_whole_end(weir_buffer *buffer, weir_access access,
                                                            const char *file, int line)
{
    return weir_host_end_at(buffer, 0, weir_buffer_size(buffer), access, file, line);
}

// Creates a program of a bundle that `weir_kernels` made.
//
// Errors: as weir_program_create().
#define weir_program_load(device, bundle, out_program) \
    weir__program_load(device, bundle, NULL, out_program, __FILE__, __LINE__)
static inline WEIR_CHECKED weir_status weir__program_load(weir_device *device,
                                                          const struct weir_bundle *bundle,
                                                          const char *path,
                                                          weir_program **out_program,
                                                          const char *file, int line)
{
    struct weir_program_params params;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.bundle = bundle;
    params.path = path;
    return weir_program_create_at(device, &params, out_program, file, line);
}

// The same of a bundle, or of OpenCL C in a file (weir_program_params.path), and looks up a kernel of it, where one
// is needed. The program lives as long as the kernel.
//
// Errors: as weir_program_create() and weir_kernel_create().
#define weir_kernel_load(device, bundle, name, out_kernel) \
    weir__kernel_load(device, bundle, NULL, name, out_kernel, __FILE__, __LINE__)
#define weir_kernel_load_file(device, path, name, out_kernel) \
    weir__kernel_load(device, NULL, path, name, out_kernel, __FILE__, __LINE__)
static inline WEIR_CHECKED weir_status weir__kernel_load(weir_device *device,
                                                         const struct weir_bundle *bundle,
                                                         const char *path, const char *name,
                                                         weir_kernel **out_kernel, const char *file,
                                                         int line)
{
    weir_program *program = NULL;
    if (out_kernel)
        *out_kernel = NULL;
    weir_status status = weir__program_load(device, bundle, path, &program, file, line);
    if (status == WEIR_OK)
        status = weir_kernel_create_at(program, name, out_kernel, file, line);
    weir_program_destroy_at(&program, file, line);
    return status;
}

// Makes later work of `queue` wait for everything that was submitted to `other` before this call.
//
// Errors: as weir_queue_record() of `other` and weir_queue_wait() of `queue`.
#define weir_queue_after(queue, other) weir__queue_after(queue, other, __FILE__, __LINE__)
static inline WEIR_CHECKED weir_status weir__queue_after(weir_queue *queue, weir_queue *other,
                                                         const char *file, int line)
{
    struct weir_event end;
    const weir_status status = weir_queue_record_at(other, &end, file, line);
    return status != WEIR_OK ? status : weir_queue_wait_at(queue, end, file, line);
}

// As weir_queue_wait() and weir_event_sync(), but a zeroed event is one of work that there has not
// been: nothing is waited for. For the first turns of a ring, whose slots have no event yet.
//
//     struct weir_event free[3] = {{0, 0}};
//     ...
//     weir_queue_wait_if(queue, free[turn % 3]);
#define weir_queue_wait_if(queue, event) weir__queue_wait_if(queue, event, __FILE__, __LINE__)
#define weir_event_sync_if(...) weir__event_sync_if(__VA_ARGS__, __FILE__, __LINE__)
static inline bool weir__event_is_zero(struct weir_event event)
{
    return event.queue == 0 && event.sequence == 0;
}
static inline WEIR_CHECKED weir_status weir__queue_wait_if(weir_queue *queue,
                                                           struct weir_event event,
                                                           const char *file, int line)
{
    return queue && weir__event_is_zero(event) ? WEIR_OK
                                               : weir_queue_wait_at(queue, event, file, line);
}
static inline WEIR_CHECKED weir_status weir__event_sync_if(struct weir_event event,
                                                           uint64_t timeout_ns, const char *file,
                                                           int line)
{
    return weir__event_is_zero(event) ? WEIR_OK : weir_event_sync_at(event, timeout_ns, file, line);
}

// Runs `operation`, a call that submits work to `queue`, waits until it is done, and stores the time
// that it took on the device in nanoseconds: from the end of the queue's work before it to its own end.
// On an idle queue that is from the call on. The queue has `timing`; `queue` and `out_ns` are evaluated
// more than once.
//
//     int64_t ns;
//     WEIR_CHECK(weir_queue_timed(queue, weir_queue_copy(queue, dst, 0, src, 0, bytes), &ns));
//
// Errors: those of the operation; as weir_queue_record(), weir_event_sync() and
// weir_event_elapsed_ns(). `*out_ns` is 0 then.
#define weir_queue_timed(queue, operation, out_ns)                         \
    (weir__timed_begin(queue, out_ns, __FILE__, __LINE__) == WEIR_OK       \
         ? weir__timed_end(queue, (operation), out_ns, __FILE__, __LINE__) \
         : weir_last_error()->status)
// Until the end `*out_ns` holds the sequence number of the first record.
static inline WEIR_CHECKED weir_status weir__timed_begin(weir_queue *queue, int64_t *out_ns,
                                                         const char *file, int line)
{
    struct weir_event begin;
    const weir_status status = weir_queue_record_at(queue, &begin, file, line);
    *out_ns = status == WEIR_OK ? (int64_t)begin.sequence : 0;
    return status;
}
static inline WEIR_CHECKED weir_status weir__timed_end(weir_queue *queue, weir_status status,
                                                       int64_t *out_ns, const char *file, int line)
{
    struct weir_event begin, end;
    const uint64_t sequence = (uint64_t)*out_ns;
    *out_ns = 0;
    if (status == WEIR_OK)
        status = weir_queue_record_at(queue, &end, file, line);
    if (status == WEIR_OK)
        status = weir_event_sync_at(end, WEIR_FOREVER, file, line);
    if (status != WEIR_OK)
        return status;
    begin.queue = end.queue;
    begin.sequence = sequence;
    return weir_event_elapsed_ns_at(begin, end, out_ns, file, line);
}

#ifdef __cplusplus
template <typename T>
inline WEIR_CHECKED weir_status weir__host_whole(weir_buffer *buffer, weir_access access,
                                                 T **out_pointer, const char *file, int line)
{
    *out_pointer = static_cast<T *>(weir__host_whole_begin(buffer, access, file, line));
    return weir__host_whole_status(*out_pointer);
}
#else
#define weir__host_whole(buffer, access, out_pointer, file, line) \
    weir__host_whole_status(*(out_pointer) = weir__host_whole_begin(buffer, access, file, line))
#endif

#endif
