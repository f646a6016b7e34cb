// One pass over the pixels for each image.

#include "tests/support/made_images.h"

static void put(unsigned char *rgb8, int width, int row, int column, made_colour colour)
{
    unsigned char *pixel = rgb8 + ((size_t)row * (size_t)width + (size_t)column) * 3;
    pixel[0] = (unsigned char)(colour >> 16 & 255);
    pixel[1] = (unsigned char)(colour >> 8 & 255);
    pixel[2] = (unsigned char)(colour & 255);
}

size_t made_image_bytes(int height, int width)
{
    return (size_t)height * (size_t)width * 3;
}

void made_image_flat(int height, int width, made_colour colour, unsigned char *out_rgb8)
{
    for (int row = 0; row < height; row++) {
        for (int column = 0; column < width; column++) {
            put(out_rgb8, width, row, column, colour);
        }
    }
}

// splitmix64, by Sebastiano Vigna, https://prng.di.unimi.it/splitmix64.c
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void made_image_noise(int height, int width, uint64_t seed, unsigned char *out_rgb8)
{
    for (int row = 0; row < height; row++) {
        for (int column = 0; column < width; column++) {
            put(out_rgb8, width, row, column, (made_colour)(next_random(&seed) >> 40));
        }
    }
}

// 0 to 255 over `count` steps, rounded.
static made_colour ramp(int index, int count)
{
    if (count < 2) {
        return 0;
    }
    return (made_colour)(((int64_t)index * 510 + (count - 1)) / (2 * ((int64_t)count - 1)));
}

void made_image_gradient(int height, int width, unsigned char *out_rgb8)
{
    for (int row = 0; row < height; row++) {
        for (int column = 0; column < width; column++) {
            made_colour red = ramp(column, width);
            made_colour green = ramp(row, height);
            made_colour blue = 255 - ramp(row + column, height + width - 1);
            put(out_rgb8, width, row, column, red << 16 | green << 8 | blue);
        }
    }
}

void made_image_checker(int height, int width, int square, made_colour first, made_colour second,
                        unsigned char *out_rgb8)
{
    for (int row = 0; row < height; row++) {
        for (int column = 0; column < width; column++) {
            int odd = (row / square + column / square) % 2;
            put(out_rgb8, width, row, column, odd ? second : first);
        }
    }
}

void made_image_halves(int height, int width, made_colour left, made_colour right,
                       unsigned char *out_rgb8)
{
    for (int row = 0; row < height; row++) {
        for (int column = 0; column < width; column++) {
            put(out_rgb8, width, row, column, column < width / 2 ? left : right);
        }
    }
}

void made_image_dot(int height, int width, made_colour ground, int row, int column, made_colour dot,
                    unsigned char *out_rgb8)
{
    made_image_flat(height, width, ground, out_rgb8);
    put(out_rgb8, width, row, column, dot);
}
