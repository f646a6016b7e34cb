// `weir train`: training programs, on one device or on several ranks.
#ifndef WEIR_CLI_TRAIN_COMMAND_H
#define WEIR_CLI_TRAIN_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_train;

#endif
