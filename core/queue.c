// Queues: validation, and the one path on which every operation goes down the
// chain. A refused argument leaves before the submit lock is taken; behind it
// only a number is assigned and the chain is called.
#include "core/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/program.h"
#include "core/registry.h"
#include "core/thread.h"

static const char *const operation_names[] = {
    [WEIR_OPERATION_COPY] = "copy",           [WEIR_OPERATION_COPY_2D] = "copy_2d",
    [WEIR_OPERATION_FILL] = "fill",           [WEIR_OPERATION_LAUNCH] = "launch",
    [WEIR_OPERATION_HOST_CALL] = "host call", [WEIR_OPERATION_RECORD] = "record",
    [WEIR_OPERATION_WAIT] = "wait",
};

static weir_status check_params(weir_device *device, const struct weir_queue_params *params)
{
    const struct weir_limits *limits = &device->limits;
    const char *label = params->label;

    int32_t low = limits->priority_lowest;
    int32_t high = limits->priority_highest;
    int32_t least = low < high ? low : high;
    int32_t most = low < high ? high : low;
    if (params->priority < least || params->priority > most)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "0 is always valid",
                             "weir_queue_create: priority %" PRId32 " is outside %" PRId32
                             " … %" PRId32,
                             params->priority, least, most);
    if (params->timing && limits->timing_history == 0)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_UNSUPPORTED, "create it without timing",
                             "weir_queue_create: this device cannot time operations");
    return WEIR_OK;
}

// The device's list of queues, which who destroys a buffer must see whole: also a
// queue that is being destroyed is on it until nothing of it runs any more.
static void enlist(weir_queue *queue)
{
    weir_device *device = queue->member.device;
    pthread_mutex_lock(&device->lock);
    queue->next = device->queues;
    if (queue->next)
        queue->next->previous = queue;
    device->queues = queue;
    pthread_mutex_unlock(&device->lock);
    atomic_fetch_add(&device->queue_count, 1);
}

static void delist(weir_queue *queue)
{
    weir_device *device = queue->member.device;
    pthread_mutex_lock(&device->lock);
    if (queue->previous)
        queue->previous->next = queue->next;
    else
        device->queues = queue->next;
    if (queue->next)
        queue->next->previous = queue->previous;
    pthread_mutex_unlock(&device->lock);
}

weir_status weir_queue_create(weir_device *device, const struct weir_queue_params *params,
                              weir_queue **out_queue)
{
    static const struct weir_queue_params defaults = {.struct_size = sizeof defaults};
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_queue);
    *out_queue = NULL;
    WEIR_REQUIRE(NULL, device);
    params = params ? params : &defaults;
    WEIR_REQUIRE_PARAMS(params);
    weir_status status = check_params(device, params);
    if (status < 0)
        return status;

    weir__device_reap(device);
    weir_queue *queue = weir__member_allocate(device, WEIR__QUEUE, sizeof *queue, params->label);
    if (!queue)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a queue");
    queue->first = device->first;
    queue->timing = params->timing;
    pthread_mutex_init(&queue->submit_lock, NULL);
    if (!weir__progress_init(&queue->progress) || !weir__registry_reserve(queue)) {
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "destroy queues that are no longer used",
                            "no room for a queue: 65,536 of them can exist at once");
        goto fail;
    }

    const struct weir_queue_setup setup = {.priority = params->priority, .timing = params->timing};
    status =
        weir__chain_queue_create(device->chain, device, queue, &setup, queue->member.object.data);
    if (status < 0) {
        weir__registry_cancel(queue);
        goto fail;
    }
    enlist(queue);
    weir__registry_publish(queue);
    weir__member_enlist(&queue->member);
    *out_queue = queue;
    return WEIR_OK;

fail:
    weir__error_place(params->label, NULL, 0);
    weir__progress_finish(&queue->progress);
    pthread_mutex_destroy(&queue->submit_lock);
    weir__member_free(&queue->member);
    return status;
}

void weir_queue_destroy(weir_queue **queue)
{
    if (!queue || !*queue || atomic_load(&weir__forked))
        return;
    weir_queue *gone = *queue;
    *queue = NULL;
    weir__member_retire(&gone->member);
}

void weir__queue_finalize(weir_queue *queue)
{
    weir_device *device = queue->member.device;

    delist(queue);
    weir__chain_queue_destroy(device->chain, queue);
    weir__progress_finish(&queue->progress);
    pthread_mutex_destroy(&queue->submit_lock);
    weir__member_free(&queue->member);
    // Last: closing the device waits for it.
    atomic_fetch_sub(&device->queue_count, 1);
}

