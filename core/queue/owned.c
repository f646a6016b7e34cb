// See the header. A thread's list is the value of a key, whose destructor runs at the thread's
// exit; only the thread itself changes it. No driver is called there: a driver in C++ may have lost its
// variables of the thread by then. An entry is on the list of its device too, until
// that closes.
#include "core/queue/owned.h"

#include <pthread.h>
#include <sched.h>

#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/log.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

weir_status weir__queue_create_owned(weir_device *device, const char *label,
                                     enum weir__queue_owner owner, weir_queue **out_queue)
{
    struct weir_queue_setup setup = {.struct_size = sizeof setup, .timing = device->default_timing};
    weir_status status = weir__queue_open(device, label, &setup, out_queue);
    if (status < 0)
        return status;
    weir_lock_take(&device->lock);
    (*out_queue)->member.internal = true;
    weir_lock_release(&device->lock);
    (*out_queue)->owner = owner;
    return WEIR_OK;
}

void weir__queue_refuse_destroy(const weir_queue *queue)
{
    const bool legacy = queue->owner == WEIR__OWNED_BY_DEVICE;
    weir__report_at(NULL, 0, queue->member.object.label, WEIR_ERROR_INVALID,
                    "do not destroy what you did not create",
                    "weir_queue_destroy: this queue came from weir_%s_queue() and goes with its %s",
                    legacy ? "legacy" : "thread", legacy ? "device" : "thread or its device");
    weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
}

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
// Of the devices' lists.
static struct weir_lock lists_lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_THREAD_QUEUES]);

// Removes the entry from its device's list; returns its queue, for the caller to retire. With
// the lock held.
static weir_queue *take_off(struct weir__thread_queue *entry)
{
    *entry->device_link = entry->device_next;
    if (entry->device_next)
        entry->device_next->device_link = entry->device_link;
    entry->device = NULL;
    return entry->queue;
}

// The device does not close before the queue is retired. The next create, destroy, sync or trim on another
// thread destroys it.
static void end_entry(struct weir__thread_queue *entry)
{
    weir_lock_take(&lists_lock);
    weir_device *device = entry->device;
    weir_queue *queue = device ? take_off(entry) : NULL;
    if (device)
        atomic_fetch_add(&device->ending_threads, 1);
    weir_lock_release(&lists_lock);
    if (!device)
        return;
    weir__queue_retire_later(queue);
    atomic_fetch_sub(&device->ending_threads, 1);
}

static void end_thread(void *value)
{
    struct weir__thread_queue *entry = value;
    if (atomic_load(&weir__forked))
        return;
    while (entry) {
        struct weir__thread_queue *next = entry->next;
        end_entry(entry);
        weir__release(entry);
        entry = next;
    }
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
    weir_device *device = entry->device;
    weir_lock_take(&lists_lock);
    entry->next = without_closed(pthread_getspecific(key));
    const bool kept = pthread_setspecific(key, entry) == 0;
    if (kept) {
        entry->device_next = device->thread_queues;
        entry->device_link = &device->thread_queues;
        if (entry->device_next)
            entry->device_next->device_link = &entry->device_next;
        device->thread_queues = entry;
    }
    weir_lock_release(&lists_lock);
    return kept;
}

static weir_status make_thread_queue(weir_device *device, weir_queue **out_queue)
{
    struct weir__thread_queue *entry = weir__allocate(sizeof *entry);
    if (!entry)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a thread's queue");
    weir_status status =
        weir__queue_create_owned(device, "thread queue", WEIR__OWNED_BY_THREAD, &entry->queue);
    if (status < 0) {
        weir__release(entry);
        return status;
    }
    entry->device_id = device->object.id;
    entry->device = device;
    if (!enlist(entry)) {
        weir__queue_retire(entry->queue);
        weir__release(entry);
        return weir__fail(WEIR_ERROR_SYSTEM, "create a queue instead",
                          "the system has no room for a value of this thread's");
    }
    *out_queue = entry->queue;
    return WEIR_OK;
}

weir_status(weir_thread_queue)(weir_device *device, weir_queue **out_queue)
{
    WEIR_REQUIRE(NULL, out_queue);
    *out_queue = NULL;
    WEIR_ENTER(device);
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

weir_status weir_thread_queue_at(weir_device *device, weir_queue **out_queue, const char *file,
                                 int line)
{
    return weir__placed((weir_thread_queue)(device, out_queue), file, line);
}

// Removes the device's first entry from its list. NULL: none.
static weir_queue *take_first(weir_device *device)
{
    weir_lock_take(&lists_lock);
    struct weir__thread_queue *entry = device->thread_queues;
    weir_queue *queue = entry ? take_off(entry) : NULL;
    weir_lock_release(&lists_lock);
    return queue;
}

void weir__thread_queues_close(weir_device *device)
{
    pthread_once(&once, make_key);
    for (weir_queue *queue; (queue = take_first(device));)
        weir__queue_retire(queue);
    while (atomic_load(&device->ending_threads) > 0)
        sched_yield();
    weir_lock_take(&lists_lock);
    if (has_key) // entries of this thread may be its last chance
        pthread_setspecific(key, without_closed(pthread_getspecific(key)));
    weir_lock_release(&lists_lock);
}
