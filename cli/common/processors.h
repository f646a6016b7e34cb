// How many threads are worth starting.
#ifndef WEIR_CLI_COMMON_PROCESSORS_H
#define WEIR_CLI_COMMON_PROCESSORS_H

#include <stdint.h>

// The processors that this process may run on, 1 … `most`.
uint32_t cli_processors(uint32_t most);

#endif
