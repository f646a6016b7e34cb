// What the plugin check has found, as JSON, as SARIF and as text, and read from JSON.
#include "report/findings.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/json/json.h"
#include "base/table.h"
#include "base/text.h"

// Kinds.

static const struct kind {
    weir_check_kind kind;
    const char *name;
    const char *meaning;
} kinds[] = {
#define KIND(name, value, id, meaning) {name, id, meaning},
    WEIR_CHECK_KIND_TABLE(KIND)
#undef KIND
};

enum {
    KIND_COUNT = sizeof kinds / sizeof *kinds
};

const char *weir_findings_kind_at(size_t index)
{
    return index < KIND_COUNT ? kinds[index].name : NULL;
}

// KIND_COUNT: there is none.
static size_t index_of(weir_check_kind kind)
{
    size_t index = 0;
    while (index < KIND_COUNT && kinds[index].kind != kind)
        index++;
    return index;
}

const char *weir_findings_kind_name(weir_check_kind kind)
{
    const char *name = weir_findings_kind_at(index_of(kind));
    return name ? name : "unknown";
}

weir_check_kind weir_findings_kind(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return (weir_check_kind)0;
}

// The report as JSON.

#define FLAGS JSON_INDENT(1)

// Texts from programs may hold bytes that are not UTF-8.
static json_t *text_of(const char *text)
{
    char *shown = weir_text_escaped(text, "");
    json_t *value = shown ? json_string(shown) : NULL;
    free(shown);
    return value;
}

// All of them NULL if out of memory.

static json_t *use_of(const struct weir_check_use *use)
{
    static const char *const accesses[] = {"none", "read", "write", "read-write"};
    const bool numbered = use->region_number != UINT64_MAX; // WEIR_NO_NUMBER
    return json_pack("{s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o}",
                     "operation", text_of(use->operation), "access",
                     accesses[use->access & WEIR_ACCESS_READ_WRITE], "assumed", (int)use->assumed,
                     "queue", text_of(use->queue), "queue_id", weir_json_count(use->queue_id),
                     "sequence", weir_json_count(use->sequence), "kernel", text_of(use->kernel),
                     "file", text_of(use->file), "line", use->line, "offset",
                     weir_json_count(use->offset), "size", weir_json_count(use->size), "region",
                     text_of(use->region), "region_number",
                     numbered ? weir_json_count(use->region_number) : json_null());
}

static json_t *finding_of(const struct weir_check_finding *finding)
{
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
                     weir_findings_kind_name(finding->kind), "hint",
                     finding->kind >= WEIR_CHECK_FIRST_HINT, "count",
                     weir_json_count(finding->count), "buffer", text_of(finding->buffer),
                     "buffer_id", weir_json_count(finding->buffer_id), "offset",
                     weir_json_count(finding->offset), "size", weir_json_count(finding->size),
                     "first", use_of(&finding->first), "second", use_of(&finding->second),
                     "message", text_of(finding->message), "remedy", text_of(finding->remedy),
                     "suppression",
                     finding->suppression ? text_of(finding->suppression) : json_null());
}

void weir_findings_list(const struct weir_findings *findings, size_t first,
                        struct weir_long_text *text)
{
    for (size_t i = first; i < findings->count; i++) {
        char *made = weir_json_text(finding_of(&findings->items[i]), true, FLAGS, NULL);
        weir_long_text_add(text, "%s%s", i ? "," : "", made ? made : "");
        text->failed = text->failed || !made;
        free(made);
    }
}

static json_t *rules_of(const struct weir_findings *findings, bool *ok)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < findings->rule_count; i++) {
        const struct weir_suppression *rule = &findings->rules[i];
        weir_json_append(rules,
                         json_pack("{s:s*, s:o, s:o, s:o, s:o, s:o}", "kind",
                                   rule->kind ? weir_findings_kind_name(rule->kind) : NULL, "first",
                                   text_of(rule->first), "second", text_of(rule->second), "buffer",
                                   text_of(rule->buffer), "reason", text_of(rule->reason), "used",
                                   weir_json_count(rule->used)),
                         ok);
    }
    return rules;
}

