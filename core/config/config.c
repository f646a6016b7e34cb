// The configuration: a file, and the variables of the environment in place of what it says.
#define _GNU_SOURCE // secure_getenv
#include "core/config/config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "core/support/error.h"

// The environment may change later, and so may arguments: the configuration keeps copies.
static weir_status replace(struct weir__config *config, const char *origin, const char *value,
                           struct weir_setting *setting)
{
    const struct weir__config_entry *entry =
        weir__config_keep(&config->replaced, NULL, NULL, value, origin);
    if (!entry)
        return weir__config_no_memory();
    setting->text = entry->value;
    setting->origin = entry->origin;
    return WEIR_OK;
}

weir_status weir__config_replace(struct weir__config *config, const struct weir_section *section,
                                 struct weir_setting *settings)
{
    char name[256];
    for (uint32_t i = 0; i < section->key_count; i++) {
        weir_text_variable(name, sizeof name, section->name, settings[i].key->name);
        const char *value = secure_getenv(name);
        weir_status status = value ? replace(config, name, value, &settings[i]) : WEIR_OK;
        if (value && status == WEIR_OK)
            status = weir__config_read_value(&settings[i], section->name);
        if (status < 0)
            return status;
    }
    return WEIR_OK;
}

// The sources of the configuration, and the precedence of values of [weir]. The
// file's own values are checked even if something else replaces them, so that a
// file is valid or not independently of the environment.

enum weir_key_index {
    KEY_BACKEND,
    KEY_COPY_THREADS,
    KEY_DEBUG,
    KEY_DEVICE,
    KEY_LOG,
    KEY_MODULE_PATH,
    KEY_PLUGINS,
};

static const char *const log_levels[] = {"auto", "off", "error", "warning", "info", "debug", NULL};

static const struct weir_key weir_keys[WEIR__CONFIG_WEIR_KEYS] = {
    [KEY_BACKEND] =
        WEIR_TEXT_KEY("backend", "cuda, opencl",
                      "Backends, tried in this order; a single name means that one or an error."),
    [KEY_COPY_THREADS] =
        WEIR_TEXT_KEY("copy_threads", "auto",
                      "Threads that copy large uploads and downloads: auto, or a number from 0 to "
                      "16; 0 means the calling thread alone."),
    [KEY_DEBUG] = WEIR_BOOLEAN_KEY(
        "debug", "0",
        "1: calls on objects that were destroyed, or that are of another type, are "
        "refused, with the lines that created and destroyed them, and likely mistakes "
        "are told."),
    [KEY_DEVICE] =
        WEIR_TEXT_KEY("device", "",
                      "Index of the device, or a part of its name; nothing means the first."),
    [KEY_LOG] = WEIR_CHOICE_KEY(
        "log", "auto", log_levels,
        "Messages of this level and of more severe ones, and refused calls, are printed "
        "on standard error if the program takes none; auto means warning in debug "
        "mode, else off."),
    [KEY_MODULE_PATH] =
        WEIR_TEXT_KEY("module_path", "",
                      "Directories with modules, separated by ':'; nothing means those that lie "
                      "beside the library."),
    [KEY_PLUGINS] =
        WEIR_TEXT_KEY("plugins", "", "Plugins, outermost first; the same one may stand twice."),
};

const struct weir_section weir__config_weir_table = {
    .struct_size = sizeof weir__config_weir_table,
    .name = "weir",
    .keys = weir_keys,
    .key_count = WEIR__CONFIG_WEIR_KEYS,
    .key_size = sizeof(struct weir_key),
};

const struct weir_setting *weir__config_weir(const struct weir__config *config, const char *key)
{
    return weir__config_find_setting(key, &weir__config_weir_table, config->weir);
}

static bool is_listed(const char *list, const char *name)
{
    static const char between[] = ", \t";
    const size_t length = strlen(name);
    for (list += strspn(list, between); *list; list += strspn(list, between)) {
        const size_t item = strcspn(list, between);
        if (item == length && strncmp(list, name, length) == 0)
            return true;
        list += item;
    }
    return false;
}

