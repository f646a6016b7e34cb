// A link's life, the plugin's data for the front end's objects, and the ops table.

#include "plugins/check/parts.h"
#include "plugins/kit/kit.h"

static const char *const report_words[] = {"log", "fail", NULL};

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

static weir_status check_open_link(struct weir_link *link,
                                   const struct weir_setting *const *settings, void **out_state)
{
    struct check *check = calloc(1, sizeof *check);
    if (!check)
        return weir_host_no_memory(link->host, "the plugin check");
    *check = (struct check){
        .link = link,
        .hints = settings[KEY_HINTS]->integer,
        .verify = settings[KEY_VERIFY]->integer,
        .names = weir_names_create(),
        .extension = {.struct_size = sizeof check->extension,
                      .user = check,
                      .count = check_findings_count,
                      .error_count = check_findings_error_count,
                      .get = check_findings_get,
                      .release = check_release,
                      .acquire = check_acquire},
    };
    weir_lock_init(&check->lock, &lock_kind);
    const weir_status status = check->names ? check_findings_create(check, settings)
                                            : weir_host_no_memory(link->host, "the plugin check");
    if (status < 0) {
        weir_names_destroy(check->names);
        weir_lock_finish(&check->lock);
        free(check);
        return status;
    }
    check_threads_open(check, settings[KEY_THREADS]->text);
    check->needless = check->hints && !check->strict;
    *out_state = check;
    return WEIR_OK;
}

static void check_close(const struct weir_link *link)
{
    struct check *check = check_of(link);
    check_threads_close(check);
    check_hints_finish(check);
    check_findings_destroy(check);
    weir_names_destroy(check->names);
    free(check->found.uses);
    check_history_clear(&check->wrapped.history);
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

// Queues.

static weir_status queue_create(const struct weir_link *link, weir_device *device,
                                weir_queue *object, const struct weir_queue_setup *setup,
                                void **out_data)
{
    struct check *check = check_of(link);
    struct check_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "the clock of a queue");
    queue->device = device;
    queue->actor.label = weir_queue_object(object)->label;
    queue->actor.id = weir_queue_object(object)->id;
    queue->actor.exposed = setup->native;
    check_lock(check);
    const bool added = check_actor_add(&check->actors, &queue->actor);
    check_threads_more(check);
    check->unseen_uses = check->unseen_uses || setup->native;
    check_unlock(check);
    if (!added) {
        free(queue);
        return weir_host_no_memory(link->host, "the clock of a queue");
    }
    *out_data = queue;
    return WEIR_OK;
}

static void queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct check *check = check_of(link);
    struct check_queue *queue = check_queue_of(link, object);
    check_lock(check);
    check_calls_end(check, queue, queue->waiting_calls);
    if (check->needless)
        check_hint_queue_ends(check, queue);
    check_actor_remove(&check->actors, &queue->actor);
    check_unlock(check);
    free(queue);
}

static weir_status queue_native(const struct weir_link *link, weir_queue *object,
                                struct weir_native_queue *out_native)
{
    struct check *check = check_of(link);
    check_lock(check);
    check_queue_of(link, object)->actor.exposed = true;
    check->unseen_uses = true;
    check_unlock(check);
    return link->next->ops->queue_native(link->next, object, out_native);
}

// Buffers.

// Memory with a handle.

static struct check_shared *take_shared(struct check *check, uint64_t handle)
{
    struct check_shared *shared = check->shared;
    while (shared && shared->handle != handle)
        shared = shared->next;
    if (!shared && (shared = calloc(1, sizeof *shared))) {
        shared->handle = handle;
        shared->next = check->shared;
        check->shared = shared;
    }
    if (shared)
        shared->users++;
    return shared;
}

static void drop_shared(struct check *check, struct check_shared *shared)
{
    struct check_shared **at = &check->shared;
    if (!shared || --shared->users > 0)
        return;
    while (*at != shared)
        at = &(*at)->next;
    *at = shared->next;
    check_history_clear(&shared->memory.history);
    free(shared);
}

