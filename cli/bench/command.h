// `weir bench`: measures what Weir costs and what it gains.
#ifndef WEIR_CLI_BENCH_COMMAND_H
#define WEIR_CLI_BENCH_COMMAND_H

#include "cli/common/cli.h"

extern const struct cli_command cli_bench;

#endif
