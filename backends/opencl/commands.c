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
//               makes one event a record; another one pays for a marker here and there, and rows of
//               launches do not pay for events that are not used. Launches may have one anyway
//               (launches.c), and so have all commands if a plugin wants times (times.c).
//
// Waits become a barrier where there is no next command, or it is not Weir's: when the list is full, in
// ocl_queue_finish(), and before a native call. A driver that refuses the barrier keeps no queue from its
// recovery: then the host waits for the events. A command queue that was wrapped, or whose handle was
// handed out, gets a barrier at each wait, since the program may submit to it at any time. What it
// submitted last is not known, so the records of such a queue are markers, and so is the first one after
// a native call. A queue that has finished, as for its recovery, forgets a last command that failed: the
// records after that are no part of the failure.
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
// that took its event fails, and launches.c knows which launch was the first cause, since it keeps the
// wait with the number of its own operation, which came before the command's.
//
// Submits are never concurrent, but other threads finish a queue and ask for its handle. The lock is held
// while the driver takes a command, which on PoCL's serial device is until it is done.
#include "backends/opencl/opencl.h"

static const struct weir_lock_kind commands_lock = {"the lock of a queue's commands", 0};

void ocl_commands_init(struct ocl_queue *queue, bool timing)
{
    struct ocl_commands *commands = &queue->commands;
    weir_lock_init(&commands->lock, &commands_lock);
    commands->timing = timing;
    commands->expected = 1;
}

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

void ocl_commands_finish(struct ocl_queue *queue)
{
    drop_waits(queue);
    drop_last(queue);
    weir_lock_finish(&queue->commands.lock);
}

// Commands.

// Whether the records of the queue have to be commands of their own.
static bool needs_markers(const struct ocl_commands *commands)
{
    return commands->timing || commands->shared;
}

const struct ocl_command *ocl_command_begin(struct ocl_queue *queue, bool is_launch)
{
    struct ocl_commands *commands = &queue->commands;
    struct ocl_command *command = &commands->command;
    weir_lock_take(&commands->lock);
    command->is_kept = is_launch && queue->launches;
    command->is_last = commands->count + 1 == commands->expected && !needs_markers(commands);
    command->own = NULL;
    command->event = queue->watch                           ? ocl_watch_event(queue)
                     : command->is_kept || command->is_last ? &command->own
                                                            : NULL;
    command->wait_count = commands->wait_count;
    command->waits = commands->wait_count > 0 ? commands->waits : NULL;
    return command;
}

