// Only the first frame's times include what the driver compiles and loads at first
// launches, so its figures are subtracted from those of all frames. Percentiles, and the
// waits for the end of the first frame, cannot be subtracted and are collected as frames
// are delivered.
#include "cli/run/run.h"

static void take_gaps(struct run_first *first, const struct weir_pipeline_result *result)
{
    first->gaps_known = true;
    for (uint32_t i = 0; i < result->stage_count && i < RUN_STAGES; i++)
        if (result->spans[i].begin_ns > first->ends_ns[i])
            first->gaps_ns[i] = result->spans[i].begin_ns - first->ends_ns[i];
}

void run_take_figures(struct run *run, const struct weir_pipeline_result *result)
{
    struct run_first *first = &run->first;
    if (first->statistics.succeeded == 0) {
        for (uint32_t i = 0; result->spans && i < result->stage_count && i < RUN_STAGES; i++)
            first->ends_ns[i] = result->spans[i].end_ns;
        return;
    }
    // The pipeline counts the wait between two timed frames.
    if (first->statistics.timed_frames > 0 && !first->gaps_known && result->spans)
        take_gaps(first, result);
    weir__histogram_add(&run->latency, result->latency_ns);
}

struct weir_pipeline_statistics run_warm_statistics(const struct run *run)
{
    const struct weir_pipeline_statistics *first = &run->first.statistics;
    const struct weir__histogram *latency = &run->latency;
    struct weir_pipeline_statistics warm = run->statistics;
    warm.succeeded -= first->succeeded;
    warm.wall_ns -= first->wall_ns;
    warm.timed_frames -= first->timed_frames;
    warm.busy_ns -= first->busy_ns;
    warm.covered_ns -= first->covered_ns;
    warm.overlap_ns -= first->overlap_ns;
    for (uint32_t i = 0; i < warm.stage_count && i < RUN_STAGES; i++) {
        warm.stages[i].busy_ns -= first->stages[i].busy_ns;
        warm.stages[i].wait_ns -= first->stages[i].wait_ns + run->first.gaps_ns[i];
    }
    warm.latency_min_ns = latency->minimum;
    warm.latency_mean_ns = latency->count > 0 ? latency->total / latency->count : 0;
    warm.latency_p50_ns = weir__histogram_percentile(latency, 50);
    warm.latency_p99_ns = weir__histogram_percentile(latency, 99);
    warm.latency_max_ns = latency->maximum;
    return warm;
}
