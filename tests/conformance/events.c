// Events on the host: queries, waits with and without a time limit, several
// events at once, descriptors, times, and events that are old, forged or of a
// destroyed queue.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)
#define POLL_GUARD_MS 120000

// A queue with a gate, an event before it and one after it.
struct gated {
    struct gate *gate;
    weir_queue *queue;
    struct weir_event before;
    struct weir_event after;
};

static struct gated make_gated(struct fixture *f)
{
    struct gated gated = {.gate = gate_create(), .queue = conform_queue(f, "gated")};
    EXPECT_OK(weir_queue_record(gated.queue, &gated.before));
    EXPECT_OK(weir_queue_host_call(gated.queue, gate_pass, gated.gate));
    EXPECT_OK(weir_queue_record(gated.queue, &gated.after));
    return gated;
}

static void finish_gated(struct gated *gated)
{
    gate_open(gated->gate);
    EXPECT_OK(weir_event_sync(gated->after, HANG_GUARD_NS));
    weir_queue_destroy(&gated->queue);
    gate_destroy(&gated->gate);
}

#define own_gated OWN(finish_gated) struct gated

CONFORM(Event, QueryAndTimeouts)
{
    own_gated gated = make_gated(f);
    EXPECT_OK(weir_event_sync(gated.before, WEIR_FOREVER));
    EXPECT_OK(weir_event_query(gated.before));
    EXPECT_OK(weir_event_error(gated.before));
    EXPECT_INT_EQ(weir_event_query(gated.after), WEIR_NOT_READY);
    EXPECT_INT_EQ(weir_event_error(gated.after), WEIR_NOT_READY);
    EXPECT_INT_EQ(weir_event_sync(gated.after, 0), WEIR_TIMEOUT);
    EXPECT_INT_EQ(weir_event_sync(gated.after, 1), WEIR_TIMEOUT);
    EXPECT_INT_EQ(weir_event_sync(gated.after, WEIR_MS(2)), WEIR_TIMEOUT);
    EXPECT_INT_EQ(weir_queue_sync(gated.queue, WEIR_MS(2)), WEIR_TIMEOUT);
    gate_open(gated.gate);
    EXPECT_OK(weir_event_sync(gated.after, WEIR_FOREVER));
    EXPECT_OK(weir_event_sync(gated.after, 0));
}

// The waits that a timeout tells of lead to its own queue again. The device can be closed after the test.
CONFORM(Event, TimeoutInACircle)
{
    CONFORM_NEEDS_KERNELS(f);
    own_kernel spin = conform_kernel(f, "spin");
    own_buffer result = conform_device_buffer(f, SIZE);
    own_queue a = conform_queue(f, "a");
    own_queue b = conform_queue(f, "b");
    ASSERT_OK(weir_queue_launch(a, spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(result, 0, 4), 1u, UINT64_C(20000000)));
    const struct weir_event begun = test_record(a);
    ASSERT_OK(weir_queue_wait(b, begun));
    const struct weir_event passed = test_record(b);
    ASSERT_OK(weir_queue_wait(a, passed));
    const struct weir_event end = test_record(a);
    weir_status status = WEIR_TIMEOUT;
    for (int i = 0; i < 100 && status == WEIR_TIMEOUT;
         i++) // it has ended already where submits run it
        status = weir_event_sync(end, WEIR_US(10));
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
}

