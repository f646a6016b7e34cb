// The report as SARIF 2.1.0, for tools of code review. A result is placed at the second line, where
// something is missing; the first is a related location.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "report/findings_parts.h"

struct rule {
    weir_check_kind kind;
    const char *text;
};

static const struct rule rules[] = {
    {WEIR_CHECK_READ_AFTER_WRITE, "An operation reads bytes that another queue writes, unordered."},
    {WEIR_CHECK_WRITE_AFTER_READ, "An operation writes bytes that another queue reads, unordered."},
    {WEIR_CHECK_WRITE_AFTER_WRITE, "Two queues write the same bytes, unordered."},
    {WEIR_CHECK_HOST_READ, "The host reads bytes that a queue may still write."},
    {WEIR_CHECK_HOST_WRITE, "The host writes bytes that a queue may still use."},
    {WEIR_CHECK_OPEN_ACCESS, "An operation uses bytes that the host has not ended its access to."},
    {WEIR_CHECK_AFTER_FREE, "Memory of a pool is used after its free."},
    {WEIR_CHECK_UNWRITTEN, "An operation reads bytes that nothing has written."},
    {WEIR_CHECK_OUTSIDE, "A kernel uses bytes outside the range that its launch declares."},
    {WEIR_CHECK_IMPLIED_WAIT, "A queue waits for work after which it comes already."},
    {WEIR_CHECK_NEEDLESS_WAIT, "A queue waits for work that no use of memory depends on."},
    {WEIR_CHECK_FALSE_SHARING, "A queue waits for another that uses different bytes of a buffer."},
    {WEIR_CHECK_NEEDLESS_SYNC, "The host waits for work that no use of memory depends on."},
};

enum {
    RULE_COUNT = sizeof rules / sizeof *rules
};

static json_t *message_of(const char *text, bool *ok)
{
    json_t *object = json_object();
    weir__findings_set_text(object, "text", text, ok);
    return object;
}

