// --demonstrate: the program runs again, with the plugin perturb, once in the order in which it
// submits and once for each finding with the two in the other order; what it prints is compared. What
// the host does cannot be moved: there the queues are as late as possible, and the run to compare with
// is one without perturb.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "cli/check/check.h"

#define OUTPUT_LIMIT ((size_t)256 << 20)

// No line of a program has this name, so nothing is reversed.
#define NO_PAIR "(none):1, (none):2"

struct outcome {
    char *output; // NULL: not run
    size_t size;
    int code;
    uint64_t runtimes; // that were closed with perturb in their chains
    uint64_t reversed;
};

struct show {
    const struct cli_folder *folder;
    char **command;
    const char *plain;        // WEIR_PLUGINS without perturb
    struct outcome of_queues; // to compare with
    struct outcome of_host;
};

// One line of JSON for each runtime.
static void read_report(const char *path, struct outcome *out)
{
    char line[1024];
    FILE *stream = fopen(path, "r");
    while (stream && fgets(line, sizeof line, stream)) {
        json_t *root = weir_json_load(line, strlen(line), 0, NULL);
        out->reversed += (uint64_t)json_integer_value(json_object_get(root, "reversed"));
        out->runtimes++;
        json_decref(root);
    }
    if (stream)
        fclose(stream);
}

static int open_output(const char *path)
{
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0)
        cli_error("%s cannot be written: %s; free space, or set TMPDIR to another folder", path,
                  strerror(errno));
    return descriptor;
}

// Without a mode the program runs without perturb.
static bool run_into(const struct show *show, const char *mode, const char *pair, int output,
                     int messages, const char *report, int *out_code)
{
    const struct cli_program_variable variables[] = {
        {"WEIR_PLUGINS", mode ? getenv("WEIR_PLUGINS") : show->plain},
        {"WEIR_PERTURB_MODE", mode ? mode : ""},
        {"WEIR_PERTURB_PAIR", pair},
        {"WEIR_PERTURB_REPORT", report},
        {"WEIR_CHECK_REPORT", "log"}, // the configuration may have the plugin too
    };
    const struct cli_program program = {
        .command = show->command,
        .variables = variables,
        .variable_count = sizeof variables / sizeof *variables,
        .output = output,
        .messages = messages,
    };
    struct cli_program_end end;
    const bool ran = cli_program_run(&program, &end);
    *out_code = end.code;
    return ran;
}

static bool run(const struct show *show, const char *mode, const char *pair, struct outcome *out)
{
    char output[CLI_FOLDER_PATH_SIZE], messages[CLI_FOLDER_PATH_SIZE];
    char report[CLI_FOLDER_PATH_SIZE], message[512];
    void *text = NULL;
    cli_folder_place(show->folder, "output", output);
    cli_folder_place(show->folder, "messages", messages);
    cli_folder_place(show->folder, "report", report);
    unlink(report);
    const int first = open_output(output);
    const int second = first < 0 ? -1 : open_output(messages);
    bool ok = second >= 0 && run_into(show, mode, pair, first, second, report, &out->code);
    if (first >= 0)
        close(first);
    if (second >= 0)
        close(second);
    if (ok && !weir_file_read(output, OUTPUT_LIMIT, &text, &out->size, message, sizeof message)) {
        cli_error("what the program printed is lost: %s", message);
        ok = false;
    }
    out->output = text;
    read_report(report, out);
    return ok;
}

// The first line that differs, as shown on a terminal.
static void line_of(const char *text, size_t number, char *out, size_t size)
{
    char line[200];
    for (; number > 0; number--)
        text = strchr(text, '\n') + 1;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    weir_text_escape(out, size, line, "");
}

static size_t first_difference(const char *a, const char *b)
{
    size_t line = 0;
    for (; *a && *a == *b; a++, b++)
        line += *a == '\n';
    return line;
}

static void tell_change(const struct outcome *expected, const struct outcome *outcome, char *text,
                        size_t size)
{
    char before[120], after[120];
    if (outcome->code != expected->code) {
        snprintf(text, size, "the program ends with %d in place of %d", outcome->code,
                 expected->code);
        return;
    }
    const size_t line = first_difference(expected->output, outcome->output);
    line_of(expected->output, line, before, sizeof before);
    line_of(outcome->output, line, after, sizeof after);
    snprintf(text, size, "the program prints '%s' in place of '%s'", after, before);
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
    return a->code == b->code && a->size == b->size && a->output && b->output &&
           memcmp(a->output, b->output, a->size) == 0;
}

static bool is_of_queues(const struct weir_check_finding *finding)
{
    return finding->first.queue_id && finding->second.queue_id;
}

static void tell(const struct weir_check_finding *finding, const struct outcome *expected,
                 const struct outcome *outcome)
{
    char text[400] = "what the program prints and its status stay the same";
    const bool of_queues = is_of_queues(finding);
    if (!is_same(expected, outcome))
        tell_change(expected, outcome, text, sizeof text);
    else if (of_queues && outcome->reversed == 0)
        snprintf(text, sizeof text,
                 "not possible in this run: other waits order the two, or the host does");
    fprintf(stderr, "%s, %s:%d and %s:%d%s: %s\n", weir_findings_kind_name(finding->kind),
            finding->first.file, finding->first.line, finding->second.file, finding->second.line,
            of_queues ? " reversed" : ", queues as late as possible", text);
}

static bool demonstrate(struct show *show, const struct weir_check_finding *finding)
{
    struct outcome outcome = {.output = NULL};
    char pair[1024];
    const bool of_queues = is_of_queues(finding);
    struct outcome *expected = of_queues ? &show->of_queues : &show->of_host;
    snprintf(pair, sizeof pair, "%.480s:%d, %.480s:%d", finding->first.file, finding->first.line,
             finding->second.file, finding->second.line);
    const bool ok = (expected->output || run(show, of_queues ? "pair" : NULL, NO_PAIR, expected)) &&
                    run(show, of_queues ? "pair" : "late", of_queues ? pair : NO_PAIR, &outcome);
    if (ok)
        tell(finding, expected, &outcome);
    free(outcome.output);
    return ok;
}

static bool is_wanted(const struct weir_check_finding *finding)
{
    return finding->kind <= WEIR_CHECK_HOST_WRITE && !finding->suppression &&
           finding->first.file[0] && finding->second.file[0];
}

static bool has_wanted(const struct weir_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        if (is_wanted(findings->items[i]))
            return true;
    return false;
}

static bool run_as_submitted(struct show *show)
{
    if (!run(show, "pair", NO_PAIR, &show->of_queues))
        return false;
    if (show->of_queues.runtimes > 0)
        return true;
    cli_error("%s closed no runtime with the plugin perturb, so no order can be shown: it ended "
              "early, or the plugin cannot be used, as `weir doctor` tells",
              show->command[0]);
    return false;
}

bool cli_check_demonstrate(const struct cli_folder *folder, char **command, const char *plain,
                           const struct weir_findings *findings)
{
    struct show show = {.folder = folder, .command = command, .plain = plain};
    bool ok = !has_wanted(findings) || run_as_submitted(&show);
    for (size_t i = 0; ok && i < findings->count; i++)
        if (is_wanted(findings->items[i]))
            ok = demonstrate(&show, findings->items[i]);
    free(show.of_queues.output);
    free(show.of_host.output);
    return ok;
}
