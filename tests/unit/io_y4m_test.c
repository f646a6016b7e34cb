// Y4M streams: as they are read and written, and damaged at random.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for fopencookie()
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/y4m.h"
#include "tests/fuzz/damage.h"
#include "tests/support/test.h"

// A stream in memory, given in pieces of at most `piece` bytes; it fails at `broken`.
struct memory {
    const unsigned char *bytes;
    size_t size, at, piece, broken;
};

static ssize_t from_memory(void *user, char *to, size_t size)
{
    struct memory *memory = user;
    size_t left = memory->size - memory->at;
    if (memory->broken && memory->at >= memory->broken) {
        errno = EIO;
        return -1;
    }
    left = left < size ? left : size;
    left = left < memory->piece ? left : memory->piece;
    memcpy(to, memory->bytes + memory->at, left);
    memory->at += left;
    return (ssize_t)left;
}

static struct weir_io_y4m y4m;
static struct weir_io_error error;

static struct memory text(const char *bytes)
{
    return (struct memory){(const unsigned char *)bytes, strlen(bytes), 0, SIZE_MAX, 0};
}

static bool open_memory(struct memory *memory, uint64_t max_pixels)
{
    static FILE *stream;
    if (stream)
        fclose(stream);
    stream = fopencookie(memory, "r", (cookie_io_functions_t){.read = from_memory});
    error.message[0] = '\0';
    return weir_io_y4m_open(&y4m, "film", stream, max_pixels, &error);
}

static bool open_text(struct memory *memory)
{
    return open_memory(memory, 1000000);
}

// --- the line about the stream ---

static void expect_stream(const char *line, uint32_t width, uint32_t height, size_t bytes,
                          const char *chroma, bool full)
{
    struct memory memory = text(line);
    weir_test_note("%s", line);
    ASSERT_TRUE(open_text(&memory));
    EXPECT_UINT_EQ(y4m.width, width);
    EXPECT_UINT_EQ(y4m.height, height);
    EXPECT_UINT_EQ(y4m.frame_bytes, bytes);
    EXPECT_STR_EQ(y4m.chroma, chroma);
    EXPECT_INT_EQ(y4m.full_range, full);
    const bool says = strstr(line, "F30000:1001");
    EXPECT_UINT_EQ(y4m.rate, says ? 30000 : 0);
    EXPECT_UINT_EQ(y4m.per, says ? 1001 : 0);
    weir_test_note(NULL);
}

WEIR_TEST(Y4m, ReadsTheKinds)
{
    expect_stream("YUV4MPEG2 W4 H2\n", 4, 2, 12, "420", false);
    expect_stream("YUV4MPEG2 W5 H3 F30000:1001 Ip A1:1 C420mpeg2 XYSCSS=420MPEG2\n", 5, 3, 27,
                  "420", false);
    expect_stream("YUV4MPEG2 C420paldv W5 H3 It\n", 5, 3, 27, "420", false);
    expect_stream("YUV4MPEG2 W5 H3 C420jpeg\n", 5, 3, 27, "420", true);
    expect_stream("YUV4MPEG2 W5 H3 C422 XCOLORRANGE=FULL\n", 5, 3, 33, "422", true);
    expect_stream("YUV4MPEG2 W5 H3 C420jpeg XCOLORRANGE=LIMITED\n", 5, 3, 27, "420", false);
    expect_stream("YUV4MPEG2 W5 H3 F0:0 C444\n", 5, 3, 45, "444", false);
    expect_stream("YUV4MPEG2 W5 H3 Cmono\n", 5, 3, 15, "mono", false);
}

static void expect_refused(struct memory memory, const char *words)
{
    weir_test_note("%s", words);
    EXPECT_FALSE(open_text(&memory));
    EXPECT_CONTAINS(error.message, "film: ");
    EXPECT_CONTAINS(error.message, words);
    weir_test_note(NULL);
}

