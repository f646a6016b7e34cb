// `weir sim`: programs on modelled GPUs, and what kernels cost.
#ifndef WEIR_CLI_SIM_COMMAND_H
#define WEIR_CLI_SIM_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_sim;

#endif
