// The tensors' bytes are read into a separate block instead of being mapped with the header:
// their offsets count from the end of a header of any length, so only this aligns them, and
// a file that is truncated while it is in use cannot kill the process.
#include "io/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/json/json.h"

enum {
    LENGTH_BYTES = 8,
    NAME_SHOWN = 80,
    SUGGESTION_LIMIT = 1000
};

static const char metadata_key[] = "__metadata__";

static bool check_header_bytes(uint64_t header_bytes, uint64_t file_bytes, const char *path,
                               struct weir_io_error *error)
{
    if (header_bytes > WEIR_IO_SAFETENSORS_HEADER_LIMIT)
        return weir_io_fail(error, path,
                            "is not a safetensors file: its header would have %" PRIu64
                            " bytes, the limit is %d",
                            header_bytes, WEIR_IO_SAFETENSORS_HEADER_LIMIT);
    if (header_bytes > file_bytes - LENGTH_BYTES)
        return weir_io_fail(error, path,
                            "is truncated or not a safetensors file: its header would have %" PRIu64
                            " bytes, but only %" PRIu64 " follow its length",
                            header_bytes, file_bytes - LENGTH_BYTES);
    return true;
}

static bool read_sizes(const json_t *list, size_t limit, uint64_t *sizes, size_t *out_count)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > limit)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return false;
        sizes[i] = (uint64_t)json_integer_value(item);
    }
    *out_count = count;
    return true;
}

static bool read_dtype(const char *name, enum weir_io_dtype *out_dtype)
{
    for (int i = 0; name && i < WEIR_IO_DTYPE_COUNT; i++) {
        if (strcmp(weir_io_dtypes[i].name, name) == 0) {
            *out_dtype = (enum weir_io_dtype)i;
            return true;
        }
    }
    return false;
}

// Reads one entry of the header, {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}.
static bool read_entry(weir_io_safetensors *file, const char *name, const json_t *entry,
                       uint64_t body_bytes, struct weir_io_error *error)
{
    struct weir_io_tensor *tensor = &file->tensors[file->count++];
    const char *path = file->path;
    tensor->name = name;
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return weir_io_fail(error, path,
                            "tensor '%.*s' is not an object of dtype, shape and data_offsets",
                            NAME_SHOWN, name);

    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!read_dtype(dtype, &tensor->dtype))
        return weir_io_fail(error, path, "tensor '%.*s' has the unknown dtype '%.20s'", NAME_SHOWN,
                            name, dtype ? dtype : "");
    size_t rank = 0;
    if (!read_sizes(json_object_get(entry, "shape"), WEIR_IO_MAX_RANK, tensor->shape, &rank))
        return weir_io_fail(error, path,
                            "the shape of tensor '%.*s' is not a list of at most %d whole numbers",
                            NAME_SHOWN, name, WEIR_IO_MAX_RANK);
    tensor->rank = (int)rank;

    uint64_t offsets[2] = {0, 0};
    size_t offset_count = 0;
    if (!read_sizes(json_object_get(entry, "data_offsets"), 2, offsets, &offset_count) ||
        offset_count != 2 || offsets[0] > offsets[1])
        return weir_io_fail(error, path,
                            "the data_offsets of tensor '%.*s' are not two ascending whole numbers",
                            NAME_SHOWN, name);
    if (offsets[1] > body_bytes)
        return weir_io_fail(error, path,
                            "is truncated: tensor '%.*s' ends at byte %" PRIu64
                            " of the body, which has %" PRIu64,
                            NAME_SHOWN, name, offsets[1], body_bytes);

    char shape[WEIR_IO_SHAPE_TEXT];
    uint64_t size = 0;
    if (!weir_io_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &size) ||
        size != offsets[1] - offsets[0])
        return weir_io_fail(error, path,
                            "tensor '%.*s' of type %s and shape %s cannot fill the %" PRIu64
                            " bytes that its data_offsets span",
                            NAME_SHOWN, name, dtype,
                            weir_io_shape_text(tensor->rank, tensor->shape, shape),
                            offsets[1] - offsets[0]);
    tensor->begin = offsets[0];
    tensor->size_bytes = size;
    return true;
}

static bool check_metadata(json_t *metadata, const char *path, struct weir_io_error *error)
{
    if (!json_is_object(metadata))
        return weir_io_fail(error, path, "its __metadata__ is not an object of strings");
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return weir_io_fail(error, path, "its __metadata__ entry '%.*s' is not a string",
                                NAME_SHOWN, key);
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct weir_io_tensor *left = a;
    const struct weir_io_tensor *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->size_bytes != right->size_bytes)
        return left->size_bytes < right->size_bytes ? -1 : 1;
    return strcmp(left->name, right->name);
}

