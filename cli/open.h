// Opening a runtime with the sections that the command's pipelines declare.
#ifndef WEIR_CLI_OPEN_H
#define WEIR_CLI_OPEN_H

#include <weir/weir.h>

#include "cli/cli.h"

enum {
    CLI_SECTION_COUNT = 2
};

// [pipeline] and [arr_coc].
void cli_sections(struct weir_section sections[CLI_SECTION_COUNT]);

// Sends the library's warnings and errors to stderr. A message that is a
// compiler's log is printed whole.
void cli_log_to_stderr(void);

// Opens a runtime on the configuration file `config`, or on what weir_open()
// takes without one where it is NULL. `out_report` may be NULL.
//
// Errors: prints nothing; weir_last_error() tells.
weir_status cli_open(const char *config, weir_load_report **out_report, weir_runtime **out_runtime);

// The directory of the program's file, links resolved. False if /proc does not tell.
bool cli_program_directory(char *directory, size_t size);

// Where `name` of this program's share folder lies, in `path`: share/weir of an
// installation, or `build_path` of a build tree.
//
// Errors: false, with both places in `message`.
bool cli_share_file(const char *name, const char *build_path, char *path, size_t path_size,
                    char *message, size_t message_size);

#endif
