// Getters of kernels, and the check of a launch's arguments against the kernel's signature.
#include "core/object/program.h"

#include <inttypes.h>

#include "core/object/buffer.h"
#include "core/object/device.h"

// What a check returns of a bool that is valid once it is widened.
#define WIDEN ((weir_status)100)

const struct weir_kernel_signature *weir_kernel_get_signature(const weir_kernel *kernel)
{
    return WEIR_IS_ALIVE(kernel) ? kernel->signature : NULL;
}

const struct weir_kernel_info *weir_kernel_get_info(const weir_kernel *kernel)
{
    return WEIR_IS_ALIVE(kernel) ? &kernel->info : NULL;
}

weir_kernel *weir__kernel_on(weir_kernel *kernel, const weir_device *device)
{
    weir_kernel *at = kernel->member.device == device ? kernel : kernel->first;
    while (at && at->member.device != device)
        at = at->next;
    return at;
}

weir_kernel *weir_kernel_on(weir_kernel *kernel, const weir_device *device)
{
    return WEIR_IS_ALIVE(kernel) ? weir__kernel_on(kernel, device) : NULL;
}

// The argument that is being checked, for its message.
struct place {
    const weir_kernel *kernel;
    const struct weir_parameter *parameter;
    size_t index;
    bool peers;
    const char *file;
    int line;
};

WEIR_COLD static const char *article(const char *type)
{
    return type[0] == 'i' || (type[0] == 'u' && type[1] == 'n') ? "an" : "a";
}

WEIR_COLD static weir_status refuse(const struct place *place, const char *got, const char *remedy)
{
    return weir__refuse(place, place->kernel->member.object.label, remedy,
                        "launch: parameter %zu, '%s', is %s %s; it got %s", place->index,
                        place->parameter->name, article(place->parameter->type_name),
                        place->parameter->type_name, got);
}

static const char *const value_names[] = {
    [WEIR_SCALAR_OTHER] = "a value",         [WEIR_SCALAR_I8] = "a char",
    [WEIR_SCALAR_U8] = "an unsigned char",   [WEIR_SCALAR_I16] = "a short",
    [WEIR_SCALAR_U16] = "an unsigned short", [WEIR_SCALAR_I32] = "an int",
    [WEIR_SCALAR_U32] = "an unsigned int",   [WEIR_SCALAR_I64] = "a long",
    [WEIR_SCALAR_U64] = "an unsigned long",  [WEIR_SCALAR_F32] = "a float",
    [WEIR_SCALAR_F64] = "a double",          [WEIR_SCALAR_F16] = "a half",
    [WEIR_SCALAR_BOOL] = "a bool",           [WEIR_SCALAR_POINTER] = "a pointer",
};

static bool is_integer(weir_scalar scalar)
{
    return scalar >= WEIR_SCALAR_I8 && scalar <= WEIR_SCALAR_U64;
}

// Integers of one size convert silently in C too, and literals are signed.
static bool is_compatible(weir_scalar wanted, weir_scalar given)
{
    return wanted == given || wanted == WEIR_SCALAR_OTHER || given == WEIR_SCALAR_OTHER ||
           (is_integer(wanted) && (is_integer(given) || given == WEIR_SCALAR_BOOL));
}

WEIR_COLD static const char *remedy_of_type(weir_scalar wanted, weir_scalar given)
{
    if (wanted == WEIR_SCALAR_F32 && given == WEIR_SCALAR_F64)
        return "write the constant with an f: 2.0f";
    if (wanted == WEIR_SCALAR_F16)
        return "pass weir_half(), or a _Float16";
    if (wanted == WEIR_SCALAR_BOOL)
        return "cast it to bool: the constants true and false of C are ints";
    return "cast it to the parameter's type";
}

// A value of another size than the parameter's, which only a bool may have.
WEIR_COLD static weir_status check_other_size(const struct place *place,
                                              const struct weir_argument *argument)
{
    const struct weir_parameter *parameter = place->parameter;
    const char *remedy = remedy_of_type(parameter->scalar, argument->scalar);
    if (argument->scalar == WEIR_SCALAR_BOOL && !argument->pointer && argument->size == 1 &&
        is_integer(parameter->scalar) &&
        place->kernel->signature->parameter_count <= WEIR__WIDEN_LIMIT)
        return WIDEN;
    if (argument->scalar == WEIR_SCALAR_F64 && parameter->scalar == WEIR_SCALAR_F32)
        return refuse(place, value_names[WEIR_SCALAR_F64], remedy);
    return weir__refuse(place, place->kernel->member.object.label, remedy,
                        "launch: parameter %zu, '%s', is %s %s of %" PRIu32
                        " bytes; it got %s of %zu bytes",
                        place->index, parameter->name, article(parameter->type_name),
                        parameter->type_name, parameter->size, value_names[argument->scalar],
                        argument->size);
}