bool weir__config_names(const struct weir__config *config, const char *module)
{
    const struct weir__config_entry *backend = weir__config_find(config, "weir", "backend");
    const struct weir__config_entry *plugins = weir__config_find(config, "weir", "plugins");
    return (backend && is_listed(backend->value, module)) ||
           (plugins && is_listed(plugins->value, module)) ||
           is_listed(config->weir[KEY_BACKEND].text, module) ||
           is_listed(config->weir[KEY_PLUGINS].text, module) ||
           is_listed(weir_keys[KEY_BACKEND].fallback, module);
}

static weir_status check_backend(const struct weir_setting *setting)
{
    char names[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];
    size_t count = 0;
    weir_status status = weir__config_list(setting, false, names, WEIR__CONFIG_LIST_LIMIT, &count);
    if (status != WEIR_OK || count > 0)
        return status;
    return weir__config_fail(setting->origin, "name at least one, such as opencl",
                             "'backend' names no backend");
}

static weir_status check_plugins(const struct weir_setting *setting)
{
    char names[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];
    size_t count = 0;
    return weir__config_list(setting, true, names, WEIR__CONFIG_LIST_LIMIT, &count);
}

// An empty item would mean the working directory, as in PATH.
static weir_status check_module_path(const struct weir_setting *setting)
{
    const char *text = setting->text;
    size_t length = strlen(text);
    if (length == 0)
        return WEIR_OK;
    if (text[0] == ':' || text[length - 1] == ':' || strstr(text, "::"))
        return weir__config_fail(setting->origin,
                                 "remove the extra ':', or write . for the working directory",
                                 "'module_path' has an empty directory in '%s'", text);
    return WEIR_OK;
}

// The number in the text, or WEIR__CONFIG_COPY_THREADS_AUTO, or more than that if it is neither.
static unsigned read_copy_threads(const char *text)
{
    unsigned value = 0;
    if (strcmp(text, "auto") == 0)
        return WEIR__CONFIG_COPY_THREADS_AUTO;
    for (const char *c = text; *c; c++)
        if (*c < '0' || *c > '9' ||
            (value = 10 * value + (unsigned)(*c - '0')) > WEIR__CONFIG_COPY_THREADS_MAX)
            return UINT_MAX;
    return *text ? value : UINT_MAX;
}

unsigned weir__config_copy_threads(const struct weir__config *config)
{
    return read_copy_threads(config->weir[KEY_COPY_THREADS].text);
}

bool weir__config_debug(const struct weir__config *config)
{
    return config->weir[KEY_DEBUG].integer != 0;
}

// "auto" and "off" come before the levels.
static int level_of(const char *text)
{
    for (int i = 0; log_levels[i]; i++)
        if (strcmp(text, log_levels[i]) == 0)
            return i;
    return 0;
}

int weir__config_log(const struct weir__config *config)
{
    const int level = level_of(config->weir[KEY_LOG].text);
    if (level == 0)
        return weir__config_debug(config) ? WEIR_LOG_WARNING : 0;
    return level - 1;
}

void weir__config_tell(void)
{
    const char *debug = secure_getenv("WEIR_DEBUG"), *log = secure_getenv("WEIR_LOG");
    const int level = log ? level_of(log) : 0;
    const bool debugs = debug && debug[0] && strcmp(debug, "0") != 0;
    const bool is_wrong = level == 0 && log && strcmp(log, "auto") != 0;
    if (level > 0 || debugs || is_wrong)
        weir__log_print(level > 0 ? level - 1 : WEIR_LOG_WARNING, true);
}

static weir_status check_copy_threads(const struct weir_setting *setting)
{
    if (read_copy_threads(setting->text) <= WEIR__CONFIG_COPY_THREADS_AUTO)
        return WEIR_OK;
    return weir__config_fail(setting->origin, "write auto, or 0 for the calling thread alone",
                             "'copy_threads' is auto or a number from 0 to %d, not '%s'",
                             WEIR__CONFIG_COPY_THREADS_MAX, setting->text);
}

static weir_status check_weir(struct weir__config *config)
{
    weir_status status = check_backend(&config->weir[KEY_BACKEND]);
    if (status == WEIR_OK)
        status = check_module_path(&config->weir[KEY_MODULE_PATH]);
    if (status == WEIR_OK)
        status = check_plugins(&config->weir[KEY_PLUGINS]);
    if (status == WEIR_OK)
        status = check_copy_threads(&config->weir[KEY_COPY_THREADS]);
    return status;
}

