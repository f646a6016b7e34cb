// Detects the kind of a file and passes it to the decoder of that kind. The
// stream starts at the file's first byte again, so the decoders see the whole
// file.
//
// libpng and libjpeg report errors by longjmp(). All that must survive it is in a struct that
// the function with setjmp() gets by pointer, so no local can be clobbered, and its owner
// destroys what the libraries made, on success and on failure.
#include "io/image.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>
#include <png.h>

#include <jerror.h>

#include "base/file.h"
#include "io/error.h"

enum {
    WARNING_TEXT = 96
};

// One file that is decoded, or written. If `rgb` is NULL, only the header is read.
struct job {
    const char *path;
    FILE *stream;
    weir_file_writer *file;
    uint64_t max_pixels;
    unsigned char *rgb;
    size_t capacity;
    struct weir_io_image_info info;
    struct weir_io_error *error;

    // An error of the libraries: where it leads, and what it is.
    jmp_buf escape;
    bool cut_off;
    char problem[JMSG_LENGTH_MAX];
    char warning[WARNING_TEXT];

    png_structp png;
    png_infop png_info;
    struct jpeg_decompress_struct jpeg; // whose callbacks find the job through client_data
    struct jpeg_error_mgr jpeg_errors;
    struct jpeg_progress_mgr jpeg_progress;
    int scan_limit;
};

uint64_t weir_io_image_bytes(const struct weir_io_image_info *info)
{
    return (uint64_t)info->width * info->height * 3;
}

bool weir_io_image_check_pixels(const char *path, const struct weir_io_image_info *info,
                                uint64_t max_pixels, struct weir_io_error *error)
{
    uint64_t pixels = (uint64_t)info->width * info->height;
    if (max_pixels == 0 || pixels <= max_pixels)
        return true;
    return weir_io_fail(error, path,
                        "has %" PRIu32 " x %" PRIu32 " = %" PRIu64
                        " pixels, above the cap of %" PRIu64
                        "; scale it down or raise max_pixels in the configuration",
                        info->width, info->height, pixels, max_pixels);
}

// Once `job->info` is known: whether the pixels fit the cap and the buffer.
static bool check_room(const struct job *job)
{
    if (!weir_io_image_check_pixels(job->path, &job->info, job->max_pixels, job->error))
        return false;
    uint64_t bytes = weir_io_image_bytes(&job->info);
    if (bytes <= job->capacity)
        return true;
    return weir_io_fail(job->error, job->path,
                        "has %" PRIu32 " x %" PRIu32 " pixels, which take %" PRIu64
                        " bytes, but its buffer has %zu; did the file change since it was probed?",
                        job->info.width, job->info.height, bytes, job->capacity);
}

WEIR_TEXT_PRINTF(2, 3)
_Noreturn static void give_up(struct job *job, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(job->problem, sizeof job->problem, format, arguments);
    va_end(arguments);
    longjmp(job->escape, 1);
}

// PNG. Images are written through the atomic file writer, which remembers its first
// failure: the rows after it are encoded in vain, but no jump out of the write is
// needed.

// Of photographs zlib's own level, 6, takes three times as long for files that are a twenty-fifth smaller.
#define COMPRESSION 4

static void on_png_error(png_structp png, png_const_charp text)
{
    give_up(png_get_error_ptr(png), "%s", text);
}

// Warnings alone are not errors; the last one often explains the error that follows.
static void on_png_warning(png_structp png, png_const_charp text)
{
    struct job *job = png_get_error_ptr(png);
    snprintf(job->warning, sizeof job->warning, "; %s", text);
}

static void begin_png(struct job *job, png_structp png)
{
    job->png = png;
    job->png_info = png ? png_create_info_struct(png) : NULL;
    if (!job->png_info)
        give_up(job, "libpng did not start (memory?)");
    // The caller has its own caps; libpng's would be hit first.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
}

// --- reading ---

static void on_png_read(png_structp png, png_bytep data, size_t size)
{
    struct job *job = png_get_io_ptr(png);
    if (fread(data, 1, size, job->stream) == size)
        return;
    job->cut_off = true;
    give_up(job, "the file ends before the image does");
}

