// weir trace html and mark: what is made from a trace, with the findings of the plugin `check`.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/trace/trace.h"
#include "report/findings.h"
#include "report/page.h"
#include "report/trace.h"

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
    cli_own(destroy_reader, &reader, NULL);
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

int cli_trace_html(int argc, char **argv)
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
        {"quiet", NULL, "do not say what was written", CLI_FLAG, &quiet, 0, 0},
    };
    const struct cli_usage usage = CLI_TRACE_FORM("weir trace html", html_about, options);
    char message[512];
    cli_parse(&usage, argc, argv);
    const weir_report *report = cli_trace_open(argv[0], &window, 0, false, CLI_FAILED);
    const char *path = output ? output : name_beside(argv[0], ".html");
    if (!weir_page_write(path, report, findings ? read_findings(findings) : NULL, message,
                         sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    if (!quiet)
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
        const struct weir_check_finding *finding = findings->items[i];
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
    return weir_trace_writer_close(&writer, &trace->meta, trace->devices, trace->device_count,
                                   message, message_size);
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
    cli_own(destroy_trace, &trace, NULL);
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

int cli_trace_mark(int argc, char **argv)
{
    const char *findings = NULL, *output = NULL;
    bool quiet = false;
    const struct cli_option options[] = {
        {"findings", "JSON", "what `weir check --json` printed", CLI_FILE, &findings, 0, 0},
        {"output", "TRACE", "the file to write, which may be FILE", CLI_FILE, &output, 0, 0},
        {"quiet", NULL, "do not print the file's name", CLI_FLAG, &quiet, 0, 0},
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
    if (!quiet)
        printf("%s: %" PRIu64 " operation%s marked\n", output, marked, marked == 1 ? "" : "s");
    return CLI_OK;
}
