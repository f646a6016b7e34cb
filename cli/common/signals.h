// Interrupts: SIGINT, SIGTERM and SIGHUP. A thread waits for them, so that no code runs in
// a signal handler, with its limits on what may be called.
#ifndef WEIR_CLI_COMMON_SIGNALS_H
#define WEIR_CLI_COMMON_SIGNALS_H

#include <spawn.h>
#include <stdbool.h>

// From this call until the command's end a signal ends the process at once, with a message.
//
// Errors: they end the command.
void cli_signals_start(void);

// From this call until cli_signals_resume() the first signal calls `stop(user)`, if `stop`
// is not NULL, and the caller ends the command; a second signal ends the process at once.
void cli_signals_defer(void (*stop)(void *user), void *user);
void cli_signals_resume(void);

// The signal that arrived, or 0.
int cli_signal(void);

// Starting another program.

// Starts `program` with this process's environment and none of its blocked signals, which one of its
// threads takes. With `own_group` it is in a process group of its own, so that the terminal's interrupt
// does not reach it. Returns 0 and stores the process, or returns an errno.
int cli_spawn(const char *program, const char *const *arguments,
              const posix_spawn_file_actions_t *actions, bool own_group, pid_t *out_process);

#endif
