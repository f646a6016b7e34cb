// Files for the tests of io/ and of code that uses it: images of every kind, made
// with the libraries themselves, and damaged copies of good files.
#ifndef WEIR_TESTS_UNIT_IO_MADE_FILES_H
#define WEIR_TESTS_UNIT_IO_MADE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A PNG to be written. `rows` holds the rows as in the file: packed, 16 bits big
// endian, `row_bytes` apart. Members that are zero are omitted from the file.
struct made_png {
    uint32_t width;
    uint32_t height;
    int colour_type; // PNG_COLOR_TYPE_...
    int bit_depth;
    bool interlaced;
    const unsigned char *palette; // RGB, palette_count entries
    int palette_count;
    const unsigned char *palette_alpha;
    int palette_alpha_count;
    const uint16_t *transparent; // gray, or red, green, blue
    double gamma;
    const unsigned char *rows;
    size_t row_bytes;
};

// One without palette, transparency and gamma, that is not interlaced.
static inline struct made_png made_png(uint32_t width, uint32_t height, int colour_type,
                                       int bit_depth, const unsigned char *rows, size_t row_bytes)
{
    return (struct made_png){.width = width,
                             .height = height,
                             .colour_type = colour_type,
                             .bit_depth = bit_depth,
                             .rows = rows,
                             .row_bytes = row_bytes};
}

// A JPEG to be written, from `channels` bytes a pixel: 1 gray, 2 of no known
// meaning, 3 RGB (stored as YCbCr without subsampling), 4 CMYK.
struct made_jpeg {
    uint32_t width;
    uint32_t height;
    int channels;
    int quality;
    bool progressive;
    const unsigned char *pixels;
};

// Each returns whether the file could be made.
bool made_png_write(const char *path, const struct made_png *png);
bool made_jpeg_write(const char *path, const struct made_jpeg *jpeg);
// A gray one with each coefficient in `steps` scans of its own, up to 8: 1 + 63 * steps scans.
bool made_jpeg_write_scans(const char *path, const struct made_jpeg *jpeg, int steps);
bool made_file_write(const char *path, const void *bytes, size_t size);

// Reads a whole file; NULL if that fails. The caller frees it.
unsigned char *made_file_read(const char *path, size_t *out_size);

// Joins folder and name in one of four static buffers, used in turn.
const char *made_path(const char *folder, const char *name);

// Returns the number of entries of a folder, without "." and ".."; -1 if it cannot be
// read.
int made_folder_count(const char *folder);

// Makes writes beyond `bytes` bytes of a file fail; `bytes` 0 removes the limit.
// Returns whether that worked. Remove it before printing: standard output may be a
// file too.
bool made_disk_limit(size_t bytes);

#endif
