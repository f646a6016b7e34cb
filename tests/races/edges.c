// Waits that are there but do not order what they should.
#include "tests/races/race.h"

// The record comes too early: the event does not cover what is submitted after it.
RACE(record_then_more_work, READ_AFTER_WRITE)
{
    struct weir_event uploaded;

    must(weir_queue_copy(one, b, 0, in, 0, SIZE / 2));
    must(weir_queue_record(one, &uploaded));
    must(weir_queue_copy(one, b, SIZE / 2, in, SIZE / 2, SIZE / 2)); // first
    if (race->mended)
        must(weir_queue_record(one, &uploaded));
    must(weir_queue_wait(two, uploaded));
    must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// The wait comes too late: after the operation that needs it.
RACE(wait_after_the_use, READ_AFTER_WRITE)
{
    struct weir_event filled;

    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_record(one, &filled));
    if (race->mended)
        must(weir_queue_wait(two, filled));
    must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
    if (!race->mended)
        must(weir_queue_wait(two, filled));
    race_expect(race, c, 0, SIZE, 7);
}

RACE(wait_for_another_event, READ_AFTER_WRITE)
{
    struct weir_event a_done, b_done;

    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_record(one, &a_done));
    must(weir_queue_fill(two, c, 0, SIZE, &nine, 1));
    must(weir_queue_record(two, &b_done));
    must(weir_queue_wait(three, race->mended ? a_done : b_done));
    must(weir_queue_copy(three, d, 0, b, 0, SIZE)); // second
    race_expect(race, d, 0, SIZE, 7);
}

