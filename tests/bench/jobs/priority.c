// The job `priority`: how long a small piece of work takes from its submission to its
// end, on an idle device, beside a queue that keeps the device busy, and the same with
// the highest priority beside the lowest.

#include "tests/bench/jobs/drivers.h"

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

// Small work on an idle device; beside busy work, both of normal priority; and of the highest priority beside busy
// work of the lowest.
static const char *const conditions[CONDITIONS] = {"idle", "same", "high"};

struct priority {
    uint64_t samples; // in a turn
    struct bench_work work;
    size_t busy_bytes;
    uint32_t busy_rounds;
    weir_queue *small[CONDITIONS], *busy[CONDITIONS]; // NULL: not measured, or nothing busy
    weir_buffer *small_values, *busy_values;
    uint32_t *numbers; // on the host
    struct weir_event pending[AHEAD];
    size_t pending_count;
    uint32_t small_launches, busy_launches; // since the values were filled
    double *times;
    struct bench_samples median_us[CONDITIONS], late_us[CONDITIONS], beside[CONDITIONS];
};

// The busy queue.

static void forget_finished(struct priority *p)
{
    while (p->pending_count > 0 && weir_event_query(p->pending[0]) != WEIR_NOT_READY) {
        p->pending_count--;
        memmove(p->pending, p->pending + 1, p->pending_count * sizeof *p->pending);
    }
}

static void keep_busy(struct priority *p, weir_queue *queue)
{
    forget_finished(p);
    for (; p->pending_count < AHEAD; p->pending_count++) {
        cli_fine(
            bench_work_launch(&p->work, queue, p->busy_values, 0, p->busy_bytes, p->busy_rounds));
        cli_fine(weir_queue_record(queue, &p->pending[p->pending_count]));
        p->busy_launches++;
    }
    cli_fine(weir_queue_flush(queue));
}

// Microseconds of one sample, and whether the busy queue was busy to its end.
static double sample(struct priority *p, enum condition condition, bool *out_beside)
{
    struct weir_event done;
    if (p->busy[condition])
        keep_busy(p, p->busy[condition]);
    const uint64_t began = cli_now_ns();
    cli_fine(bench_work_launch(&p->work, p->small[condition], p->small_values, 0, SMALL_BYTES, 1));
    cli_fine(weir_queue_record(p->small[condition], &done));
    cli_fine(weir_event_sync(done, WEIR_FOREVER));
    const double us = (double)(cli_now_ns() - began) * 1e-3;
    p->small_launches++;
    forget_finished(p);
    *out_beside = p->pending_count > 0;
    return us;
}

// Checking.

static void check_values(struct priority *p, weir_buffer *values, size_t size, uint32_t rounds,
                         const char *what)
{
    cli_fine(weir_download(p->work.queue, p->numbers, values, 0, size));
    (void)bench_work_compare(p->numbers, size, SEED, rounds, what);
    bench_judge();
}

// Every launch so far has added to its values.
static void check_all(struct priority *p, const char *when)
{
    check_values(p, p->small_values, SMALL_BYTES, p->small_launches,
                 cli_text("the small work %s", when));
    check_values(p, p->busy_values, p->busy_bytes, p->busy_launches * p->busy_rounds,
                 cli_text("the busy work %s", when));
}

// Measuring.

// So many samples, and how many of them had busy work beside them.
static uint64_t take(struct priority *p, enum condition condition, uint64_t samples)
{
    uint64_t beside_count = 0;
    for (uint64_t i = 0; i < samples; i++) {
        bool beside;
        p->times[i] = sample(p, condition, &beside);
        beside_count += beside;
    }
    // Waits for all work, so that none of it runs during the next condition.
    p->pending_count = 0;
    if (p->busy[condition])
        bench_sync(p->busy[condition]);
    bench_sync(p->small[condition]);
    return beside_count;
}

