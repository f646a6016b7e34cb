// <weir/inspect.h>: a configuration and the modules, without an open chain.

#include <weir/inspect.h>

#include "core/runtime/runtime.h"

// The sections of a runtime's configuration: the program's, those of modules that are loaded, and the check
// of all others.

static const char *setting_text(const weir_runtime *runtime, const char *key)
{
    return weir__config_weir(runtime->config, key)->text;
}

const struct weir_setting *const *weir__runtime_take_module(const weir_runtime *runtime,
                                                            const struct weir_module *module,
                                                            bool replaces)
{
    const struct weir_section section = {
        .struct_size = sizeof section,
        .name = module->name,
        .keys = module->keys,
        .key_count = module->key_count,
        .key_size = module->key_size,
    };
    return weir__config_section(runtime->config, &section, replaces);
}

static weir_status check_keys(const struct weir_section *section)
{
    const size_t least = WEIR_SIZED_UP_TO(struct weir_key, help);
    struct weir_sized_refusal refusal;
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
        if (!weir_sized_read_item("weir_open", "weir_key",
                                  weir_key_at(section->keys, section->key_size, i),
                                  section->key_size, &known, sizeof known, &refusal))
            return weir__fail(WEIR_ERROR_INVALID, refusal.remedy, "%s", refusal.message);
    return WEIR_OK;
}

static weir_status take_declared(weir_runtime *runtime, const struct weir_open_params *params)
{
    runtime->sections =
        weir__config_keep(runtime->config, params->section_count * sizeof *runtime->sections);
    if (!runtime->sections)
        return WEIR_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < params->section_count; i++) {
        struct weir__declared *declared = &runtime->sections[i];
        if (!params->sections[i])
            return weir__fail(WEIR_ERROR_INVALID, "correct section_count",
                              "weir_open: one of params.sections is NULL");
        if (!weir__params_read(NULL, 0, "weir_open", "weir_section", params->sections[i],
                               &declared->section, sizeof declared->section))
            return WEIR_ERROR_INVALID;
        const weir_status status = check_keys(&declared->section);
        if (status < 0)
            return status;
        declared->settings = weir__config_section(runtime->config, &declared->section, true);
        if (!declared->settings)
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
    struct weir__loaded loaded;
    const char *path = setting_text(runtime, "module_path");
    char message[256];

    *out_known = true;
    weir_status status = weir__loader_load(name, 0, path, &weir__host, NULL, &loaded);
    if (status == WEIR_OK)
        return weir__runtime_take_module(runtime, &loaded.module, false)
                   ? WEIR_OK
                   : weir_last_error()->status;
    if (status != WEIR_ERROR_NOT_FOUND)
        return WEIR_OK; // the loader reports it when the module is requested
    *out_known = weir__config_names(runtime->config, name);
    if (!*out_known)
        return WEIR_OK;
    snprintf(message, sizeof message,
             "the section [%s] was not checked: there is no module of that name in %s", name,
             *path ? path : "the default directories");
    weir__log(WEIR_LOG_WARNING, "core", message);
    return WEIR_OK;
}

// Whether a section of that name is a module's.
static bool is_of_module(const weir_runtime *runtime, const char *section)
{
    for (size_t i = 0; i < runtime->section_count; i++)
        if (strcmp(runtime->sections[i].section.name, section) == 0)
            return false;
    return strcmp(section, "weir") != 0 && strcmp(section, "comm") != 0;
}

