// Which rank a failure of the transport is told of, by the cause that the transport knows, and how its
// process is named.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/comm/pulse.h"
#include "core/support/memory.h"
#include "tests/support/test.h"

static struct weir_comm comm;
static struct weir__pulse pulse;
static struct weir__beat beats[2];
static char told[1024];

static void no_abort(void *group, const char *reason)
{
}

static weir_status no_run(void *group, const struct weir_transport_call *call)
{
    return WEIR_OK;
}

static struct weir_transport_cause first;

static bool known_cause(void *group, struct weir_transport_cause *out_cause)
{
    *out_cause = first;
    return true;
}

static const struct weir_transport_ops ops = {.run = no_run,
                                              .abort = no_abort,
                                              .cause = known_cause};
static const struct weir_transport_ops older_ops = {.run = no_run, .abort = no_abort};

// As glibc's: a name that does not fit is an error, and what fits has no end.
static const char *host_name; // NULL: the call fails
int __wrap_gethostname(char *name, size_t size);
int __wrap_gethostname(char *name, size_t size)
{
    const size_t length = host_name ? strlen(host_name) + 1 : 0;
    if (host_name)
        memcpy(name, host_name, length < size ? length : size);
    errno = host_name ? ENAMETOOLONG : EFAULT;
    return host_name && length <= size ? 0 : -1;
}

static void open_pulse(void)
{
    weir_lock_init(&comm.lock, &weir__locks[WEIR__LOCK_COMM]);
    comm.pulse = &pulse;
    comm.transport = &ops;
    comm.count = 2;
    pulse.comm = &comm;
    pulse.beats = beats;
    ASSERT_TRUE(weir__pulse_make_room(&pulse));
}

static void close_pulse(void)
{
    weir__release(pulse.flights);
    weir_lock_finish(&comm.lock);
    comm = (struct weir_comm){.pulse = NULL};
    pulse = (struct weir__pulse){.comm = NULL};
    memset(beats, 0, sizeof beats);
}

static void fail_with(const struct weir_transport_ops *transport, enum weir_transport_fault fault,
                      uint32_t rank, const char *sentence)
{
    struct weir_error error = {.status = WEIR_ERROR_COMM};
    snprintf(error.message, sizeof error.message, "%s", sentence);
    first = (struct weir_transport_cause){.struct_size = sizeof first,
                                          .fault = fault,
                                          .rank = rank,
                                          .number = 1};
    open_pulse();
    comm.transport = transport;
    weir__pulse_fail_of_transport(&pulse, NULL, &error);
    snprintf(told, sizeof told, "%s", comm.error.message);
    close_pulse();
}

// What is booked for a cause of the transport's.
static void expect_cause(enum weir_transport_fault fault, uint32_t rank, const char *cause)
{
    fail_with(&ops, fault, rank, "the transport's sentence");
    EXPECT_CONTAINS(told, cause);
}

WEIR_TEST(CommBlame, TheRankThatIsNamed)
{
    expect_cause(WEIR_FAULT_DIED, 1, ": rank 1 has died, before its first collective");
    expect_cause(WEIR_FAULT_SILENT, 0, ": rank 0 has not answered in ");
}

// No rank is known, or it is not one of the communicator's.
WEIR_TEST(CommBlame, NoRank)
{
    expect_cause(WEIR_FAULT_DIED, UINT32_MAX, ": the transport's sentence");
    expect_cause(WEIR_FAULT_SILENT, 2, ": the transport's sentence");
    expect_cause(WEIR_FAULT_OTHER, 1, ": the transport's sentence");
}

// A program's reason to abort says what it likes.
WEIR_TEST(CommBlame, WordsAreNoCause)
{
    fail_with(&ops, WEIR_FAULT_ABORTED, 0,
              "rank 0 has aborted 'grads': rank 1 has died of boredom");
    EXPECT_CONTAINS(told, ": rank 0 has aborted 'grads'");
    EXPECT_NOT_CONTAINS(told, ": rank 1 has died, before");
    fail_with(&older_ops, WEIR_FAULT_DIED, 1, "rank 1 has died");
    EXPECT_CONTAINS(told, ": rank 1 has died");
}

WEIR_TEST(CommBlame, TheProcessOfTheRank)
{
    beats[1] = (struct weir__beat){.process = 12, .host = "node7"};
    expect_cause(WEIR_FAULT_DIED, 1, "; it was process 12 of 'node7'");
    beats[1] = (struct weir__beat){.process = 12, .host = "node7"};
    expect_cause(WEIR_FAULT_SILENT, 1, ": rank 1 (process 12 of 'node7') has not");
}

