// See the header. Differences are small against the readings, so they are taken in
// integers and only scaled in floating point.
#include "tests/abi/frozen/opencl/base/clock_map.h"

// A difference larger than this means a broken clock or reading.
#define STEEPEST 1e-3
// Pairs from which the clocks are extrapolated beyond the last one.
#define STRETCH 8

static const struct weir_clock_pair *pair_at(const struct weir_clock_map *map, uint64_t number)
{
    return &map->pairs[number % WEIR_CLOCK_MAP_PAIRS];
}

static uint64_t oldest(const struct weir_clock_map *map)
{
    return map->count > WEIR_CLOCK_MAP_PAIRS ? map->count - WEIR_CLOCK_MAP_PAIRS : 0;
}

void weir_clock_map_add(struct weir_clock_map *map, uint64_t a_ns, uint64_t b_ns)
{
    const struct weir_clock_pair pair = {a_ns, b_ns};
    if (map->count == 0)
        map->first = pair;
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

static uint64_t key_of(const struct weir_clock_pair *pair, int forward)
{
    return forward ? pair->a_ns : pair->b_ns;
}

// By which part the other clock advances more than this one between two pairs.
static double steepness(const struct weir_clock_pair *left, const struct weir_clock_pair *right,
                        int forward)
{
    const uint64_t own = key_of(right, forward) - key_of(left, forward);
    const uint64_t other = key_of(right, !forward) - key_of(left, !forward);
    const double scale = (double)(int64_t)(other - own) / (double)own;
    return scale > STEEPEST ? STEEPEST : scale < -STEEPEST ? -STEEPEST : scale;
}

static uint64_t convert(const struct weir_clock_map *map, uint64_t time_ns, int forward)
{
    if (map->count == 0)
        return time_ns;
    const uint64_t begin = oldest(map);
    uint64_t right = map->count - 1;
    while (right > begin + 1 && key_of(pair_at(map, right - 1), forward) > time_ns)
        right--;
    const struct weir_clock_pair *after = pair_at(map, right);
    if (right == begin) // the only one
        return shift(time_ns, key_of(after, forward), key_of(after, !forward), 0);
    const struct weir_clock_pair *before = pair_at(map, right - 1);
    if (time_ns > key_of(after, forward)) // a longer distance gives a better slope
        before = pair_at(map, right > begin + STRETCH ? right - STRETCH : begin);
    const int inside = time_ns >= key_of(before, forward) && time_ns <= key_of(after, forward);
    // A short distance gives no slope for times outside of it.
    const int known = inside || after->a_ns - before->a_ns >= WEIR_CLOCK_MAP_DISTANCE_NS;
    const double scale = known ? steepness(before, after, forward) : 0;
    const struct weir_clock_pair *near = time_ns > key_of(after, forward) ? after : before;
    return shift(time_ns, key_of(near, forward), key_of(near, !forward), scale);
}

uint64_t weir_clock_map_b(const struct weir_clock_map *map, uint64_t a_ns)
{
    return convert(map, a_ns, 1);
}

uint64_t weir_clock_map_a(const struct weir_clock_map *map, uint64_t b_ns)
{
    return convert(map, b_ns, 0);
}

double weir_clock_map_drift_ppm(const struct weir_clock_map *map)
{
    if (map->count < 2)
        return 0;
    const struct weir_clock_pair *last = pair_at(map, map->count - 1);
    if (last->a_ns - map->first.a_ns < WEIR_CLOCK_MAP_DISTANCE_NS)
        return 0;
    return -steepness(&map->first, last, 1) * 1e6;
}
