// Events: queries and waits, on the device and on the host.
#include "core/event/event.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/graph/graph.h"
#include "core/queue/queue.h"
#include "core/support/memory.h"

// An event's queue is looked up and kept alive for the length of one call; a destroyed queue had finished, so
// its events are complete.

// Of an event for which there is none: WEIR_OK if its queue was destroyed.
WEIR_COLD static weir_status refuse_event(struct weir_event event, const char *waiting,
                                          const struct weir__host_caller *caller)
{
    static const char remedy[] = "record first: weir_queue_record() returns the event";
    if (event.queue == 0 || event.sequence == 0)
        return weir__refuse(caller, waiting, remedy, "%s: the event is zero; it was never recorded",
                            caller->function);
    if (!weir__registry_issued(event.queue))
        return weir__refuse(caller, waiting, remedy, "%s: the event belongs to no queue",
                            caller->function);
    weir_queue *queue = weir__registry_pin(event.queue);
    const char *label = queue ? queue->member.object.label : NULL;
    weir_status status = WEIR_OK;
    if (weir__is_captured(event))
        status = weir__capture_refuse_event(caller->function, label, caller->file, caller->line);
    else if (queue)
        status = weir__refuse(caller, label, "pass the event as weir_queue_record() gave it",
                              "%s: the queue has no operation %" PRIu64, caller->function,
                              event.sequence);
    weir__registry_unpin(queue);
    return status;
}

// Looks up the queue; `*out_queue` is NULL if it was destroyed. `waiting` is the label of a queue that waits for the
// event, or NULL.
static weir_status find(struct weir_event event, const char *waiting,
                        const struct weir__host_caller *caller, weir_queue **out_queue)
{
    *out_queue = NULL;
    WEIR_REFUSE_FORK_OF(caller->function, caller->file, caller->line);
    weir_queue *queue = weir__registry_pin(event.queue);
    if (queue && event.sequence - 1 <
                     atomic_load_explicit(&queue->sequence, memory_order_acquire)) { // 0 wraps
        *out_queue = queue;
        return WEIR_OK;
    }
    weir__registry_unpin(queue);
    return refuse_event(event, waiting, caller);
}

// With the submit lock held.
static weir_status wait_for(weir_queue *queue, weir_queue *producer, struct weir_event event,
                            const char *file, int line)
{
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(
            queue, file, line, "weir_queue_wait got an event that was recorded outside of it",
            "wait on it before the capture, or before the graph's launch");
    if (producer && producer->member.device->runtime != queue->member.device->runtime)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "sync with it on the host instead",
                             "weir_queue_wait: the event belongs to another runtime");
    return weir__queue_wait_locked(queue, event, producer, 0, file, line);
}

weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    WEIR_ENTER_AT(file, line, queue);
    weir_queue *producer;
    WEIR_REFUSE_CALLBACK(queue, file, line);
    if (weir__is_captured(event))
        return weir__capture_wait(queue, event, file, line);
    const struct weir__host_caller caller = {file, line, 0, "weir_queue_wait"};
    TRY(find(event, queue->member.object.label, &caller, &producer));
    weir__queue_enter(queue);
    weir_status status = wait_for(queue, producer, event, file, line);
    weir_lock_release(&queue->submit_lock);
    weir__registry_unpin(producer);
    return status;
}

// Events on the host.

static weir_status query(struct weir_event event, const struct weir__host_caller *caller)
{
    weir_queue *queue;
    TRY(find(event, NULL, caller, &queue));
    if (!queue)
        return weir__event_status(NULL, event);
    weir_status status = weir__queue_query(queue, event.sequence);
    if (status != WEIR_NOT_READY && weir__takes_notes(queue->member.device))
        weir__host_note_complete(queue, event, status, caller);
    weir__registry_unpin(queue);
    return status;
}

weir_status weir_event_query_at(struct weir_event event, const char *file, int line)
{
    return query(event, &(struct weir__host_caller){file, line, 0, "weir_event_query"});
}

weir_status weir_event_error_at(struct weir_event event, const char *file, int line)
{
    return query(event, &(struct weir__host_caller){file, line, 0, "weir_event_error"});
}

