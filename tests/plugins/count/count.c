// A plugin for tests that counts the calls of its slots, one set of counts for
// each of its links, and sends them to the log when the link is closed:
//
//     label=A link=0 open=1 device_create=1 queue_submit=7 ... closed
//
// It also tests that links are separate: every object's pointer is a tag of its
// own link, checked at every call, and `mixed` counts wrong tags. The INI makes
// the create, or the open, of one link fail.
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/module/error.h>

// Slots; submits by flag; and wrong tags.
#define COUNTED(X)                        \
    X(OPEN, "open")                       \
    X(DEVICE_CREATE, "device_create")     \
    X(DEVICE_DESTROY, "device_destroy")   \
    X(DEVICE_LIMITS, "device_limits")     \
    X(QUEUE_CREATE, "queue_create")       \
    X(QUEUE_DESTROY, "queue_destroy")     \
    X(QUEUE_SUBMIT, "queue_submit")       \
    X(BUFFER_CREATE, "buffer_create")     \
    X(BUFFER_DESTROY, "buffer_destroy")   \
    X(HOST_NOTE, "host_note")             \
    X(PROGRAM_CREATE, "program_create")   \
    X(PROGRAM_DESTROY, "program_destroy") \
    X(KERNEL_CREATE, "kernel_create")     \
    X(KERNEL_DESTROY, "kernel_destroy")   \
    X(IMPLIED, "implied")                 \
    X(EMPTY, "empty")                     \
    X(MIXED, "mixed")

#define NUMBER(number, name) number,
#define NAME(number, name) name,

enum count {
    COUNTED(NUMBER) COUNTS
};

static const char *const count_names[COUNTS] = {COUNTED(NAME)};

enum key {
    KEY_LABEL,
    KEY_FAIL_CREATE,
    KEY_FAIL_LINK,
    KEY_COUNT
};

struct state {
    const char *label;
    const char *fail_create;
    int64_t fail_link;
    atomic_uint_fast64_t counts[COUNTS];
};

// The link's data of an object.
struct tag {
    const struct weir_link *link;
    const void *object;
};

static struct state *state_of(const struct weir_link *link)
{
    return link->state;
}

static void count(const struct weir_link *link, enum count what)
{
    atomic_fetch_add_explicit(&state_of(link)->counts[what], 1, memory_order_relaxed);
}

static void check_tag(const struct weir_link *link, const void *data, const void *object)
{
    const struct tag *tag = data;

    if (!tag || tag->link != link || tag->object != object)
        count(link, MIXED);
}

// Whether this link was configured to fail at `what`; if so, sets the error
// detail.
static bool is_to_fail(const struct weir_link *link, const char *what)
{
    const struct state *state = state_of(link);
    struct weir_error error = {.status = WEIR_ERROR_DEVICE};

    if (state->fail_link != link->index || strcmp(state->fail_create, what) != 0)
        return false;
    snprintf(error.message, sizeof error.message, "link %u was asked to fail its %s",
             (unsigned)link->index, what);
    link->host->error(&error, sizeof error);
    return true;
}

static weir_status create(const struct weir_link *link, enum count what, const char *kind,
                          const void *object, void **out_data)
{
    count(link, what);
    if (is_to_fail(link, kind))
        return WEIR_ERROR_DEVICE;
    struct tag *tag = link->host->allocate(sizeof *tag);
    if (!tag)
        return weir_host_no_memory(link->host, "a plugin");
    *tag = (struct tag){.link = link, .object = object};
    *out_data = tag;
    return WEIR_OK;
}

static void destroy(const struct weir_link *link, enum count what, const void *object, void *data)
{
    count(link, what);
    check_tag(link, data, object);
    link->host->release(data);
}

static weir_status count_open(struct weir_link *link, const struct weir_setting *const *settings,
                              void **out_state)
{
    struct state *state = link->host->allocate(sizeof *state);

    if (!state)
        return weir_host_no_memory(link->host, "a plugin");
    state->label = settings[KEY_LABEL]->text;
    state->fail_create = settings[KEY_FAIL_CREATE]->text;
    state->fail_link = settings[KEY_FAIL_LINK]->integer;
    link->state = state;
    count(link, OPEN);
    if (is_to_fail(link, "open")) {
        link->host->release(state);
        return WEIR_ERROR_DEVICE;
    }
    *out_state = state;
    return WEIR_OK;
}

static void count_close(const struct weir_link *link)
{
    struct state *state = state_of(link);
    char text[1024];
    int used =
        snprintf(text, sizeof text, "label=%.100s link=%u", state->label, (unsigned)link->index);

    for (size_t i = 0; i < COUNTS; i++) {
        uint64_t value = atomic_load(&state->counts[i]);
        if (value > 0)
            used += snprintf(text + used, sizeof text - (size_t)used, " %s=%" PRIu64,
                             count_names[i], value);
    }
    snprintf(text + used, sizeof text - (size_t)used, " closed");
    link->host->log(WEIR_LOG_INFO, "count", text);
    link->host->release(state);
}

