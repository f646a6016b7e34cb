// Properties of conf/reference.ini with respect to any set of key tables.
//
// The file shows every key as a comment, ";key = default", in the section it
// belongs to, with its explanation on the comment lines beneath. So the shipped
// file sets nothing, and a key is enabled by deleting one character.
#ifndef WEIR_TESTS_UNIT_CONFIG_REFERENCE_H
#define WEIR_TESTS_UNIT_CONFIG_REFERENCE_H

#include <weir/config.h>

struct config_reference {
    const char *text;                         // of the file
    const struct weir_section *const *tables; // [weir] and every other section
    size_t table_count;
};

// The file loads, and so does a copy with every key switched on at once. Both give
// every setting of every table its default; in the copy the origin of each is its
// own line.
void config_reference_check_loads(const struct config_reference *reference);

// Each table has its section and each key its line with the default. The
// explanation beneath holds the limits of an integer, "0 or 1" for a boolean,
// and every choice. No line shows a key that its section does not have.
void config_reference_check_complete(const struct config_reference *reference);

// Each character of the file is deleted in turn. The rest still means the same,
// which is that every setting of every table has the text and the number that it
// had (not the origin), or it is an error that names the character's line. A
// deleted newline belongs to the line that it ended.
void config_reference_check_deletions(const struct config_reference *reference);

// The same with every key switched on. A value may now change, but only that of
// the key on the character's line, and its origin must be that line.
void config_reference_check_deletions_switched_on(const struct config_reference *reference);

#endif
