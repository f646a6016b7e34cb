// Which rank a failure of the transport is told of, by the transport's sentence.
#include <stdio.h>
#include <string.h>

#include "core/comm/pulse_parts.h"
#include "core/support/memory.h"
#include "tests/support/test.h"

static struct weir_comm comm;
static struct weir__pulse pulse;
static struct weir__beat beats[2];

static void no_abort(void *group, const char *reason)
{
    (void)group;
    (void)reason;
}

static const struct weir_transport_ops ops = {.abort = no_abort};

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

// The cause that is booked for a sentence of the transport's.
static void expect_cause(const char *sentence, const char *cause)
{
    struct weir_error error = {.status = WEIR_ERROR_COMM};
    snprintf(error.message, sizeof error.message, "%s", sentence);
    open_pulse();
    weir__pulse_fail_of_transport(&pulse, NULL, &error);
    EXPECT_CONTAINS(comm.error.message, cause);
    close_pulse();
}

WEIR_TEST(CommBlame, TheRankThatIsNamed)
{
    expect_cause("barrier 1 of 'grads', app.c:1: rank 1 has died before its first collective",
                 ": rank 1 has died, before its first collective");
    expect_cause("barrier 1 of 'grads', app.c:1: rank 0 has not answered in 2 s",
                 ": rank 0 has not answered in ");
}

// The number is not that of a rank, or there is none.
WEIR_TEST(CommBlame, NoRank)
{
    expect_cause("a switch has died", ": a switch has died");
    expect_cause("node 1 has not answered in 2 s", ": node 1 has not answered in 2 s");
    expect_cause("rank 7 has died", ": rank 7 has died");
}