static bool is_vector(const struct weir_parameter *parameter)
{
    return parameter->width > 1;
}

// A vector of three has room for four, which CUDA C++ leaves out.
static bool vector_fits(const struct weir_parameter *parameter,
                        const struct weir_argument *argument)
{
    if (is_vector(parameter) &&
        (parameter->element != argument->scalar || parameter->width != argument->bits))
        return false;
    return parameter->size == argument->size || parameter->size == 0 ||
           (is_vector(parameter) && argument->bits == 3 &&
            parameter->size == argument->size / 4 * 3);
}

WEIR_COLD static weir_status check_vector(const struct place *place,
                                          const struct weir_argument *argument)
{
    static const char *const elements[] = {"?",      "char", "uchar", "short",  "ushort",
                                           "int",    "uint", "long",  "ulong",  "float",
                                           "double", "half", "bool",  "pointer"};
    char got[96];
    if (vector_fits(place->parameter, argument))
        return WEIR_OK;
    snprintf(got, sizeof got, "a vector of %" PRIu64 " of %s, %zu bytes", argument->bits,
             elements[argument->scalar], argument->size);
    return refuse(place, got,
                  is_vector(place->parameter)
                      ? "give weir_vector() the parameter's element type, and as many values"
                      : "pass the value itself, or weir_value()");
}

// Images: a range, and after it a layout, by which kernels compute addresses.

#define IMAGE_LAYOUT "weir_image_layout"

static bool is_format(const struct weir_image_layout *layout)
{
    const uint32_t order = layout->format & 0xffff, type = layout->format >> 16;
    return (order == WEIR_ORDER_R || order == WEIR_ORDER_RG || order == WEIR_ORDER_RGBA ||
            (order == WEIR_ORDER_BGRA && layout->pixel_bytes == 4)) &&
           ((type >= WEIR_CHANNEL_SNORM_INT8 && type <= WEIR_CHANNEL_UNORM_INT16) ||
            (type >= WEIR_CHANNEL_SIGNED_INT8 && type <= WEIR_CHANNEL_FLOAT)) &&
           layout->pixel_bytes ==
               weir_image_2d((weir_channel_order)order, (weir_channel_type)type, 1, 1).pixel_bytes;
}

#define REFUSE_LAYOUT(remedy, format, ...)                                                     \
    weir__refuse(place, place->kernel->member.object.label, remedy,                            \
                 "launch: parameter %zu, '%s': " format, place->index, place->parameter->name, \
                 __VA_ARGS__)

static weir_status check_layout(const struct place *place, const struct weir_argument *argument)
{
    struct weir_image_layout at;
    memcpy(&at, argument->pointer, sizeof at);
    const uint64_t row = (uint64_t)at.width * at.pixel_bytes;
    const uint64_t slice = (uint64_t)at.row_pitch * (at.height - 1) + row;
    if (at.width == 0 || at.height == 0 || at.depth == 0)
        return REFUSE_LAYOUT("give it 1 in each dimension that it does not have",
                             "an image of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " pixels has none",
                             at.width, at.height, at.depth);
    if (at.width > INT32_MAX || at.height > INT32_MAX ||
        at.depth > INT32_MAX) // coordinates are ints
        return REFUSE_LAYOUT("use several images",
                             "an image of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                             " pixels; a dimension has %" PRId32 " at most",
                             at.width, at.height, at.depth, INT32_MAX);
    if (!is_format(&at))
        return REFUSE_LAYOUT("make it with weir_image_2d() or weir_image_3d()",
                             "0x%08" PRIx32 " is no format of pixels of %" PRIu32 " bytes",
                             at.format, at.pixel_bytes);
    if (at.row_pitch % at.pixel_bytes || at.slice_pitch % at.pixel_bytes ||
        (at.height > 1 && at.row_pitch < row) || (at.depth > 1 && at.slice_pitch < slice))
        return REFUSE_LAYOUT("give it larger pitches, in whole pixels",
                             "pitches of %" PRIu32 " and %" PRIu32 " bytes; a row has %" PRIu64
                             ", a slice %" PRIu64 ", and a pixel %" PRIu32,
                             at.row_pitch, at.slice_pitch, row, slice, at.pixel_bytes);
    const struct weir_argument *range = argument - (place->index > 0);
    const uint64_t bytes = (uint64_t)at.slice_pitch * (at.depth - 1) + slice;
    if (range->kind != WEIR_PARAMETER_BUFFER || bytes > range->size || bytes > UINT32_MAX)
        return REFUSE_LAYOUT("pass a larger range, by weir_image_in() or its like",
                             "an image of %" PRIu64 " bytes in a range of %zu; images have %" PRIu32
                             " at most",
                             bytes, range->size, UINT32_MAX);
    return WEIR_OK;
}
#undef REFUSE_LAYOUT

