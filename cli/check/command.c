// weir check: runs a program with the plugin check, and tells what it has found.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for realpath()
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/common/folder.h"
#include "cli/common/own.h"
#include "cli/program/program.h"
#include "report/findings.h"

// --demonstrate: the program runs again, with the plugin perturb, once in the order in which it
// submits and once for each finding with the two in the other order; what it prints is compared. What
// the host does cannot be moved: there the queues are as late as possible, and the run to compare with
// is one without perturb.

// No line of a program has this name, so nothing is reversed.
#define NO_PAIR "(none):1, (none):2"

struct show {
    const char *folder;
    char **command;
    const char *plain;                // the chain without perturb
    int code;                         // the command's so far
    struct cli_perturb_run of_queues; // to compare with
    struct cli_perturb_run of_host;   // the same; without bytes: not run
};

// Without a mode the program runs without perturb.
static struct cli_perturb_run run_order(const struct show *show, const char *mode, const char *pair)
{
    const char *const variables[CLI_PERTURB_VARIABLES] = {
        cli_text("WEIR_PLUGINS=%s",
                 mode ? cli_program_end_plugins(show->plain, "perturb") : show->plain),
        cli_text("WEIR_PERTURB_MODE=%s", mode ? mode : ""),
        cli_text("WEIR_PERTURB_PAIR=%s", pair),
    };
    const struct cli_program program = {
        .command = show->command,
        .variables = variables,
        .variable_count = mode ? CLI_PERTURB_VARIABLES : 1,
    };
    struct cli_perturb_run run = cli_perturb_run(&program, show->folder, 0);
    free(run.messages.bytes);
    return run;
}

// A line, as shown on a terminal. Those before it are the same in both contents.
static const char *line_of(const struct cli_content *content, uint64_t number)
{
    char line[200], shown[120];
    const char *text = content->bytes;
    for (; number > 1; number--)
        text =
            (const char *)memchr(text, '\n', content->size - (size_t)(text - content->bytes)) + 1;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    weir_text_escape(shown, sizeof shown, line, "");
    return cli_copy(shown);
}

static bool is_of_queues(const struct weir_check_finding *finding)
{
    return finding->first.queue_id && finding->second.queue_id;
}

static void tell_run(const struct weir_check_finding *finding,
                     const struct cli_perturb_run *expected, const struct cli_perturb_run *run)
{
    const char *text = "what the program prints and its status stay the same";
    const bool of_queues = is_of_queues(finding);
    const uint64_t line = cli_content_line(&expected->output, &run->output);
    if (run->counts.runtimes == 0)
        text = cli_text("no order can be shown: the program closed no runtime with the plugin "
                        "perturb, and ended with %d",
                        run->end.code);
    else if (run->end.code != expected->end.code)
        text =
            cli_text("the program ends with %d in place of %d", run->end.code, expected->end.code);
    else if (line)
        text = cli_text("the program prints '%s' in place of '%s'", line_of(&run->output, line),
                        line_of(&expected->output, line));
    else if (of_queues && run->counts.reversed == 0)
        text = "not possible in this run: other waits order the two, or the host does";
    fprintf(stderr, "%s, %s:%d and %s:%d%s: %s\n", weir_findings_kind_name(finding->kind),
            finding->first.file, finding->first.line, finding->second.file, finding->second.line,
            of_queues ? " reversed" : ", queues as late as possible", text);
}

static void demonstrate_finding(struct show *show, const struct weir_check_finding *finding)
{
    const bool of_queues = is_of_queues(finding);
    struct cli_perturb_run *expected = of_queues ? &show->of_queues : &show->of_host;
    const char *pair = cli_text("%s:%d, %s:%d", finding->first.file, finding->first.line,
                                finding->second.file, finding->second.line);
    if (!show->of_queues.output.bytes) {
        show->of_queues = run_order(show, "pair", NO_PAIR);
        if (show->of_queues.counts.runtimes == 0)
            cli_fail(show->code ? show->code : CLI_FAILED,
                     "%s closed no runtime with the plugin perturb, so no order can be shown: it "
                     "ended early, or the plugin cannot be used, as `weir doctor` tells",
                     show->command[0]);
    }
    if (!expected->output.bytes)
        *expected = run_order(show, NULL, NO_PAIR);
    const struct cli_perturb_run run =
        run_order(show, of_queues ? "pair" : "late", of_queues ? pair : NO_PAIR);
    tell_run(finding, expected, &run);
    free(run.output.bytes);
}

// Runs the program again for each race, with the two in the other order, and says on standard
// error whether what it prints changed.
static void demonstrate(struct show *show, const struct weir_findings *findings)
{
    setenv("WEIR_CHECK_REPORT", "log", 1); // the configuration may have the plugin too
    for (size_t i = 0; i < findings->count; i++) {
        const struct weir_check_finding *finding = &findings->items[i];
        if (finding->kind <= WEIR_CHECK_HOST_WRITE && !finding->suppression &&
            finding->first.file[0] && finding->second.file[0])
            demonstrate_finding(show, finding);
    }
    free(show->of_queues.output.bytes);
    free(show->of_host.output.bytes);
}

