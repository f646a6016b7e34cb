// The store. A pair of lines is looked up by its lines alone, since a program that races in a loop
// does so a million times; texts are made, files written and messages logged for a new pair only.
//
// What is found is kept under check.lock. The texts of files are made under it, and written after it was released, so
// that no submit waits for a disk.
#define _GNU_SOURCE // program_invocation_short_name
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "plugins/check/parts.h"
#include "report/findings.h"
#include "report/output_path.h"

enum {
    CHECK_PAIRS = 1000, // of lines that are kept
    CHECK_CHAINS = 1024,
};

// What was added and is not told yet.
struct untold {
    size_t begin;            // the new findings are those from here on
    weir_check_kind refused; // with `fail`, of the first conflict that is to be refused; 0: none
    const struct weir_check_finding *finding; // that conflict's; NULL: there was no room for it
};

struct check_findings {
    const struct weir_link *link;
    struct weir_names *texts; // the link's
    bool fail;
    struct weir_findings all; // with the arrays below
    json_t *rules_file;       // of which the rules have the texts
    struct weir_suppression *rules;
    struct weir_check_finding items[CHECK_PAIRS];  // each of another pair of lines
    struct weir_suppression *rule_of[CHECK_PAIRS]; // NULL: nothing suppresses it
    // Chains of items of equal hashes. Numbers of items, from 1; 0: the end.
    uint16_t chains[CHECK_CHAINS];
    uint16_t next[CHECK_PAIRS];
    struct untold untold;
    pthread_mutex_t files_lock; // guards what follows; check.lock is taken with it held
    size_t written;             // findings that are in the files
    char paths[CHECK_FORMS][WEIR_OUTPUT_PATH_SIZE]; // "": none
    char failure[512]; // the first file that could not be written, and why
};

// The files are written whole each time, so that they are well-formed whenever the process ends.

// A failure is described in `failure`, and is final. A text that is NULL had no memory.
static void write_form(struct check_findings *findings, const char *path, char *text)
{
    char message[512];
    if (path[0] && !findings->failure[0] && !text)
        weir_text_about(findings->failure, sizeof findings->failure, path,
                        "no memory is left for the report; free some memory of the host");
    else if (path[0] && !findings->failure[0] &&
             !weir_file_write(path, text, strlen(text), message, sizeof message))
        weir_text_escape(findings->failure, sizeof findings->failure, message, "");
    free(text);
}

static void write_files(struct check *check, bool complete)
{
    static char *(*const makers[])(
        const struct weir_findings *findings) = {weir_findings_text, weir_findings_json,
                                                 weir_findings_sarif}; // in the order of the keys
    struct check_findings *findings = check->findings;
    char *texts[CHECK_FORMS];
    check_lock(check);
    findings->all.complete = complete;
    findings->all.rules = findings->rules;
    findings->written = findings->all.count;
    for (int form = 0; form < CHECK_FORMS; form++)
        texts[form] = findings->paths[form][0] ? makers[form](&findings->all) : NULL;
    (void)check_unlock(check);
    for (int form = 0; form < CHECK_FORMS; form++)
        write_form(findings, findings->paths[form], texts[form]);
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

// `entry` is counted from 1; 0: none.
static weir_status refuse_rules(const struct check_findings *findings, size_t entry,
                                const char *mend, const char *format, ...)
{
    char sentence[400];
    char message[640];
    char place[32] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (entry)
        snprintf(place, sizeof place, "entry %zu ", entry);
    weir_text_about(message, sizeof message, findings->all.suppressions, "%s%s", place, sentence);
    return weir_host_fail(findings->link->host, WEIR_ERROR_CONFIG, mend, "%s", message);
}

static weir_status refuse_kind(const struct check_findings *findings, size_t entry,
                               const char *kind)
{
    const char *nearest = NULL;
    char mend[128] = "docs/check.md lists the kinds";
    for (size_t i = 0; weir_findings_kind_at(i); i++)
        nearest = weir_text_nearer(kind, nearest, weir_findings_kind_at(i));
    if (nearest)
        snprintf(mend, sizeof mend, "did you mean '%s'?", nearest);
    return refuse_rules(findings, entry, mend, "has the kind '%s', which does not exist", kind);
}

// A key that does not exist, or one that is no text, is refused by its name.
static weir_status check_keys(const struct check_findings *findings, size_t entry, json_t *object)
{
    static const char *const keys[] = {"kind", "first", "second", "buffer", "reason"};
    enum {
        KEYS = sizeof keys / sizeof *keys
    };
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (i < KEYS && strcmp(key, keys[i]) != 0)
            i++;
        const char *nearest = i < KEYS ? NULL : weir_text_nearest(key, keys, KEYS);
        char mend[128] = "its keys are kind, first, second, buffer and reason";
        if (nearest)
            snprintf(mend, sizeof mend, "did you mean '%s'?", nearest);
        if (i == KEYS)
            return refuse_rules(findings, entry, mend, "has a key '%s', which does not exist", key);
        if (!json_is_string(value))
            return refuse_rules(findings, entry, "write a text", "has a '%s' that is no text", key);
    }
    return WEIR_OK;
}

