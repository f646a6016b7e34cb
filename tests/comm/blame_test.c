// Which rank a failure of the transport is told of, by the cause that the transport knows.
#include <stdio.h>
#include <string.h>

#include "core/comm/pulse.h"
#include "core/support/memory.h"
#include "tests/support/test.h"

static struct weir_comm comm;
static struct weir__pulse pulse;
static struct weir__beat beats[2];

static void no_abort(void *group, const char *reason)
{
}

static struct weir_transport_cause first;

static bool known_cause(void *group, struct weir_transport_cause *out_cause)
{
    *out_cause = first;
    return true;
}

static const struct weir_transport_ops ops = {.abort = no_abort, .cause = known_cause};

static void open_pulse(void)
{
    weir_lock_init(&comm.lock, &weir__locks[WEIR__LOCK_COMM]);
    comm.pulse = &pulse;
    comm.transport = &ops;
    comm.count = 2;
    pulse.comm = &comm;
    pulse.beats = beats;
    pulse.flight_room = 1;
    pulse.flights = weir__allocate(sizeof *pulse.flights);
}

static void close_pulse(void)
{
    weir__release(pulse.flights);
    weir_lock_finish(&comm.lock);
    comm = (struct weir_comm){.pulse = NULL};
    pulse = (struct weir__pulse){.comm = NULL};
    memset(beats, 0, sizeof beats);
}

static const struct weir_head call = {.number = 1,
                                      .line = 7,
                                      .kind = WEIR_BARRIER,
                                      .file = "a\nb.c\x1b[31m"};

// A cause of the transport's of rank 1, what that rank has told of itself, and what is booked.
static const struct {
    enum weir_transport_fault fault;
    uint32_t rank;
    struct weir__beat beat;
    const char *told;
} rows[] = {
    {WEIR_FAULT_DIED, 1, {.host = ""}, ": rank 1 has died, before its first collective"},
    {WEIR_FAULT_DIED, 1, {.process = 12, .host = "node7"}, "; it was process 12 of 'node7'"},
    {WEIR_FAULT_DIED, 1, {.process = 12}, "; it was process 12"},
    {WEIR_FAULT_SILENT, 0, {.host = ""}, ": rank 0 has not answered in "},
    {WEIR_FAULT_SILENT, 1, {.process = 12, .host = "node7"}, "; it is process 12 of 'node7'"},
    {WEIR_FAULT_SILENT, 1, {.process = 12}, "; it is process 12"},
    // No rank is known, or it is not one of the communicator's.
    {WEIR_FAULT_DIED, UINT32_MAX, {.host = ""}, ": rank 1 has died of boredom"},
    {WEIR_FAULT_SILENT, 2, {.host = ""}, ": rank 1 has died of boredom"},
    // A program's reason to abort says what it likes.
    {WEIR_FAULT_ABORTED, 1, {.process = 12}, ": rank 1 has died of boredom"},
    {WEIR_FAULT_OTHER, 1, {.process = 12}, ": rank 1 has died of boredom"},
    // Another rank names its host and its files as it likes.
    {WEIR_FAULT_DIED,
     1,
     {.number = 1, .process = 12, .host = "node7\n[weir] all is well"},
     "barrier 1 (a\\nb.c\\x1b[31m:7); it was process 12 of 'node7\\n"},
};

WEIR_TEST(CommBlame, Causes)
{
    const struct weir_error error = {.status = WEIR_ERROR_COMM,
                                     .message = "rank 1 has died of boredom"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        first = (struct weir_transport_cause){.struct_size = sizeof first,
                                              .fault = rows[i].fault,
                                              .rank = rows[i].rank};
        open_pulse();
        beats[1] = rows[i].beat;
        beats[1].calls[1] = call;
        weir__pulse_fail_of_transport(&pulse, NULL, &error);
        EXPECT_CONTAINS(comm.error.message, rows[i].told);
        EXPECT_NOT_CONTAINS(comm.error.message, "\n");
        EXPECT_INT_EQ(strstr(comm.error.message, "process 12") != NULL,
                      strstr(rows[i].told, "process 12") != NULL);
        close_pulse();
    }
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