// Fills the settings of a section of the library's own.
static weir_status fill(struct weir__config *config, const struct weir_section *section,
                        struct weir_setting *settings)
{
    weir_status status = weir__config_section(config, section, settings);
    if (status == WEIR_OK && section == &weir__config_weir_table)
        status = check_weir(config);
    return status == WEIR_OK ? weir__config_replace(config, section, settings) : status;
}

static weir_status resolve(struct weir__config *config, const struct weir_open_params *params)
{
    const char *arguments[WEIR__CONFIG_WEIR_KEYS] = {[KEY_BACKEND] = params->backend,
                                                     [KEY_MODULE_PATH] = params->module_path,
                                                     [KEY_PLUGINS] = params->plugins};
    weir_status status = fill(config, &weir__config_weir_table, config->weir);
    for (size_t i = 0; i < WEIR__CONFIG_WEIR_KEYS && status == WEIR_OK; i++)
        if (arguments[i])
            status = replace(config, "argument", arguments[i], &config->weir[i]);
    if (status == WEIR_OK)
        status = check_weir(config);
    return status == WEIR_OK ? fill(config, &weir__config_comm_table, config->comm) : status;
}

static weir_status create_from_file(const char *path, bool from_variable,
                                    struct weir__config **out_config)
{
    char message[512];
    void *text = NULL;
    size_t size = 0;
    if (!weir_file_read(path, WEIR__CONFIG_FILE_LIMIT, &text, &size, message, sizeof message))
        return weir__fail(WEIR_ERROR_IO,
                          from_variable ? "WEIR_CONFIG names this file; correct or unset it" : NULL,
                          "%s", message);
    weir_status status = weir__config_create(path, text, size, out_config);
    free(text);
    return status;
}

static weir_status create(const struct weir_open_params *params, struct weir__config **out_config)
{
    const char *path = params->config_path;
    const char *text = params->config_text;
    if (text) {
        bool named = path && path[0] != '\0';
        return weir__config_create(named ? path : "config_text", text, strlen(text), out_config);
    }
    if (!path)
        path = secure_getenv("WEIR_CONFIG");
    if (!path || path[0] == '\0')
        return weir__config_create("default", "", 0, out_config);
    return create_from_file(path, !params->config_path, out_config);
}

weir_status weir__config_load(const struct weir_open_params *params,
                              struct weir__config **out_config)
{
    static const struct weir_open_params none = {.struct_size = sizeof none};
    struct weir__config *config = NULL;
    *out_config = NULL;

    if (!params)
        params = &none;
    weir_status status = create(params, &config);
    if (status == WEIR_OK)
        status = resolve(config, params);
    if (status != WEIR_OK)
        weir__config_destroy(&config);
    *out_config = config;
    return status;
}

// The keys of [comm].

static const struct weir_key keys[WEIR__CONFIG_COMM_KEYS] = {
    WEIR_TEXT_KEY("transport", "local",
                  "The module that carries collectives between the memories of hosts."),
    WEIR_INTEGER_KEY("rank", "0", 0, UINT32_MAX - 1, "This process's rank, if `count` is not 0."),
    WEIR_INTEGER_KEY(
        "count", "0", 0, UINT32_MAX,
        "The count of ranks; 0 means that the launcher's variables tell it and the rank."),
    WEIR_TEXT_KEY(
        "rendezvous", "",
        "Where the ranks meet: tcp://HOST:PORT, unix:PATH or file:PATH; nothing means that "
        "MASTER_ADDR and MASTER_PORT tell."),
    WEIR_INTEGER_KEY(
        "timeout", "300", 1, 86400,
        "Seconds until a communicator's creation, or a collective that is due, fails."),
    WEIR_BOOLEAN_KEY("check", "0",
                     "Whether all ranks compare a collective's arguments before it runs."),
};

const struct weir_section weir__config_comm_table = {
    .struct_size = sizeof weir__config_comm_table,
    .name = "comm",
    .keys = keys,
    .key_count = WEIR__CONFIG_COMM_KEYS,
    .key_size = sizeof *keys,
};

const struct weir_setting *weir__config_comm(const struct weir__config *config, const char *key)
{
    return weir__config_find_setting(key, &weir__config_comm_table, config->comm);
}
