// Builds a load report, the data of weir_load_report_*. The loader adds an entry
// for each file that it tries; the code that opens modules adds the rest.
//
// All functions accept a NULL report and then do nothing. Running out of memory
// loses an entry, never the report: its text says that it is incomplete.
//
// Threads: one thread builds a report; afterwards any number may read it.
#ifndef WEIR_CORE_MODULE_LOAD_REPORT_H
#define WEIR_CORE_MODULE_LOAD_REPORT_H

#include <weir/runtime.h>

// An empty report with one reference, or NULL.
weir_load_report *weir__load_report_create(void);

// Adds a reference: weir_load_report_destroy() frees the report with the last one.
// Returns `report`.
weir_load_report *weir__load_report_retain(weir_load_report *report);

// Appends a copy of `*entry`. NULL strings read as "".
void weir__load_report_add(weir_load_report *report, const struct weir_load_entry *entry);

// Completes the last used entry after its module was opened. `driver` may be NULL.
void weir__load_report_set_driver(weir_load_report *report, const char *driver,
                                  uint32_t device_count);

// Changes the last used entry of `module` to refused: its file is valid, but
// opening it failed, or it has no device.
void weir__load_report_refuse(weir_load_report *report, const char *module, const char *reason);

void weir__load_report_set_origin(weir_load_report *report, const char *origin);
void weir__load_report_set_remedy(weir_load_report *report, const char *remedy);

#endif
