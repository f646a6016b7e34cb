// Programs and kernels, and the check of a launch's arguments against the
// kernel's own signature.
#include <weir/program.h>

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/support/error.h"
#include "core/support/thread.h"

static weir_status check_params(const struct weir_program_params *params)
{
    const char *label = params->label;
    if (!params->bundle == !params->source)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "set one of the two",
                             "weir_program_create: the params have %s",
                             params->bundle ? "a bundle and source" : "neither bundle nor source");
    WEIR_REQUIRE(label, !params->options || params->source);
    WEIR_REQUIRE(label, !params->bundle ||
                            params->bundle->struct_size >= sizeof params->bundle->struct_size);
    return WEIR_OK;
}

static weir_status take_signatures(weir_program *program, const struct weir_program_params *params)
{
    const struct weir_link *link = weir__chain_backend(program->member.device->chain);
    if (params->bundle) {
        program->signatures = params->bundle->kernels;
        program->signature_count = params->bundle->kernel_count;
        return WEIR_OK;
    }
    if (!link->ops->program_signatures)
        return weir__fail(WEIR_ERROR_UNSUPPORTED, "use a bundle of weir_kernels",
                          "the backend '%s' does not compile source at run time", link->name);
    return link->ops->program_signatures(link, program, &program->signatures,
                                         &program->signature_count);
}

weir_status weir_program_create(weir_device *device, const struct weir_program_params *params,
                                weir_program **out_program)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_program);
    *out_program = NULL;
    WEIR_REQUIRE(NULL, device && params);
    WEIR_REQUIRE_PARAMS(params);
    weir_status status = check_params(params);
    if (status < 0)
        return status;

    const char *label = params->label || !params->bundle ? params->label : params->bundle->name;
    weir_program *program = weir__member_allocate(device, WEIR__PROGRAM, sizeof *program, label);
    if (!program)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a program object");
    status = weir__chain_program_create(device->chain, device, program, params,
                                        program->member.object.data);
    if (status < 0)
        goto fail;
    status = take_signatures(program, params);
    if (status < 0) {
        weir__chain_program_destroy(device->chain, program);
        goto fail;
    }
    atomic_init(&program->references, 1);
    weir__member_enlist(&program->member);
    *out_program = program;
    return WEIR_OK;

fail:
    weir__error_place(label, NULL, 0);
    weir__member_free(&program->member);
    return status;
}

void weir__program_unref(weir_program *program)
{
    if (atomic_fetch_sub(&program->references, 1) != 1)
        return;
    weir__chain_program_destroy(program->member.device->chain, program);
    weir__member_free(&program->member);
}

// Work uses kernels, never programs, so a program has nothing to wait for: the
// references of its kernels keep what they need.
void weir_program_destroy(weir_program **program)
{
    if (!program || !*program || atomic_load(&weir__forked))
        return;
    weir_program *gone = *program;
    *program = NULL;
    weir__member_delist(&gone->member);
    weir__program_unref(gone);
}

static weir_status refuse_name(const weir_program *program, const char *name)
{
    const char *nearest = NULL;
    for (uint32_t i = 0; i < program->signature_count; i++)
        nearest = weir_text_nearer(name, nearest, program->signatures[i].name);
    return weir__fail_at(NULL, 0, program->member.object.label, WEIR_ERROR_NOT_FOUND, NULL,
                         "the program has no kernel '%s'%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

static const struct weir_kernel_signature *find_signature(const weir_program *program,
                                                          const char *name)
{
    for (uint32_t i = 0; i < program->signature_count; i++)
        if (strcmp(program->signatures[i].name, name) == 0)
            return &program->signatures[i];
    return NULL;
}

weir_status weir_kernel_create(weir_program *program, const char *name, weir_kernel **out_kernel)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_kernel);
    *out_kernel = NULL;
    WEIR_REQUIRE(NULL, program && name);
    const struct weir_kernel_signature *signature = find_signature(program, name);
    if (!signature)
        return refuse_name(program, name);

    weir_device *device = program->member.device;
    weir__device_reap(device);
    weir_kernel *kernel = weir__member_allocate(device, WEIR__KERNEL, sizeof *kernel, name);
    if (!kernel)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a kernel object");
    kernel->program = program;
    kernel->signature = signature;
    kernel->info.max_block_items = device->limits.max_block_items;
    weir_status status = weir__chain_kernel_create(device->chain, program, kernel, signature,
                                                   &kernel->info, kernel->member.object.data);
    if (status < 0) {
        weir__error_place(name, NULL, 0);
        weir__member_free(&kernel->member);
        return status;
    }
    atomic_fetch_add(&program->references, 1);
    weir__member_enlist(&kernel->member);
    *out_kernel = kernel;
    return WEIR_OK;
}

