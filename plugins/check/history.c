// See the header. The tree is a treap: a search tree by the beginnings of the uses, and a heap by
// random priorities, which keep it balanced. Each node knows how far the uses below it reach.
#include "plugins/check/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/random.h"

// Sets of bytes. Two planes of one pitch are compared in constant time; any other two shapes of several rows by
// looking at each row of the one that has fewer.

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

struct check_span check_shapes_common(const struct check_shape *a, const struct check_shape *b)
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

bool check_shapes_meet(const struct check_shape *a, const struct check_shape *b)
{
    if (a->begin >= b->end || b->begin >= a->end)
        return false;
    if (check_shape_is_range(a) && check_shape_is_range(b))
        return true;
    if (a->rows > 1 && b->rows > 1 && a->slices == 1 && b->slices == 1 && a->pitch == b->pitch)
        return planes_meet(a, b);
    const struct check_span found = check_shapes_common(a, b);
    return found.begin < found.end;
}

bool check_shape_covers(const struct check_shape *outer, const struct check_shape *inner)
{
    if (outer->begin > inner->begin || inner->end > outer->end)
        return false;
    if (check_shape_is_range(outer))
        return true;
    if (memcmp(outer, inner, sizeof *outer) == 0) // numbers alone
        return true;
    if (!check_shape_is_range(inner))
        return false;
    const struct check_span span = {inner->begin, inner->end};
    const struct check_span found = check_shape_meet_span(outer, span);
    return found.begin == span.begin && found.end == span.end;
}

// The tree.

// Searching.

static void keep_found(struct check_found *found, struct check_use *use)
{
    if (found->count == found->capacity) { // seldom, so that most finds call nothing
        void *uses = weir_grow(found->uses, found->count, &found->capacity, sizeof use);
        found->lacking = found->lacking || !uses;
        if (!uses)
            return;
        found->uses = uses;
    }
    found->uses[found->count++] = use;
}

static void find(struct check_use *use, struct check_span span, struct check_found *found)
{
    while (use && use->reach > span.begin) {
        find(use->left, span, found);
        if (use->shape.begin >= span.end)
            return;
        if (use->shape.end > span.begin)
            keep_found(found, use);
        use = use->right;
    }
}

void check_history_find(const struct check_history *history, struct check_span span,
                        struct check_found *found)
{
    found->count = 0;
    found->lacking = false;
    find(history->root, span, found);
}

// Changing the tree.

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void measure(struct check_use *use)
{
    use->reach = use->shape.end;
    if (use->left)
        use->reach = later(use->reach, use->left->reach);
    if (use->right)
        use->reach = later(use->reach, use->right->reach);
}

// Uses of the same beginning are in the order of their addresses.
static bool is_before(const struct check_use *a, const struct check_use *b)
{
    return a->shape.begin < b->shape.begin ||
           (a->shape.begin == b->shape.begin && (uintptr_t)a < (uintptr_t)b);
}

static void split(struct check_use *use, const struct check_use *at, struct check_use **out_before,
                  struct check_use **out_after)
{
    if (!use) {
        *out_before = NULL;
        *out_after = NULL;
        return;
    }
    if (is_before(use, at)) {
        split(use->right, at, &use->right, out_after);
        *out_before = use;
    } else {
        split(use->left, at, out_before, &use->left);
        *out_after = use;
    }
    measure(use);
}

static struct check_use *merge(struct check_use *before, struct check_use *after)
{
    if (!before || !after)
        return before ? before : after;
    if (before->priority > after->priority) {
        before->right = merge(before->right, after);
        measure(before);
        return before;
    }
    after->left = merge(before, after->left);
    measure(after);
    return after;
}

static struct check_use *erase(struct check_use *root, const struct check_use *use)
{
    if (root == use)
        return merge(root->left, root->right);
    struct check_use **side = is_before(use, root) ? &root->left : &root->right;
    *side = erase(*side, use);
    measure(root);
    return root;
}

struct check_use *check_history_add(struct check_history *history, const struct check_shape *shape)
{
    struct check_use *use = malloc(sizeof *use);
    struct check_use *before, *after;
    if (!use)
        return NULL;
    use->shape = *shape;
    use->left = use->right = NULL;
    use->priority = (uint32_t)weir_random_next(&history->random);
    measure(use);
    split(history->root, use, &before, &after);
    history->root = merge(merge(before, use), after);
    history->count++;
    return use;
}

void check_history_remove(struct check_history *history, struct check_use *use)
{
    history->root = erase(history->root, use);
    history->count--;
    free(use);
}

static void clear(struct check_use *use)
{
    while (use) {
        struct check_use *right = use->right;
        clear(use->left);
        free(use);
        use = right;
    }
}

void check_history_clear(struct check_history *history)
{
    clear(history->root);
    *history = (struct check_history){0};
}
