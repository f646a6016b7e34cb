// Of the images of a bundle the device uses a cubin of its own major architecture and at most its
// minor one, or else PTX, which the driver compiles.
#include "backends/cuda/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_cubin(const struct weir_image *image)
{
    return weir_image_is(image, WEIR_IMAGE_CUBIN);
}

static bool suits(const struct weir_image *image, unsigned architecture)
{
    const unsigned sm = weir_image_sm(image);
    const char last = image->target[0] ? image->target[strlen(image->target) - 1] : '\0';
    if (sm == 0 || sm > architecture || (sm != architecture && (last < '0' || last > '9')))
        return false;
    return is_cubin(image) ? sm / 10 == architecture / 10 : weir_image_is(image, WEIR_IMAGE_PTX);
}

static bool is_better(const struct weir_image *image, const struct weir_image *best)
{
    if (!best)
        return true;
    if (is_cubin(image) != is_cubin(best))
        return is_cubin(image);
    return weir_image_sm(image) > weir_image_sm(best);
}

static void list_images(const struct weir_bundle *bundle, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        if (!is_cubin(image) && !weir_image_is(image, WEIR_IMAGE_PTX))
            continue;
        const int length = snprintf(text + used, size - used, "%s%s %s", used > 0 ? ", " : "",
                                    is_cubin(image) ? "cubin" : "PTX", image->target);
        used += length > 0 && (size_t)length < size - used ? (size_t)length : 0;
    }
}

// The files that a bundle's images come from in place of its OpenCL C; NULL: they come from that.
static const char *twin_of(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(weir_bundle_image(bundle, i), WEIR_IMAGE_TWIN))
            return weir_bundle_image(bundle, i)->data;
    return NULL;
}

static weir_status refuse_bundle(const struct cu_device *device, const struct weir_bundle *bundle)
{
    const struct weir_host *host = device->module->host;
    const char *twin = twin_of(bundle);
    char have[512];
    list_images(bundle, have, sizeof have);
    if (have[0])
        return weir_host_fail(
            host, WEIR_ERROR_UNSUPPORTED,
            "build the bundle with a cubin of that architecture, or with PTX of it or "
            "an older one",
            "bundle '%s' has no image for '%s', which is sm_%u; it has %s%s%s", bundle->name,
            device->listed->info.name, device->architecture, have, twin ? ", made from " : "",
            twin ? twin : "");
    if (twin)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                              "build it on a machine with nvcc, or without its CUDA C++, which "
                              "then leaves the OpenCL C to CUDA too",
                              "bundle '%s' has no CUDA images: %s was not compiled", bundle->name,
                              twin);
    return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                          "build it with weir_kernels on a machine with a CUDA toolkit",
                          "bundle '%s' has no CUDA images", bundle->name);
}

// Which of two sources runs is told, as it cannot be seen from outside.
static void log_twin(const struct weir_host *host, const struct cu_image *chosen)
{
    const char *twin = twin_of(chosen->bundle);
    char message[640];
    if (!twin)
        return;
    snprintf(message, sizeof message, "bundle '%s': %s, made from %s and not from its OpenCL C",
             chosen->bundle->name, chosen->name, twin);
    host->log(WEIR_LOG_INFO, "cuda", message);
}

weir_status cu_image_choose(const struct cu_device *device, const struct weir_bundle *bundle,
                            struct cu_image *chosen)
{
    const struct weir_image *best = NULL;
    for (uint32_t i = 0; i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        if (suits(image, device->architecture) && is_better(image, best))
            best = image;
    }
    if (!best)
        return refuse_bundle(device, bundle);
    chosen->data = best->data;
    chosen->bundle = bundle;
    snprintf(chosen->name, sizeof chosen->name, "%s %s", is_cubin(best) ? "the cubin" : "the PTX",
             best->target);
    log_twin(device->module->host, chosen);
    return WEIR_OK;
}

// The CUDA version that built a bundle, from the version of its PTX: PTX 7 is CUDA 11, 8 is 12, 9
// is 13. 0: unknown.
static int toolkit_major(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; bundle && i < bundle->image_count; i++) {
        const struct weir_image *image = weir_bundle_image(bundle, i);
        const char *version =
            weir_image_is(image, WEIR_IMAGE_PTX) ? strstr(image->data, ".version ") : NULL;
        if (version)
            return (int)strtol(version + strlen(".version "), NULL, 10) + 4;
    }
    return 0;
}

static bool is_image_error(CUresult code)
{
    return code == CUDA_ERROR_INVALID_IMAGE || code == CUDA_ERROR_NO_BINARY_FOR_GPU ||
           code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || code == CUDA_ERROR_INVALID_SOURCE ||
           code == CUDA_ERROR_INVALID_PTX;
}

static weir_status refuse_image(struct cu_device *device, const struct cu_image *chosen,
                                CUresult code, const char *log)
{
    const struct cu_module *module = device->module;
    const char *of = chosen->bundle ? chosen->bundle->name : "source";
    const int toolkit = toolkit_major(chosen->bundle);
    if (is_image_error(code) && toolkit > module->version / 1000)
        return cu_native_error(device, "cuModuleLoadDataEx", code,
                               "the driver is too old for bundle '%s': CUDA %d built it, and the "
                               "driver supports CUDA %d.%d; install NVIDIA driver %s or newer",
                               of, toolkit, module->version / 1000, module->version % 1000 / 10,
                               toolkit >= 13 ? "580" : "525");
    return cu_native_error(device, "cuModuleLoadDataEx", code, "'%s' does not take %s of '%s'%s%s",
                           device->listed->info.name, chosen->name, of, log[0] ? ": " : "", log);
}

weir_status cu_image_load(struct cu_program *program, const struct cu_image *chosen)
{
    struct cu_device *device = program->device;
    char log[400] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUresult code =
        device->module->cu.cuModuleLoadDataEx(&program->module, chosen->data, 2, options, values);
    if (code != CUDA_SUCCESS) {
        program->module = NULL;
        return refuse_image(device, chosen, code, log);
    }
    device->module->host->count_driver_object();
    return cu_prints_attach(device, program->module);
}
