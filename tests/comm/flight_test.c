// The list of calls in flight: a submission takes the communicator's lock only for more room, and looking
// after all that are complete a few times for each of them, however many there are.
#include <pthread.h>
#include <string.h>

#include "core/comm/pulse_parts.h"
#include "core/queue/queue.h"
#include "core/support/memory.h"
#include "tests/support/test.h"

enum {
    COUNT = 3000
};

static struct weir_comm comm;
static struct weir__pulse pulse;
static struct weir_queue queue;
static uint64_t lock_count;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    lock_count++;
    return __real_pthread_mutex_lock(mutex);
}

static void note(uint32_t turn)
{
    struct weir_operation operation;
    memset(&operation, 0, sizeof operation);
    operation.kind = WEIR_OPERATION_COLLECTIVE;
    operation.sequence = turn + 1;
    operation.u.collective.comm = &comm;
    operation.u.collective.kind = WEIR_BARRIER;
    operation.u.collective.turn = turn;
    operation.u.collective.number = turn + 1;
    EXPECT_TRUE(weir__pulse_note(&comm, &queue, &operation));
}

static void open_pulse(void)
{
    weir_lock_init(&comm.lock, &weir__locks[WEIR__LOCK_COMM]);
    comm.pulse = &pulse;
    pulse.comm = &comm;
    ASSERT_TRUE(weir__pulse_make_room(&pulse));
    for (uint32_t i = 0; i < COUNT; i++)
        note(i);
    weir__pulse_hear_own(&pulse);
}

static void close_pulse(void)
{
    weir__release(pulse.flights);
    weir_lock_finish(&comm.lock);
    comm.pulse = NULL;
    pulse = (struct weir__pulse){.comm = NULL};
}

// Marks what is complete, as a beat does.
static uint32_t look(void)
{
    struct weir__flight flight;
    uint32_t marked = 0;
    size_t index = 0;
    for (; weir__pulse_complete(&pulse, &index, &flight); index++, marked++) {
        EXPECT_UINT_EQ(flight.sequence, flight.turn + 1u);
        weir__pulse_mark(&pulse, index);
    }
    return marked;
}

WEIR_TEST(CommFlight, ALookTakesTheLockAFewTimesForEachCall)
{
    struct weir__flight oldest;
    open_pulse();
    pulse.turn = COUNT - 1; // all but the last one are complete
    const uint64_t before = lock_count;
    EXPECT_UINT_EQ(look(), COUNT - 1);
    EXPECT_UINT_LE(lock_count - before, 3 * COUNT);
    EXPECT_UINT_EQ(look(), 0);
    pulse.confirmed = COUNT;
    ASSERT_TRUE(weir__pulse_oldest(&pulse, &oldest));
    EXPECT_UINT_EQ(oldest.turn, COUNT - 1);
    EXPECT_UINT_EQ(pulse.flight_end - pulse.flight_begin, 1);
    pulse.turn = COUNT;
    EXPECT_UINT_EQ(look(), 1);
    EXPECT_FALSE(weir__pulse_oldest(&pulse, &oldest));
    close_pulse();
}

// The room for them is that of the most that were in flight at a time.
WEIR_TEST(CommFlight, ASubmissionTakesNoLock)
{
    struct weir__flight flight;
    uint32_t copied = 0;
    uint64_t before = lock_count;
    open_pulse();
    EXPECT_UINT_LE(lock_count - before,
                   COUNT + 8); // each is heard, and more room is made some times
    for (; weir__pulse_copy_flight(&pulse, copied, &flight); copied++) {
        EXPECT_UINT_EQ(flight.turn, copied);
        EXPECT_UINT_EQ(flight.number, copied + 1u);
    }
    EXPECT_UINT_EQ(copied, COUNT);
    pulse.turn = COUNT;
    pulse.confirmed = COUNT;
    (void)look();
    EXPECT_FALSE(weir__pulse_oldest(&pulse, &flight));
    before = lock_count;
    for (uint32_t i = COUNT; i < 2 * COUNT; i++)
        note(i);
    EXPECT_UINT_EQ(lock_count, before);
    close_pulse();
}

// Of the calls that a rank remembers; older ones cannot be compared.
WEIR_TEST(CommFlight, HashesAreOfTheCallsThatAreRemembered)
{
    uint64_t hash;
    open_pulse();
    EXPECT_TRUE(weir__pulse_own_hash(&pulse, COUNT, &hash));
    EXPECT_TRUE(hash == pulse.hash);
    EXPECT_TRUE(weir__pulse_own_hash(&pulse, COUNT - WEIR__PULSE_HISTORY + 1, &hash));
    EXPECT_FALSE(weir__pulse_own_hash(&pulse, COUNT - WEIR__PULSE_HISTORY, &hash));
    EXPECT_FALSE(weir__pulse_own_hash(&pulse, COUNT + 1, &hash));
    close_pulse();
}
