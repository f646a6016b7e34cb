// `weir kernels`: compiles OpenCL C to bundles, and shows what came of it.
#ifndef WEIR_CLI_KERNELS_COMMAND_H
#define WEIR_CLI_KERNELS_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_kernels;

#endif
