// Opening and closing devices.
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <weir/device.h>

#include "base/sized.h"
#include "base/text.h"
#include "base/thread.h"
#include "core/buffer/buffer.h"
#include "core/object/device.h"
#include "core/object/object.h"
#include "core/queue/queue.h"
#include "core/runtime/runtime.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// What keeps a device from being closed.

// A buffer that its user has destroyed but a tensor still holds.
static bool is_only_shared(const struct weir__member *member)
{
    const weir_buffer *buffer = (const weir_buffer *)(const void *)member;
    return member->class == &weir__buffer_class && atomic_load(&buffer->abandoned) &&
           atomic_load(&buffer->holders) > 0;
}

// WEIR_ERROR_INVALID, with their labels and lines, while objects of the user's exist.
static weir_status refuse_close(weir_device *device)
{
    struct weir__left left = {.count = 0};
    char list[WEIR__LEFT_LIST_SIZE], place[WEIR__PLACE_SIZE];
    bool has_shared = false, all_named = true;
    weir_lock_take(&device->lock);
    for (const struct weir__member *at = TAILQ_FIRST(&device->live); at;
         at = TAILQ_NEXT(at, place)) {
        const bool is_shared = is_only_shared(at);
        const char *label = at->object.label;
        if (at->internal && !is_shared)
            continue;
        weir__member_created(at, place);
        weir__left_add(&left, label[0] ? "the %s '%s'%s%s" : "the %s%s%s%s", at->class->name,
                       label[0] ? label : " without a label",
                       is_shared ? " of a DLPack tensor" : "", place);
        has_shared = has_shared || is_shared;
        all_named = all_named && label[0];
    }
    weir_lock_release(&device->lock);
    if (left.count == 0)
        return WEIR_OK;
    weir__left_list(&left, "weir_device_close: ", list);
    const bool several = left.count > 1;
    const char *remedy = several ? "destroy them first" : "destroy it first";
    if (has_shared)
        remedy = several ? "let a tensor's user call its deleter, and destroy the others, first"
                         : "let the tensor's user call its deleter first";
    else if (!all_named)
        remedy = several ? "destroy them first; params.label gives names"
                         : "destroy it first; params.label gives a name";
    return weir__invalid(device->info.name, remedy,
                         "weir_device_close: %u object%s of the device still exist%s: %s",
                         (unsigned)left.count, left.count == 1 ? "" : "s",
                         left.count == 1 ? "s" : "", list);
}

// Choosing, opening and closing devices.

size_t weir_device_count(const weir_runtime *runtime)
{
    if (!WEIR_IS_ALIVE(runtime))
        return 0;
    const struct weir_link *backend = weir__chain_backend(&runtime->chain);
    return backend->ops->device_count(backend);
}

weir_status weir_device_describe_sized(const weir_runtime *runtime, size_t index,
                                       struct weir_device_info *out_info, size_t size)
{
    WEIR_ENTER(runtime);
    WEIR_REQUIRE(NULL, out_info);
    struct weir_device_info info = {.struct_size = sizeof info};
    const struct weir_link *backend = weir__chain_backend(&runtime->chain);
    const size_t count = backend->ops->device_count(backend);
    const weir_status status =
        index < count ? backend->ops->device_describe(backend, index, &info)
                      : weir__fail(WEIR_ERROR_NO_DEVICE, "`weir devices` lists them",
                                   "device %zu was asked for; the backend '%s' has %zu", index,
                                   backend->name, count);
    if (status < 0)
        info = (struct weir_device_info){.struct_size = sizeof info};
    weir_sized_write_back(out_info, size, &info, sizeof info);
    return weir__told(status);
}

// Choosing.

