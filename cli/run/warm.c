// Only the first frames' times include what the driver compiles and loads at first
// launches, so their figures are subtracted from those of all frames. Percentiles, and the
// waits for the end of the first frames, cannot be subtracted and are collected as frames
// are delivered.
#include "cli/common/signals.h"
#include "cli/run/run.h"

static void take_gaps(struct run_device *device, const struct weir_pipeline_result *result)
{
    device->gaps_known = true;
    for (uint32_t i = 0; i < result->stage_count && i < RUN_STAGES; i++)
        if (device->ends_ns[i] > 0 && result->spans[i].begin_ns > device->ends_ns[i])
            device->run->first.gaps_ns[i] += result->spans[i].begin_ns - device->ends_ns[i];
}

void run_take_figures(struct run_device *device, const struct weir_pipeline_result *result)
{
    struct run *run = device->run;
    if (!run->first.done) {
        for (uint32_t i = 0; result->spans && i < result->stage_count && i < RUN_STAGES; i++)
            device->ends_ns[i] = result->spans[i].end_ns;
        return;
    }
    // The pipeline counts the wait between two timed frames.
    if (!device->gaps_known && result->spans)
        take_gaps(device, result);
    weir__histogram_add(&run->latency, result->latency_ns);
}

// So long it takes a driver that compiles nothing at most; PoCL takes seconds.
#define FIRST_NS UINT64_C(1000000000)

// A terminal has the progress line, for images.
static void tell_what_takes_long(struct run *run)
{
    if (!run->quiet && !run->progress.shown && !run->first.told && run_rank(run) == 0 &&
        !cli_signal())
        cli_note("the first frame takes long: many drivers compile the kernels then, and keep them "
                 "for later runs");
    run->first.told = true;
}

static void await_first(struct run *run)
{
    if (weir_pipeline_group_drain(run->group, FIRST_NS) == WEIR_OK)
        return;
    tell_what_takes_long(run);
    weir_pipeline_group_drain(run->group, WEIR_FOREVER);
}

void run_take_first(struct run *run)
{
    await_first(run);
    bool done = true;
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct weir_pipeline_statistics one;
        weir_pipeline_get_statistics(weir_arr_coc_pipeline(run->devices[i].arr_coc), &one);
        done = done && one.succeeded > 0;
    }
    weir_pipeline_group_get_statistics(run->group, &run->first.statistics);
    run->first.done = done;
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
