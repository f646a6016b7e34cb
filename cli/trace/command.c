// weir trace: its commands, and those of them that record a trace or make something else from one.
#define _GNU_SOURCE // CLOCK_REALTIME_COARSE
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/program/program.h"
#include "cli/trace/trace.h"
#include "report/findings.h"
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
        CLI_QUIET("print nothing but errors and the report"),
        CLI_OPTION_SKIP(&out->opencl),
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir trace", "COMMAND [ARGUMENT]...", run_about, options);
    return cli_program_parse(&usage, argc, argv);
}

static int tell(const char *command, const char *path, const struct options *options, int code)
{
    const weir_report *report = cli_trace_open(path, NULL, 0, true, code ? code : CLI_FAILED);
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    cli_note("%llu %s in %s: %s; `weir trace report %s` tells more",
             (unsigned long long)summary->operations,
             summary->operations == 1 ? "operation" : "operations",
             weir_text_duration((double)summary->span_ns).text, path, path);
    if (summary->untimed > 0 || summary->dropped > 0)
        cli_note("%llu of them without times, %llu more are not in it; where they came too fast, a "
                 "larger WEIR_TRACE_BUFFER keeps them",
                 (unsigned long long)summary->untimed, (unsigned long long)summary->dropped);
    if (options->report) {
        char *text = weir_report_text(report);
        if (text)
            fputs(text, stdout);
        weir_report_free_text(&text);
    }
    if (!summary->truncated || code != CLI_OK)
        return code;
    // A trace without its end is no success, though the command may have taken no notice.
    cli_error("%s is incomplete: %s did not close its runtime, or could not write the rest of the "
              "trace, as weir_close() told it then; free space, or name another file with --output",
              path, command);
    return CLI_FAILED;
}

// Processes that COMMAND has started write files of their own, each with its number or its rank in the name.

