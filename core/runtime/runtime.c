// Opening and closing runtimes: the chain, the transport, and what modules may ask of the host.
#include "core/runtime/runtime.h"

#include <weir/module/check.h>

#include "base/text.h"
#include "core/queue/completion.h"
#include "core/queue/delivery.h"
#include "core/support/memory.h"

// The transport is loaded when the first communicator is created, so that a program without
// communicators needs none.

static weir_status load(weir_runtime *runtime)
{
    struct weir__transport *transport = &runtime->transport;
    struct weir__loaded loaded;
    weir_status status = weir__loader_load(weir__config_comm(runtime->config, "transport")->text,
                                           WEIR_MODULE_TRANSPORT,
                                           weir__config_weir(runtime->config, "module_path")->text,
                                           &weir__host, NULL, &loaded);
    if (status < 0)
        return status;
    if (!transport->settings)
        transport->settings = weir__runtime_take_module(runtime, &loaded.module, true);
    if (!transport->settings)
        return weir_last_error()->status;
    TRY(loaded.transport.open(&weir__host, transport->settings, &transport->state));
    transport->table = loaded.transport;
    transport->ops = &transport->table;
    return WEIR_OK;
}

weir_status weir__transport_get(weir_runtime *runtime, const struct weir_transport_ops **out_ops,
                                void **out_state)
{
    struct weir__transport *transport = &runtime->transport;
    weir_lock_take(&transport->lock);
    weir_status status = transport->ops ? WEIR_OK : load(runtime);
    *out_ops = transport->ops;
    *out_state = transport->state;
    weir_lock_release(&transport->lock);
    return status;
}

const char *weir__transport_name(const weir_runtime *runtime)
{
    const struct weir_transport_ops *ops = runtime->transport.ops;
    return ops->library ? ops->library(runtime->transport.state)
                        : weir__config_comm(runtime->config, "transport")->text;
}

// The findings are the plugin's; nothing is kept here.

static const struct weir_check_extension *plugin_of(const weir_runtime *runtime)
{
    if (weir__is_forked())
        return NULL;
    return weir_runtime_extension(runtime, WEIR_CHECK_EXTENSION);
}

const char *weir_check_kind_name(weir_check_kind kind)
{
    switch (kind) {
#define KIND(name, value, id, meaning) \
    case name:                         \
        return id;
        WEIR_CHECK_KIND_TABLE(KIND)
#undef KIND
    }
    return "unknown";
}

bool weir_check_is_on(const weir_runtime *runtime)
{
    return plugin_of(runtime) != NULL;
}

size_t weir_check_count(const weir_runtime *runtime)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    return plugin ? plugin->count(plugin->user) : 0;
}

size_t weir_check_error_count(const weir_runtime *runtime)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    return plugin ? plugin->error_count(plugin->user) : 0;
}

weir_status weir_check_get_sized(const weir_runtime *runtime, size_t index,
                                 struct weir_check_finding *out_finding, size_t size)
{
    static const struct weir_check_use none = {
        .operation = "", .queue = "", .kernel = "", .file = "", .region = ""};
    const struct weir_check_finding empty = {
        .buffer = "", .first = none, .second = none, .message = "", .remedy = ""};
    const struct weir_check_extension *plugin = plugin_of(runtime);
    WEIR_REQUIRE(NULL, out_finding);
    weir_sized_write(out_finding, size, &empty, sizeof empty); // an older plugin writes less
    if (!plugin)
        return weir__fail(WEIR_ERROR_NOT_FOUND,
                          "add it to `plugins` in [weir] or WEIR_PLUGINS, or run the program with "
                          "`weir check`",
                          "the plugin check is not in the runtime's chain");
    if (!plugin->get(plugin->user, index, out_finding, size))
        return weir__fail(WEIR_ERROR_NOT_FOUND, "ask for weir_check_count() first",
                          "there is no finding %zu, only %zu", index, plugin->count(plugin->user));
    return WEIR_OK;
}

