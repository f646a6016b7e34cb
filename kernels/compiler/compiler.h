// The kernel compiler: from OpenCL C to the images of a bundle.
//
//   source.c     one text of all sources, in which clang has put what they include, and kernels/images buffers in the
//                place of images
//   module.c     LLVM's intermediate representation: its symbols and what they use
//   check.c      compiles the text; the kernels' signatures; what no bundle has, such as pipes; and `long long`
//   link.c       that representation linked with kernels/library, libclc and libdevice, made fit for CUDA, optimised
//   twin.c       CUDA C++ in its place, or images that are there already, and which kernels these have
//   build.c      all of it, one after another: PTX and cubins, and the bundle as C
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

#include <weir/program.h>

#include "base/grow.h"
#include "base/table.h"

enum {
    KC_PATH_SIZE = 1024 // of files on the way
};

// The barrier of a cooperative launch. Where a text calls it, kc_join() puts its declaration before
// that for clang, which gets this definition, and for OpenCL drivers a macro: they launch one block.
#define KC_GRID_BARRIER "weir_grid_barrier"
#define KC_IS_COMPILER "-DWEIR_KERNELS"

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
    const char *input;  // a file that is its standard input; NULL: that of this process
    const char *output; // a new file for its standard output, likewise
    bool output_too;    // its standard output is among its errors
    char *errors;       // what it wrote to its standard error; to be freed
    int status;         // its exit status; -1: it could not be run, or was killed
    char **arguments;   // the program first, NULL last
    size_t argument_count;
    bool lacks_memory; // for an argument: the job is not run
    int number;        // of the process
    int pipe;
};

// Adds an argument, of which the job keeps a copy.
void kc_job_add(struct kc_job *job, const char *format, ...) WEIR_TEXT_PRINTF(2, 3);
// Adds several as they are; the last is NULL.
void kc_job_add_all(struct kc_job *job, const char *const *arguments);
#define KC_ADD(job, ...) kc_job_add_all(job, (const char *const[]){__VA_ARGS__, NULL})
// Runs the jobs, as many at once as there are processors.
void kc_run(struct kc_job *jobs, size_t count);
void kc_jobs_finish(struct kc_job *jobs, size_t count);
// Finishes jobs that have run. False: one failed; the report has what such said, and the sentence `what`.
bool kc_judge(struct kc_job *jobs, size_t count, const char *what, struct weir_long_text *report);
// Both: kc_run(), kc_judge().
bool kc_run_well(struct kc_job *jobs, size_t count, const char *what,
                 struct weir_long_text *report);

// A new folder for files on the way, and its end; there is one at a time. A WEIR_KERNELS_LIMIT_S that is no time for
// compilers is refused. SIGINT, SIGTERM and SIGHUP
// that come in between start no more jobs, and take effect at its end.
bool kc_folder_create(char *path, size_t size, struct weir_long_text *report);
void kc_folder_remove(const char *path);

// Files on the way, of up to 256 MiB, and reports. False: an error, which is reported. The text that is read ends with
// a zero that its size leaves out, and is the caller's.
bool kc_read(const char *path, char **out_text, size_t *out_size, struct weir_long_text *report);
bool kc_write(const char *path, const char *text, struct weir_long_text *report);
// Reports "error: SENTENCE"; false.
bool kc_error(struct weir_long_text *report, const char *format, ...) WEIR_TEXT_PRINTF(2, 3);