// The files of `path` that were written since; the last one is NULL.
static char **find_written(const char *path, const struct timespec *since)
{
    struct dirent **entries;
    const int length = (int)(strrchr(path, '/') - path);
    const int count =
        scandir(length ? cli_text("%.*s", length, path) : "/", &entries, NULL, alphasort);
    char **written = cli_allocate(count > 0 ? (size_t)count + 1 : 1, sizeof(char *));
    for (int i = 0, kept = 0; i < count; i++) {
        struct stat status;
        char *name = cli_text("%.*s/%s", length, path, entries[i]->d_name);
        if (weir_output_path_is_of(entries[i]->d_name, path) && stat(name, &status) == 0 &&
            (status.st_mtim.tv_sec > since->tv_sec ||
             (status.st_mtim.tv_sec == since->tv_sec && status.st_mtim.tv_nsec >= since->tv_nsec)))
            written[kept++] = name;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return written;
}

// What became of the trace.
static int look_at(const char *command, const char *path, const struct options *options,
                   const struct timespec *since, int code)
{
    char **written = find_written(path, since);
    int result = CLI_OK;
    for (size_t i = 0; written[i]; i++) {
        if (options->report && written[1])
            printf("%s%s\n", i > 0 ? "\n" : "", written[i]);
        const int told = tell(command, written[i], options, code);
        result = result == CLI_OK ? told : result;
    }
    if (written[0])
        return result;
    if (strstr(path, "%p") && options->report)
        cli_error("there is no %s, so no report: %s opened no runtime of Weir's", path, command);
    if (strstr(path, "%p") || code != CLI_OK) // COMMAND has printed why it failed
        return code;
    cli_error("%s wrote no trace to %s: it opened no runtime of Weir's, or one whose plugins the "
              "program names itself; list trace there",
              command, path);
    return CLI_FAILED;
}

static int cli_trace_run(int argc, char **argv)
{
    struct options options = {.output = "trace.json"};
    const char *variables[CLI_OPENCL_VARIABLES];
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

// weir trace html and mark: what is made from a trace, with the findings of the plugin `check`.

static bool ends_in(const char *text, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length > size && strncmp(text + length - size, end, size) == 0;
}

// "run.json" and "run.json.gz" with another end.
static const char *name_beside(const char *trace, const char *end)
{
    size_t length = strlen(trace);
    if (ends_in(trace, length, ".gz"))
        length -= 3;
    if (ends_in(trace, length, ".json"))
        length -= 5;
    return cli_text("%.*s%s", (int)length, trace, end);
}

CLI_DESTROYER(destroy_reader, weir_findings_reader_destroy)

// Of a file that `weir check --json` printed.
static const struct weir_findings *read_findings(const char *path)
{
    char message[512] = "no memory for the findings";
    static weir_findings_reader *reader;
    reader = weir_findings_reader_create();
    cli_own(destroy_reader, &reader);
    if (!reader || !weir_findings_read(reader, path, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    return weir_findings_all(reader);
}

// weir trace html.

static const char html_about[] =
    "Writes one HTML file with a trace's timeline, to be zoomed and searched, and its report\n"
    "beside it. It needs a browser and nothing from the network. Without --output its name is\n"
    "FILE's with .html for .json. --findings marks the operations of the lines that the plugin\n"
    "`check` has found.";

static int html_main(int argc, char **argv)
{
    struct cli_trace_window window = {0};
    const char *output = NULL;
    const char *findings = NULL;
    const struct cli_option options[] = {
        {"output", "PAGE", "the file to write", CLI_FILE, &output, 0, 0},
        {"from", "TIME", "measure only what ran later than TIME after\nthe first start", CLI_TEXT,
         &window.from, 0, 0},
        {"to", "TIME", "measure only what ran earlier than TIME after it", CLI_TEXT, &window.to, 0,
         0},
        {"findings", "JSON", "what `weir check --json` printed: mark these lines", CLI_FILE,
         &findings, 0, 0},
        CLI_QUIET("do not say what was written"),
    };
    const struct cli_usage usage = CLI_TRACE_FORM("weir trace html", html_about, options);
    char message[512];
    cli_parse(&usage, argc, argv);
    const weir_report *report = cli_trace_open(argv[0], &window, 0, true, CLI_FAILED);
    const char *path = output ? output : name_beside(argv[0], ".html");
    if (!weir_page_write(path, report, findings ? read_findings(findings) : NULL, message,
                         sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    if (!cli_quiet)
        printf("%s: the timeline and the report; open it in a browser\n", path);
    return CLI_OK;
}

// weir trace mark: the trace is read, and written again.

static bool is_at(const struct weir_check_use *use, const struct weir_trace_operation *operation)
{
    return use->line == operation->line && strcmp(use->file, operation->file) == 0;
}

static const struct weir_check_finding *find(const struct weir_findings *findings,
                                             const struct weir_trace_operation *operation)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct weir_check_finding *finding = &findings->items[i];
        if ((int)finding->kind < WEIR_CHECK_FIRST_HINT && !finding->suppression &&
            (is_at(&finding->first, operation) || is_at(&finding->second, operation)))
            return finding;
    }
    return NULL;
}

// Gives each operation whose line is in a finding that is no hint and not suppressed the arguments `weir.finding` and
// `weir.remedy`, and an instant event of the finding's kind, of category `weir_check`. Returns how many are new.
static uint64_t mark(struct weir_trace *trace, const struct weir_findings *findings)
{
    uint64_t marked = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        struct weir_trace_operation *operation = &trace->operations[i];
        if (!operation->timed || *operation->finding || !*operation->file)
            continue;
        const struct weir_check_finding *finding = find(findings, operation);
        if (!finding)
            continue;
        operation->finding_kind = weir_findings_kind_name(finding->kind);
        operation->finding = finding->message;
        operation->remedy = finding->remedy;
        marked++;
    }
    return marked;
}

// Arrows need the operations of all queues in the order of their ends; those of a queue stay in theirs.

struct turn {
    uint64_t end_ns; // of the queue's operations up to this one
    size_t operation;
};

static int by_end(const void *a, const void *b)
{
    const struct turn *x = a;
    const struct turn *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return x->operation < y->operation ? -1 : x->operation > y->operation;
}

static struct turn *order(const struct weir_trace *trace)
{
    struct turn *turns = cli_allocate(trace->operation_count + 1, sizeof *turns);
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *it = &trace->operations[i];
        const bool first = i == 0 || it[-1].queue_index != it->queue_index;
        const uint64_t before_ns = first ? 0 : turns[i - 1].end_ns;
        turns[i] = (struct turn){it->end_ns > before_ns ? it->end_ns : before_ns, i};
    }
    qsort(turns, trace->operation_count, sizeof *turns, by_end);
    return turns;
}

static bool write_trace(const struct weir_trace *trace, const char *path, char *message,
                        size_t message_size)
{
    const struct turn *turns = order(trace);
    weir_trace_writer *writer = weir_trace_writer_create(path, &trace->meta, message, message_size);
    if (!writer)
        return false;
    for (size_t i = 0; i < trace->device_count; i++)
        weir_trace_writer_device(writer, &trace->devices[i]);
    for (size_t i = 0; i < trace->queue_count; i++)
        weir_trace_writer_queue(writer, &trace->queues[i]);
    for (size_t i = 0; i < trace->thread_count; i++)
        weir_trace_writer_thread(writer, &trace->threads[i]);
    for (size_t i = 0; i < trace->operation_count; i++)
        weir_trace_writer_operation(writer, &trace->operations[turns[i].operation]);
    for (size_t i = 0; i < trace->span_count; i++)
        weir_trace_writer_span(writer, &trace->spans[i]);
    return weir_trace_writer_close(&writer, &trace->meta, message, message_size);
}

// To a file that is complete or not there at all; it may be the trace itself.
static void replace(const struct weir_trace *trace, const char *output)
{
    char message[512];
    const char *part =
        cli_text("%s.part%s", output, ends_in(output, strlen(output), ".gz") ? ".gz" : "");
    bool fine = write_trace(trace, part, message, sizeof message);
    if (fine && rename(part, output) != 0) {
        weir_text_about(message, sizeof message, output,
                        "the trace cannot be put there (errno %d); choose another place for it",
                        errno);
        fine = false;
    }
    if (fine)
        return;
    unlink(part);
    cli_fail(CLI_FAILED, "%s", message);
}

CLI_DESTROYER(destroy_trace, weir_trace_destroy)

static struct weir_trace *read_trace(const char *path)
{
    static struct weir_trace *trace;
    char message[512];
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    cli_own(destroy_trace, &trace);
    if (!*trace->meta.weir) {
        weir_text_about(message, sizeof message, path,
                        "another program's trace has no lines of operations to mark");
        cli_fail(CLI_FAILED, "%s", message);
    }
    return trace;
}

static const char mark_about[] =
    "Writes a trace anew, in which the operations of lines that the plugin `check` has found have\n"
    "the finding and what to do about it among their arguments, and an event of its kind at their\n"
    "beginning: for Perfetto and other viewers. --findings is needed. Without --output the "
    "trace's\n"
    "name gets .marked before .json.";

static int mark_main(int argc, char **argv)
{
    const char *findings = NULL, *output = NULL;
    const struct cli_option options[] = {
        {"findings", "JSON", "what `weir check --json` printed", CLI_FILE, &findings, 0, 0},
        {"output", "TRACE", "the file to write, which may be FILE", CLI_FILE, &output, 0, 0},
        CLI_QUIET("do not print the file's name"),
    };
    const struct cli_usage usage = CLI_TRACE_FORM("weir trace mark", mark_about, options);
    cli_parse(&usage, argc, argv);
    if (!findings)
        cli_fail(CLI_USAGE,
                 "weir trace mark needs --findings JSON, what `weir check --json` printed");
    if (!output)
        output = name_beside(argv[0], ends_in(argv[0], strlen(argv[0]), ".gz") ? ".marked.json.gz"
                                                                               : ".marked.json");
    const struct weir_findings *found = read_findings(findings);
    struct weir_trace *trace = read_trace(argv[0]);
    const uint64_t marked = mark(trace, found);
    replace(trace, output);
    if (!cli_quiet)
        printf("%s: %" PRIu64 " operation%s marked\n", output, marked, marked == 1 ? "" : "s");
    return CLI_OK;
}

// weir trace: records and reads traces. A first word that is not the name of a member is
// the command to trace.

const struct cli_command cli_trace_members[] = {
    {.name = "report",
     .summary = "how much overlapped, and what did not",
     .main = cli_trace_report},
    {.name = "timeline", .summary = "draw a trace in the terminal", .main = cli_trace_timeline},
    {.name = "html", .summary = "write it as a page for a browser", .main = html_main},
    {.name = "mark", .summary = "mark in it what `weir check` has found", .main = mark_main},
    {.name = "check", .summary = "check conditions on a trace", .main = cli_trace_check},
    {.name = "diff", .summary = "what got slower between two traces", .main = cli_trace_diff},
    {0},
};

// A command that was not found may be a misspelt member.
int cli_trace(int argc, char **argv)
{
    const char *nearest = NULL;
    if (argc < 2)
        cli_fail(CLI_USAGE, "weir trace needs a command to run, or the name of a form that reads "
                            "traces; `weir trace --help` lists it");
    const int code = cli_trace_run(argc, argv);
    if (code != CLI_NOT_FOUND)
        return code;
    for (size_t i = 0; argv[1][0] != '-' && cli_trace_members[i].name; i++)
        nearest = weir_text_nearer(argv[1], nearest, cli_trace_members[i].name);
    if (nearest)
        cli_error("weir trace has no '%s' either; did you mean '%s'?", argv[1], nearest);
    return code;
}