// All but the findings.
static char *frame_of(const struct weir_findings *findings)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    bool ok = true;
    json_t *root =
        json_pack("{s:i, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "weir_check", 1, "program",
                  text_of(findings->program), "process", weir_json_count(findings->process),
                  "complete", (int)findings->complete, "errors", weir_json_count(sum.errors),
                  "hints", weir_json_count(sum.hints), "suppressed",
                  weir_json_count(sum.suppressed), "dropped", weir_json_count(findings->dropped),
                  "suppressions_file", text_of(findings->suppressions), "suppressions",
                  rules_of(findings, &ok));
    return weir_json_text(root, ok, FLAGS, NULL);
}

// The list is long, and need not be made again each time: it is put before the brace that ends the frame.
char *weir_findings_json(const struct weir_findings *findings)
{
    struct weir_long_text made = {.text = NULL};
    if (!findings->list)
        weir_findings_list(findings, 0, &made);
    const char *list = findings->list ? findings->list : made.text ? made.text : "";
    char *frame = made.failed ? NULL : frame_of(findings);
    const char *end = frame ? strrchr(frame, '}') : NULL;
    struct weir_long_text text = {.failed = !end};
    if (end)
        weir_long_text_add(&text, "%.*s, \"findings\": [%s]%s", (int)(end - frame), frame, list,
                           end);
    free(frame);
    free(made.text);
    if (!text.failed)
        return text.text;
    free(text.text);
    return NULL;
}

// The report as SARIF 2.1.0, for tools of code review. A result is placed at the second line, where
// something is missing; the first is a related location.

static const char *level_of(weir_check_kind kind)
{
    return kind >= WEIR_CHECK_FIRST_HINT ? "note" : "error";
}

static json_t *tool(bool *ok)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < KIND_COUNT; i++)
        weir_json_append(rules,
                         json_pack("{s:s, s:{s:s}, s:{s:s}, s:{s:s}}", "id", kinds[i].name,
                                   "shortDescription", "text", kinds[i].meaning, "fullDescription",
                                   "text", kinds[i].meaning, "defaultConfiguration", "level",
                                   level_of(kinds[i].kind)),
                         ok);
    return json_pack("{s:{s:s, s:s, s:o}}", "driver", "name", "weir check", "version",
                     WEIR_VERSION_STRING, "rules", rules);
}

// Locations.

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~/", c));
}

// A path of __FILE__ as a URI: relative ones start at the root of the sources.
static json_t *uri_of(const char *path)
{
    struct weir_long_text uri = {.text = NULL};
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    if (path[0] == '/')
        weir_long_text_add(&uri, "file://");
    for (; *path; path++)
        if (is_plain(*path))
            weir_long_text_add(&uri, "%c", *path);
        else
            weir_long_text_add(&uri, "%%%02X", (unsigned)(unsigned char)*path);
    json_t *text = uri.failed || !uri.text ? NULL : json_string(uri.text);
    free(uri.text);
    return text;
}

static json_t *location_of(const struct weir_check_use *use)
{
    return json_pack(use->line > 0 ? "{s:{s:{s:o, s:s*}, s:{s:i}}}" : "{s:{s:{s:o, s:s*}}}",
                     "physicalLocation", "artifactLocation", "uri", uri_of(use->file), "uriBaseId",
                     use->file[0] == '/' ? NULL : "%SRCROOT%", "region", "startLine", use->line);
}

static json_t *related_of(const struct weir_check_use *use, bool *ok)
{
    json_t *location = location_of(use);
    weir_json_set(location, "message",
                  json_pack("{s:s++++}", "text", "the ", use->operation,
                            use->queue[0] ? " on '" : "", use->queue, use->queue[0] ? "'" : ""),
                  ok);
    weir_json_set(location, "id", json_integer(1), ok);
    return location;
}

// Results.

