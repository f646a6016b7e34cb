// Loops as they are published, each with its defect: pipelines of stages, prefetching loaders,
// chunked copies, a frozen encoder with a trained head.
#include "tests/races/race.h"

enum {
    FRAMES = 3,
};

// Three stages with a queue each and buffers for each frame. The published processor has no event
// between its stages at all.
RACE_OWN(three_stages_without_events, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *preprocess = race_queue(race, "preprocess"), *encode = race_queue(race, "encode");
    weir_queue *decode = race_queue(race, "decode");
    weir_buffer *images = race_pinned(race, "images", FRAMES * SIZE, 1);
    weir_buffer *a = race_buffer(race, "pixels", FRAMES * SIZE, 0);
    weir_buffer *b = race_buffer(race, "features", FRAMES * SIZE, 0);
    weir_buffer *c = race_buffer(race, "answers", FRAMES * SIZE, 0);

    for (size_t i = 0; i < FRAMES * SIZE; i += SIZE) {
        must(weir_queue_copy(preprocess, a, i, images, i, SIZE)); // first a
        mend(race, encode, preprocess);
        must(launch(encode, "add", weir_in(a, i, SIZE), weir_out(b, i, SIZE), // second a, first b
                    10u));
        mend(race, decode, encode);
        must(launch(decode, "add", weir_in(b, i, SIZE), weir_out(c, i, SIZE), 100u)); // second b
    }
    race_expect(race, c, 0, FRAMES * SIZE, 111);
}

// The same with the first event only.
RACE_OWN(three_stages_with_one_event, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *preprocess = race_queue(race, "preprocess"), *encode = race_queue(race, "encode");
    weir_queue *decode = race_queue(race, "decode");
    weir_buffer *images = race_pinned(race, "images", FRAMES * SIZE, 1);
    weir_buffer *a = race_buffer(race, "pixels", FRAMES * SIZE, 0);
    weir_buffer *b = race_buffer(race, "features", FRAMES * SIZE, 0);
    weir_buffer *c = race_buffer(race, "answers", FRAMES * SIZE, 0);

    for (size_t i = 0; i < FRAMES * SIZE; i += SIZE) {
        must(weir_queue_copy(preprocess, a, i, images, i, SIZE));
        after(encode, preprocess);
        must(launch(encode, "add", weir_in(a, i, SIZE), weir_out(b, i, SIZE), 10u)); // first
        mend(race, decode, encode);
        must(launch(decode, "add", weir_in(b, i, SIZE), weir_out(c, i, SIZE), 100u)); // second
    }
    race_expect(race, c, 0, FRAMES * SIZE, 111);
}

// One image through three queues with events, then a synchronise: right, but for the event after
// the encoder, which stands before it here.
RACE_OWN(one_image_on_three_queues, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *preprocess = race_queue(race, "preprocess"), *encode = race_queue(race, "encode");
    weir_queue *decode = race_queue(race, "decode");
    weir_buffer *image = race_pinned(race, "image", SIZE, 1), *a = race_buffer(race, "a", SIZE, 0);
    weir_buffer *b = race_buffer(race, "b", SIZE, 0), *c = race_buffer(race, "c", SIZE, 0);
    struct weir_event encoded;

    must(weir_queue_copy(preprocess, a, 0, image, 0, SIZE));
    after(encode, preprocess);
    must(weir_queue_record(encode, &encoded));
    must(launch(encode, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 10u)); // first
    if (race->mended)
        must(weir_queue_record(encode, &encoded));
    must(weir_queue_wait(decode, encoded));
    must(launch(decode, "add", weir_in(b, 0, SIZE), weir_out(c, 0, SIZE), 100u)); // second
    must(weir_queue_sync(decode, WEIR_FOREVER));
    race_expect(race, c, 0, SIZE, 111);
}

