// What an operation costs the engine: uploads, kernels and downloads over several queues.
#ifndef WEIR_TESTS_PLUGINS_SIM_LOAD_H
#define WEIR_TESTS_PLUGINS_SIM_LOAD_H

#include <stdint.h>

// Seconds of processor time for that many operations. Ends the process if out of memory.
double load_seconds(uint32_t queue_count, int operations);

#endif
