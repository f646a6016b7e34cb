// The overlay: the photo, dimmed, under the relevance map, with frames around the chosen
// patches, and a legend.
#ifndef WEIR_CLI_RUN_OVERLAY_H
#define WEIR_CLI_RUN_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "io/error.h"
#include "pipelines/arr_coc/arr_coc.h"

// An RGB picture.
struct canvas {
    uint32_t width;
    uint32_t height;
    unsigned char *rgb;
};

// Draws the overlay of `photo` (RGB8). The picture has the photo's aspect ratio, and a longer side of
// 1200 to 2400 pixels. False if out of memory.
//
// Ownership: `out_canvas->rgb` is the caller's, to be freed with free().
bool cli_overlay_draw(const unsigned char *photo, const struct weir_arr_coc_output *output,
                      uint32_t grid, struct canvas *out_canvas);

// The same, written as a PNG.
bool cli_overlay_write(const char *path, const unsigned char *photo,
                       const struct weir_arr_coc_output *output, uint32_t grid,
                       struct weir_io_error *error);

#endif
