// The store. A pair of lines is looked up by its lines alone, since a program that races in a loop
// does so a million times; texts are made, files written and messages logged for a new pair only.
// The JSON, which `weir check` reads, is written in time that hardly grows with their number: what is
// listed stays, with its counts, until the end.
#define _GNU_SOURCE // program_invocation_short_name
#include "plugins/check/finding.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/names.h"
#include "base/text.h"
#include "report/findings.h"
#include "report/output_path.h"

enum {
    CHECK_PAIRS = 1000, // of lines that are kept
    CHECK_FRESH = 64,   // so many are listed again for each new one, with their counts
};

struct check_findings {
    const struct weir_link *link;
    bool fail;
    char suppressions[WEIR_OUTPUT_PATH_SIZE];
    pthread_mutex_t lock; // guards what follows
    struct weir_names *texts;
    json_t *rules_file; // of which the rules have the texts
    struct weir_suppression **rules;
    size_t rule_count;
    struct weir_check_finding *items[CHECK_PAIRS]; // each of another pair of lines
    size_t count;
    size_t errors; // neither hints nor suppressed
    uint64_t dropped;
    char paths[CHECK_FORMS][WEIR_OUTPUT_PATH_SIZE]; // "": none
    char program[128];
    char failure[512];          // the first file that could not be written, and why
    struct weir_long_text list; // of the first `listed` findings, for the JSON
    size_t listed;
};

// The files are written whole each time, so that they are well-formed whenever the process ends.

static void write_form(struct check_findings *findings, int form, const struct weir_findings *all)
{
    static char *(*const makers[CHECK_FORMS])(const struct weir_findings *findings) = {
        [CHECK_TEXT] = weir_findings_text,
        [CHECK_JSON] = weir_findings_json,
        [CHECK_SARIF] = weir_findings_sarif,
    };
    const char *path = findings->paths[form];
    char message[512];
    if (!path[0] || findings->failure[0])
        return;
    char *text = makers[form](all);
    if (!text)
        weir_text_about(findings->failure, sizeof findings->failure, path,
                        "no memory is left for the report; free some memory of the host");
    else if (!weir_file_write(path, text, strlen(text), message, sizeof message))
        weir_text_escape(findings->failure, sizeof findings->failure, message, "");
    free(text);
}

// Writes all files. A failure is described in `failure`, and is final.
static void write_files(struct check_findings *findings, bool complete)
{
    struct weir_findings all = {
        .program = findings->program,
        .process = (uint64_t)getpid(),
        .complete = complete,
        .items = (const struct weir_check_finding *const *)findings->items,
        .count = findings->count,
        .dropped = findings->dropped,
        .suppressions = findings->suppressions,
        .rules = (const struct weir_suppression *const *)findings->rules,
        .rule_count = findings->rule_count,
    };
    if (!complete && all.count > CHECK_FRESH && findings->paths[CHECK_JSON][0]) {
        weir_findings_list(&all, findings->listed, &findings->list);
        findings->listed = all.count;
        all.list = findings->list.failed ? NULL : findings->list.text;
    }
    for (int form = 0; form < CHECK_FORMS; form++)
        write_form(findings, form, &all);
}

// The file of suppressions is JSON, so that a finding of the JSON report can be copied into it:
//     [
//       {"kind": "write-after-write", "first": "clear.c", "second": "clear.c:91",
//        "buffer": "mask*", "reason": "Both write zeros."}
//     ]

#define FILE_LIMIT ((size_t)1 << 20)

// The replacement of `stdin`, which jansson's archive addresses as a program does.
extern FILE *const check_no_stdin;
FILE *const check_no_stdin = NULL;

static const char rules_remedy[] =
    "write a list of objects with kind, first, second, buffer and reason, "
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
    struct check_findings *findings;
    const char *path;
    size_t entry; // counted from 1
};

static weir_status refuse_rules(const struct reader *reader, const char *mend, const char *format,
                                ...)
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
    return weir_host_fail(reader->findings->link->host, WEIR_ERROR_CONFIG, mend, "%s", message);
}

// One entry.

// The entry `has` a word that does not exist. `nearest` is one that does, or NULL.
static weir_status refuse_word(const struct reader *reader, const char *has, const char *word,
                               const char *nearest, const char *otherwise)
{
    char mend[128];
    snprintf(mend, sizeof mend, nearest ? "did you mean '%s'?" : "%s",
             nearest ? nearest : otherwise);
    return refuse_rules(reader, mend, "has %s '%s', which does not exist", has, word);
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
            return refuse_word(reader, "a key", key, weir_text_nearest(key, fields, FIELD_COUNT),
                               "its keys are kind, first, second, buffer and reason");
        if (!json_is_string(value))
            return refuse_rules(reader, "write a text", "has a '%s' that is no text", key);
        texts[field] = json_string_value(value);
    }
    return WEIR_OK;
}

