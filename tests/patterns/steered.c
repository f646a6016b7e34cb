// A queue's clock is the virtual time at which its work so far ends; records note it, waits raise it.
#include "tests/patterns/steered.h"

#define QUEUES 64
#define RECORDS 4096

struct steered_queue {
    const weir_queue *queue; // NULL: destroyed
    uint64_t id;             // in events
    bool timing;
    bool broken;
    uint64_t now_ns;
    uint64_t times[RECORDS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct steered_queue queues[QUEUES];
static weir_buffer *memory;
static struct weir_error breaking;
static struct weir_limits limits;
static unsigned pending; // queries
static struct steered_waits waits;
struct steered steered;

// With the lock. All queues that are asked for were created here, and all events recorded.
static struct steered_queue *find(const weir_queue *queue)
{
    struct steered_queue *at = queues;
    while (at->queue != queue)
        at++;
    return at;
}

static struct steered_queue *find_id(uint64_t id)
{
    struct steered_queue *at = queues;
    while (at->id != id)
        at++;
    return at;
}

weir_device *steered_open(void)
{
    memset(queues, 0, sizeof queues);
    memset(&limits, 0, sizeof limits);
    steered = (struct steered){.queues = 0};
    steered_pend(0);
    if (!IS_OK(rig_open(NULL)))
        return NULL;
    memory = test_buffer(rig.device, "memory", 64, WEIR_PLACE_DEVICE);
    limits = *weir_device_limits(rig.device);
    limits.timing_history = RECORDS;
    return rig.device;
}

void steered_close(void)
{
    weir_buffer_destroy(&memory);
    rig_close();
}

WRAP(const struct weir_limits *, device_limits, const weir_device *device)
{
    return limits.timing_history == 0 && limits.max_buffer_bytes == 0
               ? __real_weir_device_limits(device)
               : &limits;
}

void steered_timing_history(uint32_t records)
{
    limits.timing_history = records;
}

WRAP(weir_status, queue_create_at, weir_device *device, const struct weir_queue_params *params,
     weir_queue **out_queue, const char *file, int line)
{
    *out_queue = NULL;
    if (++steered.queues == steered.refused_queue)
        return rig_error(WEIR_ERROR_OUT_OF_MEMORY, "no more queues");
    const weir_status status = __real_weir_queue_create_at(device, params, out_queue, file, line);
    struct steered_queue *queue = &queues[steered.queues - 1];
    queue->queue = *out_queue;
    queue->timing = params->timing;
    return status;
}

WRAP(void, queue_destroy_at, weir_queue **queue, const char *file, int line)
{
    if (*queue)
        find(*queue)->queue = NULL;
    __real_weir_queue_destroy_at(queue, file, line);
}

weir_status steered_work(weir_queue *queue, uint64_t duration_ns)
{
    const weir_status status = weir_queue_fill(queue, memory, 0, 64, "", 1);
    pthread_mutex_lock(&lock);
    if (status == WEIR_OK)
        find(queue)->now_ns += duration_ns;
    pthread_mutex_unlock(&lock);
    return status;
}

WRAP(weir_status, queue_record_at, weir_queue *queue, struct weir_event *out_event,
     const char *file, int line)
{
    const weir_status status = __real_weir_queue_record_at(queue, out_event, file, line);
    pthread_mutex_lock(&lock);
    if (status == WEIR_OK) {
        struct steered_queue *of = find(queue);
        of->id = out_event->queue;
        of->times[out_event->sequence % RECORDS] = of->now_ns;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

WRAP(weir_status, queue_wait_at, weir_queue *queue, struct weir_event event, const char *file,
     int line)
{
    const weir_status status = __real_weir_queue_wait_at(queue, event, file, line);
    pthread_mutex_lock(&lock);
    if (status == WEIR_OK) {
        struct steered_queue *waiter = find(queue);
        struct steered_queue *producer = find_id(event.queue);
        const uint64_t time_ns = producer->times[event.sequence % RECORDS];
        waiter->now_ns = waiter->now_ns < time_ns ? time_ns : waiter->now_ns;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// Failures.

static weir_status break_now(void *user)
{
    return weir_error_set(&breaking);
}

static weir_status break_soon(void *user)
{
    rig_sleep_ns(20000000);
    return break_now(user);
}

void steered_break(weir_queue *queue, weir_status status, const char *message, bool soon)
{
    WEIR_IGNORE(rig_error(status, message ? message : ""));
    breaking = *weir_last_error();
    find(queue)->broken = true;
    EXPECT_OK(weir_queue_host_call(queue, soon ? break_soon : break_now, NULL));
    EXPECT_TRUE(soon || weir_queue_sync(queue, WEIR_FOREVER) < 0);
}

WRAP(weir_status, queue_recover_at, weir_queue *queue, const char *file, int line)
{
    struct steered_queue *of = find(queue);
    if (of->broken && steered.recover_times > 0) {
        steered.recover_times--;
        return rig_error(steered.recover_status, breaking.message);
    }
    const weir_status status = __real_weir_queue_recover_at(queue, file, line);
    of->broken = of->broken && status != WEIR_OK;
    return status;
}

// Events.

WRAP(weir_status, event_time_ns_at, struct weir_event event, uint64_t *out_time_ns,
     const char *file, int line)
{
    pthread_mutex_lock(&lock);
    const struct steered_queue *queue = find_id(event.queue);
    *out_time_ns = queue->times[event.sequence % RECORDS];
    const weir_status status = !queue->timing          ? WEIR_ERROR_INVALID
                               : steered.times_expired ? WEIR_ERROR_EXPIRED
                                                       : WEIR_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

void steered_pend(unsigned queries)
{
    pthread_mutex_lock(&lock);
    pending = queries;
    waits = (struct steered_waits){0, 0};
    pthread_mutex_unlock(&lock);
}

struct steered_waits steered_waits(void)
{
    pthread_mutex_lock(&lock);
    const struct steered_waits so_far = waits;
    pthread_mutex_unlock(&lock);
    return so_far;
}

WRAP(weir_status, event_query_at, struct weir_event event, const char *file, int line)
{
    pthread_mutex_lock(&lock);
    const bool is_pending = pending > 0;
    waits.queries += is_pending;
    pending -= is_pending;
    pthread_mutex_unlock(&lock);
    return is_pending ? WEIR_NOT_READY : __real_weir_event_query_at(event, file, line);
}

WRAP(weir_status, event_sync_at, struct weir_event event, uint64_t timeout_ns, const char *file,
     int line)
{
    pthread_mutex_lock(&lock);
    waits.early_syncs += pending > 0;
    pending = 0;
    pthread_mutex_unlock(&lock);
    return __real_weir_event_sync_at(event, timeout_ns, file, line);
}
