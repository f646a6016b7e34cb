// Something that is used in turns, and used again too early: slots of a ring, double buffers,
// batches of a loader, chunks.
#include "patterns/chunks.h"
#include "patterns/loader.h"
#include "patterns/queue_pool.h"
#include "tests/races/race.h"

enum {
    SLOTS = 3,
    FRAMES = 5,
};

// A ring of three slots and five frames. A slot is free when its download is done.
RACE(slot_of_a_ring, WRITE_AFTER_READ)
{
    weir_buffer *src = race_pinned(race, "src", FRAMES * SIZE, 7);
    weir_buffer *dst = race_pinned(race, "dst", FRAMES * SIZE, 0), *slots[SLOTS];
    struct weir_event downloaded[SLOTS];

    must(weir_queue_fill(one, src, SLOTS * SIZE, 2 * SIZE, &nine, 1));
    for (size_t i = 0; i < SLOTS; i++)
        slots[i] = race_buffer(race, "slot", SIZE, 0);
    for (size_t frame = 0; frame < FRAMES; frame++) {
        const size_t i = frame % SLOTS;
        if (race->mended && frame >= SLOTS)
            must(weir_queue_wait(one, downloaded[i]));
        must(weir_queue_copy(one, slots[i], 0, src, frame * SIZE, SIZE)); // second
        after(two, one);
        must(weir_queue_copy(two, dst, frame * SIZE, slots[i], 0, SIZE)); // first
        must(weir_queue_record(two, &downloaded[i]));
    }
    race_expect(race, dst, 0, SLOTS * SIZE, 7);
    race_expect(race, dst, SLOTS * SIZE, 2 * SIZE, 9);
}

// The program waits for the slot before its own: the event's index is off by one.
RACE_OWN(ring_index_off_by_one, WRITE_AFTER_READ)
{
    weir_queue *upload = race_queue(race, "upload");
    weir_queue *downloads[SLOTS];
    weir_buffer *in = race_pinned(race, "in", FRAMES * SIZE, 7);
    weir_buffer *out = race_pinned(race, "out", FRAMES * SIZE, 0), *slots[SLOTS];
    struct weir_event downloaded[SLOTS];

    must(weir_queue_fill(upload, in, SLOTS * SIZE, 2 * SIZE, &nine, 1));
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = race_buffer(race, "slot", SIZE, 0);
        downloads[i] = race_queue(race, "download");
    }
    for (size_t frame = 0; frame < FRAMES; frame++) {
        const size_t i = frame % SLOTS;
        if (frame >= SLOTS)
            must(weir_queue_wait(upload, downloaded[race->mended ? i : (i + 2) % SLOTS]));
        must(weir_queue_copy(upload, slots[i], 0, in, frame * SIZE, SIZE)); // second
        after(downloads[i], upload);
        must(weir_queue_copy(downloads[i], out, frame * SIZE, slots[i], 0, SIZE)); // first
        must(weir_queue_record(downloads[i], &downloaded[i]));
    }
    race_expect(race, out, 0, SLOTS * SIZE, 7);
}

// Two buffers in turns; the consumer reads the one that is being filled.
RACE(double_buffer_index_off_by_one, READ_AFTER_WRITE)
{
    weir_buffer *halves = race_buffer(race, "halves", 2 * SIZE, 0);
    struct weir_event filled[2];

    for (size_t i = 0; i < 2; i++) {
        const unsigned char value = (unsigned char)(i + 1);
        must(weir_queue_fill(one, halves, i * SIZE, SIZE, &value, 1)); // first
        must(weir_queue_record(one, &filled[i]));
    }
    must(weir_queue_wait(two, filled[0]));
    must(weir_queue_copy(two, b, 0, halves, race->mended ? 0 : SIZE, SIZE)); // second
    race_expect(race, b, 0, SIZE, race->mended ? 1 : 2);
}

// The host prepares a frame in the slot's pinned memory when the slot's upload is done: it waits
// for the upload of another slot.
RACE_OWN(slot_prepared_too_early, HOST_WRITE)
{
    weir_queue *uploads[] = {race_queue(race, "upload 0"), race_queue(race, "upload 1")};
    weir_buffer *slots[] = {race_pinned(race, "slot 0", SIZE, 0),
                            race_pinned(race, "slot 1", SIZE, 0)};
    weir_buffer *a = race_buffer(race, "a", 3 * SIZE, 0);
    struct weir_event uploaded[2];

    for (size_t frame = 0; frame < 3; frame++) {
        if (frame == 2)
            must(weir_event_sync(uploaded[race->mended ? 0 : 1], WEIR_FOREVER));
        host_puts(slots[frame % 2], 0, SIZE, (int)frame + 1);                          // second
        must(weir_queue_copy(uploads[frame % 2], a, frame * SIZE, slots[frame % 2], 0, // first
                             SIZE));
        must(weir_queue_record(uploads[frame % 2], &uploaded[frame % 2]));
    }
    race_expect(race, a, 0, SIZE, 1);
    race_expect(race, a, SIZE, SIZE, 2);
}

