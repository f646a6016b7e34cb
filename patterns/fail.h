// How the patterns report an error of their own: as the thread's error detail, where
// their users find all others.
#ifndef WEIR_PATTERNS_FAIL_H
#define WEIR_PATTERNS_FAIL_H

#include <weir/status.h>

// Sets the thread's error detail, about the object of that label, and returns
// `status`. `remedy` may be NULL.
weir_status weir__pattern_fail(const char *label, weir_status status, const char *remedy,
                               const char *format, ...) WEIR_PRINTF(4, 5);

// Clears an old detail, so that it is not taken for that of a callback which is
// called next.
void weir__pattern_forget(void);

// What a callback returned, made an error with a detail: its own if it left one.
weir_status weir__pattern_callback_failed(const char *label, const char *what, weir_status status);

#endif
