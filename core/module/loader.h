// Finds and loads modules: weir_NAME.so for module NAME, in the directories of a
// search path.
//
// Files that were opened are never closed again. Vendor libraries, which they
// load, leave threads and exit handlers that would then run in unmapped memory; a
// module that is used twice is loaded once anyway.
#ifndef WEIR_CORE_MODULE_LOADER_H
#define WEIR_CORE_MODULE_LOADER_H

#include <weir/module/transport.h>
#include <weir/runtime.h>

// What this library knows of a module: its header, and at full size its slots, or those of a transport. What the module
// lacks is zero, and all slots are for the other kind. What they point to is valid until the process ends.
struct weir__loaded {
    struct weir_module module;
    struct weir_module_ops ops;
    struct weir_transport_ops transport;
};

// Loads module `name`, which must be of `kind` unless that is 0, and stores it in `*out_loaded`.
//
// `search_path` lists directories, separated by colons; empty ones are skipped. If
// it is NULL or "", the directories are `../lib/weir` and `lib/weir`, relative to
// the directory of the program or library that contains this function; for a library
// `weir` comes first. The first directory that has the file decides: if the file there is refused, the loader
// does not look further.
//
// For every file that is tried an entry is added to `report`, which may be NULL.
// The module is not opened; see weir__chain_open().
//
// Threads: safe.
// Errors: WEIR_ERROR_MODULE, with every reason in the message, and a remedy:
// the nearest name where the file is missing, else what is wrong with it. With kind 0
// WEIR_ERROR_NOT_FOUND if there is no such file, without an error detail: the section of that name
// may belong to another program.
weir_status weir__loader_load(const char *name, enum weir_module_kind kind, const char *search_path,
                              const struct weir_host *host, weir_load_report *report,
                              struct weir__loaded *out_loaded);

// Loads every module file of the directories, those of weir__loader_load(), and adds an entry for each.
//
// Threads: safe.
void weir__loader_try_all(const char *search_path, const struct weir_host *host,
                          weir_load_report *report);

enum {
    WEIR__LOADER_NAMES = 32
};

struct weir__module_name {
    char text[65];
};

// Stores the names of at most `most` modules whose files lie in the directories, those of
// weir__loader_load(), and returns how many. None of them is opened.
size_t weir__loader_names(const char *search_path, struct weir__module_name *names, size_t most);

// The reason why a module cannot be used, in one sentence, and the remedy.
struct weir__finding {
    char reason[384];
    char remedy[256];
};

// Checks `module`, found in a file named after `name`, and describes the first thing that is
// wrong in `*out_finding`. `kind` 0 accepts every kind. Nothing after the ABI number is
// read unless that number is WEIR_MODULE_ABI, nothing past `struct_size`, and no slot past
// `slot_count`.
bool weir__module_check(const struct weir_module *module, const char *name,
                        enum weir_module_kind kind, struct weir__finding *out_finding);

// Builds a load report, the data of weir_load_report_*. The loader adds an entry
// for each file that it tries; the code that opens modules adds the rest.
//
// All functions accept a NULL report and then do nothing. If out of memory, the report lacks an entry, and its
// text says that it is incomplete; or there is no text.
//
// Threads: one thread builds a report; afterwards any number may read it.

// An empty report, or NULL. weir_load_report_destroy() frees it when each of the owners has called it.
weir_load_report *weir__load_report_create(unsigned owners);

// Appends a copy of `*entry`. NULL strings read as "".
void weir__load_report_add(weir_load_report *report, const struct weir_load_entry *entry);

// Completes the last used entry of `module`, which is valid, after it was opened. `driver` may be NULL. With a
// `refusal` it is refused: opening it failed, or it has no device.
void weir__load_report_opened(weir_load_report *report, const char *module, const char *driver,
                              uint32_t device_count, const char *refusal);

// Writes the text when all modules are loaded. Where they were requested, and what to do about a failure, may be NULL.
void weir__load_report_finish(weir_load_report *report, const char *origin, const char *remedy);

#endif
