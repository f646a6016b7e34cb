// The queue's operations but launches: the checks of their operands, and the calls of users. A refused argument
// returns before the submit lock is taken; after that only a number is assigned and the chain is called. The checks
// are written so that nothing wraps, and so that the common case has no taken branches.

#include "core/object/buffer.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"

// Two devices may have one name, and so have two runtimes' and one that is opened twice.
WEIR_COLD static weir_status refuse_device(const struct weir__caller *caller,
                                           const struct weir__role *role, const weir_buffer *buffer)
{
    const weir_device *device = buffer->member.device;
    const char *label = buffer->member.object.label;
    const char *queue = weir__label_or_none(caller->label);
    if (device->runtime != caller->device->runtime)
        return weir__refuse(caller, label, "open both devices in one runtime",
                            "%s: %s belongs to device '%s' of another runtime than queue '%s'",
                            role->call, role->name, device->info.name, queue);
    if (device->index == caller->device->index)
        return weir__refuse(caller, label, "open the device once, or copy through HOST buffers",
                            "%s: %s belongs to device '%s' as it was opened another time than for "
                            "queue '%s'",
                            role->call, role->name, device->info.name, queue);
    return weir__refuse(caller, label, "copy through a HOST buffer of each device",
                        "%s: %s belongs to device '%s' (index %zu), queue '%s' to '%s' (index "
                        "%zu)",
                        role->call, role->name, device->info.name, device->index, queue,
                        caller->device->info.name, caller->device->index);
}

// The range is of a buffer of the caller's device, or of a peer's that it may use.
static weir_status check_buffer(const struct weir__caller *caller, const struct weir__role *role,
                                const weir_buffer *buffer, size_t offset, size_t size, bool peer)
{
    if (!buffer)
        return weir__refuse(caller, caller->label,
                            "create it first; destroying it sets the pointer to NULL",
                            "%s: %s is no buffer (NULL)", role->call, role->name);
    if (buffer->member.device != caller->device && !peer)
        return refuse_device(caller, role, buffer);
    return weir__buffer_check_range(buffer, role, offset, size, caller->file, caller->line);
}

WEIR_COLD static weir_status refuse_overlap(const struct weir__caller *caller, const char *call,
                                            const struct weir_box *box)
{
    return weir__refuse(caller, box->dst.buffer->member.object.label,
                        "copy through a second buffer",
                        "%s of %zu bytes from offset %zu to %zu of one buffer: the ranges overlap",
                        call, weir_box_bytes(box), box->src.offset, box->dst.offset);
}

// One side of a copy, which may be of a peer of the queue's device if `other`, the other side, is not.
static weir_status check_side(const struct weir__caller *caller, const struct weir__role *role,
                              const weir_buffer *buffer, size_t offset, size_t size,
                              const weir_buffer *other)
{
    if (!buffer || !other || buffer->member.device == caller->device)
        return check_buffer(caller, role, buffer, offset, size, false);
    if (other->member.device != caller->device)
        return weir__refuse(caller, buffer->member.object.label,
                            "use a queue of the device of one of the two",
                            "%s: neither buffer of the copy belongs to device '%s' of queue '%s'",
                            role->call, caller->device->info.name,
                            weir__label_or_none(caller->label));
    if (!caller->peers && weir__peer_can(caller->device, buffer->member.device))
        return weir__refuse(caller, buffer->member.object.label,
                            "submit it before or after the graph's launch",
                            "%s: a graph holds no copies between devices, and %s belongs to '%s'",
                            role->call, role->name, buffer->member.device->info.name);
    bool allowed = false;
    const weir_status status = weir__peer_allow(caller->device, buffer->member.device, &allowed);
    if (status == WEIR_OK)
        return check_buffer(caller, role, buffer, offset, size, allowed);
    weir__error_place(status, buffer->member.object.label, caller->file, caller->line);
    return status;
}

