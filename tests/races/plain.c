// A missing wait between two queues: each kind of operation with each, in the three ways in which
// two uses of the same bytes conflict.
#include "tests/races/race.h"

static const unsigned char seven = 7, nine = 9;

RACE(fill_then_copy, READ_AFTER_WRITE)
{
    weir_queue *filler = race_queue(race, "filler"), *copier = race_queue(race, "copier");
    weir_buffer *a = race_buffer(race, "a", SIZE, 0), *b = race_buffer(race, "b", SIZE, 0);

    must(weir_queue_fill(filler, a, 0, SIZE, &seven, 1)); // first
    mend(race, copier, filler);
    must(weir_queue_copy(copier, b, 0, a, 0, SIZE)); // second
    race_expect(race, b, 0, SIZE, 7);
}

RACE(fill_then_launch, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *filler = race_queue(race, "filler"), *compute = race_queue(race, "compute");
    weir_buffer *a = race_buffer(race, "a", SIZE, 0), *b = race_buffer(race, "b", SIZE, 0);

    must(weir_queue_fill(filler, a, 0, SIZE, &seven, 1)); // first
    mend(race, compute, filler);
    must(launch(compute, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(copy_then_copy, READ_AFTER_WRITE)
{
    weir_queue *upload = race_queue(race, "upload"), *download = race_queue(race, "download");
    weir_buffer *in = race_pinned(race, "in", SIZE, 7), *out = race_pinned(race, "out", SIZE, 0);
    weir_buffer *a = race_buffer(race, "a", SIZE, 0);

    must(weir_queue_copy(upload, a, 0, in, 0, SIZE)); // first
    mend(race, download, upload);
    must(weir_queue_copy(download, out, 0, a, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 7);
}

RACE(copy_then_launch, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *copy = race_queue(race, "copy"), *compute = race_queue(race, "compute");
    weir_buffer *in = race_pinned(race, "in", SIZE, 7);
    weir_buffer *a = race_buffer(race, "a", SIZE, 0), *b = race_buffer(race, "b", SIZE, 0);

    must(weir_queue_copy(copy, a, 0, in, 0, SIZE)); // first
    mend(race, compute, copy);
    must(launch(compute, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(launch_then_copy, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *compute = race_queue(race, "compute"), *copy = race_queue(race, "copy");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0);
    weir_buffer *out = race_pinned(race, "out", SIZE, 0);

    must(launch(compute, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, copy, compute);
    must(weir_queue_copy(copy, out, 0, b, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 8);
}

RACE(launch_then_launch, READ_AFTER_WRITE, .kernels = true)
{
    weir_queue *encode = race_queue(race, "encode"), *decode = race_queue(race, "decode");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0);
    weir_buffer *c = race_buffer(race, "c", SIZE, 0);

    must(launch(encode, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, decode, encode);
    must(launch(decode, "add", weir_in(b, 0, SIZE), weir_out(c, 0, SIZE), 1u)); // second
    race_expect(race, c, 0, SIZE, 9);
}

RACE(copy_then_fill_of_its_source, WRITE_AFTER_READ)
{
    weir_queue *copier = race_queue(race, "copier"), *filler = race_queue(race, "filler");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0);

    must(weir_queue_copy(copier, b, 0, a, 0, SIZE)); // first
    mend(race, filler, copier);
    must(weir_queue_fill(filler, a, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 7);
}

RACE(copy_then_copy_to_its_source, WRITE_AFTER_READ)
{
    weir_queue *download = race_queue(race, "download"), *upload = race_queue(race, "upload");
    weir_buffer *in = race_pinned(race, "in", SIZE, 9), *out = race_pinned(race, "out", SIZE, 0);
    weir_buffer *a = race_buffer(race, "a", SIZE, 7);

    must(weir_queue_copy(download, out, 0, a, 0, SIZE)); // first
    mend(race, upload, download);
    must(weir_queue_copy(upload, a, 0, in, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 7);
}

RACE(copy_then_launch_to_its_source, WRITE_AFTER_READ, .kernels = true)
{
    weir_queue *copy = race_queue(race, "copy"), *compute = race_queue(race, "compute");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *out = race_pinned(race, "out", SIZE, 0);

    must(weir_queue_copy(copy, out, 0, a, 0, SIZE)); // first
    mend(race, compute, copy);
    must(launch(compute, "set", weir_out(a, 0, SIZE), 9u)); // second
    race_expect(race, out, 0, SIZE, 7);
}

RACE(launch_then_copy_to_its_input, WRITE_AFTER_READ, .kernels = true)
{
    weir_queue *compute = race_queue(race, "compute"), *copy = race_queue(race, "copy");
    weir_buffer *next = race_pinned(race, "next", SIZE, 9);
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0);

    must(launch(compute, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, copy, compute);
    must(weir_queue_copy(copy, a, 0, next, 0, SIZE)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(launch_then_fill_of_its_input, WRITE_AFTER_READ, .kernels = true)
{
    weir_queue *compute = race_queue(race, "compute"), *filler = race_queue(race, "filler");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0);

    must(launch(compute, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, filler, compute);
    must(weir_queue_fill(filler, a, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(launch_then_launch_to_its_input, WRITE_AFTER_READ, .kernels = true)
{
    weir_queue *one = race_queue(race, "one"), *two = race_queue(race, "two");
    weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0);

    must(launch(one, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, two, one);
    must(launch(two, "set", weir_out(a, 0, SIZE), 9u)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(fill_then_fill, WRITE_AFTER_WRITE)
{
    weir_queue *one = race_queue(race, "one"), *two = race_queue(race, "two");
    weir_buffer *a = race_buffer(race, "a", SIZE, 0);

    must(weir_queue_fill(one, a, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    must(weir_queue_fill(two, a, 0, SIZE, &nine, 1)); // second
    race_expect(race, a, 0, SIZE, 9);
}

RACE(fill_then_copy_over_it, WRITE_AFTER_WRITE)
{
    weir_queue *filler = race_queue(race, "filler"), *copier = race_queue(race, "copier");
    weir_buffer *a = race_buffer(race, "a", SIZE, 5), *b = race_buffer(race, "b", SIZE, 1);

    must(weir_queue_fill(filler, b, 0, SIZE, &seven, 1)); // first
    mend(race, copier, filler);
    must(weir_queue_copy(copier, b, 0, a, 0, SIZE / 2)); // second
    race_expect(race, b, 0, SIZE / 2, 5);
}

RACE(copy_then_copy_over_it, WRITE_AFTER_WRITE)
{
    weir_queue *one = race_queue(race, "one"), *two = race_queue(race, "two");
    weir_buffer *old = race_pinned(race, "old", SIZE, 7), *new = race_pinned(race, "new", SIZE, 9);
    weir_buffer *a = race_buffer(race, "a", SIZE, 0);

    must(weir_queue_copy(one, a, 0, old, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, a, 0, new, 0, SIZE)); // second
    race_expect(race, a, 0, SIZE, 9);
}

RACE(launch_then_launch_over_it, WRITE_AFTER_WRITE, .kernels = true)
{
    weir_queue *one = race_queue(race, "one"), *two = race_queue(race, "two");
    weir_buffer *a = race_buffer(race, "a", SIZE, 0);

    must(launch(one, "set", weir_out(a, 0, SIZE), 7u)); // first
    mend(race, two, one);
    must(launch(two, "set", weir_out(a, 0, SIZE), 9u)); // second
    race_expect(race, a, 0, SIZE, 9);
}

RACE(copy_then_launch_over_it, WRITE_AFTER_WRITE, .kernels = true)
{
    weir_queue *copy = race_queue(race, "copy"), *compute = race_queue(race, "compute");
    weir_buffer *in = race_pinned(race, "in", SIZE, 7), *a = race_buffer(race, "a", SIZE, 0);

    must(weir_queue_copy(copy, a, 0, in, 0, SIZE)); // first
    mend(race, compute, copy);
    must(launch(compute, "set", weir_out(a, 0, SIZE), 9u)); // second
    race_expect(race, a, 0, SIZE, 9);
}