static weir_status refuse_kind(const struct reader *reader, const char *kind)
{
    const char *nearest = NULL;
    for (size_t i = 0; weir_findings_kind_at(i); i++)
        nearest = weir_text_nearer(kind, nearest, weir_findings_kind_at(i));
    return refuse_word(reader, "the kind", kind, nearest, "docs/check.md lists the kinds");
}

static weir_status read_entry(const struct reader *reader, json_t *entry)
{
    struct check_findings *findings = reader->findings;
    const char *texts[FIELD_COUNT] = {"", "", "", "", ""};
    if (!json_is_object(entry))
        return refuse_rules(reader, rules_remedy, "is no object");
    const weir_status status = read_fields(reader, entry, texts);
    if (status < 0)
        return status;
    const weir_check_kind kind = weir_findings_kind(texts[FIELD_KIND]);
    if (texts[FIELD_REASON][strspn(texts[FIELD_REASON], " ")] == '\0')
        return refuse_rules(reader, "say in \"reason\" why nothing is wrong", "has no reason");
    if (texts[FIELD_KIND][0] && !kind)
        return refuse_kind(reader, texts[FIELD_KIND]);
    if (!kind && !texts[FIELD_FIRST][0] && !texts[FIELD_SECOND][0] && !texts[FIELD_BUFFER][0])
        return refuse_rules(reader, "name a kind, a line or a buffer", "would suppress everything");
    struct weir_suppression *rule = malloc(sizeof *rule);
    if (!rule)
        return weir_host_no_memory(findings->link->host, "suppressions");
    *rule = (struct weir_suppression){
        kind, texts[FIELD_FIRST], texts[FIELD_SECOND], texts[FIELD_BUFFER], texts[FIELD_REASON], 0};
    findings->rules[findings->rule_count++] = rule;
    return WEIR_OK;
}

// The file.

static weir_status read_list(struct reader *reader, json_t *list)
{
    struct check_findings *findings = reader->findings;
    weir_status status = WEIR_OK;
    if (!json_is_array(list))
        return refuse_rules(reader, rules_remedy, "the file holds no list");
    findings->rules = calloc(json_array_size(list) + 1, sizeof(void *));
    if (!findings->rules)
        return weir_host_no_memory(findings->link->host, "suppressions");
    for (size_t i = 0; i < json_array_size(list) && status == WEIR_OK; i++) {
        reader->entry = i + 1;
        status = read_entry(reader, json_array_get(list, i));
    }
    return status;
}

