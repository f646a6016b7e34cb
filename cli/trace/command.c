// weir trace: its commands, and those of them that only hand a trace on.
#define _GNU_SOURCE // CLOCK_REALTIME_COARSE
#include <dirent.h>
#include <inttypes.h>
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
#include "report/findings.h"
#include "report/mark.h"
#include "report/output_path.h"
#include "report/page.h"
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

static bool parse(struct options *out, int argc, char **argv, char ***out_command, int *out_exit)
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
    return cli_program_parse(&usage, argc, argv, out_command, out_exit);
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
    weir_report *report = NULL;
    char span[WEIR_TEXT_QUANTITY_SIZE];
    const int opened = cli_trace_open(path, NULL, 0, options->quiet, &report);
    if (opened != CLI_OK)
        return code ? code : opened;
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
    code = check_end(command, path, summary, code);
    weir_report_destroy(&report);
    return code;
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
    struct cli_program_end end;
    char output[WEIR_OUTPUT_PATH_SIZE];
    char path[PATH_MAX];
    struct timespec since;
    int code;
    if (!parse(&options, argc, argv, &program.command, &code))
        return code;
    // This command may be a rank itself. %p stands for the number of the program's processes.
    const bool named = !strstr(options.output, "%p") &&
                       weir_output_path_name(options.output, (uint64_t)getpid(), output);
    code = cli_program_take_trace(named ? output : options.output, path, sizeof path);
    if (code != CLI_OK)
        return code;
    // The outermost plugin sees the times as the other plugins report them.
    if (!cli_program_add_plugin("trace"))
        return cli_weir_error();
    setenv(WEIR_TRACE_FILE_VARIABLE, path, 1);
    program.variable_count = cli_program_add_opencl(&options.opencl, true, variables);
    clock_gettime(CLOCK_REALTIME_COARSE, &since); // the clock of files
    if (!cli_program_run(&program, &end))
        return CLI_SETUP;
    return look_at(program.command[0], path, &options, &since, end.code);
}

// Names of what is made from a trace.

static bool ends_in(const char *text, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length > size && strncmp(text + length - size, end, size) == 0;
}

static bool cli_trace_is_compressed(const char *trace)
{
    return ends_in(trace, strlen(trace), ".gz");
}

// "run.json" and "run.json.gz" with another end.
//
// Ownership: the caller's, to be freed with free(). NULL if out of memory.
static char *cli_trace_name(const char *trace, const char *end)
{
    size_t length = strlen(trace);
    if (ends_in(trace, length, ".gz"))
        length -= 3;
    if (ends_in(trace, length, ".json"))
        length -= 5;
    const size_t size = length + strlen(end) + 1;
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%.*s%s", (int)length, trace, end);
    return name;
}

// weir trace html.

static const char html_about[] =
    "Writes one HTML file with a trace's timeline, to be zoomed and searched, and its report\n"
    "beside it. It needs a browser and nothing from the network. Without --output its name is\n"
    "FILE's with .html for .json. --findings marks the operations of the lines that the plugin\n"
    "`check` has found.";

static bool write_marked(const char *path, const weir_report *report, const char *findings)
{
    char message[512] = "no memory for the findings";
    weir_findings_reader *reader = findings ? weir_findings_reader_create() : NULL;
    const bool read =
        !findings || (reader && weir_findings_read(reader, findings, message, sizeof message));
    const bool written =
        read && weir_page_write_marked(path, report, reader ? weir_findings_all(reader) : NULL,
                                       message, sizeof message);
    if (!written)
        cli_error("%s", message);
    weir_findings_reader_destroy(&reader);
    return written;
}

static int write_page(const char *path, const weir_report *report, const char *findings, bool quiet)
{
    if (!write_marked(path, report, findings))
        return CLI_FAILED;
    if (!quiet)
        printf("%s\n", path);
    return CLI_OK;
}

