// Builds OpenCL C with a driver's compiler, for the OpenCL and the CUDA backend.
//
// Threads: safe, for different builds.
#ifndef WEIR_BACKENDS_CLC_CLC_H
#define WEIR_BACKENDS_CLC_CLC_H

#include <weir/kit/error.h>
#include <weir/kit/signature.h>
#include <weir/module/module.h>

#include "backends/clc/symbols.h"
#include "base/cold.h"

// Precedes the text of a program that is exact, so that a * b + c rounds twice and fma() once.
#define CLC_EXACT "#pragma OPENCL FP_CONTRACT OFF\n"
// Precedes the caller's text. The compiler counts lines from the first of that text.
#define CLC_BEFORE_SOURCE "#line 1 \"source\"\n"
// An option of a program that is fast, beside the caller's.
#define CLC_FAST " -cl-fast-relaxed-math"

// The barrier of a cooperative launch where such a launch has one block.
#define CLC_BLOCK_BARRIER \
    "#define " WEIR_KIT_GRID_BARRIER "() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)\n"

// One program while it is built.
struct clc_build {
    const struct ocl_symbols *cl;
    const struct weir_host *host;
    const char *name; // of log messages
    cl_context context;
    cl_device_id device;
    const char *before; // "" or more lines, as `after` is
    const char *text;
    const char *after;
    const char *options;
    bool signatures;    // requested
    cl_program program; // the results, or NULL
    char *heads;        // of the kernels, with bodies of nothing
};

// Returns the options of a program: `user` and `more`, after the option for OpenCL C 1.2 unless
// they name another version. NULL if out of memory.
//
// Ownership: the caller's, to be freed with host->release.
char *clc_options(const struct weir_host *host, const char *user, const char *more);

// Builds the program and, if requested, stores its kernels' heads as a text for
// weir_kit_signatures_read(), which free() frees.
//
// Ownership: the results are the build's, until clc_drop().
// Errors: WEIR_ERROR_BUILD with the compiler's log; WEIR_ERROR_UNSUPPORTED for a parameter that
// a launch cannot pass; the driver's.
weir_status clc_build(struct clc_build *build);

// Stores what a cache has of a built program: its kernels' heads, a zero byte, and what the driver calls its binary, which
// may be empty.
//
// Ownership: the caller's, to be freed with free().
cl_int clc_entry(const struct clc_build *build, char **out_entry, size_t *out_size);

// Releases the results.
void clc_drop(struct clc_build *build);

// error.c

// Returns the name of an OpenCL error, such as "CL_INVALID_VALUE". Never NULL.
const char *clc_native_name(cl_int code);

// Reports that `call` returned `code`, and returns the corresponding status. `format` says what was
// attempted.
WEIR_COLD weir_status clc_native_error(const struct weir_host *host, const char *call, cl_int code,
                                       const char *format, ...) WEIR_PRINTF(4, 5);

#endif