static weir_status check_sections(const weir_runtime *runtime)
{
    const char *known[WEIR__CONFIG_SECTION_LIMIT + 64 + WEIR__LOADER_NAMES] = {"weir", "comm"};
    struct weir__module_name modules[WEIR__LOADER_NAMES];
    size_t count = 2;
    bool all = true;
    const char *name;

    for (size_t i = 0; i < runtime->section_count && i < 64; i++)
        known[count++] = runtime->sections[i].section.name;
    for (size_t i = 0; (name = weir__config_section_name(runtime->config, i)); i++) {
        bool is_known = false;
        if (!is_of_module(runtime, name))
            continue;
        TRY(check_module_section(runtime, name, &is_known));
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

weir_status weir__runtime_take_sections(weir_runtime *runtime,
                                        const struct weir_open_params *params)
{
    const weir_status status = take_declared(runtime, params);
    return status == WEIR_OK ? check_sections(runtime) : status;
}

struct inspection {
    weir_runtime *runtime; // of which only the configuration and the program's sections are there
    weir_inspect_function function;
    void *user;
    bool ended; // by the function
    char listed[2 * WEIR__CONFIG_LIST_LIMIT]
               [WEIR__NAME_SIZE]; // plugins and backends, shown already
    size_t listed_count;
};

static void tell(struct inspection *it, const char *section, const struct weir_setting *setting)
{
    it->ended = it->ended || !it->function(it->user, section, setting);
}

static void tell_settings(struct inspection *it, const char *section, uint32_t count,
                          const struct weir_setting *const *settings)
{
    for (uint32_t i = 0; i < count; i++)
        tell(it, section, settings[i]);
}

static weir_status tell_module(struct inspection *it, const char *name)
{
    // A module that is refused has set an error detail, but this call has not failed.
    const struct weir_error before = *weir_last_error();
    struct weir__loaded loaded;
    if (it->ended)
        return WEIR_OK;
    const weir_status status = weir__loader_load(name, 0, setting_text(it->runtime, "module_path"),
                                                 &weir__host, NULL, &loaded);
    if (status == WEIR_ERROR_NOT_FOUND)
        tell(it, name, NULL);
    if (status < 0) {
        weir__error_set(&before);
        return WEIR_OK;
    }
    const struct weir_setting *const *settings =
        weir__runtime_take_module(it->runtime, &loaded.module,
                                  weir__config_names(it->runtime->config, name));
    if (!settings)
        return weir_last_error()->status;
    tell_settings(it, name, loaded.module.key_count, settings);
    return WEIR_OK;
}

static bool is_listed(const struct inspection *it, const char *name)
{
    for (size_t i = 0; i < it->listed_count; i++)
        if (strcmp(it->listed[i], name) == 0)
            return true;
    return false;
}

static weir_status tell_list(struct inspection *it, const char *key)
{
    char names[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];
    size_t count = 0;
    weir_status status = weir__config_list(weir__config_weir(it->runtime->config, key), true, names,
                                           WEIR__CONFIG_LIST_LIMIT, &count);
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        if (!is_listed(it, names[i])) {
            memcpy(it->listed[it->listed_count++], names[i], sizeof names[i]);
            status = tell_module(it, names[i]);
        }
    return status;
}

static weir_status tell_sections(struct inspection *it, const struct weir_open_params *params)
{
    weir_runtime *runtime = it->runtime;
    const char *name;
    TRY(weir__runtime_take_sections(runtime, params));
    for (size_t i = 0; i < runtime->section_count; i++) {
        const struct weir__declared *declared = &runtime->sections[i];
        tell_settings(it, declared->section.name, declared->section.key_count, declared->settings);
    }
    weir_status status = tell_list(it, "plugins");
    if (status == WEIR_OK)
        status = tell_list(it, "backend");
    for (size_t i = 0; status == WEIR_OK && (name = weir__config_section_name(runtime->config, i));
         i++)
        if (is_of_module(runtime, name) && !is_listed(it, name))
            status = tell_module(it, name);
    return status;
}

weir_status weir_inspect_settings(const struct weir_open_params *params,
                                  weir_inspect_function function, void *user)
{
    static const struct weir_open_params defaults = {.struct_size = sizeof defaults};
    struct weir_open_params known;
    weir_runtime runtime = {0};
    struct inspection inspection = {.runtime = &runtime, .function = function, .user = user};
    WEIR_REFUSE_FORK_AT(NULL, 0);
    WEIR_REQUIRE(NULL, function);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(NULL, 0, weir_open_params, params, &known);
    WEIR_REQUIRE(NULL, params->sections || params->section_count == 0);
    weir_status status = weir__config_load(params, &runtime.config);
    if (status == WEIR_OK) {
        tell_settings(&inspection, "weir", weir__config_weir_table.key_count, runtime.config->weir);
        tell_settings(&inspection, "comm", weir__config_comm_table.key_count, runtime.config->comm);
    }
    if (status == WEIR_OK && !inspection.ended)
        status = tell_sections(&inspection, params);
    weir__config_destroy(&runtime.config);
    return status;
}

weir_status weir_inspect_modules(const char *module_path, weir_load_report **out_report)
{
    WEIR_REFUSE_FORK_AT(NULL, 0);
    WEIR_REQUIRE(NULL, out_report);
    *out_report = weir__load_report_create(1);
    if (!*out_report)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a report");
    weir__loader_try_all(module_path, &weir__host, *out_report);
    weir__load_report_finish(*out_report, NULL, NULL);
    return WEIR_OK;
}

weir_status weir_inspect_transport(weir_runtime *runtime, const char **out_library)
{
    const struct weir_transport_ops *ops;
    void *state;
    WEIR_REQUIRE(NULL, out_library);
    *out_library = "";
    WEIR_ENTER(runtime);
    const weir_status status = weir__transport_get(runtime, &ops, &state);
    if (status == WEIR_OK && ops->library)
        *out_library = ops->library(state);
    return status;
}

const struct weir_link *weir_inspect_backend(const weir_runtime *runtime)
{
    return WEIR_IS_ALIVE(runtime) ? weir__chain_backend(&runtime->chain) : NULL;
}
