// Constants of programs. A constant is a DEVICE buffer like any other: OpenCL passes __constant
// memory as an argument, and on CUDA it is global memory. So this only finds the parameter and
// copies the bytes.
#include <inttypes.h>
#include <string.h>
#include <weir/buffer.h>
#include <weir/program.h>

#include "base/text.h"
#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/thread.h"

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
    weir_status status = (weir_queue_create)(device, &params, &queue);
    if (status == WEIR_OK)
        status = weir_upload_at(queue, buffer, 0, data, size, NULL, 0);
    weir_queue_destroy(&queue);
    return status;
}

weir_status(weir_program_constant)(weir_program *program, const char *name, const void *data,
                                   size_t size, weir_buffer **out_buffer)
{
    WEIR_REQUIRE(NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_ENTER(program);
    WEIR_REQUIRE(NULL, program);
    WEIR_REQUIRE(program->member.object.label, name);
    WEIR_REQUIRE(program->member.object.label, data);
    const char *nearest = NULL;
    const struct weir_parameter *parameter = NULL;
    for (uint32_t i = 0; i < program->signature_count; i++)
        find_in(signature_at(program, i), name, &parameter, &nearest);
    if (!parameter)
        return refuse_name(program, name, nearest);
    if (parameter->writable)
        return weir__fail_at(NULL, 0, program->member.object.label, WEIR_ERROR_INVALID,
                             "declare it const or __constant, or make a buffer for it",
                             "'%s' is a %s, which the kernel may write", name,
                             parameter->type_name);
    weir_status status = check_size(program, parameter, size);
    if (status < 0)
        return status;

    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = name,
                                              .size = size};
    status = (weir_buffer_create)(program->member.device, &params, out_buffer);
    if (status == WEIR_OK)
        status = upload(program->member.device, *out_buffer, data, size);
    if (status < 0)
        weir_buffer_destroy(out_buffer);
    return status;
}

weir_status weir_program_constant_at(weir_program *program, const char *name, const void *data,
                                     size_t size, weir_buffer **out_buffer, const char *file,
                                     int line)
{
    const weir_status status = (weir_program_constant)(program, name, data, size, out_buffer);
    if (status == WEIR_OK)
        weir__member_place(&(*out_buffer)->member, file, line);
    return weir__placed(status, file, line);
}