WEIR_TEST(Y4m, RefusesWhatIsNoStream)
{
    char endless[4000];
    struct memory broken = text("YUV4MPEG2 W4 H2\n");
    memset(endless, 'Y', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    expect_refused(text(""), "the stream is empty; make one with ffmpeg");
    expect_refused(text("RIFF WAVE\n"), "this is no Y4M stream, which begins with YUV4MPEG2");
    expect_refused(text("YUV4MPEG22 W4 H2\n"), "this is no Y4M stream");
    expect_refused(text("YUV4"), "this is no Y4M stream");
    expect_refused(text(endless), "this is no Y4M stream");
    memcpy(endless, "YUV4MPEG2 X", 11);
    expect_refused(text(endless), "does not end within 1023 bytes");
    expect_refused(text("YUV4MPEG2 W4 H2"), "does not end within 15 bytes");
    expect_refused(text("YUV4MPEG2\n"), "0x0 pixels");
    expect_refused(text("YUV4MPEG2 W4\n"), "4x0 pixels");
    expect_refused(text("YUV4MPEG2 W4x H2\n"), "'W4x' in its first line is not a number");
    expect_refused(text("YUV4MPEG2 W4 H-2\n"), "'H-2'");
    expect_refused(text("YUV4MPEG2 W99999999999 H2\n"), "'W99999999999'");
    expect_refused(text("YUV4MPEG2 W4 H2 F25\n"), "'F25'");
    expect_refused(text("YUV4MPEG2 W4 H2 F25:x\n"), "'F25:x'");
    expect_refused(text("YUV4MPEG2 W4 H2 C420p10\n"), "of the kind C420p10; 8 bits of 420");
    expect_refused(text("YUV4MPEG2 W1001 H1000\n"),
                   "1001x1000 = 1001000 pixels, and the cap is 1000000");
    broken.broken = 1;
    broken.piece = 1;
    expect_refused(broken, "the stream cannot be read: Input/output error");
}

// Without a cap: three planes of 2^62 pixels and more have more bytes than 64 bits count.
WEIR_TEST(Y4m, RefusesFramesThatNoMemoryHolds)
{
    struct memory memory = text("YUV4MPEG2 W4294967295 H4294967295 C444\n");
    EXPECT_FALSE(open_memory(&memory, 0));
    EXPECT_CONTAINS(error.message, "4294967295x4294967295 pixels, more than memory has bytes for");
    memory = text("YUV4MPEG2 W2147483648 H1431655766 Cmono\n");
    EXPECT_FALSE(open_memory(&memory, 0));
    EXPECT_CONTAINS(error.message, "2147483648x1431655766 pixels");
    memory = text("YUV4MPEG2 W2147483648 H1431655765 Cmono\n");
    EXPECT_TRUE(open_memory(&memory, 0));
}

// --- frames ---

// Frames of one plane of 2 x 1, in pieces of every size.
WEIR_TEST(Y4m, ReadsFramesInPieces)
{
    static const char stream[] = "YUV4MPEG2 W2 H1 Cmono\nFRAME\nabFRAME Ip X\ncdFRAME\nef";
    for (size_t piece = 1; piece < sizeof stream; piece++) {
        struct memory memory = text(stream);
        unsigned char planes[3] = "";
        bool there = false;
        weir_test_note("pieces of %zu", piece);
        memory.piece = piece;
        ASSERT_TRUE(open_text(&memory));
        for (const char *wanted = "abcdef"; *wanted; wanted += 2) {
            ASSERT_TRUE(weir_io_y4m_next(&y4m, planes, &there, &error));
            ASSERT_TRUE(there);
            EXPECT_MEM_EQ(planes, wanted, 2);
        }
        ASSERT_TRUE(weir_io_y4m_next(&y4m, planes, &there, &error));
        EXPECT_FALSE(there);
        EXPECT_UINT_EQ(y4m.frames, 3);
    }
}

// After one frame.
static void expect_damaged(const char *rest, size_t broken, const char *words)
{
    char stream[256];
    unsigned char planes[2];
    bool there;
    snprintf(stream, sizeof stream, "YUV4MPEG2 W2 H1 Cmono\nFRAME\nab%s", rest);
    struct memory memory = text(stream);
    memory.piece = 1;
    memory.broken = broken ? strlen(stream) - strlen(rest) + broken : 0;
    weir_test_note("%s", words);
    ASSERT_TRUE(open_text(&memory));
    ASSERT_TRUE(weir_io_y4m_next(&y4m, planes, &there, &error));
    EXPECT_FALSE(weir_io_y4m_next(&y4m, planes, &there, &error));
    EXPECT_FALSE(there);
    EXPECT_CONTAINS(error.message, words);
    weir_test_note(NULL);
}

WEIR_TEST(Y4m, RefusesWhatIsNoFrame)
{
    expect_damaged("FRAME\nx", 0, "film: the stream ends in frame 2, after 1 of its 2 bytes");
    expect_damaged("FRAME\n", 0, "ends in frame 2, after 0 of its 2 bytes");
    expect_damaged("FRAME", 0, "ends in frame 2, before its bytes");
    expect_damaged("FRA", 0, "after frame 1 there is no FRAME");
    expect_damaged("FRAMES\nxy", 0, "after frame 1 there is no FRAME");
    expect_damaged(
        "YUV4MPEG2 W4 H3 C444\nFRAME\n", 0,
        "after frame 1 a stream of 4x3 pixels, C444, begins, and this one has 2x1, Cmono");
    expect_damaged("YUV4MPEG2 W4 Hx\n", 0, "'Hx'");
    expect_damaged("FRAME\nxy", 2, "cannot be read");
    expect_damaged("FRAME\nxy", 7, "cannot be read");
}

// --- colours ---

static void convert_one(bool full, const unsigned char planes[3], unsigned char rgb[3])
{
    struct memory memory =
        text(full ? "YUV4MPEG2 W1 H1 C444 XCOLORRANGE=FULL\n" : "YUV4MPEG2 W1 H1 C444\n");
    ASSERT_TRUE(open_text(&memory));
    weir_io_y4m_rgb(&y4m, planes, rgb);
}

WEIR_TEST(Y4m, ColoursAreThoseOfBt601)
{
    static const struct {
        unsigned char yuv[3], rgb[3];
    } cases[] = {
        {{16, 128, 128}, {0, 0, 0}},        {{235, 128, 128}, {255, 255, 255}},
        {{126, 128, 128}, {128, 128, 128}}, {{81, 90, 240}, {254, 0, 0}},
        {{145, 54, 34}, {0, 255, 1}},       {{41, 240, 110}, {0, 0, 255}},
        {{0, 128, 128}, {0, 0, 0}},         {{255, 128, 128}, {255, 255, 255}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char rgb[3];
        convert_one(false, cases[i].yuv, rgb);
        weir_test_note("case %zu", i);
        EXPECT_MEM_EQ(rgb, cases[i].rgb, 3);
    }
    for (int y = 0; y < 256; y++) {
        unsigned char rgb[3];
        convert_one(true, (const unsigned char[]){(unsigned char)y, 128, 128}, rgb);
        EXPECT_INT_EQ(rgb[0] == y && rgb[1] == y && rgb[2] == y, 1);
    }
}

// Each pixel of 3 x 3 has the chroma sample that covers it.
static void expect_chroma(const char *kind, const unsigned char *samples, const int of_pixel[9])
{
    char line[64];
    unsigned char planes[27], rgb[27];
    snprintf(line, sizeof line, "YUV4MPEG2 W3 H3 C%s XCOLORRANGE=FULL\n", kind);
    struct memory memory = text(line);
    ASSERT_TRUE(open_text(&memory));
    const size_t count = (y4m.frame_bytes - 9) / 2;
    memset(planes, 128, sizeof planes);
    memcpy(planes + 9 + count, samples, count); // red
    weir_io_y4m_rgb(&y4m, planes, rgb);
    for (int i = 0; i < 9; i++) {
        unsigned char wanted[3];
        convert_one(true, (const unsigned char[]){128, 128, samples[of_pixel[i]]}, wanted);
        weir_test_note("%s, pixel %d", kind, i);
        EXPECT_MEM_EQ(rgb + 3 * (size_t)i, wanted, 3);
    }
    weir_test_note(NULL);
}

WEIR_TEST(Y4m, ChromaCoversItsPixels)
{
    static const unsigned char samples[] = {10, 60, 110, 160, 210, 240, 30, 80, 130};
    expect_chroma("420", samples, (const int[]){0, 0, 1, 0, 0, 1, 2, 2, 3});
    expect_chroma("422", samples, (const int[]){0, 0, 1, 2, 2, 3, 4, 4, 5});
    expect_chroma("444", samples, (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 8});
}

// What is written is read again, with colours within the rounding of the limited range.
WEIR_TEST(Y4m, WritesWhatItReads)
{
    enum {
        SIDE = 32,
        BYTES = SIDE * SIDE * 3
    };
    static unsigned char rgb[BYTES], planes[BYTES], back[BYTES];
    char *stream;
    size_t size;
    for (size_t i = 0; i < BYTES; i++)
        rgb[i] = (unsigned char)(i * 2654435761u >> 24);
    FILE *file = open_memstream(&stream, &size);
    ASSERT_TRUE(weir_io_y4m_begin(file, SIDE, SIDE, 0, 0));
    ASSERT_TRUE(weir_io_y4m_write_rgb8(file, SIDE, SIDE, rgb));
    fclose(file);

    struct memory memory = {(unsigned char *)stream, size, 0, SIZE_MAX, 0};
    bool there;
    ASSERT_TRUE(open_text(&memory));
    EXPECT_UINT_EQ(y4m.rate, 25);
    ASSERT_TRUE(weir_io_y4m_next(&y4m, planes, &there, &error));
    ASSERT_TRUE(there);
    weir_io_y4m_rgb(&y4m, planes, back);
    for (size_t i = 0; i < BYTES; i++)
        EXPECT_INT_LE(abs(rgb[i] - back[i]), 2);
    free(stream);
}

WEIR_TEST(Y4m, TellsThatNothingCanBeWritten)
{
    static const unsigned char rgb[64 * 64 * 3];
    FILE *file = fopen("/dev/full", "w");
    ASSERT_TRUE(file != NULL);
    ASSERT_TRUE(weir_io_y4m_begin(file, 64, 64, 30, 1));
    EXPECT_FALSE(weir_io_y4m_write_rgb8(file, 64, 64, rgb));
    EXPECT_INT_EQ(errno, ENOSPC);
    fclose(file);
}

// Y4M streams that are damaged at random, given in pieces of any size; a read may fail. Each ends well or with one
// sentence; the sanitizers look for the rest. The same streams in every run.

enum {
    ROUNDS = 20000,
    STREAM_MAX = 2048,
    PIXELS_MAX = 10000,
    FRAMES_MAX = STREAM_MAX // each has a line
};

// Words of a line, good and bad.
static const char *const words[] = {" W4",
                                    " W0",
                                    " W4294967297",
                                    " W99999999999999999999",
                                    " H2",
                                    " H",
                                    " F25:1",
                                    " F0:0",
                                    " F25",
                                    " Ip",
                                    " A1:1",
                                    " C420",
                                    " C422",
                                    " C444",
                                    " C411",
                                    " Cmono",
                                    " C420p10",
                                    " XCOLORRANGE=FULL",
                                    " ",
                                    "\n",
                                    "\r",
                                    "FRAME",
                                    "YUV4",
                                    "\x1b[2J",
                                    "\xff\xfe",
                                    " C420mpeg2"};

// A stream of a few frames.
static void make_stream(struct damaged *stream, uint32_t *random)
{
    static const struct {
        const char *line;
        size_t bytes; // of a frame
    } kinds[] = {{"YUV4MPEG2 W4 H2 F25:1\n", 12},
                 {"YUV4MPEG2 W9 H3 C422\n", 57},
                 {"YUV4MPEG2 W16 H5 F30000:1001 C444\n", 240},
                 {"YUV4MPEG2 W20 H20 Cmono\n", 400}};
    const size_t kind = damage_below(random, 4);
    const unsigned char plane[400] = {1, 2, 3};
    damage_insert(stream, 0, kinds[kind].line, strlen(kinds[kind].line));
    for (size_t frames = damage_below(random, 4); frames > 0; frames--) {
        damage_insert(stream, stream->size, "FRAME\n", 6);
        damage_insert(stream, stream->size, plane, kinds[kind].bytes);
    }
}

static void expect_sentence(void)
{
    EXPECT_TRUE(strncmp(error.message, "film: ", 6) == 0);
    EXPECT_TRUE(strlen(error.message) > 16);
    EXPECT_NULL(strpbrk(error.message, "\n\r\x1b"));
}

// Of the frames that are there all pixels are converted. Returns whether the stream ended well.
static bool read_frames(uint64_t *out_frames)
{
    unsigned char *planes = malloc(y4m.frame_bytes); // of its size, for the sanitizer
    unsigned char *rgb = malloc((size_t)3 * y4m.width * y4m.height);
    bool there = true, ok = true;
    EXPECT_TRUE((uint64_t)y4m.width * y4m.height <= PIXELS_MAX);
    for (*out_frames = 0; ok && there && *out_frames < FRAMES_MAX;) {
        ok = weir_io_y4m_next(&y4m, planes, &there, &error);
        if (!ok)
            expect_sentence();
        else if (there)
            weir_io_y4m_rgb(&y4m, planes, rgb), ++*out_frames;
    }
    EXPECT_UINT_EQ(y4m.frames, *out_frames);
    free(planes);
    free(rgb);
    return ok;
}

WEIR_TEST(Y4mFuzz, EachStreamEndsWellOrWithASentence)
{
    uint32_t refused = 0, ended_badly = 0, well = 0;
    uint64_t frames = 0;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint8_t bytes[STREAM_MAX];
        uint32_t random = round * 2654435761u;
        struct damaged stream = {bytes, 0, sizeof bytes};
        uint64_t count;
        make_stream(&stream, &random);
        for (size_t changes = damage_below(&random, 4); changes > 0; changes--)
            damage_change(&stream, &random, words, sizeof words / sizeof *words);
        struct memory memory = {bytes, stream.size, 0, 1 + damage_below(&random, 300), 0};
        if (damage_below(&random, 16) == 0)
            memory.broken = 1 + damage_below(&random, stream.size);
        if (!open_memory(&memory, PIXELS_MAX)) {
            refused++;
            expect_sentence();
            continue;
        }
        if (read_frames(&count))
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
