// See the header.
#include "tests/races/rig.h"

#include <string.h>

weir_status rig_open(struct rig *rig, const char *plugins, const char *config)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = config ? "races.ini" : "",
                                            .config_text = config,
                                            .plugins = plugins};
    *rig = (struct rig){NULL, NULL};
    const weir_status status = weir_open(&params, &rig->runtime);
    return status == WEIR_OK ? weir_device_open(rig->runtime, NULL, &rig->device) : status;
}

weir_status rig_close(struct rig *rig)
{
    const weir_status status = weir_device_close(&rig->device);
    return status == WEIR_OK ? weir_close(&rig->runtime) : status;
}

static weir_status wrap(weir_device *device, void *memory, size_t size, weir_buffer **out_buffer)
{
    const struct weir_wrap_params params = {.struct_size = sizeof params,
                                            .pointer = memory,
                                            .size = size};
    return weir_buffer_wrap(device, &params, out_buffer);
}

static bool can_wrap_twice(weir_device *device)
{
    static _Alignas(4096) unsigned char memory[4096];
    weir_buffer *part = NULL, *whole = NULL;
    const bool can = wrap(device, memory, sizeof memory / 2, &part) == WEIR_OK &&
                     wrap(device, memory, sizeof memory, &whole) == WEIR_OK;
    weir_buffer_destroy(&part);
    weir_buffer_destroy(&whole);
    must(weir_device_trim(device));
    return can;
}

bool rig_can_run(const struct rig *rig, const struct race_pair *pair)
{
    return (!pair->native || weir_device_limits(rig->device)->native) &&
           (!pair->pinned || weir_device_limits(rig->device)->host_in_kernels) &&
           (!pair->twice || can_wrap_twice(rig->device));
}

bool rig_has_result(const struct rig *rig, const struct race_pair *pair)
{
    return !pair->kernels || strcmp(weir_runtime_backend(rig->runtime), "null") != 0;
}

bool rig_may_race(void)
{
#ifdef __SANITIZE_THREAD__
    return false;
#else
    return true;
#endif
}
