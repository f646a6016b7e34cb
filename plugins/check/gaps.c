// See the header.
#include "plugins/check/gaps.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct check_gaps *gaps)
{
    if (gaps->count < gaps->capacity)
        return true;
    const size_t capacity = gaps->capacity ? 2 * gaps->capacity : 2;
    if (capacity > CHECK_GAPS_MOST)
        return false;
    struct check_span *grown = realloc(gaps->spans, capacity * sizeof *grown);
    if (!grown)
        return false;
    gaps->spans = grown;
    gaps->capacity = capacity;
    return true;
}

void check_gaps_reset(struct check_gaps *gaps, uint64_t size)
{
    gaps->count = 0;
    if (make_room(gaps))
        gaps->spans[gaps->count++] = (struct check_span){0, size};
}

void check_gaps_forget(struct check_gaps *gaps)
{
    free(gaps->spans);
    *gaps = (struct check_gaps){0};
}

// The first gap that ends after `at`.
static size_t gap_after(const struct check_gaps *gaps, uint64_t at)
{
    size_t low = 0;
    size_t high = gaps->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (gaps->spans[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void erase(struct check_gaps *gaps, size_t first, size_t last)
{
    memmove(&gaps->spans[first], &gaps->spans[last], (gaps->count - last) * sizeof gaps->spans[0]);
    gaps->count -= last - first;
}

// A span inside one gap makes two of it.
static void cut(struct check_gaps *gaps, size_t index, struct check_span span)
{
    if (!make_room(gaps)) {
        check_gaps_forget(gaps);
        return;
    }
    struct check_span *gap = &gaps->spans[index];
    memmove(gap + 1, gap, (gaps->count - index) * sizeof *gap);
    gaps->count++;
    gap[0].end = span.begin;
    gap[1].begin = span.end;
}

static void fill_span(struct check_gaps *gaps, struct check_span span)
{
    size_t first = gap_after(gaps, span.begin);
    size_t last = first;
    if (first == gaps->count || gaps->spans[first].begin >= span.end)
        return;
    if (gaps->spans[first].begin < span.begin) {
        if (gaps->spans[first].end > span.end) {
            cut(gaps, first, span);
            return;
        }
        gaps->spans[first].end = span.begin;
        last = ++first;
    }
    while (last < gaps->count && gaps->spans[last].end <= span.end)
        last++;
    if (last < gaps->count && gaps->spans[last].begin < span.end)
        gaps->spans[last].begin = span.end;
    erase(gaps, first, last);
}

void check_gaps_fill(struct check_gaps *gaps, const struct check_shape *shape)
{
    const uint64_t runs = check_shape_run_count(shape);
    for (uint64_t i = 0; i < runs && gaps->count; i++)
        fill_span(gaps, check_shape_run(shape, i));
}

struct check_span check_gaps_find(const struct check_gaps *gaps, const struct check_shape *shape)
{
    for (size_t i = gap_after(gaps, shape->begin); i < gaps->count; i++) {
        if (gaps->spans[i].begin >= shape->end)
            break;
        const struct check_span found = check_shape_meet_span(shape, gaps->spans[i]);
        if (found.begin < found.end)
            return found;
    }
    return (struct check_span){0, 0};
}
