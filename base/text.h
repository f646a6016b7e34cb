// Text functions for messages: the nearest valid name, a line of a log, bounded appending, escaping
// for terminals, readable times and sizes, and sentences that begin with a file's path.
//
// Threads: safe; the functions keep no state.
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes the compiler check a format against its arguments.
#if defined(__GNUC__)
#define WEIR_TEXT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define WEIR_TEXT_PRINTF(text, first)
#endif

// Names longer than this many bytes are never compared, and so never suggested.
#define WEIR_TEXT_NAME_LIMIT 127

// Returns the better suggestion for the misspelt `name`: `candidate` if it is
// near enough (at most one edit for every three bytes of `name`, or one if it is
// short, and never all of it) and strictly nearer than `best`, else `best`. `best`
// may be NULL. To search a list that is not an array of strings, start with NULL
// and feed it one by one.
const char *weir_text_nearer(const char *name, const char *best, const char *candidate);

// Returns the entry of `candidates` that is nearest by weir_text_nearer(), the first of several, or
// NULL if none is near enough.
const char *weir_text_nearest(const char *name, const char *const *candidates, size_t count);

// Stores the variable of the environment that stands in place of a key of a section: "WEIR_TRACE_FILE" for
// `file` of [trace], "WEIR_LOG" for `log` of [weir].
void weir_text_variable(char *text, size_t size, const char *section, const char *key);

// ASCII letters in upper or lower case, and whether it is an ASCII letter or digit or '_'; other bytes stay,
// and are none. <ctype.h> follows the program's locale: in a Turkish one the upper case of 'i' is no 'I'.
static inline char weir_text_upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

static inline char weir_text_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static inline bool weir_text_is_word(char c)
{
    return (weir_text_lower(c) >= 'a' && weir_text_lower(c) <= 'z') || (c >= '0' && c <= '9') ||
           c == '_';
}

// Whether `part` is in `text`. ASCII letters count as equal to their other case.
bool weir_text_contains(const char *text, const char *part);

// Appends formatted text at `*used` and moves `*used` to its end. What does not
// fit in `size` bytes is cut; the result is terminated if `size` > 0.
void weir_text_append(char *text, size_t size, size_t *used, const char *format, ...)
    WEIR_TEXT_PRINTF(4, 5);

// Returns how many bytes the UTF-8 character at `text` has, 1 to 4, or 0 if there is none, or
// only a part of one. A NUL is a character of one byte. `left` bytes may be read: at least one,
// and SIZE_MAX in a text that ends with NUL.
size_t weir_text_character(const char *text, size_t left);

// Writes `text` to `out` so that a terminal displays it without interpreting any of it: control
// characters, those that change the direction of text, and bytes that are not UTF-8 become
// "\n", "\x1b" or "\u202e". Characters of `keep`, "\n\t" for text of several lines, stay. What
// does not fit in `size` bytes, at least four, is cut off and replaced by "...".
void weir_text_escape(char *out, size_t size, const char *text, const char *keep);

// The same without a limit; NULL if out of memory.
//
// Ownership: the caller's, to be freed with free().
char *weir_text_escaped(const char *text, const char *keep);

// Whether weir_text_escape() would change nothing but the length.
bool weir_text_is_clean(const char *text, const char *keep);

// A short text by value. That of a call, as in printf("%s", weir_text_duration(ns).text), lives until the end of
// the whole expression.
struct weir_quantity {
    char text[32];
};

// "signal 11 (SIGSEGV)"; "85.2 ms", "1.24 s"; "54.5 MiB", "7 B".
struct weir_quantity weir_text_signal(int number);
struct weir_quantity weir_text_duration(double ns);
struct weir_quantity weir_text_bytes(uint64_t bytes);

// Writes "PATH: SENTENCE" into `message`. A path longer than 160 bytes keeps its
// end, after "...", so that the sentence is never what is cut. Both are escaped as
// weir_text_escape() does it: names from files reach terminals through messages.
void weir_text_about(char *message, size_t size, const char *path, const char *format, ...)
    WEIR_TEXT_PRINTF(4, 5);
void weir_text_vabout(char *message, size_t size, const char *path, const char *format,
                      va_list arguments) WEIR_TEXT_PRINTF(4, 0);

#endif
