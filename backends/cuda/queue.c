// Queues: their creation, submission, records and ends. One non-blocking stream each. The driver starts what
// it is given at once, so there is nothing to flush.
#include <inttypes.h>
#include <sched.h>

#include "backends/cuda/graph.h"
#include "backends/cuda/history.h"
#include "base/clock.h"

#define WORD_DISTANCE 256

_Static_assert(sizeof(atomic_uint) == sizeof(cuuint32_t), "a word is 32 bits");

// CU_STREAM_PER_THREAD, a macro of <cuda.h>.
#define STREAM_PER_THREAD 2u

// Waits for the program's work. CUDA_ERROR_LAUNCH_TIMEOUT: the device was given up meanwhile.

// Whether the stream's work, or what is before the event if that is not NULL, has ended.
static CUresult ask(const struct cu_device *device, CUstream stream, CUevent event)
{
    const struct cu_symbols *cu = &device->module->cu;
    if (cu_is_given_up(device))
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    return event ? cu_ask_event(cu, event) : cu_ask_stream(cu, stream);
}

// The driver's own waits spin, unless a program sets another way for the context, and a sleep ends some 60 us
// late: so a wait sleeps only when that makes it longer by less than a hundredth.
#define SPIN_NS UINT64_C(10000000)
#define MOST_PAUSE_NS UINT64_C(1000000)

// In the driver, unless a communicator may have work whose end nothing is sure of.
static CUresult await(const struct cu_device *device, CUstream stream, CUevent event)
{
    const struct cu_symbols *cu = &device->module->cu;
    if (atomic_load_explicit(&device->module->comms, memory_order_relaxed) == 0)
        return event ? cu_await_event(cu, event) : cu_await_stream(cu, stream);
    const uint64_t start_ns = weir_clock_now_ns();
    CUresult code;
    while ((code = ask(device, stream, event)) == CUDA_ERROR_NOT_READY) {
        const uint64_t passed_ns = weir_clock_now_ns() - start_ns;
        if (passed_ns < SPIN_NS)
            sched_yield();
        else
            weir_clock_sleep_ns(passed_ns / 256 < MOST_PAUSE_NS ? passed_ns / 256 : MOST_PAUSE_NS);
    }
    return code;
}

// Records: the kit's, on events that are used again.

// The driver may block here when its queue is full.
static weir_status record_event(void *user, void **event)
{
    const struct cu_queue *queue = user;
    struct cu_device *device = queue->device;
    const unsigned timing = queue->timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    const unsigned blocking = device->module->spin ? CU_EVENT_DEFAULT : CU_EVENT_BLOCKING_SYNC;
    struct cu_trial trial = {.device = device};
    CUevent native = *event;
    if (!native)
        CU_TRY(&trial, cuEventCreate, &native, timing | blocking);
    *event = trial.code == CUDA_SUCCESS ? native : NULL;
    CU_TRY(&trial, cuEventRecord, native, queue->stream);
    return trial.code == CUDA_SUCCESS ? WEIR_OK : cu_tried(&trial, "record");
}

static void destroy_event(void *user, void *event)
{
    const struct cu_queue *queue = user;
    queue->device->module->cu.cuEventDestroy(event);
}

static enum weir_kit_state state_of(CUresult code, int *out_code)
{
    *out_code = (int)code;
    if (code == CUDA_SUCCESS)
        return WEIR_KIT_COMPLETE;
    return code == CUDA_ERROR_NOT_READY ? WEIR_KIT_PENDING : WEIR_KIT_UNKNOWN;
}

static enum weir_kit_state query_event(void *user, void *event, int *out_code)
{
    const struct cu_queue *queue = user;
    return state_of(ask(queue->device, NULL, event), out_code);
}

static enum weir_kit_state wait_for_event(void *user, void *event, int *out_code)
{
    const struct cu_queue *queue = user;
    return state_of(await(queue->device, NULL, event), out_code);
}

static int time_of_event(void *user, void *event, uint64_t *out_time_ns)
{
    const struct cu_queue *queue = user;
    return (int)cu_timeline_convert(queue->device, event, out_time_ns);
}

static weir_status report(void *user, enum weir_kit_question question, int code, uint64_t sequence)
{
    static const struct {
        const char *call;
        const char *attempt;
    } all[] = {
        [WEIR_KIT_ASKED] = {"cuEventQuery", "ask for the end of"},
        [WEIR_KIT_WAITED] = {"cuEventSynchronize", "wait for"},
        [WEIR_KIT_TIMED] = {"cuEventElapsedTime", "ask for the time of"},
        [WEIR_KIT_WORKED] = {"cuEventQuery", "carry out"}, // never: see state_of()
    };
    return CU_FAIL(((struct cu_queue *)user)->device, all[question].call, (CUresult)code,
                   "%s operation %" PRIu64, all[question].attempt, sequence);
}

