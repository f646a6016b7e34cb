// Detects the kind of a file and passes it to the decoder of that kind. The
// stream starts at the file's first byte again, so the decoders see the whole
// file.
#include "io/image.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "io/image_decoder.h"

enum {
    LONGEST_SIGNATURE = 8
};

struct format {
    const char *name;
    const char *signature;
    size_t length;
    bool (*decode)(struct weir_io_image_job *job);
};

// Kinds without a decoder are listed for the message only.
static const struct format formats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", 8, weir_io_png_decode},
    {"JPEG", "\xff\xd8\xff", 3, weir_io_jpeg_decode},
    {"GIF", "GIF8", 4, NULL},
    {"BMP", "BM", 2, NULL},
    {"TIFF", "II*\0", 4, NULL},
    {"TIFF", "MM\0*", 4, NULL},
    {"RIFF (perhaps WebP)", "RIFF", 4, NULL},
};

// A file that ends within the signature of a kind that is read counts as cut off,
// not as something else.
static const struct format *find_format(const char *head, size_t length)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (length < formats[i].length && !formats[i].decode)
            continue;
        size_t compared = formats[i].length < length ? formats[i].length : length;
        if (memcmp(head, formats[i].signature, compared) == 0)
            return &formats[i];
    }
    return NULL;
}

static bool decode(struct weir_io_image_job *job)
{
    char head[LONGEST_SIGNATURE];
    size_t length = fread(head, 1, sizeof head, job->stream);
    if (ferror(job->stream))
        return weir_io_fail(job->error, job->path, "cannot be read (errno %d)", errno);
    if (length == 0)
        return weir_io_fail(job->error, job->path, "is empty; a PNG or JPEG image is needed");

    const struct format *format = find_format(head, length);
    if (!format)
        return weir_io_fail(job->error, job->path,
                            "is neither a PNG nor a JPEG image; convert it to one of them");
    if (!format->decode)
        return weir_io_fail(
            job->error, job->path,
            "looks like a %s file; only PNG and JPEG are read, convert it to one of them",
            format->name);
    rewind(job->stream);
    return format->decode(job);
}

static bool run(struct weir_io_image_job *job, struct weir_io_image_info *out_info)
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
    // The file was only read, so closing it cannot lose data.
    (void)fclose(job->stream);
    if (ok)
        *out_info = job->info;
    return ok;
}

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

bool weir_io_image_check_room(const struct weir_io_image_job *job)
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

bool weir_io_image_probe(const char *path, struct weir_io_image_info *out_info,
                         struct weir_io_error *error)
{
    struct weir_io_image_job job = {.path = path, .error = error};
    return run(&job, out_info);
}

bool weir_io_image_read(const char *path, uint64_t max_pixels, unsigned char *rgb, size_t capacity,
                        struct weir_io_image_info *out_info, struct weir_io_error *error)
{
    struct weir_io_image_job job = {
        .path = path,
        .max_pixels = max_pixels,
        .capacity = capacity,
        .error = error,
    };
    job.rgb = rgb;
    return run(&job, out_info);
}