// A loader with a queue for each of two buffers. A buffer is filled again while the consumer still
// computes on its last batch.
RACE_OWN(prefetch_refills_a_batch_in_use, WRITE_AFTER_READ, .kernels = true)
{
    weir_queue *loads[] = {race_queue(race, "load 0"), race_queue(race, "load 1")};
    weir_queue *train = race_queue(race, "train");
    weir_buffer *files = race_pinned(race, "files", 4 * SIZE, 1), *batches[2];
    weir_buffer *losses = race_buffer(race, "losses", 4 * SIZE, 0);

    must(weir_queue_fill(train, files, 2 * SIZE, 2 * SIZE, &nine, 1));
    must(weir_queue_sync(train, WEIR_FOREVER));
    batches[0] = race_buffer(race, "batch 0", SIZE, 0);
    batches[1] = race_buffer(race, "batch 1", SIZE, 0);
    for (size_t i = 0; i < 4; i++) {
        if (race->mended && i >= 2)
            after(loads[i % 2], train);
        must(weir_queue_copy(loads[i % 2], batches[i % 2], 0, files, i * SIZE, SIZE)); // second
        after(train, loads[i % 2]);
        must(launch(train, "add", weir_in(batches[i % 2], 0, SIZE), // first
                    weir_out(losses, i * SIZE, SIZE), 1u));
    }
    race_expect(race, losses, 0, 2 * SIZE, 2);
    race_expect(race, losses, 2 * SIZE, 2 * SIZE, 10);
}

// A copy of each chunk into host memory that does not wait, and a host that does not either.
RACE_OWN(chunks_read_before_the_synchronise, HOST_READ, .kernels = true)
{
    weir_queue *queues[] = {race_queue(race, "chunk 0"), race_queue(race, "chunk 1")};
    weir_buffer *in = race_pinned(race, "in", 2 * SIZE, 1),
                *out = race_pinned(race, "out", 2 * SIZE, 0);
    weir_buffer *a = race_buffer(race, "a", 2 * SIZE, 0), *b = race_buffer(race, "b", 2 * SIZE, 0);

    for (size_t i = 0; i < 2; i++) {
        must(weir_queue_copy(queues[i], a, i * SIZE, in, i * SIZE, SIZE));
        must(launch(queues[i], "add", weir_in(a, i * SIZE, SIZE), weir_out(b, i * SIZE, SIZE), 1u));
        must(weir_queue_copy(queues[i], out, i * SIZE, b, i * SIZE, SIZE)); // first
    }
    for (size_t i = 0; i < 2 && race->mended; i++)
        must(weir_queue_sync(queues[i], WEIR_FOREVER));
    host_sees(race, out, 0, 2 * SIZE, 2); // second
}

// A frozen encoder and a trained head on two queues: the encoder never waits for the input's copy.
RACE_OWN(encoder_reads_before_the_input_is_copied, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *copy = race_queue(race, "copy"), *encode = race_queue(race, "encode");
    weir_queue *head = race_queue(race, "head");
    weir_buffer *inputs = race_pinned(race, "inputs", 2 * SIZE, 1);
    weir_buffer *x = race_buffer(race, "x", 2 * SIZE, 0), *z = race_buffer(race, "z", 2 * SIZE, 0);
    weir_buffer *y = race_buffer(race, "y", 2 * SIZE, 0);

    for (size_t i = 0; i < 2 * SIZE; i += SIZE) {
        must(weir_queue_copy(copy, x, i, inputs, i, SIZE)); // first
        mend(race, encode, copy);
        must(launch(encode, "add", weir_in(x, i, SIZE), weir_out(z, i, SIZE), 10u)); // second
        after(head, encode);
        must(launch(head, "add", weir_in(z, i, SIZE), weir_out(y, i, SIZE), 100u));
    }
    race_expect(race, y, 0, 2 * SIZE, 111);
}

