// Each allocation of one life of a runtime fails in turn, wherever in the process it comes from: the
// life ends with an error or without one, within its time, and leaves no memory. What stays
// in caches of the process is allocated by the lives before.
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/memory/allocator.h"
#include "tests/support/test.h"

enum {
    DEADLINE_S = 30, // of one life; a signal ends the process then
};

#define NEVER_NS UINT64_C(20000000000)

// What one life has made so far.
struct life {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_buffer *buffer;
    weir_buffer *host;
    weir_buffer *lent;
    weir_pool *pool;
    weir_graph *graph;
    weir_graph *copy;
    weir_graph *wide;
    weir_comm *comm;
    weir_program *program;
    weir_kernel *kernel;
    const char *step;
    int calls;
};

// The steps of a life, each of which may fail.
#define STEP(life, call)                    \
    do {                                    \
        (life)->step = #call;               \
        const weir_status status_ = (call); \
        if (status_ < 0)                    \
            return status_;                 \
    } while (0)

static char bytes[4096];

static weir_status count_call(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

static void count_always(void *user, weir_status status)
{
    ++*(int *)user;
}

static weir_status open_all(struct life *life)
{
    STEP(life, weir_open(NULL, &life->runtime));
    STEP(life, weir_device_open(life->runtime, NULL, &life->device));
    STEP(life,
         weir_queue_create(life->device, WEIR_PARAMS(weir_queue, .label = "queue"), &life->queue));
    STEP(life, weir_queue_create(life->device, NULL, &life->other));
    STEP(life, weir_buffer_create(life->device,
                                  WEIR_PARAMS(weir_buffer, .size = sizeof bytes, .label = "own"),
                                  &life->buffer));
    STEP(life, weir_buffer_create(life->device,
                                  WEIR_PARAMS(weir_buffer, .size = sizeof bytes,
                                              .placement = WEIR_PLACE_HOST),
                                  &life->host));
    STEP(life,
         weir_pool_create(life->device, WEIR_PARAMS(weir_pool, .label = "pool"), &life->pool));
    STEP(life, weir_comm_create(life->device,
                                WEIR_PARAMS(weir_comm, .label = "comm", .count = 1,
                                            .rendezvous = "process:walk"),
                                &life->comm));
    return WEIR_OK;
}

static weir_status work(struct life *life)
{
    weir_queue *queue = life->queue;
    struct weir_event event;
    struct weir_event after;
    weir_region_push(life->runtime, "work", 1);
    STEP(life, weir_upload(queue, life->buffer, 0, bytes, sizeof bytes));
    STEP(life, weir_queue_fill(queue, life->buffer, 0, 64, "\1", 1));
    STEP(life, weir_queue_copy(queue, life->host, 0, life->buffer, 0, sizeof bytes));
    STEP(life, weir_queue_host_call(queue, count_call, &life->calls));
    STEP(life, weir_queue_host_call_always(queue, count_always, &life->calls));
    STEP(life, weir_queue_record(queue, &event));
    STEP(life, weir_queue_wait(life->other, event));
    STEP(life, weir_queue_host_call(life->other, count_call, &life->calls));
    STEP(life, weir_queue_record(life->other, &after));
    STEP(life, weir_event_sync(after, NEVER_NS));
    const struct weir_event both[2] = {event, after};
    STEP(life, weir_event_sync_any(both, 2, NEVER_NS, &(size_t){0}));
    STEP(life, weir_event_sync_all(both, 2, NEVER_NS));
    int file = -1;
    STEP(life, weir_queue_record(queue, &event));
    STEP(life, weir_event_fd(event, &file));
    close(file);
    STEP(life, weir_event_sync(event, NEVER_NS));
    weir_region_pop(life->runtime);
    return WEIR_OK;
}

static weir_status use_kernel(struct life *life)
{
    STEP(life, weir_program_create(life->device,
                                   WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                   &life->program));
    STEP(life, weir_kernel_create(life->program, "iota", &life->kernel));
    STEP(life, weir_queue_launch(life->queue, life->kernel, weir_dim(1, 1, 1), weir_dim(64, 1, 1),
                                 weir_out(life->buffer, 0, 256), 0u, 64u));
    return WEIR_OK;
}

static weir_status use_memory(struct life *life)
{
    weir_queue *queue = life->queue;
    void *pointer;
    STEP(life, weir_host_begin(life->host, 0, 64, WEIR_ACCESS_READ, &pointer));
    STEP(life, weir_host_end(life->host, 0, 64, WEIR_ACCESS_READ));
    STEP(life, weir_pool_allocate(life->pool, queue, 1000, &life->lent));
    STEP(life, weir_queue_fill(queue, life->lent, 0, 64, "\1", 1));
    STEP(life, weir_pool_free(queue, &life->lent));
    STEP(life, weir_pool_allocate(life->pool, queue, 100000, &life->lent));
    STEP(life, weir_pool_free(queue, &life->lent));
    STEP(life, weir_queue_all_reduce(queue, life->comm, life->buffer, 0, life->buffer, 0, 16,
                                     WEIR_F32, WEIR_SUM));
    return WEIR_OK;
}

// Enough nodes and records that every list grows, on two branches.
static weir_status capture(struct life *life)
{
    weir_queue *queues[2] = {life->queue, life->other};
    struct weir_event event;
    STEP(life, weir_capture_begin(queues[0]));
    for (size_t i = 0; i < 20; i++) {
        STEP(life, weir_queue_fill(queues[i % 2], life->buffer, 64 * i, 64, "\1", 1));
        STEP(life, weir_queue_record(queues[i % 2], &event));
        STEP(life, weir_queue_wait(queues[(i + 1) % 2], event));
    }
    STEP(life, weir_capture_end(queues[0], NULL, &life->wide));
    return WEIR_OK;
}

// The updates come while launches are under way.
static weir_status update(struct life *life)
{
    STEP(life, weir_queue_graph(life->other, life->wide));
    STEP(life, weir_graph_set_fill(life->wide, 0, life->buffer, 0, 64, "\1\1", 2));
    STEP(life, weir_queue_graph(life->other, life->wide));
    STEP(life, weir_graph_set_fill(life->wide, 1, life->buffer, 64, 64, "\1\1", 2));
    STEP(life, weir_graph_set_enabled(life->wide, 2, false));
    STEP(life, weir_graph_set_host_call(life->graph, 2, count_call, &life->calls));
    STEP(life, weir_queue_graph(life->queue, life->wide));
    STEP(life, weir_queue_graph(life->queue, life->graph));
    return WEIR_OK;
}

static weir_status use_graphs(struct life *life)
{
    weir_queue *queue = life->queue;
    STEP(life, weir_capture_begin(queue));
    STEP(life, weir_queue_fill(queue, life->buffer, 0, 64, "\2", 1));
    STEP(life, weir_queue_copy(queue, life->host, 0, life->buffer, 0, 64));
    STEP(life, weir_queue_host_call(queue, count_call, &life->calls));
    STEP(life, weir_capture_end(queue, NULL, &life->graph));
    STEP(life, weir_queue_graph(queue, life->graph));
    STEP(life, weir_graph_clone(life->graph, NULL, &life->copy));
    STEP(life, weir_graph_set_fill(life->copy, 0, life->buffer, 0, 128, "\3", 1));
    STEP(life, weir_queue_graph(queue, life->copy));
    STEP(life, weir_download(queue, bytes, life->buffer, 0, sizeof bytes));
    return WEIR_OK;
}

// After a step for which memory was out: the queues are as before, and so is a graph whose update has failed.
static void expect_as_before(const struct life *life)
{
    weir_queue *queues[2] = {life->queue, life->other};
    weir_test_arm(-1);
    if (life->queue)
        WEIR_IGNORE(weir_capture_cancel(life->queue));
    for (int i = 0; i < 2 && life->other; i++) {
        WEIR_IGNORE(weir_queue_sync(queues[i], NEVER_NS));
        EXPECT_OK(weir_queue_recover(queues[i]));
    }
    for (int i = 0; i < 2 && life->other; i++) {
        if (life->wide)
            EXPECT_OK(weir_queue_graph(queues[i], life->wide));
        EXPECT_OK(weir_queue_sync(queues[i], NEVER_NS));
    }
}

// No destroyer may need memory. The last error stays that of the step.
static weir_status close_all(struct life *life)
{
    weir_status status = WEIR_OK;
    if (life->queue) {
        WEIR_IGNORE(weir_capture_cancel(life->queue));
        if (life->lent)
            WEIR_IGNORE(weir_pool_free(life->queue, &life->lent));
        status = weir_queue_sync(life->queue, NEVER_NS);
    }
    weir_comm_destroy(&life->comm);
    weir_graph_destroy(&life->wide);
    weir_graph_destroy(&life->copy);
    weir_graph_destroy(&life->graph);
    weir_kernel_destroy(&life->kernel);
    weir_program_destroy(&life->program);
    weir_pool_destroy(&life->pool);
    weir_buffer_destroy(&life->host);
    weir_buffer_destroy(&life->buffer);
    weir_queue_destroy(&life->other);
    weir_queue_destroy(&life->queue);
    if (life->device)
        WEIR_IGNORE(weir_device_close(&life->device));
    if (life->runtime)
        WEIR_IGNORE(weir_close(&life->runtime));
    return status;
}

struct outcome {
    weir_status status;
    const char *step;
    bool waited; // the last sync came to an end
    bool said;   // an error has a text
};

static struct outcome live(void)
{
    static weir_status (*const parts[])(struct life * life) = {
        open_all, work, use_kernel, use_memory, use_graphs, capture, update,
    };
    struct life life = {0};
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status >= 0; i++)
        status = parts[i](&life);
    struct outcome outcome = {.status = status, .step = life.step};
    outcome.said = status >= 0 || weir_last_error_text()[0];
    if (status < 0)
        expect_as_before(&life);
    outcome.waited = close_all(&life) != WEIR_TIMEOUT;
    return outcome;
}

