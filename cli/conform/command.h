// `weir conform`: runs the conformance suite.
#ifndef WEIR_CLI_CONFORM_COMMAND_H
#define WEIR_CLI_CONFORM_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_conform;

#endif
