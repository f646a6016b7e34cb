// What is made, checked and timed.
#include "cli/bench/overlap.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    QUEUES_MAX = 512,
    SEED = 20261
};

static weir_status launch(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct overlap_job *job = user;
    return bench_work_launch(&job->overlap->work, queue, job->overlap->values, chunk->in_offset,
                             chunk->in_size, job->rounds);
}

static struct weir_chunks_params params_of(const struct overlap *o, struct overlap_job *job,
                                           size_t size)
{
    return (struct weir_chunks_params){
        .struct_size = sizeof(struct weir_chunks_params),
        .device = o->bench->device,
        .label = "bench/overlap",
        .element_count = size / sizeof(uint32_t),
        .in_bytes = sizeof(uint32_t),
        .out_bytes = sizeof(uint32_t),
        .granularity = o->work.block,
        .src = {o->src, 0},
        .in = {o->values, 0},
        .out = {o->values, 0},
        .dst = {o->dst, 0},
        .kernel = launch,
        .user = job,
    };
}

static void choose(const struct overlap_way *way, struct weir_chunks_params *params)
{
    static const weir_chunks_order orders[] = {
        [OVERLAP_AUTO] = WEIR_CHUNKS_ORDER_AUTO,
        [OVERLAP_DEPTH] = WEIR_CHUNKS_DEPTH_FIRST,
        [OVERLAP_BREADTH] = WEIR_CHUNKS_BREADTH_FIRST,
        [OVERLAP_INTERLEAVED] = WEIR_CHUNKS_INTERLEAVED,
    };
    params->order = orders[way->order - BENCH_WORD];
    if (way->chunks < BENCH_WORD)
        params->chunk_count = (uint32_t)way->chunks;
    if (way->queues == BENCH_WORD + 1) {
        params->layout = WEIR_CHUNKS_BY_ENGINE;
    } else if (way->queues < BENCH_WORD) {
        params->layout = WEIR_CHUNKS_BY_CHUNK;
        params->queue_count = (uint32_t)way->queues;
    }
}

