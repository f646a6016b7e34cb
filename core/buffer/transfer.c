// Copies of memory of the host, through pinned pieces where they are faster.

#include "core/buffer/buffer.h"
#include "core/event/event.h"
#include "core/queue/queue.h"

_Static_assert(sizeof((struct weir__staging *)0)->blocks / sizeof(struct weir__staging_blocks) ==
                   WEIR__STAGING_SIZES,
               "a device has a list of blocks of each size");
_Static_assert(WEIR__STAGING_SPARES_MAX >= WEIR__STAGING_BLOCKS_MAX(WEIR__STAGING_SMALL),
               "a list has room for all blocks");

static void destroy(weir_buffer *block)
{
    const struct weir_error cause = *weir_last_error();
    weir_buffer_destroy(&block);
    weir__error_set(&cause);
}

static weir_buffer *pop(struct weir__staging_blocks *blocks)
{
    return blocks->spare_count > 0 ? blocks->spares[--blocks->spare_count] : NULL;
}

size_t weir__staging_take(weir_device *device, enum weir__staging_size size, size_t least,
                          size_t wanted, weir_buffer **out_blocks)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = WEIR__STAGING_BYTES(size),
                                            .placement = WEIR_PLACE_HOST};
    struct weir__staging *staging = &device->staging;
    struct weir__staging_blocks *blocks = &staging->blocks[size];
    size_t count = 0;
    while (count < wanted) {
        weir_lock_take(&staging->lock);
        weir_buffer *block = pop(blocks);
        const bool is_new =
            !block && (count < least || blocks->count < WEIR__STAGING_BLOCKS_MAX(size));
        blocks->count += is_new;
        weir_lock_release(&staging->lock);
        if (is_new && weir__buffer_make(device, "staging", &setup, true, &block) < 0) {
            weir_lock_take(&staging->lock);
            blocks->count--;
            weir_lock_release(&staging->lock);
        }
        if (!block)
            break;
        out_blocks[count++] = block;
    }
    if (count >= least)
        return count;
    weir__staging_return(device, count, out_blocks);
    return 0;
}

void weir__staging_return(weir_device *device, size_t count, weir_buffer **blocks)
{
    struct weir__staging *staging = &device->staging;
    for (size_t i = count; i-- > 0;) {
        const enum weir__staging_size size =
            blocks[i]->size == WEIR__STAGING_BYTES(WEIR__STAGING_LARGE) ? WEIR__STAGING_LARGE
                                                                        : WEIR__STAGING_SMALL;
        struct weir__staging_blocks *list = &staging->blocks[size];
        weir_lock_take(&staging->lock);
        const bool keep = list->count <= WEIR__STAGING_BLOCKS_MAX(size);
        if (keep)
            list->spares[list->spare_count++] = blocks[i];
        else
            list->count--;
        weir_lock_release(&staging->lock);
        if (!keep)
            destroy(blocks[i]);
    }
}

void weir__staging_trim(weir_device *device)
{
    struct weir__staging *staging = &device->staging;
    for (int size = 0; size < WEIR__STAGING_SIZES; size++) {
        weir_buffer *block;
        do {
            weir_lock_take(&staging->lock);
            block = pop(&staging->blocks[size]);
            staging->blocks[size].count -= block != NULL;
            weir_lock_release(&staging->lock);
            if (block)
                destroy(block);
        } while (block);
    }
    weir_workers_stop(&staging->copiers);
}

// Blocking copies between any host memory and buffers, through pinned memory of the library. A
// transfer is cut into pieces, so that the host's memcpy of some overlaps the device's copies of
// others. Those of a large one are copied by several threads, since one thread copies at a fraction
// of the link's bandwidth. Its pieces have parts, one for a thread at a time: the device loses time
// between copies and wants large ones, the caches of the host's processors want small ones. All calls
// of the library are made by the calling thread, in an order that does not depend on the others.

