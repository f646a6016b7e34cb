// A made sample is the picture of its class, 4 x 4 squares of one colour each, and noise. All of it
// is integer arithmetic on numbers of base/random.h. The pictures are made once; samples are not stored.
//
// The order of an epoch is a permutation that is computed, not stored: a Feistel network on the
// smallest even number of bits that holds the count, applied again until the result is an index.
#include "pipelines/train/data.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/random.h"
#include "pipelines/train/product.h"

// IDX files: two zero bytes, the type of an element (8: unsigned bytes), the count of dimensions,
// each dimension as four bytes with the highest first, then the elements. Files are read whole;
// the header is checked against the length.

enum {
    UNSIGNED_BYTES = 8,
    DIMENSIONS_MAX = 4
};

#define FILE_BYTES_MAX ((size_t)4 << 30)

struct idx {
    void *file; // to be freed
    uint32_t dimensions;
    uint32_t sizes[DIMENSIONS_MAX];
    const unsigned char *elements;
};

static weir_status check_beginning(const char *path, const unsigned char *bytes, size_t size)
{
    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return train_fail_file(path, "unpack it with gunzip", "is compressed");
    if (size < 4)
        return train_fail_file(path, NULL, "is no IDX file: it has %zu bytes, and a header has 8",
                               size);
    if (bytes[0] != 0 || bytes[1] != 0)
        return train_fail_file(path, NULL, "is no IDX file: it does not begin with two zeros");
    if (bytes[2] != UNSIGNED_BYTES)
        return train_fail_file(
            path, NULL, "has elements of the type 0x%02x; only unsigned bytes (0x08) are read",
            bytes[2]);
    return WEIR_OK;
}

