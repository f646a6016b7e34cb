// Submits of equal work to one queue are timed, and what they take longer in jobs, where those of several kinds go
// to several queues in turn. A job of many queues also finds what the driver, and Weir, keep of them in memory and
// not in the caches, since much else has happened since the last one.
#include "cli/calibrate/calibrate.h"

#include <stdint.h>
#include <stdlib.h>

enum {
    PAIRS = CAL_SUBMITS / 2,
    WARM_PAIRS = 1024, // after which a queue has all events that it keeps
    JOB_CHUNKS = CAL_QUEUES,
    JOB_QUEUES = CAL_BRANCHES,
    JOB_KINDS = 3,
};

// More than a processor's own caches hold.
#define MUCH_BYTES ((size_t)32 << 20)
#define LINE_BYTES 64

// Jobs: chunk by chunk, each to the next queue.
struct job {
    struct cal_work works[JOB_KINDS]; // of each chunk
    size_t queues;
    bool cold;
};

static bool use_other_memory(struct calibration *c)
{
    volatile char *memory = malloc(MUCH_BYTES);
    if (!memory)
        return cal_fail(c, CLI_FAILED, "no memory to measure submits to cold queues");
    for (size_t at = 0; at < MUCH_BYTES; at += LINE_BYTES)
        memory[at] = 1;
    free((void *)(uintptr_t)memory);
    return true;
}

// Nanoseconds of all its submits.
static bool time_job(struct calibration *c, const struct job *job, double *out_ns)
{
    for (size_t i = 0; i < job->queues; i++)
        if (!cal_prepare(c, i, &job->works[0]))
            return false;
    if (job->cold && !cli_clock_is_virtual() && !use_other_memory(c))
        return false;
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < JOB_CHUNKS; i++)
        for (size_t kind = 0; kind < JOB_KINDS; kind++)
            if (!cal_submit(c, i % job->queues, &job->works[kind], 1))
                return false;
    *out_ns = (double)(cli_now_ns() - began);
    for (size_t i = 0; i < job->queues; i++)
        if (!cal_sync(c, i))
            return false;
    return true;
}

static struct job chunks(const struct calibration *c)
{
    return (struct job){
        .works = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                  {.kind = CAL_LAUNCH, .rounds = 1},
                  {.kind = CAL_DOWN, .bytes = c->sizes[0]}},
        .queues = JOB_QUEUES,
    };
}

static bool measure_copy_submit(struct calibration *c, size_t at, double *out_ns)
{
    const struct job job = chunks(c);
    double down = 0;
    (void)at;
    if (!cal_submits(c, &job.works[0], out_ns) || !cal_submits(c, &job.works[JOB_KINDS - 1], &down))
        return false;
    *out_ns = (*out_ns + down) / 2;
    return true;
}

// Each submit of a job is of another kind than the one before it, or to another queue.
static bool measure_change(struct calibration *c, size_t at, double *out_ns)
{
    const struct job job = chunks(c);
    const double alone =
        c->figures[CAL_SUBMIT_KERNEL].value + 2 * c->figures[CAL_SUBMIT_COPY].value;
    (void)at;
    if (!time_job(c, &job, out_ns))
        return false;
    *out_ns = (*out_ns / JOB_CHUNKS - alone) / JOB_KINDS;
    return true;
}

// In virtual time the queues of a job of few are not cold.
static bool measure_cold(struct calibration *c, size_t at, double *out_ns)
{
    struct job job = chunks(c);
    const size_t more = CAL_QUEUES - (cli_clock_is_virtual() ? 0 : JOB_QUEUES);
    double few = 0;
    (void)at;
    job.cold = true;
    if (!time_job(c, &job, &few))
        return false;
    job.queues = CAL_QUEUES;
    if (!time_job(c, &job, out_ns))
        return false;
    *out_ns = (*out_ns - few) / (double)more;
    return true;
}

bool cal_measure_cold(struct calibration *c)
{
    return cal_reserve_queues(c, CAL_QUEUES) &&
           cal_figure_measure(c, measure_cold, 0, &c->figures[CAL_SUBMIT_COLD]);
}

static bool measure_submit(struct calibration *c, size_t at, double *out_ns)
{
    static const enum cal_kind kinds[] = {
        [CAL_SUBMIT_KERNEL] = CAL_LAUNCH,
        [CAL_SUBMIT_HOST] = CAL_CALL,
        [CAL_SUBMIT_GRAPH] = CAL_GRAPH,
    };
    const struct cal_work work = {.kind = kinds[at], .bytes = c->sizes[0], .rounds = 1};
    return cal_submits(c, &work, out_ns);
}