// All but a scalar of exactly the parameter's type.
static weir_status check_other_value(const struct place *place,
                                     const struct weir_argument *argument)
{
    const struct weir_parameter *parameter = place->parameter;
    const weir_scalar given = argument->scalar;

    if ((unsigned)given > WEIR_SCALAR_POINTER)
        return refuse(place, "an argument whose scalar type is none of weir_scalar",
                      "pass the value itself, or weir_value()");
    // Without a pointer the bytes are in `bits`, which holds scalars only.
    if (!argument->pointer && (given == WEIR_SCALAR_OTHER || argument->size > 8))
        return refuse(place, "a value at NULL", "pass the address of the value");
    // Also where it is passed as a vector of as many bytes.
    if (argument->pointer && argument->size == sizeof(struct weir_image_layout) &&
        strcmp(parameter->type_name, IMAGE_LAYOUT) == 0)
        return check_layout(place, argument);
    if (argument->pointer && given != WEIR_SCALAR_OTHER)
        return check_vector(place, argument);
    if (argument->size != parameter->size && parameter->size > 0)
        return check_other_size(place, argument);
    if (!is_compatible(parameter->scalar, given))
        return refuse(place, value_names[given], remedy_of_type(parameter->scalar, given));
    if (given != WEIR_SCALAR_OTHER && parameter->scalar == WEIR_SCALAR_OTHER &&
        (is_vector(parameter) || given == WEIR_SCALAR_POINTER))
        return refuse(place, value_names[given], "pass weir_vector() or weir_value()");
    return WEIR_OK;
}

static weir_status check_value(const struct place *place, const struct weir_argument *argument)
{
    if (argument->scalar == place->parameter->scalar && argument->size == place->parameter->size &&
        argument->scalar != WEIR_SCALAR_OTHER && !argument->pointer && argument->size <= 8)
        return WEIR_OK;
    return check_other_value(place, argument);
}

// An offset that is no multiple of limits.argument_alignment_bytes.
WEIR_COLD static weir_status check_offset(const struct place *place,
                                          const struct weir_argument *argument)
{
    const struct weir_parameter *parameter = place->parameter;
    const struct weir_limits *limits = &place->kernel->member.device->limits;
    const uint32_t least = parameter->alignment;
    char why[160] = "";

    if (limits->byte_offsets && least > 0 && argument->offset % least == 0)
        return WEIR_OK;
    if (limits->byte_offsets && least > 0)
        snprintf(why, sizeof why, "of %" PRIu32 ", the alignment of %s %s", least,
                 article(parameter->type_name), parameter->type_name);
    else
        snprintf(why, sizeof why, "of %" PRIu64 ", limits.argument_alignment_bytes%s",
                 limits->argument_alignment_bytes,
                 limits->byte_offsets ? ", and the alignment of its type is not known" : "");
    return weir__refuse(place, argument->buffer->member.object.label,
                        "align it, or pass the offset as a value",
                        "launch: parameter %zu, '%s': offset %zu is no multiple %s", place->index,
                        parameter->name, argument->offset, why);
}

// A buffer of another device than the kernel's.
WEIR_COLD static weir_status check_reach(const struct place *place, weir_buffer *buffer)
{
    weir_device *device = place->kernel->member.device;
    weir_device *owner = buffer->member.device;
    bool reaches = false;
    weir_status status = place->peers ? weir__peer_allow(device, owner, &reaches) : WEIR_OK;
    if (status >= 0 && reaches)
        status = device->first->ops->device_reach(device->first, device, owner, buffer, &reaches);
    if (status < 0) {
        weir__error_place(status, place->kernel->member.object.label, place->file, place->line);
        return status;
    }
    if (reaches)
        return WEIR_OK;
    if (!place->peers && weir_device_can_reach(device, owner))
        return refuse(place, "a buffer of another device, which a graph cannot hold",
                      "launch it before or after the graph");
    if (weir_device_can_reach(device, owner))
        return refuse(place, "adopted or wrapped memory of another device",
                      "copy it to a buffer of weir_buffer_create()");
    return refuse(place, "a buffer of another device",
                  "copy to a buffer of the kernel's device first, or ask "
                  "weir_device_can_reach()");
}

