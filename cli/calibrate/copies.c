// What copies take: bandwidths and latencies alone, while the other direction is busy, to and from another
// device, and of memory that is not pinned.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"
#include "cli/runtime/open.h"

// A gate is as long as this many times the submits after it take.
#define GATE_MARGIN 3

#define MOST_GB_PER_S 100000.0 // that a model has

// The other direction is busy for so many times as long as the copies would take alone.
#define BUSY_MARGIN 2.5

// How long the gate has to be.

static double measure_large(struct calibration *c, size_t at)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    (void)at;
    return cal_time(c, &large, 1);
}

static double measure_submits(struct calibration *c, size_t at)
{
    const struct cal_work works[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                     {.kind = CAL_DOWN, .bytes = c->sizes[0]},
                                     {.kind = CAL_WITHIN, .bytes = c->sizes[0]},
                                     {.kind = CAL_LAUNCH, .rounds = 1},
                                     {.kind = CAL_CALL}};
    (void)at;
    return cal_submits(c, 1, works, sizeof works / sizeof *works);
}

// The slowest submit takes a few times the mean.
void cal_measure_gate(struct calibration *c)
{
    if (c->code)
        return;
    const double large = cal_median(c, measure_large, 0).value;
    const double submit = cal_median(c, measure_submits, 0).value;
    c->gate_count = 1 + (uint64_t)(GATE_MARGIN * 4.0 * CAL_IN_A_ROW * submit / fmax(large, 1));
}

// Alone.

// How many copies of that size are timed in a row.
static uint64_t fitting(const struct calibration *c, size_t bytes)
{
    const uint64_t count = c->large / bytes;
    return count < CAL_IN_A_ROW ? count : CAL_IN_A_ROW;
}

// Copies to another device that are submitted meanwhile take 0.4 us less on an H200 than those that all
// wait already, and programs have few at once.
static double measure_copy(struct calibration *c, size_t at)
{
    const struct cal_work copy = {.kind = (enum cal_kind)(at / CAL_SIZES),
                                  .bytes = c->sizes[at % CAL_SIZES]};
    const uint64_t count = fitting(c, copy.bytes);
    if (copy.kind != CAL_ACROSS)
        return cal_each(c, &copy, 1, count);
    const double few = cal_time(c, &copy, count);
    return (cal_time(c, &copy, 2 * count) - few) / (double)count;
}

// ns = latency + bytes * per_byte, with the least squares of relative errors. A time that was too
// small to be measured says nothing.
static double fit_line(const struct calibration *c, const double ns[CAL_SIZES],
                       double *out_per_byte)
{
    double s = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
    for (size_t i = 0; i < c->size_count; i++) {
        const double x = (double)c->sizes[i], y = ns[i];
        const double weight = y > 0 ? 1 / (y * y) : 0;
        s += weight;
        sx += weight * x;
        sxx += weight * x * x;
        sy += weight * y;
        sxy += weight * x * y;
    }
    *out_per_byte = (s * sxy - sx * sy) / (s * sxx - sx * sx);
    const double latency = (sy - *out_per_byte * sx) / s;
    if (latency > 0)
        return latency;
    *out_per_byte = sxy / sxx;
    return 0;
}

// Sets the rate of the line through the times, which it measures; returns where it begins.
static double measure_line(struct calibration *c, cal_measure measure, enum cal_kind kind,
                           enum cal_key rate, double ns[CAL_SIZES])
{
    double per_byte;
    for (size_t i = 0; i < c->size_count; i++)
        ns[i] = cal_median(c, measure, (size_t)kind * CAL_SIZES + i).value;
    const double latency = fit_line(c, ns, &per_byte);
    if (!(per_byte > 0))
        cal_fail(c, CLI_FAILED,
                 "larger copies took no longer than smaller ones, so there is no bandwidth; is the "
                 "machine busy? Try more --turns");
    cal_figure_set(c, rate, fmin(1 / per_byte, MOST_GB_PER_S));
    return latency;
}

static double measure_alone(struct calibration *c, enum cal_kind kind, enum cal_key rate)
{
    return measure_line(c, measure_copy, kind, rate, c->copy_ns[kind]);
}

// Both ways.

static double measure_at_once(struct calibration *c, size_t at)
{
    return cal_hidden(c, (enum cal_kind)at, CAL_DOWN);
}

