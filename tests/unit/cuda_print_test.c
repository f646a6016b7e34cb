// What kernels print: the text of records, and the ring that they come through.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/print.h"
#include "tests/support/test.h"

// Text of what kernels print: records as kernels write them, against OpenCL C 1.2, section 6.12.13.

enum {
    ROOM = 4096
};

// A record's contents.
struct contents {
    unsigned char bytes[ROOM];
    size_t argument_bytes;
    size_t size;
};

static void begin(struct contents *c)
{
    memset(c, 0, sizeof *c);
}

static void add(struct contents *c, const void *value, size_t bytes)
{
    const size_t start = (c->argument_bytes + bytes - 1) / bytes * bytes;
    memcpy(c->bytes + start, value, bytes);
    c->argument_bytes = start + bytes;
    c->size = c->argument_bytes;
}

static void add_text(struct contents *c, const char *text)
{
    memcpy(c->bytes + c->size, text, strlen(text) + 1);
    c->size += strlen(text) + 1;
}

static void expect(const struct contents *c, const char *expected)
{
    // In memory of its own, so that a sanitizer sees what is read beyond it.
    unsigned char *copy = malloc(c->size + 1);
    struct weir_long_text text = {0};
    ASSERT_TRUE(copy);
    memcpy(copy, c->bytes, c->size);
    copy = realloc(copy, c->size > 0 ? c->size : 1);
    cu_print_format(copy, c->size, c->argument_bytes, &text);
    EXPECT_STR_EQ(text.text ? text.text : "", expected);
    free(text.text);
    free(copy);
}

