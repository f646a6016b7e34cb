// The job `ddp`: a step of data-parallel training whose gradients are reduced in buckets, after the
// backward pass and beside it.
#include <stdio.h>

#include "cli/runtime/open.h"
#include "tests/bench/jobs/ddp.h"

#define CAP_MOST (UINT64_C(1) << 40)

enum {
    BATCH_MOST = 1 << 20,
    WIDTH_MOST = 1 << 15,
    ROWS_MOST = 2 + 3 * DDP_BUCKETS_MAX, // of a batch
    SETTLING = 5,                        // steps before a batch is measured
};

static const char *const cap_words[] = {"auto", NULL};
static const char *const elements[] = {"f32", "bf16", NULL};

// One way of the step, with one batch.
struct ddp_row {
    size_t batch;
    enum ddp_way way;
    size_t buckets;
    struct bench_samples ms;
    struct bench_samples of_longest; // over the longer one of computation and communication
    struct bench_samples exposed;    // above the computation alone
    struct bench_samples of_raw;     // OVERLAPPED over RAW
};

struct ddp_run {
    struct ddp ddp;
    struct ddp_row
        *rows;   // of each batch: compute, communicate, then for all caps serial, overlapped
    size_t ways; // of each cap, from DDP_SERIAL on
    size_t rows_of_batch;
    size_t row_count;
    char raw_message[256]; // why there is no raw step
};

const char *ddp_way_name(enum ddp_way way)
{
    static const char *const names[] = {"computation", "communication", "serial", "overlapped",
                                        "raw"};
    return names[way];
}

// Defaults.

static bool can_blas(struct ddp *ddp)
{
    struct train_blas *blas = NULL;
    const bool can = train_blas_open(ddp->all.ranks[0].device, ddp->cublas, &blas) == WEIR_OK;
    train_blas_close(&blas);
    return can;
}

// A GPU with cuBLAS gets a step that keeps it busy, other devices one that a processor does in some
// milliseconds.
static void choose_list(const char *option, struct bench_list *list, const char *text)
{
    if (list->text)
        return;
    list->text = text;
    bench_parse_list(option, list);
}

static void choose(struct ddp *ddp)
{
    ddp->blas = can_blas(ddp);
    if (!ddp->blas && ddp->cublas)
        cli_fail_weir();
    ddp->layers = ddp->layers ? ddp->layers : ddp->blas ? 96 : 16;
    ddp->width = ddp->width ? ddp->width : ddp->blas ? 2048 : 128;
    choose_list("batch", &ddp->batches, ddp->blas ? "2048,4096,8192" : "64");
    choose_list("buckets", &ddp->caps,
                ddp->blas ? "auto,8M,16M,32M,48M,64M,96M,768M" : "auto,64K,256K,1M");
    choose_list("element", &ddp->element, ddp->blas ? "bf16" : "f32");
    ddp->bf16 = ddp->element.values[0] == BENCH_WORD + 1;
    ddp->element_size = ddp->bf16 ? 2 : 4;
    for (size_t i = 0; i < ddp->batches.count; i++)
        if (ddp->batch_max < ddp->batches.values[i])
            ddp->batch_max = (size_t)ddp->batches.values[i];
    if (ddp->bf16 && !ddp->blas)
        cli_fail(CLI_SETUP, "--element bf16 needs cuBLAS, and here is none; use f32");
}

// Measuring.

static void make_rows(struct ddp_run *run)
{
    struct ddp *ddp = &run->ddp;
    run->ways = ddp->raw ? 3 : 2;
    run->rows_of_batch = 2 + run->ways * ddp->caps.count;
    run->row_count = ddp->batches.count * run->rows_of_batch;
    run->rows = cli_allocate(run->row_count, sizeof *run->rows);
    for (size_t i = 0; i < run->row_count; i++) {
        const size_t k = i % run->rows_of_batch;
        run->rows[i].batch = (size_t)ddp->batches.values[i / run->rows_of_batch];
        run->rows[i].buckets = k < 2 ? 0 : (k - 2) / run->ways;
        run->rows[i].way = (enum ddp_way)(k < 2 ? k : DDP_SERIAL + (k - 2) % run->ways);
    }
}

// What the figures of one turn are to each other.
static void relate(struct ddp_run *run, struct ddp_row *rows, const double *ms)
{
    const double longest = ms[0] > ms[1] ? ms[0] : ms[1];
    for (size_t i = 2; i < run->rows_of_batch; i++) {
        bench_add(&rows[i].of_longest, longest > 0 ? ms[i] / longest : 0);
        bench_add(&rows[i].exposed, ms[i] - ms[0]);
        if (rows[i].way == DDP_RAW)
            bench_add(&rows[i - 1].of_raw, ms[i] > 0 ? ms[i - 1] / ms[i] : 0);
    }
}

// Brings a GPU to the clocks that it has under this load.
static void settle(struct ddp *ddp, const struct ddp_row *row, int steps)
{
    for (int i = 0; i < steps && ddp->blas; i++)
        (void)ddp_time(ddp, row->way, row->buckets);
}