// Which allocation is being failed, for a reader of what a crash leaves.
static void announce(long index)
{
    char text[64];
    const int length = snprintf(text, sizeof text, "allocation %ld fails\n", index);
    if (lseek(STDERR_FILENO, 0, SEEK_CUR) < 0 || write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

// Memory that one life leaves may be a cache's, such as the C library's of threads; a leak leaves some
// each time.
static void expect_no_growth(long index, const char *step, long before)
{
    for (int i = 0; weir_test_live() > before; i++) {
        if (i == 8) {
            weir_test_fail(__FILE__, __LINE__, "allocation %ld, of %s, leaves %+ld blocks", index,
                           step, weir_test_live() - before);
            return;
        }
        before = weir_test_live();
        weir_test_arm(index);
        live();
        weir_test_arm(-1);
        live();
    }
}

WEIR_TEST(Walk, EveryAllocationFailsOnce)
{
    long counts[2] = {0, 0}; // without an error, with one
    for (int i = 0; i < 3; i++)
        ASSERT_INT_EQ(live().status, WEIR_OK);
    weir_test_arm(-1);
    live();
    const long total = weir_test_calls();
    for (long index = 0; index < total; index++) {
        announce(index);
        alarm(DEADLINE_S);
        const long before = weir_test_live();
        weir_test_arm(index);
        const struct outcome outcome = live();
        weir_test_arm(-1);
        EXPECT_TRUE(outcome.waited);
        EXPECT_TRUE(outcome.said);
        EXPECT_INT_EQ(live().status, WEIR_OK);
        expect_no_growth(index, outcome.step, before);
        counts[outcome.status < 0]++;
    }
    alarm(0);
    printf("%ld allocations: %ld lives without an error, %ld with one\n", total, counts[0],
           counts[1]);
}