static weir_status read_rule(struct check_findings *findings, size_t entry, json_t *object)
{
    struct weir_suppression *rule = &findings->rules[entry - 1];
    const char *kind = "";
    *rule = (struct weir_suppression){0, "", "", "", "", 0};
    const weir_status status = check_keys(findings, entry, object);
    if (status < 0)
        return status;
    if (json_unpack(object, "{s?s, s?s, s?s, s?s, s?s}", "kind", &kind, "first", &rule->first,
                    "second", &rule->second, "buffer", &rule->buffer, "reason", &rule->reason) != 0)
        return refuse_rules(findings, entry, rules_remedy, "is no object");
    rule->kind = weir_findings_kind(kind);
    if (rule->reason[strspn(rule->reason, " ")] == '\0')
        return refuse_rules(findings, entry, "say in \"reason\" why nothing is wrong",
                            "has no reason");
    if (kind[0] && !rule->kind)
        return refuse_kind(findings, entry, kind);
    if (!rule->kind && !rule->first[0] && !rule->second[0] && !rule->buffer[0])
        return refuse_rules(findings, entry, "name a kind, a line or a buffer",
                            "would suppress everything");
    return WEIR_OK;
}

// Errors: as check_findings_create(), reported.
static weir_status read_rules(struct check_findings *findings)
{
    char message[512];
    json_error_t error;
    void *text;
    size_t size;
    weir_status status = WEIR_OK;
    if (!findings->all.suppressions[0])
        return WEIR_OK;
    if (!weir_file_read(findings->all.suppressions, FILE_LIMIT, &text, &size, message,
                        sizeof message))
        return weir_host_fail(findings->link->host, WEIR_ERROR_CONFIG,
                              "mend `suppressions` in [check]", "%s", message);
    json_t *list = findings->rules_file =
        weir_json_load(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!list)
        return refuse_rules(findings, 0, rules_remedy, "line %d: %s", error.line, error.text);
    if (!json_is_array(list))
        return refuse_rules(findings, 0, rules_remedy, "the file holds no list");
    findings->rules = calloc(json_array_size(list) + 1, sizeof *findings->rules);
    if (!findings->rules)
        return weir_host_no_memory(findings->link->host, "suppressions");
    while (findings->all.rule_count < json_array_size(list) && status == WEIR_OK) {
        json_t *object = json_array_get(list, findings->all.rule_count);
        status = read_rule(findings, ++findings->all.rule_count, object);
    }
    return status;
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
    for (size_t i = 0; i < findings->all.rule_count; i++) {
        struct weir_suppression *rule = &findings->rules[i];
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
    char text[512];
    for (size_t i = 0; i < findings->all.rule_count; i++) {
        if (findings->rules[i].used)
            continue;
        weir_text_about(text, sizeof text, findings->all.suppressions,
                        "entry %zu suppresses nothing that was found, remove it: %.200s", i + 1,
                        findings->rules[i].reason);
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

static uint16_t *chain_of(struct check_findings *findings, const struct weir_check_finding *finding)
{
    const uint32_t hash = (uint32_t)finding->first.line * 31 + (uint32_t)finding->second.line;
    return &findings->chains[hash % CHECK_CHAINS];
}

static struct weir_check_finding *find(struct check_findings *findings,
                                       const struct weir_check_finding *wanted)
{
    const weir_check_kind group = group_of(wanted->kind);
    for (size_t i = *chain_of(findings, wanted); i; i = findings->next[i - 1]) {
        struct weir_check_finding *finding = &findings->items[i - 1];
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

// NULL if out of memory, or there are too many.
static struct weir_check_finding *make_finding(struct check_findings *findings,
                                               const struct check_conflict *conflict)
{
    struct check_conflict kept = *conflict;
    struct weir_check_finding *finding = &kept.finding;
    if (findings->all.count == CHECK_PAIRS || !keep_text(findings, &finding->buffer) ||
        !keep_use(findings, &finding->first) || !keep_use(findings, &finding->second) ||
        !keep_words(findings, &kept, finding))
        return NULL;
    leave_call(&finding->first);
    leave_call(&finding->second);
    const size_t place = findings->all.count++;
    uint16_t *chain = chain_of(findings, finding);
    findings->rule_of[place] = find_rule(findings, finding);
    if (findings->rule_of[place])
        finding->suppression = findings->rule_of[place]->reason;
    findings->next[place] = *chain;
    *chain = (uint16_t)findings->all.count;
    findings->items[place] = *finding;
    return &findings->items[place];
}

// Adding.

void check_tell(struct check *check, const struct check_conflict *conflict)
{
    struct check_findings *findings = check->findings;
    const bool hint = is_hint(conflict->finding.kind);
    struct weir_check_finding *finding = find(findings, &conflict->finding);
    finding = finding ? finding : make_finding(findings, conflict);
    struct weir_suppression *rule = finding ? findings->rule_of[finding - findings->items] : NULL;
    if (finding)
        finding->count++;
    else
        findings->all.dropped++;
    if (rule)
        rule->used++;
    if (findings->fail && !hint && !rule && !findings->untold.refused) {
        findings->untold.refused = conflict->finding.kind;
        findings->untold.finding = finding;
    }
    check->found_more = true;
}

// Telling: pairs stay, and only their counts change.

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

// The first `count` findings are in the files when it returns.
static void keep_files(struct check *check, size_t count)
{
    struct check_findings *findings = check->findings;
    check_inside++; // the lock is not one of the program's
    pthread_mutex_lock(&findings->files_lock);
    if (findings->written < count) // else another thread has written them
        write_files(check, false);
    pthread_mutex_unlock(&findings->files_lock);
    check_inside--;
}

weir_status check_unlock_and_tell(struct check *check)
{
    struct check_findings *findings = check->findings;
    const struct weir_host *host = check->link->host;
    const struct untold untold = findings->untold;
    const size_t count = findings->all.count;
    struct weir_error detail = {.status = WEIR_ERROR_INVALID};
    findings->untold = (struct untold){.begin = count};
    check->found_more = false;
    (void)check_unlock(check);
    keep_files(check, count);
    for (size_t i = untold.begin; i < count; i++)
        tell(findings, &findings->items[i]);
    if (!untold.refused)
        return WEIR_OK;
    if (!untold.finding)
        return weir_host_fail(host, WEIR_ERROR_INVALID, "mend those that are reported first",
                              "%s: one more pair of lines than the %d that are kept",
                              weir_findings_kind_name(untold.refused), CHECK_PAIRS);
    weir_text_escape(detail.remedy, sizeof detail.remedy, untold.finding->remedy, "");
    return weir_host_report(host, &detail, "%s: %s", weir_findings_kind_name(untold.finding->kind),
                            untold.finding->message);
}

// Reading.

size_t check_findings_count(void *user)
{
    struct check *check = user;
    check_lock(check);
    const size_t count = check->findings->all.count;
    (void)check_unlock(check);
    return count;
}

size_t check_findings_error_count(void *user)
{
    struct check *check = user;
    check_lock(check);
    const struct weir_findings_sum sum = weir_findings_sum(&check->findings->all);
    (void)check_unlock(check);
    return sum.errors;
}

bool check_findings_get(void *user, size_t index, struct weir_check_finding *out_finding,
                        size_t size)
{
    struct check *check = user;
    const struct check_findings *findings = check->findings;
    check_lock(check);
    const bool there = index < findings->all.count;
    if (there)
        weir_write(out_finding, size, &findings->items[index], sizeof findings->items[index]);
    (void)check_unlock(check);
    return there;
}

// A link's life.

static weir_status fail_output(const struct check_findings *findings)
{
    return weir_host_fail(findings->link->host, WEIR_ERROR_IO, "name another file in [check]", "%s",
                          findings->failure);
}

static weir_status start(struct check *check, const struct weir_setting *const *settings)
{
    struct check_findings *findings = check->findings;
    const weir_status status = read_rules(findings);
    if (status < 0)
        return status;
    for (size_t i = 0; i < CHECK_FORMS; i++)
        if (!weir_output_path_claim(settings[KEY_TEXT + i]->text, findings->paths[i]))
            return weir_host_fail(findings->link->host, WEIR_ERROR_CONFIG,
                                  "use names of fewer than 450 bytes",
                                  "a name of a file in [check] is too long");
    write_files(check, false);
    return findings->failure[0] ? fail_output(findings) : WEIR_OK;
}

static void release(struct check_findings *findings)
{
    free(findings->rules);
    json_decref(findings->rules_file);
    pthread_mutex_destroy(&findings->files_lock);
    free(findings);
}

weir_status check_findings_create(struct check *check, const struct weir_setting *const *settings)
{
    struct check_findings *findings = calloc(1, sizeof *findings);
    if (!findings)
        return weir_host_no_memory(check->link->host, "findings");
    findings->link = check->link;
    findings->texts = check->names;
    findings->fail = strcmp(settings[KEY_REPORT]->text, "fail") == 0;
    findings->all = (struct weir_findings){.program = program_invocation_short_name,
                                           .process = (uint64_t)getpid(),
                                           .items = findings->items,
                                           .suppressions = settings[KEY_SUPPRESSIONS]->text};
    pthread_mutex_init(&findings->files_lock, NULL);
    check->findings = findings;
    const weir_status status = start(check, settings);
    if (status < 0) {
        for (size_t i = 0; i < CHECK_FORMS; i++)
            weir_output_path_give_back(findings->paths[i]);
        release(findings);
    }
    return status;
}

void check_findings_destroy(struct check *check)
{
    struct check_findings *findings = check->findings;
    char text[160];
    write_files(check, true);
    if (findings->all.dropped) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " uses in more pairs of lines than the %d that are kept are not listed",
                 findings->all.dropped, CHECK_PAIRS);
        findings->link->host->log(WEIR_LOG_WARNING, findings->link->name, text);
    }
    tell_unused(findings);
    if (findings->failure[0])
        (void)fail_output(findings);
    release(findings);
}