CONFORM(Event, Several)
{
    own_gated a = make_gated(f);
    own_gated b = make_gated(f);
    const struct weir_event events[] = {a.after, b.after, a.before};
    size_t index = 9;

    EXPECT_INT_EQ(weir_event_sync_any(events, 2, 0, &index), WEIR_TIMEOUT);
    EXPECT_INT_EQ(weir_event_sync_any(events, 2, WEIR_MS(2), &index), WEIR_TIMEOUT);
    gate_open(b.gate);
    EXPECT_OK(weir_event_sync_any(events, 2, HANG_GUARD_NS, &index));
    EXPECT_UINT_EQ(index, 1);
    EXPECT_INT_EQ(weir_event_sync_all(events, 3, WEIR_MS(2)), WEIR_TIMEOUT);
    gate_open(a.gate);
    EXPECT_OK(weir_event_sync_all(events, 3, HANG_GUARD_NS));
    EXPECT_OK(weir_event_sync_all(events, 3, 0));
    EXPECT_OK(weir_event_sync_all(NULL, 0, 0));
    EXPECT_INVALID(weir_event_sync_any(events, 0, 0, &index), "count");
    EXPECT_INVALID(weir_event_sync_any(NULL, 2, 0, &index), "events");
    EXPECT_INVALID(weir_event_sync_any(events, 2, 0, NULL), "out_index");
    EXPECT_INVALID(weir_event_sync_all(NULL, 2, 0), "events");
}

static bool readable(int fd, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, timeout_ms) == 1 && poll_fd.revents & POLLIN;
}

// Descriptors of events that a program which this one starts would inherit.
static int count_inherited(void)
{
    int count = 0;
    const int most = (int)sysconf(_SC_OPEN_MAX) < 4096 ? (int)sysconf(_SC_OPEN_MAX) : 4096;
    for (int fd = 0; fd < most; fd++) {
        char path[64];
        char target[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "eventfd"))
            count += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    return count;
}

CONFORM(Event, Descriptor)
{
    enum {
        COPIES = 10
    };
    int fds[COPIES];
    int early, failed;

    own_gated gated = make_gated(f);
    ASSERT_OK(weir_queue_host_call(gated.queue, fail_plainly, NULL));
    const struct weir_event failure = test_record(gated.queue);
    ASSERT_OK(weir_event_fd(failure, &failed));
    const int before = count_inherited();
    for (int i = 0; i < COPIES; i++)
        ASSERT_OK(weir_event_fd(gated.after, &fds[i]));
    EXPECT_INT_EQ(count_inherited(), before);
    ASSERT_OK(weir_event_fd(gated.before, &early));
    EXPECT_TRUE(readable(early, POLL_GUARD_MS));
    EXPECT_FALSE(readable(fds[0], 5));
    close(fds[1]); // at any time
    gate_open(gated.gate);
    for (int i = 0; i < COPIES; i++)
        if (i != 1)
            EXPECT_TRUE(readable(fds[i], POLL_GUARD_MS));
    EXPECT_TRUE(readable(failed, POLL_GUARD_MS));
    EXPECT_OK(weir_event_query(gated.after));
    EXPECT_INT_EQ(weir_event_query(failure), WEIR_ERROR_HOST_CALL);
    for (int i = 0; i < COPIES; i++)
        if (i != 1)
            close(fds[i]);
    close(early);
    close(failed);
    EXPECT_INVALID(weir_event_fd(gated.after, NULL), "out_fd");
}

CONFORM(Event, OfAQueueThatIsGone)
{
    weir_queue *queue = conform_queue(f, "gone");
    own_queue other = conform_queue(f, "other");
    size_t index = 5;
    int fd;

    const struct weir_event event = test_record(queue);
    ASSERT_OK(weir_event_sync(event, HANG_GUARD_NS));
    weir_queue_destroy(&queue);
    // Its slot is reused, its id is not.
    for (int i = 0; i < 200; i++) {
        queue = conform_queue(f, "new");
        struct weir_event fresh;
        ASSERT_OK(weir_queue_record(queue, &fresh));
        EXPECT_UINT_NE(fresh.queue, event.queue);
        weir_queue_destroy(&queue);
    }
    EXPECT_OK(weir_event_query(event));
    EXPECT_OK(weir_event_error(event));
    EXPECT_OK(weir_event_sync(event, 0));
    EXPECT_OK(weir_event_sync_any(&event, 1, 0, &index));
    EXPECT_UINT_EQ(index, 0);
    EXPECT_OK(weir_event_sync_all(&event, 1, 0));
    EXPECT_OK(weir_queue_wait(other, event));
    EXPECT_SYNC(other);
    ASSERT_OK(weir_event_fd(event, &fd));
    EXPECT_TRUE(readable(fd, POLL_GUARD_MS));
    close(fd);
}

