// Native handles, and wrapping of the caller's. A native call is an operation like any
// other: it passes down the chain, waits in a held queue, and the backend calls its
// function as its submit. The backend checks the caller's memory and streams, because it
// can query the driver.
#include <dlpack/dlpack.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/dlpack.h>
#include <weir/module/module.h>

#include "base/sized.h"
#include "core/buffer/buffer.h"
#include "core/object/device.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"

static weir_status refuse_native(const weir_device *device, const char *what, const char *label,
                                 const char *file, int line)
{
    if (device->limits.native)
        return WEIR_OK;
    return weir__fail_at(file, line, label, WEIR_ERROR_UNSUPPORTED, "ask limits.native first",
                         "%s: device '%s' has no native handles, by its backend or by a plugin",
                         what, device->info.name);
}

// Handles. Each function asks the slot of its name for those of `object`, whose label is for messages.
#define GET_NATIVE(call, slot, type, object, of, label)                        \
    do {                                                                       \
        struct type native_ = {.struct_size = sizeof native_};                 \
        WEIR_REQUIRE(NULL, out_native);                                        \
        memset(out_native, 0, size);                                           \
        WEIR_ENTER(object);                                                    \
        const struct weir_link *first_ = (of)->first;                          \
        weir_status status_ = refuse_native((of), (call), (label), NULL, 0);   \
        if (status_ == WEIR_OK)                                                \
            status_ = first_->ops->slot(first_, (object), &native_);           \
        if (status_ < 0)                                                       \
            weir__error_place(status_, (label), NULL, 0);                      \
        else                                                                   \
            weir_sized_write_back(out_native, size, &native_, sizeof native_); \
        return weir__told(status_);                                            \
    } while (0)

weir_status weir_device_get_native_sized(weir_device *device, struct weir_native_device *out_native,
                                         size_t size)
{
    GET_NATIVE("weir_device_get_native", device_native, weir_native_device, device, device,
               device->info.name);
}

weir_status weir_queue_get_native_sized(weir_queue *queue, struct weir_native_queue *out_native,
                                        size_t size)
{
    GET_NATIVE("weir_queue_get_native", queue_native, weir_native_queue, queue,
               queue->member.device, queue->member.object.label);
}

weir_status weir_buffer_get_native_sized(weir_buffer *buffer, struct weir_native_buffer *out_native,
                                         size_t size)
{
    GET_NATIVE("weir_buffer_get_native", buffer_native, weir_native_buffer, buffer,
               buffer->member.device, buffer->member.object.label);
}
#undef GET_NATIVE

// Native calls.

// The device's native handles; WEIR_ERROR_UNSUPPORTED where it has none. `what` begins the
// message.
static weir_status native_device(weir_device *device, const char *what, const char *label,
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
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), function);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), arguments || argument_count == 0);
    struct weir_operation operation;
    const struct weir__caller caller = {.device = queue->member.device,
                                        .label = queue->member.object.label,
                                        .file = file,
                                        .line = line};
    weir_status status =
        refuse_native(caller.device, "weir_queue_native", caller.label, file, line);
    weir__operation_begin(&operation, WEIR_OPERATION_NATIVE, 0, file, line);
    operation.u.native.function = function;
    operation.u.native.user = user;
    operation.u.native.arguments = arguments;
    operation.u.native.argument_count = argument_count;
    if (status == WEIR_OK)
        status = weir__operation_native(&caller, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

// The caller's own objects.

weir_status weir_queue_wrap_at(weir_device *device, const struct weir_queue_wrap_params *params,
                               weir_queue **out_queue, const char *file, int line)
{
    struct weir_queue_wrap_params known;
    WEIR_ENTER_FOR(file, line, out_queue, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_queue_wrap_params, params, &known);
    TRY(refuse_native(device, "weir_queue_wrap", params->label, file, line));
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
    weir_status status =
        weir__queue_open(device, params->label, WEIR__OWNED_BY_USER, &setup, out_queue);
    WEIR_RETURN_CREATED(file, line, out_queue, status);
}

weir_status weir_buffer_adopt_at(weir_device *device, const struct weir_adopt_params *params,
                                 weir_buffer **out_buffer, const char *file, int line)
{
    struct weir_adopt_params known;
    WEIR_ENTER_FOR(file, line, out_buffer, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_adopt_params, params, &known);
    TRY(refuse_native(device, "weir_buffer_adopt", params->label, file, line));
    WEIR_REQUIRE_AT(file, line, params->label, params->native);
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = WEIR_PLACE_DEVICE,
                                            .native = params->native};
    weir_status status = weir__buffer_make(device, params->label, &setup, false, out_buffer);
    WEIR_RETURN_CREATED(file, line, out_buffer, status);
}

