// Opening a runtime: configuration first, so that a mistake in the file is
// reported before anything is loaded; then plugins; then the backends in the
// order of the list, until one opens and has a device. All attempts are in the
// load report.
#include "core/runtime/runtime.h"

#include <stdio.h>
#include <string.h>

#include "base/barrier.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/module/check.h"
#include "core/module/load_report.h"
#include "core/object/opened.h"
#include "core/queue/completion.h"
#include "core/queue/delivery.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

#define MODULE_LIMIT (WEIR__CONFIG_LIST_LIMIT + 1)

typedef char name_list[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];

static const char *setting_text(const weir_runtime *runtime, const char *key)
{
    return weir__config_weir(runtime->config, key)->text;
}

static void log_unchecked(const char *section, const char *module_path)
{
    char message[256];
    snprintf(message, sizeof message,
             "the section [%s] was not checked: there is no module of that name in %s", section,
             *module_path ? module_path : "the default directories");
    weir__log(WEIR_LOG_WARNING, "core", message);
}

// Sections of the configuration.

// A setting as it is handed out.
struct cell {
    WEIR_SIZED_CELL(struct weir_setting, setting, WEIR_SIZED_ROOM);
};

// Settings are handed out one by one, so that they can grow: the list points into the cells
// after it.
static const struct weir_setting *const *list_settings(const struct weir_setting *settings,
                                                       size_t count)
{
    const struct weir_setting **list =
        weir__allocate((count + 1) * (sizeof(struct cell) + sizeof *list));
    struct cell *cells = (struct cell *)(void *)(list + count + 1);
    for (size_t i = 0; list && i < count; i++) {
        cells[i].setting = settings[i];
        list[i] = &cells[i].setting;
    }
    return list;
}

typedef weir_status (*section_reader)(struct weir__config *config,
                                      const struct weir_section *section,
                                      struct weir_setting *settings);

// Of the program, or of a module that is loaded.
static weir_status read_replaced(struct weir__config *config, const struct weir_section *section,
                                 struct weir_setting *settings)
{
    const weir_status status = weir__config_section(config, section, settings);
    return status < 0 ? status : weir__config_replace(config, section, settings);
}

// Of a module that is not.
static weir_status read_file(struct weir__config *config, const struct weir_section *section,
                             struct weir_setting *settings)
{
    return weir__config_section(config, section, settings);
}

static const struct weir_setting *const *take_section(const weir_runtime *runtime,
                                                      const struct weir_section *section,
                                                      section_reader read)
{
    struct weir_setting *settings = weir__allocate((section->key_count + 1) * sizeof *settings);
    weir_status status = settings ? read(runtime->config, section, settings) : WEIR_OK;
    const struct weir_setting *const *list =
        settings && status == WEIR_OK ? list_settings(settings, section->key_count) : NULL;
    weir__release(settings);
    if (!list && status == WEIR_OK)
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the section [%s]",
                     section->name);
    return list;
}

const struct weir_setting *const *weir__runtime_take_module(const weir_runtime *runtime,
                                                            const struct weir_module *module)
{
    const struct weir_section section = weir__module_section(module);
    return take_section(runtime, &section, read_replaced);
}

void weir__runtime_release_section(const struct weir_setting *const *settings)
{
    weir__release((void *)(uintptr_t)settings);
}

static weir_status check_keys(const struct weir_section *section)
{
    const size_t least = WEIR_SIZED_UP_TO(struct weir_key, help);
    struct weir_key known;

    if (section->key_count > 0 && !section->keys)
        return weir__fail(WEIR_ERROR_INVALID, "correct key_count",
                          "weir_open: the section [%s] has no table of keys", section->name);
    if (section->key_count > 0 &&
        (section->key_size < least || section->key_size > WEIR_SIZED_BYTES_MAX))
        return weir__fail(WEIR_ERROR_INVALID, "set key_size to sizeof(struct weir_key)",
                          "weir_open: key_size of the section [%s] is %u, and a key has %zu to %d "
                          "bytes",
                          section->name, (unsigned)section->key_size, least, WEIR_SIZED_BYTES_MAX);
    for (size_t i = 0; i < section->key_count; i++)
        if (!weir__params_read_item("weir_open", "weir_key",
                                    weir_key_at(section->keys, section->key_size, i),
                                    section->key_size, &known, sizeof known))
            return WEIR_ERROR_INVALID;
    return WEIR_OK;
}

