// Fixed memory, because statistics run in a loop that must not allocate. The
// histogram trades exactness for that, within a bound. The union does not: the
// pipeline gives it a capacity at which no folded piece can still grow.
#include "patterns/statistics.h"

#include <string.h>

// Values below STEPS have a bucket each. Above, the exponent selects a group,
// and the six bits below the leading one select a bucket in it.
static unsigned bucket_of(uint64_t value)
{
    unsigned shift = 0;
    while (value >> shift >= UINT64_C(2) * WEIR__HISTOGRAM_STEPS)
        shift++;
    return shift * WEIR__HISTOGRAM_STEPS + (unsigned)(value >> shift);
}

static uint64_t middle_of(unsigned bucket)
{
    if (bucket < 2 * WEIR__HISTOGRAM_STEPS)
        return bucket;
    unsigned shift = bucket / WEIR__HISTOGRAM_STEPS - 1;
    uint64_t first = (uint64_t)(WEIR__HISTOGRAM_STEPS + bucket % WEIR__HISTOGRAM_STEPS) << shift;
    return first + (UINT64_C(1) << shift) / 2;
}

void weir__histogram_add(struct weir__histogram *histogram, uint64_t value)
{
    if (histogram->count == 0 || value < histogram->minimum)
        histogram->minimum = value;
    if (value > histogram->maximum)
        histogram->maximum = value;
    histogram->count++;
    histogram->total += value;
    histogram->buckets[bucket_of(value)]++;
}

void weir__histogram_merge(struct weir__histogram *histogram, const struct weir__histogram *from)
{
    if (from->count == 0)
        return;
    if (histogram->count == 0 || from->minimum < histogram->minimum)
        histogram->minimum = from->minimum;
    if (from->maximum > histogram->maximum)
        histogram->maximum = from->maximum;
    histogram->count += from->count;
    histogram->total += from->total;
    for (unsigned i = 0; i < WEIR__HISTOGRAM_BUCKETS; i++)
        histogram->buckets[i] += from->buckets[i];
}

uint64_t weir__histogram_percentile(const struct weir__histogram *histogram, unsigned percent)
{
    uint64_t count = histogram->count;
    // ceil(count * percent / 100) without the product, which could overflow.
    uint64_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
    uint64_t seen = 0;

    for (unsigned i = 0; i < WEIR__HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen < rank || seen == 0)
            continue;
        uint64_t value = middle_of(i);
        if (value < histogram->minimum)
            return histogram->minimum;
        return value > histogram->maximum ? histogram->maximum : value;
    }
    return 0;
}

static void fold_oldest(struct weir__union *set)
{
    struct weir__interval oldest = set->pieces[0];
    set->folded += oldest.end - oldest.begin;
    set->floor = oldest.end;
    set->count--;
    memmove(set->pieces, set->pieces + 1, set->count * sizeof *set->pieces);
}

void weir__union_add(struct weir__union *set, uint64_t begin, uint64_t end)
{
    if (begin < set->floor)
        begin = set->floor;
    if (begin >= end)
        return;

    // Pieces [first, last) touch the new one. The search starts at the newest.
    uint32_t last = set->count;
    while (last > 0 && set->pieces[last - 1].begin > end)
        last--;
    uint32_t first = last;
    while (first > 0 && set->pieces[first - 1].end >= begin)
        first--;

    if (first < last) {
        if (set->pieces[first].begin < begin)
            begin = set->pieces[first].begin;
        if (set->pieces[last - 1].end > end)
            end = set->pieces[last - 1].end;
    }
    memmove(set->pieces + first + 1, set->pieces + last, (set->count - last) * sizeof *set->pieces);
    set->pieces[first] = (struct weir__interval){begin, end};
    set->count = set->count - (last - first) + 1;
    if (set->count > set->capacity)
        fold_oldest(set);
}

uint64_t weir__union_length(const struct weir__union *set)
{
    uint64_t length = set->folded;
    for (uint32_t i = 0; i < set->count; i++)
        length += set->pieces[i].end - set->pieces[i].begin;
    return length;
}
