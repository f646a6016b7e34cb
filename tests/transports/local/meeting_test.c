// How processes meet, and in which cases they do not. The ranks are threads here.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"
#include "transports/local/socket.h"

#define SHORT (RANKS_SECOND / 20)

struct joiner {
    pthread_t thread;
    struct rank rank;
    struct weir_transport_setup setup;
    sem_t *failed;
};

static void *join(void *argument)
{
    struct joiner *joiner = argument;
    if (rank_join(&joiner->rank, &joiner->setup) && joiner->failed)
        sem_post(joiner->failed);
    return NULL;
}

static void start(struct joiner *joiner, uint32_t rank, struct weir_transport_setup setup)
{
    *joiner = (struct joiner){.rank = {.rank = rank}, .setup = setup, .failed = joiner->failed};
    pthread_create(&joiner->thread, NULL, join, joiner);
}

static struct rank join_alone(uint32_t number, const char *rendezvous, uint64_t timeout_ns)
{
    struct rank rank = {.rank = number};
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = "grads",
        .count = 3,
        .rendezvous = rendezvous,
        .timeout_ns = timeout_ns,
    };
    rank_join(&rank, &setup);
    return rank;
}

// A port that is this test's, on which nothing listens unless `listens`.
static int take_port(char *rendezvous, size_t size, bool listens)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof in;
    const int taken = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(taken, (struct sockaddr *)&in, sizeof in) || (listens && listen(taken, 4)) ||
        getsockname(taken, (struct sockaddr *)&in, &length))
        return -1;
    snprintf(rendezvous, size, "tcp://127.0.0.1:%u", ntohs(in.sin_port));
    return taken;
}

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static rlim_t limit_files(rlim_t count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = count;
    setrlimit(RLIMIT_NOFILE, &limit);
    return before;
}

// Two connections with each of so many ranks would not fit: told before any rank is waited for.
WEIR_TEST(Meeting, NeedsFilesForAllRanks)
{
    struct rank rank = {.rank = 0};
    struct weir_transport_setup setup = ranks_setup("file:");
    const rlim_t before = limit_files(200);
    setup.count = 102;
    EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_SYSTEM);
    EXPECT_CONTAINS(rank.error.message,
                    "102 ranks need 202 open files in each process, and the limit is 200");
    EXPECT_CONTAINS(rank.error.remedy, "ulimit -n");
    limit_files(before);
}

// The process has no descriptor left for a rank that comes: an error at once, and not a wait that
// spins until the time is over.
WEIR_TEST(Meeting, HasNoFileLeftForARank)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char rendezvous[64];
    unsigned port = 0;
    struct joiner joiner = {.failed = NULL};
    const int taken = take_port(rendezvous, sizeof rendezvous, false);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    close(taken);
    sscanf(rendezvous, "tcp://127.0.0.1:%u", &port); // NOLINT(cert-err34-c): written above
    in.sin_port = htons((uint16_t)port);
    const rlim_t before = limit_files((rlim_t)client + 8);
    int held[64] = {0};
    int count = 0;
    while (count < 64 && (held[count] = dup(client)) >= 0)
        count++;
    ASSERT_INT_LT(count, 64);
    ASSERT_INT_LT(2, count);
    close(held[--count]), close(held[--count]); // for the joiner's eventfd and its listener
    start(&joiner, 0,
          (struct weir_transport_setup){.struct_size = sizeof joiner.setup,
                                        .label = "grads",
                                        .count = 2,
                                        .rendezvous = rendezvous,
                                        .timeout_ns = RANKS_PATIENCE});
    while (connect(client, (struct sockaddr *)&in, sizeof in) != 0)
        weir_clock_sleep_ns(1000000); // it does not listen yet
    pthread_join(joiner.thread, NULL);
    EXPECT_INT_EQ(joiner.rank.status, WEIR_ERROR_SYSTEM);
    EXPECT_CONTAINS(joiner.rank.error.message,
                    "rank 0 cannot take a connection: Too many open files");
    limit_files(before);
    while (count > 0)
        close(held[--count]);
    close(client);
}

WEIR_TEST(Meeting, RefusesAPlaceThatIsNone)
{
    static const char *const places[] = {"tcp://",       "tcp://host",       "tcp://:5000",
                                         "tcp://host:0", "tcp://host:65536", "tcp://host:5x",
                                         "tcp://host:",  "tcp://[::1]5000",  "tcp://[]:5000"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct rank rank = join_alone(0, places[i], SHORT);
        EXPECT_INT_EQ(rank.status, WEIR_ERROR_CONFIG);
        EXPECT_CONTAINS(rank.error.message, places[i]);
        EXPECT_CONTAINS(rank.error.remedy, "tcp://HOST:PORT");
    }
}

