// The header is a Python dict literal. Its three keys may be in any order, with any
// spacing and either quote, because other writers than NumPy exist; beyond that the
// parser accepts nothing that is not needed.
#include "io/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

enum {
    PREFIX_BYTES = 10,
    HEADER_ALIGNMENT = 64,
    HEADER_LIMIT = 65535,
    WORD_LIMIT = 32
};

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

// The contents of the dict. `problem` is NULL, or the reason why it cannot be
// parsed.
struct header {
    const char *at;
    const char *problem;
    char descr[WORD_LIMIT];
    bool fortran_order;
    bool seen_descr, seen_order, seen_shape;
    int rank;
    uint64_t shape[WEIR_IO_MAX_RANK];
};

static bool stumble(struct header *header, const char *problem)
{
    if (!header->problem)
        header->problem = problem;
    return false;
}

static void skip_space(struct header *header)
{
    while (*header->at == ' ' || *header->at == '\t' || *header->at == '\n' || *header->at == '\r')
        header->at++;
}

// Consumes `token` if it comes next.
static bool take(struct header *header, const char *token)
{
    skip_space(header);
    size_t length = strlen(token);
    if (strncmp(header->at, token, length) != 0)
        return false;
    header->at += length;
    return true;
}

static bool take_string(struct header *header, char word[WORD_LIMIT])
{
    skip_space(header);
    char quote = *header->at;
    if (quote != '\'' && quote != '"')
        return stumble(header, "a quoted word is missing");
    const char *start = header->at + 1;
    const char *end = strchr(start, quote);
    if (!end || end - start >= WORD_LIMIT || memchr(start, '\\', (size_t)(end - start)))
        return stumble(header, "a quoted word does not end, is too long or holds a backslash");
    memcpy(word, start, (size_t)(end - start));
    word[end - start] = '\0';
    header->at = end + 1;
    return true;
}

static bool take_size(struct header *header, uint64_t *out_size)
{
    skip_space(header);
    if (*header->at < '0' || *header->at > '9')
        return stumble(header, "a dimension is not a number");
    uint64_t size = 0;
    for (; *header->at >= '0' && *header->at <= '9'; header->at++) {
        uint64_t digit = (uint64_t)(*header->at - '0');
        if (size > (INT64_MAX - digit) / 10)
            return stumble(header, "a dimension is too large");
        size = size * 10 + digit;
    }
    *out_size = size;
    return true;
}

static bool take_shape(struct header *header)
{
    if (!take(header, "("))
        return stumble(header, "the shape is not a tuple");
    if (take(header, ")"))
        return true;
    for (;;) {
        if (header->rank == WEIR_IO_MAX_RANK)
            return stumble(header, "it has more than 8 dimensions");
        if (!take_size(header, &header->shape[header->rank]))
            return false;
        header->rank++;
        bool comma = take(header, ",");
        if (take(header, ")"))
            return comma || header->rank > 1 || stumble(header, "the shape is not a tuple");
        if (!comma)
            return stumble(header, "a comma is missing in the shape");
    }
}

static bool take_order(struct header *header)
{
    if (take(header, "True"))
        header->fortran_order = true;
    else if (!take(header, "False"))
        return stumble(header, "fortran_order is neither True nor False");
    return true;
}

static bool take_entry(struct header *header)
{
    char key[WORD_LIMIT];
    if (!take_string(header, key))
        return false;
    if (!take(header, ":"))
        return stumble(header, "a colon is missing after a key");

    bool *seen = strcmp(key, "descr") == 0           ? &header->seen_descr
                 : strcmp(key, "fortran_order") == 0 ? &header->seen_order
                 : strcmp(key, "shape") == 0         ? &header->seen_shape
                                                     : NULL;
    if (!seen)
        return stumble(header, "it has a key other than descr, fortran_order and shape");
    if (*seen)
        return stumble(header, "a key occurs twice");
    *seen = true;
    if (seen == &header->seen_descr)
        return take_string(header, header->descr);
    return seen == &header->seen_order ? take_order(header) : take_shape(header);
}

