// Getters of kernels, and the check of a launch's arguments against the kernel's signature.
#include "core/object/program.h"

#include <inttypes.h>

#include "base/text.h"
#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/object/peer.h"
#include "core/support/error.h"

const struct weir_kernel_signature *weir_kernel_get_signature(const weir_kernel *kernel)
{
    return kernel ? kernel->signature : NULL;
}

const struct weir_kernel_info *weir_kernel_get_info(const weir_kernel *kernel)
{
    return kernel ? &kernel->info : NULL;
}

weir_kernel *weir__kernel_on(weir_kernel *kernel, const weir_device *device)
{
    weir_kernel *at = kernel;
    while (at && at->member.device != device)
        at = at->next != kernel ? at->next : NULL;
    return at;
}

weir_kernel *weir_kernel_on(weir_kernel *kernel, const weir_device *device)
{
    return kernel ? weir__kernel_on(kernel, device) : NULL;
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
    return weir__fail_at(place->file, place->line, place->kernel->member.object.label,
                         WEIR_ERROR_INVALID, remedy,
                         "launch: parameter %zu, '%s', is %s %s; it got %s", place->index,
                         place->parameter->name, article(place->parameter->type_name),
                         place->parameter->type_name, got);
}

static bool same_family(weir_scalar wanted, weir_scalar given)
{
    // Integers of one size convert silently in C too, and literals are signed.
    bool wanted_float = wanted == WEIR_SCALAR_F32 || wanted == WEIR_SCALAR_F64;
    bool given_float = given == WEIR_SCALAR_F32 || given == WEIR_SCALAR_F64;
    return wanted == WEIR_SCALAR_OTHER || given == WEIR_SCALAR_OTHER || wanted_float == given_float;
}

static weir_status check_value(const struct place *place, const struct weir_argument *argument)
{
    static const char *const names[] = {
        "a value",         "a char", "an unsigned char", "a short", "an unsigned short", "an int",
        "an unsigned int", "a long", "an unsigned long", "a float", "a double"};
    const struct weir_parameter *parameter = place->parameter;

    if ((unsigned)argument->scalar > WEIR_SCALAR_F64)
        return refuse(place, "an argument whose scalar type is none of weir_scalar", NULL);
    // Without a pointer the bytes are in `bits`, which holds scalars only.
    if (!argument->pointer && (argument->scalar == WEIR_SCALAR_OTHER || argument->size > 8))
        return refuse(place, "a value at NULL", "pass the address of the value");
    if (argument->size != parameter->size)
        return argument->scalar == WEIR_SCALAR_F64 && parameter->scalar == WEIR_SCALAR_F32
                   ? refuse(place, "a double", "write the constant with an f: 2.0f")
                   : weir__fail_at(place->file, place->line, place->kernel->member.object.label,
                                   WEIR_ERROR_INVALID, "cast it to the parameter's type",
                                   "launch: parameter %zu, '%s', is %s %s of %" PRIu32
                                   " bytes; it got %s of %zu bytes",
                                   place->index, parameter->name, article(parameter->type_name),
                                   parameter->type_name, parameter->size, names[argument->scalar],
                                   argument->size);
    if (!same_family(parameter->scalar, argument->scalar))
        return refuse(place, names[argument->scalar], "cast it to the parameter's type");
    return WEIR_OK;
}

// A buffer of another device than the kernel's.
WEIR_COLD static weir_status check_reach(const struct place *place, weir_buffer *buffer)
{
    weir_device *device = place->kernel->member.device;
    weir_device *owner = buffer->member.device;
    bool reaches = false;
    weir_status status = place->peers ? weir__peer_reach(device, buffer, &reaches) : WEIR_OK;
    if (status < 0) {
        weir__error_place(place->kernel->member.object.label, place->file, place->line);
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
    if (place->parameter->writable && argument->access == WEIR_ACCESS_READ)
        return refuse(place, "weir_in()",
                      "pass it with weir_out() or weir_inout(), or declare the parameter const");
    if (!weir__buffer_holds(buffer, argument->offset, argument->size))
        return weir__buffer_refuse_range(buffer, place->parameter->name, argument->offset,
                                         argument->size, place->file, place->line);
    if (argument->size == 0)
        return refuse(place, "an empty range", "give it the bytes that the kernel uses");
    if (argument->offset != 0 && limits->argument_alignment_bytes &&
        argument->offset % limits->argument_alignment_bytes)
        return weir__fail_at(place->file, place->line, buffer->member.object.label,
                             WEIR_ERROR_INVALID, "align it, or pass the offset as a value",
                             "launch: parameter %zu, '%s': offset %zu is no multiple of %" PRIu64
                             ", limits.argument_alignment_bytes",
                             place->index, place->parameter->name, argument->offset,
                             limits->argument_alignment_bytes);
    if (buffer->placement == WEIR_PLACE_HOST && !limits->host_in_kernels)
        return refuse(place, "a HOST buffer",
                      "copy it to a DEVICE buffer first, or ask "
                      "limits.host_in_kernels");
    return WEIR_OK;
}

static weir_status check_argument(const struct place *place, const struct weir_argument *argument)
{
    static const char *const kinds[] = {"nothing", "a buffer", "a value", "local memory"};
    static const char *const remedies[] = {
        [WEIR_PARAMETER_BUFFER] = "pass weir_in(), weir_out() or weir_inout()",
        [WEIR_PARAMETER_VALUE] = "pass the value itself, or weir_value()",
        [WEIR_PARAMETER_LOCAL] = "it is local memory: pass weir_local()",
    };

    if (argument->kind != place->parameter->kind)
        return refuse(place, kinds[argument->kind & 3], remedies[place->parameter->kind & 3]);
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

static weir_status refuse_count(const weir_kernel *kernel, size_t argument_count, const char *file,
                                int line)
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

weir_status weir__kernel_check(const weir_kernel *kernel, const struct weir_argument *arguments,
                               size_t argument_count, bool peers, const char *file, int line)
{
    const struct weir_kernel_signature *signature = kernel->signature;

    if (argument_count != signature->parameter_count)
        return refuse_count(kernel, argument_count, file, line);
    struct place place = {kernel, signature->parameters, 0, peers, file, line};
    const size_t stride = argument_count > 0 ? signature->parameters->struct_size : 0;
    bool local = false;
    for (; place.index < argument_count; place.index++) {
        weir_status status = check_argument(&place, &arguments[place.index]);
        if (status < 0)
            return status;
        local = local || place.parameter->kind == WEIR_PARAMETER_LOCAL;
        place.parameter = (const void *)((const char *)place.parameter + stride);
    }
    return local ? check_local(kernel, arguments, argument_count, file, line) : WEIR_OK;
}
