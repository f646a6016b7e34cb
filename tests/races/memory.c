// The life of memory: pools, bytes that nothing wrote, two buffers on the same bytes.
#include "tests/races/race.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char seven = 7, nine = 9;

static weir_pool *make_pool(struct race *race, weir_placement placement)
{
    const struct weir_pool_params params = {.struct_size = sizeof params,
                                            .label = "pool",
                                            .placement = placement};
    weir_pool *pool;
    must(weir_pool_create(race->device, &params, &pool));
    return pool;
}

// Another queue still reads the memory when its own queue frees it and allocates it again.
RACE(block_reused_while_another_queue_reads, AFTER_FREE)
{
    weir_queue *own = race_queue(race, "own"), *reader = race_queue(race, "reader");
    weir_buffer *b = race_buffer(race, "b", SIZE, 0), *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, own, SIZE, &first));
    must(weir_queue_fill(own, first, 0, SIZE, &seven, 1));
    after(reader, own);
    must(weir_queue_copy(reader, b, 0, first, 0, SIZE)); // first
    mend(race, own, reader);
    must(weir_pool_free(own, &first)); // second
    must(weir_pool_allocate(pool, own, SIZE, &second));
    must(weir_queue_fill(own, second, 0, SIZE, &nine, 1));
    race_expect(race, b, 0, SIZE, 7);
    must(weir_pool_free(own, &second));
    weir_pool_destroy(&pool);
}

// A bucket of gradients is freed while another queue still reduces it.
RACE(bucket_freed_too_early, AFTER_FREE, .kernels = true)
{
    weir_queue *compute = race_queue(race, "compute"), *reduce = race_queue(race, "reduce");
    weir_buffer *gradients = race_buffer(race, "gradients", SIZE, 3), *bucket, *next;
    weir_buffer *total = race_buffer(race, "total", SIZE, 1);
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, compute, SIZE, &bucket));
    must(weir_queue_copy(compute, bucket, 0, gradients, 0, SIZE));
    after(reduce, compute);
    must(launch(reduce, "sum", weir_in(bucket, 0, SIZE), weir_in(gradients, 0, SIZE), // first
                weir_out(total, 0, SIZE)));
    mend(race, compute, reduce);
    must(weir_pool_free(compute, &bucket)); // second
    must(weir_pool_allocate(pool, compute, SIZE, &next));
    must(launch(compute, "add", weir_in(gradients, 0, SIZE), weir_out(next, 0, SIZE), 90u));
    race_expect(race, total, 0, SIZE, 6);
    must(weir_pool_free(compute, &next));
    weir_pool_destroy(&pool);
}

// A queue frees a buffer that another queue writes, without waiting for the write.
RACE(freed_before_it_is_written, AFTER_FREE)
{
    weir_queue *own = race_queue(race, "own"), *writer = race_queue(race, "writer");
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);
    weir_buffer *first, *second;

    must(weir_pool_allocate(pool, own, SIZE, &first));
    after(writer, own);
    must(weir_queue_fill(writer, first, 0, SIZE, &seven, 1)); // first
    mend(race, own, writer);
    must(weir_pool_free(own, &first)); // second
    must(weir_pool_allocate(pool, own, SIZE, &second));
    must(weir_queue_fill(own, second, 0, SIZE, &nine, 1));
    race_expect(race, second, 0, SIZE, 9);
    must(weir_pool_free(own, &second));
    weir_pool_destroy(&pool);
}

// Reused memory may be used by the queue that allocated it, and by queues that wait for it: an
// earlier owner of the block may still be at work.
RACE(block_handed_to_another_queue, WRITE_AFTER_READ)
{
    weir_queue *own = race_queue(race, "own"), *other = race_queue(race, "other");
    weir_buffer *b = race_buffer(race, "b", SIZE, 0), *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, own, SIZE, &first));
    must(weir_queue_fill(own, first, 0, SIZE, &seven, 1));
    must(weir_queue_copy(own, b, 0, first, 0, SIZE)); // first
    must(weir_pool_free(own, &first));
    must(weir_pool_allocate(pool, own, SIZE, &second));
    mend(race, other, own);
    must(weir_queue_fill(other, second, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 7);
    must(weir_pool_free(other, &second));
    weir_pool_destroy(&pool);
}

