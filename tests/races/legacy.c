// The default queues that programs ported from CUDA use.
#include "tests/races/race.h"

static const unsigned char seven = 7, nine = 9;

// The legacy queue orders all queues; a thread's default queue orders nothing.
RACE(thread_queue_is_not_the_legacy_queue, READ_AFTER_WRITE)
{
    weir_queue *base;

    if (race->mended)
        must(weir_legacy_queue(race->device, &base));
    else
        must(weir_thread_queue(race->device, &base));
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_copy(base, c, 0, b, 0, SIZE));     // second
    must(weir_queue_sync(base, WEIR_FOREVER));
    race_expect(race, c, 0, SIZE, 7);
}

// Work on the legacy queue is ordered after both writers. Without it the writers, which waited for
// nothing, race.
RACE(barrier_by_the_legacy_queue, WRITE_AFTER_WRITE)
{
    weir_queue *legacy;
    struct weir_event barrier;

    must(weir_legacy_queue(race->device, &legacy));
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    if (race->mended)
        must(weir_queue_record(legacy, &barrier));
    must(weir_queue_fill(two, b, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 9);
}

// A sync with a thread's default queue waits for nothing else.
RACE(sync_of_the_default_queue, HOST_READ)
{
    weir_queue *base;

    if (race->mended)
        must(weir_legacy_queue(race->device, &base));
    else
        must(weir_thread_queue(race->device, &base));
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    must(weir_queue_sync(base, WEIR_FOREVER));
    host_sees(race, out, 0, SIZE, 7); // second
}
