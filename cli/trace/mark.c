// weir trace mark.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/trace/trace.h"
#include "report/findings.h"
#include "report/mark.h"

static const char about[] =
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

int cli_trace_mark(int argc, char **argv)
{
    const struct cli_trace_window all = {0};
    const char *findings = NULL, *output = NULL;
    bool quiet = false;
    const struct cli_option options[] = {
        {"findings", "JSON", "what `weir check --json` printed", CLI_FILE, &findings, 0, 0},
        {"output", "TRACE", "the file to write, which may be FILE", CLI_FILE, &output, 0, 0},
        {"quiet", NULL, "do not print the file's name", CLI_FLAG, &quiet, 0, 0},
    };
    const struct cli_usage usage =
        cli_trace_usage("weir trace mark", about, options, sizeof options / sizeof *options);
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
