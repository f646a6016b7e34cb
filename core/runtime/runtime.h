// The front end's runtime.
#ifndef WEIR_CORE_RUNTIME_RUNTIME_H
#define WEIR_CORE_RUNTIME_RUNTIME_H

#include <stdatomic.h>

#include <weir/module/transport.h>
#include <weir/runtime.h>

#include "core/config/config.h"
#include "core/module/chain.h"
#include "core/object/device.h"

// The transport of a runtime's communicators.
struct weir__transport {
    struct weir_lock lock;                // while it is loaded
    const struct weir_transport_ops *ops; // `table`; NULL: not asked for yet
    struct weir_transport_ops table;
    const struct weir_setting *const *settings; // stay when it does not open, for the next attempt
    void *state;
};

// A section that the program declares. It and all settings are the configuration's.
struct weir__declared {
    struct weir_section section;
    const struct weir_setting *const *settings;
};

struct weir_runtime {
    struct weir__config *config;
    struct weir__chain chain;
    struct weir__declared *sections;
    size_t section_count;
    weir_load_report *report;
    struct weir__shared shared;
    struct weir__transport transport;
};

// Counts a device that is about to be opened. A `*runtime` of NULL becomes the default runtime, which the
// first such device opens, in a call at file:line; the last device of it closes it.
//
// Threads: safe.
weir_status weir__runtime_enter(weir_runtime **runtime, const char *file, int line);
weir_status weir__runtime_leave(weir_runtime *runtime, const char *file, int line);

// Loads and opens the transport of [comm] when it is first asked for; it stays until the runtime is
// closed. Stores its functions and its state.
//
// Threads: safe.
weir_status weir__transport_get(weir_runtime *runtime, const struct weir_transport_ops **out_ops,
                                void **out_state);

// What carries collectives through the host: the library of the transport that is loaded, or its name.
const char *weir__transport_name(const weir_runtime *runtime);

// Reads the sections that the program declares, and refuses those of the file that neither the program nor
// a module declares.
weir_status weir__runtime_take_sections(weir_runtime *runtime,
                                        const struct weir_open_params *params);

// The settings of the section of a module that is loaded, or NULL with the thread's error. `replaces`: see
// weir__config_section().
const struct weir_setting *const *weir__runtime_take_module(const weir_runtime *runtime,
                                                            const struct weir_module *module,
                                                            bool replaces);

// The table of services for modules.
extern const struct weir_host weir__host;

#endif
