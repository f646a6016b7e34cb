#include <math.h>

#include "cli/calibrate/calibrate.h"

// A gate is as long as this many times the submits after it take.
#define GATE_MARGIN 3

#define MOST_GB_PER_S 100000.0 // that a model has

// How long the gate has to be.

static bool measure_large(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    (void)at;
    return cal_time(c, &large, 1, out_ns);
}

// The slowest of all submits.
static bool measure_submits(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work works[] = {
        {.kind = CAL_UP, .bytes = c->sizes[0]},
        {.kind = CAL_DOWN, .bytes = c->sizes[0]},
        {.kind = CAL_WITHIN, .bytes = c->sizes[0]},
        {.kind = CAL_LAUNCH, .rounds = 1},
        {.kind = CAL_CALL},
    };
    (void)at;
    *out_ns = 0;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        double ns = 0;
        if (!cal_submits(c, &works[i], &ns))
            return false;
        *out_ns = ns > *out_ns ? ns : *out_ns;
    }
    return true;
}

bool cal_measure_gate(struct calibration *c)
{
    struct cal_figure large, submit;
    if (!cal_figure_measure(c, measure_large, 0, &large) ||
        !cal_figure_measure(c, measure_submits, 0, &submit))
        return false;
    const double wanted = GATE_MARGIN * 2 * CAL_IN_A_ROW * submit.value;
    c->gate_count = large.value > 0 ? 1 + (uint64_t)(wanted / large.value) : 1;
    return true;
}

// By size.

static bool measure_copy(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work copy = {.kind = (enum cal_kind)(at / CAL_SIZES),
                                  .bytes = c->sizes[at % CAL_SIZES]};
    const uint64_t fitting = c->large / copy.bytes;
    return cal_each(c, &copy, fitting < CAL_IN_A_ROW ? fitting : CAL_IN_A_ROW, out_ns);
}

// ns = latency + bytes * per_byte, with the least squares of relative errors. A time that was too
// small to be measured says nothing.
static void fit(const struct calibration *c, const struct cal_by_size *by_size, double *out_latency,
                double *out_per_byte)
{
    double s = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
    for (size_t i = 0; i < c->size_count; i++) {
        const double x = (double)c->sizes[i], y = by_size->ns[i].value;
        const double weight = y > 0 ? 1 / (y * y) : 0;
        s += weight;
        sx += weight * x;
        sxx += weight * x * x;
        sy += weight * y;
        sxy += weight * x * y;
    }
    *out_per_byte = (s * sxy - sx * sy) / (s * sxx - sx * sx);
    *out_latency = (sy - *out_per_byte * sx) / s;
    if (*out_latency > 0)
        return;
    *out_latency = 0;
    *out_per_byte = sxy / sxx;
}

bool cal_measure_copies(struct calibration *c, enum cal_kind kind)
{
    static const enum cal_key rates[] = {CAL_H2D, CAL_D2H, CAL_D2D, CAL_PEER};
    static const enum cal_key latencies[] = {CAL_H2D_LATENCY, CAL_D2H_LATENCY, CAL_D2D_LATENCY,
                                             CAL_PEER_LATENCY};
    struct cal_by_size *by_size = &c->by_size[kind];
    double latency, per_byte;
    for (size_t i = 0; i < c->size_count; i++)
        if (!cal_figure_measure(c, measure_copy, (size_t)kind * CAL_SIZES + i, &by_size->ns[i]))
            return false;
    fit(c, by_size, &latency, &per_byte);
    if (!(per_byte > 0))
        return cal_fail(c, CLI_FAILED,
                        "larger copies took no longer than smaller ones, so there "
                        "is no bandwidth; is the machine busy? Try more --turns");
    cal_figure_set(c, rates[kind], fmin(1 / per_byte, MOST_GB_PER_S));
    cal_figure_set(c, latencies[kind], latency);
    return true;
}

// Both ways.

static bool measure_at_once(struct calibration *c, size_t at, double *out_share)
{
    const struct cal_work up = {.kind = CAL_UP, .bytes = c->large};
    const struct cal_work down = {.kind = CAL_DOWN, .bytes = c->large};
    double one = 0, other = 0, both = 0;
    (void)at;
    if (!cal_time(c, &up, 1, &one) || !cal_time(c, &down, 1, &other) ||
        !cal_pair(c, &up, &down, &both))
        return false;
    *out_share = both / (one + other);
    return true;
}

// Copies of `kind` on the first queue while the other one is busy with longer work in the other
// direction.
static bool time_beside(struct calibration *c, enum cal_kind kind, uint64_t count, double *out_ns)
{
    const struct cal_work work = {.kind = kind, .bytes = c->large};
    const struct cal_work other = {.kind = kind == CAL_UP ? CAL_DOWN : CAL_UP, .bytes = c->large};
    if (!cal_prepare(c, 0, &work) || !cal_prepare(c, 1, &other))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_submit(c, 1, &other, 6))
        return false;
    if (weir_queue_flush(c->queues[1]) < 0)
        return cal_fail_weir(c);
    if (!cal_submit(c, 0, &work, count) || !cal_sync(c, 0))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return cal_sync(c, 1);
}

static bool measure_beside(struct calibration *c, size_t at, double *out_gb_per_s)
{
    double few = 0, many = 0;
    if (!time_beside(c, (enum cal_kind)at, 1, &few) || !time_beside(c, (enum cal_kind)at, 3, &many))
        return false;
    *out_gb_per_s = many > few ? 2 * (double)c->large / (many - few) : 0;
    return true;
}

// A copy is not faster beside others than alone, whatever the clock says.
static void limit(struct cal_figure *both, const struct cal_figure *alone)
{
    if (both->value > alone->value)
        both->value = alone->value;
}

bool cal_measure_both(struct calibration *c)
{
    struct cal_figure share;
    if (!cal_figure_measure(c, measure_at_once, 0, &share))
        return false;
    cal_figure_set(c, CAL_COPY_ENGINES, share.value < 0.75 ? 2 : 1);
    if (share.value >= 0.75) {
        cal_figure_leave(c, CAL_H2D_BOTH, "copies in both directions take turns");
        cal_figure_leave(c, CAL_D2H_BOTH, "copies in both directions take turns");
        return true;
    }
    if (!cal_figure_measure(c, measure_beside, CAL_UP, &c->figures[CAL_H2D_BOTH]) ||
        !cal_figure_measure(c, measure_beside, CAL_DOWN, &c->figures[CAL_D2H_BOTH]))
        return false;
    limit(&c->figures[CAL_H2D_BOTH], &c->figures[CAL_H2D]);
    limit(&c->figures[CAL_D2H_BOTH], &c->figures[CAL_D2H]);
    return true;
}
