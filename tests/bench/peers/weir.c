#include "tests/bench/peers/weir.h"

#include <stdlib.h>

bool weir_peer_fine(weir_status status)
{
    return status == WEIR_OK || peer_fail("%s", weir_last_error_text());
}

bool weir_peer_open_runtime(weir_runtime **out_runtime)
{
    // The folder of the modules in the build, relative to the folder in which `bazel run` starts.
    setenv("WEIR_MODULE_PATH", "lib/weir", 0);
    const weir_status status = weir_open(NULL, out_runtime);
    if (status == WEIR_ERROR_MODULE || status == WEIR_ERROR_NO_DEVICE)
        return peer_skip("%s", weir_last_error_text());
    return weir_peer_fine(status);
}

bool weir_peer_open_device(weir_runtime *runtime, weir_device **out_device)
{
    if (!weir_peer_fine(weir_device_open(runtime, NULL, out_device)))
        return false;
    peer_device(weir_device_get_info(*out_device)->name);
    return true;
}

bool weir_peer_open(weir_runtime **out_runtime, weir_device **out_device)
{
    return weir_peer_open_runtime(out_runtime) && weir_peer_open_device(*out_runtime, out_device);
}

void weir_peer_close(weir_runtime **runtime, weir_device **device)
{
    if (*device)
        weir_peer_fine(weir_device_close(device));
    if (*runtime)
        weir_peer_fine(weir_close(runtime));
}

bool weir_peer_buffer(weir_device *device, const char *label, size_t size, weir_placement placement,
                      weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = size,
                                              .placement = placement};
    return weir_peer_fine(weir_buffer_create(device, &params, out_buffer));
}

bool weir_peer_queue(weir_device *device, const char *label, weir_queue **out_queue)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    return weir_peer_fine(weir_queue_create(device, &params, out_queue));
}

void *weir_peer_map(weir_buffer *buffer, weir_access access)
{
    void *pointer = NULL;
    const weir_status status =
        weir_host_begin(buffer, 0, weir_buffer_size(buffer), access, &pointer);
    return weir_peer_fine(status) ? pointer : NULL;
}

bool weir_peer_unmap(weir_buffer *buffer, weir_access access)
{
    return weir_peer_fine(weir_host_end(buffer, 0, weir_buffer_size(buffer), access));
}
