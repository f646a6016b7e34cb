// The line of the program that creates a pattern, which what the pattern creates gets too, and so does
// an error of the call. Included after the headers of Weir: in the sources of the patterns their macros add that
// line in place of the source's own.
#ifndef WEIR_PATTERNS_PLACE_H
#define WEIR_PATTERNS_PLACE_H

#include <weir/buffer.h>
#include <weir/program.h>
#include <weir/queue.h>

struct weir__place {
    const char *file; // NULL: unknown
    int line;
};

// From now on the thread creates for `file`:`line`. Returns what it created for before.
struct weir__place weir__pattern_begin(const char *file, int line);

// Ends that. An error of the call without a place gets that of the begin. Returns `status`.
weir_status weir__pattern_end(weir_status status, struct weir__place before);

// The place that the thread creates for, or `file`:`line`.
struct weir__place weir__pattern_place(const char *file, int line);

#define WEIR__PATTERN_PLACE \
    weir__pattern_place(__FILE__, __LINE__).file, weir__pattern_place(__FILE__, __LINE__).line

#undef weir_queue_create
#define weir_queue_create(...) weir_queue_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)
#undef weir_buffer_create
#define weir_buffer_create(...) weir_buffer_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)
#undef weir_program_create
#define weir_program_create(...) weir_program_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)
#undef weir_kernel_create
#define weir_kernel_create(...) weir_kernel_create_at(__VA_ARGS__, WEIR__PATTERN_PLACE)

#endif
