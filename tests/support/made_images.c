// See the header.
#include "tests/support/made_images.h"

#include <stddef.h>

// splitmix64, by Sebastiano Vigna, https://prng.di.unimi.it/splitmix64.c
static uint64_t random_at(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// 0 to 255 over `count` steps, rounded.
static made_colour ramp(int index, int count)
{
    if (count < 2)
        return 0;
    return (made_colour)(((int64_t)index * 510 + (count - 1)) / (2 * ((int64_t)count - 1)));
}

static made_colour colour_at(enum made_kind kind, int height, int width, int row, int column,
                             made_colour a, made_colour b)
{
    switch (kind) {
    case MADE_NOISE:
        return (made_colour)(random_at(a, (uint64_t)row * (uint64_t)width + (uint64_t)column) >>
                             40);
    case MADE_GRADIENT:
        return ramp(column, width) << 16 | ramp(row, height) << 8 |
               (255 - ramp(row + column, height + width - 1));
    case MADE_GRAY_RAMP:
        return ramp(column, width) * 0x10101;
    case MADE_CHECKER:
        return (row / 30 + column / 30) % 2 ? b : a;
    case MADE_HALVES:
        return column < width / 2 ? a : b;
    case MADE_DOT:
        return row == 100 && column == 200 ? b : a;
    default:
        return a;
    }
}

void made_image(enum made_kind kind, int height, int width, made_colour a, made_colour b,
                unsigned char *out_rgb8)
{
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++) {
            unsigned char *pixel = out_rgb8 + ((size_t)row * (size_t)width + (size_t)column) * 3;
            const made_colour colour = colour_at(kind, height, width, row, column, a, b);
            pixel[0] = (unsigned char)(colour >> 16 & 255);
            pixel[1] = (unsigned char)(colour >> 8 & 255);
            pixel[2] = (unsigned char)(colour & 255);
        }
}