static const struct weir_kit_record_ops ops = {
    .reused = true,
    .record = record_event,
    .destroy = destroy_event,
    .query = query_event,
    .wait = wait_for_event,
    .time = time_of_event,
    .report = report,
};

static weir_status init_records(struct cu_queue *queue)
{
    const struct weir_kit_records_params params = {
        .host = queue->device->module->host,
        .ops = &ops,
        .queue = queue,
        .timing_history = queue->timing ? CU_TIMING_HISTORY : 0,
    };
    return weir_kit_records_create(&params, &queue->records);
}

// Histories: history.h.

// Release on every store orders them after the first store, as acquire on every load orders them before the last
// load.
static void add_entry(struct cu_history *history, const struct weir_operation *operation,
                      const char *name)
{
    const bool is_wait = operation->kind == WEIR_OPERATION_WAIT;
    const struct weir_event event = is_wait ? operation->u.wait.event : (struct weir_event){0};
    const uint64_t count = atomic_load_explicit(&history->count, memory_order_relaxed);
    struct cu_entry *entry = &history->entries[count % CU_HISTORY_KEPT];
    atomic_store_explicit(&entry->sequence, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->name, name, memory_order_release);
    atomic_store_explicit(&entry->producer, event.queue, memory_order_release);
    atomic_store_explicit(&entry->reached, event.sequence, memory_order_release);
    atomic_store_explicit(&entry->file, operation->file, memory_order_release);
    atomic_store_explicit(&entry->line, operation->line, memory_order_release);
    atomic_store_explicit(&entry->kind, (int)operation->kind, memory_order_release);
    atomic_store_explicit(&entry->sequence, operation->sequence, memory_order_release);
    atomic_store_explicit(&history->count, count + 1, memory_order_release);
    history->unwritten += !is_wait;
}

static weir_status init_history(struct cu_queue *queue, const weir_queue *object)
{
    struct cu_device *device = queue->device;
    const struct weir_host *host = device->module->host;
    size_t slot = 0;
    queue->id = weir_queue_object(object)->id;
    queue->label = weir_queue_object(object)->label;
    queue->history = host->allocate(sizeof *queue->history);
    if (!queue->history)
        return weir_host_no_memory(host, "the history of a queue");
    pthread_mutex_lock(&device->lock);
    while (slot < CU_WORD_COUNT && device->words.used[slot])
        slot++;
    if (slot < CU_WORD_COUNT) {
        device->words.used[slot] = true;
        queue->history->word = (atomic_uint *)device->words.page + slot;
        queue->history->word_address = device->words.address + slot * sizeof(atomic_uint);
        atomic_store(queue->history->word, 0);
    }
    pthread_mutex_unlock(&device->lock);
    return WEIR_OK;
}

// What fails here costs knowledge and nothing else: a fault is met by the next call.
static void write_word(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_history *history = queue->history;
    const struct cu_module *module = queue->device->module;
    struct cu_words *words = &queue->device->words;
    if (!history->word || atomic_load_explicit(&words->off, memory_order_relaxed))
        return;
    atomic_store_explicit(&history->written, sequence, memory_order_release);
    CUresult code =
        module->cu.cuStreamWriteValue32(queue->stream, history->word_address, (cuuint32_t)sequence,
                                        CU_STREAM_WRITE_VALUE_DEFAULT);
    if (code == CUDA_SUCCESS)
        history->unwritten = 0;
    else if (code == CUDA_ERROR_NOT_SUPPORTED && !atomic_exchange(&words->off, true))
        module->host->log(WEIR_LOG_WARNING, "cuda",
                          "the device's streams write no values to memory: if a kernel faults, "
                          "what is known to have finished is only what the host has seen");
}

// Notes an operation before it is submitted; before some records also makes the stream write its
// progress. Within the device's context.
static void note_operation(struct cu_queue *queue, const struct weir_operation *operation)
{
    struct cu_history *history = queue->history;
    const char *name = NULL;
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        name = weir_kernel_object(operation->u.launch.kernel)->label;
    if (operation->kind == WEIR_OPERATION_GRAPH)
        name = weir_graph_object(operation->u.graph.graph)->label;
    if (operation->kind != WEIR_OPERATION_RECORD)
        add_entry(history, operation, name);
    else if (history->unwritten >= WORD_DISTANCE)
        write_word(queue, operation->sequence);
}

// Wrapped streams. They are checked here, because the driver crashes with a stream of another context. A stream
// that is being captured accepts no records of a queue, and the per-thread default stream would be a different
// stream on the thread that delivers held operations.

