// The keys that a configuration section may contain. A module carries the table
// of its section, [NAME]; programs and pipelines pass theirs to weir_open(),
// which refuses every section, key and value that no table declares.
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include <weir/common.h>

typedef enum weir_key_type {
    WEIR_KEY_TEXT = 1,
    WEIR_KEY_INTEGER = 2, // decimal, between `minimum` and `maximum`
    WEIR_KEY_BOOLEAN = 3, // 0 or 1
    WEIR_KEY_CHOICE = 4,  // one of `choices`
} weir_key_type;

// One key of a section. Static data.
struct weir_key {
    const char *name;
    weir_key_type type;
    const char *fallback; // the value when unset; "" for none
    int64_t minimum;      // INTEGER
    int64_t maximum;
    const char *const *choices; // CHOICE: NULL-terminated
    const char *help;           // one sentence
};

// Entries of a table of keys.
#define WEIR_TEXT_KEY(key, or_else, about)                                           \
    {                                                                                \
        .name = (key), .type = WEIR_KEY_TEXT, .fallback = (or_else), .help = (about) \
    }
#define WEIR_BOOLEAN_KEY(key, or_else, about)                                           \
    {                                                                                   \
        .name = (key), .type = WEIR_KEY_BOOLEAN, .fallback = (or_else), .help = (about) \
    }
#define WEIR_CHOICE_KEY(key, or_else, words, about)                                        \
    {                                                                                      \
        .name = (key), .type = WEIR_KEY_CHOICE, .fallback = (or_else), .choices = (words), \
        .help = (about)                                                                    \
    }
#define WEIR_INTEGER_KEY(key, or_else, least, most, about)                                  \
    {                                                                                       \
        .name = (key), .type = WEIR_KEY_INTEGER, .fallback = (or_else), .minimum = (least), \
        .maximum = (most), .help = (about)                                                  \
    }

// Returns key `index` of a table in which the distance between keys is `key_size` bytes.
static inline const struct weir_key *weir_key_at(const struct weir_key *keys, size_t key_size,
                                                 size_t index)
{
    return (const struct weir_key *)(const void *)((const char *)keys + index * key_size);
}

// One section: its name without brackets, and its keys. Static data.
struct weir_section {
    size_t struct_size;
    const char *name;
    const struct weir_key *keys;
    uint32_t key_count;
    uint32_t key_size; // sizeof(struct weir_key)
};

// One value, checked, with the default filled in.
struct weir_setting {
    const struct weir_key *key;
    const char *text;
    int64_t integer;    // INTEGER, BOOLEAN
    const char *origin; // "weir.ini:12", "WEIR_BACKEND", or "default"
};

#endif