// The right event, but another queue waits for it.
RACE(another_queue_waits, READ_AFTER_WRITE)
{
    struct weir_event filled;

    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_record(one, &filled));
    must(weir_queue_wait(race->mended ? three : two, filled));
    must(weir_queue_copy(three, c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// The event was recorded on a queue that has nothing to do with the fill.
RACE(record_on_another_queue, READ_AFTER_WRITE)
{
    struct weir_event filled;

    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_record(race->mended ? one : three, &filled));
    must(weir_queue_wait(two, filled));
    must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// In the second round the program waits for the event of the first.
RACE(event_of_the_round_before, READ_AFTER_WRITE)
{
    weir_buffer *x = race_buffer(race, "x", 2 * SIZE, 0), *y = race_buffer(race, "y", 2 * SIZE, 0);
    struct weir_event filled;

    for (size_t round = 0; round < 2; round++) {
        must(weir_queue_fill(one, x, round * SIZE, SIZE, &seven, 1)); // first
        if (round == 0 || race->mended)
            must(weir_queue_record(one, &filled));
        must(weir_queue_wait(two, filled));
        must(weir_queue_copy(two, y, round * SIZE, x, round * SIZE, SIZE)); // second
    }
    race_expect(race, y, 0, 2 * SIZE, 7);
}

// Every read must be ordered after the last write, not only after the first.
RACE(read_after_the_last_write, READ_AFTER_WRITE)
{
    struct weir_event filled_once, filled_twice;

    must(weir_queue_fill(one, b, 0, SIZE, &five, 1));
    must(weir_queue_record(one, &filled_once));
    must(weir_queue_wait(two, filled_once));
    must(weir_queue_fill(two, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_record(two, &filled_twice));
    must(weir_queue_wait(three, race->mended ? filled_twice : filled_once));
    must(weir_queue_copy(three, c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// The writer waits for one of the two readers.
RACE(two_readers_then_a_writer, WRITE_AFTER_READ)
{
    must(weir_queue_copy(one, b, 0, a, 0, SIZE)); // first
    must(weir_queue_copy(two, c, 0, a, 0, SIZE));
    mend(race, three, one);
    after(three, two);
    must(weir_queue_fill(three, a, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 7);
    race_expect(race, c, 0, SIZE, 7);
}

// The second reader is ordered after the writer, the first is not.
RACE(two_readers_after_a_writer, READ_AFTER_WRITE)
{
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    after(three, one);
    must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
    must(weir_queue_copy(three, d, 0, b, 0, SIZE));
    race_expect(race, c, 0, SIZE, 7);
    race_expect(race, d, 0, SIZE, 7);
}

// Ten queues pass bytes on, each a step further; the seventh does not wait.
RACE_OWN(chain_of_ten, READ_AFTER_WRITE)
{
    weir_queue *queues[10];
    weir_buffer *a = race_buffer(race, "a", 11 * SIZE, 0);

    for (size_t i = 0; i < 10; i++)
        queues[i] = race_queue(race, "link");
    must(weir_queue_fill(queues[0], a, 0, SIZE, &seven, 1));
    for (size_t i = 0; i < 10; i++) {
        if (i > 0 && (i != 6 || race->mended))
            after(queues[i], queues[i - 1]);
        must(weir_queue_copy(queues[i], a, (i + 1) * SIZE, a, i * SIZE, SIZE)); // first, second
    }
    race_expect(race, a, 10 * SIZE, SIZE, 7);
}

// The last queue reads what the first wrote: nine edges order them, and the first is missing.
RACE(end_of_a_chain_of_ten, READ_AFTER_WRITE)
{
    weir_queue *queues[10];

    for (size_t i = 0; i < 10; i++)
        queues[i] = race_queue(race, "link");
    must(weir_queue_fill(queues[0], b, 0, SIZE, &seven, 1)); // first
    for (size_t i = 1; i < 10; i++)
        if (i > 1 || race->mended)
            after(queues[i], queues[i - 1]);
    must(weir_queue_copy(queues[9], c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// A third queue waits for both writers; the reader waits for the third, whose event was recorded
// before its second wait.
RACE(merged_through_a_third_queue, READ_AFTER_WRITE)
{
    weir_queue *reader = race_queue(race, "reader");
    weir_buffer *x = race_buffer(race, "x", 2 * SIZE, 0), *y = race_buffer(race, "y", 2 * SIZE, 0);
    struct weir_event merged;

    must(weir_queue_fill(one, x, 0, SIZE, &seven, 1));
    must(weir_queue_fill(two, x, SIZE, SIZE, &seven, 1)); // first
    after(three, one);
    must(weir_queue_record(three, &merged));
    after(three, two);
    if (race->mended)
        must(weir_queue_record(three, &merged));
    must(weir_queue_wait(reader, merged));
    must(weir_queue_copy(reader, y, 0, x, 0, 2 * SIZE)); // second
    race_expect(race, y, 0, 2 * SIZE, 7);
}

// Eight writers, seven waits.
RACE_OWN(one_wait_of_many, READ_AFTER_WRITE)
{
    weir_queue *writers[8], *reader = race_queue(race, "reader");
    weir_buffer *a = race_buffer(race, "a", 8 * SIZE, 0), *b = race_buffer(race, "b", 8 * SIZE, 0);

    for (size_t i = 0; i < 8; i++) {
        writers[i] = race_queue(race, "writer");
        must(weir_queue_fill(writers[i], a, i * SIZE, SIZE, &seven, 1)); // first
    }
    for (size_t i = 0; i < 8; i++)
        if (i != 5 || race->mended)
            after(reader, writers[i]);
    must(weir_queue_copy(reader, b, 0, a, 0, 8 * SIZE)); // second
    race_expect(race, b, 0, 8 * SIZE, 7);
}

// Both branches wait for the fork, but the join waits for one of them.
RACE(join_of_one_branch, READ_AFTER_WRITE)
{
    weir_buffer *y = race_buffer(race, "y", 2 * SIZE, 0);
    weir_buffer *z = race_buffer(race, "z", 2 * SIZE, 0);

    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1));
    after(two, one);
    must(weir_queue_copy(one, y, 0, b, 0, SIZE));
    must(weir_queue_copy(two, y, SIZE, b, 0, SIZE)); // first
    mend(race, one, two);
    must(weir_queue_copy(one, z, 0, y, 0, 2 * SIZE)); // second
    race_expect(race, z, 0, 2 * SIZE, 7);
}

// Two queues wait for the same event, which orders neither of them after the other.
RACE(siblings_after_one_event, WRITE_AFTER_WRITE)
{
    must(weir_queue_fill(one, b, 0, SIZE, &five, 1));
    after(two, one);
    after(three, one);
    must(weir_queue_fill(two, b, 0, SIZE, &seven, 1)); // first
    mend(race, three, two);
    must(weir_queue_fill(three, b, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 9);
}

// The edge has the wrong direction.
RACE(wait_in_the_wrong_direction, READ_AFTER_WRITE)
{
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    if (race->mended)
        after(two, one);
    else
        after(one, two);
    must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// The host waits for a queue, and submits what needs another one.
RACE(sync_of_another_queue, READ_AFTER_WRITE)
{
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_fill(two, c, 0, SIZE, &nine, 1));
    must(weir_queue_sync(race->mended ? one : two, WEIR_FOREVER));
    after(three, two);
    must(weir_queue_copy(three, c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// Requests on queues of their own share a scratch buffer.
RACE(scratch_of_two_requests, WRITE_AFTER_READ)
{
    weir_queue *requests[] = {race_queue(race, "request 0"), race_queue(race, "request 1")};

    must(weir_queue_copy(requests[0], b, 0, a, 0, SIZE));
    must(weir_queue_copy(requests[0], c, 0, b, 0, SIZE)); // first
    mend(race, requests[1], requests[0]);
    must(weir_queue_fill(requests[1], b, 0, SIZE, &nine, 1)); // second
    race_expect(race, c, 0, SIZE, 7);
}

// The default queues that programs ported from CUDA use.

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
