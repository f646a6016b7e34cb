// Opening a runtime with the sections that the command's pipelines declare.
#ifndef WEIR_CLI_RUNTIME_OPEN_H
#define WEIR_CLI_RUNTIME_OPEN_H

#include <weir/weir.h>

enum {
    CLI_SECTION_COUNT = 2
};

// [pipeline] and [arr_coc].
void cli_sections(const struct weir_section *sections[CLI_SECTION_COUNT]);

// Opens a runtime with the configuration file `config`, or, if it is NULL, with the one
// that weir_open() finds. `out_report` may be NULL.
//
// Errors: those of weir_open(); nothing is printed.
weir_status cli_open(const char *config, weir_load_report **out_report, weir_runtime **out_runtime);

// The same without plugins, for work beside the user's, which is not to be in their traces.
weir_status cli_open_plain(const char *config, weir_runtime **out_runtime);

// Opens the first device of the machine that is not `device`, whichever way that one was chosen, and
// stores it in `*out_other`; NULL if there is none.
//
// Errors: those of weir_device_open(); nothing is printed.
weir_status cli_open_other(weir_runtime *runtime, weir_device *device, weir_device **out_other);

// Closes both; either may be NULL. Returns the exit code, which is `code` unless that is CLI_OK and
// something is told now, such as a trace that could not be written: then it is printed, and the code
// is CLI_FAILED.
int cli_close(weir_device **device, weir_runtime **runtime, int code);

#endif
