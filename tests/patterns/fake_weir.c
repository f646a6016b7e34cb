// Queue ids are indices into one table, from 1. A queue's clock is the virtual
// time at which its work so far ends; records note it, waits raise it.
#include "tests/patterns/fake_weir.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/check.h>

#define QUEUES 64
#define RECORDS 4096

struct weir_queue {
    char label[128];
    bool exists;
    bool timing;
    uint64_t now_ns;
    uint64_t sequence;
    uint64_t times[RECORDS];
    unsigned waits[QUEUES]; // by producer
    unsigned flushes;
    struct weir_error failure;
    bool failure_is_late; // it has not reached the queue yet
};

struct weir_device {
    struct weir_limits limits;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_device device;
static struct weir_queue queues[QUEUES];
static unsigned queues_made;
static unsigned refused_queue;
static weir_status recover_status;
static unsigned recover_times;
static bool times_expired;
static unsigned destroyed_broken;
static unsigned pending;
static unsigned queried;
static unsigned synced_early;

weir_device *fake_begin(void)
{
    memset(queues, 0, sizeof queues);
    queues_made = 0;
    refused_queue = 0;
    recover_times = 0;
    times_expired = false;
    destroyed_broken = 0;
    fake_pend(0);
    device.limits.timing_history = RECORDS;
    return &device;
}

unsigned fake_queue_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < QUEUES; i++)
        count += queues[i].exists;
    return count;
}

void fake_refuse_queue(unsigned nth)
{
    refused_queue = queues_made + nth;
}

void fake_pend(unsigned queries)
{
    pthread_mutex_lock(&lock);
    pending = queries;
    queried = 0;
    synced_early = 0;
    pthread_mutex_unlock(&lock);
}

static unsigned read_locked(const unsigned *figure)
{
    pthread_mutex_lock(&lock);
    const unsigned value = *figure;
    pthread_mutex_unlock(&lock);
    return value;
}

unsigned fake_query_count(void)
{
    return read_locked(&queried);
}

unsigned fake_early_sync_count(void)
{
    return read_locked(&synced_early);
}

static void fail_queue(weir_queue *queue, weir_status status, const char *message, bool late)
{
    pthread_mutex_lock(&lock);
    queue->failure.status = status;
    queue->failure_is_late = late;
    snprintf(queue->failure.message, sizeof queue->failure.message, "%s", message);
    pthread_mutex_unlock(&lock);
}

void fake_break(weir_queue *queue, weir_status status, const char *message)
{
    fail_queue(queue, status, message, false);
}

void fake_break_soon(weir_queue *queue, weir_status status, const char *message)
{
    fail_queue(queue, status, message, true);
}

unsigned fake_destroyed_broken(void)
{
    return destroyed_broken;
}

void fake_recover_with(weir_status status, unsigned times)
{
    recover_status = status;
    recover_times = times;
}

void fake_expire_times(bool expired)
{
    pthread_mutex_lock(&lock);
    times_expired = expired;
    pthread_mutex_unlock(&lock);
}

void fake_timing_history(uint32_t records)
{
    device.limits.timing_history = records;
}

static weir_queue *queue_labelled(const char *label)
{
    for (unsigned i = 0; i < QUEUES; i++) {
        if (strcmp(queues[i].label, label) == 0)
            return &queues[i];
    }
    return NULL;
}

unsigned fake_wait_count(const char *waiter, const char *producer)
{
    pthread_mutex_lock(&lock);
    weir_queue *from = queue_labelled(waiter);
    weir_queue *to = queue_labelled(producer);
    unsigned count = from && to ? from->waits[to - queues] : 0;
    pthread_mutex_unlock(&lock);
    return count;
}

unsigned fake_flush_count(const char *label)
{
    pthread_mutex_lock(&lock);
    weir_queue *queue = queue_labelled(label);
    unsigned count = queue ? queue->flushes : 0;
    pthread_mutex_unlock(&lock);
    return count;
}

