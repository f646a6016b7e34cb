// weir bench overlap: one large job through patterns/chunks, cut and ordered in many
// ways, beside the bare copies of the same bytes in both directions at once.
//
// Every way has queues of its own. They are created together, so that a device that
// assigns its channels in turn gives them different ones, and kept, because a queue is
// warm only when it has created all events of its ring.
#include "cli/bench/overlap.h"

#include "patterns/chunks.h"

enum {
    CASES_MOST = 8,
    WAYS_MOST = 512,
    QUEUES_MOST = 512
};

#define SIZE_LEAST UINT64_C(4096)
#define SIZE_MOST (UINT64_C(1) << 33) // 2^31 numbers, which a launch counts in 32 bits
#define SIZE_CPU (UINT64_C(16) << 20)
#define SIZE_GPU (UINT64_C(1) << 30)
#define ROUNDS_MOST 1000000
#define AUTO BENCH_WORD // the first one of each list of words
#define ENGINE (BENCH_WORD + 1)

// In the order of weir_chunks_order.
static const char *const order_words[] = {"auto", "depth", "breadth", "interleaved", NULL};
static const char *const queue_words[] = {"auto", "engine", NULL};
static const char *const chunk_words[] = {"auto", NULL};
static const char *const kernel_words[] = {"light", "heavy", NULL};

// What all ways of a size and a kernel are compared with.
struct reference {
    size_t size;
    uint64_t kernel; // as on the command line
    uint32_t rounds;
    const char *kernel_name;
    struct bench_samples up;   // one way alone
    struct bench_samples down; // the other
    struct bench_samples both; // at once: the limit
    struct bench_samples kernel_alone;
    size_t one_queue; // its way in one piece
};

struct way {
    struct overlap *overlap;
    struct reference *reference;
    uint64_t order, queues, chunks; // as on the command line
    weir_chunks *job;
    struct weir_chunks_plan plan;
    struct bench_samples ns;
};

struct overlap {
    struct bench_work work;
    struct bench_list sizes, kernels, orders, queues, chunks;
    weir_buffer *src, *dst;     // HOST
    weir_buffer *values, *rest; // DEVICE; `rest` is for bare copies alone
    weir_queue *up, *down;
    struct reference references[CASES_MOST];
    size_t reference_count;
    struct way *ways;
    size_t way_count;
    uint32_t queue_count;            // of all ways
    const struct overlap_raw *calls; // NULL: there are none
    size_t raw_count;
    struct bench_samples raw_ms[OVERLAP_RAW_MOST], auto_ms; // the latter of the first size
};

// Ways.