// What is suppressed is accepted and justified: readers hide it.
static json_t *result_of(const struct weir_check_finding *finding, bool *ok)
{
    const struct weir_check_use *at = finding->second.file[0] ? &finding->second : &finding->first;
    const char *reason = finding->suppression;
    json_t *result =
        json_pack("{s:s, s:o, s:s, s:{s:s+++}, s:o, s:o, s:o}", "ruleId",
                  weir_findings_kind_name(finding->kind), "ruleIndex",
                  weir_json_count(index_of(finding->kind)), "level", level_of(finding->kind),
                  "message", "text", finding->message, ". To do: ", finding->remedy, ".",
                  "locations", at->file[0] ? json_pack("[o]", location_of(at)) : json_array(),
                  "occurrenceCount", weir_json_count(finding->count), "suppressions",
                  reason ? json_pack("[{s:s, s:s}]", "kind", "external", "justification", reason)
                         : json_array());
    if (at == &finding->second && finding->first.file[0])
        weir_json_set(result, "relatedLocations", json_pack("[o]", related_of(&finding->first, ok)),
                      ok);
    return result;
}

// The list of results is all that there is if the run was successful.
char *weir_findings_sarif(const struct weir_findings *findings)
{
    bool ok = true;
    json_t *results = json_array();
    for (size_t i = 0; i < findings->count; i++)
        weir_json_append(results, result_of(&findings->items[i], &ok), &ok);
    json_t *root = json_pack("{s:s, s:s, s:[{s:o, s:[{s:b}], s:o}]}", "$schema",
                             "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0",
                             "runs", "tool", tool(&ok), "invocations", "executionSuccessful",
                             (int)(findings->complete && !findings->dropped), "results", results);
    return weir_json_text(root, ok, FLAGS, NULL);
}

// The report as text, and what its forms share.

struct weir_findings_sum weir_findings_sum(const struct weir_findings *findings)
{
    struct weir_findings_sum sum = {.errors = 0};
    for (size_t i = 0; i < findings->count; i++) {
        const struct weir_check_finding *finding = &findings->items[i];
        if (finding->suppression)
            sum.suppressed++;
        else if (finding->kind >= WEIR_CHECK_FIRST_HINT)
            sum.hints++;
        else
            sum.errors++;
    }
    return sum;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void add_finding(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    weir_long_text_add(text, "%s, %" PRIu64 " time%s\n  ", weir_findings_kind_name(finding->kind),
                       finding->count, finding->count == 1 ? "" : "s");
    weir_long_text_add_shown(text, finding->message);
    weir_long_text_add(text, "\n  %s: ", finding->suppression ? "suppressed" : "to do");
    weir_long_text_add_shown(text, finding->suppression ? finding->suppression : finding->remedy);
    weir_long_text_add(text, "\n\n");
}

static void add_rules(struct weir_long_text *text, const struct weir_findings *findings)
{
    for (size_t i = 0; i < findings->rule_count; i++) {
        if (findings->rules[i].used)
            continue;
        weir_long_text_add_shown(text, findings->suppressions);
        weir_long_text_add(text, ": entry %zu suppresses nothing that was found: ", i + 1);
        weir_long_text_add_shown(text, findings->rules[i].reason);
        weir_long_text_add(text, "\n\n");
    }
}

char *weir_findings_text(const struct weir_findings *findings)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    struct weir_long_text text = {.text = NULL};
    // Errors, then hints, then what is suppressed.
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < findings->count; i++) {
            const struct weir_check_finding *it = &findings->items[i];
            if (turn == (it->suppression ? 2 : it->kind >= WEIR_CHECK_FIRST_HINT))
                add_finding(&text, it);
        }
    if (findings->dropped)
        weir_long_text_add(&text, "%" PRIu64 " uses in further pairs of lines are not listed\n\n",
                           findings->dropped);
    add_rules(&text, findings);
    weir_long_text_add_shown(&text, findings->program);
    weir_long_text_add(&text, ": %zu finding%s, %zu hint%s, %zu suppressed", sum.errors,
                       plural(sum.errors), sum.hints, plural(sum.hints), sum.suppressed);
    if (!findings->complete)
        weir_long_text_add(&text, "; the program had not closed its runtime");
    weir_long_text_add(&text, "\n");
    if (!text.failed)
        return text.text;
    free(text.text);
    return NULL;
}

