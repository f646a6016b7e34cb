// Programs and kernels.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/program.h>

#include "base/file.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "kernels/images/images.h"

// A bundle is the only structure of the user that modules read directly, so everything that
// they may dereference is checked here. It has the layout of the headers with which its program was
// compiled, which may be older or newer than the library's.

enum {
    FILE_LIMIT = 64 * 1024 * 1024 // of source
};

struct check {
    const char *label;
    char part[64]; // of the bundle, after its name; "": itself
};

static weir_status refuse(const struct check *check, const char *field)
{
    return weir__invalid(check->label, "fill it in, or use what weir_kernels generates",
                         "weir_program_create: bundle%s: `%s` is NULL", check->part, field);
}

// An array whose elements begin with a size_t of their size, the distance between them: `least`
// bytes, or more of a newer header's.
static weir_status check_array(const struct check *check, const char *field, const void *elements,
                               uint32_t count, size_t least)
{
    size_t size;
    if (count == 0)
        return WEIR_OK;
    if (!elements)
        return refuse(check, field);
    memcpy(&size, elements, sizeof size);
    if (size >= least)
        return WEIR_OK;
    return weir__invalid(check->label,
                         "set struct_size to sizeof, or use what weir_kernels generates",
                         "weir_program_create: bundle%s: an element of `%s` has %zu bytes, but "
                         "must have %zu at least",
                         check->part, field, size, least);
}

static weir_status check_parameter(const struct check *check,
                                   const struct weir_parameter *parameter)
{
    if (!parameter->name || !parameter->type_name)
        return refuse(check, parameter->name ? "type_name" : "name");
    if (parameter->kind >= WEIR_PARAMETER_BUFFER && parameter->kind <= WEIR_PARAMETER_LOCAL)
        return WEIR_OK;
    return weir__invalid(check->label,
                         "use the library that weir_kernels came with, or a newer one",
                         "weir_program_create: bundle%s: '%s' is of kind %d, which this library "
                         "does not know",
                         check->part, parameter->name, (int)parameter->kind);
}

static weir_status check_kernel(struct check *check, const struct weir_kernel_signature *kernel,
                                uint32_t index)
{
    snprintf(check->part, sizeof check->part, ", kernel %" PRIu32, index);
    if (!kernel->name)
        return refuse(check, "name");
    weir_status status =
        check_array(check, "parameters", kernel->parameters, kernel->parameter_count,
                    WEIR_SIZED_UP_TO(struct weir_parameter, constant));
    for (uint32_t i = 0; i < kernel->parameter_count && status == WEIR_OK; i++) {
        snprintf(check->part, sizeof check->part, ", kernel %" PRIu32 ", parameter %" PRIu32, index,
                 i);
        status = check_parameter(check, weir_signature_parameter(kernel, i));
    }
    return status;
}

// Refuses a bundle with NULL in a member that modules read. `label` is the
// program's.
static weir_status check_bundle(const struct weir_bundle *bundle, const char *label)
{
    struct check check = {.label = label};
    if (!WEIR_HAS(bundle, image_count))
        return weir__invalid(label, "set struct_size to sizeof, or use what weir_kernels generates",
                             "weir_program_create: the bundle has a struct_size of %zu",
                             (size_t)bundle->struct_size);
    weir_status status = check_array(&check, "kernels", bundle->kernels, bundle->kernel_count,
                                     WEIR_SIZED_UP_TO(struct weir_kernel_signature, grid_barrier));
    if (status == WEIR_OK)
        status = check_array(&check, "images", bundle->images, bundle->image_count,
                             WEIR_SIZED_UP_TO(struct weir_image, size));
    for (uint32_t i = 0; i < bundle->image_count && status == WEIR_OK; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        snprintf(check.part, sizeof check.part, ", image %" PRIu32, i);
        if (!image->format || !image->target)
            status = refuse(&check, image->format ? "target" : "format");
        else if (!image->data)
            status = refuse(&check, "data");
    }
    for (uint32_t i = 0; i < bundle->kernel_count && status == WEIR_OK; i++)
        status = check_kernel(&check, weir_bundle_kernel(bundle, i), i);
    return status;
}

// Creation and destruction of programs and kernels.

