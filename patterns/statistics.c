// The figures of pipelines: the histogram and the union, what a delivered frame adds, and the figures of one pipeline
// and of several that are added up.
//
// Fixed memory, because statistics run in a loop that must not allocate. The
// histogram trades exactness for that, within a bound. The union does not: the
// pipeline gives it a capacity at which no folded piece can still grow.
#include "patterns/statistics.h"

#include "patterns/pipeline_parts.h"
#include "patterns/shared.h"

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

// What a frame adds.

static void count_spans(weir_pipeline *pipeline, const struct weir_pipeline_span *spans)
{
    struct weir_pipeline_statistics *figures = &pipeline->figures;

    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        uint64_t begin = spans[i].begin_ns;
        uint64_t last_end = pipeline->last_end_ns[i];
        figures->stages[i].busy_ns += spans[i].end_ns - begin;
        if (figures->timed_frames > 0 && begin > last_end)
            figures->stages[i].wait_ns += begin - last_end;
        pipeline->last_end_ns[i] = spans[i].end_ns;
        weir__union_add(&pipeline->covered[pipeline->stages[i].timeline], begin, spans[i].end_ns);
    }
    figures->timed_frames++;
}

void weir__pipeline_count(weir_pipeline *pipeline, const struct weir_pipeline_result *result)
{
    struct weir_pipeline_statistics *figures = &pipeline->figures;

    if (result->status == WEIR_DROPPED) {
        figures->dropped++;
    } else if (result->status == WEIR_CANCELLED) {
        figures->cancelled++;
    } else if (result->status != WEIR_OK) {
        figures->failed++;
    } else {
        figures->succeeded++;
        weir__histogram_add(&pipeline->latency, result->latency_ns);
    }
    if (result->spans)
        count_spans(pipeline, result->spans);
}

void weir__statistics_add(struct weir_pipeline_statistics *to,
                          const struct weir_pipeline_statistics *from)
{
    to->accepted += from->accepted;
    to->succeeded += from->succeeded;
    to->failed += from->failed;
    to->dropped += from->dropped;
    to->cancelled += from->cancelled;
    to->refused += from->refused;
    to->recoveries += from->recoveries;
    to->in_flight_max += from->in_flight_max;
    to->timed_frames += from->timed_frames;
    to->busy_ns += from->busy_ns;
    to->covered_ns += from->covered_ns;
    to->overlap_ns += from->overlap_ns;
    for (uint32_t i = 0; i < from->stage_count; i++) {
        if (i >= to->stage_count)
            to->stages[to->stage_count++].name = from->stages[i].name;
        to->stages[i].busy_ns += from->stages[i].busy_ns;
        to->stages[i].wait_ns += from->stages[i].wait_ns;
    }
}

void weir__statistics_set_latency(struct weir_pipeline_statistics *to,
                                  const struct weir__histogram *latency)
{
    to->latency_min_ns = latency->minimum;
    to->latency_mean_ns = latency->count > 0 ? latency->total / latency->count : 0;
    to->latency_p50_ns = weir__histogram_percentile(latency, 50);
    to->latency_p99_ns = weir__histogram_percentile(latency, 99);
    to->latency_max_ns = latency->maximum;
}

// Those of one pipeline, but for `wall_ns` and latencies. Called with the lock.
static struct weir_pipeline_statistics figures_of(const weir_pipeline *pipeline)
{
    struct weir_pipeline_statistics figures = pipeline->figures;
    figures.accepted = pipeline->tail;
    figures.stage_count = pipeline->params.stage_count;
    for (uint32_t i = 0; i < figures.stage_count; i++) {
        figures.stages[i].name = pipeline->stages[i].name;
        figures.busy_ns += figures.stages[i].busy_ns;
        figures.covered_ns += weir__union_length(&pipeline->covered[i]);
    }
    figures.overlap_ns = figures.busy_ns - figures.covered_ns;
    return figures;
}

static void write_figures(weir_pipeline *const *pipelines, uint32_t count,
                          struct weir_pipeline_statistics *out_statistics, size_t size)
{
    struct weir_pipeline_statistics sum = {0};
    struct weir__histogram latency = {0};
    uint64_t first_ns = UINT64_MAX, last_ns = 0; // 0: no frame was delivered

    for (uint32_t i = 0; i < count; i++) {
        weir_pipeline *pipeline = pipelines[i];
        weir__pattern_lock_take(&pipeline->line->lock);
        const struct weir_pipeline_statistics figures = figures_of(pipeline);
        weir__statistics_add(&sum, &figures);
        weir__histogram_merge(&latency, &pipeline->latency);
        if (pipeline->tail > 0 && pipeline->first_ns < first_ns)
            first_ns = pipeline->first_ns;
        if (pipeline->last_ns > last_ns)
            last_ns = pipeline->last_ns;
        weir__pattern_lock_release(&pipeline->line->lock);
    }
    sum.wall_ns = last_ns > 0 ? last_ns - first_ns : 0;
    weir__statistics_set_latency(&sum, &latency);
    weir_sized_write(out_statistics, size, &sum, sizeof sum);
}

void weir_pipeline_get_statistics_sized(weir_pipeline *pipeline,
                                        struct weir_pipeline_statistics *out_statistics,
                                        size_t size)
{
    write_figures(&pipeline, pipeline ? 1 : 0, out_statistics, size);
}

void weir_pipeline_group_get_statistics_sized(weir_pipeline_group *group,
                                              struct weir_pipeline_statistics *out_statistics,
                                              size_t size)
{
    write_figures(group ? group->members : NULL, group ? group->count : 0, out_statistics, size);
}
