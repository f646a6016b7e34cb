// The store. A pair of lines is looked up by its lines alone, since a program that races in a loop
// does so a million times; texts are made, files written and messages logged for a new pair only.
#include "plugins/check/finding.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plugins/check/finding_parts.h"

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

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211); // FNV-1a
    return hash;
}

static uint64_t hash_party(uint64_t hash, const struct check_party *party)
{
    if (party->file)
        hash = hash_bytes(hash, party->file, strlen(party->file));
    return hash_bytes(hash, &party->line, sizeof party->line);
}

static uint64_t hash_of(const struct check_conflict *conflict)
{
    const weir_check_kind group = group_of(conflict->kind);
    uint64_t hash = hash_bytes(UINT64_C(14695981039346656037), &group, sizeof group);
    // A launch may read outside of what it declares, and write.
    if (group == WEIR_CHECK_OUTSIDE)
        hash = hash_bytes(hash, &conflict->second.access, sizeof conflict->second.access);
    hash = hash_party(hash, &conflict->first);
    return hash_party(hash, &conflict->second);
}

// Of texts that are displayed the pair has escaped copies, so those of files are compared by hash,
// of 64 bits, and lines.
static struct check_pair *find(const struct check_findings *findings, uint64_t hash,
                               const struct check_conflict *conflict)
{
    struct check_pair *pair = findings->slots[hash & (CHECK_SLOTS - 1)];
    while (pair && (pair->hash != hash || pair->finding.first.line != conflict->first.line ||
                    pair->finding.second.line != conflict->second.line ||
                    group_of(pair->finding.kind) != group_of(conflict->kind)))
        pair = pair->next;
    return pair;
}

// Making a pair.

static void pair_destroy(struct check_pair *pair)
{
    for (size_t i = 0; i < pair->text_count; i++)
        free(pair->texts[i]);
    free(pair);
}

// Takes over a text that was allocated; false for NULL.
static bool own(struct check_pair *pair, char *text, const char **out)
{
    if (!text)
        return false;
    pair->texts[pair->text_count++] = text;
    *out = text;
    return true;
}

static bool copy_text(struct check_pair *pair, const char *from, const char **out)
{
    *out = "";
    return !from || !*from || own(pair, weir_text_escaped(from, ""), out);
}

static bool copy_party(struct check_pair *pair, const struct check_party *from,
                       struct weir_check_use *use)
{
    const bool there = from->queue_id || from->file;
    *use = (struct weir_check_use){
        .operation = there ? check_operation_name(from->operation) : "",
        .access = from->access,
        .queue_id = from->queue_id,
        .sequence = from->sequence,
        .line = from->line,
        .offset = from->offset,
        .size = from->size,
        .region_number = from->region && *from->region ? from->region_number : UINT64_MAX,
    };
    return copy_text(pair, from->queue, &use->queue) &&
           copy_text(pair, from->kernel, &use->kernel) && copy_text(pair, from->file, &use->file) &&
           copy_text(pair, from->region, &use->region);
}

static bool place_in_queue(struct check_pair *pair, const struct check_party *from,
                           struct weir_check_use *use)
{
    if (from->caller_id == 0)
        return true;
    use->queue_id = from->caller_id;
    return copy_text(pair, from->caller, &use->queue);
}

static bool write_words(struct check_pair *pair, const struct check_conflict *conflict)
{
    struct weir_check_finding *finding = &pair->finding;
    struct weir_check_finding placed = *finding;
    struct weir_long_text message = {.text = NULL};
    struct weir_long_text remedy = {.text = NULL};
    check_message_write(&message, finding);
    const bool in_queues = place_in_queue(pair, &conflict->first, &placed.first) &&
                           place_in_queue(pair, &conflict->second, &placed.second);
    check_remedy_write(&remedy, &placed);
    const bool owned = own(pair, message.text, &finding->message) && in_queues;
    return own(pair, remedy.text, &finding->remedy) && owned && !message.failed && !remedy.failed;
}

static bool copy_parties(struct check_pair *pair, const struct check_conflict *conflict)
{
    struct weir_check_finding *finding = &pair->finding;
    const bool copied = copy_party(pair, &conflict->first, &finding->first) &&
                        copy_party(pair, &conflict->second, &finding->second);
    if (conflict->kind == WEIR_CHECK_NEEDLESS_SYNC)
        finding->second.operation = "sync";
    return copied;
}

static struct check_pair *make_pair(const struct check_conflict *conflict, uint64_t hash)
{
    struct check_pair *pair = calloc(1, sizeof *pair);
    if (!pair)
        return NULL;
    pair->hash = hash;
    pair->finding = (struct weir_check_finding){
        .kind = conflict->kind,
        .buffer_id = conflict->buffer_id,
        .offset = conflict->offset,
        .size = conflict->size,
    };
    if (copy_text(pair, conflict->buffer, &pair->finding.buffer) && copy_parties(pair, conflict) &&
        write_words(pair, conflict))
        return pair;
    pair_destroy(pair);
    return NULL;
}

// Adding, with the lock held.

static void keep(struct check_findings *findings, struct check_pair *pair)
{
    struct check_pair **slot = &findings->slots[pair->hash & (CHECK_SLOTS - 1)];
    pair->rule = check_rules_find(&findings->rules, &pair->finding);
    pair->finding.suppression = pair->rule ? pair->rule->reason : NULL;
    pair->next = *slot;
    *slot = pair;
    findings->items[findings->count++] = &pair->finding;
    findings->errors += !pair->rule && !is_hint(pair->finding.kind);
}