// The watch, the list of launches and `last` each have a reference to the event; the driver gave one.
static cl_int share_event(struct ocl_queue *queue, const struct ocl_command *command,
                          cl_event *out_kept)
{
    const struct ocl_symbols *cl = &queue->device->module->cl;
    const cl_event event = command->event ? *command->event : NULL;
    bool is_shared = queue->watch != NULL;
    if (command->is_kept) {
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

static cl_int end_command(struct ocl_queue *queue, cl_int code, cl_event *out_kept)
{
    struct ocl_commands *commands = &queue->commands;
    cl_int shared = CL_SUCCESS;
    if (code == CL_SUCCESS) {
        commands->count++;
        drop_waits(queue);
        drop_last(queue);
        shared = share_event(queue, &commands->command, out_kept);
    }
    weir_lock_release(&commands->lock);
    return shared;
}

cl_int ocl_command_end(struct ocl_queue *queue, cl_int code)
{
    cl_event none = NULL; // only those of launches are kept
    (void)end_command(queue, code, &none);
    return code;
}

cl_int ocl_command_end_launch(struct ocl_queue *queue, cl_int code, cl_event *out_kept)
{
    *out_kept = NULL;
    return end_command(queue, code, out_kept);
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
        return ocl_native_error(module, "clEnqueueBarrierWithWaitList", code, "wait");
    drop_waits(queue);
    drop_last(queue);
    return WEIR_OK;
}

weir_status ocl_commands_wait(struct ocl_queue *queue, cl_event event)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_commands *commands = &queue->commands;
    weir_status status = WEIR_OK;
    weir_lock_take(&commands->lock);
    if (commands->wait_count == OCL_WAIT_LIMIT)
        status = submit_waits(queue);
    if (status == WEIR_OK) {
        const cl_int code = module->cl.clRetainEvent(event);
        if (code == CL_SUCCESS)
            commands->waits[commands->wait_count++] = event;
        else
            status = ocl_native_error(module, "clRetainEvent", code, "wait");
    }
    if (status == WEIR_OK && commands->shared)
        status = submit_waits(queue);
    weir_lock_release(&commands->lock);
    return status;
}

weir_status ocl_commands_settle(struct ocl_queue *queue)
{
    weir_lock_take(&queue->commands.lock);
    weir_status status = submit_waits(queue);
    weir_lock_release(&queue->commands.lock);
    return status;
}

void ocl_commands_sit_out(struct ocl_queue *queue)
{
    struct ocl_commands *commands = &queue->commands;
    weir_lock_take(&commands->lock);
    if (commands->wait_count > 0)
        queue->device->module->cl.clWaitForEvents(commands->wait_count, commands->waits);
    drop_waits(queue);
    weir_lock_release(&commands->lock);
}

weir_status ocl_commands_share(struct ocl_queue *queue)
{
    weir_lock_take(&queue->commands.lock);
    weir_status status = submit_waits(queue);
    if (status == WEIR_OK) {
        queue->commands.shared = true;
        drop_last(queue);
    }
    weir_lock_release(&queue->commands.lock);
    return status;
}

void ocl_commands_forget(struct ocl_queue *queue)
{
    weir_lock_take(&queue->commands.lock);
    drop_last(queue);
    weir_lock_release(&queue->commands.lock);
}

void ocl_commands_forget_failed(struct ocl_queue *queue)
{
    const struct ocl_commands *commands = &queue->commands;
    cl_int state = CL_COMPLETE;
    weir_lock_take(&queue->commands.lock);
    if (commands->last &&
        (queue->device->module->cl.clGetEventInfo(commands->last, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                  sizeof state, &state, NULL) != CL_SUCCESS ||
         state < CL_COMPLETE))
        drop_last(queue);
    weir_lock_release(&queue->commands.lock);
}

// A marker is a command too, whose event later records take.
static weir_status submit_marker(struct ocl_queue *queue, cl_event *out_event)
{
    const struct ocl_module *module = queue->device->module;
    struct ocl_commands *commands = &queue->commands;
    weir_status status = commands->timing ? submit_waits(queue) : WEIR_OK;
    if (status < 0)
        return status;
    const cl_event *waits = commands->wait_count > 0 ? commands->waits : NULL;
    const cl_int code = module->cl.clEnqueueMarkerWithWaitList(queue->queue, commands->wait_count,
                                                               waits, out_event);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clEnqueueMarkerWithWaitList", code, "record");
    drop_waits(queue);
    drop_last(queue);
    if (!needs_markers(commands) && module->cl.clRetainEvent(*out_event) == CL_SUCCESS)
        commands->last = *out_event;
    return WEIR_OK;
}

weir_status ocl_commands_record(struct ocl_queue *queue, cl_event *out_event)
{
    struct ocl_commands *commands = &queue->commands;
    weir_status status = WEIR_OK;
    weir_lock_take(&commands->lock);
    if (commands->wait_count == 0 && commands->last &&
        queue->device->module->cl.clRetainEvent(commands->last) == CL_SUCCESS)
        *out_event = commands->last;
    else
        status = submit_marker(queue, out_event);
    if (status == WEIR_OK && commands->count > 0) {
        commands->expected = commands->count;
        commands->count = 0;
    }
    weir_lock_release(&commands->lock);
    return status;
}
