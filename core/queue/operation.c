// See the header. Written so that nothing wraps, and so that the common case has no
// taken branches.
#include "core/queue/operation_parts.h"

#include <stdio.h>

#include "core/object/device.h"
#include "core/object/peer.h"
#include "core/support/error.h"

static const char *const operation_names[] = {
    [WEIR_OPERATION_COPY] = "copy",           [WEIR_OPERATION_COPY_2D] = "copy_2d",
    [WEIR_OPERATION_FILL] = "fill",           [WEIR_OPERATION_LAUNCH] = "launch",
    [WEIR_OPERATION_HOST_CALL] = "host call", [WEIR_OPERATION_RECORD] = "record",
    [WEIR_OPERATION_WAIT] = "wait",           [WEIR_OPERATION_GRAPH] = "graph",
    [WEIR_OPERATION_NATIVE] = "native call",  [WEIR_OPERATION_POOL_ALLOCATE] = "pool allocate",
    [WEIR_OPERATION_POOL_FREE] = "pool free", [WEIR_OPERATION_FILL_2D] = "fill_2d",
    [WEIR_OPERATION_COPY_3D] = "copy_3d",     [WEIR_OPERATION_COLLECTIVE] = "collective",
};

const char *weir__operation_name(enum weir_operation_kind kind)
{
    const size_t count = sizeof operation_names / sizeof *operation_names;
    return (size_t)kind < count && operation_names[kind] ? operation_names[kind] : "unknown kind";
}

bool weir__is_device_work(enum weir_operation_kind kind)
{
    switch (kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_COPY_2D:
    case WEIR_OPERATION_COPY_3D:
    case WEIR_OPERATION_FILL:
    case WEIR_OPERATION_FILL_2D:
    case WEIR_OPERATION_LAUNCH:
        return true;
    default:
        return false;
    }
}

static weir_status check_range(const struct weir__caller *caller, const struct weir__role *role,
                               const weir_buffer *buffer, size_t offset, size_t size)
{
    if (weir__buffer_holds(buffer, offset, size))
        return WEIR_OK;
    return weir__buffer_refuse_range(buffer, role, offset, size, caller->file, caller->line);
}

// Two devices may have one name, and so have two runtimes' and one that is opened twice.
WEIR_COLD static weir_status refuse_device(const struct weir__caller *caller,
                                           const struct weir__role *role, const weir_buffer *buffer)
{
    const weir_device *device = buffer->member.device;
    const char *label = buffer->member.object.label;
    const char *queue = weir__label_shown(caller->label);
    if (device->runtime != caller->device->runtime)
        return weir__fail_at(caller->file, caller->line, label, WEIR_ERROR_INVALID,
                             "open both devices in one runtime",
                             "%s: %s belongs to device '%s' of another runtime than queue '%s'",
                             role->call, role->name, device->info.name, queue);
    if (device->index == caller->device->index)
        return weir__fail_at(caller->file, caller->line, label, WEIR_ERROR_INVALID,
                             "open the device once, or copy through HOST buffers",
                             "%s: %s belongs to device '%s' as it was opened another time than for "
                             "queue '%s'",
                             role->call, role->name, device->info.name, queue);
    return weir__fail_at(caller->file, caller->line, label, WEIR_ERROR_INVALID,
                         "copy through a HOST buffer of each device",
                         "%s: %s belongs to device '%s' (index %zu), queue '%s' to '%s' (index "
                         "%zu)",
                         role->call, role->name, device->info.name, device->index, queue,
                         caller->device->info.name, caller->device->index);
}

weir_status weir__operation_check_buffer(const struct weir__caller *caller,
                                         const struct weir__role *role, const weir_buffer *buffer,
                                         size_t offset, size_t size)
{
    if (!buffer)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "create it first; destroying it sets the pointer to NULL",
                             "%s: %s is no buffer (NULL)", role->call, role->name);
    if (buffer->member.device != caller->device)
        return refuse_device(caller, role, buffer);
    return check_range(caller, role, buffer, offset, size);
}

weir_status weir__operation_check_side(const struct weir__caller *caller,
                                       const struct weir__role *role, const weir_buffer *buffer,
                                       size_t offset, size_t size, const weir_buffer *other)
{
    if (!buffer || !other || buffer->member.device == caller->device)
        return weir__operation_check_buffer(caller, role, buffer, offset, size);
    if (other->member.device != caller->device)
        return weir__fail_at(caller->file, caller->line, buffer->member.object.label,
                             WEIR_ERROR_INVALID, "use a queue of the device of one of the two",
                             "%s: neither buffer of the copy belongs to device '%s' of queue '%s'",
                             role->call, caller->device->info.name,
                             weir__label_shown(caller->label));
    if (!caller->peers && weir_device_can_peer(caller->device, buffer->member.device))
        return weir__fail_at(caller->file, caller->line, buffer->member.object.label,
                             WEIR_ERROR_INVALID, "submit it before or after the graph's launch",
                             "%s: a graph holds no copies between devices, and %s belongs to '%s'",
                             role->call, role->name, buffer->member.device->info.name);
    bool allowed;
    weir_status status = weir__peer_allow(caller->device, buffer->member.device, &allowed);
    if (status < 0)
        weir__error_place(status, buffer->member.object.label, caller->file, caller->line);
    else if (allowed)
        status = check_range(caller, role, buffer, offset, size);
    else
        status = refuse_device(caller, role, buffer);
    return status;
}

