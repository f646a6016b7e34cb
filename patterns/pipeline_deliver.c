// The deliverer of a pipeline: it waits for the oldest frame, counts it, and delivers it; and the figures of one
// pipeline, and of several that are added up.
#include "patterns/pipeline_parts.h"

#include <string.h>

#include "base/clock.h"
#include "patterns/shared.h"

// Figures of several pipelines.
struct sum {
    struct weir_pipeline_statistics figures; // latencies and `wall_ns` are not filled in
    struct weir__histogram latency;
    uint64_t first_ns;
    uint64_t last_ns; // 0: no frame was delivered
};

static void add_counts(struct weir_pipeline_statistics *to,
                       const struct weir_pipeline_statistics *from)
{
    to->succeeded += from->succeeded;
    to->failed += from->failed;
    to->dropped += from->dropped;
    to->cancelled += from->cancelled;
    to->refused += from->refused;
    to->recoveries += from->recoveries;
    to->in_flight_max += from->in_flight_max;
    to->timed_frames += from->timed_frames;
}

static void add_times(struct weir_pipeline_statistics *to, const weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        const struct weir_pipeline_stage_statistics *from = &pipeline->figures.stages[i];
        if (i >= to->stage_count)
            to->stages[to->stage_count++].name = pipeline->stages[i].name;
        to->stages[i].busy_ns += from->busy_ns;
        to->stages[i].wait_ns += from->wait_ns;
        to->busy_ns += from->busy_ns;
        to->covered_ns += weir__union_length(&pipeline->covered[i]);
    }
    to->overlap_ns = to->busy_ns - to->covered_ns;
}

static void add_figures(struct sum *sum, weir_pipeline *pipeline)
{
    weir__pattern_lock_take(&pipeline->line->lock);
    sum->figures.accepted += pipeline->tail;
    add_counts(&sum->figures, &pipeline->figures);
    add_times(&sum->figures, pipeline);
    weir__histogram_merge(&sum->latency, &pipeline->latency);
    if (pipeline->tail > 0 && pipeline->first_ns < sum->first_ns)
        sum->first_ns = pipeline->first_ns;
    if (pipeline->last_ns > sum->last_ns)
        sum->last_ns = pipeline->last_ns;
    weir__pattern_lock_release(&pipeline->line->lock);
}

static void write_figures(weir_pipeline *const *pipelines, uint32_t count,
                          struct weir_pipeline_statistics *out_statistics, size_t size)
{
    struct sum sum = {.first_ns = UINT64_MAX};
    struct weir_pipeline_statistics *figures = &sum.figures;
    const struct weir__histogram *latency = &sum.latency;

    for (uint32_t i = 0; i < count; i++)
        add_figures(&sum, pipelines[i]);
    figures->wall_ns = sum.last_ns > 0 ? sum.last_ns - sum.first_ns : 0;
    figures->latency_min_ns = latency->minimum;
    figures->latency_mean_ns = latency->count > 0 ? latency->total / latency->count : 0;
    figures->latency_p50_ns = weir__histogram_percentile(latency, 50);
    figures->latency_p99_ns = weir__histogram_percentile(latency, 99);
    figures->latency_max_ns = latency->maximum;
    weir_sized_write(out_statistics, size, figures, sizeof *figures);
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

#define SHORTEST_NAP_NS UINT64_C(200000)
#define LONGEST_NAP_NS UINT64_C(1000000)

static bool all_prepare(weir_pipeline *pipeline)
{
    weir__pattern_lock_take(&pipeline->line->lock);
    const bool all =
        pipeline->preparing > 0 && pipeline->preparing == pipeline->params.prepare_threads;
    weir__pattern_lock_release(&pipeline->line->lock);
    return all;
}

// Drivers that notice the end of an event soonest keep a processor busy until then. While all preparers
// are at work the pipeline waits for them and not for the device: the processor is theirs, and a
// delivery some time later delays nothing, as there are free slots.
static weir_status wait_for_event(weir_pipeline *pipeline, struct weir_event event)
{
    for (uint64_t nap_ns = SHORTEST_NAP_NS;
         all_prepare(pipeline) && weir_event_query(event) == WEIR_NOT_READY;
         nap_ns = nap_ns < LONGEST_NAP_NS / 2 ? 2 * nap_ns : LONGEST_NAP_NS)
        weir_clock_sleep_ns(nap_ns);
    return weir_event_sync(event, WEIR_FOREVER);
}

static bool wait_for_last_stages(weir_pipeline *pipeline, struct weir__slot *slot)
{
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        if (pipeline->stages[i].last && wait_for_event(pipeline, slot->ends[i]) != WEIR_OK)
            return false;
    }
    return true;
}

// The slot's previous frame was delivered, so a refusal belongs to this frame.
static void wait_for_graph(weir_pipeline *pipeline, struct weir__slot *slot)
{
    if (slot->done.sequence != 0)
        (void)weir__pipeline_took(slot, "graph", wait_for_event(pipeline, slot->done));
}