static bool measure_mark(struct calibration *c, size_t at, double *out_ns)
{
    (void)at;
    if (!cal_gate(c, 0) || !cal_gate(c, 1))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_submit_pairs(c, c->queues[0], c->queues[1], PAIRS))
        return false;
    *out_ns = (double)(cli_now_ns() - began) / (2 * PAIRS);
    return cal_sync(c, 0) && cal_sync(c, 1);
}

static bool measure_call(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work call = {.kind = CAL_CALL};
    (void)at;
    return cal_each(c, &call, CAL_IN_A_ROW, out_ns);
}

// One copy takes submit + copy + wait, two take one copy more.
static bool measure_wait(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = (size_t)1 << 20};
    double one = 0, two = 0;
    (void)at;
    if (!cal_time(c, &copy, 1, &one) || !cal_time(c, &copy, 2, &two))
        return false;
    *out_ns = 2 * one - two - c->figures[CAL_SUBMIT_COPY].value;
    return true;
}

// Small ones of several kinds, in turn.
static bool time_turns(struct calibration *c, const struct cal_work *works, size_t kinds,
                       uint64_t count, double *out_ns)
{
    *out_ns = 0;
    if (!cal_prepare(c, 0, &works[0]))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_gate(c, 0))
        return false;
    for (uint64_t i = 0; i < kinds * count; i++)
        if (!cal_submit(c, 0, &works[i % kinds], 1))
            return false;
    if (!cal_sync(c, 0))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

// What one turn takes.
static bool measure_turn(struct calibration *c, const struct cal_work *works, size_t kinds,
                         double *out_ns)
{
    const uint64_t count = CAL_IN_A_ROW / kinds;
    double few = 0, many = 0;
    if (!time_turns(c, works, kinds, count, &few) || !time_turns(c, works, kinds, 2 * count, &many))
        return false;
    *out_ns = (many - few) / (double)count;
    return true;
}

// Signals: each operation comes after another engine's. Copies of both directions in turn tell nothing
// of them: on a GPU they meet its looks for signals at other times than jobs do.

static bool measure_three(struct calibration *c, double *out_ns)
{
    const struct job job = chunks(c);
    return measure_turn(c, job.works, JOB_KINDS, out_ns);
}

static bool measure_signal_copy(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work works[] = {{.kind = CAL_LAUNCH, .rounds = 1},
                                     {.kind = CAL_UP, .bytes = c->sizes[0]}};
    double two = 0;
    (void)at;
    if (!measure_three(c, out_ns) || !measure_turn(c, works, 2, &two))
        return false;
    *out_ns -= two + c->by_size[CAL_DOWN].ns[0].value;
    return true;
}

static bool measure_signal(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = 1};
    double kernel = 0;
    (void)at;
    if (!measure_three(c, out_ns) || !cal_each(c, &launch, CAL_IN_A_ROW, &kernel))
        return false;
    *out_ns -= kernel - c->figures[CAL_KERNEL_GAP].value + c->by_size[CAL_UP].ns[0].value +
               c->by_size[CAL_DOWN].ns[0].value + 2 * c->figures[CAL_SIGNAL_COPY].value;
    return true;
}

bool cal_measure_host(struct calibration *c)
{
    return cal_submit_pairs(c, c->queues[0], c->queues[1], WARM_PAIRS) && cal_sync(c, 0) &&
           cal_sync(c, 1) &&
           cal_figure_measure(c, measure_submit, CAL_SUBMIT_KERNEL,
                              &c->figures[CAL_SUBMIT_KERNEL]) &&
           cal_figure_measure(c, measure_copy_submit, 0, &c->figures[CAL_SUBMIT_COPY]) &&
           cal_figure_measure(c, measure_change, 0, &c->figures[CAL_SUBMIT_CHANGE]) &&
           cal_figure_measure(c, measure_submit, CAL_SUBMIT_HOST, &c->figures[CAL_SUBMIT_HOST]) &&
           cal_figure_measure(c, measure_submit, CAL_SUBMIT_GRAPH, &c->figures[CAL_SUBMIT_GRAPH]) &&
           cal_figure_measure(c, measure_mark, 0, &c->figures[CAL_SUBMIT_MARK]) &&
           cal_measure_gap(c) &&
           cal_figure_measure(c, measure_signal_copy, 0, &c->figures[CAL_SIGNAL_COPY]) &&
           cal_figure_measure(c, measure_signal, 0, &c->figures[CAL_SIGNAL]) &&
           cal_figure_measure(c, measure_call, 0, &c->figures[CAL_HOST_CALL]) &&
           cal_figure_measure(c, measure_wait, 0, &c->figures[CAL_WAIT]);
}
