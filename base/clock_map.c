// See the header. Differences are small against the readings, so they are taken in
// integers and only scaled in floating point.
#include "base/clock_map.h"

// A difference larger than this means a broken clock or reading.
#define STEEPEST 1e-3
// Pairs from which the clocks are extrapolated beyond the last one.
#define STRETCH 8

static const struct weir_clock_pair *pair_at(const struct weir_clock_map *map, uint64_t number)
{
    return &map->pairs[number % WEIR_CLOCK_MAP_PAIRS];
}

void weir_clock_map_add(struct weir_clock_map *map, uint64_t a_ns, uint64_t b_ns)
{
    const struct weir_clock_pair pair = {a_ns, b_ns};
    if (map->count > 0) {
        const struct weir_clock_pair *last = pair_at(map, map->count - 1);
        if (a_ns <= last->a_ns || b_ns <= last->b_ns)
            return;
    }
    // The newest pair is replaced, unless it is the only one.
    if (map->count > 1 && a_ns - pair_at(map, map->count - 2)->a_ns < WEIR_CLOCK_MAP_DISTANCE_NS)
        map->count--;
    map->pairs[map->count++ % WEIR_CLOCK_MAP_PAIRS] = pair;
}

static uint64_t shift(uint64_t from, uint64_t here, uint64_t there, double scale)
{
    const int64_t distance = (int64_t)(from - here);
    return there + (uint64_t)(distance + (int64_t)((double)distance * scale));
}

// By which part the other clock advances more than this one between two pairs.
static double steepness(const struct weir_clock_pair *left, const struct weir_clock_pair *right)
{
    const uint64_t own = right->a_ns - left->a_ns;
    const uint64_t other = right->b_ns - left->b_ns;
    const double scale = (double)(int64_t)(other - own) / (double)own;
    return scale > STEEPEST ? STEEPEST : scale < -STEEPEST ? -STEEPEST : scale;
}

uint64_t weir_clock_map_b(const struct weir_clock_map *map, uint64_t a_ns)
{
    if (map->count == 0)
        return a_ns;
    const uint64_t begin =
        map->count > WEIR_CLOCK_MAP_PAIRS ? map->count - WEIR_CLOCK_MAP_PAIRS : 0;
    uint64_t right = map->count - 1;
    while (right > begin + 1 && pair_at(map, right - 1)->a_ns > a_ns)
        right--;
    const struct weir_clock_pair *after = pair_at(map, right);
    if (right == begin) // the only one
        return shift(a_ns, after->a_ns, after->b_ns, 0);
    const struct weir_clock_pair *before = pair_at(map, right - 1);
    if (a_ns > after->a_ns) // a longer distance gives a better slope
        before = pair_at(map, right > begin + STRETCH ? right - STRETCH : begin);
    const int inside = a_ns >= before->a_ns && a_ns <= after->a_ns;
    // A short distance gives no slope for times outside of it.
    const int known = inside || after->a_ns - before->a_ns >= WEIR_CLOCK_MAP_DISTANCE_NS;
    const double scale = known ? steepness(before, after) : 0;
    const struct weir_clock_pair *near = a_ns > after->a_ns ? after : before;
    return shift(a_ns, near->a_ns, near->b_ns, scale);
}
