// What was found, on the terminal and in files.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/check/check.h"

static bool no_memory(void)
{
    cli_error("no memory is left for the findings; free some memory of the host");
    return false;
}

static bool print(const struct weir_findings *findings,
                  char *(*make)(const struct weir_findings *findings), FILE *stream)
{
    char *text = make(findings);
    if (!text)
        return no_memory();
    fputs(text, stream);
    free(text);
    return true;
}

static bool write_file(const struct weir_findings *findings,
                       char *(*make)(const struct weir_findings *findings), const char *path)
{
    char message[512];
    if (!path)
        return true;
    char *text = make(findings);
    if (!text)
        return no_memory();
    const bool written = weir_file_write(path, text, strlen(text), message, sizeof message);
    free(text);
    if (!written)
        cli_error("%s", message);
    return written;
}

static bool has_unused_rule(const struct weir_findings *findings)
{
    for (size_t i = 0; i < findings->rule_count; i++)
        if (findings->rules[i]->used == 0)
            return true;
    return false;
}

// Findings are what the user asked for, so they are printed with --quiet too.
static bool show(const struct weir_findings *findings, const struct cli_check_options *options)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    if (options->json)
        return print(findings, weir_findings_json, stdout);
    if (sum.errors || (!options->quiet && (findings->count || has_unused_rule(findings))))
        return print(findings, weir_findings_text, stderr);
    if (!options->quiet)
        cli_note("%s: nothing was found%s", findings->program,
                 findings->complete ? "" : " so far; it did not close its runtime");
    return true;
}

int cli_check_tell(const struct weir_findings *findings, const struct cli_check_options *options,
                   int code)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    const bool shown = show(findings, options);
    const bool text = write_file(findings, weir_findings_text, options->text);
    const bool sarif = write_file(findings, weir_findings_sarif, options->sarif);
    if (code != CLI_OK || (shown && text && sarif && sum.errors == 0))
        return code;
    return CLI_FAILED;
}
