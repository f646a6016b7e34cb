// `weir check`: runs a program with the plugin check, and tells what it has found.
#ifndef WEIR_CLI_CHECK_COMMAND_H
#define WEIR_CLI_CHECK_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_check;

#endif