WEIR_TEST(Meeting, RefusesAHostThatIsNotFound)
{
    char place[128] = "tcp://";
    memset(place + 6, 'x', 70); // longer than a name can be, so that no server is asked
    snprintf(place + 76, sizeof place - 76, ":5000");
    const struct rank rank = join_alone(0, place, SHORT);
    EXPECT_INT_EQ(rank.status, WEIR_ERROR_SYSTEM);
    EXPECT_CONTAINS(rank.error.message, "of the rendezvous is not found: ");
}

WEIR_TEST(Meeting, TellsOfAPortInUse)
{
    char place[64];
    const int taken = take_port(place, sizeof place, true);
    ASSERT_INT_LE(0, taken);
    const struct rank rank = join_alone(0, place, SHORT);
    EXPECT_INT_EQ(rank.status, WEIR_ERROR_SYSTEM);
    EXPECT_CONTAINS(rank.error.message, "'grads': rank 0 cannot listen at tcp://127.0.0.1:");
    EXPECT_CONTAINS(rank.error.message, "Address already in use");
    EXPECT_CONTAINS(rank.error.remedy, "choose another one");
    close(taken);
}

WEIR_TEST(Meeting, TellsThatRankZeroIsMissing)
{
    char place[64];
    const int taken = take_port(place, sizeof place, false);
    ASSERT_INT_LE(0, taken);
    const struct rank rank = join_alone(1, place, SHORT);
    EXPECT_INT_EQ(rank.status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(rank.error.message, "'grads': rank 0 has not come to tcp://127.0.0.1:");
    EXPECT_CONTAINS(rank.error.message, "in 50.0 ms: Connection refused");
    close(taken);
}

WEIR_TEST(Meeting, TellsThatAnotherProgramListens)
{
    char place[64];
    const int taken = take_port(place, sizeof place, true);
    ASSERT_INT_LE(0, taken);
    const struct rank rank = join_alone(1, place, SHORT);
    EXPECT_INT_EQ(rank.status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(rank.error.message, "what listens at tcp://127.0.0.1:");
    EXPECT_CONTAINS(rank.error.message, "is no rank 0, or it has ended");
    close(taken);
}

// On a busy machine rank 2 may not come either, and then there is another meeting, which is longer.
WEIR_TEST(Meeting, NamesARankThatDoesNotCome)
{
    struct joiner joiner = {.failed = NULL};
    struct rank rank = {.rank = 0};
    struct weir_transport_setup setup = ranks_setup("file");
    setup.count = 3;
    setup.timeout_ns = SHORT;
    do {
        setup.timeout_ns *= 4;
        start(&joiner, 2, setup);
        EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_COMM);
        pthread_join(joiner.thread, NULL);
        EXPECT_INT_EQ(joiner.rank.status, WEIR_ERROR_COMM);
    } while (!strstr(rank.error.message, "2 of 3 ranks are there"));
    EXPECT_CONTAINS(rank.error.message, "'grads': rank 1 has not come to file:");
    EXPECT_STR_EQ(joiner.rank.error.message, rank.error.message);
    EXPECT_INT_EQ(ranks_blocks(), 1);
}

// One that has come and is gone, as after a SIGKILL, is told at once: rank 0 has much more patience.
WEIR_TEST(Meeting, NamesARankThatIsGoneBeforeAllHaveCome)
{
    struct joiner joiner = {.failed = NULL};
    struct weir_transport_setup setup = ranks_setup("file");
    setup.count = 3;
    setup.timeout_ns = RANKS_PATIENCE;
    start(&joiner, 0, setup);
    while (access(setup.rendezvous + 5, F_OK) != 0)
        weir_clock_sleep_ns(RANKS_SECOND / 100);
    struct rank rank = {.rank = 1};
    setup.timeout_ns = RANKS_SECOND;
    EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_COMM);
    pthread_join(joiner.thread, NULL);
    EXPECT_INT_EQ(joiner.rank.status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(
        joiner.rank.error.message,
        "'grads': rank 1 has died, or waits no longer, and rank 2 has not come to file:");
    EXPECT_CONTAINS(joiner.rank.error.remedy, "start all ranks again");
    EXPECT_INT_EQ(ranks_blocks(), 1);
}

WEIR_TEST(Meeting, RefusesAnotherCount)
{
    struct joiner joiners[2] = {{.failed = NULL}};
    struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < 2; i++) {
        setup.count = 2 + i;
        start(&joiners[i], i, setup);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(joiners[i].thread, NULL);
        EXPECT_INT_EQ(joiners[i].rank.status, WEIR_ERROR_COMM);
        EXPECT_STR_EQ(joiners[i].rank.error.message, "'grads': rank 1 says that there are 3 ranks, "
                                                     "and rank 0 that there are 2");
    }
    EXPECT_INT_EQ(ranks_blocks(), 1);
}

