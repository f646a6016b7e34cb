// The life of memory: pools, bytes that nothing wrote, two buffers on the same bytes.
#include "tests/races/race.h"

static weir_pool *make_pool(struct race *race, weir_placement placement)
{
    weir_pool *pool;
    must(weir_pool_create(race->device,
                          WEIR_PARAMS(weir_pool, .label = "pool", .placement = placement), &pool));
    return pool;
}

// Another queue still reads the memory when its own queue frees it and allocates it again.
RACE(block_reused_while_another_queue_reads, AFTER_FREE)
{
    weir_buffer *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, one, SIZE, &first));
    must(weir_queue_fill(one, first, 0, SIZE, &seven, 1));
    after(two, one);
    must(weir_queue_copy(two, b, 0, first, 0, SIZE)); // first
    mend(race, one, two);
    must(weir_pool_free(one, &first)); // second
    must(weir_pool_allocate(pool, one, SIZE, &second));
    must(weir_queue_fill(one, second, 0, SIZE, &nine, 1));
    race_expect(race, b, 0, SIZE, 7);
    must(weir_pool_free(one, &second));
    weir_pool_destroy(&pool);
}

// A bucket of gradients is freed while another queue still reduces it.
RACE(bucket_freed_too_early, AFTER_FREE, .kernels = true)
{
    weir_buffer *gradients = race_buffer(race, "gradients", SIZE, 3), *bucket, *next;
    weir_buffer *total = race_buffer(race, "total", SIZE, 1);
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, one, SIZE, &bucket));
    must(weir_queue_copy(one, bucket, 0, gradients, 0, SIZE));
    after(two, one);
    must(launch(two, "sum", weir_in(bucket, 0, SIZE), weir_in(gradients, 0, SIZE), // first
                weir_out(total, 0, SIZE)));
    mend(race, one, two);
    must(weir_pool_free(one, &bucket)); // second
    must(weir_pool_allocate(pool, one, SIZE, &next));
    must(launch(one, "add", weir_in(gradients, 0, SIZE), weir_out(next, 0, SIZE), 90u));
    race_expect(race, total, 0, SIZE, 6);
    must(weir_pool_free(one, &next));
    weir_pool_destroy(&pool);
}

// A queue frees a buffer that another queue writes, without waiting for the write.
RACE(freed_before_it_is_written, AFTER_FREE)
{
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);
    weir_buffer *first, *second;

    must(weir_pool_allocate(pool, one, SIZE, &first));
    after(two, one);
    must(weir_queue_fill(two, first, 0, SIZE, &seven, 1)); // first
    mend(race, one, two);
    must(weir_pool_free(one, &first)); // second
    must(weir_pool_allocate(pool, one, SIZE, &second));
    must(weir_queue_fill(one, second, 0, SIZE, &nine, 1));
    race_expect(race, second, 0, SIZE, 9);
    must(weir_pool_free(one, &second));
    weir_pool_destroy(&pool);
}

// Reused memory may be used by the queue that allocated it, and by queues that wait for it: an
// earlier owner of the block may still be at work.
RACE(block_handed_to_another_queue, WRITE_AFTER_READ)
{
    weir_buffer *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, one, SIZE, &first));
    must(weir_queue_fill(one, first, 0, SIZE, &seven, 1));
    must(weir_queue_copy(one, b, 0, first, 0, SIZE)); // first
    must(weir_pool_free(one, &first));
    must(weir_pool_allocate(pool, one, SIZE, &second));
    mend(race, two, one);
    must(weir_queue_fill(two, second, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 7);
    must(weir_pool_free(two, &second));
    weir_pool_destroy(&pool);
}

// The host writes a pinned block at once after allocating it; a copy may still read the block.
RACE(pinned_block_written_at_once, HOST_WRITE)
{
    weir_buffer *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_HOST);

    must(weir_pool_allocate(pool, one, SIZE, &first));
    must(weir_queue_sync(one, WEIR_FOREVER));
    host_puts(first, 0, SIZE, 7);
    must(weir_queue_copy(one, b, 0, first, 0, SIZE)); // first
    must(weir_pool_free(one, &first));
    must(weir_pool_allocate(pool, one, SIZE, &second));
    if (race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    host_puts(second, 0, SIZE, 9); // second
    race_expect(race, b, 0, SIZE, 7);
    must(weir_pool_free(one, &second));
    weir_pool_destroy(&pool);
}

// Two buffers on the same memory of the caller's.
static weir_buffer *wrap(struct race *race, const char *label, void *memory, size_t size)
{
    weir_buffer *buffer;
    must(weir_buffer_wrap(race->device,
                          WEIR_PARAMS(weir_wrap, .label = label, .pointer = memory, .size = size),
                          &buffer));
    return buffer;
}

RACE(two_buffers_on_the_same_memory, READ_AFTER_WRITE, .twice = true)
{
    unsigned char *memory = aligned_alloc(4096, 4096);
    weir_buffer *dst, *src;

    if (!memory)
        return;
    memset(memory, 9, 4096);
    dst = wrap(race, "out", memory, 1024);
    src = wrap(race, "in", memory, 2048);
    must(weir_queue_copy(one, dst, 0, a, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, b, 0, src, 0, SIZE)); // second
    race_expect(race, b, 0, SIZE, 7);
    weir_buffer_destroy(&dst);
    weir_buffer_destroy(&src);
    must(weir_device_trim(race->device));
    free(memory);
}

// Half of the input was never written.
RACE(read_of_unwritten_bytes, UNWRITTEN, .steady = "what unwritten bytes are is not defined")
{
    weir_buffer *x = race_blank(race, "x", SIZE, WEIR_PLACE_DEVICE);

    must(weir_queue_fill(one, x, 0, race->mended ? SIZE : SIZE / 2, &seven, 1));
    must(weir_queue_copy(one, b, 0, x, 0, SIZE)); // second
}

// A new allocation has no contents, also if its block had some.
RACE(read_of_a_fresh_block, UNWRITTEN, .steady = "what unwritten bytes are is not defined")
{
    weir_buffer *first, *second;
    weir_pool *pool = make_pool(race, WEIR_PLACE_DEVICE);

    must(weir_pool_allocate(pool, one, SIZE, &first));
    must(weir_queue_fill(one, first, 0, SIZE, &seven, 1));
    must(weir_pool_free(one, &first));
    must(weir_pool_allocate(pool, one, SIZE, &second));
    if (race->mended)
        must(weir_queue_fill(one, second, 0, SIZE, &seven, 1));
    must(weir_queue_copy(one, b, 0, second, 0, SIZE)); // second
    must(weir_pool_free(one, &second));
    weir_pool_destroy(&pool);
}

// Pinned memory that the program forgot to fill.
RACE(upload_of_unwritten_memory, UNWRITTEN, .steady = "what unwritten bytes are is not defined")
{
    weir_buffer *src = race_blank(race, "src", SIZE, WEIR_PLACE_HOST);

    if (race->mended) {
        host_puts(src, 0, SIZE, 7);
    }
    must(weir_queue_copy(one, b, 0, src, 0, SIZE)); // second
}
