// Gradient buckets on real chains, with the ranks of one process: what is reduced, in which order, and
// what the plan and the statistics say.
#include <time.h>

#include "tests/patterns/buckets_rig.h"

static struct buckets_rig rig;

static void finish_all(void)
{
    for (uint32_t rank = 0; rank < rig.comm.count; rank++)
        EXPECT_OK(weir_buckets_finish(rig.buckets[rank], rig.comm.queues[rank]));
}

static void begin_all(bool reduce)
{
    for (uint32_t rank = 0; rank < rig.comm.count; rank++)
        EXPECT_OK(weir_buckets_begin(rig.buckets[rank], reduce));
}

static struct weir_buckets_statistics statistics_of(uint32_t rank)
{
    struct weir_buckets_statistics statistics;
    weir_buckets_get_statistics(rig.buckets[rank], &statistics);
    return statistics;
}

// --- the plan ---

BUCKETS_TEST(Buckets, ViewsAreAlignedAndFollowEachOther, 1)
{
    size_t end = 0;
    buckets_rig_create(&rig);
    const size_t alignment = weir_device_limits(rig.comm.device)->argument_alignment_bytes;
    for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++) {
        struct weir_bucket_view view;
        ASSERT_OK(weir_buckets_get_view(rig.buckets[0], i, &view));
        EXPECT_UINT_EQ(view.offset % alignment, 0);
        EXPECT_UINT_EQ(view.size, rig.parameters[i].count * sizeof(float));
        EXPECT_TRUE(view.offset >= end && view.offset - end < alignment);
        end = view.offset + view.size;
    }
}

// 2 KiB of gradients, then 4 KiB; one of 4,400 bytes is a bucket of its own.
BUCKETS_TEST(Buckets, AreCutAtTheirCaps, 1)
{
    static const struct {
        uint32_t first, count;
    } expected[] = {{0, 3}, {3, 2}, {5, 1}};
    struct weir_buckets_plan plan;
    struct weir_bucket bucket;
    rig.params.first_bytes = 2048;
    buckets_rig_create(&rig);
    weir_buckets_get_plan(rig.buckets[0], &plan);
    ASSERT_UINT_EQ(plan.bucket_count, 3);
    EXPECT_UINT_EQ(plan.cap_bytes, 4096);
    EXPECT_UINT_EQ(plan.first_bytes, 2048);
    for (uint32_t i = 0; i < plan.bucket_count; i++) {
        struct weir_bucket_view first, last;
        ASSERT_OK(weir_buckets_get_bucket(rig.buckets[0], i, &bucket));
        EXPECT_UINT_EQ(bucket.index, i);
        EXPECT_UINT_EQ(bucket.first, expected[i].first);
        ASSERT_UINT_EQ(bucket.count, expected[i].count);
        ASSERT_OK(weir_buckets_get_view(rig.buckets[0], bucket.first, &first));
        ASSERT_OK(weir_buckets_get_view(rig.buckets[0], bucket.first + bucket.count - 1, &last));
        EXPECT_UINT_EQ(bucket.offset, first.offset);
        EXPECT_UINT_EQ(bucket.offset + bucket.size, last.offset + last.size);
    }
}

BUCKETS_TEST(Buckets, AreOfOneAndThenOf25MebibytesByDefault, 1)
{
    struct weir_buckets_plan plan;
    rig.params.cap_bytes = rig.params.first_bytes = 0;
    buckets_rig_create(&rig);
    weir_buckets_get_plan(rig.buckets[0], &plan);
    EXPECT_UINT_EQ(plan.bucket_count, 1);
    EXPECT_UINT_EQ(plan.first_bytes, 1 << 20);
    EXPECT_UINT_EQ(plan.cap_bytes, 25 << 20);
    EXPECT_TRUE(plan.latency_ns == 0 && plan.bytes_per_ns == 0);
}

