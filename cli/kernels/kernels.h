// What the files of `weir kernels` share. The work is done by kernels/compiler; these read command
// lines and print.
//
//   command.c  the table of its commands; build, check, list and compare
//   source.c   the part of the command line that all have, a compilation, and what compilers say
//   code.c     the architectures that CUDA images are made for; ptx, sass and resources
#ifndef WEIR_CLI_KERNELS_KERNELS_H
#define WEIR_CLI_KERNELS_KERNELS_H

#include "cli/common/options.h"
#include "kernels/compiler/compiler.h"

// source.c

// Reads the command line, with the options of `usage` and those that every command takes (the files, -D, -I, --std,
// --fast, --exact, --restrict and more), and finds the compilers.
// `command`, `about` and `options` of the usage are the caller's, the rest is set here.
//
// Ends the command as cli_parse() does.
void kernels_parse(struct kc_build *build, struct cli_usage usage, int argc, char **argv);

// Compiles, and prints what the compilers say to stderr; if that `is_told` already, errors alone. Ends the command after
// an error.
//
// Ownership: the command's, as that of all which it makes (cli/common/own.h).
const struct kc_result *kernels_compile(const struct kc_build *build, bool is_told);

// Whether the name can stand in #include "NAME" and in a string of C.
bool kernels_is_plain(const char *name);

// --cuda, --nvcc-option and --cuda-image of a struct kc_twin.
#define KERNELS_TWIN_OPTIONS(twin)                                                               \
    {                                                                                            \
        "cuda",   "FILE.cu",       "the same kernels in CUDA C++, for CUDA devices",             \
        CLI_FILE, &(twin)->source, 0,                                                            \
        0},                                                                                      \
        {"nvcc-option",                                                                          \
         "O",                                                                                    \
         "an option of nvcc for it; may be repeated",                                            \
         CLI_LIST,                                                                               \
         &(twin)->options,                                                                       \
         0,                                                                                      \
         0},                                                                                     \
    {                                                                                            \
        "cuda-image", "FILE", "a cubin or PTX of the same kernels; may be\nrepeated", CLI_FILES, \
            &(twin)->images, 0, 0                                                                \
    }

// Ends the command if they do not go together, or with architectures.
void kernels_twin_check(const struct kc_twin *twin, bool architectures_are_named);

// Architectures are words such as "90".

// Reads "80,90", or "none" for no architecture; with `letters` "90a" too.
void kernels_architectures_parse(const char *option, const char *text, bool letters,
                                 struct weir_words *out);
// The same of one, 90 if `text` is NULL.
void kernels_architecture_parse(const char *text, bool letters, struct weir_words *out);

// Adds it unless it is there already.
void kernels_architectures_add(struct weir_words *list, const char *name);

// Removes those that ptxas makes no cubins for. Ends the command if ptxas does not say.
void kernels_architectures_keep_known(const struct kc_tools *tools, struct weir_words *list);

// Ends the command unless ptxas makes cubins for all of them.
void kernels_architectures_check(const struct kc_tools *tools, const struct weir_words *list);
// Ends it after this sentence, of what is not installed, unless that is NULL.
void kernels_need(const char *lack);

#endif
