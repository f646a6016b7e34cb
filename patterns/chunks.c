// A job in chunks: its life and its runs. All sizes and the order of all operations are planned at creation (chunks_plan.c), so
// a run only submits.
//
// Waits between queues, BY_ENGINE. Within a run each stage of a chunk waits for the
// stage before it. Between runs a stage waits until the previous run no longer needs
// the bytes that it overwrites: an upload waits for that chunk's kernel, a kernel for
// that chunk's download. If a download writes the bytes that the next upload reads or
// overwrites (in place, or src and dst the same), the upload waits for the download,
// and so does the kernel after it. The queue of a stage orders the stage's own runs.
//
// BY_CHUNK needs only the waits of the final join: a chunk's operations are in the same
// queue in every run.
#include "patterns/chunks.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/text.h"
#include "patterns/chunks_parts.h"
#include "patterns/place.h"

static const char *const stage_names[] = {"upload", "compute", "download"};

// --- creation and destruction ---

static weir_status make_queue(weir_chunks *chunks, uint32_t index, const char *name)
{
    char label[WEIR__PATTERN_LABEL_SIZE + 16];

    if (name)
        snprintf(label, sizeof label, "%s/%s", chunks->label, name);
    else
        snprintf(label, sizeof label, "%s/%u", chunks->label, (unsigned)index);
    return weir_queue_create(chunks->params.device,
                             &(struct weir_queue_params){
                                 .struct_size = sizeof(struct weir_queue_params),
                                 .label = label,
                                 .priority = chunks->params.priority,
                             },
                             &chunks->queues[index]);
}

static weir_status make_queues(weir_chunks *chunks)
{
    bool by_engine = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE;
    uint32_t made = 0;
    weir_status status = WEIR_OK;

    for (int i = 0; by_engine && i < WEIR__CHUNKS_STAGES && status == WEIR_OK; i++) {
        if (!weir__chunks_has(&chunks->params, (enum weir__chunks_stage)i))
            continue;
        chunks->queue_of[i] = made;
        status = make_queue(chunks, made++, stage_names[i]);
    }
    for (; made < chunks->plan.queue_count && status == WEIR_OK; made++)
        status = make_queue(chunks, made, NULL);
    return status;
}

static bool shares_bytes(const struct weir_chunks_place *a, const struct weir_chunks_place *b)
{
    return a->buffer == b->buffer && a->offset == b->offset;
}

static weir_status make_steps(weir_chunks *chunks)
{
    size_t count = chunks->plan.chunk_count;

    // One element more, so that a job without chunks does not allocate zero bytes.
    chunks->steps = calloc(count * WEIR__CHUNKS_STAGES + 1, sizeof *chunks->steps);
    chunks->ends = calloc(count + 1, sizeof *chunks->ends);
    chunks->cuts = calloc(count + 1, sizeof *chunks->cuts);
    if (!chunks->steps || !chunks->ends || !chunks->cuts)
        return weir__pattern_fail(chunks->label, WEIR_ERROR_OUT_OF_MEMORY, "use fewer chunks",
                                  "no memory for the plan of %zu chunks", count);
    return WEIR_OK;
}

// What a trace tells of the plan, before each run.
static void write_summary(weir_chunks *chunks)
{
    const struct weir_chunks_params *params = &chunks->params;
    const size_t widest =
        params->in_bytes > params->out_bytes ? params->in_bytes : params->out_bytes;
    char most[WEIR_TEXT_QUANTITY_SIZE];

    weir_text_bytes(most, chunks->plan.most_count * widest);
    snprintf(chunks->summary, sizeof chunks->summary, "%u chunks of at most %s",
             (unsigned)chunks->plan.chunk_count, most);
}