// A copy of one range, the most frequent operation, has a path of its own.
static weir_status describe_copy(const struct weir__caller *caller, weir_buffer *dst,
                                 size_t dst_offset, weir_buffer *src, size_t src_offset,
                                 size_t size, struct weir_operation *out_operation)
{
    static const struct weir__role to = {"copy", "dst"}, from = {"copy", "src"};
    TRY(check_side(caller, &to, dst, dst_offset, size, src));
    TRY(check_side(caller, &from, src, src_offset, size, dst));
    weir__operation_begin(out_operation, WEIR_OPERATION_COPY, size ? 0 : WEIR_OPERATION_EMPTY,
                          caller->file, caller->line);
    weir_box_row(&out_operation->u.box, dst, dst_offset, src, src_offset, size);
    if (dst == src &&
        (dst_offset < src_offset ? src_offset - dst_offset : dst_offset - src_offset) < size)
        return refuse_overlap(caller, "copy", &out_operation->u.box);
    return WEIR_OK;
}

static weir_status check_native_argument(const struct weir__caller *caller, size_t index,
                                         const struct weir_argument *argument)
{
    char name[32];
    const struct weir__role role = {"native call", name};
    snprintf(name, sizeof name, "argument %zu", index);
    if (argument->kind != WEIR_PARAMETER_BUFFER)
        return weir__refuse(caller, caller->label, "give values to the function through `user`",
                            "native call: %s is no buffer", name);
    if (argument->access < WEIR_ACCESS_READ || argument->access > WEIR_ACCESS_READ_WRITE)
        return weir__refuse(caller, caller->label,
                            "make arguments with weir_in(), weir_out() or weir_inout()",
                            "native call: access %d of %s is none of weir_access",
                            (int)argument->access, name);
    return check_buffer(caller, &role, argument->buffer, argument->offset, argument->size, false);
}

weir_status weir__operation_native(const struct weir__caller *caller,
                                   const struct weir_operation *operation)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < operation->u.native.argument_count && status == WEIR_OK; i++)
        status = check_native_argument(caller, i, &operation->u.native.arguments[i]);
    return status;
}

// Copies of rows and of slices, and fills.

// Bytes from the first to the last of `count` parts of `size` bytes, whose starts are `pitch` apart; false if
// that wraps.
static bool extent(size_t size, size_t count, size_t pitch, size_t *out_size)
{
    *out_size = 0;
    if (size == 0 || count == 0)
        return true;
    if (count > 1 && pitch > (SIZE_MAX - size) / (count - 1))
        return false;
    *out_size = (count - 1) * pitch + size;
    return true;
}

static bool volume_extent(const struct weir_volume *volume, size_t width, size_t height,
                          size_t depth, size_t *out_size)
{
    size_t slice;
    return extent(width, height, volume->pitch, &slice) &&
           extent(slice, depth, volume->slice_pitch, out_size);
}

static weir_status check_volume(const struct weir__caller *caller, const struct weir__role *role,
                                const struct weir_volume *volume, size_t width, size_t height,
                                size_t depth, const weir_buffer *other)
{
    size_t size;
    if (volume->pitch < width)
        return weir__refuse(caller, caller->label,
                            "both count bytes; a pitch leads from a row to the next",
                            "%s: the pitch of %s, %zu, is below the width, %zu", role->call,
                            role->name, volume->pitch, width);
    if (depth > 1 && volume_extent(volume, width, height, 1, &size) && volume->slice_pitch < size)
        return weir__refuse(caller, caller->label,
                            "a slice pitch counts bytes, and leads from a slice to the next",
                            "%s: the slice pitch of %s, %zu, is below the %zu bytes that the "
                            "rows of a slice take",
                            role->call, role->name, volume->slice_pitch, size);
    if (!volume_extent(volume, width, height, depth, &size))
        size = SIZE_MAX;
    return check_side(caller, role, volume->buffer, volume->offset, size, other);
}