// Drops a reference.
static void finalize_program(struct weir__member *member)
{
    weir_program *program = (weir_program *)(void *)member;
    if (atomic_fetch_sub(&program->references, 1) != 1)
        return;
    const struct weir__chain *chain = member->device->chain;
    WEIR__DESTROY_ALONG(chain, chain->count, program, program);
    weir__member_free(member);
}

static const struct weir__class program_class = {.name = "program", .finalize = finalize_program};

static void finalize_kernel(struct weir__member *member)
{
    weir_kernel *kernel = (weir_kernel *)(void *)member;
    weir_program *program = kernel->program;
    const struct weir__chain *chain = kernel->member.device->chain;
    WEIR__DESTROY_ALONG(chain, chain->count, kernel, kernel);
    weir__member_free(&kernel->member);
    finalize_program(&program->member);
}

static const struct weir__class kernel_class = {.name = "kernel",
                                                .is_named = true,
                                                .keeps_label = true,
                                                .finalize = finalize_kernel};

// A file that is included may change without the cached result noticing.
static bool includes_files(const char *options)
{
    for (const char *at = options; at && (at = strstr(at, "-I")); at++)
        if (at == options || at[-1] == ' ')
            return true;
    return false;
}

static weir_status check_devices(const struct weir_program_params *params)
{
    if (params->device_count > 0 && !params->devices)
        return weir__invalid(params->label, "set it",
                             "weir_program_create: params->devices is NULL");
    for (uint32_t i = 0; i < params->device_count; i++) {
        if (!params->devices[i])
            return weir__invalid(params->label, weir__null_remedy("device"),
                                 "weir_program_create: params->devices[%" PRIu32 "] is NULL", i);
        WEIR_ENTER_OF("weir_program_create", NULL, 0, params->devices[i]);
    }
    return WEIR_OK;
}

// With the files' text in the place of their paths.
static weir_status check_params(const struct weir_program_params *params)
{
    const char *label = params->label;
    const bool source = params->source || params->cuda_source;
    if (!params->bundle == !source)
        return weir__invalid(label, "set one of the two", "weir_program_create: the params have %s",
                             params->bundle ? "a bundle and source" : "neither bundle nor source");
    const bool cuda = params->cuda_options && !params->cuda_source;
    if (cuda || (params->options && !params->source))
        return weir__invalid(label, "set the source that they are for, or leave them out",
                             "weir_program_create: the params have %s and no %s",
                             cuda ? "cuda_options" : "options", cuda ? "cuda_source" : "source");
    if (params->exact && params->fast)
        return weir__invalid(label, "set one of the two",
                             "weir_program_create: the params are exact and fast");
    if (params->bundle && (params->exact || params->fast))
        return weir__invalid(label, "make the bundle with --exact or --fast, or set neither",
                             "weir_program_create: exact and fast are for source");
    if (includes_files(params->options))
        return weir__invalid(label, "put the text of included files into the source",
                             "weir_program_create: the options have -I ('%s')", params->options);
    TRY(check_devices(params));
    return params->bundle ? check_bundle(params->bundle, label) : WEIR_OK;
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

// The program on one device.
static weir_status create_on(weir_device *device, const struct weir_program_params *params,
                             weir_program **out_program)
{
    struct weir_program_params own = *params;
    weir_status status = choose_source(device, &own);
    if (status < 0)
        return status;
    const char *label = params->label || !params->bundle ? params->label : params->bundle->name;
    weir_program *program = weir__member_allocate(device, &program_class, sizeof *program, label);
    if (!program)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a program object");
    WEIR__CREATE_ALONG(status, device->chain, device->chain->count, program->member.object.data,
                       program, program,
                       link->ops->program_create(link, device, program, &own, slot));
    if (status < 0)
        goto fail;
    status = take_signatures(program, &own);
    if (status < 0) {
        WEIR__DESTROY_ALONG(device->chain, device->chain->count, program, program);
        goto fail;
    }
    atomic_init(&program->references, 1);
    weir__member_enlist(&program->member);
    *out_program = program;
    return WEIR_OK;

fail:
    weir__error_place(status, label, NULL, 0);
    weir__member_free(&program->member);
    return status;
}

// Of several devices, the message names the one that failed.
WEIR_COLD static weir_status name_device(const weir_device *device, weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    struct weir_error named = cause;
    snprintf(named.message, sizeof named.message, "device '%.60s': %.*s", device->info.name,
             (int)sizeof named.message - 80, cause.message);
    return weir__error_set(&named);
}

// What the params' paths hold, and what source that names images becomes.
struct files {
    void *opencl; // NULL: no path
    void *cuda;
    struct weir_long_text images;
    bool hidden; // macros may hide images
};

static weir_status read_file(const char *label, const char *path, void **out_text)
{
    char message[512];
    size_t size;
    if (!path)
        return WEIR_OK;
    if (!weir_file_read(path, FILE_LIMIT, out_text, &size, message, sizeof message))
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_IO, NULL, "weir_program_create: %s",
                             message);
    if (memchr(*out_text, 0, size) == NULL)
        return WEIR_OK;
    return weir__invalid(label, "give a file of text", "weir_program_create: '%s' has a zero byte",
                         path);
}

