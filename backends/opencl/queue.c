// Queues: their creation, submission, records and ends. One in-order command queue for each queue. OpenCL
// need not start anything before a flush, even if another queue waits for it. The numbers of the last
// operation submitted and of the last one flushed tell for each event whether a flush is necessary.
//
// What a queue's next command waits for, and the event of its last one.
//
// A wait of Weir's need not be a command of the driver's, and neither need a record: a command takes
// events to wait for, and has one of its own. On NVIDIA's driver a frame of five queues takes 60.7 us so,
// and 76.5 us with a barrier for each wait and a marker for each record. The rules:
//
//   a wait      is kept, and the next command gets it in its wait list. Later commands come after that
//               one, as the queue is in order.
//   a record    takes the event of the last command, if no wait came since; else it is a marker, which
//               gets the waits. Further records take the same event until there is another command.
//   a command   has an event if it is expected to be the last one before a record: as many commands as
//               lie between the two records before. A queue that does the same again and again so
//               makes one event a record; another one pays for a marker here and there. Where errors do not stay
//               all commands have one anyway (events.c), and so have they if a plugin wants times.
//
// Waits become a barrier where there is no next command, or it is not Weir's: when the list is full, in
// ocl_queue_finish(), and before a native call. A driver that refuses the barrier keeps no queue from its
// recovery: then the host waits for the events. A command queue that was wrapped, or whose handle was
// handed out, gets a barrier at each wait, since the program may submit to it at any time. What it
// submitted last is not known, so the records of such a queue are markers, and so is the first one after
// a native call, and one after the queue has finished, as for its recovery: that is no part of a failure.
//
// The records of a queue with timing are markers too. Their time is when the device came to them, and not
// when the command before them ended, after which the queue may have been idle. Their waits are a barrier:
// NVIDIA's driver tells 0 as the time of a marker with a wait list.
//
// The queue that is waited for is flushed when Weir waits, and not when the command is submitted: it
// may be gone by then, and the event is retained, so nothing else is needed. A wait that was not
// submitted needs no flush of its own queue either, as nothing can wait for it before there is a
// command or a marker after it.
//
// The driver ends a command with an error if an event in its list ended with one. Then the record
// that took its event fails, and events.c knows which command was the first cause, since it keeps the
// wait with the number of its own operation, which came before the command's.
//
// Submits are never concurrent, but other threads finish a queue and ask for its handle. The lock is held
// while the driver takes a command, which on PoCL's serial device is until it is done.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

// For the state of an event that was waited for.
#define TIME_PATIENCE_NS 10000000

static const struct weir_lock_kind commands_lock = {"the lock of a queue's commands", 0};

static void drop_last(struct ocl_queue *queue)
{
    if (queue->commands.last)
        queue->device->module->cl.clReleaseEvent(queue->commands.last);
    queue->commands.last = NULL;
}

// The driver has its own references to what a command waits for.
static void drop_waits(struct ocl_queue *queue)
{
    struct ocl_commands *commands = &queue->commands;
    for (cl_uint i = 0; i < commands->wait_count; i++)
        queue->device->module->cl.clReleaseEvent(commands->waits[i]);
    commands->wait_count = 0;
}

// Commands.

// Whether the records of the queue have to be commands of their own.
static bool needs_markers(const struct ocl_commands *commands)
{
    return commands->timing || commands->shared;
}

const struct ocl_command *ocl_command_begin(struct ocl_queue *queue)
{
    struct ocl_commands *commands = &queue->commands;
    struct ocl_command *command = &commands->command;
    weir_lock_take(&commands->lock);
    command->is_last = commands->count + 1 == commands->expected && !needs_markers(commands);
    command->own = NULL;
    command->event = queue->watch                         ? ocl_watch_event(queue)
                     : queue->pending || command->is_last ? &command->own
                                                          : NULL;
    command->wait_count = commands->wait_count;
    command->waits = commands->wait_count > 0 ? commands->waits : NULL;
    return command;
}

