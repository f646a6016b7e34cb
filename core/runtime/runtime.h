// The front end's runtime.
#ifndef WEIR_CORE_RUNTIME_RUNTIME_H
#define WEIR_CORE_RUNTIME_RUNTIME_H

#include <stdatomic.h>

#include <weir/runtime.h>

#include "core/config/config.h"
#include "core/module/chain.h"
#include "core/object/device.h"

struct weir_runtime {
    struct weir__config *config;
    struct weir__chain chain;
    const struct weir_setting *const **settings; // [chain's modules], each one table
    uint32_t module_count;
    struct weir_section *sections; // the program's
    const struct weir_setting *const **section_settings;
    size_t section_count;
    weir_load_report *report;
    atomic_size_t open_devices;
    struct weir__shared shared;
};

// The table of services for modules.
extern const struct weir_host weir__host;

#endif
