// Builds a program with a driver's compiler.
#include <string.h>
#include <weir/kit/cache.h>
#include <weir/module/error.h>

#include "backends/clc/clc.h"

#define STANDARD "-cl-std=CL1.2 "
#define WITH_SIGNATURES "-cl-kernel-arg-info "

// Removes trailing spaces and newlines.
static void cut_end(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
}

char *clc_options(const struct weir_host *host, const char *user, const char *more)
{
    const bool own = strstr(user, "-cl-std=") || strstr(more, "-cl-std=");
    char *options = weir_kit_format(host, "%s%s %s", own ? "" : STANDARD, user, more);
    if (options)
        cut_end(options);
    return options;
}

static char *read_log(const struct clc_build *build)
{
    const struct clc_symbols *cl = &build->cl;
    size_t size = 0;
    cl->clGetProgramBuildInfo(build->program, build->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = build->host->allocate(size + 1);
    if (log)
        cl->clGetProgramBuildInfo(build->program, build->device, CL_PROGRAM_BUILD_LOG, size, log,
                                  NULL);
    return log;
}

static weir_status report(const struct clc_build *build, cl_int code)
{
    char *log = read_log(build);
    const struct weir_kit_build result = {
        .source = build->name,
        .log = log,
        .options = build->options,
        .sought = "error:",
        .failed = code != CL_SUCCESS,
        .call = "clBuildProgram",
        .code = code,
        .name = clc_native_name(code),
    };
    const weir_status status = weir_kit_build_report(build->host, &result);
    build->host->release(log);
    return status;
}

// NVIDIA's compiler fails to record signatures if a kernel has no parameters; a program in which no
// kernel has any is built without them.
static weir_status compile(const struct clc_build *build)
{
    char *options = weir_kit_format(build->host, "%s%s", build->signatures ? WITH_SIGNATURES : "",
                                    build->options);
    if (!options)
        return weir_host_no_memory(build->host, "the options of a program");
    cl_int code = build->cl.clBuildProgram(build->program, 1, &build->device, options, NULL, NULL);
    if (code != CL_SUCCESS && build->signatures)
        code = build->cl.clBuildProgram(build->program, 1, &build->device,
                                        options + strlen(WITH_SIGNATURES), NULL, NULL);
    build->host->release(options);
    return report(build, code);
}

weir_status clc_build(struct clc_build *build)
{
    const char *parts[] = {build->before, build->text, build->after};
    cl_int code;
    build->program = build->cl.clCreateProgramWithSource(build->context, 3, parts, NULL, &code);
    if (!build->program)
        return clc_native_error(build->host, "clCreateProgramWithSource", code,
                                "cannot take the program's source");
    weir_status status = compile(build);
    if (status == WEIR_OK && build->signatures)
        status = clc_describe(build);
    return status;
}

void clc_drop(struct clc_build *build)
{
    if (build->program)
        build->cl.clReleaseProgram(build->program);
    build->program = NULL;
    build->host->release(build->signature_text);
    build->signature_text = NULL;
}