// Two come as rank 1: one is refused, and the other one waits for rank 2.
WEIR_TEST(Meeting, RefusesARankThatIsThere)
{
    sem_t failed;
    struct joiner joiners[4] = {{.failed = NULL}};
    sem_init(&failed, 0, 0);
    struct weir_transport_setup setup = ranks_setup("file");
    setup.count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        joiners[i].failed = &failed;
        start(&joiners[i], i > 0, setup);
    }
    while (sem_wait(&failed) != 0)
        continue;
    start(&joiners[3], 2, setup);
    int refused = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(joiners[i].thread, NULL);
        refused += joiners[i].rank.status == WEIR_ERROR_COMM &&
                   strstr(joiners[i].rank.error.message, "another rank 1 is at file:") != NULL;
        rank_leave(&joiners[i].rank);
    }
    EXPECT_INT_EQ(refused, 1);
    sem_destroy(&failed);
    EXPECT_INT_EQ(ranks_blocks(), 1);
}

static void write_stale(const char *rendezvous)
{
    char place[64];
    char text[128];
    char message[512];
    int taken = take_port(place, sizeof place, false);
    ASSERT_INT_LE(0, taken);
    snprintf(text, sizeof text, "weir-local 1 127.0.0.1 %s 5\n", strrchr(place, ':') + 1);
    ASSERT_TRUE(weir_file_write(rendezvous + 5, text, strlen(text), message, sizeof message));
    close(taken);
}

