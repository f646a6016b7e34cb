// Creation, finding and destruction of queues, the records of their end, and the library's own
// queries; and the destruction of what work may still use.
#include "core/queue/queue.h"

#include <inttypes.h>

#include "core/queue/operation.h"

// Finding the queue of an event. An event holds a queue's id and outlives the
// queue, so the id is looked up: without a lock, and safely against the queue
// being destroyed on another thread.
//
// An id is (generation << 16 | slot). Slots stay, so a lookup with a stale id may
// read one; it then finds another id, or no references. A slot's references are taken by
// compare-and-swap from a non-zero count only, then the id is compared: between the two the slot
// cannot be reused, because reuse needs the count to be zero.

enum {
    SLOTS = 65536
};

struct slot {
    atomic_uint_fast64_t id;         // the last one; 0: none yet
    atomic_uint_fast32_t references; // 0: that is not published, or destroyed
    weir_queue *queue;               // NULL once it is being finalized; changes under the lock
    uint32_t next_free;              // plus 1
};

static struct slot slots[SLOTS]; // pages that no queue has used take no memory
static struct weir_lock lock =
    WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_REGISTRY]); // of the two below
static atomic_uint used_count;                                // changes under the lock
static uint32_t first_free;                                   // plus 1; 0: none

static struct slot *slot_of(uint64_t id)
{
    return &slots[id % SLOTS];
}

// Frees the id of a queue that nothing can find: it was never published, or is gone.
static void cancel_id(weir_queue *queue)
{
    struct slot *slot = slot_of(queue->member.object.id);
    weir_lock_take(&lock);
    slot->queue = NULL;
    slot->next_free = first_free;
    first_free = (uint32_t)(slot - slots) + 1;
    weir_lock_release(&lock);
}

// Gives the queue its id, under which it cannot be found yet. Returns false when
// 65,536 queues exist.
static bool reserve_id(weir_queue *queue)
{
    struct slot *slot = NULL;
    weir_lock_take(&lock);
    if (first_free) {
        slot = &slots[first_free - 1];
        first_free = slot->next_free;
    } else if (used_count < SLOTS) {
        slot = &slots[used_count++];
    }
    if (slot)
        slot->queue = queue;
    weir_lock_release(&lock);
    if (!slot)
        return false;
    queue->member.object.id = ((atomic_load(&slot->id) >> 16) + 1) << 16 | (uint64_t)(slot - slots);
    atomic_store(&slot->id, queue->member.object.id);
    return true;
}

weir_queue *weir__registry_pin(uint64_t id)
{
    struct slot *slot = slot_of(id);
    uint_fast32_t count = atomic_load_explicit(&slot->references, memory_order_relaxed);
    do {
        if (count == 0)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&slot->references, &count, count + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    if (atomic_load_explicit(&slot->id, memory_order_relaxed) == id)
        return slot->queue;
    atomic_fetch_sub_explicit(&slot->references, 1, memory_order_release);
    return NULL;
}

void weir__registry_unpin(weir_queue *queue)
{
    if (queue)
        atomic_fetch_sub_explicit(&slot_of(queue->member.object.id)->references, 1,
                                  memory_order_release);
}

weir_queue *weir__queue_next(const weir_device *device, weir_queue *queue)
{
    uint32_t index = queue ? (uint32_t)(queue->member.object.id % SLOTS) + 1 : 0;
    weir__registry_unpin(queue);
    for (queue = NULL; !queue && index < atomic_load(&used_count); index++) {
        queue = weir__registry_pin(atomic_load(&slots[index].id));
        if (queue && device && queue->member.device != device) {
            weir__registry_unpin(queue);
            queue = NULL;
        }
    }
    return queue;
}

bool weir__registry_issued(uint64_t id)
{
    return id >> 16 > 0 && id <= atomic_load(&slot_of(id)->id);
}

// Creation.

static weir_status check_params(weir_device *device, const struct weir_queue_params *params)
{
    const struct weir_limits *limits = &device->limits;
    const char *label = params->label;

    int32_t low = limits->priority_lowest;
    int32_t high = limits->priority_highest;
    int32_t least = low < high ? low : high;
    int32_t most = low < high ? high : low;
    if (params->priority < least || params->priority > most)
        return weir__invalid(label, "0 is always valid",
                             "weir_queue_create: priority %" PRId32 " is outside %" PRId32
                             " … %" PRId32,
                             params->priority, least, most);
    if (params->timing && limits->timing_history == 0)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_UNSUPPORTED, "create it without timing",
                             "weir_queue_create: this device cannot time operations");
    return WEIR_OK;
}

