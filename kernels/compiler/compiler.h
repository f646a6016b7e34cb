// The kernel compiler: from OpenCL C to the images of a bundle.
//
//   source.c     one text of all sources: includes are replaced by what they name; and the names of OpenCL C that
//                no bundle has, such as images
//   signature.c  the kernels' signatures, from clang's intermediate representation; and local variables of
//                which a driver may give each work-item a copy
//   cuda.c       that representation, made fit for CUDA with what of kernels/library the kernels call; PTX and
//                cubins of it
//   library.c    which files of kernels/library the kernels need
//   twin.c       CUDA C++ in its place, or images that are there already
//   image.c      which kernels an image has, and which GPU it is for: PTX and cubins
//   build.c      all of it, one after another, and the bundle as C
//   process.c    where clang, libclc, libdevice and ptxas are, and runs them
//
// The text is what OpenCL drivers get. clang holds it against OpenCL C; for CUDA clang, libclc
// and libdevice make PTX of it, and ptxas cubins. Neither a GPU nor a driver is needed.
//
// Errors: functions that fail add sentences and the reports of compilers, each line ending with a
// newline, to a `weir_long_text`.
// Threads: one compilation is used by one thread.
#ifndef WEIR_KERNELS_COMPILER_COMPILER_H
#define WEIR_KERNELS_COMPILER_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"

struct kc_list {
    const char *const *items;
    size_t count;
};

// The barrier of a cooperative launch. Where a text calls it, kc_join() puts its declaration before
// that for clang, which gets this definition, and for OpenCL drivers a macro: they launch one block.
#define KC_GRID_BARRIER "weir_grid_barrier"
#define KC_IS_COMPILER "-DWEIR_KERNELS"

// source.c

// Joins the files, in their order, with "#line" directives so that compilers report their own
// lines. An #include "FILE" is looked for beside the file that contains it and then in
// `folders`, and replaced by what it names; one that is not found stays, for a compiler to refuse
// if it comes to it. `definitions` ("NAME" or "NAME=VALUE") come first.
bool kc_join(const struct kc_list *files, const struct kc_list *folders,
             const struct kc_list *definitions, struct weir_long_text *out_text,
             struct weir_long_text *report);

// process.c

// Paths; an empty one was not found. Preset ones are kept. CUDA_HOME is the toolkit's folder and
// WEIR_LIBCLC the file of libclc, in place of the usual ones; "none" means that there is none.
struct kc_tools {
    char clang[512];
    char libclc[512];    // the library of OpenCL C's functions for NVIDIA's GPUs
    char libdevice[512]; // what that one calls; a part of the CUDA toolkit
    char ptxas[512];     // likewise
    char nvcc[512];      // likewise; for CUDA C++
};

void kc_tools_find(struct kc_tools *tools);

// The absent part that CUDA images need, as a sentence with the remedy; NULL: all are there.
const char *kc_tools_lack(const struct kc_tools *tools, bool cubins);
// The same for CUDA C++.
const char *kc_tools_lack_nvcc(const struct kc_tools *tools);

struct kc_job {
    bool output_too;           // its standard output is among its errors
    char *errors;              // what it wrote to its standard error; to be freed
    int status;                // its exit status; -1: it could not be run, or was killed
    const char *arguments[96]; // the program first, NULL last
    bool is_full;              // an argument did not fit: the job is not run
    int number;                // of the process
    int pipe;
};

void kc_job_add(struct kc_job *job, const char *argument);
// Runs the jobs, as many at once as there are processors.
void kc_run(struct kc_job *jobs, size_t count);
void kc_jobs_finish(struct kc_job *jobs, size_t count);

// A new folder for files on the way, and its end; there is one at a time. SIGINT, SIGTERM and SIGHUP
// that come in between start no more jobs, and take effect at its end.
bool kc_folder_create(char *path, size_t size, struct weir_long_text *report);
void kc_folder_remove(const char *path);

// signature.c

struct kc_parameter {
    char *name;
    char *type; // "const float *"
    enum {
        KC_BUFFER,
        KC_VALUE,
        KC_LOCAL
    } kind;
    bool writable;
    bool constant;       // a pointer to __constant memory
    const char *scalar;  // the end of WEIR_SCALAR_...
    unsigned size;       // of a value
    const char *element; // likewise, of a value or of what a pointer points to
    unsigned width;      // how many elements
    unsigned alignment;  // of what a pointer points to
};

struct kc_kernel {
    char *name;
    struct kc_parameter *parameters;
    size_t parameter_count;
    unsigned block[3]; // zeros: any
    bool grid_barrier; // it calls KC_GRID_BARRIER
};

struct kc_kernels {
    struct kc_kernel *items;
    size_t count;
    unsigned library; // what they need of kernels/library
};

struct kc_language {
    const char *standard; // "CL1.2"
    bool fast;            // KC_FAST
    bool exact;           // the text begins with KC_EXACT
};

#define KC_FAST "-cl-fast-relaxed-math"
// Products and sums are rounded apart, as on every device that heeds it.
#define KC_EXACT "#pragma OPENCL FP_CONTRACT OFF\n"

