// The header is a Python dict literal. Its three keys may be in any order, with any
// spacing and either quote, because other writers than NumPy exist. It is not read as Python:
// what it says is checked against the size of the file.
#include "io/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum {
    PREFIX_BYTES = 10,
    HEADER_ALIGNMENT = 64,
    HEADER_LIMIT = 65535,
    WORD_LIMIT = 32
};

#define SPACES " \t\r\n"
#define FILE_BYTES_MAX ((size_t)4 << 30)

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

struct header {
    char descr[WORD_LIMIT];
    bool fortran_order;
    struct weir_io_npy *array; // its rank and shape
};

// The value of a key, which is quoted and comes before a colon; an empty text if there is none.
static const char *value_of(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
        if (at == text || !strchr("'\"", at[-1]) || at[length] != at[-1])
            continue;
        const char *colon = at + length + 1 + strspn(at + length + 1, SPACES);
        if (*colon == ':')
            return colon + 1 + strspn(colon + 1, SPACES);
    }
    return "";
}

static bool read_descr(const char *at, struct header *header)
{
    const char *end = *at == '\'' || *at == '"' ? strchr(at + 1, *at) : NULL;
    if (!end || end - at > WORD_LIMIT)
        return false;
    memcpy(header->descr, at + 1, (size_t)(end - at - 1));
    return true;
}

// "(3, 4)", "(3,)", "()".
static bool read_shape(const char *at, struct weir_io_npy *array)
{
    if (*at != '(')
        return false;
    for (at += 1 + strspn(at + 1, SPACES); *at != ')'; at += strspn(at, SPACES)) {
        char *end;
        errno = 0;
        if (array->rank == WEIR_IO_MAX_RANK || *at < '0' || *at > '9')
            return false;
        array->shape[array->rank++] = strtoull(at, &end, 10);
        at = end + strspn(end, SPACES);
        if (errno != 0 || (*at != ',' && (*at != ')' || array->rank == 1)))
            return false;
        at += *at == ',';
    }
    return true;
}

static bool parse_header(struct header *header, const char *text)
{
    const char *order = value_of(text, "fortran_order");
    header->fortran_order = strncmp(order, "True", 4) == 0;
    return (header->fortran_order || strncmp(order, "False", 5) == 0) &&
           read_descr(value_of(text, "descr"), header) &&
           read_shape(value_of(text, "shape"), header->array);
}

static const char *descr_of(enum weir_io_dtype dtype)
{
    return dtype == WEIR_IO_F32 ? "<f4" : "<i4";
}

// Reads everything before the data: the prefix and the text of the header.
static bool read_header(const unsigned char *prefix, size_t size, const char *path,
                        struct header *header, size_t *out_data_offset, struct weir_io_error *error)
{
    if (size < PREFIX_BYTES)
        return weir_io_fail(error, path,
                            "is not a .npy file: it has %zu bytes, fewer than its prefix", size);
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
    if (length > size - PREFIX_BYTES)
        return weir_io_fail(error, path,
                            "is truncated: its header has %zu bytes, but only %zu follow", length,
                            size - PREFIX_BYTES);
    char text[HEADER_LIMIT + 1] = "";
    memcpy(text, prefix + PREFIX_BYTES, length);
    if (strlen(text) != length)
        return weir_io_fail(error, path, "has a broken header: it holds a zero byte");
    if (!parse_header(header, text))
        return weir_io_fail(
            error, path,
            "has no header of one plain array of at most %d dimensions: \"%.100s\"; "
            "save the array with numpy.save()",
            WEIR_IO_MAX_RANK, text);
    *out_data_offset = PREFIX_BYTES + length;
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
    weir_io_shape_text(header->array->rank, header->array->shape, shape);
    uint64_t wanted = 0;
    if (!weir_io_shape_bytes(dtype, header->array->rank, header->array->shape, &wanted))
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

bool weir_io_npy_read(const char *path, enum weir_io_dtype dtype, struct weir_io_npy *out_array,
                      struct weir_io_error *error)
{
    struct header header = {.array = out_array};
    void *file = NULL;
    size_t size = 0, offset = 0;
    *out_array = (struct weir_io_npy){0};
    if (weir_file_read(path, FILE_BYTES_MAX, &file, &size, error->message, sizeof error->message) &&
        read_header(file, size, path, &header, &offset, error) &&
        check_header(&header, dtype, size - offset, path, error)) {
        out_array->dtype = dtype;
        out_array->count = (size - offset) / weir_io_dtypes[dtype].bytes;
        out_array->data =
            memmove(file, (char *)file + offset, size - offset); // where it is aligned
        return true;
    }
    free(file);
    *out_array = (struct weir_io_npy){0};
    return false;
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
    uint64_t bytes = 0;
    char header[512];
    weir_io_shape_bytes(dtype, rank, shape, &bytes);
    size_t header_bytes = format_header(header, dtype, rank, shape);
    weir_file_writer *writer = weir_file_writer_create(path, error->message, sizeof error->message);
    if (!writer)
        return false;
    weir_file_writer_append(writer, header, header_bytes);
    weir_file_writer_append(writer, data, (size_t)bytes);
    return weir_file_writer_commit(&writer, error->message, sizeof error->message);
}
