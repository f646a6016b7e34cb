// Looks at a configuration and at the machine's modules without opening a device: what `weir doctor` and
// `weir config check` show. Not part of <weir/weir.h>.
#ifndef WEIR_INSPECT_H
#define WEIR_INSPECT_H

#include <weir/runtime.h>

// Gets one setting of a section, with its value in force and where that is from: "FILE:LINE", the name of
// a variable, "argument" or "default". `setting` is NULL, once, for a module that the configuration names
// and whose file is in no directory of modules: its keys are unknown. Both are valid until the function
// returns, and the texts of `*setting` until weir_inspect_settings() does. Returning false ends the inspection.
typedef bool (*weir_inspect_function)(void *user, const char *section,
                                      const struct weir_setting *setting);

// Checks a configuration as weir_open() does, and then calls `function` for every setting: of [weir], of
// [comm], of the sections of `params`, of the plugins and the backends that are listed, and of the modules
// whose sections the file has besides. Each section comes once, its keys in the order of its table.
//
// No module is opened, so no driver is loaded: module files are only loaded for their tables of keys. A
// module that cannot be loaded is left out; weir_inspect_modules() has the reason. `params` may be NULL, as
// for weir_open(); `out_report` is not used.
//
// Threads: safe; `function` is called by this thread, and may call anything.
// Errors: those of weir_open() about the configuration. After one about a section, `function` was called for
// [weir] and [comm] only; after any other, not at all.
WEIR_CALL weir_status weir_inspect_settings(const struct weir_open_params *params,
                                            weir_inspect_function function, void *user);

// Loads every module file of the directories `module_path`, separated by ':', and reports on each as
// weir_open() would: WEIR_LOAD_USED means that it can be part of a chain, WEIR_LOAD_REFUSED has the reason
// and the remedy. NULL or "" are the directories that lie beside the library. Entries are in the order of
// the directories, and in that of the names within one. No module is opened.
//
// Errors: WEIR_ERROR_OUT_OF_MEMORY. A directory that cannot be read has no entries.
WEIR_CALL weir_status weir_inspect_modules(const char *module_path, weir_load_report **out_report);

// Where a communicator finds itself that is created without parameters.
struct weir_inspect_place {
    uint32_t rank;
    uint32_t count;
    char rendezvous[512]; // "" for none
};

// Stores the rank, the count and the rendezvous that follow from [comm], WEIR_COMM_* and the variables of
// launchers. Nothing is opened, and no other rank is waited for. `params` as above.
//
// Errors: WEIR_ERROR_CONFIG for variables that contradict each other, and those of the configuration.
WEIR_CALL weir_status weir_inspect_place_sized(const struct weir_open_params *params,
                                               struct weir_inspect_place *out_place, size_t size);
#define weir_inspect_place(params, out_place) \
    weir_inspect_place_sized(params, out_place, sizeof(struct weir_inspect_place))

// Loads the transport of [comm], if no communicator has done so, and stores the name and version of the
// library that it uses ("Open MPI 4.1.4"), or "" if it uses none.
//
// Ownership: the runtime's, until weir_close().
// Errors: those of weir_comm_create() about the transport.
WEIR_CALL weir_status weir_inspect_transport(weir_runtime *runtime, const char **out_library);

// The backend's end of the chain: its slots (<weir/module/module.h>) may be called with objects of the
// runtime, to measure what a call costs above the backend. Such operations are unknown to Weir; give them a
// queue of their own.
WEIR_API const struct weir_link *weir_inspect_backend(const weir_runtime *runtime);

#endif