// Copies what this library knows of a section that the program declares.
static weir_status read_section(const struct weir_section *given, struct weir_section *section)
{
    if (!given)
        return weir__fail(WEIR_ERROR_INVALID, "correct section_count",
                          "weir_open: one of params.sections is NULL");
    if (!weir__params_read("weir_open", "weir_section", given, section, sizeof *section))
        return WEIR_ERROR_INVALID;
    return check_keys(section);
}

static weir_status take_program_sections(weir_runtime *runtime,
                                         const struct weir_open_params *params)
{
    runtime->sections = weir__allocate((params->section_count + 1) * sizeof *runtime->sections);
    runtime->section_settings =
        weir__allocate((params->section_count + 1) * sizeof *runtime->section_settings);
    if (!runtime->sections || !runtime->section_settings)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the configuration");
    for (size_t i = 0; i < params->section_count; i++) {
        weir_status status = read_section(params->sections[i], &runtime->sections[i]);
        if (status < 0)
            return status;
        runtime->section_settings[i] = take_section(runtime, &runtime->sections[i], read_replaced);
        if (!runtime->section_settings[i])
            return weir_last_error()->status;
        runtime->section_count++;
    }
    return WEIR_OK;
}

// Checks a section that no table of the program declares: it should be a module's, used or
// not. A section of one that the configuration names is legal where it is not installed, and
// cannot be checked.
static weir_status check_module_section(const weir_runtime *runtime, const char *name,
                                        bool *out_known)
{
    struct weir_section section;
    const char *path = setting_text(runtime, "module_path");

    *out_known = true;
    weir_status status = weir__loader_keys(name, path, &weir__host, &section);
    if (status == WEIR_OK) {
        const struct weir_setting *const *settings = take_section(runtime, &section, read_file);
        weir__runtime_release_section(settings);
        return settings ? WEIR_OK : weir_last_error()->status;
    }
    if (status != WEIR_ERROR_NOT_FOUND)
        return WEIR_OK; // the loader reports it when the module is requested
    *out_known = weir__config_names(runtime->config, name);
    if (*out_known)
        log_unchecked(name, path);
    return WEIR_OK;
}

static bool program_declares(const weir_runtime *runtime, const char *name)
{
    const struct weir_section *sections = runtime->sections;
    for (size_t i = 0; sections && i < runtime->section_count; i++)
        if (strcmp(sections[i].name, name) == 0)
            return true;
    return false;
}

static weir_status check_sections(const weir_runtime *runtime)
{
    const char *known[WEIR__CONFIG_SECTION_LIMIT + 64 + WEIR__LOADER_NAMES] = {"weir", "comm"};
    struct weir__module_name modules[WEIR__LOADER_NAMES];
    size_t count = 2;
    bool all = true;
    const char *name;

    const struct weir_section *sections = runtime->sections;
    for (size_t i = 0; sections && i < runtime->section_count && i < 64; i++)
        known[count++] = sections[i].name;
    for (size_t i = 0; (name = weir__config_section_name(runtime->config, i)); i++) {
        bool is_known = false;
        if (strcmp(name, "weir") == 0 || strcmp(name, "comm") == 0 ||
            program_declares(runtime, name))
            continue;
        weir_status status = check_module_section(runtime, name, &is_known);
        if (status < 0)
            return status;
        all = all && is_known;
        if (is_known)
            known[count++] = name;
    }
    if (all)
        return WEIR_OK;
    const size_t found =
        weir__loader_names(setting_text(runtime, "module_path"), modules, WEIR__LOADER_NAMES);
    for (size_t i = 0; i < found; i++)
        known[count++] = modules[i].text;
    return weir__config_check_sections(runtime->config, known, count);
}

// The chain.

static weir_status close_chain(weir_runtime *runtime)
{
    weir_status status = weir__chain_finish(&runtime->chain);
    for (uint32_t i = 0; i < runtime->module_count; i++)
        weir__runtime_release_section(runtime->settings[i]);
    weir__release(runtime->settings);
    runtime->settings = NULL;
    runtime->module_count = 0;
    return status;
}