// Whether a multiple of `pitch` is less than `width` away from `shift`, for one of the two
// multiples next to it, which is then `*out_rows`.
static bool meets(size_t shift, size_t pitch, size_t width, bool upper, size_t *out_rows)
{
    *out_rows = shift / pitch + upper;
    return upper ? pitch - shift % pitch < width : shift % pitch < width;
}

// Whether two boxes with the same pitches have a byte in common, if one begins `shift` bytes after
// the other and a slice has `rows` pitches: row and byte are counted like digits, and a
// distance has the two representations that `meets` finds.
static bool boxes_meet(size_t shift, size_t pitch, size_t rows, size_t width, size_t height,
                       size_t depth)
{
    for (int upper_row = 0; upper_row < 2; upper_row++) {
        size_t row;
        if (!meets(shift, pitch, width, upper_row, &row))
            continue;
        for (int upper_slice = 0; upper_slice < 2; upper_slice++) {
            size_t slice;
            if (meets(row, rows, height, upper_slice, &slice) && slice < depth)
                return true;
        }
    }
    return false;
}

// Slices and rows interleave freely, so two volumes of one buffer are refused if their whole
// extents intersect, unless they share both pitches, a slice pitch is a multiple of the pitch and
// no byte is in both.
static bool volumes_overlap(const struct weir_volume *dst, const struct weir_volume *src,
                            size_t width, size_t height, size_t depth)
{
    const struct weir_volume *low = dst->offset < src->offset ? dst : src;
    const struct weir_volume *high = low == dst ? src : dst;
    size_t low_size;
    if (dst->buffer != src->buffer || !volume_extent(low, width, height, depth, &low_size) ||
        high->offset - low->offset >= low_size)
        return false;
    if (dst->pitch != src->pitch ||
        (depth > 1 && (dst->slice_pitch != src->slice_pitch || dst->slice_pitch < dst->pitch ||
                       dst->slice_pitch % dst->pitch)))
        return true;
    return boxes_meet(high->offset - low->offset, low->pitch,
                      depth > 1 ? low->slice_pitch / low->pitch : SIZE_MAX, width, height, depth);
}

// The bytes of the pattern divide all that counts bytes. A single row has no pitch.
WEIR_COLD static weir_status refuse_multiples(const struct weir__caller *caller, const char *call,
                                              const struct weir_box *box)
{
    const char *width_name = strcmp(call, "fill") == 0 ? "size" : "width";
    char pitch[48] = "";
    if (box->height > 1)
        snprintf(pitch, sizeof pitch, ", pitch %zu", box->dst.pitch);
    return weir__refuse(caller, box->dst.buffer->member.object.label,
                        "they count bytes, not patterns",
                        "%s: offset %zu%s and %s %zu must be multiples of the pattern's %zu bytes",
                        call, box->dst.offset, pitch, width_name, box->width, box->pattern_size);
}

weir_status weir__operation_box(const struct weir__caller *caller, const char *call,
                                struct weir_operation *operation)
{
    const struct weir__role to = {call, "dst"}, from = {call, "src"};
    const struct weir_box *box = &operation->u.box;
    const size_t width = box->width, height = box->height, depth = box->depth;
    const size_t bytes = box->pattern_size;
    const bool fills = operation->kind == WEIR_OPERATION_FILL;
    if (fills && (bytes == 0 || bytes > 16 || (bytes & (bytes - 1))))
        return weir__refuse(caller, caller->label, "pass sizeof of the value that is repeated",
                            "%s: a pattern has 1, 2, 4, 8 or 16 bytes, not %zu", call, bytes);
    TRY(check_volume(caller, &to, &box->dst, width, height, depth, box->src.buffer));
    if (!fills)
        TRY(check_volume(caller, &from, &box->src, width, height, depth, box->dst.buffer));
    if (fills && (box->dst.offset | width | (height > 1 ? box->dst.pitch : 0)) % bytes)
        return refuse_multiples(caller, call, box);
    if (width == 0 || height == 0 || depth == 0)
        operation->flags |= WEIR_OPERATION_EMPTY;
    else if (volumes_overlap(&box->dst, &box->src, width, height, depth))
        return refuse_overlap(caller, call, box);
    return WEIR_OK;
}

