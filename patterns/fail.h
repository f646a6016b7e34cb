// The patterns report their own errors as the thread's error detail, where users
// find all other errors too.
#ifndef WEIR_PATTERNS_FAIL_H
#define WEIR_PATTERNS_FAIL_H

#include <weir/status.h>

// A pattern's label, or what stands for it where none was given; and for a message the label of an object.
static inline const char *weir__pattern_label(const char *label, const char *otherwise)
{
    return label && label[0] ? label : otherwise;
}

#define WEIR__PATTERN_SHOWN(label) weir__pattern_label(label, "(no label)")

// A pattern keeps as much of its label as struct weir_error shows.
#define WEIR__PATTERN_LABEL_SIZE 64

// Sets the thread's error detail, for the object with that label, and returns
// `status`. `remedy` may be NULL.
weir_status weir__pattern_fail(const char *label, weir_status status, const char *remedy,
                               const char *format, ...) WEIR_PRINTF(4, 5);

// The same with WEIR_ERROR_INVALID.
#define weir__pattern_refuse(label, ...) weir__pattern_fail(label, WEIR_ERROR_INVALID, __VA_ARGS__)

// Returns from the function that calls it unless `call` returns WEIR_OK.
#define TRY(call)                         \
    do {                                  \
        const weir_status tried = (call); \
        if (tried != WEIR_OK)             \
            return tried;                 \
    } while (0)

// Refuses the handle `name` of that function, which is NULL.
weir_status weir__pattern_refuse_null(const char *function, const char *name);

// Fails with WEIR_ERROR_OUT_OF_MEMORY; `what` there is no memory for.
weir_status weir__pattern_no_memory(const char *label, const char *what);

// Reads a user's params as <base/sized.h> says, with its refusal as the thread's detail.
// `function` is the one that was called, `type` the structure's name.
weir_status weir__pattern_params(const char *function, const char *type, const void *params,
                                 void *known, size_t size);

// The same of an item of an array; `given_size` is the distance between its items.
weir_status weir__pattern_item(const char *function, const char *type, const void *item,
                               size_t given_size, void *known, size_t size);

// Clears an old detail, so that it is not mistaken for the detail of the callback
// that is called next.
void weir__pattern_forget(void);

// Turns a callback's return value into an error with a detail: the callback's own if
// it left one.
weir_status weir__pattern_callback_failed(const char *label, const char *what, weir_status status);

// The first failure of several calls, with its detail, whatever is called after it. Zeroed: none so far.
struct weir__pattern_first {
    weir_status
        status; // that of a call that succeeded with another status than WEIR_OK, before a failure
    struct weir_error error;
};

void weir__pattern_note(struct weir__pattern_first *first, weir_status status);

// Returns its status, with its detail as the thread's.
weir_status weir__pattern_first(const struct weir__pattern_first *first);

// The remedy where a thread of the library's cannot be started.
#define WEIR__THREADS_REMEDY "raise the limit on threads (ulimit -u)"

#endif