// The result of a slot is downloaded without a wait for its last stage.
RACE(download_of_a_slot, READ_AFTER_WRITE)
{
    weir_queue *stages[] = {race_queue(race, "blur"), race_queue(race, "sharpen")};

    must(weir_queue_copy(stages[0], b, 0, a, 0, SIZE));
    after(stages[1], stages[0]);
    must(weir_queue_copy(stages[1], c, 0, b, 0, SIZE)); // first
    after(one, stages[race->mended ? 1 : 0]);
    must(weir_queue_copy(one, out, 0, c, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 7);
}

static weir_status make_batch(void *user, uint64_t index, void *memory, size_t capacity,
                              size_t *out_size)
{
    memset(memory, (int)index + 1, capacity);
    *out_size = index < 4 ? capacity : 0;
    return WEIR_OK;
}

// A batch is released after the queue that does not use it: the loader fills its slot again while
// the other queue still reads it.
RACE(batch_released_after_another_queue, WRITE_AFTER_READ)
{
    weir_buffer *seen = race_buffer(race, "seen", 4 * SIZE, 0);
    const struct weir_loader_params params = {.struct_size = sizeof params,
                                              .device = race->device,
                                              .label = "batches",
                                              .batch_bytes = SIZE,
                                              .slot_count = 2,
                                              .source = make_batch};
    struct weir_batch batch;
    weir_loader *loader;

    must(weir_loader_create(&params, &loader));
    for (must(weir_loader_next(loader, one, &batch)); batch.buffer;
         must(weir_loader_next(loader, one, &batch))) {
        must(weir_queue_copy(one, seen, batch.index * SIZE, batch.buffer, 0, SIZE)); // first
        must(weir_loader_release(loader, &batch, race->mended ? one : two));
    }
    for (size_t i = 0; i < 4; i++)
        race_expect(race, seen, i * SIZE, SIZE, (int)i + 1);
    must(weir_loader_destroy(&loader));
}

// A job of four chunks whose "kernel" is a copy.
struct job {
    weir_buffer *in, *out;
};

static weir_status copy_chunk(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct job *job = user;
    return weir_queue_copy(queue, job->out, chunk->out_offset, job->in, chunk->in_offset,
                           chunk->in_size);
}

static weir_chunks *make_chunks(struct race *race, struct job *job, weir_buffer *src,
                                weir_buffer *dst)
{
    const struct weir_chunks_params params = {.struct_size = sizeof params,
                                              .device = race->device,
                                              .label = "job",
                                              .element_count = 1024,
                                              .in_bytes = 1,
                                              .out_bytes = 1,
                                              .src = {src, 0},
                                              .in = {job->in, 0},
                                              .out = {job->out, 0},
                                              .dst = {dst, 0},
                                              .kernel = copy_chunk,
                                              .user = job,
                                              .chunk_count = 4};
    weir_chunks *chunks;
    must(weir_chunks_create(&params, &chunks));
    return chunks;
}

// The results of a run are copied on, without the event of the run.
RACE_OWN(result_of_chunks_without_their_event, WRITE_AFTER_WRITE)
{
    weir_queue *clear = race_queue(race, "clear");
    weir_buffer *src = race_pinned(race, "src", 1024, 7), *dst = race_pinned(race, "dst", 1024, 0);
    struct job job = {race_buffer(race, "in", 1024, 0), race_buffer(race, "out", 1024, 0)};
    weir_chunks *chunks = make_chunks(race, &job, src, dst);
    struct weir_event done, cleared;

    must(weir_queue_fill(clear, dst, 0, 1024, &nine, 1)); // first
    must(weir_queue_record(clear, &cleared));
    must(weir_chunks_run(chunks, &cleared, race->mended ? 1 : 0, &done));
    must(weir_event_sync(done, WEIR_FOREVER));
    race_expect(race, dst, 0, 1024, 7);
    weir_chunks_destroy(&chunks);
}

// The host fills the source of the next run while the last run still reads it.
RACE_OWN(source_of_chunks_written_too_early, HOST_WRITE)
{
    weir_buffer *src = race_pinned(race, "src", 1024, 7), *dst = race_pinned(race, "dst", 1024, 0);
    struct job job = {race_buffer(race, "in", 1024, 0), race_buffer(race, "out", 1024, 0)};
    weir_chunks *chunks = make_chunks(race, &job, src, dst);
    struct weir_event done;

    must(weir_chunks_run(chunks, NULL, 0, &done));
    if (race->mended)
        must(weir_event_sync(done, WEIR_FOREVER));
    host_puts(src, 0, 1024, 9); // second
    if (!race->mended)
        must(weir_event_sync(done, WEIR_FOREVER));
    race_expect(race, dst, 0, 1024, 7);
    weir_chunks_destroy(&chunks);
}

// Two pieces of work that get their queues from a pool one by one are not in order.
RACE(two_queues_of_a_queue_pool, READ_AFTER_WRITE)
{
    weir_queue_pool *pool;
    weir_queue *left, *right;

    must(weir_queue_pool_create(WEIR_PARAMS(weir_queue_pool, .device = race->device,
                                            .label = "requests",
                                            .queue_counts = {[WEIR_QUEUE_NORMAL] = 2}),
                                &pool));
    must(weir_queue_pool_get(pool, WEIR_QUEUE_NORMAL, &left));
    must(weir_queue_pool_get(pool, WEIR_QUEUE_NORMAL, &right));
    must(weir_queue_fill(left, b, 0, SIZE, &nine, 1));                    // first
    must(weir_queue_copy(race->mended ? left : right, c, 0, b, 0, SIZE)); // second
    must(weir_queue_pool_sync_all(pool, WEIR_FOREVER));
    race_expect(race, c, 0, SIZE, 9);
    weir_queue_pool_destroy(&pool);
}
