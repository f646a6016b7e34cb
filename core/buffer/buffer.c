// Buffers, the host's access to them, and the blocking copies through pinned
// memory. Transfers keep two pieces in flight, so that the host's memcpy of one
// overlaps the device's copy of the other.
#include <weir/buffer.h>

#include <inttypes.h>
#include <string.h>

#include "core/buffer/buffer.h"
#include "core/object/device.h"
#include "core/queue/queue.h"
#include "core/queue/retire.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

#define STAGING_PIECE_BYTES ((size_t)4 << 20)
#define STAGING_PIECES 2

struct weir__staging {
    struct weir__staging *next;
    weir_buffer *pieces[STAGING_PIECES];
    struct weir_event busy[STAGING_PIECES];
};

weir_status weir__buffer_make(weir_device *device, const char *label,
                              const struct weir_buffer_setup *setup, bool internal,
                              weir_buffer **out_buffer)
{
    weir__device_reap(device);
    weir_buffer *buffer = weir__member_allocate(device, &weir__buffer_class, sizeof *buffer, label);
    if (!buffer)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a buffer object");
    buffer->size = setup->size;
    buffer->placement = setup->placement;
    buffer->member.internal = internal;
    atomic_init(&buffer->holders, 1);

    void *pointer = NULL;
    weir_status status = weir__chain_buffer_create(device->chain, device, buffer, setup,
                                                   buffer->member.object.data, &pointer);
    if (status < 0) {
        weir__error_place(label, NULL, 0);
        weir__member_free(&buffer->member);
        return status;
    }
    buffer->pointer = pointer;
    weir__member_enlist(&buffer->member);
    *out_buffer = buffer;
    return WEIR_OK;
}

weir_status weir__buffer_check_size(weir_device *device, const char *label, size_t size)
{
    if (size == 0)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "set params.size",
                             "a buffer of 0 bytes was asked for");
    if (size > device->limits.max_buffer_bytes)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "split it into several buffers",
                             "a buffer of %zu bytes was asked for; the device's limit is %" PRIu64,
                             size, device->limits.max_buffer_bytes);
    return WEIR_OK;
}

static weir_status check_placement(const weir_device *device, const char *label,
                                   weir_placement placement)
{
    if (placement == WEIR_PLACE_MANAGED && !device->limits.managed_memory)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_UNSUPPORTED,
                             "use a DEVICE buffer and a HOST buffer, with copies between them, or "
                             "ask limits.managed_memory first",
                             "device '%s' has no MANAGED memory that the host may use while the "
                             "device works",
                             device->info.name);
    WEIR_REQUIRE(label, placement == WEIR_PLACE_DEVICE || placement == WEIR_PLACE_HOST ||
                            placement == WEIR_PLACE_MANAGED);
    return WEIR_OK;
}

weir_status weir_buffer_create(weir_device *device, const struct weir_buffer_params *params,
                               weir_buffer **out_buffer)
{
    struct weir_buffer_params known;
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_REQUIRE(NULL, device && params);
    WEIR_READ_PARAMS(weir_buffer_params, params, &known);
    weir_status status = check_placement(device, params->label, params->placement);
    if (status == WEIR_OK)
        status = weir__buffer_check_size(device, params->label, params->size);
    if (status < 0)
        return status;
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = params->placement};
    return weir__buffer_make(device, params->label, &setup, false, out_buffer);
}

weir_status weir_buffer_wrap(weir_device *device, const struct weir_wrap_params *params,
                             weir_buffer **out_buffer)
{
    struct weir_wrap_params known;
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_REQUIRE(NULL, device && params);
    WEIR_READ_PARAMS(weir_wrap_params, params, &known);
    WEIR_REQUIRE(params->label, params->pointer);
    weir_status status = weir__buffer_check_size(device, params->label, params->size);
    if (status < 0)
        return status;
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = WEIR_PLACE_HOST,
                                            .user_pointer = params->pointer};
    return weir__buffer_make(device, params->label, &setup, false, out_buffer);
}

