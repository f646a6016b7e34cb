// What the host does between submissions, and its calls in queues.
//
// A host call comes after everything before it in its queue, so while its function runs the host
// knows that this has finished. What the function uses itself is the queue's use, at the place of
// the call, while later operations may have been submitted before it: a late user.
#include "plugins/check/parts.h"

#include <stdlib.h>

// The calling thread, or with `everywhere` the whole host, knows that everything before `count` of
// `producer` has finished.
static void check_host_learns(struct check *check, const struct check_actor *producer,
                              uint64_t count, bool everywhere)
{
    struct check_actor *self = check->strict && !everywhere ? check_thread_self(check) : NULL;
    if (!self) {
        check_floor_learn(&check->actors, producer, count);
    } else if (check_actor_learn(&check->actors, self, self->last + 1, producer, count)) {
        self->last++;
        check_news(check);
    }
}

struct check_call {
    struct check_call *next; // of the queue
    struct check *check;
    struct check_queue *queue;
    weir_host_function function;
    void *user;
    uint64_t count;
    struct check_call *outer; // of the thread
    uint32_t open;            // accesses that the function has begun and not ended
};

WEIR_MODULE_THREAD_LOCAL struct check_call *check_innermost_call;

// With the lock held.
static struct check_call *call_of(const struct check *check)
{
    if (check->waiting_calls == 0)
        return NULL;
    struct check_call *call = check_innermost_call;
    while (call && call->check != check)
        call = call->outer;
    return call;
}

struct check_actor *check_call_place(const struct check *check, uint64_t *out_count)
{
    const struct check_call *call = call_of(check);
    *out_count = call ? call->count : 0;
    return call ? &call->queue->actor : NULL;
}

// Host calls.

// Nearly always the first of its queue.
void check_call_give_back(struct check_call *call)
{
    struct check_call **at = &call->queue->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (!*at)
        call->queue->calls_end = at;
    call->check->waiting_calls--;
    free(call);
}

static weir_status run_call(void *user)
{
    struct check_call *call = user;
    struct check *check = call->check;
    call->outer = check_innermost_call;
    check_innermost_call = call;
    check_lock(check);
    if (check->needless)
        check_hint_host_learns(check, call->queue, call->count - 1, NULL);
    check_host_learns(check, &call->queue->actor, call->count - 1, false);
    check_news(check); // what the thread releases is more from now on
    check_unlock(check);
    const weir_status status = call->function(call->user);
    check_innermost_call = call->outer;
    check_lock(check);
    if (!check->strict)
        check_floor_learn(&check->actors, &call->queue->actor, call->count);
    check_call_give_back(call);
    check_unlock(check);
    return status;
}

// With `strict` what the function learns is the queue's from the call on.
static struct check_call *take_call(struct check *check, struct check_queue *queue,
                                    const struct weir_operation *operation)
{
    struct check_call *call = malloc(sizeof *call);
    if (!call)
        return NULL;
    *call = (struct check_call){
        .check = check,
        .queue = queue,
        .function = operation->u.host_call.function,
        .user = operation->u.host_call.user,
        .count = queue->actor.base + operation->sequence,
    };
    check_lock(check);
    *queue->calls_end = call;
    queue->calls_end = &call->next;
    check->waiting_calls++;
    check_actors_mark(&check->actors, check->strict ? &queue->actor : NULL, call->count);
    check_unlock(check);
    return call;
}

weir_status check_forward_call(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation)
{
    struct check *check = check_of(link);
    struct check_call *call = take_call(check, check_queue_of(link, object), operation);
    if (!call)
        return weir_host_no_memory(link->host, "a host call");
    struct weir_operation_room room;
    struct weir_operation *wrapped = weir_operation_copy(&room, operation);
    wrapped->u.host_call.function = run_call;
    wrapped->u.host_call.user = call;
    const weir_status status = link->next->ops->queue_submit(link->next, object, wrapped);
    if (status < 0) {
        check_lock(check);
        check_call_give_back(call);
        check_unlock(check);
    }
    return status;
}

// Accesses.

static struct check_origin origin_of(const struct check *check, const struct weir_host_note *note)
{
    return check_origin_at(check, note->file, note->line, 0);
}

// The function of a host call begins an access.
static void use_in_call(struct check *check, const struct check_call *call,
                        struct check_buffer *buffer, const struct check_shape *shape,
                        const struct weir_host_note *note)
{
    struct check_user user = {
        .actors = &check->actors,
        .actor = &call->queue->actor,
        .count = call->count,
        .counts = check_actor_clock_at(&call->queue->actor, call->count),
        .thread = check->strict ? check_thread_self(check) : NULL,
        .late = true,
        .origin = origin_of(check, note),
    };
    if (check->needless)
        check_hint_forget_use(check, user.actor->index, call->count);
    check_use_bytes(check, &user, buffer, shape, note->u.access.access);
}

