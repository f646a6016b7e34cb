// Drawing on an RGB picture: smooth shapes, and text in strokes. Coordinates are
// pixels from the top left corner; a pixel's centre lies at .5.
#ifndef WEIR_CLI_RUN_CANVAS_H
#define WEIR_CLI_RUN_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

struct canvas {
    uint32_t width;
    uint32_t height;
    unsigned char *rgb;
};

struct color {
    float r, g, b; // 0 … 1
};

struct box {
    float left, top, right, bottom;
};

// Fills a box with corners of this radius, blended in with `opacity`.
void canvas_fill_box(struct canvas *canvas, struct box box, float radius, struct color color,
                     float opacity);

// Draws a frame of this weight along the inside of a box.
void canvas_frame(struct canvas *canvas, struct box box, float radius, float weight,
                  struct color color, float opacity);

// Writes lower-case letters, digits, blanks and ".,:-/=" with their baseline at
// `y` and tall ones `size` pixels high. Other characters are blanks.
void canvas_text(struct canvas *canvas, float x, float y, float size, const char *text,
                 struct color color);

// How wide canvas_text() writes.
float canvas_text_width(float size, const char *text);

// Resizes an RGB picture with a cubic filter, which averages where it shrinks.
//
// Errors: false if out of memory.
bool canvas_resize(const unsigned char *rgb, uint32_t width, uint32_t height,
                   struct canvas *canvas);

// The colour of `value` (0 … 1) in the perceptually uniform map "magma".
struct color canvas_magma(float value);

#endif