void weir_check_release(weir_runtime *runtime, const void *key)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    if (plugin)
        plugin->release(plugin->user, key);
}

void weir_check_acquire(weir_runtime *runtime, const void *key)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    if (plugin)
        plugin->acquire(plugin->user, key);
}

bool weir_check_describe(const weir_runtime *runtime, const char *file, int line, char *text,
                         size_t size)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    const size_t errors = weir_check_error_count(runtime);
    struct weir_check_finding finding;
    size_t used = 0;
    if (!text || size == 0)
        return !plugin || errors > 0;
    text[0] = '\0';
    if (!plugin) {
        weir_text_append(text, size, &used,
                         "%s:%d: nothing was checked: the plugin check is not in the runtime's "
                         "chain; add it to WEIR_PLUGINS, or run the program with `weir check`\n",
                         file, line);
        return true;
    }
    if (errors == 0)
        return false;
    weir_text_append(text, size, &used, "%s:%d: %zu finding%s of the plugin check\n", file, line,
                     errors, errors == 1 ? "" : "s");
    for (size_t i = 0; plugin->get(plugin->user, i, &finding, sizeof finding); i++)
        if (finding.kind < WEIR_CHECK_FIRST_HINT && !finding.suppression)
            weir_text_append(text, size, &used, "%s: %s\n    to do: %s\n",
                             weir_check_kind_name(finding.kind), finding.message, finding.remedy);
    return true;
}

// Opening a runtime: configuration first, so that a mistake in the file is
// reported before anything is loaded; then plugins; then the backends in the
// order of the list, until one opens and has a device. All attempts are in the
// load report.

#define MODULE_LIMIT (WEIR__CONFIG_LIST_LIMIT + 1)

typedef char name_list[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];

// The chain.

// For a chain that cannot be used; the reason stays the thread's error.
static void drop_chain(weir_runtime *runtime)
{
    const struct weir_error reason = *weir_last_error();
    (void)weir__chain_finish(&runtime->chain);
    weir__error_set(&reason);
}

// What is wrong with a plugin's place in the chain, or with a key that is not set, has the line that
// lists the plugin; what is wrong with a key has that of the key.
static void place_refusal(const weir_runtime *runtime, const struct weir_module *plugin,
                          const struct weir_setting *const *settings)
{
    const char *origin = weir__config_weir(runtime->config, "plugins")->origin;
    const struct weir_error *last = weir_last_error();
    struct weir_error error = *last;
    for (size_t i = 0; i < plugin->key_count; i++)
        if (strncmp(last->message, settings[i]->origin, strlen(settings[i]->origin)) == 0)
            return;
    weir_text_about(error.message, sizeof error.message, origin, "%s", last->message);
    weir__error_set(&error);
}

static weir_status open_chain(weir_runtime *runtime, const struct weir__loaded *modules,
                              uint32_t count, uint32_t *out_failed)
{
    const struct weir_setting *const *settings[MODULE_LIMIT];
    for (uint32_t i = 0; i < count; i++) {
        *out_failed = i;
        settings[i] = weir__runtime_take_module(runtime, &modules[i].module, true);
        if (!settings[i])
            return weir_last_error()->status;
    }
    weir_status status = weir__chain_open(&runtime->chain, modules, count, &weir__delivery_ops,
                                          &weir__host, settings, out_failed);
    if (status == WEIR_ERROR_CONFIG && *out_failed + 1 < count)
        place_refusal(runtime, &modules[*out_failed].module, settings[*out_failed]);
    return status;
}