struct options {
    const char *text; // files; NULL: none
    const char *sarif;
    const char *suppressions;
    bool demonstrate;
    bool json;
    bool fail;
    bool hints;
    bool no_locks;
    struct cli_opencl opencl;
    bool strict;
    bool verify;
};

// The reports. The plugin puts the number of the process, and of the runtime in it, into the name of
// each.

// Adds up the reports that each runtime of the program has left in the folder. Returns how many there are.
static int read_all(const char *folder, weir_findings_reader *reader, int failed)
{
    struct dirent **entries;
    char message[512];
    bool read = true;
    int reports = 0;
    const int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        cli_fail(failed,
                 "%s: the findings cannot be read: %s; leave the folder alone while the command "
                 "runs",
                 folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *path = cli_text("%s/%s", folder, entries[i]->d_name);
        const bool is_report = fnmatch("*.json", entries[i]->d_name, FNM_PERIOD) == 0;
        reports += is_report;
        read = read && (!is_report || weir_findings_read(reader, path, message, sizeof message));
        free(entries[i]);
    }
    free(entries);
    if (!read)
        cli_fail(failed, "%s", message);
    return reports;
}

// What was found, on the terminal and in files.

#define NO_MEMORY "no memory is left for the findings; free some memory of the host"

static void print(const struct weir_findings *findings,
                  char *(*make)(const struct weir_findings *findings), FILE *stream)
{
    char *text = make(findings);
    if (!text)
        cli_fail(CLI_FAILED, NO_MEMORY);
    fputs(text, stream);
    free(text);
}

static bool write_file(const struct weir_findings *findings,
                       char *(*make)(const struct weir_findings *findings), const char *path)
{
    char *text = path ? make(findings) : NULL;
    return !path || cli_write_file(path, text, text ? strlen(text) : 0, "the findings");
}

// Findings are what the user asked for, so they are printed with --quiet too.
static void show(const struct weir_findings *findings, const struct options *options)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    bool unused = false, assumed = false;
    for (size_t i = 0; i < findings->rule_count; i++)
        unused = unused || findings->rules[i].used == 0;
    for (size_t i = 0; i < findings->count; i++)
        assumed = assumed || findings->items[i].first.assumed || findings->items[i].second.assumed;
    if (options->json) {
        print(findings, weir_findings_json, stdout);
    } else if (sum.errors || (!cli_quiet && (findings->count || unused))) {
        print(findings, weir_findings_text, stderr);
        // A layer takes whole buffers where it does not know which bytes are used.
        if (assumed && !options->verify)
            cli_note("a finding with \"may\" takes all of a buffer as used; --verify runs the "
                     "kernels on copies, and finds the bytes that they use");
    } else {
        cli_note("%s: nothing was found%s", findings->program,
                 findings->complete ? "" : " so far; it did not close its runtime");
    }
}

// Prints and writes what was found. Returns the exit code: `code`, which is the program's, or
// CLI_FAILED in place of CLI_OK if there are findings, or files that cannot be written.
static int tell_findings(const struct weir_findings *findings, const struct options *options,
                         int code)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    show(findings, options);
    const bool text = write_file(findings, weir_findings_text, options->text);
    const bool sarif = write_file(findings, weir_findings_sarif, options->sarif);
    if (code != CLI_OK || (text && sarif && sum.errors == 0))
        return code;
    return CLI_FAILED;
}

// weir check COMMAND...: runs COMMAND with an environment that adds the plugin and names the files.

static const char about[] =
    "Runs COMMAND, any program that uses Weir or OpenCL, with the plugin `check`, and tells\n"
    "which uses of memory nothing orders: both lines, and the calls to add. Needs no GPU: what\n"
    "the program submits is examined, not what happens to run when. Options come before COMMAND;\n"
    "what follows it are its arguments.\n"
    "\n"
    "Ends as COMMAND did, or with 1 if COMMAND ended with 0 and something was found.\n"
    "\n"
    "  weir check --demonstrate ./program";

