// Buffers, and the host's access to them.
#include "core/buffer/buffer.h"

#include <inttypes.h>
#include <string.h>

#include <weir/buffer.h>
#include <weir/program.h>

#include "base/text.h"
#include "core/buffer/view.h"
#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/queue/host_call.h"
#include "core/queue/queue.h"
#include "core/queue/retire.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

size_t weir_buffer_size(const weir_buffer *buffer)
{
    return WEIR_IS_ALIVE(buffer) ? buffer->size : 0;
}

weir_placement weir_buffer_placement(const weir_buffer *buffer)
{
    return WEIR_IS_ALIVE(buffer) ? buffer->placement : WEIR_PLACE_DEVICE;
}

weir_status weir__buffer_make(weir_device *device, const char *label,
                              const struct weir_buffer_setup *setup, bool internal,
                              weir_buffer **out_buffer)
{
    weir__device_reap(device);
    weir_buffer *buffer = weir__member_allocate(device, &weir__buffer_class, sizeof *buffer, label);
    if (!buffer)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a buffer object");
    buffer->size = setup->size;
    buffer->placement = setup->placement;
    buffer->member.internal = internal;
    atomic_init(&buffer->holders, 1);

    void *pointer = NULL;
    weir_status status = weir__chain_buffer_create(device->chain, device, buffer, setup,
                                                   buffer->member.object.data, &pointer);
    if (status < 0) {
        weir__error_place(status, label, NULL, 0);
        weir__member_free(&buffer->member);
        return status;
    }
    buffer->pointer = pointer;
    weir__member_enlist(&buffer->member);
    *out_buffer = buffer;
    return WEIR_OK;
}

weir_status weir__buffer_check_size(weir_device *device, const char *label, size_t size)
{
    if (size == 0)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "set params.size",
                             "a buffer of 0 bytes was asked for");
    if (size > device->limits.max_buffer_bytes)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "split it into several buffers",
                             "a buffer of %zu bytes was asked for; the device's limit is %" PRIu64,
                             size, device->limits.max_buffer_bytes);
    return WEIR_OK;
}

static weir_status check_placement(const weir_device *device, const char *label,
                                   weir_placement placement)
{
    if (placement == WEIR_PLACE_MANAGED && !device->limits.managed_memory)
        return weir__fail_at(
            NULL, 0, label, WEIR_ERROR_UNSUPPORTED,
            "use a DEVICE buffer and a HOST buffer, with copies between them, or "
            "ask limits.managed_memory first",
            "weir_buffer_create: device '%s' has no MANAGED memory that the host may "
            "use while the device works",
            device->info.name);
    if ((unsigned)placement > WEIR_PLACE_MANAGED)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID,
                             "use WEIR_PLACE_DEVICE, WEIR_PLACE_HOST or WEIR_PLACE_MANAGED",
                             "weir_buffer_create: %d is no placement", (int)placement);
    return WEIR_OK;
}

// A HOST buffer over memory of the library's, of which the host uses a view. A plugin that looks at host
// accesses takes such memory for the program's. False: nothing was created.
WEIR_COLD static bool make_viewed(weir_device *device, const char *label,
                                  const struct weir_buffer_setup *setup, weir_buffer **out_buffer,
                                  const char *file, int line)
{
    struct weir_buffer_setup wrapped = *setup;
    struct weir__view *view =
        weir__takes_notes(device) ? NULL : weir__view_create(setup->size, &wrapped.user_pointer);
    const struct weir_error before = *weir_last_error();
    if (!view)
        return false;
    if (weir__buffer_make(device, label, &wrapped, false, out_buffer) < 0) {
        weir__error_set(&before);
        weir__view_close(view);
        weir__view_destroy(view);
        return false;
    }
    (*out_buffer)->view = view;
    weir__view_name(view, (*out_buffer)->member.object.label, file, line);
    return true;
}

weir_status weir_buffer_create_at(weir_device *device, const struct weir_buffer_params *params,
                                  weir_buffer **out_buffer, const char *file, int line)
{
    struct weir_buffer_params known;
    WEIR_REQUIRE_AT(file, line, NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_ENTER_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, NULL, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_buffer_params, params, &known);
    weir_status status = check_placement(device, params->label, params->placement);
    if (status == WEIR_OK)
        status = weir__buffer_check_size(device, params->label, params->size);
    if (status < 0)
        return weir__placed(status, file, line);
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = params->placement};
    if (!weir__debugging() || setup.placement != WEIR_PLACE_HOST ||
        !make_viewed(device, params->label, &setup, out_buffer, file, line))
        status = weir__buffer_make(device, params->label, &setup, false, out_buffer);
    if (status == WEIR_OK)
        weir__member_place(&(*out_buffer)->member, file, line);
    return weir__placed(status, file, line);
}

