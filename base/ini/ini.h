// INI files, read strictly: every line that is not plainly a section, a key with a value, or a
// comment is refused.
//
// The language. The text is UTF-8 (a byte order mark is skipped), lines end with
// LF or CRLF and have at most 199 bytes. A line is empty, a comment that starts
// with ';' or '#', a section "[name]", or "key = value" in the first column.
// After a section or a value, a ';' that follows white space starts a comment;
// values contain no other ';', and no '#' at their start or after white space.
// Names are made of letters, digits, '_' and '-'.
//
// Errors: what is refused is told as a sentence and a remedy, without the file's name.
// Threads: safe, as long as no code of the process changes inih's variables.
#ifndef WEIR_BASE_INI_H
#define WEIR_BASE_INI_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR_INI_LINE_LIMIT 199
// A section's name, with its terminator.
#define WEIR_INI_NAME_SIZE 32

// What the caller does with the lines. Functions return false to end the reading.
struct weir_ini_handler {
    // "[name]", also for sections without keys. `name` is not terminated.
    bool (*section)(void *user, unsigned line, const char *name, size_t length);
    // "key = value" below a section. `value` may be "".
    bool (*entry)(void *user, unsigned line, const char *key, const char *value);
    // What is wrong with a line; the reading ends. `remedy` may be NULL.
    void (*refuse)(void *user, unsigned line, const char *remedy, const char *sentence);
    // Sections "[kind NAME]" of this kind may have any NAME that is one line of text and holds no
    // ']'; NULL: there are none.
    const char *kind;
    // How an entry above the first section is put right: "put it under [weir]".
    const char *sectionless_remedy;
};

enum weir_ini_end {
    WEIR_INI_END,     // all of it was read
    WEIR_INI_REFUSED, // refuse() was called
    WEIR_INI_STOPPED, // section() or entry() returned false
    WEIR_INI_NO_MEMORY,
};

enum weir_ini_end weir_ini_read(const char *text, size_t size,
                                const struct weir_ini_handler *handler, void *user);

// The number of leading bytes of `text` that are allowed in a name.
size_t weir_ini_name_length(const char *text);

#endif