// DLPack export and import. All sizes are computed here, in 64 bits and without
// wrapping, because the numbers come from other libraries. byte_offset is only used
// for OpenCL, which has no address to add it to: PyTorch does not read it.

// Newer than Debian's header.
enum {
    CODE_BOOL = 6
};

_Static_assert((int)WEIR_ELEMENT_INT == (int)kDLInt && (int)WEIR_ELEMENT_UINT == (int)kDLUInt &&
                   (int)WEIR_ELEMENT_FLOAT == (int)kDLFloat &&
                   (int)WEIR_ELEMENT_OPAQUE == (int)kDLOpaqueHandle &&
                   (int)WEIR_ELEMENT_BFLOAT == (int)kDLBfloat &&
                   (int)WEIR_ELEMENT_COMPLEX == (int)kDLComplex &&
                   (int)WEIR_ELEMENT_BOOL == CODE_BOOL,
               "elements are DLPack's type codes");

// Bytes of an element, or 0 if it is not a whole number of bytes.
static uint64_t element_bytes(uint32_t bits, uint32_t lanes)
{
    const uint64_t all = (uint64_t)bits * lanes;
    return all % 8 ? 0 : all / 8;
}

static weir_status check_element(const char *function, const char *label, unsigned code,
                                 uint32_t bits, uint32_t lanes)
{
    if (code > CODE_BOOL)
        return weir__invalid(label, "convert it to an integer, floating or complex type first",
                             "%s: the elements' type code is %u; known are 0 to %d", function, code,
                             CODE_BOOL);
    if (element_bytes(bits, lanes) == 0)
        return weir__invalid(label, "pass elements of whole bytes",
                             "%s: an element of %" PRIu32 " lanes of %" PRIu32
                             " bits has no whole bytes",
                             function, lanes, bits);
    return WEIR_OK;
}

static weir_status check_shape(const char *function, const char *label, int64_t dimensions,
                               const int64_t *shape)
{
    if (dimensions < 0 || dimensions > WEIR_TENSOR_DIMENSIONS)
        return weir__invalid(label, "merge some of them",
                             "%s: %" PRId64 " dimensions; a tensor has at most %d", function,
                             dimensions, WEIR_TENSOR_DIMENSIONS);
    if (dimensions > 0 && !shape)
        return weir__invalid(label, "set it to the dimensions' sizes", "%s: the shape is NULL",
                             function);
    for (int64_t i = 0; i < dimensions; i++)
        if (shape[i] < 0)
            return weir__invalid(label, "a dimension is 0 or more",
                                 "%s: dimension %" PRId64 " of the shape is %" PRId64, function, i,
                                 shape[i]);
    return WEIR_OK;
}

// The strides of a dense tensor. Returns the count of its elements; -1 if that wraps.
static int64_t dense_strides(uint32_t dimensions, const int64_t *shape, int64_t *out_strides)
{
    int64_t stride = 1;
    for (uint32_t i = dimensions; i-- > 0;) {
        out_strides[i] = stride;
        if (__builtin_mul_overflow(stride, shape[i], &stride))
            return -1;
    }
    return stride;
}

