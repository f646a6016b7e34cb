// Reporting errors from a module: it fills in a detail, passes it to the front end, and returns
// the resulting status from its slot.
//
//     return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED, "use fewer local arrays",
//                           "kernel '%s' needs %zu bytes of local memory, and there are %zu",
//                           name, needed, there);
//
// The message names the object and the limit that was exceeded; the remedy says what to do.
// The functions are copied into the module, so it links nothing for them.
//
// Threads: safe.
#ifndef WEIR_MODULE_ERROR_H
#define WEIR_MODULE_ERROR_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weir/module/module.h>

// Functions that are called only on errors are placed apart from the rest of the module's
// code.
#if defined(__GNUC__)
#define WEIR_HOST_COLD __attribute__((cold))
#else
#define WEIR_HOST_COLD
#endif

// Writes the message into `detail`, whose other fields, such as the native call and its
// error, are already set, and passes it to the front end. Returns `detail->status`.
WEIR_PRINTF(3, 4)
WEIR_HOST_COLD static inline weir_status weir_host_report(const struct weir_host *host,
                                                          struct weir_error *detail,
                                                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail->message, sizeof detail->message, format, arguments);
    va_end(arguments);
    return host->error(detail, sizeof *detail);
}

// An error that no driver reported. `remedy` may be NULL. Returns `status`.
WEIR_PRINTF(4, 5)
WEIR_HOST_COLD static inline weir_status weir_host_fail(const struct weir_host *host,
                                                        weir_status status, const char *remedy,
                                                        const char *format, ...)
{
    struct weir_error detail;
    memset(&detail, 0, sizeof detail);
    detail.status = status;
    if (remedy)
        snprintf(detail.remedy, sizeof detail.remedy, "%s", remedy);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail.message, sizeof detail.message, format, arguments);
    va_end(arguments);
    return host->error(&detail, sizeof detail);
}

// The message for host memory that ran out. Returns WEIR_ERROR_OUT_OF_MEMORY.
WEIR_HOST_COLD static inline weir_status weir_host_no_memory(const struct weir_host *host,
                                                             const char *what)
{
    return weir_host_fail(host, WEIR_ERROR_OUT_OF_MEMORY, "free some memory of the host",
                          "no host memory is left for %s", what);
}

// The error of a backend for a kind of operation that its headers lack, or that it does not
// support. Returns WEIR_ERROR_UNSUPPORTED.
WEIR_HOST_COLD static inline weir_status weir_host_unknown_kind(
    const struct weir_link *link, const struct weir_operation *operation)
{
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                          "update the module, or leave out the plugin that makes such operations",
                          "the backend '%s' does not know operations of kind %d", link->name,
                          (int)operation->kind);
}

#undef WEIR_HOST_COLD

#endif
