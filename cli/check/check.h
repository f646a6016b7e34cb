// Shared by the files of `weir check`.
#ifndef WEIR_CLI_CHECK_CHECK_H
#define WEIR_CLI_CHECK_CHECK_H

#include "cli/common/folder.h"
#include "cli/program/program.h"
#include "report/findings.h"

struct cli_check_options {
    const char *text; // files; NULL: none
    const char *sarif;
    const char *suppressions;
    bool demonstrate;
    bool json;
    bool fail;
    bool hints;
    bool strict;
    bool verify;
    bool quiet;
};

// reports.c

// Adds up the reports that each runtime of the program has left in the folder. Returns false after
// a message; `*out_count` is how many there are.
bool cli_check_read(const struct cli_folder *folder, weir_findings_reader *reader,
                    size_t *out_count);

// tell.c

// Prints and writes what was found. Returns the exit code: `code`, which is the program's, or
// CLI_FAILED in place of CLI_OK if there are findings, or files that cannot be written.
int cli_check_tell(const struct weir_findings *findings, const struct cli_check_options *options,
                   int code);

// demonstrate.c

// Runs the program again for each race, with the two in the other order, and says on standard
// error whether what it prints changed. WEIR_PLUGINS has perturb; `plain` is the list without it.
// False after a message.
bool cli_check_demonstrate(const struct cli_folder *folder, char **command, const char *plain,
                           const struct weir_findings *findings);

#endif