// The watch, the list of commands and `last` each have a reference to the event; the driver gave one.
static cl_int share_event(struct ocl_queue *queue, const struct ocl_command *command,
                          cl_event *out_kept)
{
    const struct ocl_symbols *cl = &queue->device->module->cl;
    const cl_event event = command->event ? *command->event : NULL;
    bool is_shared = queue->watch != NULL;
    if (queue->pending) {
        const cl_int code = is_shared ? cl->clRetainEvent(event) : CL_SUCCESS;
        if (code != CL_SUCCESS)
            return code;
        *out_kept = event;
        is_shared = true;
    }
    // Without a reference to it, the record is a marker.
    if (command->is_last && (!is_shared || cl->clRetainEvent(event) == CL_SUCCESS))
        queue->commands.last = event;
    return CL_SUCCESS;
}

weir_status ocl_command_end(struct ocl_queue *queue, cl_int code, const char *call,
                            const char *format, ...)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_commands *commands = &queue->commands;
    cl_event kept = NULL;
    char text[256];
    va_list arguments;
    if (code == CL_SUCCESS) {
        commands->count++;
        drop_waits(queue);
        drop_last(queue);
        call = "clRetainEvent";
        code = share_event(queue, &commands->command, &kept);
    }
    weir_lock_release(&commands->lock);
    const struct ocl_entry entry = {.sequence = queue->sequence, .event = kept};
    if (code == CL_SUCCESS && (!kept || ocl_pending_add(queue, &entry)))
        return WEIR_OK;
    if (code == CL_SUCCESS) {
        module->cl.clReleaseEvent(kept);
        return weir_host_no_memory(module->host, "the commands of a queue");
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return clc_native_error(module->host, call, code, "%s", text);
}

// Waits and records.

static weir_status submit_waits(struct ocl_queue *queue)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_commands *commands = &queue->commands;
    if (commands->wait_count == 0)
        return WEIR_OK;
    const cl_int code = module->cl.clEnqueueBarrierWithWaitList(queue->queue, commands->wait_count,
                                                                commands->waits, NULL);
    if (code != CL_SUCCESS)
        return clc_native_error(module->host, "clEnqueueBarrierWithWaitList", code, "wait");
    drop_waits(queue);
    drop_last(queue);
    return WEIR_OK;
}

// The next command waits for `event`, which is retained.
static weir_status add_wait(struct ocl_queue *queue, cl_event event)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_commands *commands = &queue->commands;
    weir_lock_take(&commands->lock);
    weir_status status = commands->wait_count == OCL_WAIT_LIMIT ? submit_waits(queue) : WEIR_OK;
    if (status == WEIR_OK) {
        const cl_int code = module->cl.clRetainEvent(event);
        if (code == CL_SUCCESS)
            commands->waits[commands->wait_count++] = event;
        else
            status = clc_native_error(module->host, "clRetainEvent", code, "wait");
    }
    if (status == WEIR_OK && commands->shared)
        status = submit_waits(queue);
    weir_lock_release(&commands->lock);
    return status;
}

// Submits the waits that no command took yet, before others submit to the command queue: once, or with `share` from now
// on.
static weir_status settle_waits(struct ocl_queue *queue, bool share)
{
    weir_lock_take(&queue->commands.lock);
    const weir_status status = submit_waits(queue);
    if (status == WEIR_OK) {
        queue->commands.shared = queue->commands.shared || share;
        drop_last(queue);
    }
    weir_lock_release(&queue->commands.lock);
    return status;
}

// A marker is a command too, whose event later records take.
static weir_status submit_marker(struct ocl_queue *queue, cl_event *out_event)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_commands *commands = &queue->commands;
    TRY(commands->timing ? submit_waits(queue) : WEIR_OK);
    const cl_event *waits = commands->wait_count > 0 ? commands->waits : NULL;
    const cl_int code = module->cl.clEnqueueMarkerWithWaitList(queue->queue, commands->wait_count,
                                                               waits, out_event);
    if (code != CL_SUCCESS)
        return clc_native_error(module->host, "clEnqueueMarkerWithWaitList", code, "record");
    drop_waits(queue);
    drop_last(queue);
    if (!needs_markers(commands) && module->cl.clRetainEvent(*out_event) == CL_SUCCESS)
        commands->last = *out_event;
    return WEIR_OK;
}