// What ran before a step sets the clocks of a GPU, so the first one of a row is not counted there. Each row goes first
// in turn.
static void measure_batch(struct ddp_run *run, struct ddp_row *rows)
{
    struct ddp *ddp = &run->ddp;
    double ms[ROWS_MOST] = {0};
    ddp_set_batch(ddp, rows[0].batch);
    settle(ddp, &rows[0], SETTLING);
    for (size_t k = 0; k < run->rows_of_batch; k++) {
        const size_t i = (size_t)((k + bench.turn) % run->rows_of_batch);
        settle(ddp, &rows[i], 1);
        ms[i] = ddp_time(ddp, rows[i].way, rows[i].buckets);
        bench_keep(&rows[i].ms, ms[i]);
    }
    relate(run, rows, ms);
}

static void measure(struct ddp_run *run)
{
    struct ddp *ddp = &run->ddp;
    for (size_t i = 0; i < ddp->batches.count; i++) {
        ddp_set_batch(ddp, (size_t)ddp->batches.values[i]);
        ddp_check(ddp);
    }
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < ddp->batches.count; i++)
            measure_batch(run, &run->rows[i * run->rows_of_batch]);
}

// Reporting.

static void plan_of(const struct ddp *ddp, size_t buckets, struct weir_buckets_plan *out_plan)
{
    weir_buckets_get_plan(ddp->buckets[buckets], out_plan);
}

static void name_cap(const struct ddp *ddp, size_t buckets, char *text, size_t size)
{
    struct weir_buckets_plan plan;
    plan_of(ddp, buckets, &plan);
    snprintf(text, size, "%s%.3g MiB", ddp->caps.values[buckets] == BENCH_WORD ? "auto: " : "",
             (double)plan.cap_bytes / (1 << 20));
}

static void put_row(const struct ddp *ddp, struct bench_table *table, const struct ddp_row *row)
{
    struct weir_buckets_plan plan;
    char cap[48] = "";
    plan_of(ddp, row->buckets, &plan);
    if (row->way != DDP_COMPUTE)
        name_cap(ddp, row->buckets, cap, sizeof cap);
    bench_row(table, (double)row->batch, ddp_way_name(row->way), cap,
              (double)(row->way == DDP_COMPUTE ? 0 : plan.bucket_count), &row->ms, &row->of_longest,
              &row->exposed, &row->of_raw);
}

static void plot_row(const struct ddp *ddp, const struct ddp_row *row)
{
    char cap[48], series[80];
    if (row->way < DDP_SERIAL)
        return;
    name_cap(ddp, row->buckets, cap, sizeof cap);
    snprintf(series, sizeof series, "%s, batch %zu", ddp_way_name(row->way), row->batch);
    bench_plot_bar(series, cap, &row->ms);
}

static void report_rows(struct ddp_run *run)
{
    static const struct bench_column columns[] = {
        {"batch", "batch", BENCH_NUMBER, 0},
        {"way", "way", BENCH_TEXT, 0},
        {"buckets", "buckets", BENCH_TEXT, 0},
        {"count", "count", BENCH_NUMBER, 0},
        {"ms", "ms", BENCH_SPREAD, 3},
        {"of_longest", "of the longer one", BENCH_SPREAD, 3},
        {"exposed_ms", "exposed, ms", BENCH_SPREAD, 3},
        {"of_raw", "over raw", BENCH_SPREAD, 3},
    };
    struct bench_table *table = bench_table_of("steps", "one step, by the slowest rank", columns,
                                               BENCH_COUNT(columns) - (run->ddp.raw ? 0 : 1));
    char title[80];
    snprintf(title, sizeof title, "A step of %llu layers on %u ranks",
             (unsigned long long)run->ddp.layers, (unsigned)run->ddp.all.count);
    bench_plot(title, "", "milliseconds");
    for (size_t i = 0; i < run->row_count; i++) {
        put_row(&run->ddp, table, &run->rows[i]);
        plot_row(&run->ddp, &run->rows[i]);
    }
}

// The overlapped row with that word or, with NULL, the fastest one without; NULL: there is none.
static const struct ddp_row *pick(const struct ddp_run *run, size_t batch, bool automatic)
{
    const struct ddp_row *rows = &run->rows[batch * run->rows_of_batch], *found = NULL;
    for (size_t i = 3; i < run->rows_of_batch; i += run->ways) {
        const bool is_auto = run->ddp.caps.values[rows[i].buckets] == BENCH_WORD;
        if (is_auto == automatic &&
            (!found || bench_spread(&rows[i].ms).median < bench_spread(&found->ms).median))
            found = &rows[i];
    }
    return found;
}