const struct weir_limits *weir_device_limits(const weir_device *asked)
{
    return &asked->limits;
}

const struct weir_setting *weir_runtime_setting(const weir_runtime *runtime, const char *section,
                                                const char *key)
{
    (void)runtime, (void)section, (void)key;
    return NULL;
}

weir_status weir_queue_create_at(weir_device *of, const struct weir_queue_params *params,
                                 weir_queue **out_queue, const char *file, int line)
{
    (void)of, (void)file, (void)line;
    *out_queue = NULL;
    if (++queues_made == refused_queue) {
        struct weir_error error = {.status = WEIR_ERROR_OUT_OF_MEMORY};
        snprintf(error.message, sizeof error.message, "no more queues");
        return weir_error_set(&error);
    }
    weir_queue *queue = &queues[queues_made - 1];
    snprintf(queue->label, sizeof queue->label, "%s", params->label);
    queue->exists = true;
    queue->timing = params->timing;
    *out_queue = queue;
    return WEIR_OK;
}

void weir_queue_destroy_at(weir_queue **queue, const char *file, int line)
{
    (void)file;
    (void)line;
    if (*queue) {
        (*queue)->exists = false;
        destroyed_broken += (*queue)->failure.status != WEIR_OK;
    }
    *queue = NULL;
}

// With the lock.
static weir_status accept(weir_queue *queue)
{
    if (queue->failure.status != WEIR_OK && !queue->failure_is_late)
        return weir_error_set(&queue->failure);
    queue->sequence++;
    return WEIR_OK;
}

weir_status fake_work(weir_queue *queue, uint64_t duration_ns)
{
    pthread_mutex_lock(&lock);
    weir_status status = accept(queue);
    if (status == WEIR_OK)
        queue->now_ns += duration_ns;
    pthread_mutex_unlock(&lock);
    return status;
}

weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event, const char *file,
                                 int line)
{
    (void)file, (void)line;
    *out_event = (struct weir_event){0, 0};
    pthread_mutex_lock(&lock);
    weir_status status = accept(queue);
    if (status == WEIR_OK) {
        queue->times[queue->sequence % RECORDS] = queue->now_ns;
        *out_event = (struct weir_event){(uint64_t)(queue - queues) + 1, queue->sequence};
    }
    pthread_mutex_unlock(&lock);
    return status;
}

