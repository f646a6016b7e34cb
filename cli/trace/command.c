// weir trace: its commands, and those of them that only hand a trace on.
#define _GNU_SOURCE // CLOCK_REALTIME_COARSE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/program/program.h"
#include "cli/trace/trace.h"
#include "report/output_path.h"
#include "report/trace.h"

// weir trace COMMAND...: runs COMMAND with an environment that adds the plugin and names its
// file. The rest of the configuration is unchanged.

static const char run_about[] =
    "Runs COMMAND, any program that uses Weir or OpenCL, with the plugin `trace`, and says\n"
    "where the trace is. Ends as COMMAND did. Options come before COMMAND; what follows it\n"
    "are its arguments. `weir trace report`, `timeline`, `check` and `diff` read traces; to run a\n"
    "COMMAND of such a name, put -- before it.\n"
    "\n"
    "  weir trace --output run.json --report ./program";

struct options {
    const char *output;
    bool report;
    bool quiet;
    struct cli_opencl opencl;
};

static char **parse(struct options *out, int argc, char **argv)
{
    const struct cli_option options[] = {
        CLI_OPTION_NO_OPENCL_LAYER(&out->opencl),
        {"output", "FILE",
         "write the trace to FILE; compressed if it ends in\n.gz; without it, trace.json", CLI_FILE,
         &out->output, 0, 0},
        {"report", NULL, "print the report when COMMAND has ended", CLI_FLAG, &out->report, 0, 0},
        {"quiet", NULL, "print nothing but errors and the report", CLI_FLAG, &out->quiet, 0, 0},
        CLI_OPTION_SKIP(&out->opencl),
    };
    const struct cli_usage usage = CLI_FORM_PROGRAM("weir trace", "COMMAND [ARGUMENT]...",
                                                    run_about, "weir-trace(1)", options);
    return cli_program_parse(&usage, argc, argv);
}

static int no_trace(const char *command, const char *path, int code)
{
    // COMMAND has printed why it failed.
    if (code != 0)
        return code;
    cli_error("%s wrote no trace to %s: it opened no runtime of Weir's, or one whose plugins the "
              "program names itself; list trace there",
              command, path);
    return CLI_FAILED;
}

// A trace without its end is no success, though the command may have taken no notice.
static int check_end(const char *command, const char *path,
                     const struct weir_report_summary *summary, int code)
{
    if (!summary->truncated || code != CLI_OK)
        return code;
    cli_error("%s is incomplete: %s did not close its runtime, or could not write the rest of the "
              "trace, as weir_close() told it then; free space, or name another file with --output",
              path, command);
    return CLI_FAILED;
}

static int tell(const char *command, const char *path, const struct options *options, int code)
{
    char span[WEIR_TEXT_QUANTITY_SIZE];
    const weir_report *report =
        cli_trace_open(path, NULL, 0, options->quiet, code ? code : CLI_FAILED);
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    if (!options->quiet)
        cli_note("%llu %s in %s: %s; `weir trace report %s` tells more",
                 (unsigned long long)summary->operations,
                 summary->operations == 1 ? "operation" : "operations",
                 weir_text_duration(span, (double)summary->span_ns), path, path);
    if (!options->quiet && (summary->untimed > 0 || summary->dropped > 0))
        cli_note("%llu of them without times, %llu more are not in it; where they came too fast, a "
                 "larger WEIR_TRACE_BUFFER keeps them",
                 (unsigned long long)summary->untimed, (unsigned long long)summary->dropped);
    if (options->report) {
        char *text = weir_report_text(report);
        if (text)
            fputs(text, stdout);
        weir_report_free_text(&text);
    }
    return check_end(command, path, summary, code);
}

// Processes that COMMAND has started write files of their own, each with its number or its rank in the name.
struct written {
    char folder[PATH_MAX];
    struct dirent **entries;
    int count;
};

// Leaves those of `path` that were written since.
static void find_written(const char *path, const struct timespec *since, struct written *out)
{
    const char *slash = strrchr(path, '/');
    int kept = 0;
    snprintf(out->folder, sizeof out->folder, "%.*s", (int)(slash - path), path);
    out->count = scandir(*out->folder ? out->folder : "/", &out->entries, NULL, alphasort);
    for (int i = 0; i < out->count; i++) {
        char name[PATH_MAX + NAME_MAX + 2];
        struct stat status;
        snprintf(name, sizeof name, "%s/%s", out->folder, out->entries[i]->d_name);
        if (weir_output_path_is_of(out->entries[i]->d_name, path) && stat(name, &status) == 0 &&
            (status.st_mtim.tv_sec > since->tv_sec ||
             (status.st_mtim.tv_sec == since->tv_sec && status.st_mtim.tv_nsec >= since->tv_nsec)))
            out->entries[kept++] = out->entries[i];
        else
            free(out->entries[i]);
    }
    out->count = out->count > 0 ? kept : out->count;
}