// The same loop with one buffer for the features, which the next step overwrites while the head
// still reads it.
RACE_OWN(features_reused_while_the_head_reads, WRITE_AFTER_READ, .kernels = true)
{
    weir_queue *encode = race_queue(race, "encode"), *head = race_queue(race, "head");
    weir_buffer *x = race_buffer(race, "x", 2 * SIZE, 1), *z = race_buffer(race, "z", SIZE, 0);
    weir_buffer *y = race_buffer(race, "y", 2 * SIZE, 0);

    for (size_t i = 0; i < 2; i++) {
        if (race->mended && i > 0)
            after(encode, head);
        must(launch(encode, "add", weir_in(x, i * SIZE, SIZE), weir_out(z, 0, SIZE), // second
                    i == 0 ? 10u : 20u));
        after(head, encode);
        must(launch(head, "add", weir_in(z, 0, SIZE), weir_out(y, i * SIZE, SIZE), 100u)); // first
    }
    race_expect(race, y, 0, SIZE, 111);
    race_expect(race, y, SIZE, SIZE, 121);
}

// One tensor, updated on two queues: called a false dependency where it was published.
RACE_OWN(shared_tensor_updated_twice, WRITE_AFTER_WRITE, .kernels = true)
{
    weir_queue *one = race_queue(race, "one"), *two = race_queue(race, "two");
    weir_buffer *shared = race_buffer(race, "shared", SIZE, 1);

    must(launch(one, "set", weir_out(shared, 0, SIZE), 2u)); // first
    mend(race, two, one);
    must(launch(two, "set", weir_out(shared, 0, SIZE), 5u)); // second
    must(launch(two, "bump", weir_inout(shared, 0, SIZE), 1u));
    race_expect(race, shared, 0, SIZE, 6);
}

// A product, its download and the next upload, each on a queue of its own: the download begins
// before the product is there.
RACE_OWN(download_before_the_product, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *compute = race_queue(race, "compute"), *down = race_queue(race, "down");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *c = race_buffer(race, "c", SIZE, 0);
    weir_buffer *out = race_pinned(race, "out", SIZE, 0);

    must(launch(compute, "sum", weir_in(a, 0, SIZE), weir_in(a, 0, SIZE), // first
                weir_out(c, 0, SIZE)));
    mend(race, down, compute);
    must(weir_queue_copy(down, out, 0, c, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 14);
}

// … and the upload overwrites the operand that the product reads.
RACE_OWN(upload_over_the_operand, WRITE_AFTER_READ, .kernels = true)
{
    weir_queue *compute = race_queue(race, "compute"), *up = race_queue(race, "up");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *c = race_buffer(race, "c", SIZE, 0);
    weir_buffer *next = race_pinned(race, "next", SIZE, 9);

    must(launch(compute, "sum", weir_in(a, 0, SIZE), weir_in(a, 0, SIZE), // first
                weir_out(c, 0, SIZE)));
    mend(race, up, compute);
    must(weir_queue_copy(up, a, 0, next, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 14);
}

// Gradients are reduced on a queue of their own before they are scaled.
RACE_OWN(reduced_before_it_is_scaled, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *backward = race_queue(race, "backward"), *reduce = race_queue(race, "reduce");
    weir_buffer *gradients = race_buffer(race, "gradients", SIZE, 0);
    weir_buffer *other = race_buffer(race, "of the other rank", SIZE, 50);
    weir_buffer *total = race_buffer(race, "total", SIZE, 0);
    struct weir_event ready;

    must(launch(backward, "set", weir_out(gradients, 0, SIZE), 3u));
    must(weir_queue_record(backward, &ready));
    must(launch(backward, "bump", weir_inout(gradients, 0, SIZE), 4u)); // first
    if (race->mended)
        must(weir_queue_record(backward, &ready));
    must(weir_queue_wait(reduce, ready));
    must(launch(reduce, "sum", weir_in(gradients, 0, SIZE), weir_in(other, 0, SIZE), // second
                weir_out(total, 0, SIZE)));
    race_expect(race, total, 0, SIZE, 57);
}
