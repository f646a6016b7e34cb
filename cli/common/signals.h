// Interrupts: SIGINT, SIGTERM and SIGHUP, which are taken by a thread that waits for
// them, so that no handler has to guess what it may call.
#ifndef WEIR_CLI_COMMON_SIGNALS_H
#define WEIR_CLI_COMMON_SIGNALS_H

#include <stdbool.h>

// From here on a signal ends the process at once, with a message.
//
// Errors: false after a message.
bool cli_signals_start(void);

// From here on the first signal calls `stop(user)`, if there is a `stop`, and leaves
// it to the caller to end; a second one ends the process at once.
void cli_signals_defer(void (*stop)(void *user), void *user);
void cli_signals_resume(void);

void cli_signals_end(void);

// The signal that arrived, or 0.
int cli_signal(void);

#endif
