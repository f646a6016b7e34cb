// <weir/inspect.h>: a configuration and the modules, without an open chain.
#include <weir/inspect.h>

#include <string.h>

#include "core/module/load_report.h"
#include "core/module/loader.h"
#include "core/runtime/runtime.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/thread.h"

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

typedef const struct weir_setting *(*value_function)(const struct weir__config *config,
                                                     const char *key);

// A section of the library's own.
static void tell_own(struct inspection *it, const struct weir_section *table, value_function value)
{
    for (uint32_t i = 0; i < table->key_count; i++)
        tell(it, table->name, value(it->runtime->config, table->keys[i].name));
}

static void tell_settings(struct inspection *it, const struct weir_section *section,
                          const struct weir_setting *const *settings)
{
    for (uint32_t i = 0; i < section->key_count; i++)
        tell(it, section->name, settings[i]);
}

static weir_status tell_module(struct inspection *it, const char *name)
{
    // A module that is refused has set an error detail, but this call has not failed.
    const struct weir_error before = *weir_last_error();
    struct weir_section section;
    if (it->ended)
        return WEIR_OK;
    const weir_status status =
        weir__loader_keys(name, weir__config_weir(it->runtime->config, "module_path")->text,
                          &weir__host, &section);
    if (status == WEIR_ERROR_NOT_FOUND)
        tell(it, name, NULL);
    if (status < 0) {
        weir__error_set(&before);
        return WEIR_OK;
    }
    const struct weir_setting *const *settings = weir__runtime_take_section(it->runtime, &section);
    if (!settings)
        return weir_last_error()->status;
    tell_settings(it, &section, settings);
    weir__runtime_release_section(settings);
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
    weir_status status = weir__runtime_take_sections(runtime, params);
    if (status < 0)
        return status;
    for (size_t i = 0; i < runtime->section_count; i++)
        tell_settings(it, &runtime->sections[i], runtime->section_settings[i]);
    status = tell_list(it, "plugins");
    if (status == WEIR_OK)
        status = tell_list(it, "backend");
    for (size_t i = 0; status == WEIR_OK && (name = weir__config_section_name(runtime->config, i));
         i++)
        if (weir__runtime_is_of_module(runtime, name) && !is_listed(it, name))
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
        tell_own(&inspection, &weir__config_weir_table, weir__config_weir);
        tell_own(&inspection, &weir__config_comm_table, weir__config_comm);
    }
    if (status == WEIR_OK && !inspection.ended)
        status = tell_sections(&inspection, params);
    weir__runtime_release_configuration(&runtime);
    return status;
}

weir_status weir_inspect_modules(const char *module_path, weir_load_report **out_report)
{
    WEIR_REFUSE_FORK_AT(NULL, 0);
    WEIR_REQUIRE(NULL, out_report);
    *out_report = weir__load_report_create();
    if (!*out_report)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a report");
    weir__loader_try_all(module_path, &weir__host, *out_report);
    return WEIR_OK;
}

weir_status weir_inspect_transport(weir_runtime *runtime, const char **out_library)
{
    const struct weir_transport_ops *ops;
    void *state;
    WEIR_REQUIRE(NULL, out_library);
    *out_library = "";
    WEIR_ENTER_AT(NULL, 0, runtime);
    const weir_status status = weir__transport_get(runtime, &ops, &state);
    if (status == WEIR_OK && ops->library)
        *out_library = ops->library(state);
    return status;
}

const struct weir_link *weir_inspect_backend(const weir_runtime *runtime)
{
    return WEIR_IS_ALIVE(runtime) ? weir__chain_backend(&runtime->chain) : NULL;
}
