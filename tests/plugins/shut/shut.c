// A plugin for tests in whose buffers of a label the host may not begin: the first calls of
// weir_host_begin() are forwarded, and all later ones refused.
#include <stdatomic.h>
#include <string.h>

#include <weir/module/error.h>
#include <weir/module/host_note.h>
#include <weir/module/object.h>

enum key {
    KEY_LABEL,
    KEY_FORWARDED,
    KEY_COUNT
};

struct state {
    char label[64];
    int64_t forwarded;
    atomic_int_fast64_t seen;
};

static weir_status shut_open(struct weir_link *link, const struct weir_setting *const *settings,
                             void **out_state)
{
    struct state *state = link->host->allocate(sizeof *state);
    if (!state)
        return weir_host_no_memory(link->host, "a plugin");
    snprintf(state->label, sizeof state->label, "%s", settings[KEY_LABEL]->text);
    state->forwarded = settings[KEY_FORWARDED]->integer;
    *out_state = state;
    return WEIR_OK;
}

static void shut_close(const struct weir_link *link)
{
    link->host->release(link->state);
}

static weir_status shut_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    struct state *state = link->state;
    if (note->kind == WEIR_HOST_NOTE_BEGIN &&
        strcmp(weir_buffer_object(note->u.access.buffer)->label, state->label) == 0 &&
        atomic_fetch_add(&state->seen, 1) >= state->forwarded)
        return weir_host_fail(link->host, WEIR_ERROR_DEVICE, "leave out the plugin shut",
                              "buffer '%s' is shut", state->label);
    return link->next->ops->host_note(link->next, note);
}

static const struct weir_key shut_keys[KEY_COUNT] = {
    [KEY_LABEL] =
        {
            .name = "label",
            .type = WEIR_KEY_TEXT,
            .fallback = "",
            .help = "Of the buffers that are shut.",
        },
    [KEY_FORWARDED] =
        {
            .name = "forwarded",
            .type = WEIR_KEY_INTEGER,
            .fallback = "0",
            .minimum = 0,
            .maximum = 1000000,
            .help = "How many calls are forwarded before.",
        },
};

static const struct weir_module_ops shut_ops = {
    .open = shut_open,
    .close = shut_close,
    .host_note = shut_host_note,
};

static const struct weir_module shut_module = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof shut_module,
    .kind = WEIR_MODULE_PLUGIN,
    .name = "shut",
    .version = WEIR_VERSION_STRING,
    .build_id = "",
    .sanitizer = WEIR_MODULE_SANITIZER,
    .keys = shut_keys,
    .key_count = KEY_COUNT,
    .key_size = sizeof(struct weir_key),
    .slot_count = WEIR_MODULE_SLOT_COUNT,
    .operation_kinds = WEIR_OPERATION_KINDS,
    .ops = &shut_ops,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &shut_module;
}