static uint32_t automatic(uint64_t backward_ns, struct weir_buckets_plan *out_plan)
{
    struct weir_buckets_plan other;
    buckets_rig_open(&rig, 2);
    rig.params.cap_bytes = WEIR_BUCKETS_AUTO;
    rig.params.first_bytes = 0;
    rig.params.backward_ns = backward_ns;
    buckets_rig_create(&rig);
    weir_buckets_get_plan(rig.buckets[0], out_plan);
    weir_buckets_get_plan(rig.buckets[1], &other);
    EXPECT_UINT_EQ(other.bucket_count, out_plan->bucket_count);
    EXPECT_UINT_EQ(other.cap_bytes, out_plan->cap_bytes);
    EXPECT_TRUE(other.latency_ns == out_plan->latency_ns &&
                other.bytes_per_ns == out_plan->bytes_per_ns);
    buckets_rig_step(&rig, 1);
    buckets_rig_expect_all(&rig, 1);
    buckets_rig_close(&rig);
    return out_plan->bucket_count;
}

// Whatever is measured, all ranks have one plan of it; and where almost nothing is to be hidden, one bucket.
WEIR_TEST(Buckets, MeasureTheirCap)
{
    struct weir_buckets_plan plan;
    const uint32_t count = automatic(0, &plan);
    EXPECT_TRUE(count >= 1 && count <= BUCKETS_RIG_PARAMETERS);
    EXPECT_TRUE(plan.latency_ns > 0);
    EXPECT_TRUE(plan.cap_bytes <= plan.bytes && plan.first_bytes == plan.cap_bytes);
    EXPECT_UINT_EQ(automatic(1, &plan), 1);
    EXPECT_UINT_EQ(plan.cap_bytes, plan.bytes);
}

// --- steps ---

WEIR_TEST(Buckets, AverageOverTheRanks)
{
    for (uint32_t ranks = 1; ranks <= 4; ranks *= 2) {
        buckets_rig_open(&rig, ranks);
        buckets_rig_create(&rig);
        for (int step = 1; step <= 3; step++) {
            buckets_rig_step(&rig, (float)step);
            buckets_rig_expect_all(&rig, (float)step);
        }
        EXPECT_UINT_EQ(statistics_of(ranks - 1).steps, 3);
        EXPECT_UINT_EQ(statistics_of(ranks - 1).reductions, 3u * 3);
        EXPECT_UINT_EQ(statistics_of(0).timed_steps, 0);
        buckets_rig_close(&rig);
    }
}

BUCKETS_TEST(Buckets, SumIntegersToo, 2)
{
    int32_t numbers[10], found[10];
    struct weir_bucket_view view;
    rig.params.element = WEIR_I32;
    rig.params.reduction = WEIR_SUM;
    rig.params.parameter_count = 1;
    buckets_rig_create(&rig);
    for (uint32_t rank = 0; rank < 2; rank++) {
        for (int i = 0; i < 10; i++)
            numbers[i] = (int)(rank + 1) * i;
        ASSERT_OK(weir_buckets_get_view(rig.buckets[rank], 0, &view));
        EXPECT_OK(weir_upload(rig.comm.queues[rank], view.buffer, view.offset, numbers, 40));
        EXPECT_OK(weir_buckets_begin(rig.buckets[rank], true));
        EXPECT_OK(weir_buckets_ready(rig.buckets[rank], 0, rig.comm.queues[rank]));
        EXPECT_OK(weir_buckets_finish(rig.buckets[rank], rig.comm.queues[rank]));
    }
    EXPECT_OK(weir_download(rig.comm.queues[1], found, view.buffer, view.offset, 40));
    for (int i = 0; i < 10; i++)
        EXPECT_INT_EQ(found[i], 3 * i);
}

// Each rank marks in an order of its own: the reductions still meet.
BUCKETS_TEST(Buckets, AreSubmittedInOneOrder, 4)
{
    static const uint32_t orders[4][BUCKETS_RIG_PARAMETERS] = {{0, 1, 2, 3, 4, 5},
                                                               {5, 4, 3, 2, 1, 0},
                                                               {3, 0, 5, 1, 4, 2},
                                                               {2, 5, 0, 4, 1, 3}};
    buckets_rig_create(&rig);
    begin_all(true);
    for (uint32_t rank = 0; rank < 4; rank++)
        for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
            buckets_rig_mark(&rig, rank, orders[rank][i], 1);
    finish_all();
    buckets_rig_expect_all(&rig, 1);
}