// An empty path is a file without rules. Errors: as check_findings_create(), reported.
static weir_status read_rules(struct check_findings *findings, const char *path)
{
    struct reader reader = {.findings = findings, .path = path};
    char message[512];
    json_error_t error;
    void *text;
    size_t size;
    if (!path[0])
        return WEIR_OK;
    if (!weir_file_read(path, FILE_LIMIT, &text, &size, message, sizeof message))
        return weir_host_fail(findings->link->host, WEIR_ERROR_CONFIG,
                              "mend `suppressions` in [check]", "%s", message);
    findings->rules_file = weir_json_load(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!findings->rules_file)
        return refuse_rules(&reader, rules_remedy, "line %d: %s", error.line, error.text);
    return read_list(&reader, findings->rules_file);
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

// The first rule that matches, or NULL.
static struct weir_suppression *find_rule(const struct check_findings *findings,
                                          const struct weir_check_finding *finding)
{
    for (size_t i = 0; i < findings->rule_count; i++) {
        struct weir_suppression *rule = findings->rules[i];
        if ((rule->kind == 0 || rule->kind == finding->kind) &&
            matches_place(rule->first, &finding->first) &&
            matches_place(rule->second, &finding->second) &&
            (!rule->buffer[0] || fnmatch(rule->buffer, finding->buffer, 0) == 0))
            return rule;
    }
    return NULL;
}

// Logs those that were not used.
static void tell_unused(const struct check_findings *findings)
{
    char shown[200];
    char text[512];
    for (size_t i = 0; i < findings->rule_count; i++) {
        if (findings->rules[i]->used)
            continue;
        weir_text_escape(shown, sizeof shown, findings->rules[i]->reason, "");
        snprintf(text, sizeof text,
                 "%.200s: entry %zu suppresses nothing that was found, remove it: %s",
                 findings->suppressions, i + 1, shown);
        findings->link->host->log(WEIR_LOG_WARNING, findings->link->name, text);
    }
}

static bool is_hint(weir_check_kind kind)
{
    return kind >= WEIR_CHECK_FIRST_HINT;
}

// Two lines that race do so in one way for a user, whatever each of them does with the bytes.
static weir_check_kind group_of(weir_check_kind kind)
{
    return kind <= WEIR_CHECK_WRITE_AFTER_WRITE ? WEIR_CHECK_READ_AFTER_WRITE : kind;
}

// Looking up.

static bool is_same_place(const struct weir_check_use *wanted, const struct weir_check_use *use)
{
    return wanted->line == use->line && strcmp(wanted->file ? wanted->file : "", use->file) == 0;
}

static struct weir_check_finding *find(const struct check_findings *findings,
                                       const struct weir_check_finding *wanted)
{
    const weir_check_kind group = group_of(wanted->kind);
    for (size_t i = 0; i < findings->count; i++) {
        struct weir_check_finding *finding = findings->items[i];
        // A launch may read outside of what it declares, and write.
        if (group_of(finding->kind) == group &&
            (group != WEIR_CHECK_OUTSIDE || finding->second.access == wanted->second.access) &&
            is_same_place(&wanted->first, &finding->first) &&
            is_same_place(&wanted->second, &finding->second))
            return finding;
    }
    return NULL;
}

// Making a finding.

// Keeps the text, as a terminal may show it; false if out of memory.
static bool keep_text(struct check_findings *findings, const char **text)
{
    char *shown = weir_text_escaped(*text ? *text : "", "");
    *text = shown ? weir_names_keep(findings->texts, shown) : NULL;
    free(shown);
    return *text;
}

// The file is kept as the program names it, for is_same_place().
static bool keep_use(struct check_findings *findings, struct weir_check_use *use)
{
    // A sync has no access.
    if (!use->operation || (!use->queue_id && !use->file && use->access))
        use->operation = "";
    if (!use->region || !*use->region)
        use->region_number = UINT64_MAX;
    use->file = weir_names_keep(findings->texts, use->file ? use->file : "");
    return use->file && keep_text(findings, &use->queue) && keep_text(findings, &use->kernel) &&
           keep_text(findings, &use->region);
}

static bool keep_words(struct check_findings *findings, const struct check_conflict *conflict,
                       struct weir_check_finding *finding)
{
    struct weir_long_text message = {.text = NULL};
    struct weir_long_text remedy = {.text = NULL};
    check_words_write(conflict, &message, &remedy);
    finding->message = message.text;
    finding->remedy = remedy.text;
    const bool kept = keep_text(findings, &finding->message) &&
                      keep_text(findings, &finding->remedy) && !message.failed && !remedy.failed;
    free(message.text);
    free(remedy.text);
    return kept;
}

static void leave_call(struct weir_check_use *use)
{
    if (strcmp(use->operation, check_operation_name(0)) == 0) {
        use->queue = "";
        use->queue_id = 0;
    }
}

static struct weir_check_finding *make_finding(struct check_findings *findings,
                                               const struct check_conflict *conflict)
{
    struct check_conflict kept = *conflict;
    struct weir_check_finding *finding = &kept.finding;
    struct weir_check_finding *made = malloc(sizeof *made);
    if (made && keep_text(findings, &finding->buffer) && keep_use(findings, &finding->first) &&
        keep_use(findings, &finding->second) && keep_words(findings, &kept, finding)) {
        leave_call(&finding->first);
        leave_call(&finding->second);
        *made = *finding;
        return made;
    }
    free(made);
    return NULL;
}

// Adding, with the lock held.

static struct weir_check_finding *count_on(struct check_findings *findings,
                                           const struct check_conflict *conflict, bool *out_new)
{
    struct weir_check_finding *finding = find(findings, &conflict->finding);
    *out_new = false;
    if (!finding && findings->count < CHECK_PAIRS) {
        finding = make_finding(findings, conflict);
        *out_new = finding != NULL;
    }
    if (!finding) {
        findings->dropped++;
        return NULL;
    }
    struct weir_suppression *rule = find_rule(findings, finding);
    if (*out_new) {
        finding->suppression = rule ? rule->reason : NULL;
        findings->items[findings->count++] = finding;
        findings->errors += !rule && !is_hint(finding->kind);
    }
    finding->count++;
    if (rule)
        rule->used++;
    return finding;
}

// Telling, without the lock: pairs stay, and only their counts change.

static void tell(const struct check_findings *findings, const struct weir_check_finding *finding)
{
    const struct weir_host *host = findings->link->host;
    struct weir_long_text text = {.text = NULL};
    if (finding->suppression)
        return;
    weir_long_text_add(&text, "%s: %s; %s", weir_findings_kind_name(finding->kind),
                       finding->message, finding->remedy);
    if (!text.failed)
        host->log(is_hint(finding->kind) ? WEIR_LOG_INFO : WEIR_LOG_WARNING, findings->link->name,
                  text.text);
    free(text.text);
}

weir_status check_findings_add(struct check_findings *findings,
                               const struct check_conflict *conflict)
{
    const struct weir_host *host = findings->link->host;
    struct weir_error detail = {.status = WEIR_ERROR_INVALID};
    bool is_new;
    pthread_mutex_lock(&findings->lock);
    const struct weir_check_finding *finding = count_on(findings, conflict, &is_new);
    if (is_new)
        write_files(findings, false);
    pthread_mutex_unlock(&findings->lock);
    if (is_new)
        tell(findings, finding);
    if (!findings->fail || is_hint(conflict->finding.kind) || (finding && finding->suppression))
        return WEIR_OK;
    if (!finding)
        return weir_host_fail(host, WEIR_ERROR_INVALID, "mend those that are reported first",
                              "%s: one more pair of lines than the %d that are kept",
                              weir_findings_kind_name(conflict->finding.kind), CHECK_PAIRS);
    weir_text_escape(detail.remedy, sizeof detail.remedy, finding->remedy, "");
    return weir_host_report(host, &detail, "%s: %s", weir_findings_kind_name(finding->kind),
                            finding->message);
}

// Reading.

size_t check_findings_count(struct check_findings *findings, bool errors)
{
    pthread_mutex_lock(&findings->lock);
    const size_t count = errors ? findings->errors : findings->count;
    pthread_mutex_unlock(&findings->lock);
    return count;
}

bool check_findings_get(struct check_findings *findings, size_t index,
                        struct weir_check_finding *out_finding, size_t size)
{
    pthread_mutex_lock(&findings->lock);
    const bool there = index < findings->count;
    if (there)
        weir_write(out_finding, size, findings->items[index], sizeof *findings->items[index]);
    pthread_mutex_unlock(&findings->lock);
    return there;
}

// A link's life.

static weir_status fail_output(const struct check_findings *findings)
{
    return weir_host_fail(findings->link->host, WEIR_ERROR_IO, "name another file in [check]", "%s",
                          findings->failure);
}

static weir_status start(struct check_findings *findings, const char *suppressions,
                         const char *const files[CHECK_FORMS])
{
    if (!findings->texts)
        return weir_host_no_memory(findings->link->host, "findings");
    const weir_status status = read_rules(findings, suppressions);
    if (status < 0)
        return status;
    weir_text_escape(findings->suppressions, sizeof findings->suppressions, suppressions, "");
    weir_text_escape(findings->program, sizeof findings->program, program_invocation_short_name,
                     "");
    for (size_t i = 0; i < CHECK_FORMS; i++)
        if (!weir_output_path_claim(files[i], findings->paths[i]))
            return weir_host_fail(findings->link->host, WEIR_ERROR_CONFIG,
                                  "use names of fewer than 450 bytes",
                                  "a name of a file in [check] is too long");
    write_files(findings, false);
    return findings->failure[0] ? fail_output(findings) : WEIR_OK;
}

static void release(struct check_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->items[i]);
    for (size_t i = 0; i < findings->rule_count; i++)
        free(findings->rules[i]);
    free(findings->rules);
    json_decref(findings->rules_file);
    weir_names_destroy(findings->texts);
    free(findings->list.text);
    pthread_mutex_destroy(&findings->lock);
    free(findings);
}

weir_status check_findings_create(const struct weir_link *link, bool fail, const char *suppressions,
                                  const char *const files[CHECK_FORMS],
                                  struct check_findings **out_findings)
{
    struct check_findings *findings = calloc(1, sizeof *findings);
    *out_findings = NULL;
    if (!findings)
        return weir_host_no_memory(link->host, "findings");
    findings->link = link;
    findings->fail = fail;
    findings->texts = weir_names_create();
    pthread_mutex_init(&findings->lock, NULL);
    const weir_status status = start(findings, suppressions, files);
    if (status < 0) {
        for (size_t i = 0; i < CHECK_FORMS; i++)
            weir_output_path_give_back(findings->paths[i]);
        release(findings);
        return status;
    }
    *out_findings = findings;
    return WEIR_OK;
}

void check_findings_destroy(struct check_findings *findings)
{
    char text[160];
    write_files(findings, true);
    if (findings->dropped) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " uses in more pairs of lines than the %d that are kept are not listed",
                 findings->dropped, CHECK_PAIRS);
        findings->link->host->log(WEIR_LOG_WARNING, findings->link->name, text);
    }
    tell_unused(findings);
    if (findings->failure[0])
        (void)fail_output(findings);
    release(findings);
}
