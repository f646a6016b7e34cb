// Creation and destruction of programs and kernels.
#include <weir/program.h>

#include <string.h>

#include "base/text.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/program/bundle.h"
#include "core/queue/retire.h"
#include "core/support/error.h"
#include "core/support/thread.h"

static void unref(weir_program *program)
{
    if (atomic_fetch_sub(&program->references, 1) != 1)
        return;
    weir__chain_program_destroy(program->member.device->chain, program);
    weir__member_free(&program->member);
}

static void finalize_program(struct weir__member *member)
{
    unref((weir_program *)(void *)member);
}

static const struct weir__class program_class = {.name = "program", .finalize = finalize_program};

static void finalize_kernel(struct weir__member *member)
{
    weir_kernel *kernel = (weir_kernel *)(void *)member;
    weir_program *program = kernel->program;
    weir__chain_kernel_destroy(kernel->member.device->chain, kernel);
    weir__member_free(&kernel->member);
    unref(program);
}

static const struct weir__class kernel_class = {.name = "kernel", .finalize = finalize_kernel};

// A file that is included may change without the cached result noticing.
static bool includes_files(const char *options)
{
    for (const char *at = options; at && (at = strstr(at, "-I")); at++)
        if (at == options || at[-1] == ' ')
            return true;
    return false;
}

static weir_status check_params(const struct weir_program_params *params)
{
    const char *label = params->label;
    const bool source = params->source || params->cuda_source;
    if (!params->bundle == !source)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "set one of the two",
                             "weir_program_create: the params have %s",
                             params->bundle ? "a bundle and source" : "neither bundle nor source");
    WEIR_REQUIRE(label, !params->options || params->source);
    WEIR_REQUIRE(label, !params->cuda_options || params->cuda_source);
    if (includes_files(params->options))
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID,
                             "put the text of included files into the source",
                             "weir_program_create: the options have -I ('%s')", params->options);
    return params->bundle ? weir__bundle_check(params->bundle, label) : WEIR_OK;
}

// A backend gets CUDA C++ only if it compiles it.
static weir_status choose_source(const weir_device *device, struct weir_program_params *params)
{
    if (!params->cuda_source || device->limits.cuda_source)
        return WEIR_OK;
    if (!params->source)
        return weir__fail_at(NULL, 0, params->label, WEIR_ERROR_UNSUPPORTED,
                             "set `source` too, to OpenCL C",
                             "the device compiles no CUDA C++ (limits.cuda_source is 0)");
    params->cuda_source = NULL;
    params->cuda_options = NULL;
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
    struct weir_program_params known;
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_program);
    *out_program = NULL;
    WEIR_REQUIRE(NULL, device && params);
    WEIR_READ_PARAMS(weir_program_params, params, &known);
    weir_status status = check_params(params);
    if (status == WEIR_OK)
        status = choose_source(device, &known);
    if (status < 0)
        return status;

    const char *label = params->label || !params->bundle ? params->label : params->bundle->name;
    weir_program *program = weir__member_allocate(device, &program_class, sizeof *program, label);
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

// Work uses kernels, never programs, so a program need not wait for work: its
// kernels hold references to it.
void weir_program_destroy(weir_program **program)
{
    if (!program || !*program || atomic_load(&weir__forked))
        return;
    weir_program *gone = *program;
    *program = NULL;
    weir__member_delist(&gone->member);
    finalize_program(&gone->member);
}

static const struct weir_kernel_signature *signature_at(const weir_program *program, uint32_t index)
{
    const char *first = (const char *)program->signatures;
    return (const void *)(first + index * program->signatures->struct_size);
}

static weir_status refuse_name(const weir_program *program, const char *name)
{
    const char *nearest = NULL;
    for (uint32_t i = 0; i < program->signature_count; i++)
        nearest = weir_text_nearer(name, nearest, signature_at(program, i)->name);
    return weir__fail_at(NULL, 0, program->member.object.label, WEIR_ERROR_NOT_FOUND, NULL,
                         "the program has no kernel '%s'%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

static const struct weir_kernel_signature *find_signature(const weir_program *program,
                                                          const char *name)
{
    for (uint32_t i = 0; i < program->signature_count; i++)
        if (strcmp(signature_at(program, i)->name, name) == 0)
            return signature_at(program, i);
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
    weir_kernel *kernel = weir__member_allocate(device, &kernel_class, sizeof *kernel, name);
    if (!kernel)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a kernel object");
    kernel->program = program;
    kernel->signature = signature;
    kernel->info.struct_size = sizeof kernel->info;
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