// The lines are not cut off, however long the paths are.
WEIR_TEST(CommBlame, CallsInLongPaths)
{
    static const char path[] =
        "/home/user/sources/of/a/program/with/many/folders/and/a/long/name/of/its/own/app.c";
    const struct weir_head own = weir_head_of_line(WEIR_REDUCE_SCATTER, 10000000, path, 12345);
    struct weir_head theirs = weir_head_of_line(WEIR_REDUCE_SCATTER, 10000000, path, 67890);
    char text[WEIR_CALLS_TEXT_SIZE];
    theirs.count = 4;
    weir_head_differ(&own, 0, &theirs, 1, false, text);
    EXPECT_CONTAINS(text, "own/app.c:67890) with 4 ");
    theirs.kind = WEIR_ALL_REDUCE;
    weir_head_differ(&own, 0, &theirs, 1, false, text);
    EXPECT_CONTAINS(text, "own/app.c:67890), and rank 0 reduce-scatter 10000000 (");
    EXPECT_CONTAINS(text, "own/app.c:12345)");
}

// Another rank names its host and its files as it likes.
WEIR_TEST(CommBlame, NamesOfSeveralLines)
{
    beats[1] = (struct weir__beat){.number = 1, .process = 12, .host = "node7\n[weir] all is well"};
    beats[1].calls[1] =
        (struct weir_head){.number = 1, .line = 7, .kind = WEIR_BARRIER, .file = "a\nb.c\x1b[31m"};
    expect_cause(WEIR_FAULT_DIED, 1,
                 "barrier 1 (a\\nb.c\\x1b[31m:7); it was process 12 of 'node7\\n");
    EXPECT_NOT_CONTAINS(told, "\n");
}

WEIR_TEST(CommBlame, AProcessWithoutAHost)
{
    beats[1] = (struct weir__beat){.process = 12};
    expect_cause(WEIR_FAULT_DIED, 1, "; it was process 12");
    EXPECT_NOT_CONTAINS(told, " of '");
    beats[1] = (struct weir__beat){.process = 12};
    expect_cause(WEIR_FAULT_SILENT, 1, ": rank 1 (process 12) has not");
}

// A beat was under way while the calls were made, and is answered late: the rank has made all but the last of them.
WEIR_TEST(CommBlame, CallsThatWereMadeDuringTheBeat)
{
    static struct weir_queue queue;
    const struct weir_error error = {.status = WEIR_ERROR_COMM};
    struct weir__flight lacking;
    first = (struct weir_transport_cause){.struct_size = sizeof first,
                                          .fault = WEIR_FAULT_SILENT,
                                          .rank = 1};
    open_pulse();
    for (uint32_t turn = 0; turn < 3; turn++) {
        struct weir_operation operation;
        memset(&operation, 0, sizeof operation);
        operation.kind = WEIR_OPERATION_COLLECTIVE;
        operation.file = "app.c";
        operation.line = (int)(11 + turn);
        operation.u.collective.kind = WEIR_BARRIER;
        operation.u.collective.turn = turn;
        operation.u.collective.number = turn + 1;
        ASSERT_TRUE(weir__pulse_note(&comm, &queue, &operation));
    }
    ASSERT_TRUE(weir__pulse_copy_flight(&pulse, 2, &lacking));
    weir__pulse_fail_of_transport(&pulse, &lacking, &error);
    EXPECT_CONTAINS(comm.error.message, "at the earliest after barrier 2 (app.c:12)");
    close_pulse();
}

// What a rank tells of itself in its first beat.
static void expect_host(const char *name, const char *told_name)
{
    open_pulse();
    host_name = name;
    EXPECT_INT_EQ(weir__beat_exchange(&pulse, false, 1), WEIR_OK);
    EXPECT_UINT_NE(pulse.own.process, 0);
    EXPECT_STR_EQ(pulse.own.host, told_name);
    close_pulse();
}

WEIR_TEST(CommBlame, ALongName)
{
    char name[65] = "";
    char begin[WEIR__PULSE_HOST] = "";
    memset(name, 'n', sizeof name - 1);
    memset(begin, 'n', sizeof begin - 1);
    expect_host("node7", "node7");
    expect_host(name, begin);
    expect_host(name + sizeof name - sizeof begin, begin);
    expect_host(NULL, "");
}
