// A made sample is the picture of its class, 4 x 4 squares of one colour each, and noise. All of it
// is integer arithmetic on numbers of random.h. The pictures are made once; samples are not stored.
//
// The order of an epoch is a permutation that is computed, not stored: a Feistel network on the
// smallest even number of bits that holds the count, applied again until the result is an index.
#include "pipelines/train/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/train/data_parts.h"
#include "pipelines/train/fail.h"
#include "pipelines/train/random.h"

enum {
    SQUARES = 4, // along a side
    DARKEST = 40,
    BRIGHTEST = 215,
    ROUNDS = 4,
    CHUNK = 256, // bytes
    BLOCK = 64   // of a chunk: a multiple of 8
};

// Streams of the seed.
enum {
    LABELS = 0,
    PICTURES = 1,
    NOISE = 2
};

#define NUMBERS_MAX (1u << 24)
#define PICTURES_MAX (UINT64_C(1) << 28)

// Making.

static weir_status check(const struct weir_train_made_params *params)
{
    const struct weir_train_shape *shape = &params->shape;
    const bool fits = shape->height > 0 && shape->width > 0 && shape->channels > 0 &&
                      shape->height <= NUMBERS_MAX && shape->width <= NUMBERS_MAX / shape->height &&
                      shape->channels <= NUMBERS_MAX / (shape->height * shape->width);
    if (!fits)
        return weir__pattern_fail("data", WEIR_ERROR_INVALID, NULL,
                                  "a sample is %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                  "; it must have 1 ... %u numbers",
                                  shape->height, shape->width, shape->channels, NUMBERS_MAX);
    if (params->classes < 1 || params->classes > 65536)
        return weir__pattern_fail("data", WEIR_ERROR_INVALID, NULL,
                                  "classes is %" PRIu32 "; it must be 1 ... 65536",
                                  params->classes);
    const uint64_t numbers = (uint64_t)shape->height * shape->width * shape->channels;
    if (params->classes * numbers > PICTURES_MAX)
        return weir__pattern_fail("data", WEIR_ERROR_INVALID,
                                  "choose fewer classes or a smaller sample",
                                  "%" PRIu32 " classes of samples of %" PRIu64
                                  " numbers are more than %" PRIu64 " numbers",
                                  params->classes, numbers, PICTURES_MAX);
    if (params->count < 1)
        return weir__pattern_fail("data", WEIR_ERROR_INVALID, NULL, "count is 0; it must be above");
    if (params->noise > 255)
        return weir__pattern_fail("data", WEIR_ERROR_INVALID, NULL,
                                  "noise is %" PRIu32 "; it must be 0 ... 255", params->noise);
    return WEIR_OK;
}

static unsigned char colour_at(const weir_train_data *data, uint32_t label, uint32_t number)
{
    const struct weir_train_shape *shape = &data->shape;
    const uint32_t channel = number % shape->channels;
    const uint32_t pixel = number / shape->channels;
    const uint32_t x = pixel % shape->width * SQUARES / shape->width;
    const uint32_t y = pixel / shape->width * SQUARES / shape->height;
    const uint64_t plane = (uint64_t)label * shape->channels + channel;
    const uint64_t square = (plane * SQUARES + y) * SQUARES + x;
    const uint64_t bits = train_random(data->seed, PICTURES, square);
    return (unsigned char)(DARKEST + bits % (BRIGHTEST - DARKEST + 1));
}

static bool make_pictures(weir_train_data *data)
{
    // Neither is 0: see check().
    unsigned char *at = data->pictures =
        malloc(data->classes * data->numbers); // NOLINT(clang-analyzer-optin.portability.UnixAPI)
    for (uint32_t label = 0; at && label < data->classes; label++)
        for (uint32_t i = 0; i < data->numbers; i++)
            *at++ = colour_at(data, label, i);
    return at != NULL;
}

weir_status weir_train_data_make(const struct weir_train_made_params *params,
                                 weir_train_data **out_data)
{
    struct weir_train_made_params known;
    weir_status status;
    *out_data = NULL;
    if ((status = weir__pattern_params("weir_train_data_make", "weir_train_made_params", params,
                                       &known, sizeof known)) ||
        (status = check(&known)))
        return status;
    weir_train_data *data = calloc(1, sizeof *data);
    if (!data)
        return train_fail_memory("data");
    data->shape = known.shape;
    data->numbers = (size_t)known.shape.height * known.shape.width * known.shape.channels;
    data->classes = known.classes;
    data->count = known.count;
    data->seed = known.seed;
    data->noise = known.noise;
    if (!make_pictures(data)) {
        weir_train_data_destroy(&data);
        return train_fail_memory("data");
    }
    *out_data = data;
    return WEIR_OK;
}

void weir_train_data_destroy(weir_train_data **data)
{
    if (!data || !*data)
        return;
    free((*data)->pictures);
    free((*data)->image_file);
    free((*data)->label_file);
    free(*data);
    *data = NULL;
}

struct weir_train_shape weir_train_data_shape(const weir_train_data *data)
{
    return data->shape;
}

