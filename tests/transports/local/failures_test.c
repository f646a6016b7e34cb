// What goes wrong between ranks, and what each is told. How those go on that are left is in tests/comm/shrink_test.c and,
// where some have died, in processes_test.c.

#include "base/clock.h"
#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

#define SHORT (RANKS_SECOND / 5)

static sem_t go; // what some ranks of a run post, and others wait for

static void run_ranks(uint32_t count, weir_status (*body)(struct rank *rank), void *user,
                      struct rank *ranks)
{
    sem_init(&go, 0, 0);
    ranks_run("file", count, body, user, ranks);
    sem_destroy(&go);
}

static void await(int posts)
{
    while (posts-- > 0)
        ranks_await(&go);
}

// Two ranks, each of which has a call.
static void run_two(weir_status (*body)(struct rank *rank), struct weir_transport_call first,
                    struct weir_transport_call second, struct rank *ranks)
{
    struct weir_transport_call calls[] = {first, second};
    run_ranks(2, body, calls, ranks);
}

static weir_status call_once(struct rank *rank)
{
    const struct weir_transport_call *calls = rank->user;
    return rank_call(rank, calls[rank->rank]);
}

// All ranks fail, and the sentence of each has the text.
static void expect_told(const struct rank *ranks, uint32_t count, const char *text)
{
    for (uint32_t i = 0; i < count; i++)
        EXPECT_RANK(ranks[i].status, WEIR_ERROR_COMM, ranks[i], text);
}

// All that have failed know the same. A rank may hear of it before it has joined, and has no group then.
static void expect_cause(const struct rank *ranks, uint32_t count, enum weir_transport_fault fault,
                         uint32_t rank)
{
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_TRUE(!ranks[i].failed || ranks[i].status < 0);
        EXPECT_TRUE(ranks[i].failed || ranks[i].status >= 0 || ranks[i].number == 0);
        if (!ranks[i].failed)
            continue;
        EXPECT_INT_EQ(ranks[i].cause.fault, fault);
        EXPECT_UINT_EQ(ranks[i].cause.rank, rank);
    }
}

static float memory[2][64];

static struct weir_transport_call sum_of(int rank, uint64_t count)
{
    struct weir_transport_call call =
        call_of(WEIR_ALL_REDUCE, WEIR_F32, count, memory[rank], memory[rank]);
    call.line = rank ? 99 : 120;
    return call;
}

// What rank 1 calls in place of sum_of(…, 64), and what the sentences have of that.
static const struct {
    weir_collective kind;
    uint64_t count;
    weir_datatype element;
    weir_reduction reduction;
    const char *texts[2];
} others[] = {
    {WEIR_BARRIER, 64, WEIR_F32, WEIR_SUM, {"all-reduce 1", "barrier 1"}},
    {WEIR_ALL_REDUCE, 32, WEIR_F32, WEIR_SUM, {"64", "32"}},
    {WEIR_ALL_REDUCE, 64, WEIR_I32, WEIR_SUM, {"f32", "i32"}},
    {WEIR_ALL_REDUCE, 64, WEIR_F32, WEIR_AVERAGE, {"the reduction ", "average"}},
    {WEIR_BROADCAST, 64, WEIR_F32, WEIR_SUM, {"all-reduce 1", "broadcast 1"}},
    {WEIR_ALL_REDUCE, 0, WEIR_F32, WEIR_SUM, {"64", "0 f32"}},
};

enum {
    OTHERS = sizeof others / sizeof *others
};

static struct weir_transport_call other_of(uint32_t way)
{
    struct weir_transport_call other = sum_of(1, others[way].count);
    other.kind = others[way].kind;
    other.element = others[way].element;
    other.reduction = others[way].reduction;
    return other;
}