// Memory that begins at no multiple of 128, the largest alignment of a type: wrapped memory may
// begin anywhere.
WEIR_COLD static weir_status check_base(const struct place *place,
                                        const struct weir_argument *argument)
{
    const struct weir_parameter *parameter = place->parameter;
    const struct weir_limits *limits = &place->kernel->member.device->limits;
    const uint64_t least = parameter->alignment;
    const uint64_t enough = limits->argument_alignment_bytes;

    if (least == 0 || enough == 0 ||
        (uintptr_t)argument->buffer->pointer % (least < enough ? least : enough) == 0)
        return WEIR_OK;
    return weir__refuse(place, argument->buffer->member.object.label,
                        "wrap memory that is aligned for the kernel, or copy it to a buffer of "
                        "weir_buffer_create()",
                        "launch: parameter %zu, '%s': the buffer's memory begins at no multiple of "
                        "%" PRIu64 ", the alignment of %s %s",
                        place->index, parameter->name, least, article(parameter->type_name),
                        parameter->type_name);
}

WEIR_COLD static weir_status refuse_range(const struct place *place,
                                          const struct weir_argument *argument)
{
    char name[160];
    const struct weir__role role = {"launch", name};
    snprintf(name, sizeof name, "parameter %zu, '%s'", place->index, place->parameter->name);
    return weir__buffer_check_range(argument->buffer, &role, argument->offset, argument->size,
                                    place->file, place->line);
}

static weir_status check_range(const struct place *place, const struct weir_argument *argument)
{
    const weir_kernel *kernel = place->kernel;
    const weir_buffer *buffer = argument->buffer;
    const struct weir_limits *limits = &kernel->member.device->limits;

    if (!buffer)
        return refuse(place, "no buffer (NULL)",
                      "create it first; destroying it sets the pointer to NULL");
    if (buffer->member.device != kernel->member.device) {
        weir_status status = check_reach(place, argument->buffer);
        if (status < 0)
            return status;
    }
    if (argument->access < WEIR_ACCESS_READ || argument->access > WEIR_ACCESS_READ_WRITE)
        return refuse(place, "an argument whose access is none of weir_access",
                      "make it with weir_in(), weir_out() or weir_inout()");
    if (!place->parameter->writable && argument->access != WEIR_ACCESS_READ)
        return refuse(place, "weir_out() or weir_inout()", "pass it with weir_in()");
    if (!weir__buffer_holds(buffer, argument->offset, argument->size))
        return refuse_range(place, argument);
    if (argument->size == 0)
        return refuse(place, "an empty range", "give it the bytes that the kernel uses");
    if (argument->offset != 0 && limits->argument_alignment_bytes &&
        argument->offset % limits->argument_alignment_bytes) {
        TRY(check_offset(place, argument));
    }
    if ((uintptr_t)buffer->pointer % 128 != 0) {
        TRY(check_base(place, argument));
    }
    if (buffer->placement == WEIR_PLACE_HOST && !limits->host_in_kernels)
        return refuse(place, "a HOST buffer",
                      "copy it to a DEVICE buffer first, or ask "
                      "limits.host_in_kernels");
    return WEIR_OK;
}

// An argument of another kind than the parameter, which only NULL may be.
WEIR_COLD static weir_status check_other_kind(const struct place *place,
                                              const struct weir_argument *argument)
{
    static const char *const kinds[] = {"nothing", "a buffer", "a value", "local memory"};
    static const char *const remedies[] = {
        [WEIR_PARAMETER_BUFFER] = "pass weir_in(), weir_out() or weir_inout(), or weir_null()",
        [WEIR_PARAMETER_VALUE] = "pass the value itself, or weir_value()",
        [WEIR_PARAMETER_LOCAL] = "it is local memory: pass weir_local()",
    };
    const weir_parameter_kind wanted = place->parameter->kind;
    const bool pointer =
        argument->kind == WEIR_PARAMETER_VALUE && argument->scalar == WEIR_SCALAR_POINTER;

    if (pointer && wanted == WEIR_PARAMETER_BUFFER && argument->bits == 0 &&
        argument->size == sizeof(void *) && !argument->pointer)
        return WEIR_OK;
    return refuse(place,
                  !pointer             ? kinds[argument->kind & 3]
                  : argument->bits > 0 ? "a pointer of the host"
                                       : "NULL",
                  remedies[wanted & 3]);
}