void weir_kernel_destroy(weir_kernel **kernel)
{
    if (!kernel || !*kernel || atomic_load(&weir__forked))
        return;
    weir_kernel *gone = *kernel;
    *kernel = NULL;
    weir__member_retire(&gone->member);
}

void weir__kernel_finalize(weir_kernel *kernel)
{
    weir_program *program = kernel->program;
    weir__chain_kernel_destroy(kernel->member.device->chain, kernel);
    weir__member_free(&kernel->member);
    weir__program_unref(program);
}

const struct weir_kernel_signature *weir_kernel_get_signature(const weir_kernel *kernel)
{
    return kernel ? kernel->signature : NULL;
}

const struct weir_kernel_info *weir_kernel_get_info(const weir_kernel *kernel)
{
    return kernel ? &kernel->info : NULL;
}

// Where a check of one argument happens, for its message.
struct place {
    const weir_kernel *kernel;
    const struct weir_parameter *parameter;
    size_t index;
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
    // Without a pointer the bytes are in `bits`, where only scalars are put.
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

static weir_status check_range(const struct place *place, const struct weir_argument *argument)
{
    const weir_kernel *kernel = place->kernel;
    const weir_buffer *buffer = argument->buffer;
    const struct weir_limits *limits = &kernel->member.device->limits;

    if (!buffer)
        return refuse(place, "no buffer (NULL)",
                      "create it first; destroying it sets the pointer to NULL");
    if (buffer->member.device != kernel->member.device)
        return refuse(place, "a buffer of another device",
                      "copy to a buffer of the kernel's device first");
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

// What the kernel declares and what the arguments ask for share one memory.
static weir_status check_local(const weir_kernel *kernel, const struct weir_argument *arguments,
                               size_t argument_count, const char *file, int line)
{
    const uint64_t limit = kernel->member.device->limits.max_local_bytes;
    uint64_t left = kernel->info.local_bytes < limit ? limit - kernel->info.local_bytes : 0;

    for (size_t i = 0; i < argument_count; i++) {
        if (arguments[i].kind != WEIR_PARAMETER_LOCAL)
            continue;
        if (arguments[i].size > left)
            return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID,
                                 "use a smaller block, or less of it",
                                 "launch: parameter %zu, '%s', asks for %zu bytes of local memory; "
                                 "of the device's %" PRIu64 " this launch has %" PRIu64 " left",
                                 i, kernel->signature->parameters[i].name, arguments[i].size, limit,
                                 left);
        left -= arguments[i].size;
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
                         signature->parameters[i].name);
    return weir__fail_at(file, line, kernel->member.object.label, WEIR_ERROR_INVALID,
                         "pass one for each, in the kernel's order",
                         "launch: %zu arguments; the kernel has %" PRIu32 " parameters%s%s",
                         argument_count, signature->parameter_count, names[0] ? ": " : "", names);
}

weir_status weir__kernel_check(const weir_kernel *kernel, const struct weir_argument *arguments,
                               size_t argument_count, const char *file, int line)
{
    const struct weir_kernel_signature *signature = kernel->signature;

    if (argument_count != signature->parameter_count)
        return refuse_count(kernel, argument_count, file, line);
    struct place place = {kernel, signature->parameters, 0, file, line};
    bool local = false;
    for (; place.index < argument_count; place.index++, place.parameter++) {
        weir_status status = check_argument(&place, &arguments[place.index]);
        if (status < 0)
            return status;
        local = local || place.parameter->kind == WEIR_PARAMETER_LOCAL;
    }
    return local ? check_local(kernel, arguments, argument_count, file, line) : WEIR_OK;
}