static weir_status create(const struct weir_chunks_params *params, weir_chunks **out_chunks)
{
    struct weir_chunks_plan plan = {.chunk_count = 0};
    size_t units = 0;
    *out_chunks = NULL;

    struct weir_chunks_params known;
    weir_status status = weir__pattern_params("weir_chunks_create", "weir_chunks_params", params,
                                              &known, sizeof known);
    params = &known;
    if (status == WEIR_OK)
        status = weir__chunks_plan(params, &plan, &units);
    if (status != WEIR_OK)
        return status;
    weir_chunks *chunks = calloc(1, sizeof *chunks);
    if (!chunks)
        return weir__pattern_fail(params->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory for a job in chunks");
    chunks->params = *params;
    chunks->plan = plan;
    chunks->units = units;
    snprintf(chunks->label, sizeof chunks->label, "%s",
             weir__pattern_label(params->label, "chunks"));
    chunks->params.label = chunks->label;
    chunks->in_place =
        params->in_bytes > 0 && params->out_bytes > 0 &&
        (shares_bytes(&params->in, &params->out) || shares_bytes(&params->src, &params->dst));

    status = make_steps(chunks);
    if (status == WEIR_OK)
        status = make_queues(chunks);
    if (status != WEIR_OK) {
        weir_chunks_destroy(&chunks);
        return status;
    }
    weir__chunks_write_cuts(chunks);
    weir__chunks_write_steps(chunks);
    write_summary(chunks);
    *out_chunks = chunks;
    return WEIR_OK;
}

weir_status weir_chunks_create_at(const struct weir_chunks_params *params, weir_chunks **out_chunks,
                                  const char *file, int line)
{
    const struct weir__place before = weir__pattern_begin(file, line);
    return weir__pattern_end(create(params, out_chunks), before);
}

void weir_chunks_destroy(weir_chunks **chunks)
{
    if (!chunks || !*chunks)
        return;
    weir_chunks *gone = *chunks;

    for (uint32_t i = 0; i < gone->plan.queue_count; i++)
        weir_queue_destroy(&gone->queues[i]);
    free(gone->cuts);
    free(gone->ends);
    free(gone->steps);
    free(gone);
    *chunks = NULL;
}

// --- running ---

static weir_status wait_if_recorded(weir_queue *queue, struct weir_event event)
{
    return event.sequence > 0 ? weir_queue_wait(queue, event) : WEIR_OK;
}

// BY_ENGINE. For stages after this one, `ends` still holds events of an earlier run.
static weir_status wait_for_others(const weir_chunks *chunks, const struct weir__chunks_step *step,
                                   weir_queue *queue)
{
    const struct weir_event *ends = chunks->ends[step->chunk].of;
    bool has_upload = weir__chunks_has(&chunks->params, WEIR__CHUNKS_UPLOAD);

    if (step->stage == WEIR__CHUNKS_DOWNLOAD)
        return wait_if_recorded(queue, ends[WEIR__CHUNKS_COMPUTE]);
    if (step->stage == WEIR__CHUNKS_UPLOAD)
        return wait_if_recorded(
            queue, ends[chunks->in_place ? WEIR__CHUNKS_DOWNLOAD : WEIR__CHUNKS_COMPUTE]);

    weir_status status = WEIR_OK;
    if (!chunks->in_place)
        status = wait_if_recorded(queue, ends[WEIR__CHUNKS_DOWNLOAD]);
    if (status == WEIR_OK && has_upload)
        status = wait_if_recorded(queue, ends[WEIR__CHUNKS_UPLOAD]);
    return status;
}

static weir_status submit_kernel(const weir_chunks *chunks, weir_queue *queue,
                                 const struct weir_chunk *chunk)
{
    weir__pattern_forget();
    weir_status status = chunks->params.kernel(chunks->params.user, queue, chunk);
    if (status == WEIR_OK)
        return WEIR_OK;
    return weir__pattern_callback_failed(chunks->label, "the kernel callback", status);
}

static weir_status submit_work(const weir_chunks *chunks, enum weir__chunks_stage stage,
                               weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct weir_chunks_params *params = &chunks->params;
    size_t src_offset = params->src.offset + chunk->first * params->in_bytes;
    size_t dst_offset = params->dst.offset + chunk->first * params->out_bytes;

    if (stage == WEIR__CHUNKS_UPLOAD)
        return weir_queue_copy(queue, params->in.buffer, chunk->in_offset, params->src.buffer,
                               src_offset, chunk->in_size);
    if (stage == WEIR__CHUNKS_DOWNLOAD)
        return weir_queue_copy(queue, params->dst.buffer, dst_offset, params->out.buffer,
                               chunk->out_offset, chunk->out_size);
    return submit_kernel(chunks, queue, chunk);
}

static weir_status submit_step(weir_chunks *chunks, const struct weir__chunks_step *step)
{
    bool by_engine = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE;
    struct weir_chunk chunk = weir__chunks_at(chunks, step->chunk);
    weir_queue *queue = chunks->queues[weir__chunks_queue(chunks, step->stage, step->chunk)];
    weir_status status = by_engine ? wait_for_others(chunks, step, queue) : WEIR_OK;

    if (status == WEIR_OK)
        status = submit_work(chunks, step->stage, queue, &chunk);
    if (status == WEIR_OK && by_engine)
        status = weir_queue_record(queue, &chunks->ends[step->chunk].of[step->stage]);
    // Work must not stay in a driver's buffer until some later wait happens to flush
    // it.
    if (status == WEIR_OK && step->flush)
        status = weir_queue_flush(queue);
    return status;
}

// BY_ENGINE, all work of the job comes after its first queue, so only that queue waits
// for `after`; BY_CHUNK, every queue does.
static weir_status wait_before(weir_chunks *chunks, const struct weir_event *after, size_t count)
{
    uint32_t heads = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE ? 1 : chunks->plan.queue_count;
    weir_status status = WEIR_OK;

    for (uint32_t q = 0; q < heads; q++)
        for (size_t i = 0; i < count && status == WEIR_OK; i++)
            status = weir_queue_wait(chunks->queues[q], after[i]);
    return status;
}

// Records the event at which all queues have joined, in the last chunk's queue: the
// join delays that queue's next work least, since it comes last in a run.
static weir_status join(weir_chunks *chunks, struct weir_event *out_done)
{
    bool by_engine = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE;
    uint32_t count = chunks->plan.queue_count;
    uint32_t chunk_count = chunks->plan.chunk_count;
    uint32_t last = chunk_count == 0 ? 0 : by_engine ? count - 1 : (chunk_count - 1) % count;
    weir_status status = WEIR_OK;

    for (uint32_t i = 0; !by_engine && i < count && status == WEIR_OK; i++) {
        struct weir_event end;
        if (i == last)
            continue;
        status = weir_queue_record(chunks->queues[i], &end);
        if (status == WEIR_OK)
            status = weir_queue_wait(chunks->queues[last], end);
    }
    if (status == WEIR_OK)
        status = weir_queue_record(chunks->queues[last], out_done);
    return status == WEIR_OK ? weir_queue_flush(chunks->queues[last]) : status;
}

static weir_status check_run(const weir_chunks *chunks, const struct weir_event *after,
                             size_t count)
{
    if (!chunks)
        return weir__pattern_fail(NULL, WEIR_ERROR_INVALID, WEIR__CREATE_REMEDY,
                                  "weir_chunks_run: chunks is NULL");
    for (size_t i = 0; i < count; i++) {
        if (!after || after[i].sequence == 0)
            return weir__pattern_fail(chunks->label, WEIR_ERROR_INVALID,
                                      "record first: weir_queue_record() returns the event",
                                      "weir_chunks_run: event %zu of %zu in `after` is %s", i,
                                      count, after ? "zero" : "missing");
    }
    return chunks->broken ? weir_error_set(&chunks->cause) : WEIR_OK;
}

weir_status weir_chunks_run(weir_chunks *chunks, const struct weir_event *after, size_t count,
                            struct weir_event *out_done)
{
    *out_done = (struct weir_event){0, 0};

    weir_status status = check_run(chunks, after, count);
    if (status != WEIR_OK)
        return status;
    weir_runtime *runtime = weir_device_runtime(chunks->params.device);
    weir_region_push(runtime, chunks->summary, WEIR_NO_NUMBER);
    status = wait_before(chunks, after, count);
    weir_region_pop(runtime);
    if (status != WEIR_OK)
        return status;

    for (uint32_t i = 0; i < chunks->step_count && status == WEIR_OK; i++) {
        weir_region_push(runtime, "chunk", chunks->steps[i].chunk);
        status = submit_step(chunks, &chunks->steps[i]);
        weir_region_pop(runtime);
    }
    if (status == WEIR_OK)
        status = join(chunks, out_done);
    if (status != WEIR_OK) {
        // Half of the run was submitted; another run may begin only after that half has
        // finished.
        chunks->broken = true;
        chunks->cause = *weir_last_error();
        *out_done = (struct weir_event){0, 0};
    }
    return status;
}

weir_status weir_chunks_recover(weir_chunks *chunks)
{
    weir_status first = WEIR_OK;
    struct weir_error error;

    if (!chunks)
        return weir__pattern_fail(NULL, WEIR_ERROR_INVALID, WEIR__CREATE_REMEDY,
                                  "weir_chunks_recover: chunks is NULL");
    // A queue fails only when it reaches its wait for the failed event. So all queues
    // are synced, in the order of the stages, before any is recovered.
    for (uint32_t i = 0; i < chunks->plan.queue_count; i++)
        WEIR_IGNORE(weir_queue_sync(chunks->queues[i], WEIR_FOREVER));
    for (uint32_t i = 0; i < chunks->plan.queue_count; i++) {
        weir_status status = weir_queue_recover(chunks->queues[i]);
        if (status < 0 && first == WEIR_OK) {
            first = status;
            error = *weir_last_error();
        }
    }
    if (first != WEIR_OK)
        return weir_error_set(&error);
    // Events recorded before the failure was cleared would keep reporting it.
    if (chunks->plan.chunk_count > 0)
        memset(chunks->ends, 0, chunks->plan.chunk_count * sizeof *chunks->ends);
    chunks->broken = false;
    return WEIR_OK;
}

void weir_chunks_get_plan_sized(const weir_chunks *chunks, struct weir_chunks_plan *out_plan,
                                size_t size)
{
    weir_sized_write(out_plan, size, &chunks->plan, sizeof chunks->plan);
}

weir_status weir_chunks_get_chunk(const weir_chunks *chunks, uint32_t index,
                                  struct weir_chunk *out_chunk)
{
    memset(out_chunk, 0, sizeof *out_chunk);
    if (index >= chunks->plan.chunk_count)
        return weir__pattern_fail(chunks->label, WEIR_ERROR_INVALID, NULL,
                                  "weir_chunks_get_chunk: there is no chunk %u, only %u",
                                  (unsigned)index, (unsigned)chunks->plan.chunk_count);
    *out_chunk = weir__chunks_at(chunks, index);
    return WEIR_OK;
}
