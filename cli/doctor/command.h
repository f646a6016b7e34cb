// The commands that look at the machine and at its configuration.
#ifndef WEIR_CLI_DOCTOR_COMMAND_H
#define WEIR_CLI_DOCTOR_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_doctor;
extern const struct cli_command cli_devices;
extern const struct cli_command cli_config;

#endif