static json_t *rule_of(const struct rule *rule, bool *ok)
{
    json_t *object = json_object();
    json_t *settings = json_object();
    const bool hint = rule->kind >= WEIR_CHECK_FIRST_HINT;
    weir__findings_set_text(object, "id", weir_findings_kind_name(rule->kind), ok);
    weir__findings_set(object, "shortDescription", message_of(rule->text, ok), ok);
    weir__findings_set(object, "fullDescription", message_of(rule->text, ok), ok);
    weir__findings_set_text(settings, "level", hint ? "note" : "error", ok);
    weir__findings_set(object, "defaultConfiguration", settings, ok);
    return object;
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

static json_t *location_of(const struct weir_check_use *use, bool *ok)
{
    json_t *location = json_object();
    json_t *physical = json_object();
    json_t *artifact = json_object();
    weir__findings_set(artifact, "uri", uri_of(use->file), ok);
    if (use->file[0] != '/')
        weir__findings_set_text(artifact, "uriBaseId", "%SRCROOT%", ok);
    weir__findings_set(physical, "artifactLocation", artifact, ok);
    if (use->line > 0) {
        json_t *region = json_object();
        weir__findings_set(region, "startLine", json_integer(use->line), ok);
        weir__findings_set(physical, "region", region, ok);
    }
    weir__findings_set(location, "physicalLocation", physical, ok);
    return location;
}

static json_t *related_of(const struct weir_check_use *use, bool *ok)
{
    struct weir_long_text text = {.text = NULL};
    json_t *location = location_of(use, ok);
    weir_long_text_add(&text, "the %s", use->operation);
    if (use->queue[0])
        weir_long_text_add(&text, " on '%s'", use->queue);
    weir__findings_set(location, "message", message_of(text.failed ? "" : text.text, ok), ok);
    weir__findings_set(location, "id", json_integer(1), ok);
    free(text.text);
    return location;
}

// Results.

static void set_locations(json_t *result, const struct weir_check_finding *finding, bool *ok)
{
    const struct weir_check_use *at = finding->second.file[0] ? &finding->second : &finding->first;
    json_t *locations = json_array();
    if (at->file[0])
        weir__findings_append(locations, location_of(at, ok), ok);
    weir__findings_set(result, "locations", locations, ok);
    if (at == &finding->first || !finding->first.file[0])
        return;
    json_t *related = json_array();
    weir__findings_append(related, related_of(&finding->first, ok), ok);
    weir__findings_set(result, "relatedLocations", related, ok);
}

// Accepted and justified: readers hide it.
static void set_suppression(json_t *result, const char *reason, bool *ok)
{
    json_t *list = json_array();
    if (reason) {
        json_t *suppression = json_object();
        weir__findings_set_text(suppression, "kind", "external", ok);
        weir__findings_set_text(suppression, "justification", reason, ok);
        weir__findings_append(list, suppression, ok);
    }
    weir__findings_set(result, "suppressions", list, ok);
}

static json_t *text_of(const struct weir_check_finding *finding, bool *ok)
{
    struct weir_long_text text = {.text = NULL};
    weir_long_text_add(&text, "%s. To do: %s.", finding->message, finding->remedy);
    json_t *message = message_of(text.failed ? "" : text.text, ok);
    *ok &= !text.failed;
    free(text.text);
    return message;
}

static size_t rule_index(weir_check_kind kind)
{
    size_t index = 0;
    while (index < RULE_COUNT && rules[index].kind != kind)
        index++;
    return index;
}

static json_t *result_of(const struct weir_check_finding *finding, bool *ok)
{
    json_t *result = json_object();
    const bool hint = finding->kind >= WEIR_CHECK_FIRST_HINT;
    weir__findings_set_text(result, "ruleId", weir_findings_kind_name(finding->kind), ok);
    weir__findings_set_count(result, "ruleIndex", rule_index(finding->kind), ok);
    weir__findings_set_text(result, "level", hint ? "note" : "error", ok);
    weir__findings_set(result, "message", text_of(finding, ok), ok);
    set_locations(result, finding, ok);
    weir__findings_set_count(result, "occurrenceCount", finding->count, ok);
    set_suppression(result, finding->suppression, ok);
    return result;
}

static json_t *tool(bool *ok)
{
    json_t *object = json_object();
    json_t *driver = json_object();
    json_t *list = json_array();
    weir__findings_set_text(driver, "name", "weir check", ok);
    weir__findings_set_text(driver, "version", WEIR_VERSION_STRING, ok);
    for (size_t i = 0; i < RULE_COUNT; i++)
        weir__findings_append(list, rule_of(&rules[i], ok), ok);
    weir__findings_set(driver, "rules", list, ok);
    weir__findings_set(object, "driver", driver, ok);
    return object;
}

// Whether the list of results is all that there is.
static json_t *invocations(const struct weir_findings *findings, bool *ok)
{
    json_t *list = json_array();
    json_t *invocation = json_object();
    weir__findings_set(invocation, "executionSuccessful",
                       json_boolean(findings->complete && !findings->dropped), ok);
    weir__findings_append(list, invocation, ok);
    return list;
}

char *weir_findings_sarif(const struct weir_findings *findings)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *runs = json_array();
    json_t *run = json_object();
    json_t *results = json_array();
    weir__findings_set_text(root, "$schema", "https://json.schemastore.org/sarif-2.1.0.json", &ok);
    weir__findings_set_text(root, "version", "2.1.0", &ok);
    weir__findings_set(run, "tool", tool(&ok), &ok);
    weir__findings_set(run, "invocations", invocations(findings, &ok), &ok);
    for (size_t i = 0; i < findings->count; i++)
        weir__findings_append(results, result_of(findings->items[i], &ok), &ok);
    weir__findings_set(run, "results", results, &ok);
    weir__findings_append(runs, run, &ok);
    weir__findings_set(root, "runs", runs, &ok);
    return weir__findings_dump(root, ok);
}