static void describe_png(struct job *job)
{
    static const char *const layouts[] = {
        [PNG_COLOR_TYPE_GRAY] = "gray",       [PNG_COLOR_TYPE_GRAY_ALPHA] = "gray+alpha",
        [PNG_COLOR_TYPE_RGB] = "rgb",         [PNG_COLOR_TYPE_RGB_ALPHA] = "rgb+alpha",
        [PNG_COLOR_TYPE_PALETTE] = "palette",
    };
    struct weir_io_image_info *info = &job->info;
    info->width = png_get_image_width(job->png, job->png_info);
    info->height = png_get_image_height(job->png, job->png_info);
    size_t used = 0;
    weir_text_append(info->kind, sizeof info->kind, &used, "png %s%d%s%s",
                     layouts[png_get_color_type(job->png, job->png_info)],
                     png_get_bit_depth(job->png, job->png_info),
                     png_get_valid(job->png, job->png_info, PNG_INFO_tRNS) ? "+transparent" : "",
                     png_get_interlace_type(job->png, job->png_info) == PNG_INTERLACE_ADAM7
                         ? ", interlaced"
                         : "");
}

static bool read_png(struct job *job)
{
    begin_png(job,
              png_create_read_struct(PNG_LIBPNG_VER_STRING, job, on_png_error, on_png_warning));
    png_structp png = job->png;
    png_set_read_fn(png, job, on_png_read);
    // Chunks that do not affect the pixels (gamma, profiles, texts) are skipped
    // unread.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(png, job->png_info);
    describe_png(job);
    if (!job->rgb)
        return true;
    if (!check_room(job))
        return false;

    const png_color_16 white = {.red = 255, .green = 255, .blue = 255, .gray = 255};
    png_set_expand(png);
    png_set_gray_to_rgb(png);
    png_set_background(png, &white, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1);
    png_set_scale_16(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->png_info);
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < job->info.height; y++)
            png_read_row(png, job->rgb + y * job->info.width * 3, NULL);
    png_read_end(png, NULL);
    return true;
}

// --- writing ---

static void on_png_write(png_structp png, png_bytep data, size_t size)
{
    struct job *job = png_get_io_ptr(png);
    weir_file_writer_append(job->file, data, size);
}

static void on_png_flush(png_structp png)
{
}