weir_status weir__queue_open(weir_device *device, const char *label, enum weir__queue_owner owner,
                             struct weir_queue_setup *setup, weir_queue **out_queue)
{
    weir_status status;
    weir__device_reap(device);
    weir_queue *queue = weir__member_allocate(device, &weir__queue_class, sizeof *queue, label);
    if (!queue)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a queue");
    queue->member.internal = owner != WEIR__OWNED_BY_USER;
    queue->owner = owner;
    queue->first = device->first;
    queue->timing = setup->timing;
    queue->foreign = setup->native != NULL;
    queue->wrapped = queue->foreign;
    weir_lock_init(&queue->submit_lock, &weir__locks[WEIR__LOCK_SUBMIT]);
    weir_lock_init(&queue->delivery.lock, &weir__locks[WEIR__LOCK_DELIVERY]);
    weir_condition_init(&queue->delivery.changed);
    STAILQ_INIT(&queue->delivery.list);
    STAILQ_INIT(&queue->delivery.spare);
    queue->delivery.backend = weir__chain_backend(device->chain);
    queue->delivery.link = queue->delivery.backend - 1;
    if (!weir__completion_init(&queue->completion) || !reserve_id(queue)) {
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "destroy queues that are no longer used",
                            "no room for a queue: 65,536 of them can exist at once");
        goto fail;
    }

    setup->times = device->chain->times;
    sigset_t before;
    weir_thread_hold_signals(&before);
    WEIR__CREATE_ALONG(status, device->chain, device->chain->count, queue->member.object.data,
                       queue, queue, link->ops->queue_create(link, device, queue, setup, slot));
    weir_thread_release_signals(&before);
    if (status < 0) {
        cancel_id(queue);
        goto fail;
    }
    // From here on the queue can be found, with one reference.
    atomic_store(&slot_of(queue->member.object.id)->references, 1);
    weir__member_enlist(&queue->member);
    *out_queue = queue;
    return WEIR_OK;

fail:
    weir__error_place(status, label, NULL, 0);
    weir__delivery_finish(&queue->delivery);
    weir__completion_finish(&queue->completion);
    weir_lock_finish(&queue->submit_lock);
    weir__member_free(&queue->member);
    return status;
}

weir_status weir_queue_create_at(weir_device *device, const struct weir_queue_params *params,
                                 weir_queue **out_queue, const char *file, int line)
{
    struct weir_queue_params known;
    static const struct weir_queue_params defaults = {.struct_size = sizeof defaults};
    WEIR_ENTER_FOR(file, line, out_queue, device);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(file, line, weir_queue_params, params, &known);
    weir_status status = check_params(device, params);
    if (status < 0)
        return weir__placed(status, file, line);
    struct weir_queue_setup setup = {.struct_size = sizeof setup,
                                     .priority = params->priority,
                                     .timing = params->timing};
    status = weir__queue_open(device, params->label, WEIR__OWNED_BY_USER, &setup, out_queue);
    WEIR_RETURN_CREATED(file, line, out_queue, status);
}

// The caller may destroy the native queue as soon as its work is done. So the last
// record is submitted now, and after that the native queue is never used.
static void leave_native(weir_queue *queue)
{
    struct weir_event end;
    // A driver that refuses a record can still be waited for.
    if (weir__queue_is_busy(queue) && !weir__queue_record_end(queue, &end) &&
        !weir__queue_is_called_back(queue)) {
        struct weir_error saved = *weir_last_error();
        weir__queue_finish(queue);
        weir__error_set(&saved);
    }
    atomic_store(&queue->wrapped, false);
    const struct weir_link *backend = queue->delivery.backend;
    if (backend->ops->queue_leave) // it may be destroyed from now on
        backend->ops->queue_leave(backend, queue);
}