// Opens the chain with this backend and notes the outcome in the report. A
// backend without a device counts as unusable.
static weir_status try_backend(weir_runtime *runtime, struct weir__loaded *modules,
                               uint32_t plugin_count, const char *name)
{
    uint32_t failed;
    TRY(weir__loader_load(name, WEIR_MODULE_BACKEND,
                          weir__config_weir(runtime->config, "module_path")->text, &weir__host,
                          runtime->report, &modules[plugin_count]));
    weir_status status = open_chain(runtime, modules, plugin_count + 1, &failed);
    if (status < 0) {
        weir__load_report_opened(runtime->report, modules[failed].module.name, NULL, 0,
                                 weir_last_error_text());
        drop_chain(runtime);
        return status;
    }

    const struct weir_link *link = weir__chain_backend(&runtime->chain);
    const struct weir_module *module = &modules[plugin_count].module;
    const size_t devices = link->ops->device_count(link);
    const char *driver = module->driver_version ? module->driver_version(link) : NULL;
    status = devices > 0
                 ? WEIR_OK
                 : weir__fail(WEIR_ERROR_NO_DEVICE, "install a driver, or choose another backend",
                              "the backend '%s' found no device", name);
    weir__load_report_opened(runtime->report, name, driver, (uint32_t)devices,
                             status < 0 ? weir_last_error_text() : NULL);
    if (status < 0)
        drop_chain(runtime);
    return status;
}

static weir_status open_first_backend(weir_runtime *runtime, struct weir__loaded *modules,
                                      uint32_t plugin_count, name_list names, size_t count)
{
    const struct weir_setting *setting = weir__config_weir(runtime->config, "backend");
    char reasons[600] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        weir_status status = try_backend(runtime, modules, plugin_count, names[i]);
        if (status == WEIR_OK)
            return WEIR_OK;
        if (count == 1)
            return status;
        weir_text_append(reasons, sizeof reasons, &used, "%s%s: %s", i ? "; " : "", names[i],
                         weir_last_error()->message);
    }
    return weir__fail(WEIR_ERROR_MODULE, "`weir doctor` shows everything that was tried",
                      "none of the backends '%s' (%s) can be used: %s", setting->text,
                      setting->origin, reasons);
}

static weir_status load_modules(weir_runtime *runtime)
{
    const struct weir_setting *backend = weir__config_weir(runtime->config, "backend");
    const struct weir_setting *plugins = weir__config_weir(runtime->config, "plugins");
    struct weir__loaded modules[MODULE_LIMIT];
    name_list backend_names;
    name_list plugin_names;
    size_t backend_count = 0;
    size_t plugin_count = 0;

    // Both were checked when they were read.
    WEIR_IGNORE(
        weir__config_list(backend, false, backend_names, WEIR__CONFIG_LIST_LIMIT, &backend_count));
    WEIR_IGNORE(
        weir__config_list(plugins, true, plugin_names, WEIR__CONFIG_LIST_LIMIT, &plugin_count));
    for (size_t i = 0; i < plugin_count; i++) {
        TRY(weir__loader_load(plugin_names[i], WEIR_MODULE_PLUGIN,
                              weir__config_weir(runtime->config, "module_path")->text, &weir__host,
                              runtime->report, &modules[i]));
    }
    return open_first_backend(runtime, modules, (uint32_t)plugin_count, backend_names,
                              backend_count);
}

// Opening and closing.

// The runtime's list of open devices is guarded by its lock.

// WEIR_ERROR_INVALID, with their names and lines, while devices are open.
static weir_status refuse_close(struct weir__shared *shared)
{
    char list[WEIR__LEFT_LIST_SIZE], name[64], place[WEIR__PLACE_SIZE];
    struct weir__left left = {.count = 0};
    weir_lock_take(&shared->devices_lock);
    for (const weir_device *device = LIST_FIRST(&shared->devices); device;
         device = LIST_NEXT(device, place)) {
        weir_text_escape(name, sizeof name, weir__opened_name(device), "");
        weir__place_text(place, " (opened at ", device->file, device->line, ")");
        weir__left_add(&left, "'%s'%s", name, place);
    }
    weir_lock_release(&shared->devices_lock);
    const uint32_t count = left.count;
    if (count == 0)
        return WEIR_OK;
    weir__left_list(&left, "weir_close: the device ", list);
    return weir__fail(WEIR_ERROR_INVALID, "call weir_device_close() first",
                      "weir_close: %u device%s of the runtime %s still open: %s", (unsigned)count,
                      count == 1 ? "" : "s", count == 1 ? "is" : "are", list);
}

