// See the headers.
//
// The legacy queue's order is made of marks and waits that the library inserts, flagged
// INTERNAL. An operation on it first raises `turn`, then marks the end of every other
// queue and waits for the marks. A queue that sees a turn which it is not behind of first
// waits for the legacy queue's end. It looks while it holds its submit lock, and the mark
// takes that lock after the turn was raised: so whatever is submitted at the same time
// either is in the mark or waits for the legacy queue's operation.
//
// Locks: `lock`, then one submit lock at a time. Who holds a submit lock and finds that
// it must wait lets go of it first. The legacy queue's own submit lock is taken before
// `lock` is let go, so who comes for its end finds the operation there.
//
// What the legacy queue waits for is noted as any wait is, and so it fails with it. What
// waits for the legacy queue only is behind it: no note is made, so no failure comes along.
#include "core/queue/legacy.h"

#include <stdio.h>

#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

void weir__migration_init(struct weir__migration *migration)
{
    pthread_mutex_init(&migration->lock, NULL);
}

void weir__migration_finish(struct weir__migration *migration)
{
    pthread_mutex_destroy(&migration->lock);
}

static bool has_failed(const weir_queue *queue)
{
    return atomic_load_explicit(&queue->progress.failed, memory_order_acquire);
}

// Fails the queue with the thread's error. With its submit lock held.
static void fail_with_last_error(weir_queue *queue)
{
    const struct weir_error cause = *weir_last_error();
    weir__progress_fail(queue, queue->sequence + 1, &cause);
}

// How the legacy queue stands to another one.
enum news {
    NO_NEWS,
    OLD_NEWS, // it may have missed what it has seen
    NEWS,
    NO_MARK, // the end cannot be marked; the reason is the thread's error
};

// Stores the end of the queue, unless the legacy queue is behind that.
static enum news mark_news(weir_queue *queue, uint64_t epoch, struct weir_event *out_event)
{
    struct weir__legacy_view *view = &queue->legacy;
    weir_biased_lock_take(&queue->submit_lock);
    enum news news = queue->sequence > view->saw                   ? NEWS
                     : view->epoch != epoch && queue->sequence > 0 ? OLD_NEWS
                                                                   : NO_NEWS;
    if (news != NO_NEWS && !weir__queue_mark_locked(queue, out_event))
        news = NO_MARK;
    if (news != NO_MARK) {
        view->saw = queue->sequence;
        view->epoch = epoch;
    }
    weir_biased_lock_release(&queue->submit_lock);
    return news;
}

// Submits a wait that carries no failure. With the queue's submit lock held.
static weir_status submit_order(weir_queue *queue, weir_queue *producer, struct weir_event event)
{
    const bool complete =
        atomic_load_explicit(&producer->progress.completed, memory_order_acquire) >= event.sequence;
    struct weir_operation operation = {
        .kind = WEIR_OPERATION_WAIT,
        .flags = WEIR_OPERATION_INTERNAL | (complete ? WEIR_OPERATION_IMPLIED : 0u),
        .file = __FILE__,
        .line = __LINE__,
        .u.wait = {event, producer},
    };
    return weir__queue_submit_locked(queue, &operation);
}

// Failures that the legacy queue recovered from are not told again by old news.
static bool submit_wait(weir_queue *legacy, weir_queue *producer, struct weir_event event,
                        enum news news)
{
    if (news == OLD_NEWS)
        return submit_order(legacy, producer, event) == WEIR_OK;
    return news == NEWS && weir__progress_status(producer, event.sequence) == WEIR_OK &&
           weir__queue_wait_locked(legacy, event, producer, WEIR_OPERATION_INTERNAL, __FILE__,
                                   __LINE__) == WEIR_OK;
}

static void wait_for_news(weir_queue *legacy, weir_queue *producer, uint64_t epoch)
{
    struct weir_event event;
    const enum news news = mark_news(producer, epoch, &event);
    if (news == NO_NEWS)
        return;
    // Where it cannot be brought behind all, it has failed.
    weir_biased_lock_take(&legacy->submit_lock);
    if (!has_failed(legacy) && !submit_wait(legacy, producer, event, news))
        fail_with_last_error(legacy);
    weir_biased_lock_release(&legacy->submit_lock);
}