// Sorts the tensors and checks that each begins where the one before it ends.
static bool check_places(weir_io_safetensors *file, uint64_t body_bytes,
                         struct weir_io_error *error)
{
    uint64_t end = 0;
    if (file->count > 1)
        qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    for (size_t i = 0; i < file->count; i++) {
        const struct weir_io_tensor *tensor = &file->tensors[i];
        if (tensor->begin != end)
            return weir_io_fail(error, file->path,
                                "tensor '%.*s' begins at byte %" PRIu64
                                " of the body, where %" PRIu64
                                " was due: tensors must neither overlap nor leave gaps",
                                NAME_SHOWN, tensor->name, tensor->begin, end);
        end += tensor->size_bytes;
    }
    if (end != body_bytes)
        return weir_io_fail(error, file->path,
                            "has %" PRIu64
                            " bytes after its last tensor, which ends at byte %" PRIu64
                            " of the body",
                            body_bytes - end, end);
    return true;
}

// Parses the header's text and fills the table of tensors, except for their data.
static bool read_header(weir_io_safetensors *file, const char *text, size_t text_bytes,
                        uint64_t body_bytes, struct weir_io_error *error)
{
    json_error_t problem;
    if (text[0] != '{')
        return weir_io_fail(error, file->path,
                            "is not a safetensors file: its header does not begin with '{'");
    const locale_t before = weir_c_locale_enter(); // jansson reads numbers with strtod()
    file->header = weir_json_load(text, text_bytes, JSON_REJECT_DUPLICATES, &problem);
    weir_c_locale_leave(before);
    if (!file->header)
        return weir_io_fail(error, file->path, "has a broken header: %s (byte %d)", problem.text,
                            problem.position);

    size_t limit = json_object_size(file->header) + 1;
    file->tensors = calloc(limit, sizeof *file->tensors);
    if (!file->tensors)
        return weir_io_fail(error, file->path, "needs memory for %zu tensors; there is not enough",
                            limit);
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        if (!(strcmp(name, metadata_key) == 0 ? check_metadata(entry, file->path, error)
                                              : read_entry(file, name, entry, body_bytes, error)))
            return false;
    }
    return check_places(file, body_bytes, error);
}

// Reads the open file, piece by piece, into `file`.
static bool read_file(weir_io_safetensors *file, int descriptor, uint64_t size,
                      struct weir_io_error *error)
{
    uint64_t header_bytes;
    if (size < LENGTH_BYTES)
        return weir_io_fail(error, file->path,
                            "is truncated or not a safetensors file: it has %" PRIu64
                            " bytes, fewer than the 8 of its header's length",
                            size);
    if (!weir_file_read_exactly(descriptor, file->path, &header_bytes, sizeof header_bytes,
                                error->message, sizeof error->message) ||
        !check_header_bytes(header_bytes, size, file->path, error))
        return false;

    uint64_t body_bytes = size - LENGTH_BYTES - header_bytes;
    char *text = calloc(1, (size_t)header_bytes + 1); // a header of no bytes is read too
    if (!text)
        return weir_io_fail(error, file->path,
                            "needs %" PRIu64 " bytes of memory; there is not enough", header_bytes);
    const bool ok = weir_file_read_exactly(descriptor, file->path, text, (size_t)header_bytes,
                                           error->message, sizeof error->message) &&
                    read_header(file, text, (size_t)header_bytes, body_bytes, error);
    free(text);
    if (!ok)
        return false;

    file->body = body_bytes < SIZE_MAX ? malloc(body_bytes > 0 ? (size_t)body_bytes : 1) : NULL;
    if (!file->body)
        return weir_io_fail(error, file->path,
                            "needs %" PRIu64 " bytes of memory; there is not enough", body_bytes);
    for (size_t i = 0; i < file->count; i++)
        file->tensors[i].data = file->body + file->tensors[i].begin;
    return weir_file_read_exactly(descriptor, file->path, file->body, (size_t)body_bytes,
                                  error->message, sizeof error->message);
}

bool weir_io_safetensors_open(const char *path, weir_io_safetensors **out_file,
                              struct weir_io_error *error)
{
    *out_file = NULL;
    int descriptor = -1;
    uint64_t size = 0;
    if (!weir_file_open(path, &descriptor, &size, error->message, sizeof error->message))
        return false;
    weir_io_safetensors *file = calloc(1, sizeof *file);
    bool ok = file && (file->path = strdup(path));
    if (!ok)
        weir_io_fail(error, path, "needs memory to be read; there is not enough");
    ok = ok && read_file(file, descriptor, size, error);
    close(descriptor);
    if (!ok)
        weir_io_safetensors_destroy(&file);
    *out_file = file;
    return ok;
}

void weir_io_safetensors_destroy(weir_io_safetensors **file_at)
{
    weir_io_safetensors *file = *file_at;
    *file_at = NULL;
    if (!file)
        return;
    json_decref(file->header);
    free(file->tensors);
    free(file->body);
    free(file->path);
    free(file);
}

const struct weir_io_tensor *weir_io_safetensors_get(const weir_io_safetensors *file,
                                                     const char *name)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    }
    return NULL;
}

