// Images made by formula, for tests: RGB8, interleaved, rows without padding.
//
// Every function fills `out_rgb8`, which holds height * width * 3 bytes; both
// sizes are at least 1, so 1 x 1 and 1 x 5000 are made like any other size.
//
// Threads: safe; no state. The same arguments give the same bytes on every
// machine: only integers are used.

#ifndef WEIR_TESTS_SUPPORT_MADE_IMAGES_H
#define WEIR_TESTS_SUPPORT_MADE_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A colour as 0xRRGGBB.
typedef uint32_t made_colour;

size_t made_image_bytes(int height, int width);

// One colour everywhere.
void made_image_flat(int height, int width, made_colour colour, unsigned char *out_rgb8);

// Independent uniform bytes from a seed.
void made_image_noise(int height, int width, uint64_t seed, unsigned char *out_rgb8);

// Red rises from left to right and green from top to bottom, both from 0 to
// 255; blue falls along the diagonal from 255 to 0. An axis of one pixel is 0.
void made_image_gradient(int height, int width, unsigned char *out_rgb8);

// Squares of `square` pixels a side; the top left one has the colour `first`.
void made_image_checker(int height, int width, int square, made_colour first, made_colour second,
                        unsigned char *out_rgb8);

// `left` in the left half, `right` in the right one (width / 2 columns are left).
void made_image_halves(int height, int width, made_colour left, made_colour right,
                       unsigned char *out_rgb8);

// A flat image with one pixel of another colour.
void made_image_dot(int height, int width, made_colour ground, int row, int column, made_colour dot,
                    unsigned char *out_rgb8);

#ifdef __cplusplus
}
#endif

#endif
