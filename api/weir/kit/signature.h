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

// Fills in what the parameter's `type_name` tells, for a kind that is set: of a VALUE `scalar`,
// `size`, `element` and `width`, of a pointer `element`, `width` and `alignment`. Knows the types of
// OpenCL C and their names in C++ and CUDA; `cuda` says that vectors are CUDA's, of which those of
// three have no room for a fourth. Any other name is that of a structure: all stay 0.
void weir_kit_parameter_describe(struct weir_parameter *parameter, bool cuda);

// Reads the kernels that `source`, OpenCL C or CUDA C++, defines, for drivers that do not tell
// them. It is no compiler: it knows comments, strings and preprocessor lines and skips them,
// and finds
//
//     __kernel [attributes] void NAME(parameters)
//     __global__ [attributes] void NAME(parameters)
//
// in whatever is left, in either branch of an #if. Macros are not expanded, so a kernel or a
// parameter list that is made by a macro is not understood, and a name of a type that is a
// pointer reads as a value. In CUDA C++ a pointer is one to a buffer, and a value of the type
// `weir_local` stands for local memory. Parameters are described as weir_kit_parameter_describe()
// does; a structure has the size 0, which the caller fills in from the driver, unless the text tells
// it as in `struct pair:16 p`. `grid_barrier` is set for all kernels of
// a text for which weir_kit_names_barrier() is true.
//
// Errors: WEIR_ERROR_BUILD, naming the kernel, the parameter and, in a text without a #line, the line.
weir_status weir_kit_signatures_read(const struct weir_host *host, const char *source,
                                     struct weir_kit_signatures **out_signatures);

// The line, from 1 on, in which a parameter stands in the one definition of its kernel; 0 where that is not certain,
// as with a macro or a #line. For parameters that a driver tells, without their places.
unsigned weir_kit_parameter_line(const char *source, const char *kernel, const char *parameter);

// The barrier of a cooperative launch, as kernels call it.
#define WEIR_KIT_GRID_BARRIER "weir_grid_barrier"

// Whether a text names the barrier outside comments and literals.
bool weir_kit_names_barrier(const char *source);

#ifdef __cplusplus
}
#endif

#endif
