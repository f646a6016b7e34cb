// A link's life, and the ops table.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/parts.h"
#include "plugins/kit/kit.h"

// In the order of the key table.
enum key {
    KEY_REPORT,
    KEY_THREADS,
    KEY_HINTS,
    KEY_VERIFY,
    KEY_SUPPRESSIONS,
    KEY_TEXT,
    KEY_JSON,
    KEY_SARIF,
    KEY_COUNT
};

static const char *const report_words[] = {"log", "fail", NULL};

// In the order of enum check_threads.
static const char *const thread_words[] = {"auto", "one", "strict", NULL};

static const struct weir_key keys[KEY_COUNT] = {
    [KEY_REPORT] = WEIR_CHOICE_KEY(
        "report", "log", report_words,
        "What becomes of a finding. log: it is logged. fail: it is logged, and the "
        "operation or the weir_host_begin() is refused with it, so the queue fails."),
    [KEY_THREADS] = WEIR_CHOICE_KEY(
        "threads", "auto", thread_words,
        "What orders the host's threads. one: the order in which their calls happen. "
        "strict: only the program's locks, where the library that `weir check` preloads "
        "sees them, and weir_check_release() and weir_check_acquire(). auto: strict "
        "with that library, without hints; else one."),
    [KEY_HINTS] =
        WEIR_BOOLEAN_KEY("hints", "0",
                         "1: at the end also tells the lines whose waits and syncs nothing needs."),
    [KEY_VERIFY] = WEIR_BOOLEAN_KEY(
        "verify", "0",
        "1: each kernel runs on copies of its buffers first, several times, so that "
        "uses of bytes that its launch does not declare are found. Slow."),
    [KEY_SUPPRESSIONS] =
        WEIR_TEXT_KEY("suppressions", "",
                      "A file of findings that are known, each with its reason. Empty: none."),
    [KEY_TEXT] =
        WEIR_TEXT_KEY("text", "",
                      "A file for the findings, as text. Empty: none. %p stands for the number of "
                      "the process."),
    [KEY_JSON] = WEIR_TEXT_KEY("json", "", "The same as JSON."),
    [KEY_SARIF] = WEIR_TEXT_KEY("sarif", "", "The same as SARIF, for tools of code review."),
};

static const struct weir_lock_kind lock_kind = {"the lock of a check", 0};

static weir_status open_findings(struct check *check, const struct weir_setting *const *settings)
{
    const struct check_findings_params params = {
        .link = check->link,
        .fail = strcmp(settings[KEY_REPORT]->text, "fail") == 0,
        .suppressions = settings[KEY_SUPPRESSIONS]->text,
        .files = {settings[KEY_TEXT]->text, settings[KEY_JSON]->text, settings[KEY_SARIF]->text},
    };
    return check_findings_create(&params, &check->findings);
}

static size_t count(void *user)
{
    return check_findings_count(((struct check *)user)->findings, false);
}

static size_t error_count(void *user)
{
    return check_findings_count(((struct check *)user)->findings, true);
}

static bool get(void *user, size_t index, struct weir_check_finding *out_finding, size_t size)
{
    return check_findings_get(((struct check *)user)->findings, index, out_finding, size);
}

static void fill_extension(struct check *check)
{
    check->extension = (struct weir_check_extension){
        .struct_size = sizeof check->extension,
        .user = check,
        .count = count,
        .error_count = error_count,
        .get = get,
        .release = check_release,
        .acquire = check_acquire,
    };
}

static enum check_threads threads_of(const char *word)
{
    size_t i = 0;
    while (strcmp(thread_words[i], word) != 0)
        i++;
    return (enum check_threads)i;
}

static weir_status check_open_link(struct weir_link *link,
                                   const struct weir_setting *const *settings, void **out_state)
{
    struct check *check = calloc(1, sizeof *check);
    if (!check)
        return weir_host_no_memory(link->host, "the plugin check");
    check->link = link;
    check->told_end = &check->told;
    check->hints = settings[KEY_HINTS]->integer;
    check->verify = settings[KEY_VERIFY]->integer;
    check->names = weir_names_create();
    const weir_status status = check->names ? open_findings(check, settings)
                                            : weir_host_no_memory(link->host, "the plugin check");
    if (status < 0) {
        weir_names_destroy(check->names);
        free(check);
        return status;
    }
    check_actors_init(&check->actors);
    weir_lock_init(&check->lock, &lock_kind);
    check_threads_open(check, threads_of(settings[KEY_THREADS]->text));
    check->needless = check->hints && !check->strict;
    fill_extension(check);
    *out_state = check;
    return WEIR_OK;
}

static void check_close(const struct weir_link *link)
{
    struct check *check = check_of(link);
    check_threads_close(check);
    check_hints_finish(check);
    check_findings_destroy(&check->findings);
    weir_names_destroy(check->names);
    check_host_finish(check);
    free(check->found.uses);
    check_uses_finish(&check->uses);
    check_actors_finish(&check->actors);
    weir_lock_finish(&check->lock);
    free(check);
}

static const void *check_extension(const struct weir_link *link, const char *name)
{
    struct check *check = check_of(link);
    if (strcmp(name, WEIR_CHECK_EXTENSION) == 0)
        return &check->extension;
    return link->next->ops->extension(link->next, name);
}

static const struct weir_module_ops ops = {
    .open = check_open_link,
    .close = check_close,
    .queue_create = check_queue_create,
    .queue_destroy = check_queue_destroy,
    .queue_submit = check_queue_submit,
    .queue_native = check_queue_native,
    .buffer_create = check_buffer_create,
    .buffer_destroy = check_buffer_destroy,
    .buffer_native = check_buffer_native,
    .buffer_address = check_buffer_address,
    .kernel_create = check_kernel_create,
    .kernel_destroy = check_kernel_destroy,
    .graph_create = check_graph_create,
    .graph_destroy = check_graph_destroy,
    .graph_update = check_graph_update,
    .region = check_region,
    .host_note = check_host_note,
    .extension = check_extension,
};

static const char *const about[] = {
    "summary",
    "Finds missing waits: uses of the same bytes that nothing orders, with the lines of both.",
    NULL,
};

PLUGIN_MODULE("check", keys, KEY_COUNT, 0)
