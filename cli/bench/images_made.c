// A JPEG for machines that have none. Noise alone would be harder to decode than photographs are, and
// shapes alone easier.
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "cli/bench/images.h"

struct writer {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    char problem[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr cinfo)
{
    struct writer *writer = cinfo->client_data;
    cinfo->err->format_message(cinfo, writer->problem);
    longjmp(writer->escape, 1);
}

static void draw_row(unsigned char *row, uint32_t side, uint32_t y, uint32_t *state)
{
    for (uint32_t x = 0; x < side; x++) {
        const uint32_t shapes = (x * x / side + y * 2) / 5 + (((x >> 6) ^ (y >> 6)) & 1) * 60;
        *state = *state * 1664525u + 1013904223u;
        for (uint32_t c = 0; c < 3; c++)
            row[3 * x + c] =
                (unsigned char)(((shapes + 40 * c) & 0xbf) + (*state >> (24 + c)) % 24);
    }
}

// Everything that may jump.
static void write_all(struct writer *writer, FILE *file, uint32_t side, int quality,
                      unsigned char *row)
{
    uint32_t state = 1;
    j_compress_ptr cinfo = &writer->cinfo;
    jpeg_create_compress(cinfo);
    jpeg_stdio_dest(cinfo, file);
    cinfo->image_width = cinfo->image_height = side;
    cinfo->input_components = 3;
    cinfo->in_color_space = JCS_RGB;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, quality, TRUE);
    jpeg_start_compress(cinfo, TRUE);
    while (cinfo->next_scanline < side) {
        draw_row(row, side, cinfo->next_scanline, &state);
        jpeg_write_scanlines(cinfo, &row, 1);
    }
    jpeg_finish_compress(cinfo);
}

static bool write_jpeg(struct bench *bench, FILE *file, uint32_t side, int quality)
{
    struct writer writer = {.problem = "no memory for a row"};
    unsigned char *row = malloc((size_t)3 * side);
    writer.cinfo.err = jpeg_std_error(&writer.errors);
    writer.cinfo.client_data = &writer;
    writer.errors.error_exit = on_error;
    volatile bool written = false;
    if (row && setjmp(writer.escape) == 0) {
        write_all(&writer, file, side, quality, row);
        written = true;
    }
    jpeg_destroy_compress(&writer.cinfo);
    free(row);
    return written || bench_fail(bench, CLI_FAILED, "a JPEG of %u pixels a side cannot be made: %s",
                                 (unsigned)side, writer.problem);
}

FILE *images_make(struct bench *bench, uint32_t side, int quality)
{
    FILE *file = tmpfile();
    if (!file) {
        bench_fail(bench, CLI_FAILED, "a temporary file cannot be made: %s; name an IMAGE",
                   strerror(errno));
        return NULL;
    }
    bool fine = write_jpeg(bench, file, side, quality);
    if (fine && fflush(file) != 0)
        fine = bench_fail(bench, CLI_FAILED,
                          "a temporary file cannot be written: %s; name an IMAGE", strerror(errno));
    if (fine)
        return file;
    (void)fclose(file);
    return NULL;
}