static weir_status free_runtime(weir_runtime *runtime)
{
    if (runtime->transport.ops)
        runtime->transport.ops->close(runtime->transport.state);
    weir_lock_finish(&runtime->transport.lock);
    const weir_status status = weir__chain_finish(&runtime->chain);
    weir__config_destroy(&runtime->config);
    weir_lock_finish(&runtime->shared.devices_lock);
    weir_lock_finish(&runtime->shared.walk_lock);
    weir_load_report_destroy(&runtime->report);
    if (!weir__debug_keep(runtime, runtime))
        weir__release(runtime);
    return status;
}

static weir_status open_runtime(weir_runtime *runtime, const struct weir_open_params *params)
{
    weir_status status = weir__config_load(params, &runtime->config);
    if (status < 0)
        weir__config_print_anyway();
    else
        weir__config_print(runtime->config);
    if (status == WEIR_OK)
        status = weir__runtime_take_sections(runtime, params);
    if (status < 0)
        return status;
    sigset_t before;
    weir_thread_hold_signals(&before);
    status = load_modules(runtime);
    weir_thread_release_signals(&before);
    return status;
}

// Calls look at the word that is set: core/support/debug.h.
static void in_child(void)
{
    atomic_fetch_or(&weir__unusual, WEIR__UNUSUAL_FORKED);
}

static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static weir_status open_with(const struct weir_open_params *params, weir_runtime **out_runtime)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    if (params->out_report)
        *params->out_report = NULL;
    pthread_once(&watched, watch_fork);

    // Backends that failed have set an error detail, but this call has not
    // failed.
    const struct weir_error before = *weir_last_error();
    weir_runtime *runtime = weir__allocate(sizeof *runtime);
    if (!runtime)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a runtime");
    weir_lock_init(&runtime->shared.walk_lock, &weir__locks[WEIR__LOCK_WALK]);
    weir_lock_init(&runtime->shared.devices_lock, &weir__locks[WEIR__LOCK_DEVICES]);
    weir_lock_init(&runtime->transport.lock, &weir__locks[WEIR__LOCK_TRANSPORT]);
    runtime->report = weir__load_report_create(params->out_report ? 2 : 1);
    weir_status status = open_runtime(runtime, params);
    weir__load_report_finish(runtime->report,
                             runtime->config ? weir__config_weir(runtime->config, "backend")->origin
                                             : NULL,
                             status < 0 ? weir_last_error()->remedy : NULL);
    if (params->out_report)
        *params->out_report = runtime->report;
    if (status < 0) {
        (void)free_runtime(runtime);
        return status;
    }
    weir__error_set(&before);
    weir__debug_opened(weir__config_debug(runtime->config));
    weir__debug_begin(runtime, "runtime", weir__chain_backend(&runtime->chain)->name);
    *out_runtime = runtime;
    return WEIR_OK;
}

weir_status weir_open_at(const struct weir_open_params *params, weir_runtime **out_runtime,
                         const char *file, int line)
{
    struct weir_open_params known;
    static const struct weir_open_params defaults = {.struct_size = sizeof defaults};
    WEIR_REFUSE_FORK_AT(file, line);
    WEIR_REQUIRE_AT(file, line, NULL, out_runtime);
    *out_runtime = NULL;
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(file, line, weir_open_params, params, &known);
    WEIR_REQUIRE_AT(file, line, NULL, params->sections || params->section_count == 0);
    const weir_status status = open_with(params, out_runtime);
    if (status == WEIR_OK)
        weir__debug_place(*out_runtime, file, line);
    return weir__placed(status, file, line);
}