void weir_queue_destroy_at(weir_queue **queue, const char *file, int line)
{
    if (!queue || !*queue || !WEIR_MAY_END(*queue, file, line))
        return;
    weir_queue *gone = *queue;
    *queue = NULL;
    if (gone->owner != WEIR__OWNED_BY_USER) {
        const bool legacy = gone->owner == WEIR__OWNED_BY_DEVICE;
        weir__report_at(
            NULL, 0, gone->member.object.label, WEIR_ERROR_INVALID,
            "do not destroy what you did not create",
            "weir_queue_destroy: this queue came from weir_%s_queue() and goes with its %s",
            legacy ? "legacy" : "thread", legacy ? "device" : "thread or its device");
        weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
        return;
    }
    weir__debug_end(gone, file, line);
    if (gone->foreign)
        leave_native(gone);
    weir__queue_retire(gone, false);
}

// The queue has finished, and nothing refers to it.
static void finalize_queue(struct weir__member *member)
{
    weir_queue *queue = (weir_queue *)(void *)member;
    const struct weir__chain *chain = queue->member.device->chain;
    weir_lock_order_expect_none("a queue is finalized");
    cancel_id(queue);
    // The backend's part is destroyed first, so the worker must no longer be inside the
    // backend.
    weir__delivery_await(&queue->delivery, WEIR__ALL_HELD, WEIR_FOREVER);
    // Plugins are told first that it ends; the last link before the backend is the delivery's.
    for (uint32_t i = 0; i + 2 < chain->count; i++)
        if (chain->links[i].ops->queue_retire)
            chain->links[i].ops->queue_retire(&chain->links[i], queue);
    WEIR__DESTROY_ALONG(chain, chain->count, queue, queue);
    weir__delivery_finish(&queue->delivery);
    weir__completion_finish(&queue->completion);
    weir__release(queue->history);
    weir_lock_finish(&queue->submit_lock);
    weir__member_free(member);
}

const struct weir__class weir__queue_class = {.name = "queue", .finalize = finalize_queue};

const char *weir_queue_label(const weir_queue *queue)
{
    return WEIR_IS_ALIVE(queue) ? queue->member.object.label : "";
}

weir_device *weir_queue_device(const weir_queue *queue)
{
    return WEIR_IS_ALIVE(queue) ? queue->member.device : NULL;
}

weir_status weir__queue_fail(weir_queue *queue, const struct weir_operation *operation,
                             weir_status status)
{
    const struct weir_error detail = weir__error_of(status);
    const char *label = weir__label_or_none(queue->member.object.label);
    const uint64_t first =
        operation ? operation->sequence : atomic_load(&queue->completion.completed) + 1;
    struct weir_error cause = detail;
    snprintf(cause.object, sizeof cause.object, "%s", queue->member.object.label);
    if (operation) {
        cause.file = operation->file;
        cause.line = operation->line;
        snprintf(cause.message, sizeof cause.message,
                 "operation %" PRIu64 " of queue '%s', a %s, failed: %.560s", first, label,
                 weir_operation_kind_name(operation->kind), detail.message);
    } else {
        snprintf(cause.message, sizeof cause.message,
                 "queue '%s' failed at operation %" PRIu64 " or after it: %.560s", label, first,
                 detail.message);
    }
    weir__completion_fail(queue, first, &cause);
    weir__error_set(&cause);
    weir__tell();
    return cause.status;
}

bool weir__queue_record_end_locked(weir_queue *queue, struct weir_event *out_event)
{
    *out_event = (struct weir_event){0};
    if (queue->foreign && !queue->wrapped) { // the native queue may be destroyed
        *out_event = (struct weir_event){queue->member.object.id, queue->last_record};
        return true;
    }
    if (queue->wrapped || queue->last_record != queue->sequence) {
        struct weir_operation operation;
        weir__operation_begin(&operation, WEIR_OPERATION_RECORD, WEIR_OPERATION_INTERNAL, __FILE__,
                              __LINE__);
        if (weir__queue_submit_locked(queue, &operation) < 0)
            return false;
    }
    *out_event = (struct weir_event){queue->member.object.id, queue->sequence};
    return true;
}

bool weir__queue_record_end(weir_queue *queue, struct weir_event *out_event)
{
    bool recorded = true;
    struct weir_error saved = *weir_last_error();
    *out_event = (struct weir_event){0};

    // In a native call the thread holds a submit lock, and takes no other: two such threads
    // could wait for each other. The caller tries again later.
    if (weir__in_native_call())
        return false;
    weir_lock_take(&queue->submit_lock);
    if (queue->wrapped || weir__queue_is_busy(queue))
        recorded = weir__queue_record_end_locked(queue, out_event);
    weir_lock_release(&queue->submit_lock);
    // A lost device runs nothing any more, and accepts no record.
    if (!recorded && weir_last_error()->status == WEIR_ERROR_DEVICE_LOST)
        recorded = true;
    weir__error_set(&saved);
    return recorded;
}