static int cli_trace_html(int argc, char **argv)
{
    struct cli_trace_window window = {0};
    const char *output = NULL;
    const char *findings = NULL;
    bool quiet = false;
    const struct cli_option options[] = {
        {"output", "PAGE", "the file to write", CLI_FILE, &output, 0, 0},
        {"from", "TIME", "measure only what ran later than TIME after\nthe first start", CLI_TEXT,
         &window.from, 0, 0},
        {"to", "TIME", "measure only what ran earlier than TIME after it", CLI_TEXT, &window.to, 0,
         0},
        {"findings", "JSON", "what `weir check --json` printed: mark these lines", CLI_FILE,
         &findings, 0, 0},
        {"quiet", NULL, "do not print the file's name", CLI_FLAG, &quiet, 0, 0},
    };
    const struct cli_usage usage = CLI_TRACE_FORM("weir trace html", html_about, options);
    weir_report *report = NULL;
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    code = cli_trace_open(argv[0], &window, 0, false, &report);
    if (code != CLI_OK)
        return code;
    char *name = output ? NULL : cli_trace_name(argv[0], ".html");
    const char *path = output ? output : name;
    if (!path) {
        cli_error("no memory for the page's name");
        code = CLI_FAILED;
    } else {
        code = write_page(path, report, findings, quiet);
    }
    free(name);
    weir_report_destroy(&report);
    return code;
}

// weir trace mark.

static const char mark_about[] =
    "Writes a trace anew, in which the operations of lines that the plugin `check` has found have\n"
    "the finding and what to do about it among their arguments, and an event of its kind at their\n"
    "beginning: for Perfetto and other viewers. --findings is needed. Without --output the "
    "trace's\n"
    "name gets .marked before .json.";

static int mark(const char *trace, const char *findings, const char *output, bool quiet)
{
    char message[512] = "no memory for the findings";
    uint64_t marked = 0;
    weir_findings_reader *reader = weir_findings_reader_create();
    const bool fine =
        reader && weir_findings_read(reader, findings, message, sizeof message) &&
        weir_trace_mark(trace, weir_findings_all(reader), output, &marked, message, sizeof message);
    if (!fine)
        cli_error("%s", message);
    else if (!quiet)
        printf("%s: %" PRIu64 " operation%s marked\n", output, marked, marked == 1 ? "" : "s");
    weir_findings_reader_destroy(&reader);
    return fine ? CLI_OK : CLI_FAILED;
}

static int cli_trace_mark(int argc, char **argv)
{
    const struct cli_trace_window all = {0};
    const char *findings = NULL, *output = NULL;
    bool quiet = false;
    const struct cli_option options[] = {
        {"findings", "JSON", "what `weir check --json` printed", CLI_FILE, &findings, 0, 0},
        {"output", "TRACE", "the file to write, which may be FILE", CLI_FILE, &output, 0, 0},
        {"quiet", NULL, "do not print the file's name", CLI_FLAG, &quiet, 0, 0},
    };
    const struct cli_usage usage = CLI_TRACE_FORM("weir trace mark", mark_about, options);
    weir_report *report = NULL;
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    if (!findings) {
        cli_error("weir trace mark needs --findings JSON, what `weir check --json` printed");
        return CLI_USAGE;
    }
    // Says what is wrong with the file, if something is.
    code = cli_trace_open(argv[0], &all, 0, true, &report);
    weir_report_destroy(&report);
    if (code != CLI_OK)
        return code;
    const char *end = cli_trace_is_compressed(argv[0]) ? ".marked.json.gz" : ".marked.json";
    char *name = output ? NULL : cli_trace_name(argv[0], end);
    if (!output && !name)
        cli_error("no memory for the trace's name");
    code = output || name ? mark(argv[0], findings, output ? output : name, quiet) : CLI_FAILED;
    free(name);
    return code;
}

// weir trace: records and reads traces. A first word that is not the name of a member is
// the command to trace.

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

static const struct cli_command readers = {
    .summary = "To read traces",
    .members = members,
    .member_count = sizeof members / sizeof *members,
};

// A command that was not found may be a misspelt member.
static int run_command(int argc, char **argv)
{
    const char *nearest = NULL;
    const int code = cli_trace_run(argc, argv);
    if (code != CLI_NOT_FOUND)
        return code;
    for (size_t i = 0; argv[1][0] != '-' && i < readers.member_count; i++)
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
    return cli_dispatch_beside(&readers, "weir trace", run_command, argc, argv);
}

const struct cli_command cli_trace = {
    .name = "trace",
    .summary = "trace a program, and read traces",
    .main = trace_main,
};
