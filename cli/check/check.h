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

// demonstrate.c

// Runs the program again for each race, with the two in the other order, and says on standard
// error whether what it prints changed. WEIR_PLUGINS has perturb; `plain` is the list without it.
// False after a message.
bool cli_check_demonstrate(const struct cli_folder *folder, char **command, const char *plain,
                           const struct weir_findings *findings);

#endif
