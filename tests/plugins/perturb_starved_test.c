// The plugin `perturb` with no memory to allocate or threads to start: tests/plugins/starved.
#include <stdlib.h>

#include "tests/plugins/perturb_rig.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

static void starve(const char *of)
{
    if (of)
        setenv("WEIR_TEST_STARVED", of, 1);
    else
        unsetenv("WEIR_TEST_STARVED");
}

static void expect_refused(weir_status status, weir_status wanted, const char *message)
{
    starve(NULL);
    EXPECT_INT_EQ(status, wanted);
    EXPECT_CONTAINS(weir_last_error_text(), message);
}

static weir_status fill(struct rig *work, size_t queue)
{
    const uint32_t pattern = 7;
    return weir_queue_fill(queue ? work->down : work->up, work->frame, 32 * queue, 32, &pattern,
                           sizeof pattern);
}

static void expect_filled(struct rig *work)
{
    uint32_t words[16] = {0};
    EXPECT_OK(weir_download(work->up, words, work->frame, 0, sizeof words));
    for (size_t i = 0; i < 16; i++)
        EXPECT_INT_EQ(words[i], 7);
}

WEIR_TEST(PerturbStarved, Open)
{
    weir_runtime *runtime = NULL;
    starve("memory");
    expect_refused(open_with("perturb", "", &runtime), WEIR_ERROR_OUT_OF_MEMORY,
                   "no host memory is left for the plugin perturb");
    WEIR_IGNORE(weir_close(&runtime));
}

WEIR_TEST(PerturbStarved, Queue)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *queue = NULL;
    open_device("perturb", "", &runtime, &device);
    starve("memory");
    expect_refused(weir_queue_create(device, NULL, &queue), WEIR_ERROR_OUT_OF_MEMORY,
                   "no host memory is left for a queue");
    starve("threads");
    expect_refused(weir_queue_create(device, NULL, &queue), WEIR_ERROR_SYSTEM,
                   "no thread for the plugin perturb");
    EXPECT_OK(weir_queue_create(device, NULL, &queue));
    weir_queue_destroy(&queue);
    close_device(&runtime, &device);
}

WORK_TEST(PerturbStarved, Operation, "[perturb]\nmode = late\n")
{
    EXPECT_OK(fill(work, 0));
    starve("memory");
    expect_refused(fill(work, 1), WEIR_ERROR_OUT_OF_MEMORY,
                   "no host memory is left for an operation that is held back");
    EXPECT_OK(weir_queue_recover(work->down));
    EXPECT_OK(fill(work, 1));
    EXPECT_OK(weir_queue_sync(work->down, GUARD_NS));
    expect_filled(work);
}

WORK_TEST(PerturbStarved, Graph, "[perturb]\nmode = late\n")
{
    own_graph graph = NULL;
    struct weir_event event;
    EXPECT_OK(weir_capture_begin(work->up));
    EXPECT_OK(weir_queue_record(work->up, &event));
    EXPECT_OK(weir_queue_wait(work->down, event));
    EXPECT_OK(fill(work, 0));
    EXPECT_OK(fill(work, 1));
    EXPECT_OK(weir_queue_record(work->down, &event));
    EXPECT_OK(weir_queue_wait(work->up, event));
    EXPECT_OK(weir_capture_end(work->up, NULL, &graph));
    for (int i = 0; i < 2; i++) {
        starve(i == 0 ? "memory" : "later");
        expect_refused(weir_queue_graph(work->up, graph), WEIR_ERROR_OUT_OF_MEMORY,
                       "no host memory is left");
        EXPECT_OK(weir_queue_recover(work->up));
    }
    EXPECT_OK(weir_queue_graph(work->up, graph));
    expect_filled(work);
}

// The thread that asks does the work.
WORK_TEST(PerturbStarved, NoThreadsForOperations, "[perturb]\nmode = late\n")
{
    starve("threads");
    EXPECT_OK(fill(work, 0));
    EXPECT_OK(fill(work, 1));
    EXPECT_OK(weir_queue_sync(work->up, GUARD_NS));
    EXPECT_OK(weir_queue_sync(work->down, GUARD_NS));
    expect_filled(work);
    starve(NULL);
}
