// Signatures of kernels that are compiled from source at run time, for program_signatures of
// <weir/module/module.h>.
//
// Threads: safe; signatures do not change once they are made.
#ifndef WEIR_KIT_SIGNATURE_H
#define WEIR_KIT_SIGNATURE_H

#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

// Kernel signatures in one block of memory.
//
// Ownership: the caller's, to be freed with host->release.
struct weir_kit_signatures {
    struct weir_kernel_signature *kernels;
    uint32_t kernel_count;
    struct weir_parameter *parameters; // those of all kernels, one after the other
};

// Reads the signatures from `source`, for drivers that do not report them. This is not a compiler:
// it skips comments, strings and preprocessor lines, and finds
//
//     __kernel [WEIR_BLOCK(x, y, z)] void NAME(parameters)
//
// in the rest, in both branches of an #if. Parameters are those of docs/kernels.md, written out:
// `__global [const] T *[restrict] name`, `WEIR_LOCAL_PARAM(T) name`, `[const] T name`. Macros are
// not expanded, so a kernel or a parameter list that is the result of a macro is not understood. A
// type other than the scalars and vectors of the dialect has size 0; the caller gets the size from
// the driver.
//
// Errors: WEIR_ERROR_BUILD, naming the kernel, the parameter and the line.
weir_status weir_kit_signatures_read(const struct weir_host *host, const char *source,
                                     struct weir_kit_signatures **out_signatures);

// Signatures as text, for drivers that report them only for a program that was just compiled: the
// text is stored in the cache with the program. Begin with {.host = host}; for each kernel append
// its line, then a line for each of its parameters.
struct weir_kit_signature_text {
    const struct weir_host *host;
    char *data; // the caller's, to be freed with host->release; NULL: no kernel yet
    size_t used;
    size_t capacity;
    bool failed; // out of memory, or a name is longer than 900 bytes
};

// Of `kernel` the name, the required block and the number of parameters are stored.
void weir_kit_signature_text_kernel(struct weir_kit_signature_text *text,
                                    const struct weir_kernel_signature *kernel);
void weir_kit_signature_text_parameter(struct weir_kit_signature_text *text,
                                       const struct weir_parameter *parameter);

// Reads signatures from such a text; "" has no kernels. Returns NULL for any other text, or if out
// of memory.
struct weir_kit_signatures *weir_kit_signatures_parse(const struct weir_host *host,
                                                      const char *text);

#ifdef __cplusplus
}
#endif

#endif