// Waits for all work of a frame. If nothing failed, the end of the last stages
// implies that of the stages before them. Otherwise every submitted stage is
// queried, in order, so that the earliest failure is found: a queue that refused a
// stage may only have passed on the failure of an earlier stage.
static void wait_for_frame(weir_pipeline *pipeline, struct weir__slot *slot)
{
    if (pipeline->params.graphs) {
        wait_for_graph(pipeline, slot);
        return;
    }
    if (slot->status == WEIR_OK && wait_for_last_stages(pipeline, slot))
        return;
    bool refused = slot->refused;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        if (slot->ends[i].sequence == 0)
            continue;
        weir_status status = weir_event_sync(slot->ends[i], WEIR_FOREVER);
        if (status != WEIR_OK && refused) {
            slot->status = WEIR_OK;
            refused = false;
        }
        (void)weir__pipeline_took(slot, pipeline->stages[i].name, status);
    }
}

// Returns the slot's spans, or NULL if one of them is not available.
static const struct weir_pipeline_span *read_spans(weir_pipeline *pipeline, struct weir__slot *slot)
{
    if (!pipeline->timing || slot->status != WEIR_OK)
        return NULL;
    for (uint32_t i = 0; i < pipeline->params.stage_count; i++) {
        struct weir_pipeline_span *span = &slot->spans[i];
        if (weir_event_time_ns(slot->begins[i], &span->begin_ns) != WEIR_OK ||
            weir_event_time_ns(slot->ends[i], &span->end_ns) != WEIR_OK)
            return NULL;
        // Drivers round the two times independently.
        if (span->end_ns < span->begin_ns)
            span->end_ns = span->begin_ns;
    }
    return slot->spans;
}

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

static void count_result(weir_pipeline *pipeline, const struct weir_pipeline_result *result)
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

// Builds the outcome of the frame at the ring's head from its record, its slot and
// the clock.
static struct weir_pipeline_result make_result(weir_pipeline *pipeline,
                                               const struct weir__record *record,
                                               const struct weir__slot *slot, uint64_t now_ns)
{
    struct weir_pipeline_result result = {
        .sequence = pipeline->head,
        .status = slot ? slot->status : record->status,
        .stage = slot ? slot->stage : "",
        .latency_ns = now_ns - record->accepted_ns,
        .stage_count = pipeline->params.stage_count,
    };
    if (result.status < 0)
        result.error = slot ? &slot->error : &pipeline->lost_error;
    return result;
}

// Called with the lock, which is released meanwhile.
static void deliver_head(weir_pipeline *pipeline)
{
    const struct weir_pipeline_params *params = &pipeline->params;
    const struct weir__record *record = weir__pipeline_record(pipeline, pipeline->head);
    struct weir__slot *slot = NULL;
    const struct weir_pipeline_span *spans = NULL;

    if (record->state == WEIR__FRAME_STARTED) {
        slot = &pipeline->slots[record->slot];
        weir__pattern_lock_release(&pipeline->line->lock);
        wait_for_frame(pipeline, slot);
        spans = read_spans(pipeline, slot);
        weir__pattern_lock_take(&pipeline->line->lock);
        if (slot->queue_failed && slot->generation == pipeline->generation)
            pipeline->must_recover = true;
    }
    while (pipeline->line->head != record->number)
        (void)weir__pattern_lock_wait(&pipeline->line->lock, &pipeline->line->moved, NULL);
    uint64_t now_ns = weir_clock_now_ns();
    void *frame = record->frame;
    struct {
        WEIR_SIZED_CELL(struct weir_pipeline_result, result, WEIR_SIZED_ROOM);
    } delivery;
    memset(&delivery, 0, sizeof delivery);
    delivery.result = make_result(pipeline, record, slot, now_ns);
    delivery.result.spans = spans;
    count_result(pipeline, &delivery.result);
    pipeline->last_ns = now_ns;
    weir__pattern_lock_release(&pipeline->line->lock);
    if (params->deliver)
        params->deliver(params->user, frame, slot ? slot->data : NULL, &delivery.result);
    weir__pattern_lock_take(&pipeline->line->lock);
    pipeline->line->head++;
    pipeline->head++;
    pipeline->released += slot != NULL;
    weir__pipeline_wake_start(pipeline);
    pthread_cond_broadcast(&pipeline->line->moved);
}

// Called with the lock. False when the pipeline is to stop.
static bool wait_for_head(weir_pipeline *pipeline)
{
    while (!pipeline->stopping) {
        const struct weir__record *head = weir__pipeline_record(pipeline, pipeline->head);
        if (pipeline->head < pipeline->tail &&
            (head->state == WEIR__FRAME_STARTED || head->state == WEIR__FRAME_ENDED))
            return true;
        (void)weir__pattern_lock_wait(&pipeline->line->lock, &pipeline->to_deliver, NULL);
    }
    return false;
}

void weir__pipeline_deliverer(void *argument)
{
    weir_pipeline *pipeline = argument;

    weir__pattern_lock_take(&pipeline->line->lock);
    while (wait_for_head(pipeline))
        deliver_head(pipeline);
    weir__pattern_lock_release(&pipeline->line->lock);
}
