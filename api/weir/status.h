// Status codes and the detail of the last error.
#ifndef WEIR_STATUS_H
#define WEIR_STATUS_H

#include <stdio.h>
#include <stdlib.h>

#include <weir/common.h>

// The one table of status codes: X(name, value, text). Zero is success,
// positive values are results that are not errors, negative values are errors.
#define WEIR_STATUS_TABLE(X)                                                 \
    X(WEIR_OK, 0, "success")                                                 \
    X(WEIR_NOT_READY, 1, "not ready yet")                                    \
    X(WEIR_TIMEOUT, 2, "the timeout passed first")                           \
    X(WEIR_DROPPED, 3, "dropped by the full-ring policy")                    \
    X(WEIR_CANCELLED, 4, "cancelled before it started")                      \
    X(WEIR_ERROR_INVALID, -1, "an argument breaks the contract of the call") \
    X(WEIR_ERROR_OUT_OF_MEMORY, -2, "out of memory")                         \
    X(WEIR_ERROR_UNSUPPORTED, -3, "not supported by this device")            \
    X(WEIR_ERROR_NOT_FOUND, -4, "no such thing")                             \
    X(WEIR_ERROR_CONFIG, -5, "the configuration is wrong")                   \
    X(WEIR_ERROR_MODULE, -6, "a module cannot be used")                      \
    X(WEIR_ERROR_NO_DEVICE, -7, "no device")                                 \
    X(WEIR_ERROR_BUILD, -8, "device code does not build")                    \
    X(WEIR_ERROR_EXPIRED, -9, "no longer known")                             \
    X(WEIR_ERROR_DEVICE, -10, "the driver reported an error")                \
    X(WEIR_ERROR_DEVICE_LOST, -11, "the device is lost")                     \
    X(WEIR_ERROR_HOST_CALL, -12, "a host call failed")                       \
    X(WEIR_ERROR_FORKED, -13, "the process was forked after Weir was used")  \
    X(WEIR_ERROR_IO, -14, "a file cannot be read or written")                \
    X(WEIR_ERROR_SYSTEM, -15, "the operating system refused a request")      \
    X(WEIR_ERROR_COMM, -16, "a collective failed between ranks")

typedef enum weir_status {
#define WEIR_STATUS_ENTRY(name, value, text) name = value,
    WEIR_STATUS_TABLE(WEIR_STATUS_ENTRY)
#undef WEIR_STATUS_ENTRY
} weir_status;

// The identifier of `status` ("WEIR_TIMEOUT"), or "unknown status".
WEIR_API const char *weir_status_name(weir_status status);

// The text of `status` for users, or "unknown status".
WEIR_API const char *weir_status_text(weir_status status);

// The detail of an error. Empty strings and zeros mean: does not apply.
struct weir_error {
    weir_status status;
    char message[768];    // what was requested, and the limit that it exceeds
    char object[128];     // label of the object that was used
    char native_call[64]; // the driver's function, e.g. "clCreateBuffer"
    char native_name[64]; // the driver's error, e.g. "CL_OUT_OF_RESOURCES"
    int64_t native_code;  // the number of that error
    char remedy[256];     // what to do about it
    const char *file;     // the caller's file:line; kept for the process
    int line;
};

// The detail of the last call that failed on this thread, or of a wait on the host that returned
// WEIR_TIMEOUT after a timeout above 0: what has not ended, from queue to queue. Never NULL; its
// status is WEIR_OK if there was none yet. Successful calls do not change it.
//
// Ownership: the library's; valid until the thread's next failing call.
WEIR_API const struct weir_error *weir_last_error(void);

// The same as one paragraph of text: message, object, native error, remedy and
// file:line. Never NULL.
//
// Ownership: the library's; valid until the thread's next call of this
// function.
WEIR_API const char *weir_last_error_text(void);

// Replaces the thread's error detail by a copy of `*error` and returns its
// status; NULL clears it and returns WEIR_OK. For libraries built on Weir, so
// that their users find every failure in one place.
WEIR_API weir_status weir_error_set_sized(const struct weir_error *error, size_t size);
#define weir_error_set(error) weir_error_set_sized(error, sizeof(struct weir_error))

// A call whose status is dropped on purpose: WEIR_IGNORE(weir_queue_sync(queue, WEIR_MS(5))).
#define WEIR_IGNORE(call) ((void)!(call))

// For programs that end at their first error, such as examples and tests.
//
// WEIR_CHECK(call) ends the program with exit status 1 unless the call returns WEIR_OK, after it has
// printed the error, and the place and text of the call, on standard error. WEIR_TIMEOUT and
// WEIR_NOT_READY end it too, since what the call was to wait for has not happened. WEIR_TRY(call)
// returns these two.
#define WEIR_CHECK(call) weir__check(call, #call, __FILE__, __LINE__)
#define WEIR_TRY(call) weir__try(call, #call, __FILE__, __LINE__)

static inline weir_status weir__try(weir_status status, const char *call, const char *file,
                                    int line)
{
    if (status >= 0)
        return status;
    const bool known = weir_last_error()->status == status;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call,
            known ? weir_last_error_text() : weir_status_text(status));
    exit(1);
}

static inline void weir__check(weir_status status, const char *call, const char *file, int line)
{
    if (weir__try(status, call, file, line) == WEIR_OK)
        return;
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, weir_status_name(status),
            weir_last_error()->status == status ? weir_last_error_text()
                                                : weir_status_text(status));
    exit(1);
}

#endif