static void measure(struct priority *p, enum condition condition)
{
    const uint64_t beside = take(p, condition, p->samples);
    bench_sort(p->times, p->samples);
    bench_keep(&p->median_us[condition], p->times[p->samples / 2]);
    bench_keep(&p->late_us[condition], p->times[p->samples * 99 / 100]);
    bench_keep(&p->beside[condition], 100.0 * (double)beside / (double)p->samples);
}

// Set-up and report.

static void make_queues(struct priority *p)
{
    const struct weir_limits *limits = bench.limits;
    const int32_t high = limits->priority_highest, low = limits->priority_lowest;
    bench_queue(bench.device, "small/idle", 0, &p->small[IDLE]);
    bench_queue(bench.device, "small/same", 0, &p->small[SAME]);
    bench_queue(bench.device, "busy/same", 0, &p->busy[SAME]);
    if (high == low) {
        bench_note("not measured: this device has no priorities");
        return;
    }
    bench_queue(bench.device, "small/high", high, &p->small[HIGH]);
    bench_queue(bench.device, "busy/low", low, &p->busy[HIGH]);
}

static void make_objects(struct priority *p)
{
    weir_device *device = bench.device;
    p->busy_bytes = bench.limits->unified_memory ? BUSY_BYTES_CPU : BUSY_BYTES_GPU;
    p->times = cli_allocate(p->samples + PROOF, sizeof *p->times);
    bench_work_open(&p->work);
    make_queues(p);
    bench_buffer(device, "small", SMALL_BYTES, WEIR_PLACE_DEVICE, &p->small_values);
    bench_buffer(device, "busy", p->busy_bytes, WEIR_PLACE_DEVICE, &p->busy_values);
    p->busy_rounds = bench_work_calibrate(&p->work, p->busy_values, p->busy_bytes, BUSY_NS);
    p->numbers = cli_allocate(1, p->busy_bytes);
    bench_work_numbers(p->numbers, p->busy_bytes, SEED);
    cli_fine(weir_upload(p->work.queue, p->small_values, 0, p->numbers, SMALL_BYTES));
    cli_fine(weir_upload(p->work.queue, p->busy_values, 0, p->numbers, p->busy_bytes));
}

static void report(struct priority *p)
{
    struct bench_table *table =
        bench_table("latency",
                    "small work, from submission to end: beside none, of the same priority, "
                    "the lowest beside the highest; in the last column, of how many "
                    "samples the busy queue was busy to the end");
    bench_plot("Latency of a small kernel", "", "microseconds");
    for (int i = 0; i < CONDITIONS && p->small[i]; i++) {
        bench_text(table, "condition", "busy work beside it", conditions[i]);
        bench_value(table, "median_us", "median us", 1, p->median_us[i]);
        bench_value(table, "p99_us", "99 % us", 1, p->late_us[i]);
        bench_value(table, "beside_percent", "% beside", 0, p->beside[i]);
        bench_plot_bar("median", conditions[i], p->median_us[i]);
        bench_plot_bar("99th percentile", conditions[i], p->late_us[i]);
    }
}

static void run(void *user)
{
    struct priority *p = user;
    make_objects(p);
    for (int i = 0; i < CONDITIONS && p->small[i]; i++)
        (void)take(p, (enum condition)i, PROOF);
    check_all(p, "before the turns");
    for (bench_start(); bench_turn();)
        for (int i = 0; i < CONDITIONS && p->small[i]; i++)
            measure(p, (enum condition)i);
    check_all(p, "after the turns");
    bench_parameter("samples", (double)p->samples);
    report(p);
}

int job_priority(int argc, char **argv)
{
    static struct priority p = {.samples = 50};
    static const struct cli_option options[] = {
        {"samples", "N", "pieces of small work in a turn (50)", CLI_COUNT, &p.samples, 1,
         SAMPLES_MOST},
    };
    static const struct bench_program program = {
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run,
    };
    return bench_main(&program, &p, argc, argv);
}