void weir_buffer_destroy(weir_buffer **buffer)
{
    if (!buffer || !*buffer || atomic_load(&weir__forked))
        return;
    weir_buffer *gone = *buffer;
    *buffer = NULL;
    if (gone->lender && !gone->lender->forget(gone))
        return;
    atomic_store(&gone->abandoned, true);
    weir__buffer_unhold(gone);
}

void weir__buffer_hold(weir_buffer *buffer)
{
    atomic_fetch_add(&buffer->holders, 1);
}

void weir__buffer_unhold(weir_buffer *buffer)
{
    if (atomic_fetch_sub(&buffer->holders, 1) == 1)
        weir__member_retire(&buffer->member);
}

bool weir__buffer_is_only_shared(const struct weir__member *member)
{
    const weir_buffer *buffer = (const weir_buffer *)(const void *)member;
    return member->class == &weir__buffer_class && atomic_load(&buffer->abandoned) &&
           atomic_load(&buffer->holders) > 0;
}

static void finalize(struct weir__member *member)
{
    weir_buffer *buffer = (weir_buffer *)(void *)member;
    void (*gone)(void *user) = buffer->gone;
    void *user = buffer->gone_user;
    weir__chain_buffer_destroy(buffer->member.device->chain, buffer);
    weir__member_free(&buffer->member);
    if (gone)
        gone(user);
}

const struct weir__class weir__buffer_class = {.name = "buffer", .finalize = finalize};

static weir_status check_host_use(const char *function, weir_buffer *buffer, size_t offset,
                                  size_t size, weir_access access)
{
    WEIR_REFUSE_FORK_OF(function);
    if (!buffer)
        return weir__fail(WEIR_ERROR_INVALID, NULL, "%s: buffer is NULL", function);
    const char *label = buffer->member.object.label;
    if (buffer->placement == WEIR_PLACE_DEVICE)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID,
                             "copy to a HOST buffer, or use weir_download()",
                             "the host cannot use a DEVICE buffer's memory");
    if (access < WEIR_ACCESS_READ || access > WEIR_ACCESS_READ_WRITE)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "pass WEIR_ACCESS_READ or its kin",
                             "%s: access %d is none of weir_access", function, (int)access);
    if (!weir__buffer_holds(buffer, offset, size))
        return weir__buffer_refuse_range(buffer, "range", offset, size, NULL, 0);
    return WEIR_OK;
}

weir_status weir_host_begin(weir_buffer *buffer, size_t offset, size_t size, weir_access access,
                            void **out_pointer)
{
    WEIR_REQUIRE(NULL, out_pointer);
    *out_pointer = NULL;
    weir_status status = check_host_use(__func__, buffer, offset, size, access);
    if (status < 0)
        return status;
    const weir_device *device = buffer->member.device;
    if (device->chain->host_access) {
        status = device->first->ops->host_begin(device->first, buffer, offset, size, access);
        if (status < 0)
            return status;
    }
    *out_pointer = buffer->pointer + offset;
    return WEIR_OK;
}

weir_status weir_host_end(weir_buffer *buffer, size_t offset, size_t size, weir_access access)
{
    weir_status status = check_host_use(__func__, buffer, offset, size, access);
    if (status < 0)
        return status;
    const weir_device *device = buffer->member.device;
    if (!device->chain->host_access)
        return WEIR_OK;
    return device->first->ops->host_end(device->first, buffer, offset, size, access);
}

// Each transfer uses one of these exclusively, since its queue may be held and
// transfers of other queues must not wait for that. Unused ones are kept in the
// device's list.

static void free_staging(struct weir__staging *staging)
{
    for (int i = 0; i < STAGING_PIECES; i++)
        weir_buffer_destroy(&staging->pieces[i]);
    weir__release(staging);
}

static struct weir__staging *pop_staging(weir_device *device)
{
    weir_lock_take(&device->staging_lock);
    struct weir__staging *staging = device->staging;
    if (staging)
        device->staging = staging->next;
    weir_lock_release(&device->staging_lock);
    return staging;
}

static void push_staging(weir_device *device, struct weir__staging *staging)
{
    weir_lock_take(&device->staging_lock);
    staging->next = device->staging;
    device->staging = staging;
    weir_lock_release(&device->staging_lock);
}

