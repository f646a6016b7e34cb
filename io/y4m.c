// See y4m.h.
#include "io/y4m.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "YUV4MPEG2";

#define REMEDY "make one with ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe"

// --- reading ---

// Reads a line without its newline. `*out_there` is false at the end of the stream, and `*out_whole` where
// that comes before the newline, or the line is too long.
static bool read_line(struct weir_io_y4m *y4m, char line[WEIR_IO_Y4M_LINE], bool *out_there,
                      bool *out_whole, struct weir_io_error *error)
{
    line[0] = '\0';
    *out_whole = false;
    *out_there = fgets(line, WEIR_IO_Y4M_LINE, y4m->stream) != NULL;
    if (ferror(y4m->stream))
        return weir_io_fail(error, y4m->name, "the stream cannot be read: %s", strerror(errno));
    char *end = strchr(line, '\n');
    if (*out_there && !end && strlen(line) + 1 < WEIR_IO_Y4M_LINE && !feof(y4m->stream))
        return weir_io_fail(error, y4m->name, "a line of the stream holds a zero byte");
    *out_whole = end != NULL;
    if (end)
        *end = '\0';
    return true;
}

static bool read_number(const char *text, char **end, uint32_t *out_number)
{
    errno = 0;
    const unsigned long number = strtoul(text, end, 10);
    *out_number = (uint32_t)number;
    return *end != text && *text >= '0' && *text <= '9' && errno == 0 && number <= UINT32_MAX;
}

// "420jpeg", "422", "mono", "444p10".
static bool read_chroma(struct weir_io_y4m *y4m, const char *kind, struct weir_io_error *error)
{
    static const struct {
        const char *names[6];
        unsigned step_x, step_y;
        bool full_range;
    } kinds[] = {
        {{"420", "420mpeg2", "420paldv"}, 2, 2, false},
        {{"420jpeg"}, 2, 2, true},
        {{"422"}, 2, 1, false},
        {{"444"}, 1, 1, false},
        {{"mono"}, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t k = 0; kinds[i].names[k]; k++)
            if (strcmp(kinds[i].names[k], kind) == 0) {
                y4m->chroma = i < 2 ? "420" : kinds[i].names[0];
                y4m->step_x = kinds[i].step_x;
                y4m->step_y = kinds[i].step_y;
                y4m->full_range = y4m->full_range || kinds[i].full_range;
                return true;
            }
    return weir_io_fail(error, y4m->name,
                        "its frames are of the kind C%.32s; 8 bits of 420, 422, 444 and mono are "
                        "read: " REMEDY,
                        kind);
}

// One word of the line about the stream.
static bool read_word(struct weir_io_y4m *y4m, const char *word, struct weir_io_error *error)
{
    char *end = NULL;
    bool fine = true;
    if (word[0] == 'W')
        fine = read_number(word + 1, &end, &y4m->width) && *end == '\0';
    else if (word[0] == 'H')
        fine = read_number(word + 1, &end, &y4m->height) && *end == '\0';
    else if (word[0] == 'F')
        fine = read_number(word + 1, &end, &y4m->rate) && *end == ':' &&
               read_number(end + 1, &end, &y4m->per) && *end == '\0';
    else if (word[0] == 'C')
        return read_chroma(y4m, word + 1, error);
    else if (strcmp(word, "XCOLORRANGE=FULL") == 0)
        y4m->full_range = true;
    else if (strcmp(word, "XCOLORRANGE=LIMITED") == 0)
        y4m->full_range = false;
    return fine ||
           weir_io_fail(error, y4m->name, "'%.40s' in its first line is not a number", word);
}

static bool read_words(struct weir_io_y4m *y4m, char *line, struct weir_io_error *error)
{
    char *rest = NULL;
    y4m->chroma = "420";
    y4m->step_x = y4m->step_y = 2;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!read_word(y4m, word, error))
            return false;
    if (y4m->width == 0 || y4m->height == 0)
        return weir_io_fail(error, y4m->name,
                            "its first line gives %" PRIu32 "x%" PRIu32
                            " pixels; a stream has at least one",
                            y4m->width, y4m->height);
    if (y4m->per == 0)
        y4m->rate = 0;
    return true;
}

