// The times of reductions. They are read when a step's place in the ring is needed again, and when
// the program asks: in neither case does anything wait, and a step that has not ended is left out.
#include <inttypes.h>
#include <string.h>

#include "base/sized.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"

struct span {
    uint64_t begin_ns;
    uint64_t end_ns;
};

static bool read_span(const struct weir__buckets_times *times, struct span *out_span)
{
    return weir_event_time_ns(times->begin, &out_span->begin_ns) == WEIR_OK &&
           weir_event_time_ns(times->end, &out_span->end_ns) == WEIR_OK;
}

// All times of a step, or none.
static bool can_read(const weir_buckets *buckets, uint32_t place, uint64_t *out_reached_ns)
{
    struct span span;
    if (weir_event_time_ns(buckets->reached[place], out_reached_ns) != WEIR_OK)
        return false;
    for (uint32_t i = 0; i < buckets->plan.bucket_count; i++)
        if (!read_span(&buckets->buckets[i].times[place], &span))
            return false;
    return true;
}

static void add(weir_buckets *buckets, struct weir__buckets_bucket *bucket, const struct span *span,
                uint64_t reached_ns)
{
    const uint64_t since_ns = reached_ns > span->begin_ns ? reached_ns : span->begin_ns;
    const uint64_t whole_ns = span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0;
    const uint64_t exposed_ns = span->end_ns > since_ns ? span->end_ns - since_ns : 0;
    bucket->figures.timed_steps++;
    bucket->figures.exposed_ns += exposed_ns;
    bucket->figures.hidden_ns += whole_ns - exposed_ns;
    if (bucket->figures.longest_ns < whole_ns)
        bucket->figures.longest_ns = whole_ns;
    buckets->figures.exposed_ns += exposed_ns;
    buckets->figures.hidden_ns += whole_ns - exposed_ns;
}

void weir__buckets_read_times(weir_buckets *buckets, uint32_t place)
{
    const struct weir_error before = *weir_last_error();
    uint64_t reached_ns = 0;
    struct span span;
    if (buckets->reached[place].sequence && can_read(buckets, place, &reached_ns)) {
        for (uint32_t i = 0; i < buckets->plan.bucket_count; i++)
            if (read_span(&buckets->buckets[i].times[place], &span))
                add(buckets, &buckets->buckets[i], &span, reached_ns);
        buckets->figures.timed_steps++;
        buckets->reached[place] = (struct weir_event){0, 0};
    }
    weir_error_set(before.status ? &before : NULL);
}

static void read_all(weir_buckets *buckets)
{
    for (uint32_t place = 0; place < WEIR__BUCKETS_STEPS; place++)
        weir__buckets_read_times(buckets, place);
}

void weir_buckets_get_statistics_sized(weir_buckets *buckets,
                                       struct weir_buckets_statistics *out_statistics, size_t size)
{
    static const struct weir_buckets_statistics none;
    if (buckets)
        read_all(buckets);
    weir_sized_write(out_statistics, size, buckets ? &buckets->figures : &none, sizeof none);
}

weir_status weir_buckets_get_bucket_statistics(weir_buckets *buckets, uint32_t index,
                                               struct weir_bucket_statistics *out_statistics)
{
    *out_statistics = (struct weir_bucket_statistics){0};
    if (index >= buckets->plan.bucket_count)
        return weir__pattern_fail(buckets->label, WEIR_ERROR_INVALID, NULL,
                                  "weir_buckets_get_bucket_statistics: there is no bucket %" PRIu32
                                  ", there are %" PRIu32,
                                  index, buckets->plan.bucket_count);
    read_all(buckets);
    *out_statistics = buckets->buckets[index].figures;
    return WEIR_OK;
}
