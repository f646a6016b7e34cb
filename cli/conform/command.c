// weir conform: runs the conformance suite over the configured chain. The chain is opened
// here first, so that a chain that cannot be used is reported once and not as a failure of
// every test.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/common/folder.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/signals.h"
#include "cli/conform/conform.h"
#include "cli/runtime/open.h"

// The report of a run, as text, as JSON, and as JUnit's XML.

static const char *const outcome_names[] = {
    [CONFORM_NOT_RUN] = "not run",         [CONFORM_PASSED] = "passed",
    [CONFORM_FAILED] = "failed",           [CONFORM_SKIPPED] = "skipped",
    [CONFORM_UNSUPPORTED] = "unsupported",
};

static size_t count_failures(const struct conform *conform)
{
    return conform_count(conform, CONFORM_FAILED) + (conform->exit_text != NULL);
}

// Text.

static void print_failures(const struct conform *conform)
{
    for (size_t i = 0; i < conform->count; i++) {
        const struct conform_result *result = &conform->results[i];
        if (result->outcome == CONFORM_FAILED)
            printf("FAILED %s\n%s\n", result->name, result->text ? result->text : "");
    }
    if (conform->exit_text)
        printf("FAILED at the end of the suite\n%s\n\n", conform->exit_text);
}

static void print_reasons(const struct conform *conform, enum conform_outcome outcome)
{
    struct weir_table table = {.alignment = "ll"};
    if (conform_count(conform, outcome) == 0)
        return;
    printf("%s:\n", outcome_names[outcome]);
    for (size_t i = 0; i < conform->count; i++) {
        const struct conform_result *result = &conform->results[i];
        if (result->outcome != outcome)
            continue;
        weir_table_add(&table, "%s", result->name);
        weir_table_add(&table, "%s", result->text ? result->text : "");
    }
    cli_table_print(&table, stdout, 2);
    printf("\n");
}

static void print_text(const struct conform *conform)
{
    char time[WEIR_TEXT_QUANTITY_SIZE];
    print_failures(conform);
    print_reasons(conform, CONFORM_UNSUPPORTED);
    print_reasons(conform, CONFORM_SKIPPED);
    printf("%s%s%s on '%s' (%s; %s)\n", conform->plugins, *conform->plugins ? " > " : "",
           conform->module, conform->device, conform->platform, conform->driver);
    printf("%zu %s in %s: %zu passed, %zu failed, %zu skipped, %zu unsupported", conform->count,
           conform->count == 1 ? "test" : "tests",
           weir_text_duration(time, (double)conform->elapsed_ns),
           conform_count(conform, CONFORM_PASSED), count_failures(conform),
           conform_count(conform, CONFORM_SKIPPED), conform_count(conform, CONFORM_UNSUPPORTED));
    if (conform->expected_failures > 0)
        printf(" (%" PRIu64 " of the passed fail as expected)", conform->expected_failures);
    printf("\n");
}

// JSON.

static json_t *test_list(const struct conform *conform, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < conform->count; i++) {
        const struct conform_result *result = &conform->results[i];
        json_t *test = json_object();
        weir_json_set(test, "name", cli_json_string(result->name), ok);
        weir_json_set(test, "outcome", json_string(outcome_names[result->outcome]), ok);
        weir_json_set(test, "ms", weir_json_count(result->ms), ok);
        if (result->text)
            weir_json_set(test, "text", cli_json_string(result->text), ok);
        weir_json_append(list, test, ok);
    }
    return list;
}

static int print_json(const struct conform *conform, int code)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"elapsed_ns", conform->elapsed_ns},
        {"total", conform->count},
        {"passed", conform_count(conform, CONFORM_PASSED)},
        {"failed", count_failures(conform)},
        {"skipped", conform_count(conform, CONFORM_SKIPPED)},
        {"unsupported", conform_count(conform, CONFORM_UNSUPPORTED)},
        {"expected_failures", conform->expected_failures},
    };
    bool ok = true;
    json_t *root = json_object();
    weir_json_set(root, "weir", json_string(weir_version()), &ok);
    weir_json_set(root, "module", cli_json_string(conform->module), &ok);
    weir_json_set(root, "plugins", cli_json_string(conform->plugins), &ok);
    weir_json_set(root, "device", cli_json_string(conform->device), &ok);
    weir_json_set(root, "platform", cli_json_string(conform->platform), &ok);
    weir_json_set(root, "driver", cli_json_string(conform->driver), &ok);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        weir_json_set(root, numbers[i].name, weir_json_count(numbers[i].value), &ok);
    if (conform->exit_text)
        weir_json_set(root, "exit", cli_json_string(conform->exit_text), &ok);
    weir_json_set(root, "tests", test_list(conform, &ok), &ok);
    return cli_json_print(root, ok, code);
}