weir_status weir__event_sync(struct weir_event event, uint64_t timeout_ns,
                             const struct weir__host_caller *caller)
{
    weir_queue *queue;
    WEIR_REFUSE_HOST_CALL_OF(caller->function, caller->file, caller->line, NULL,
                             "submit a wait to the queue instead");
    TRY(find(event, NULL, caller, &queue));
    if (!queue)
        return weir__event_status(NULL, event);
    const bool was_complete = weir__queue_is_past(queue, event.sequence);
    // In debug mode a long wait is told of once.
    const bool tells = weir__debugging() && timeout_ns > WEIR__AWAITED_TOLD_NS;
    weir_status status =
        weir__queue_await(queue, event.sequence, tells ? WEIR__AWAITED_TOLD_NS : timeout_ns);
    if (tells && status == WEIR_TIMEOUT) {
        const uint64_t left_ns = timeout_ns - WEIR__AWAITED_TOLD_NS;
        weir__awaited_tell(queue, event.sequence, caller);
        status = weir__queue_await(queue, event.sequence,
                                   timeout_ns == WEIR_FOREVER ? WEIR_FOREVER : left_ns);
    }
    if (status == WEIR_TIMEOUT && timeout_ns > 0)
        weir__awaited_end(queue, event.sequence, timeout_ns, caller);
    if (status != WEIR_TIMEOUT && weir__takes_notes(queue->member.device)) {
        struct weir__host_caller waiting = *caller;
        if (timeout_ns == WEIR_FOREVER)
            waiting.flags |= WEIR_HOST_NOTE_WAITED;
        weir__host_note_complete(queue, event, status, &waiting);
    }
    if (!was_complete && status != WEIR_TIMEOUT)
        weir__device_reap(queue->member.device);
    weir__registry_unpin(queue);
    return status;
}

static weir_status sync_checked(const char *function, struct weir_event event, uint64_t timeout_ns,
                                const char *file, int line)
{
    const weir_status status =
        weir__event_sync(event, timeout_ns, &(struct weir__host_caller){file, line, 0, function});
    return status == WEIR_OK ? weir__debug_check_memory(function, file, line) : status;
}

weir_status weir_event_sync_at(struct weir_event event, uint64_t timeout_ns, const char *file,
                               int line)
{
    return sync_checked("weir_event_sync", event, timeout_ns, file, line);
}

// No driver waits for any of several events, so this polls.
static weir_status await_any(const struct weir_event *events, size_t count, uint64_t timeout_ns,
                             const struct weir__host_caller *caller, size_t *out_index)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    do {
        for (size_t i = 0; i < count; i++) {
            const weir_status status = query(events[i], caller);
            if (status == WEIR_NOT_READY)
                continue;
            *out_index = i;
            return status;
        }
    } while (weir_clock_pause(start_ns, timeout_ns, &pause_ns));
    return WEIR_TIMEOUT;
}

weir_status weir_event_sync_any_at(const struct weir_event *events, size_t count,
                                   uint64_t timeout_ns, size_t *out_index, const char *file,
                                   int line)
{
    const struct weir__host_caller caller = {file, line, 0, "weir_event_sync_any"};
    WEIR_REFUSE_FORK_AT(file, line);
    WEIR_REQUIRE_AT(file, line, NULL, out_index);
    *out_index = 0;
    WEIR_REQUIRE_AT(file, line, NULL, events && count > 0);
    WEIR_REFUSE_HOST_CALL_AT(file, line, NULL, "submit a wait to the queue instead");

    const weir_status status = await_any(events, count, timeout_ns, &caller, out_index);
    if (status != WEIR_TIMEOUT || timeout_ns == 0)
        return status;
    // The first of the events that has not ended stands for all.
    weir_queue *queue = NULL;
    for (size_t i = 0; i < count && !queue; i++)
        if ((queue = weir__registry_pin(events[i].queue)))
            weir__awaited_end(queue, events[i].sequence, timeout_ns, &caller);
    weir__registry_unpin(queue);
    return status;
}

weir_status weir_event_sync_all_at(const struct weir_event *events, size_t count,
                                   uint64_t timeout_ns, const char *file, int line)
{
    WEIR_REFUSE_FORK_AT(file, line);
    WEIR_REQUIRE_AT(file, line, NULL, events || count == 0);
    const uint64_t deadline_ns = weir_clock_deadline(timeout_ns);
    weir_status first = WEIR_OK;
    struct weir_error cause;

    for (size_t i = 0; i < count; i++) {
        const weir_status status = sync_checked("weir_event_sync_all", events[i],
                                                weir_clock_left(deadline_ns), file, line);
        if (status == WEIR_TIMEOUT)
            return status;
        if (status < 0 && first == WEIR_OK) {
            first = status;
            cause = weir__error_of(status);
        }
    }
    return first < 0 ? weir__error_set(&cause) : WEIR_OK;
}

weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    struct weir_event event = {0};
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REFUSE_HOST_CALL_AT(file, line, queue->member.object.label,
                             "submit a wait to the queue instead");
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "weir_queue_sync has nothing to wait for",
                                            "end or cancel the capture first");
    weir_status status = weir_queue_record_at(queue, &event, file, line);
    return status < 0 ? status : sync_checked("weir_queue_sync", event, timeout_ns, file, line);
}

