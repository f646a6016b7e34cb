// A checkpoint is read and checked whole on the host before anything is uploaded.
#include "pipelines/train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "patterns/fail.h"
#include "pipelines/train/data.h"
#include "pipelines/train/product.h"

enum {
    BUFFERS_MAX = 3, // parameters and states
    NAME_SIZE = 64,
    PROGRESS_WORDS = 2
};

static const char progress_name[] = "progress";
static const char checksum_name[] = "checksum";
static const char extra_prefix[] = "program.";
static const char label[] = "checkpoint";

// What a checkpoint has of the device: buffers with the layout of the parameters, and what their
// tensors' names end with.
struct parts {
    const weir_train_model *model;
    size_t count;
    weir_buffer *buffers[BUFFERS_MAX];
    const char *endings[BUFFERS_MAX]; // NULL: none
    float *values[BUFFERS_MAX];       // on the host
};

// Of a buffer.
static size_t bytes_of(const struct parts *parts)
{
    return weir_buffer_size(parts->buffers[0]);
}

static void name_tensor(const struct parts *parts, size_t buffer, size_t index,
                        char name[NAME_SIZE])
{
    const char *ending = parts->endings[buffer];
    snprintf(name, NAME_SIZE, "%s%s%s", weir_train_model_parameter(parts->model, index)->name,
             ending ? "." : "", ending ? ending : "");
}

static void close_parts(struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        free(parts->values[i]);
}

// False if there is no memory; then there is nothing to close.
static bool open_parts(const weir_train_model *model, struct parts *parts)
{
    *parts =
        (struct parts){.model = model, .count = 1, .buffers = {weir_train_model_parameters(model)}};
    while (parts->count < BUFFERS_MAX &&
           weir_train_model_state(model, parts->count - 1, &parts->endings[parts->count],
                                  &parts->buffers[parts->count]))
        parts->count++;
    for (size_t i = 0; i < parts->count; i++) {
        parts->values[i] = calloc(1, bytes_of(parts));
        if (!parts->values[i]) {
            close_parts(parts);
            return false;
        }
    }
    return true;
}

// The checksum.

// Of the names, the types, the shapes and the numbers.
static uint64_t checksum_of(const struct weir_io_tensor *tensors, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir_io_tensor *tensor = &tensors[i];
        struct weir_siphash_key key = {{(uint64_t)tensor->dtype, (uint64_t)tensor->rank}};
        uint64_t size = 0;
        if (strcmp(tensor->name, checksum_name) == 0 ||
            !weir_io_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &size))
            continue; // of a shape that the writer refuses
        key.words[0] = weir_siphash(&key, tensor->name, strlen(tensor->name));
        key.words[1] =
            weir_siphash(&key, tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape);
        sum += weir_siphash(&key, tensor->data, (size_t)size);
    }
    return sum;
}

// Writing.

static weir_status download(const struct parts *parts, weir_queue *queue)
{
    for (size_t i = 0; i < parts->count; i++)
        TRY(weir_download(queue, parts->values[i], parts->buffers[i], 0, bytes_of(parts)));
    return WEIR_OK;
}

static struct weir_io_tensor tensor_of(const struct parts *parts, size_t buffer, size_t index,
                                       const char *name)
{
    const struct weir_train_parameter *p = weir_train_model_parameter(parts->model, index);
    return (struct weir_io_tensor){
        .name = name,
        .dtype = WEIR_IO_F32,
        .rank = p->rank,
        .shape = {p->shape[0], p->shape[1]},
        .data = parts->values[buffer] + p->offset / sizeof(float),
    };
}

