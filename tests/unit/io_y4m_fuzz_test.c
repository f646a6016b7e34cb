// Y4M streams that are damaged at random: cut off anywhere, with bytes and words of their lines changed,
// with parts left out and doubled, given in pieces of any size. Each ends well or with one sentence; the
// sanitizers look for the rest. The same streams in every run.
#include "io/y4m.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

enum {
    ROUNDS = 20000,
    STREAM_MAX = 4096,
    PIXELS_MAX = 10000,
    FRAMES_MAX = STREAM_MAX // each has a line
};

struct stream {
    unsigned char bytes[STREAM_MAX];
    size_t size, at;
    uint64_t random;
    bool broken; // a read fails now and then
};

// xorshift64*
static uint32_t draw(struct stream *stream, uint32_t below)
{
    uint64_t x = stream->random;
    x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
    stream->random = x;
    return (uint32_t)((x * UINT64_C(2685821657736338717)) >> 33) % below;
}

static ssize_t read_piece(void *user, void *to, size_t size)
{
    struct stream *stream = user;
    const size_t piece = 1 + draw(stream, 300);
    size_t count = stream->size - stream->at;
    if (stream->broken && draw(stream, 8) == 0) {
        errno = EIO;
        return -1;
    }
    count = count < size ? count : size;
    count = count < piece ? count : piece;
    memcpy(to, stream->bytes + stream->at, count);
    stream->at += count;
    return (ssize_t)count;
}

static void add(struct stream *stream, const void *bytes, size_t size)
{
    const size_t room = STREAM_MAX - stream->size;
    size = size < room ? size : room;
    memcpy(stream->bytes + stream->size, bytes, size);
    stream->size += size;
}

static void add_text(struct stream *stream, const char *text)
{
    add(stream, text, strlen(text));
}

#define PICK(stream, words) words[draw(stream, sizeof words / sizeof *words)]

// Words of a line, good and bad.
static const char *const words[] = {
    " W4",     " W16",     " W0",        " W-4",     " W4294967297", " W99999999999999999999",
    " H2",     " H9",      " H",         " F25:1",   " F0:0",        " F1:4294967296",
    " F25",    " Ip",      " It",        " I?",      " A1:1",        " A",
    " C420",   " C422",    " C444",      " Cmono",   " C420jpeg",    " C420mpeg2",
    " C411",   " C420p10", " C444alpha", " C",       " X",           " XCOLORRANGE=FULL",
    " XYSCSS", " ",        "  ",         " Q1",      "\n",           "\r",
    "FRAME",   "YUV4",     "\x1b[2J",    "\xff\xfe",
};

static const char *const chroma[] = {"", " C420", " C422", " C444", " Cmono", " C420paldv"};

// A stream that is read, in most cases.
static void make(struct stream *stream)
{
    unsigned char planes[3 * 20 * 20];
    char line[128];
    const uint32_t width = 1 + draw(stream, 20), height = 1 + draw(stream, 20);
    snprintf(line, sizeof line, "YUV4MPEG2 W%u H%u F%u:1%s\n", width, height, draw(stream, 60),
             PICK(stream, chroma));
    stream->size = stream->at = 0;
    add_text(stream, line);
    const size_t sizes[] = {(size_t)3 * width * height, (size_t)width * height,
                            (size_t)width * height * 3 / 2, draw(stream, sizeof planes)};
    for (uint32_t frames = draw(stream, 5); frames > 0; frames--) {
        const size_t size = PICK(stream, sizes);
        for (size_t i = 0; i < size; i++)
            planes[i] = (unsigned char)draw(stream, 256);
        add_text(stream, "FRAME\n");
        add(stream, planes, size);
    }
}

// Puts `with` in place of `count` bytes at `at`, as far as there is room.
static void replace(struct stream *stream, size_t at, size_t count, const char *with)
{
    unsigned char rest[STREAM_MAX];
    const size_t kept = stream->size - at - count;
    memcpy(rest, stream->bytes + at + count, kept);
    stream->size = at;
    add_text(stream, with);
    add(stream, rest, kept);
}

static void damage(struct stream *stream)
{
    const unsigned char *end = memchr(stream->bytes, '\n', stream->size);
    const size_t line = end ? (size_t)(end - stream->bytes) : 0;
    const size_t at = draw(stream, (uint32_t)stream->size);
    switch (draw(stream, 6)) {
    case 0:
        stream->size = at;
        break;
    case 1:
        stream->bytes[at] = (unsigned char)draw(stream, 256);
        break;
    case 2: // in the line about the stream
        stream->bytes[draw(stream, (uint32_t)line + 1)] = (unsigned char)draw(stream, 256);
        break;
    case 3:
        replace(stream, line, 0, PICK(stream, words));
        break;
    case 4:
        replace(stream, at, 0, PICK(stream, words));
        break;
    case 5:
        replace(stream, at, draw(stream, (uint32_t)(stream->size - at) + 1), "");
        break;
    }
}

static void expect_sentence(const struct weir_io_error *error)
{
    EXPECT_TRUE(strncmp(error->message, "film: ", 6) == 0);
    EXPECT_TRUE(strlen(error->message) > 16);
    EXPECT_NULL(strpbrk(error->message, "\n\r\x1b"));
}

// Of the frames that are there all pixels are converted. Returns whether the stream ended well.
static bool read_frames(struct weir_io_y4m *y4m, uint64_t *out_frames)
{
    struct weir_io_error error = {{0}};
    unsigned char *planes = malloc(y4m->frame_bytes); // of its size, for the sanitizer
    unsigned char *rgb = malloc((size_t)3 * y4m->width * y4m->height);
    bool there = true, ok = true;
    EXPECT_TRUE((uint64_t)y4m->width * y4m->height <= PIXELS_MAX);
    for (*out_frames = 0; ok && there && *out_frames < FRAMES_MAX;) {
        ok = weir_io_y4m_next(y4m, planes, &there, &error);
        if (!ok)
            expect_sentence(&error);
        else if (there)
            weir_io_y4m_rgb(y4m, planes, rgb), ++*out_frames;
    }
    EXPECT_UINT_EQ(y4m->frames, *out_frames);
    free(planes);
    free(rgb);
    return ok;
}

WEIR_TEST(Y4mFuzz, EachStreamEndsWellOrWithASentence)
{
    uint32_t refused = 0, ended_badly = 0, well = 0;
    uint64_t frames = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct stream stream = {.random = UINT64_C(0x9e3779b97f4a7c15) * (round + 1)};
        struct weir_io_y4m y4m;
        struct weir_io_error error = {{0}};
        uint64_t count;
        make(&stream);
        stream.broken = draw(&stream, 16) == 0;
        for (uint32_t changes = draw(&stream, 4); changes > 0 && stream.size > 0; changes--)
            damage(&stream);
        if (!weir_io_y4m_open(&y4m, "film", read_piece, &stream, PIXELS_MAX, &error)) {
            refused++;
            expect_sentence(&error);
            continue;
        }
        if (read_frames(&y4m, &count))
            well++;
        else
            ended_badly++;
        frames += count;
    }
    // All of these come about, or the streams do not try much.
    EXPECT_UINT_GT(refused, ROUNDS / 20);
    EXPECT_UINT_GT(ended_badly, ROUNDS / 20);
    EXPECT_UINT_GT(well, ROUNDS / 20);
    EXPECT_UINT_GT(frames, ROUNDS / 10);
}