// A device: all its queues, and again if host calls ran meanwhile, which may have submitted more to any of them.

// Waits for the end of a queue, also of one that was destroyed while in use, and of a failed one: after its calls that
// always run, also those that a plugin holds back. Without a record the worker at least has dropped or run what is held.
static weir_status drain_queue(weir_queue *queue, uint64_t deadline_ns,
                               const struct weir__host_caller *caller)
{
    struct weir_event end;
    bool in_time = true;
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, caller->file, caller->line,
                                            "weir_device_sync has nothing to wait for",
                                            "end or cancel the capture first");
    weir_lock_take(&queue->submit_lock);
    const bool recorded = weir__queue_record_end_locked(queue, &end);
    weir_lock_release(&queue->submit_lock);
    if (!recorded)
        in_time = weir__delivery_await(&queue->delivery, WEIR__ALL_HELD, deadline_ns);
    else if (end.sequence > 0)
        in_time = weir__event_sync(end, weir_clock_left(deadline_ns), caller) != WEIR_TIMEOUT;
    if (!in_time)
        return WEIR_TIMEOUT;
    return atomic_load(&queue->completion.failed) ? weir__completion_refuse(queue) : WEIR_OK;
}

weir_status weir_device_sync_at(weir_device *device, uint64_t timeout_ns, const char *file,
                                int line)
{
    struct weir_error first = {.status = WEIR_OK};
    const struct weir__host_caller caller = {file, line, 0, "weir_device_sync"};
    WEIR_ENTER_AT(file, line, device);
    WEIR_REFUSE_HOST_CALL_AT(file, line, NULL, "call it on a thread of the program's");
    const uint64_t deadline_ns = weir_clock_deadline(timeout_ns);
    uint_fast64_t ended;
    do {
        weir_status status = WEIR_OK;
        ended = atomic_load(&device->calls_ended);
        // The loop continues after a timeout, in order to drop the references.
        for (weir_queue *queue = NULL; (queue = weir__queue_next(device, queue));) {
            if (status != WEIR_TIMEOUT)
                status = drain_queue(queue, deadline_ns, &caller);
            if (status < 0 && first.status == WEIR_OK)
                first = weir__error_of(status);
        }
        if (status == WEIR_TIMEOUT)
            return WEIR_TIMEOUT;
    } while (atomic_load(&device->calls_ended) != ended);
    return first.status < 0 ? weir__error_set(&first)
                            : weir__debug_check_memory("weir_device_sync", file, line);
}

WEIR_COLD static weir_status refuse_untimed(const char *function, const weir_queue *queue)
{
    const char *label = queue->member.object.label;
    char place[WEIR__PLACE_SIZE];
    weir__member_created(&queue->member, place);
    return weir__fail(WEIR_ERROR_INVALID,
                      queue->owner == WEIR__OWNED_BY_USER
                          ? "record on a queue that was created with .timing = true"
                          : "open the device with .default_timing = true",
                      "%s: queue '%s'%s was created without timing", function,
                      weir__label_or_none(label), place);
}

static weir_status read_time(struct weir_event event, const struct weir__host_caller *caller,
                             uint64_t *out_time_ns, const weir_device **out_device)
{
    weir_status status = query(event, caller);
    if (status != WEIR_OK)
        return status;
    weir_queue *queue = weir__registry_pin(event.queue);
    if (!queue)
        return weir__fail_at(caller->file, caller->line, NULL, WEIR_ERROR_EXPIRED,
                             "read times before destroying the queue",
                             "%s: the event's queue is gone", caller->function);
    *out_device = queue->member.device;
    if (queue->timing)
        status = queue->first->ops->event_time(queue->first, queue, event.sequence, out_time_ns);
    else
        status = refuse_untimed(caller->function, queue);
    if (status < 0)
        weir__error_place(status, queue->member.object.label, caller->file, caller->line);
    weir__registry_unpin(queue);
    return status;
}

weir_status weir_event_time_ns_at(struct weir_event event, uint64_t *out_time_ns, const char *file,
                                  int line)
{
    const weir_device *device;
    WEIR_REQUIRE_AT(file, line, NULL, out_time_ns);
    *out_time_ns = 0;
    return read_time(event, &(struct weir__host_caller){file, line, 0, "weir_event_time_ns"},
                     out_time_ns, &device);
}