static enum cal_kind contrary_of(enum cal_kind kind)
{
    return kind == CAL_UP ? CAL_DOWN : CAL_UP;
}

// Large copies of the other direction that outlast the gate and `count` copies.
static uint64_t copies_beside(const struct calibration *c, enum cal_kind kind, size_t size,
                              uint64_t count)
{
    const size_t last = c->size_count - 1;
    const double wanted =
        (double)c->gate_count * c->copy_ns[kind][last] + (double)count * c->copy_ns[kind][size];
    const double each = c->copy_ns[contrary_of(kind)][last];
    return each > 0 ? 1 + (uint64_t)(BUSY_MARGIN * wanted / each) : 1;
}

// Copies of one size on the first queue, after a gate of their kind, while the other queue is busy with
// longer work in the other direction.
static double time_beside(struct calibration *c, enum cal_kind kind, size_t size, uint64_t count)
{
    const struct cal_work other = {.kind = contrary_of(kind), .bytes = c->large};
    const struct cal_work gate = {.kind = kind, .bytes = c->large};
    const struct cal_work work = {.kind = kind, .bytes = c->sizes[size]};
    cal_prepare(c, 0, &work);
    cal_prepare(c, 1, &other);
    const uint64_t began = cli_now_ns();
    cal_submit(c, 1, &other, copies_beside(c, kind, size, count));
    CAL_TRY(c, weir_queue_flush(c->queues[1]));
    cal_submit(c, 0, &gate, c->gate_count);
    cal_submit(c, 0, &work, count);
    cal_sync(c, 0);
    const double ns = (double)(cli_now_ns() - began);
    cal_sync(c, 1);
    return ns;
}

static double measure_beside(struct calibration *c, size_t at)
{
    const enum cal_kind kind = (enum cal_kind)(at / CAL_SIZES);
    const size_t size = at % CAL_SIZES;
    const uint64_t count = fitting(c, c->sizes[size]);
    const double few = time_beside(c, kind, size, count);
    return (time_beside(c, kind, size, 2 * count) - few) / (double)count;
}

// A copy is not faster beside others than alone, and does not begin earlier, whatever the clock says.
static double measure_both(struct calibration *c, enum cal_kind kind, enum cal_key rate,
                           enum cal_key alone)
{
    double ns[CAL_SIZES];
    const double latency = measure_line(c, measure_beside, kind, rate, ns);
    c->figures[rate].value = fmin(c->figures[rate].value, c->figures[alone].value);
    return latency;
}

static void measure_both_ways(struct calibration *c)
{
    static const char why[] = "copies in both directions take turns";
    const bool one = cal_median(c, measure_at_once, CAL_UP).value < 0.5;
    cal_figure_set(c, CAL_COPY_ENGINES, one ? 1 : 2);
    if (one) {
        cal_figure_leave(c, CAL_H2D_BOTH, why);
        cal_figure_leave(c, CAL_D2H_BOTH, why);
        cal_figure_leave(c, CAL_BOTH_LATENCY, why);
        return;
    }
    const double up = measure_both(c, CAL_UP, CAL_H2D_BOTH, CAL_H2D);
    const double down = measure_both(c, CAL_DOWN, CAL_D2H_BOTH, CAL_D2H);
    cal_figure_set(c, CAL_BOTH_LATENCY, fmax((up + down) / 2, c->figures[CAL_LATENCY].value));
}

void cal_measure_copies(struct calibration *c)
{
    const double up = measure_alone(c, CAL_UP, CAL_H2D), down = measure_alone(c, CAL_DOWN, CAL_D2H);
    measure_alone(c, CAL_WITHIN, CAL_D2D);
    cal_figure_set(c, CAL_LATENCY, (up + down) / 2);
    measure_both_ways(c);
}

// Another device.

// One comes after the other, so that each waits for a signal of the other device.
static double measure_pull(struct calibration *c, size_t at)
{
    const struct cal_work pull = {.kind = CAL_PULL, .bytes = c->sizes[0]};
    (void)at;
    return cal_each(c, &pull, 1, CAL_IN_A_ROW) - (double)pull.bytes / c->figures[CAL_PEER].value -
           c->figures[CAL_SIGNAL].value;
}