// The tensors of the device's buffers, then the progress, then the program's.
static void list_tensors(const struct parts *parts, const uint64_t *progress,
                         const struct weir_io_tensor *extras, size_t extra_count,
                         char (*names)[NAME_SIZE], struct weir_io_tensor *tensors)
{
    const size_t each = weir_train_model_parameter_count(parts->model);
    for (size_t i = 0; i < parts->count * each; i++, names++) {
        name_tensor(parts, i / each, i % each, *names);
        *tensors++ = tensor_of(parts, i / each, i % each, *names);
    }
    *tensors++ = (struct weir_io_tensor){.name = progress_name,
                                         .dtype = WEIR_IO_U64,
                                         .rank = 1,
                                         .shape = {PROGRESS_WORDS},
                                         .data = progress};
    for (size_t i = 0; i < extra_count; i++)
        *tensors++ = extras[i];
}

static weir_status write_file(const char *path, const struct parts *parts, const uint64_t *progress,
                              const struct weir_io_tensor *extras, size_t extra_count)
{
    const size_t count =
        parts->count * weir_train_model_parameter_count(parts->model) + 1 + extra_count;
    struct weir_io_error error;
    uint64_t checksum;
    struct weir_io_tensor *tensors = calloc(count + 1, sizeof *tensors);
    char(*names)[NAME_SIZE] = calloc(count, sizeof *names);
    weir_status status = WEIR_OK;
    if (!tensors || !names) {
        status = weir__pattern_no_memory(label, "a checkpoint");
    } else {
        list_tensors(parts, progress, extras, extra_count, names, tensors);
        checksum = checksum_of(tensors, count);
        tensors[count] = (struct weir_io_tensor){.name = checksum_name,
                                                 .dtype = WEIR_IO_U64,
                                                 .rank = 1,
                                                 .shape = {1},
                                                 .data = &checksum};
        if (!weir_io_safetensors_write(path, tensors, count + 1, &error))
            status = weir__pattern_fail(NULL, WEIR_ERROR_IO, NULL, "%s", error.message);
    }
    free(tensors);
    free(names);
    return status;
}

weir_status weir_train_checkpoint_write(const char *path, weir_train_model *model,
                                        weir_queue *queue,
                                        const struct weir_train_progress *progress,
                                        const struct weir_io_tensor *extras, size_t extra_count)
{
    const uint64_t words[PROGRESS_WORDS] = {progress->step, progress->seed};
    struct parts parts;
    if (!open_parts(model, &parts))
        return weir__pattern_no_memory(label, "the parameters");
    weir_status status = download(&parts, queue);
    if (status == WEIR_OK)
        status = write_file(path, &parts, words, extras, extra_count);
    close_parts(&parts);
    return status;
}

// Reading.

static const char other_network[] = "pass the network and optimizer that it was written with";

static weir_status check_checksum(const char *path, const weir_io_safetensors *file)
{
    static const char another[] = "take another checkpoint, or begin again";
    uint64_t checksum;
    const struct weir_io_tensor *tensor = weir_io_safetensors_get(file, checksum_name);
    if (!tensor)
        return train_fail_file(path, another, "has no checksum");
    if (tensor->dtype != WEIR_IO_U64 || tensor->size_bytes != sizeof checksum)
        return train_fail_file(path, another, "is damaged: its checksum is no U64 number");
    memcpy(&checksum, tensor->data, sizeof checksum);
    const size_t count = weir_io_safetensors_count(file);
    if (checksum != checksum_of(weir_io_safetensors_at(file, 0), count))
        return train_fail_file(path, another, "is damaged: its checksum is another one");
    return WEIR_OK;
}

static weir_status read_parts(const char *path, const weir_io_safetensors *file,
                              const struct parts *parts)
{
    struct weir_io_error error;
    char name[NAME_SIZE];
    for (size_t buffer = 0; buffer < parts->count; buffer++)
        for (size_t i = 0; i < weir_train_model_parameter_count(parts->model); i++) {
            const struct weir_train_parameter *p = weir_train_model_parameter(parts->model, i);
            const float *values;
            name_tensor(parts, buffer, i, name);
            if (!weir_io_safetensors_find(file, name, p->rank, p->shape, &values, &error))
                return weir__pattern_fail(NULL, WEIR_ERROR_IO, other_network, "%s", error.message);
            if (!weir_io_check_finite(path, name, values, p->count, &error))
                return weir__pattern_fail(NULL, WEIR_ERROR_IO, NULL, "%s", error.message);
            memcpy(parts->values[buffer] + p->offset / sizeof(float), values,
                   p->count * sizeof(float));
        }
    return WEIR_OK;
}