weir_status weir_event_elapsed_ns_at(struct weir_event begin, struct weir_event end,
                                     int64_t *out_elapsed_ns, const char *file, int line)
{
    const struct weir__host_caller caller = {file, line, 0, "weir_event_elapsed_ns"};
    const weir_device *first, *second;
    uint64_t from_ns, to_ns;
    WEIR_REQUIRE_AT(file, line, NULL, out_elapsed_ns);
    *out_elapsed_ns = 0;
    TRY(read_time(begin, &caller, &from_ns, &first));
    TRY(read_time(end, &caller, &to_ns, &second));
    if (first != second)
        return weir__fail_at(file, line, NULL, WEIR_ERROR_INVALID,
                             "record both on queues of one device",
                             "%s: the events are of two devices, whose times cannot be compared",
                             caller.function);
    *out_elapsed_ns = (int64_t)(to_ns - from_ns);
    return WEIR_OK;
}

// Descriptors.

// Drivers have no common way to signal a descriptor, so a thread checks the watched events in
// turn and sleeps in between. It holds a duplicate of each descriptor, so the
// user may close theirs at any time.

struct weir__watch {
    struct weir__watch *next;
    struct weir_event event;
    int fd;
};

static void signal_fd(int fd)
{
    const uint64_t one = 1;
    // Fails only if all other descriptors of it are closed or it is signalled.
    ssize_t written = write(fd, &one, sizeof one);
    (void)written;
}

static void release(struct weir__watch *watch)
{
    signal_fd(watch->fd);
    close(watch->fd);
    weir__release(watch);
}

// Removes and releases watches whose events are complete. Returns whether there were any.
static bool look(struct weir__watch **list)
{
    const struct weir__host_caller caller = {.flags = WEIR_HOST_NOTE_INTERNAL,
                                             .function = "weir_event_fd"};
    bool any = false;
    for (struct weir__watch **at = list; *at;) {
        struct weir__watch *watch = *at;
        if (query(watch->event, &caller) == WEIR_NOT_READY) {
            at = &watch->next;
            continue;
        }
        *at = watch->next;
        release(watch);
        any = true;
    }
    return any;
}

// Adds what was listed since to the thread's own list. False: the thread is to end.
static bool take_watches(struct weir__notifier *notifier, struct weir__watch **list)
{
    weir_lock_take(&notifier->lock);
    while (!*list && !notifier->list && !notifier->stop)
        weir_lock_wait(&notifier->lock, &notifier->changed);
    while (*list)
        list = &(*list)->next;
    *list = notifier->list;
    notifier->list = NULL;
    const bool goes_on = !notifier->stop;
    weir_lock_release(&notifier->lock);
    return goes_on;
}

static void run(void *argument)
{
    struct weir__watch *list = NULL;
    uint64_t pause_ns = 0;

    while (take_watches(argument, &list)) {
        if (look(&list))
            pause_ns = 0;
        else
            (void)weir_clock_pause(0, WEIR_FOREVER, &pause_ns);
    }
    for (struct weir__watch *watch = list, *next; watch; watch = next) {
        next = watch->next;
        release(watch);
    }
}

static weir_status watch_event(weir_device *device, struct weir_event event, int fd)
{
    struct weir__notifier *notifier = &device->notifier;
    struct weir__watch *watch = weir__allocate(sizeof *watch);
    const int copy = watch ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    bool watched = false;
    if (copy >= 0) {
        weir_lock_take(&notifier->lock);
        if (!notifier->started)
            notifier->started = weir_thread_start(&notifier->thread, run, notifier) == 0;
        watched = notifier->started; // a call on another thread may start it a moment later
        if (watched) {
            *watch = (struct weir__watch){.next = notifier->list, .event = event, .fd = copy};
            notifier->list = watch;
            pthread_cond_signal(&notifier->changed);
        }
        weir_lock_release(&notifier->lock);
    }
    if (watched)
        return WEIR_OK;
    if (copy >= 0)
        close(copy);
    weir__release(watch);
    return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of open files or threads",
                      "weir_event_fd: no memory, descriptor or thread to watch the event with");
}

weir_status weir_event_fd_at(struct weir_event event, int *out_fd, const char *file, int line)
{
    weir_queue *queue;
    WEIR_REQUIRE_AT(file, line, NULL, out_fd);
    *out_fd = -1;
    weir_status status =
        find(event, NULL, &(struct weir__host_caller){file, line, 0, "weir_event_fd"}, &queue);
    if (status < 0)
        return status;
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        status = weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of open files",
                            "weir_event_fd: eventfd: %s", strerror(errno));
    else if (queue)
        status = watch_event(queue->member.device, event, fd);
    else // it is complete
        signal_fd(fd);
    if (status == WEIR_OK)
        *out_fd = fd;
    else if (fd >= 0)
        close(fd);
    weir__registry_unpin(queue);
    return weir__placed(status, file, line);
}