static bool overlap(size_t a, size_t b, size_t size)
{
    return a < b ? b - a < size : a - b < size;
}

weir_status weir__operation_copy(const struct weir__caller *caller, weir_buffer *dst,
                                 size_t dst_offset, weir_buffer *src, size_t src_offset,
                                 size_t size, struct weir_operation *out_operation)
{
    static const struct weir__role to = {"copy", "dst"}, from = {"copy", "src"};
    weir_status status = weir__operation_check_side(caller, &to, dst, dst_offset, size, src);
    if (status < 0)
        return status;
    status = weir__operation_check_side(caller, &from, src, src_offset, size, dst);
    if (status < 0)
        return status;
    if (dst == src && overlap(dst_offset, src_offset, size))
        return weir__fail_at(caller->file, caller->line, dst->member.object.label,
                             WEIR_ERROR_INVALID, "copy through a second buffer",
                             "copy of %zu bytes from offset %zu to %zu of one buffer: the ranges "
                             "overlap",
                             size, src_offset, dst_offset);

    weir__operation_begin(out_operation, WEIR_OPERATION_COPY, size ? 0 : WEIR_OPERATION_EMPTY,
                          caller->file, caller->line);
    out_operation->u.copy.dst = dst;
    out_operation->u.copy.src = src;
    out_operation->u.copy.dst_offset = dst_offset;
    out_operation->u.copy.src_offset = src_offset;
    out_operation->u.copy.size = size;
    return WEIR_OK;
}
weir_status weir__operation_check_pattern(const struct weir__caller *caller, const char *what,
                                          size_t pattern_size)
{
    if (pattern_size > 0 && pattern_size <= 16 && (pattern_size & (pattern_size - 1)) == 0)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                         "pass sizeof of the value that is repeated",
                         "%s: a pattern has 1, 2, 4, 8 or 16 bytes, not %zu", what, pattern_size);
}

weir_status weir__operation_fill(const struct weir__caller *caller, weir_buffer *dst,
                                 size_t dst_offset, size_t size, const void *pattern,
                                 size_t pattern_size, struct weir_operation *out_operation)
{
    static const struct weir__role to = {"fill", "dst"};
    weir_status status = weir__operation_check_pattern(caller, to.call, pattern_size);
    if (status == WEIR_OK)
        status = weir__operation_check_buffer(caller, &to, dst, dst_offset, size);
    if (status < 0)
        return status;
    if (dst_offset % pattern_size || size % pattern_size)
        return weir__fail_at(caller->file, caller->line, dst->member.object.label,
                             WEIR_ERROR_INVALID, "offset and size count bytes, not patterns",
                             "fill: offset %zu and size %zu must be multiples of the pattern's %zu "
                             "bytes",
                             dst_offset, size, pattern_size);

    weir__operation_begin(out_operation, WEIR_OPERATION_FILL, size ? 0 : WEIR_OPERATION_EMPTY,
                          caller->file, caller->line);
    out_operation->u.fill.dst = dst;
    out_operation->u.fill.dst_offset = dst_offset;
    out_operation->u.fill.size = size;
    out_operation->u.fill.pattern = pattern;
    out_operation->u.fill.pattern_size = pattern_size;
    return WEIR_OK;
}
static weir_status check_native_argument(const struct weir__caller *caller, size_t index,
                                         const struct weir_argument *argument)
{
    char name[32];
    const struct weir__role role = {"native call", name};
    snprintf(name, sizeof name, "argument %zu", index);
    if (argument->kind != WEIR_PARAMETER_BUFFER)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "give values to the function through `user`",
                             "native call: %s is no buffer", name);
    if (argument->access < WEIR_ACCESS_READ || argument->access > WEIR_ACCESS_READ_WRITE)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "make arguments with weir_in(), weir_out() or weir_inout()",
                             "native call: access %d of %s is none of weir_access",
                             (int)argument->access, name);
    return weir__operation_check_buffer(caller, &role, argument->buffer, argument->offset,
                                        argument->size);
}

weir_status weir__operation_native(const struct weir__caller *caller, weir_native_function function,
                                   void *user, const struct weir_argument *arguments,
                                   size_t argument_count, struct weir_operation *out_operation)
{
    for (size_t i = 0; i < argument_count; i++) {
        weir_status status = check_native_argument(caller, i, &arguments[i]);
        if (status < 0)
            return status;
    }
    weir__operation_begin(out_operation, WEIR_OPERATION_NATIVE, 0, caller->file, caller->line);
    out_operation->u.native.function = function;
    out_operation->u.native.user = user;
    out_operation->u.native.arguments = arguments;
    out_operation->u.native.argument_count = argument_count;
    return WEIR_OK;
}
