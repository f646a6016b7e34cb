// `weir perturb`: runs a program in other orders, and tells which of them change its result.
#ifndef WEIR_CLI_PERTURB_COMMAND_H
#define WEIR_CLI_PERTURB_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_perturb;

#endif
