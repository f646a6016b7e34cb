// See the header. The slots are replaced in the chain's own link, after opening.
#include "tests/unit/core_backend.h"

#include "core/runtime/runtime.h"

#define SEEN_LIMIT 4096

struct gate control_gate;

static struct weir_module_ops null_ops;
static struct weir_module_ops own_ops;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all that follows
static struct seen seen[SEEN_LIMIT];
static size_t seen_count;
static enum weir_operation_kind refused_kind;
static int refused_after;

static atomic_bool stalled;
static const weir_queue *_Atomic stalled_queue;
static atomic_size_t blocked;
static atomic_bool peers;
static atomic_int fault;
static atomic_bool silent; // it reports no detail
static atomic_size_t queries;
static atomic_size_t flushes;
static atomic_size_t buffer_destroys;

// Called with the lock held.
static bool refuses(enum weir_operation_kind kind)
{
    if (refused_kind != kind || refused_after-- > 0)
        return false;
    refused_kind = (enum weir_operation_kind)0;
    return true;
}

static weir_status queue_submit(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    static const struct weir_error refusal = {
        .status = WEIR_ERROR_DEVICE,
        .message = "the driver has had enough",
        .native_call = "driverSubmit",
        .native_name = "DRIVER_BUSY",
        .native_code = -77,
    };

    pthread_mutex_lock(&lock);
    if (seen_count < SEEN_LIMIT)
        seen[seen_count++] = (struct seen){
            .kind = operation->kind,
            .flags = operation->flags,
            .sequence = operation->sequence,
            .queue = queue,
        };
    if (operation->kind == WEIR_OPERATION_WAIT && seen_count > 0) {
        seen[seen_count - 1].producer = operation->u.wait.producer;
        seen[seen_count - 1].awaited = operation->u.wait.event.sequence;
    }
    if (operation->kind == WEIR_OPERATION_FILL && seen_count > 0)
        seen[seen_count - 1].offset = operation->u.box.dst.offset;
    bool refused = refuses(operation->kind);
    pthread_mutex_unlock(&lock);
    return refused ? link->host->error(&refusal, sizeof refusal)
                   : null_ops.queue_submit(link, queue, operation);
}

static weir_status queue_flush(const struct weir_link *link, weir_queue *queue)
{
    atomic_fetch_add(&flushes, 1);
    return atomic_load(&silent) ? (weir_status)atomic_load(&fault) : WEIR_OK;
}

static weir_status report_fault(const struct weir_link *link)
{
    if (atomic_load(&silent))
        return (weir_status)atomic_load(&fault);
    const struct weir_error detail = {.status = (weir_status)atomic_load(&fault),
                                      .message = "the driver lost its mind",
                                      .native_call = "driverAsk",
                                      .native_code = 700};
    return link->host->error(&detail, sizeof detail);
}

static bool stays(const weir_queue *queue)
{
    return atomic_load(&stalled_queue) == queue;
}

static weir_status event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence)
{
    atomic_fetch_add(&queries, 1);
    if (atomic_load(&fault))
        return report_fault(link);
    return atomic_load(&stalled) || stays(queue) ? WEIR_NOT_READY
                                                 : null_ops.event_query(link, queue, sequence);
}

// Until the queue is not stalled any more.
static weir_status block(const weir_queue *queue, uint64_t timeout_ns)
{
    const uint64_t begin_ns = weir_clock_now_ns();
    bool blocks = stays(queue);
    atomic_fetch_add(&blocked, blocks);
    const size_t entered = blocks;
    while (blocks && weir_clock_now_ns() - begin_ns < timeout_ns) {
        weir_clock_sleep_ns(100000);
        blocks = stays(queue);
    }
    atomic_fetch_sub(&blocked, entered);
    return blocks ? WEIR_TIMEOUT : WEIR_OK;
}

static weir_status queue_finish(const struct weir_link *link, weir_queue *queue)
{
    (void)block(queue, WEIR_FOREVER);
    return null_ops.queue_finish(link, queue);
}

static weir_status event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t timeout_ns)
{
    if (atomic_load(&fault))
        return report_fault(link);
    if (block(queue, timeout_ns) != WEIR_OK)
        return WEIR_TIMEOUT;
    if (!atomic_load(&stalled))
        return null_ops.event_wait(link, queue, sequence, timeout_ns);
    return WEIR_TIMEOUT;
}