static weir_status launch(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct way *way = user;
    return bench_work_launch(&way->overlap->work, queue, way->overlap->values, chunk->in_offset,
                             chunk->in_size, way->reference->rounds);
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

static void create_job(struct overlap *o, struct way *way)
{
    const bool counted = way->queues < BENCH_WORD;
    const struct weir_chunks_params params = {
        .struct_size = sizeof params,
        .device = bench.device,
        .label = "bench/overlap",
        .element_count = way->reference->size / sizeof(uint32_t),
        .in_bytes = sizeof(uint32_t),
        .out_bytes = sizeof(uint32_t),
        .granularity = o->work.block,
        .src = {o->src, 0},
        .in = {o->values, 0},
        .out = {o->values, 0},
        .dst = {o->dst, 0},
        .kernel = launch,
        .user = way,
        .order = (weir_chunks_order)(way->order - BENCH_WORD),
        .chunk_count = way->chunks == AUTO ? 0 : (uint32_t)way->chunks,
        .layout = way->queues == ENGINE ? WEIR_CHUNKS_BY_ENGINE
                  : counted             ? WEIR_CHUNKS_BY_CHUNK
                                        : WEIR_CHUNKS_LAYOUT_AUTO,
        .queue_count = counted ? (uint32_t)way->queues : 0,
    };
    cli_fine(weir_chunks_create(&params, &way->job));
    cli_own(destroy_chunks, &way->job);
    weir_chunks_get_plan(way->job, &way->plan);
    o->queue_count += way->plan.queue_count;
    if (o->queue_count > QUEUES_MOST)
        cli_fail(CLI_USAGE, "these ways have more than %d queues together; name fewer",
                 QUEUES_MOST);
}

// Creates the job, which is kept, and runs it once to check its results.
static void check_way(struct overlap *o, struct way *way)
{
    const struct reference *reference = way->reference;
    create_job(o, way);
    (void)time_job(way->job);
    (void)bench_work_check(o->dst, reference->size, OVERLAP_SEED, reference->rounds,
                           cli_text("order %s, %u chunks", order_words[way->order - BENCH_WORD],
                                    (unsigned)way->plan.chunk_count));
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

// What is listed.

static struct way *list_way(struct overlap *o, struct reference *reference, uint64_t order)
{
    struct way *way = &o->ways[o->way_count++];
    *way = (struct way){o, reference, .order = order, .queues = AUTO, .chunks = AUTO};
    return way;
}

// `auto` is one way; the other orders are combined with the lists of queues and chunks.
static void list_order(struct overlap *o, struct reference *reference, uint64_t order)
{
    if (order == AUTO)
        (void)list_way(o, reference, order);
    for (size_t i = 0; order != AUTO && i < o->queues.count * o->chunks.count; i++) {
        struct way *way = list_way(o, reference, order);
        way->queues = o->queues.values[i / o->chunks.count];
        way->chunks = o->chunks.values[i % o->chunks.count];
    }
}

static void list_reference(struct overlap *o, uint64_t size, uint64_t kernel)
{
    struct reference *reference = &o->references[o->reference_count++];
    reference->size = (size_t)size / sizeof(uint32_t) * sizeof(uint32_t);
    reference->kernel = kernel;
    reference->one_queue = o->way_count;
    struct way *one = list_way(o, reference, BENCH_WORD + WEIR_CHUNKS_DEPTH_FIRST);
    one->queues = one->chunks = 1;
    for (size_t i = 0; i < o->orders.count; i++)
        list_order(o, reference, o->orders.values[i]);
}

static void list_all(struct overlap *o)
{
    const size_t cases = o->sizes.count * o->kernels.count;
    const size_t most = cases * o->orders.count * o->queues.count * o->chunks.count;
    if (cases > CASES_MOST)
        cli_fail(CLI_USAGE, "more than %d pairs of a size and a kernel; name fewer", CASES_MOST);
    if (most > WAYS_MOST)
        cli_fail(CLI_USAGE, "%zu ways to run the job, and at most %d are measured; name fewer",
                 most, WAYS_MOST);
    o->ways = cli_allocate(most + cases, sizeof *o->ways);
    for (size_t i = 0; i < cases; i++)
        list_reference(o, o->sizes.values[i / o->kernels.count],
                       o->kernels.values[i % o->kernels.count]);
}

// Making and checking everything.

static void make_all(struct overlap *o)
{
    size_t most = 0;
    for (size_t i = 0; i < o->sizes.count; i++)
        most = o->sizes.values[i] > most ? (size_t)o->sizes.values[i] : most;
    bench_work_open(&o->work);
    bench_buffer(bench.device, "src", most, WEIR_PLACE_HOST, &o->src);
    bench_buffer(bench.device, "dst", most, WEIR_PLACE_HOST, &o->dst);
    bench_buffer(bench.device, "values", most, WEIR_PLACE_DEVICE, &o->values);
    bench_buffer(bench.device, "rest", most, WEIR_PLACE_DEVICE, &o->rest);
    bench_queue(bench.device, "bench/up", 0, &o->up);
    bench_queue(bench.device, "bench/down", 0, &o->down);
    bench_work_fill(o->src, most, OVERLAP_SEED);
    bench_work_spoil(o->dst, most);
    cli_fine(weir_queue_copy(o->down, o->rest, 0, o->src, 0, most));
    bench_sync(o->down);
}

// A heavy kernel takes about as long as the copies, so that all three engines of a
// device could be busy all of the time.
static void choose_rounds(struct overlap *o, struct reference *reference)
{
    const uint64_t kernel = reference->kernel;
    reference->rounds = kernel < BENCH_WORD ? (uint32_t)kernel : 1;
    reference->kernel_name = kernel < BENCH_WORD ? cli_text("%u rounds", (unsigned)kernel)
                                                 : kernel_words[kernel - BENCH_WORD];
    if (kernel != BENCH_WORD + 1)
        return;
    (void)time_copies(o, reference->size, true, true); // the second one counts
    reference->rounds = bench_work_calibrate(&o->work, o->values, reference->size,
                                             time_copies(o, reference->size, true, true));
}

static void check_all(struct overlap *o)
{
    for (size_t i = 0; i < o->reference_count; i++)
        choose_rounds(o, &o->references[i]);
    for (size_t i = 0; i < o->way_count; i++)
        check_way(o, &o->ways[i]);
    if (o->calls)
        o->raw_count = o->calls->open(o->references[0].size);
    for (size_t i = OVERLAP_RAW_COPIES; i < o->raw_count; i++)
        (void)o->calls->run(i, true);
}

// Measuring.

static void measure_reference(struct overlap *o, struct reference *reference)
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
        struct way *way = &o->ways[i];
        const double ns = time_job(way->job);
        bench_keep(&way->ns, ns);
        if (i == o->references[0].one_queue)
            bench_figure(&(struct bench_samples){0}, ns * 1e-6, "weir_one_queue");
        if (way->reference == o->references && way->order == AUTO)
            bench_figure(&o->auto_ms, ns * 1e-6, "weir_auto");
    }
}

static void measure_raw(struct overlap *o)
{
    for (size_t i = 0; i < o->raw_count; i++)
        bench_figure(&o->raw_ms[i], o->calls->run(i, false), "raw_%s", o->calls->name(i));
}

// Reporting.

