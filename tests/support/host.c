#include "tests/support/host.h"

#include <dirent.h>
#include <stdatomic.h>

static atomic_long blocks;
static _Thread_local struct test_host_state state = {.left = -1};

static void keep_message(weir_log_level level, const char *source, const char *message)
{
    state.level = level;
    snprintf(state.source, sizeof state.source, "%s", source);
    snprintf(state.message, sizeof state.message, "%s", message);
    fprintf(stderr, "%s: %s\n", source, message);
}

static weir_status keep_error(const struct weir_error *detail, size_t size)
{
    if (size != sizeof state.error)
        abort();
    state.error = *detail;
    state.error_count++;
    return detail->status;
}

static void *allocate(size_t size)
{
    if (state.left == 0)
        return NULL;
    state.left -= state.left > 0;
    void *pointer = calloc(1, size > 0 ? size : 1);
    blocks += pointer != NULL;
    return pointer;
}

static void release(void *pointer)
{
    blocks -= pointer != NULL;
    free(pointer);
}

static void count_driver_object(void)
{
}

const struct weir_host test_host = {
    .struct_size = sizeof test_host,
    .log = keep_message,
    .error = keep_error,
    .allocate = allocate,
    .release = release,
    .count_driver_object = count_driver_object,
};

struct test_host_state *test_host_state(void)
{
    return &state;
}

struct test_host_state *test_host_reset(void)
{
    state = (struct test_host_state){.left = -1};
    return &state;
}

long test_host_blocks(void)
{
    return blocks;
}

int test_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}
