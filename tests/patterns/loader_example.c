// Reads a file of numbers in batches and copies each one to its place in a larger
// buffer on the device, while the next batch is read and uploaded.
#include <stdint.h>
#include <stdio.h>

#include "patterns/loader.h"

enum {
    NUMBERS = 25000,
    BATCH = 4096 // numbers; the last batch is smaller
};

static FILE *make_file(void)
{
    FILE *file = tmpfile();
    for (uint32_t i = 0; file && i < NUMBERS; i++)
        fwrite(&i, sizeof i, 1, file);
    if (file)
        rewind(file);
    return file;
}

// Runs on the loader's thread. At the end of the file fread() returns 0, which ends
// the loader's batches.
static weir_status read_batch(void *user, uint64_t index, void *memory, size_t capacity,
                              size_t *out_size)
{
    FILE *file = user;
    (void)index;
    *out_size = fread(memory, 1, capacity, file);
    return ferror(file) ? WEIR_ERROR_IO : WEIR_OK;
}

static weir_status use_batches(weir_loader *loader, weir_queue *queue, weir_buffer *all)
{
    struct weir_batch batch;
    weir_status status;

    while ((status = weir_loader_next(loader, queue, &batch)) == WEIR_OK && batch.buffer) {
        printf("batch %d: %zu numbers\n", (int)batch.index, batch.size / 4);
        status = weir_queue_copy(queue, all, batch.index * BATCH * 4, batch.buffer, 0, batch.size);
        if (status == WEIR_OK)
            status = weir_loader_release(loader, &batch, queue);
        if (status != WEIR_OK)
            break;
    }
    return status;
}

static weir_status run(weir_device *device, FILE *file, weir_queue *queue, weir_buffer *all)
{
    const struct weir_loader_params params = {
        .struct_size = sizeof params,
        .device = device,
        .label = "numbers",
        .batch_bytes = BATCH * 4,
        .source = read_batch,
        .user = file,
    };
    weir_loader *loader;

    weir_status status = weir_loader_create(&params, &loader);
    if (status == WEIR_OK)
        status = use_batches(loader, queue, all);
    WEIR_CHECK(weir_loader_destroy(&loader));
    return status;
}

static int count_right(weir_queue *queue, weir_buffer *all)
{
    static uint32_t numbers[NUMBERS];
    int right = 0;
    if (weir_download(queue, numbers, all, 0, sizeof numbers) != WEIR_OK) {
        fprintf(stderr, "%s\n", weir_last_error_text());
        return 0;
    }
    for (uint32_t i = 0; i < NUMBERS; i++)
        right += numbers[i] == i;
    return right;
}

int main(void)
{
    const struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = NUMBERS * 4};
    FILE *file = make_file();
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *queue = NULL;
    weir_buffer *all = NULL;
    int right = 0;

    if (!file)
        perror("no temporary file");
    else if (weir_open(NULL, &runtime) || weir_device_open(runtime, NULL, &device) ||
             weir_queue_create(device, NULL, &queue) || weir_buffer_create(device, &buffer, &all) ||
             run(device, file, queue, all))
        fprintf(stderr, "%s\n", weir_last_error_text());
    else
        right = count_right(queue, all);
    printf("%d of %d right\n", right, NUMBERS);
    weir_buffer_destroy(&all);
    weir_queue_destroy(&queue);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    if (file)
        fclose(file);
    return right == NUMBERS ? 0 : 1;
}