static bool write_png(struct job *job)
{
    const uint32_t width = job->info.width, height = job->info.height;
    begin_png(job,
              png_create_write_struct(PNG_LIBPNG_VER_STRING, job, on_png_error, on_png_warning));
    png_set_write_fn(job->png, job, on_png_write, on_png_flush);
    png_set_IHDR(job->png, job->png_info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(job->png, COMPRESSION);
    png_write_info(job->png, job->png_info);
    for (size_t y = 0; y < height; y++)
        png_write_row(job->png, job->rgb + y * width * 3);
    png_write_end(job->png, NULL);
    return weir_file_writer_commit(&job->file, job->error->message, sizeof job->error->message);
}

// JPEG. libjpeg's default error manager prints and exits, and calls a file that ends early
// a warning and paints the rest gray. Ours jumps, prints nothing, and treats every
// warning as damage except those that do not affect the pixels.

// Each scan goes over all pixels, and takes a few bytes of the file: io/image.h has the limits. Encoders
// make 20 scans at most.
enum {
    SCANS_OF_ANY = 32,
    SCANS_AT_MOST = 500
};
#define SCANNED_PIXELS (UINT64_C(1) << 30)

static void on_jpeg_error(j_common_ptr cinfo)
{
    struct job *job = cinfo->client_data;
    int code = cinfo->err->msg_code;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    job->cut_off = code == JWRN_JPEG_EOF || code == JERR_INPUT_EOF || code == JWRN_HIT_MARKER;
    give_up(job, "%s", text);
}

// A negative level is a warning. Bytes between markers, which cameras write, and
// unknown version numbers do not affect the pixels; every other warning means that
// the pixels are wrong.
static void on_jpeg_message(j_common_ptr cinfo, int level)
{
    int code = cinfo->err->msg_code;
    bool harmless =
        code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
    if (level < 0 && !harmless)
        on_jpeg_error(cinfo);
}

static void on_jpeg_output(j_common_ptr cinfo)
{
}

static void on_jpeg_progress(j_common_ptr cinfo)
{
    struct job *job = cinfo->client_data;
    if (job->jpeg.input_scan_number > job->scan_limit)
        give_up(job,
                "it has more than the %d scans that one of %u x %u pixels may have; save it "
                "again with fewer",
                job->scan_limit, job->jpeg.image_width, job->jpeg.image_height);
}

static int scan_limit_of(const struct jpeg_decompress_struct *cinfo)
{
    const uint64_t pixels = (uint64_t)cinfo->image_width * cinfo->image_height;
    const uint64_t scans = SCANNED_PIXELS / pixels;
    if (scans <= SCANS_OF_ANY)
        return SCANS_OF_ANY;
    return scans < SCANS_AT_MOST ? (int)scans : SCANS_AT_MOST;
}

static bool describe_jpeg(struct job *job)
{
    // Those that can be converted.
    static const char *const colours[] = {
        [JCS_GRAYSCALE] = "gray", [JCS_YCbCr] = "ycc", [JCS_RGB] = "rgb"};
    const struct jpeg_decompress_struct *cinfo = &job->jpeg;
    if (cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK)
        return weir_io_fail(job->error, job->path,
                            "is a CMYK JPEG, whose colours depend on a printer; "
                            "convert it to RGB first");
    const char *name = (size_t)cinfo->jpeg_color_space < sizeof colours / sizeof *colours
                           ? colours[cinfo->jpeg_color_space]
                           : NULL;
    if (!name)
        return weir_io_fail(job->error, job->path,
                            "is a JPEG of %d channels of unknown meaning; gray, YCbCr and RGB "
                            "are read",
                            cinfo->num_components);
    size_t used = 0;
    job->info.width = cinfo->image_width;
    job->info.height = cinfo->image_height;
    weir_text_append(job->info.kind, sizeof job->info.kind, &used, "jpeg %s%s", name,
                     cinfo->progressive_mode ? ", progressive" : "");
    return true;
}

static bool read_jpeg(struct job *job)
{
    j_decompress_ptr cinfo = &job->jpeg;
    cinfo->err = jpeg_std_error(&job->jpeg_errors);
    cinfo->client_data = job;
    job->jpeg_errors.error_exit = on_jpeg_error;
    job->jpeg_errors.emit_message = on_jpeg_message;
    job->jpeg_errors.output_message = on_jpeg_output;
    job->jpeg_progress.progress_monitor = on_jpeg_progress;
    jpeg_create_decompress(cinfo);
    cinfo->progress = &job->jpeg_progress;
    jpeg_stdio_src(cinfo, job->stream);
    jpeg_read_header(cinfo, TRUE);
    if (!describe_jpeg(job))
        return false;
    if (!job->rgb)
        return true;
    if (!check_room(job))
        return false;

    job->scan_limit = scan_limit_of(cinfo);
    cinfo->out_color_space = JCS_RGB;
    cinfo->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(cinfo);
    size_t row_bytes = (size_t)cinfo->output_width * 3;
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW row = job->rgb + cinfo->output_scanline * row_bytes;
        jpeg_read_scanlines(cinfo, &row, 1);
    }
    // Reads up to the end marker: damage before it is an error too.
    jpeg_finish_decompress(cinfo);
    return true;
}

// Of either kind.

enum {
    LONGEST_SIGNATURE = 8
};

struct format {
    const char *name;
    const char *signature;
    size_t length;
    bool (*read)(struct job *job); // false after an error that is told; others jump
};

// Kinds without a decoder are listed for the message only.
static const struct format formats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", 8, read_png},
    {"JPEG", "\xff\xd8\xff", 3, read_jpeg},
    {"GIF", "GIF8", 4, NULL},
    {"BMP", "BM", 2, NULL},
    {"TIFF", "II*\0", 4, NULL},
    {"TIFF", "MM\0*", 4, NULL},
    {"RIFF (perhaps WebP)", "RIFF", 4, NULL},
};

