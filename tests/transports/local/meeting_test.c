// How processes meet, and in which cases they do not. The ranks are threads here, and strangers of the same user are
// sockets; those of others are in strangers_test.c.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/support/test.h"
#include "tests/transports/local/places.h"
#include "tests/transports/local/ranks.h"

#define SHORT (RANKS_SECOND / 20)

// What one of `count` ranks comes to.
static struct rank join_one(uint32_t number, uint32_t count, const char *rendezvous,
                            uint64_t timeout_ns)
{
    struct rank rank = {.rank = number};
    const struct weir_transport_setup setup = place_setup(rendezvous, count, timeout_ns);
    rank_join(&rank, &setup);
    return rank;
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
    struct weir_transport_setup setup = ranks_setup("file");
    const rlim_t before = limit_files(200);
    setup.count = 102;
    EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_SYSTEM);
    EXPECT_CONTAINS(rank.error.message,
                    "102 ranks need 202 open files in each process, and the limit is 200");
    EXPECT_CONTAINS(rank.error.remedy, "ulimit -n");
    limit_files(before);
}

// The process has no descriptor left to listen: told as that.
PLACE_TEST(Meeting, HasNoFileLeftToListen, "unix:")
{
    int held[64] = {0};
    int count = 0;
    ranks_state();
    const rlim_t before = limit_files((rlim_t)test_descriptors() + 8);
    while (count < 64 && (held[count] = dup(0)) >= 0)
        count++;
    ASSERT_INT_LT(2, count);
    const struct rank rank = join_one(0, 2, place->rendezvous, RANKS_PATIENCE);
    EXPECT_RANK(rank.status, WEIR_ERROR_SYSTEM, rank, "Too many open files");
    EXPECT_CONTAINS(rank.error.remedy, "ulimit -n");
    limit_files(before);
    while (count > 0)
        close(held[--count]);
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

#define X10 "xxxxxxxxxx"
#define X100 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
// What ranks 0 and 1 of three come to, each alone, at once or soon, and words of what they are told.
static const struct {
    const char *place;
    weir_status status[2];
    const char *words[2];
    const char *remedy; // of rank 1
    const char *secret;
} alone[] = {
#define OF_BOTH(at, state, text, ...)                                             \
    {                                                                             \
        .place = at, .status = {state, state}, .words = {text, text}, __VA_ARGS__ \
    }
#define BAD(place) OF_BOTH(place, WEIR_ERROR_CONFIG, place, .secret = NULL)
    BAD("tcp://"),
    BAD("tcp://host"),
    BAD("tcp://:5000"),
    BAD("tcp://host:0"),
    BAD("tcp://host:65536"),
    BAD("tcp://host:5x"),
    BAD("tcp://host:"),
    BAD("tcp://[::1]5000"),
    BAD("tcp://[]:5000"),
    BAD("unix:"),
    BAD("file:"),
    BAD("process:"),
    BAD("udp://host:5000/x"),
    BAD("tcp://0.0.0.0:5000"),
    BAD("tcp://[::]:5000"),
    OF_BOTH("", WEIR_ERROR_CONFIG, "'grads': no rendezvous is named, where 3 ranks are to meet",
            .remedy = "WEIR_COMM_RENDEZVOUS: tcp://HOST:PORT"),
    OF_BOTH(NULL, WEIR_ERROR_CONFIG, "no rendezvous is named", .secret = NULL),
    OF_BOTH("unix:" X100 X100 X100 X100 X100 X100, WEIR_ERROR_CONFIG, "1 to 511", .secret = NULL),
    OF_BOTH("file:" X100 X100 X100 X100 X100 X100, WEIR_ERROR_CONFIG, "1 to 511", .secret = NULL),
    // Longer than a name can be, so that no server is asked.
    OF_BOTH("tcp://" X100 ":5000", WEIR_ERROR_SYSTEM, "is not found: ", .secret = NULL),
    OF_BOTH("tcp://127.0.0.1:5000", WEIR_ERROR_CONFIG, "WEIR_COMM_SECRET has 5 characters",
            .secret = "short"),
    {.place = "file:/proc/nothing/here",
     .status = {WEIR_ERROR_IO, WEIR_ERROR_COMM},
     .words = {"/proc/nothing/here", "/proc/nothing/here"}},
    // An address of no machine here.
    {.place = "tcp://192.0.2.1:5000",
     .status = {WEIR_ERROR_SYSTEM, WEIR_ERROR_CONFIG},
     .words = {"no such address", "no secret is set"},
     .remedy = "WEIR_COMM_SECRET"},
};

WEIR_TEST(Meeting, RefusesAPlaceThatIsNone)
{
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        if (alone[i].secret)
            setenv("WEIR_COMM_SECRET", alone[i].secret, 1);
        for (uint32_t rank = 0; rank < 2; rank++) {
            weir_test_note("rank %u at %s", rank, alone[i].place);
            const struct rank joined = join_one(rank, 3, alone[i].place, SHORT);
            EXPECT_RANK(joined.status, alone[i].status[rank], joined, alone[i].words[rank]);
            EXPECT_TRUE(joined.error.remedy[0]);
            if (rank == 1 && alone[i].remedy)
                EXPECT_CONTAINS(joined.error.remedy, alone[i].remedy);
            if (alone[i].secret)
                EXPECT_NOT_CONTAINS(joined.error.message, alone[i].secret);
        }
        unsetenv("WEIR_COMM_SECRET");
    }
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

// A program of the same user's that is no rank 0 takes what comes, and ends.
static void *listen_rudely(void *argument)
{
    const struct place *place = argument;
    struct local_address address = local_address_at_number(0);
    struct local_rendezvous its = {.magic = LOCAL_RENDEZVOUS, .door.where = local_here()};
    int listener = local_listen(&address, &its.door.where.number);
    int connection = -1;
    place_write(place, &its, sizeof its, 0600);
    while (listener >= 0 && connection < 0) {
        connection = local_accept(listener, &address);
        weir_clock_sleep_ns(RANKS_SECOND / 1000);
    }
    local_close(&connection);
    local_close(&listener);
    return NULL;
}

PLACE_TEST(Meeting, TellsThatAnotherProgramListens, "unix:")
{
    pthread_t thread;
    pthread_create(&thread, NULL, listen_rudely, place);
    const struct rank rank = join_one(1, 3, place->rendezvous, RANKS_PATIENCE);
    pthread_join(thread, NULL);
    EXPECT_RANK(rank.status, WEIR_ERROR_COMM, rank, place->rendezvous);
}

static const char *const wires[] = {"file", "process"};

// On a busy machine rank 2 may not come either, and then there is another meeting, which is longer.
WEIR_TEST(Meeting, NamesARankThatDoesNotCome)
{
    for (int w = 0; w < 2; w++) {
        struct joiner joiner = {.failed = NULL};
        struct rank rank = {.rank = 0};
        struct weir_transport_setup setup = ranks_setup(wires[w]);
        setup.count = 3;
        setup.timeout_ns = SHORT;
        do {
            setup.timeout_ns *= 4;
            rank_start(&joiner, 2, setup);
            EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_COMM);
            EXPECT_INT_EQ(rank_await(&joiner), WEIR_ERROR_COMM);
        } while (!strstr(rank.error.message, "2 of 3 ranks are there"));
        EXPECT_CONTAINS(rank.error.message, "'grads': rank 1 has not come to ");
        EXPECT_STR_EQ(joiner.rank.error.message, rank.error.message);
        EXPECT_NULL(rank.group);
    }
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

// One that has come and is gone, as after a SIGKILL, is told at once: rank 0 has much more patience.
PLACE_TEST(Meeting, NamesARankThatIsGoneBeforeAllHaveCome, "file:")
{
    struct joiner joiner = {.failed = NULL};
    place_start(place, &joiner, 0, 3);
    place_await(place);
    EXPECT_INT_EQ(join_one(1, 3, place->rendezvous, RANKS_SECOND).status, WEIR_ERROR_COMM);
    EXPECT_RANK(rank_await(&joiner), WEIR_ERROR_COMM, joiner.rank, "rank 1 has died");
    EXPECT_CONTAINS(joiner.rank.error.message, "rank 2 has not come");
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

WEIR_TEST(Meeting, RefusesAnotherCount)
{
    for (int w = 0; w < 2; w++) {
        struct joiner joiners[2] = {{.failed = NULL}};
        struct weir_transport_setup setup = ranks_setup(wires[w]);
        for (uint32_t i = 0; i < 2; i++) {
            setup.count = 2 + i;
            rank_start(&joiners[i], i, setup);
        }
        for (int i = 0; i < 2; i++) {
            EXPECT_INT_EQ(rank_await(&joiners[i]), WEIR_ERROR_COMM);
            EXPECT_CONTAINS(joiners[i].rank.error.message, "says that there are ");
        }
    }
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

// Two come as rank 1: one is refused, and the other one waits for rank 2.
static void expect_one_refused(const char *wire)
{
    sem_t failed;
    struct joiner joiners[4] = {{.failed = NULL}};
    struct weir_transport_setup setup = ranks_setup(wire);
    int refused = 0;
    sem_init(&failed, 0, 0);
    setup.count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        joiners[i].failed = &failed;
        rank_start(&joiners[i], i > 0, setup);
    }
    ranks_await(&failed);
    rank_start(&joiners[3], 2, setup);
    for (int i = 0; i < 4; i++) {
        refused += rank_await(&joiners[i]) == WEIR_ERROR_COMM &&
                   strstr(joiners[i].rank.error.message, "another rank 1 is at ") != NULL;
        rank_leave(&joiners[i].rank);
    }
    EXPECT_INT_EQ(refused, 1);
    sem_destroy(&failed);
}

WEIR_TEST(Meeting, RefusesARankThatIsThere)
{
    for (int w = 0; w < 2; w++)
        expect_one_refused(wires[w]);
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

// All of a group of three at the place.
static void expect_meeting(const struct place *place)
{
    struct joiner joiners[3] = {{.failed = NULL}};
    for (uint32_t i = 0; i < 3; i++)
        place_start(place, &joiners[i], 2 - i, 3);
    ranks_expect_joined(joiners, 3);
    EXPECT_FALSE(place_is_taken(place));
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

// What a rank 0 leaves that was killed: of one whose time is over, which is made once.
static void leave(const struct place *place)
{
    static struct local_rendezvous left;
    if (left.token == 0) {
        struct place other = place_open("unix:");
        struct joiner joiner = {.failed = NULL};
        rank_start(&joiner, 0, place_setup(other.rendezvous, 2, RANKS_SECOND));
        place_await(&other);
        left = place_read(&other);
        EXPECT_INT_EQ(rank_await(&joiner), WEIR_ERROR_COMM);
        EXPECT_TRUE(place_close(&other)); // without its file
    }
    ASSERT_TRUE(left.token != 0);
    place_write(place, &left, sizeof left, 0600);
}

// Of an earlier start of the machine, on no network.
static const struct local_rendezvous earlier = {.magic = LOCAL_RENDEZVOUS,
                                                .door = {"127.0.0.1", {.number = 5}},
                                                .token = 5};

// At a place where nothing is, and in place of what is left; before rank 0 comes, another one waits in vain.
WEIR_TEST(Meeting, IsHeldAtEachPlace)
{
    for (int i = 0; i <= 2 * PLACE_KINDS; i++) {
        const char *kind = place_kinds[i < 2 * PLACE_KINDS ? i / 2 : 1];
        struct place place = place_open(kind);
        if (i == 2 * PLACE_KINDS)
            place_write(&place, &earlier, sizeof earlier, 0600);
        else if (i % 2)
            leave(&place);
        const struct rank rank = join_one(1, 3, place.rendezvous, SHORT);
        EXPECT_RANK(rank.status, WEIR_ERROR_COMM, rank, "'grads': rank 0 has not come to ");
        EXPECT_CONTAINS(rank.error.message, place.rendezvous);
        expect_meeting(&place);
        EXPECT_TRUE(place_close(&place));
    }
}

// It names a place of the network to which there is no way, or which does not answer: the rank that has come first does
// not stay with it.
PLACE_TEST(Meeting, LooksAgainAtAFileThatIsLeft, "file:")
{
    struct joiner joiners[2] = {{.failed = NULL}};
    struct local_rendezvous far = earlier;
    far.door = (struct local_entry){"192.0.2.1", {.number = 5, .port = 9}};
    place_write(place, &far, sizeof far, 0600);
    place_start(place, &joiners[1], 1, 2);
    weir_clock_sleep_ns(SHORT);
    place_start(place, &joiners[0], 0, 2);
    ranks_expect_joined(joiners, 2);
}

// What is left names a socket that a rank 0 of another place has got since.
WEIR_TEST(Meeting, IsHeldWhereWhatIsLeftNamesAnotherRankZero)
{
    for (int i = 0; i < PLACE_KINDS; i++) {
        struct place place = place_open(place_kinds[i]);
        struct place other = place_open(place_kinds[i]);
        struct joiner joiners[2] = {{.failed = NULL}};
        struct joiner others[2] = {{.failed = NULL}};
        place_start(&other, &others[0], 0, 2);
        place_await(&other);
        struct local_rendezvous left = place_read(&other);
        left.token++;
        place_write(&place, &left, sizeof left, 0600);
        place_start(&place, &joiners[1], 1, 2);
        weir_clock_sleep_ns(SHORT);
        place_start(&place, &joiners[0], 0, 2);
        ranks_expect_joined(joiners, 2);
        place_start(&other, &others[1], 1, 2);
        ranks_expect_joined(others, 2);
        EXPECT_TRUE(place_close(&place));
        EXPECT_TRUE(place_close(&other));
    }
}

// A second program comes to the place of a first one that still waits, also with another count: it is refused at
// once, and the first one meets.
WEIR_TEST(Meeting, RefusesASecondProgramAtAPlace)
{
    for (int i = 0; i < PLACE_KINDS; i++) {
        struct place place = place_open(place_kinds[i]);
        struct joiner joiners[2] = {{.failed = NULL}};
        place_start(&place, &joiners[0], 0, 2);
        place_await(&place);
        for (uint32_t count = 2; count < 4; count++) {
            const struct rank second = join_one(0, count, place.rendezvous, RANKS_PATIENCE);
            EXPECT_RANK(second.status, WEIR_ERROR_COMM, second, "another rank 0 is at ");
            EXPECT_CONTAINS(second.error.message, place.rendezvous);
        }
        place_start(&place, &joiners[1], 1, 2);
        ranks_expect_joined(joiners, 2);
        EXPECT_TRUE(place_close(&place));
    }
}

// Two come at once to a place where nothing is: the one whose file is second is told why, and the first one's stays.
WEIR_TEST(Meeting, TellsTheSecondOfTwoThatComeAtOnce)
{
    for (int turn = 0; turn < 20; turn++) {
        struct place place = place_open("file:");
        struct joiner two[2] = {{.failed = NULL}};
        for (int i = 0; i < 2; i++)
            rank_start(&two[i], 0, place_setup(place.rendezvous, 2, SHORT));
        for (int i = 0; i < 2; i++) {
            EXPECT_INT_EQ(rank_await(&two[i]), WEIR_ERROR_COMM);
            EXPECT_FALSE(strstr(two[i].rank.error.message, "is no rendezvous") != NULL);
            EXPECT_FALSE(strstr(two[i].rank.error.message, "has written") != NULL);
        }
        EXPECT_TRUE(place_close(&place));
    }
}

static const char notes[] = "my notes\n";

static void expect_content(const struct place *place, const void *data, size_t size)
{
    void *found = NULL;
    size_t found_size = 0;
    char message[512];
    (void)weir_file_read(place_path(place), 4096, &found, &found_size, message, sizeof message);
    EXPECT_TRUE(found_size == size && memcmp(found, data, size) == 0);
    free(found);
}

// Something else has come there while rank 0 waited: that stays. A rendezvous is another program's, which has found the
// same file of an earlier run.
static void expect_replaced(const void *data, size_t size, const char *message)
{
    struct place place = place_open("file:");
    struct joiner first = {.failed = NULL};
    rank_start(&first, 0, place_setup(place.rendezvous, 2, RANKS_SECOND));
    place_await(&place);
    place_write(&place, data, size, 0600);
    EXPECT_RANK(rank_await(&first), WEIR_ERROR_COMM, first.rank, message);
    expect_content(&place, data, size);
    EXPECT_TRUE(place_close(&place));
}

WEIR_TEST(Meeting, KeepsAFileThatHasComeSince)
{
    expect_replaced(notes, sizeof notes, "rank 1 has not come");
    expect_replaced(&earlier, sizeof earlier, "another rank 0 has written ");
}

// What is at a place, and what ranks 0 and 1 come to there, each alone. It stays: neither is it believed nor replaced. What
// is another user's only root can make.
static const struct {
    const char *kind;
    const char *text; // NULL: what is left of a meeting
    mode_t mode;
    weir_status status[2];
    const char *words[2];
    bool is_folder; // the mode, and the owner, are the folder's
    bool is_given;  // to another user
} disbelieved[] = {
#define OF_A_FILE                      \
    {                                  \
        WEIR_ERROR_IO, WEIR_ERROR_COMM \
    }
#define OF_A_FOLDER                         \
    {WEIR_ERROR_CONFIG, WEIR_ERROR_CONFIG}, \
    {                                       \
        "/tmp", "/tmp"                      \
    }
    {"file:", notes, 0600, OF_A_FILE, {"/meeting", ""}, false, false},
    {"unix:", notes, 0600, OF_A_FILE, {"/meeting", ""}, false, false},
    {"file:", notes, 0644, OF_A_FILE, {"", "chmod 600"}, false, false},
    {"file:", NULL, 0660, OF_A_FILE, {"", ""}, false, false},
    {"file:", NULL, 0600, OF_A_FILE, {"", ""}, false, true},
    {"unix:", NULL, 0750, OF_A_FOLDER, true, false},
    {"unix:", NULL, 0700, OF_A_FOLDER, true, true},
};

static void expect_disbelief(size_t row)
{
    struct place place = place_open(disbelieved[row].kind);
    if (disbelieved[row].text)
        place_write(&place, disbelieved[row].text, strlen(disbelieved[row].text), 0600);
    else
        leave(&place);
    const char *changed = disbelieved[row].is_folder ? place.folder : place_path(&place);
    EXPECT_INT_EQ(chmod(changed, disbelieved[row].mode), 0);
    if (disbelieved[row].is_given)
        EXPECT_INT_EQ(chown(changed, OTHER_USER, OTHER_USER), 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        weir_test_note("row %zu, rank %u", row, rank);
        const struct rank joined = join_one(rank, 3, place.rendezvous, SHORT);
        EXPECT_INT_EQ(joined.status, disbelieved[row].status[rank]);
        EXPECT_CONTAINS(joined.error.message, disbelieved[row].words[rank]);
        if (disbelieved[row].is_folder)
            EXPECT_CONTAINS(joined.error.remedy, "chmod 700");
    }
    EXPECT_TRUE(place_is_taken(&place));
    if (disbelieved[row].text)
        expect_content(&place, disbelieved[row].text, strlen(disbelieved[row].text));
    EXPECT_TRUE(place_close(&place));
}

static void expect_disbelief_of_all(bool is_given)
{
    for (size_t row = 0; row < sizeof disbelieved / sizeof *disbelieved; row++)
        if (disbelieved[row].is_given == is_given)
            expect_disbelief(row);
}

WEIR_TEST(Meeting, BelievesNothingThatOthersCouldChange)
{
    expect_disbelief_of_all(false);
}

WEIR_TEST(Meeting, BelievesNothingOfAnotherUser)
{
    if (geteuid() != 0)
        WEIR_SKIP("only root can give a file to another user");
    expect_disbelief_of_all(true);
}

// Strangers.

static const char noise[300] = "GET / HTTP/1.1\r\n";

struct strangers {
    const struct place *place;
    atomic_bool end;
};

// One every 50 ms, for as long as rank 0 waits.
static void *keep_silent(void *argument)
{
    struct strangers *strangers = argument;
    int silent[512];
    int count = 0;
    while (!strangers->end) {
        const int next = count < 512 ? place_connect(strangers->place) : -1;
        if (next >= 0)
            silent[count++] = next;
        weir_clock_sleep_ns(SHORT);
    }
    while (count > 0)
        local_close(&silent[--count]);
    return NULL;
}

PLACE_TEST(Meeting, EndsAtItsTimeoutAmongSilentStrangers, "unix:")
{
    struct strangers strangers = {.place = place};
    pthread_t thread;
    pthread_create(&thread, NULL, keep_silent, &strangers);
    const struct rank rank = join_one(0, 3, place->rendezvous, 8 * SHORT);
    strangers.end = true;
    pthread_join(thread, NULL);
    EXPECT_RANK(rank.status, WEIR_ERROR_COMM, rank, "rank 1 has not come to ");
}

// More than a door keeps at a time, some of which say something.
PLACE_TEST(Meeting, IsHeldAmongSilentStrangers, "unix:")
{
    struct joiner joiners[2] = {{.failed = NULL}};
    int silent[100];
    place_start(place, &joiners[0], 0, 2);
    place_await(place);
    for (int i = 0; i < 100; i++) {
        silent[i] = place_connect(place);
        if (i > 97)
            local_write_all(silent[i], noise, i == 98 ? 4 : sizeof noise,
                            weir_clock_now_ns() + RANKS_PATIENCE);
    }
    place_start(place, &joiners[1], 1, 2);
    ranks_expect_joined(joiners, 2);
    for (int i = 0; i < 100; i++)
        local_close(&silent[i]);
}

// A rank of a job of the same launcher that has another name, in a process of its own: the end's status.
static int come_of_another_job(const struct place *place, const char *name)
{
    struct rank rank = {.rank = 1};
    const struct weir_transport_setup setup = place_setup(place->rendezvous, 2, RANKS_PATIENCE);
    setenv(name, "older", 1);
    const bool refused = rank_join(&rank, &setup) == WEIR_ERROR_COMM &&
                         strstr(rank.error.message, "another job") != NULL;
    return refused ? 0 : 1;
}

static void expect_job_refused(const char *name)
{
    struct place place = place_open("unix:");
    struct joiner joiners[2] = {{.failed = NULL}};
    int status = -1;
    const pid_t other = fork();
    if (other == 0)
        _exit(come_of_another_job(&place, name));
    setenv(name, "newer", 1);
    place_start(&place, &joiners[0], 0, 2);
    EXPECT_INT_EQ(waitpid(other, &status, 0), other);
    EXPECT_INT_EQ(status, 0);
    place_start(&place, &joiners[1], 1, 2);
    ranks_expect_joined(joiners, 2);
    unsetenv(name);
    EXPECT_TRUE(place_close(&place));
}

WEIR_TEST(Meeting, RefusesARankOfAnotherJobAlone)
{
    expect_job_refused("TORCHELASTIC_RUN_ID");
    expect_job_refused("PMIX_NAMESPACE");
    expect_job_refused("SLURM_JOB_ID");
}

// At one place, as fast as each rank can, and nothing is left of them.
static weir_status meet_often(struct rank *rank)
{
    const struct weir_transport_setup *setup = rank->user;
    for (int i = 0; i < 20; i++) {
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
    for (int k = 0; k < PLACE_KINDS; k++) {
        struct place place = place_open(place_kinds[k]);
        struct weir_transport_setup setup = place_setup(place.rendezvous, 3, RANKS_PATIENCE);
        const int before = test_descriptors();
        ranks_expect("process", 3, meet_often, &setup);
        EXPECT_INT_EQ(test_descriptors(), before);
        EXPECT_INT_EQ(test_host_blocks(), 1);
        EXPECT_FALSE(place_is_taken(&place));
        EXPECT_TRUE(place_close(&place));
    }
}
