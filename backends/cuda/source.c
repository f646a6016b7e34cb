// OpenCL C at run time. The driver's OpenCL compiler gives PTX, which is rewritten for CUDA's
// loader and kept in the cache with the signatures of its kernels.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/driver_cl.h"
#include "kernels/library/grid_barrier.h"
#include "kernels/ptx/ptx.h"

// One compilation.
struct build {
    const struct cu_device *device;
    struct cu_cl cl;
    struct clc_build clc;
    char *before;
    char *key;
    char *entry; // of the cache: the text of the signatures, its zero byte, and PTX with its own
    size_t size;
};

static weir_status refuse(const struct build *build, const char *call, cl_int code,
                          const char *what)
{
    return clc_native_error(build->device->module->host, call, code, "%s", what);
}

// Returns what the driver calls a binary, which is PTX; the caller frees it.
static weir_status read_ptx(const struct build *build, char **out_ptx, size_t *out_size)
{
    size_t size = 0;
    cl_int code = build->cl.clGetProgramInfo(build->clc.program, CL_PROGRAM_BINARY_SIZES,
                                             sizeof size, &size, NULL);
    *out_ptx = code == CL_SUCCESS ? calloc(1, size + 1) : NULL;
    *out_size = size;
    if (code == CL_SUCCESS && !*out_ptx)
        return weir_host_no_memory(build->device->module->host, "the image of a program");
    if (code == CL_SUCCESS)
        code = build->cl.clGetProgramInfo(build->clc.program, CL_PROGRAM_BINARIES, sizeof *out_ptx,
                                          out_ptx, NULL);
    if (code == CL_SUCCESS)
        return WEIR_OK;
    free(*out_ptx);
    *out_ptx = NULL;
    return refuse(build, "clGetProgramInfo", code, "the driver does not return the PTX");
}

static weir_status make_entry(struct build *build, const char *ptx)
{
    const size_t used = strlen(build->clc.signature_text) + 1;
    build->size = used + strlen(ptx) + 1;
    build->entry = malloc(build->size);
    if (!build->entry)
        return weir_host_no_memory(build->device->module->host, "the image of a program");
    memcpy(build->entry, build->clc.signature_text, used);
    memcpy(build->entry + used, ptx, strlen(ptx) + 1);
    return WEIR_OK;
}

static weir_status rewrite(struct build *build)
{
    char message[400] = "";
    char *ptx;
    size_t size;
    weir_status status = read_ptx(build, &ptx, &size);
    if (!ptx)
        return status;
    char *rewritten = weir_ptx_for_cuda(ptx, strnlen(ptx, size), message, sizeof message);
    if (rewritten)
        status = make_entry(build, rewritten);
    else
        status = weir_host_fail(build->device->module->host, WEIR_ERROR_BUILD,
                                "build the kernels with weir_kernels",
                                "PTX of the driver's OpenCL compiler (%s) is not understood: %s",
                                build->cl.driver, message);
    free(rewritten);
    free(ptx);
    return status;
}

// The context is there only while a program is compiled. The driver keeps most of the device memory
// that it took (docs/kernels.md), which is why programs are looked for in the cache first.
static weir_status compile(struct build *build)
{
    cl_int code;
    build->clc.context = build->cl.clCreateContext(NULL, 1, &build->cl.device, NULL, NULL, &code);
    if (!build->clc.context)
        return refuse(build, "clCreateContext", code, "the driver's OpenCL does not start");
    weir_status status = clc_build(&build->clc);
    if (status == WEIR_OK)
        status = rewrite(build);
    clc_drop(&build->clc);
    build->cl.clReleaseContext(build->clc.context);
    return status;
}

// The key contains everything on which the image depends.
static weir_status make_key(struct build *build)
{
    const struct cu_module *module = build->device->module;
    build->key =
        weir_kit_format(module->host, "%s\n%s\nOpenCL %s\nsm_%u\n%s\n%s\n%s", WEIR_VERSION_STRING,
                        module->driver, build->cl.driver, build->device->architecture,
                        build->clc.options, build->clc.before, build->clc.text);
    return build->key ? WEIR_OK : weir_host_no_memory(module->host, "a program");
}

static weir_status compile_cached(struct build *build)
{
    const struct cu_module *module = build->device->module;
    void *entry;
    if (weir_kit_cache_read(module->cache, build->key, &entry, &build->size)) {
        build->entry = entry;
        return WEIR_OK;
    }
    weir_status status = compile(build);
    if (status == WEIR_OK)
        weir_kit_cache_write(module->cache, build->key, build->entry, build->size);
    return status;
}

weir_status cu_compile_opencl(const struct cu_device *device, const char *source,
                              const char *options, struct cu_compiled *out)
{
    const struct weir_host *host = device->module->host;
    struct build build = {.device = device};
    weir_status status = cu_cl_find(device, &build.cl);
    if (status < 0)
        return status;
    const bool barrier = strstr(source, WEIR_KIT_GRID_BARRIER);
    char *all = clc_options(host, options, "");
    build.before = weir_kit_format(host, "%s%s", barrier ? weir_library_grid_barrier : "",
                                   CLC_PREFIX_OF_SOURCE);
    build.clc = (struct clc_build){
        .cl = build.cl.compiler,
        .host = host,
        .name = "cuda",
        .device = build.cl.device,
        .before = build.before,
        .text = source,
        .after = "",
        .options = all,
        .signatures = true,
    };
    status = all && build.before ? make_key(&build)
                                 : weir_host_no_memory(host, "the options of a program");
    if (status == WEIR_OK)
        status = compile_cached(&build);
    host->release(build.key);
    host->release(build.before);
    host->release(all);
    if (status < 0)
        return status;
    out->memory = build.entry;
    out->image = build.entry + strlen(build.entry) + 1;
    out->signatures = weir_kit_signatures_parse(host, build.entry);
    if (!out->signatures)
        return weir_host_no_memory(host, "the signatures of a program");
    weir_kit_signatures_mark_barriers(out->signatures, source);
    return WEIR_OK;
}
