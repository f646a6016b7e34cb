// A checkpoint is read and checked whole on the host before anything is uploaded.
#include "pipelines/train/checkpoint.h"

#include "base/hash.h"
#include "pipelines/train/data.h"
#include "pipelines/train/product.h"

static const char progress_name[] = "progress";
static const char checksum_name[] = "checksum";
static const char extra_prefix[] = "program.";
static const char label[] = "checkpoint";

// The checksum.

// Of the names, the types, the shapes and the numbers.
static uint64_t checksum_of(const struct weir_io_tensor *tensors, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir_io_tensor *tensor = &tensors[i];
        uint64_t hash = (uint64_t)tensor->dtype, size = 0;
        if (strcmp(tensor->name, checksum_name) == 0)
            continue;
        weir_io_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &size);
        hash = weir_hash(hash, tensor->name, strlen(tensor->name));
        hash = weir_hash(hash, tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape);
        sum += weir_hash(hash, tensor->data, (size_t)size);
    }
    return sum;
}

// Writing.

// The tensors of the model, whose numbers are in `values`, then the progress, then the program's.
static void list_tensors(const weir_train_model *model, const float *values,
                         const struct weir_train_progress *progress,
                         const struct weir_io_tensor *extras, size_t extra_count,
                         struct weir_io_tensor *tensors)
{
    for (size_t i = 0; i < weir_train_model_facts(model)->tensor_count; i++) {
        const struct weir_train_parameter *p = &weir_train_model_facts(model)->tensors[i];
        *tensors++ = (struct weir_io_tensor){
            .name = p->name,
            .dtype = WEIR_IO_F32,
            .rank = p->rank,
            .shape = {p->shape[0], p->shape[1]},
            .data = values + p->offset / sizeof(float),
        };
    }
    *tensors++ = (struct weir_io_tensor){.name = progress_name,
                                         .dtype = WEIR_IO_U64,
                                         .rank = 1,
                                         .shape = {sizeof *progress / sizeof(uint64_t)},
                                         .data = progress};
    for (size_t i = 0; i < extra_count; i++)
        *tensors++ = extras[i];
}

weir_status weir_train_checkpoint_write(const char *path, weir_train_model *model,
                                        weir_queue *queue,
                                        const struct weir_train_progress *progress,
                                        const struct weir_io_tensor *extras, size_t extra_count)
{
    const size_t count = weir_train_model_facts(model)->tensor_count + 1 + extra_count + 1;
    weir_buffer *buffer = weir_train_model_facts(model)->parameters;
    float *values = malloc(weir_buffer_size(buffer));
    struct weir_io_tensor *tensors = calloc(count, sizeof *tensors);
    weir_status status =
        values && tensors ? WEIR_OK : weir__pattern_no_memory(label, "a checkpoint");
    if (status == WEIR_OK)
        status = weir_download(queue, values, buffer, 0, weir_buffer_size(buffer));
    if (tensors && status == WEIR_OK) {
        struct weir_io_error error;
        list_tensors(model, values, progress, extras, extra_count, tensors);
        const uint64_t checksum = checksum_of(tensors, count - 1);
        tensors[count - 1] = (struct weir_io_tensor){.name = checksum_name,
                                                     .dtype = WEIR_IO_U64,
                                                     .rank = 1,
                                                     .shape = {1},
                                                     .data = &checksum};
        if (!weir_io_safetensors_write(path, tensors, count, &error))
            status = weir__pattern_fail(NULL, WEIR_ERROR_IO, NULL, "%s", error.message);
    }
    free(tensors);
    free(values);
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
    if (checksum != checksum_of(file->tensors, file->count))
        return train_fail_file(path, another, "is damaged: its checksum is another one");
    return WEIR_OK;
}

static weir_status read_tensors(const weir_io_safetensors *file, const weir_train_model *model,
                                float *out_values)
{
    struct weir_io_error error;
    for (size_t i = 0; i < weir_train_model_facts(model)->tensor_count; i++) {
        const struct weir_train_parameter *p = &weir_train_model_facts(model)->tensors[i];
        const float *values;
        if (!weir_io_safetensors_find(file, p->name, p->rank, p->shape, &values, &error))
            return weir__pattern_fail(NULL, WEIR_ERROR_IO, other_network, "%s", error.message);
        memcpy(out_values + p->offset / sizeof(float), values, p->count * sizeof(float));
    }
    return WEIR_OK;
}

static bool is_known(const weir_train_model *model, const char *name)
{
    for (size_t i = 0; i < weir_train_model_facts(model)->tensor_count; i++)
        if (strcmp(name, weir_train_model_facts(model)->tensors[i].name) == 0)
            return true;
    return strcmp(name, progress_name) == 0 || strcmp(name, checksum_name) == 0 ||
           strncmp(name, extra_prefix, sizeof extra_prefix - 1) == 0;
}

static weir_status check_names(const char *path, const weir_io_safetensors *file,
                               const weir_train_model *model)
{
    for (size_t i = 0; i < file->count; i++) {
        const char *name = file->tensors[i].name;
        if (!is_known(model, name))
            return train_fail_file(path, other_network,
                                   "has the tensor '%.80s', which this network has not", name);
    }
    return WEIR_OK;
}

// Checks all of the file before anything is uploaded.
static weir_status take_tensors(const char *path, const weir_io_safetensors *file,
                                weir_train_model *model, weir_queue *queue, float *values,
                                struct weir_train_progress *out_progress)
{
    weir_buffer *buffer = weir_train_model_facts(model)->parameters;
    const struct weir_io_tensor *progress = weir_io_safetensors_get(file, progress_name);
    if (!progress || progress->dtype != WEIR_IO_U64 || progress->size_bytes != sizeof *out_progress)
        return train_fail_file(path, NULL,
                               "is no checkpoint: it has no tensor '%s' of 2 U64 numbers",
                               progress_name);
    memcpy(out_progress, progress->data, sizeof *out_progress);
    TRY(read_tensors(file, model, values));
    TRY(check_names(path, file, model));
    TRY(check_checksum(path, file));
    TRY(weir_upload(queue, buffer, 0, values, weir_buffer_size(buffer)));
    TRY(weir_train_model_refresh(model, queue));
    return weir_queue_sync(queue, WEIR_FOREVER);
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
    float *values = calloc(1, weir_buffer_size(weir_train_model_facts(model)->parameters));
    const weir_status status = values ? take_tensors(path, file, model, queue, values, &progress)
                                      : weir__pattern_no_memory(label, "the parameters");
    free(values);
    if (status == WEIR_OK)
        *out_progress = progress;
    if (status == WEIR_OK && out_file)
        *out_file = file;
    else
        weir_io_safetensors_destroy(&file);
    return status;
}
