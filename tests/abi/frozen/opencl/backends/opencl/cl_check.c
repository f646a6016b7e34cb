// Compares cl_api.h and symbols.h with Khronos' headers at compile time; without
// them, or in use, this file is empty.
#ifdef __has_include
#if __has_include(<CL/cl.h>) && __has_include(<CL/cl_ext.h>)

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

// Types that both declare must be the same, or this does not compile.
#include "tests/abi/frozen/opencl/backends/opencl/symbols.h"

#define OCL_CHECK_CONSTANT(name, value) _Static_assert((name) == (value), #name " differs");
OCL_CONSTANTS(OCL_CHECK_CONSTANT)
OCL_EXTENSION_CONSTANTS(OCL_CHECK_CONSTANT)
#undef OCL_CHECK_CONSTANT

#define OCL_CHECK_SYMBOL(since, result, name, parameters) \
    _Static_assert(_Generic(&name, result(*) parameters : 1, default : 0), #name " differs");
OCL_SYMBOLS(OCL_CHECK_SYMBOL)
#undef OCL_CHECK_SYMBOL

_Static_assert(sizeof(cl_buffer_region) == 2 * sizeof(size_t), "cl_buffer_region differs");

#endif
#endif

// ISO C requires a declaration in every file.
typedef int ocl_check_done;
