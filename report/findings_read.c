// The reader of the JSON report. Several are added up, since a program may have several processes
// and runtimes.
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "report/findings_parts.h"

#define FILE_LIMIT ((size_t)64 << 20)

struct file {
    struct file *next;
    json_t *root; // of which the texts are used
};

struct weir_findings_reader {
    struct weir_findings all;
    struct file *files;
    struct weir_check_finding **items;
    struct weir_suppression **rules;
};

weir_findings_reader *weir_findings_reader_create(void)
{
    weir_findings_reader *reader = calloc(1, sizeof *reader);
    if (reader)
        reader->all = (struct weir_findings){.program = "", .suppressions = "", .complete = true};
    return reader;
}

void weir_findings_reader_destroy(weir_findings_reader **reader)
{
    if (!reader || !*reader)
        return;
    weir_findings_reader *gone = *reader;
    for (size_t i = 0; i < gone->all.count; i++)
        free(gone->items[i]);
    for (size_t i = 0; i < gone->all.rule_count; i++)
        free(gone->rules[i]);
    free(gone->items);
    free(gone->rules);
    while (gone->files) {
        struct file *file = gone->files;
        gone->files = file->next;
        json_decref(file->root);
        free(file);
    }
    free(gone);
    *reader = NULL;
}

// Values.

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t count_at(const json_t *object, const char *key)
{
    const json_int_t number = json_integer_value(json_object_get(object, key));
    return number > 0 ? (uint64_t)number : 0;
}

static weir_access access_at(const json_t *object)
{
    const char *name = text_at(object, "access");
    return (weir_access)((strstr(name, "read") ? WEIR_ACCESS_READ : 0) |
                         (strstr(name, "write") ? WEIR_ACCESS_WRITE : 0));
}

static struct weir_check_use use_at(const json_t *finding, const char *key)
{
    const json_t *object = json_object_get(finding, key);
    const json_t *number = json_object_get(object, "region_number");
    const uint64_t line = count_at(object, "line");
    return (struct weir_check_use){
        .operation = text_at(object, "operation"),
        .access = access_at(object),
        .queue = text_at(object, "queue"),
        .queue_id = count_at(object, "queue_id"),
        .sequence = count_at(object, "sequence"),
        .kernel = text_at(object, "kernel"),
        .file = text_at(object, "file"),
        .line = line < INT32_MAX ? (int)line : 0,
        .offset = count_at(object, "offset"),
        .size = count_at(object, "size"),
        .region = text_at(object, "region"),
        .region_number = json_is_integer(number) ? count_at(object, "region_number") : UINT64_MAX,
    };
}

static struct weir_check_finding finding_at(const json_t *object)
{
    const json_t *suppression = json_object_get(object, "suppression");
    return (struct weir_check_finding){
        .kind = weir_findings_kind(text_at(object, "kind")),
        .count = count_at(object, "count"),
        .buffer = text_at(object, "buffer"),
        .buffer_id = count_at(object, "buffer_id"),
        .offset = count_at(object, "offset"),
        .size = count_at(object, "size"),
        .first = use_at(object, "first"),
        .second = use_at(object, "second"),
        .message = text_at(object, "message"),
        .remedy = text_at(object, "remedy"),
        .suppression = json_string_value(suppression),
    };
}

// Adding.

static bool is_same_line(const struct weir_check_use *a, const struct weir_check_use *b)
{
    return a->line == b->line && strcmp(a->file, b->file) == 0;
}

static struct weir_check_finding *find(const weir_findings_reader *reader,
                                       const struct weir_check_finding *wanted)
{
    for (size_t i = 0; i < reader->all.count; i++) {
        struct weir_check_finding *item = reader->items[i];
        if (item->kind == wanted->kind && is_same_line(&item->first, &wanted->first) &&
            is_same_line(&item->second, &wanted->second))
            return item;
    }
    return NULL;
}