weir_status weir_buffer_wrap_at(weir_device *device, const struct weir_wrap_params *params,
                                weir_buffer **out_buffer, const char *file, int line)
{
    struct weir_wrap_params known;
    WEIR_REQUIRE_AT(file, line, NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_ENTER_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, NULL, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_wrap_params, params, &known);
    WEIR_REQUIRE_AT(file, line, params->label, params->pointer);
    weir_status status = weir__buffer_check_size(device, params->label, params->size);
    if (status == WEIR_OK && params->size > UINTPTR_MAX - (uintptr_t)params->pointer)
        status = weir__fail_at(file, line, params->label, WEIR_ERROR_INVALID,
                               "pass the memory's own size",
                               "weir_buffer_wrap: %zu bytes at %p go past the end of all addresses",
                               params->size, params->pointer);
    if (status < 0)
        return weir__placed(status, file, line);
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = WEIR_PLACE_HOST,
                                            .user_pointer = params->pointer};
    status = weir__buffer_make(device, params->label, &setup, false, out_buffer);
    if (status == WEIR_OK) {
        weir__debug_wraps(*out_buffer, params->pointer, params->size);
        weir__member_place(&(*out_buffer)->member, file, line);
    }
    return weir__placed(status, file, line);
}

void weir_buffer_destroy_at(weir_buffer **buffer, const char *file, int line)
{
    if (!buffer || !*buffer || !WEIR_MAY_END(*buffer, file, line))
        return;
    weir_buffer *gone = *buffer;
    *buffer = NULL;
    if (gone->lender && !gone->lender->forget(gone))
        return;
    weir__debug_end(gone, file, line);
    if (gone->view)
        weir__view_close(gone->view);
    atomic_store(&gone->abandoned, true);
    gone->size = 0; // what still has the pointer is refused, as long as the memory is kept
    weir__buffer_unhold(gone);
}

void weir__buffer_hold(weir_buffer *buffer)
{
    atomic_fetch_add(&buffer->holders, 1);
}

void weir__buffer_unhold(weir_buffer *buffer)
{
    if (atomic_fetch_sub(&buffer->holders, 1) == 1)
        weir__member_retire(&buffer->member);
}

bool weir__buffer_is_only_shared(const struct weir__member *member)
{
    const weir_buffer *buffer = (const weir_buffer *)(const void *)member;
    return member->class == &weir__buffer_class && atomic_load(&buffer->abandoned) &&
           atomic_load(&buffer->holders) > 0;
}

static void finalize(struct weir__member *member)
{
    weir_buffer *buffer = (weir_buffer *)(void *)member;
    void (*gone)(void *user) = buffer->gone;
    void *user = buffer->gone_user;
    weir__chain_buffer_destroy(buffer->member.device->chain, buffer);
    if (buffer->view)
        weir__view_destroy(buffer->view);
    weir__member_free(&buffer->member);
    if (gone)
        gone(user);
}

const struct weir__class weir__buffer_class = {.name = "buffer", .finalize = finalize};

static weir_status check_host_use(const char *function, weir_buffer *buffer, size_t offset,
                                  size_t size, weir_access access, const char *file, int line)
{
    WEIR_ENTER_OF(function, file, line, buffer);
    if (!buffer)
        return weir__fail_at(file, line, NULL, WEIR_ERROR_INVALID, weir__null_remedy("buffer"),
                             "%s: buffer is NULL", function);
    const char *label = buffer->member.object.label;
    if (buffer->placement == WEIR_PLACE_DEVICE)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "copy to a HOST buffer, or use weir_download()",
                             "%s: the host cannot use a DEVICE buffer's memory", function);
    if (access < WEIR_ACCESS_READ || access > WEIR_ACCESS_READ_WRITE)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "pass WEIR_ACCESS_READ or its kin",
                             "%s: access %d is none of weir_access", function, (int)access);
    return weir__buffer_check_range(buffer, &(struct weir__role){function, NULL}, offset, size,
                                    file, line);
}

weir_status weir_host_begin_at(weir_buffer *buffer, size_t offset, size_t size, weir_access access,
                               void **out_pointer, const char *file, int line)
{
    WEIR_REQUIRE_AT(file, line, NULL, out_pointer);
    *out_pointer = NULL;
    weir_status status =
        check_host_use("weir_host_begin", buffer, offset, size, access, file, line);
    if (status == WEIR_OK && weir__takes_notes(buffer->member.device))
        status = weir__host_note_access(WEIR_HOST_NOTE_BEGIN, buffer, offset, size, access,
                                        &(struct weir__host_caller){file, line, 0});
    if (status < 0)
        return status;
    *out_pointer = buffer->view ? weir__view_begin(buffer->view, offset, size, access, file, line)
                                : buffer->pointer + offset;
    return WEIR_OK;
}