struct kc_language {
    const char *standard; // "CL1.2"
    bool fast;            // KC_FAST
    bool exact;           // the text begins with KC_EXACT
    bool restricted;      // the kernels' pointers are `restrict`
    bool quiet;           // no warnings
    bool strict;          // warnings are errors
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

// source.c

struct kc_sources {
    struct weir_words files;       // "-" is the standard input
    struct weir_words folders;     // of includes
    struct weir_words definitions; // "NAME" or "NAME=VALUE"
};

// Whether a definition is one line of a source, "NAME", "NAME=VALUE" or "NAME(PARAMETERS)=VALUE".
bool kc_is_definition(const char *text);
#define KC_DEFINITIONS "-D takes NAME or NAME=VALUE, in one line and without a backslash at its end"

struct kc_context;

// Adds to the result one text of the definitions and the files, in their order, with "#line" directives so that
// compilers report their own lines; and what it depends on, as kc_add_depends() adds it.
bool kc_join(const struct kc_context *context);

// Adds what the target of a rule of make's depends on, as a compiler has written it into the file; without one, nothing.
void kc_add_depends(const char *path, struct weir_long_text *out);

// module.c

enum kc_symbol_kind {
    KC_UNKNOWN,
    KC_DECLARED,
    KC_DEFINED,
    KC_VARIABLE
};

struct kc_symbol {
    const char *name;
    const char *line; // that begins it
    enum kc_symbol_kind kind;
    bool is_kernel;
    size_t first_use;
    size_t use_count;
};

struct kc_module {
    char *text;
    struct kc_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    struct weir_names *names; // theirs, with the same numbers
    size_t *uses;
    size_t use_count, use_capacity;
    const char **nodes; // of the metadata, by their numbers: after " = "
    size_t node_count, node_capacity;
};

// clang 20 and later put a kernel's code into a function beside it.
#define KC_KERNEL_CODE "@__clang_ocl_kern_imp_"

// Reads the text, which the module then owns, also after an error: no memory.
bool kc_module_read(char *text, struct kc_module *out);
void kc_module_finish(struct kc_module *module);

const struct kc_symbol *kc_module_find(const struct kc_module *module, const char *name);

// Of each symbol, whether the one of that name uses it, or one that it uses does. To be freed. Adds to `reached`, if
// that is not NULL. NULL: no memory, and what was `reached` is freed.
bool *kc_module_reach(const struct kc_module *module, const char *from, bool *reached);

// Adds the module without the functions and variables that are not reached.
void kc_module_add_reached(const struct kc_module *module, const bool *reached,
                           struct weir_long_text *out);

// What stands after "!NUMBER = "; NULL: there is no such node.
const char *kc_module_node(const struct kc_module *module, unsigned long number);

// Adds "k.cl:3:5: ", the place of a line in a module with places; else nothing.
void kc_module_add_place(const struct kc_module *module, const char *line,
                         struct weir_long_text *out);

// The line after this one; NULL: it was the last.
const char *kc_next_line(const char *line);
size_t kc_line_length(const char *line);
// The text in this line; NULL: it is not there.
const char *kc_in_line(const char *line, const char *text);

// The first of a definition's parameters, and the one after this: up to a comma outside of brackets. NULL: there is
// none.
const char *kc_first_parameter(const char *line);
const char *kc_next_parameter(const char *at);

// What follows the string that begins here, in its line.
const char *kc_string_end(const char *at);

bool kc_starts_with(const char *text, const char *start);

// check.c

struct kc_kernel {
    char *name;
    struct weir_parameter *parameters; // with names and types that are the kernel's
    uint32_t parameter_count;
    struct weir_extent block;
    unsigned sub_group; // 0: any
    const char *opaque; // why parameter `opaque_at` is refused; NULL: none is
    size_t opaque_at;
    bool grid_barrier; // it calls KC_GRID_BARRIER
    bool waits;        // it may read what other work-items wrote since it began
    bool refused;      // a sentence of the report says why
};

struct kc_kernels {
    struct kc_kernel *items;
    size_t count;
};

// A build on its way.
struct kc_context {
    const struct kc_build *build;
    struct kc_result *result;
    const char *folder; // for files on the way
    struct weir_long_text *report;
    struct kc_module module; // the text's, before any optimisation
    struct kc_module places; // the same with places in the source; made when a message needs one
    bool has_no_places;      // it cannot be made
};

// Adds a kernel without parameters, and a parameter of which nothing is set. NULL: no memory.
struct kc_kernel *kc_kernel_add(struct kc_kernels *kernels, const char *name, size_t length);
struct weir_parameter *kc_parameter_add(struct kc_kernel *kernel);
// NULL: there is none of that name.
struct kc_kernel *kc_kernels_find(const struct kc_kernels *kernels, const char *name,
                                  size_t length);
void kc_kernel_finish(struct kc_kernel *kernel);
void kc_kernels_finish(struct kc_kernels *kernels);

// Compiles the text as OpenCL C, for CUDA, to the module, and reads the kernels' signatures. Warns of what devices do
// differently, and refuses what no bundle has. False: an error, also
// that there is such a kernel, and it is not to be skipped, or none at all.
bool kc_compile(struct kc_context *context);

// Reports that the kernel cannot be in a bundle: "FILE:LINE: error: kernel 'NAME' SENTENCE", at the line that
// names the symbol `used`, if it is not NULL.
void kc_refuse(struct kc_context *context, struct kc_kernel *kernel, const char *used,
               const char *format, ...) WEIR_TEXT_PRINTF(4, 5);
// Takes away the kernels that are refused. False: that is an error, which is reported.
bool kc_drop_refused(struct kc_context *context, bool *out_any);

// The name that a function has in OpenCL C.
void kc_plain_name(const char *symbol, char *out, size_t size);

// How many bytes the parameters take, at most.
unsigned kc_parameter_bytes(const struct kc_kernel *kernel);

// link.c

#define KC_TARGET "nvptx64-unknown-nvidiacl"
// clang would take the version of PTX from the CUDA toolkit that it finds, and the oldest without one; so
// it is told, and finds none.
#define KC_NO_TOOLKIT "--cuda-path=/nonexistent", "-Xclang", "-target-feature", "-Xclang"
// Of the steps before code is made.
#define KC_MARCH_LOWEST "-march=sm_75", KC_NO_TOOLKIT, "+ptx63"
#define KC_NO_CRASH_FILES "-fno-crash-diagnostics"

// Adds clang and its options for a text in the build's language; and those for CUDA.
void kc_job_add_language(struct kc_job *job, const struct kc_build *build);
void kc_job_add_cuda(struct kc_job *job, const struct kc_language *language);

// Writes what the kernels reach of the module, linked, changed and optimised, into the file
// `path`, and stores its text in *out_ir, which is the caller's. *out_huge: a block has so many instructions that LLVM's
// last passes would take minutes.
bool kc_link(const struct kc_context *context, const char *path, char **out_ir, bool *out_huge);

// twin.c

enum {
    KC_IMAGES_MOST = 32, // for CUDA
    KC_TARGET_SIZE = 64
};
#define KC_TOO_MANY "more than 32 CUDA images in one bundle"

// Images of a bundle, with data that is theirs.
struct kc_images {
    struct weir_image items[KC_IMAGES_MOST + 2];
    char targets[KC_IMAGES_MOST + 2][KC_TARGET_SIZE];
    size_t count;
};

// Adds one; returns its target, an empty text to be set.
char *kc_image_add(struct kc_images *images, const char *format, const void *data, size_t size);

// Finds out whether the data is a cubin or PTX, WEIR_IMAGE_..., and for which GPU, and reads its kernels. `name` is
// for messages. The data stays the caller's; a zero follows it. Of the kernels' parameters the sizes are set.
bool kc_image_read(const char *name, const void *data, size_t size, const char **out_format,
                   char out_target[KC_TARGET_SIZE], struct kc_kernels *out_kernels,
                   struct weir_long_text *report);

// What takes the place of the OpenCL C's own CUDA images: a source, or images.
struct kc_twin {
    const char *source;        // in CUDA C++; NULL: none
    struct weir_words options; // of nvcc
    struct weir_words images;  // files: cubins and PTX
};

static inline bool kc_twin_is_there(const struct kc_twin *twin)
{
    return twin->source || twin->images.count > 0;
}

// Compiles the source for the architectures of the build ("90", "90a"), or reads the images, and
// compares the kernels with those of the OpenCL C.
bool kc_twin_images(const struct kc_context *context);

// build.c

struct kc_bundle {
    const char *symbol; // the C name
    const char *label;  // for messages
    const char *out;    // the files are OUT.c and OUT.h
};

struct kc_build {
    struct kc_sources sources;
    struct weir_words ptx;    // architectures
    struct weir_words cubins; // likewise
    struct kc_language language;
    struct kc_twin twin;
    struct kc_tools tools;          // found
    bool skip;                      // leave out kernels that a bundle cannot have, with a warning
    const struct kc_bundle *bundle; // NULL: the sources are only checked
};

// What was built. Zeroed to begin with, and not moved.
struct kc_result {
    struct weir_long_text text; // the OpenCL C
    struct kc_kernels kernels;
    struct weir_kernel_signature *signatures; // theirs
    struct kc_images images;                  // the OpenCL C is the first
    struct weir_bundle bundle;                // of these
    struct weir_long_text twin;               // the files of the twin, "k.cu"; empty without one
    struct weir_long_text
        depends; // all files that were read but images, as words of a rule of make's
};

// Warnings are in the report too. Nothing is written unless everything worked.
bool kc_build(const struct kc_build *build, struct kc_result *result,
              struct weir_long_text *report);
void kc_result_finish(struct kc_result *result);

#endif
