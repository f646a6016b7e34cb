// IDX files: two zero bytes, the type of an element (8: unsigned bytes), the count of dimensions,
// each dimension as four bytes with the highest first, then the elements. Files are read whole;
// the header is checked against the length.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"
#include "pipelines/train/data_parts.h"
#include "pipelines/train/fail.h"

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

weir_status train_fail_file(const char *path, const char *remedy, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(message, sizeof message, path, format, arguments);
    va_end(arguments);
    return weir__pattern_fail(NULL, WEIR_ERROR_IO, remedy, "%s", message);
}

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
    weir_status status;
    if (!weir_file_read(path, FILE_BYTES_MAX, &idx->file, &size, message, sizeof message))
        return weir__pattern_fail(NULL, WEIR_ERROR_IO, NULL, "%s", message);
    const unsigned char *bytes = idx->file;
    if ((status = check_beginning(path, bytes, size)) != WEIR_OK)
        return status;
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
        return train_fail_memory("data");
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
