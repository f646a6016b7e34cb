// A runtime is one parsed configuration and the chain of modules that it names:
// zero or more plugins and then one backend.
//
//     weir_runtime *runtime;
//     if (weir_open(NULL, &runtime) != WEIR_OK)
//         fprintf(stderr, "%s\n", weir_last_error_text());
//     ...
//     weir_close(&runtime);
#ifndef WEIR_RUNTIME_H
#define WEIR_RUNTIME_H

#include <weir/common.h>
#include <weir/config.h>
#include <weir/status.h>

// A record of every module that was tried during loading, as data rather than
// log lines.
typedef struct weir_load_report weir_load_report;

struct weir_open_params {
    size_t struct_size;
    // An INI file. NULL: the file that WEIR_CONFIG names, else the built-in
    // default (backend = cuda, opencl; no plugins). "" means no file at all.
    const char *config_path;
    // INI text in place of a file. `config_path` then only names it in errors.
    const char *config_text;
    // Each of these takes precedence over the environment, which takes
    // precedence over the file. NULL leaves them as they are. `plugins`
    // replaces the whole list; "" means none.
    const char *backend;
    const char *plugins;
    const char *module_path;
    // Sections that the program itself reads, in addition to [weir] and those
    // of modules.
    const struct weir_section *const *sections;
    size_t section_count;
    // If not NULL, receives the load report, on success and on failure. The
    // caller destroys it.
    weir_load_report **out_report;
};

// Parses the configuration and loads the chain. `params` may be NULL for all
// defaults. Environment, read with secure_getenv: WEIR_CONFIG, WEIR_BACKEND,
// WEIR_PLUGINS, WEIR_MODULE_PATH.
//
// Threads: safe; several runtimes with different chains may exist at the same
// time.
// Errors: WEIR_ERROR_CONFIG with file:line and the nearest valid name;
// WEIR_ERROR_MODULE if no listed backend can be used, with every reason and one
// remedy in the text.
WEIR_CALL weir_status weir_open_at(const struct weir_open_params *params,
                                   weir_runtime **out_runtime, const char *file, int line);
#define weir_open(...) weir_open_at(__VA_ARGS__, __FILE__, __LINE__)

// Closes the runtime. Every device of it must have been closed.
//
// Errors: WEIR_ERROR_INVALID while devices are open, with the lines that opened them; nothing is
// closed then. The first error of a module that could not save its data, such as WEIR_ERROR_IO of
// the plugin `trace` when the disk is full; everything is closed then.
WEIR_CALL weir_status weir_close_at(weir_runtime **runtime, const char *file, int line);
#define weir_close(...) weir_close_at(__VA_ARGS__, __FILE__, __LINE__)

// The name of the backend that ends the chain ("opencl").
WEIR_API const char *weir_runtime_backend(const weir_runtime *runtime);

// The value of `key` in a section that the program declared in
// `params->sections`, the default if the file does not set it, or NULL for a
// key that was not declared.
WEIR_API const struct weir_setting *weir_runtime_setting(const weir_runtime *runtime,
                                                         const char *section, const char *key);

// The load report of a runtime.
WEIR_API const weir_load_report *weir_runtime_report(const weir_runtime *runtime);

// Returns the functions that a plugin of the chain offers to programs under that name, which its
// own header declares, or NULL without such a plugin. With several, the outermost one's.
WEIR_API const void *weir_runtime_extension(const weir_runtime *runtime, const char *name);

typedef enum weir_load_outcome {
    WEIR_LOAD_USED = 0,    // part of the chain, or fit for one
    WEIR_LOAD_REFUSED = 1, // found, and refused for `reason`
    WEIR_LOAD_MISSING = 2, // no file of that name in the directory
} weir_load_outcome;

// One file that was tried.
struct weir_load_entry {
    const char *module; // the name that was requested: "opencl"
    const char *path;   // the file
    weir_load_outcome outcome;
    const char *reason;  // the sentence; "" when used
    uint32_t abi_wanted; // this library's ABI number
    uint32_t abi_seen;   // the module's, 0 if it could not be read
    const char *version; // the module's own version, or ""
    const char *driver;  // the driver's name and version, or ""
    uint32_t device_count;
    const char *const *about; // what the module says about itself: weir_module.about, or NULL
    const char *kind;         // "backend", "plugin", "transport"; "" if it was refused unread
    const char *sanitizer;    // with which the module was built: "address"; "" for none
    const char *remedy;       // of a file that was refused before it was opened, else ""
};

// How many files were tried.
WEIR_API size_t weir_load_report_count(const weir_load_report *report);

// Entry `index`, in the order in which the files were tried, or NULL past the
// last.
WEIR_API const struct weir_load_entry *weir_load_report_entry(const weir_load_report *report,
                                                              size_t index);

// Where the backend list came from: "weir.ini:3", "WEIR_BACKEND", "default".
WEIR_API const char *weir_load_report_origin(const weir_load_report *report);

// One sentence that says what to do, or "" if nothing went wrong.
WEIR_API const char *weir_load_report_remedy(const weir_load_report *report);

// The whole report as text, several lines.
WEIR_API const char *weir_load_report_text(const weir_load_report *report);

// Accepts NULL and a pointer to NULL. Not for the report of a runtime.
WEIR_API void weir_load_report_destroy(weir_load_report **report);

// Totals of all runtimes since the process started. A loop that allocates
// nothing leaves both unchanged.
struct weir_counters {
    uint64_t allocations;    // blocks of host memory that Weir and its modules allocated
    uint64_t driver_objects; // native objects created, events not counted
};

// Threads: safe; while other threads work, the two figures may be from
// different moments.
WEIR_API void weir_counters_read_sized(struct weir_counters *out_counters, size_t size);
#define weir_counters_read(out_counters) \
    weir_counters_read_sized(out_counters, sizeof(struct weir_counters))

#endif