// A sequence that the queue never reached, and a queue that never was.
CONFORM(Event, Forged)
{
    own_queue other = conform_queue(f, "other");
    int fd;

    const struct weir_event event = test_record(f->queue);
    const struct weir_event beyond = {event.queue, event.sequence + 1};
    const struct weir_event far = {event.queue, UINT64_MAX};
    EXPECT_INVALID(weir_event_query(beyond), "no operation");
    EXPECT_INVALID(weir_event_sync(far, 0), "no operation");
    EXPECT_INVALID(weir_queue_wait(other, far), "no operation");
    EXPECT_INVALID(weir_queue_wait(f->queue, far), "no operation");
    EXPECT_INVALID(weir_event_fd(beyond, &fd), "no operation");
    EXPECT_INT_EQ(fd, -1);
    // An event with one member zero counts as zeroed.
    EXPECT_INVALID(weir_event_query((struct weir_event){event.queue, 0}), "never recorded");
    EXPECT_INVALID(weir_event_query((struct weir_event){0, 1}), "never recorded");
    // A queue that never existed is distinguished from a destroyed one.
    EXPECT_INVALID(weir_event_query((struct weir_event){UINT64_MAX, 1}), "belongs to no queue");
    EXPECT_INVALID(weir_queue_wait(f->queue, (struct weir_event){UINT64_MAX, 1}),
                   "belongs to no queue");
    // Also where the queue has failed, and every sequence number is after the failure.
    conform_fail(f->queue);
    EXPECT_INVALID(weir_event_query(far), "no operation");
    EXPECT_INVALID(weir_queue_wait(other, far), "no operation");
    EXPECT_SYNC(other);
}

CONFORM(Event, OfAnotherRuntime)
{
    own_runtime runtime = NULL;
    own_device device = NULL;

    ASSERT_OK(weir_open(NULL, &runtime));
    ASSERT_OK(weir_device_open(runtime, NULL, &device));
    struct fixture second = {.runtime = runtime, .device = device};
    struct gated gated = make_gated(&second);
    EXPECT_INVALID(weir_queue_wait(f->queue, gated.after), "another runtime");
    // On the host it is an event like any other.
    EXPECT_INT_EQ(weir_event_query(gated.after), WEIR_NOT_READY);
    finish_gated(&gated);
    EXPECT_SYNC(f->queue);

    // Nor does another runtime's failure fail this queue.
    own_queue failed = conform_queue(&second, "failed");
    own_gate gate = gate_on(failed);
    ASSERT_OK(weir_queue_host_call(failed, fail_plainly, NULL));
    const struct weir_event event = test_record(failed);
    gate_open(gate);
    EXPECT_INT_EQ(weir_event_sync(event, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_INVALID(weir_queue_wait(f->queue, event), "another runtime");
    EXPECT_SYNC(f->queue);
}

CONFORM(Event, Arguments)
{
    struct weir_event event = {1, 1};
    EXPECT_INVALID(weir_queue_record(NULL, &event), "queue");
    EXPECT_UINT_EQ(event.queue, 0);
    EXPECT_UINT_EQ(event.sequence, 0);
    EXPECT_INVALID(weir_queue_record(f->queue, NULL), "out_event");
    EXPECT_INVALID(weir_queue_wait(NULL, event), "queue");
    EXPECT_INVALID(weir_queue_flush(NULL), "queue");
    EXPECT_INVALID(weir_queue_sync(NULL, 0), "queue");
    ASSERT_OK(weir_queue_record(f->queue, &event));
    EXPECT_INVALID(weir_event_time_ns(event, NULL), "out_time_ns");
    EXPECT_SYNC(f->queue);
}