static bool parse_header(struct header *header, const char *text)
{
    header->at = text;
    if (!take(header, "{"))
        return stumble(header, "it is not a dict");
    while (!take(header, "}")) {
        if (!take_entry(header))
            return false;
        if (take(header, ","))
            continue;
        if (!take(header, "}"))
            return stumble(header, "a comma is missing after a value");
        break;
    }
    skip_space(header);
    if (*header->at != '\0')
        return stumble(header, "text follows the dict");
    if (!header->seen_descr || !header->seen_order || !header->seen_shape)
        return stumble(header, "it lacks descr, fortran_order or shape");
    return true;
}

static const char *descr_of(enum weir_io_dtype dtype)
{
    return dtype == WEIR_IO_F32 ? "<f4" : "<i4";
}

// Reads everything before the data: the prefix and the text of the header.
static bool read_header(int descriptor, uint64_t size, const char *path, struct header *header,
                        uint64_t *out_data_offset, struct weir_io_error *error)
{
    unsigned char prefix[PREFIX_BYTES];
    if (size < sizeof prefix)
        return weir_io_fail(error, path,
                            "is not a .npy file: it has %" PRIu64 " bytes, fewer than its prefix",
                            size);
    if (!weir_file_read_exactly(descriptor, path, prefix, sizeof prefix, error->message,
                                sizeof error->message))
        return false;
    if (memcmp(prefix, magic, sizeof magic) != 0)
        return weir_io_fail(error, path,
                            "is not a .npy file: its first bytes are not \"\\x93NUMPY\"; "
                            "save the array with numpy.save()");
    if (prefix[6] != 1 || prefix[7] != 0)
        return weir_io_fail(error, path,
                            "has .npy format version %d.%d; version 1.0 is read, which "
                            "numpy.save() writes for plain arrays",
                            prefix[6], prefix[7]);

    size_t length = prefix[8] | (size_t)prefix[9] << 8;
    if (length > size - sizeof prefix)
        return weir_io_fail(error, path,
                            "is truncated: its header has %zu bytes, but only %" PRIu64 " follow",
                            length, size - sizeof prefix);
    char text[HEADER_LIMIT + 1];
    if (!weir_file_read_exactly(descriptor, path, text, length, error->message,
                                sizeof error->message))
        return false;
    text[length] = '\0';
    if (strlen(text) != length)
        return weir_io_fail(error, path, "has a broken header: it holds a zero byte");
    if (!parse_header(header, text))
        return weir_io_fail(error, path, "has a broken header: %s", header->problem);
    *out_data_offset = sizeof prefix + length;
    return true;
}

// Compares the header with the expected type and with the size of the file.
static bool check_header(const struct header *header, enum weir_io_dtype dtype, uint64_t body_bytes,
                         const char *path, struct weir_io_error *error)
{
    if (strcmp(header->descr, descr_of(dtype)) != 0)
        return weir_io_fail(error, path,
                            "holds elements of type '%s', but '%s' is needed; convert it with "
                            "array.astype('%s') before saving",
                            header->descr, descr_of(dtype), descr_of(dtype));
    if (header->fortran_order)
        return weir_io_fail(error, path,
                            "is in Fortran order; save numpy.ascontiguousarray(array) instead");

    char shape[WEIR_IO_SHAPE_TEXT];
    weir_io_shape_text(header->rank, header->shape, shape);
    uint64_t wanted = 0;
    if (!weir_io_shape_bytes(dtype, header->rank, header->shape, &wanted))
        return weir_io_fail(error, path, "has an impossible shape: %s exceeds 2^63 bytes", shape);
    if (wanted > body_bytes)
        return weir_io_fail(error, path,
                            "is truncated: shape %s needs %" PRIu64 " bytes of data, "
                            "but only %" PRIu64 " are there",
                            shape, wanted, body_bytes);
    if (wanted < body_bytes)
        return weir_io_fail(error, path,
                            "has %" PRIu64 " bytes too many after its data of shape %s; "
                            "one array per file is read",
                            body_bytes - wanted, shape);
    return true;
}