// Submits the job and waits for it; nanoseconds of that in `*out_ns`.
static bool run_job(const struct overlap *o, weir_chunks *chunks, double *out_ns)
{
    struct weir_event done;
    const uint64_t began = cli_now_ns();
    *out_ns = 0;
    if (weir_chunks_run(chunks, NULL, 0, &done) != WEIR_OK ||
        weir_event_sync(done, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(o->bench);
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

// Creates the job, which is kept, and runs it once to check its results.
static bool check_job(struct overlap *o, const struct weir_chunks_params *params,
                      struct weir_chunks_plan *out_plan, const char *what)
{
    struct overlap_job *job = params->user;
    double ns;
    if (weir_chunks_create(params, &job->chunks) != WEIR_OK)
        return bench_fail_weir(o->bench);
    weir_chunks_get_plan(job->chunks, out_plan);
    o->queue_count += out_plan->queue_count;
    if (o->queue_count > QUEUES_MAX)
        return bench_fail(o->bench, CLI_USAGE,
                          "these ways have more than %d queues together; name fewer", QUEUES_MAX);
    return run_job(o, job->chunks, &ns) &&
           bench_work_check(o->bench, o->dst, params->element_count * sizeof(uint32_t), SEED,
                            job->rounds, what);
}

// The bare copies. Both queues are flushed before the host waits for either.
static bool time_copies(const struct overlap *o, size_t size, bool up, bool down, double *out_ns)
{
    const uint64_t began = cli_now_ns();
    *out_ns = 0;
    if ((up && (weir_queue_copy(o->up, o->values, 0, o->src, 0, size) != WEIR_OK ||
                weir_queue_flush(o->up) != WEIR_OK)) ||
        (down && (weir_queue_copy(o->down, o->dst, 0, o->rest, 0, size) != WEIR_OK ||
                  weir_queue_flush(o->down) != WEIR_OK)) ||
        weir_queue_sync(o->up, WEIR_FOREVER) != WEIR_OK ||
        weir_queue_sync(o->down, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(o->bench);
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

// Making everything.

static bool fill_rest(struct overlap *o)
{
    return (weir_queue_copy(o->down, o->rest, 0, o->src, 0, o->size_most) == WEIR_OK &&
            weir_queue_sync(o->down, WEIR_FOREVER) == WEIR_OK) ||
           bench_fail_weir(o->bench);
}

bool overlap_make(struct overlap *o)
{
    struct bench *bench = o->bench;
    for (size_t i = 0; i < o->sizes.count; i++)
        if (o->sizes.values[i] > o->size_most)
            o->size_most = (size_t)o->sizes.values[i];
    return bench_work_open(bench, &o->work) &&
           bench_buffer(bench, "src", o->size_most, WEIR_PLACE_HOST, &o->src) &&
           bench_buffer(bench, "dst", o->size_most, WEIR_PLACE_HOST, &o->dst) &&
           bench_buffer(bench, "values", o->size_most, WEIR_PLACE_DEVICE, &o->values) &&
           bench_buffer(bench, "rest", o->size_most, WEIR_PLACE_DEVICE, &o->rest) &&
           bench_queue(bench, "bench/up", 0, &o->up) &&
           bench_queue(bench, "bench/down", 0, &o->down) &&
           bench_work_fill(bench, o->src, o->size_most, SEED) &&
           bench_work_spoil(bench, o->dst, o->size_most) && fill_rest(o);
}

void overlap_destroy(struct overlap *o)
{
    for (size_t i = 0; i < o->way_count; i++)
        weir_chunks_destroy(&o->ways[i].job.chunks);
    for (size_t i = 0; i < o->reference_count; i++)
        weir_chunks_destroy(&o->references[i].job.chunks);
    weir_queue_destroy(&o->down);
    weir_queue_destroy(&o->up);
    weir_buffer_destroy(&o->rest);
    weir_buffer_destroy(&o->values);
    weir_buffer_destroy(&o->dst);
    weir_buffer_destroy(&o->src);
    bench_work_close(&o->work);
    free(o->ways);
}

// A heavy kernel takes about as long as the copies, so that all three engines of a
// device could be busy all of the time.
static bool choose_rounds(struct overlap *o, struct overlap_reference *reference)
{
    double ns = 0;
    if (reference->kernel < BENCH_WORD) {
        reference->rounds = (uint32_t)reference->kernel;
        snprintf(reference->kernel_name, sizeof reference->kernel_name, "%u rounds",
                 (unsigned)reference->rounds);
        return true;
    }
    snprintf(reference->kernel_name, sizeof reference->kernel_name, "%s",
             overlap_kernels[reference->kernel - BENCH_WORD]);
    reference->rounds = 1;
    if (reference->kernel == BENCH_WORD)
        return true;
    for (int i = 0; i < 2; i++) // the second one counts
        if (!time_copies(o, reference->size, true, true, &ns))
            return false;
    return bench_work_calibrate(&o->work, o->values, reference->size, ns, &reference->rounds);
}

// Measuring.

static bool check_reference(struct overlap *o, struct overlap_reference *reference)
{
    struct weir_chunks_plan plan;
    reference->job = (struct overlap_job){.overlap = o, .rounds = reference->rounds};
    struct weir_chunks_params params = params_of(o, &reference->job, reference->size);
    params.layout = WEIR_CHUNKS_BY_CHUNK;
    params.queue_count = 1;
    params.chunk_count = 1;
    return check_job(o, &params, &plan, "one queue, one piece");
}

static bool check_way(struct overlap *o, struct overlap_way *way)
{
    const struct overlap_reference *reference = &o->references[way->reference];
    char what[64];
    way->job = (struct overlap_job){.overlap = o, .rounds = reference->rounds};
    struct weir_chunks_params params = params_of(o, &way->job, reference->size);
    choose(way, &params);
    snprintf(what, sizeof what, "order %s, %u chunks", overlap_orders[way->order - BENCH_WORD],
             (unsigned)params.chunk_count);
    return check_job(o, &params, &way->plan, what);
}

bool overlap_check(struct overlap *o)
{
    for (size_t i = 0; i < o->reference_count; i++)
        if (!choose_rounds(o, &o->references[i]) || !check_reference(o, &o->references[i]))
            return false;
    for (size_t i = 0; i < o->way_count; i++)
        if (!check_way(o, &o->ways[i]))
            return false;
    return true;
}

static bool measure_reference(struct overlap *o, struct overlap_reference *reference)
{
    struct bench *bench = o->bench;
    double up, down, both, kernel, one;
    if (!time_copies(o, reference->size, true, false, &up) ||
        !time_copies(o, reference->size, false, true, &down) ||
        !time_copies(o, reference->size, true, true, &both) ||
        !bench_work_time(&o->work, o->values, reference->size, reference->rounds, &kernel) ||
        !run_job(o, reference->job.chunks, &one))
        return false;
    bench_keep(bench, &reference->up, up);
    bench_keep(bench, &reference->down, down);
    bench_keep(bench, &reference->both, both);
    bench_keep(bench, &reference->kernel_alone, kernel);
    bench_keep(bench, &reference->one_queue, one);
    return true;
}

bool overlap_measure(struct overlap *o)
{
    struct bench *bench = o->bench;
    for (bench_start(bench, 5 * o->reference_count + o->way_count); bench_turn(bench);) {
        for (size_t i = 0; i < o->reference_count; i++)
            if (!measure_reference(o, &o->references[i]))
                return false;
        for (size_t i = 0; i < o->way_count; i++) {
            double ns;
            if (!run_job(o, o->ways[i].job.chunks, &ns))
                return false;
            bench_keep(bench, &o->ways[i].ns, ns);
        }
    }
    return true;
}
