// A plugin for tests that loses work: it forwards the first operations of a kind, and
// then reports success for all later ones without forwarding them. Checks of results
// must notice this.
#include <stdatomic.h>
#include <string.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

enum key {
    KEY_KIND,
    KEY_FORWARDED,
    KEY_COUNT
};

struct state {
    enum weir_operation_kind kind;
    int64_t forwarded;
    atomic_int_fast64_t seen;
};

static weir_status lossy_open(struct weir_link *link, const struct weir_setting *const *settings,
                              void **out_state)
{
    struct state *state = link->host->allocate(sizeof *state);
    if (!state)
        return weir_host_no_memory(link->host, "a plugin");
    state->kind =
        strcmp(settings[KEY_KIND]->text, "copy") == 0 ? WEIR_OPERATION_COPY : WEIR_OPERATION_LAUNCH;
    state->forwarded = settings[KEY_FORWARDED]->integer;
    *out_state = state;
    return WEIR_OK;
}

static void lossy_close(const struct weir_link *link)
{
    link->host->release(link->state);
}

static weir_status lossy_queue_submit(const struct weir_link *link, weir_queue *queue,
                                      const struct weir_operation *operation)
{
    struct state *state = link->state;
    if (operation->kind == state->kind && atomic_fetch_add(&state->seen, 1) >= state->forwarded)
        return WEIR_OK;
    return link->next->ops->queue_submit(link->next, queue, operation);
}

static const char *const kinds[] = {"copy", "launch", NULL};

static const struct weir_key lossy_keys[KEY_COUNT] = {
    [KEY_KIND] = WEIR_CHOICE_KEY("kind", "copy", kinds, "What is lost."),
    [KEY_FORWARDED] =
        WEIR_INTEGER_KEY("forwarded", "0", 0, 1000000, "How many are forwarded before."),
};

static const struct weir_module_ops lossy_ops = {
    .open = lossy_open,
    .close = lossy_close,
    .queue_submit = lossy_queue_submit,
};

WEIR_MODULE(WEIR_MODULE_PLUGIN, "lossy", WEIR_VERSION_STRING, WEIR_MODULE_OPS(lossy_ops),
            .keys = lossy_keys, .key_count = KEY_COUNT)