// XML.

static void append(weir_file_writer *writer, const char *text)
{
    weir_file_writer_append(writer, text, strlen(text));
}

// As the value of an attribute. XML has no form for control characters.
static void append_escaped(weir_file_writer *writer, const char *text)
{
    for (const char *at = text; *at; at++) {
        const unsigned char byte = (unsigned char)*at;
        const char one[2] = {*at, '\0'};
        switch (*at) {
        case '&':
            append(writer, "&amp;");
            break;
        case '<':
            append(writer, "&lt;");
            break;
        case '"':
            append(writer, "&quot;");
            break;
        case '\n':
            append(writer, "&#10;");
            break;
        default:
            append(writer, byte < 32 || byte > 126 ? "?" : one);
        }
    }
}

static void append_case(weir_file_writer *writer, const struct conform_result *result)
{
    const char *dot = strchr(result->name, '.');
    char text[256];
    snprintf(text, sizeof text, "  <testcase classname=\"%.*s\" name=\"%s\" time=\"%.3f\"",
             (int)(dot ? dot - result->name : 0), result->name, dot ? dot + 1 : result->name,
             (double)result->ms / 1e3);
    append(writer, text);
    if (result->outcome == CONFORM_PASSED) {
        append(writer, "/>\n");
        return;
    }
    const bool failed = result->outcome == CONFORM_FAILED;
    append(writer, failed ? "><failure message=\"" : "><skipped message=\"");
    if (result->outcome == CONFORM_UNSUPPORTED)
        append(writer, "unsupported: ");
    append_escaped(writer, result->text ? result->text : "");
    append(writer, "\"/></testcase>\n");
}

// In the form of JUnit's. False after a message.
static bool write_xml(const struct conform *conform, const char *path)
{
    char message[512];
    char head[256];
    weir_file_writer *writer = weir_file_writer_create(path, message, sizeof message);
    if (!writer) {
        cli_error("%s", message);
        return false;
    }
    snprintf(head, sizeof head,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<testsuite name=\"conformance\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\" "
             "time=\"%.3f\">\n",
             conform->count + (conform->exit_text != NULL), count_failures(conform),
             conform_count(conform, CONFORM_SKIPPED) + conform_count(conform, CONFORM_UNSUPPORTED),
             (double)conform->elapsed_ns / 1e9);
    append(writer, head);
    for (size_t i = 0; i < conform->count; i++)
        append_case(writer, &conform->results[i]);
    if (conform->exit_text) {
        char name[] = "Suite.Ends";
        append_case(writer, &(struct conform_result){.name = name,
                                                     .outcome = CONFORM_FAILED,
                                                     .text = conform->exit_text});
    }
    append(writer, "</testsuite>\n");
    if (weir_file_writer_commit(&writer, message, sizeof message))
        return true;
    cli_error("%s", message);
    return false;
}

enum {
    LIMIT_SECONDS = 300,
    MOST_SECONDS = 86400
};

static const char about[] =
    "Proves a machine: runs the conformance suite over the backend and the plugins that the\n"
    "environment, the configuration or these options name. A test is skipped where a limit of\n"
    "the device rules it out, and unsupported where the suite's list says so for good; both\n"
    "are listed with the reason. One that crashes or hangs has failed, and the rest still runs.";

struct options {
    const char *backend;
    const char *plugins;
    const char *filter;
    const char *xml;
    uint64_t limit_seconds;
    bool list;
    bool json;
};

static bool parse(struct options *out, int argc, char **argv, int *out_exit)
{
    const struct cli_option options[] = {
        {"backend", "B", "the backend; sets WEIR_BACKEND", CLI_TEXT, &out->backend, 0, 0},
        {"plugins", "P", "the plugins, separated by commas; sets\nWEIR_PLUGINS", CLI_TEXT,
         &out->plugins, 0, 0},
        {"filter", "F",
         "run only the tests that match: *, ?, alternatives\nafter ':', what "
         "follows a '-' left out",
         CLI_TEXT, &out->filter, 0, 0},
        {"limit", "S", "seconds that one test may take; without it, 300", CLI_COUNT,
         &out->limit_seconds, 1, MOST_SECONDS},
        {"list", NULL, "print the names of the tests and run none", CLI_FLAG, &out->list, 0, 0},
        {"json", NULL, "print the report as JSON", CLI_FLAG, &out->json, 0, 0},
        {"xml", "FILE", "write it to FILE as well, in the form of JUnit's", CLI_FILE, &out->xml, 0,
         0},
    };
    const struct cli_usage usage =
        CLI_FORM_PLAIN("weir conform", about, "weir-conform(1)", options);
    size_t operands;
    return cli_parse(&usage, argc, argv, &operands, out_exit);
}