static uint64_t chroma_samples(const struct weir_io_y4m *y4m)
{
    if (y4m->step_x == 0)
        return 0;
    return (uint64_t)((y4m->width - 1) / y4m->step_x + 1) * ((y4m->height - 1) / y4m->step_y + 1);
}

bool weir_io_y4m_open(struct weir_io_y4m *y4m, const char *name, FILE *stream, uint64_t max_pixels,
                      struct weir_io_error *error)
{
    char line[WEIR_IO_Y4M_LINE];
    bool there, whole;
    *y4m = (struct weir_io_y4m){.name = name, .stream = stream};
    if (!read_line(y4m, line, &there, &whole, error))
        return false;
    if (!there)
        return weir_io_fail(error, name, "the stream is empty; " REMEDY);
    if (strncmp(line, magic, sizeof magic - 1) != 0 ||
        (line[sizeof magic - 1] != ' ' && line[sizeof magic - 1] != '\0'))
        return weir_io_fail(error, name, "this is no Y4M stream, which begins with %s; " REMEDY,
                            magic);
    if (!whole)
        return weir_io_fail(error, name, "the line about the stream does not end within %zu bytes",
                            strlen(line));
    if (!read_words(y4m, line + sizeof magic - 1, error))
        return false;
    const uint64_t pixels = (uint64_t)y4m->width * y4m->height;
    if (max_pixels > 0 && pixels > max_pixels)
        return weir_io_fail(error, name,
                            "its frames have %" PRIu32 "x%" PRIu32 " = %" PRIu64
                            " pixels, and the cap is %" PRIu64 "; raise max_pixels",
                            y4m->width, y4m->height, pixels, max_pixels);
    if (pixels > PTRDIFF_MAX / 3) // three bytes of RGB8 each, and at most three in the planes
        return weir_io_fail(error, name,
                            "its frames have %" PRIu32 "x%" PRIu32
                            " pixels, more than memory has bytes for; scale the video",
                            y4m->width, y4m->height);
    y4m->frame_bytes = (size_t)(pixels + 2 * chroma_samples(y4m));
    return true;
}

// A line that is no FRAME: what it is.
static bool refuse_line(const struct weir_io_y4m *y4m, char *line, struct weir_io_error *error)
{
    if (strncmp(line, magic, sizeof magic - 1) != 0)
        return weir_io_fail(error, y4m->name,
                            "after frame %" PRIu64 " there is no FRAME: the stream is damaged, or "
                            "another program wrote into it",
                            y4m->frames);
    struct weir_io_y4m other = {.name = y4m->name};
    if (!read_words(&other, line + sizeof magic - 1, error))
        return false;
    return weir_io_fail(error, y4m->name,
                        "after frame %" PRIu64 " a stream of %" PRIu32 "x%" PRIu32
                        " pixels, C%s, begins, and this one has %" PRIu32 "x%" PRIu32
                        ", C%s; run it by itself, or let ffmpeg scale it",
                        y4m->frames, other.width, other.height, other.chroma, y4m->width,
                        y4m->height, y4m->chroma);
}

static bool read_planes(struct weir_io_y4m *y4m, unsigned char *planes, struct weir_io_error *error)
{
    const size_t got = fread(planes, 1, y4m->frame_bytes, y4m->stream);
    if (got == y4m->frame_bytes)
        return true;
    if (ferror(y4m->stream))
        return weir_io_fail(error, y4m->name, "the stream cannot be read: %s", strerror(errno));
    return weir_io_fail(error, y4m->name,
                        "the stream ends in frame %" PRIu64 ", after %zu of its %zu bytes",
                        y4m->frames + 1, got, y4m->frame_bytes);
}