WEIR_TEST(Meeting, TellsOfAFileThatIsLeft)
{
    struct weir_transport_setup setup = ranks_setup("file");
    write_stale(setup.rendezvous);
    const struct rank rank = join_alone(1, setup.rendezvous, SHORT);
    EXPECT_INT_EQ(rank.status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(rank.error.message, "'grads': rank 0 has not come in 50.0 ms: ");
    EXPECT_CONTAINS(rank.error.message, "names a place at which nothing listens");
    EXPECT_CONTAINS(rank.error.remedy, "left from an earlier run");
}

WEIR_TEST(Meeting, ReplacesAFileThatIsLeft)
{
    struct joiner joiners[2] = {{.failed = NULL}};
    const struct weir_transport_setup setup = ranks_setup("file");
    write_stale(setup.rendezvous);
    for (uint32_t i = 0; i < 2; i++)
        start(&joiners[i], 1 - i, setup);
    for (int i = 0; i < 2; i++) {
        pthread_join(joiners[i].thread, NULL);
        EXPECT_STR_EQ(joiners[i].rank.status ? joiners[i].rank.error.message : "", "");
        rank_leave(&joiners[i].rank);
    }
    EXPECT_INT_NE(access(setup.rendezvous + 5, F_OK), 0);
}

static void await_file(const struct weir_transport_setup *setup)
{
    while (access(setup->rendezvous + 5, F_OK) != 0)
        weir_clock_sleep_ns(1000000);
}

// A second program comes to the file of a first one that still waits, also with another count: it is refused at once,
// and the first one meets.
WEIR_TEST(Meeting, RefusesASecondProgramAtAFile)
{
    struct joiner first = {.failed = NULL};
    struct rank last = {.rank = 1};
    const struct weir_transport_setup setup = ranks_setup("file");
    start(&first, 0, setup);
    await_file(&setup);
    for (uint32_t count = 2; count < 4; count++) {
        struct rank second = {.rank = 0};
        struct weir_transport_setup other = setup;
        other.label = "other";
        other.count = count;
        EXPECT_INT_EQ(rank_join(&second, &other), WEIR_ERROR_COMM);
        EXPECT_CONTAINS(second.error.message, "'grads': another rank 0 is at file:");
        EXPECT_CONTAINS(second.error.message, "do two programs use it?");
    }
    EXPECT_INT_EQ(rank_join(&last, &setup), WEIR_OK);
    pthread_join(first.thread, NULL);
    EXPECT_INT_EQ(first.rank.status, WEIR_OK);
    rank_leave(&first.rank);
    rank_leave(&last);
}

// Both have come at once, and none has seen the other's file: that of the later one stays, and the other is told.
WEIR_TEST(Meeting, TellsOfASecondProgramThatHasWrittenTheFile)
{
    struct joiner first = {.failed = NULL};
    struct weir_transport_setup setup = ranks_setup("file");
    setup.timeout_ns = RANKS_SECOND;
    start(&first, 0, setup);
    await_file(&setup);
    write_stale(setup.rendezvous);
    pthread_join(first.thread, NULL);
    EXPECT_INT_EQ(first.rank.status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(first.rank.error.message, "'grads': another rank 0 has written ");
    EXPECT_CONTAINS(first.rank.error.remedy, "a file of its own");
    EXPECT_INT_EQ(access(setup.rendezvous + 5, F_OK), 0);
    unlink(setup.rendezvous + 5);
}

WEIR_TEST(Meeting, TellsOfAFileThatCannotBe)
{
    const struct rank first = join_alone(0, "file:/proc/nothing/here", SHORT);
    EXPECT_INT_EQ(first.status, WEIR_ERROR_IO);
    EXPECT_CONTAINS(first.error.message, "'grads': rank 0 cannot write the rendezvous: ");
    const struct rank other = join_alone(1, "file:/proc/nothing/here", SHORT);
    EXPECT_INT_EQ(other.status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(other.error.message,
                    "'grads': rank 0 has not written /proc/nothing/here in 50.0 ms");
}

// Connections that are none of ours, at the place of the meeting.
static void disturb(const char *path)
{
    void *data = NULL;
    size_t size = 0;
    char message[512];
    char host[64];
    unsigned port = 0;
    while (!weir_file_read(path, 4096, &data, &size, message, sizeof message))
        weir_clock_sleep_ns(1000 * 1000);
    ASSERT_INT_EQ(sscanf(data, "weir-local 1 %63s %u", host, &port), 2); // NOLINT(cert-err34-c)
    free(data);
    for (int i = 0; i < 3; i++) {
        struct local_address address;
        const char *error = NULL;
        ASSERT_TRUE(local_address_find(host, (uint16_t)port, &address, &error));
        int stranger = local_connect(&address, false, weir_clock_now_ns() + RANKS_PATIENCE);
        ASSERT_INT_LE(0, stranger);
        static const char noise[200] = "GET / HTTP/1.1\r\n";
        if (i > 0)
            local_write_all(stranger, noise, i == 1 ? 4 : sizeof noise,
                            weir_clock_now_ns() + RANKS_PATIENCE);
        local_close(&stranger);
    }
}

WEIR_TEST(Meeting, IgnoresStrangers)
{
    struct joiner joiners[2] = {{.failed = NULL}};
    const struct weir_transport_setup setup = ranks_setup("file");
    start(&joiners[0], 0, setup);
    disturb(setup.rendezvous + 5);
    start(&joiners[1], 1, setup);
    for (int i = 0; i < 2; i++) {
        pthread_join(joiners[i].thread, NULL);
        EXPECT_STR_EQ(joiners[i].rank.status ? joiners[i].rank.error.message : "", "");
        rank_leave(&joiners[i].rank);
    }
}

// At one place, as fast as each rank can, and nothing is left of them.
static weir_status meet_often(struct rank *rank)
{
    const struct weir_transport_setup *setup = rank->user;
    for (int i = 0; i < 50; i++) {
        struct rank again = {.rank = rank->rank};
        const weir_status status = rank_join(&again, setup);
        rank->error = again.error;
        if (status)
            return status;
        rank_leave(&again);
    }
    return WEIR_OK;
}

WEIR_TEST(Meeting, IsHeldOftenAtOnePlace)
{
    struct rank ranks[RANKS_MAX];
    struct weir_transport_setup setup = ranks_setup("file");
    setup.count = 3;
    const int before = descriptors();
    ranks_run("process", 3, meet_often, &setup, ranks);
    for (int i = 0; i < 3; i++)
        EXPECT_STR_EQ(ranks[i].status ? ranks[i].error.message : "", "");
    EXPECT_INT_EQ(descriptors(), before);
    EXPECT_INT_EQ(ranks_blocks(), 1);
}

// A port that was free may be taken meanwhile, so another one is tried then.
WEIR_TEST(Meeting, AtAPort)
{
    struct joiner joiners[2] = {{.failed = NULL}};
    char place[64];
    for (int turn = 0; turn < 20; turn++) {
        close(take_port(place, sizeof place, false));
        struct weir_transport_setup setup = ranks_setup("file");
        setup.rendezvous = place;
        setup.timeout_ns = 10 * RANKS_SECOND;
        for (uint32_t i = 0; i < 2; i++)
            start(&joiners[i], i, setup);
        for (int i = 0; i < 2; i++) {
            pthread_join(joiners[i].thread, NULL);
            rank_leave(&joiners[i].rank);
        }
        if (joiners[0].rank.status != WEIR_ERROR_SYSTEM)
            break;
    }
    for (int i = 0; i < 2; i++)
        EXPECT_STR_EQ(joiners[i].rank.status ? joiners[i].rank.error.message : "", "");
}