// For a chain that cannot be used; the reason stays the thread's error.
static void drop_chain(weir_runtime *runtime)
{
    const struct weir_error reason = *weir_last_error();
    (void)close_chain(runtime);
    weir__error_set(&reason);
}

static weir_status open_chain(weir_runtime *runtime, const struct weir__loaded *modules,
                              uint32_t count, uint32_t *out_failed)
{
    *out_failed = count - 1;
    runtime->settings = weir__allocate(count * sizeof *runtime->settings);
    if (!runtime->settings)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the configuration");
    for (uint32_t i = 0; i < count; i++) {
        *out_failed = i;
        runtime->settings[i] = weir__runtime_take_module(runtime, modules[i].module);
        if (!runtime->settings[i])
            return weir_last_error()->status;
        runtime->module_count++;
    }
    weir_status status =
        weir__chain_build(&runtime->chain, modules, count, &weir__delivery_ops, &weir__host);
    if (status < 0)
        return status;
    return weir__chain_open(&runtime->chain, runtime->settings, out_failed);
}

// Opens the chain with this backend and notes the outcome in the report. A
// backend without a device counts as unusable.
static weir_status try_backend(weir_runtime *runtime, struct weir__loaded *modules,
                               uint32_t plugin_count, const char *name)
{
    uint32_t failed;
    weir_status status =
        weir__loader_load(name, WEIR_MODULE_BACKEND, setting_text(runtime, "module_path"),
                          &weir__host, runtime->report, &modules[plugin_count]);
    if (status < 0)
        return status;
    status = open_chain(runtime, modules, plugin_count + 1, &failed);
    if (status < 0) {
        weir__load_report_refuse(runtime->report, modules[failed].module->name,
                                 weir_last_error_text());
        drop_chain(runtime);
        return status;
    }

    const struct weir_link *link = weir__chain_backend(&runtime->chain);
    const struct weir_module *module = modules[plugin_count].module;
    size_t devices = link->ops->device_count(link);
    weir__load_report_set_driver(runtime->report,
                                 module->driver_version ? module->driver_version(link) : NULL,
                                 (uint32_t)devices);
    if (devices > 0)
        return WEIR_OK;
    status = weir__fail(WEIR_ERROR_NO_DEVICE, "install a driver, or choose another backend",
                        "the backend '%s' found no device", name);
    weir__load_report_refuse(runtime->report, name, weir_last_error_text());
    drop_chain(runtime);
    return status;
}

// All listed backends failed: the message has the reason of each.
static weir_status refuse_backends(const weir_runtime *runtime, const char *reasons)
{
    const struct weir_setting *setting = weir__config_weir(runtime->config, "backend");
    return weir__fail(WEIR_ERROR_MODULE, "`weir doctor` shows everything that was tried",
                      "none of the backends '%s' (%s) can be used: %s", setting->text,
                      setting->origin, reasons);
}

static weir_status open_first_backend(weir_runtime *runtime, struct weir__loaded *modules,
                                      uint32_t plugin_count, name_list names, size_t count)
{
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
    return refuse_backends(runtime, reasons);
}

static weir_status load_modules(weir_runtime *runtime)
{
    const struct weir_setting *backend = weir__config_weir(runtime->config, "backend");
    const struct weir_setting *plugins = weir__config_weir(runtime->config, "plugins");
    struct weir__loaded modules[MODULE_LIMIT];
    name_list backend_names;
    name_list plugin_names;
    size_t backend_count;
    size_t plugin_count;

    weir_status status =
        weir__config_list(backend, false, backend_names, WEIR__CONFIG_LIST_LIMIT, &backend_count);
    if (status < 0)
        return status;
    status = weir__config_list(plugins, true, plugin_names, WEIR__CONFIG_LIST_LIMIT, &plugin_count);
    if (status < 0)
        return status;
    weir__load_report_set_origin(runtime->report, backend->origin);
    for (size_t i = 0; i < plugin_count; i++) {
        status = weir__loader_load(plugin_names[i], WEIR_MODULE_PLUGIN,
                                   setting_text(runtime, "module_path"), &weir__host,
                                   runtime->report, &modules[i]);
        if (status < 0)
            return status;
    }
    return open_first_backend(runtime, modules, (uint32_t)plugin_count, backend_names,
                              backend_count);
}

