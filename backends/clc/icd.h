// An installable client driver of OpenCL (cl_khr_icd) that is opened without the loader: it lists its
// platforms, and its functions are in the table to which each of its objects points.
#ifndef WEIR_BACKENDS_CLC_ICD_H
#define WEIR_BACKENDS_CLC_ICD_H

#include "backends/clc/cl_api.h"

typedef cl_int (*clc_get_platforms)(cl_uint, cl_platform_id *, cl_uint *);
typedef void (*clc_function)(void);

// The driver's clIcdGetPlatformIDsKHR(), which has the parameters of clGetPlatformIDs(); NULL: the
// library, a handle of dlopen(), is no such driver.
clc_get_platforms clc_icd_platforms(void *library);

// The functions of the platform and its objects, in the order of <CL/cl_icd.h>.
const clc_function *clc_icd_functions(cl_platform_id platform);

#endif
