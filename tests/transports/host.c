#include "tests/transports/host.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long blocks;
static _Thread_local struct weir_error last_error;
static _Thread_local long allocations_left = -1;

static void host_log(weir_log_level level, const char *source, const char *message)
{
    (void)level;
    fprintf(stderr, "%s: %s\n", source, message);
}

static weir_status host_error(const struct weir_error *detail, size_t size)
{
    memcpy(&last_error, detail, size < sizeof last_error ? size : sizeof last_error);
    return detail->status;
}

static void *host_allocate(size_t size)
{
    if (allocations_left == 0)
        return NULL;
    allocations_left -= allocations_left > 0;
    void *pointer = calloc(1, size > 0 ? size : 1);
    blocks += pointer != NULL;
    return pointer;
}

static void host_release(void *pointer)
{
    blocks -= pointer != NULL;
    free(pointer);
}

static void host_count(void)
{
}

const struct weir_host ranks_host = {
    .struct_size = sizeof ranks_host,
    .log = host_log,
    .error = host_error,
    .allocate = host_allocate,
    .release = host_release,
    .count_driver_object = host_count,
};

long ranks_blocks(void)
{
    return blocks;
}

void ranks_fail_after(long count)
{
    allocations_left = count;
}

const struct weir_error *ranks_error(void)
{
    return &last_error;
}

int ranks_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}