// The reader of the JSON report. Several are added up, since a program may have several processes
// and runtimes.

#define FILE_LIMIT ((size_t)64 << 20)

struct weir_findings_reader {
    struct weir_findings all;
    json_t *roots; // of which the texts are used
    struct weir_check_finding *items;
    size_t room;
    struct weir_suppression *rules;
    size_t rule_room;
};

weir_findings_reader *weir_findings_reader_create(void)
{
    weir_findings_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->all = (struct weir_findings){.program = "", .suppressions = "", .complete = true};
    reader->roots = json_array();
    if (!reader->roots)
        weir_findings_reader_destroy(&reader);
    return reader;
}

void weir_findings_reader_destroy(weir_findings_reader **reader)
{
    if (!reader || !*reader)
        return;
    weir_findings_reader *gone = *reader;
    free(gone->items);
    free(gone->rules);
    json_decref(gone->roots);
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

static struct weir_check_use use_at(const json_t *finding, const char *key)
{
    const json_t *object = json_object_get(finding, key);
    const json_t *number = json_object_get(object, "region_number");
    const uint64_t line = count_at(object, "line");
    const char *access = text_at(object, "access");
    return (struct weir_check_use){
        .operation = text_at(object, "operation"),
        .access = (weir_access)((strstr(access, "read") ? WEIR_ACCESS_READ : 0) |
                                (strstr(access, "write") ? WEIR_ACCESS_WRITE : 0)),
        .assumed = json_is_true(json_object_get(object, "assumed")),
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

static bool read_finding(weir_findings_reader *reader, const json_t *object)
{
    const struct weir_check_finding finding = finding_at(object);
    for (size_t i = 0; i < reader->all.count; i++) {
        struct weir_check_finding *there = &reader->items[i];
        if (there->kind == finding.kind && is_same_line(&there->first, &finding.first) &&
            is_same_line(&there->second, &finding.second)) {
            there->count += finding.count;
            return true;
        }
    }
    struct weir_check_finding *items =
        weir_grow(reader->items, reader->all.count, &reader->room, sizeof *items);
    if (!items)
        return false;
    reader->items = items;
    items[reader->all.count++] = finding;
    return true;
}

static bool add_rule(weir_findings_reader *reader, const json_t *object, size_t index)
{
    if (index < reader->all.rule_count) {
        reader->rules[index].used += count_at(object, "used");
        return true;
    }
    struct weir_suppression *rules =
        weir_grow(reader->rules, reader->all.rule_count, &reader->rule_room, sizeof *rules);
    if (!rules)
        return false;
    reader->rules = rules;
    rules[reader->all.rule_count++] = (struct weir_suppression){
        .kind = weir_findings_kind(text_at(object, "kind")),
        .first = text_at(object, "first"),
        .second = text_at(object, "second"),
        .buffer = text_at(object, "buffer"),
        .reason = text_at(object, "reason"),
        .used = count_at(object, "used"),
    };
    return true;
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
    const json_t *findings = json_object_get(root, "findings");
    const json_t *rules = json_object_get(root, "suppressions");
    bool ok = true;
    if (json_array_append_new(reader->roots, root) != 0)
        return false;
    if (!reader->all.program[0])
        reader->all.program = text_at(root, "program");
    reader->all.process = count_at(root, "process");
    reader->all.complete &= json_is_true(json_object_get(root, "complete"));
    reader->all.dropped += count_at(root, "dropped");
    if (!reader->all.suppressions[0])
        reader->all.suppressions = text_at(root, "suppressions_file");
    for (size_t i = 0; ok && i < json_array_size(findings); i++)
        ok = read_finding(reader, json_array_get(findings, i));
    for (size_t i = 0; ok && i < json_array_size(rules); i++)
        ok = add_rule(reader, json_array_get(rules, i), i);
    return ok;
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
    reader->all.items = reader->items;
    reader->all.rules = reader->rules;
    return &reader->all;
}