// The extensions and features that sources may test and use: those that CUDA has from sm_75 on, with
// libclc and kernels/library.
#define KC_EXTENSIONS                                                                        \
    "-cl-ext=-all,+cl_khr_byte_addressable_store,+cl_khr_fp16,+cl_khr_fp64,"                 \
    "+cl_khr_global_int32_base_atomics,+cl_khr_global_int32_extended_atomics,"               \
    "+cl_khr_local_int32_base_atomics,+cl_khr_local_int32_extended_atomics,"                 \
    "+cl_khr_int64_base_atomics,+cl_khr_int64_extended_atomics,+cl_khr_integer_dot_product," \
    "+cl_khr_subgroups,+cl_khr_subgroup_ballot,+cl_khr_subgroup_extended_types,"             \
    "+cl_khr_subgroup_non_uniform_vote,+cl_khr_subgroup_rotate,+cl_khr_subgroup_shuffle,"    \
    "+cl_khr_subgroup_shuffle_relative,+cles_khr_int64,"                                     \
    "+__opencl_c_atomic_order_acq_rel,+__opencl_c_atomic_order_seq_cst,"                     \
    "+__opencl_c_atomic_scope_all_devices,+__opencl_c_atomic_scope_device,"                  \
    "+__opencl_c_fp64,+__opencl_c_generic_address_space,+__opencl_c_int64,"                  \
    "+__opencl_c_integer_dot_product_input_4x8bit,"                                          \
    "+__opencl_c_integer_dot_product_input_4x8bit_packed,"                                   \
    "+__opencl_c_program_scope_global_variables,+__opencl_c_subgroups,"                      \
    "+__opencl_c_work_group_collective_functions"

// What every driver defines, and clang does not: the version of the device.
#define KC_DEVICE_VERSION "-D__OPENCL_VERSION__=300"

// Compiles the text as OpenCL C and reads the kernels' signatures.
bool kc_signatures(const struct kc_tools *tools, const struct kc_language *language,
                   const char *text, const char *folder, struct kc_kernels *out_kernels,
                   struct weir_long_text *report);
void kc_kernels_finish(struct kc_kernels *kernels);

// Whether the text names none of what is refused on every device: images, samplers, pipes, queues of
// the device. Each place is reported.
bool kc_check_outside(const struct kc_tools *tools, const struct kc_language *language,
                      const char *text, const char *folder, struct weir_long_text *report);

// library.c

// A file of kernels/library.
struct kc_subject {
    const char *name;
    const char *text;
    bool generic; // a pointer without an address space is one to the generic
};

enum {
    KC_SUBJECTS = 14
};

// Which subjects have functions that the module declares, as bits.
unsigned kc_library_needed(const char *ir);
// Stores those subjects, at most KC_SUBJECTS, and returns how many.
size_t kc_library(unsigned needed, struct kc_subject *out_subjects);

// cuda.c

struct kc_image {
    const char *format; // the end of WEIR_IMAGE_...
    char target[16];    // "sm_90"
    void *data;
    size_t size;
};

struct kc_images {
    struct kc_image items[32];
    size_t count;
};

// Compiles the text to PTX for each architecture ("90") of `ptx` and to a cubin for each of
// `cubins`. Without any it only finds functions that CUDA lacks, for which libdevice is not needed.
bool kc_cuda_images(const struct kc_tools *tools, const struct kc_language *language,
                    const char *text, const struct kc_kernels *kernels, const char *folder,
                    const struct kc_list *ptx, const struct kc_list *cubins,
                    struct kc_images *images, struct weir_long_text *report);
void kc_images_finish(struct kc_images *images);

// image.c

// A kernel of an image, with the sizes of its parameters.
struct kc_entry {
    char *name;
    unsigned *sizes;
    size_t count;
};

struct kc_entries {
    struct kc_entry *items;
    size_t count;
};

// Finds out whether the data is a cubin or PTX, and for which GPU, and reads its kernels. `name` is
// for messages. The data stays the caller's.
bool kc_image_read(const char *name, const void *data, size_t size, struct kc_image *out_image,
                   struct kc_entries *out_entries, struct weir_long_text *report);
// Adds a kernel without parameters, and a parameter of the last kernel. NULL, false: no memory.
void kc_entries_finish(struct kc_entries *entries);

// twin.c

// What takes the place of the OpenCL C's own CUDA images: a source, or images.
struct kc_twin {
    const char *source;     // in CUDA C++; NULL: none
    struct kc_list options; // of nvcc
    struct kc_list images;  // files: cubins and PTX
};

static inline bool kc_twin_is_there(const struct kc_twin *twin)
{
    return twin->source || twin->images.count > 0;
}

struct kc_build;
struct kc_result;

// Compiles the source for the architectures of the build ("90", "90a"), or reads the images, and
// compares the kernels with those of the OpenCL C.
bool kc_twin_images(const struct kc_build *build, const struct kc_tools *tools, const char *folder,
                    struct kc_result *result, struct weir_long_text *report);

// build.c

struct kc_bundle {
    const char *symbol; // the C name
    const char *label;  // for messages
    const char *header; // the path by which the header is included
    const char *out;    // the files are OUT.c and OUT.h
};

enum {
    KC_TARGET_SIZE = 64
};

// The target of the OpenCL C: all that a driver has to know beside the text.
void kc_source_target(const struct kc_language *language, char out[KC_TARGET_SIZE]);

struct kc_build {
    struct kc_list sources;
    struct kc_list folders;
    struct kc_list definitions;
    struct kc_list ptx;    // architectures
    struct kc_list cubins; // likewise
    struct kc_language language;
    struct kc_twin twin;
    struct kc_tools tools;
    const struct kc_bundle *bundle; // NULL: the sources are only checked
};

// What was built. Zeroed to begin with.
struct kc_result {
    struct weir_long_text text; // the OpenCL C
    struct kc_kernels kernels;
    struct kc_images images;
    struct weir_long_text twin; // the files of the twin, "k.cu"; empty without one
};

// Warnings are in the report too. Nothing is written unless everything worked.
bool kc_build(const struct kc_build *build, struct kc_result *result,
              struct weir_long_text *report);
void kc_result_finish(struct kc_result *result);

#endif