// Puts the files' text in the place of their paths, in `params`, and in `*out_files`, which is to be freed
// also after an error.
static weir_status read_files(struct weir_program_params *params, struct files *out_files)
{
    const bool cuda = params->cuda_path && params->cuda_source;
    if (cuda || (params->path && params->source))
        return weir__invalid(params->label, "set one of the two",
                             "weir_program_create: the params have %s and %s",
                             cuda ? "cuda_path" : "path", cuda ? "cuda_source" : "source");
    weir_status status = read_file(params->label, params->path, &out_files->opencl);
    if (status == WEIR_OK)
        status = read_file(params->label, params->cuda_path, &out_files->cuda);
    if (params->path)
        params->source = out_files->opencl;
    if (params->cuda_path)
        params->cuda_source = out_files->cuda;
    params->path = params->cuda_path = NULL;
    return status;
}

// Every backend gets images as buffers. Those that macros hide stay, and compilers refuse them.
static weir_status change_images(struct weir_program_params *params, struct files *files)
{
    if (!params->source || !weir_images_are_named(params->source))
        return WEIR_OK;
    files->hidden = !weir_images_rewrite(params->source, &files->images);
    if (files->images.failed)
        return weir__fail_at(NULL, 0, params->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                             "weir_program_create: no memory for a source with images");
    params->source = files->images.text;
    return WEIR_OK;
}

// What a compiler says of those does not name the cause.
WEIR_COLD static weir_status name_macros(weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    struct weir_error named = cause;
    snprintf(
        named.remedy, sizeof named.remedy,
        "where macros hide '__kernel', 'sampler_t' or a type of images, write these out; %.150s",
        cause.remedy);
    return weir__error_set(&named);
}

// The first of `out_program` is on `device`, the others on those of the params' devices that differ.
static weir_status create_all(weir_device *device, const struct weir_program_params *params,
                              weir_program **out_program)
{
    weir_program *first = NULL, **end = &first;
    weir_status status = check_params(params);
    for (uint32_t i = 0; i <= params->device_count && status == WEIR_OK; i++) {
        weir_device *wanted = i > 0 ? params->devices[i - 1] : device;
        const weir_program *known = first;
        while (known && known->member.device != wanted)
            known = known->next;
        if (known)
            continue;
        status = create_on(wanted, params, end);
        if (status == WEIR_OK)
            end = &(*end)->next;
        else if (params->device_count > 0)
            status = name_device(wanted, status);
    }
    if (status == WEIR_OK)
        *out_program = first;
    else
        weir_program_destroy(&first);
    return status;
}

weir_status weir_program_create_at(weir_device *device, const struct weir_program_params *params,
                                   weir_program **out_program, const char *file, int line)
{
    struct weir_program_params known;
    WEIR_ENTER_FOR(file, line, out_program, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_program_params, params, &known);
    struct files files = {.opencl = NULL};
    weir_status status = read_files(&known, &files);
    if (status == WEIR_OK)
        status = change_images(&known, &files);
    if (status == WEIR_OK)
        status = create_all(device, params, out_program);
    if (status == WEIR_ERROR_BUILD && files.hidden)
        status = name_macros(status);
    free(files.opencl);
    free(files.cuda);
    free(files.images.text);
    for (weir_program *each = *out_program; each; each = each->next)
        weir__member_place(&each->member, file, line);
    return weir__placed(status, file, line);
}

// Work uses kernels, never programs, so a program need not wait for work: its
// kernels hold references to it.
void weir_program_destroy_at(weir_program **program, const char *file, int line)
{
    if (!program || !*program || !WEIR_MAY_END(*program, file, line))
        return;
    weir_program *gone = *program;
    *program = NULL;
    weir__debug_end(gone, file, line);
    while (gone) {
        weir_program *next = gone->next;
        weir__member_delist(&gone->member);
        finalize_program(&gone->member);
        gone = next;
    }
}