static void put_alone(struct bench_table *table, const struct reference *reference,
                      const char *what, struct bench_samples ns, double bytes)
{
    const struct bench_samples none = {0};
    bench_text(table, "size", "size", bench_bytes(reference->size));
    bench_text(table, "what", "what", what);
    bench_value(table, "ms", "ms", 3, bench_scaled(ns, 1e-6));
    bench_value(table, "gb_per_s", "GB/s", 1, bytes > 0 ? bench_rate(ns, bytes) : none);
}

static void report_references(struct overlap *o)
{
    struct bench_table *table = bench_table("alone", "each part alone");
    for (size_t i = 0; i < o->reference_count; i++) {
        const struct reference *it = &o->references[i];
        const double size = (double)it->size;
        if (i == 0 || it->size != it[-1].size) {
            put_alone(table, it, "bare copy up", it->up, size);
            put_alone(table, it, "bare copy down", it->down, size);
            put_alone(table, it, "both at once (the limit)", it->both, 2 * size);
        }
        put_alone(table, it, cli_text("kernel, %s", it->kernel_name), it->kernel_alone, 0);
        put_alone(table, it, cli_text("one queue, one piece, %s", it->kernel_name),
                  o->ways[it->one_queue].ns, 0);
    }
}

static void plot_way(struct overlap *o, const struct way *way, struct bench_samples ratio)
{
    const bool queues = o->queues.count > 1 && way->order != AUTO, sizes = o->sizes.count > 1;
    const struct bench_spread spread = bench_spread(ratio);
    const char *name =
        cli_text("%s%s, %s%s", order_words[way->order - BENCH_WORD],
                 queues ? cli_text(", %u queues", (unsigned)way->plan.queue_count) : "",
                 way->reference->kernel_name,
                 sizes ? cli_text(", %s", bench_bytes(way->reference->size)) : "");
    cli_plot_add(cli_plot_series(&bench.plot, name),
                 (struct cli_plot_point){way->plan.chunk_count, spread.median, spread.minimum,
                                         spread.maximum});
}

static void put_way(struct overlap *o, struct bench_table *table, const struct way *way)
{
    const struct reference *reference = way->reference;
    const struct weir_chunks_plan *plan = &way->plan;
    const struct bench_samples ratio = bench_ratio(way->ns, reference->both);
    bench_text(table, "size", "size", bench_bytes(reference->size));
    bench_text(table, "kernel", "kernel", reference->kernel_name);
    bench_text(table, "asked", "order", order_words[way->order - BENCH_WORD]);
    bench_text(table, "order", "runs as", order_words[plan->order]);
    bench_number(table, "queues", "queues", plan->queue_count);
    bench_text(table, "layout", "by", plan->layout == WEIR_CHUNKS_BY_ENGINE ? "engine" : "chunk");
    bench_number(table, "chunks", "chunks", plan->chunk_count);
    bench_value(table, "ms", "ms", 3, bench_scaled(way->ns, 1e-6));
    bench_value(table, "to_limit", "x limit", 3, ratio);
    bench_value(table, "speed_up", "x one queue", 2,
                bench_ratio(o->ways[reference->one_queue].ns, way->ns));
    plot_way(o, way, ratio);
}

static void report_raw(struct overlap *o)
{
    struct bench_table *table =
        bench_table("raw", "the first size, light, by the driver's own calls");
    for (size_t i = 0; i < o->raw_count; i++) {
        const struct bench_samples ms = o->raw_ms[i];
        bench_text(table, "way", "way", o->calls->name(i));
        bench_value(table, "ms", "ms", 3, ms);
        bench_value(table, "of_copies", "of copies both ways", 3,
                    bench_ratio(ms, o->raw_ms[OVERLAP_RAW_BOTH]));
        bench_value(table, "auto_to_it", "auto to it", 3, bench_ratio(o->auto_ms, ms));
    }
}

// The command.

static void run(void *user)
{
    struct overlap *o = user;
    if (o->sizes.count == 0)
        o->sizes.values[o->sizes.count++] = bench_is_processor() ? SIZE_CPU : SIZE_GPU;
    list_all(o);
    make_all(o);
    check_all(o);
    // Each side goes first in turn.
    for (bench_start(); bench_turn();) {
        const bool weir_first = bench.turn % 2 == 0;
        (weir_first ? measure_weir : measure_raw)(o);
        (weir_first ? measure_raw : measure_weir)(o);
    }
    bench_plot("Chunked copies and a kernel: time over the limit", "chunks",
               "multiple of the bare copies' time");
    bench_plot_level("bare copies, both ways", 1);
    bench.plot.doubling = true;
    report_references(o);
    struct bench_table *table =
        bench_table("ways", "in chunks: time, as a multiple of the bare copies in both "
                            "directions, and speed-up to one queue in one piece");
    for (size_t i = 0; i < o->way_count; i++)
        if (i != o->ways[i].reference->one_queue)
            put_way(o, table, &o->ways[i]);
    report_raw(o);
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