// The one device whose name contains the text. With `is_number` none does: the text is an index that is too large.
static weir_status select_by_name(const weir_runtime *runtime, const char *select, bool is_number,
                                  const char *origin, size_t *out_index)
{
    char list[512] = "";
    size_t used = 0, matches = 0;
    size_t count = weir_device_count(runtime);
    struct weir_device_info info = {0};

    for (size_t i = 0; i < count; i++) {
        weir_status status = weir_device_describe(runtime, i, &info);
        if (status < 0 && !is_number)
            return status;
        if (status == WEIR_OK)
            weir_text_append(list, sizeof list, &used, "%s%zu: %s", used ? ", " : "", i, info.name);
        if (is_number || !weir_text_contains(info.name, select))
            continue;
        *out_index = i;
        matches++;
    }
    if (matches == 1)
        return WEIR_OK;
    return weir__fail(WEIR_ERROR_NO_DEVICE, "name one of them by its index, or by more of its name",
                      "%s%sdevice '%s' matches %s; there are: %s", origin, *origin ? ": " : "",
                      select, matches ? "more than one" : "none", list);
}

static weir_status select_device(const weir_runtime *runtime, const char *explicit_select,
                                 size_t *out_index)
{
    const struct weir_setting *setting = weir__config_weir(runtime->config, "device");
    const char *select = explicit_select ? explicit_select : setting->text;
    const char *origin = explicit_select ? "" : setting->origin;
    const bool is_number = !select[strspn(select, "0123456789")]; // also where it is ""

    *out_index = strtoul(select, NULL, 10); // the largest number if it has no room
    if (!*select || (is_number && *out_index < weir_device_count(runtime)))
        return WEIR_OK;
    return select_by_name(runtime, select, is_number, origin, out_index);
}

// Opening and closing.

static weir_device *allocate_device(weir_runtime *runtime, const char *given)
{
    char label[WEIR__LABEL_SIZE];
    weir_text_escape(label, sizeof label, given, "");
    size_t slots = runtime->chain.count * sizeof(void *);
    weir_device *device = weir__allocate(sizeof *device);
    void **data = device ? weir__allocate(slots + strlen(label) + 1) : NULL;
    if (!data) {
        weir__release(device);
        return NULL;
    }
    char *copy = (char *)data + slots;
    memcpy(copy, label, strlen(label) + 1);
    device->object = (struct weir_object){data, copy, weir__object_next_id()};
    device->runtime = runtime;
    device->shared = &runtime->shared;
    device->chain = &runtime->chain;
    device->first = weir__chain_first(&runtime->chain);
    weir_lock_init(&device->lock, &weir__locks[WEIR__LOCK_DEVICE]);
    TAILQ_INIT(&device->live);
    TAILQ_INIT(&device->retired);
    weir_lock_init(&device->staging.lock, &weir__locks[WEIR__LOCK_STAGING]);
    weir_workers_init(&device->staging.copiers, &weir__locks[WEIR__LOCK_COPIERS]);
    weir_lock_init(&device->notifier.lock, &weir__locks[WEIR__LOCK_NOTIFIER]);
    pthread_cond_init(&device->notifier.changed, NULL);
    weir_lock_init(&device->legacy.lock, &weir__locks[WEIR__LOCK_LEGACY]);
    return device;
}

static void free_device(weir_device *device)
{
    weir_lock_finish(&device->legacy.lock);
    pthread_cond_destroy(&device->notifier.changed);
    weir_lock_finish(&device->notifier.lock);
    weir_workers_finish(&device->staging.copiers);
    weir_lock_finish(&device->staging.lock);
    weir_lock_finish(&device->lock);
    weir__release(device->object.data);
    if (!weir__debug_keep(device, device))
        weir__release(device);
}

// More gain nothing on an H100 (docs/decisions/0024-copying-threads.md).
#define AUTO_THREADS 12
// Of this size large blocks gain little there.
#define LARGE_BYTES ((size_t)64 << 20)

