// A plugin for tests that keeps the notes of what the host does, but for those of host calls. It refuses accesses of
// `refused_bytes` bytes.

#include <weir/module/error.h>

#include "tests/plugins/notes/notes.h"

struct state {
    struct notes notes;
    struct notes_hook hook;
    size_t refused_bytes;
};

static weir_status notes_open(struct weir_link *link, const struct weir_setting *const *settings,
                              void **out_state)
{
    struct state *state = link->host->allocate(sizeof *state);
    if (!state)
        return weir_host_no_memory(link->host, "a plugin");
    state->notes.hook = &state->hook;
    state->refused_bytes = (size_t)settings[0]->integer;
    *out_state = state;
    return WEIR_OK;
}

static void notes_close(const struct weir_link *link)
{
    link->host->release(link->state);
}

static weir_status refuse(const struct weir_link *link, const struct weir_host_note *note)
{
    return weir_host_fail(link->host, WEIR_ERROR_INVALID, "use another size",
                          "an access of %zu bytes was to be refused", note->u.access.size);
}

static weir_status notes_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    struct state *state = link->state;
    struct notes *notes = &state->notes;
    const bool is_of_call = note->kind == WEIR_HOST_NOTE_CALL || note->kind == WEIR_HOST_NOTE_RAN;
    if (!is_of_call && notes->count < sizeof notes->list / sizeof notes->list[0]) {
        notes->list[notes->count] = *note;
        notes->count++;
    }
    if (note->kind == WEIR_HOST_NOTE_BEGIN && note->u.access.size == state->refused_bytes)
        return refuse(link, note);
    return link->next->ops->host_note(link->next, note);
}

static weir_status notes_queue_submit(const struct weir_link *link, weir_queue *queue,
                                      const struct weir_operation *operation)
{
    struct notes *notes = &((struct state *)link->state)->notes;
    if (operation->kind == WEIR_OPERATION_POOL_ALLOCATE)
        notes->allocated_bytes = operation->u.pool.size;
    if (operation->kind == WEIR_OPERATION_POOL_FREE)
        notes->freed_bytes = operation->u.pool.size;
    return link->next->ops->queue_submit(link->next, queue, operation);
}

static weir_status notes_queue_finish(const struct weir_link *link, weir_queue *queue)
{
    const struct state *state = link->state;
    const weir_status status = link->next->ops->queue_finish(link->next, queue);
    if (state->hook.function)
        state->hook.function(state->hook.user);
    return status;
}

static const void *notes_extension(const struct weir_link *link, const char *name)
{
    const struct state *state = link->state;
    if (strcmp(name, "notes") == 0)
        return &state->notes;
    return link->next->ops->extension(link->next, name);
}

static const struct weir_key notes_keys[] = {
    WEIR_INTEGER_KEY("refused_bytes", "0", 0, 1024,
                     "Accesses of the host of this size are refused; 0: none."),
};

static const struct weir_module_ops notes_ops = {
    .open = notes_open,
    .close = notes_close,
    .queue_submit = notes_queue_submit,
    .queue_finish = notes_queue_finish,
    .host_note = notes_host_note,
    .extension = notes_extension,
};

WEIR_MODULE(WEIR_MODULE_PLUGIN, "notes", WEIR_VERSION_STRING, WEIR_MODULE_OPS(notes_ops),
            .keys = notes_keys, .key_count = 1)