static weir_status read_sizes(const char *path, const unsigned char *bytes, size_t size,
                              struct idx *idx)
{
    uint64_t count = 1;
    const size_t header = 4 + 4 * (size_t)idx->dimensions;
    if (size < header)
        return train_fail_file(path, NULL, "is truncated in its header of %zu bytes", header);
    for (uint32_t i = 0; i < idx->dimensions; i++) {
        const unsigned char *at = bytes + 4 + 4 * (size_t)i;
        idx->sizes[i] =
            (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
        if (idx->sizes[i] == 0)
            return train_fail_file(path, NULL, "has no elements: dimension %" PRIu32 " is 0", i);
        // More than any file has; the product stays within 64 bits.
        count = count > FILE_BYTES_MAX ? count : count * idx->sizes[i];
    }
    idx->elements = bytes + header;
    if (count == size - header)
        return WEIR_OK;
    return train_fail_file(path, NULL,
                           count > size - header ? "is truncated: its header promises %" PRIu64
                                                   " bytes or more, %zu follow"
                                                 : "is too long: its header promises %" PRIu64
                                                   " bytes, %zu follow",
                           count, size - header);
}

// Reads a file with `least` to `most` dimensions.
static weir_status read_idx(const char *path, uint32_t least, uint32_t most, struct idx *idx)
{
    char message[512];
    size_t size;
    if (!weir_file_read(path, FILE_BYTES_MAX, &idx->file, &size, message, sizeof message))
        return weir__pattern_fail(NULL, WEIR_ERROR_IO, NULL, "%s", message);
    const unsigned char *bytes = idx->file;
    TRY(check_beginning(path, bytes, size));
    idx->dimensions = bytes[3];
    if (idx->dimensions < least || idx->dimensions > most)
        return train_fail_file(path, least == 1 ? "it may be the file of images" : NULL,
                               "has %" PRIu32 " dimensions; %s", idx->dimensions,
                               least == 1 ? "labels have 1" : "images have 3 or 4");
    return read_sizes(path, bytes, size, idx);
}

static weir_status make_set(const char *images_path, const struct idx *images,
                            const struct idx *labels, weir_train_data *data)
{
    if (images->sizes[0] != labels->sizes[0])
        return train_fail_file(images_path, "pass files of one set",
                               "has %" PRIu32 " images, and there are %" PRIu32 " labels",
                               images->sizes[0], labels->sizes[0]);
    data->count = images->sizes[0];
    data->shape = (struct weir_train_shape){images->sizes[1], images->sizes[2],
                                            images->dimensions == 4 ? images->sizes[3] : 1};
    data->numbers = (size_t)data->shape.height * data->shape.width * data->shape.channels;
    data->images = images->elements;
    data->labels = labels->elements;
    for (uint64_t i = 0; i < data->count; i++)
        if (data->labels[i] >= data->classes)
            data->classes = data->labels[i] + 1u;
    return WEIR_OK;
}

weir_status weir_train_data_open(const char *images_path, const char *labels_path,
                                 weir_train_data **out_data)
{
    struct idx images = {0};
    struct idx labels = {0};
    weir_status status;
    *out_data = NULL;
    weir_train_data *data = calloc(1, sizeof *data);
    if (!data)
        return weir__pattern_no_memory("data", "data");
    if ((status = read_idx(images_path, 3, 4, &images)) == WEIR_OK &&
        (status = read_idx(labels_path, 1, 1, &labels)) == WEIR_OK)
        status = make_set(images_path, &images, &labels, data);
    data->image_file = images.file;
    data->label_file = labels.file;
    if (status != WEIR_OK)
        weir_train_data_destroy(&data);
    *out_data = data;
    return status;
}

enum {
    SQUARES = 4, // along a side
    DARKEST = 40,
    BRIGHTEST = 215,
    ROUNDS = 4,
    BLOCK = 64 // bytes: a multiple of 8
};

// Streams of the seed.
enum {
    LABELS = 0,
    PICTURES = 1,
    NOISE = 2
};

// Making.

static unsigned char colour_at(const weir_train_data *data, uint32_t label, uint32_t number)
{
    const struct weir_train_shape *shape = &data->shape;
    const uint32_t channel = number % shape->channels;
    const uint32_t pixel = number / shape->channels;
    const uint32_t x = pixel % shape->width * SQUARES / shape->width;
    const uint32_t y = pixel / shape->width * SQUARES / shape->height;
    const uint64_t plane = (uint64_t)label * shape->channels + channel;
    const uint64_t square = (plane * SQUARES + y) * SQUARES + x;
    const uint64_t bits = weir_random(data->seed, PICTURES, square);
    return (unsigned char)(DARKEST + bits % (BRIGHTEST - DARKEST + 1));
}

weir_status weir_train_data_make(const weir_train_data *given, weir_train_data **out_data)
{
    *out_data = NULL;
    weir_train_data *data = calloc(1, sizeof *data);
    if (!data)
        return weir__pattern_no_memory("data", "data");
    *data = *given;
    data->numbers = (size_t)data->shape.height * data->shape.width * data->shape.channels;
    unsigned char *at = data->pictures =
        malloc(data->classes * data->numbers); // NOLINT(clang-analyzer-optin.portability.UnixAPI)
    for (uint32_t label = 0; at && label < data->classes; label++)
        for (uint32_t i = 0; i < data->numbers; i++)
            *at++ = colour_at(data, label, i);
    if (!at)
        weir_train_data_destroy(&data);
    *out_data = data;
    return data ? WEIR_OK : weir__pattern_no_memory("data", "data");
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

// The order.

static uint64_t permute(uint64_t key, uint32_t half, uint64_t value)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = value >> half;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t next = left ^ (weir_random(key, round, right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t weir_train_data_shuffled(const weir_train_data *data, uint64_t seed, uint64_t position)
{
    const uint64_t key = weir_random(seed, position / data->count, 0);
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
    return (uint32_t)(weir_random(data->seed, LABELS, index) % data->classes);
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

static void make_bytes(const weir_train_data *data, uint64_t index, unsigned char *out)
{
    const unsigned char *picture = data->pictures + label_of(data, index) * data->numbers;
    const uint64_t stream = weir_random_stream(data->seed, NOISE + index);
    unsigned char drawn[BLOCK], from[BLOCK] = {0}, made[BLOCK];
    for (size_t i = 0; i < data->numbers; i += BLOCK) {
        const size_t left = data->numbers - i, count = left < BLOCK ? left : BLOCK;
        // Eight numbers share one random one, a byte each, the lowest first: io/ is for machines
        // that store it first.
        for (size_t k = 0; k < BLOCK; k += 8) {
            const uint64_t bits = weir_random_draw(stream, (i + k) / 8);
            memcpy(drawn + k, &bits, sizeof bits);
        }
        memcpy(from, picture + i, count);
        mix_block(from, drawn, data->noise, made);
        memcpy(out + i, made, count);
    }
}

uint32_t weir_train_data_bytes(const weir_train_data *data, uint64_t index, unsigned char *out)
{
    if (data->images)
        memcpy(out, data->images + index * data->numbers, data->numbers);
    else
        make_bytes(data, index, out);
    return label_of(data, index);
}
