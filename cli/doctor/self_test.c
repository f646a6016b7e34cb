// A round trip on the device that the configuration selects: copy in, one kernel,
// copy out, and the time between two events.
#include <stdio.h>

#include "base/text.h"
#include "cli/doctor/doctor.h"
#include "kernels/conformance/conformance.h"

enum {
    COUNT = 1024,
    ADDED = 7
};
static const size_t bytes = COUNT * sizeof(uint32_t);
static const uint64_t limit_ns = UINT64_C(120) * 1000000000;

struct round_trip {
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *in;
    weir_buffer *values;
    weir_buffer *out;
    struct weir_event before;
    struct weir_event after;
};

static weir_status make_buffer(struct round_trip *trip, const char *label, weir_placement placement,
                               weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = bytes,
                                              .placement = placement};
    return weir_buffer_create(trip->device, &params, out_buffer);
}

static weir_status make_objects(struct round_trip *trip)
{
    const struct weir_queue_params queue = {
        .struct_size = sizeof queue,
        .label = "self-test",
        .timing = weir_device_limits(trip->device)->timing_history > 0,
    };
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "self-test",
                                                .bundle = &conformance_kernels};
    weir_status status;
    if ((status = weir_queue_create(trip->device, &queue, &trip->queue)) ||
        (status = weir_program_create(trip->device, &program, &trip->program)) ||
        (status = weir_kernel_create(trip->program, "increment", &trip->kernel)) ||
        (status = make_buffer(trip, "in", WEIR_PLACE_HOST, &trip->in)) ||
        (status = make_buffer(trip, "values", WEIR_PLACE_DEVICE, &trip->values)))
        return status;
    return make_buffer(trip, "out", WEIR_PLACE_HOST, &trip->out);
}

static weir_status fill(weir_buffer *buffer)
{
    void *pointer;
    weir_status status = weir_host_begin(buffer, 0, bytes, WEIR_ACCESS_WRITE, &pointer);
    if (status < 0)
        return status;
    uint32_t *values = pointer;
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = i;
    return weir_host_end(buffer, 0, bytes, WEIR_ACCESS_WRITE);
}

// A divisor of COUNT, within what the driver tells of the kernel.
static uint32_t choose_block(const struct round_trip *trip)
{
    uint32_t items = 64;
    while (items > weir_kernel_get_info(trip->kernel)->max_block_items)
        items /= 2;
    return items;
}

static weir_status submit(struct round_trip *trip)
{
    const uint32_t items = choose_block(trip);
    weir_status status;
    if ((status = fill(trip->in)) ||
        (status = weir_queue_copy(trip->queue, trip->values, 0, trip->in, 0, bytes)) ||
        (status = weir_queue_record(trip->queue, &trip->before)) ||
        (status = weir_queue_launch(trip->queue, trip->kernel, weir_dim(COUNT / items, 1, 1),
                                    weir_dim(items, 1, 1), weir_inout(trip->values, 0, bytes),
                                    (uint32_t)ADDED, (uint32_t)COUNT)) ||
        (status = weir_queue_record(trip->queue, &trip->after)) ||
        (status = weir_queue_copy(trip->queue, trip->out, 0, trip->values, 0, bytes)))
        return status;
    return weir_queue_sync(trip->queue, limit_ns);
}

// How many numbers have the right value, and how many are unchanged.
static weir_status compare(struct round_trip *trip, uint32_t *out_right, uint32_t *out_unchanged)
{
    void *pointer;
    *out_right = *out_unchanged = 0;
    weir_status status = weir_host_begin(trip->out, 0, bytes, WEIR_ACCESS_READ, &pointer);
    if (status < 0)
        return status;
    const uint32_t *values = pointer;
    for (uint32_t i = 0; i < COUNT; i++) {
        *out_right += values[i] == i + ADDED;
        *out_unchanged += values[i] == i;
    }
    return weir_host_end(trip->out, 0, bytes, WEIR_ACCESS_READ);
}

static void judge_result(struct doctor *doctor, struct round_trip *trip)
{
    uint32_t right, unchanged;
    if (compare(trip, &right, &unchanged) < 0)
        doctor_add_error(doctor, "self-test", "update the driver");
    else if (right == COUNT)
        doctor_add(doctor, DOCTOR_OK, "self-test", NULL,
                   "copy, kernel and copy back gave the right %d numbers", (int)COUNT);
    else if (unchanged == COUNT)
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test",
                   "choose a backend that runs kernels, such as opencl",
                   "copies work, but the kernel changed nothing: this device runs no kernels");
    else
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test",
                   "update the driver, or choose another device",
                   "of %d numbers %u came back right", (int)COUNT, (unsigned)right);
}

static void judge_times(struct doctor *doctor, struct round_trip *trip)
{
    uint64_t before, after;
    char text[WEIR_TEXT_QUANTITY_SIZE];
    if (weir_device_limits(trip->device)->timing_history == 0)
        doctor_add(doctor, DOCTOR_NOTE, "self-test", NULL, "the device keeps no times of events");
    else if (weir_event_time_ns(trip->before, &before) < 0 ||
             weir_event_time_ns(trip->after, &after) < 0)
        doctor_add_error(doctor, "self-test", "update the driver");
    else if (after < before)
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test", "update the driver",
                   "the later of two events has the earlier time");
    else
        doctor_add(doctor, DOCTOR_OK, "self-test", NULL, "events are timed: the kernel took %s",
                   weir_text_duration(text, (double)(after - before)));
}

static void destroy_objects(struct round_trip *trip)
{
    weir_buffer_destroy(&trip->out);
    weir_buffer_destroy(&trip->values);
    weir_buffer_destroy(&trip->in);
    weir_kernel_destroy(&trip->kernel);
    weir_program_destroy(&trip->program);
    weir_queue_destroy(&trip->queue);
}

void doctor_self_test(struct doctor *doctor)
{
    struct round_trip trip = {0};
    if (!doctor->runtime)
        return;
    if ((weir_device_open)(doctor->runtime, NULL, &trip.device) < 0) {
        doctor_add_error(doctor, "self-test", "correct `device` in [weir]");
        return;
    }
    weir_status status = make_objects(&trip);
    if (status == WEIR_OK)
        status = submit(&trip);
    if (status == WEIR_TIMEOUT) {
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test", "restart or update the driver",
                   "a copy and a kernel did not finish within two minutes");
    } else if (status < 0) {
        doctor_add_error(doctor, "self-test", "update the driver, or choose another device");
    } else {
        judge_result(doctor, &trip);
        judge_times(doctor, &trip);
    }
    destroy_objects(&trip);
    weir_device_close(&trip.device);
}