static weir_status refuse_name(const weir_program *program, const char *name)
{
    const char *nearest = NULL;
    for (uint32_t i = 0; i < program->signature_count; i++)
        nearest = weir_text_nearer(name, nearest, weir__signature_at(program, i)->name);
    return weir__fail_at(NULL, 0, program->member.object.label, WEIR_ERROR_NOT_FOUND, NULL,
                         "the program has no kernel '%s'%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

static weir_status create_of_chain(weir_kernel *kernel)
{
    const weir_device *device = kernel->member.device;
    const struct weir__chain *chain = device->chain;
    const uint64_t limit = device->limits.max_local_bytes;
    weir_status status;
    WEIR__CREATE_ALONG(status, chain, chain->count, kernel->member.object.data, kernel, kernel,
                       link->ops->kernel_create(link, kernel->program, kernel, kernel->signature,
                                                &kernel->info, slot));
    // No launch can have more local memory than the device has.
    if (status < 0 || kernel->info.local_bytes <= limit)
        return status;
    status = weir__fail(WEIR_ERROR_UNSUPPORTED, "declare smaller local arrays",
                        "kernel '%s' declares %" PRIu64
                        " bytes of local memory; a block of '%s' has %" PRIu64
                        " (limits.max_local_bytes)",
                        weir__label_or_none(kernel->member.object.label), kernel->info.local_bytes,
                        device->info.name, limit);
    WEIR__DESTROY_ALONG(chain, chain->count, kernel, kernel);
    return status;
}

// The kernel on one device, with that device's program.
static weir_status create_kernel(weir_program *program, const char *name, weir_kernel **out_kernel)
{
    const struct weir_kernel_signature *signature = NULL;
    for (uint32_t i = 0; i < program->signature_count && !signature; i++)
        if (strcmp(weir__signature_at(program, i)->name, name) == 0)
            signature = weir__signature_at(program, i);
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
    weir_status status = create_of_chain(kernel);
    if (status < 0) {
        weir__error_place(status, name, NULL, 0);
        weir__member_free(&kernel->member);
        return status;
    }
    // The backend does not know what a plugin takes from its limits.
    if (kernel->info.max_block_items > device->limits.max_block_items)
        kernel->info.max_block_items = device->limits.max_block_items;
    atomic_fetch_add(&program->references, 1);
    weir__member_enlist(&kernel->member);
    *out_kernel = kernel;
    return WEIR_OK;
}

static void destroy_all(weir_kernel *first)
{
    for (weir_kernel *gone = first, *next; gone; gone = next) {
        next = gone->next;
        weir__member_retire(&gone->member);
    }
}

weir_status weir_kernel_create_at(weir_program *program, const char *name, weir_kernel **out_kernel,
                                  const char *file, int line)
{
    weir_kernel *first = NULL, **end = &first;
    weir_status status = WEIR_OK;
    WEIR_ENTER_FOR(file, line, out_kernel, program);
    WEIR_REQUIRE_AT(file, line, program->member.object.label, name);
    for (weir_program *each = program; each; each = each->next) {
        status = create_kernel(each, name, end);
        if (status < 0 && each != program)
            status = name_device(each->member.device, status);
        if (status < 0)
            break;
        (*end)->first = first;
        end = &(*end)->next;
    }
    if (status < 0) {
        destroy_all(first);
        return weir__placed(status, file, line);
    }
    for (weir_kernel *each = first; each; each = each->next)
        weir__member_place(&each->member, file, line);
    *out_kernel = first;
    return WEIR_OK;
}

void weir_kernel_destroy_at(weir_kernel **kernel, const char *file, int line)
{
    if (!kernel || !*kernel || !WEIR_MAY_END(*kernel, file, line))
        return;
    weir_kernel *gone = *kernel;
    *kernel = NULL;
    if (gone->first != gone) {
        weir__report_at(NULL, 0, gone->member.object.label, WEIR_ERROR_INVALID,
                        "do not destroy what you did not create",
                        "weir_kernel_destroy: this kernel came from weir_kernel_on() and goes with "
                        "its kernel");
        weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
        return;
    }
    weir__debug_end(gone, file, line);
    destroy_all(gone);
}