const char *weir_queue_label(const weir_queue *queue)
{
    return queue ? queue->member.object.label : "";
}

weir_device *weir_queue_device(const weir_queue *queue)
{
    return queue ? queue->member.device : NULL;
}

weir_status weir__queue_fail(weir_queue *queue, const struct weir_operation *operation,
                             weir_status status)
{
    // A module that fails without a detail must not be given an older one.
    struct weir_error cause = *weir_last_error();
    struct weir_error detail = cause.status == status ? cause : (struct weir_error){0};

    cause = detail;
    cause.status = status;
    cause.file = operation->file;
    cause.line = operation->line;
    snprintf(cause.object, sizeof cause.object, "%s", queue->member.object.label);
    snprintf(cause.message, sizeof cause.message,
             "operation %" PRIu64 " of queue '%s', a %s, failed: %.600s", operation->sequence,
             queue->member.object.label, operation_names[operation->kind],
             detail.message[0] ? detail.message : weir_status_text(status));
    weir__progress_fail(queue, operation->sequence, &cause);
    return weir__error_set(&cause);
}

static weir_status submit_locked(weir_queue *queue, struct weir_operation *operation)
{
    operation->sequence = ++queue->sequence;
    atomic_store_explicit(&queue->seen, operation->sequence, memory_order_release);
    weir_status status = queue->first->ops->queue_submit(queue->first, queue, operation);
    return status < 0 ? weir__queue_fail(queue, operation, status) : WEIR_OK;
}

// The lock is uncontended unless threads share the queue.
static weir_status submit(weir_queue *queue, struct weir_operation *operation)
{
    pthread_mutex_lock(&queue->submit_lock);
    weir_status status = atomic_load_explicit(&queue->progress.failed, memory_order_acquire)
                             ? weir__progress_refuse(queue)
                             : submit_locked(queue, operation);
    pthread_mutex_unlock(&queue->submit_lock);
    return status;
}

static weir_status check_buffer(const weir_queue *queue, const char *role,
                                const weir_buffer *buffer, size_t offset, size_t size,
                                const char *file, int line)
{
    if (!buffer)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID, NULL,
                             "%s is no buffer (NULL)", role);
    if (buffer->member.device != queue->member.device)
        return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID,
                             "copy through a HOST buffer of each device",
                             "%s belongs to device '%s', queue '%s' to '%s'", role,
                             buffer->member.device->info.name, queue->member.object.label,
                             queue->member.device->info.name);
    if (!weir__buffer_holds(buffer, offset, size))
        return weir__buffer_refuse_range(buffer, role, offset, size, file, line);
    return WEIR_OK;
}

static bool overlap(size_t a, size_t b, size_t size)
{
    return a < b ? b - a < size : a - b < size;
}

weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t src_offset, size_t size, const char *file,
                               int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    weir_status status = check_buffer(queue, "dst", dst, dst_offset, size, file, line);
    if (status < 0)
        return status;
    status = check_buffer(queue, "src", src, src_offset, size, file, line);
    if (status < 0)
        return status;
    if (dst == src && overlap(dst_offset, src_offset, size))
        return weir__fail_at(file, line, dst->member.object.label, WEIR_ERROR_INVALID,
                             "copy through a second buffer",
                             "copy of %zu bytes from offset %zu to %zu of one buffer: the ranges "
                             "overlap",
                             size, src_offset, dst_offset);

    struct weir_operation operation = {
        .kind = WEIR_OPERATION_COPY,
        .flags = size ? 0 : WEIR_OPERATION_EMPTY,
        .file = file,
        .line = line,
        .u.copy = {dst, src, dst_offset, src_offset, size},
    };
    return submit(queue, &operation);
}

// Bytes from the first to the last of a plane's rows; false if that wraps.
static bool plane_extent(const struct weir_plane *plane, size_t width, size_t height,
                         size_t *out_size)
{
    *out_size = 0;
    if (width == 0 || height == 0)
        return true;
    if (height > 1 && plane->pitch > (SIZE_MAX - width) / (height - 1))
        return false;
    *out_size = (height - 1) * plane->pitch + width;
    return true;
}

