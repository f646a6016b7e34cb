// Every allocation that capturing, making, launching and updating a graph takes fails once
// in turn: the call returns the error, nothing is leaked, and the queues are as before.
// The rule in BUILD makes the linker use this function instead of the allocator.
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/unit/core_backend.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

enum {
    QUEUES = 3,
    MOST_ALLOCATIONS = 1000
};

// Counts down to the allocation that fails; negative: none does.
static atomic_long countdown = -1;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    long left = atomic_load(&countdown);
    while (left >= 0 && !atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
    }
    return left == 0 ? NULL : __real_calloc(count, size);
}

struct rig {
    struct control control;
    weir_queue *queues[QUEUES];
    weir_buffer *buffer;
    weir_graph *graph;
};

// The first error, which must be that of the allocation, ends it.
static weir_status first_error;

static bool try(weir_status status)
{
    if (status < 0 && first_error == WEIR_OK)
        first_error = status;
    return status == WEIR_OK;
}

static bool fill(struct rig *rig, int queue, size_t at)
{
    return try(weir_queue_fill(rig->queues[queue], rig->buffer, 64 * at, 64, "x", 1));
}

static bool follow(struct rig *rig, int to, int from)
{
    struct weir_event event;
    return try(weir_queue_record(rig->queues[from], &event)) &&
           try(weir_queue_wait(rig->queues[to], event));
}

// Enough nodes and records that every list grows, and three branches that fork twice.
static bool capture(struct rig *rig)
{
    if (!try(weir_capture_begin(rig->queues[0])))
        return false;
    for (size_t i = 0; i < 9; i++)
        if (!fill(rig, 0, i) || !follow(rig, 1, 0) || !fill(rig, 1, i) || !follow(rig, 2, 1) ||
            !fill(rig, 2, i) || !follow(rig, 0, 2))
            return false;
    return try(weir_capture_end(rig->queues[0], NULL, &rig->graph));
}

// The second update waits for a launch that is held.
static bool use(struct rig *rig)
{
    bool good = try(weir_queue_graph(rig->queues[1], rig->graph)) &&
                try(weir_graph_set_fill(rig->graph, 0, rig->buffer, 0, 64, "yy", 2)) &&
                try(weir_queue_host_call(rig->queues[1], control_gate, NULL)) &&
                try(weir_queue_graph(rig->queues[1], rig->graph)) &&
                try(weir_graph_set_fill(rig->graph, 1, rig->buffer, 64, 64, "zz", 2)) &&
                try(weir_queue_graph(rig->queues[2], rig->graph));
    control_gate_open();
    weir_graph *clone = NULL;
    good = good && try(weir_graph_set_enabled(rig->graph, 2, false)) &&
           try(weir_graph_clone(rig->graph, NULL, &clone)) &&
           try(weir_queue_graph(rig->queues[0], clone));
    weir_graph_destroy(&clone);
    return good;
}

static weir_status nothing(void *user)
{
    (void)user;
    return WEIR_OK;
}

// A graph with a host call, whose second update waits for a launch that is held.
static bool use_call(struct rig *rig)
{
    weir_graph *graph = NULL;
    bool good = try(weir_capture_begin(rig->queues[0])) &&
                try(weir_queue_host_call(rig->queues[0], nothing, NULL)) &&
                try(weir_capture_end(rig->queues[0], NULL, &graph)) &&
                try(weir_graph_set_host_call(graph, 0, nothing, rig)) &&
                try(weir_queue_host_call(rig->queues[1], control_gate, NULL)) &&
                try(weir_queue_graph(rig->queues[1], graph)) &&
                try(weir_graph_set_host_call(graph, 0, nothing, NULL));
    control_gate_open();
    good = good && try(weir_queue_graph(rig->queues[1], graph));
    weir_graph_destroy(&graph);
    return good;
}

// Whether the end was reached without the failure.
static bool run_with_failure(long failing)
{
    struct rig rig = {.graph = NULL};
    first_error = WEIR_OK;
    if (!control_open(&rig.control))
        return true;
    for (int i = 0; i < QUEUES; i++)
        rig.queues[i] = control_queue(&rig.control, "q");
    rig.buffer = control_buffer(&rig.control, 4096);

    atomic_store(&countdown, failing);
    bool good = capture(&rig) && use(&rig) && use_call(&rig);
    const bool untouched = atomic_load(&countdown) >= 0;
    atomic_store(&countdown, -1);
    control_gate_open();
    if (untouched)
        EXPECT_TRUE(good);
    if (first_error != WEIR_OK)
        EXPECT_INT_EQ(first_error, WEIR_ERROR_OUT_OF_MEMORY);

    weir_capture_cancel(rig.queues[0]);
    for (int i = 0; i < QUEUES; i++) // all of them, as they use the same bytes
        weir_queue_sync(rig.queues[i], GUARD_NS);
    for (int i = 0; i < QUEUES; i++) {
        EXPECT_OK(weir_queue_recover(rig.queues[i]));
        EXPECT_OK(weir_queue_fill(rig.queues[i], rig.buffer, 0, 64, "x", 1));
        EXPECT_OK(weir_queue_sync(rig.queues[i], GUARD_NS));
    }
    if (rig.graph) { // also after an update that failed
        EXPECT_OK(weir_queue_graph(rig.queues[0], rig.graph));
        EXPECT_OK(weir_queue_sync(rig.queues[0], GUARD_NS));
    }
    weir_graph_destroy(&rig.graph);
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&rig.queues[i]);
    weir_buffer_destroy(&rig.buffer);
    control_close(&rig.control);
    return untouched;
}

WEIR_TEST(GraphMemory, EveryAllocationFailsOnce)
{
    long failing = 0;
    while (failing < MOST_ALLOCATIONS && !weir_test_has_failed()) {
        weir_test_note("allocation %ld fails", failing);
        if (run_with_failure(failing))
            break;
        failing++;
    }
    weir_test_note(NULL);
    EXPECT_INT_LT(100, failing);
    EXPECT_INT_LT(failing, MOST_ALLOCATIONS);
}
