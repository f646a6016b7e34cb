// The file of suppressions is JSON, so that a finding of the JSON report can be copied into it:
//
//     [
//       {"kind": "write-after-write", "first": "clear.c", "second": "clear.c:91",
//        "buffer": "mask*", "reason": "Both write zeros."}
//     ]
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "plugins/check/finding_parts.h"

#define FILE_LIMIT ((size_t)1 << 20)

// The replacement of `stdin`, which jansson's archive addresses as a program does.
extern FILE *const check_no_stdin;
FILE *const check_no_stdin = NULL;

static const char remedy[] = "write a list of objects with kind, first, second, buffer and reason, "
                             "as in docs/check.md";

enum field {
    FIELD_KIND,
    FIELD_FIRST,
    FIELD_SECOND,
    FIELD_BUFFER,
    FIELD_REASON,
    FIELD_COUNT
};

static const char *const fields[FIELD_COUNT] = {
    [FIELD_KIND] = "kind",     [FIELD_FIRST] = "first",   [FIELD_SECOND] = "second",
    [FIELD_BUFFER] = "buffer", [FIELD_REASON] = "reason",
};

struct reader {
    const struct weir_host *host;
    const char *path;
    size_t entry; // counted from 1
};

static weir_status refuse(const struct reader *reader, const char *mend, const char *format, ...)
    WEIR_PRINTF(3, 4);

