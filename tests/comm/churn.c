// One rank of a program that makes and destroys communicators: `churn COUNT`. After a tenth of them nothing
// that the process holds may grow: descriptors, threads, and with `memory` its resident memory.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

enum {
    N = 100,
    MEMORY_SLACK_KIB = 2048 // what an allocator keeps
};

struct held {
    size_t descriptors;
    size_t threads;
    long memory_kib;
};

static void check(weir_status status)
{
    if (status < 0) {
        printf("%s\n", weir_last_error_text());
        exit(3);
    }
}

static size_t count_entries(const char *folder)
{
    size_t count = 0;
    DIR *it = opendir(folder);
    while (it && readdir(it))
        count++;
    if (it)
        closedir(it);
    return count;
}

static struct held measure(void)
{
    struct held held = {count_entries("/proc/self/fd"), count_entries("/proc/self/task"), 0};
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            held.memory_kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return held;
}

static void run_one(weir_device *device, weir_queue *queue, weir_buffer *buffer)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "churn"};
    weir_comm *comm;
    weir_comm *copy;
    check(weir_comm_create(device, &params, &comm));
    check(weir_comm_duplicate(comm, "copy", &copy));
    check(weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, N, WEIR_I32, WEIR_MAXIMUM));
    check(weir_queue_all_reduce(queue, copy, buffer, 0, buffer, 0, N, WEIR_I32, WEIR_MAXIMUM));
    check(weir_queue_barrier(queue, comm)); // so that no rank leaves one that others still use
    weir_comm_destroy(&copy), weir_comm_destroy(&comm);
    check(weir_queue_sync(queue, WEIR_FOREVER));
}

static int compare(const struct held *before, const struct held *after, bool memory)
{
    printf("descriptors %zu and %zu, threads %zu and %zu, memory %ld and %ld KiB\n",
           before->descriptors, after->descriptors, before->threads, after->threads,
           before->memory_kib, after->memory_kib);
    return after->descriptors > before->descriptors || after->threads > before->threads ||
           (memory && after->memory_kib > before->memory_kib + MEMORY_SLACK_KIB);
}

int main(int argc, char **argv)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = N * sizeof(int32_t)};
    const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    const bool memory = argc > 2 && strcmp(argv[2], "memory") == 0;
    struct held before = {0};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    check(weir_open(NULL, &runtime));
    check(weir_device_open(runtime, NULL, &device));
    check(weir_queue_create(device, NULL, &queue));
    check(weir_buffer_create(device, &params, &buffer));
    for (long i = 0; i < count; i++) {
        run_one(device, queue, buffer);
        if (i == count / 10) {
            check(weir_device_trim(device));
            before = measure();
        }
    }
    check(weir_device_trim(device));
    const struct held after = measure();
    weir_buffer_destroy(&buffer), weir_queue_destroy(&queue);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    return compare(&before, &after, memory);
}