static weir_status check_plane(const weir_queue *queue, const char *role,
                               const struct weir_plane *plane, size_t width, size_t height,
                               const char *file, int line)
{
    size_t size;
    if (plane->pitch < width)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID, NULL,
                             "copy_2d: the pitch of %s, %zu, is below the width, %zu", role,
                             plane->pitch, width);
    if (!plane_extent(plane, width, height, &size))
        size = SIZE_MAX;
    return check_buffer(queue, role, plane->buffer, plane->offset, size, file, line);
}

// Rows interleave freely, so two planes of one buffer are refused when their
// whole extents meet, unless they share a pitch and never touch a byte twice.
static bool planes_overlap(const struct weir_plane *dst, const struct weir_plane *src, size_t width,
                           size_t height)
{
    size_t dst_size;
    size_t src_size;
    if (dst->buffer != src->buffer || !plane_extent(dst, width, height, &dst_size) ||
        !plane_extent(src, width, height, &src_size))
        return false;
    size_t low = dst->offset < src->offset ? dst->offset : src->offset;
    size_t high = dst->offset < src->offset ? src->offset : dst->offset;
    size_t low_size = dst->offset < src->offset ? dst_size : src_size;
    if (high - low >= low_size)
        return false;
    if (dst->pitch != src->pitch)
        return true;
    size_t shift = (high - low) % dst->pitch;
    return shift < width || dst->pitch - shift < width;
}

weir_status weir_queue_copy_2d_at(weir_queue *queue, struct weir_plane dst, struct weir_plane src,
                                  size_t width, size_t height, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    weir_status status = check_plane(queue, "dst", &dst, width, height, file, line);
    if (status < 0)
        return status;
    status = check_plane(queue, "src", &src, width, height, file, line);
    if (status < 0)
        return status;
    bool empty = width == 0 || height == 0;
    if (!empty && planes_overlap(&dst, &src, width, height))
        return weir__fail_at(file, line, dst.buffer->member.object.label, WEIR_ERROR_INVALID,
                             "copy through a second buffer",
                             "copy_2d within one buffer: source and destination overlap");

    struct weir_operation operation = {
        .kind = WEIR_OPERATION_COPY_2D,
        .flags = empty ? WEIR_OPERATION_EMPTY : 0,
        .file = file,
        .line = line,
        .u.copy_2d = {dst, src, width, height},
    };
    return submit(queue, &operation);
}

weir_status weir_queue_fill_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset, size_t size,
                               const void *pattern, size_t pattern_size, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, pattern);
    if (pattern_size == 0 || pattern_size > 16 || (pattern_size & (pattern_size - 1)))
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID, NULL,
                             "fill: a pattern has 1, 2, 4, 8 or 16 bytes, not %zu", pattern_size);
    weir_status status = check_buffer(queue, "dst", dst, dst_offset, size, file, line);
    if (status < 0)
        return status;
    if (dst_offset % pattern_size || size % pattern_size)
        return weir__fail_at(file, line, dst->member.object.label, WEIR_ERROR_INVALID, NULL,
                             "fill: offset %zu and size %zu must be multiples of the pattern's %zu "
                             "bytes",
                             dst_offset, size, pattern_size);

    struct weir_operation operation = {
        .kind = WEIR_OPERATION_FILL,
        .flags = size ? 0 : WEIR_OPERATION_EMPTY,
        .file = file,
        .line = line,
        .u.fill = {dst, dst_offset, size, pattern, pattern_size},
    };
    return submit(queue, &operation);
}

static weir_status check_dimension(const weir_kernel *kernel, const char *what, char axis,
                                   uint32_t value, uint32_t limit, const char *file, int line)
{
    if (value <= limit)
        return WEIR_OK;
    return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID, NULL,
                         "launch: %s.%c is %" PRIu32 ", the device's limit is %" PRIu32, what, axis,
                         value, limit);
}