static bool add_finding(weir_findings_reader *reader, const json_t *object)
{
    const struct weir_check_finding finding = finding_at(object);
    struct weir_check_finding *there = find(reader, &finding);
    if (there) {
        there->count += finding.count;
        return true;
    }
    struct weir_check_finding *item = malloc(sizeof *item);
    if (!item)
        return false;
    *item = finding;
    reader->items[reader->all.count++] = item;
    return true;
}

static bool add_rule(weir_findings_reader *reader, const json_t *object, size_t index)
{
    if (index < reader->all.rule_count) {
        reader->rules[index]->used += count_at(object, "used");
        return true;
    }
    struct weir_suppression *rule = malloc(sizeof *rule);
    if (!rule)
        return false;
    *rule = (struct weir_suppression){
        .kind = weir_findings_kind(text_at(object, "kind")),
        .first = text_at(object, "first"),
        .second = text_at(object, "second"),
        .buffer = text_at(object, "buffer"),
        .reason = text_at(object, "reason"),
        .used = count_at(object, "used"),
    };
    reader->rules[reader->all.rule_count++] = rule;
    return true;
}

static bool make_room(weir_findings_reader *reader, size_t findings, size_t rules)
{
    struct weir_check_finding **items =
        realloc(reader->items, (reader->all.count + findings + 1) * sizeof *items);
    if (items)
        reader->items = items;
    struct weir_suppression **list =
        realloc(reader->rules, (reader->all.rule_count + rules + 1) * sizeof *list);
    if (list)
        reader->rules = list;
    return items && list;
}

static bool add_lists(weir_findings_reader *reader, const json_t *findings, const json_t *rules)
{
    bool ok = make_room(reader, json_array_size(findings), json_array_size(rules));
    for (size_t i = 0; ok && i < json_array_size(findings); i++)
        ok = add_finding(reader, json_array_get(findings, i));
    for (size_t i = 0; ok && i < json_array_size(rules); i++)
        ok = add_rule(reader, json_array_get(rules, i), i);
    return ok;
}

static void add_head(weir_findings_reader *reader, const json_t *root)
{
    if (!reader->all.program[0])
        reader->all.program = text_at(root, "program");
    reader->all.process = count_at(root, "process");
    reader->all.complete &= json_is_true(json_object_get(root, "complete"));
    reader->all.dropped += count_at(root, "dropped");
    if (!reader->all.suppressions[0])
        reader->all.suppressions = text_at(root, "suppressions_file");
}

// Every finding has a kind that is known, and all other values have defaults.
static bool is_report(const json_t *root)
{
    const json_t *findings = json_object_get(root, "findings");
    if (count_at(root, "weir_check") != 1 || !json_is_array(findings))
        return false;
    for (size_t i = 0; i < json_array_size(findings); i++)
        if (!weir_findings_kind(text_at(json_array_get(findings, i), "kind")))
            return false;
    return true;
}

static bool add_root(weir_findings_reader *reader, json_t *root)
{
    struct file *file = malloc(sizeof *file);
    if (!file) {
        json_decref(root);
        return false;
    }
    *file = (struct file){.next = reader->files, .root = root};
    reader->files = file;
    add_head(reader, root);
    return add_lists(reader, json_object_get(root, "findings"),
                     json_object_get(root, "suppressions"));
}

bool weir_findings_read(weir_findings_reader *reader, const char *path, char *message,
                        size_t message_size)
{
    json_error_t error;
    void *text;
    size_t size;
    if (!weir_file_read(path, FILE_LIMIT, &text, &size, message, message_size))
        return false;
    json_t *root = weir_json_load(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!root || !is_report(root)) {
        weir_text_about(message, message_size, path,
                        "this is no report of the plugin check, or one of a newer version; write "
                        "it with `json` in [check]");
        json_decref(root);
        return false;
    }
    if (add_root(reader, root))
        return true;
    weir_text_about(message, message_size, path, "no memory is left for the findings");
    return false;
}

const struct weir_findings *weir_findings_all(weir_findings_reader *reader)
{
    reader->all.items = (const struct weir_check_finding *const *)reader->items;
    reader->all.rules = (const struct weir_suppression *const *)reader->rules;
    return &reader->all;
}