uint32_t weir_train_data_classes(const weir_train_data *data)
{
    return data->classes;
}

uint64_t weir_train_data_count(const weir_train_data *data)
{
    return data->count;
}

// The order.

static uint64_t permute(uint64_t key, uint32_t half, uint64_t value)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = value >> half;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t next = left ^ (train_random(key, round, right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t weir_train_data_shuffled(const weir_train_data *data, uint64_t seed, uint64_t position)
{
    const uint64_t key = train_random(seed, position / data->count, 0);
    uint64_t value = position % data->count;
    uint32_t half = 1;
    while (half < 32 && data->count > UINT64_C(1) << 2 * half)
        half++;
    do
        value = permute(key, half, value);
    while (value >= data->count);
    return value;
}

// Samples.

static uint32_t label_of(const weir_train_data *data, uint64_t index)
{
    if (data->labels)
        return data->labels[index];
    return (uint32_t)(train_random(data->seed, LABELS, index) % data->classes);
}

// The lowest byte first; compilers make one store of it.
static void put_bytes(unsigned char *out, uint64_t bits)
{
    out[0] = (unsigned char)bits;
    out[1] = (unsigned char)(bits >> 8);
    out[2] = (unsigned char)(bits >> 16);
    out[3] = (unsigned char)(bits >> 24);
    out[4] = (unsigned char)(bits >> 32);
    out[5] = (unsigned char)(bits >> 40);
    out[6] = (unsigned char)(bits >> 48);
    out[7] = (unsigned char)(bits >> 56);
}

// Eight numbers share one random one, a byte each.
static void draw_block(uint64_t stream, uint64_t first, unsigned char *drawn)
{
    for (size_t i = 0; i < BLOCK / 8; i++)
        put_bytes(drawn + 8 * i, train_draw(stream, first + i));
}

// A drawn byte, 0 to 255, becomes noise of -noise ... noise. The loop has a fixed count and 16 bits a
// number, so that compilers use vectors: the thread that loads has to be faster than the training.
static void mix_block(const unsigned char *restrict picture, const unsigned char *restrict drawn,
                      unsigned noise, unsigned char *restrict out)
{
    const uint16_t span = (uint16_t)(2 * noise + 1);
    for (size_t i = 0; i < BLOCK; i++) {
        const uint16_t part = (uint16_t)((uint32_t)(uint16_t)(drawn[i] << 8) * span >> 16);
        const int16_t value = (int16_t)(picture[i] + part - (int)noise);
        const int16_t above = value < 0 ? 0 : value;
        out[i] = (unsigned char)(above > 255 ? 255 : above);
    }
}

static void make_bytes(const weir_train_data *data, uint64_t index, size_t first, size_t count,
                       unsigned char *out)
{
    const unsigned char *picture = data->pictures + label_of(data, index) * data->numbers + first;
    const uint64_t stream = train_stream(data->seed, NOISE + index);
    unsigned char drawn[BLOCK], rest[BLOCK] = {0}, made[BLOCK];
    for (size_t i = 0; i < count; i += BLOCK) {
        const size_t left = count - i;
        draw_block(stream, (first + i) / 8, drawn);
        if (left >= BLOCK) {
            mix_block(picture + i, drawn, data->noise, out + i);
        } else {
            memcpy(rest, picture + i, left);
            mix_block(rest, drawn, data->noise, made);
            memcpy(out + i, made, left);
        }
    }
}

// Bytes `first`, a multiple of 8, to `first + count - 1` of a sample.
static void read_bytes(const weir_train_data *data, uint64_t index, size_t first, size_t count,
                       unsigned char *out)
{
    if (data->images)
        memcpy(out, data->images + index * data->numbers + first, count);
    else
        make_bytes(data, index, first, count, out);
}

uint32_t weir_train_data_bytes(const weir_train_data *data, uint64_t index, unsigned char *out)
{
    read_bytes(data, index, 0, data->numbers, out);
    return label_of(data, index);
}

static float number_of(unsigned char byte, weir_train_numbers numbers)
{
    const int whole = byte / 32 - 4;
    return numbers == WEIR_TRAIN_INTEGERS ? (float)whole : (float)(byte - 128) / 64.0f;
}

static void fill_sample(const weir_train_data *data, uint64_t index, weir_train_numbers numbers,
                        float *out)
{
    unsigned char bytes[CHUNK];
    for (size_t first = 0; first < data->numbers; first += CHUNK) {
        const size_t left = data->numbers - first;
        const size_t count = left < CHUNK ? left : CHUNK;
        read_bytes(data, index, first, count, bytes);
        for (size_t i = 0; i < count; i++)
            out[first + i] = number_of(bytes[i], numbers);
    }
}

void weir_train_data_fill(const weir_train_data *data, uint64_t seed, uint64_t position,
                          uint32_t count, weir_train_numbers numbers, float *inputs,
                          uint32_t *labels)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t index = weir_train_data_shuffled(data, seed, position + i);
        fill_sample(data, index, numbers, inputs + i * data->numbers);
        labels[i] = label_of(data, index);
    }
}
