// What the plugin check has found, as JSON, as SARIF and as text, and read from JSON.
#include "report/findings.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/json/json.h"
#include "report/trace_format.h"

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
    return (weir_check_kind)weir__named(WEIR__FINDING, name, strlen(name));
}

// The report as JSON.

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "offsets and sizes are counts");

static const struct weir__field use_fields[] = {
    WEIR__ALWAYS(weir_check_use, operation, WEIR__TEXT, "operation"),
    WEIR__ALWAYS(weir_check_use, access, WEIR__ACCESS, "access"),
    WEIR__ALWAYS(weir_check_use, assumed, WEIR__BOOL, "assumed"),
    WEIR__ALWAYS(weir_check_use, queue, WEIR__TEXT, "queue"),
    WEIR__ALWAYS(weir_check_use, queue_id, WEIR__COUNT, "queue_id"),
    WEIR__ALWAYS(weir_check_use, sequence, WEIR__COUNT, "sequence"),
    WEIR__ALWAYS(weir_check_use, kernel, WEIR__TEXT, "kernel"),
    WEIR__ALWAYS(weir_check_use, file, WEIR__TEXT, "file"),
    WEIR__ALWAYS(weir_check_use, line, WEIR__INT, "line"),
    WEIR__ALWAYS(weir_check_use, offset, WEIR__COUNT, "offset"),
    WEIR__ALWAYS(weir_check_use, size, WEIR__COUNT, "size"),
    WEIR__ALWAYS(weir_check_use, region, WEIR__TEXT, "region"),
    WEIR__ALWAYS(weir_check_use, region_number, WEIR__NUMBER, "region_number"),
    {0},
};

static const struct weir__field finding_fields[] = {
    WEIR__ALWAYS(weir_check_finding, kind, WEIR__FINDING, "kind"),
    WEIR__ALWAYS(weir_check_finding, kind, WEIR__HINT, "hint"),
    WEIR__ALWAYS(weir_check_finding, count, WEIR__COUNT, "count"),
    WEIR__ALWAYS(weir_check_finding, buffer, WEIR__TEXT, "buffer"),
    WEIR__ALWAYS(weir_check_finding, buffer_id, WEIR__COUNT, "buffer_id"),
    WEIR__ALWAYS(weir_check_finding, offset, WEIR__COUNT, "offset"),
    WEIR__ALWAYS(weir_check_finding, size, WEIR__COUNT, "size"),
    {offsetof(struct weir_check_finding, first), WEIR__ITEM, "first", true, use_fields},
    {offsetof(struct weir_check_finding, second), WEIR__ITEM, "second", true, use_fields},
    WEIR__ALWAYS(weir_check_finding, message, WEIR__TEXT, "message"),
    WEIR__ALWAYS(weir_check_finding, remedy, WEIR__TEXT, "remedy"),
    WEIR__ALWAYS(weir_check_finding, suppression, WEIR__REASON, "suppression"),
    {0},
};

static const struct weir__field rule_fields[] = {
    WEIR__UNLESS_0(weir_suppression, kind, WEIR__FINDING, "kind"),
    WEIR__ALWAYS(weir_suppression, first, WEIR__TEXT, "first"),
    WEIR__ALWAYS(weir_suppression, second, WEIR__TEXT, "second"),
    WEIR__ALWAYS(weir_suppression, buffer, WEIR__TEXT, "buffer"),
    WEIR__ALWAYS(weir_suppression, reason, WEIR__TEXT, "reason"),
    WEIR__ALWAYS(weir_suppression, used, WEIR__COUNT, "used"),
    {0},
};

static const struct weir__field head_fields[] = {
    WEIR__ALWAYS(weir_findings, program, WEIR__TEXT, "program"),
    WEIR__ALWAYS(weir_findings, process, WEIR__COUNT, "process"),
    WEIR__ALWAYS(weir_findings, complete, WEIR__BOOL, "complete"),
    WEIR__ALWAYS(weir_findings, dropped, WEIR__COUNT, "dropped"),
    WEIR__ALWAYS(weir_findings, suppressions, WEIR__TEXT, "suppressions_file"),
    {0},
};

static const struct weir__field sum_fields[] = {
    WEIR__ALWAYS(weir_findings_sum, errors, WEIR__COUNT, "errors"),
    WEIR__ALWAYS(weir_findings_sum, hints, WEIR__COUNT, "hints"),
    WEIR__ALWAYS(weir_findings_sum, suppressed, WEIR__COUNT, "suppressed"),
    {0},
};

// NULL if out of memory.
static char *end_text(struct weir_long_text *text)
{
    if (!text->failed)
        return text->text;
    free(text->text);
    return NULL;
}

char *weir_findings_json(const struct weir_findings *findings)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    struct weir_long_text text = {.text = NULL};
    weir__out_raw(&text, "{\"weir_check\":1");
    weir__out_fields(&text, head_fields, findings);
    weir__out_fields(&text, sum_fields, &sum);
    weir__out_items(&text, "suppressions", rule_fields, findings->rules, findings->rule_count,
                    sizeof *findings->rules);
    weir__out_items(&text, "findings", finding_fields, findings->items, findings->count,
                    sizeof *findings->items);
    weir__out_raw(&text, "}\n");
    return end_text(&text);
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
    return weir_json_text(root, ok, JSON_INDENT(1), NULL);
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
    return end_text(&text);
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

// Adding.

static bool is_same_line(const struct weir_check_use *a, const struct weir_check_use *b)
{
    return a->line == b->line && strcmp(a->file, b->file) == 0;
}

static bool read_finding(weir_findings_reader *reader, const json_t *object)
{
    struct weir_check_finding finding;
    weir__in_fields(finding_fields, object, NULL, &finding);
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
    struct weir_suppression rule;
    weir__in_fields(rule_fields, object, NULL, &rule);
    if (index < reader->all.rule_count) {
        reader->rules[index].used += rule.used;
        return true;
    }
    struct weir_suppression *rules =
        weir_grow(reader->rules, reader->all.rule_count, &reader->rule_room, sizeof *rules);
    if (!rules)
        return false;
    reader->rules = rules;
    rules[reader->all.rule_count++] = rule;
    return true;
}

// Every finding has a kind that is known, and all other values have defaults.
static bool is_report(const json_t *root)
{
    const json_t *findings = json_object_get(root, "findings");
    if (json_integer_value(json_object_get(root, "weir_check")) != 1 || !json_is_array(findings))
        return false;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *kind = json_object_get(json_array_get(findings, i), "kind");
        if (!json_is_string(kind) || !weir_findings_kind(json_string_value(kind)))
            return false;
    }
    return true;
}

static bool add_root(weir_findings_reader *reader, json_t *root)
{
    const json_t *findings = json_object_get(root, "findings");
    const json_t *rules = json_object_get(root, "suppressions");
    struct weir_findings head;
    bool ok = true;
    if (json_array_append_new(reader->roots, root) != 0)
        return false;
    weir__in_fields(head_fields, root, NULL, &head);
    if (!reader->all.program[0])
        reader->all.program = head.program;
    reader->all.process = head.process;
    reader->all.complete &= head.complete;
    reader->all.dropped += head.dropped;
    if (!reader->all.suppressions[0])
        reader->all.suppressions = head.suppressions;
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