static void buffer_destroy(const struct weir_link *link, weir_buffer *buffer)
{
    atomic_fetch_add(&buffer_destroys, 1);
    null_ops.buffer_destroy(link, buffer);
}

static weir_status device_peer(const struct weir_link *link, weir_device *device,
                               weir_device *other, bool *out_peers)
{
    *out_peers = atomic_load(&peers);
    return WEIR_OK;
}

static void take_over(weir_runtime *runtime)
{
    struct weir_link *backend = &runtime->chain.links[runtime->chain.count - 1];
    null_ops = *backend->ops;
    own_ops = null_ops;
    own_ops.queue_submit = queue_submit;
    own_ops.queue_flush = queue_flush;
    own_ops.queue_finish = queue_finish;
    own_ops.event_query = event_query;
    own_ops.event_wait = event_wait;
    own_ops.buffer_destroy = buffer_destroy;
    own_ops.device_peer = device_peer;
    backend->ops = &own_ops;
}

static void reset(void)
{
    control_forget();
    control_stall(false);
    control_stall_queue(NULL);
    control_peers(false);
    control_refuse((enum weir_operation_kind)0, 0);
    control_fault(WEIR_OK);
    atomic_store(&queries, 0);
    atomic_store(&flushes, 0);
    atomic_store(&buffer_destroys, 0);
    gate_shut(&control_gate);
    control_gate.status = WEIR_OK;
}

bool control_open(struct control *control)
{
    *control = (struct control){0};
    reset();
    if (weir_open(WEIR_PARAMS(weir_open, .config_path = "control.ini",
                              .config_text = "[null]\ndevices = 2\n", .backend = "null",
                              .plugins = "", .module_path = weir_test_runfile("backends/null")),
                  &control->runtime) == WEIR_OK) {
        take_over(control->runtime);
        for (int i = 0; i < 2; i++) {
            WEIR_IGNORE(weir_device_open(control->runtime,
                                         WEIR_PARAMS(weir_device, .select = i ? "1" : "0"),
                                         &control->devices[i]));
        }
    }
    if (control->devices[0] && control->devices[1])
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

void control_close(struct control *control)
{
    for (int i = 0; i < 2; i++)
        EXPECT_OK(weir_device_close(&control->devices[i]));
    EXPECT_OK(weir_close(&control->runtime));
}

weir_queue *control_legacy(const struct control *control)
{
    weir_queue *queue;
    EXPECT_OK(weir_legacy_queue(control->devices[0], &queue));
    return queue;
}

weir_queue *control_queue(const struct control *control, const char *label)
{
    return test_queue(control->devices[0], label);
}

weir_buffer *control_buffer(const struct control *control, size_t size)
{
    return test_buffer(control->devices[0], NULL, size, WEIR_PLACE_DEVICE);
}

bool control_seen(size_t index, struct seen *out_seen)
{
    pthread_mutex_lock(&lock);
    bool there = index < seen_count;
    *out_seen = there ? seen[index] : (struct seen){0};
    pthread_mutex_unlock(&lock);
    return there;
}

size_t control_count(enum weir_operation_kind kind)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < seen_count; i++)
        count += seen[i].kind == kind;
    pthread_mutex_unlock(&lock);
    return count;
}

void control_forget(void)
{
    pthread_mutex_lock(&lock);
    seen_count = 0;
    pthread_mutex_unlock(&lock);
}

void control_peers(bool on)
{
    atomic_store(&peers, on);
}

void control_stall(bool on)
{
    atomic_store(&stalled, on);
}

void control_stall_queue(const weir_queue *queue)
{
    atomic_store(&stalled_queue, queue);
}

size_t control_blocked_count(void)
{
    return atomic_load(&blocked);
}

void control_refuse(enum weir_operation_kind kind, int after)
{
    pthread_mutex_lock(&lock);
    refused_kind = kind;
    refused_after = after;
    pthread_mutex_unlock(&lock);
}

void control_fault(weir_status status)
{
    atomic_store(&silent, false);
    atomic_store(&fault, (int)status);
}

void control_silent_fault(weir_status status)
{
    atomic_store(&fault, (int)status);
    atomic_store(&silent, true);
}

size_t control_query_count(void)
{
    return atomic_load(&queries);
}

size_t control_flush_count(void)
{
    return atomic_load(&flushes);
}

size_t control_buffer_destroy_count(void)
{
    return atomic_load(&buffer_destroys);
}