// Cells of a row without figures are empty.
static void report_gains(struct ddp_run *run)
{
    static const struct bench_column columns[] = {
        {"batch", "batch", BENCH_NUMBER, 0},
        {"best", "best buckets", BENCH_TEXT, 0},
        {"serial_over_best", "serial / best", BENCH_SPREAD, 3},
        {"auto_over_best", "auto / best", BENCH_SPREAD, 3},
    };
    struct bench_table *table = bench_table("gains", "what overlap gains, and auto loses", columns);
    for (size_t i = 0; i < run->ddp.batches.count; i++) {
        const struct ddp_row *automatic = pick(run, i, true), *best = pick(run, i, false);
        struct bench_samples ratio = {0};
        char cap[48];
        best = best ? best : automatic;
        name_cap(&run->ddp, best->buckets, cap, sizeof cap);
        const struct bench_samples gain = bench_ratio(&(best - 1)->ms, &best->ms);
        if (automatic)
            ratio = bench_ratio(&automatic->ms, &best->ms);
        bench_row(table, (double)best->batch, cap, &gain, &ratio);
    }
}

static void describe_raw(const struct ddp_run *run)
{
    const struct ddp *ddp = &run->ddp;
    if (ddp->raw)
        bench_note("raw: two streams, the same products and buckets, %s", ddp_raw_name(ddp->raw));
    else if (ddp->blas)
        bench_note("no raw step beside it: %s", run->raw_message);
}

// What was measured for the rows of `auto`, and the sizes of their buckets.
static void describe_auto(const struct ddp *ddp)
{
    for (size_t i = 0; i < ddp->caps.count; i++) {
        struct weir_buckets_plan plan;
        plan_of(ddp, i, &plan);
        if (plan.latency_ns > 0)
            bench_note("measured for auto: %.1f us and %.2f GB/s; buckets of up to %.3g MiB, the "
                       "last ones down to %.3g MiB",
                       plan.latency_ns / 1000, plan.bytes_per_ns,
                       (double)plan.cap_bytes / (1 << 20), (double)plan.last_bytes / (1 << 20));
    }
}

static void describe(struct ddp_run *run)
{
    const struct ddp *ddp = &run->ddp;
    struct weir_buckets_plan plan;
    plan_of(ddp, 0, &plan);
    bench_parameter("ranks", ddp->all.count);
    bench_parameter("layers", (double)ddp->layers);
    bench_parameter("width", (double)ddp->width);
    bench_parameter("gradient_bytes", (double)plan.bytes);
    bench_note("%u ranks; %s, products by %s", (unsigned)ddp->all.count, ddp->bf16 ? "bf16" : "f32",
               ddp->blas ? "cuBLAS" : "the library's kernels");
    describe_auto(ddp);
    describe_raw(run);
    if (!ddp->computes)
        bench_note("this device runs no kernels: the gradients were zeros, and times are those "
                   "of calls");
}

// The command.

// The other ranks measure the same, and rank 0 tells it.
static void run_ddp(void *user)
{
    struct ddp_run *run = user;
    struct ddp *ddp = &run->ddp;
    bench.runtime = cli_open(ddp->config);
    bench_ranks_open(1, &ddp->all);
    bench.silent = ddp->all.first > 0;
    bench.quiet = bench.quiet || bench.silent;
    choose(ddp);
    ddp_open(ddp);
    ddp->raw = ddp_raw_open(ddp, run->raw_message, sizeof run->raw_message);
    make_rows(run);
    measure(run);
    describe(run);
    report_rows(run);
    report_gains(run);
}

static int ddp_main(int argc, char **argv)
{
    static struct ddp_run run = {
        .ddp = {.batches = {.minimum = 1, .maximum = BATCH_MOST},
                .caps = {.minimum = 1, .maximum = CAP_MOST, .words = cap_words},
                .element = {.words = elements, .most = 1}},
    };
    static const struct cli_option options[] = {
        {"layers", "N", "layers, all alike (96 with cuBLAS, else 16)", CLI_COUNT, &run.ddp.layers,
         1, DDP_LAYERS_MAX},
        {"width", "N", "rows and columns of a layer's weight (2048, 128)", CLI_COUNT,
         &run.ddp.width, 1, WIDTH_MOST},
        {"batch", "LIST", "samples of a rank (2048,4096,8192; 64)", CLI_VALUES, &run.ddp.batches, 0,
         0},
        {"buckets", "LIST", "the largest bucket, such as 25M, or auto", CLI_VALUES, &run.ddp.caps,
         0, 0},
        {"element", "E", "f32, or bf16, which needs cuBLAS (bf16, f32)", CLI_VALUES,
         &run.ddp.element, 0, 0},
        {"cublas", "F", "the file of cuBLAS; without it, the one that the\nlinker finds", CLI_TEXT,
         &run.ddp.cublas, 0, 0},
        {"nccl", "F", "the same of NCCL, for the raw step", CLI_TEXT, &run.ddp.nccl, 0, 0},
        CLI_CONFIG(&run.ddp.config),
    };
    static const struct bench_program program = {
        .group = "jobs",
        .name = "ddp",
        .about =
            "Measures a step of data-parallel training: products of matrices forward and "
            "backward,\n"
            "and the gradients averaged over all ranks in buckets, after the backward pass\n"
            "(serial) and beside it (overlapped). A launcher starts the ranks, one a process,\n"
            "of which rank 0 prints.\n",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run_ddp,
    };
    return bench_main(&program, &run, argc, argv);
}

const struct cli_command job_ddp = {
    .name = "ddp",
    .summary = "a training step, its gradients reduced in buckets",
    .main = ddp_main,
};