static weir_status count_device_create(const struct weir_link *link, weir_device *device,
                                       const struct weir_device_setup *setup, void **out_data)
{
    return create(link, DEVICE_CREATE, "device", device, out_data);
}

static void count_device_destroy(const struct weir_link *link, weir_device *device)
{
    destroy(link, DEVICE_DESTROY, device, weir_device_data(link, device));
}

static void count_device_limits(const struct weir_link *link, weir_device *device,
                                struct weir_limits *limits)
{
    count(link, DEVICE_LIMITS);
    check_tag(link, weir_device_data(link, device), device);
}

static weir_status count_queue_create(const struct weir_link *link, weir_device *device,
                                      weir_queue *queue, const struct weir_queue_setup *setup,
                                      void **out_data)
{
    check_tag(link, weir_device_data(link, device), device);
    return create(link, QUEUE_CREATE, "queue", queue, out_data);
}

static void count_queue_destroy(const struct weir_link *link, weir_queue *queue)
{
    destroy(link, QUEUE_DESTROY, queue, weir_queue_data(link, queue));
}

static weir_status count_queue_submit(const struct weir_link *link, weir_queue *queue,
                                      const struct weir_operation *operation)
{
    count(link, QUEUE_SUBMIT);
    if (operation->flags & WEIR_OPERATION_IMPLIED)
        count(link, IMPLIED);
    if (operation->flags & WEIR_OPERATION_EMPTY)
        count(link, EMPTY);
    check_tag(link, weir_queue_data(link, queue), queue);
    return link->next->ops->queue_submit(link->next, queue, operation);
}

static weir_status count_buffer_create(const struct weir_link *link, weir_device *device,
                                       weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                       void **out_data, void **out_pointer)
{
    check_tag(link, weir_device_data(link, device), device);
    return create(link, BUFFER_CREATE, "buffer", buffer, out_data);
}

static void count_buffer_destroy(const struct weir_link *link, weir_buffer *buffer)
{
    destroy(link, BUFFER_DESTROY, buffer, weir_buffer_data(link, buffer));
}

static weir_status count_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    count(link, HOST_NOTE);
    if (note->kind == WEIR_HOST_NOTE_BEGIN || note->kind == WEIR_HOST_NOTE_END)
        check_tag(link, weir_buffer_data(link, note->u.access.buffer), note->u.access.buffer);
    return link->next->ops->host_note(link->next, note);
}

static weir_status count_program_create(const struct weir_link *link, weir_device *device,
                                        weir_program *program,
                                        const struct weir_program_params *params, void **out_data)
{
    check_tag(link, weir_device_data(link, device), device);
    return create(link, PROGRAM_CREATE, "program", program, out_data);
}

static void count_program_destroy(const struct weir_link *link, weir_program *program)
{
    destroy(link, PROGRAM_DESTROY, program, weir_program_data(link, program));
}

static weir_status count_kernel_create(const struct weir_link *link, weir_program *program,
                                       weir_kernel *kernel,
                                       const struct weir_kernel_signature *signature,
                                       struct weir_kernel_info *info, void **out_data)
{
    check_tag(link, weir_program_data(link, program), program);
    return create(link, KERNEL_CREATE, "kernel", kernel, out_data);
}

static void count_kernel_destroy(const struct weir_link *link, weir_kernel *kernel)
{
    destroy(link, KERNEL_DESTROY, kernel, weir_kernel_data(link, kernel));
}

static const char *const fail_choices[] = {"none",   "open",    "device", "queue",
                                           "buffer", "program", "kernel", NULL};

static const struct weir_key count_keys[KEY_COUNT] = {
    [KEY_LABEL] = WEIR_TEXT_KEY("label", "", "Stands in the counts, to tell chains apart."),
    [KEY_FAIL_CREATE] =
        WEIR_CHOICE_KEY("fail_create", "none", fail_choices, "What fails to be created."),
    [KEY_FAIL_LINK] =
        WEIR_INTEGER_KEY("fail_link", "0", 0, 63, "The link of the chain where it fails."),
};

static const struct weir_module_ops count_ops = {
    .open = count_open,
    .close = count_close,
    .device_create = count_device_create,
    .device_destroy = count_device_destroy,
    .device_limits = count_device_limits,
    .queue_create = count_queue_create,
    .queue_destroy = count_queue_destroy,
    .queue_submit = count_queue_submit,
    .buffer_create = count_buffer_create,
    .buffer_destroy = count_buffer_destroy,
    .host_note = count_host_note,
    .program_create = count_program_create,
    .program_destroy = count_program_destroy,
    .kernel_create = count_kernel_create,
    .kernel_destroy = count_kernel_destroy,
};

WEIR_MODULE(WEIR_MODULE_PLUGIN, "count", WEIR_VERSION_STRING, WEIR_MODULE_OPS(count_ops),
            .keys = count_keys, .key_count = KEY_COUNT)
