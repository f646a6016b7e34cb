// `weir trace`: traces a program, and reads traces.
#ifndef WEIR_CLI_TRACE_COMMAND_H
#define WEIR_CLI_TRACE_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_trace;

#endif
