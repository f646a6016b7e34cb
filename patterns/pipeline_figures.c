// The statistics of one pipeline, and of several that are added up.
#include "patterns/pipeline_parts.h"

void weir__pipeline_put_latency(struct weir_pipeline_statistics *figures,
                                const struct weir__histogram *latency)
{
    figures->latency_min_ns = latency->minimum;
    figures->latency_mean_ns = latency->count > 0 ? latency->total / latency->count : 0;
    figures->latency_p50_ns = weir__histogram_percentile(latency, 50);
    figures->latency_p99_ns = weir__histogram_percentile(latency, 99);
    figures->latency_max_ns = latency->maximum;
}

// Called with the lock.
static void fill_figures(const weir_pipeline *pipeline, struct weir_pipeline_statistics *figures)
{
    *figures = pipeline->figures;
    figures->accepted = pipeline->tail;
    figures->wall_ns = pipeline->last_ns > 0 ? pipeline->last_ns - pipeline->first_ns : 0;
    figures->stage_count = pipeline->params.stage_count;
    for (uint32_t i = 0; i < figures->stage_count; i++) {
        figures->stages[i].name = pipeline->stages[i].name;
        figures->busy_ns += figures->stages[i].busy_ns;
    }
    for (uint32_t i = 0; i < figures->stage_count; i++)
        figures->covered_ns += weir__union_length(&pipeline->covered[i]);
    figures->overlap_ns = figures->busy_ns - figures->covered_ns;
}

void weir_pipeline_get_statistics_sized(weir_pipeline *pipeline,
                                        struct weir_pipeline_statistics *out_statistics,
                                        size_t size)
{
    struct weir_pipeline_statistics figures = {.accepted = 0};

    if (pipeline) {
        pthread_mutex_lock(&pipeline->lock);
        fill_figures(pipeline, &figures);
        weir__pipeline_put_latency(&figures, &pipeline->latency);
        pthread_mutex_unlock(&pipeline->lock);
    }
    weir_sized_write(out_statistics, size, &figures, sizeof figures);
}

static void add_counts(struct weir_pipeline_statistics *to,
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
}

static void add_times(struct weir_pipeline_statistics *to,
                      const struct weir_pipeline_statistics *from)
{
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

void weir__pipeline_add_statistics(weir_pipeline *pipeline, struct weir__pipeline_sum *sum)
{
    struct weir_pipeline_statistics figures;
    pthread_mutex_lock(&pipeline->lock);
    fill_figures(pipeline, &figures);
    weir__histogram_merge(&sum->latency, &pipeline->latency);
    if (pipeline->tail > 0 && pipeline->first_ns < sum->first_ns)
        sum->first_ns = pipeline->first_ns;
    if (pipeline->last_ns > sum->last_ns)
        sum->last_ns = pipeline->last_ns;
    pthread_mutex_unlock(&pipeline->lock);
    add_counts(&sum->figures, &figures);
    add_times(&sum->figures, &figures);
}
