// INI files, read strictly: every line that is not plainly a section, a key with a value, or a
// comment is refused, and so is a second section, or key of a section, of the same name.
//
// The language. The text is UTF-8 (a byte order mark is skipped), lines end with
// LF or CRLF and have at most 199 bytes. A line is empty, a comment that starts
// with ';' or '#', a section "[name]", or "key = value" in the first column.
// After a section or a value, a ';' that follows white space starts a comment;
// values contain no other ';', and no '#' at their start or after white space.
// Names are made of letters, digits, '_' and '-'.
//
// Threads: safe, as long as no code of the process changes inih's variables.
#ifndef WEIR_BASE_INI_H
#define WEIR_BASE_INI_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR_INI_LINE_LIMIT 199
// Of one section.
#define WEIR_INI_KEY_LIMIT 1024
// A section's name, with its terminator.
#define WEIR_INI_NAME_SIZE 32

struct weir_ini_rules {
    // Sections "[kind NAME]" of this kind may have any NAME that is one line of text and holds no
    // ']'; NULL: there are none.
    const char *kind;
    // How an entry above the first section is put right: "put it under [weir]".
    const char *sectionless_remedy;
    size_t section_limit;
};

// "[section]", or "key = value" of that section.
struct weir_ini_entry {
    unsigned line;
    const char *section;
    const char *key; // NULL: the section's own line
    const char *value;
};

struct weir_ini {
    struct weir_ini_entry *entries; // in the order of the lines
    size_t count;
    size_t capacity;
    struct weir_names *texts; // of the entries
};

// What is wrong with a line.
struct weir_ini_refusal {
    unsigned line;      // 0: there is no memory to read the text
    const char *remedy; // NULL: none
    char sentence[512];
};

// False: the text is refused, and `*out_ini` is empty.
//
// Ownership: the caller's, until weir_ini_finish(), which also accepts an empty one.
bool weir_ini_read(const char *text, size_t size, const struct weir_ini_rules *rules,
                   struct weir_ini *out_ini, struct weir_ini_refusal *out_refusal);
void weir_ini_finish(struct weir_ini *ini);

// The number of leading bytes of `text` that are allowed in a name.
size_t weir_ini_name_length(const char *text);

#endif