static struct check_pair *count_on(struct check_findings *findings,
                                   const struct check_conflict *conflict, bool *out_new)
{
    const uint64_t hash = hash_of(conflict);
    struct check_pair *pair = find(findings, hash, conflict);
    *out_new = false;
    if (!pair && findings->count < CHECK_PAIRS) {
        pair = make_pair(conflict, hash);
        *out_new = pair != NULL;
        if (pair)
            keep(findings, pair);
    }
    if (!pair) {
        findings->dropped++;
        return NULL;
    }
    pair->finding.count++;
    if (pair->rule)
        pair->rule->used++;
    return pair;
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

static weir_status refuse(const struct check_findings *findings,
                          const struct weir_check_finding *finding)
{
    const struct weir_host *host = findings->link->host;
    struct weir_error detail = {.status = WEIR_ERROR_INVALID};
    weir_text_escape(detail.remedy, sizeof detail.remedy, finding->remedy, "");
    return weir_host_report(host, &detail, "%s: %s", weir_findings_kind_name(finding->kind),
                            finding->message);
}

static weir_status refuse_unnamed(const struct check_findings *findings,
                                  const struct check_conflict *conflict)
{
    return weir_host_fail(findings->link->host, WEIR_ERROR_INVALID,
                          "mend those that are reported first",
                          "%s: one more pair of lines than the %d that are kept",
                          weir_findings_kind_name(conflict->kind), CHECK_PAIRS);
}

weir_status check_findings_add(struct check_findings *findings,
                               const struct check_conflict *conflict)
{
    bool is_new;
    pthread_mutex_lock(&findings->lock);
    const struct check_pair *pair = count_on(findings, conflict, &is_new);
    if (is_new)
        check_outputs_write(findings, false);
    pthread_mutex_unlock(&findings->lock);
    if (is_new)
        tell(findings, &pair->finding);
    if (!findings->fail || is_hint(conflict->kind))
        return WEIR_OK;
    if (!pair)
        return refuse_unnamed(findings, conflict);
    return pair->rule ? WEIR_OK : refuse(findings, &pair->finding);
}

// Reading.

size_t check_findings_count(void *user)
{
    struct check_findings *findings = user;
    pthread_mutex_lock(&findings->lock);
    const size_t count = findings->count;
    pthread_mutex_unlock(&findings->lock);
    return count;
}

size_t check_findings_error_count(void *user)
{
    struct check_findings *findings = user;
    pthread_mutex_lock(&findings->lock);
    const size_t count = findings->errors;
    pthread_mutex_unlock(&findings->lock);
    return count;
}

bool check_findings_get(void *user, size_t index, struct weir_check_finding *out_finding,
                        size_t size)
{
    struct check_findings *findings = user;
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
                          findings->outputs.failure);
}

static weir_status start(struct check_findings *findings,
                         const struct check_findings_params *params)
{
    const weir_status status =
        check_rules_read(findings->link->host, params->suppressions, &findings->rules);
    if (status < 0)
        return status;
    findings->fail = params->fail;
    weir_text_escape(findings->suppressions, sizeof findings->suppressions, params->suppressions,
                     "");
    if (!check_outputs_claim(&findings->outputs, params))
        return weir_host_fail(findings->link->host, WEIR_ERROR_CONFIG,
                              "use names of fewer than 450 bytes",
                              "a name of a file in [check] is too long");
    check_outputs_write(findings, false);
    return findings->outputs.failure[0] ? fail_output(findings) : WEIR_OK;
}

static void release(struct check_findings *findings)
{
    for (size_t i = 0; i < CHECK_SLOTS; i++) {
        for (struct check_pair *pair = findings->slots[i]; pair;) {
            struct check_pair *next = pair->next;
            pair_destroy(pair);
            pair = next;
        }
    }
    check_rules_finish(&findings->rules);
    pthread_mutex_destroy(&findings->lock);
    free(findings);
}

weir_status check_findings_create(const struct check_findings_params *params,
                                  struct check_findings **out_findings)
{
    struct check_findings *findings = calloc(1, sizeof *findings);
    *out_findings = NULL;
    if (!findings)
        return weir_host_no_memory(params->link->host, "findings");
    findings->link = params->link;
    pthread_mutex_init(&findings->lock, NULL);
    struct check_findings_params named = *params;
    const weir_status status = start(findings, &named);
    if (status < 0) {
        check_outputs_give_back(&findings->outputs);
        release(findings);
        return status;
    }
    *out_findings = findings;
    return WEIR_OK;
}

static void tell_dropped(const struct check_findings *findings)
{
    char text[160];
    if (findings->dropped == 0)
        return;
    snprintf(text, sizeof text,
             "%" PRIu64 " uses in more pairs of lines than the %d that are kept are not listed",
             findings->dropped, CHECK_PAIRS);
    findings->link->host->log(WEIR_LOG_WARNING, findings->link->name, text);
}

void check_findings_destroy(struct check_findings **findings)
{
    if (!findings || !*findings)
        return;
    struct check_findings *gone = *findings;
    check_outputs_write(gone, true);
    tell_dropped(gone);
    check_rules_tell_unused(&gone->rules, gone->link, gone->suppressions);
    if (gone->outputs.failure[0])
        (void)fail_output(gone);
    release(gone);
    *findings = NULL;
}