// Flushes.

// `flushed` only increases, in whichever order concurrent flushes end.
static void note_flushed(struct ocl_queue *queue, uint64_t sequence)
{
    uint64_t seen = atomic_load_explicit(&queue->flushed, memory_order_relaxed);
    while (seen < sequence &&
           !atomic_compare_exchange_weak_explicit(&queue->flushed, &seen, sequence,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

// Flushes the queue unless everything up to `sequence` was flushed.
static weir_status flush_to(struct ocl_queue *queue, uint64_t sequence)
{
    const struct ocl_module *module = queue->device->module;
    if (atomic_load_explicit(&queue->flushed, memory_order_acquire) >= sequence)
        return WEIR_OK;
    // Read before the flush: operations submitted during it may not be flushed.
    const uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_acquire);
    cl_int code = module->cl.clFlush(queue->queue);
    if (code != CL_SUCCESS)
        return clc_native_error(module->host, "clFlush", code, "flush");
    note_flushed(queue, submitted);
    return WEIR_OK;
}

weir_status ocl_queue_flush(const struct weir_link *link, weir_queue *object)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    return flush_to(queue, atomic_load_explicit(&queue->submitted, memory_order_acquire));
}

// Records, by the kit. A record is an event that the driver created, of the last command or of a marker
// after it.

static weir_status record_event(void *user, void **out_event)
{
    struct ocl_queue *queue = user;
    struct ocl_commands *commands = &queue->commands;
    cl_event event = NULL;
    weir_status status = WEIR_OK;
    weir_lock_take(&commands->lock);
    if (commands->wait_count == 0 && commands->last &&
        queue->device->module->cl.clRetainEvent(commands->last) == CL_SUCCESS)
        event = commands->last;
    else
        status = submit_marker(queue, &event);
    if (status == WEIR_OK && commands->count > 0) {
        commands->expected = commands->count;
        commands->count = 0;
    }
    weir_lock_release(&commands->lock);
    *out_event = event;
    return status;
}

static void destroy_event(void *user, void *event)
{
    const struct ocl_queue *queue = user;
    queue->device->module->cl.clReleaseEvent(event);
}

static enum weir_kit_state query_event(void *user, void *event, int *out_code)
{
    const struct ocl_queue *queue = user;
    bool known;
    *out_code = ocl_event_state(queue->device->module, event, &known);
    return !known                    ? WEIR_KIT_UNKNOWN
           : *out_code > CL_COMPLETE ? WEIR_KIT_PENDING
           : *out_code < CL_COMPLETE ? WEIR_KIT_FAILED
                                     : WEIR_KIT_COMPLETE;
}

// The wait for a failed command fails too, with another code than that of the command.
static enum weir_kit_state wait_for_event(void *user, void *event, int *out_code)
{
    const struct ocl_module *module = ((const struct ocl_queue *)user)->device->module;
    const cl_event native = event;
    bool known;
    *out_code = module->cl.clWaitForEvents(1, &native);
    if (*out_code == CL_SUCCESS)
        return WEIR_KIT_COMPLETE;
    const bool failed = ocl_event_state(module, event, &known) < CL_COMPLETE && known;
    return failed ? WEIR_KIT_FAILED : WEIR_KIT_UNKNOWN;
}

// A marker that has ended, since a later one has, may be told to have a moment later.
static int time_of_event(void *user, void *event, uint64_t *out_time_ns)
{
    const struct ocl_module *module = ((const struct ocl_queue *)user)->device->module;
    const cl_event native = event;
    cl_int code = ocl_event_profile(module, native, CL_PROFILING_COMMAND_END, out_time_ns);
    if (code != CL_PROFILING_INFO_NOT_AVAILABLE)
        return code;
    module->cl.clWaitForEvents(1, &native);
    (void)ocl_event_await(module, native, TIME_PATIENCE_NS);
    return ocl_event_profile(module, native, CL_PROFILING_COMMAND_END, out_time_ns);
}

static weir_status report(void *user, enum weir_kit_question question, int code, uint64_t sequence)
{
    const struct ocl_module *module = ((const struct ocl_queue *)user)->device->module;
    switch (question) {
    case WEIR_KIT_WORKED:
        return ocl_event_error(module, "a command of the queue", code,
                               "the work before operation %" PRIu64 " failed, or waits for some "
                               "that did",
                               sequence);
    case WEIR_KIT_WAITED:
        return clc_native_error(module->host, "clWaitForEvents", code, "wait on the host");
    case WEIR_KIT_TIMED:
        return clc_native_error(module->host, "clGetEventProfilingInfo", code,
                                "the driver did not tell the time of operation %" PRIu64, sequence);
    case WEIR_KIT_ASKED:
        break;
    }
    return clc_native_error(module->host, "clGetEventInfo", code,
                            "ask whether the queue's work is complete");
}

static const struct weir_kit_record_ops ops = {
    .record = record_event,
    .destroy = destroy_event,
    .query = query_event,
    .wait = wait_for_event,
    .time = time_of_event,
    .report = report,
};

// Wrapped command queues, and handles. Objects of the caller are checked, above all their context: the driver
// accepts an object of another context without an error and fails later, or not at all. They are retained,
// so that the caller may release them at once.

static weir_status refuse_queue(const struct ocl_queue *queue, const char *remedy, const char *why)
{
    return weir_host_fail(queue->device->module->host, WEIR_ERROR_INVALID, remedy,
                          "the command queue %s", why);
}

static weir_status check_queue(const struct ocl_queue *queue, cl_command_queue native, bool timing,
                               cl_command_queue_properties *out_properties)
{
    const struct ocl_symbols *cl = &queue->device->module->cl;
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_int code =
        cl->clGetCommandQueueInfo(native, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetCommandQueueInfo(native, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetCommandQueueInfo(native, CL_QUEUE_PROPERTIES, sizeof *out_properties,
                                         out_properties, NULL);
    if (code != CL_SUCCESS)
        return clc_native_error(queue->device->module->host, "clGetCommandQueueInfo", code,
                                "params.native is no command queue");
    if (context != queue->device->context)
        return refuse_queue(queue, "create it in the context that weir_device_get_native() tells",
                            "is of another context than the device");
    if (device != queue->device->listed->device)
        return refuse_queue(queue, "create it for the device that weir_device_get_native() tells",
                            "is of another device of the context");
    if (*out_properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return refuse_queue(queue, "create it without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE",
                            "runs its commands out of order");
    if (timing && !(*out_properties & CL_QUEUE_PROFILING_ENABLE))
        return refuse_queue(queue,
                            "create it with CL_QUEUE_PROFILING_ENABLE, or wrap it without "
                            "timing",
                            "takes no times");
    return WEIR_OK;
}

// Stores in `*out_profiling` whether it has profiling enabled.
static weir_status wrap_queue(struct ocl_queue *queue, cl_command_queue native, bool timing,
                              bool *out_profiling)
{
    const struct ocl_module *module = queue->device->module;
    cl_command_queue_properties properties = 0;
    weir_status status = check_queue(queue, native, timing, &properties);
    *out_profiling = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    if (status < 0)
        return status;
    cl_int code = module->cl.clRetainCommandQueue(native);
    if (code != CL_SUCCESS)
        return clc_native_error(module->host, "clRetainCommandQueue", code, "wrap a command queue");
    queue->queue = native;
    return settle_waits(queue, true);
}

static struct weir_native_queue describe(const struct ocl_queue *queue)
{
    return (struct weir_native_queue){
        .struct_size = sizeof(struct weir_native_queue),
        .api = WEIR_NATIVE_OPENCL,
        .context = queue->device->context,
        .queue = queue->queue,
    };
}

weir_status ocl_queue_native(const struct weir_link *link, weir_queue *object,
                             struct weir_native_queue *out_native)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    const struct weir_native_queue native = describe(queue);
    weir_status status = settle_waits(queue, true);
    if (status == WEIR_OK)
        WEIR_WRITE(out_native, &native);
    return status;
}

// Creation and destruction.

static void release(struct ocl_queue *queue)
{
    const struct ocl_module *module = queue->device->module;
    weir_kit_records_destroy(&queue->records);
    ocl_events_finish(queue);
    drop_waits(queue);
    drop_last(queue);
    weir_lock_finish(&queue->commands.lock);
    if (queue->staging)
        module->cl.clReleaseMemObject(queue->staging);
    if (queue->queue)
        module->cl.clReleaseCommandQueue(queue->queue);
    module->host->release(queue);
}

static weir_status create_native(struct ocl_queue *queue, const struct weir_queue_setup *setup)
{
    const struct ocl_device *device = queue->device;
    const struct ocl_symbols *cl = &device->module->cl;
    const cl_bitfield flags = setup->timing || setup->times ? CL_QUEUE_PROFILING_ENABLE : 0;
    const char *call = "clCreateCommandQueue";
    cl_int code = CL_SUCCESS;
    if (!device->priorities || setup->priority == 0) {
        queue->queue =
            cl->clCreateCommandQueue(device->context, device->listed->device, flags, &code);
    } else {
        const cl_queue_properties properties[] = {
            CL_QUEUE_PROPERTIES,
            flags,
            CL_QUEUE_PRIORITY_KHR,
            setup->priority > 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR,
            0,
        };
        call = "clCreateCommandQueueWithProperties";
        queue->queue =
            cl->clCreateCommandQueueWithProperties(device->context, device->listed->device,
                                                   properties, &code);
    }
    if (!queue->queue)
        return clc_native_error(device->module->host, call, code, "cannot create a queue");
    device->module->host->count_driver_object();
    return WEIR_OK;
}

static weir_status open_queue(struct ocl_queue *queue, const struct weir_queue_setup *setup)
{
    const struct weir_kit_records_params params = {
        .host = queue->device->module->host,
        .ops = &ops,
        .queue = queue,
        .timing_history = setup->timing ? OCL_TIMING_HISTORY : 0,
    };
    bool profiling = true;
    weir_status status = weir_kit_records_create(&params, &queue->records);
    if (status == WEIR_OK)
        status = setup->native ? wrap_queue(queue, setup->native, setup->timing, &profiling)
                               : create_native(queue, setup);
    // Commands of a queue without profiling have no times.
    return status == WEIR_OK ? ocl_events_create(queue, setup->times && profiling) : status;
}

weir_status ocl_queue_create(const struct weir_link *link, weir_device *device, weir_queue *object,
                             const struct weir_queue_setup *setup, void **out_data)
{
    const struct weir_host *host = link->host;
    struct ocl_queue *queue = host->allocate(sizeof *queue);
    if (!queue)
        return weir_host_no_memory(host, "a queue");
    queue->device = ocl_device_of(link, device);
    weir_lock_init(&queue->commands.lock, &commands_lock);
    queue->commands.timing = setup->timing;
    queue->commands.expected = 1;
    weir_status status = open_queue(queue, setup);
    if (status < 0) {
        release(queue);
        return status;
    }
    *out_data = queue;
    return WEIR_OK;
}

void ocl_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    release(ocl_queue_of(link, object));
}

// Submission.

static weir_status submit_native(struct ocl_queue *queue, const struct weir_operation *operation)
{
    const struct weir_native_queue native = describe(queue);
    const weir_status status = settle_waits(queue, false);
    return status < 0 ? status : operation->u.native.function(&native, operation->u.native.user);
}

static weir_status submit_wait(struct ocl_queue *queue, uint64_t own, struct ocl_queue *producer,
                               uint64_t sequence)
{
    const struct ocl_entry entry = {.sequence = own,
                                    .until = sequence,
                                    .producer = producer->pending};
    if (queue->pending && producer != queue && !ocl_pending_add(queue, &entry))
        return weir_host_no_memory(queue->device->module->host, "the commands of a queue");
    cl_event event = weir_kit_records_hold(producer->records, sequence);
    bool known;
    if (!event)
        return WEIR_OK;
    weir_status status = flush_to(producer, sequence);
    // A failure that the front end knows has nothing to wait for.
    const bool failed = atomic_load(&producer->failed) &&
                        ocl_event_state(queue->device->module, event, &known) < CL_COMPLETE;
    if (status == WEIR_OK && !failed)
        status = add_wait(queue, event);
    weir_kit_records_release(producer->records, sequence);
    return status;
}

static weir_status submit(const struct weir_link *link, struct ocl_queue *queue,
                          const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_FILL:
        return ocl_submit_copy(link, queue, operation);
    case WEIR_OPERATION_LAUNCH:
        return ocl_submit_launch(link, queue, operation);
    case WEIR_OPERATION_NATIVE:
        return submit_native(queue, operation);
    case WEIR_OPERATION_RECORD:
        return weir_kit_records_add(queue->records, operation->sequence);
    case WEIR_OPERATION_WAIT:
        return submit_wait(queue, operation->sequence,
                           ocl_queue_of(link, operation->u.wait.producer),
                           operation->u.wait.event.sequence);
    default: // the library keeps the others
        return weir_host_unknown_kind(link, operation);
    }
}

// Called after an error too: a part of the operation may have been enqueued.
weir_status ocl_queue_submit(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    queue->sequence = operation->sequence;
    weir_status status = submit(link, queue, operation);
    if (queue->watch)
        ocl_watch_keep(queue, operation->sequence, status == WEIR_OK);
    // A flush between several operations with one number must not count for all of them.
    if (!(operation->flags & WEIR_OPERATION_PART))
        atomic_store_explicit(&queue->submitted, operation->sequence, memory_order_release);
    return status;
}

// Ends.

// `status` is that of the record, which may have the event of a command that the driver ended because one
// that it waited for had failed. Of the two that one is the cause. The driver may end such a command while
// others before it run.
static weir_status find_cause(struct ocl_queue *queue, uint64_t sequence, weir_status status)
{
    if (status > WEIR_OK)
        return status;
    const weir_status pending = ocl_pending_check(queue, sequence, status == WEIR_OK, false);
    if (status < 0 || pending < 0)
        atomic_store(&queue->failed, true);
    return pending < 0 ? pending : status;
}

weir_status ocl_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    TRY(flush_to(queue, sequence));
    return find_cause(queue, sequence, weir_kit_records_query(queue->records, sequence));
}