// Another thread may recover the queue in the middle, and what was left out because it
// had failed would stay left out: then all of it is done again.
static void order_legacy(weir_queue *legacy)
{
    weir_device *device = legacy->member.device;
    struct weir__migration *migration = &device->migration;

    for (;;) {
        pthread_mutex_lock(&migration->lock);
        const uint64_t epoch = atomic_load_explicit(&migration->epoch, memory_order_relaxed);
        if (!has_failed(legacy)) {
            atomic_fetch_add_explicit(&migration->turn, 1, memory_order_relaxed);
            for (weir_queue *queue = NULL; (queue = weir__device_next_queue(device, queue));)
                if (queue != legacy)
                    wait_for_news(legacy, queue, epoch);
        }
        weir_biased_lock_take(&legacy->submit_lock);
        pthread_mutex_unlock(&migration->lock);
        if (has_failed(legacy) ||
            atomic_load_explicit(&migration->epoch, memory_order_relaxed) == epoch)
            return;
        weir_biased_lock_release(&legacy->submit_lock);
    }
}

// The end of the legacy queue, and the turn that it is behind of.
static bool mark_legacy(struct weir__migration *migration, weir_queue **out_legacy,
                        struct weir_event *out_event, uint64_t *out_turn)
{
    pthread_mutex_lock(&migration->lock);
    weir_queue *legacy = migration->legacy;
    *out_legacy = legacy;
    *out_turn = atomic_load_explicit(&migration->turn, memory_order_relaxed);
    weir_biased_lock_take(&legacy->submit_lock);
    const bool marked = weir__queue_mark_locked(legacy, out_event);
    weir_biased_lock_release(&legacy->submit_lock);
    pthread_mutex_unlock(&migration->lock);
    return marked;
}

// With the queue's submit lock held; a refusal fails it.
static void wait_for_legacy(weir_queue *queue, weir_queue *legacy, struct weir_event event)
{
    const bool was_seen = queue->legacy.saw == queue->sequence;
    if (submit_order(queue, legacy, event) == WEIR_OK)
        queue->legacy.end = event;
    if (was_seen) // waiting for the legacy queue is nothing that it need wait for
        queue->legacy.saw = queue->sequence;
}

// Another operation may begin on the legacy queue meanwhile, hence the loop; it ends
// since each round brings the queue behind one more.
static void order_behind_legacy(weir_queue *queue)
{
    struct weir__migration *migration = &queue->member.device->migration;
    weir_queue *legacy;
    struct weir_event event;
    uint64_t turn;

    do {
        weir_biased_lock_release(&queue->submit_lock);
        const bool marked = mark_legacy(migration, &legacy, &event, &turn);
        weir_biased_lock_take(&queue->submit_lock);
        // A failed queue takes no operation; it comes here again once it has recovered.
        if (has_failed(queue))
            return;
        if (!marked) {
            fail_with_last_error(queue);
            return;
        }
        if (queue->turn < turn) {
            wait_for_legacy(queue, legacy, event);
            queue->turn = turn;
        }
    } while (atomic_load_explicit(&migration->turn, memory_order_relaxed) != queue->turn);
}

void weir__migration_order(weir_queue *queue)
{
    if (queue->owner != WEIR__OWNED_BY_DEVICE) {
        order_behind_legacy(queue);
        return;
    }
    weir_biased_lock_release(&queue->submit_lock);
    order_legacy(queue);
}

// What it waited for when it failed it may not be behind of.
void weir__migration_recovered(weir_queue *queue)
{
    struct weir__migration *migration = &queue->member.device->migration;
    if (queue->owner == WEIR__OWNED_BY_DEVICE) {
        atomic_fetch_add_explicit(&migration->epoch, 1, memory_order_relaxed);
        return;
    }
    queue->legacy.saw = queue->sequence; // it has finished, and its failure is dealt with
    queue->turn = 0;
    queue->legacy.end = (struct weir_event){0};
}

// Queues of the library's.

static weir_status create_owned(weir_device *device, const char *label,
                                enum weir__queue_owner owner, weir_queue **out_queue)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    weir_status status = weir_queue_create(device, &params, out_queue);
    if (status < 0)
        return status;
    pthread_mutex_lock(&device->lock);
    (*out_queue)->member.internal = true;
    pthread_mutex_unlock(&device->lock);
    (*out_queue)->owner = owner;
    return WEIR_OK;
}

weir_status weir_legacy_queue(weir_device *device, weir_queue **out_queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_queue);
    *out_queue = NULL;
    WEIR_REQUIRE(NULL, device);
    struct weir__migration *migration = &device->migration;
    weir_status status = WEIR_OK;

    pthread_mutex_lock(&migration->lock);
    if (!migration->legacy) {
        weir_queue *queue;
        status = create_owned(device, "legacy queue", WEIR__OWNED_BY_DEVICE, &queue);
        if (status == WEIR_OK) {
            queue->turn = UINT64_MAX; // no turn: it always asks what comes first
            migration->legacy = queue;
        }
    }
    *out_queue = migration->legacy;
    pthread_mutex_unlock(&migration->lock);
    return status;
}

