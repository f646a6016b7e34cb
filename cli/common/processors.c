#include "cli/common/processors.h"

#include "base/workers.h"

uint32_t cli_processors(uint32_t most)
{
    const unsigned count = weir_workers_processors();
    return count < most ? (uint32_t)count : most;
}