void weir__staging_destroy(weir_device *device)
{
    struct weir__staging *staging;
    while ((staging = pop_staging(device)))
        free_staging(staging);
}

// Staging memory, or NULL with the thread's error set.
static struct weir__staging *take_staging(weir_device *device)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = STAGING_PIECE_BYTES,
                                            .placement = WEIR_PLACE_HOST};
    struct weir__staging *staging = pop_staging(device);
    if (staging)
        return staging;
    staging = weir__allocate(sizeof *staging);
    if (!staging) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for staging");
        return NULL;
    }
    for (int i = 0; i < STAGING_PIECES; i++) {
        if (weir__buffer_make(device, "staging", &setup, true, &staging->pieces[i]) == WEIR_OK)
            continue;
        struct weir_error cause = *weir_last_error();
        free_staging(staging);
        weir__error_set(&cause);
        return NULL;
    }
    return staging;
}

static weir_status sync_piece(struct weir__staging *staging, int piece)
{
    struct weir_event event = staging->busy[piece];
    staging->busy[piece] = (struct weir_event){0};
    return event.queue ? weir_event_sync(event, WEIR_FOREVER) : WEIR_OK;
}

// Copies one piece and stores in `*out_busy` the event at which the device has
// finished with it. After a failure part of the copy may still be running.
static weir_status copy_piece(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                              weir_buffer *src, size_t src_offset, size_t size, const char *file,
                              int line, struct weir_event *out_busy)
{
    weir_status status =
        weir_queue_copy_at(queue, dst, dst_offset, src, src_offset, size, file, line);
    if (status == WEIR_OK)
        status = weir_queue_record_at(queue, out_busy, file, line);
    if (status < 0)
        weir__queue_record_end(queue, out_busy);
    return status;
}

static weir_status upload_pieces(weir_queue *queue, struct weir__staging *staging, weir_buffer *dst,
                                 size_t dst_offset, const char *src, size_t size, const char *file,
                                 int line)
{
    weir_status status = WEIR_OK;

    for (size_t done = 0, n; done < size && status == WEIR_OK; done += n) {
        int piece = (int)(done / STAGING_PIECE_BYTES % STAGING_PIECES);
        n = size - done < STAGING_PIECE_BYTES ? size - done : STAGING_PIECE_BYTES;
        if ((status = sync_piece(staging, piece)) < 0)
            break;
        memcpy(staging->pieces[piece]->pointer, src + done, n);
        status = copy_piece(queue, dst, dst_offset + done, staging->pieces[piece], 0, n, file, line,
                            &staging->busy[piece]);
    }
    return status;
}

// Piece i is copied to the host while the device copies piece i + 1.
static weir_status download_pieces(weir_queue *queue, struct weir__staging *staging, char *dst,
                                   weir_buffer *src, size_t src_offset, size_t size,
                                   const char *file, int line)
{
    size_t count = (size + STAGING_PIECE_BYTES - 1) / STAGING_PIECE_BYTES;
    weir_status status = WEIR_OK;

    for (size_t i = 0; i <= count && status == WEIR_OK; i++) {
        if (i < count) {
            size_t at = i * STAGING_PIECE_BYTES;
            size_t n = size - at < STAGING_PIECE_BYTES ? size - at : STAGING_PIECE_BYTES;
            weir_buffer *piece = staging->pieces[i % STAGING_PIECES];
            status = copy_piece(queue, piece, 0, src, src_offset + at, n, file, line,
                                &staging->busy[i % STAGING_PIECES]);
        }
        if (i > 0 && status == WEIR_OK) {
            size_t at = (i - 1) * STAGING_PIECE_BYTES;
            size_t n = size - at < STAGING_PIECE_BYTES ? size - at : STAGING_PIECE_BYTES;
            int piece = (int)((i - 1) % STAGING_PIECES);
            if ((status = sync_piece(staging, piece)) == WEIR_OK)
                memcpy(dst + at, staging->pieces[piece]->pointer, n);
        }
    }
    return status;
}