void weir__migration_refuse_destroy(const weir_queue *queue)
{
    const bool legacy = queue->owner == WEIR__OWNED_BY_DEVICE;
    weir__report_at(NULL, 0, queue->member.object.label, WEIR_ERROR_INVALID,
                    "do not destroy what you did not create",
                    "weir_queue_destroy: this queue came from weir_%s_queue() and goes with its %s",
                    legacy ? "legacy" : "thread", legacy ? "device" : "thread or its device");
    weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
}

// Threads. A thread's list is the value of a key, whose destructor runs at the thread's
// exit; only the thread itself changes it. An entry is on the list of its device too, until
// that closes.

struct weir__thread_queue {
    uint64_t device_id;
    weir_device *device; // NULL once it has closed; under the lock
    weir_queue *queue;
    struct weir__thread_queue *next;        // of the thread
    struct weir__thread_queue *device_next; // of the device
    struct weir__thread_queue **device_link;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
// Of the devices' lists; held while a queue of them is destroyed, so that a device does
// not close in the middle of it. Taken before every other lock.
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;

// With the lock held.
static void retire(struct weir__thread_queue *entry)
{
    *entry->device_link = entry->device_next;
    if (entry->device_next)
        entry->device_next->device_link = entry->device_link;
    entry->device = NULL;
    weir__member_retire(&entry->queue->member);
}

static void end_thread(void *value)
{
    struct weir__thread_queue *entry = value;
    if (atomic_load(&weir__forked))
        return;
    pthread_mutex_lock(&lists_lock);
    while (entry) {
        struct weir__thread_queue *next = entry->next;
        if (entry->device)
            retire(entry);
        weir__release(entry);
        entry = next;
    }
    pthread_mutex_unlock(&lists_lock);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, end_thread) == 0;
}

// The thread's list without the entries of devices that have closed. With the lock held.
static struct weir__thread_queue *without_closed(struct weir__thread_queue *list)
{
    for (struct weir__thread_queue **at = &list; *at;) {
        struct weir__thread_queue *entry = *at;
        if (entry->device) {
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        weir__release(entry);
    }
    return list;
}

// False: the system has no room for the thread's list.
static bool enlist(struct weir__thread_queue *entry)
{
    struct weir__migration *migration = &entry->device->migration;
    pthread_mutex_lock(&lists_lock);
    entry->next = without_closed(pthread_getspecific(key));
    const bool kept = pthread_setspecific(key, entry) == 0;
    if (kept) {
        entry->device_next = migration->thread_queues;
        entry->device_link = &migration->thread_queues;
        if (entry->device_next)
            entry->device_next->device_link = &entry->device_next;
        migration->thread_queues = entry;
    }
    pthread_mutex_unlock(&lists_lock);
    return kept;
}

static weir_status make_thread_queue(weir_device *device, weir_queue **out_queue)
{
    struct weir__thread_queue *entry = weir__allocate(sizeof *entry);
    if (!entry)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a thread's queue");
    weir_status status = create_owned(device, "thread queue", WEIR__OWNED_BY_THREAD, &entry->queue);
    if (status < 0) {
        weir__release(entry);
        return status;
    }
    entry->device_id = device->object.id;
    entry->device = device;
    if (!enlist(entry)) {
        weir__member_retire(&entry->queue->member);
        weir__release(entry);
        return weir__fail(WEIR_ERROR_SYSTEM, "create a queue instead",
                          "the system has no room for a value of this thread's");
    }
    *out_queue = entry->queue;
    return WEIR_OK;
}

weir_status weir_thread_queue(weir_device *device, weir_queue **out_queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_queue);
    *out_queue = NULL;
    WEIR_REQUIRE(NULL, device);
    if (weir__in_host_call())
        return weir__fail(WEIR_ERROR_INVALID, "hand the queue to the host call",
                          "weir_thread_queue: a host call runs on a thread of the library's, which "
                          "has no queue of its own");
    pthread_once(&once, make_key);
    if (!has_key)
        return weir__fail(WEIR_ERROR_SYSTEM, "create a queue instead",
                          "the system has no key for values of threads left");
    for (const struct weir__thread_queue *entry = pthread_getspecific(key); entry;
         entry = entry->next)
        if (entry->device_id == device->object.id) {
            *out_queue = entry->queue;
            return WEIR_OK;
        }
    return make_thread_queue(device, out_queue);
}

void weir__migration_close(weir_device *device)
{
    struct weir__migration *migration = &device->migration;

    pthread_once(&once, make_key);
    pthread_mutex_lock(&lists_lock);
    while (migration->thread_queues)
        retire(migration->thread_queues);
    if (has_key) // entries of this thread may be its last chance
        pthread_setspecific(key, without_closed(pthread_getspecific(key)));
    pthread_mutex_unlock(&lists_lock);
    if (migration->legacy)
        weir__member_retire(&migration->legacy->member);
    migration->legacy = NULL;
}
