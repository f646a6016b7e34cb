// What the files of `weir trace` share.
#ifndef WEIR_CLI_TRACE_H
#define WEIR_CLI_TRACE_H

#include <weir/report.h>

#include "cli/common/options.h"
#include "cli/common/own.h"

// Each returns an exit code.
int cli_trace_report(int argc, char **argv);
int cli_trace_timeline(int argc, char **argv);
int cli_trace_check(int argc, char **argv);
int cli_trace_diff(int argc, char **argv);

// The usage of a command that takes one FILE.
#define CLI_TRACE_FORM(command, about, options) \
    CLI_FORM(command, "FILE", "a trace", 1, 1, about, options)

// The part of a trace that --from and --to select, as given on the command line; NULL:
// from the first start, to the end.
struct cli_trace_window {
    const char *from;
    const char *to;
};

// Reads a trace and measures it, with a progress line on a terminal. The window's times
// count from the first start of an operation. With `notes` warns of what the reader
// repaired. Never NULL.
//
// Ownership: the command's.
// Errors: those of the file end the command with `failed`, those of the window with CLI_USAGE.
weir_report *cli_trace_open(const char *path, const struct cli_trace_window *window,
                            uint64_t bubbles, bool notes, int failed);

#endif
