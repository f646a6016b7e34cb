// See the header. Two planes of one pitch are compared in constant time; any other two shapes of
// several rows by looking at each row of the one that has fewer.
#include "plugins/check/shape.h"

static void join_rows(struct check_shape *shape)
{
    if (shape->rows == 1 || shape->pitch != shape->width)
        return;
    shape->width *= shape->rows;
    shape->rows = 1;
    shape->pitch = shape->width;
}

struct check_shape check_shape_box(uint64_t begin, uint64_t width, uint64_t rows, uint64_t pitch,
                                   uint64_t slices, uint64_t slice_pitch)
{
    struct check_shape shape = {begin, 0, width, rows, pitch, slices, slice_pitch};
    shape.end = begin + (slices - 1) * slice_pitch + (rows - 1) * pitch + width;
    join_rows(&shape);
    if (shape.slices > 1 && shape.rows == 1) {
        shape.rows = shape.slices;
        shape.pitch = shape.slice_pitch;
        shape.slices = 1;
    } else if (shape.slices > 1 && shape.slice_pitch == shape.rows * shape.pitch) {
        shape.rows *= shape.slices;
        shape.slices = 1;
    }
    join_rows(&shape);
    if (shape.rows == 1)
        shape.pitch = shape.width;
    if (shape.slices == 1)
        shape.slice_pitch = shape.rows * shape.pitch;
    return shape;
}

struct check_span check_shape_run(const struct check_shape *shape, uint64_t index)
{
    const uint64_t begin = shape->begin + index / shape->rows * shape->slice_pitch +
                           index % shape->rows * shape->pitch;
    return (struct check_span){begin, begin + shape->width};
}

static struct check_span common(struct check_span a, struct check_span b)
{
    const uint64_t begin = a.begin > b.begin ? a.begin : b.begin;
    const uint64_t end = a.end < b.end ? a.end : b.end;
    return (struct check_span){begin, end > begin ? end : begin};
}

// The first of several equal pieces that ends after `at`.
static uint64_t piece_at(uint64_t begin, uint64_t size, uint64_t pitch, uint64_t at)
{
    return at < begin + size ? 0 : (at - begin - size) / pitch + 1;
}

static struct check_span meet_slice(const struct check_shape *shape, uint64_t slice,
                                    struct check_span span)
{
    const uint64_t begin = shape->begin + slice * shape->slice_pitch;
    const uint64_t row = piece_at(begin, shape->width, shape->pitch, span.begin);
    if (row >= shape->rows)
        return (struct check_span){0, 0};
    return common(check_shape_run(shape, slice * shape->rows + row), span);
}

// A span that passes by the first slice that ends after its beginning can meet the next one only
// with that one's first byte.
struct check_span check_shape_meet_span(const struct check_shape *shape, struct check_span span)
{
    const uint64_t size = (shape->rows - 1) * shape->pitch + shape->width;
    const uint64_t slice = piece_at(shape->begin, size, shape->slice_pitch, span.begin);
    struct check_span found = {0, 0};
    if (slice < shape->slices)
        found = meet_slice(shape, slice, span);
    if (found.begin == found.end && slice + 1 < shape->slices)
        found = meet_slice(shape, slice + 1, span);
    return found;
}

// Rows r of `a` and s of `b` meet if (r - s) * pitch is less than the one's width above `distance`,
// or less than the other's below it.
static bool planes_meet(const struct check_shape *a, const struct check_shape *b)
{
    const struct check_shape *low = a->begin <= b->begin ? a : b;
    const struct check_shape *high = low == a ? b : a;
    const uint64_t distance = high->begin - low->begin;
    const uint64_t row = distance / low->pitch;
    const uint64_t shift = distance % low->pitch;
    return (row < low->rows && shift < low->width) ||
           (row + 1 < low->rows && low->pitch - shift < high->width);
}

static bool are_apart(const struct check_shape *a, const struct check_shape *b)
{
    return a->begin >= b->end || b->begin >= a->end;
}

// Both have several rows.
static struct check_span common_of_rows(const struct check_shape *a, const struct check_shape *b)
{
    const bool swap = check_shape_run_count(a) > check_shape_run_count(b);
    const struct check_shape *few = swap ? b : a;
    const struct check_shape *many = swap ? a : b;
    for (uint64_t i = 0; i < check_shape_run_count(few); i++) {
        const struct check_span span = check_shape_run(few, i);
        if (span.begin >= many->end)
            break;
        const struct check_span found = check_shape_meet_span(many, span);
        if (found.begin < found.end)
            return found;
    }
    return (struct check_span){0, 0};
}

struct check_span check_shapes_common(const struct check_shape *a, const struct check_shape *b)
{
    if (are_apart(a, b))
        return (struct check_span){0, 0};
    if (check_shape_is_range(a))
        return check_shape_meet_span(b, (struct check_span){a->begin, a->end});
    if (check_shape_is_range(b))
        return check_shape_meet_span(a, (struct check_span){b->begin, b->end});
    return common_of_rows(a, b);
}

bool check_rows_meet(const struct check_shape *a, const struct check_shape *b)
{
    if (a->rows > 1 && b->rows > 1 && a->slices == 1 && b->slices == 1 && a->pitch == b->pitch)
        return planes_meet(a, b);
    const struct check_span found = check_shapes_common(a, b);
    return found.begin < found.end;
}

static bool are_equal(const struct check_shape *a, const struct check_shape *b)
{
    return a->begin == b->begin && a->width == b->width && a->rows == b->rows &&
           a->pitch == b->pitch && a->slices == b->slices && a->slice_pitch == b->slice_pitch;
}

bool check_rows_cover(const struct check_shape *outer, const struct check_shape *inner)
{
    if (are_equal(outer, inner))
        return true;
    if (!check_shape_is_range(inner))
        return false;
    const struct check_span span = {inner->begin, inner->end};
    const struct check_span found = check_shape_meet_span(outer, span);
    return found.begin == span.begin && found.end == span.end;
}
