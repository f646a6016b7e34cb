// Blocking copies between any host memory and buffers, through pinned memory of the library. A
// transfer keeps two pieces in flight, so that the host's memcpy of one overlaps the device's
// copy of the other.
#include <weir/buffer.h>

#include <string.h>

#include "core/buffer/buffer.h"
#include "core/event/event.h"
#include "core/object/device.h"
#include "core/queue/queue.h"
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

static weir_status sync_piece(struct weir__staging *staging, int piece,
                              const struct weir__host_caller *caller)
{
    struct weir_event event = staging->busy[piece];
    staging->busy[piece] = (struct weir_event){0};
    return event.queue ? weir__event_sync(event, WEIR_FOREVER, caller) : WEIR_OK;
}

// The host's copy to or from a piece, which plugins see as its use.
static weir_status use_piece(weir_buffer *piece, char *download, const char *upload, size_t size,
                             const struct weir__host_caller *caller)
{
    const weir_access access = upload ? WEIR_ACCESS_WRITE : WEIR_ACCESS_READ;
    const bool noted = weir__takes_notes(piece->member.device);
    if (noted) {
        weir_status status =
            weir__host_note_access(WEIR_HOST_NOTE_BEGIN, piece, 0, size, access, caller);
        if (status < 0)
            return status;
    }
    if (upload)
        memcpy(piece->pointer, upload, size);
    else
        memcpy(download, piece->pointer, size);
    if (noted)
        (void)weir__host_note_access(WEIR_HOST_NOTE_END, piece, 0, size, access, caller);
    return WEIR_OK;
}

// Copies one piece and stores in `*out_busy` the event at which the device has
// finished with it. After a failure part of the copy may still be running.
static weir_status copy_piece(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                              weir_buffer *src, size_t src_offset, size_t size,
                              const struct weir__host_caller *caller, struct weir_event *out_busy)
{
    weir_status status = weir_queue_copy_at(queue, dst, dst_offset, src, src_offset, size,
                                            caller->file, caller->line);
    if (status == WEIR_OK)
        status = weir_queue_record_at(queue, out_busy, caller->file, caller->line);
    if (status < 0)
        weir__queue_record_end(queue, out_busy);
    return status;
}

static weir_status upload_pieces(weir_queue *queue, struct weir__staging *staging, weir_buffer *dst,
                                 size_t dst_offset, const char *src, size_t size,
                                 const struct weir__host_caller *caller)
{
    weir_status status = WEIR_OK;

    for (size_t done = 0, n; done < size && status == WEIR_OK; done += n) {
        int piece = (int)(done / STAGING_PIECE_BYTES % STAGING_PIECES);
        n = size - done < STAGING_PIECE_BYTES ? size - done : STAGING_PIECE_BYTES;
        if ((status = sync_piece(staging, piece, caller)) < 0 ||
            (status = use_piece(staging->pieces[piece], NULL, src + done, n, caller)) < 0)
            break;
        status = copy_piece(queue, dst, dst_offset + done, staging->pieces[piece], 0, n, caller,
                            &staging->busy[piece]);
    }
    return status;
}

// Piece i is copied to the host while the device copies piece i + 1.
static weir_status download_pieces(weir_queue *queue, struct weir__staging *staging, char *dst,
                                   weir_buffer *src, size_t src_offset, size_t size,
                                   const struct weir__host_caller *caller)
{
    size_t count = (size + STAGING_PIECE_BYTES - 1) / STAGING_PIECE_BYTES;
    weir_status status = WEIR_OK;

    for (size_t i = 0; i <= count && status == WEIR_OK; i++) {
        if (i < count) {
            size_t at = i * STAGING_PIECE_BYTES;
            size_t n = size - at < STAGING_PIECE_BYTES ? size - at : STAGING_PIECE_BYTES;
            weir_buffer *piece = staging->pieces[i % STAGING_PIECES];
            status = copy_piece(queue, piece, 0, src, src_offset + at, n, caller,
                                &staging->busy[i % STAGING_PIECES]);
        }
        if (i > 0 && status == WEIR_OK) {
            size_t at = (i - 1) * STAGING_PIECE_BYTES;
            size_t n = size - at < STAGING_PIECE_BYTES ? size - at : STAGING_PIECE_BYTES;
            int piece = (int)((i - 1) % STAGING_PIECES);
            if ((status = sync_piece(staging, piece, caller)) == WEIR_OK)
                status = use_piece(staging->pieces[piece], dst + at, NULL, n, caller);
        }
    }
    return status;
}

// Waits for the pieces that a transfer, also a failed one, left in flight, and
// keeps the first error.
static weir_status finish_pieces(struct weir__staging *staging, weir_status status,
                                 const struct weir__host_caller *caller)
{
    struct weir_error cause = *weir_last_error();
    for (int i = 0; i < STAGING_PIECES; i++) {
        weir_status later = sync_piece(staging, i, caller);
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
    const struct weir__host_caller caller = {file, line, WEIR_HOST_NOTE_INTERNAL};
    weir_device *device = queue->member.device;

    if (size == 0)
        return weir_queue_sync_at(queue, WEIR_FOREVER, file, line);
    struct weir__staging *staging = take_staging(device);
    if (!staging)
        return weir_last_error()->status;
    weir_status status =
        upload ? upload_pieces(queue, staging, buffer, offset, upload, size, &caller)
               : download_pieces(queue, staging, download, buffer, offset, size, &caller);
    status = finish_pieces(staging, status, &caller);
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
