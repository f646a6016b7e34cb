// Where ranks under Slurm may meet.
#ifndef WEIR_CORE_COMM_SLURM_H
#define WEIR_CORE_COMM_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The first host of a list such as "node[1-4,7],gpu3": "node1". False for a text that is none, and for a
// name of more than `size` - 1 bytes.
bool weir__slurm_first_host(const char *list, char *out_host, size_t size);

// A port that all ranks of a job step compute alike, and steps that run at once rarely share: between
// 15000 and 24999.
uint16_t weir__slurm_port(const char *job, const char *step);

#endif