static weir_status check_extents(const weir_kernel *kernel, const struct weir_extent *grid,
                                 const struct weir_extent *block, const char *file, int line)
{
    const struct weir_limits *limits = &kernel->member.device->limits;
    const struct weir_extent *required = &kernel->signature->required_block;
    const uint64_t items = (uint64_t)block->x * block->y * block->z;
    weir_status status;

    if ((status = check_dimension(kernel, "grid", 'x', grid->x, limits->max_grid.x, file, line)) ||
        (status = check_dimension(kernel, "grid", 'y', grid->y, limits->max_grid.y, file, line)) ||
        (status = check_dimension(kernel, "grid", 'z', grid->z, limits->max_grid.z, file, line)) ||
        (status =
             check_dimension(kernel, "block", 'x', block->x, limits->max_block.x, file, line)) ||
        (status =
             check_dimension(kernel, "block", 'y', block->y, limits->max_block.y, file, line)) ||
        (status = check_dimension(kernel, "block", 'z', block->z, limits->max_block.z, file, line)))
        return status;
    if (items > kernel->info.max_block_items)
        return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID,
                             "use a smaller block and a larger grid",
                             "launch: a block of %" PRIu64 " work-items; this kernel's limit is "
                             "%" PRIu32,
                             items, kernel->info.max_block_items);
    if (required->x &&
        (required->x != block->x || required->y != block->y || required->z != block->z))
        return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID, NULL,
                             "launch: a block of %" PRIu32 "×%" PRIu32 "×%" PRIu32
                             "; this kernel requires %" PRIu32 "×%" PRIu32 "×%" PRIu32,
                             block->x, block->y, block->z, required->x, required->y, required->z);
    return WEIR_OK;
}

static struct weir_extent without_zeros(struct weir_extent extent)
{
    return weir_dim(extent.x, extent.y ? extent.y : 1, extent.z ? extent.z : 1);
}

weir_status weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel, struct weir_extent grid,
                                 struct weir_extent block, const struct weir_argument *arguments,
                                 size_t argument_count, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, kernel);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, arguments || argument_count == 0);
    if (kernel->member.device != queue->member.device)
        return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID,
                             "create a program and its kernels for each device",
                             "launch: the kernel belongs to another device than queue '%s'",
                             queue->member.object.label);
    if (block.x == 0)
        return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID,
                             "a block has at least one work-item", "launch: block.x is 0");
    grid = without_zeros(grid);
    block = without_zeros(block);
    weir_status status = check_extents(kernel, &grid, &block, file, line);
    if (status < 0)
        return status;
    status = weir__kernel_check(kernel, arguments, argument_count, file, line);
    if (status < 0)
        return status;

    struct weir_operation operation = {
        .kind = WEIR_OPERATION_LAUNCH,
        .flags = grid.x ? 0 : WEIR_OPERATION_EMPTY,
        .file = file,
        .line = line,
        .u.launch = {kernel, grid, block, arguments, argument_count},
    };
    return submit(queue, &operation);
}

weir_status weir_queue_host_call_at(weir_queue *queue, weir_host_function function, void *user,
                                    const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct weir_operation operation = {
        .kind = WEIR_OPERATION_HOST_CALL,
        .file = file,
        .line = line,
        .u.host_call = {function, user},
    };
    return submit(queue, &operation);
}

weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event, const char *file,
                                 int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, out_event);
    *out_event = (struct weir_event){0};
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation = {.kind = WEIR_OPERATION_RECORD, .file = file, .line = line};

    pthread_mutex_lock(&queue->submit_lock);
    weir_status status;
    if (atomic_load_explicit(&queue->progress.failed, memory_order_acquire)) {
        status = weir__progress_refuse(queue);
    } else {
        status = submit_locked(queue, &operation);
        if (status == WEIR_OK) {
            queue->last_record = operation.sequence;
            *out_event = (struct weir_event){queue->member.object.id, operation.sequence};
        }
    }
    pthread_mutex_unlock(&queue->submit_lock);
    return status;
}

// The wait itself, with the producer kept alive by the caller.
static weir_status submit_wait(weir_queue *queue, struct weir_event event, weir_queue *producer,
                               const char *file, int line)
{
    struct weir_operation operation = {.kind = WEIR_OPERATION_WAIT,
                                       .file = file,
                                       .line = line,
                                       .u.wait = {event, producer}};
    bool implied = false;

    pthread_mutex_lock(&queue->submit_lock);
    weir_status status =
        atomic_load_explicit(&queue->progress.failed, memory_order_acquire)
            ? weir__progress_refuse(queue)
            : weir__progress_wait(queue, queue->sequence + 1, event, producer, &implied);
    if (status == WEIR_OK) {
        operation.flags = implied ? WEIR_OPERATION_IMPLIED : 0;
        status = submit_locked(queue, &operation);
    }
    pthread_mutex_unlock(&queue->submit_lock);
    return status;
}

