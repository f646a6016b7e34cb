// YUV4MPEG2, the uncompressed video of `ffmpeg -f yuv4mpegpipe`: one line about the stream, and then a
// line and the planes of each frame. Read from a file or a pipe, and written.
//
// Read are 8 bits of 4:2:0 (with any position of its chroma), 4:2:2, 4:4:4 and gray. Interlaced frames
// are taken as they stand. A frame becomes RGB8 by ITU-R BT.601, of the limited range (Y 16 to 235) or,
// where the stream says XCOLORRANGE=FULL or C420jpeg, of the full one, rounded to nearest; a pixel
// has the chroma of the sample that covers it. RGB8 is written as 4:4:4 of the limited range.
#ifndef WEIR_IO_Y4M_H
#define WEIR_IO_Y4M_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "io/error.h"

#define WEIR_IO_Y4M_LINE 1024 // bytes that a line may have

// A stream that is read. The first members may be read, all are weir_io_y4m_open()'s.
struct weir_io_y4m {
    uint32_t width, height;
    uint32_t rate, per; // frames a second: rate / per; 0 where the stream does not say
    size_t frame_bytes; // of the planes
    uint64_t frames;    // read so far
    const char *chroma; // "420", "422", "444", "mono"
    bool full_range;
    const char *name; // for messages
    FILE *stream;
    unsigned step_x, step_y; // pixels of a chroma sample; 0: there is none
};

// Reads the line about the stream. `name`, which messages begin with, and `stream`, which stays the caller's, must
// outlive `y4m`.
//
// Errors: false. No YUV4MPEG2, a line that does not end, no size, a size above `max_pixels` (0: no
// cap), a kind that is not read.
bool weir_io_y4m_open(struct weir_io_y4m *y4m, const char *name, FILE *stream, uint64_t max_pixels,
                      struct weir_io_error *error);

// Reads the next frame's planes, frame_bytes, to `planes`. `*out_there` is false at the end of the
// stream, which is between two frames.
//
// Errors: false. The stream ends in a frame; no FRAME; a stream of another size or kind begins.
bool weir_io_y4m_next(struct weir_io_y4m *y4m, unsigned char *planes, bool *out_there,
                      struct weir_io_error *error);

// Converts a frame to `rgb`, 3 * width * height bytes.
void weir_io_y4m_rgb(const struct weir_io_y4m *y4m, const unsigned char *planes,
                     unsigned char *rgb);

// Writes the line about a stream, and one frame of RGB8. A rate of 0 is written as 25 frames a second.
//
// Errors: false, with errno.
bool weir_io_y4m_begin(FILE *file, uint32_t width, uint32_t height, uint32_t rate, uint32_t per);
bool weir_io_y4m_write_rgb8(FILE *file, uint32_t width, uint32_t height, const unsigned char *rgb);

#endif
