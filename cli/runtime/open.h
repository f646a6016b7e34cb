// Opening a runtime with the sections that the command's pipelines declare.
#ifndef WEIR_CLI_RUNTIME_OPEN_H
#define WEIR_CLI_RUNTIME_OPEN_H

#include <weir/weir.h>

enum {
    CLI_SECTION_COUNT = 2
};

// [pipeline] and [arr_coc].
void cli_sections(struct weir_section sections[CLI_SECTION_COUNT]);

// Opens a runtime on the configuration file `config`, or on what weir_open()
// takes without one where it is NULL. `out_report` may be NULL.
//
// Errors: prints nothing; weir_last_error() tells.
weir_status cli_open(const char *config, weir_load_report **out_report, weir_runtime **out_runtime);

#endif
