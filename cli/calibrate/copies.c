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

uint64_t cal_fitting(const struct calibration *c, size_t bytes)
{
    const uint64_t fitting = c->large / bytes;
    return fitting < CAL_IN_A_ROW ? fitting : CAL_IN_A_ROW;
}

// Copies to another device that are submitted meanwhile take 0.4 us less on an H200 than those that all
// wait already, and programs have few at once.
static bool measure_across(struct calibration *c, const struct cal_work *copy, uint64_t count,
                           double *out_ns)
{
    double few = 0;
    if (!cal_time(c, copy, count, &few) || !cal_time(c, copy, 2 * count, out_ns))
        return false;
    *out_ns = (*out_ns - few) / (double)count;
    return true;
}

static bool measure_copy(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work copy = {.kind = (enum cal_kind)(at / CAL_SIZES),
                                  .bytes = c->sizes[at % CAL_SIZES]};
    if (copy.kind == CAL_ACROSS)
        return measure_across(c, &copy, cal_fitting(c, copy.bytes), out_ns);
    return cal_each(c, &copy, cal_fitting(c, copy.bytes), out_ns);
}

// ns = latency + bytes * per_byte, with the least squares of relative errors. A time that was too
// small to be measured says nothing.
static void fit_line(const struct calibration *c, const struct cal_by_size *by_size,
                     double *out_latency, double *out_per_byte)
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

bool cal_fit_copies(struct calibration *c, const struct cal_by_size *by_size, enum cal_key rate,
                    enum cal_key latency)
{
    double latency_ns, per_byte;
    fit_line(c, by_size, &latency_ns, &per_byte);
    if (!(per_byte > 0))
        return cal_fail(c, CLI_FAILED,
                        "larger copies took no longer than smaller ones, so there "
                        "is no bandwidth; is the machine busy? Try more --turns");
    cal_figure_set(c, rate, fmin(1 / per_byte, MOST_GB_PER_S));
    cal_figure_set(c, latency, latency_ns);
    return true;
}

bool cal_measure_copies(struct calibration *c, enum cal_kind kind)
{
    static const enum cal_key rates[] = {CAL_H2D, CAL_D2H, CAL_D2D, CAL_PEER};
    static const enum cal_key latencies[] = {CAL_H2D_LATENCY, CAL_D2H_LATENCY, CAL_D2D_LATENCY,
                                             CAL_PEER_LATENCY};
    struct cal_by_size *by_size = &c->by_size[kind];
    for (size_t i = 0; i < c->size_count; i++)
        if (!cal_figure_measure(c, measure_copy, (size_t)kind * CAL_SIZES + i, &by_size->ns[i]))
            return false;
    return cal_fit_copies(c, by_size, rates[kind], latencies[kind]);
}
