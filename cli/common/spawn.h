// Starting another program.
#ifndef WEIR_CLI_COMMON_SPAWN_H
#define WEIR_CLI_COMMON_SPAWN_H

#include <spawn.h>
#include <stdbool.h>

// Starts `program` with this process's environment and none of its blocked signals, which one of its
// threads takes. With `own_group` it is in a process group of its own, so that the terminal's interrupt
// does not reach it. Returns 0 and stores the process, or returns an errno.
int cli_spawn(const char *program, const char *const *arguments,
              const posix_spawn_file_actions_t *actions, bool own_group, pid_t *out_process);

#endif