WEIR_TEST(CudaPrint, WholeNumbers)
{
    static const struct {
        const char *format;
        long long value;
        size_t bytes;
        const char *text;
    } cases[] = {
        {"%d", -7, 4, "-7"},
        {"%i|", 2147483647, 4, "2147483647|"},
        {"%u", -1, 4, "4294967295"},
        {"%x %%", 48879, 4, "beef %"},
        {"%#X", 48879, 4, "0XBEEF"},
        {"%#o", 8, 4, "010"},
        {"[%5d]", 42, 4, "[   42]"},
        {"[%-5d]", 42, 4, "[42   ]"},
        {"[%05d]", -42, 4, "[-0042]"},
        {"[%+d]", 42, 4, "[+42]"},
        {"[% d]", 42, 4, "[ 42]"},
        {"[%8.4d]", 42, 4, "[    0042]"},
        {"[%.0d]", 0, 4, "[]"},
        {"[%.d]", 0, 4, "[]"},
        {"[%----5d]", 42, 4, "[42   ]"},
        {"%ld", -5000000000, 8, "-5000000000"},
        {"%lu", -1, 8, "18446744073709551615"},
        {"%lx", 0x123456789abcdef, 8, "123456789abcdef"},
        {"%hd", 65537, 4, "1"},
        {"%hu", -1, 4, "65535"},
        {"%hhd", 255, 4, "-1"},
        {"%hhx", 511, 4, "ff"},
        {"%c", 'A', 4, "A"},
        {"[%3c]", 'A', 4, "[  A]"},
        {"[%-3c]", 'A', 4, "[A  ]"},
        {"a%cb", 0, 4, "ab"},
        {"%p", 0x1000, 8, "0x1000"},
        {"[%99999999999999d]", 1, 4, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct contents c;
        char wide[2048];
        snprintf(wide, sizeof wide, "[%1023d]", 1);
        weir_test_note("%s", cases[i].format);
        begin(&c);
        add(&c, &cases[i].value, cases[i].bytes);
        add_text(&c, cases[i].format);
        expect(&c, cases[i].text ? cases[i].text : wide);
    }
}

WEIR_TEST(CudaPrint, Reals)
{
    static const struct {
        const char *format;
        double value;
        const char *text;
    } cases[] = {
        {"%f", 1.5, "1.500000"},
        {"%.2f", -0.125, "-0.12"},
        {"%e", 12345.0, "1.234500e+04"},
        {"%G", 1e-10, "1E-10"},
        {"%a", 1.0, "0x1p+0"},
        {"[%10.3f]", 3.14159, "[     3.142]"},
        {"[%-10.1f]", 2.0, "[2.0       ]"},
        {"%+.0f", 3.0, "+3"},
        {"%lf", 0.5, "0.500000"},
        {"%#.0f", 3.0, "3."},
        {"%08.2f", -1.0, "-0001.00"},
        {"%F", 2.0, "2.000000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct contents c;
        weir_test_note("%s", cases[i].format);
        begin(&c);
        add(&c, &cases[i].value, sizeof cases[i].value);
        add_text(&c, cases[i].format);
        expect(&c, cases[i].text);
    }
}

WEIR_TEST(CudaPrint, RealsThatAreNoNumbers)
{
    static const uint64_t bits[] = {0x7ff0000000000000, 0xfff0000000000000, 0x8000000000000000};
    struct contents c;
    begin(&c);
    for (size_t i = 0; i < 3; i++)
        add(&c, &bits[i], 8);
    add_text(&c, "%f %F %.1f");
    expect(&c, "inf -INF -0.0");
}

WEIR_TEST(CudaPrint, SeveralArgumentsAtTheirPlaces)
{
    struct contents c;
    const int one = 1, letter = 'z';
    const double half = 0.5;
    const uint64_t place = 1, none = 0;
    begin(&c);
    add(&c, &one, 4);
    add(&c, &half, 8);
    add(&c, &letter, 4);
    add(&c, &place, 8);
    add(&c, &none, 8);
    add(&c, &place, 8);
    add(&c, &one, 4);
    add_text(&c, "%d %.1f %c '%s' %s [%-6.2s] %d\n");
    add_text(&c, "text");
    add_text(&c, "other");
    expect(&c, "1 0.5 z 'text' (null) [ot    ] 1\n");
}

WEIR_TEST(CudaPrint, Vectors)
{
    static const float floats[4] = {1, 2, 3, 4};
    static const double doubles[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const signed char chars[4] = {-1, 2, 3, 4};
    static const short shorts[2] = {-1, 7};
    static const uint16_t halves[4] = {0x3c00, 0xc000, 0x0001, 0x7c00};
    static const int ints[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint64_t longs[2] = {1, UINT64_MAX};
    const int one = 1;
    struct contents c;
    begin(&c);
    add(&c, &one, sizeof one);
    add(&c, floats, sizeof floats);
    add(&c, floats, sizeof floats);
    add(&c, doubles, sizeof doubles);
    add(&c, chars, sizeof chars);
    add(&c, chars, sizeof chars);
    add(&c, shorts, sizeof shorts);
    add(&c, halves, sizeof halves);
    add(&c, ints, sizeof ints);
    add(&c, longs, sizeof longs);
    add(&c, &one, sizeof one);
    add_text(&c, "%d %v4hlf %4.1v3f %.0v8lg %v4hhd %v3hhx %v2hu %v4hg %v16hld %#v2lx %d");
    expect(&c,
           "1 1.000000,2.000000,3.000000,4.000000  1.0, 2.0, 3.0 1,2,3,4,5,6,7,8 -1,2,3,4 ff,2,3 "
           "65535,7 1,-2,5.96046e-08,inf 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 "
           "0x1,0xffffffffffffffff 1");
}

WEIR_TEST(CudaPrint, LettersOfAVector)
{
    struct contents c;
    begin(&c);
    add(&c, "abcd", 4);
    add_text(&c, "%v4c");
    expect(&c, "a,b,c,d");
}

// Nothing after such a conversion has a known place.
WEIR_TEST(CudaPrint, WhatIsNoConversion)
{
    static const struct {
        const char *format;
        const char *text;
    } cases[] = {
        {"a %k b %d c", "a <?> b <?> c"},
        {"%n", "<?>"},
        {"%*d", "<?>d"},
        {"%", "<?>"},
        {"%-", "<?>"},
        {"100%% %v5d", "100% <?>"},
        {"%v17d %d", "<?> <?>"},
        {"%v4s", "<?>"},
        {"%v4p", "<?>"},
        {"%v", "<?>"},
        {"%d %d %d", "7 0 <?>"},
        {"%l", "<?>"},
        {"%s", "(null)"},
    };
    const int values[2] = {7, 0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct contents c;
        weir_test_note("%s", cases[i].format);
        begin(&c);
        add(&c, &values[i == sizeof cases / sizeof *cases - 1], 4);
        add(&c, &values[1], 4);
        add_text(&c, cases[i].format);
        expect(&c, cases[i].text);
    }
}

// Records that no kernel writes.
WEIR_TEST(CudaPrint, WhatIsNoRecord)
{
    static const uint64_t place = 1;
    struct contents c;
    begin(&c);
    expect(&c, "");
    c.argument_bytes = 8;
    expect(&c, "");
    c.argument_bytes = (size_t)1 << 40;
    c.size = 8;
    expect(&c, "");
    begin(&c);
    memcpy(c.bytes, "endless", 7);
    c.size = 7;
    expect(&c, "");
    begin(&c);
    add(&c, &place, 8);
    add_text(&c, "%s and %s");
    memcpy(c.bytes + c.size, "endless", 7);
    c.size += 7;
    expect(&c, "<?> and <?>");
}

// Reading the ring that kernels print to: records as no sound kernel leaves them.

enum {
    CAPACITY = 256
};

static char logged[512];

static void keep_log(weir_log_level level, const char *source, const char *message)
{
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s: %s|", source, message);
}

static const struct weir_host host = {.struct_size = sizeof host, .log = keep_log};
static struct cu_module module = {.host = &host};
static struct cu_listed listed = {.info = {.name = "GPU"}};

struct bench {
    struct cu_device device;
    struct cu_ring *ring;
};

static void start(struct bench *b, uint64_t place)
{
    memset(b, 0, sizeof *b);
    logged[0] = '\0';
    b->ring = calloc(1, sizeof *b->ring + CAPACITY);
    b->device.prints.record = malloc(CAPACITY);
    if (!b->ring || !b->device.prints.record)
        abort();
    b->ring->capacity = CAPACITY;
    b->ring->head = place;
    b->ring->tail = place;
    b->device.module = &module;
    b->device.listed = &listed;
    b->device.prints.ring = b->ring;
    pthread_mutex_init(&b->device.prints.lock, NULL);
}

static void finish(struct bench *b)
{
    pthread_mutex_destroy(&b->device.prints.lock);
    free(b->device.prints.record);
    free(b->ring);
}

// A record of a text without arguments, with any first word.
static void put(struct bench *b, const char *text, uint32_t word)
{
    unsigned char bytes[64] = "";
    const size_t size = (8 + strlen(text) + 1 + 7) / 8 * 8;
    memcpy(bytes, &word, sizeof word);
    memcpy(bytes + 8, text, strlen(text));
    for (size_t i = 0; i < size; i++)
        b->ring->data[(b->ring->head + i) % CAPACITY] = bytes[i];
    b->ring->head += size;
}

static void expect_log(struct bench *b, const char *text)
{
    logged[0] = '\0';
    cu_prints_read(&b->device);
    EXPECT_STR_EQ(logged, text);
}

WEIR_TEST(CudaRing, WholeRecordsAcrossItsEnd)
{
    struct bench b;
    start(&b, ((uint64_t)1 << 40) + CAPACITY - 16);
    put(&b, "one", 16 | 1);
    put(&b, "two, longer\n", 24 | 1);
    expect_log(&b, "printf: one|printf: two, longer|");
    EXPECT_UINT_EQ(b.ring->tail, b.ring->head);
    for (size_t i = 0; i < CAPACITY; i++)
        EXPECT_UINT_EQ(b.ring->data[i], 0);
    finish(&b);
}

// What follows waits, for the lines of a warp are in order; not once the device is lost.
WEIR_TEST(CudaRing, ARecordThatIsNotWhole)
{
    struct bench b;
    start(&b, 0);
    put(&b, "one", 16 | 1);
    put(&b, "two", 16);
    put(&b, "three", 16 | 1);
    expect_log(&b, "printf: one|");
    expect_log(&b, "");
    b.device.lost = true;
    expect_log(&b, "printf: three|");
    finish(&b);
}

WEIR_TEST(CudaRing, SizesThatNoRecordHas)
{
    static const uint32_t words[] = {1, 12 | 1, CAPACITY + 8 + 1, UINT32_MAX, 4, 0x7ffffff8};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct bench b;
        start(&b, 8);
        put(&b, "text", words[i]);
        weir_test_note("%u", (unsigned)words[i]);
        expect_log(&b, "");
        b.device.lost = true;
        expect_log(&b, "");
        EXPECT_UINT_EQ(b.ring->tail, 8);
        finish(&b);
    }
}

// More bytes of arguments than the record has.
WEIR_TEST(CudaRing, ArgumentsThatDoNotFit)
{
    struct bench b;
    start(&b, 0);
    put(&b, "text", 16 | 1);
    memset(b.ring->data + 4, 0xff, 4);
    put(&b, "next", 16 | 1);
    expect_log(&b, "printf: next|");
    finish(&b);
}

WEIR_TEST(CudaRing, LostOnesAreToldOnce)
{
    struct bench b;
    start(&b, 0);
    b.ring->lost = 3;
    expect_log(&b,
               "cuda: calls of printf lost on 'GPU': 3; there was no room for them in 256 bytes; "
               "wait for the kernels more often, or set printf_bytes in [cuda] to more|");
    expect_log(&b, "");
    b.ring->lost = 4;
    put(&b, "text", 16 | 1);
    expect_log(
        &b, "printf: text|cuda: calls of printf lost on 'GPU': 1; there was no room for them in "
            "256 bytes; wait for the kernels more often, or set printf_bytes in [cuda] to more|");
    finish(&b);
}
