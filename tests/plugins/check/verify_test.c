// verify = 1: what kernels do with bytes that their launches do not declare.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/check.h>

#include "tests/plugins/check/verify_rig.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

WEIR_TEST(Verify, KernelThatKeepsItsRanges)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "add_some");
    LAUNCH(items(WORDS), block, weir_in(rig.in, 0, HALF), weir_out(rig.out, HALF, HALF), 3u,
           (unsigned)PART);
    expect_finding(&rig, "");
    EXPECT_INT_EQ(word_of(&rig, rig.out, PART + 5), runs_kernels(&rig) ? 8 : 0);
    EXPECT_INT_EQ(word_of(&rig, rig.out, PART - 1), 0);
    rig_close(&rig);
}

// The grid is rounded up, and the kernel has no test for it.
WEIR_TEST(Verify, WriteOnePast)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "add");
    LAUNCH(items(PART), block, weir_in(rig.in, 0, HALF), weir_out(rig.out, 0, HALF - 4), 3u);
    expect_finding(&rig, " writes bytes 4092 to 4095 of buffer 'out', and declares only bytes 0 to "
                         "4091 to be written");
    rig_close(&rig);
}

WEIR_TEST(Verify, WritePastTheBuffer)
{
    struct rig rig;
    rig_open(&rig, "verify = 1\nreport = fail", "add_some");
    const weir_status status =
        weir_queue_launch(rig.queue, rig.kernel, items(WORDS), block, weir_in(rig.in, 0, BYTES),
                          weir_out(rig.out, HALF, HALF), 3u, (unsigned)PART + 16);
    EXPECT_INT_EQ(status, runs_kernels(&rig) ? WEIR_ERROR_INVALID : WEIR_OK);
    if (runs_kernels(&rig))
        EXPECT_TRUE(strstr(weir_last_error_text(), "buffer 'out', and declares only bytes 4096 to "
                                                   "8191 to be written"));
    rig_close(&rig);
}

WEIR_TEST(Verify, WriteInFrontOfTheBuffer)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "write_before");
    // With `report = log` the launch runs: where it does no harm.
    LAUNCH(items(64), block, weir_out(rig.out, HALF, 256));
    expect_finding(&rig, "writes bytes 4092 to 4095 of buffer 'out', and declares only bytes "
                         "4096 to 4351 to be written");
    rig_close(&rig);
    rig_open(&rig, "verify = 1\nreport = fail", "write_before");
    (void)weir_queue_launch(rig.queue, rig.kernel, items(64), block, weir_out(rig.out, 0, 256));
    if (runs_kernels(&rig))
        EXPECT_TRUE(strstr(weir_last_error_text(), "writes in front of buffer 'out'"));
    rig_close(&rig);
}

WEIR_TEST(Verify, WriteToWhatIsDeclaredAsRead)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "move");
    LAUNCH(items(PART), block, weir_in(rig.in, 0, HALF), weir_out(rig.out, 0, HALF));
    // Word 0 is 0 before, too.
    expect_finding(&rig,
                   "writes bytes 4 to 4093 of buffer 'in', and declares none of it to be written");
    rig_close(&rig);
}

WEIR_TEST(Verify, ReadOfTheNeighbour)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "halo");
    LAUNCH(items(PART), block, weir_in(rig.in, HALF / 2, HALF), weir_out(rig.out, 0, HALF));
    expect_finding(&rig, "reads byte 2044 of buffer 'in', and declares only bytes 2048 to "
                         "6143 to be read");
    EXPECT_INT_EQ(word_of(&rig, rig.out, 0), runs_kernels(&rig) ? 3 * 512 : 0);
    rig_close(&rig);
}

WEIR_TEST(Verify, ReadPastTheBuffer)
{
    struct rig rig;
    rig_open(&rig, "verify = 1\nreport = fail", "halo");
    const weir_status status =
        weir_queue_launch(rig.queue, rig.kernel, items(PART), block, weir_in(rig.in, HALF, HALF),
                          weir_out(rig.out, 0, HALF));
    EXPECT_INT_EQ(status, runs_kernels(&rig) ? WEIR_ERROR_INVALID : WEIR_OK);
    rig_close(&rig);
}

// What a launch only writes, its kernel may not read.
WEIR_TEST(Verify, ReadOfWhatIsDeclaredAsWritten)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "bump");
    LAUNCH(items(PART), block, weir_out(rig.out, 0, HALF));
    expect_finding(&rig, "reads byte 0 of buffer 'out', and declares none of it to be read");
    rig_close(&rig);
    rig_open(&rig, "verify = 1", "bump");
    LAUNCH(items(PART), block, weir_inout(rig.out, 0, HALF));
    expect_finding(&rig, "");
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig));
    rig_close(&rig);
}

// A kernel need not write all that it may.
WEIR_TEST(Verify, WriteOfAPart)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "thirds");
    LAUNCH(items(PART), block, weir_out(rig.out, 0, HALF));
    expect_finding(&rig, "");
    rig_close(&rig);
}

WEIR_TEST(Verify, HostBuffers)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "halo");
    if (!weir_device_limits(rig.device)->host_in_kernels) {
        rig_close(&rig);
        WEIR_SKIP("the device uses no HOST buffers in kernels");
    }
    LAUNCH(items(PART), block, weir_in(rig.host, HALF / 2, HALF), weir_out(rig.out, 0, HALF));
    expect_finding(&rig, "reads byte 2044 of buffer 'host'");
    rig_close(&rig);
}