// A bucket is submitted with the last mark that it, or one before it, has waited for.
BUCKETS_TEST(Buckets, AreSubmittedAsSoonAsTheyAreComplete, 1)
{
    static const uint64_t submitted[BUCKETS_RIG_PARAMETERS] = {0, 1, 1, 1, 2, 3};
    buckets_rig_create(&rig);
    begin_all(true);
    for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++) {
        buckets_rig_mark(&rig, 0, i, 1);
        EXPECT_UINT_EQ(statistics_of(0).reductions, submitted[i]);
    }
    finish_all();
}

// The gradients of one bucket come from two queues, one of which is held when it marks.
BUCKETS_TEST(Buckets, WaitForEveryQueueThatMarks, 2)
{
    struct gate gate = {0};
    own_queue other = test_queue(rig.comm.device, NULL);
    float numbers[2] = {3, 4};
    struct weir_bucket_view view;
    rig.params.cap_bytes = rig.params.first_bytes = 1 << 20;
    buckets_rig_create(&rig);
    begin_all(true);
    ASSERT_OK(weir_buckets_get_view(rig.buckets[0], 0, &view));
    EXPECT_OK(weir_queue_host_call(other, gate_pass, &gate));
    EXPECT_OK(weir_queue_fill(other, view.buffer, view.offset, view.size, numbers, 4));
    EXPECT_OK(weir_buckets_ready(rig.buckets[0], 0, other));
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t i = rank == 0 ? 1 : 0; i < BUCKETS_RIG_PARAMETERS; i++)
            buckets_rig_mark(&rig, rank, i, 1);
    finish_all();
    gate_open(&gate);
    for (uint32_t rank = 0; rank < 2; rank++) {
        ASSERT_OK(weir_buckets_get_view(rig.buckets[rank], 0, &view));
        EXPECT_OK(weir_download(rig.comm.queues[rank], numbers, view.buffer, view.offset, 8));
        EXPECT_TRUE(numbers[0] == (3 + buckets_rig_number(1, 0, 0)) / 2);
        EXPECT_TRUE(numbers[1] == (3 + buckets_rig_number(1, 0, 1)) / 2);
        for (uint32_t i = 1; i < BUCKETS_RIG_PARAMETERS; i++)
            buckets_rig_expect(&rig, rank, i, 1);
    }
}

// --- optional parameters ---

static void expect_zeros(uint32_t rank, uint32_t parameter)
{
    float found[BUCKETS_RIG_MOST];
    struct weir_bucket_view view;
    ASSERT_OK(weir_buckets_get_view(rig.buckets[rank], parameter, &view));
    EXPECT_OK(weir_download(rig.comm.queues[rank], found, view.buffer, view.offset, view.size));
    for (size_t i = 0; i < view.size / sizeof *found; i++)
        EXPECT_TRUE(found[i] == 0);
}

// Of the first number of parameter 2, which rank 1 alone has computed.
static void expect_half(uint32_t rank)
{
    float found;
    struct weir_bucket_view view;
    ASSERT_OK(weir_buckets_get_view(rig.buckets[rank], 2, &view));
    EXPECT_OK(weir_download(rig.comm.queues[rank], &found, view.buffer, view.offset, sizeof found));
    EXPECT_TRUE(found == 2 * buckets_rig_number(1, 2, 0) / 2);
}

