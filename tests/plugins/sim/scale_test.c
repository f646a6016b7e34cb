// Kernels without a cost, with `kernels = scale`: each takes what its first launch of that size took on
// the next link, times the factor. That link is the test's plugin `paced`, whose n-th launch takes n
// microseconds for each block.

#include "tests/plugins/sim/job.h"

static const char *const measured = "times, sim, paced";

// A GPU whose host takes 4400 ns for a launch, and no time for anything else.
static const char gpu[] = "[gpu]\nname = plain\nqueues = stream\ncopy_engines = 2\nkernels = 1\n"
                          "h2d_gb_per_s = 1\nd2h_gb_per_s = 1\nsubmit_kernel_ns = 4400\n";

static bool start_job(struct job *job, const char *more, const char *plugins)
{
    char section[1200];
    snprintf(section, sizeof section, "[sim]\ngpu = %s\nkernels = scale\n%s",
             job_file("gpu.ini", gpu), more);
    return job_start(job, job_trace(), section, plugins);
}

#define SCALE_TEST(suite, name, more, plugins) \
    WEIR_TEST_WITH(suite, name, struct job, job, start_job(job, more, plugins), job_finish(job))

static weir_status launch(struct job *job, uint32_t blocks, uint64_t steps)
{
    return weir_queue_launch(job->queues[0], job->rig.kernel, weir_dim(blocks, 1, 1),
                             weir_dim(1, 1, 1), weir_out(job->rig.memory, 0, blocks * 4), 7u,
                             steps);
}

// Of a launch, in virtual time.
static int64_t length_of(struct job *job, uint32_t blocks, uint64_t steps)
{
    int64_t ns = -1;
    EXPECT_OK(weir_queue_sync(job->queues[0], WEIR_FOREVER));
    const struct weir_event before = test_record(job->queues[0]);
    EXPECT_OK(launch(job, blocks, steps));
    const struct weir_event after = test_record(job->queues[0]);
    EXPECT_OK(weir_event_sync(after, WEIR_FOREVER));
    EXPECT_OK(weir_event_elapsed_ns(before, after, &ns));
    return ns - 4400; // of the submit, which the record did not wait for
}

SCALE_TEST(Scale, TheFirstLaunchOfASizeIsMeasured, "kernel_scale = 0.5\n", measured)
{
    EXPECT_INT_EQ(length_of(job, 10, 1), 10 * 1000 / 2);
    EXPECT_INT_EQ(length_of(job, 20, 1), 2 * 20 * 1000 / 2);
    // Known ones.
    EXPECT_INT_EQ(length_of(job, 10, 1), 10 * 1000 / 2);
    EXPECT_INT_EQ(length_of(job, 20, 1), 2 * 20 * 1000 / 2);
    // The fifth launch: another argument is another size.
    EXPECT_INT_EQ(length_of(job, 10, 2), 5 * 10 * 1000 / 2);
}

SCALE_TEST(Scale, ManySizes, "", measured)
{
    for (uint32_t steps = 1; steps <= 100; steps++)
        ASSERT_OK(launch(job, 2, steps));
    for (uint32_t steps = 1; steps <= 100; steps += 13)
        EXPECT_INT_EQ(length_of(job, 2, steps), (int64_t)steps * 2 * 1000);
}

WEIR_TEST(Scale, ACostIsUsedWhereThereIsOne)
{
    own_job job = {0};
    char costs[512];
    snprintf(costs, sizeof costs, "costs = %s\n",
             job_file("costs.ini", "[kernel spin]\nfixed_ns = 1230\n"));
    ASSERT_TRUE(start_job(&job, costs, measured));
    EXPECT_INT_EQ(length_of(&job, 10, 1), 1230);
}

// No link asks for times: the host's clock tells.
SCALE_TEST(Scale, WithoutTimes, "kernel_scale = 1000\n", "sim")
{
    const int64_t first = length_of(job, 10, 1);
    EXPECT_TRUE(first > 0);
    EXPECT_INT_EQ(length_of(job, 10, 1), first);
}

// Each launch runs once, measured or not.
SCALE_TEST(Scale, TheWorkIsDoneOnce, "", measured)
{
    uint32_t numbers[64] = {0};
    own_kernel increment = NULL;
    const bool runs = strcmp(weir_runtime_backend(job->rig.runtime), "null") != 0;
    ASSERT_OK(weir_kernel_create(job->rig.program, "increment", &increment));
    ASSERT_OK(weir_upload(job->queues[0], job->rig.memory, 0, numbers, sizeof numbers));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_queue_launch(job->queues[0], increment, weir_dim(1, 1, 1),
                                    weir_dim(64, 1, 1),
                                    weir_inout(job->rig.memory, 0, sizeof numbers), 5u, 64u));
    ASSERT_OK(weir_download(job->queues[0], numbers, job->rig.memory, 0, sizeof numbers));
    for (size_t i = 0; i < 64; i++)
        ASSERT_UINT_EQ(numbers[i], runs ? 15 : 0);
}

// A function of the host may launch what was measured before.

struct inner {
    struct job *job;
    uint32_t blocks;
    weir_status status;
    char text[512];
};

static weir_status launch_inside(void *user)
{
    struct inner *inner = user;
    inner->status = launch(inner->job, inner->blocks, 1);
    snprintf(inner->text, sizeof inner->text, "%s",
             inner->status == WEIR_OK ? "" : weir_last_error_text());
    return WEIR_OK;
}

SCALE_TEST(Scale, InAFunctionOfTheHost, "", measured)
{
    struct inner known = {.job = job, .blocks = 3};
    struct inner unknown = {.job = job, .blocks = 4};
    ASSERT_OK(launch(job, 3, 1));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_queue_host_call(job->rig.up, launch_inside, &known));
    ASSERT_OK(weir_queue_sync(job->rig.up, WEIR_FOREVER));
    EXPECT_INT_EQ(known.status, WEIR_OK);
    ASSERT_OK(weir_queue_host_call(job->rig.up, launch_inside, &unknown));
    ASSERT_OK(weir_queue_sync(job->rig.up, WEIR_FOREVER));
    EXPECT_INT_EQ(unknown.status, WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(unknown.text, "the kernel 'spin' has no cost, and cannot be measured in a "
                                  "function of the host");
}

SCALE_TEST(Scale, InAGraph, "", measured)
{
    own_graph graph = NULL;
    ASSERT_OK(weir_capture_begin(job->queues[0]));
    ASSERT_OK(launch(job, 6, 1));
    ASSERT_OK(weir_capture_end(job->queues[0], NULL, &graph));
    EXPECT_FAILURE(weir_queue_graph(job->queues[0], graph), WEIR_ERROR_UNSUPPORTED,
                   "of a graph has no cost, and was not measured");
    EXPECT_OK(weir_queue_recover(job->queues[0]));
    ASSERT_OK(launch(job, 6, 1));
    EXPECT_OK(weir_queue_graph(job->queues[0], graph));
    EXPECT_OK(weir_queue_sync(job->queues[0], WEIR_FOREVER));
}

// Failures.

SCALE_TEST(Scale, ALaunchThatFails, "", measured)
{
    EXPECT_FAILURE(launch(job, 13, 1), WEIR_ERROR_DEVICE, "13 blocks are unlucky");
    EXPECT_OK(weir_queue_recover(job->queues[0]));
    EXPECT_INT_EQ(length_of(job, 10, 1), 10 * 1000);
}
