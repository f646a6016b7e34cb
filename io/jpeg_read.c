// libjpeg's default error manager prints and exits, and calls a file that ends early
// a warning and paints the rest gray. Ours jumps, prints nothing, and treats every
// warning as damage except those that do not affect the pixels. As in io/png.c,
// data that must survive the jump is in a struct that is passed by pointer.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/text.h"
#include "io/image_decoder.h"

// Each scan goes over all pixels, and takes a few bytes of the file: io/image.h has the limits. Encoders
// make 20 scans at most.
enum {
    SCANS_OF_ANY = 32,
    SCANS_AT_MOST = 500
};
#define SCANNED_PIXELS (UINT64_C(1) << 30)

// Each callback gets a member of cinfo and finds the reader through client_data.
struct reader {
    struct weir_io_image_job *job;
    jmp_buf escape;
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    int scan_limit;
    bool cut_off;
    char problem[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr cinfo)
{
    struct reader *reader = cinfo->client_data;
    int code = cinfo->err->msg_code;
    cinfo->err->format_message(cinfo, reader->problem);
    reader->cut_off = code == JWRN_JPEG_EOF || code == JERR_INPUT_EOF || code == JWRN_HIT_MARKER;
    longjmp(reader->escape, 1);
}

// A negative level is a warning. Bytes between markers, which cameras write, and
// unknown version numbers do not affect the pixels; every other warning means that
// the pixels are wrong.
static void on_message(j_common_ptr cinfo, int level)
{
    int code = cinfo->err->msg_code;
    bool harmless =
        code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
    if (level < 0 && !harmless)
        on_error(cinfo);
}

static void on_output(j_common_ptr cinfo)
{
    (void)cinfo;
}

static void on_progress(j_common_ptr cinfo)
{
    struct reader *reader = cinfo->client_data;
    if (reader->cinfo.input_scan_number <= reader->scan_limit)
        return;
    size_t used = 0;
    weir_text_append(reader->problem, sizeof reader->problem, &used,
                     "it has more than the %d scans that one of %u x %u pixels may have; save it "
                     "again with fewer",
                     reader->scan_limit, reader->cinfo.image_width, reader->cinfo.image_height);
    longjmp(reader->escape, 1);
}

static int scan_limit_of(const struct jpeg_decompress_struct *cinfo)
{
    const uint64_t pixels = (uint64_t)cinfo->image_width * cinfo->image_height;
    const uint64_t scans = SCANNED_PIXELS / pixels;
    if (scans <= SCANS_OF_ANY)
        return SCANS_OF_ANY;
    return scans < SCANS_AT_MOST ? (int)scans : SCANS_AT_MOST;
}

// Returns the name of the file's colours, or NULL if they cannot be converted.
static const char *colours_of(const struct jpeg_decompress_struct *cinfo)
{
    switch (cinfo->jpeg_color_space) {
    case JCS_GRAYSCALE:
        return "gray";
    case JCS_YCbCr:
        return "ycc";
    case JCS_RGB:
        return "rgb";
    default:
        return NULL;
    }
}

static bool describe(struct reader *reader)
{
    const struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    struct weir_io_image_job *job = reader->job;
    if (cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK)
        return weir_io_fail(job->error, job->path,
                            "is a CMYK JPEG, whose colours depend on a printer; "
                            "convert it to RGB first");
    const char *colours = colours_of(cinfo);
    if (!colours)
        return weir_io_fail(job->error, job->path,
                            "is a JPEG of %d channels of unknown meaning; gray, YCbCr and RGB "
                            "are read",
                            cinfo->num_components);
    size_t used = 0;
    job->info.width = cinfo->image_width;
    job->info.height = cinfo->image_height;
    weir_text_append(job->info.kind, sizeof job->info.kind, &used, "jpeg %s%s", colours,
                     cinfo->progressive_mode ? ", progressive" : "");
    return true;
}

// Everything that may jump. Returns false after an error of this file's, without a
// jump.
static bool read_all(struct reader *reader)
{
    j_decompress_ptr cinfo = &reader->cinfo;
    jpeg_create_decompress(cinfo);
    cinfo->progress = &reader->progress;
    jpeg_stdio_src(cinfo, reader->job->stream);
    jpeg_read_header(cinfo, TRUE);
    if (!describe(reader))
        return false;
    if (!reader->job->rgb)
        return true;
    if (!weir_io_image_check_room(reader->job))
        return false;

    reader->scan_limit = scan_limit_of(cinfo);
    cinfo->out_color_space = JCS_RGB;
    cinfo->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(cinfo);
    size_t row_bytes = (size_t)cinfo->output_width * 3;
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW row = reader->job->rgb + cinfo->output_scanline * row_bytes;
        jpeg_read_scanlines(cinfo, &row, 1);
    }
    // Reads up to the end marker: damage before it is an error too.
    jpeg_finish_decompress(cinfo);
    return true;
}

static bool read_guarded(struct reader *reader)
{
    if (setjmp(reader->escape) == 0)
        return read_all(reader);
    if (ferror(reader->job->stream))
        return weir_io_fail(reader->job->error, reader->job->path, "cannot be read to its end");
    return weir_io_fail(reader->job->error, reader->job->path, "is a %s JPEG: %s",
                        reader->cut_off ? "truncated" : "damaged", reader->problem);
}

bool weir_io_jpeg_decode(struct weir_io_image_job *job)
{
    struct reader reader = {.job = job};
    reader.cinfo.err = jpeg_std_error(&reader.errors);
    reader.cinfo.client_data = &reader;
    reader.errors.error_exit = on_error;
    reader.errors.emit_message = on_message;
    reader.errors.output_message = on_output;
    reader.progress.progress_monitor = on_progress;
    bool ok = read_guarded(&reader);
    jpeg_destroy_decompress(&reader.cinfo);
    return ok;
}