// From here on several threads copy: two, and more of them if each has SHARE_BYTES. A thread takes up to
// 100 us to wake.
#define PARALLEL_BYTES ((size_t)4 << 20)
#define SHARE_BYTES ((size_t)4 << 20)
// From staging.large_bytes on pieces have two parts, and from so many times as much on PARTS_MAX.
#define ALL_PARTS_TIMES 4
// The parts fit into a processor's own cache, and there are several for each thread.
#define PART_BYTES_MAX WEIR__STAGING_BYTES(WEIR__STAGING_SMALL)
#define PART_BYTES_MIN ((size_t)256 << 10)
#define PART_UNIT ((size_t)64 << 10)

enum {
    // That the device has at once, so that it works on while the host waits for a thread.
    DEVICE_PIECES = 6,
    DEVICE_LARGE_PIECES = 3, // of several parts
    ALONE_PIECES = 4,        // that the calling thread uses in turn, without others
    // That each thread has: one to go on with, while the calling thread gives it another.
    THREAD_PARTS = 2,
    PARTS_MAX = WEIR__STAGING_BYTES(WEIR__STAGING_LARGE) / WEIR__STAGING_BYTES(WEIR__STAGING_SMALL),
    SLOTS_MAX = THREAD_PARTS * WEIR_WORKERS_MAX + DEVICE_PIECES
};

// The host's copy of one part.
struct part {
    struct weir_task task;
    void *to;
    const void *from;
    size_t size;
};

// The pinned memory of one piece at a time.
struct slot {
    weir_buffer *memory;
    size_t offset;
    struct weir_event busy; // the device's copy; zero: none
    unsigned posted;        // parts that the host copies and that are not waited for
    struct part parts[PARTS_MAX];
};

struct transfer {
    weir_queue *queue;
    weir_buffer *buffer;
    size_t offset;
    const char *upload; // NULL: a download
    char *download;
    size_t size;
    struct weir__host_caller caller;
    struct weir_workers *copiers; // NULL: the calling thread copies
    unsigned threads;
    size_t part_bytes;
    size_t piece_bytes;
    size_t piece_count;
    size_t slot_count;
    size_t on_device; // pieces that the device has at once, at most
    size_t lead;      // pieces that are begun before the first one is finished
    struct slot *slots;
};

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct slot *slot_of(struct transfer *transfer, size_t piece)
{
    return &transfer->slots[piece % transfer->slot_count];
}

static size_t bytes_of(const struct transfer *transfer, size_t piece)
{
    return least_of(transfer->size - piece * transfer->piece_bytes, transfer->piece_bytes);
}

// The host's copies to or from a slot, which plugins see as its use.

static weir_status note(const struct transfer *transfer, enum weir_host_note_kind kind,
                        const struct slot *slot, size_t at, size_t size)
{
    if (!weir__takes_notes(transfer->queue->member.device))
        return WEIR_OK;
    struct weir__host_caller caller = transfer->caller;
    caller.flags |= transfer->threads << WEIR_HOST_NOTE_THREADS_SHIFT;
    return weir__host_note_access(kind, slot->memory, slot->offset + at, size,
                                  transfer->upload ? WEIR_ACCESS_WRITE : WEIR_ACCESS_READ, &caller);
}

static void copy_on_host(void *user)
{
    const struct part *part = user;
    memcpy(part->to, part->from, part->size);
}

static void end_on_host(struct transfer *transfer, struct slot *slot)
{
    for (unsigned i = 0; i < slot->posted; i++) {
        if (transfer->copiers)
            weir_workers_wait(transfer->copiers, &slot->parts[i].task);
        (void)note(transfer, WEIR_HOST_NOTE_END, slot, i * transfer->part_bytes,
                   slot->parts[i].size);
    }
    slot->posted = 0;
}

static weir_status post_part(struct transfer *transfer, struct slot *slot, char *to,
                             const char *from, size_t at, size_t size)
{
    struct part *part = &slot->parts[slot->posted];
    TRY(note(transfer, WEIR_HOST_NOTE_BEGIN, slot, at, size));
    part->to = to + at;
    part->from = from + at;
    part->size = size;
    slot->posted++;
    if (transfer->copiers) {
        part->task.run = copy_on_host;
        part->task.user = part;
        weir_workers_post(transfer->copiers, &part->task, transfer->threads);
    } else {
        copy_on_host(part);
    }
    return WEIR_OK;
}

