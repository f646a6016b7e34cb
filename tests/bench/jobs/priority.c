// The job `priority`: how long a small piece of work takes from its submission to its
// end, on an idle device, beside a queue that keeps the device busy, and the same with
// the highest priority beside the lowest.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/work.h"

enum {
    AHEAD = 4, // launches that keep the device busy, submitted before they are needed
    SMALL_BYTES = 1024,
    SAMPLES_MOST = 10000,
    SEED = 77,
    PROOF = 3 // samples of the check before anything is timed
};

#define BUSY_BYTES_CPU ((size_t)1 << 20)
#define BUSY_BYTES_GPU ((size_t)64 << 20)
#define BUSY_NS 1000000.0

enum condition {
    IDLE,
    SAME,
    HIGH,
    CONDITIONS
};

static const struct {
    const char *key;
    const char *about;
} conditions[CONDITIONS] = {
    [IDLE] = {"idle", "on an idle device"},
    [SAME] = {"same", "beside busy work, both of normal priority"},
    [HIGH] = {"high", "the highest priority, beside busy work of the lowest"},
};

struct row {
    struct bench_samples median_us, late_us, beside;
};

struct priority {
    uint64_t samples; // in a turn
    struct bench *bench;
    struct bench_work work;
    size_t busy_bytes;
    uint32_t busy_rounds;
    weir_queue *small[CONDITIONS], *busy[CONDITIONS]; // NULL: not measured, or nothing busy
    weir_buffer *host, *small_values, *busy_values;
    struct weir_event pending[AHEAD];
    size_t pending_count;
    uint32_t small_launches, busy_launches; // since the values were filled
    double *times;
    struct row rows[CONDITIONS];
};

// The busy queue.

static void forget_finished(struct priority *p)
{
    while (p->pending_count > 0 && weir_event_query(p->pending[0]) != WEIR_NOT_READY) {
        p->pending_count--;
        memmove(p->pending, p->pending + 1, p->pending_count * sizeof *p->pending);
    }
}

static bool keep_busy(struct priority *p, weir_queue *queue)
{
    forget_finished(p);
    for (; p->pending_count < AHEAD; p->pending_count++) {
        if (bench_work_launch(&p->work, queue, p->busy_values, 0, p->busy_bytes, p->busy_rounds) !=
                WEIR_OK ||
            weir_queue_record(queue, &p->pending[p->pending_count]) != WEIR_OK)
            return bench_fail_weir(p->bench);
        p->busy_launches++;
    }
    return bench_fine(p->bench, weir_queue_flush(queue));
}

