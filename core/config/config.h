// The INI file: read once, strictly, and kept unchanged afterwards.
//
// The language is that of base/ini/ini.h; each section and each key occurs at most once.
//
// Errors: WEIR_ERROR_CONFIG, whose message starts with "FILE:LINE: ", or with
// the variable's name, or with "argument: "; WEIR_ERROR_IO for a file that
// cannot be read; WEIR_ERROR_OUT_OF_MEMORY.
// Threads: loading is safe as long as no other thread changes the environment; a
// loaded configuration may be read by any number of threads. weir__config_section(),
// weir__config_check_sections() and weir__config_keep() add to it, and calls of these are not concurrent.
#ifndef WEIR_CORE_CONFIG_CONFIG_H
#define WEIR_CORE_CONFIG_CONFIG_H

#include <weir/config.h>
#include <weir/runtime.h>

#include "base/ini/ini.h"

// Limits of the language.
#define WEIR__CONFIG_FILE_LIMIT ((size_t)1 << 20)
#define WEIR__CONFIG_SECTION_LIMIT 256
// A name of a section or of a module, with its terminator, and names in a list.
#define WEIR__NAME_SIZE WEIR_INI_NAME_SIZE
#define WEIR__CONFIG_LIST_LIMIT 16

// The settings are in the order of the tables.
struct weir__config {
    const struct weir_setting *const *weir;
    const struct weir_setting *const *comm;
    const char *label;
    struct weir_ini file;
    struct weir__config_block *blocks;
};

// The keys of [weir].
extern const struct weir_section weir__config_weir_table;

// Reads the configuration that `params` selects, checks its lines and [weir],
// and stores it in `*out_config`, or stores NULL there and returns an error.
// `params` may be NULL, is taken at its full size, and need only be valid until
// return. A variable that is set counts even if it is empty.
//
// Ownership: the caller's, until weir__config_destroy().
weir_status weir__config_load(const struct weir_open_params *params,
                              struct weir__config **out_config);

void weir__config_destroy(struct weir__config **config);

// The value of `key` in [weir], by precedence; its origin is "FILE:LINE",
// "WEIR_BACKEND" and the like, "argument" or "default". NULL for a key that
// [weir] does not have.
//
// Ownership: the configuration's.
const struct weir_setting *weir__config_weir(const struct weir__config *config, const char *key);

// The value of `copy_threads` in [weir]; WEIR__CONFIG_COPY_THREADS_AUTO for auto.
#define WEIR__CONFIG_COPY_THREADS_MAX 16
#define WEIR__CONFIG_COPY_THREADS_AUTO (WEIR__CONFIG_COPY_THREADS_MAX + 1)
unsigned weir__config_copy_threads(const struct weir__config *config);

// Whether `debug` in [weir] is 1: core/support/debug.h.
bool weir__config_debug(const struct weir__config *config);

// Prints from now on what `log` and `debug` in [weir] ask for.
void weir__config_print(const struct weir__config *config);

// The same by WEIR_LOG and WEIR_DEBUG, where a configuration cannot be read and
// so does not tell; a variable that is not valid counts as a wish to see why.
void weir__config_print_anyway(void);

// The keys of [comm], and the value of one: the variable WEIR_COMM_KEY beats the file.
extern const struct weir_section weir__config_comm_table;
const struct weir_setting *weir__config_comm(const struct weir__config *config, const char *key);

// Checks the file's section of that name, if it has one, against the table, and returns one setting per
// key, in the table's order, defaults included; NULL with the thread's error. With `replaces`, variables of
// the environment take the place of the file's values: WEIR_TRACE_FILE is `file` of [trace], WEIR_LOG `log` of
// [weir]; '-' becomes '_'. A variable that is set counts even if it is empty.
//
// Ownership: the configuration's.
const struct weir_setting *const *weir__config_section(struct weir__config *config,
                                                       const struct weir_section *section,
                                                       bool replaces);

// Zeroed memory that lives as long as the configuration; NULL with the thread's error.
void *weir__config_keep(struct weir__config *config, size_t size);

// Whether the configuration names a module so: in `backend` or `plugins` of its file, by
// what replaced them, or by default.
bool weir__config_names(const struct weir__config *config, const char *module);

// Refuses the first section of the file whose name is not among `known`, which
// includes "weir".
weir_status weir__config_check_sections(struct weir__config *config, const char *const *known,
                                        size_t count);

// The name of the file's section `index`, in the order of the file, or NULL past
// the last.
const char *weir__config_section_name(const struct weir__config *config, size_t index);

// Splits "cuda, opencl" into at most `max` names. An empty text has none. Empty
// items, bad characters, and repeats unless they are allowed, are errors.
weir_status weir__config_list(const struct weir_setting *setting, bool allow_repeats,
                              char names[][WEIR__NAME_SIZE], size_t max, size_t *out_count);

// Parses `size` bytes, which the fuzzer's may hold zeros; checks lines, but no table. `label` names them in
// messages.
weir_status weir__config_create(const char *label, const char *text, size_t size,
                                struct weir__config **out_config);

#endif
