// Times on the queues that are the device's or a thread's, and the event of a whole device: a
// record on the legacy queue.
#include "kernels/conformance/conformance.h"
#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

// The fixture's device again, with times on its default queues.
static weir_device *open_with_times(struct fixture *f)
{
    weir_device *device;
    EXPECT_OK(weir_device_open(f->runtime,
                               WEIR_PARAMS(weir_device, .select = "0", .default_timing = true),
                               &device));
    return device;
}

static void fill_and_record(weir_queue *queue, weir_buffer *buffer, struct weir_event *out_event)
{
    const uint32_t value = 1;
    EXPECT_OK(weir_queue_fill(queue, buffer, 0, SIZE, &value, sizeof value));
    EXPECT_OK(weir_queue_record(queue, out_event));
}

// Work goes from the legacy queue to a thread's queue and to one of the program's, and back, with no wait
// written: the times tell the order.
static void expect_times_in_order(struct fixture *f, weir_queue *const queues[3],
                                  weir_buffer *buffer)
{
    enum {
        ROUNDS = 4,
        COUNT = ROUNDS * 4
    };
    struct weir_event events[COUNT];
    int64_t elapsed;
    for (int i = 0; i < COUNT; i++) // the legacy queue before and after each of the others
        fill_and_record(queues[i % 2 ? 1 + i / 2 % 2 : 0], buffer, &events[i]);
    ASSERT_OK(weir_event_sync_all(events, COUNT, HANG_GUARD_NS));
    for (int i = 1; i < COUNT; i++) {
        ASSERT_OK(weir_event_elapsed_ns(events[i - 1], events[i], &elapsed));
        EXPECT_TRUE(elapsed + f->limits->timing_resolution_ns >= 0);
    }
    ASSERT_OK(weir_event_elapsed_ns(events[0], events[COUNT - 1], &elapsed));
    EXPECT_TRUE(elapsed > 0);
}

CONFORM(Legacy, TimesTellItsOrder)
{
    if (f->limits->timing_history == 0)
        CONFORM_SKIP("limits.timing_history is 0");
    weir_device *device = open_with_times(f);
    weir_queue *queues[3] = {NULL};
    weir_buffer *buffer;

    ASSERT_NOT_NULL(device);
    ASSERT_OK(weir_legacy_queue(device, &queues[0]));
    ASSERT_OK(weir_thread_queue(device, &queues[1]));
    ASSERT_OK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .timing = true), &queues[2]));
    ASSERT_OK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = SIZE), &buffer));
    expect_times_in_order(f, queues, buffer);
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queues[2]);
    EXPECT_OK(weir_device_close(&device));
}

// As CUDA's programs measure a kernel: an event on either side of it, in stream 0.
CONFORM(Legacy, TimesALongKernel)
{
    if (f->limits->timing_history == 0)
        CONFORM_SKIP("limits.timing_history is 0");
    CONFORM_NEEDS_KERNELS(f);
    weir_device *device = open_with_times(f);
    weir_queue *legacy;
    weir_program *program;
    weir_kernel *spin;
    weir_buffer *buffer;
    struct weir_event events[3];
    int64_t empty, kernel;

    ASSERT_NOT_NULL(device);
    ASSERT_OK(weir_legacy_queue(device, &legacy));
    ASSERT_OK(weir_program_create(device, WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                  &program));
    ASSERT_OK(weir_kernel_create(program, "spin", &spin));
    ASSERT_OK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = SIZE), &buffer));
    ASSERT_OK(weir_queue_record(legacy, &events[0]));
    ASSERT_OK(weir_queue_record(legacy, &events[1]));
    ASSERT_OK(weir_queue_launch(legacy, spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(buffer, 0, SIZE), 1u, UINT64_C(30000000)));
    ASSERT_OK(weir_queue_record(legacy, &events[2]));
    ASSERT_OK(weir_event_sync(events[2], HANG_GUARD_NS));
    EXPECT_OK(weir_event_elapsed_ns(events[0], events[1], &empty));
    EXPECT_OK(weir_event_elapsed_ns(events[1], events[2], &kernel));
    EXPECT_TRUE(kernel > empty);
    weir_kernel_destroy(&spin);
    weir_program_destroy(&program);
    weir_buffer_destroy(&buffer);
    EXPECT_OK(weir_device_close(&device));
}

static void expect_untimed(weir_queue *queue, const char *name)
{
    struct weir_event event;
    uint64_t time;
    int64_t elapsed;

    ASSERT_OK(weir_queue_record(queue, &event));
    ASSERT_OK(weir_event_sync(event, HANG_GUARD_NS));
    EXPECT_INVALID(weir_event_time_ns(event, &time), name);
    EXPECT_CONTAINS(weir_last_error()->message, "was created without timing");
    EXPECT_STR_EQ(weir_last_error()->remedy, "open the device with .default_timing = true");
    EXPECT_INVALID(weir_event_elapsed_ns(event, event, &elapsed), name);
    EXPECT_STR_EQ(weir_last_error()->remedy, "open the device with .default_timing = true");
}

// Times cost on most drivers, so that a program has to ask for them.
CONFORM(Legacy, TimesAreAskedForAtTheDevice)
{
    weir_queue *legacy, *mine;
    ASSERT_OK(weir_legacy_queue(f->device, &legacy));
    ASSERT_OK(weir_thread_queue(f->device, &mine));
    expect_untimed(legacy, "queue 'legacy queue'");
    expect_untimed(mine, "queue 'thread queue'");
}

CONFORM(Legacy, TimesUnsupported)
{
    weir_device *device;
    if (f->limits->timing_history > 0)
        CONFORM_SKIP("this device can time");
    EXPECT_REFUSED(weir_device_open(f->runtime, WEIR_PARAMS(weir_device, .default_timing = true),
                                    &device),
                   WEIR_ERROR_UNSUPPORTED, "cannot time");
    EXPECT_NULL(device);
}

// CUDA's event in the default stream, and cuCtxRecordEvent(): complete when all that was submitted to any
// queue before it is.
CONFORM(Legacy, AnEventOfTheWholeDevice)
{
    enum {
        QUEUES = 3
    };
    struct gate *gates[QUEUES];
    weir_queue *queues[QUEUES];
    weir_queue *legacy, *late;
    struct weir_event all;

    ASSERT_OK(weir_legacy_queue(f->device, &legacy));
    for (int i = 0; i < QUEUES; i++) {
        gates[i] = gate_create();
        queues[i] = conform_queue(f, "q");
        ASSERT_OK(weir_queue_host_call(queues[i], gate_function, gates[i]));
    }
    ASSERT_OK(weir_queue_record(legacy, &all));
    late = conform_queue(f, "late");
    for (int i = 0; i < QUEUES; i++) { // the last alone keeps it from being complete
        EXPECT_INT_EQ(weir_event_query(all), WEIR_NOT_READY);
        gate_open(gates[i]);
    }
    EXPECT_OK(weir_event_sync(all, HANG_GUARD_NS));
    ASSERT_OK(weir_queue_wait(late, all));
    EXPECT_SYNC(late);
    for (int i = 0; i < QUEUES; i++) {
        weir_queue_destroy(&queues[i]);
        gate_destroy(&gates[i]);
    }
    weir_queue_destroy(&late);
}
