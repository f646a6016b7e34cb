// Images made by formula, for tests: RGB8, interleaved, rows without padding.
//
// Threads: safe; no state. The same arguments give the same bytes on every
// machine: only integers are used.
#ifndef WEIR_TESTS_SUPPORT_MADE_IMAGES_H
#define WEIR_TESTS_SUPPORT_MADE_IMAGES_H

#include <stdint.h>

// A colour as 0xRRGGBB.
typedef uint32_t made_colour;

enum made_kind {
    MADE_FLAT,  // `a` everywhere
    MADE_NOISE, // independent uniform bytes from the seed `a`
    MADE_GRADIENT, // red rises from left to right and green from top to bottom, both from 0 to 255; blue falls along
        // the diagonal from 255 to 0; an axis of one pixel is 0
    MADE_GRAY_RAMP, // rises from left to right
    MADE_CHECKER,   // squares of 30 pixels a side, the top left one of `a`, the others of `b`
    MADE_HALVES,    // width / 2 columns of `a`, and the right ones of `b`
    MADE_DOT,       // `a`, and `b` at row 100, column 200
};

// Fills `out_rgb8`, which holds height * width * 3 bytes; both sizes are at least 1.
void made_image(enum made_kind kind, int height, int width, made_colour a, made_colour b,
                unsigned char *out_rgb8);

#endif