static int tell_written(const char *command, struct written *written, const struct options *options,
                        int code)
{
    int result = CLI_OK;
    for (int i = 0; i < written->count; i++) {
        char name[PATH_MAX + NAME_MAX + 2];
        snprintf(name, sizeof name, "%s/%s", written->folder, written->entries[i]->d_name);
        if (options->report && written->count > 1)
            printf("%s%s\n", i > 0 ? "\n" : "", name);
        const int told = tell(command, name, options, code);
        result = result == CLI_OK ? told : result;
        free(written->entries[i]);
    }
    if (written->count >= 0)
        free(written->entries);
    return result;
}

// What became of the trace.
static int look_at(const char *command, const char *path, const struct options *options,
                   const struct timespec *since, int code)
{
    struct written written;
    find_written(path, since, &written);
    const bool found = written.count > 0;
    const int told = tell_written(command, &written, options, code);
    if (found)
        return told;
    if (!strstr(path, "%p"))
        return no_trace(command, path, code);
    if (options->report)
        cli_warning("there is no %s, so no report: %s opened no runtime of Weir's", path, command);
    return code;
}

static int cli_trace_run(int argc, char **argv)
{
    struct options options = {.output = "trace.json"};
    struct cli_program_variable variables[CLI_OPENCL_VARIABLES];
    struct cli_program program = {.variables = variables};
    char output[WEIR_OUTPUT_PATH_SIZE];
    struct timespec since;
    program.command = parse(&options, argc, argv);
    // This command may be a rank itself. %p stands for the number of the program's processes.
    const bool named = !strstr(options.output, "%p") &&
                       weir_output_path_name(options.output, (uint64_t)getpid(), output);
    const char *path = cli_program_take_trace(named ? output : options.output);
    // The outermost plugin sees the times as the other plugins report them.
    cli_program_add_plugin("trace");
    setenv(WEIR_TRACE_FILE_VARIABLE, path, 1);
    program.variable_count = cli_program_add_opencl(&options.opencl, true, variables);
    clock_gettime(CLOCK_REALTIME_COARSE, &since); // the clock of files
    const struct cli_program_end end = cli_program_run(&program);
    return look_at(program.command[0], path, &options, &since, end.code);
}

// weir trace: records and reads traces. A first word that is not the name of a member is
// the command to trace.

static const struct cli_command readers[] = {
    {.name = "report",
     .summary = "how much overlapped, and what did not",
     .main = cli_trace_report},
    {.name = "timeline", .summary = "draw a trace in the terminal", .main = cli_trace_timeline},
    {.name = "html", .summary = "write it as a page for a browser", .main = cli_trace_html},
    {.name = "mark", .summary = "mark in it what `weir check` has found", .main = cli_trace_mark},
    {.name = "check", .summary = "check conditions on a trace", .main = cli_trace_check},
    {.name = "diff", .summary = "what got slower between two traces", .main = cli_trace_diff},
};

static const struct cli_command *const members[] = {&readers[0], &readers[1], &readers[2],
                                                    &readers[3], &readers[4], &readers[5],
                                                    NULL};

// A command that was not found may be a misspelt member.
static int trace_main(int argc, char **argv)
{
    const char *nearest = NULL;
    if (argc < 2)
        cli_fail(CLI_USAGE, "weir trace needs a command to run, or the name of a form that reads "
                            "traces; `weir trace --help` lists it");
    const int code = cli_trace_run(argc, argv);
    if (code != CLI_NOT_FOUND)
        return code;
    for (size_t i = 0; argv[1][0] != '-' && members[i]; i++)
        nearest = weir_text_nearer(argv[1], nearest, members[i]->name);
    if (nearest)
        cli_error("weir trace has no '%s' either; did you mean '%s'?", argv[1], nearest);
    return code;
}

const struct cli_command cli_trace = {
    .name = "trace",
    .summary = "trace a program, and read traces",
    .main = trace_main,
    .about = "To read traces",
    .members = members,
};
