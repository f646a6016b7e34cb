// See the header.
#include "tests/patterns/rig.h"

#include <stdlib.h>
#include <time.h>

#include "patterns/pipeline.h"

struct rig rig;

void rig_sleep_ns(long duration_ns)
{
    const struct timespec duration = {.tv_nsec = duration_ns};
    nanosleep(&duration, NULL);
}

weir_status rig_dawdle(void *user)
{
    rig_sleep_ns((long)((uintptr_t)user * 7919 % 5) * 100000);
    return WEIR_OK;
}

weir_status rig_open(void)
{
    return rig_open_with(NULL);
}

weir_status rig_open_with(const char *config)
{
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = config ? "rig.ini" : "",
        .config_text = config,
        .backend = getenv("WEIR_BACKEND") ? NULL : "null",
        .sections = (const struct weir_section *const[]){weir_pipeline_section()},
        .section_count = 1,
    };
    weir_status status = weir_open(&params, &rig.runtime);
    if (status != WEIR_OK)
        return status;
    return weir_device_open(rig.runtime, NULL, &rig.device);
}

void rig_close(void)
{
    ASSERT_OK(weir_device_close(&rig.device));
    ASSERT_OK(weir_close(&rig.runtime));
}

weir_status rig_buffer(size_t size, weir_placement placement, weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {
        .struct_size = sizeof params,
        .label = "rig",
        .size = size,
        .placement = placement,
    };
    return weir_buffer_create(rig.device, &params, out_buffer);
}

weir_status rig_queue(const char *label, weir_queue **out_queue)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    return weir_queue_create(rig.device, &params, out_queue);
}

void rig_write_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first)
{
    void *pointer;

    if (weir_host_begin(buffer, at * 4, count * 4, WEIR_ACCESS_WRITE, &pointer) != WEIR_OK)
        WEIR_FAIL("%s", weir_last_error_text());
    for (size_t i = 0; i < count; i++)
        ((uint32_t *)pointer)[i] = first + (uint32_t)i;
    WEIR_IGNORE(weir_host_end(buffer, at * 4, count * 4, WEIR_ACCESS_WRITE));
}

size_t rig_wrong_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first)
{
    void *pointer;
    size_t wrong = 0;

    if (weir_host_begin(buffer, at * 4, count * 4, WEIR_ACCESS_READ, &pointer) != WEIR_OK)
        return count + 1;
    for (size_t i = 0; i < count; i++)
        wrong += ((uint32_t *)pointer)[i] != first + (uint32_t)i;
    WEIR_IGNORE(weir_host_end(buffer, at * 4, count * 4, WEIR_ACCESS_READ));
    return wrong;
}