static weir_status begin_on_host(struct transfer *transfer, size_t piece)
{
    struct slot *slot = slot_of(transfer, piece);
    char *pinned = slot->memory->pointer + slot->offset;
    const size_t first = piece * transfer->piece_bytes;
    const size_t size = bytes_of(transfer, piece);
    weir_status status = WEIR_OK;
    for (size_t at = 0; at < size && status == WEIR_OK; at += transfer->part_bytes) {
        const size_t part = least_of(size - at, transfer->part_bytes);
        status = transfer->upload
                     ? post_part(transfer, slot, pinned, transfer->upload + first, at, part)
                     : post_part(transfer, slot, transfer->download + first, pinned, at, part);
    }
    if (!transfer->copiers)
        end_on_host(transfer, slot);
    return status;
}

// The device's copy.

static weir_status sync_slot(const struct transfer *transfer, struct slot *slot)
{
    struct weir_event event = slot->busy;
    slot->busy = (struct weir_event){0};
    if (!event.queue)
        return WEIR_OK;
    return weir__event_sync(event, WEIR_FOREVER, &transfer->caller);
}

// After a failure part of the copy may still be running. Pieces that the host copies for long are not
// kept from the device until the next wait.
static weir_status begin_on_device(struct transfer *transfer, size_t piece)
{
    struct slot *slot = slot_of(transfer, piece);
    weir_queue *queue = transfer->queue;
    const struct weir__host_caller *caller = &transfer->caller;
    const size_t at = transfer->offset + piece * transfer->piece_bytes;
    const size_t size = bytes_of(transfer, piece);
    weir_status status =
        transfer->upload ? weir_queue_copy_at(queue, transfer->buffer, at, slot->memory,
                                              slot->offset, size, caller->file, caller->line)
                         : weir_queue_copy_at(queue, slot->memory, slot->offset, transfer->buffer,
                                              at, size, caller->file, caller->line);
    if (status == WEIR_OK)
        status = weir_queue_record_at(queue, &slot->busy, caller->file, caller->line);
    if (status < 0)
        weir__queue_record_end(queue, &slot->busy);
    else if (transfer->copiers)
        status = weir_queue_flush_at(queue, caller->file, caller->line);
    return status;
}

// Both directions.

// The host's copy of the piece, or the device's.
static weir_status copy_piece(struct transfer *transfer, size_t piece, bool on_host)
{
    struct slot *slot = slot_of(transfer, piece);
    if (!on_host) {
        end_on_host(transfer, slot);
        return begin_on_device(transfer, piece);
    }
    const weir_status status = sync_slot(transfer, slot);
    return status < 0 ? status : begin_on_host(transfer, piece);
}

static weir_status copy_pieces(struct transfer *transfer)
{
    const size_t lead = transfer->lead;
    const size_t count = transfer->piece_count;
    const bool is_upload = transfer->upload; // of which the host's copies come first
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count + lead && status == WEIR_OK; i++) {
        if (i < count)
            status = copy_piece(transfer, i, is_upload);
        if (i >= lead && status == WEIR_OK)
            status = copy_piece(transfer, i - lead, !is_upload);
    }
    return status;
}

// Waits for the pieces that a transfer, also a failed one, left in flight, and
// keeps the first error.
static weir_status finish_pieces(struct transfer *transfer, weir_status status)
{
    struct weir_error cause = {.status = WEIR_OK};
    if (status < 0)
        cause = weir__error_of(status);
    for (size_t i = 0; i < transfer->slot_count; i++) {
        end_on_host(transfer, &transfer->slots[i]);
        weir_status later = sync_slot(transfer, &transfer->slots[i]);
        if (later < 0 && status == WEIR_OK) {
            status = later;
            cause = weir__error_of(later);
        }
    }
    if (status == WEIR_OK)
        return WEIR_OK;
    return weir__placed(weir__error_set(&cause), transfer->caller.file, transfer->caller.line);
}

// Planning.

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

