// Interrupts: SIGINT, SIGTERM and SIGHUP. A thread waits for them, so that no code runs in
// a signal handler, with its limits on what may be called.
#ifndef WEIR_CLI_COMMON_SIGNALS_H
#define WEIR_CLI_COMMON_SIGNALS_H

#include <signal.h>
#include <stddef.h>

// Stores a set of those that are not ignored: what is, as nohup does with SIGHUP, stays so.
void cli_signals_list(const int *numbers, size_t count, sigset_t *out_set);

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

#endif