// With one actor for all threads an access that has ended comes before all that follows, and so does
// one of the library's own memory, which it hands from thread to thread in order.
static void use_in_thread(struct check *check, struct check_buffer *buffer,
                          const struct check_shape *shape, const struct weir_host_note *note)
{
    const bool strict = check->strict && !(note->flags & WEIR_HOST_NOTE_INTERNAL);
    struct check_actor *thread = strict ? check_thread_self(check) : NULL;
    struct check_user user = {
        .actors = &check->actors,
        .actor = thread,
        .count = thread ? ++thread->last : 0,
        .passing = !thread,
        .origin = origin_of(check, note),
    };
    check_use_bytes(check, &user, buffer, shape, note->u.access.access);
    if (thread)
        check_news(check);
    if (thread && check->waiting_calls) // as for operations
        thread->recorded = user.count;
}

// If out of memory, the access is not seen until it ends.
static void keep_open(struct check *check, struct check_buffer *buffer,
                      const struct weir_host_note *note)
{
    struct check_open *open = malloc(sizeof *open);
    if (!open)
        return;
    open->begin = note->u.access.offset;
    open->size = note->u.access.size;
    open->access = note->u.access.access;
    open->origin = origin_of(check, note);
    open->next = buffer->open;
    buffer->open = open;
}

static void note_end(struct check *check, const struct weir_host_note *note)
{
    struct check_buffer *buffer = check_buffer_of(check->link, note->u.access.buffer);
    struct check_open **at = &buffer->open;
    check_lock(check);
    struct check_call *call = call_of(check);
    if (call && call->open > 0 && note->u.access.size > 0) {
        call->open--;
    } else {
        while (*at && ((*at)->access != note->u.access.access ||
                       (*at)->begin != note->u.access.offset || (*at)->size != note->u.access.size))
            at = &(*at)->next;
        struct check_open *open = *at;
        if (open)
            *at = open->next;
        free(open);
    }
    check_unlock(check);
}

// An access that is refused here ends for the next links.
static WEIR_COLD void take_access_back(const struct weir_link *link,
                                       const struct weir_host_note *note)
{
    struct weir_host_note end = {.struct_size = sizeof end, .kind = WEIR_HOST_NOTE_END};
    end.flags = note->flags;
    end.line = note->line;
    end.file = note->file;
    end.u.access = note->u.access;
    note_end(check_of(link), &end);
    (void)link->next->ops->host_note(link->next, &end);
}

// Accesses of a host call are only counted, so that their ends are told from those of accesses outside.
static weir_status note_begin(const struct weir_link *link, const struct weir_host_note *note)
{
    struct check *check = check_of(link);
    weir_status status = link->next->ops->host_note(link->next, note);
    if (status < 0 || note->u.access.size == 0)
        return status;
    struct check_buffer *buffer = check_buffer_of(link, note->u.access.buffer);
    const struct check_shape shape = check_shape_range(note->u.access.offset, note->u.access.size);
    check_lock(check);
    struct check_call *call = call_of(check);
    if (call) {
        use_in_call(check, call, buffer, &shape, note);
        call->open++;
    } else {
        use_in_thread(check, buffer, &shape, note);
        keep_open(check, buffer, note);
    }
    status = check_unlock(check);
    if (status < 0)
        take_access_back(link, note);
    return status;
}

static void note_complete(struct check *check, const struct weir_host_note *note)
{
    struct check_queue *queue = check_queue_of(check->link, note->u.complete.producer);
    const uint64_t count = queue->actor.base + note->u.complete.event.sequence;
    check_lock(check);
    if (check->needless)
        check_hint_host_learns(check, queue, count, note);
    check_host_learns(check, &queue->actor, count, note->flags & WEIR_HOST_NOTE_INTERNAL);
    check_unlock(check);
}

weir_status check_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    struct check *check = check_of(link);
    switch (note->kind) {
    case WEIR_HOST_NOTE_BEGIN:
        return note_begin(link, note);
    case WEIR_HOST_NOTE_END:
        note_end(check, note);
        break;
    case WEIR_HOST_NOTE_COMPLETE:
        note_complete(check, note);
        break;
    default: // newer than this plugin
        break;
    }
    return link->next->ops->host_note(link->next, note);
}