// The host writes a pinned block at once after allocating it; a copy may still read the block.
RACE(pinned_block_written_at_once, HOST_WRITE)
{
    weir_queue *queue = race_queue(race, "upload");
    weir_buffer *a = race_buffer(race, "a", SIZE, 0), *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_HOST);

    must(weir_pool_allocate(pool, queue, SIZE, &first));
    must(weir_queue_sync(queue, WEIR_FOREVER));
    host_puts(first, 0, SIZE, 7);
    must(weir_queue_copy(queue, a, 0, first, 0, SIZE)); // first
    must(weir_pool_free(queue, &first));
    must(weir_pool_allocate(pool, queue, SIZE, &second));
    if (race->mended)
        must(weir_queue_sync(queue, WEIR_FOREVER));
    host_puts(second, 0, SIZE, 9); // second
    race_expect(race, a, 0, SIZE, 7);
    must(weir_pool_free(queue, &second));
    weir_pool_destroy(&pool);
}

// Two buffers on the same memory of the caller's.
static weir_buffer *wrap(struct race *race, const char *label, void *memory, size_t size)
{
    const struct weir_wrap_params params = {.struct_size = sizeof params,
                                            .label = label,
                                            .pointer = memory,
                                            .size = size};
    weir_buffer *buffer;
    must(weir_buffer_wrap(race->device, &params, &buffer));
    return buffer;
}

RACE(two_buffers_on_the_same_memory, READ_AFTER_WRITE, .twice = true)
{
    weir_queue *one = race_queue(race, "one"), *two = race_queue(race, "two");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0);
    unsigned char *memory = aligned_alloc(4096, 4096);
    weir_buffer *out, *in;

    if (!memory)
        return;
    memset(memory, 9, 4096);
    out = wrap(race, "out", memory, 1024);
    in = wrap(race, "in", memory, 2048);
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, b, 0, in, 0, SIZE)); // second
    race_expect(race, b, 0, SIZE, 7);
    weir_buffer_destroy(&out);
    weir_buffer_destroy(&in);
    must(weir_device_trim(race->device));
    free(memory);
}

// Half of the input was never written.
RACE(read_of_unwritten_bytes, UNWRITTEN, .steady = "what unwritten bytes are is not defined")
{
    weir_queue *queue = race_queue(race, "queue");
    weir_buffer *a = race_blank(race, "a", SIZE, WEIR_PLACE_DEVICE);
    weir_buffer *b = race_buffer(race, "b", SIZE, 0);

    must(weir_queue_fill(queue, a, 0, race->mended ? SIZE : SIZE / 2, &seven, 1));
    must(weir_queue_copy(queue, b, 0, a, 0, SIZE)); // second
}

// A new allocation has no contents, also if its block had some.
RACE(read_of_a_fresh_block, UNWRITTEN, .steady = "what unwritten bytes are is not defined")
{
    weir_queue *queue = race_queue(race, "queue");
    weir_buffer *b = race_buffer(race, "b", SIZE, 0), *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, queue, SIZE, &first));
    must(weir_queue_fill(queue, first, 0, SIZE, &seven, 1));
    must(weir_pool_free(queue, &first));
    must(weir_pool_allocate(pool, queue, SIZE, &second));
    if (race->mended)
        must(weir_queue_fill(queue, second, 0, SIZE, &seven, 1));
    must(weir_queue_copy(queue, b, 0, second, 0, SIZE)); // second
    must(weir_pool_free(queue, &second));
    weir_pool_destroy(&pool);
}

// Pinned memory that the program forgot to fill.
RACE(upload_of_unwritten_memory, UNWRITTEN, .steady = "what unwritten bytes are is not defined")
{
    weir_queue *queue = race_queue(race, "upload");
    weir_buffer *in = race_blank(race, "in", SIZE, WEIR_PLACE_HOST);
    weir_buffer *a = race_buffer(race, "a", SIZE, 0);

    if (race->mended) {
        host_puts(in, 0, SIZE, 7);
    }
    must(weir_queue_copy(queue, a, 0, in, 0, SIZE)); // second
}