bool weir_io_y4m_next(struct weir_io_y4m *y4m, unsigned char *planes, bool *out_there,
                      struct weir_io_error *error)
{
    char line[WEIR_IO_Y4M_LINE];
    bool there, whole;
    *out_there = false;
    if (!read_line(y4m, line, &there, &whole, error))
        return false;
    if (!there)
        return true;
    if (strncmp(line, "FRAME", 5) != 0 || (line[5] != '\0' && line[5] != ' '))
        return refuse_line(y4m, line, error);
    if (!whole)
        return weir_io_fail(error, y4m->name,
                            "the stream ends in frame %" PRIu64 ", before its bytes",
                            y4m->frames + 1);
    if (!read_planes(y4m, planes, error))
        return false;
    y4m->frames++;
    *out_there = true;
    return true;
}

// --- colours ---

// Fixed point with 16 bits after the point, which the sums below stay in.
static unsigned char clamp(int32_t fixed)
{
    const int32_t value = (fixed + 32768) >> 16;
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

// Kr = 0.299, Kb = 0.114; limited: Y of 219 steps and chroma of 224.
struct factors {
    int32_t offset, luma, red_v, green_u, green_v, blue_u;
};

static const struct factors limited = {16, 76309, 104597, 25675, 53279, 132201};
static const struct factors full = {0, 65536, 91881, 22554, 46802, 116130};

static void convert(const struct factors *f, int32_t y, int32_t u, int32_t v, unsigned char *rgb)
{
    const int32_t luma = (y - f->offset) * f->luma;
    rgb[0] = clamp(luma + (v - 128) * f->red_v);
    rgb[1] = clamp(luma - (u - 128) * f->green_u - (v - 128) * f->green_v);
    rgb[2] = clamp(luma + (u - 128) * f->blue_u);
}

void weir_io_y4m_rgb(const struct weir_io_y4m *y4m, const unsigned char *planes, unsigned char *rgb)
{
    const struct factors *f = y4m->full_range ? &full : &limited;
    const size_t width = y4m->width, height = y4m->height;
    const size_t chroma_width = y4m->step_x ? (width - 1) / y4m->step_x + 1 : 0;
    const unsigned char *u = planes + width * height;
    const unsigned char *v = u + chroma_samples(y4m);
    for (size_t row = 0; row < height; row++) {
        const size_t at = y4m->step_y ? row / y4m->step_y * chroma_width : 0;
        for (size_t x = 0; x < width; x++, rgb += 3) {
            const size_t sample = y4m->step_x ? at + x / y4m->step_x : 0;
            convert(f, planes[row * width + x], y4m->step_x ? u[sample] : 128,
                    y4m->step_x ? v[sample] : 128, rgb);
        }
    }
}

// --- writing ---

bool weir_io_y4m_begin(FILE *file, uint32_t width, uint32_t height, uint32_t rate, uint32_t per)
{
    return fprintf(file,
                   "%s W%" PRIu32 " H%" PRIu32 " F%" PRIu32 ":%" PRIu32
                   " Ip A1:1 C444 XCOLORRANGE=LIMITED\n",
                   magic, width, height, rate ? rate : 25, rate ? per : 1) > 0;
}

// BT.601, the inverse of `limited`, 16 bits after the point; one plane at a time.
static bool write_plane(FILE *file, size_t pixels, const unsigned char *rgb, const int32_t k[3],
                        int32_t offset)
{
    for (size_t i = 0; i < pixels; i++, rgb += 3) {
        const int32_t value = (k[0] * rgb[0] + k[1] * rgb[1] + k[2] * rgb[2] + 32768) >> 16;
        if (putc(offset + value, file) == EOF)
            return false;
    }
    return true;
}

bool weir_io_y4m_write_rgb8(FILE *file, uint32_t width, uint32_t height, const unsigned char *rgb)
{
    static const int32_t y[3] = {16829, 33039, 6416};
    static const int32_t u[3] = {-9714, -19070, 28784};
    static const int32_t v[3] = {28784, -24103, -4681};
    const size_t pixels = (size_t)width * height;
    return fputs("FRAME\n", file) >= 0 && write_plane(file, pixels, rgb, y, 16) &&
           write_plane(file, pixels, rgb, u, 128) && write_plane(file, pixels, rgb, v, 128) &&
           fflush(file) == 0;
}