weir_status weir_close_at(weir_runtime **runtime, const char *file, int line)
{
    if (!runtime || !*runtime)
        return WEIR_OK;
    WEIR_LOOK_AT(file, line, *runtime);
    weir_status status = refuse_close(&(*runtime)->shared);
    if (status < 0)
        return weir__placed(status, file, line);
    weir_runtime *gone = *runtime;
    *runtime = NULL;
    weir__debug_end(gone, file, line);
    weir__completion_forget(gone);
    return weir__placed(free_runtime(gone), file, line);
}

// The default runtime.

static struct weir_lock default_lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_DEFAULT]);
static weir_runtime *default_runtime; // under the lock; NULL: no device of it is open
static size_t default_devices;        // open, or about to be

weir_status weir__runtime_enter(weir_runtime **runtime, const char *file, int line)
{
    weir_status status = WEIR_OK;
    WEIR_REFUSE_FORK_OF("weir_device_open", file, line);
    weir_lock_take(&default_lock);
    if (!*runtime && !default_runtime)
        status = weir_open_at(NULL, &default_runtime, file, line);
    if (!*runtime)
        *runtime = default_runtime;
    default_devices += *runtime && *runtime == default_runtime;
    weir_lock_release(&default_lock);
    return status;
}

weir_status weir__runtime_leave(weir_runtime *runtime, const char *file, int line)
{
    weir_status status = WEIR_OK;
    weir_lock_take(&default_lock);
    if (runtime == default_runtime && --default_devices == 0)
        status = weir_close_at(&default_runtime, file, line);
    weir_lock_release(&default_lock);
    return status;
}

const char *weir_runtime_backend(const weir_runtime *runtime)
{
    return WEIR_IS_ALIVE(runtime) ? weir__chain_backend(&runtime->chain)->name : "";
}

const void *weir_runtime_extension(const weir_runtime *runtime, const char *name)
{
    if (!WEIR_IS_ALIVE(runtime) || !name)
        return NULL;
    const struct weir_link *first = weir__chain_first(&runtime->chain);
    return first->ops->extension(first, name);
}

const struct weir_setting *weir_runtime_setting(const weir_runtime *runtime, const char *section,
                                                const char *key)
{
    if (!WEIR_IS_ALIVE(runtime) || !section || !key)
        return NULL;
    for (size_t i = 0; i < runtime->section_count; i++) {
        const struct weir_section *table = &runtime->sections[i].section;
        if (strcmp(table->name, section) != 0)
            continue;
        for (uint32_t k = 0; k < table->key_count; k++)
            if (strcmp(weir_key_at(table->keys, table->key_size, k)->name, key) == 0)
                return runtime->sections[i].settings[k];
    }
    return NULL;
}

const weir_load_report *weir_runtime_report(const weir_runtime *runtime)
{
    return WEIR_IS_ALIVE(runtime) ? runtime->report : NULL;
}

// The services of core for modules.

const struct weir_host weir__host = {
    .struct_size = sizeof(struct weir_host),
    .log = weir__log,
    .error = weir__error_take,
    .allocate = weir__allocate,
    .release = weir__release,
    .count_driver_object = weir__count_driver_object,
    .fail = weir__delivery_lose,
    .in_host_call = weir__in_host_call,
};

// Regions only exist for plugins that use them, so nothing is stored here.

// Also in a child process after a fork, where nothing may be used.
static bool is_wanted(const weir_runtime *runtime)
{
    return WEIR_IS_ALIVE(runtime) && runtime->chain.regions && !weir__is_forked();
}

void weir_region_push(weir_runtime *runtime, const char *name, uint64_t number)
{
    if (!is_wanted(runtime))
        return;
    const struct weir_link *first = weir__chain_first(&runtime->chain);
    first->ops->region(first, name ? name : "", number);
}

void weir_region_pop(weir_runtime *runtime)
{
    if (!is_wanted(runtime))
        return;
    const struct weir_link *first = weir__chain_first(&runtime->chain);
    first->ops->region(first, NULL, WEIR_NO_NUMBER);
}