// On a device without copy engines the threads would take the processors that compute.
static void configure_staging(weir_device *device)
{
    unsigned threads = weir__config_copy_threads(device->runtime->config);
    if (threads == WEIR__CONFIG_COPY_THREADS_AUTO) {
        const unsigned processors = weir_workers_processors();
        threads = processors < AUTO_THREADS ? processors : AUTO_THREADS;
        if (processors == 1 || !device->limits.copy_engines_to_device)
            threads = 0;
    }
    device->staging.thread_limit = threads;
    device->staging.large_bytes = LARGE_BYTES;
}

_Static_assert((int)WEIR__CONFIG_COPY_THREADS_MAX == (int)WEIR_WORKERS_MAX,
               "the configuration allows as many threads as there can be");

// Requirements on a backend, checked once.
static weir_status check_limits(const weir_device *device)
{
    const struct weir_limits *limits = &device->limits;
    const char *broken = NULL;

    if (limits->max_buffer_bytes == 0)
        broken = "max_buffer_bytes is 0";
    else if (limits->argument_alignment_bytes & (limits->argument_alignment_bytes - 1))
        broken = "argument_alignment_bytes is no power of two";
    else if (limits->max_block_items == 0 || limits->max_block.x == 0 || limits->max_grid.x == 0)
        broken = "a launch limit is 0";
    else if (limits->timing_history && limits->timing_resolution_ns == 0)
        broken = "timing_resolution_ns is 0 although timing is supported";
    if (!broken)
        return WEIR_OK;
    return weir__fail(WEIR_ERROR_MODULE, "this is a defect of the module; report it to its author",
                      "device '%s': the backend '%s' gave wrong limits: %s", device->info.name,
                      weir_runtime_backend(device->runtime), broken);
}

// To the runtime's list of open devices.
static void add_opened(weir_device *device, const char *file, int line)
{
    struct weir__shared *shared = device->shared;
    device->file = weir__file_name(file);
    device->line = line;
    weir_lock_take(&shared->devices_lock);
    LIST_INSERT_HEAD(&shared->devices, device, place);
    weir_lock_release(&shared->devices_lock);
    weir__debug_begin(device, "device", weir__opened_name(device));
    weir__debug_place(device, file, line);
}

// The backend's limits, which every plugin may change.
static void ask_limits(weir_device *device)
{
    for (uint32_t i = device->chain->count; i-- > 0;) {
        const struct weir_link *link = &device->chain->links[i];
        if (link->ops->device_limits)
            link->ops->device_limits(link, device, &device->limits);
    }
}

// `params` may be NULL.
static weir_status open_device(weir_runtime *runtime, const struct weir_device_params *params,
                               weir_device **out_device, const char *file, int line)
{
    size_t index;
    TRY(select_device(runtime, params ? params->select : NULL, &index));
    weir_device *device = allocate_device(runtime, params && params->label ? params->label : "");
    if (!device)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a device object");
    device->index = index;
    weir_status status = weir_device_describe(runtime, index, &device->info);
    if (status < 0)
        goto fail;
    const struct weir_device_setup setup = {.struct_size = sizeof setup,
                                            .index = index,
                                            .label = device->object.label};
    sigset_t before;
    weir_thread_hold_signals(&before);
    WEIR__CREATE_ALONG(status, device->chain, device->chain->count, device->object.data, device,
                       device, link->ops->device_create(link, device, &setup, slot));
    weir_thread_release_signals(&before);
    if (status < 0)
        goto fail;
    device->limits.struct_size = sizeof device->limits;
    device->limits.collectives = 1;
    ask_limits(device);
    device->default_timing = params && params->default_timing;
    status = check_limits(device);
    if (status == WEIR_OK && device->default_timing && device->limits.timing_history == 0)
        status =
            weir__fail(WEIR_ERROR_UNSUPPORTED, "open it without default_timing",
                       "weir_device_open: device '%s' cannot time operations", device->info.name);
    if (status < 0) {
        WEIR__DESTROY_ALONG(device->chain, device->chain->count, device, device);
        goto fail;
    }
    configure_staging(device);
    add_opened(device, file, line);
    *out_device = device;
    return WEIR_OK;

fail:
    weir__error_place(status, device->info.name, NULL, 0);
    free_device(device);
    return status;
}