static bool read_format(struct job *job, const struct format *format)
{
    if (setjmp(job->escape) == 0)
        return format->read(job);
    if (ferror(job->stream))
        return weir_io_fail(job->error, job->path, "cannot be read to its end");
    if (format->read == read_png && !job->png_info)
        return weir_io_fail(job->error, job->path, "cannot be decoded: %s", job->problem);
    return weir_io_fail(job->error, job->path, "is a %s %s: %s%s",
                        job->cut_off ? "truncated" : "damaged", format->name, job->problem,
                        job->warning);
}

static bool decode(struct job *job)
{
    char head[LONGEST_SIGNATURE];
    size_t length = fread(head, 1, sizeof head, job->stream);
    if (ferror(job->stream))
        return weir_io_fail(job->error, job->path, "cannot be read (errno %d)", errno);
    if (length == 0)
        return weir_io_fail(job->error, job->path, "is empty; a PNG or JPEG image is needed");

    // A file that ends within the signature of a kind that is read counts as cut off,
    // not as something else.
    const struct format *format = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !format; i++) {
        const size_t whole = formats[i].length, compared = whole < length ? whole : length;
        if ((compared == whole || formats[i].read) &&
            memcmp(head, formats[i].signature, compared) == 0)
            format = &formats[i];
    }
    if (!format)
        return weir_io_fail(job->error, job->path,
                            "is neither a PNG nor a JPEG image; convert it to one of them");
    if (!format->read)
        return weir_io_fail(
            job->error, job->path,
            "looks like a %s file; only PNG and JPEG are read, convert it to one of them",
            format->name);
    rewind(job->stream);
    return read_format(job, format);
}

static bool run(struct job *job, struct weir_io_image_info *out_info)
{
    *out_info = (struct weir_io_image_info){0};
    int descriptor = -1;
    uint64_t size = 0;
    if (!weir_file_open(job->path, &descriptor, &size, job->error->message,
                        sizeof job->error->message))
        return false;
    job->stream = fdopen(descriptor, "rb");
    if (!job->stream) {
        close(descriptor);
        return weir_io_fail(job->error, job->path, "cannot be opened (errno %d)", errno);
    }
    bool ok = decode(job);
    png_destroy_read_struct(&job->png, &job->png_info, NULL);
    jpeg_destroy_decompress(&job->jpeg);
    // The file was only read, so closing it cannot lose data.
    (void)fclose(job->stream);
    if (ok)
        *out_info = job->info;
    return ok;
}

bool weir_io_image_probe(const char *path, struct weir_io_image_info *out_info,
                         struct weir_io_error *error)
{
    struct job job = {.path = path, .error = error};
    return run(&job, out_info);
}

bool weir_io_image_read(const char *path, uint64_t max_pixels, unsigned char *rgb, size_t capacity,
                        struct weir_io_image_info *out_info, struct weir_io_error *error)
{
    struct job job = {
        .path = path,
        .max_pixels = max_pixels,
        .rgb = rgb,
        .capacity = capacity,
        .error = error,
    };
    return run(&job, out_info);
}

static bool encode(struct job *job)
{
    if (setjmp(job->escape) == 0)
        return write_png(job);
    return weir_io_fail(job->error, job->path, "cannot be written as PNG: %s", job->problem);
}

bool weir_io_png_write_rgb8(const char *path, uint32_t width, uint32_t height,
                            const unsigned char *rgb, struct weir_io_error *error)
{
    struct job job = {.path = path,
                      .rgb = (unsigned char *)rgb,
                      .info = {.width = width, .height = height},
                      .error = error};
    job.file = weir_file_writer_create(path, error->message, sizeof error->message);
    const bool ok = job.file && encode(&job);
    png_destroy_write_struct(&job.png, &job.png_info);
    weir_file_writer_destroy(&job.file);
    return ok;
}
