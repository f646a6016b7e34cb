// The configuration: a file, checked against tables, and the variables of the environment in place of
// what it says.
#define _GNU_SOURCE // secure_getenv
#include "core/config/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/file.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// What a configuration holds lies in blocks, which are freed with it.
struct weir__config_block {
    struct weir__config_block *next;
};

void *weir__config_keep(struct weir__config *config, size_t size)
{
    struct weir__config_block *block = weir__allocate(sizeof *block + size);
    if (!block) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL,
                     "there is no memory left to hold the configuration");
        return NULL;
    }
    block->next = config->blocks;
    config->blocks = block;
    return block + 1;
}

static const char *keep_text(struct weir__config *config, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = weir__config_keep(config, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void weir__config_destroy(struct weir__config **config)
{
    if (!config || !*config)
        return;
    for (struct weir__config_block *block = (*config)->blocks, *next; block; block = next) {
        next = block->next;
        weir__release(block);
    }
    weir_ini_finish(&(*config)->file);
    weir__release(*config);
    *config = NULL;
}

// Fails with "ORIGIN: MESSAGE".
WEIR_PRINTF(3, 4)
static weir_status fail(const char *origin, const char *remedy, const char *format, ...)
{
    char message[sizeof((struct weir_error *)0)->message];
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(message, sizeof message, origin, format, arguments);
    va_end(arguments);
    return weir__fail(WEIR_ERROR_CONFIG, remedy, "%s", message);
}

// The entry of that name in the section; NULL: none.
static const struct weir_ini_entry *find(const struct weir__config *config, const char *section,
                                         const char *name)
{
    for (size_t i = 0; i < config->file.count; i++) {
        const struct weir_ini_entry *entry = &config->file.entries[i];
        if (entry->key && strcmp(entry->section, section) == 0 && strcmp(entry->key, name) == 0)
            return entry;
    }
    return NULL;
}

// "FILE:LINE"; NULL with the thread's error.
static const char *origin_of(struct weir__config *config, unsigned line)
{
    const size_t size = strlen(config->label) + sizeof ":4294967295";
    char *origin = weir__config_keep(config, size);
    if (origin)
        snprintf(origin, size, "%s:%u", config->label, line);
    return origin;
}

weir_status weir__config_create(const char *label, const char *text, size_t size,
                                struct weir__config **out_config)
{
    static const struct weir_ini_rules rules = {
        .sectionless_remedy = "put it under [weir], or where it belongs",
        .section_limit = WEIR__CONFIG_SECTION_LIMIT,
    };
    struct weir_ini_refusal refusal;
    const char *origin;
    weir_status status = WEIR_ERROR_OUT_OF_MEMORY;
    struct weir__config *config = *out_config = weir__allocate(sizeof *config);
    if (!config)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a configuration");
    config->label = keep_text(config, label);
    if (config->label && weir_ini_read(text, size, &rules, &config->file, &refusal))
        return WEIR_OK;
    if (config->label && refusal.line == 0)
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to read a configuration");
    else if (config->label && (origin = origin_of(config, refusal.line)))
        status = fail(origin, refusal.remedy, "%s", refusal.sentence);
    weir__config_destroy(out_config);
    return status;
}

// The sections of the library's own.

enum weir_key_index {
    KEY_BACKEND,
    KEY_COPY_THREADS,
    KEY_DEBUG,
    KEY_DEVICE,
    KEY_LOG,
    KEY_MODULE_PATH,
    KEY_PLUGINS,
    KEYS
};

static const char *const log_levels[] = {"auto", "off", "error", "warning", "info", "debug", NULL};

static const char *const thread_counts[] = {"auto", "0",  "1",  "2",  "3",  "4",  "5",
                                            "6",    "7",  "8",  "9",  "10", "11", "12",
                                            "13",   "14", "15", "16", NULL};
_Static_assert(sizeof thread_counts / sizeof *thread_counts == WEIR__CONFIG_COPY_THREADS_MAX + 3,
               "auto, the counts from 0 to the largest, and the end");

static const struct weir_key weir_keys[] = {
    [KEY_BACKEND] =
        WEIR_TEXT_KEY("backend", "cuda, opencl",
                      "Backends, tried in this order; a single name means that one or an error."),
    [KEY_COPY_THREADS] = WEIR_CHOICE_KEY(
        "copy_threads", "auto", thread_counts,
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
    .key_count = KEYS,
    .key_size = sizeof(struct weir_key),
};

static const struct weir_key comm_keys[] = {
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
    .keys = comm_keys,
    .key_count = sizeof comm_keys / sizeof *comm_keys,
    .key_size = sizeof *comm_keys,
};

// Copies the item of `length` bytes into `name`.
static weir_status take_item(const struct weir_setting *setting, const char *item, size_t length,
                             char name[WEIR__NAME_SIZE])
{
    const char *key = setting->key->name;
    if (length == 0)
        return fail(setting->origin, "remove the extra comma", "'%s' has an empty name in '%s'",
                    key, setting->text);
    if (weir_ini_name_length(item) < length)
        return fail(setting->origin,
                    "separate names by commas; they have letters, digits, '_' and '-'",
                    "'%s' holds '%.*s', which is not a name", key, (int)length, item);
    if (length >= WEIR__NAME_SIZE)
        return fail(setting->origin, "check its spelling",
                    "'%s' holds a name of %zu characters, more than the limit of %d", key, length,
                    WEIR__NAME_SIZE - 1);
    memcpy(name, item, length);
    name[length] = '\0';
    return WEIR_OK;
}

weir_status weir__config_list(const struct weir_setting *setting, bool allow_repeats,
                              char names[][WEIR__NAME_SIZE], size_t max, size_t *out_count)
{
    static const char blanks[] = " \t";
    const char *at = setting->text + strspn(setting->text, blanks);
    size_t count = 0;
    *out_count = 0;

    for (bool more = *at != '\0'; more; count++) {
        at += strspn(at, blanks);
        size_t length = strcspn(at, ",");
        more = at[length] == ',';
        size_t shown = length;
        while (shown > 0 && strchr(blanks, at[shown - 1]))
            shown--;
        if (count == max)
            return fail(setting->origin, NULL, "'%s' has more than %zu names", setting->key->name,
                        max);
        weir_status status = take_item(setting, at, shown, names[count]);
        for (size_t i = 0; i < count && status == WEIR_OK && !allow_repeats; i++)
            if (strcmp(names[i], names[count]) == 0)
                status = fail(setting->origin, "name it once", "'%s' names '%s' twice",
                              setting->key->name, names[i]);
        if (status != WEIR_OK)
            return status;
        at += length + more;
    }
    *out_count = count;
    return WEIR_OK;
}

static weir_status check_names(const struct weir_setting *setting, bool are_plugins)
{
    char names[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];
    size_t count = 0;
    weir_status status =
        weir__config_list(setting, are_plugins, names, WEIR__CONFIG_LIST_LIMIT, &count);
    if (status != WEIR_OK || count > 0 || are_plugins)
        return status;
    return fail(setting->origin, "name at least one, such as opencl", "'backend' names no backend");
}

// An empty item would mean the working directory, as in PATH.
static weir_status check_module_path(const struct weir_setting *setting)
{
    const char *text = setting->text;
    size_t length = strlen(text);
    if (length == 0)
        return WEIR_OK;
    if (text[0] == ':' || text[length - 1] == ':' || strstr(text, "::"))
        return fail(setting->origin, "remove the extra ':', or write . for the working directory",
                    "'module_path' has an empty directory in '%s'", text);
    return WEIR_OK;
}

// What [weir] asks of a value besides its type.
static weir_status check_own(const struct weir_setting *setting)
{
    switch (setting->key - weir_keys) {
    case KEY_BACKEND:
        return check_names(setting, false);
    case KEY_MODULE_PATH:
        return check_module_path(setting);
    case KEY_PLUGINS:
        return check_names(setting, true);
    default:
        return WEIR_OK;
    }
}

// "PREFIXa, b, c", of names that are added one by one, and the one that is nearest to what is wanted, or NULL.
struct name_list {
    const char *prefix;
    const char *wanted;
    const char *nearest;
    char text[200];
    size_t used;
};

static void name_list_add(struct name_list *list, const char *name)
{
    weir_text_append(list->text, sizeof list->text, &list->used, "%s%s",
                     list->used == 0 ? list->prefix : ", ", name);
    list->nearest = weir_text_nearer(list->wanted, list->nearest, name);
}

// For what is wanted and not in the list.
WEIR_PRINTF(3, 4)
static weir_status fail_unknown(const char *origin, const struct name_list *list,
                                const char *format, ...)
{
    char text[sizeof((struct weir_error *)NULL)->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return list->nearest ? fail(origin, list->text, "%s; did you mean '%s'?", text, list->nearest)
                         : fail(origin, list->text, "%s", text);
}

const char *weir__config_section_name(const struct weir__config *config, size_t index)
{
    for (size_t i = 0; i < config->file.count; i++)
        if (!config->file.entries[i].key && index-- == 0)
            return config->file.entries[i].section;
    return NULL;
}

static const struct weir_key *key_of(const struct weir_section *section, uint32_t index)
{
    return weir_key_at(section->keys, section->key_size, index);
}

static weir_status unknown_key(const char *origin, const char *key,
                               const struct weir_section *section)
{
    struct name_list list = {"its keys are ", key, NULL, "the section has no keys", 0};
    for (uint32_t i = 0; i < section->key_count; i++)
        name_list_add(&list, key_of(section, i)->name);
    return fail_unknown(origin, &list, "unknown key '%s' in [%s]", key, section->name);
}

// Digits with an optional '-', and one spelling for each number.
static bool is_decimal(const char *text)
{
    const char *digits = text + (*text == '-');
    size_t count = strspn(digits, "0123456789");
    return count > 0 && digits[count] == '\0' && (digits[0] != '0' || strcmp(text, "0") == 0);
}

static weir_status read_integer(struct weir_setting *setting, const char *section)
{
    const struct weir_key *key = setting->key;
    if (!is_decimal(setting->text))
        return fail(setting->origin, "write digits alone, without leading zeros",
                    "'%s' of [%s] needs a decimal number from %" PRId64 " to %" PRId64 ", not '%s'",
                    key->name, section, key->minimum, key->maximum, setting->text);
    errno = 0;
    long long value = strtoll(setting->text, NULL, 10);
    if (errno == ERANGE || value < key->minimum || value > key->maximum)
        return fail(setting->origin, NULL,
                    "'%s' of [%s] must be from %" PRId64 " to %" PRId64 ", not %s", key->name,
                    section, key->minimum, key->maximum, setting->text);
    setting->integer = value;
    return WEIR_OK;
}

static weir_status read_boolean(struct weir_setting *setting, const char *section)
{
    if (strcmp(setting->text, "0") != 0 && strcmp(setting->text, "1") != 0)
        return fail(setting->origin, NULL, "'%s' of [%s] must be 0 or 1, not '%s'",
                    setting->key->name, section, setting->text);
    setting->integer = setting->text[0] - '0';
    return WEIR_OK;
}

static weir_status check_choice(const struct weir_setting *setting, const char *section)
{
    struct name_list list = {.prefix = "choose one of ", .wanted = setting->text};
    for (const char *const *choice = setting->key->choices; choice && *choice; choice++) {
        if (strcmp(setting->text, *choice) == 0)
            return WEIR_OK;
        name_list_add(&list, *choice);
    }
    return fail_unknown(setting->origin, &list, "'%s' of [%s] cannot be '%s'", setting->key->name,
                        section, setting->text);
}

static weir_status read_value(struct weir_setting *setting, const char *section)
{
    switch (setting->key->type) {
    case WEIR_KEY_TEXT:
        return WEIR_OK;
    case WEIR_KEY_INTEGER:
        return read_integer(setting, section);
    case WEIR_KEY_BOOLEAN:
        return read_boolean(setting, section);
    case WEIR_KEY_CHOICE:
        return check_choice(setting, section);
    }
    return fail(setting->origin, "rebuild what declares the section",
                "the table of [%s] gives '%s' the unknown type %d", section, setting->key->name,
                (int)setting->key->type);
}

// Gives the setting a value, which is checked.
static weir_status set(struct weir_setting *setting, const struct weir_section *section,
                       const char *text, const char *origin)
{
    setting->text = text;
    setting->origin = origin;
    const weir_status status = read_value(setting, section->name);
    return status == WEIR_OK && section == &weir__config_weir_table ? check_own(setting) : status;
}

// A default of "" means none and is not checked against the type.
static weir_status set_default(struct weir_setting *setting, const struct weir_section *section,
                               const struct weir_key *key)
{
    *setting = (struct weir_setting){.key = key, .text = "", .origin = "default"};
    return key->fallback && key->fallback[0] ? set(setting, section, key->fallback, "default")
                                             : WEIR_OK;
}

// What the file says is checked even if something else replaces it, so that a file is valid or not
// independently of the environment.
static weir_status set_entry(struct weir__config *config, const struct weir_ini_entry *entry,
                             const struct weir_section *section,
                             struct weir_setting *const *settings)
{
    const char *origin = origin_of(config, entry->line);
    if (!origin)
        return WEIR_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < section->key_count; i++)
        if (strcmp(entry->key, settings[i]->key->name) == 0)
            return set(settings[i], section, entry->value, origin);
    return unknown_key(origin, entry->key, section);
}

// The environment may change later, and so may arguments: the configuration keeps copies.
static weir_status replace(struct weir__config *config, const struct weir_section *section,
                           struct weir_setting *setting, const char *value, const char *origin)
{
    value = keep_text(config, value);
    origin = keep_text(config, origin);
    return value && origin ? set(setting, section, value, origin) : WEIR_ERROR_OUT_OF_MEMORY;
}

// A setting as it is handed out: one by one, so that settings can grow.
struct cell {
    WEIR_SIZED_CELL(struct weir_setting, setting, WEIR_SIZED_ROOM);
};

// `arguments`: the program's values for the keys, NULL where it gives none; or NULL.
static const struct weir_setting *const *take(struct weir__config *config,
                                              const struct weir_section *section, bool replaces,
                                              const char *const *arguments)
{
    const uint32_t count = section->key_count;
    char name[256];
    weir_status status = WEIR_OK;
    struct weir_setting **settings =
        weir__config_keep(config, (count + 1) * (sizeof(struct cell) + sizeof *settings));
    if (!settings)
        return NULL;
    struct cell *cells = (struct cell *)(void *)(settings + count + 1);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
        settings[i] = &cells[i].setting;
        status = set_default(settings[i], section, key_of(section, i));
    }
    for (size_t i = 0; i < config->file.count && status == WEIR_OK; i++) {
        const struct weir_ini_entry *entry = &config->file.entries[i];
        if (entry->key && strcmp(entry->section, section->name) == 0)
            status = set_entry(config, entry, section, settings);
    }
    for (uint32_t i = 0; i < count && replaces && status == WEIR_OK; i++) {
        weir_text_variable(name, sizeof name, section->name, settings[i]->key->name);
        const char *value = secure_getenv(name);
        if (value)
            status = replace(config, section, settings[i], value, name);
        if (arguments && arguments[i] && status == WEIR_OK)
            status = replace(config, section, settings[i], arguments[i], "argument");
    }
    return status == WEIR_OK ? (const struct weir_setting *const *)settings : NULL;
}

const struct weir_setting *const *weir__config_section(struct weir__config *config,
                                                       const struct weir_section *section,
                                                       bool replaces)
{
    return take(config, section, replaces, NULL);
}

// The sources of the configuration.

static weir_status create(const struct weir_open_params *params, struct weir__config **out_config)
{
    const char *path = params->config_path;
    const char *text = params->config_text;
    char message[512];
    void *read = NULL;
    size_t size = 0;
    if (text) {
        bool named = path && path[0] != '\0';
        return weir__config_create(named ? path : "config_text", text, strlen(text), out_config);
    }
    if (!path)
        path = secure_getenv("WEIR_CONFIG");
    if (!path || path[0] == '\0')
        return weir__config_create("default", "", 0, out_config);
    if (!weir_file_read(path, WEIR__CONFIG_FILE_LIMIT, &read, &size, message, sizeof message))
        return weir__fail(WEIR_ERROR_IO,
                          params->config_path ? NULL
                                              : "WEIR_CONFIG names this file; correct or unset it",
                          "%s", message);
    const weir_status status = weir__config_create(path, read, size, out_config);
    free(read);
    return status;
}

weir_status weir__config_load(const struct weir_open_params *params,
                              struct weir__config **out_config)
{
    static const struct weir_open_params none = {.struct_size = sizeof none};
    struct weir__config *config = NULL;
    *out_config = NULL;

    if (!params)
        params = &none;
    const char *const arguments[KEYS] = {[KEY_BACKEND] = params->backend,
                                         [KEY_MODULE_PATH] = params->module_path,
                                         [KEY_PLUGINS] = params->plugins};
    weir_status status = create(params, &config);
    if (status < 0)
        return status;
    config->weir = take(config, &weir__config_weir_table, true, arguments);
    if (config->weir)
        config->comm = take(config, &weir__config_comm_table, true, NULL);
    if (!config->comm) {
        status = weir_last_error()->status;
        weir__config_destroy(&config);
    }
    *out_config = config;
    return status;
}

static const struct weir_setting *find_setting(const char *key, const struct weir_section *section,
                                               const struct weir_setting *const *settings)
{
    for (uint32_t i = 0; i < section->key_count; i++)
        if (strcmp(key, settings[i]->key->name) == 0)
            return settings[i];
    return NULL;
}

const struct weir_setting *weir__config_weir(const struct weir__config *config, const char *key)
{
    return find_setting(key, &weir__config_weir_table, config->weir);
}

const struct weir_setting *weir__config_comm(const struct weir__config *config, const char *key)
{
    return find_setting(key, &weir__config_comm_table, config->comm);
}

unsigned weir__config_copy_threads(const struct weir__config *config)
{
    const char *text = config->weir[KEY_COPY_THREADS]->text;
    return strcmp(text, "auto") == 0 ? WEIR__CONFIG_COPY_THREADS_AUTO
                                     : (unsigned)strtoul(text, NULL, 10);
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
    const struct weir_ini_entry *backend = find(config, "weir", "backend");
    const struct weir_ini_entry *plugins = find(config, "weir", "plugins");
    return (backend && is_listed(backend->value, module)) ||
           (plugins && is_listed(plugins->value, module)) ||
           is_listed(config->weir[KEY_BACKEND]->text, module) ||
           is_listed(config->weir[KEY_PLUGINS]->text, module) ||
           is_listed(weir_keys[KEY_BACKEND].fallback, module);
}

bool weir__config_debug(const struct weir__config *config)
{
    return config->weir[KEY_DEBUG]->integer != 0;
}

// "auto" and "off" come before the levels.
static int level_of(const char *text)
{
    for (int i = 0; log_levels[i]; i++)
        if (strcmp(text, log_levels[i]) == 0)
            return i;
    return 0;
}

void weir__config_print(const struct weir__config *config)
{
    const bool debugs = weir__config_debug(config);
    const int level = level_of(config->weir[KEY_LOG]->text);
    int printed = level - 1;
    if (level == 0)
        printed = debugs ? WEIR_LOG_WARNING : 0;
    weir__log_print(printed, debugs || printed > 0);
}

void weir__config_print_anyway(void)
{
    const char *debug = secure_getenv("WEIR_DEBUG"), *log = secure_getenv("WEIR_LOG");
    const int level = log ? level_of(log) : 0;
    const bool debugs = debug && debug[0] && strcmp(debug, "0") != 0;
    const bool is_wrong = level == 0 && log && strcmp(log, "auto") != 0;
    if (level > 0 || debugs || is_wrong)
        weir__log_print(level > 0 ? level - 1 : WEIR_LOG_WARNING, true);
}

weir_status weir__config_check_sections(struct weir__config *config, const char *const *known,
                                        size_t count)
{
    for (size_t i = 0; i < config->file.count; i++) {
        const struct weir_ini_entry *entry = &config->file.entries[i];
        struct name_list list = {.prefix = "the sections are ", .wanted = entry->section};
        size_t k = 0;
        while (k < count && strcmp(entry->section, known[k]) != 0)
            name_list_add(&list, known[k++]);
        if (k < count)
            continue;
        const char *origin = origin_of(config, entry->line);
        return origin ? fail_unknown(origin, &list, "unknown section [%s]", entry->section)
                      : WEIR_ERROR_OUT_OF_MEMORY;
    }
    return WEIR_OK;
}
