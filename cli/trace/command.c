// weir trace: records and reads traces. A first word that is not the name of a member is
// the command to trace.
#include "cli/trace/command.h"

#include <string.h>

#include "base/text.h"
#include "cli/trace/trace.h"

static const struct cli_command members[] = {
    {.name = "report",
     .summary = "how much overlapped, and what did not",
     .main = cli_trace_report},
    {.name = "timeline", .summary = "draw a trace in the terminal", .main = cli_trace_timeline},
    {.name = "html", .summary = "write it as a page for a browser", .main = cli_trace_html},
    {.name = "mark", .summary = "mark in it what `weir check` has found", .main = cli_trace_mark},
    {.name = "check", .summary = "check conditions on a trace", .main = cli_trace_check},
    {.name = "diff", .summary = "what got slower between two traces", .main = cli_trace_diff},
};

enum {
    MEMBER_COUNT = sizeof members / sizeof *members
};

static const struct cli_command readers = {
    .summary = "To read traces",
    .members = members,
    .member_count = MEMBER_COUNT,
};

static int print_help(int argc, char **argv)
{
    const int code = cli_trace_run(argc, argv);
    cli_help_members(&readers, "weir trace");
    return code;
}

// A command that was not found may be a misspelt member.
static int run_command(int argc, char **argv)
{
    const char *nearest = NULL;
    const int code = cli_trace_run(argc, argv);
    if (code != CLI_NOT_FOUND)
        return code;
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        nearest = weir_text_nearer(argv[1], nearest, members[i].name);
    if (nearest)
        cli_error("weir trace has no '%s' either; did you mean '%s'?", argv[1], nearest);
    return code;
}

static int trace_main(int argc, char **argv)
{
    if (argc < 2) {
        cli_error("weir trace needs a command to run, or the name of a form that reads traces; "
                  "`weir trace "
                  "--help` lists it");
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help(argc, argv);
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        if (strcmp(argv[1], members[i].name) == 0)
            return members[i].main(argc - 1, argv + 1);
    return run_command(argc, argv);
}

const struct cli_command cli_trace = {
    .name = "trace",
    .summary = "trace a program, and read traces",
    .main = trace_main,
};