// Whether one row lies in a buffer of the device: the name of a range is written for the others only.
static bool is_plain_range(const struct weir__caller *caller, const struct weir_note_range *range)
{
    return range->rows <= 1 && range->slices <= 1 && range->access >= WEIR_ACCESS_READ &&
           range->access <= WEIR_ACCESS_READ_WRITE && range->buffer &&
           range->buffer->member.device == caller->device &&
           weir__buffer_holds(range->buffer, range->offset, range->size);
}

// A zero count is one, and its pitch that of adjacent rows or slices.
static weir_status check_note_range(const struct weir__caller *caller, size_t index,
                                    const struct weir_note_range *range)
{
    char name[32];
    const struct weir__role role = {"note", name};
    const size_t rows = range->rows ? range->rows : 1;
    const size_t slices = range->slices ? range->slices : 1;
    const struct weir_volume volume = {range->buffer, range->offset,
                                       rows > 1 ? range->pitch : range->size, range->slice_pitch};
    snprintf(name, sizeof name, "range %zu", index);
    if (range->access < WEIR_ACCESS_READ || range->access > WEIR_ACCESS_READ_WRITE)
        return weir__refuse(caller, caller->label, "use WEIR_ACCESS_READ, _WRITE or _READ_WRITE",
                            "note: access %d of %s is none of weir_access", (int)range->access,
                            name);
    return check_volume(caller, &role, &volume, range->size, rows, slices, NULL);
}

// `params` has a name, and ranges unless there are none.
static weir_status describe_note(const struct weir__caller *caller,
                                 const struct weir_note_params *params,
                                 struct weir_operation *out_operation)
{
    for (size_t i = 0; i < params->range_count; i++) {
        TRY(is_plain_range(caller, &params->ranges[i])
                ? WEIR_OK
                : check_note_range(caller, i, &params->ranges[i]));
    }
    weir__operation_begin(out_operation, WEIR_OPERATION_NOTE, 0, caller->file, caller->line);
    out_operation->u.note.name = weir__file_name(params->name);
    out_operation->u.note.ranges = params->ranges;
    out_operation->u.note.range_count = params->range_count;
    out_operation->u.note.work = params->work;
    out_operation->u.note.timed = params->timed;
    return WEIR_OK;
}

// Submission.

weir_status weir__queue_refuse_capturing(const weir_queue *queue, const char *file, int line,
                                         const char *why, const char *remedy)
{
    const char *label = queue->member.object.label;
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID, remedy,
                         "queue '%s' captures a graph, and %s", weir__label_or_none(label), why);
}

WEIR_COLD static weir_status refuse(weir_queue *queue, const struct weir_operation *operation)
{
    return weir__tell_refused(weir__completion_refuse(queue),
                              weir_operation_kind_name(operation->kind), operation->file,
                              operation->line);
}

weir_status weir__queue_submit(weir_queue *queue, struct weir_operation *operation)
{
    weir_status status;
    WEIR_REFUSE_CALLBACK(queue, operation->file, operation->line);
    weir__queue_enter(queue);
    if (!weir__is_capturing(queue) || !queue->capture_ops->note(queue, operation, &status))
        status = atomic_load_explicit(&queue->completion.failed, memory_order_acquire) &&
                         !weir__is_always(operation)
                     ? refuse(queue, operation)
                     : weir__queue_submit_locked(queue, operation);
    weir_lock_release(&queue->submit_lock);
    return status;
}

static struct weir__caller caller_of(const weir_queue *queue, const char *file, int line)
{
    return (struct weir__caller){queue->member.device, queue->member.object.label, file, line,
                                 !weir__is_capturing(queue)};
}

weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t src_offset, size_t size, const char *file,
                               int line)
{
    WEIR_ENTER_AT(file, line, queue, dst, src);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status = describe_copy(&caller, dst, dst_offset, src, src_offset, size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

// The box is written already.
static weir_status submit_box(weir_queue *queue, const char *call, enum weir_operation_kind kind,
                              struct weir_operation *operation, const char *file, int line)
{
    const struct weir__caller caller = caller_of(queue, file, line);
    weir__operation_begin(operation, kind, 0, file, line);
    weir_status status = weir__operation_box(&caller, call, operation);
    return status < 0 ? status : weir__queue_submit(queue, operation);
}

weir_status weir_queue_copy_2d_at(weir_queue *queue, struct weir_plane dst, struct weir_plane src,
                                  size_t width, size_t height, const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, queue, dst.buffer, src.buffer);
    weir__box_copy(&operation.u.box, dst, src, width, height);
    return submit_box(queue, "copy_2d", WEIR_OPERATION_COPY, &operation, file, line);
}

weir_status weir_queue_copy_3d_at(weir_queue *queue, struct weir_volume dst, struct weir_volume src,
                                  size_t width, size_t height, size_t depth, const char *file,
                                  int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, queue, dst.buffer, src.buffer);
    operation.u.box = (struct weir_box){dst, src, width, height, depth, NULL, 0};
    return submit_box(queue, "copy_3d", WEIR_OPERATION_COPY, &operation, file, line);
}

weir_status weir_queue_fill_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset, size_t size,
                               const void *pattern, size_t pattern_size, const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, queue, dst);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), pattern);
    weir__box_fill(&operation.u.box, (struct weir_plane){dst, dst_offset, size}, size, 1, pattern,
                   pattern_size);
    return submit_box(queue, "fill", WEIR_OPERATION_FILL, &operation, file, line);
}

weir_status weir_queue_fill_2d_at(weir_queue *queue, struct weir_plane dst, size_t width,
                                  size_t height, const void *pattern, size_t pattern_size,
                                  const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, queue, dst.buffer);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), pattern);
    weir__box_fill(&operation.u.box, dst, width, height, pattern, pattern_size);
    return submit_box(queue, "fill_2d", WEIR_OPERATION_FILL, &operation, file, line);
}

weir_status weir_queue_host_call_at(weir_queue *queue, weir_host_function function, void *user,
                                    const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_HOST_CALL, 0, file, line);
    operation.u.host_call.function = function;
    operation.u.host_call.user = user;
    return weir__queue_submit(queue, &operation);
}

weir_status weir_queue_note_at(weir_queue *queue, const struct weir_note_params *params,
                               uint64_t *out_note, const char *file, int line)
{
    struct weir_note_params known;
    struct weir_operation operation;
    if (out_note)
        *out_note = 0;
    WEIR_ENTER_AT(file, line, queue);
    WEIR_READ_PARAMS(file, line, weir_note_params, params, &known);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), params->name);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue),
                    params->ranges || params->range_count == 0);
    for (size_t i = 0; weir__is_unusual() && i < params->range_count; i++)
        WEIR_LOOK_AT(file, line, params->ranges[i].buffer);
    const struct weir__caller caller = caller_of(queue, file, line);
    TRY(describe_note(&caller, params, &operation));
    weir_status status = weir__queue_submit(queue, &operation);
    if (status == WEIR_OK && out_note)
        *out_note = operation.sequence;
    return status;
}

weir_status weir_queue_note_times(weir_queue *queue, uint64_t note, uint64_t begin_ns,
                                  uint64_t end_ns)
{
    WEIR_ENTER(queue);
    WEIR_REQUIRE(weir_queue_label(queue), note > 0);
    WEIR_REQUIRE(weir_queue_label(queue), begin_ns <= end_ns);
    if (weir__takes_notes(queue->member.device))
        weir__host_note_ran(WEIR_HOST_NOTE_TIMES, queue, note, begin_ns, end_ns,
                            &(struct weir__host_caller){0});
    return WEIR_OK;
}

weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event, const char *file,
                                 int line)
{
    struct weir_operation operation;
    WEIR_REQUIRE_AT(file, line, NULL, out_event);
    *out_event = (struct weir_event){0};
    WEIR_ENTER_AT(file, line, queue);
    weir__operation_begin(&operation, WEIR_OPERATION_RECORD, 0, file, line);
    const weir_status status = weir__queue_submit(queue, &operation);
    if (status == WEIR_OK)
        *out_event = (struct weir_event){queue->member.object.id, operation.sequence};
    return status;
}

weir_status weir_queue_flush_at(weir_queue *queue, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    weir_status status = queue->first->ops->queue_flush(queue->first, queue);
    if (status < 0)
        weir__error_place(status, queue->member.object.label, file, line);
    return status;
}

// For the sake of another queue. A failure, which the backend tells once, is booked as the queue's own.
static void finish_all(const weir_runtime *runtime)
{
    const struct weir_error saved = *weir_last_error();
    for (weir_queue *queue = NULL; (queue = weir__queue_next(NULL, queue));) {
        const bool ours = queue->member.device->runtime == runtime;
        const weir_status status = ours ? weir__queue_finish(queue) : WEIR_OK;
        if (status < 0 && !atomic_load(&queue->completion.failed))
            weir__queue_fail(queue, NULL, status);
    }
    weir__error_set(&saved);
}

// Takes the submit lock once the producers of the failed queue's waits have ended; more may come while they
// are waited for.
static void enter_settled(weir_queue *queue)
{
    const atomic_uint_fast32_t *refused = &queue->completion.refused;
    for (;;) {
        const uint_fast32_t known = atomic_load(refused);
        if (weir__refused_any(queue))
            finish_all(queue->member.device->runtime);
        weir_lock_take(&queue->submit_lock);
        if (atomic_load(refused) == known)
            return;
        weir_lock_release(&queue->submit_lock);
    }
}

weir_status weir_queue_recover_at(weir_queue *queue, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REFUSE_HOST_CALL_AT(file, line, queue->member.object.label,
                             "call it on a thread of the program's");
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "weir_queue_recover would mix with it",
                                            "end or cancel the capture first");
    if (!atomic_load(&queue->completion.failed))
        return WEIR_OK;
    weir_status status = weir__completion_refuse(queue);
    if (status == WEIR_ERROR_DEVICE_LOST)
        return status;
    // After the lock was taken later submits see the failure. What a failed queue takes, calls that
    // always run and frees to pools, may still come, and is told of the failure.
    // The wait itself is outside the lock, since a running host call may need it.
    weir_lock_take(&queue->submit_lock);
    const bool failed = atomic_load(&queue->completion.failed);
    const uint64_t recoveries = queue->completion.recoveries;
    weir_lock_release(&queue->submit_lock);
    if (!failed) // another thread has recovered it: a later failure is not this call's
        return WEIR_OK;
    status = weir__queue_finish(queue);
    if (status < 0)
        return status;
    // Not the last number: what came since may run still.
    const struct weir_event last = {queue->member.object.id,
                                    atomic_load(&queue->completion.completed)};
    enter_settled(queue);
    // Another thread may have recovered it meanwhile: then its waits since are not over.
    const bool recovers =
        atomic_load(&queue->completion.failed) && queue->completion.recoveries == recoveries;
    if (recovers) {
        weir__completion_recover(queue, queue->sequence);
        queue->saw = queue->sequence; // the legacy queue does not get its failure
    }
    weir_lock_release(&queue->submit_lock);
    if (recovers && weir__takes_notes(queue->member.device))
        weir__host_note_complete(queue, last, status,
                                 &(struct weir__host_caller){file, line, 0, NULL});
    return status;
}
