// A runtime is one parsed configuration and the chain of modules it names:
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

#ifdef __cplusplus
extern "C" {
#endif

// What was tried while modules were loaded: data, not a log line.
typedef struct weir_load_report weir_load_report;

struct weir_open_params {
    size_t struct_size;
    // An INI file. NULL: the file that WEIR_CONFIG names, else the built-in
    // default (backend = cuda, opencl; no plugins). "" means no file at all.
    const char *config_path;
    // INI text in place of a file. `config_path` then only names it in errors.
    const char *config_text;
    // Each of these beats the environment, which beats the file. NULL leaves
    // them alone. `plugins` replaces the whole list; "" means none.
    const char *backend;
    const char *plugins;
    const char *module_path;
    // Sections that the program itself reads, beside [weir] and those of modules.
    const struct weir_section *sections;
    size_t section_count;
    // Receives the load report, on success and on failure, where not NULL.
    // The caller destroys it.
    weir_load_report **out_report;
};

// Parses the configuration, loads the chain and stores a runtime in
// `*out_runtime`, or stores NULL there and returns an error. `params` may be
// NULL for all defaults. Environment, read with secure_getenv: WEIR_CONFIG,
// WEIR_BACKEND, WEIR_PLUGINS, WEIR_MODULE_PATH.
//
// Ownership: the caller's, until weir_close().
// Threads: safe; several runtimes with different chains may live side by side.
// Errors: WEIR_ERROR_CONFIG with file:line and the nearest valid name;
// WEIR_ERROR_MODULE when no listed backend can be used; the error's text names
// every reason and one remedy.
WEIR_API weir_status weir_open(const struct weir_open_params *params, weir_runtime **out_runtime);

// Closes the runtime and sets `*runtime` to NULL. Every device of it must have
// been closed. NULL and a pointer to NULL are accepted.
//
// Errors: WEIR_ERROR_INVALID while a device is open; nothing is closed then.
WEIR_API weir_status weir_close(weir_runtime **runtime);

// The name of the backend that ends the chain ("opencl").
WEIR_API const char *weir_runtime_backend(const weir_runtime *runtime);

// The value of `key` in a section that the program declared in
// `params->sections`, its default where the file does not set it, or NULL for a
// key that was not declared.
//
// Ownership: the runtime's.
WEIR_API const struct weir_setting *weir_runtime_setting(const weir_runtime *runtime,
                                                         const char *section, const char *key);

// The load report of a runtime.
//
// Ownership: the runtime's.
WEIR_API const weir_load_report *weir_runtime_report(const weir_runtime *runtime);

typedef enum weir_load_outcome {
    WEIR_LOAD_USED = 0,    // part of the chain
    WEIR_LOAD_REFUSED = 1, // found, and turned down for `reason`
    WEIR_LOAD_MISSING = 2, // no file of that name in the directory
} weir_load_outcome;

// One file that was tried.
struct weir_load_entry {
    const char *module; // the name that was asked for: "opencl"
    const char *path;   // the file
    weir_load_outcome outcome;
    const char *reason;  // the sentence; "" when used
    uint32_t abi_wanted; // this library's ABI number
    uint32_t abi_seen;   // the module's, 0 if it did not come that far
    const char *version; // the module's own version, or ""
    const char *driver;  // what the driver calls itself, or ""
    uint32_t device_count;
};

// How many files were tried.
WEIR_API size_t weir_load_report_count(const weir_load_report *report);

// Entry `index`, in the order of trying, or NULL behind the last.
//
// Ownership: the report's.
WEIR_API const struct weir_load_entry *weir_load_report_entry(const weir_load_report *report,
                                                              size_t index);

// Where the backend list came from: "weir.ini:3", "WEIR_BACKEND", "default".
WEIR_API const char *weir_load_report_origin(const weir_load_report *report);

// One sentence that says what to do, or "" when all went well.
WEIR_API const char *weir_load_report_remedy(const weir_load_report *report);

// The whole report as text of several lines.
//
// Ownership: the report's.
WEIR_API const char *weir_load_report_text(const weir_load_report *report);

// Accepts NULL and a pointer to NULL. Not for the report of a runtime.
WEIR_API void weir_load_report_destroy(weir_load_report **report);

// Running totals since the process started, of all runtimes. A loop that
// allocates nothing leaves both flat.
struct weir_counters {
    uint64_t allocations;    // blocks of host memory that Weir and its modules asked for
    uint64_t driver_objects; // native objects created, events aside
};

// Threads: safe; while others work the two may be of different moments.
WEIR_API void weir_counters_read(struct weir_counters *out_counters);

#ifdef __cplusplus
}
#endif

#endif