// After a step in which it was computed an optional parameter is skipped, or not marked at all, or by one rank.
WEIR_TEST(Buckets, FillWhatIsLeftOutWithZeros)
{
    for (uint32_t way = 0; way < 3; way++) {
        buckets_rig_open(&rig, 2);
        buckets_rig_create(&rig);
        buckets_rig_step(&rig, 1);
        begin_all(true);
        for (uint32_t rank = 0; rank < 2; rank++)
            for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++) {
                if (i != 2 || (way == 2 && rank == 1))
                    buckets_rig_mark(&rig, rank, i, 2);
                else if (way == 0)
                    EXPECT_OK(weir_buckets_skip(rig.buckets[rank], i, rig.comm.queues[rank]));
            }
        EXPECT_UINT_EQ(statistics_of(0).reductions, way == 0 ? 6 : 4);
        finish_all();
        for (uint32_t rank = 0; rank < 2; rank++) {
            if (way < 2)
                expect_zeros(rank, 2);
            else
                expect_half(rank);
            buckets_rig_expect(&rig, rank, 1, 2);
            buckets_rig_expect(&rig, rank, 5, 2);
        }
        EXPECT_UINT_EQ(statistics_of(0).skipped, 1);
        buckets_rig_close(&rig);
    }
}

// --- accumulation ---

// Three passes, of which only the last reduces. The optional parameter is written by the second and
// skipped by the others, so that it keeps what the second wrote.
BUCKETS_TEST(Buckets, ReduceWithTheLastPassOfAStep, 2)
{
    buckets_rig_create(&rig);
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t pass = 0; pass < 3; pass++) {
            begin_all(pass == 2);
            for (uint32_t rank = 0; rank < 2; rank++) {
                EXPECT_UINT_EQ(weir_buckets_pass(rig.buckets[rank]), pass);
                for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
                    if (i != 2 || pass == 1)
                        buckets_rig_mark(&rig, rank, i, (float)(pass + 1));
            }
            finish_all();
            EXPECT_UINT_EQ(statistics_of(0).reductions, 3 * (step + (pass == 2)));
            if (pass == 0)
                expect_zeros(0, 2);
        }
        for (uint32_t rank = 0; rank < 2; rank++)
            for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
                buckets_rig_expect(&rig, rank, i, i == 2 ? 2 : 3);
    }
    EXPECT_UINT_EQ(statistics_of(0).passes, 6);
    EXPECT_UINT_EQ(statistics_of(0).steps, 2);
    EXPECT_UINT_EQ(statistics_of(0).skipped, 4);
}

// --- times ---

static void sync_all(void)
{
    for (uint32_t rank = 0; rank < rig.comm.count; rank++)
        EXPECT_OK(weir_queue_sync(rig.comm.queues[rank], WEIR_FOREVER));
}

// The queue of finish() may come to its end before the times can be read.
static struct weir_buckets_statistics timed(uint32_t rank, uint64_t steps)
{
    struct weir_buckets_statistics statistics = statistics_of(rank);
    for (int i = 0; i < 20000 && statistics.timed_steps < steps; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        statistics = statistics_of(rank);
    }
    return statistics;
}

// A step is counted as timed once, also if its times are read only when later steps begin. Of the
// last steps all times are kept.
BUCKETS_TEST(Buckets, TimeTheirReductions, 2)
{
    struct weir_buckets_statistics statistics;
    rig.params.timing = true;
    buckets_rig_create(&rig);
    for (uint64_t step = 1; step <= 6; step++) {
        buckets_rig_step(&rig, 1);
        sync_all();
        EXPECT_UINT_EQ(timed(0, step).timed_steps, step);
        EXPECT_UINT_EQ(timed(1, step).timed_steps, step);
    }
    for (int step = 0; step < 8; step++) {
        buckets_rig_step(&rig, 1);
        sync_all();
    }
    statistics = timed(0, 10);
    EXPECT_TRUE(statistics.timed_steps >= 10 && statistics.timed_steps <= 14);
    EXPECT_TRUE(statistics.hidden_ns + statistics.exposed_ns > 0);
}

