// A short run of the fuzzer, and what it has found.
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/strangers/drive.h"
#include "tests/support/test.h"
#include "tests/transports/host.h"
#include "transports/local/local.h"

WEIR_TEST(StrangersFuzz, NothingIsBelievedThatWasNotSaid)
{
    const struct drive_result result = drive(1, 0, 210, 15);
    if (result.broken)
        weir_test_fail(__FILE__, __LINE__, "round %llu (%s): %s",
                       (unsigned long long)result.broken_round, drive_name(result.broken_round),
                       result.broken);
    // Some of all kinds go well, or the others would say little.
    EXPECT_UINT_GT(result.rounds, DRIVE_FUZZERS);
    EXPECT_UINT_GT(result.believed[0], 0);
    EXPECT_UINT_LT(result.believed[0], result.hellos);
}

static bool connect_to(struct mesh_peer *peer, int hostile[2])
{
    int data[2];
    int control[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, data) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, control) != 0)
        return false;
    peer->address = local_address_at_number(1);
    peer->data = data[0];
    peer->control = control[0];
    hostile[0] = data[1];
    hostile[1] = control[1];
    return true;
}

// Rank 1 says that a list follows, and then nothing.
WEIR_TEST(StrangersFuzz, APeerThatStopsWithinItsListDoesNotKeepTheOthers)
{
    const struct weir_transport_shrink params = {.struct_size = sizeof params,
                                                 .label = "less",
                                                 .timeout_ns = UINT64_C(4000000000)};
    struct mesh_news news;
    int hostile[2];
    uint32_t rank = 9;
    uint32_t count = 9;
    void *less = NULL;
    memset(&news, 0, sizeof news);
    news.kind = MESH_SETTLED;
    news.number = 2;
    news.step = 1;
    struct local_group *group = local_mesh_create(&ranks_host, "grads", 0, 2);
    ASSERT_NOT_NULL(group);
    ASSERT_TRUE(connect_to(&group->peers[1], hostile));
    ASSERT_TRUE(send(hostile[1], &news, sizeof news, 0) == (ssize_t)sizeof news);
    ASSERT_INT_EQ(local_shrink(group, &params, &less), WEIR_OK);
    local_place(less, &rank, &count);
    EXPECT_UINT_EQ(rank, 0);
    EXPECT_UINT_EQ(count, 1);
    local_leave(less);
    local_leave(group);
    close(hostile[0]);
    close(hostile[1]);
}

// Rank 1 tells of a failure, and of no cause.
WEIR_TEST(StrangersFuzz, AFailureThatAPeerDoesNotExplainHasASentence)
{
    const struct weir_transport_call call = {.struct_size = sizeof call,
                                             .kind = WEIR_BARRIER,
                                             .number = 1,
                                             .timeout_ns = UINT64_C(60000000000)};
    struct mesh_news news;
    struct weir_cause cause = {.text = ""};
    int hostile[2];
    memset(&news, 0, sizeof news);
    news.kind = MESH_FAILED;
    struct local_group *group = local_mesh_create(&ranks_host, "grads", 0, 2);
    ASSERT_NOT_NULL(group);
    ASSERT_TRUE(connect_to(&group->peers[1], hostile));
    ASSERT_TRUE(send(hostile[1], &news, sizeof news, 0) == (ssize_t)sizeof news);
    EXPECT_INT_EQ(local_run_call(group, &call), WEIR_ERROR_COMM);
    EXPECT_TRUE(local_mesh_cause(group, &cause));
    EXPECT_CONTAINS(cause.text, "rank 1");
    local_leave(group);
    close(hostile[0]);
    close(hostile[1]);
}