// A wait on what has failed already is the failure of the waiting queue, unless
// that has one of its own.
static weir_status inherit(weir_queue *queue)
{
    struct weir_error cause = *weir_last_error();

    pthread_mutex_lock(&queue->submit_lock);
    if (!atomic_load(&queue->progress.failed))
        weir__progress_fail(queue, queue->sequence + 1, &cause);
    weir_status status = weir__progress_refuse(queue);
    pthread_mutex_unlock(&queue->submit_lock);
    return status;
}

static weir_status check_producer(const weir_queue *queue, const weir_queue *producer,
                                  struct weir_event event, const char *file, int line)
{
    const char *label = queue->member.object.label;
    if (producer->member.device->runtime != queue->member.device->runtime)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "sync with it on the host instead",
                             "weir_queue_wait: the event belongs to another runtime");
    if (event.sequence > atomic_load(&producer->seen))
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID, NULL,
                             "weir_queue_wait: queue '%s' has no operation %" PRIu64,
                             producer->member.object.label, event.sequence);
    return WEIR_OK;
}

weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    if (event.queue == 0 || event.sequence == 0)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "record first: weir_queue_record() returns the event",
                             "weir_queue_wait: the event is zero; it was never recorded");

    weir_queue *producer = weir__registry_pin(event.queue);
    if (!producer && !weir__registry_issued(event.queue))
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "record first: weir_queue_record() returns the event",
                             "weir_queue_wait: the event is of no queue that ever was");
    if (!producer) // gone, and so is everything to wait for
        return weir__progress_status_gone(event) < 0 ? inherit(queue) : WEIR_OK;
    weir_status status = check_producer(queue, producer, event, file, line);
    if (status == WEIR_OK)
        status = weir__progress_status(producer, event.sequence) < 0
                     ? inherit(queue)
                     : submit_wait(queue, event, producer, file, line);
    weir__registry_unpin(producer);
    return status;
}

weir_status weir_queue_flush(weir_queue *queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, queue);
    weir_status status = queue->first->ops->queue_flush(queue->first, queue);
    if (status < 0)
        weir__error_place(queue->member.object.label, NULL, 0);
    return status;
}

weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    struct weir_event event = {0};
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    weir_status status = weir_queue_record_at(queue, &event, file, line);
    return status < 0 ? status : weir_event_sync(event, timeout_ns);
}

bool weir__queue_mark(weir_queue *queue, struct weir_event *out_event)
{
    bool marked = true;
    struct weir_error saved = *weir_last_error();
    *out_event = (struct weir_event){0};

    pthread_mutex_lock(&queue->submit_lock);
    if (queue->sequence > atomic_load(&queue->progress.completed)) {
        if (queue->last_record != queue->sequence) {
            struct weir_operation operation = {.kind = WEIR_OPERATION_RECORD,
                                               .flags = WEIR_OPERATION_INTERNAL,
                                               .file = __FILE__,
                                               .line = __LINE__};
            if (submit_locked(queue, &operation) == WEIR_OK)
                queue->last_record = operation.sequence;
        }
        marked = queue->last_record == queue->sequence;
        if (marked)
            *out_event = (struct weir_event){queue->member.object.id, queue->sequence};
    }
    pthread_mutex_unlock(&queue->submit_lock);
    weir__error_set(&saved);
    return marked;
}

weir_status weir__queue_finish(weir_queue *queue)
{
    uint64_t sequence = atomic_load(&queue->seen);
    weir_status status = queue->first->ops->queue_finish(queue->first, queue);
    if (status == WEIR_OK)
        weir__progress_complete(queue, sequence);
    return status;
}

weir_status weir_queue_recover(weir_queue *queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, queue);
    if (weir__in_host_call())
        return weir__fail_at(NULL, 0, queue->member.object.label, WEIR_ERROR_INVALID, NULL,
                             "weir_queue_recover waits, and a host call may not wait");
    if (!atomic_load(&queue->progress.failed))
        return WEIR_OK;
    weir_status status = weir__progress_refuse(queue);
    if (status == WEIR_ERROR_DEVICE_LOST)
        return status;
    // Behind the lock nobody submits any more: who comes later sees the failure.
    // The wait itself is outside, since a host call under way may want the lock.
    pthread_mutex_lock(&queue->submit_lock);
    pthread_mutex_unlock(&queue->submit_lock);
    status = weir__queue_finish(queue);
    if (status < 0)
        return status;
    pthread_mutex_lock(&queue->submit_lock);
    weir__progress_recover(queue, queue->sequence);
    pthread_mutex_unlock(&queue->submit_lock);
    return status;
}