// Within the device's context.
static weir_status wrap_stream(struct cu_queue *queue, void *native)
{
    struct cu_device *device = queue->device;
    const struct cu_module *module = device->module;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUcontext context = NULL;
    CUstream stream = native;

    if ((uintptr_t)native == STREAM_PER_THREAD)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID, "wrap a stream that you created",
                              "the per-thread default stream is another one on each thread");
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuStreamGetCtx, stream, &context);
    if (trial.code == CUDA_SUCCESS && context != device->context)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID,
                              "create it in the primary context, as the CUDA runtime does",
                              "the stream is of another context than the device's");
    CU_TRY(&trial, cuStreamIsCapturing, stream, &capture);
    if (trial.code != CUDA_SUCCESS)
        return cu_tried(&trial, "cannot wrap a stream");
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID,
                              "wrap it before the capture, or after",
                              "the stream is being captured");
    queue->stream = stream;
    queue->wrapped = true;
    return WEIR_OK;
}

// Creation and destruction.

// Within the device's context.
static void release(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    const struct cu_module *module = device->module;
    struct cu_queue **at = &device->queues;
    pthread_mutex_lock(&device->lock);
    while (*at && *at != queue)
        at = &(*at)->next;
    if (*at)
        *at = queue->next;
    pthread_mutex_unlock(&device->lock);
    cu_comms_forget_queue(queue);
    weir_kit_records_destroy(&queue->records);
    cu_watch_finish(queue);
    if (queue->stream && !queue->wrapped)
        module->cu.cuStreamDestroy(queue->stream);
    if (queue->history && queue->history->word) {
        pthread_mutex_lock(&device->lock);
        device->words.used[queue->history->word - (atomic_uint *)device->words.page] = false;
        pthread_mutex_unlock(&device->lock);
    }
    module->host->release(queue->history);
    module->host->release(queue);
}

static weir_status create_stream(struct cu_queue *queue, const struct weir_queue_setup *setup)
{
    struct cu_device *device = queue->device;
    struct cu_trial trial = {.device = device};
    if (setup->native) {
        TRY(wrap_stream(queue, setup->native));
    } else {
        CU_TRY(&trial, cuStreamCreateWithPriority, &queue->stream, CU_STREAM_NON_BLOCKING,
               -setup->priority);
        if (trial.code != CUDA_SUCCESS) {
            queue->stream = NULL;
            return cu_tried(&trial, "cannot create a queue");
        }
        device->module->host->count_driver_object();
    }
    pthread_mutex_lock(&device->lock);
    queue->next = device->queues;
    device->queues = queue;
    pthread_mutex_unlock(&device->lock);
    return WEIR_OK;
}

weir_status cu_queue_create(const struct weir_link *link, weir_device *device_object,
                            weir_queue *object, const struct weir_queue_setup *setup,
                            void **out_data)
{
    struct cu_device *device = cu_device_of(link, device_object);
    struct cu_scope scope;
    TRY(cu_enter(device, &scope));
    struct cu_queue *queue = link->host->allocate(sizeof *queue);
    if (!queue) {
        cu_leave(device, &scope);
        return weir_host_no_memory(link->host, "a queue");
    }
    queue->device = device;
    queue->timing = setup->timing;
    weir_status status = init_records(queue);
    if (status == WEIR_OK)
        status = init_history(queue, object);
    if (status == WEIR_OK)
        status = create_stream(queue, setup);
    if (status == WEIR_OK && setup->times)
        status = cu_watch_init(queue);
    if (status < 0)
        release(queue);
    else
        *out_data = queue;
    cu_leave(device, &scope);
    return status;
}

void cu_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_device *device = queue->device;
    struct cu_scope scope;
    cu_enter_to_destroy(device, &scope);
    release(queue);
    cu_leave(device, &scope);
}

// Submission.

static weir_status submit_record(struct cu_queue *queue, uint64_t sequence)
{
    if (queue->timing)
        cu_timeline_advance(queue->device);
    return weir_kit_records_add(queue->records, sequence);
}

static weir_status submit_wait(struct cu_queue *queue, struct cu_queue *producer, uint64_t sequence)
{
    CUevent event = weir_kit_records_hold(producer->records, sequence);
    if (!event)
        return WEIR_OK;
    CUresult code = queue->device->module->cu.cuStreamWaitEvent(queue->stream, event, 0);
    weir_kit_records_release(producer->records, sequence);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return CU_FAIL(queue->device, "cuStreamWaitEvent", code, "wait");
}

