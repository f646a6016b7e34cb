// weir bench overlap: one large job through patterns/chunks, cut and ordered in many
// ways, beside the bare copies of the same bytes in both directions at once.
//
// Every variant has queues of its own. They are created together, so that a device that
// assigns its channels in turn gives them different ones, and kept, because a queue is
// warm only when it has created all events of its ring.
#include <stdio.h>

#include "base/text.h"
#include "cli/bench/overlap.h"
#include "patterns/chunks.h"

enum {
    OVERLAP_CASES_MAX = 8,
};

enum {
    OVERLAP_AUTO,
    OVERLAP_DEPTH,
    OVERLAP_BREADTH,
    OVERLAP_INTERLEAVED
};

// What one way runs.
struct overlap_job {
    const struct overlap *overlap;
    uint32_t rounds;
    weir_chunks *chunks;
};

// What all ways of a size and a kernel are compared with.
struct overlap_reference {
    size_t size;
    uint64_t kernel; // as on the command line
    uint32_t rounds;
    char kernel_name[24];
    struct bench_samples up;   // one way alone
    struct bench_samples down; // the other
    struct bench_samples both; // at once: the limit
    struct bench_samples kernel_alone;
    size_t one_queue; // its way in one piece
};

struct overlap_way {
    size_t reference;
    uint64_t order, queues, chunks; // as on the command line
    struct overlap_job job;
    struct weir_chunks_plan plan;
    struct bench_samples ns;
};

struct overlap {
    struct bench_work work;
    struct bench_list sizes, kernels, orders, queues, chunks;
    size_t size_most;
    weir_buffer *src, *dst;     // HOST
    weir_buffer *values, *rest; // DEVICE; `rest` is for bare copies alone
    weir_queue *up, *down;
    struct overlap_reference references[OVERLAP_CASES_MAX];
    size_t reference_count;
    struct overlap_way *ways;
    size_t way_count;
    uint32_t queue_count;            // of all ways
    const struct overlap_raw *calls; // NULL: there are none
    void *raw;
    struct bench_samples raw_ms[OVERLAP_RAW_MOST], auto_ms; // the latter of the first size
};

enum {
    WAYS_MAX = 512,
};

#define SIZE_LEAST UINT64_C(4096)
#define SIZE_MOST (UINT64_C(1) << 33) // 2^31 numbers, which a launch counts in 32 bits
#define SIZE_CPU (UINT64_C(16) << 20)
#define SIZE_GPU (UINT64_C(1) << 30)
#define ROUNDS_MOST 1000000

static const char *const order_words[] = {"auto", "depth", "breadth", "interleaved", NULL};
static const char *const queue_words[] = {"auto", "engine", NULL};
static const char *const chunk_words[] = {"auto", NULL};
static const char *const kernel_words[] = {"light", "heavy", NULL};

