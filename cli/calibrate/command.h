// `weir calibrate`: measures a device, and writes the model of it that the plugin sim reads.
#ifndef WEIR_CLI_CALIBRATE_COMMAND_H
#define WEIR_CLI_CALIBRATE_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_calibrate;

#endif