static bool fail_missing(const weir_io_safetensors *file, const char *name,
                         struct weir_io_error *error)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < file->count && i < SUGGESTION_LIMIT; i++)
        nearest = weir_text_nearer(name, nearest, file->tensors[i].name);
    if (nearest)
        return weir_io_fail(error, file->path, "has no tensor '%.*s'; the nearest name is '%.*s'",
                            NAME_SHOWN, name, NAME_SHOWN, nearest);
    return weir_io_fail(error, file->path,
                        "has no tensor '%.*s' and none of a similar name among its %zu; "
                        "is it the right file?",
                        NAME_SHOWN, name, file->count);
}

static bool same_shape(const struct weir_io_tensor *tensor, int rank, const uint64_t *shape)
{
    if (tensor->rank != rank)
        return false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] != WEIR_IO_ANY_SIZE && shape[i] != tensor->shape[i])
            return false;
    }
    return true;
}

bool weir_io_safetensors_find(const weir_io_safetensors *file, const char *name, int rank,
                              const uint64_t *shape, const float **out_values,
                              struct weir_io_error *error)
{
    *out_values = NULL;
    const struct weir_io_tensor *tensor = weir_io_safetensors_get(file, name);
    if (!tensor)
        return fail_missing(file, name, error);
    if (tensor->dtype != WEIR_IO_F32)
        return weir_io_fail(error, file->path,
                            "tensor '%.*s' is of type %s, but F32 is needed; convert the file",
                            NAME_SHOWN, name, weir_io_dtypes[tensor->dtype].name);
    if (!same_shape(tensor, rank, shape)) {
        char wanted[WEIR_IO_SHAPE_TEXT];
        char found[WEIR_IO_SHAPE_TEXT];
        return weir_io_fail(error, file->path, "tensor '%.*s' has the shape %s, but %s is needed",
                            NAME_SHOWN, name,
                            weir_io_shape_text(tensor->rank, tensor->shape, found),
                            weir_io_shape_text(rank, shape, wanted));
    }
    if (tensor->begin % sizeof(float) != 0)
        return weir_io_fail(
            error, file->path,
            "tensor '%.*s' begins at byte %" PRIu64
            " of the body, no multiple of 4; write the file again with its tensors aligned",
            NAME_SHOWN, name, tensor->begin);
    if (!weir_io_check_finite(file->path, tensor->name, tensor->data,
                              (size_t)tensor->size_bytes / sizeof(float), error))
        return false;
    *out_values = tensor->data;
    return true;
}

// The library builds the header as JSON, and only then is it measured: offsets count
// from its end, so its length does not influence its contents.

static json_t *describe(const struct weir_io_tensor *tensor, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", weir_io_dtypes[tensor->dtype].name, "shape",
                     shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

// Fills `header` with one entry per tensor. False if memory runs out.
static bool describe_all(json_t *header, const struct weir_io_tensor *tensors, size_t count)
{
    uint64_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        weir_io_shape_bytes(tensors[i].dtype, tensors[i].rank, tensors[i].shape, &bytes);
        if (json_object_set_new(header, tensors[i].name,
                                describe(&tensors[i], begin, begin + bytes)) != 0)
            return false;
        begin += bytes;
    }
    return true;
}

static bool write_file(const char *path, const char *text, size_t text_bytes,
                       const struct weir_io_tensor *tensors, size_t count,
                       struct weir_io_error *error)
{
    static const char spaces[LENGTH_BYTES + 1] = "        ";
    size_t padding = (LENGTH_BYTES - text_bytes % LENGTH_BYTES) % LENGTH_BYTES;
    const uint64_t length = text_bytes + padding;

    weir_file_writer *writer = weir_file_writer_create(path, error->message, sizeof error->message);
    if (!writer)
        return false;
    weir_file_writer_append(writer, &length, sizeof length);
    weir_file_writer_append(writer, text, text_bytes);
    weir_file_writer_append(writer, spaces, padding);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        weir_io_shape_bytes(tensors[i].dtype, tensors[i].rank, tensors[i].shape, &bytes);
        weir_file_writer_append(writer, tensors[i].data, (size_t)bytes);
    }
    return weir_file_writer_commit(&writer, error->message, sizeof error->message);
}

bool weir_io_safetensors_write(const char *path, const struct weir_io_tensor *tensors, size_t count,
                               struct weir_io_error *error)
{
    json_t *header = json_object();
    size_t size;
    const bool fine = header && describe_all(header, tensors, count);
    char *text = weir_json_text(header, fine, JSON_COMPACT, &size);
    if (!text)
        return weir_io_fail(error, path, "cannot be written: memory ran out");
    size--; // without the newline
    const bool ok =
        size <= WEIR_IO_SAFETENSORS_HEADER_LIMIT - LENGTH_BYTES
            ? write_file(path, text, size, tensors, count, error)
            : weir_io_fail(error, path, "cannot be written: its header would exceed %d bytes",
                           WEIR_IO_SAFETENSORS_HEADER_LIMIT);
    free(text);
    return ok;
}
