// Threads that wait for the writing thread of the plugin trace while it ends.
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "plugins/trace/parts.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)

static uint64_t no_time(void *user)
{
    return 0;
}

static const struct weir_host_clock still = {.now_ns = no_time};

static bool start(struct trace *trace)
{
    const struct weir_trace_meta meta = {.program = "p", .backend = "null"};
    const char *folder = getenv("TEST_TMPDIR");
    char message[512];
    snprintf(trace->path, sizeof trace->path, "%s/drain.json", folder ? folder : ".");
    trace->clock = &still;
    trace->flush_ns = UINT64_MAX / 4;
    pthread_mutex_init(&trace->lists, NULL);
    pthread_mutex_init(&trace->lock, NULL);
    trace->writer = weir_trace_writer_create(trace->path, &meta, message, sizeof message);
    return trace->writer && trace_drain_start(trace);
}

static void finish(struct trace *trace)
{
    pthread_mutex_destroy(&trace->lists);
    pthread_mutex_destroy(&trace->lock);
    remove(trace->path);
}

static void *drain(void *argument)
{
    trace_drain_now(argument);
    return NULL;
}

static void *end(void *argument)
{
    trace_drain_finish(argument);
    return NULL;
}

static void await_asked(struct trace *trace, uint64_t count)
{
    uint64_t asked = 0;
    for (; asked < count; weir_clock_sleep_ns(MS)) {
        pthread_mutex_lock(&trace->lock);
        asked = trace->asked;
        pthread_mutex_unlock(&trace->lock);
    }
}

// The writer takes what was asked when it begins a round.
static void await_round(struct trace *trace)
{
    for (bool pressed = true; pressed; weir_clock_sleep_ns(MS)) {
        pthread_mutex_lock(&trace->lock);
        pressed = trace->pressed;
        pthread_mutex_unlock(&trace->lock);
    }
}

static void await_stop(struct trace *trace)
{
    for (bool stop = false; !stop; weir_clock_sleep_ns(MS)) {
        pthread_mutex_lock(&trace->lock);
        stop = trace->stop;
        pthread_mutex_unlock(&trace->lock);
    }
}

// The second thread asks while the writer is in the first one's round, and there is no other.
WEIR_TEST(TraceDrain, AWaiterOfAWriterThatEnds)
{
    static struct trace trace;
    pthread_t waiters[2];
    pthread_t ender;
    ASSERT_TRUE(start(&trace));
    pthread_mutex_lock(&trace.lists); // the writer's round waits for it
    ASSERT_INT_EQ(pthread_create(&waiters[0], NULL, drain, &trace), 0);
    await_asked(&trace, 1);
    await_round(&trace);
    ASSERT_INT_EQ(pthread_create(&waiters[1], NULL, drain, &trace), 0);
    await_asked(&trace, 2);
    ASSERT_INT_EQ(pthread_create(&ender, NULL, end, &trace), 0);
    await_stop(&trace);
    pthread_mutex_unlock(&trace.lists);
    for (int i = 0; i < 2; i++)
        ASSERT_INT_EQ(pthread_join(waiters[i], NULL), 0);
    ASSERT_INT_EQ(pthread_join(ender, NULL), 0);
    finish(&trace);
}
