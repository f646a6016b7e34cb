// Device code: programs and their kernels.
//
// A program comes from a bundle, which the build rule `weir_kernels` makes out
// of one OpenCL C file, or from source that the driver compiles at run time.
#ifndef WEIR_PROGRAM_H
#define WEIR_PROGRAM_H

#include <stdlib.h>
#include <string.h>

#include <weir/common.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_scalar {
    WEIR_SCALAR_OTHER = 0, // a vector or a structure; only its size is checked
    WEIR_SCALAR_I8,
    WEIR_SCALAR_U8,
    WEIR_SCALAR_I16,
    WEIR_SCALAR_U16,
    WEIR_SCALAR_I32,
    WEIR_SCALAR_U32,
    WEIR_SCALAR_I64,
    WEIR_SCALAR_U64,
    WEIR_SCALAR_F32,
    WEIR_SCALAR_F64,
} weir_scalar;

typedef enum weir_parameter_kind {
    WEIR_PARAMETER_BUFFER = 1, // __global pointer
    WEIR_PARAMETER_VALUE = 2,  // passed by value
    WEIR_PARAMETER_LOCAL = 3,  // __local pointer
} weir_parameter_kind;

// One parameter of a kernel, as its source declares it.
struct weir_parameter {
    size_t struct_size;
    const char *name;
    const char *type_name; // "const float *", for messages
    weir_parameter_kind kind;
    uint32_t writable;  // BUFFER: the pointer is not const
    weir_scalar scalar; // VALUE
    uint32_t size;      // VALUE: bytes
    // above: 0.1
};

struct weir_kernel_signature {
    size_t struct_size;
    const char *name;
    const struct weir_parameter *parameters; // weir_signature_parameter() finds one
    uint32_t parameter_count;
    struct weir_extent required_block; // zeros: any block
    // above: 0.1
};

// Forms of device code. The list is open: a backend takes the forms that it knows by name, and
// passes over the others. What a form's `target` says is the form's own affair.
#define WEIR_IMAGE_OPENCL_C "opencl-c" // text; no target
#define WEIR_IMAGE_CUBIN "cubin"       // "sm_90"
#define WEIR_IMAGE_PTX "ptx"           // text; "sm_90"
#define WEIR_IMAGE_SPIRV "spirv"       // no target

// One form of the same device code. A backend picks one that its device can
// load.
struct weir_image {
    size_t struct_size;
    const char *format; // WEIR_IMAGE_CUBIN, or a name that another backend gives
    const char *target; // what it was compiled for; "" for any device
    const void *data;   // text is zero-terminated, and `size` excludes the zero
    size_t size;
    // above: 0.1
};

static inline bool weir_image_is(const struct weir_image *image, const char *format)
{
    return strcmp(image->format, format) == 0;
}

// 90 for an image whose target is "sm_90", 0 for one of another kind of target. One whose
// target ends in a letter ("sm_90a") runs on that architecture alone.
static inline unsigned weir_image_sm(const struct weir_image *image)
{
    return strncmp(image->target, "sm_", 3) == 0 ? (unsigned)strtoul(image->target + 3, NULL, 10)
                                                 : 0;
}

// What `weir_kernels` generates; static data. The elements of an array lie as far apart as
// the first one's struct_size says; the functions below find one.
struct weir_bundle {
    size_t struct_size;
    const char *name;
    const struct weir_kernel_signature *kernels;
    uint32_t kernel_count;
    const struct weir_image *images;
    uint32_t image_count;
    // above: 0.1
};

// Element `index`, which is below the count.
static inline const struct weir_parameter *weir_signature_parameter(
    const struct weir_kernel_signature *signature, uint32_t index)
{
    const char *first = (const char *)signature->parameters;
    return (const struct weir_parameter *)(const void *)(first +
                                                         index *
                                                             signature->parameters->struct_size);
}
static inline const struct weir_kernel_signature *weir_bundle_kernel(
    const struct weir_bundle *bundle, uint32_t index)
{
    const char *first = (const char *)bundle->kernels;
    return (const struct weir_kernel_signature *)(const void *)(first +
                                                                index *
                                                                    bundle->kernels->struct_size);
}
static inline const struct weir_image *weir_bundle_image(const struct weir_bundle *bundle,
                                                         uint32_t index)
{
    const char *first = (const char *)bundle->images;
    return (const struct weir_image *)(const void *)(first + index * bundle->images->struct_size);
}

struct weir_program_params {
    size_t struct_size;
    const char *label;
    // Exactly one of the two. A bundle must outlive the program.
    const struct weir_bundle *bundle;
    // Source in the dialect that docs/kernels.md describes, with an example;
    // zero-terminated.
    const char *source;
    const char *options; // with `source`: options of the run-time compiler
    // above: 0.1
};

// Loads or compiles device code. Everything slow happens here, nothing at the
// first launch. May wait for the whole device.
//
// Ownership: the caller's, until weir_program_destroy(). Outlived by `device`.
// Threads: safe.
// Errors: WEIR_ERROR_BUILD with the compiler's log in the detail (the log
// callback gets the whole log); WEIR_ERROR_UNSUPPORTED if the device can load
// none of the images.
WEIR_API weir_status weir_program_create(weir_device *device,
                                         const struct weir_program_params *params,
                                         weir_program **out_program);

// As weir_buffer_destroy(). Kernels of the program stay usable.
WEIR_API void weir_program_destroy(weir_program **program);

// What a kernel needs and allows on its device.
struct weir_kernel_info {
    size_t struct_size;
    uint32_t max_block_items;
    uint32_t preferred_block_items; // block sizes should be multiples of this
    uint64_t local_bytes;           // local memory of a block, declared in the kernel
    uint32_t registers;             // of a work-item; 0 where unknown
    // above: 0.1
};

// Looks up a kernel by name.
//
// Ownership: the caller's, until weir_kernel_destroy(). Outlived by the device.
// Threads: safe; several threads may launch one kernel.
// Errors: WEIR_ERROR_NOT_FOUND with the nearest name.
WEIR_API weir_status weir_kernel_create(weir_program *program, const char *name,
                                        weir_kernel **out_kernel);

// As weir_buffer_destroy().
WEIR_API void weir_kernel_destroy(weir_kernel **kernel);

// The kernel's signature from its source, and its figures on the device; NULL
// for NULL.
//
// Ownership: the kernel's.
WEIR_API const struct weir_kernel_signature *weir_kernel_get_signature(const weir_kernel *kernel);
WEIR_API const struct weir_kernel_info *weir_kernel_get_info(const weir_kernel *kernel);

#ifdef __cplusplus
}
#endif

#endif
