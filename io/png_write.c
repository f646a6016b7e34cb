// The library writes through the atomic file writer, which remembers its first
// failure: the rows after it are encoded in vain, but no jump out of the write is
// needed.
#include <setjmp.h>

#include <png.h>

#include "base/file.h"
#include "base/text.h"
#include "io/image.h"

// Of photographs zlib's own level, 6, takes three times as long for files that are a twenty-fifth smaller.
#define COMPRESSION 4

enum {
    LIBRARY_TEXT = 96
};

struct writer {
    jmp_buf escape;
    png_structp png;
    png_infop info;
    weir_file_writer *file;
    char problem[LIBRARY_TEXT];
};

static void on_error(png_structp png, png_const_charp text)
{
    struct writer *writer = png_get_error_ptr(png);
    size_t used = 0;
    weir_text_append(writer->problem, LIBRARY_TEXT, &used, "%s", text);
    longjmp(writer->escape, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void on_write(png_structp png, png_bytep data, size_t size)
{
    struct writer *writer = png_get_io_ptr(png);
    weir_file_writer_append(writer->file, data, size);
}

static void on_flush(png_structp png)
{
    (void)png;
}

static bool write_guarded(struct writer *writer, uint32_t width, uint32_t height,
                          const unsigned char *rgb)
{
    if (setjmp(writer->escape) != 0)
        return false;
    png_set_user_limits(writer->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_write_fn(writer->png, writer, on_write, on_flush);
    png_set_IHDR(writer->png, writer->info, width, height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(writer->png, COMPRESSION);
    png_write_info(writer->png, writer->info);
    for (size_t y = 0; y < height; y++)
        png_write_row(writer->png, rgb + y * width * 3);
    png_write_end(writer->png, NULL);
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

    struct writer writer = {0};
    bool ok = false;
    writer.file = weir_file_writer_create(path, error->message, sizeof error->message);
    if (!writer.file)
        return false;
    writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, on_error, on_warning);
    if (writer.png)
        writer.info = png_create_info_struct(writer.png);
    if (!writer.info)
        weir_io_fail(error, path, "cannot be written: libpng did not start (memory?)");
    else if (!write_guarded(&writer, width, height, rgb))
        weir_io_fail(error, path, "cannot be written as PNG: %s", writer.problem);
    else
        ok = weir_file_writer_commit(&writer.file, error->message, sizeof error->message);
    png_destroy_write_struct(&writer.png, &writer.info);
    weir_file_writer_destroy(&writer.file);
    return ok;
}
