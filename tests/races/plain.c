// A missing wait between two queues: each kind of operation with each, in the three ways in which
// two uses of the same bytes conflict.
#include "tests/races/race.h"

RACE(fill_then_copy, READ_AFTER_WRITE)
{
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
    race_expect(race, c, 0, SIZE, 7);
}

RACE(fill_then_launch, READ_AFTER_WRITE, .kernels = true)
{
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    must(launch(two, "add", weir_in(b, 0, SIZE), weir_out(c, 0, SIZE), 1u)); // second
    race_expect(race, c, 0, SIZE, 8);
}

RACE(copy_then_copy, READ_AFTER_WRITE)
{
    must(weir_queue_copy(one, b, 0, in, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, out, 0, b, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 7);
}

RACE(copy_then_launch, READ_AFTER_WRITE, .kernels = true)
{
    must(weir_queue_copy(one, b, 0, in, 0, SIZE)); // first
    mend(race, two, one);
    must(launch(two, "add", weir_in(b, 0, SIZE), weir_out(c, 0, SIZE), 1u)); // second
    race_expect(race, c, 0, SIZE, 8);
}

RACE(launch_then_copy, READ_AFTER_WRITE, .kernels = true)
{
    must(launch(one, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, out, 0, b, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 8);
}

RACE(launch_then_launch, READ_AFTER_WRITE, .kernels = true)
{
    must(launch(one, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, two, one);
    must(launch(two, "add", weir_in(b, 0, SIZE), weir_out(c, 0, SIZE), 1u)); // second
    race_expect(race, c, 0, SIZE, 9);
}

RACE(copy_then_fill_of_its_source, WRITE_AFTER_READ)
{
    must(weir_queue_copy(one, b, 0, a, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_fill(two, a, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 7);
}

RACE(copy_then_copy_to_its_source, WRITE_AFTER_READ)
{
    weir_buffer *src = race_pinned(race, "src", SIZE, 9);

    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, a, 0, src, 0, SIZE)); // second
    race_expect(race, out, 0, SIZE, 7);
}

RACE(copy_then_launch_to_its_source, WRITE_AFTER_READ, .kernels = true)
{
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    mend(race, two, one);
    must(launch(two, "set", weir_out(a, 0, SIZE), 9u)); // second
    race_expect(race, out, 0, SIZE, 7);
}

RACE(launch_then_copy_to_its_input, WRITE_AFTER_READ, .kernels = true)
{
    weir_buffer *next = race_pinned(race, "next", SIZE, 9);

    must(launch(one, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, a, 0, next, 0, SIZE)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(launch_then_fill_of_its_input, WRITE_AFTER_READ, .kernels = true)
{
    must(launch(one, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, two, one);
    must(weir_queue_fill(two, a, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(launch_then_launch_to_its_input, WRITE_AFTER_READ, .kernels = true)
{
    must(launch(one, "add", weir_in(a, 0, SIZE), weir_out(b, 0, SIZE), 1u)); // first
    mend(race, two, one);
    must(launch(two, "set", weir_out(a, 0, SIZE), 9u)); // second
    race_expect(race, b, 0, SIZE, 8);
}

RACE(fill_then_fill, WRITE_AFTER_WRITE)
{
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    must(weir_queue_fill(two, b, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 9);
}

RACE(fill_then_copy_over_it, WRITE_AFTER_WRITE)
{
    weir_buffer *x = race_buffer(race, "x", SIZE, 5), *y = race_buffer(race, "y", SIZE, 1);

    must(weir_queue_fill(one, y, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, y, 0, x, 0, SIZE / 2)); // second
    race_expect(race, y, 0, SIZE / 2, 5);
}

RACE(copy_then_copy_over_it, WRITE_AFTER_WRITE)
{
    weir_buffer *new = race_pinned(race, "new", SIZE, 9);

    must(weir_queue_copy(one, b, 0, in, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_copy(two, b, 0, new, 0, SIZE)); // second
    race_expect(race, b, 0, SIZE, 9);
}

RACE(launch_then_launch_over_it, WRITE_AFTER_WRITE, .kernels = true)
{
    must(launch(one, "set", weir_out(b, 0, SIZE), 7u)); // first
    mend(race, two, one);
    must(launch(two, "set", weir_out(b, 0, SIZE), 9u)); // second
    race_expect(race, b, 0, SIZE, 9);
}

RACE(copy_then_launch_over_it, WRITE_AFTER_WRITE, .kernels = true)
{
    must(weir_queue_copy(one, b, 0, in, 0, SIZE)); // first
    mend(race, two, one);
    must(launch(two, "set", weir_out(b, 0, SIZE), 9u)); // second
    race_expect(race, b, 0, SIZE, 9);
}