// Opening and closing.

static weir_status free_runtime(weir_runtime *runtime)
{
    weir__transport_finish(runtime);
    weir_status status = close_chain(runtime);
    for (size_t i = 0; i < runtime->section_count; i++)
        weir__runtime_release_section(runtime->section_settings[i]);
    weir__release(runtime->section_settings);
    weir__release(runtime->sections);
    weir__config_destroy(&runtime->config);
    weir__shared_finish(&runtime->shared);
    weir_load_report_destroy(&runtime->report);
    weir__release(runtime);
    return status;
}

static weir_status open_runtime(weir_runtime *runtime, const struct weir_open_params *params)
{
    weir_status status = weir__config_load(params, &runtime->config);
    if (status < 0)
        return status;
    status = take_program_sections(runtime, params);
    if (status < 0)
        return status;
    status = check_sections(runtime);
    if (status < 0)
        return status;
    return load_modules(runtime);
}

weir_status(weir_open)(const struct weir_open_params *params, weir_runtime **out_runtime)
{
    struct weir_open_params known;
    static const struct weir_open_params defaults = {.struct_size = sizeof defaults};
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_runtime);
    *out_runtime = NULL;
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(weir_open_params, params, &known);
    WEIR_REQUIRE(NULL, params->sections || params->section_count == 0);
    if (params->out_report)
        *params->out_report = NULL;
    weir__watch_fork();
    // The system takes 10 to 25 ms for it in a process that has threads, and drivers start some.
    weir_barrier_init();

    // Backends that failed have set an error detail, but this call has not
    // failed.
    const struct weir_error before = *weir_last_error();
    weir_runtime *runtime = weir__allocate(sizeof *runtime);
    if (!runtime)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a runtime");
    weir__shared_init(&runtime->shared);
    weir_lock_init(&runtime->transport.lock, &weir__locks[WEIR__LOCK_TRANSPORT]);
    runtime->report = weir__load_report_create();
    weir_status status = open_runtime(runtime, params);
    if (status < 0)
        weir__load_report_set_remedy(runtime->report, weir_last_error()->remedy);
    if (params->out_report)
        *params->out_report = weir__load_report_retain(runtime->report);
    if (status < 0) {
        (void)free_runtime(runtime);
        return status;
    }
    weir__error_set(&before);
    *out_runtime = runtime;
    return WEIR_OK;
}

weir_status weir_open_at(const struct weir_open_params *params, weir_runtime **out_runtime,
                         const char *file, int line)
{
    return weir__placed((weir_open)(params, out_runtime), file, line);
}

weir_status(weir_close)(weir_runtime **runtime)
{
    if (!runtime || !*runtime)
        return WEIR_OK;
    WEIR_REFUSE_FORK();
    weir_status status = weir__opened_refuse(&(*runtime)->shared);
    if (status < 0)
        return status;
    weir_runtime *gone = *runtime;
    *runtime = NULL;
    weir__completion_forget(gone);
    return free_runtime(gone);
}

weir_status weir_close_at(weir_runtime **runtime, const char *file, int line)
{
    return weir__placed((weir_close)(runtime), file, line);
}

const char *weir_runtime_backend(const weir_runtime *runtime)
{
    return runtime ? weir__chain_backend(&runtime->chain)->name : "";
}

const void *weir_runtime_extension(const weir_runtime *runtime, const char *name)
{
    if (!runtime || !name)
        return NULL;
    const struct weir_link *first = weir__chain_first(&runtime->chain);
    return first->ops->extension(first, name);
}

const struct weir_setting *weir_runtime_setting(const weir_runtime *runtime, const char *section,
                                                const char *key)
{
    if (!runtime || !section || !key)
        return NULL;
    for (size_t i = 0; i < runtime->section_count; i++) {
        const struct weir_section *table = &runtime->sections[i];
        if (strcmp(table->name, section) != 0)
            continue;
        for (uint32_t k = 0; k < table->key_count; k++)
            if (strcmp(weir_key_at(table->keys, table->key_size, k)->name, key) == 0)
                return runtime->section_settings[i][k];
    }
    return NULL;
}

const weir_load_report *weir_runtime_report(const weir_runtime *runtime)
{
    return runtime ? runtime->report : NULL;
}
