// What weir fault prints: the list of the operations, and what became of the runs.
#define _DEFAULT_SOURCE // strsep
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/fault/fault.h"

// The plugin's list: a line for each operation, with tabs between its fields. The plugin has
// escaped the texts.

enum {
    LIST_LIMIT = 1 << 30
};

static void take(char **line, char *text, size_t size)
{
    const char *field = strsep(line, "\t");
    snprintf(text, size, "%s", field ? field : "");
}

static void read_item(char *line, struct fault_item *item)
{
    char number[32];
    take(&line, number, sizeof number);
    item->number = strtoull(number, NULL, 10);
    take(&line, item->kind, sizeof item->kind);
    take(&line, item->queue, sizeof item->queue);
    take(&line, item->label, sizeof item->label);
    take(&line, item->file, sizeof item->file);
    take(&line, number, sizeof number);
    item->line = (int)strtol(number, NULL, 10);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

bool fault_list_read(const char *path, struct fault_item **out_items, size_t *out_count)
{
    char message[512];
    void *data;
    size_t size;
    *out_items = NULL;
    *out_count = 0;
    if (access(path, F_OK) != 0)
        return true;
    if (!weir_file_read(path, LIST_LIMIT, &data, &size, message, sizeof message)) {
        cli_error("%s", message);
        return false;
    }
    char *text = strndup(data, size);
    free(data);
    const size_t count = text ? count_lines(text) : 0;
    struct fault_item *items = calloc(count + 1, sizeof *items);
    char *rest = text;
    for (size_t i = 0; items && i < count; i++)
        read_item(strsep(&rest, "\n"), &items[i]);
    free(text);
    if (!text || !items) {
        free(items);
        cli_error("no memory is left for the operations of the program; use --every with a larger "
                  "number, or --kinds");
        return false;
    }
    *out_items = items;
    *out_count = count;
    return true;
}

const char *fault_item_text(const struct fault_item *item, char *text, size_t size)
{
    size_t used = 0;
    weir_text_append(text, size, &used, "%s", item->kind);
    if (item->label[0])
        weir_text_append(text, size, &used, " '%s'", item->label);
    if (item->queue[0] && strcmp(item->kind, "new-queue") != 0)
        weir_text_append(text, size, &used, " on '%s'", item->queue);
    return text;
}

const char *fault_item_place(const struct fault_item *item, char *text, size_t size)
{
    const char *slash = strrchr(item->file, '/');
    text[0] = '\0';
    if (item->file[0])
        snprintf(text, size, "%s:%d", slash ? slash + 1 : item->file, item->line);
    return text;
}

// What the walk found, as text and as JSON.

static const char *const fault_outcome_names[FAULT_OUTCOMES] = {
    [FAULT_TOLD] = "told",
    [FAULT_RECOVERED] = "recovered",
    [FAULT_NOT_REACHED] = "not reached",
    [FAULT_CRASH] = "crash",
    [FAULT_HANG] = "hang",
    [FAULT_UNNOTICED] = "unnoticed",
    [FAULT_NO_CAUSE] = "no cause",
};

static size_t count_findings(const struct fault_walk *walk)
{
    size_t count = 0;
    for (enum fault_outcome i = 0; i < FAULT_OUTCOMES; i++)
        count += fault_is_finding(i) ? walk->counts[i] : 0;
    return count;
}

static const char *outcome_text(const struct fault_run *run, char *text, size_t size)
{
    switch (run->outcome) {
    case FAULT_CRASH:
        snprintf(text, size, "crash: %s",
                 weir_text_signal((char[WEIR_TEXT_QUANTITY_SIZE]){0}, run->code - CLI_SIGNALLED));
        break;
    case FAULT_HANG:
        snprintf(text, size, "hang: killed");
        break;
    case FAULT_UNNOTICED:
        snprintf(text, size, "exit 0: unnoticed");
        break;
    case FAULT_NO_CAUSE:
        snprintf(text, size, "exit %d: no cause told", run->code);
        break;
    case FAULT_TOLD:
        snprintf(text, size, "exit %d: told", run->code);
        break;
    default:
        snprintf(text, size, "%s", fault_outcome_names[run->outcome]);
        break;
    }
    return text;
}

static void add_row(struct weir_table *table, const struct fault_run *run)
{
    char text[512];
    weir_table_add(table, "%s", run->fault);
    weir_table_add(table, "%" PRIu64, run->item.number);
    weir_table_add(table, "%s", fault_item_text(&run->item, text, sizeof text));
    weir_table_add(table, "%s", fault_item_place(&run->item, text, sizeof text));
    weir_table_add(table, "%s", outcome_text(run, text, sizeof text));
    weir_table_add(table, "%.60s", run->last_line);
}

static void print_table(const struct fault_walk *walk)
{
    static const char *const heads[] = {"fault", "number",  "operation",
                                        "at",    "outcome", "the last line that it printed"};
    struct weir_table table = {.alignment = "lrllll"};
    bool any = false;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        weir_table_add(&table, "%s", heads[i]);
    for (size_t i = 0; i < walk->count; i++) {
        if (!walk->options->all && !fault_is_finding(walk->runs[i].outcome))
            continue;
        add_row(&table, &walk->runs[i]);
        any = true;
    }
    if (any)
        cli_table_print(&table, stdout, 0);
    weir_table_finish(&table);
}

static const struct fault_run *first_finding(const struct fault_walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        if (fault_is_finding(walk->runs[i].outcome))
            return &walk->runs[i];
    return NULL;
}

static void print_repeat(const struct fault_walk *walk)
{
    const struct fault_run *run = first_finding(walk);
    const struct fault_options *options = walk->options;
    if (!run)
        return;
    printf("\nThe first of them again: weir fault --fault %s --at %" PRIu64, run->fault,
           run->item.number);
    if (options->kinds[0])
        printf(" --kinds '%s'", options->kinds);
    if (options->queue[0])
        printf(" --queue '%s'", options->queue);
    if (options->label[0])
        printf(" --label '%s'", options->label);
    for (char **word = walk->command; *word; word++)
        printf(" %s", *word);
    printf("\n");
}

static void print_text(const struct fault_walk *walk)
{
    static const char *const texts[FAULT_OUTCOMES] = {
        [FAULT_TOLD] = "told the cause",
        [FAULT_RECOVERED] = "ended well",
        [FAULT_NOT_REACHED] = "did not come to the operation",
        [FAULT_CRASH] = "crashed",
        [FAULT_HANG] = "hung",
        [FAULT_UNNOTICED] = "ended with 0 as if nothing had happened",
        [FAULT_NO_CAUSE] = "failed without telling the cause",
    };
    const char *separator = ": ";
    print_table(walk);
    printf("%s%zu operation%s, %zu run%s with a fault", first_finding(walk) ? "\n" : "",
           walk->operations, walk->operations == 1 ? "" : "s", walk->count,
           walk->count == 1 ? "" : "s");
    for (enum fault_outcome i = 0; i < FAULT_OUTCOMES; i++) {
        if (walk->counts[i] == 0)
            continue;
        printf("%s%zu %s", separator, walk->counts[i], texts[i]);
        separator = ", ";
    }
    printf("\n");
    print_repeat(walk);
}

static json_t *run_json(const struct fault_run *run, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "fault", cli_json_string(run->fault), ok);
    weir_json_set(object, "number", weir_json_count(run->item.number), ok);
    weir_json_set(object, "kind", cli_json_string(run->item.kind), ok);
    weir_json_set(object, "queue", cli_json_string(run->item.queue), ok);
    weir_json_set(object, "label", cli_json_string(run->item.label), ok);
    weir_json_set(object, "file", cli_json_string(run->item.file), ok);
    weir_json_set(object, "line", json_integer(run->item.line), ok);
    weir_json_set(object, "outcome", cli_json_string(fault_outcome_names[run->outcome]), ok);
    weir_json_set(object, "finding", json_boolean(fault_is_finding(run->outcome)), ok);
    weir_json_set(object, "exit", json_integer(run->code), ok);
    weir_json_set(object, "last_line", cli_json_string(run->last_line), ok);
    return object;
}

static int print_json(const struct fault_walk *walk, int code)
{
    bool ok = true;
    json_t *object = json_object();
    json_t *runs = json_array();
    for (size_t i = 0; i < walk->count; i++)
        weir_json_append(runs, run_json(&walk->runs[i], &ok), &ok);
    weir_json_set(object, "operations", weir_json_count(walk->operations), &ok);
    weir_json_set(object, "findings", weir_json_count(count_findings(walk)), &ok);
    weir_json_set(object, "runs", runs, &ok);
    return cli_json_print(object, ok, code);
}

int fault_report_print(const struct fault_walk *walk)
{
    const int code = first_finding(walk) ? CLI_FAILED : CLI_OK;
    if (walk->options->json)
        return print_json(walk, code);
    print_text(walk);
    return code;
}