enum {
    QUEUES_MAX = 512,
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
        .device = bench.device,
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

// Nanoseconds of the job, from its submission to its end.
static double time_job(weir_chunks *chunks)
{
    struct weir_event done;
    const uint64_t began = cli_now_ns();
    cli_fine(weir_chunks_run(chunks, NULL, 0, &done));
    cli_fine(weir_event_sync(done, WEIR_FOREVER));
    return (double)(cli_now_ns() - began);
}

CLI_DESTROYER(destroy_chunks, weir_chunks_destroy)

// Creates the job, which is kept, and runs it once to check its results.
static void check_job(struct overlap *o, const struct weir_chunks_params *params,
                      struct weir_chunks_plan *out_plan, const char *what)
{
    struct overlap_job *job = params->user;
    cli_fine(weir_chunks_create(params, &job->chunks));
    cli_own(destroy_chunks, &job->chunks);
    weir_chunks_get_plan(job->chunks, out_plan);
    o->queue_count += out_plan->queue_count;
    if (o->queue_count > QUEUES_MAX)
        cli_fail(CLI_USAGE, "these ways have more than %d queues together; name fewer", QUEUES_MAX);
    (void)time_job(job->chunks);
    (void)bench_work_check(o->dst, params->element_count * sizeof(uint32_t), OVERLAP_SEED,
                           job->rounds, what);
    bench_judge();
}

// The bare copies. Both queues are flushed before the host waits for either.
static double time_copies(const struct overlap *o, size_t size, bool up, bool down)
{
    const uint64_t began = cli_now_ns();
    if (up) {
        cli_fine(weir_queue_copy(o->up, o->values, 0, o->src, 0, size));
        cli_fine(weir_queue_flush(o->up));
    }
    if (down) {
        cli_fine(weir_queue_copy(o->down, o->dst, 0, o->rest, 0, size));
        cli_fine(weir_queue_flush(o->down));
    }
    bench_sync(o->up);
    bench_sync(o->down);
    return (double)(cli_now_ns() - began);
}

// Making everything.

static void make_all(struct overlap *o)
{
    for (size_t i = 0; i < o->sizes.count; i++)
        if (o->sizes.values[i] > o->size_most)
            o->size_most = (size_t)o->sizes.values[i];
    bench_work_open(&o->work);
    bench_buffer(bench.device, "src", o->size_most, WEIR_PLACE_HOST, &o->src);
    bench_buffer(bench.device, "dst", o->size_most, WEIR_PLACE_HOST, &o->dst);
    bench_buffer(bench.device, "values", o->size_most, WEIR_PLACE_DEVICE, &o->values);
    bench_buffer(bench.device, "rest", o->size_most, WEIR_PLACE_DEVICE, &o->rest);
    bench_queue(bench.device, "bench/up", 0, &o->up);
    bench_queue(bench.device, "bench/down", 0, &o->down);
    bench_work_fill(o->src, o->size_most, OVERLAP_SEED);
    bench_work_spoil(o->dst, o->size_most);
    cli_fine(weir_queue_copy(o->down, o->rest, 0, o->src, 0, o->size_most));
    bench_sync(o->down);
}

// A heavy kernel takes about as long as the copies, so that all three engines of a
// device could be busy all of the time.
static void choose_rounds(struct overlap *o, struct overlap_reference *reference)
{
    if (reference->kernel < BENCH_WORD) {
        reference->rounds = (uint32_t)reference->kernel;
        snprintf(reference->kernel_name, sizeof reference->kernel_name, "%u rounds",
                 (unsigned)reference->rounds);
        return;
    }
    snprintf(reference->kernel_name, sizeof reference->kernel_name, "%s",
             kernel_words[reference->kernel - BENCH_WORD]);
    reference->rounds = 1;
    if (reference->kernel == BENCH_WORD)
        return;
    (void)time_copies(o, reference->size, true, true); // the second one counts
    reference->rounds = bench_work_calibrate(&o->work, o->values, reference->size,
                                             time_copies(o, reference->size, true, true));
}

// Measuring.

static void check_way(struct overlap *o, struct overlap_way *way)
{
    const struct overlap_reference *reference = &o->references[way->reference];
    char what[64];
    way->job = (struct overlap_job){.overlap = o, .rounds = reference->rounds};
    struct weir_chunks_params params = params_of(o, &way->job, reference->size);
    choose(way, &params);
    snprintf(what, sizeof what, "order %s, %u chunks", order_words[way->order - BENCH_WORD],
             (unsigned)params.chunk_count);
    check_job(o, &params, &way->plan, what);
}

static void check_all(struct overlap *o)
{
    for (size_t i = 0; i < o->reference_count; i++)
        choose_rounds(o, &o->references[i]);
    for (size_t i = 0; i < o->way_count; i++)
        check_way(o, &o->ways[i]);
    if (o->calls)
        o->raw = o->calls->open(o->references[0].size);
    for (size_t i = OVERLAP_RAW_COPIES; o->raw && i < o->calls->count(o->raw); i++)
        (void)o->calls->run(o->raw, i, true);
}

static void measure_reference(struct overlap *o, struct overlap_reference *reference)
{
    const size_t size = reference->size;
    bench_keep(&reference->up, time_copies(o, size, true, false));
    bench_keep(&reference->down, time_copies(o, size, false, true));
    bench_keep(&reference->both, time_copies(o, size, true, true));
    bench_keep(&reference->kernel_alone,
               bench_work_time(&o->work, o->values, size, reference->rounds));
}

static void measure_weir(struct overlap *o)
{
    for (size_t i = 0; i < o->reference_count; i++)
        measure_reference(o, &o->references[i]);
    for (size_t i = 0; i < o->way_count; i++) {
        struct overlap_way *way = &o->ways[i];
        const double ns = time_job(way->job.chunks);
        bench_keep(&way->ns, ns);
        if (i == o->references[0].one_queue)
            bench_figure(&(struct bench_samples){0}, ns * 1e-6, "weir_one_queue");
        if (way->reference == 0 && way->order == BENCH_WORD + OVERLAP_AUTO)
            bench_figure(&o->auto_ms, ns * 1e-6, "weir_auto");
    }
}

static void measure_raw(struct overlap *o)
{
    for (size_t i = 0; o->raw && i < o->calls->count(o->raw); i++)
        bench_figure(&o->raw_ms[i], o->calls->run(o->raw, i, false), "raw_%s", o->calls->name(i));
}

// Each side goes first in turn.
static void measure_all(struct overlap *o)
{
    for (bench_start(); bench_turn();) {
        const bool weir_first = bench.turn % 2 == 0;
        (weir_first ? measure_weir : measure_raw)(o);
        (weir_first ? measure_raw : measure_weir)(o);
    }
}

static void put_bare(struct bench_table *table, const struct overlap_reference *reference,
                     const char *what, struct bench_samples ns, double bytes)
{
    char size[WEIR_TEXT_QUANTITY_SIZE];
    const struct bench_samples none = {0};
    bench_text(table, "size", "size", weir_text_bytes(size, reference->size));
    bench_text(table, "what", "what", what);
    bench_value(table, "ms", "ms", 3, bench_scaled(ns, 1e-6));
    bench_value(table, "gb_per_s", "GB/s", 1, bytes > 0 ? bench_rate(ns, bytes) : none);
}

static void report_references(struct overlap *o)
{
    struct bench_table *table = bench_table("alone", "each part alone");
    for (size_t i = 0; i < o->reference_count; i++) {
        const struct overlap_reference *reference = &o->references[i];
        const double size = (double)reference->size;
        char name[64];
        if (i == 0 || reference->size != o->references[i - 1].size) {
            put_bare(table, reference, "bare copy up", reference->up, size);
            put_bare(table, reference, "bare copy down", reference->down, size);
            put_bare(table, reference, "both at once (the limit)", reference->both, 2 * size);
        }
        snprintf(name, sizeof name, "kernel, %s", reference->kernel_name);
        put_bare(table, reference, name, reference->kernel_alone, 0);
        snprintf(name, sizeof name, "one queue, one piece, %s", reference->kernel_name);
        put_bare(table, reference, name, o->ways[reference->one_queue].ns, 0);
    }
}

static void plot_way(struct overlap *o, const struct overlap_way *way, struct bench_samples ratio)
{
    const struct overlap_reference *reference = &o->references[way->reference];
    const struct bench_spread spread = bench_spread(ratio);
    char name[CLI_PLOT_TEXT], size[WEIR_TEXT_QUANTITY_SIZE], queues[24] = "";
    if (o->queues.count > 1 && way->order != BENCH_WORD)
        snprintf(queues, sizeof queues, ", %u queues", (unsigned)way->plan.queue_count);
    snprintf(name, sizeof name, "%s%s, %s%s%s", order_words[way->order - BENCH_WORD], queues,
             reference->kernel_name, o->sizes.count > 1 ? ", " : "",
             o->sizes.count > 1 ? weir_text_bytes(size, reference->size) : "");
    struct cli_plot_series *series = cli_plot_series(&bench.plot, name);
    const struct cli_plot_point point = {way->plan.chunk_count, spread.median, spread.minimum,
                                         spread.maximum};
    size_t at = series->count;
    cli_plot_add(series, point);
    // The points are sorted by x; `auto` may have chosen any number of chunks.
    for (; at > 0 && at < series->count && series->points[at - 1].x > point.x; at--) {
        series->points[at] = series->points[at - 1];
        series->points[at - 1] = point;
    }
}

static void put_way(struct overlap *o, struct bench_table *table, const struct overlap_way *way)
{
    static const char *const plan_orders[] = {"auto", "depth", "breadth", "interleaved"};
    const struct overlap_reference *reference = &o->references[way->reference];
    const struct bench_samples ratio = bench_ratio(way->ns, reference->both);
    char size[WEIR_TEXT_QUANTITY_SIZE];
    bench_text(table, "size", "size", weir_text_bytes(size, reference->size));
    bench_text(table, "kernel", "kernel", reference->kernel_name);
    bench_text(table, "asked", "order", order_words[way->order - BENCH_WORD]);
    bench_text(table, "order", "runs as", plan_orders[way->plan.order]);
    bench_number(table, "queues", "queues", way->plan.queue_count);
    bench_text(table, "layout", "by",
               way->plan.layout == WEIR_CHUNKS_BY_ENGINE ? "engine" : "chunk");
    bench_number(table, "chunks", "chunks", way->plan.chunk_count);
    bench_value(table, "ms", "ms", 3, bench_scaled(way->ns, 1e-6));
    bench_value(table, "to_limit", "x limit", 3, ratio);
    bench_value(table, "speed_up", "x one queue", 2,
                bench_ratio(o->ways[reference->one_queue].ns, way->ns));
    plot_way(o, way, ratio);
}

static void report_ways(struct overlap *o)
{
    struct bench_table *table =
        bench_table("ways", "in chunks: time, as a multiple of the bare copies in both "
                            "directions, and speed-up to one queue in one piece");
    for (size_t i = 0; i < o->way_count; i++)
        if (i != o->references[o->ways[i].reference].one_queue)
            put_way(o, table, &o->ways[i]);
}

static void report_raw(struct overlap *o)
{
    struct bench_table *table =
        bench_table("raw", "the first size, light, by the driver's own calls");
    for (size_t i = 0; i < o->calls->count(o->raw); i++) {
        const struct bench_samples ms = o->raw_ms[i];
        bench_text(table, "way", "way", o->calls->name(i));
        bench_value(table, "ms", "ms", 3, ms);
        bench_value(table, "of_copies", "of copies both ways", 3,
                    bench_ratio(ms, o->raw_ms[OVERLAP_RAW_BOTH]));
        bench_value(table, "auto_to_it", "auto to it", 3, bench_ratio(o->auto_ms, ms));
    }
}

static void set_plot(void)
{
    struct cli_plot *plot = &bench.plot;
    bench_plot("Chunked copies and a kernel: time over the limit", "chunks",
               "multiple of the bare copies' time");
    snprintf(plot->level_name, sizeof plot->level_name, "bare copies, both ways");
    plot->level = 1;
    plot->doubling = true;
}

static void report_all(struct overlap *o)
{
    set_plot();
    report_references(o);
    report_ways(o);
    if (o->raw)
        report_raw(o);
}

static void list_references(struct overlap *o)
{
    if (o->sizes.count * o->kernels.count > OVERLAP_CASES_MAX)
        cli_fail(CLI_USAGE, "more than %d pairs of a size and a kernel; name fewer",
                 OVERLAP_CASES_MAX);
    for (size_t s = 0; s < o->sizes.count; s++)
        for (size_t k = 0; k < o->kernels.count; k++) {
            struct overlap_reference *reference = &o->references[o->reference_count++];
            reference->size = (size_t)o->sizes.values[s] / sizeof(uint32_t) * sizeof(uint32_t);
            reference->kernel = o->kernels.values[k];
        }
}

static void list_way(struct overlap *o, size_t reference, uint64_t order, uint64_t queues,
                     uint64_t chunks)
{
    o->ways[o->way_count++] = (struct overlap_way){.reference = reference,
                                                   .order = order,
                                                   .queues = queues,
                                                   .chunks = chunks};
}

// `auto` is one way; the other orders are combined with the lists of queues and chunks.
static void list_order(struct overlap *o, size_t reference, uint64_t order)
{
    const bool combined = order != BENCH_WORD + OVERLAP_AUTO;
    for (size_t q = 0; q < (combined ? o->queues.count : 1); q++)
        for (size_t c = 0; c < (combined ? o->chunks.count : 1); c++)
            list_way(o, reference, order, combined ? o->queues.values[q] : BENCH_WORD,
                     combined ? o->chunks.values[c] : BENCH_WORD);
}

static void list_ways(struct overlap *o)
{
    const size_t most = o->reference_count * o->orders.count * o->queues.count * o->chunks.count;
    if (most > WAYS_MAX)
        cli_fail(CLI_USAGE, "%zu ways to run the job, and at most %d are measured; name fewer",
                 most, WAYS_MAX);
    o->ways = cli_allocate(most + o->reference_count, sizeof *o->ways);
    for (size_t i = 0; i < o->reference_count; i++) {
        o->references[i].one_queue = o->way_count;
        list_way(o, i, BENCH_WORD + OVERLAP_DEPTH, 1, 1);
        for (size_t k = 0; k < o->orders.count; k++)
            list_order(o, i, o->orders.values[k]);
    }
}

// The command.

static void run(void *user)
{
    struct overlap *o = user;
    const struct weir_limits *limits = bench.limits;
    if (o->sizes.count == 0)
        o->sizes.values[o->sizes.count++] =
            limits->unified_memory && !limits->copy_engines_to_device ? SIZE_CPU : SIZE_GPU;
    list_references(o);
    list_ways(o);
    make_all(o);
    check_all(o);
    measure_all(o);
    report_all(o);
}

int bench_overlap_main(const struct overlap_with *with, int argc, char **argv)
{
    static struct overlap o = {
        .sizes = {.minimum = SIZE_LEAST, .maximum = SIZE_MOST},
        .chunks = {.text = "4,16,64,256",
                   .minimum = 1,
                   .maximum = WEIR_CHUNKS_MAX,
                   .words = chunk_words},
        .orders = {.words = order_words},
        .queues = {.text = "auto",
                   .minimum = 1,
                   .maximum = WEIR_CHUNKS_QUEUES_MAX,
                   .words = queue_words},
        .kernels = {.minimum = 1, .maximum = ROUNDS_MOST, .words = kernel_words},
    };
    o.orders.text = with->orders;
    o.kernels.text = with->kernels;
    o.calls = with->raw;
    static const struct cli_option options[] = {
        {"size", "LIST", "bytes each way: 16M,1G (16M where the processor is the\ndevice, else 1G)",
         CLI_VALUES, &o.sizes, 0, 0},
        {"chunks", "LIST", "how many: numbers, or auto (4,16,64,256)", CLI_VALUES, &o.chunks, 0, 0},
        {"orders", "LIST",
         "of depth, breadth, interleaved, and auto, for which\nWeir chooses everything (all)",
         CLI_VALUES, &o.orders, 0, 0},
        {"queues", "LIST",
         "numbers, or auto, or engine: one a direction and one\nfor kernels "
         "(auto)",
         CLI_VALUES, &o.queues, 0, 0},
        {"kernel", "LIST",
         "light (1 round), heavy (as long as the copies), or\nrounds (light,heavy)", CLI_VALUES,
         &o.kernels, 0, 0},
    };
    const struct bench_program program = {
        .about = with->about,
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .serves = with->raw != NULL,
        .run = run,
    };
    return bench_main(&program, &o, argc, argv);
}

int cli_bench_overlap(int argc, char **argv)
{
    static const struct overlap_with alone = {
        .about = "Uploads a job, runs a kernel over it and downloads it, in chunks, in every\n"
                 "combination of the lists below; beside it the bare copies of the same bytes in\n"
                 "both directions at once, which are the limit, and the job in one queue in one\n"
                 "piece.\n\n"
                 "  weir bench overlap --plot overlap.svg\n"
                 "  weir bench overlap --size 64M,1G --orders auto --kernel light",
        .orders = "auto,depth,breadth,interleaved",
        .kernels = "light,heavy",
    };
    return bench_overlap_main(&alone, argc, argv);
}