void cal_measure_peers(struct calibration *c)
{
    CAL_TRY(c, cli_open_other(c->runtime, c->device, &c->peer));
    if (c->code)
        return;
    if (!c->peer || !weir_device_can_peer(c->device, c->peer)) {
        const char *why = c->peer ? "the devices cannot reach each other" : "there is one device";
        cal_figure_leave(c, CAL_PEER, why);
        cal_figure_leave(c, CAL_PULL_LATENCY, why);
        return;
    }
    cal_create_buffer(c, c->device, c->large, WEIR_PLACE_DEVICE, &c->from[CAL_ACROSS]);
    cal_create_buffer(c, c->peer, c->large, WEIR_PLACE_DEVICE, &c->to[CAL_ACROSS]);
    cal_create_buffer(c, c->peer, c->large, WEIR_PLACE_DEVICE, &c->from[CAL_PULL]);
    cal_create_buffer(c, c->device, c->large, WEIR_PLACE_DEVICE, &c->to[CAL_PULL]);
    measure_alone(c, CAL_ACROSS, CAL_PEER);
    cal_measure_figure(c, CAL_PULL_LATENCY, measure_pull);
    if (c->figures[CAL_COPY_ENGINES].value > 1 &&
        cal_median(c, measure_at_once, CAL_ACROSS).value > 0.5)
        cal_figure_set(c, CAL_COPY_ENGINES, 3);
}

// Memory that is not pinned goes through pinned pieces: of small copies the calling thread copies four in
// turn, and the device's copy of one of them comes before or after all; of large ones several threads copy.
// Each copy takes memory that none used lately, as copies of much data do: one that the processors' caches
// hold tells nothing of these.

#define SMALLER ((size_t)1 << 20)
#define SMALL ((size_t)3 << 20)
#define PIECES 4
#define LARGE_COPIES 4 // that the memory has room for

// Above these shares of the device's own rate the host hides its part, and nothing is known of it.
#define SHARE_MOST 0.8
#define SHARE_MOST_ALL 0.85

// The part of the memory after that of the copy before.
static char *next_part(struct calibration *c, size_t size)
{
    if (c->pageable_used + size > LARGE_COPIES * c->large)
        c->pageable_used = 0;
    char *part = c->pageable + c->pageable_used;
    c->pageable_used += size;
    return part;
}

// An upload and a download.
static double time_staged(struct calibration *c, size_t size)
{
    char *up = next_part(c, size), *down = next_part(c, size);
    const uint64_t began = cli_now_ns();
    cal_check(c, weir_upload(c->queues[0], c->to[CAL_UP], 0, up, size));
    cal_sync(c, 0);
    CAL_TRY(c, weir_download(c->queues[0], down, c->from[CAL_DOWN], 0, size));
    return (double)(cli_now_ns() - began);
}

// The mean of a byte up and one down.
static double measure_staging(struct calibration *c, size_t at)
{
    const bool one = at == CAL_STAGING;
    const size_t less = one ? SMALLER : c->large / 2, more = one ? SMALL : c->large;
    const double few = time_staged(c, less);
    double ns = (time_staged(c, more) - few) / (double)(more - less) / 2;
    if (one)
        ns -= (1 / c->figures[CAL_H2D].value + 1 / c->figures[CAL_D2H].value) / (2 * PIECES);
    return ns > 0 ? 1 / ns : 0;
}

static void measure_rate(struct calibration *c, enum cal_key key, double share)
{
    const double device = fmin(c->figures[CAL_H2D].value, c->figures[CAL_D2H].value);
    cal_measure_figure(c, key, measure_staging);
    if (!(c->figures[key].value > 0 && c->figures[key].value < share * device))
        cal_figure_leave(c, key, "the host copies as fast as the device");
}

void cal_measure_pageable(struct calibration *c)
{
    const size_t bytes = LARGE_COPIES * c->large;
    if (c->code)
        return;
    c->pageable = malloc(bytes);
    if (!c->pageable) {
        cal_fail(c, CLI_FAILED, "no memory for %zu bytes that are not pinned", bytes);
        return;
    }
    memset(c->pageable, 1, bytes);
    measure_rate(c, CAL_STAGING, SHARE_MOST);
    measure_rate(c, CAL_STAGING_ALL, SHARE_MOST_ALL);
    free(c->pageable);
    c->pageable = NULL;
}
