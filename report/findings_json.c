// The report as JSON. json_dumps loses bytes silently when it runs out of memory on the way, so the
// text is measured first.
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/text.h"
#include "report/findings_parts.h"

#define FLAGS JSON_INDENT(1)

void weir__findings_set(json_t *object, const char *key, json_t *value, bool *ok)
{
    if (json_object_set_new(object, key, value) != 0)
        *ok = false;
}

void weir__findings_append(json_t *array, json_t *value, bool *ok)
{
    if (json_array_append_new(array, value) != 0)
        *ok = false;
}

// Texts from programs may hold bytes that are not UTF-8.
void weir__findings_set_text(json_t *object, const char *key, const char *text, bool *ok)
{
    char *shown = weir_text_escaped(text, "");
    weir__findings_set(object, key, shown ? json_string(shown) : NULL, ok);
    free(shown);
}

void weir__findings_set_count(json_t *object, const char *key, uint64_t number, bool *ok)
{
    const uint64_t most = INT64_MAX;
    weir__findings_set(object, key, json_integer((json_int_t)(number > most ? most : number)), ok);
}

static char *dump_in_locale(const json_t *root)
{
    const size_t size = json_dumpb(root, NULL, 0, FLAGS);
    char *text = size > 0 ? malloc(size + 2) : NULL;
    if (!text)
        return NULL;
    if (json_dumpb(root, text, size, FLAGS) != size) {
        free(text);
        return NULL;
    }
    memcpy(text + size, "\n", 2);
    return text;
}

char *weir__findings_dump(json_t *root, bool ok)
{
    const locale_t before = weir_c_locale_enter();
    char *text = ok && root ? dump_in_locale(root) : NULL;
    weir_c_locale_leave(before);
    json_decref(root);
    return text;
}

static const char *access_name(weir_access access)
{
    static const char *const names[] = {"none", "read", "write", "read-write"};
    return names[access & WEIR_ACCESS_READ_WRITE];
}

static json_t *use_of(const struct weir_check_use *use, bool *ok)
{
    json_t *object = json_object();
    weir__findings_set_text(object, "operation", use->operation, ok);
    weir__findings_set_text(object, "access", access_name(use->access), ok);
    weir__findings_set_text(object, "queue", use->queue, ok);
    weir__findings_set_count(object, "queue_id", use->queue_id, ok);
    weir__findings_set_count(object, "sequence", use->sequence, ok);
    weir__findings_set_text(object, "kernel", use->kernel, ok);
    weir__findings_set_text(object, "file", use->file, ok);
    weir__findings_set(object, "line", json_integer(use->line), ok);
    weir__findings_set_count(object, "offset", use->offset, ok);
    weir__findings_set_count(object, "size", use->size, ok);
    weir__findings_set_text(object, "region", use->region, ok);
    if (use->region_number == UINT64_MAX) // WEIR_NO_NUMBER
        weir__findings_set(object, "region_number", json_null(), ok);
    else
        weir__findings_set_count(object, "region_number", use->region_number, ok);
    return object;
}

static json_t *finding_of(const struct weir_check_finding *finding, bool *ok)
{
    json_t *object = json_object();
    weir__findings_set_text(object, "kind", weir_findings_kind_name(finding->kind), ok);
    weir__findings_set(object, "hint", json_boolean(finding->kind >= WEIR_CHECK_FIRST_HINT), ok);
    weir__findings_set_count(object, "count", finding->count, ok);
    weir__findings_set_text(object, "buffer", finding->buffer, ok);
    weir__findings_set_count(object, "buffer_id", finding->buffer_id, ok);
    weir__findings_set_count(object, "offset", finding->offset, ok);
    weir__findings_set_count(object, "size", finding->size, ok);
    weir__findings_set(object, "first", use_of(&finding->first, ok), ok);
    weir__findings_set(object, "second", use_of(&finding->second, ok), ok);
    weir__findings_set_text(object, "message", finding->message, ok);
    weir__findings_set_text(object, "remedy", finding->remedy, ok);
    if (finding->suppression)
        weir__findings_set_text(object, "suppression", finding->suppression, ok);
    else
        weir__findings_set(object, "suppression", json_null(), ok);
    return object;
}

static json_t *rule_of(const struct weir_suppression *rule, bool *ok)
{
    json_t *object = json_object();
    if (rule->kind)
        weir__findings_set_text(object, "kind", weir_findings_kind_name(rule->kind), ok);
    weir__findings_set_text(object, "first", rule->first, ok);
    weir__findings_set_text(object, "second", rule->second, ok);
    weir__findings_set_text(object, "buffer", rule->buffer, ok);
    weir__findings_set_text(object, "reason", rule->reason, ok);
    weir__findings_set_count(object, "used", rule->used, ok);
    return object;
}

static void set_sum(json_t *root, const struct weir_findings *findings, bool *ok)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    weir__findings_set_count(root, "errors", sum.errors, ok);
    weir__findings_set_count(root, "hints", sum.hints, ok);
    weir__findings_set_count(root, "suppressed", sum.suppressed, ok);
    weir__findings_set_count(root, "dropped", findings->dropped, ok);
}

char *weir_findings_json(const struct weir_findings *findings)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *items = json_array();
    json_t *rules = json_array();
    weir__findings_set_count(root, "weir_check", 1, &ok);
    weir__findings_set_text(root, "program", findings->program, &ok);
    weir__findings_set_count(root, "process", findings->process, &ok);
    weir__findings_set(root, "complete", json_boolean(findings->complete), &ok);
    set_sum(root, findings, &ok);
    for (size_t i = 0; i < findings->count; i++)
        weir__findings_append(items, finding_of(findings->items[i], &ok), &ok);
    weir__findings_set(root, "findings", items, &ok);
    weir__findings_set_text(root, "suppressions_file", findings->suppressions, &ok);
    for (size_t i = 0; i < findings->rule_count; i++)
        weir__findings_append(rules, rule_of(findings->rules[i], &ok), &ok);
    weir__findings_set(root, "suppressions", rules, &ok);
    return weir__findings_dump(root, ok);
}