// A launch on two queues at a time, which use parts of the same buffers.
static void *launch_many(void *user)
{
    struct rig *rig = user;
    weir_queue *queue = make_queue(rig, "other");
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_queue_launch(queue, rig->kernel, items(WORDS), block,
                                    weir_in(rig->in, HALF, HALF), weir_out(rig->out, HALF, HALF),
                                    2u, (unsigned)PART));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    weir_queue_destroy(&queue);
    return NULL;
}

WEIR_TEST(Verify, TwoQueuesAndThreads)
{
    struct rig rig;
    pthread_t thread;
    rig_open(&rig, "verify = 1", "add_some");
    ASSERT_INT_EQ(pthread_create(&thread, NULL, launch_many, &rig), 0);
    for (int i = 0; i < 20; i++)
        LAUNCH(items(WORDS), block, weir_in(rig.in, 0, HALF), weir_out(rig.out, 0, HALF), 1u,
               (unsigned)PART);
    pthread_join(thread, NULL);
    expect_finding(&rig, "");
    EXPECT_INT_EQ(word_of(&rig, rig.out, 7), runs_kernels(&rig) ? 8 : 0);
    EXPECT_INT_EQ(word_of(&rig, rig.out, PART + 7), runs_kernels(&rig) ? PART + 9 : 0);
    rig_close(&rig);
}

// What it writes depends on which of its work-items come first, and on nothing that is not declared.
WEIR_TEST(Verify, OtherResultsInEveryRun)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "race_for_it");
    for (int i = 0; i < 20; i++)
        LAUNCH(items(PART), block, weir_inout(rig.in, 0, 4), weir_out(rig.out, 0, HALF));
    EXPECT_SIZE_EQ(weir_check_count(rig.runtime), 0);
    EXPECT_SIZE_EQ(count_notes("verify:"), count_notes("gives other results in every run"));
    rig_close(&rig);
}

WEIR_TEST(Verify, OffByDefault)
{
    struct rig rig;
    rig_open(&rig, "", "add");
    LAUNCH(items(PART), block, weir_in(rig.in, 0, HALF), weir_out(rig.out, 0, HALF - 4), 3u);
    EXPECT_SIZE_EQ(weir_check_count(rig.runtime), 0);
    rig_close(&rig);
}

WEIR_TEST(Verify, Variable)
{
    struct rig rig;
    setenv("WEIR_CHECK_VERIFY", "1", 1);
    rig_open(&rig, "", "bump");
    LAUNCH(items(PART), block, weir_out(rig.out, 0, HALF));
    expect_finding(&rig, "reads byte 0 of buffer 'out'");
    unsetenv("WEIR_CHECK_VERIFY");
    rig_close(&rig);
}

// What is not verified is said once.

static void launch_bump(struct rig *rig)
{
    EXPECT_OK(weir_queue_launch(rig->queue, rig->kernel, items(PART), block,
                                weir_inout(rig->out, 0, HALF)));
}

WEIR_TEST(Unverified, KnownAddresses)
{
    struct rig rig;
    uint64_t address = 0;
    rig_open(&rig, "verify = 1", "bump");
    (void)weir_buffer_address(rig.out, &address);
    launch_bump(&rig);
    launch_bump(&rig);
    EXPECT_SIZE_EQ(count_notes("after weir_buffer_address()"), address ? 1 : 0);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig) ? 2 : 0);
    rig_close(&rig);
}

// Buffers of the plugin's own that are refused: the launch is not.
static void expect_refused(const char *section)
{
    struct rig rig;
    char text[128];
    snprintf(text, sizeof text, "verify = 1\n[fault]\n%s", section);
    setenv("WEIR_PLUGINS", "check, fault", 1);
    rig_open(&rig, text, "bump");
    unsetenv("WEIR_PLUGINS");
    launch_bump(&rig);
    EXPECT_SIZE_EQ(count_notes("cannot be run on copies"), 1);
    EXPECT_SIZE_EQ(weir_check_count(rig.runtime), 0);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig));
    rig_close(&rig);
}

WEIR_TEST(Unverified, CopiesThatCannotBeMade)
{
    expect_refused("fault = memory\nkinds = new-buffer\nlabel = check: verify\nat = 1");
    expect_refused("fault = memory\nkinds = new-buffer\nlabel = check: verify\nat = 2");
}

static atomic_bool may_return;

static weir_status wait_for_program(void *user)
{
    (void)user;
    while (!atomic_load(&may_return))
        sched_yield();
    return WEIR_OK;
}

// The call waits for what the thread does after the launch.
WEIR_TEST(Unverified, CallThatWaits)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "bump");
    atomic_store(&may_return, false);
    EXPECT_OK(weir_queue_host_call(rig.queue, wait_for_program, NULL));
    launch_bump(&rig);
    launch_bump(&rig);
    atomic_store(&may_return, true);
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    EXPECT_SIZE_EQ(count_notes("while one waits for the program"), 1);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig) ? 2 : 0);
    launch_bump(&rig); // verified again
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig) ? 3 : 0);
    rig_close(&rig);
}

static weir_status launch_in_call(void *user)
{
    launch_bump(user);
    return WEIR_OK;
}

WEIR_TEST(Unverified, LaunchInACall)
{
    struct rig rig;
    rig_open(&rig, "verify = 1", "bump");
    EXPECT_OK(weir_queue_host_call(rig.queue, launch_in_call, &rig));
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    EXPECT_SIZE_EQ(count_notes("in a host call"), 1);
    EXPECT_INT_EQ(word_of(&rig, rig.out, 9), runs_kernels(&rig));
    rig_close(&rig);
}