static char **parse(struct options *out, int argc, char **argv)
{
    const struct cli_option options[] = {
        {"demonstrate", NULL,
         "run COMMAND again for each race, with the two in the\nother order, and tell what it then "
         "prints",
         CLI_FLAG, &out->demonstrate, 0, 0},
        {"fail", NULL, "refuse the operations with findings, so that their\nqueues fail", CLI_FLAG,
         &out->fail, 0, 0},
        {"hints", NULL, "tell waits and syncs that nothing needs, too", CLI_FLAG, &out->hints, 0,
         0},
        {"json", NULL,
         "print the findings as JSON; what COMMAND prints then\ngoes to standard error", CLI_FLAG,
         &out->json, 0, 0},
        {"no-locks", NULL,
         "do not look at the threads and locks of COMMAND: its\ncalls count as ordered as they "
         "happen",
         CLI_FLAG, &out->no_locks, 0, 0},
        CLI_OPTION_NO_OPENCL_LAYER(&out->opencl),
        CLI_QUIET("print nothing but errors and findings"),
        {"sarif", "FILE", "write the findings as SARIF, for tools of code review", CLI_FILE,
         &out->sarif, 0, 0},
        CLI_OPTION_SKIP(&out->opencl),
        {"strict", NULL,
         "take threads as unordered also where their locks are\nnot seen, unless they call "
         "weir_check_release() and\nweir_check_acquire()",
         CLI_FLAG, &out->strict, 0, 0},
        {"suppressions", "FILE", "a file of findings that are known, each with its reason",
         CLI_FILE, &out->suppressions, 0, 0},
        {"text", "FILE", "write the findings as text", CLI_FILE, &out->text, 0, 0},
        {"verify", NULL,
         "run each kernel on copies of its buffers too, and tell\nwhich bytes it uses that its "
         "launch does not declare;\nwithout Weir, find which it uses; slow",
         CLI_FLAG, &out->verify, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir check", "COMMAND [ARGUMENT]...", about, options);
    return cli_program_parse(&usage, argc, argv);
}

// Returns the program's exit code.
static int run(struct options *options, const char *folder, char **command)
{
    const char *variables[8 + CLI_OPENCL_VARIABLES];
    size_t count = 0;
    variables[count++] = cli_text("WEIR_CHECK_JSON=%s/%%p.json", folder);
    if (options->suppressions)
        variables[count++] = cli_text("WEIR_CHECK_SUPPRESSIONS=%s", options->suppressions);
    if (options->fail)
        variables[count++] = "WEIR_CHECK_REPORT=fail";
    if (options->hints)
        variables[count++] = "WEIR_CHECK_HINTS=1";
    if (options->strict)
        variables[count++] = "WEIR_CHECK_THREADS=strict";
    if (options->verify)
        variables[count++] = "WEIR_CHECK_VERIFY=1";
    if (!options->no_locks)
        variables[count] = cli_preload_find("libweir_locks.so", "LD_PRELOAD",
                                            "the program's own locks are not seen");
    if (!options->no_locks && variables[count]) {
        count++;
        // A program with the address sanitizer refuses to run after a preloaded library, unless it is told.
        variables[count++] = cli_program_prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
    }
    count += cli_program_add_opencl(&options->opencl, false, &variables[count]);
    const struct cli_program program = {
        .command = command,
        .variables = variables,
        .variable_count = count,
        .output = options->json ? STDERR_FILENO : 0,
    };
    return cli_program_run(&program).code;
}

CLI_DESTROYER(destroy_reader, weir_findings_reader_destroy)

static int tell(const struct options *options, const char *folder, char **command,
                const char *plain, int code)
{
    const int failed = code ? code : CLI_FAILED;
    static weir_findings_reader *reader;
    reader = weir_findings_reader_create();
    cli_own(destroy_reader, &reader);
    if (!reader)
        cli_fail(failed, NO_MEMORY);
    if (read_all(folder, reader, failed) > 0) {
        code = tell_findings(weir_findings_all(reader), options, code);
        struct show show = {.folder = folder, .command = command, .plain = plain, .code = code};
        if (options->demonstrate)
            demonstrate(&show, weir_findings_all(reader));
    } else if (code == CLI_OK) { // else COMMAND has printed why it failed
        cli_fail(CLI_FAILED,
                 "%s was not checked: it opened no runtime of Weir's and no context of OpenCL's, "
                 "or a runtime whose plugins the program names itself; list check there",
                 command[0]);
    }
    return code;
}

int cli_check(int argc, char **argv)
{
    struct options options = {.text = NULL};
    char **command = parse(&options, argc, argv);
    char suppressions[PATH_MAX]; // the program may change its folder before it opens a runtime
    if (options.suppressions &&
        (!realpath(options.suppressions, suppressions) || access(suppressions, R_OK) != 0))
        cli_fail(CLI_USAGE,
                 "%s cannot be read: %s; name the file of suppressions with --suppressions",
                 options.suppressions, strerror(errno));
    if (options.suppressions)
        options.suppressions = suppressions;
    cli_need_writable(options.sarif);
    cli_need_writable(options.text);
    const char *plain = cli_program_list_plugins("perturb");
    // The outermost plugin sees every call of the program.
    cli_program_add_plugin("check");
    const char *folder = cli_folder_create("check");
    const int code = run(&options, folder, command);
    return tell(&options, folder, command, plain, code);
}
