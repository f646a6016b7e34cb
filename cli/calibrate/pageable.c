// Copies of memory that is not pinned, which go through pinned pieces.
#include <stdlib.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"

// Above this share of the device's own rate the host hides its part, and nothing is known of it.
#define SHARE_MOST 0.8

static bool time_copy(struct calibration *c, bool up, size_t size, double *out_ns)
{
    const uint64_t began = cli_now_ns();
    *out_ns = 0;
    const weir_status status =
        up ? weir_upload(c->queues[0], c->to[CAL_UP], 0, c->pageable, size)
           : weir_download(c->queues[0], c->pageable, c->from[CAL_DOWN], 0, size);
    if (status < 0)
        return cal_fail_weir(c);
    if (!cal_sync(c, 0))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

static bool measure_rate(struct calibration *c, size_t at, double *out_gb_per_s)
{
    const size_t half = c->large / 2;
    double few = 0, many = 0;
    if (!time_copy(c, at == CAL_UPLOAD, half, &few) ||
        !time_copy(c, at == CAL_UPLOAD, c->large, &many))
        return false;
    *out_gb_per_s = many > few ? (double)half / (many - few) : 0;
    return true;
}

static bool measure_direction(struct calibration *c, enum cal_key key, enum cal_key alone)
{
    struct cal_figure *figure = &c->figures[key];
    if (!cal_figure_measure(c, measure_rate, key, figure))
        return false;
    if (!(figure->value > 0 && figure->value < SHARE_MOST * c->figures[alone].value))
        cal_figure_leave(c, key, "the host copies as fast as the device");
    return true;
}

bool cal_measure_pageable(struct calibration *c)
{
    c->pageable = malloc(c->large);
    if (!c->pageable)
        return cal_fail(c, CLI_FAILED, "no memory for %zu bytes that are not pinned", c->large);
    memset(c->pageable, 1, c->large);
    const bool fine =
        measure_direction(c, CAL_UPLOAD, CAL_H2D) && measure_direction(c, CAL_DOWNLOAD, CAL_D2H);
    free(c->pageable);
    c->pageable = NULL;
    return fine;
}
