// Runs two forms of the same kernels on one device and compares what they write: CUDA C++ or
// ready images ("the twin"), and the OpenCL C beside it. docs/kernels.md has the form of the cases.
#ifndef WEIR_KERNELS_COMPARE_COMPARE_H
#define WEIR_KERNELS_COMPARE_COMPARE_H

#include <stdio.h>

#include <jansson.h>
#include <weir/weir.h>

struct compare_params {
    const struct weir_bundle *twin;
    const struct weir_bundle *opencl; // the same kernels without it
    const char *cases;                // a file
    weir_runtime *runtime;            // NULL: the default one
};

// Opens the first device of the runtime and runs the cases. On a CUDA device both forms run
// and are compared. On others a line says that this is skipped, and the OpenCL C runs twice.
//
// Prints a line for each case, "ok    NAME: ..." or "FAIL  NAME: ...", to stdout, and what is wrong with
// the file or the machine to stderr. Returns 0 if nothing failed, else 1.
int compare_kernels(const struct compare_params *params);

// The parts, for their test: the file of cases.

enum {
    COMPARE_ARGUMENTS = 32,
    COMPARE_MESSAGE = 512
};

// Of an element: how many bytes it has, and its numbers, from `least` on and below `beyond`. A number is read and
// written as a double.
struct compare_type {
    const char *name;
    size_t size;
    double least, beyond;
    double (*get)(const void *data, size_t index);
    void (*set)(void *data, size_t index, double value);
};

struct compare_argument {
    const struct weir_parameter *parameter;
    const struct compare_type *type;
    unsigned lanes;      // of an element: 4 of a float4 or a float3
    size_t count;        // lanes in all
    size_t size;         // bytes; of LOCAL, what is asked for
    void *data;          // what a launch begins with, and both results; NULL for LOCAL
    void *twin, *opencl; // what each form has written
};

struct compare_case {
    const char *name;
    const char *kernel;
    struct weir_extent grid;
    struct weir_extent block;
    struct compare_argument arguments[COMPARE_ARGUMENTS];
    size_t argument_count;
    double absolute; // the tolerance: |x - y| <= absolute + relative |y|
    double relative;
};

// Reads the array of cases. Errors: NULL, with a sentence.
json_t *compare_read_file(const char *path, char *message);

// Reads one, for the kernels of the bundle. The names point into `from`.
//
// Errors: false, with a sentence. compare_case_finish() is called also then.
bool compare_read_case(const json_t *from, const struct weir_bundle *bundle,
                       struct compare_case *out_case, char *message);
void compare_case_finish(struct compare_case *one);

// Finds the elements of "const float4 *" or "uint". False: it is something else.
bool compare_read_type(const char *type, struct compare_argument *argument);

// Prints the line of a buffer. False: it does not begin with "ok".
bool compare_judge(FILE *to, const struct compare_case *one,
                   const struct compare_argument *argument);

#endif
