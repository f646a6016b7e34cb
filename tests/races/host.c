// The host and the device: pinned memory that one of them uses too early.
#include "tests/races/race.h"

#include <pthread.h>
#include <semaphore.h>

// Reads the first byte of a range that is being accessed. Volatile, because the device writes it.
static bool is(const void *bytes, int value)
{
    return *(const volatile unsigned char *)bytes == value;
}

RACE(host_reads_before_the_copy_is_done, HOST_READ)
{
    struct weir_event copied;

    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    must(weir_queue_record(one, &copied));
    if (race->mended)
        must(weir_event_sync(copied, WEIR_FOREVER));
    host_sees(race, out, 0, SIZE, 7); // second
}

RACE(host_reads_before_the_kernel_is_done, HOST_READ, .kernels = true, .pinned = true)
{
    weir_buffer *x = race_buffer(race, "x", SIZE, 6);

    must(launch(one, "add", weir_in(x, 0, SIZE), weir_out(out, 0, SIZE), 1u)); // first
    if (race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    host_sees(race, out, 0, SIZE, 7); // second
}

RACE(host_writes_the_source_of_a_copy, HOST_WRITE)
{
    must(weir_queue_copy(one, b, 0, in, 0, SIZE)); // first
    if (race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    host_puts(in, 0, SIZE, 9); // second
    race_expect(race, b, 0, SIZE, 7);
}

RACE(host_clears_what_a_copy_writes, HOST_WRITE)
{
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    if (race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    host_puts(out, 0, SIZE, 9); // second
    race_expect(race, out, 0, SIZE, 9);
}

// The access is still open when the copy of its bytes is submitted.
RACE(copy_during_an_access, OPEN_ACCESS)
{
    void *bytes;

    must(weir_host_begin(out, 0, SIZE, WEIR_ACCESS_WRITE, &bytes)); // first
    if (race->mended) {
        memset(bytes, 7, SIZE);
        must(weir_host_end(out, 0, SIZE, WEIR_ACCESS_WRITE));
    }
    must(weir_queue_copy(one, b, 0, out, 0, SIZE)); // second
    if (!race->mended) {
        must(weir_queue_flush(one));
        memset(bytes, 7, SIZE);
        must(weir_host_end(out, 0, SIZE, WEIR_ACCESS_WRITE));
    }
    race_expect(race, b, 0, SIZE, 7);
}

RACE(copy_to_bytes_that_the_host_reads, OPEN_ACCESS)
{
    weir_buffer *x = race_buffer(race, "x", SIZE, 9);
    void *bytes;

    must(weir_host_begin(in, 0, SIZE, WEIR_ACCESS_READ, &bytes)); // first
    if (race->mended) {
        race_saw(race, is(bytes, 7));
        must(weir_host_end(in, 0, SIZE, WEIR_ACCESS_READ));
    }
    must(weir_queue_copy(one, in, 0, x, 0, SIZE)); // second
    if (!race->mended) {
        must(weir_queue_sync(one, WEIR_FOREVER));
        race_saw(race, is(bytes, 7));
        must(weir_host_end(in, 0, SIZE, WEIR_ACCESS_READ));
    }
}

// The program ends its access to half of the bytes only.
RACE(end_of_half_an_access, OPEN_ACCESS, .steady = "the host has written all bytes by then")
{
    void *bytes, *more;

    must(weir_host_begin(out, 0, SIZE / 2, WEIR_ACCESS_WRITE, &bytes));
    must(weir_host_begin(out, SIZE / 2, SIZE / 2, WEIR_ACCESS_WRITE, &more)); // first
    memset(bytes, 7, SIZE / 2);
    memset(more, 7, SIZE / 2);
    must(weir_host_end(out, 0, SIZE / 2, WEIR_ACCESS_WRITE));
    if (race->mended)
        must(weir_host_end(out, SIZE / 2, SIZE / 2, WEIR_ACCESS_WRITE));
    must(weir_queue_copy(one, b, 0, out, 0, SIZE)); // second
    if (!race->mended)
        must(weir_host_end(out, SIZE / 2, SIZE / 2, WEIR_ACCESS_WRITE));
    race_expect(race, b, 0, SIZE, 7);
}

RACE(sync_before_the_last_copy, HOST_READ)
{
    must(weir_queue_copy(one, out, 0, a, 0, SIZE / 2));
    if (!race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    must(weir_queue_copy(one, out, SIZE / 2, a, SIZE / 2, SIZE / 2)); // first
    if (race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    host_sees(race, out, 0, SIZE, 7); // second
}

RACE(sync_with_an_earlier_event, HOST_READ)
{
    struct weir_event early, late;

    must(weir_queue_copy(one, out, 0, a, 0, SIZE / 2));
    must(weir_queue_record(one, &early));
    must(weir_queue_copy(one, out, SIZE / 2, a, SIZE / 2, SIZE / 2)); // first
    must(weir_queue_record(one, &late));
    must(weir_event_sync(race->mended ? late : early, WEIR_FOREVER));
    host_sees(race, out, 0, SIZE, 7); // second
}

RACE(sync_of_the_wrong_queue, HOST_READ)
{
    must(weir_queue_copy(one, b, 0, in, 0, SIZE));
    after(two, one);
    must(weir_queue_copy(two, out, 0, b, 0, SIZE)); // first
    must(weir_queue_sync(race->mended ? two : one, WEIR_FOREVER));
    host_sees(race, out, 0, SIZE, 7); // second
}

// The program asks until an event is complete, which was recorded before the copy.
RACE(query_of_an_earlier_event, HOST_READ)
{
    struct weir_event before, copied;

    must(weir_queue_record(one, &before));
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    must(weir_queue_record(one, &copied));
    while (weir_event_query(race->mended ? copied : before) == WEIR_NOT_READY)
        continue;
    host_sees(race, out, 0, SIZE, 7); // second
}

// A host function that ends when the program lets it.
static weir_status pass_gate(void *user)
{
    while (sem_wait(user) != 0)
        continue;
    return WEIR_OK;
}

// WEIR_NOT_READY is not an error, so a program that looks only for errors goes on.
RACE(not_ready_taken_as_done, HOST_READ)
{
    struct weir_event copied;
    sem_t gate;

    sem_init(&gate, 0, race->mended ? 1 : 0);
    must(weir_queue_host_call(one, pass_gate, &gate));
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    must(weir_queue_record(one, &copied));
    do
        must(weir_event_query(copied));
    while (race->mended && weir_event_query(copied) == WEIR_NOT_READY);
    host_sees(race, out, 0, SIZE, 7); // second
    sem_post(&gate);
    must(weir_queue_sync(one, WEIR_FOREVER));
    sem_destroy(&gate);
}

// WEIR_TIMEOUT is not an error either.
RACE(timeout_taken_as_done, HOST_READ)
{
    sem_t gate;

    sem_init(&gate, 0, race->mended ? 1 : 0);
    must(weir_queue_host_call(one, pass_gate, &gate));
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    must(weir_queue_sync(one, race->mended ? WEIR_FOREVER : 1000));
    host_sees(race, out, 0, SIZE, 7); // second
    sem_post(&gate);
    if (!race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    sem_destroy(&gate);
}

// The first of two copies is done, and the program reads both results.
RACE_OWN(sync_any_taken_as_sync_all, HOST_READ)
{
    weir_queue *queues[] = {race_queue(race, "left"), race_queue(race, "right")};
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *out = race_pinned(race, "out", 2 * SIZE, 0);
    struct weir_event copied[2];
    size_t which;

    for (size_t i = 0; i < 2; i++) {
        must(weir_queue_copy(queues[i], out, i * SIZE, a, 0, SIZE)); // first
        must(weir_queue_record(queues[i], &copied[i]));
    }
    if (race->mended)
        must(weir_event_sync_all(copied, 2, WEIR_FOREVER));
    else
        must(weir_event_sync_any(copied, 2, WEIR_FOREVER, &which));
    host_sees(race, out, 0, 2 * SIZE, 7); // second
}

// weir_download() blocks until its own copy is done, and waits for no other queue.
RACE(download_of_another_queues_result, READ_AFTER_WRITE)
{
    unsigned char bytes[SIZE];

    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    must(weir_download(two, bytes, b, 0, SIZE)); // second
    race_saw(race, all_bytes(bytes, SIZE, 7));
}

RACE(upload_over_what_a_queue_reads, WRITE_AFTER_READ)
{
    unsigned char bytes[SIZE];

    memset(bytes, 9, SIZE);
    must(weir_queue_copy(one, b, 0, a, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_upload(two, a, 0, bytes, SIZE)); // second
    race_expect(race, b, 0, SIZE, 7);
}

// Two threads, of which one is joined before the other begins: that orders the calls, not the work.
struct submission {
    weir_queue *queue;
    weir_buffer *dst, *src;
};

static void *submit_fill(void *user)
{
    const struct submission *fill = user;
    must(weir_queue_fill(fill->queue, fill->dst, 0, SIZE, &seven, 1)); // first
    return NULL;
}

static void *submit_copy(void *user)
{
    const struct submission *copy = user;
    must(weir_queue_copy(copy->queue, copy->dst, 0, copy->src, 0, SIZE)); // second
    return NULL;
}

RACE(threads_that_are_joined, READ_AFTER_WRITE)
{
    struct submission fill = {one, b, NULL}, copy = {two, c, b};
    pthread_t thread;

    pthread_create(&thread, NULL, submit_fill, &fill);
    pthread_join(thread, NULL);
    mend(race, two, one);
    pthread_create(&thread, NULL, submit_copy, &copy);
    pthread_join(thread, NULL);
    race_expect(race, c, 0, SIZE, 7);
}

// The host writes the next frame to the memory from which the last one is still copied.
RACE(host_writes_the_next_frame, HOST_WRITE)
{
    weir_buffer *x = race_buffer(race, "x", 2 * SIZE, 0);

    for (int frame = 0; frame < 2; frame++) {
        host_puts(in, 0, SIZE, frame == 0 ? seven : nine);                // second
        must(weir_queue_copy(one, x, (size_t)frame * SIZE, in, 0, SIZE)); // first
        if (race->mended)
            must(weir_queue_sync(one, WEIR_FOREVER));
    }
    race_expect(race, x, 0, SIZE, 7);
}
