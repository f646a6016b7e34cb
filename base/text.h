// Small text helpers for messages: the nearest valid name, bounded appending,
// and the sentence that begins with the file it is about.
//
// Threads: all functions are safe; none keeps state.
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Returned by weir_text_distance() when a name is too long to compare.
#define WEIR_TEXT_FAR ((size_t)-1)

// Names longer than this many bytes are never compared, and so never suggested.
#define WEIR_TEXT_NAME_LIMIT 127

// Returns how many single edits turn `a` into `b`: inserting, removing or
// replacing one byte, or swapping two neighbours. ASCII letters count as equal
// to their other case. WEIR_TEXT_FAR if one of them is longer than
// WEIR_TEXT_NAME_LIMIT.
size_t weir_text_distance(const char *a, const char *b);

// Returns the better suggestion for the misspelt `name`: `candidate` if it is
// near enough (at most one edit for every three bytes of `name`, or one if it is
// short, and never all of it) and strictly nearer than `best`, else `best`. `best`
// may be NULL. To search a list that is not an array of strings, start with NULL
// and feed it one by one.
const char *weir_text_nearer(const char *name, const char *best, const char *candidate);

// Returns the entry of `candidates` that weir_text_nearer() settles on, or NULL
// when none is near enough to be what was meant. The first of equals wins.
const char *weir_text_nearest(const char *name, const char *const *candidates, size_t count);

// Appends formatted text at `*used` and moves `*used` behind it. What does not
// fit in `size` bytes is cut; the result is terminated if `size` > 0.
void weir_text_append(char *text, size_t size, size_t *used, const char *format, ...);

// Writes "PATH: SENTENCE" into `message`. A path longer than 160 bytes keeps its
// end, after "...", so that the sentence is never what is cut. Control
// characters become '?': names from files reach terminals through messages.
void weir_text_about(char *message, size_t size, const char *path, const char *format, ...);
void weir_text_vabout(char *message, size_t size, const char *path, const char *format,
                      va_list arguments);

#ifdef __cplusplus
}
#endif

#endif