// The threads that copy: they are there already, or started.
static unsigned start_copiers(struct weir__staging *staging, size_t size)
{
    const size_t shares = size / SHARE_BYTES;
    const size_t wanted = least_of(staging->thread_limit, shares > 2 ? shares : 2);
    if (size < PARALLEL_BYTES || wanted == 0)
        return 0;
    return (unsigned)least_of(weir_workers_start(&staging->copiers, (unsigned)wanted), wanted);
}

static void set_pieces(struct transfer *transfer)
{
    const unsigned threads = transfer->threads;
    const size_t large = transfer->queue->member.device->staging.large_bytes;
    // With more parts of a piece the device loses less time between pieces, but there is none for it to copy until all
    // parts of the first are there, which counts in smaller transfers.
    unsigned parts = 1;
    if (threads > 0 && transfer->size >= large)
        parts = transfer->size / ALL_PARTS_TIMES < large ? 2 : PARTS_MAX;
    const size_t wanted = threads > 0 ? (size_t)4 * threads : ALONE_PIECES; // parts
    const size_t bytes = divide_up(divide_up(transfer->size, wanted), PART_UNIT) * PART_UNIT;
    transfer->part_bytes =
        least_of(bytes < PART_BYTES_MIN ? PART_BYTES_MIN : bytes, PART_BYTES_MAX);
    transfer->piece_bytes = parts * transfer->part_bytes;
    transfer->piece_count = divide_up(transfer->size, transfer->piece_bytes);
    transfer->on_device = parts > 1 ? DEVICE_LARGE_PIECES : DEVICE_PIECES;
    const size_t slots =
        threads > 0 ? divide_up((size_t)THREAD_PARTS * threads, parts) + transfer->on_device
                    : ALONE_PIECES;
    transfer->slot_count = least_of(slots, transfer->piece_count);
}

// Takes the blocks, and cuts them into slots. Stores them, and returns their number, or 0.
static size_t take_blocks(struct transfer *transfer, weir_buffer **out_blocks)
{
    const enum weir__staging_size size =
        transfer->piece_bytes > PART_BYTES_MAX ? WEIR__STAGING_LARGE : WEIR__STAGING_SMALL;
    const size_t pieces = WEIR__STAGING_BYTES(size) / transfer->piece_bytes; // of a block
    const size_t wanted = divide_up(transfer->slot_count, pieces);
    const size_t taken = weir__staging_take(transfer->queue->member.device, size,
                                            least_of(wanted, 2), wanted, out_blocks);
    transfer->slot_count = least_of(transfer->slot_count, taken * pieces);
    for (size_t i = 0; i < transfer->slot_count; i++) {
        struct slot *slot = &transfer->slots[i];
        slot->memory = out_blocks[i / pieces];
        slot->offset = i % pieces * transfer->piece_bytes;
        slot->busy = (struct weir_event){0};
        slot->posted = 0;
    }
    return taken;
}

static weir_status run_transfer(const struct transfer *asked)
{
    struct slot slots[SLOTS_MAX]; // not cleared: a small transfer uses one
    struct transfer transfer = *asked;
    weir_buffer *blocks[SLOTS_MAX];
    weir_device *device = transfer.queue->member.device;

    transfer.slots = slots;
    transfer.threads = start_copiers(&device->staging, transfer.size);
    transfer.copiers = transfer.threads > 0 ? &device->staging.copiers : NULL;
    set_pieces(&transfer);
    const size_t taken = take_blocks(&transfer, blocks);
    if (taken == 0)
        return weir__placed(weir_last_error()->status, asked->caller.file, asked->caller.line);
    // Of an upload the host's copies come first, and of a download the device's.
    const size_t on_device =
        least_of(transfer.on_device, transfer.slot_count > 1 ? transfer.slot_count / 2 : 1);
    if (transfer.copiers)
        transfer.lead = transfer.upload ? transfer.slot_count - on_device : on_device;
    else
        transfer.lead = transfer.upload ? 0 : least_of(2, on_device);
    weir_status status = finish_pieces(&transfer, copy_pieces(&transfer));
    weir__staging_return(device, taken, blocks);
    return status;
}

