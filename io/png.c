// libpng reports errors by longjmp(). Data that must survive it is in a struct that
// the function with setjmp() gets by pointer, so no local can be clobbered, and one
// function frees it afterwards, on success and on failure.
//
// Images are written through the atomic file writer, which remembers its first
// failure: the rows after it are encoded in vain, but no jump out of the write is
// needed.
#include <setjmp.h>

#include <png.h>

#include "base/file.h"
#include "base/text.h"
#include "io/image_decoder.h"

// Of photographs zlib's own level, 6, takes three times as long for files that are a twenty-fifth smaller.
#define COMPRESSION 4

enum {
    LIBRARY_TEXT = 96
};

// An image that is read, or written.
struct work {
    struct weir_io_image_job *job; // read
    weir_file_writer *file;        // written
    jmp_buf escape;
    png_structp png;
    png_infop info;
    bool cut_off;
    char problem[LIBRARY_TEXT];
    char warning[LIBRARY_TEXT];
};

static void on_error(png_structp png, png_const_charp text)
{
    struct work *work = png_get_error_ptr(png);
    size_t used = 0;
    weir_text_append(work->problem, LIBRARY_TEXT, &used, "%s", text);
    longjmp(work->escape, 1);
}

// Warnings alone are not errors; the last one often explains the error that follows.
static void on_warning(png_structp png, png_const_charp text)
{
    struct work *work = png_get_error_ptr(png);
    size_t used = 0;
    weir_text_append(work->warning, LIBRARY_TEXT, &used, "; %s", text);
}

// --- reading ---

static void on_read(png_structp png, png_bytep data, size_t size)
{
    struct work *work = png_get_io_ptr(png);
    if (fread(data, 1, size, work->job->stream) == size)
        return;
    work->cut_off = !ferror(work->job->stream);
    png_error(png, "the file cannot be read");
}

static void describe(struct work *work)
{
    static const char *const layouts[] = {
        [PNG_COLOR_TYPE_GRAY] = "gray",       [PNG_COLOR_TYPE_GRAY_ALPHA] = "gray+alpha",
        [PNG_COLOR_TYPE_RGB] = "rgb",         [PNG_COLOR_TYPE_RGB_ALPHA] = "rgb+alpha",
        [PNG_COLOR_TYPE_PALETTE] = "palette",
    };
    struct weir_io_image_info *info = &work->job->info;
    info->width = png_get_image_width(work->png, work->info);
    info->height = png_get_image_height(work->png, work->info);
    size_t used = 0;
    weir_text_append(info->kind, sizeof info->kind, &used, "png %s%d%s%s",
                     layouts[png_get_color_type(work->png, work->info)],
                     png_get_bit_depth(work->png, work->info),
                     png_get_valid(work->png, work->info, PNG_INFO_tRNS) ? "+transparent" : "",
                     png_get_interlace_type(work->png, work->info) == PNG_INTERLACE_ADAM7
                         ? ", interlaced"
                         : "");
}

// Everything that may jump. Returns false after an error of this file's, without a
// jump.
static bool read_all(struct work *work)
{
    png_structp png = work->png;
    // Chunks that do not affect the pixels (gamma, profiles, texts) are skipped
    // unread.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    // The caller has its own caps; libpng's would be hit first.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(png, work->info);
    describe(work);
    if (!work->job->rgb)
        return true;
    if (!weir_io_image_check_room(work->job))
        return false;

    const png_color_16 white = {.red = 255, .green = 255, .blue = 255, .gray = 255};
    png_set_expand(png);
    png_set_gray_to_rgb(png);
    png_set_background(png, &white, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1);
    png_set_scale_16(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, work->info);
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < work->job->info.height; y++)
            png_read_row(png, work->job->rgb + y * work->job->info.width * 3, NULL);
    png_read_end(png, NULL);
    return true;
}

static bool read_guarded(struct work *work)
{
    if (setjmp(work->escape) == 0)
        return read_all(work);
    if (work->cut_off)
        return weir_io_fail(work->job->error, work->job->path,
                            "is a truncated PNG: the file ends before the image does");
    return weir_io_fail(work->job->error, work->job->path, "is a damaged PNG: %s%s", work->problem,
                        work->warning);
}

bool weir_io_png_decode(struct weir_io_image_job *job)
{
    struct work work = {.job = job};
    bool ok = false;
    work.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &work, on_error, on_warning);
    if (work.png)
        work.info = png_create_info_struct(work.png);
    if (work.info) {
        png_set_read_fn(work.png, &work, on_read);
        ok = read_guarded(&work);
    } else {
        weir_io_fail(job->error, job->path, "cannot be decoded: libpng did not start (memory?)");
    }
    png_destroy_read_struct(&work.png, &work.info, NULL);
    return ok;
}

// --- writing ---

static void on_write(png_structp png, png_bytep data, size_t size)
{
    struct work *work = png_get_io_ptr(png);
    weir_file_writer_append(work->file, data, size);
}

static void on_flush(png_structp png)
{
    (void)png;
}

static bool write_guarded(struct work *work, uint32_t width, uint32_t height,
                          const unsigned char *rgb)
{
    if (setjmp(work->escape) != 0)
        return false;
    png_set_user_limits(work->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_write_fn(work->png, work, on_write, on_flush);
    png_set_IHDR(work->png, work->info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(work->png, COMPRESSION);
    png_write_info(work->png, work->info);
    for (size_t y = 0; y < height; y++)
        png_write_row(work->png, rgb + y * width * 3);
    png_write_end(work->png, NULL);
    return true;
}

bool weir_io_png_write_rgb8(const char *path, uint32_t width, uint32_t height,
                            const unsigned char *rgb, struct weir_io_error *error)
{
    if (width == 0 || height == 0 || width > PNG_UINT_31_MAX || height > PNG_UINT_31_MAX)
        return weir_io_fail(error, path,
                            "cannot be written: a PNG has 1 to 2147483647 pixels a side, not "
                            "%lu x %lu",
                            (unsigned long)width, (unsigned long)height);

    struct work work = {0};
    bool ok = false;
    work.file = weir_file_writer_create(path, error->message, sizeof error->message);
    if (!work.file)
        return false;
    work.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &work, on_error, on_warning);
    if (work.png)
        work.info = png_create_info_struct(work.png);
    if (!work.info)
        weir_io_fail(error, path, "cannot be written: libpng did not start (memory?)");
    else if (!write_guarded(&work, width, height, rgb))
        weir_io_fail(error, path, "cannot be written as PNG: %s", work.problem);
    else
        ok = weir_file_writer_commit(&work.file, error->message, sizeof error->message);
    png_destroy_write_struct(&work.png, &work.info);
    weir_file_writer_destroy(&work.file);
    return ok;
}