// The suite of an installation, or of a build tree, where it does not find the modules
// without WEIR_MODULE_PATH.
static bool find_suite(char *path, size_t size)
{
    char directory[PATH_MAX];
    char modules[PATH_MAX + 32];
    if (!cli_program_directory(directory, sizeof directory)) {
        cli_error("/proc/self/exe cannot be read, so the folder of the program is not known; mount "
                  "/proc");
        return false;
    }
    snprintf(path, size, "%s/../libexec/weir/conformance", directory);
    if (access(path, X_OK) == 0)
        return true;
    snprintf(path, size, "%s/../tests/conformance/conformance", directory);
    if (access(path, X_OK) == 0) {
        snprintf(modules, sizeof modules, "%s/../lib/weir", directory);
        setenv("WEIR_MODULE_PATH", modules, 0);
        return true;
    }
    cli_error("the suite is missing: there is neither %s/../libexec/weir/conformance nor %s; "
              "unpack the whole archive, or build //tests/conformance",
              directory, path);
    return false;
}

// Opens the chain and stores its names for the report.
static bool look_at_chain(struct conform *conform)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    const char *plugins = getenv("WEIR_PLUGINS");
    const bool fine = cli_open(NULL, NULL, &runtime) == WEIR_OK &&
                      weir_device_open_at(runtime, NULL, &device, NULL, 0) == WEIR_OK;
    if (fine) {
        const struct weir_device_info *info = weir_device_get_info(device);
        snprintf(conform->module, sizeof conform->module, "%s", weir_runtime_backend(runtime));
        snprintf(conform->plugins, sizeof conform->plugins, "%s", plugins ? plugins : "");
        snprintf(conform->device, sizeof conform->device, "%s", info->name);
        snprintf(conform->platform, sizeof conform->platform, "%s", info->platform);
        snprintf(conform->driver, sizeof conform->driver, "%s", info->driver);
    } else {
        cli_weir_error();
    }
    return cli_close(&device, &runtime, CLI_OK) == CLI_OK && fine;
}

static int list_tests(const struct conform *conform)
{
    for (size_t i = 0; i < conform->count; i++)
        printf("%s\n", conform->results[i].name);
    return CLI_OK;
}

static int tell_interrupt(const struct conform *conform)
{
    const size_t left = conform_count(conform, CONFORM_NOT_RUN);
    cli_error("interrupted: %zu of %zu tests have run, and %zu of them failed; there is no report",
              conform->count - left, conform->count, conform_count(conform, CONFORM_FAILED));
    return CLI_SIGNALLED + cli_signal();
}

static bool run_suite(struct conform *conform)
{
    if (!cli_signals_start())
        return false;
    cli_signals_defer(NULL, NULL);
    const bool fine = conform_run(conform);
    cli_signals_resume();
    cli_signals_end();
    return fine;
}

static int run_tests(struct conform *conform, const struct options *options)
{
    if (!cli_can_write(options->xml))
        return CLI_FAILED;
    if (!look_at_chain(conform) || !run_suite(conform))
        return CLI_SETUP;
    if (cli_signal())
        return tell_interrupt(conform);
    int code =
        conform_count(conform, CONFORM_FAILED) > 0 || conform->exit_text ? CLI_FAILED : CLI_OK;
    if (options->xml && !write_xml(conform, options->xml))
        code = CLI_FAILED;
    if (options->json)
        return print_json(conform, code);
    print_text(conform);
    return code;
}

static int conform_main(int argc, char **argv)
{
    struct options options = {.filter = "*", .limit_seconds = LIMIT_SECONDS};
    struct conform conform = {0};
    char path[PATH_MAX + 64];
    int code = CLI_USAGE;
    if (!parse(&options, argc, argv, &code))
        return code;
    cli_log_to_stderr();
    if (options.backend)
        setenv("WEIR_BACKEND", options.backend, 1);
    if (options.plugins)
        setenv("WEIR_PLUGINS", options.plugins, 1);
    if (!find_suite(path, sizeof path))
        return CLI_SETUP;
    conform.program = path;
    conform.test_limit_seconds = options.limit_seconds;
    if (!conform_list(&conform, options.filter)) {
        code = CLI_SETUP;
    } else if (conform.count == 0) {
        cli_error("no test matches '%s'; `weir conform --list` prints their names", options.filter);
        code = CLI_USAGE;
    } else {
        code = options.list ? list_tests(&conform) : run_tests(&conform, &options);
    }
    conform_finish(&conform);
    return code;
}

const struct cli_command cli_conform = {
    .name = "conform",
    .summary = "run the conformance suite",
    .main = conform_main,
};