// Either of two may be wrong, so neither is blamed.
static void expect_mismatch(struct weir_transport_call first, struct weir_transport_call second,
                            const char *const *texts)
{
    struct rank ranks[RANKS_MAX];
    run_two(call_once, first, second, ranks);
    expect_told(ranks, 2, "app.c:120");
    expect_told(ranks, 2, "app.c:99");
    expect_told(ranks, 2, texts[0]);
    expect_told(ranks, 2, texts[1]);
    expect_cause(ranks, 2, WEIR_FAULT_DIFFERS, UINT32_MAX);
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

WEIR_TEST(Failures, TwoThatDiffer)
{
    static const char *const roots[] = {"reduce 1", "root"};
    struct weir_transport_call first = sum_of(0, 64);
    struct weir_transport_call other = sum_of(1, 64);
    for (uint32_t way = 0; way < OTHERS; way++)
        expect_mismatch(sum_of(0, 64), other_of(way), others[way].texts);
    first.kind = other.kind = WEIR_REDUCE;
    other.root = 1;
    expect_mismatch(first, other, roots);
}

// One rank of `count` calls something else.
struct odd {
    uint32_t rank;
    uint32_t way;
};

static weir_status call_oddly(struct rank *rank)
{
    const struct odd *odd = rank->user;
    return rank_call(rank, rank->rank == odd->rank ? other_of(odd->way) : sum_of(0, 64));
}

// Whichever rank finds it, all are told of the one that differs from the others.
static void expect_the_odd_one(uint32_t count, uint32_t rank, uint32_t way)
{
    struct odd odd = {.rank = rank, .way = way};
    struct rank ranks[RANKS_MAX];
    char text[96];
    ranks_run("file", count, call_oddly, &odd, ranks);
    snprintf(text, sizeof text, "all-reduce 1 of 'grads', app.c:120: rank %u has called ",
             (unsigned)rank);
    expect_told(ranks, count, text);
    expect_told(ranks, count, "app.c:99");
    expect_cause(ranks, count, WEIR_FAULT_DIFFERS, rank);
}

WEIR_TEST(Failures, TheOneOfSeveralThatDiffers)
{
    for (uint32_t n = 0; n < 12; n++)
        expect_the_odd_one(3, n % 3, n / 3);
    for (uint32_t n = 0; n < 5; n++)
        expect_the_odd_one(5, n, n % 4);
}

// Two differ, and the third one comes when both have been told.
static weir_status call_oddly_or_late(struct rank *rank)
{
    const uint32_t late = *(const uint32_t *)rank->user;
    const uint32_t odd = late == 2 ? 1 : 2;
    await(rank->rank == late ? 2 : 0);
    const weir_status status = rank_call(rank, rank->rank == odd ? other_of(0) : sum_of(0, 64));
    sem_post(&go);
    return status;
}

static void run_with_late(uint32_t late, struct rank *ranks)
{
    run_ranks(3, call_oddly_or_late, &late, ranks);
    expect_told(ranks, 3, "");
}

// It may see for itself then, and so tell more. Where it stands between them, no rank has what most have called.
WEIR_TEST(Failures, TwoDifferAndTheThirdIsLate)
{
    struct rank ranks[RANKS_MAX];
    run_with_late(2, ranks);
    expect_told(ranks, 2, "rank 1 has called barrier 1 (app.c:99), and rank 0");
    expect_cause(ranks, 2, WEIR_FAULT_DIFFERS, UINT32_MAX);
    run_with_late(1, ranks);
    EXPECT_CONTAINS(ranks[0].error.message, "rank 2 has called barrier 1");
}

static struct weir_transport_call message_of(weir_collective kind, int rank, uint64_t count)
{
    struct weir_transport_call call = sum_of(rank, count);
    call.kind = kind;
    call.root = 1 - (uint32_t)rank;
    return call;
}

// Rank `rank` at least is told of it.
static void expect_bad_message(struct weir_transport_call first, struct weir_transport_call second,
                               int rank, const char *text)
{
    struct rank ranks[RANKS_MAX];
    run_two(call_once, first, second, ranks);
    expect_told(&ranks[rank], 1, text);
}

WEIR_TEST(Failures, MessagesThatDiffer)
{
    struct weir_transport_call other = message_of(WEIR_SEND, 1, 3);
    other.element = WEIR_U32;
    for (int rank = 0; rank < 2; rank++)
        expect_bad_message(message_of(WEIR_RECV, 0, 1), sum_of(1, 1), rank,
                           "recv of 'grads', app.c:120: rank 1 has called all-reduce 1 (app.c:99)");
    expect_bad_message(message_of(WEIR_SEND, 0, 1), sum_of(1, 1), 1, "all-reduce 1");
    expect_bad_message(message_of(WEIR_RECV, 0, 3), message_of(WEIR_SEND, 1, 4), 0,
                       "rank 1 has called send (app.c:99) with 4 f32, and rank 0 with 3 f32");
    expect_bad_message(message_of(WEIR_RECV, 0, 3), other, 0, "with 3 u32, and rank 0 with 3 f32");
}

// Rank 1 sends before the barrier what rank 0 receives after it, which may come into rank 0's memory or not.
static weir_status pass_a_barrier(struct rank *rank)
{
    const struct weir_transport_call barrier = {.kind = WEIR_BARRIER};
    const struct weir_transport_call message =
        message_of(rank->rank == 0 ? WEIR_RECV : WEIR_SEND, (int)rank->rank, 1);
    const weir_status status = rank_call(rank, rank->rank == 0 ? barrier : message);
    return status ? status : rank_call(rank, rank->rank == 0 ? message : barrier);
}

WEIR_TEST(Failures, AMessageAcrossACollective)
{
    struct rank ranks[RANKS_MAX];
    for (int turn = 0; turn < 20; turn++) {
        ranks_run("file", 2, pass_a_barrier, NULL, ranks);
        EXPECT_RANK(ranks[0].status, WEIR_ERROR_COMM, ranks[0], "rank 1 has called send");
    }
}

// Rank 0 waits for rank 1 until its time is out; then rank 1 comes, and gets the first cause.
static weir_status come_late(struct rank *rank)
{
    const struct weir_transport_call *calls = rank->user;
    for (int i = 0; i < 3; i++) {
        const weir_status status = rank_barrier(rank);
        if (status)
            return status;
    }
    await(rank->rank == 1 ? 1 : 0);
    const weir_status status = rank_call(rank, calls[rank->rank]);
    sem_post(&go);
    return status;
}

static void expect_late(struct weir_transport_call call, struct rank *ranks, const char *text)
{
    call.timeout_ns = SHORT;
    run_two(come_late, call, sum_of(1, 1), ranks);
    expect_told(ranks, 2, text);
    expect_told(ranks, 2, "rank 1 has submitted nothing after barrier 3 (app.c:103) in 200 ms");
}

WEIR_TEST(Failures, ARankIsLate)
{
    struct rank ranks[RANKS_MAX];
    expect_late(sum_of(0, 1), ranks, "all-reduce 4 of 'grads', app.c:120: ");
    expect_cause(ranks, 2, WEIR_FAULT_SILENT, 1);
    expect_late(message_of(WEIR_RECV, 0, 1), ranks, "recv of 'grads', app.c:120: ");
}

// Rank 0 waits for rank 1, which waits for rank 2, which comes when the time of one of them is out.
static weir_status come_late_to_a_row(struct rank *rank)
{
    const weir_status status = rank_barrier(rank);
    struct weir_transport_call call = message_of(WEIR_RECV, 0, 1);
    if (status)
        return status;
    await(rank->rank == 2 ? 2 : 0);
    if (rank->rank == 2)
        return rank_barrier(rank);
    call.root = rank->rank + 1;
    call.dst = memory[rank->rank];
    if (rank->rank == *(const uint32_t *)rank->user) // its time is out first
        call.timeout_ns = RANKS_SECOND;
    const weir_status failure = rank_call(rank, call);
    sem_post(&go);
    return failure;
}

WEIR_TEST(Failures, ARankWaitsForOneThatIsLate)
{
    for (uint32_t first = 0; first < 2; first++) {
        struct rank ranks[RANKS_MAX];
        run_ranks(3, come_late_to_a_row, &first, ranks);
        expect_told(ranks, 3,
                    "recv of 'grads', app.c:120: rank 2 has submitted nothing after barrier 1 "
                    "(app.c:101) in 1.00 s");
        expect_cause(ranks, 3, WEIR_FAULT_SILENT, 2);
    }
}

// Each rank of three waits for the next one; one of four may wait for them.
static weir_status wait_in_a_circle(struct rank *rank)
{
    struct weir_transport_call call = message_of(WEIR_RECV, 0, 1);
    call.root = rank->rank == 3 ? 0 : (rank->rank + 1) % 3;
    call.dst = memory[rank->rank % 2];
    call.line = 120 + (int)rank->rank;
    call.timeout_ns = rank->rank == *(const uint32_t *)rank->user ? RANKS_SECOND : RANKS_PATIENCE;
    return rank_call(rank, call);
}

static void expect_a_circle(uint32_t count, uint32_t first)
{
    struct rank ranks[RANKS_MAX];
    ranks_run("file", count, wait_in_a_circle, &first, ranks);
    expect_told(ranks, count, "rank 0 waits in recv (app.c:120) for rank 1");
    expect_told(ranks, count, "rank 1 waits in recv (app.c:121) for rank 2");
    expect_told(ranks, count, "rank 2 waits in recv (app.c:122) for rank 0");
    expect_cause(ranks, count, WEIR_FAULT_SILENT, UINT32_MAX);
}

WEIR_TEST(Failures, ACircle)
{
    expect_a_circle(3, 2);
    expect_a_circle(4, 3);
}

// Two groups of the same ranks, which one of them uses in another order.
struct crossing {
    sem_t done[2];
    struct weir_error error[2];
    weir_status status[2];
};

static weir_status cross(struct rank *rank)
{
    struct crossing *crossing = rank->user;
    const uint32_t index = rank->rank;
    void *part = NULL;
    const weir_status status = rank_split(rank, (struct weir_transport_split){.key = 0}, &part);
    struct rank other = {.group = part, .rank = index, .count = 2};
    struct weir_transport_call call = sum_of((int)index, 1);
    if (status)
        return status;
    call.timeout_ns = RANKS_SECOND;
    crossing->status[index] = rank_call(index == 0 ? rank : &other, call);
    crossing->error[index] = index == 0 ? rank->error : other.error;
    sem_post(&crossing->done[index]);
    ranks_await(&crossing->done[1 - index]);
    rank_leave(&other);
    return WEIR_OK;
}

WEIR_TEST(Failures, TwoGroupsInAnotherOrder)
{
    struct crossing crossing;
    struct rank ranks[RANKS_MAX];
    for (int i = 0; i < 2; i++)
        sem_init(&crossing.done[i], 0, 0);
    ranks_run("file", 2, cross, &crossing, ranks);
    for (int i = 0; i < 2; i++) {
        sem_destroy(&crossing.done[i]);
        EXPECT_INT_EQ(crossing.status[i], WEIR_ERROR_COMM);
    }
    EXPECT_CONTAINS(crossing.error[0].message,
                    "it waits in all-reduce 1 (app.c:99) of 'part' for its rank 0");
    EXPECT_CONTAINS(crossing.error[1].message,
                    "it waits in all-reduce 2 (app.c:120) of 'grads' for its rank 1");
}

// Rank 1 leaves without a call, or after a barrier.
static weir_status leave(struct rank *rank)
{
    const struct weir_transport_call *calls = rank->user;
    const bool meets = calls[1].kind == WEIR_BARRIER;
    const weir_status status = meets ? rank_call(rank, calls[1]) : WEIR_OK;
    return status || rank->rank == 1 ? status : rank_call(rank, calls[0]);
}

static void expect_left(struct weir_transport_call call, struct weir_transport_call before,
                        uint64_t number, const char *text)
{
    struct rank ranks[RANKS_MAX];
    run_two(leave, call, before, ranks);
    EXPECT_INT_EQ(ranks[1].status, WEIR_OK);
    expect_told(ranks, 1, text);
    expect_cause(ranks, 2, WEIR_FAULT_LEFT, 1);
}

WEIR_TEST(Failures, ARankHasLeft)
{
    const struct weir_transport_call barrier = {.kind = WEIR_BARRIER, .line = 7};
    expect_left(sum_of(0, 1), sum_of(1, 1), 1,
                "all-reduce 1 of 'grads', app.c:120: rank 1 has destroyed the communicator "
                "before its first collective");
    expect_left(sum_of(0, 1), barrier, 2,
                "rank 1 has destroyed the communicator after barrier 1 (app.c:7)");
    expect_left(message_of(WEIR_RECV, 0, 1), sum_of(1, 1), 0,
                "rank 1 has destroyed the communicator");
}

// A thread of rank 0's own aborts a call that waits for ever for rank 2; rank 1, which has come too, hears of it, as does
// rank 2, which comes later, and each later call.
static void *abort_from_outside(void *argument)
{
    struct rank *rank = argument;
    weir_clock_sleep_ns(SHORT / 4); // all wait
    ranks_ops()->abort(rank->group, "the loss is no number");
    ranks_ops()->abort(rank->group, "a second time");
    return NULL;
}

static weir_status abort_while_waiting(struct rank *rank)
{
    struct weir_transport_call call = sum_of(0, 1);
    pthread_t thread = pthread_self();
    call.dst = memory[rank->rank % 2];
    call.timeout_ns = UINT64_MAX;
    await(rank->rank == 2 ? 2 : 0);
    if (rank->rank == 0)
        pthread_create(&thread, NULL, abort_from_outside, rank);
    const weir_status status = rank_call(rank, call);
    if (rank->rank == 0)
        pthread_join(thread, NULL);
    sem_post(&go);
    return rank_call(rank, call) == status ? status : WEIR_OK;
}

WEIR_TEST(Failures, ARankAborts)
{
    struct rank ranks[RANKS_MAX];
    run_ranks(3, abort_while_waiting, NULL, ranks);
    expect_told(ranks, 3, "rank 0 has aborted 'grads': the loss is no number");
    expect_cause(ranks, 3, WEIR_FAULT_ABORTED, 0);
}

static weir_status split_without_memory(struct rank *rank)
{
    void *part = NULL;
    test_host_state()->left = rank->rank == 0 ? 0 : -1;
    const weir_status status = rank_split(rank, (struct weir_transport_split){.key = 0}, &part);
    test_host_state()->left = -1;
    return rank_barrier(rank) == WEIR_OK ? WEIR_OK : status;
}

WEIR_TEST(Failures, NoMemoryForASplit)
{
    struct rank ranks[RANKS_MAX];
    run_two(split_without_memory, sum_of(0, 1), sum_of(1, 1), ranks);
    EXPECT_INT_EQ(ranks[0].status, WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_INT_EQ(ranks[1].status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(ranks[1].error.message,
                    "split 1 of 'grads', app.c:101: rank 0 has no host memory");
}
