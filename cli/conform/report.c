// The report of a run, as text, as JSON, and as JUnit's XML.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/common/json.h"
#include "cli/common/table.h"
#include "cli/conform/conform.h"

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

void conform_print_text(const struct conform *conform)
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

int conform_print_json(const struct conform *conform, int code)
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

bool conform_write_xml(const struct conform *conform, const char *path)
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
