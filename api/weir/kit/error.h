// Reports a driver's errors and a compiler's log. A backend has one table that maps its driver's
// error codes to Weir's status and a remedy; it has no names for codes that the driver names
// itself.
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
    const char *name;   // NULL: the driver has it
    const char *remedy; // NULL: none is known
};

struct weir_kit_natives {
    const struct weir_kit_native *entries;
    size_t count;
    const char *unknown; // the name of codes without a name
};

// The table's name of `code`, or `natives->unknown`.
const char *weir_kit_native_name(const struct weir_kit_natives *natives, int code);

// Fills in all of `*detail` for an error of the driver: `call` returned `code`. `name` is the
// driver's name of the code; NULL: the table's name is used. `format` and `arguments` make the
// message, which says what was attempted. A code that is not in the table has the status
// WEIR_ERROR_DEVICE and no remedy. Pass the detail to host->error.
void weir_kit_native_describe(const struct weir_kit_natives *natives, struct weir_error *detail,
                              const char *call, int code, const char *name, const char *format,
                              va_list arguments) WEIR_PRINTF(6, 0);

// The result of compiling source at run time.
struct weir_kit_build {
    const char *source;  // of log messages: the backend's name
    const char *log;     // of the compiler; NULL: none
    const char *options; // of the program, for the message
    const char *sought;  // the message quotes the first line of the log that contains this
    bool failed;
    const char *call; // after a failure: the call, its error code, and the name of that
    int code;
    const char *name;
};

// Sends the compiler's log to the log callback, and reports a failure with one line of it. Returns
// WEIR_OK or WEIR_ERROR_BUILD.
weir_status weir_kit_build_report(const struct weir_host *host, const struct weir_kit_build *build);

#ifdef __cplusplus
}
#endif

#endif