weir_status weir_host_end_at(weir_buffer *buffer, size_t offset, size_t size, weir_access access,
                             const char *file, int line)
{
    weir_status status = check_host_use("weir_host_end", buffer, offset, size, access, file, line);
    if (status < 0)
        return status;
    if (weir__takes_notes(buffer->member.device))
        (void)weir__host_note_access(WEIR_HOST_NOTE_END, buffer, offset, size, access,
                                     &(struct weir__host_caller){file, line, 0});
    if (buffer->view)
        weir__view_end(buffer->view, offset, size, access, file, line);
    return WEIR_OK;
}

// Constants of programs. A constant is a DEVICE buffer like any other: OpenCL passes __constant
// memory as an argument, and on CUDA it is global memory. So this only finds the parameter and
// copies the bytes.

static const struct weir_kernel_signature *signature_at(const weir_program *program, uint32_t index)
{
    const char *first = (const char *)program->signatures;
    return (const void *)(first + index * program->signatures->struct_size);
}

// Which of several parameters of one name is meant: the one with the strictest rule.
static int rank(const struct weir_parameter *parameter)
{
    return parameter->constant ? 3 : parameter->writable ? 1 : 2;
}

static void find_in(const struct weir_kernel_signature *signature, const char *name,
                    const struct weir_parameter **found, const char **nearest)
{
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        const struct weir_parameter *parameter = weir_signature_parameter(signature, i);
        if (parameter->kind != WEIR_PARAMETER_BUFFER)
            continue;
        if (!parameter->writable)
            *nearest = weir_text_nearer(name, *nearest, parameter->name);
        if (strcmp(parameter->name, name) == 0 && (!*found || rank(parameter) > rank(*found)))
            *found = parameter;
    }
}

static weir_status refuse_name(const weir_program *program, const char *name, const char *nearest)
{
    return weir__fail_at(NULL, 0, program->member.object.label, WEIR_ERROR_NOT_FOUND,
                         "a kernel takes it as a parameter: __constant float *NAME",
                         "no kernel of the program has a pointer parameter '%s'%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

static weir_status check_size(const weir_program *program, const struct weir_parameter *parameter,
                              size_t size)
{
    const uint64_t limit = program->member.device->limits.max_constant_bytes;
    const uint32_t unit = parameter->alignment;
    const char *label = program->member.object.label;
    if (size == 0 || (unit > 0 && size % unit))
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID,
                             "pass the array's size in bytes: sizeof array",
                             "'%s' is a %s; it got %zu bytes", parameter->name,
                             parameter->type_name, size);
    if (parameter->constant && limit > 0 && size > limit)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID,
                             "make the parameter a const pointer to __global memory",
                             "'%s' is to have %zu bytes of __constant memory; the device's limit, "
                             "limits.max_constant_bytes, is %" PRIu64,
                             parameter->name, size, limit);
    return WEIR_OK;
}

static weir_status upload(weir_device *device, weir_buffer *buffer, const void *data, size_t size)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = "constants"};
    weir_queue *queue;
    weir_status status = weir_queue_create_at(device, &params, &queue, NULL, 0);
    if (status == WEIR_OK)
        status = weir_upload_at(queue, buffer, 0, data, size, NULL, 0);
    weir_queue_destroy(&queue);
    return status;
}

weir_status weir_program_constant_at(weir_program *program, const char *name, const void *data,
                                     size_t size, weir_buffer **out_buffer, const char *file,
                                     int line)
{
    WEIR_REQUIRE_AT(file, line, NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_ENTER_AT(file, line, program);
    WEIR_REQUIRE_AT(file, line, NULL, program);
    WEIR_REQUIRE_AT(file, line, program->member.object.label, name);
    WEIR_REQUIRE_AT(file, line, program->member.object.label, data);
    const char *nearest = NULL;
    const struct weir_parameter *parameter = NULL;
    for (uint32_t i = 0; i < program->signature_count; i++)
        find_in(signature_at(program, i), name, &parameter, &nearest);
    if (!parameter)
        return weir__placed(refuse_name(program, name, nearest), file, line);
    if (parameter->writable)
        return weir__fail_at(file, line, program->member.object.label, WEIR_ERROR_INVALID,
                             "declare it const or __constant, or make a buffer for it",
                             "'%s' is a %s, which the kernel may write", name,
                             parameter->type_name);
    weir_status status = check_size(program, parameter, size);
    if (status < 0)
        return weir__placed(status, file, line);

    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = name,
                                              .size = size};
    status = weir_buffer_create_at(program->member.device, &params, out_buffer, file, line);
    if (status == WEIR_OK)
        status = upload(program->member.device, *out_buffer, data, size);
    if (status < 0)
        weir_buffer_destroy(out_buffer);
    return weir__placed(status, file, line);
}