// Waits for the pieces that a transfer, also a failed one, left in flight, and
// keeps the first error.
static weir_status finish_pieces(struct weir__staging *staging, weir_status status)
{
    struct weir_error cause = *weir_last_error();
    for (int i = 0; i < STAGING_PIECES; i++) {
        weir_status later = sync_piece(staging, i);
        if (later < 0 && status == WEIR_OK) {
            status = later;
            cause = *weir_last_error();
        }
    }
    return status < 0 ? weir__error_set(&cause) : WEIR_OK;
}

static weir_status check_transfer(const char *function, weir_queue *queue, weir_buffer *buffer,
                                  const void *pointer, size_t offset, size_t size, const char *file,
                                  int line)
{
    WEIR_REFUSE_FORK_OF(function);
    if (!queue || !buffer || (!pointer && size > 0))
        return weir__fail_at(file, line, buffer ? buffer->member.object.label : NULL,
                             WEIR_ERROR_INVALID, NULL, "%s: %s is NULL", function,
                             !queue    ? "the queue"
                             : !buffer ? "the buffer"
                                       : "the host's memory");
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "uploads and downloads wait on the host",
                                            "use weir_queue_copy() and a HOST buffer");
    if (buffer->member.device != queue->member.device)
        return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID,
                             "use a queue of the buffer's device",
                             "%s: the buffer belongs to another device than queue '%s'", function,
                             weir__label_shown(queue->member.object.label));
    if (weir__in_host_call())
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "use weir_queue_copy() and a HOST buffer",
                             "weir_upload and weir_download wait, and a host call may not wait");
    if (!weir__buffer_holds(buffer, offset, size))
        return weir__buffer_refuse_range(buffer, "buffer", offset, size, file, line);
    return WEIR_OK;
}

// For a download `upload` is NULL and `download` is the destination.
static weir_status transfer(weir_queue *queue, weir_buffer *buffer, size_t offset,
                            const void *upload, void *download, size_t size, const char *file,
                            int line)
{
    weir_device *device = queue->member.device;

    if (size == 0)
        return weir_queue_sync_at(queue, WEIR_FOREVER, file, line);
    struct weir__staging *staging = take_staging(device);
    if (!staging)
        return weir_last_error()->status;
    weir_status status =
        upload ? upload_pieces(queue, staging, buffer, offset, upload, size, file, line)
               : download_pieces(queue, staging, download, buffer, offset, size, file, line);
    status = finish_pieces(staging, status);
    push_staging(device, staging);
    return status;
}

weir_status weir_upload_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset, const void *src,
                           size_t size, const char *file, int line)
{
    weir_status status =
        check_transfer("weir_upload", queue, dst, src, dst_offset, size, file, line);
    return status < 0 ? status : transfer(queue, dst, dst_offset, src, NULL, size, file, line);
}

weir_status weir_download_at(weir_queue *queue, void *dst, weir_buffer *src, size_t src_offset,
                             size_t size, const char *file, int line)
{
    weir_status status =
        check_transfer("weir_download", queue, src, dst, src_offset, size, file, line);
    return status < 0 ? status : transfer(queue, src, src_offset, NULL, dst, size, file, line);
}

weir_status weir_buffer_address(weir_buffer *buffer, uint64_t *out_address)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_address);
    *out_address = 0;
    WEIR_REQUIRE(NULL, buffer);
    const weir_device *device = buffer->member.device;
    if (buffer->size == 0) // freed to its pool
        return weir__buffer_refuse_range(buffer, "weir_buffer_address", 0, 1, NULL, 0);
    if (!device->limits.device_addresses)
        return weir__fail_at(NULL, 0, buffer->member.object.label, WEIR_ERROR_UNSUPPORTED,
                             "pass the buffer as an argument, and offsets into it",
                             "device '%s' has no addresses of buffers "
                             "(limits.device_addresses is 0)",
                             device->info.name);
    const struct weir_link *first = device->first;
    weir_status status = first->ops->buffer_address(first, buffer, out_address);
    if (status < 0)
        weir__error_place(buffer->member.object.label, NULL, 0);
    return status;
}
