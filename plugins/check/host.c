// What the host does between submissions, and its calls in queues.
//
// A host call comes after everything before it in its queue, so while its function runs the host
// knows that this has finished. What the function uses itself is the queue's use, at the place of
// the call, while later operations may have been submitted before it: a late user.
#include "plugins/check/parts.h"

// The calling thread, or with `everywhere` the whole host, knows that everything before `count` of
// `producer` has finished.
static void check_host_learns(struct check *check, const struct check_actor *producer,
                              uint64_t count, bool everywhere)
{
    struct check_actor *self = check->strict && !everywhere ? check_thread_self(check) : NULL;
    if (!self) {
        check_clock_join(&check->actors, check->actors.floor, producer, count);
    } else if (check_actor_learn(&check->actors, self, self->last + 1, producer, count)) {
        self->last++;
        check_news(check);
    }
}

// The queue of the call that the thread runs, of any link; NULL: none.
static WEIR_MODULE_THREAD_LOCAL struct check_queue *innermost;

// With the lock held.
static struct check_queue *caller_of(const struct check *check)
{
    if (check->waiting_calls == 0)
        return NULL;
    struct check_queue *queue = innermost;
    while (queue && queue->check != check)
        queue = queue->outer;
    return queue;
}

struct check_actor *check_call_place(const struct check *check, uint64_t *out_count)
{
    struct check_queue *queue = caller_of(check);
    *out_count = queue ? queue->call : 0;
    return queue ? &queue->actor : NULL;
}

// Host calls.

void check_calls_end(struct check *check, struct check_queue *queue, uint32_t count)
{
    queue->waiting_calls -= count;
    check->waiting_calls -= count;
}

static void begin_call(struct check *check, const struct weir_host_note *note)
{
    struct check_queue *queue = check_queue_of(check->link, note->u.ran.queue);
    queue->call = queue->actor.base + note->u.ran.sequence;
    queue->check = check;
    queue->open = 0;
    queue->outer = innermost;
    innermost = queue;
    check_lock(check);
    if (check->needless)
        check_hint_host_learns(check, queue, queue->call - 1, NULL);
    check_host_learns(check, &queue->actor, queue->call - 1, false);
    check_news(check); // what the thread releases is more from now on
    check_unlock(check);
}

static void end_call(struct check *check, const struct weir_host_note *note)
{
    struct check_queue *queue = check_queue_of(check->link, note->u.ran.queue);
    struct check_queue **at = &innermost;
    while (*at != queue)
        at = &(*at)->outer;
    *at = queue->outer;
    check_lock(check);
    if (!check->strict)
        check_clock_join(&check->actors, check->actors.floor, &queue->actor, queue->call);
    check_calls_end(check, queue, queue->waiting_calls > 0); // none: a later plugin made it
    check_unlock(check);
}

// Accesses.

static struct check_origin origin_of(const struct check *check, const struct weir_host_note *note)
{
    return check_origin_at(check, note->file, note->line, 0);
}

// The function of a host call begins an access.
static void use_in_call(struct check *check, struct check_queue *queue, struct check_buffer *buffer,
                        const struct check_shape *shape, const struct weir_host_note *note)
{
    struct check_user user = {
        .actors = &check->actors,
        .actor = &queue->actor,
        .count = queue->call,
        .counts = check_actor_clock_at(&queue->actor, queue->call),
        .thread = check->strict ? check_thread_self(check) : NULL,
        .late = true,
        .origin = origin_of(check, note),
    };
    if (check->needless)
        check_hint_forget_use(check, user.actor->index, user.count);
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
    struct check_queue *caller = caller_of(check);
    if (caller && caller->open > 0 && note->u.access.size > 0) {
        caller->open--;
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
    struct check_queue *caller = caller_of(check);
    if (caller) {
        use_in_call(check, caller, buffer, &shape, note);
        caller->open++;
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
    case WEIR_HOST_NOTE_CALL:
        if (!(note->flags & WEIR_HOST_NOTE_INTERNAL))
            begin_call(check, note);
        break;
    case WEIR_HOST_NOTE_RAN: // a collective is INTERNAL
        if (!(note->flags & WEIR_HOST_NOTE_INTERNAL))
            end_call(check, note);
        break;
    default: // of no interest here
        break;
    }
    return link->next->ops->host_note(link->next, note);
}
