// How the readers and writers of this folder report failure: a function returns
// false and stores one sentence with the file, the problem, the limit that it
// exceeds and the remedy.
#ifndef WEIR_IO_ERROR_H
#define WEIR_IO_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/text.h"

// Undefined after a success: read it only if a call returned false.
struct weir_io_error {
    char message[512];
};

// Fills `error` with "PATH: SENTENCE" as weir_text_about() does, and returns false, so that a reader can say
// `return weir_io_fail(...)`.
//
// Threads: safe.
WEIR_TEXT_PRINTF(3, 4)
static inline bool weir_io_fail(struct weir_io_error *error, const char *path, const char *format,
                                ...)
{
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(error->message, sizeof error->message, path, format, arguments);
    va_end(arguments);
    return false;
}

#endif