weir_status weir__queue_finish(weir_queue *queue)
{
    uint64_t sequence = atomic_load(&queue->sequence);
    const struct weir_link *first = queue->first;
    weir_status status = WEIR_OK;
    if (!queue->foreign || atomic_load(&queue->wrapped))
        status = first->ops->queue_finish(first, queue);
    else if (queue->last_record)
        status = first->ops->event_wait(first, queue, queue->last_record, WEIR_FOREVER);
    if (status == WEIR_OK)
        weir__completion_complete(queue, sequence);
    return status;
}

// Books the chain's answer and returns the record's status.
static weir_status book(weir_queue *queue, uint64_t sequence, weir_status answer)
{
    if (answer > 0)
        return answer;
    if (answer == WEIR_OK)
        weir__completion_complete(queue, sequence);
    else
        weir__queue_fail(queue, NULL, answer);
    return weir__completion_status(queue, sequence);
}

weir_status weir__queue_query(weir_queue *queue, uint64_t sequence)
{
    const struct weir_link *first = queue->first;
    if (weir__queue_is_past(queue, sequence))
        return weir__completion_status(queue, sequence);
    return book(queue, sequence, first->ops->event_query(first, queue, sequence));
}

weir_status weir__queue_await(weir_queue *queue, uint64_t sequence, uint64_t timeout_ns)
{
    const struct weir_link *first = queue->first;
    if (weir__queue_is_past(queue, sequence))
        return weir__completion_status(queue, sequence);
    const weir_status answer = first->ops->event_wait(first, queue, sequence, timeout_ns);
    const weir_status status = book(queue, sequence, answer);
    return status == WEIR_NOT_READY ? WEIR_TIMEOUT : status;
}

bool weir__event_is_complete(struct weir_event event)
{
    weir_queue *queue = weir__registry_pin(event.queue);
    if (!queue)
        return true;
    const bool complete = weir__queue_query(queue, event.sequence) != WEIR_NOT_READY;
    weir__registry_unpin(queue);
    return complete;
}

// Destruction of what work may still use: see the header. A device's lists are guarded by its lock; frontiers are
// checked without it, by the thread that removed the object from the list.

// Whether the queue may use objects of the device: its own, and those of another one of its runtime
// once one was allowed to.
static bool may_use(const weir_queue *queue, const weir_device *device)
{
    const weir_device *own = queue->member.device;
    return own == device || (own->runtime == device->runtime && atomic_load(&device->has_peers));
}

// Adds the end of the queue to the frontier, which has room for so many, if the queue may be busy: the user's own work on
// the native queue of a wrapped queue is not known. False: no memory, no
// room since there are more queues by now, or the record was refused.
static bool add_end(struct weir__member *member, weir_queue *queue, uint32_t room)
{
    struct weir_event end;
    if (!queue->wrapped && !weir__queue_is_busy(queue))
        return true;
    if (!member->frontier)
        member->frontier = weir__allocate(room * sizeof *member->frontier);
    if (!member->frontier || member->frontier_count == room || !weir__queue_record_end(queue, &end))
        return false;
    if (end.sequence)
        member->frontier[member->frontier_count++] = end;
    return true;
}

static bool is_a_queue(const struct weir__member *member)
{
    return member->class == &weir__queue_class;
}

// A destroyed queue only waits for itself, unless it has failed and a wait of it was refused.
static enum weir__frontier frontier_of(struct weir__member *member)
{
    return is_a_queue(member) && !weir__refused_any((weir_queue *)(void *)member)
               ? WEIR__FRONTIER_ITSELF
               : WEIR__FRONTIER_ALL;
}

// Records the end of every queue that may still use the object. If a record is refused, it is tried again
// when the object is checked next. A queue that is being destroyed is found until none of its work runs any more.
static bool draw_frontier(struct weir__member *member, enum weir__frontier wanted)
{
    const uint32_t room = atomic_load(&used_count);
    bool recorded = true;

    weir__release(member->frontier);
    member->frontier = NULL;
    member->frontier_count = 0;
    if (wanted == WEIR__FRONTIER_ITSELF)
        return !weir__queue_is_busy((weir_queue *)(void *)member) ||
               add_end(member, (weir_queue *)(void *)member, 1);
    for (weir_queue *queue = NULL; (queue = weir__queue_next(NULL, queue));)
        if (recorded && may_use(queue, member->device))
            recorded = add_end(member, queue, room);
    return recorded;
}