weir_status weir_device_open_at(weir_runtime *runtime, const struct weir_device_params *params,
                                weir_device **out_device, const char *file, int line)
{
    struct weir_device_params known;
    WEIR_REQUIRE_AT(file, line, NULL, out_device);
    *out_device = NULL;
    WEIR_LOOK_AT(file, line, runtime);
    if (params)
        WEIR_READ_PARAMS(file, line, weir_device_params, params, &known);
    TRY(weir__runtime_enter(&runtime, file, line));
    weir_status status = open_device(runtime, params, out_device, file, line);
    if (status == WEIR_OK)
        return WEIR_OK;
    // The error stays that of the device, also if the runtime's end has one too.
    const struct weir_error cause = *weir_last_error();
    WEIR_IGNORE(weir__runtime_leave(runtime, file, line));
    weir__error_set(&cause);
    return weir__placed(status, file, line);
}

// Waits for queues destroyed while busy and frees everything retired. Work that
// a dead driver never completes counts as complete (see past_frontier()).
static void finish_retired(weir_device *device)
{
    weir_queue *queue;
    while ((queue = weir__queue_next(device, NULL))) {
        if (weir__queue_finish(queue) < 0)
            weir__completion_complete(queue, atomic_load(&queue->sequence));
        weir__registry_unpin(queue);
        weir__device_reap_all(device);
        sched_yield(); // another thread may be inside a call that has the queue pinned
    }
    // The remaining objects are used by queues of other devices, or finalized by another thread.
    while (atomic_load(&device->retired_count) > 0) {
        weir__device_reap_all(device);
        sched_yield();
    }
}

// Makes the remaining descriptors readable, and ends the thread.
static void end_notifier(struct weir__notifier *notifier)
{
    if (!notifier->started)
        return;
    weir_lock_take(&notifier->lock);
    notifier->stop = true;
    pthread_cond_signal(&notifier->changed);
    weir_lock_release(&notifier->lock);
    weir_thread_join(&notifier->thread);
}

weir_status weir_device_close_at(weir_device **device, const char *file, int line)
{
    if (!device || !*device)
        return WEIR_OK;
    WEIR_LOOK_AT(file, line, *device);
    WEIR_REFUSE_HOST_CALL_AT(file, line, NULL, "call it on a thread of the program's");
    weir_device *gone = *device;
    weir_status status = refuse_close(gone);
    if (status < 0)
        return weir__placed(status, file, line);

    *device = NULL;
    weir__staging_trim(gone);
    weir__owned_queues_close(gone);
    finish_retired(gone);
    end_notifier(&gone->notifier);
    WEIR__DESTROY_ALONG(gone->chain, gone->chain->count, device, gone);
    weir_lock_take(&gone->shared->devices_lock);
    LIST_REMOVE(gone, place);
    weir_lock_release(&gone->shared->devices_lock);
    weir__debug_end(gone, file, line);
    weir_runtime *runtime = gone->runtime;
    free_device(gone);
    return weir__runtime_leave(runtime, file, line);
}

const struct weir_limits *weir_device_limits(const weir_device *device)
{
    return WEIR_IS_ALIVE(device) ? &device->limits : NULL;
}

const struct weir_device_info *weir_device_get_info(const weir_device *device)
{
    return WEIR_IS_ALIVE(device) ? &device->info : NULL;
}

weir_runtime *weir_device_runtime(const weir_device *device)
{
    return WEIR_IS_ALIVE(device) ? device->runtime : NULL;
}

weir_status weir_device_trim(weir_device *device)
{
    WEIR_ENTER(device);
    WEIR_REFUSE_HOST_CALL_AT(NULL, 0, NULL, "call it on a thread of the program's");
    weir__staging_trim(device);
    weir__device_reap_all(device);
    return weir__told(
        weir__placed(device->first->ops->device_trim(device->first, device), NULL, 0));
}
