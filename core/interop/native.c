// Native handles, and wrapping of the caller's. A native call is an operation like any
// other: it passes down the chain, waits in a held queue, and the backend calls its
// function as its submit. The backend checks the caller's memory and streams, because it
// can query the driver.
#include "core/interop/native.h"

#include <string.h>

#include "base/sized.h"
#include "core/buffer/buffer.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/thread.h"

// Handles.

weir_status weir_device_get_native_sized(weir_device *device, struct weir_native_device *out_native,
                                         size_t size)
{
    WEIR_REQUIRE(NULL, out_native);
    struct weir_native_device native = {.struct_size = sizeof native};
    memset(out_native, 0, size);
    WEIR_ENTER(device);
    WEIR_REQUIRE(NULL, device);
    weir_status status = device->first->ops->device_native(device->first, device, &native);
    if (status < 0)
        weir__error_place(status, device->info.name, NULL, 0);
    else
        weir_sized_write_back(out_native, size, &native, sizeof native);
    return weir__told(status);
}

weir_status weir_queue_get_native_sized(weir_queue *queue, struct weir_native_queue *out_native,
                                        size_t size)
{
    WEIR_REQUIRE(NULL, out_native);
    struct weir_native_queue native = {.struct_size = sizeof native};
    memset(out_native, 0, size);
    WEIR_ENTER(queue);
    WEIR_REQUIRE(NULL, queue);
    weir_status status = queue->first->ops->queue_native(queue->first, queue, &native);
    if (status < 0)
        weir__error_place(status, queue->member.object.label, NULL, 0);
    else
        weir_sized_write_back(out_native, size, &native, sizeof native);
    return weir__told(status);
}

weir_status weir_buffer_get_native_sized(weir_buffer *buffer, struct weir_native_buffer *out_native,
                                         size_t size)
{
    WEIR_REQUIRE(NULL, out_native);
    struct weir_native_buffer native = {.struct_size = sizeof native};
    memset(out_native, 0, size);
    WEIR_ENTER(buffer);
    WEIR_REQUIRE(NULL, buffer);
    const struct weir_link *first = buffer->member.device->first;
    weir_status status = first->ops->buffer_native(first, buffer, &native);
    if (status < 0)
        weir__error_place(status, buffer->member.object.label, NULL, 0);
    else
        weir_sized_write_back(out_native, size, &native, sizeof native);
    return weir__told(status);
}

// Native calls.

static weir_status refuse_native(const weir_device *device, const char *what, const char *label,
                                 const char *file, int line)
{
    if (device->limits.native)
        return WEIR_OK;
    return weir__fail_at(file, line, label, WEIR_ERROR_UNSUPPORTED, "ask limits.native first",
                         "%s: device '%s' has no native handles", what, device->info.name);
}

weir_status weir__native_device(weir_device *device, const char *what, const char *label,
                                struct weir_native_device *out_native)
{
    weir_status status = refuse_native(device, what, label, NULL, 0);
    return status < 0 ? status : weir_device_get_native(device, out_native);
}

weir_status weir_queue_native_at(weir_queue *queue, weir_native_function function, void *user,
                                 const struct weir_argument *arguments, size_t argument_count,
                                 const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_ENTER_ARGUMENTS(file, line, arguments, argument_count);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), function);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), arguments || argument_count == 0);
    struct weir_operation operation;
    const struct weir__caller caller = {.device = queue->member.device,
                                        .label = queue->member.object.label,
                                        .file = file,
                                        .line = line};
    weir_status status =
        refuse_native(caller.device, "weir_queue_native", caller.label, file, line);
    if (status == WEIR_OK)
        status =
            weir__operation_native(&caller, function, user, arguments, argument_count, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

// The caller's own objects.

weir_status weir_queue_wrap_at(weir_device *device, const struct weir_queue_wrap_params *params,
                               weir_queue **out_queue, const char *file, int line)
{
    struct weir_queue_wrap_params known;
    WEIR_REQUIRE_AT(file, line, NULL, out_queue);
    *out_queue = NULL;
    WEIR_ENTER_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, NULL, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_queue_wrap_params, params, &known);
    weir_status status = refuse_native(device, "weir_queue_wrap", params->label, file, line);
    if (status < 0)
        return status;
    if (!params->native)
        return weir__fail_at(file, line, params->label, WEIR_ERROR_INVALID,
                             "CUDA's default stream is CU_STREAM_LEGACY, which is 1",
                             "weir_queue_wrap: params.native is NULL");
    if (params->timing && device->limits.timing_history == 0)
        return weir__fail_at(file, line, params->label, WEIR_ERROR_UNSUPPORTED,
                             "wrap it without timing",
                             "weir_queue_wrap: this device cannot time operations");
    struct weir_queue_setup setup = {.struct_size = sizeof setup,
                                     .timing = params->timing,
                                     .native = params->native};
    status = weir__queue_open(device, params->label, &setup, out_queue);
    if (status == WEIR_OK)
        weir__member_place(&(*out_queue)->member, file, line);
    return weir__placed(status, file, line);
}

weir_status weir_buffer_adopt_at(weir_device *device, const struct weir_adopt_params *params,
                                 weir_buffer **out_buffer, const char *file, int line)
{
    struct weir_adopt_params known;
    WEIR_REQUIRE_AT(file, line, NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_ENTER_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, NULL, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_adopt_params, params, &known);
    weir_status status = refuse_native(device, "weir_buffer_adopt", params->label, file, line);
    if (status < 0)
        return status;
    WEIR_REQUIRE_AT(file, line, params->label, params->native);
    status = weir__buffer_check_size(device, params->label, params->size);
    if (status < 0)
        return weir__placed(status, file, line);
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = WEIR_PLACE_DEVICE,
                                            .native = params->native};
    status = weir__buffer_make(device, params->label, &setup, false, out_buffer);
    if (status == WEIR_OK)
        weir__member_place(&(*out_buffer)->member, file, line);
    return weir__placed(status, file, line);
}
