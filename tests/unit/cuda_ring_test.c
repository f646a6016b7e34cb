// Reading the ring that kernels print to: records as no sound kernel leaves them.
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/print.h"
#include "tests/support/test.h"

enum {
    CAPACITY = 256
};

static char logged[512];

static void keep_log(weir_log_level level, const char *source, const char *message)
{
    const size_t used = strlen(logged);
    (void)level;
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

static void expect(struct bench *b, const char *text)
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
    expect(&b, "printf: one|printf: two, longer|");
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
    expect(&b, "printf: one|");
    expect(&b, "");
    b.device.lost = true;
    expect(&b, "printf: three|");
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
        expect(&b, "");
        b.device.lost = true;
        expect(&b, "");
        EXPECT_UINT_EQ(b.ring->tail, 8);
        finish(&b);
    }
    weir_test_note(NULL);
}

// More bytes of arguments than the record has.
WEIR_TEST(CudaRing, ArgumentsThatDoNotFit)
{
    struct bench b;
    start(&b, 0);
    put(&b, "text", 16 | 1);
    memset(b.ring->data + 4, 0xff, 4);
    put(&b, "next", 16 | 1);
    expect(&b, "printf: next|");
    finish(&b);
}

WEIR_TEST(CudaRing, LostOnesAreToldOnce)
{
    struct bench b;
    start(&b, 0);
    b.ring->lost = 3;
    expect(&b, "cuda: calls of printf lost on 'GPU': 3; there was no room for them in 256 bytes; "
               "wait for the kernels more often, or set printf_bytes in [cuda] to more|");
    expect(&b, "");
    b.ring->lost = 4;
    put(&b, "text", 16 | 1);
    expect(&b,
           "printf: text|cuda: calls of printf lost on 'GPU': 1; there was no room for them in "
           "256 bytes; wait for the kernels more often, or set printf_bytes in [cuda] to more|");
    finish(&b);
}
