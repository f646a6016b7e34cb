// See the header.
#include "tests/pipelines/failing_calls.h"

#include <stdatomic.h>
#include <stdio.h>

#include <weir/weir.h>

static atomic_int calls_left;

static bool fails_now(void)
{
    return calls_left > 0 && atomic_fetch_sub(&calls_left, 1) == 1;
}

void failing_call(int n)
{
    calls_left = n;
}

bool failing_call_came(void)
{
    return calls_left <= 0;
}

static weir_status injected(const char *call)
{
    struct weir_error error = {.status = WEIR_ERROR_DEVICE};
    snprintf(error.message, sizeof error.message, "made to fail: %s", call);
    return weir_error_set(&error);
}

#define WRAP(name, parameters, names)                               \
    weir_status __real_##name parameters;                           \
    weir_status __wrap_##name parameters;                           \
    weir_status __wrap_##name parameters                            \
    {                                                               \
        return fails_now() ? injected(#name) : __real_##name names; \
    }
WRAP(weir_buffer_create_at,
     (weir_device * device, const struct weir_buffer_params *params, weir_buffer **out,
      const char *file, int line),
     (device, params, out, file, line))
WRAP(weir_queue_create_at,
     (weir_device * device, const struct weir_queue_params *params, weir_queue **out,
      const char *file, int line),
     (device, params, out, file, line))
WRAP(weir_program_create_at,
     (weir_device * device, const struct weir_program_params *params, weir_program **out,
      const char *file, int line),
     (device, params, out, file, line))
WRAP(weir_kernel_create_at,
     (weir_program * program, const char *name, weir_kernel **out, const char *file, int line),
     (program, name, out, file, line))
WRAP(weir_upload_at,
     (weir_queue * queue, weir_buffer *dst, size_t offset, const void *src, size_t size,
      const char *file, int line),
     (queue, dst, offset, src, size, file, line))
WRAP(weir_queue_launch_at,
     (weir_queue * queue, weir_kernel *kernel, struct weir_extent grid, struct weir_extent block,
      const struct weir_argument *arguments, size_t count, const char *file, int line),
     (queue, kernel, grid, block, arguments, count, file, line))
WRAP(weir_queue_launch_count_at,
     (weir_queue * queue, weir_kernel *kernel, size_t items, const struct weir_argument *arguments,
      size_t count, const char *file, int line),
     (queue, kernel, items, arguments, count, file, line))
WRAP(weir_queue_fill_at,
     (weir_queue * queue, weir_buffer *buffer, size_t offset, size_t size, const void *pattern,
      size_t pattern_size, const char *file, int line),
     (queue, buffer, offset, size, pattern, pattern_size, file, line))
WRAP(weir_queue_sync_at, (weir_queue * queue, uint64_t timeout_ns, const char *file, int line),
     (queue, timeout_ns, file, line))
#undef WRAP
