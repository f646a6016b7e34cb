// Copies in both directions at once.
#include "cli/calibrate/calibrate.h"

// The other direction is busy for so many times as long as the copies would take alone.
#define BUSY_MARGIN 2.5

static bool measure_at_once(struct calibration *c, size_t at, double *out_share)
{
    (void)at;
    return cal_hidden(c, CAL_UP, CAL_DOWN, out_share);
}

static double alone_ns(const struct calibration *c, enum cal_kind kind, size_t size)
{
    return c->by_size[kind].ns[size].value;
}

// Large copies of the other direction that outlast the gate and `count` copies.
static uint64_t copies_beside(const struct calibration *c, enum cal_kind kind, size_t size,
                              uint64_t count)
{
    const enum cal_kind other = kind == CAL_UP ? CAL_DOWN : CAL_UP;
    const size_t last = c->size_count - 1;
    const double wanted =
        (double)c->gate_count * alone_ns(c, kind, last) + (double)count * alone_ns(c, kind, size);
    const double each = alone_ns(c, other, last);
    return each > 0 ? 1 + (uint64_t)(BUSY_MARGIN * wanted / each) : 1;
}

// Copies of one size on the first queue, after a gate of their kind, while the other queue is busy with
// longer work in the other direction.
static bool time_beside(struct calibration *c, enum cal_kind kind, size_t size, uint64_t count,
                        double *out_ns)
{
    const enum cal_kind contrary = kind == CAL_UP ? CAL_DOWN : CAL_UP;
    const struct cal_work other = {.kind = contrary, .bytes = c->large};
    const struct cal_work gate = {.kind = kind, .bytes = c->large};
    const struct cal_work work = {.kind = kind, .bytes = c->sizes[size]};
    if (!cal_prepare(c, 0, &work) || !cal_prepare(c, 1, &other))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_submit(c, 1, &other, copies_beside(c, kind, size, count)))
        return false;
    if (weir_queue_flush(c->queues[1]) < 0)
        return cal_fail_weir(c);
    if (!cal_submit(c, 0, &gate, c->gate_count) || !cal_submit(c, 0, &work, count) ||
        !cal_sync(c, 0))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return cal_sync(c, 1);
}

static bool measure_beside(struct calibration *c, size_t at, double *out_ns)
{
    const enum cal_kind kind = (enum cal_kind)(at / CAL_SIZES);
    const size_t size = at % CAL_SIZES;
    const uint64_t count = cal_fitting(c, c->sizes[size]);
    double few = 0, many = 0;
    if (!time_beside(c, kind, size, count, &few) || !time_beside(c, kind, size, 2 * count, &many))
        return false;
    *out_ns = (many - few) / (double)count;
    return true;
}

// A copy is not faster beside others than alone, and does not begin earlier, whatever the clock says.
static void limit(struct calibration *c, enum cal_key rate, enum cal_key latency,
                  enum cal_key alone_rate, enum cal_key alone_latency)
{
    if (c->figures[rate].value > c->figures[alone_rate].value)
        c->figures[rate].value = c->figures[alone_rate].value;
    if (c->figures[latency].value < c->figures[alone_latency].value)
        c->figures[latency].value = c->figures[alone_latency].value;
}

static bool measure_direction(struct calibration *c, enum cal_kind kind)
{
    struct cal_by_size *by_size = &c->beside[kind];
    for (size_t i = 0; i < c->size_count; i++)
        if (!cal_figure_measure(c, measure_beside, (size_t)kind * CAL_SIZES + i, &by_size->ns[i]))
            return false;
    return kind == CAL_UP ? cal_fit_copies(c, by_size, CAL_H2D_BOTH, CAL_H2D_BOTH_LATENCY)
                          : cal_fit_copies(c, by_size, CAL_D2H_BOTH, CAL_D2H_BOTH_LATENCY);
}

bool cal_measure_both(struct calibration *c)
{
    static const enum cal_key keys[] = {CAL_H2D_BOTH, CAL_D2H_BOTH, CAL_H2D_BOTH_LATENCY,
                                        CAL_D2H_BOTH_LATENCY};
    struct cal_figure hidden;
    if (!cal_figure_measure(c, measure_at_once, 0, &hidden))
        return false;
    const bool one = hidden.value < 0.5;
    cal_figure_set(c, CAL_COPY_ENGINES, one ? 1 : 2);
    if (one) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            cal_figure_leave(c, keys[i], "copies in both directions take turns");
        return true;
    }
    if (!measure_direction(c, CAL_UP) || !measure_direction(c, CAL_DOWN))
        return false;
    limit(c, CAL_H2D_BOTH, CAL_H2D_BOTH_LATENCY, CAL_H2D, CAL_H2D_LATENCY);
    limit(c, CAL_D2H_BOTH, CAL_D2H_BOTH_LATENCY, CAL_D2H, CAL_D2H_LATENCY);
    return true;
}
