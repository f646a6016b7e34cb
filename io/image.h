// Image files: PNG and JPEG are read as RGB8, PNG is written. The kind of a file is detected from
// its first bytes, never from its name.
//
// How the kinds are converted to RGB8 (interleaved, rows without padding, 0 to 255):
//
// | in the file | becomes |
// | --- | --- |
// | gray | R = G = B; 1, 2 and 4 bits are scaled to 0..255 |
// | palette | its colours |
// | alpha | laid over white, as the numbers stand: (v * a + m * (m - a) + m / 2) / m with m = 255, or 65535 of 16 bits |
// | 16 bits | (v * 255 + 32767) / 65535, each channel, after that |
// | transparent colour (tRNS) | alpha 0 for that colour, 255 for the others; a palette has one each |
// | interlaced, progressive | the same pixels as without |
// | JPEG, YCbCr | RGB by libjpeg's accurate integer transform and its smooth upsampling |
// | JPEG, CMYK or YCCK | refused: what its inks look like is not in the file |
//
// Pixels are taken to be sRGB: gamma, colour profiles and the EXIF orientation are ignored, so a
// photo that a viewer would rotate stays as it is stored.
//
// A small file must not keep its reader busy for long. A JPEG may have as many scans as go over 2^30 pixels
// in all, yet 32 if it is large and 500 if it is small. The work for a PNG is bounded by its pixels and the
// bytes of its file: chunks that do not affect the pixels are not decompressed.
//
// A file is read to its end and refused if anything is missing or damaged (PNG's
// checksums included), except for what follows the image.
#ifndef WEIR_IO_IMAGE_H
#define WEIR_IO_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/error.h"

// What an image's header says. `kind` is "png" and the layout in the file (gray,
// gray+alpha, rgb, rgb+alpha, palette; "+transparent" where tRNS is present) with its
// bits: "png gray16", "png palette4+transparent"; or "jpeg gray", "jpeg ycc",
// "jpeg rgb". ", interlaced" or ", progressive" may follow.
struct weir_io_image_info {
    uint32_t width;
    uint32_t height;
    char kind[48];
};

// Returns the bytes of the image as RGB8.
uint64_t weir_io_image_bytes(const struct weir_io_image_info *info);

// Reads only the header, and so sizes buffers cheaply. An image that passes may
// still turn out to be truncated when it is read.
//
// Threads: safe.
// Errors: false; `*out_info` is all zero. No such file, not a regular file, empty,
// neither PNG nor JPEG, cut off or damaged in its header, CMYK.
bool weir_io_image_probe(const char *path, struct weir_io_image_info *out_info,
                         struct weir_io_error *error);

// Checks an image's size against the cap that the key `max_pixels` sets; 0 is no cap.
//
// Errors: false; the message has the size, the cap and the key.
bool weir_io_image_check_pixels(const char *path, const struct weir_io_image_info *info,
                                uint64_t max_pixels, struct weir_io_error *error);

// Decodes the image into `rgb`, which has room for `capacity` bytes, without writing past
// weir_io_image_bytes(). The cap is checked before the decoder takes memory for pixels; 0 is no
// cap.
//
// Threads: safe.
// Errors: false; `*out_info` is all zero and `rgb` undefined. As for the probe, and:
// over the cap, larger than `capacity`, cut off or damaged anywhere.
bool weir_io_image_read(const char *path, uint64_t max_pixels, unsigned char *rgb, size_t capacity,
                        struct weir_io_image_info *out_info, struct weir_io_error *error);

// Writes `rgb` (height * width * 3 bytes) as an 8-bit RGB PNG, atomically as
// base/file.h describes. The same pixels give the same bytes.
//
// Threads: safe.
// Errors: false, the path is as it was: the disk, or a size that no PNG has.
bool weir_io_png_write_rgb8(const char *path, uint32_t width, uint32_t height,
                            const unsigned char *rgb, struct weir_io_error *error);

#endif