// One sample, and whether the busy queue was busy to its end.
static bool sample(struct priority *p, enum condition condition, double *out_us, bool *out_beside)
{
    struct weir_event done;
    *out_us = 0;
    *out_beside = false;
    if (p->busy[condition] && !keep_busy(p, p->busy[condition]))
        return false;
    const uint64_t began = cli_now_ns();
    if (bench_work_launch(&p->work, p->small[condition], p->small_values, 0, SMALL_BYTES, 1) !=
            WEIR_OK ||
        weir_queue_record(p->small[condition], &done) != WEIR_OK ||
        weir_event_sync(done, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(p->bench);
    *out_us = (double)(cli_now_ns() - began) * 1e-3;
    p->small_launches++;
    forget_finished(p);
    *out_beside = p->pending_count > 0;
    return true;
}

// Waits for all work, so that none of it runs during the next condition.
static bool settle(struct priority *p, enum condition condition)
{
    p->pending_count = 0;
    if ((p->busy[condition] && weir_queue_sync(p->busy[condition], WEIR_FOREVER) != WEIR_OK) ||
        weir_queue_sync(p->small[condition], WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(p->bench);
    return true;
}

// Checking.

static bool fill_values(struct priority *p)
{
    weir_queue *queue = p->work.queue;
    p->small_launches = p->busy_launches = 0;
    if (!bench_work_fill(p->bench, p->host, p->busy_bytes, SEED))
        return false;
    return (weir_queue_copy(queue, p->small_values, 0, p->host, 0, SMALL_BYTES) == WEIR_OK &&
            weir_queue_copy(queue, p->busy_values, 0, p->host, 0, p->busy_bytes) == WEIR_OK &&
            weir_queue_sync(queue, WEIR_FOREVER) == WEIR_OK) ||
           bench_fail_weir(p->bench);
}

static bool check_values(struct priority *p, weir_buffer *values, size_t size, uint32_t rounds,
                         const char *what)
{
    if (!bench_work_spoil(p->bench, p->host, size))
        return false;
    if (weir_queue_copy(p->work.queue, p->host, 0, values, 0, size) != WEIR_OK ||
        weir_queue_sync(p->work.queue, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(p->bench);
    return bench_work_check(p->bench, p->host, size, SEED, rounds, what);
}

// Every launch so far has added to its values.
static bool check_all(struct priority *p, const char *when)
{
    char what[96];
    snprintf(what, sizeof what, "the small work %s", when);
    if (!check_values(p, p->small_values, SMALL_BYTES, p->small_launches, what))
        return false;
    snprintf(what, sizeof what, "the busy work %s", when);
    return check_values(p, p->busy_values, p->busy_bytes, p->busy_launches * p->busy_rounds, what);
}

static bool prove(struct priority *p)
{
    double us;
    bool beside;
    for (int i = 0; i < CONDITIONS; i++) {
        if (!p->small[i])
            continue;
        for (int k = 0; k < PROOF; k++)
            if (!sample(p, (enum condition)i, &us, &beside))
                return false;
        if (!settle(p, (enum condition)i))
            return false;
    }
    return check_all(p, "before the turns");
}

// Measuring.

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static bool measure_condition(struct priority *p, enum condition condition)
{
    struct row *row = &p->rows[condition];
    uint64_t beside_count = 0;
    for (uint64_t i = 0; i < p->samples; i++) {
        bool beside;
        if (!sample(p, condition, &p->times[i], &beside))
            return false;
        beside_count += beside;
    }
    if (!settle(p, condition))
        return false;
    qsort(p->times, p->samples, sizeof *p->times, compare_numbers);
    bench_keep(p->bench, &row->median_us, p->times[p->samples / 2]);
    bench_keep(p->bench, &row->late_us, p->times[p->samples * 99 / 100]);
    bench_keep(p->bench, &row->beside, 100.0 * (double)beside_count / (double)p->samples);
    return true;
}

static bool measure(struct priority *p)
{
    for (bench_start(p->bench); bench_turn(p->bench);)
        for (int i = 0; i < CONDITIONS; i++)
            if (p->small[i] && !measure_condition(p, (enum condition)i))
                return false;
    return true;
}

// Set-up and report.

static bool make_queues(struct priority *p)
{
    const struct weir_limits *limits = p->bench->limits;
    const int32_t high = limits->priority_highest, low = limits->priority_lowest;
    if (high == low)
        bench_note(p->bench, "not measured: this device has no priorities");
    return bench_queue(p->bench, "small/idle", 0, &p->small[IDLE]) &&
           bench_queue(p->bench, "small/same", 0, &p->small[SAME]) &&
           bench_queue(p->bench, "busy/same", 0, &p->busy[SAME]) &&
           (high == low || (bench_queue(p->bench, "small/high", high, &p->small[HIGH]) &&
                            bench_queue(p->bench, "busy/low", low, &p->busy[HIGH])));
}

static bool make_objects(struct priority *p)
{
    struct bench *bench = p->bench;
    p->busy_bytes = bench->limits->unified_memory ? BUSY_BYTES_CPU : BUSY_BYTES_GPU;
    p->times = calloc(p->samples, sizeof *p->times);
    if (!p->times)
        return bench_fail(bench, CLI_FAILED, "no memory for the figures");
    return bench_work_open(bench, &p->work) && make_queues(p) &&
           bench_buffer(bench, "host", p->busy_bytes, WEIR_PLACE_HOST, &p->host) &&
           bench_buffer(bench, "small", SMALL_BYTES, WEIR_PLACE_DEVICE, &p->small_values) &&
           bench_buffer(bench, "busy", p->busy_bytes, WEIR_PLACE_DEVICE, &p->busy_values) &&
           bench_work_calibrate(&p->work, p->busy_values, p->busy_bytes, BUSY_NS,
                                &p->busy_rounds) &&
           fill_values(p);
}

static void destroy_objects(struct priority *p)
{
    for (int i = 0; i < CONDITIONS; i++) {
        weir_queue_destroy(&p->small[i]);
        weir_queue_destroy(&p->busy[i]);
    }
    weir_buffer_destroy(&p->busy_values);
    weir_buffer_destroy(&p->small_values);
    weir_buffer_destroy(&p->host);
    bench_work_close(&p->work);
    free(p->times);
}

static void report(struct priority *p)
{
    static const struct bench_column columns[] = {
        {"condition", "", BENCH_TEXT, 0},
        {"about", "small work", BENCH_TEXT, 0},
        {"median_us", "median us", BENCH_SPREAD, 1},
        {"p99_us", "99 % us", BENCH_SPREAD, 1},
        {"beside_percent", "% beside", BENCH_SPREAD, 0},
    };
    struct cli_plot *plot = &p->bench->plot;
    struct bench_table *table =
        bench_table(p->bench, "latency",
                    "from submission to end; the last column: of how many samples the busy queue "
                    "was busy to the end",
                    columns, sizeof columns / sizeof *columns);
    snprintf(plot->title, sizeof plot->title, "Latency of a small kernel");
    snprintf(plot->y_name, sizeof plot->y_name, "microseconds");
    for (int i = 0; i < CONDITIONS; i++) {
        const struct row *row = &p->rows[i];
        if (!p->small[i])
            continue;
        bench_row(table, conditions[i].key, conditions[i].about, &row->median_us, &row->late_us,
                  &row->beside);
        bench_plot_bar(p->bench, "median", conditions[i].key, &row->median_us);
        bench_plot_bar(p->bench, "99th percentile", conditions[i].key, &row->late_us);
    }
}

static bool run(struct bench *bench, void *user)
{
    struct priority *p = user;
    p->bench = bench;
    const bool fine = make_objects(p) && prove(p) && measure(p) && check_all(p, "after the turns");
    if (fine) {
        bench_parameter(bench, "samples", (double)p->samples);
        report(p);
    }
    destroy_objects(p);
    return fine;
}

static int priority_main(int argc, char **argv)
{
    struct priority p = {.samples = 50};
    const struct cli_option options[] = {
        {"samples", "N", "pieces of small work in a turn (50)", CLI_COUNT, &p.samples, 1,
         SAMPLES_MOST},
    };
    const struct bench_program program = {
        .group = "jobs",
        .name = "priority",
        .about = "Measures how long a small kernel takes from its submission to its end: on an\n"
                 "idle device; beside a queue that keeps the device busy with kernels of about a\n"
                 "millisecond; and the same in a queue of the highest priority beside one of the\n"
                 "lowest.\n",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .run = run,
    };
    return bench_main(&program, &p, argc, argv);
}

const struct cli_command job_priority = {
    .name = "priority",
    .summary = "the latency of a queue of high priority beside a busy one",
    .main = priority_main,
};
