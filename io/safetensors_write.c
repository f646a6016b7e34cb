// The library builds the header as JSON, and only then is it measured: offsets count
// from its end, so its length does not influence its contents.
#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"

enum {
    LENGTH_BYTES = 8,
    NAME_SHOWN = 80
};

static bool check_tensor(const struct weir_io_tensor *tensor, uint64_t begin, uint64_t *out_end,
                         const char *path, struct weir_io_error *error)
{
    const char *name = tensor->name;
    if (name[0] == '\0' || strcmp(name, "__metadata__") == 0)
        return weir_io_fail(error, path, "a tensor cannot be named '%s'", name);
    if (tensor->dtype != WEIR_IO_F32 && tensor->dtype != WEIR_IO_I32 &&
        tensor->dtype != WEIR_IO_U64)
        return weir_io_fail(error, path,
                            "tensor '%.*s' cannot be written as %s, only F32, I32 and U64",
                            NAME_SHOWN, name, weir_io_dtype_name(tensor->dtype));
    uint64_t bytes = 0;
    if (tensor->rank < 0 || tensor->rank > WEIR_IO_MAX_RANK ||
        !weir_io_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &bytes) ||
        bytes > SIZE_MAX || bytes > (uint64_t)INT64_MAX - begin)
        return weir_io_fail(error, path,
                            "tensor '%.*s' has more than %d dimensions or exceeds 2^63 bytes",
                            NAME_SHOWN, name, WEIR_IO_MAX_RANK);
    *out_end = begin + bytes;
    return true;
}

static json_t *describe(const struct weir_io_tensor *tensor, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", weir_io_dtype_name(tensor->dtype), "shape",
                     shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

// Fills `header` with one entry per tensor.
static bool describe_all(json_t *header, const struct weir_io_tensor *tensors, size_t count,
                         const char *path, struct weir_io_error *error)
{
    uint64_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = 0;
        if (!check_tensor(&tensors[i], begin, &end, path, error))
            return false;
        if (json_object_get(header, tensors[i].name))
            return weir_io_fail(error, path, "two tensors are named '%.*s'", NAME_SHOWN,
                                tensors[i].name);
        if (json_object_set_new(header, tensors[i].name, describe(&tensors[i], begin, end)) != 0)
            return weir_io_fail(error, path,
                                "tensor '%.*s' has a name that is not UTF-8, or memory ran out",
                                NAME_SHOWN, tensors[i].name);
        begin = end;
    }
    return true;
}

static bool write_file(const char *path, const char *text, size_t text_bytes,
                       const struct weir_io_tensor *tensors, size_t count,
                       struct weir_io_error *error)
{
    static const char spaces[LENGTH_BYTES + 1] = "        ";
    size_t padding = (LENGTH_BYTES - text_bytes % LENGTH_BYTES) % LENGTH_BYTES;
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (unsigned char)((uint64_t)(text_bytes + padding) >> 8 * i);

    weir_file_writer *writer = weir_file_writer_create(path, error->message, sizeof error->message);
    if (!writer)
        return false;
    weir_file_writer_append(writer, length, sizeof length);
    weir_file_writer_append(writer, text, text_bytes);
    weir_file_writer_append(writer, spaces, padding);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        weir_io_shape_bytes(tensors[i].dtype, tensors[i].rank, tensors[i].shape, &bytes);
        weir_file_writer_append(writer, tensors[i].data, (size_t)bytes);
    }
    return weir_file_writer_commit(&writer, error->message, sizeof error->message);
}

// Stores the header's text, or NULL. json_dumps() is not used: when its buffer cannot
// grow it omits a piece and reports success (jansson 2.14).
static bool dump(const json_t *header, char **out_text, size_t *out_size, const char *path,
                 struct weir_io_error *error)
{
    size_t size = json_dumpb(header, NULL, 0, JSON_COMPACT);
    *out_text = NULL;
    *out_size = size;
    if (size > WEIR_IO_SAFETENSORS_HEADER_LIMIT - LENGTH_BYTES)
        return weir_io_fail(error, path, "cannot be written: its header would exceed %d bytes",
                            WEIR_IO_SAFETENSORS_HEADER_LIMIT);
    char *text = size > 0 ? malloc(size) : NULL;
    if (!text || json_dumpb(header, text, size, JSON_COMPACT) != size) {
        free(text);
        return weir_io_fail(error, path, "cannot be written: memory ran out");
    }
    *out_text = text;
    return true;
}

bool weir_io_safetensors_write(const char *path, const struct weir_io_tensor *tensors, size_t count,
                               struct weir_io_error *error)
{
    json_t *header = json_object();
    if (!header)
        return weir_io_fail(error, path, "cannot be written: memory ran out");
    char *text = NULL;
    size_t text_bytes = 0;
    bool ok = describe_all(header, tensors, count, path, error) &&
              dump(header, &text, &text_bytes, path, error) &&
              write_file(path, text, text_bytes, tensors, count, error);
    free(text);
    json_decref(header);
    return ok;
}