static weir_status read_progress(const char *path, const weir_io_safetensors *file,
                                 struct weir_train_progress *out_progress)
{
    uint64_t words[PROGRESS_WORDS];
    const struct weir_io_tensor *tensor = weir_io_safetensors_get(file, progress_name);
    if (!tensor || tensor->dtype != WEIR_IO_U64 || tensor->size_bytes != sizeof words)
        return train_fail_file(path, NULL,
                               "is no checkpoint: it has no tensor '%s' of %d U64 numbers",
                               progress_name, (int)PROGRESS_WORDS);
    memcpy(words, tensor->data, sizeof words);
    *out_progress = (struct weir_train_progress){words[0], words[1]};
    return WEIR_OK;
}

static bool is_known(const struct parts *parts, const char *name)
{
    char known[NAME_SIZE];
    const size_t each = weir_train_model_parameter_count(parts->model);
    for (size_t i = 0; i < parts->count * each; i++) {
        name_tensor(parts, i / each, i % each, known);
        if (strcmp(name, known) == 0)
            return true;
    }
    return strcmp(name, progress_name) == 0 || strcmp(name, checksum_name) == 0 ||
           strncmp(name, extra_prefix, sizeof extra_prefix - 1) == 0;
}

static weir_status check_names(const char *path, const weir_io_safetensors *file,
                               const struct parts *parts)
{
    for (size_t i = 0; i < weir_io_safetensors_count(file); i++) {
        const char *name = weir_io_safetensors_at(file, i)->name;
        if (!is_known(parts, name))
            return train_fail_file(path, other_network,
                                   "has the tensor '%.80s', which this network has not", name);
    }
    return WEIR_OK;
}

static weir_status upload(const struct parts *parts, weir_train_model *model, weir_queue *queue)
{
    for (size_t i = 0; i < parts->count; i++)
        TRY(weir_upload(queue, parts->buffers[i], 0, parts->values[i], bytes_of(parts)));
    TRY(weir_train_model_refresh(model, queue));
    return weir_queue_sync(queue, WEIR_FOREVER);
}

// Checks all of the file before anything is uploaded.
static weir_status take_parts(const char *path, const weir_io_safetensors *file,
                              const struct parts *parts, weir_train_model *model, weir_queue *queue,
                              struct weir_train_progress *out_progress)
{
    TRY(read_progress(path, file, out_progress));
    TRY(read_parts(path, file, parts));
    TRY(check_names(path, file, parts));
    TRY(check_checksum(path, file));
    return upload(parts, model, queue);
}

static weir_status read_file(const char *path, const weir_io_safetensors *file,
                             weir_train_model *model, weir_queue *queue,
                             struct weir_train_progress *out_progress)
{
    struct parts parts;
    if (!open_parts(model, &parts))
        return weir__pattern_no_memory(label, "the parameters");
    const weir_status status = take_parts(path, file, &parts, model, queue, out_progress);
    close_parts(&parts);
    return status;
}

weir_status weir_train_checkpoint_read(const char *path, weir_train_model *model, weir_queue *queue,
                                       struct weir_train_progress *out_progress,
                                       weir_io_safetensors **out_file)
{
    struct weir_train_progress progress = {0};
    struct weir_io_error error;
    weir_io_safetensors *file;
    *out_progress = progress;
    if (out_file)
        *out_file = NULL;
    if (!weir_io_safetensors_open(path, &file, &error))
        return weir__pattern_fail(NULL, WEIR_ERROR_IO, NULL, "%s", error.message);
    const weir_status status = read_file(path, file, model, queue, &progress);
    if (status != WEIR_OK || !out_file)
        weir_io_safetensors_destroy(&file);
    if (status == WEIR_OK)
        *out_progress = progress;
    if (out_file)
        *out_file = file;
    return status;
}
