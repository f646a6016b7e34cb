// Signatures of kernels that are compiled from source at run time: what program_signatures of
// <weir/module/module.h> hands out.
//
// Threads: safe; what was made is read-only.
#ifndef WEIR_KIT_SIGNATURE_H
#define WEIR_KIT_SIGNATURE_H

#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

// Kernel signatures in one block of memory.
//
// Ownership: the caller's, to be given to host->release.
struct weir_kit_signatures {
    struct weir_kernel_signature *kernels;
    uint32_t kernel_count;
    struct weir_parameter *parameters; // those of all kernels, one after the other
};

// Reads the kernels that `source` defines, for drivers that do not tell them. It is no
// compiler: it knows comments, strings and preprocessor lines and skips them, and finds
//
//     __kernel [WEIR_BLOCK(x, y, z)] void NAME(parameters)
//
// in whatever is left, in either branch of an #if. Parameters are those of
// docs/kernels.md, spelt out: `__global [const] T *[restrict] name`,
// `WEIR_LOCAL_PARAM(T) name`, `[const] T name`. Macros are not expanded, so a
// kernel or a parameter list that is made by a macro is not understood. A type
// that is no scalar or vector of the dialect has size 0, which the caller fills in
// from the driver.
//
// Errors: WEIR_ERROR_BUILD, naming the kernel, the parameter and the line.
weir_status weir_kit_signatures_read(const struct weir_host *host, const char *source,
                                     struct weir_kit_signatures **out_signatures);

// Signatures as text, for drivers that tell them only of what was just compiled: the text is
// kept in the cache with the program. Begin with {.host = host}; for each kernel
// append its line, then a line for each of its parameters.
struct weir_kit_signature_text {
    const struct weir_host *host;
    char *data; // the caller's, to be given to host->release; NULL: no kernel yet
    size_t used;
    size_t capacity;
    bool failed; // there was no memory, or a name of more than 900 bytes
};

// `name` and `required_block` of `kernel` are kept, and the count.
void weir_kit_signature_text_kernel(struct weir_kit_signature_text *text,
                                    const struct weir_kernel_signature *kernel);
void weir_kit_signature_text_parameter(struct weir_kit_signature_text *text,
                                       const struct weir_parameter *parameter);

// Reads that text; "" is no kernel. Returns NULL if it is not one that was made so, or
// without memory.
struct weir_kit_signatures *weir_kit_signatures_parse(const struct weir_host *host,
                                                      const char *text);

#ifdef __cplusplus
}
#endif

#endif
