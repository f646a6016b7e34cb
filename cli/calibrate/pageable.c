// Copies of memory that is not pinned, which go through pinned pieces: of small ones the calling thread
// copies four in turn, and the device's copy of one of them comes before or after all; of large ones
// several threads copy. Each copy takes memory that none used lately, as copies of much data do: one that
// the processors' caches hold tells nothing of these.
#include <stdlib.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"

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

static bool time_copy(struct calibration *c, bool up, size_t size, double *out_ns)
{
    char *part = next_part(c, size);
    const uint64_t began = cli_now_ns();
    *out_ns = 0;
    const weir_status status = up ? weir_upload(c->queues[0], c->to[CAL_UP], 0, part, size)
                                  : weir_download(c->queues[0], part, c->from[CAL_DOWN], 0, size);
    if (status < 0)
        return cal_fail_weir(c);
    if (!cal_sync(c, 0))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

static bool time_byte(struct calibration *c, bool up, size_t less, size_t more, double *out_ns)
{
    double few = 0, many = 0;
    *out_ns = 0;
    if (!time_copy(c, up, less, &few) || !time_copy(c, up, more, &many))
        return false;
    *out_ns = (many - few) / (double)(more - less);
    return true;
}

static bool measure_one(struct calibration *c, size_t at, double *out_gb_per_s)
{
    const bool up = at == CAL_UPLOAD;
    double ns = 0;
    if (!time_byte(c, up, SMALLER, SMALL, &ns))
        return false;
    ns -= 1 / (PIECES * c->figures[up ? CAL_H2D : CAL_D2H].value);
    *out_gb_per_s = ns > 0 ? 1 / ns : 0;
    return true;
}

static bool measure_all(struct calibration *c, size_t at, double *out_gb_per_s)
{
    double ns = 0;
    if (!time_byte(c, at == CAL_UPLOAD_ALL, c->large / 2, c->large, &ns))
        return false;
    *out_gb_per_s = ns > 0 ? 1 / ns : 0;
    return true;
}

static bool measure_rate(struct calibration *c, cal_measure measure, enum cal_key key,
                         enum cal_key alone, double most)
{
    struct cal_figure *figure = &c->figures[key];
    if (!cal_figure_measure(c, measure, key, figure))
        return false;
    if (!(figure->value > 0 && figure->value < most * c->figures[alone].value))
        cal_figure_leave(c, key, "the host copies as fast as the device");
    return true;
}

bool cal_measure_pageable(struct calibration *c)
{
    const size_t bytes = LARGE_COPIES * c->large;
    c->pageable = malloc(bytes);
    if (!c->pageable)
        return cal_fail(c, CLI_FAILED, "no memory for %zu bytes that are not pinned", bytes);
    memset(c->pageable, 1, bytes);
    const bool fine = measure_rate(c, measure_one, CAL_UPLOAD, CAL_H2D, SHARE_MOST) &&
                      measure_rate(c, measure_all, CAL_UPLOAD_ALL, CAL_H2D, SHARE_MOST_ALL) &&
                      measure_rate(c, measure_one, CAL_DOWNLOAD, CAL_D2H, SHARE_MOST) &&
                      measure_rate(c, measure_all, CAL_DOWNLOAD_ALL, CAL_D2H, SHARE_MOST_ALL);
    free(c->pageable);
    c->pageable = NULL;
    return fine;
}