static weir_status check_argument(const struct place *place, const struct weir_argument *argument)
{
    if (argument->kind != place->parameter->kind)
        return check_other_kind(place, argument);
    switch (argument->kind) {
    case WEIR_PARAMETER_BUFFER:
        return check_range(place, argument);
    case WEIR_PARAMETER_VALUE:
        return check_value(place, argument);
    case WEIR_PARAMETER_LOCAL:
        break;
    }
    if (argument->size == 0)
        return refuse(place, "0 bytes of local memory", "give weir_local() the block's bytes");
    return WEIR_OK;
}

// The kernel's own local memory and that of the arguments share one limit.
static weir_status check_local(const weir_kernel *kernel, const struct weir_argument *arguments,
                               size_t argument_count, const char *file, int line)
{
    const uint64_t limit = kernel->member.device->limits.max_local_bytes;
    uint64_t used = kernel->info.local_bytes;

    for (size_t i = 0; i < argument_count; i++) {
        if (arguments[i].kind != WEIR_PARAMETER_LOCAL)
            continue;
        const uint64_t start = weir__local_start(used);
        const uint64_t left = start < limit ? limit - start : 0;
        if (arguments[i].size > left)
            return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID,
                                 "use a smaller block, or less of it",
                                 "launch: parameter %zu, '%s', asks for %zu bytes of local memory; "
                                 "of the device's %" PRIu64 " this launch has %" PRIu64 " left",
                                 i, weir_signature_parameter(kernel->signature, (uint32_t)i)->name,
                                 arguments[i].size, limit, left);
        used = start + arguments[i].size;
    }
    return WEIR_OK;
}

WEIR_COLD static weir_status refuse_count(const weir_kernel *kernel, size_t argument_count,
                                          const char *file, int line)
{
    const struct weir_kernel_signature *signature = kernel->signature;
    char names[192] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        weir_text_append(names, sizeof names, &used, "%s%s", i ? ", " : "",
                         weir_signature_parameter(signature, i)->name);
    return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID,
                         "pass one for each, in the kernel's order",
                         "launch: %zu arguments; the kernel has %" PRIu32 " parameters%s%s",
                         argument_count, signature->parameter_count, names[0] ? ": " : "", names);
}

// Copies the arguments, with the bools widened.
static void widen(const weir_kernel *kernel, const struct weir_argument *arguments,
                  struct weir_argument *out_arguments)
{
    for (uint32_t i = 0; i < kernel->signature->parameter_count; i++) {
        const struct weir_parameter *parameter = weir_signature_parameter(kernel->signature, i);
        out_arguments[i] = arguments[i];
        if (arguments[i].scalar != WEIR_SCALAR_BOOL || !is_integer(parameter->scalar))
            continue;
        out_arguments[i].scalar = parameter->scalar;
        out_arguments[i].size = parameter->size;
    }
}

weir_status weir__kernel_check(const weir_kernel *kernel, const struct weir_argument **arguments,
                               size_t argument_count, bool peers,
                               struct weir_argument widened[WEIR__WIDEN_LIMIT], const char *file,
                               int line)
{
    const struct weir_kernel_signature *signature = kernel->signature;

    if (argument_count != signature->parameter_count)
        return refuse_count(kernel, argument_count, file, line);
    struct place place = {kernel, signature->parameters, 0, peers, file, line};
    const size_t stride = argument_count > 0 ? signature->parameters->struct_size : 0;
    bool local = false;
    bool wide = false;
    for (; place.index < argument_count; place.index++) {
        const weir_status status = check_argument(&place, &(*arguments)[place.index]);
        if (status != WEIR_OK) {
            if (status < 0)
                return status;
            wide = true;
        }
        local = local || place.parameter->kind == WEIR_PARAMETER_LOCAL;
        place.parameter = (const void *)((const char *)place.parameter + stride);
    }
    if (wide) {
        widen(kernel, *arguments, widened);
        *arguments = widened;
    }
    return local ? check_local(kernel, *arguments, argument_count, file, line) : WEIR_OK;
}
