#include "tests/kit/host.h"

#include <stdio.h>
#include <stdlib.h>

static struct kit_host state;

static void keep_message(weir_log_level level, const char *source, const char *message)
{
    state.level = level;
    snprintf(state.source, sizeof state.source, "%s", source);
    snprintf(state.message, sizeof state.message, "%s", message);
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
    if (state.left > 0)
        state.left--;
    state.allocations++;
    return calloc(1, size);
}

static void release(void *pointer)
{
    state.allocations -= pointer != NULL;
    free(pointer);
}

static void count_driver_object(void)
{
}

const struct weir_host kit_test_host = {
    .struct_size = sizeof kit_test_host,
    .log = keep_message,
    .error = keep_error,
    .allocate = allocate,
    .release = release,
    .count_driver_object = count_driver_object,
};

struct kit_host *kit_host(void)
{
    return &state;
}

struct kit_host *kit_host_reset(void)
{
    state = (struct kit_host){.left = -1};
    return &state;
}
