// weir trace html.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace/trace.h"
#include "report/findings.h"
#include "report/page.h"

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
        {"quiet", NULL, "do not print the file's name", CLI_FLAG, &quiet, 0, 0},
    };
    const struct cli_usage usage =
        cli_trace_usage("weir trace html", html_about, options, sizeof options / sizeof *options);
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
