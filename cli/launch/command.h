// `weir launch`: a program as several ranks on this machine.
#ifndef WEIR_CLI_LAUNCH_COMMAND_H
#define WEIR_CLI_LAUNCH_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_launch;

#endif
