// libpng reports errors by longjmp(). Data that must survive it is in a struct that
// the function with setjmp() gets by pointer, so no local can be clobbered, and one
// function frees it afterwards, on success and on failure.
//
// Interlaced images are assembled here and not by libpng: so images of every kind
// need only one row of memory in addition to the caller's.
#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>

#include <png.h>

#include "base/text.h"
#include "io/image_decoder.h"

enum {
    WHITE = 255,
    LIBRARY_TEXT = 96
};

struct reader {
    struct weir_io_image_job *job;
    jmp_buf escape;
    png_structp png;
    png_infop info;
    unsigned char *row;
    bool cut_off;
    char problem[LIBRARY_TEXT];
    char warning[LIBRARY_TEXT];
};

static void on_error(png_structp png, png_const_charp text)
{
    struct reader *reader = png_get_error_ptr(png);
    size_t used = 0;
    weir_text_append(reader->problem, LIBRARY_TEXT, &used, "%s", text);
    longjmp(reader->escape, 1);
}

// Warnings alone are not errors; the last one often explains the error that follows.
static void on_warning(png_structp png, png_const_charp text)
{
    struct reader *reader = png_get_error_ptr(png);
    size_t used = 0;
    weir_text_append(reader->warning, LIBRARY_TEXT, &used, "; %s", text);
}

static void on_read(png_structp png, png_bytep data, size_t size)
{
    struct reader *reader = png_get_io_ptr(png);
    if (fread(data, 1, size, reader->job->stream) == size)
        return;
    reader->cut_off = !ferror(reader->job->stream);
    png_error(png, "the file cannot be read");
}

static void describe(struct reader *reader)
{
    static const char *const layouts[] = {
        [PNG_COLOR_TYPE_GRAY] = "gray",       [PNG_COLOR_TYPE_GRAY_ALPHA] = "gray+alpha",
        [PNG_COLOR_TYPE_RGB] = "rgb",         [PNG_COLOR_TYPE_RGB_ALPHA] = "rgb+alpha",
        [PNG_COLOR_TYPE_PALETTE] = "palette",
    };
    struct weir_io_image_info *info = &reader->job->info;
    info->width = png_get_image_width(reader->png, reader->info);
    info->height = png_get_image_height(reader->png, reader->info);
    size_t used = 0;
    weir_text_append(info->kind, sizeof info->kind, &used, "png %s%d%s%s",
                     layouts[png_get_color_type(reader->png, reader->info)],
                     png_get_bit_depth(reader->png, reader->info),
                     png_get_valid(reader->png, reader->info, PNG_INFO_tRNS) ? "+transparent" : "",
                     png_get_interlace_type(reader->png, reader->info) == PNG_INTERLACE_ADAM7
                         ? ", interlaced"
                         : "");
}

static unsigned char over_white(unsigned value, unsigned alpha)
{
    return (unsigned char)((value * alpha + WHITE * (255 - alpha) + 127) / 255);
}

// Stores the pixels of `row` in the image's row at `target`, at every `step`th pixel
// from `first` on.
static void scatter(unsigned char *target, const unsigned char *row, uint32_t count, int channels,
                    size_t first, size_t step)
{
    for (uint32_t i = 0; i < count; i++) {
        unsigned char *pixel = target + (first + i * step) * 3;
        const unsigned char *source = row + (size_t)i * (size_t)channels;
        unsigned alpha = channels == 4 ? source[3] : 255;
        for (int c = 0; c < 3; c++)
            pixel[c] = over_white(source[c], alpha);
    }
}

// The pass numbers follow https://www.w3.org/TR/png-3/#8Interlace.
static void read_interlaced(struct reader *reader, int channels)
{
    uint32_t width = reader->job->info.width;
    uint32_t height = reader->job->info.height;
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++) {
        uint32_t columns = PNG_PASS_COLS(width, pass);
        uint32_t rows = PNG_PASS_ROWS(height, pass);
        for (uint32_t i = 0; columns > 0 && i < rows; i++) {
            size_t y = PNG_ROW_FROM_PASS_ROW(i, pass);
            png_read_row(reader->png, reader->row, NULL);
            scatter(reader->job->rgb + y * width * 3, reader->row, columns, channels,
                    PNG_COL_FROM_PASS_COL(0, pass), PNG_PASS_COL_OFFSET(pass));
        }
    }
}

static void read_plain(struct reader *reader, int channels)
{
    size_t row_bytes = (size_t)reader->job->info.width * 3;
    for (uint32_t y = 0; y < reader->job->info.height; y++) {
        unsigned char *target = reader->job->rgb + y * row_bytes;
        if (channels == 3) {
            png_read_row(reader->png, target, NULL);
            continue;
        }
        png_read_row(reader->png, reader->row, NULL);
        scatter(target, reader->row, reader->job->info.width, channels, 0, 1);
    }
}

// Everything that may jump. Returns false after an error of this file's, without a
// jump.
static bool read_all(struct reader *reader)
{
    png_structp png = reader->png;
    // Chunks that do not affect the pixels (gamma, profiles, texts) are skipped
    // unread.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    // The caller has its own caps; libpng's would be hit first.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(png, reader->info);
    describe(reader);
    if (!reader->job->rgb)
        return true;
    if (!weir_io_image_check_room(reader->job))
        return false;

    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_read_update_info(png, reader->info);
    int channels = png_get_channels(png, reader->info);
    reader->row = malloc(png_get_rowbytes(png, reader->info));
    if (!reader->row)
        png_error(png, "there is not enough memory for a row");

    if (png_get_interlace_type(png, reader->info) == PNG_INTERLACE_ADAM7)
        read_interlaced(reader, channels);
    else
        read_plain(reader, channels);
    png_read_end(png, NULL);
    return true;
}

static bool read_guarded(struct reader *reader)
{
    if (setjmp(reader->escape) == 0)
        return read_all(reader);
    if (reader->cut_off)
        return weir_io_fail(reader->job->error, reader->job->path,
                            "is a truncated PNG: the file ends before the image does");
    return weir_io_fail(reader->job->error, reader->job->path, "is a damaged PNG: %s%s",
                        reader->problem, reader->warning);
}

bool weir_io_png_decode(struct weir_io_image_job *job)
{
    struct reader reader = {.job = job};
    bool ok = false;
    reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
    if (reader.png)
        reader.info = png_create_info_struct(reader.png);
    if (reader.info) {
        png_set_read_fn(reader.png, &reader, on_read);
        ok = read_guarded(&reader);
    } else {
        weir_io_fail(job->error, job->path, "cannot be decoded: libpng did not start (memory?)");
    }
    png_destroy_read_struct(&reader.png, &reader.info, NULL);
    free(reader.row);
    return ok;
}