weir_status weir_queue_wait_at(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    (void)file, (void)line;
    pthread_mutex_lock(&lock);
    weir_status status = accept(queue);
    if (status == WEIR_OK) {
        weir_queue *producer = &queues[event.queue - 1];
        uint64_t time_ns = producer->times[event.sequence % RECORDS];
        queue->waits[producer - queues]++;
        if (queue->now_ns < time_ns)
            queue->now_ns = time_ns;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

weir_status weir_queue_flush_at(weir_queue *queue, const char *file, int line)
{
    (void)file, (void)line;
    pthread_mutex_lock(&lock);
    queue->flushes++;
    pthread_mutex_unlock(&lock);
    return WEIR_OK;
}

weir_status weir_queue_sync_at(weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    (void)timeout_ns, (void)file, (void)line;
    pthread_mutex_lock(&lock);
    queue->failure_is_late = false;
    struct weir_error failure = queue->failure;
    pthread_mutex_unlock(&lock);
    return failure.status == WEIR_OK ? WEIR_OK : weir_error_set(&failure);
}

weir_status weir_queue_recover_at(weir_queue *queue, const char *file, int line)
{
    (void)file;
    (void)line;
    pthread_mutex_lock(&lock);
    weir_status status = queue->failure.status;
    if (queue->failure_is_late) {
        // Nothing to recover so far; it arrives right after.
        queue->failure_is_late = false;
        status = WEIR_OK;
    } else if (status != WEIR_OK && recover_times > 0) {
        recover_times--;
        status = recover_status;
        queue->failure.status = status;
        weir_error_set(&queue->failure);
    } else {
        queue->failure.status = status = WEIR_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// These tests do not use graphs: beginning a capture is refused.

const char *weir_queue_label(const weir_queue *queue)
{
    return queue->label;
}

weir_status weir_capture_begin_at(weir_queue *queue, const char *file, int line)
{
    (void)queue, (void)file, (void)line;
    return WEIR_ERROR_UNSUPPORTED;
}

weir_status weir_capture_cancel(weir_queue *queue)
{
    (void)queue;
    return WEIR_ERROR_UNSUPPORTED;
}

weir_status weir_capture_end_at(weir_queue *queue, const struct weir_graph_params *params,
                                weir_graph **out_graph, const char *file, int line)
{
    (void)queue, (void)params, (void)file, (void)line;
    *out_graph = NULL;
    return WEIR_ERROR_UNSUPPORTED;
}

weir_status weir_queue_graph_at(weir_queue *queue, weir_graph *graph, const char *file, int line)
{
    (void)queue, (void)graph, (void)file, (void)line;
    return WEIR_ERROR_UNSUPPORTED;
}

void weir_graph_destroy_at(weir_graph **graph, const char *file, int line)
{
    (void)file;
    (void)line;
    *graph = NULL;
}

weir_status weir_event_sync_at(struct weir_event event, uint64_t timeout_ns, const char *file,
                               int line)
{
    (void)file;
    (void)line;
    (void)timeout_ns;
    pthread_mutex_lock(&lock);
    synced_early += pending > 0;
    pending = 0;
    pthread_mutex_unlock(&lock);
    return event.sequence > 0 ? WEIR_OK : WEIR_ERROR_INVALID;
}

weir_status weir_event_query_at(struct weir_event event, const char *file, int line)
{
    (void)file;
    (void)line;
    pthread_mutex_lock(&lock);
    const bool is_pending = pending > 0;
    queried += is_pending;
    pending -= is_pending;
    pthread_mutex_unlock(&lock);
    if (is_pending)
        return WEIR_NOT_READY;
    return event.sequence > 0 ? WEIR_OK : WEIR_ERROR_INVALID;
}

weir_status weir_event_time_ns_at(struct weir_event event, uint64_t *out_time_ns, const char *file,
                                  int line)
{
    (void)file;
    (void)line;
    pthread_mutex_lock(&lock);
    weir_queue *queue = &queues[event.queue - 1];
    *out_time_ns = queue->times[event.sequence % RECORDS];
    weir_status status = times_expired ? WEIR_ERROR_EXPIRED : WEIR_OK;
    if (!queue->timing)
        status = WEIR_ERROR_INVALID;
    pthread_mutex_unlock(&lock);
    return status;
}

// --- what every thread asks ---

static _Thread_local struct weir_error last_error;

const struct weir_error *weir_last_error(void)
{
    return &last_error;
}

weir_status weir_error_set_sized(const struct weir_error *error, size_t size)
{
    (void)size;
    static const struct weir_error none;
    last_error = error ? *error : none;
    return last_error.status;
}

const char *weir_status_name(weir_status status)
{
    return status == WEIR_ERROR_IO ? "WEIR_ERROR_IO" : "another status";
}

const char *weir_status_text(weir_status status)
{
    return status == WEIR_ERROR_IO ? "a file cannot be read or written" : "another text";
}

weir_runtime *weir_device_runtime(const weir_device *asked)
{
    (void)asked;
    return NULL;
}

bool weir_check_is_on(const weir_runtime *runtime)
{
    (void)runtime;
    return false;
}

void weir_check_release(weir_runtime *runtime, const void *key)
{
    (void)runtime;
    (void)key;
}

void weir_check_acquire(weir_runtime *runtime, const void *key)
{
    (void)runtime;
    (void)key;
}

void weir_region_push(weir_runtime *runtime, const char *name, uint64_t number)
{
    (void)runtime, (void)name, (void)number;
}

void weir_region_pop(weir_runtime *runtime)
{
    (void)runtime;
}
