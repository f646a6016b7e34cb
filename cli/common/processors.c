#include "cli/common/processors.h"

#include <unistd.h>

uint32_t cli_processors(uint32_t most)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1)
        return 1;
    return (unsigned long)count < most ? (uint32_t)count : most;
}
