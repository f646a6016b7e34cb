// Setting the calling thread's error detail. All failures in core go through one of these, as
// the value of a return statement.
#ifndef WEIR_CORE_SUPPORT_ERROR_H
#define WEIR_CORE_SUPPORT_ERROR_H

#include <weir/common.h>
#include <weir/log.h>
#include <weir/status.h>

#include "base/cold.h"
#include "base/try.h"

// Starts a fresh detail with a formatted message, for a call about an object, made at file:line. All but the status and the
// format may be NULL.
WEIR_COLD void weir__report_at(const char *file, int line, const char *object, weir_status status,
                               const char *remedy, const char *format, ...) WEIR_PRINTF(6, 7);

// The same without object and place.
#define weir__report(status, ...) weir__report_at(NULL, 0, NULL, (status), __VA_ARGS__)

// The same as expressions with the value `status`. Macros, so that readers of the caller, and
// static analysers, see the value.
#define weir__fail(status, ...) (weir__report((status), __VA_ARGS__), (status))
#define weir__fail_at(file, line, object, status, ...) \
    (weir__report_at(file, line, object, (status), __VA_ARGS__), (status))
// Of WEIR_ERROR_INVALID: with the file and the line of a structure, and without, where weir__placed() follows.
#define weir__refuse(at, object, ...) \
    weir__fail_at((at)->file, (at)->line, object, WEIR_ERROR_INVALID, __VA_ARGS__)
#define weir__invalid(object, ...) weir__fail_at(NULL, 0, object, WEIR_ERROR_INVALID, __VA_ARGS__)

// The thread's detail, with a message, if it is of that status. A module may fail without one, and an
// older one must not be used then: the result has the status and its text.
WEIR_COLD struct weir_error weir__error_of(weir_status status);

// Replaces the detail by a copy of `*error` and returns its status.
WEIR_COLD weir_status weir__error_set(const struct weir_error *error);

// The same of one that has `size` bytes, which a module made with its own headers.
WEIR_COLD weir_status weir__error_take(const struct weir_error *error, size_t size);

// Adds what the detail does not hold yet. The detail of a failure of another status is an older one: it
// is replaced by that status and its text.
WEIR_COLD void weir__error_place(weir_status status, const char *object, const char *file,
                                 int line);

// The status of a call that was made at file:line, which an error of it gets if it has no place yet.
static inline weir_status weir__placed(weir_status status, const char *file, int line)
{
    if (status < 0)
        weir__error_place(status, NULL, file, line);
    return status;
}

// The length of the part of a function's name that the user wrote: the macro has no `_at`.
int weir__name_length(const char *function);

// A label for a message, or "(no label)". Labels of objects hold nothing that a terminal interprets.
static inline const char *weir__label_or_none(const char *label)
{
    return label && label[0] ? label : "(no label)";
}

// " (created at main.c:12)": `before`, the place with the end of a long path, and `after`; "" if `file` is NULL.
#define WEIR__PLACE_SIZE 120
const char *weir__place_text(char text[WEIR__PLACE_SIZE], const char *before, const char *file,
                             int line, const char *after);

// What to do about an argument of that name that is NULL.
const char *weir__null_remedy(const char *name);

// Reports that `condition`, given as its source text, does not hold in `function`. A pointer
// alone is reported as "queue is NULL", and `items || item_count == 0` as an array that is NULL.
WEIR_COLD void weir__report_broken(const char *file, int line, const char *object,
                                   const char *function, const char *condition);

// Refuses the call unless `condition` holds: the message is made from its text.
#define WEIR_REQUIRE(object, condition) WEIR_REQUIRE_AT(NULL, 0, object, condition)

// The same for operations, which have their caller's file and line.
#define WEIR_REQUIRE_AT(file, line, object, condition)                             \
    do {                                                                           \
        if (!(condition))                                                          \
            return (weir__report_broken(file, line, object, __func__, #condition), \
                    WEIR_ERROR_INVALID);                                           \
    } while (0)

// Reads the `size` bytes of params that this library knows, of the type of that name, into
// `known`, in a call that was made at file:line: <base/sized.h>. Returns false, with the detail set, for params that are refused.
bool weir__params_read(const char *file, int line, const char *function, const char *type,
                       const void *params, void *known, size_t size);

// weir__params_read() in a call, which it makes return; `params` points to `known` afterwards.
#define WEIR_READ_PARAMS(file, line, type, params, known)                          \
    do {                                                                           \
        if (!weir__params_read((file), (line), __func__, #type, (params), (known), \
                               sizeof(struct type)))                               \
            return WEIR_ERROR_INVALID;                                             \
        (params) = (known);                                                        \
    } while (0)

// Sending messages to the user's log callback.

// `source` is "core" or a module's name. Costs one load when logging is off.
void weir__log(weir_log_level level, const char *source, const char *message);

// From now on messages of that level and of more severe ones are printed on standard error while the
// program takes none; 0 and a level below the present one change nothing. With `tells` refused calls are
// told too.
void weir__log_print(int level, bool tells);

// Refused calls are told in debug mode, and where messages are printed: the thread's error is logged
// once, as soon as it has its caller's place. What has none is told by the functions below.

// Tells the thread's error, unless that was told.
WEIR_COLD void weir__tell(void);

static inline weir_status weir__told(weir_status status)
{
    if (status < 0)
        weir__tell();
    return status;
}

// Tells of a call at file:line which an earlier failure, the thread's error, refused. Returns `status`.
WEIR_COLD weir_status weir__tell_refused(weir_status status, const char *call, const char *file,
                                         int line);

#endif