// A step in which the gate holds the queue of one rank: before its last mark, or before it finishes.
static void step_with_gate(struct gate *gate, uint32_t held, bool last_mark)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        EXPECT_OK(weir_buckets_begin(rig.buckets[rank], true));
        for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++) {
            if (rank == held && last_mark && i == 5)
                EXPECT_OK(weir_queue_host_call(rig.comm.queues[rank], gate_pass, gate));
            EXPECT_OK(weir_buckets_ready(rig.buckets[rank], i, rig.comm.queues[rank]));
        }
        if (rank == held && !last_mark)
            EXPECT_OK(weir_queue_host_call(rig.comm.queues[rank], gate_pass, gate));
        EXPECT_OK(weir_buckets_finish(rig.buckets[rank], rig.comm.queues[rank]));
    }
}

// Rank 0 still computes when all is reduced.
BUCKETS_TEST(Buckets, HideCommunicationBesideWork, 2)
{
    struct gate gate = {0};
    own_queue other = test_queue(rig.comm.device, NULL);
    rig.params.timing = true;
    buckets_rig_create(&rig);
    step_with_gate(&gate, 0, false);
    EXPECT_OK(weir_buckets_wait(rig.buckets[0], 2, other));
    EXPECT_OK(weir_queue_sync(other, WEIR_FOREVER));
    gate_open(&gate);
    sync_all();
    const struct weir_buckets_statistics statistics = timed(0, 1);
    EXPECT_UINT_EQ(statistics.timed_steps, 1);
    EXPECT_UINT_EQ(statistics.exposed_ns, 0);
    EXPECT_TRUE(statistics.hidden_ns > 0);
}

// Rank 1 comes late to the last bucket, and rank 0 has nothing to do meanwhile. On a machine that is
// busy the clock of rank 0 may come as late, so that nothing is exposed, but not time after time.
BUCKETS_TEST(Buckets, TellExposedCommunication, 2)
{
    uint64_t exposed_ns = 0;
    rig.params.timing = true;
    buckets_rig_create(&rig);
    for (int i = 0; i < 50 && exposed_ns == 0; i++) {
        struct gate gate = {0};
        step_with_gate(&gate, 1, true);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        gate_open(&gate);
        sync_all();
        exposed_ns = timed(0, (uint64_t)i + 1).exposed_ns;
    }
    EXPECT_TRUE(exposed_ns > 0);
}

// --- single buckets ---

// Another queue continues after the first bucket, while the second one waits for rank 1.
BUCKETS_TEST(Buckets, CanBeWaitedForOneByOne, 2)
{
    struct gate gate = {0};
    own_queue optimizer = test_queue(rig.comm.device, NULL);
    struct weir_event first;
    buckets_rig_create(&rig);
    begin_all(true);
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++) {
            if (rank == 1 && i == 3)
                EXPECT_OK(weir_queue_host_call(rig.comm.queues[1], gate_pass, &gate));
            EXPECT_OK(weir_buckets_ready(rig.buckets[rank], i, rig.comm.queues[rank]));
        }
    EXPECT_OK(weir_buckets_wait(rig.buckets[0], 0, optimizer));
    EXPECT_OK(weir_queue_record(optimizer, &first));
    EXPECT_OK(weir_event_sync(first, WEIR_FOREVER));
    EXPECT_OK(weir_buckets_wait(rig.buckets[0], 1, optimizer));
    EXPECT_OK(weir_queue_record(optimizer, &first));
    EXPECT_INT_EQ(weir_event_query(first), WEIR_NOT_READY);
    gate_open(&gate);
    EXPECT_OK(weir_event_sync(first, WEIR_FOREVER));
    finish_all();
}

BUCKETS_TEST(Buckets, CanBeDestroyedWhileTheyAreReduced, 2)
{
    struct gate gate = {0};
    buckets_rig_create(&rig);
    for (uint32_t rank = 0; rank < 2; rank++)
        EXPECT_OK(weir_queue_host_call(rig.comm.queues[rank], gate_pass, &gate));
    begin_all(true);
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
            EXPECT_OK(weir_buckets_ready(rig.buckets[rank], i, rig.comm.queues[rank]));
    finish_all();
    for (uint32_t rank = 0; rank < 2; rank++)
        weir_buckets_destroy(&rig.buckets[rank]);
    gate_open(&gate);
    sync_all();
}