WEIR_COLD static weir_status refuse_null(const char *function, const weir_queue *queue,
                                         const weir_buffer *buffer, const char *file, int line)
{
    const char *name = !queue ? "queue" : !buffer ? "buffer" : "the host's memory";
    return weir__fail_at(file, line, buffer ? buffer->member.object.label : NULL,
                         WEIR_ERROR_INVALID, weir__null_remedy(name), "%s: %s is NULL", function,
                         name);
}

static weir_status check_transfer(const struct weir__role *role, weir_queue *queue,
                                  weir_buffer *buffer, const void *pointer, size_t offset,
                                  size_t size, const char *file, int line)
{
    const char *function = role->call;
    WEIR_ENTER_OF(function, file, line, queue, buffer);
    if (!queue || !buffer || (!pointer && size > 0))
        return refuse_null(function, queue, buffer, file, line);
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "uploads and downloads wait on the host",
                                            "use weir_queue_copy() and a HOST buffer");
    if (buffer->member.device != queue->member.device)
        return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID,
                             "use a queue of the buffer's device",
                             "%s: the buffer belongs to another device than queue '%s'", function,
                             weir__label_or_none(queue->member.object.label));
    WEIR_REFUSE_HOST_CALL_OF(function, file, line, queue->member.object.label,
                             "use weir_queue_copy() and a HOST buffer");
    weir_status status = weir__buffer_check_range(buffer, role, offset, size, file, line);
    if (status == WEIR_OK && weir__is_unusual())
        status =
            weir__debug_check_host(function, file, line,
                                   strcmp(role->name, "dst") == 0 ? "src" : "dst", pointer, size);
    return status;
}

// One of `src` and `dst` is NULL.
static weir_status copy(const struct weir__role *role, weir_queue *queue, weir_buffer *buffer,
                        size_t offset, const void *src, void *dst, size_t size, const char *file,
                        int line)
{
    const struct transfer transfer = {.queue = queue,
                                      .buffer = buffer,
                                      .offset = offset,
                                      .upload = src,
                                      .download = dst,
                                      .size = size,
                                      .caller = {file, line, WEIR_HOST_NOTE_INTERNAL, role->call}};
    TRY(check_transfer(role, queue, buffer, src ? src : dst, offset, size, file, line));
    return size > 0 ? run_transfer(&transfer) : weir_queue_sync_at(queue, WEIR_FOREVER, file, line);
}

weir_status weir_upload_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset, const void *src,
                           size_t size, const char *file, int line)
{
    static const struct weir__role role = {"weir_upload", "dst"};
    return copy(&role, queue, dst, dst_offset, src, NULL, size, file, line);
}

weir_status weir_download_at(weir_queue *queue, void *dst, weir_buffer *src, size_t src_offset,
                             size_t size, const char *file, int line)
{
    static const struct weir__role role = {"weir_download", "src"};
    return copy(&role, queue, src, src_offset, NULL, dst, size, file, line);
}

weir_status weir_buffer_address(weir_buffer *buffer, uint64_t *out_address)
{
    WEIR_REQUIRE(NULL, out_address);
    *out_address = 0;
    WEIR_ENTER(buffer);
    const weir_device *device = buffer->member.device;
    if (buffer->size == 0) // freed to its pool
        return weir__told(
            weir__buffer_check_range(buffer, &(struct weir__role){"weir_buffer_address", NULL}, 0,
                                     1, NULL, 0));
    if (!device->limits.device_addresses)
        return weir__told(
            weir__fail_at(NULL, 0, buffer->member.object.label, WEIR_ERROR_UNSUPPORTED,
                          "pass the buffer as an argument, and offsets into it",
                          "weir_buffer_address: device '%s' has no addresses of buffers "
                          "(limits.device_addresses is 0)",
                          device->info.name));
    const struct weir_link *first = device->first;
    weir_status status = first->ops->buffer_address(first, buffer, out_address);
    if (status < 0)
        weir__error_place(status, buffer->member.object.label, NULL, 0);
    return weir__told(status);
}
