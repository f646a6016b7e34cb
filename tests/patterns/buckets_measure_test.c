// How much WEIR_BUCKETS_AUTO reduces to measure. The plugin fault lists the collectives, and makes them slow.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patterns/buckets.h"
#include "tests/comm/rig.h"
#include "tests/patterns/buckets_rig.h"
#include "tests/support/memory.h"

enum {
    RANKS = 2,
    PARAMETERS = 3,
    DELAY_MS = 60, // longer than what is slow
    GATHERS = 4,   // of each rank: its plan, the time of each of two sizes, the figures
};

struct found {
    unsigned reductions; // of all ranks
    struct weir_buckets_plan plan;
};

static unsigned lines_with(const char *path, const char *word)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, word) != NULL;
    if (file)
        fclose(file);
    return count;
}

// Of 1 MiB each, so that there are two sizes to measure, and the latency.
static void create(struct comm_rig *rig, struct found *found)
{
    weir_buckets *buckets[RANKS];
    struct weir_buckets_plan other;
    struct weir_bucket_parameter parameters[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++)
        parameters[i] = (struct weir_bucket_parameter){.struct_size = sizeof *parameters,
                                                       .name = "weight",
                                                       .count = (size_t)1 << 18};
    ASSERT_OK(
        weir_buckets_create_all(WEIR_PARAMS(weir_buckets, .label = "grads", .element = WEIR_F32,
                                            .parameters = parameters, .parameter_count = PARAMETERS,
                                            .parameter_size = sizeof *parameters,
                                            .cap_bytes = WEIR_BUCKETS_AUTO),
                                rig->comms, RANKS, buckets));
    weir_buckets_get_plan(buckets[0], &found->plan);
    weir_buckets_get_plan(buckets[1], &other);
    EXPECT_MEM_EQ(&other, &found->plan, sizeof other);
    for (int i = 0; i < RANKS; i++)
        weir_buckets_destroy(&buckets[i]);
}

static struct found measure(const char *faults)
{
    struct found found = {0};
    struct comm_rig rig;
    char path[512], text[1024];
    snprintf(path, sizeof path, "%s/collectives", getenv("TEST_TMPDIR"));
    remove(path);
    snprintf(
        text, sizeof text,
        "[weir]\nplugins = fault\n[fault]\nkinds = collective\nqueue = grads/comm\nlist = %s\n%s",
        path, faults);
    comm_rig_open(&rig, text, RANKS, WEIR_PLACE_HOST);
    create(&rig, &found);
    comm_rig_close(&rig);
    found.reductions = lines_with(path, "buckets_measure.c") - RANKS * GATHERS;
    return found;
}

// The latency and one size, each twice on each rank; what takes longer is left out.
WEIR_TEST(BucketsMeasure, SlowReductionsAreTimedOnce)
{
    char faults[128];
    snprintf(faults, sizeof faults, "fault = slow\none_in = 1\ndelay_ms = %d\n", DELAY_MS);
    const struct found found = measure(faults);
    EXPECT_UINT_EQ(found.reductions, RANKS * 2 * 2);
    EXPECT_TRUE(found.plan.latency_ns >= DELAY_MS * 1e6);
    EXPECT_TRUE(found.plan.bucket_count >= 1 && found.plan.bucket_count <= PARAMETERS);
}

// Every allocation that creating buckets takes fails once in turn: nothing is made, nothing is leaked, and
// the communicator is aborted, so that other ranks do not wait.

enum {
    MOST_ALLOCATIONS = 400,
};

static struct buckets_rig made_rig;

// An allocation of the queue's worker or of the transport fails the communicator.
static bool is_told(weir_status status)
{
    return status == WEIR_ERROR_OUT_OF_MEMORY || status == WEIR_ERROR_COMM;
}

static void create_with(size_t cap_bytes)
{
    bool all_done = false;
    for (long i = 0; i < MOST_ALLOCATIONS && !all_done; i++) {
        buckets_rig_open(&made_rig, 1);
        made_rig.params.cap_bytes = cap_bytes;
        weir_test_fail_allocation(i);
        const weir_status status =
            weir_buckets_create_all(&made_rig.params, made_rig.comm.comms, 1, made_rig.buckets);
        all_done = !weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        EXPECT_INT_EQ(made_rig.buckets[0] != NULL, status == WEIR_OK);
        EXPECT_TRUE(status == WEIR_OK || is_told(status));
        EXPECT_INT_EQ(weir_comm_error(made_rig.comm.comms[0]) < 0, status != WEIR_OK);
        buckets_rig_close(&made_rig);
    }
    EXPECT_TRUE(all_done);
}

WEIR_TEST(BucketsMemory, Create)
{
    create_with(4096);
}

WEIR_TEST(BucketsMemory, CreateWithAMeasuredCap)
{
    create_with(WEIR_BUCKETS_AUTO);
}
