// The memory of the plugin `trace`: as much as configured, without growth over time.
#define _DEFAULT_SOURCE // usleep

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/module/module.h>

#include "tests/plugins/trace_rig.h"
#include "tests/support/memory.h"

// Until that many operations are in the file: they have left the ring by then.
static bool wait_for_operations(const char *path, size_t count)
{
    size_t there = 0;
    for (int i = 0; i < 6000 && there < count; i++) {
        struct weir_trace *trace = NULL;
        char message[512];
        usleep(10000);
        there = weir_trace_read(path, NULL, &trace, message, sizeof message)
                    ? trace->operation_count
                    : 0;
        weir_trace_destroy(&trace);
    }
    return there >= count;
}

// More operations at once than the ring holds: those that are dropped are counted, and
// the submitter is not delayed. On a queue that is held by a host call nothing completes
// meanwhile.
WEIR_TEST(Trace, CountsWhatItDoesNotKeep)
{
    const char *path = rig_path("drops.json");
    struct rig_gate gate = RIG_GATE_CLOSED;
    struct rig rig;
    ASSERT_TRUE(rig_start_with(&rig, path, "buffer = 1024\nflush = 1", "trace"));
    EXPECT_OK(weir_queue_host_call(rig.up, rig_pass_gate, &gate));
    for (size_t i = 0; i < 3000; i++)
        EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    rig_open_gate(&gate);
    EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
    // Afterwards there is room again.
    EXPECT_TRUE(wait_for_operations(path, 1024));
    for (size_t i = 0; i < 5; i++)
        EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 32));
    EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
    rig_finish(&rig);
    struct weir_trace *trace = rig_read(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_UINT_EQ(trace->meta.dropped, 3000 - 1023);
    ASSERT_SIZE_EQ(trace->operation_count, 1024 + 5);
    for (size_t i = 0; i < trace->operation_count; i++)
        EXPECT_TRUE(trace->operations[i].timed);
    EXPECT_UINT_EQ(trace->operations[1028].bytes, 32);
    weir_trace_destroy(&trace);
}

// A file ends at its limit, whole; what comes later is counted, and its regions are not kept.
WEIR_TEST(Trace, EndsAtItsLimit)
{
    const char *path = rig_path("limit.json");
    struct rig rig;
    ASSERT_TRUE(rig_start_with(&rig, path, "limit = 1", "trace"));
    for (size_t i = 0; i < 10; i++) {
        weir_region_push(rig.runtime, "round", i);
        for (size_t k = 0; k < 1000; k++)
            EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
        EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
        weir_region_pop(rig.runtime);
    }
    rig_finish(&rig);
    struct stat file;
    ASSERT_INT_EQ(stat(path, &file), 0);
    EXPECT_TRUE(file.st_size > 1 << 20 && file.st_size < (1 << 20) + 8192);
    struct weir_trace *trace = rig_read(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_FALSE(trace->meta.truncated);
    EXPECT_TRUE(trace->operation_count > 500 && trace->operation_count < 2000);
    EXPECT_UINT_EQ(trace->operation_count + trace->meta.beyond, 10 * 1000);
    EXPECT_SIZE_EQ(trace->note_count, 1);
    weir_trace_destroy(&trace);
}

// Four hundred thousand operations take no more memory than the first hundred thousand.
WEIR_TEST(Trace, TakesNoMoreAndMoreMemory)
{
    const char *path = rig_path("long.json");
    struct rig rig;
    struct weir_counters before;
    struct weir_counters after;
    uint64_t warm = 0;
    ASSERT_TRUE(rig_start_with(&rig, path, "buffer = 2048", "trace"));
    for (size_t i = 0; i < 400; i++) {
        if (i == 100) {
            warm = weir_test_resident_bytes();
            weir_counters_read(&before);
        }
        weir_region_push(rig.runtime, "round", i);
        for (size_t k = 0; k < 1000; k++)
            if (weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64) < 0)
                WEIR_FAIL("%s", weir_last_error_text());
        EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
        weir_region_pop(rig.runtime);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    if (!WEIR_MODULE_SANITIZER[0]) // sanitizers keep what was freed
        EXPECT_UINT_LE(weir_test_resident_bytes(), warm + (24u << 20));
    rig_finish(&rig);
    unlink(path);
}

static void *push_and_pop(void *argument)
{
    const struct rig *rig = argument;
    weir_region_push(rig->runtime, "short", WEIR_NO_NUMBER);
    weir_region_pop(rig->runtime);
    return NULL;
}

static void run_threads(struct rig *rig, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        ASSERT_INT_EQ(pthread_create(&thread, NULL, push_and_pop, rig), 0);
        ASSERT_INT_EQ(pthread_join(thread, NULL), 0);
    }
    usleep(20000); // the file is written meanwhile
}

// Nor do threads that have ended.
WEIR_TEST(Trace, ForgetsThreadsThatHaveEnded)
{
    const char *path = rig_path("ended_threads.json");
    struct rig rig;
    uint64_t warm = 0;
    ASSERT_TRUE(rig_start(&rig, path));
    for (size_t i = 0; i < 40; i++) {
        if (i == 4)
            warm = weir_test_resident_bytes();
        run_threads(&rig, 50);
    }
    if (!WEIR_MODULE_SANITIZER[0])
        EXPECT_UINT_LE(weir_test_resident_bytes(), warm + (5u << 20));
    rig_finish(&rig);
    struct weir_trace *trace = rig_read(path);
    ASSERT_NOT_NULL(trace);
    size_t spans = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        spans += strcmp(trace->spans[i].name, "short") == 0;
    EXPECT_SIZE_EQ(spans, 40 * 50);
    weir_trace_destroy(&trace);
}
