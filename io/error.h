// How the readers and writers of this folder report failure: a function returns
// false and stores one sentence with the file, the problem, the limit that it
// exceeds and the remedy.
#ifndef WEIR_IO_ERROR_H
#define WEIR_IO_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// Undefined after a success: read it only if a call returned false.
struct weir_io_error {
    char message[512];
};

// Fills `error` with "PATH: SENTENCE" and returns false, so that a reader can say
// `return weir_io_fail(...)`.
//
// Threads: safe.
bool weir_io_fail(struct weir_io_error *error, const char *path, const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