// Bytes from the first element to the end of the last; false if that wraps.
static bool extent(uint32_t dimensions, const int64_t *shape, const int64_t *strides,
                   uint64_t bytes_each, uint64_t *out_bytes)
{
    uint64_t last = 0;
    *out_bytes = 0;
    for (uint32_t i = 0; i < dimensions; i++) {
        uint64_t reach;
        if (shape[i] == 0)
            return true;
        if (__builtin_mul_overflow((uint64_t)shape[i] - 1, (uint64_t)strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    }
    return !__builtin_add_overflow(last, 1, &last) &&
           !__builtin_mul_overflow(last, bytes_each, out_bytes);
}

// Export.

struct exported {
    DLManagedTensor tensor;
    weir_buffer *buffer;
    int64_t shape[WEIR_TENSOR_DIMENSIONS];
    int64_t strides[WEIR_TENSOR_DIMENSIONS];
};

// The deleter, which cannot report a failure to DLPack.
static void end_export(DLManagedTensor *tensor)
{
    if (!tensor || weir__is_forked())
        return;
    struct exported *exported = tensor->manager_ctx;
    weir__buffer_unhold(exported->buffer);
    weir__release(exported);
}

static weir_status check_strides(const char *label, const struct weir_tensor *tensor)
{
    for (uint32_t i = 0; tensor->strides && i < tensor->dimensions; i++)
        if (tensor->strides[i] < 0)
            return weir__invalid(label, "copy it into a tensor whose strides are 0 or more",
                                 "weir_dlpack_export: the stride of dimension %" PRIu32
                                 " is %" PRId64,
                                 i, tensor->strides[i]);
    return WEIR_OK;
}

// Fills shape and strides, and refuses a tensor that is not inside the buffer.
static weir_status fill_layout(const struct weir_tensor *tensor, struct exported *exported)
{
    const weir_buffer *buffer = tensor->buffer;
    const uint64_t each = element_bytes(tensor->bits, tensor->lanes ? tensor->lanes : 1);
    const size_t bytes = tensor->dimensions * sizeof *exported->shape;
    uint64_t size;

    if (bytes)
        memcpy(exported->shape, tensor->shape, bytes);
    if (bytes && tensor->strides)
        memcpy(exported->strides, tensor->strides, bytes);
    if ((!tensor->strides &&
         dense_strides(tensor->dimensions, tensor->shape, exported->strides) < 0) ||
        !extent(tensor->dimensions, tensor->shape, exported->strides, each, &size))
        size = SIZE_MAX;
    return weir__buffer_check_range(buffer,
                                    &(struct weir__role){"weir_dlpack_export", "the tensor"},
                                    tensor->offset, size, NULL, 0);
}

static weir_status fill_place(const struct weir_tensor *from, DLTensor *to)
{
    struct weir_native_device device = {0};
    struct weir_native_buffer native = {0};
    weir_buffer *buffer = from->buffer;

    const bool managed = buffer->placement == WEIR_PLACE_MANAGED;
    weir_status status = WEIR_OK;
    if (buffer->placement == WEIR_PLACE_DEVICE || (managed && buffer->member.device->limits.native))
        status = native_device(buffer->member.device, "weir_dlpack_export",
                               buffer->member.object.label, &device);
    // Only CUDA has a type for memory of both; elsewhere MANAGED memory is the host's.
    if (status == WEIR_OK &&
        (buffer->placement == WEIR_PLACE_HOST || (managed && device.dlpack != kDLCUDA))) {
        to->device = (DLDevice){.device_type = kDLCPU};
        to->data = buffer->pointer + from->offset;
        return WEIR_OK;
    }
    if (status == WEIR_OK)
        status = weir_buffer_get_native(buffer, &native);
    if (status < 0)
        return status;
    if (device.dlpack == 0)
        return weir__fail_at(NULL, 0, buffer->member.object.label, WEIR_ERROR_UNSUPPORTED,
                             "copy it to a HOST buffer and export that",
                             "weir_dlpack_export: DLPack has no type for devices of '%s'",
                             device.api);
    to->device = (DLDevice){(DLDeviceType)device.dlpack, device.ordinal};
    if (native.memory) {
        to->data = native.memory;
        to->byte_offset = native.offset + from->offset;
    } else {
        to->data = (void *)(uintptr_t)(native.address + from->offset);
    }
    return WEIR_OK;
}

static weir_status export_tensor(const struct weir_tensor *tensor,
                                 struct DLManagedTensor **out_tensor)
{
    const char *label = tensor->buffer->member.object.label;
    const uint32_t lanes = tensor->lanes ? tensor->lanes : 1;
    if (tensor->buffer->block)
        return weir__invalid(
            label, "copy it into a buffer of weir_buffer_create()",
            "weir_dlpack_export: the buffer is of a pool, which may give its memory to "
            "others while the tensor is used");
    TRY(check_element("weir_dlpack_export", label, tensor->element, tensor->bits, lanes));
    TRY(check_shape("weir_dlpack_export", label, tensor->dimensions, tensor->shape));
    TRY(check_strides(label, tensor));
    if (tensor->bits > UINT8_MAX || lanes > UINT16_MAX)
        return weir__invalid(label, NULL,
                             "weir_dlpack_export: DLPack has no elements of %" PRIu32
                             " lanes of %" PRIu32 " bits",
                             lanes, tensor->bits);

    struct exported *exported = weir__allocate(sizeof *exported);
    if (!exported)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a tensor");
    weir_status status = fill_layout(tensor, exported);
    if (status == WEIR_OK)
        status = fill_place(tensor, &exported->tensor.dl_tensor);
    if (status < 0) {
        weir__release(exported);
        return status;
    }
    DLTensor *to = &exported->tensor.dl_tensor;
    to->ndim = (int)tensor->dimensions;
    to->dtype = (DLDataType){(uint8_t)tensor->element, (uint8_t)tensor->bits, (uint16_t)lanes};
    to->shape = exported->shape;
    to->strides = exported->strides;
    exported->tensor.manager_ctx = exported;
    exported->tensor.deleter = end_export;
    exported->buffer = tensor->buffer;
    atomic_fetch_add(&tensor->buffer->holders, 1);
    *out_tensor = &exported->tensor;
    return WEIR_OK;
}

weir_status weir_dlpack_export_at(const struct weir_tensor *tensor,
                                  struct DLManagedTensor **out_tensor, const char *file, int line)
{
    struct weir_tensor known;
    WEIR_REFUSE_FORK_AT(file, line);
    WEIR_REQUIRE_AT(file, line, NULL, out_tensor);
    *out_tensor = NULL;
    WEIR_REQUIRE_AT(file, line, NULL, tensor);
    WEIR_READ_PARAMS(file, line, weir_tensor, tensor, &known);
    WEIR_ENTER_AT(file, line, tensor->buffer);
    return weir__placed(export_tensor(tensor, out_tensor), file, line);
}

// Import.

static weir_status check_dense(const char *label, const DLTensor *tensor, int64_t *out_count)
{
    int64_t dense[WEIR_TENSOR_DIMENSIONS];
    const uint32_t dimensions = (uint32_t)tensor->ndim;

    *out_count = dense_strides(dimensions, tensor->shape, dense);
    if (*out_count == 0)
        return weir__invalid(label, "skip it", "weir_dlpack_import: the tensor has no elements");
    if (*out_count < 0)
        return weir__invalid(label, NULL,
                             "weir_dlpack_import: the tensor has more than 2^63 elements");
    for (uint32_t i = 0; tensor->strides && i < dimensions; i++)
        // The stride of a single row is never used.
        if (tensor->shape[i] > 1 && tensor->strides[i] != dense[i])
            return weir__invalid(label, "copy it into a dense one first: contiguous() in PyTorch",
                                 "weir_dlpack_import: the stride of dimension %" PRIu32
                                 " is %" PRId64 ", and that of a dense tensor %" PRId64,
                                 i, tensor->strides[i], dense[i]);
    return WEIR_OK;
}

static weir_status check_tensor(const char *label, const DLTensor *tensor, int64_t *out_count)
{
    static const char function[] = "weir_dlpack_import";
    TRY(check_element(function, label, tensor->dtype.code, tensor->dtype.bits,
                      tensor->dtype.lanes));
    TRY(check_shape(function, label, tensor->ndim, tensor->shape));
    TRY(check_dense(label, tensor, out_count));
    return !tensor->data ? weir__invalid(label, "import a tensor that has memory",
                                         "%s: the tensor's data is NULL", function)
                         : WEIR_OK;
}

static weir_status set_host(weir_device *device, const DLTensor *tensor,
                            struct weir_buffer_setup *setup)
{
    struct weir_native_device native = {0};
    setup->placement = WEIR_PLACE_HOST;
    if (device->limits.native && tensor->device.device_type == kDLCUDAHost) {
        TRY(native_device(device, "weir_dlpack_import", "", &native));
    }
    // CUDA cannot pin memory that is already pinned.
    if (native.dlpack == kDLCUDA)
        setup->native = (uintptr_t)tensor->data;
    else
        setup->user_pointer = tensor->data;
    return WEIR_OK;
}

static weir_status set_device(weir_device *device, const char *label, const DLTensor *tensor,
                              struct weir_buffer_setup *setup)
{
    const int type = (int)tensor->device.device_type;
    struct weir_native_device native = {0};
    char what[64];
    snprintf(what, sizeof what, "weir_dlpack_import of device type %d", type);
    TRY(native_device(device, what, label, &native));
    if (type != native.dlpack)
        return weir__invalid(
            label, "open a device of the tensor's backend, or move it to the host first",
            "weir_dlpack_import: the tensor is on a device of DLPack's device type %d, "
            "and memory of '%s' is of type %d",
            type, device->info.name, native.dlpack);
    // Every library numbers OpenCL devices differently; the driver checks the context.
    if (type != kDLOpenCL && tensor->device.device_id != native.ordinal)
        return weir__invalid(
            label, "use the device that the tensor is on",
            "weir_dlpack_import: the tensor is on device %d, and '%s' is device %d",
            tensor->device.device_id, device->info.name, native.ordinal);
    setup->placement = WEIR_PLACE_DEVICE;
    setup->native = (uintptr_t)tensor->data;
    return WEIR_OK;
}

static void end_import(void *user)
{
    DLManagedTensor *tensor = user;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

// `*out_tensor` is as large as this library's structure.
static weir_status import_tensor(weir_device *device, const char *label,
                                 struct DLManagedTensor *tensor, struct weir_tensor *out_tensor)
{
    const DLTensor *from = &tensor->dl_tensor;
    int64_t count = 0;
    TRY(check_tensor(label, from, &count));

    uint64_t size;
    const uint64_t each = element_bytes(from->dtype.bits, from->dtype.lanes);
    const DLDeviceType type = from->device.device_type;
    const bool is_of_host = type == kDLCPU || type == kDLCUDAHost;
    struct weir_buffer_setup setup = {.struct_size = sizeof setup};
    weir_buffer *buffer = NULL;
    if (__builtin_mul_overflow((uint64_t)count, each, &size) ||
        __builtin_add_overflow(size, from->byte_offset, &size))
        size = UINT64_MAX;
    setup.size = (size_t)size;
    TRY(is_of_host ? set_host(device, from, &setup) : set_device(device, label, from, &setup));
    TRY(weir__buffer_make(device, label, &setup, false, &buffer));
    buffer->gone = end_import;
    buffer->gone_user = tensor;
    *out_tensor = (struct weir_tensor){
        .struct_size = sizeof *out_tensor,
        .buffer = buffer,
        .offset = (size_t)from->byte_offset,
        .element = (weir_element)from->dtype.code,
        .bits = from->dtype.bits,
        .lanes = from->dtype.lanes,
        .dimensions = (uint32_t)from->ndim,
        .shape = from->shape,
        .strides = from->strides,
    };
    return WEIR_OK;
}

weir_status weir_dlpack_import_at(weir_device *device, const char *label,
                                  struct DLManagedTensor *tensor, struct weir_tensor *out_tensor,
                                  const char *file, int line)
{
    struct weir_tensor known = {.struct_size = sizeof known};
    WEIR_LOOK_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, label, out_tensor);
    const size_t room = out_tensor->struct_size;
    if (room < sizeof room || room > WEIR_SIZED_BYTES_MAX)
        return weir__fail_at(
            file, line, label, WEIR_ERROR_INVALID, "start from = {.struct_size = sizeof tensor}",
            "weir_dlpack_import: struct_size is %zu, but struct weir_tensor has %zu "
            "bytes in this library",
            room, sizeof *out_tensor);
    weir_sized_write_back(out_tensor, room, &known, sizeof known);
    WEIR_REQUIRE_AT(file, line, label, device);
    WEIR_REQUIRE_AT(file, line, label, tensor);
    const weir_status status = import_tensor(device, label, tensor, &known);
    if (status == WEIR_OK) {
        weir__member_place(&known.buffer->member, file, line);
        weir_sized_write_back(out_tensor, room, &known, sizeof known);
    }
    return weir__placed(status, file, line);
}