// All work has finished. Without the queue no plugin learns of a call about one of its events, so they are told before
// it goes. Then takes the reference of its creation, if it is the last one: the queue cannot be found any more.
static bool end_queue(weir_queue *queue)
{
    const struct weir_event last = {queue->member.object.id, atomic_load(&queue->sequence)};
    const struct weir__host_caller library = {.flags = WEIR_HOST_NOTE_INTERNAL};
    uint_fast32_t references = 1;
    if (!queue->has_ended && last.sequence > 0 && weir__takes_notes(queue->member.device))
        weir__host_note_complete(queue, last, WEIR_OK, &library);
    queue->has_ended = true;
    return atomic_compare_exchange_strong_explicit(&slot_of(queue->member.object.id)->references,
                                                   &references, 0, memory_order_acquire,
                                                   memory_order_relaxed);
}

// Whether nothing uses the object any more, which is to be finalized then.
static bool past_frontier(struct weir__member *member)
{
    const enum weir__frontier wanted = frontier_of(member);
    if (atomic_load(&member->uses) > 0)
        return false;
    if (member->has_frontier < wanted && !draw_frontier(member, wanted))
        return false;
    member->has_frontier = wanted > member->has_frontier ? wanted : member->has_frontier;
    while (member->frontier_count) {
        struct weir_event event = member->frontier[member->frontier_count - 1];
        if (!weir__event_is_complete(event))
            return false;
        member->frontier_count--;
    }
    if (frontier_of(member) != wanted) // the look may have found that it has failed
        return false;
    return !is_a_queue(member) || end_queue((weir_queue *)(void *)member);
}

static void push_retired(weir_device *device, struct weir__member *member)
{
    weir_lock_take(&device->lock);
    TAILQ_INSERT_TAIL(&device->retired, member, place);
    weir_lock_release(&device->lock);
}

static struct weir__member *pop_retired(weir_device *device)
{
    weir_lock_take(&device->lock);
    struct weir__member *member = TAILQ_FIRST(&device->retired);
    if (member)
        TAILQ_REMOVE(&device->retired, member, place);
    weir_lock_release(&device->lock);
    return member;
}

static void add_retired(struct weir__member *member)
{
    atomic_fetch_add(&member->device->retired_count, 1);
    push_retired(member->device, member);
}

void weir__queue_retire(weir_queue *queue, bool later)
{
    if (weir__is_capturing(queue))
        queue->capture_ops->abandon(queue);
    if (!later) {
        weir__member_retire(&queue->member);
        return;
    }
    weir__member_delist(&queue->member);
    add_retired(&queue->member);
}

void weir__member_retire(struct weir__member *member)
{
    weir_device *device = member->device;

    bool done = past_frontier(member);
    weir__member_delist(member);
    if (!done)
        weir__debug_deferred(member, atomic_load(&member->uses) > 0);
    if (done)
        member->class->finalize(member);
    else
        add_retired(member);
    weir__device_reap(device);
}

// Checking a frontier takes other locks, so one object at a time is removed, and put back if it is not
// ready.
static void reap(weir_device *device, size_t patience)
{
    // A host call's thread must not finalize the queue whose worker it is.
    size_t count = weir__in_host_call()
                       ? 0
                       : atomic_load_explicit(&device->retired_count, memory_order_relaxed);
    if (count == 0)
        return;
    const struct weir_error saved = *weir_last_error();
    for (; count > 0 && patience > 0; count--) {
        struct weir__member *member = pop_retired(device);
        if (!member)
            break;
        if (past_frontier(member)) {
            member->class->finalize(member);
            atomic_fetch_sub(&device->retired_count, 1); // closing the device waits for it
        } else {
            push_retired(device, member);
            patience--;
        }
    }
    weir__error_set(&saved);
}

void weir__device_reap(weir_device *device)
{
    reap(device, 8);
}

// Again after a success: the object may have been a graph that used the remaining ones.
void weir__device_reap_all(weir_device *device)
{
    size_t before;
    do {
        before = atomic_load(&device->retired_count);
        reap(device, SIZE_MAX);
    } while (before > 0 && atomic_load(&device->retired_count) < before);
}
