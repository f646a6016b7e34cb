// `weir fault`: a program with faults in its operations.
#ifndef WEIR_CLI_FAULT_COMMAND_H
#define WEIR_CLI_FAULT_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_fault;

#endif
