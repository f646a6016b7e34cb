// A forked child of a rank: each call on its communicator is refused at once, with the call's name, and
// the rank itself goes on.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/comm/rig.h"

enum {
    N = 8
};

// 0 if the call was refused as it has to be, else 1.
static int check(weir_status status, const char *call)
{
    const char *message = weir_last_error()->message;
    const bool refused = status == WEIR_ERROR_FORKED && strstr(message, call) &&
                         strstr(message, "this process was forked after Weir was used");
    if (!refused)
        fprintf(stderr, "%s in a forked child: %d, %s\n", call, (int)status, message);
    return !refused;
}

static int try_creation(struct comm_rig *rig)
{
    weir_comm *comms[2] = {NULL, NULL};
    int wrong = check(weir_comm_create(rig->device, NULL, &comms[0]), "weir_comm_create");
    wrong += check(weir_comm_create_all(rig->devices, 2, NULL, comms), "weir_comm_create_all");
    wrong += check(weir_comm_split(rig->comms[0], 0, 0, "part", &comms[0]), "weir_comm_split");
    wrong += check(weir_comm_duplicate(rig->comms[0], "copy", &comms[0]), "weir_comm_split");
    wrong += check(weir_comm_shrink(rig->comms[0], "left", &comms[0]), "weir_comm_shrink");
    return wrong + (comms[0] != NULL) + (comms[1] != NULL);
}

static int try_collectives(struct comm_rig *rig)
{
    int wrong = 0;
    const struct weir_exchange exchange = {rig->src[0], 0, N, WEIR_I32, 1, false};
    for (weir_collective kind = WEIR_ALL_REDUCE; kind <= WEIR_BARRIER; kind++) {
        const struct weir_collective_params params = {
            .struct_size = sizeof params,
            .kind = kind,
            .element = WEIR_I32,
            .reduction = WEIR_SUM,
            .root = 1,
            .dst = rig->dst[0],
            .src = rig->src[0],
            .count = N,
            .exchanges = &exchange,
            .exchange_count = 1,
        };
        wrong += check(weir_queue_collective(rig->queues[0], rig->comms[0], &params),
                       "weir_queue_collective");
    }
    return wrong;
}

static int try_everything(struct comm_rig *rig)
{
    weir_comm *comm = rig->comms[0];
    int wrong = try_creation(rig) + try_collectives(rig);
    wrong += check(weir_comm_error(comm), "weir_comm_error");
    wrong += check(weir_comm_abort(comm, "a child"), "weir_comm_abort");
    wrong += weir_comm_rank(comm) != 0 || weir_comm_count(comm) != 2;
    for (int i = 0; i < 2; i++)
        weir_comm_destroy(&rig->comms[i]); // in the child nothing
    return wrong;
}

static void expect_refusals(struct comm_rig *rig)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(try_everything(rig));
    ASSERT_INT_GT(child, 0);
    ASSERT_INT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_INT_EQ(WEXITSTATUS(status), 0);
}

COMM_RIG_TEST(CommForked, EveryCallInTheChildIsAnError, 2)
{
    const int32_t ones[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t twos[N] = {2, 2, 2, 2, 2, 2, 2, 2};
    comm_rig_write_all(rig, rig->src, 0, ones, N);
    expect_refusals(rig);
    // Also with one under way, which waits for the other rank.
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, N));
    expect_refusals(rig);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 1, N));
    comm_rig_expect_all(rig, rig->dst, 0, twos, N);
}
