// A driver's errors, and a compiler's log, as Weir reports them. A backend has one table of
// what its driver's codes mean; what the driver itself knows of a code is not repeated there.
//
//     static const struct weir_kit_native table[] = {
//         {2, WEIR_ERROR_OUT_OF_MEMORY, NULL, "use smaller buffers, or fewer"}, ...};
//     static const struct weir_kit_natives natives = {table, sizeof table / sizeof *table,
//                                                     "unknown error of the driver"};
//
// Threads: safe.
#ifndef WEIR_KIT_ERROR_H
#define WEIR_KIT_ERROR_H

#include <stdarg.h>
#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_kit_native {
    int code;
    weir_status status;
    const char *name;   // NULL: the driver tells it
    const char *remedy; // NULL: none is known
};

struct weir_kit_natives {
    const struct weir_kit_native *entries;
    size_t count;
    const char *unknown; // the name of a code that nobody knows
};

// The entry of `code`, or NULL.
const struct weir_kit_native *weir_kit_native_find(const struct weir_kit_natives *natives,
                                                   int code);

// The table's name of `code`, or `natives->unknown`.
const char *weir_kit_native_name(const struct weir_kit_natives *natives, int code);

// Fills in all of `*detail`: the driver refused `call` with `code`. `name` is what the driver
// calls the code, or NULL, and then the table's name is used. The rest is the sentence, of
// what was attempted. A code that is not in the table has the status WEIR_ERROR_DEVICE and
// no remedy. Hand the detail to host->error.
void weir_kit_native_describe(const struct weir_kit_natives *natives, struct weir_error *detail,
                              const char *call, int code, const char *name, const char *format,
                              va_list arguments) WEIR_PRINTF(6, 0);

// A compiler's answer to run-time source.
struct weir_kit_build {
    const char *source;  // of log messages: the backend's name
    const char *log;     // NULL: none
    const char *options; // the program's, for the message
    const char *sought;  // the first line of the log that contains this is the message's
    bool failed;
    const char *call; // if it failed: the call, its code and the code's name
    int code;
    const char *name;
};

// Sends the log to the log callback, and reports a failure with the line that tells most.
// Returns WEIR_OK or WEIR_ERROR_BUILD.
weir_status weir_kit_build_report(const struct weir_host *host, const struct weir_kit_build *build);

#ifdef __cplusplus
}
#endif

#endif
