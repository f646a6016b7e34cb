// The arithmetic of the pipeline's statistics: a histogram of durations and the
// length of a union of intervals, both in fixed memory.
//
// Threads: neither is safe by itself; the pipeline's lock guards them.
#ifndef WEIR_PATTERNS_STATISTICS_H
#define WEIR_PATTERNS_STATISTICS_H

#include <stdint.h>

// Buckets of equal relative width: 64 for each power of two, and one each for
// the values below 64. A bucket's middle is within 1/128 of every value in it.
#define WEIR__HISTOGRAM_STEPS 64
#define WEIR__HISTOGRAM_BUCKETS (WEIR__HISTOGRAM_STEPS * 59)

struct weir__histogram {
    uint64_t count;
    uint64_t total; // of all values
    uint64_t minimum;
    uint64_t maximum;
    uint64_t buckets[WEIR__HISTOGRAM_BUCKETS];
};

void weir__histogram_add(struct weir__histogram *histogram, uint64_t value);

// Adds all values of `from`.
void weir__histogram_merge(struct weir__histogram *histogram, const struct weir__histogram *from);

// The value at or below which `percent` of the values are, by nearest rank,
// within 1 %. 0 for an empty histogram.
uint64_t weir__histogram_percentile(const struct weir__histogram *histogram, unsigned percent);

struct weir__interval {
    uint64_t begin;
    uint64_t end;
};

// The union of intervals that arrive in almost ascending order. The newest
// `capacity` disjoint pieces are kept; older pieces are folded into a length,
// and an interval that reaches back into them is cut off there.
struct weir__union {
    struct weir__interval *pieces; // the owner's; room for capacity + 1
    uint32_t capacity;             // > 0
    uint32_t count;
    uint64_t floor;  // where the folded part ends
    uint64_t folded; // the covered length of that part
};

void weir__union_add(struct weir__union *set, uint64_t begin, uint64_t end);

// How much time the intervals so far cover.
uint64_t weir__union_length(const struct weir__union *set);

struct weir_pipeline_statistics;

// Adds the figures of other frames, but for `wall_ns` and latencies. The names of stages are those of the first.
void weir__statistics_add(struct weir_pipeline_statistics *to,
                          const struct weir_pipeline_statistics *from);

void weir__statistics_set_latency(struct weir_pipeline_statistics *to,
                                  const struct weir__histogram *latency);

#endif