weir_status ocl_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    TRY(flush_to(queue, sequence));
    return find_cause(queue, sequence, weir_kit_records_wait(queue->records, sequence, timeout_ns));
}

weir_status ocl_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns)
{
    return weir_kit_records_time(ocl_queue_of(link, object)->records, sequence, out_time_ns);
}

// A failure that the front end knows is not reported again, so that the queue can be recovered.
weir_status ocl_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    const struct ocl_module *module = queue->device->module;
    struct ocl_commands *commands = &queue->commands;
    const uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_acquire);
    // What was before waits that are refused, and what they are for, is waited for all the same.
    const weir_status settled = settle_waits(queue, false);
    const cl_int code = ocl_finish(queue->device, queue->queue);
    weir_lock_take(&commands->lock);
    if (settled < 0 && commands->wait_count > 0)
        module->cl.clWaitForEvents(commands->wait_count, commands->waits);
    if (settled < 0)
        drop_waits(queue);
    drop_last(queue); // a record of another thread's may have failed with the others
    weir_lock_release(&commands->lock);
    if (settled < 0)
        return settled;
    if (code != CL_SUCCESS)
        return clc_native_error(module->host, "clFinish", code, "wait for the queue to finish");
    note_flushed(queue, submitted);
    const weir_status records = weir_kit_records_settle(queue->records);
    const weir_status pending = ocl_pending_check(queue, submitted, true, true);
    if (atomic_exchange(&queue->failed, false))
        return WEIR_OK;
    return pending < 0 ? pending : records;
}
