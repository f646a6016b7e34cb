// What a command owns, and its end. A command does one thing, so what it made is destroyed when it ends, and a
// failure that nothing can mend ends it at once.
//
// Threads: that of main().
#ifndef WEIR_CLI_COMMON_OWN_H
#define WEIR_CLI_COMMON_OWN_H

#include <stddef.h>

#include <weir/status.h>

#include "base/table.h"
#include "cli/common/cli.h"

// When the command ends, destroy(object) is called; what was owned last comes first.
void cli_own(void (*destroy)(void *object), void *object);
// Destroys it all now.
void cli_destroy_owned(void);

// Defines such a function, which calls destroy(object).
#define CLI_DESTROYER(name, destroy) \
    static void name(void *object)   \
    {                                \
        destroy(object);             \
    }

// For what is destroyed at the end: the command has failed then, if it has not already.
void cli_fail_late(void);

// Zeroed memory, a copy, and a text. Never NULL.
//
// Ownership: the command's.
void *cli_allocate(size_t count, size_t size);
char *cli_copy(const char *text);
char *cli_text(const char *format, ...) WEIR_PRINTF(1, 2);
// The same of a text that was put together.
char *cli_take_text(struct weir_long_text *text);

// Items of that size with room for one more than `count`; a copy, where `*capacity` was too small.
void *cli_grow(void *items, size_t count, size_t *capacity, size_t size);

// End the process with an exit code: after a sentence; after the thread's Weir error; and after what was
// printed already.
_Noreturn void cli_fail(int code, const char *format, ...) WEIR_PRINTF(2, 3);
_Noreturn void cli_fail_weir(void);
_Noreturn void cli_end(int code);
// Destroys what the command owns, flushes stdout, and returns the exit code: `code`, or CLI_FAILED after
// cli_fail_late() or, with a message, if what was printed could not be written. For main().
int cli_flush(int code);
// Ends it unless the code is CLI_OK, or, after the thread's Weir error, the status is WEIR_OK.
void cli_go_on(int code);
void cli_fine(weir_status status);

#endif