static weir_status submit_launch(const struct weir_link *link, struct cu_queue *queue,
                                 const struct weir_operation *operation)
{
    struct cu_device *device = queue->device;
    const struct cu_kernel *kernel = cu_kernel_of(link, operation->u.launch.kernel);
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    struct cu_packed packed; // large, so only what is used of it is written
    cu_pack(link, operation, &packed);

    const bool cooperative = cu_is_cooperative(device, operation);
    const unsigned local_bytes = (unsigned)packed.local_bytes;
    const struct cu_symbols *cu = &device->module->cu;
    CUresult code =
        cooperative
            ? cu->cuLaunchCooperativeKernel(kernel->function, grid.x, grid.y, grid.z, block.x,
                                            block.y, block.z, local_bytes, queue->stream,
                                            packed.pointers)
            : cu->cuLaunchKernel(kernel->function, grid.x, grid.y, grid.z, block.x, block.y,
                                 block.z, local_bytes, queue->stream, packed.pointers, NULL);
    cu_watch_command(queue);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return CU_FAIL(device, cooperative ? "cuLaunchCooperativeKernel" : "cuLaunchKernel", code,
                   "launch of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " blocks of %" PRIu32
                   " x %" PRIu32 " x %" PRIu32 " with %zu bytes of local memory",
                   grid.x, grid.y, grid.z, block.x, block.y, block.z, packed.local_bytes);
}

static weir_status submit(const struct weir_link *link, struct cu_queue *queue,
                          const struct weir_operation *operation)
{
    if (queue->carried && operation->kind != WEIR_OPERATION_RECORD &&
        operation->kind != WEIR_OPERATION_COLLECTIVE)
        cu_comms_mark_queue(queue);
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_FILL:
        return cu_split_copy(link, &(struct cu_target){queue->device, queue, NULL}, operation);
    case WEIR_OPERATION_LAUNCH:
        return submit_launch(link, queue, operation);
    case WEIR_OPERATION_NATIVE:
        return cu_call_native(queue, operation);
    case WEIR_OPERATION_RECORD:
        return submit_record(queue, operation->sequence);
    case WEIR_OPERATION_WAIT:
        return submit_wait(queue, cu_queue_of(link, operation->u.wait.producer),
                           operation->u.wait.event.sequence);
    case WEIR_OPERATION_GRAPH:
        return cu_submit_graph(link, queue, operation);
    case WEIR_OPERATION_COLLECTIVE:
        return cu_submit_collective(link, queue, operation);
    default: // the library keeps the others
        return weir_host_unknown_kind(link, operation);
    }
}

weir_status cu_queue_submit(const struct weir_link *link, weir_queue *object,
                            const struct weir_operation *operation)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    TRY(cu_enter(queue->device, &scope));
    note_operation(queue, operation);
    if (queue->watch)
        cu_watch_begin(queue, operation);
    weir_status status = submit(link, queue, operation);
    if (queue->watch)
        cu_watch_end(queue, status == WEIR_OK);
    if (queue->device->module->attribute_faults && status == WEIR_OK &&
        cu_is_work((int)operation->kind))
        write_word(queue, operation->sequence);
    cu_leave(queue->device, &scope);
    return status;
}

// Ends.

weir_status cu_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    if (weir_kit_records_completed(queue->records) >= sequence)
        return WEIR_OK;
    TRY(cu_enter(queue->device, &scope));
    weir_status status = weir_kit_records_query(queue->records, sequence);
    cu_leave(queue->device, &scope);
    return status;
}

weir_status cu_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t timeout_ns)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    TRY(cu_enter(queue->device, &scope));
    weir_status status = weir_kit_records_wait(queue->records, sequence, timeout_ns);
    if (status == WEIR_OK)
        cu_settle(queue->device);
    cu_leave(queue->device, &scope);
    return status;
}

weir_status cu_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t *out_time_ns)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    TRY(cu_enter(queue->device, &scope));
    weir_status status = weir_kit_records_time(queue->records, sequence, out_time_ns);
    cu_leave(queue->device, &scope);
    return status;
}

weir_status cu_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_device *device = queue->device;
    struct cu_scope scope;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    CUresult code = await(device, queue->stream, NULL);
    if (code != CUDA_SUCCESS)
        status = CU_FAIL(device, "cuStreamSynchronize", code, "wait for the queue to finish");
    else
        cu_settle(device);
    cu_leave(device, &scope);
    return status;
}

void cu_queue_leave(const struct weir_link *link, weir_queue *object)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    // Held until the queue goes.
    CUevent end = weir_kit_records_hold(queue->records, weir_kit_records_last(queue->records));
    pthread_mutex_lock(&queue->device->lock);
    queue->left = true;
    queue->end = end;
    pthread_mutex_unlock(&queue->device->lock);
}

weir_status cu_queue_native(const struct weir_link *link, weir_queue *object,
                            struct weir_native_queue *out_native)
{
    const struct weir_native_queue native = cu_describe_queue(cu_queue_of(link, object));
    WEIR_WRITE(out_native, &native);
    return WEIR_OK;
}