static bool read_array(int descriptor, uint64_t size, const char *path, enum weir_io_dtype dtype,
                       struct weir_io_npy *array, struct weir_io_error *error)
{
    struct header header = {0};
    uint64_t data_offset = 0;
    if (!read_header(descriptor, size, path, &header, &data_offset, error))
        return false;
    uint64_t bytes = size - data_offset;
    if (!check_header(&header, dtype, bytes, path, error))
        return false;

    array->dtype = dtype;
    array->rank = header.rank;
    memcpy(array->shape, header.shape, sizeof array->shape);
    array->count = bytes / weir_io_dtype_bytes(dtype);
    array->data = bytes < SIZE_MAX ? malloc(bytes > 0 ? (size_t)bytes : 1) : NULL;
    if (!array->data)
        return weir_io_fail(error, path, "needs %" PRIu64 " bytes of memory; there is not enough",
                            bytes);
    return weir_file_read_exactly(descriptor, path, array->data, (size_t)bytes, error->message,
                                  sizeof error->message);
}

bool weir_io_npy_read(const char *path, enum weir_io_dtype dtype, struct weir_io_npy *out_array,
                      struct weir_io_error *error)
{
    *out_array = (struct weir_io_npy){0};
    if (dtype != WEIR_IO_F32 && dtype != WEIR_IO_I32)
        return weir_io_fail(error, path, "cannot be read as %s; F32 and I32 are supported",
                            weir_io_dtype_name(dtype));
    int descriptor = -1;
    uint64_t size = 0;
    if (!weir_file_open(path, &descriptor, &size, error->message, sizeof error->message))
        return false;
    bool ok = read_array(descriptor, size, path, dtype, out_array, error);
    close(descriptor);
    if (!ok)
        weir_io_npy_finish(out_array);
    return ok;
}

void weir_io_npy_finish(struct weir_io_npy *array)
{
    free(array->data);
    *array = (struct weir_io_npy){0};
}

// Writes prefix, dict and padding into `header` and returns their length. With
// eight dimensions of twenty digits it is still far below 512 bytes.
static size_t format_header(char header[512], enum weir_io_dtype dtype, int rank,
                            const uint64_t *shape)
{
    size_t used = PREFIX_BYTES;
    weir_text_append(header, 512, &used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     descr_of(dtype));
    for (int i = 0; i < rank; i++)
        weir_text_append(header, 512, &used, i > 0 ? ", %" PRIu64 : "%" PRIu64, shape[i]);
    weir_text_append(header, 512, &used, rank == 1 ? ",), }" : "), }");

    size_t total = (used + 1 + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;
    memset(header + used, ' ', total - used);
    header[total - 1] = '\n';

    size_t length = total - PREFIX_BYTES;
    memcpy(header, magic, sizeof magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)(length & 0xff);
    header[9] = (char)(length >> 8);
    return total;
}

bool weir_io_npy_write(const char *path, enum weir_io_dtype dtype, int rank, const uint64_t *shape,
                       const void *data, struct weir_io_error *error)
{
    if (dtype != WEIR_IO_F32 && dtype != WEIR_IO_I32)
        return weir_io_fail(error, path, "cannot be written as %s; F32 and I32 are supported",
                            weir_io_dtype_name(dtype));
    if (rank < 0 || rank > WEIR_IO_MAX_RANK)
        return weir_io_fail(error, path, "cannot be written with %d dimensions; the limit is %d",
                            rank, WEIR_IO_MAX_RANK);
    uint64_t bytes = 0;
    if (!weir_io_shape_bytes(dtype, rank, shape, &bytes) || bytes > SIZE_MAX)
        return weir_io_fail(error, path, "cannot be written: its shape exceeds the address space");

    char header[512];
    size_t header_bytes = format_header(header, dtype, rank, shape);
    weir_file_writer *writer = weir_file_writer_create(path, error->message, sizeof error->message);
    if (!writer)
        return false;
    weir_file_writer_append(writer, header, header_bytes);
    weir_file_writer_append(writer, data, (size_t)bytes);
    return weir_file_writer_commit(&writer, error->message, sizeof error->message);
}
