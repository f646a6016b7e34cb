// When commands ran: the driver's profiling of their events, asked for in the driver's callback. Its clock is not the
// host's. A command is queued after its call began, so the distance between the two clocks is at least the begin of the call
// less the driver's time of queueing, and the largest of these distances is the nearest.
#include <stdlib.h>

#include "layers/opencl/layer.h"

enum {
    CLOCKS = 16 // devices; those after share the last
};

static struct {
    cl_device_id device;
    bool known;
    int64_t distance;
} clocks[CLOCKS];

struct watch {
    struct queue *queue; // held, so that its lanes stay
    struct event *event; // held
    uint64_t called_ns;
};

cl_command_queue_properties times_add(cl_command_queue_properties properties)
{
    return layer.times ? properties | CL_QUEUE_PROFILING_ENABLE : properties;
}

static int64_t distance(cl_device_id device, int64_t least)
{
    size_t i = 0;
    while (i + 1 < CLOCKS && clocks[i].known && clocks[i].device != device)
        i++;
    if (!clocks[i].known || clocks[i].distance < least)
        clocks[i].distance = least;
    clocks[i].device = device;
    clocks[i].known = true;
    return clocks[i].distance;
}

static bool read_times(cl_event event, cl_ulong times[3])
{
    static const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED,
                                              CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    for (size_t i = 0; i < 3; i++)
        if (layer.driver->clGetEventProfilingInfo(event, names[i], sizeof times[i], &times[i],
                                                  NULL) != CL_SUCCESS)
            return false;
    return times[1] <= times[2];
}

static void tell(const struct watch *watch, const cl_ulong times[3])
{
    const struct event *event = watch->event;
    const int64_t apart =
        distance(watch->queue->device, (int64_t)watch->called_ns - (int64_t)times[0]);
    const int64_t begin = (int64_t)times[1] + apart;
    const int64_t end = (int64_t)times[2] + apart;
    if (event->note && begin > 0)
        WEIR_IGNORE(
            weir_queue_note_times(event->lane, event->note, (uint64_t)begin, (uint64_t)end));
}

static void CL_CALLBACK ended(cl_event event, cl_int status, void *user)
{
    struct watch *watch = user;
    cl_ulong times[3];
    const bool known = status == CL_COMPLETE && read_times(event, times);
    layer_lock();
    if (known && layer_is_on())
        tell(watch, times);
    object_drop(&watch->event->object);
    object_drop(&watch->queue->object);
    layer_unlock();
    layer.driver->clReleaseEvent(event);
    free(watch);
}

// The driver may call back at once, on this thread: without the lock.
void times_watch(const struct command *command, cl_event event)
{
    struct watch *watch = malloc(sizeof *watch);
    if (!watch) {
        layer_lose(LAYER_LOSS_MEMORY);
        return;
    }
    *watch = (struct watch){command->task.queue, command->task.event, command->called_ns};
    object_hold(&watch->queue->object);
    object_hold(&watch->event->object);
    layer_unlock();
    const bool retained = layer.driver->clRetainEvent(event) == CL_SUCCESS;
    const bool set = retained && layer.driver->clSetEventCallback(event, CL_COMPLETE, ended,
                                                                  watch) == CL_SUCCESS;
    if (retained && !set)
        layer.driver->clReleaseEvent(event);
    layer_lock();
    if (set)
        return;
    object_drop(&watch->event->object);
    object_drop(&watch->queue->object);
    free(watch);
}