// On CUDA the memory of all devices and of the host has one space of addresses.
static bool has_address(const struct weir_link *link, weir_device *device,
                        const struct weir_buffer_setup *setup)
{
    struct weir_native_device native = {.struct_size = sizeof native};
    return setup->placement == WEIR_PLACE_HOST ||
           (link->next->ops->device_native(link->next, device, &native) == WEIR_OK &&
            weir_native_is(native.api, WEIR_NATIVE_CUDA));
}

// Buffers on the same memory of the user's share its history. If out of memory, they do not.
static void place(const struct weir_link *link, weir_device *device,
                  const struct weir_buffer_setup *setup, struct check_buffer *buffer)
{
    struct check *check = check_of(link);
    const uint64_t address = setup->user_pointer ? (uintptr_t)setup->user_pointer : setup->native;
    buffer->memory = &buffer->own;
    if (!address)
        return;
    if (has_address(link, device, setup)) {
        buffer->memory = &check->wrapped;
        buffer->base = address;
        return;
    }
    check_lock(check);
    buffer->shared = take_shared(check, address);
    check_unlock(check);
    if (buffer->shared)
        buffer->memory = &buffer->shared->memory;
}

static weir_status buffer_create(const struct weir_link *link, weir_device *device,
                                 weir_buffer *object, const struct weir_buffer_setup *setup,
                                 void **out_data, void **out_pointer)
{
    struct check *check = check_of(link);
    struct check_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return weir_host_no_memory(link->host, "the history of a buffer");
    buffer->object = object;
    place(link, device, setup, buffer);
    buffer->size = setup->size;
    if (setup->user_pointer || setup->native || setup->placement == WEIR_PLACE_MANAGED) {
        check_lock(check);
        check->unseen_syncs = true; // the host may use it at any time, and write it
        check_unlock(check);
    } else {
        check_gaps_reset(buffer, setup->size);
    }
    *out_data = buffer;
    return WEIR_OK;
}

static void buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
    struct check *check = check_of(link);
    struct check_buffer *buffer = check_buffer_of(link, object);
    check_lock(check);
    if (!buffer->shared)
        check_buffer_clear(check, buffer);
    drop_shared(check, buffer->shared);
    check_history_clear(&buffer->own.history);
    check_history_clear(&buffer->gaps);
    check_unlock(check);
    while (buffer->open) {
        struct check_open *open = buffer->open;
        buffer->open = open->next;
        free(open);
    }
    free(buffer);
}

// A program that has the address, or the handle, may write there.
static void let_write(const struct weir_link *link, const weir_buffer *object, bool addressed)
{
    struct check *check = check_of(link);
    check_lock(check);
    check_history_clear(&check_buffer_of(link, object)->gaps);
    check->unseen_uses = true;
    check->addressed = check->addressed || addressed;
    check_unlock(check);
}

static weir_status buffer_native(const struct weir_link *link, weir_buffer *object,
                                 struct weir_native_buffer *out_native)
{
    let_write(link, object, false);
    return link->next->ops->buffer_native(link->next, object, out_native);
}

static weir_status buffer_address(const struct weir_link *link, weir_buffer *object,
                                  uint64_t *out_address)
{
    let_write(link, object, true);
    return link->next->ops->buffer_address(link->next, object, out_address);
}

static weir_status kernel_create(const struct weir_link *link, weir_program *program,
                                 weir_kernel *object, const struct weir_kernel_signature *signature,
                                 struct weir_kernel_info *info, void **out_data)
{
    return WEIR_OK;
}

static void kernel_destroy(const struct weir_link *link, weir_kernel *object)
{
    check_note_change(check_of(link));
}

static const struct weir_module_ops ops = {
    .open = check_open_link,
    .close = check_close,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = check_queue_submit,
    .queue_native = queue_native,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_native = buffer_native,
    .buffer_address = buffer_address,
    .kernel_create = kernel_create,
    .kernel_destroy = kernel_destroy,
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
