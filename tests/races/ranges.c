// Which bytes: ranges that overlap by a byte, touch, or interleave. The mended programs have no more
// waits than the broken ones; they use other bytes.
#include "tests/races/race.h"

RACE(overlap_by_one_byte, WRITE_AFTER_WRITE)
{
    const size_t size = race->mended ? SIZE / 2 : SIZE / 2 + 1;

    must(weir_queue_fill(one, b, 0, size, &seven, 1));           // first
    must(weir_queue_fill(two, b, SIZE / 2, SIZE / 2, &nine, 1)); // second
    race_expect(race, b, SIZE / 2, SIZE / 2, 9);
}

RACE(read_of_one_byte_too_many, READ_AFTER_WRITE)
{
    weir_buffer *x = race_buffer(race, "x", SIZE, 9);
    const size_t begin = race->mended ? SIZE / 2 : SIZE / 2 - 1;

    must(weir_queue_fill(one, x, 0, SIZE / 2, &seven, 1)); // first
    must(weir_queue_copy(two, b, 0, x, begin, SIZE / 2));  // second
    race_expect(race, b, 0, 1, race->mended ? 9 : 7);
}

// A range of one byte within another.
RACE(one_byte_inside, WRITE_AFTER_READ)
{
    must(weir_queue_copy(one, b, 0, a, 64, 64));                          // first
    must(weir_queue_fill(two, a, race->mended ? 128 : 100, 1, &nine, 1)); // second
    race_expect(race, b, 0, 64, 7);
}

// Tiles of a picture of 16 x 16 bytes: side by side, or one column too wide.
RACE(tiles_side_by_side, WRITE_AFTER_WRITE)
{
    weir_buffer *y = race_buffer(race, "y", 256, 9);
    const size_t width = race->mended ? 8 : 9;

    must(weir_queue_copy_2d(one, (struct weir_plane){b, 0, 16}, // first
                            (struct weir_plane){a, 0, 16}, width, 16));
    must(weir_queue_copy_2d(two, (struct weir_plane){b, 8, 16}, // second
                            (struct weir_plane){y, 8, 16}, 8, 16));
    race_expect(race, b, 8, 8, 9);
}

// Rows of one copy lie between the rows of the other: even and odd lines of a picture.
RACE(interleaved_lines, READ_AFTER_WRITE)
{
    weir_buffer *picture = race_buffer(race, "picture", 256, 9);
    weir_buffer *lines = race_buffer(race, "lines", 128, 0);
    const size_t first_line = race->mended ? 1 : 0;

    must(weir_queue_copy_2d(one, (struct weir_plane){picture, 0, 32}, // first
                            (struct weir_plane){a, 0, 32}, 16, 8));
    must(weir_queue_copy_2d(two, (struct weir_plane){lines, 0, 16}, // second
                            (struct weir_plane){picture, first_line * 16, 32}, 16, 8));
    race_expect(race, lines, 0, 128, race->mended ? 9 : 7);
}

// Two pitches meet in one byte: rows of 3 bytes from 48 on, 16 apart, and rows of 2 bytes from 59 on,
// 20 apart, have byte 80 in common.
RACE(pitches_that_meet_once, WRITE_AFTER_WRITE)
{
    weir_buffer *z = race_buffer(race, "z", 256, 9);
    const size_t width = race->mended ? 1 : 2;

    must(weir_queue_copy_2d(one, (struct weir_plane){b, 48, 16}, // first
                            (struct weir_plane){a, 0, 16}, 3, 3));
    must(weir_queue_copy_2d(two, (struct weir_plane){b, 59, 20}, // second
                            (struct weir_plane){z, 0, 20}, width, 2));
    race_expect(race, b, 79, 1, 9);
    race_expect(race, b, 80, 1, race->mended ? 7 : 9);
}

// A copy of the columns of a picture and a copy of its lower lines cross.
RACE(columns_and_lines, READ_AFTER_WRITE)
{
    const size_t height = race->mended ? 8 : 16;

    must(weir_queue_copy_2d(one, (struct weir_plane){b, 4, 16}, // first
                            (struct weir_plane){a, 4, 16}, 8, height));
    must(weir_queue_copy(two, c, 0, b, 128, 128)); // second
    race_expect(race, c, 4, 8, race->mended ? 0 : 7);
}

// Cells of 4 x 4 x 4 bytes of a field of 8 x 8 x 8: neighbours, or one slice too deep.
RACE(cells_of_a_field, WRITE_AFTER_WRITE)
{
    weir_buffer *field = race_buffer(race, "field", 512, 0);
    weir_buffer *x = race_buffer(race, "x", 512, 7), *y = race_buffer(race, "y", 512, 9);
    const size_t depth = race->mended ? 4 : 5;

    must(weir_queue_copy_3d(one, (struct weir_volume){field, 0, 8, 64}, // first
                            (struct weir_volume){x, 0, 8, 64}, 4, 4, depth));
    must(weir_queue_copy_3d(two, (struct weir_volume){field, 256, 8, 64}, // second
                            (struct weir_volume){y, 256, 8, 64}, 4, 4, 4));
    race_expect(race, field, 256, 4, 9);
}

// Two boxes with the same slices and lines that do not meet, and with a shift that does.
RACE(boxes_beside_each_other, READ_AFTER_WRITE)
{
    weir_buffer *field = race_buffer(race, "field", 512, 0),
                *other = race_buffer(race, "other", 512, 7);
    weir_buffer *box = race_buffer(race, "box", 64, 0);
    const size_t x = race->mended ? 4 : 3;

    must(weir_queue_copy_3d(one, (struct weir_volume){field, 0, 8, 64}, // first
                            (struct weir_volume){other, 0, 8, 64}, 4, 8, 8));
    must(weir_queue_copy_3d(two, (struct weir_volume){box, 0, 4, 16}, // second
                            (struct weir_volume){field, x, 8, 64}, 4, 4, 4));
    race_expect(race, box, 0, 1, race->mended ? 0 : 7);
}

RACE(fill_of_a_frame, WRITE_AFTER_WRITE)
{
    const size_t width = race->mended ? 8 : 9;

    must(weir_queue_fill_2d(one, (struct weir_plane){b, 0, 16}, width, 16, &seven, // first
                            1));
    must(weir_queue_fill_2d(two, (struct weir_plane){b, 8, 16}, 8, 16, &nine, 1)); // second
    race_expect(race, b, 8, 8, 9);
}

// Halves of one buffer as the outputs of two kernels.
RACE(halves_of_an_output, WRITE_AFTER_WRITE, .kernels = true)
{
    weir_buffer *x = race_buffer(race, "x", 2 * SIZE, 0);
    const size_t second = race->mended ? SIZE : SIZE / 2;

    must(launch(one, "set", weir_out(x, 0, SIZE), 7u));      // first
    must(launch(two, "set", weir_out(x, second, SIZE), 9u)); // second
    race_expect(race, x, second, SIZE, 9);
}

// The host writes a part of pinned memory while the device copies another.
RACE(host_and_copy_side_by_side, HOST_WRITE)
{
    const size_t begin = race->mended ? SIZE / 2 : SIZE / 2 - 1;
    void *bytes;

    must(weir_queue_copy(one, b, 0, in, 0, SIZE / 2));                     // first
    must(weir_host_begin(in, begin, SIZE / 2, WEIR_ACCESS_WRITE, &bytes)); // second
    *(unsigned char *)bytes = nine;
    must(weir_host_end(in, begin, SIZE / 2, WEIR_ACCESS_WRITE));
    race_expect(race, b, 0, SIZE / 2, 7);
}