static weir_status refuse(const struct reader *reader, const char *mend, const char *format, ...)
{
    char sentence[400];
    char message[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (reader->entry)
        weir_text_about(message, sizeof message, reader->path, "entry %zu %s", reader->entry,
                        sentence);
    else
        weir_text_about(message, sizeof message, reader->path, "%s", sentence);
    return weir_host_fail(reader->host, WEIR_ERROR_CONFIG, mend, "%s", message);
}

// One entry.

static weir_status refuse_field(const struct reader *reader, const char *key)
{
    const char *nearest = weir_text_nearest(key, fields, FIELD_COUNT);
    char mend[128];
    if (!nearest)
        return refuse(reader, "its keys are kind, first, second, buffer and reason",
                      "has a key '%s', which does not exist", key);
    snprintf(mend, sizeof mend, "did you mean '%s'?", nearest);
    return refuse(reader, mend, "has a key '%s', which does not exist", key);
}

static weir_status read_fields(const struct reader *reader, json_t *entry,
                               const char *texts[FIELD_COUNT])
{
    const char *key;
    json_t *value;
    json_object_foreach(entry, key, value)
    {
        size_t field = 0;
        while (field < FIELD_COUNT && strcmp(key, fields[field]) != 0)
            field++;
        if (field == FIELD_COUNT)
            return refuse_field(reader, key);
        if (!json_is_string(value))
            return refuse(reader, "write a text", "has a '%s' that is no text", key);
        texts[field] = json_string_value(value);
    }
    return WEIR_OK;
}

static weir_status refuse_kind(const struct reader *reader, const char *kind)
{
    const char *nearest = NULL;
    char mend[128] = "docs/check.md lists the kinds";
    for (size_t i = 0; weir_findings_kind_at(i); i++)
        nearest = weir_text_nearer(kind, nearest, weir_findings_kind_at(i));
    if (nearest)
        snprintf(mend, sizeof mend, "did you mean '%s'?", nearest);
    return refuse(reader, mend, "has the kind '%s', which does not exist", kind);
}

static char *copy(char **at, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *result = memcpy(*at, text, size);
    *at += size;
    return result;
}

static struct weir_suppression *make_rule(const char *const texts[FIELD_COUNT])
{
    size_t size = 0;
    for (size_t i = FIELD_FIRST; i < FIELD_COUNT; i++)
        size += strlen(texts[i]) + 1;
    struct weir_suppression *rule = calloc(1, sizeof *rule + size);
    if (!rule)
        return NULL;
    char *at = (char *)(rule + 1);
    rule->kind = weir_findings_kind(texts[FIELD_KIND]);
    rule->first = copy(&at, texts[FIELD_FIRST]);
    rule->second = copy(&at, texts[FIELD_SECOND]);
    rule->buffer = copy(&at, texts[FIELD_BUFFER]);
    rule->reason = copy(&at, texts[FIELD_REASON]);
    return rule;
}

static weir_status read_entry(const struct reader *reader, json_t *entry, struct check_rules *rules)
{
    const char *texts[FIELD_COUNT] = {"", "", "", "", ""};
    if (!json_is_object(entry))
        return refuse(reader, remedy, "is no object");
    const weir_status status = read_fields(reader, entry, texts);
    if (status < 0)
        return status;
    if (texts[FIELD_REASON][strspn(texts[FIELD_REASON], " ")] == '\0')
        return refuse(reader, "say in \"reason\" why nothing is wrong", "has no reason");
    if (texts[FIELD_KIND][0] && !weir_findings_kind(texts[FIELD_KIND]))
        return refuse_kind(reader, texts[FIELD_KIND]);
    if (!texts[FIELD_KIND][0] && !texts[FIELD_FIRST][0] && !texts[FIELD_SECOND][0] &&
        !texts[FIELD_BUFFER][0])
        return refuse(reader, "name a kind, a line or a buffer", "would suppress everything");
    rules->items[rules->count] = make_rule(texts);
    if (!rules->items[rules->count])
        return weir_host_no_memory(reader->host, "suppressions");
    rules->count++;
    return WEIR_OK;
}

// The file.

static weir_status read_list(struct reader *reader, json_t *list, struct check_rules *rules)
{
    weir_status status = WEIR_OK;
    if (!json_is_array(list))
        return refuse(reader, remedy, "the file holds no list");
    rules->items = calloc(json_array_size(list) + 1, sizeof *rules->items);
    if (!rules->items)
        return weir_host_no_memory(reader->host, "suppressions");
    for (size_t i = 0; i < json_array_size(list) && status == WEIR_OK; i++) {
        reader->entry = i + 1;
        status = read_entry(reader, json_array_get(list, i), rules);
    }
    return status;
}

static weir_status read_text(struct reader *reader, const char *text, size_t size,
                             struct check_rules *rules)
{
    json_error_t error;
    json_t *list = weir_json_load(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!list)
        return refuse(reader, remedy, "line %d: %s", error.line, error.text);
    const weir_status status = read_list(reader, list, rules);
    json_decref(list);
    return status;
}

weir_status check_rules_read(const struct weir_host *host, const char *path,
                             struct check_rules *out_rules)
{
    struct reader reader = {.host = host, .path = path};
    char message[512];
    void *text;
    size_t size;
    *out_rules = (struct check_rules){.items = NULL};
    if (!path[0])
        return WEIR_OK;
    if (!weir_file_read(path, FILE_LIMIT, &text, &size, message, sizeof message))
        return weir_host_fail(host, WEIR_ERROR_CONFIG, "mend `suppressions` in [check]", "%s",
                              message);
    const weir_status status = read_text(&reader, text, size, out_rules);
    free(text);
    if (status < 0)
        check_rules_finish(out_rules);
    return status;
}

void check_rules_finish(struct check_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        free(rules->items[i]);
    free(rules->items);
    *rules = (struct check_rules){.items = NULL};
}

// Matching.

// Whether `wanted` is the path, or its end from a slash on.
static bool is_path(const char *wanted, size_t length, const char *path)
{
    const size_t whole = strlen(path);
    return length > 0 && whole >= length && strncmp(path + whole - length, wanted, length) == 0 &&
           (whole == length || path[whole - length - 1] == '/');
}

static bool matches_place(const char *wanted, const struct weir_check_use *use)
{
    const char *colon = strrchr(wanted, ':');
    char line[16];
    if (!*wanted || is_path(wanted, strlen(wanted), use->file))
        return true;
    snprintf(line, sizeof line, "%d", use->line);
    return colon && strcmp(colon + 1, line) == 0 &&
           is_path(wanted, (size_t)(colon - wanted), use->file);
}

static bool matches(const struct weir_suppression *rule, const struct weir_check_finding *finding)
{
    return (rule->kind == 0 || rule->kind == finding->kind) &&
           matches_place(rule->first, &finding->first) &&
           matches_place(rule->second, &finding->second) &&
           (!rule->buffer[0] || fnmatch(rule->buffer, finding->buffer, 0) == 0);
}

struct weir_suppression *check_rules_find(const struct check_rules *rules,
                                          const struct weir_check_finding *finding)
{
    for (size_t i = 0; i < rules->count; i++)
        if (matches(rules->items[i], finding))
            return rules->items[i];
    return NULL;
}

void check_rules_tell_unused(const struct check_rules *rules, const struct weir_link *link,
                             const char *path)
{
    char shown[200];
    char text[512];
    for (size_t i = 0; i < rules->count; i++) {
        if (rules->items[i]->used)
            continue;
        weir_text_escape(shown, sizeof shown, rules->items[i]->reason, "");
        snprintf(text, sizeof text,
                 "%.200s: entry %zu suppresses nothing that was found, remove it: %s", path, i + 1,
                 shown);
        link->host->log(WEIR_LOG_WARNING, link->name, text);
    }
}
