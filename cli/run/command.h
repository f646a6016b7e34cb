// `weir run`: runs a pipeline over images.
#ifndef WEIR_CLI_RUN_COMMAND_H
#define WEIR_CLI_RUN_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_run;

#endif
