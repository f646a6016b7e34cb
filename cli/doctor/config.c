// weir config check: reads the file as weir_open() does and prints the settings in force.
// No driver is loaded: the runtime is opened on the null backend, which checks every
// section and needs no device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/json.h"
#include "cli/common/options.h"
#include "cli/common/table.h"
#include "cli/runtime/open.h"
#include "core/config/config.h"
#include "core/module/loader.h"
#include "core/runtime/runtime.h"

struct printer {
    struct weir_table table;
    json_t *root;
    bool ok;
};

static void show_settings(struct printer *printer, const char *section,
                          const struct weir_setting *settings, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        const struct weir_setting *setting = &settings[i];
        weir_table_add(&printer->table, "[%s]", section);
        weir_table_add(&printer->table, "%s = %s", setting->key->name, setting->text);
        weir_table_add(&printer->table, "%s", setting->origin);
        json_t *entry = json_object();
        weir_json_set(entry, "value", cli_json_string(setting->text), &printer->ok);
        weir_json_set(entry, "origin", cli_json_string(setting->origin), &printer->ok);
        weir_json_set(object, setting->key->name, entry, &printer->ok);
    }
    weir_json_set(printer->root, section, object, &printer->ok);
}

// A section of the library's own.
static void show_own(struct printer *printer, const struct weir__config *config,
                     const struct weir_section *table,
                     const struct weir_setting *(*value_of)(const struct weir__config *config,
                                                            const char *key))
{
    struct weir_setting settings[16];
    for (uint32_t i = 0; i < table->key_count && i < 16; i++)
        settings[i] = *value_of(config, table->keys[i].name);
    show_settings(printer, table->name, settings, table->key_count);
}

static weir_status show_section(struct printer *printer, struct weir__config *config,
                                const struct weir_section *section)
{
    struct weir_setting *settings = calloc(section->key_count + 1, sizeof *settings);
    if (!settings) {
        const struct weir_error error = {.status = WEIR_ERROR_OUT_OF_MEMORY,
                                         .message = "no memory for the configuration"};
        return weir_error_set(&error);
    }
    weir_status status = weir__config_section(config, section, settings);
    if (status == WEIR_OK && weir__config_names(config, section->name))
        status = weir__config_replace(config, section, settings);
    if (status == WEIR_OK)
        show_settings(printer, section->name, settings, section->key_count);
    free(settings);
    return status;
}

// The settings of a module, if it is installed and takes any. Each module is shown once.
static weir_status show_module(struct printer *printer, struct weir__config *config,
                               const char *name)
{
    struct weir_section section;
    const char *path = weir__config_weir(config, "module_path")->text;
    if (json_object_get(printer->root, name) ||
        weir__loader_keys(name, path, &weir__host, &section) != WEIR_OK || section.key_count == 0)
        return WEIR_OK;
    return show_section(printer, config, &section);
}

// A module that is not installed here may be installed on the machine that uses the file,
// so this is a note and not an error. The name may also be misspelt.
static void note_absent(struct weir__config *config, const char *key, const char *name)
{
    const char *path = weir__config_weir(config, "module_path")->text;
    struct weir_section section;
    if (weir__loader_keys(name, path, &weir__host, &section) == WEIR_ERROR_NOT_FOUND)
        cli_note("%s names '%s', and there is no weir_%s.so in %s: check the spelling%s", key, name,
                 name, *path ? path : "the folder of modules", *path ? " and module_path" : "");
}

static weir_status show_listed(struct printer *printer, struct weir__config *config,
                               const char *key)
{
    char names[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];
    size_t count = 0;
    weir_status status = weir__config_list(weir__config_weir(config, key), true, names,
                                           WEIR__CONFIG_LIST_LIMIT, &count);
    for (size_t i = 0; i < count && status == WEIR_OK; i++) {
        note_absent(config, key, names[i]);
        status = show_module(printer, config, names[i]);
    }
    return status;
}

static weir_status show(struct printer *printer, struct weir__config *config)
{
    const struct weir_section *sections[CLI_SECTION_COUNT];
    const char *name;
    cli_sections(sections);
    weir_status status = WEIR_OK;
    show_own(printer, config, &weir__config_weir_table, weir__config_weir);
    show_own(printer, config, &weir__config_comm_table, weir__config_comm);
    for (size_t i = 0; i < CLI_SECTION_COUNT && status == WEIR_OK; i++)
        status = show_section(printer, config, sections[i]);
    if (status == WEIR_OK)
        status = show_listed(printer, config, "plugins");
    if (status == WEIR_OK)
        status = show_listed(printer, config, "backend");
    for (size_t i = 0; status == WEIR_OK && (name = weir__config_section_name(config, i)); i++)
        status = show_module(printer, config, name);
    return status;
}

// Reports everything that weir_open() refuses in a file. Where the null backend is not
// installed, that error comes only after the whole file was accepted.
static weir_status check(const char *file)
{
    const struct weir_section *sections[CLI_SECTION_COUNT];
    weir_runtime *runtime = NULL;
    cli_sections(sections);
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = file,
        .backend = "null",
        .plugins = "",
        .sections = sections,
        .section_count = CLI_SECTION_COUNT,
    };
    const weir_status status = weir_open_at(&params, &runtime, NULL, 0);
    weir_close(&runtime);
    return status == WEIR_ERROR_MODULE || status == WEIR_ERROR_NO_DEVICE ? WEIR_OK : status;
}

static int print(struct printer *printer, const char *file, bool as_json)
{
    if (as_json) {
        json_t *root = json_object();
        weir_json_set(root, "file", cli_json_string(file), &printer->ok);
        weir_json_set(root, "settings", json_incref(printer->root), &printer->ok);
        return cli_json_print(root, printer->ok, CLI_OK);
    }
    printf("%s is sound\n\n", file);
    cli_table_print(&printer->table, stdout, 0);
    return CLI_OK;
}

static int check_file(const char *file, bool as_json)
{
    const struct weir_open_params params = {.struct_size = sizeof params, .config_path = file};
    struct printer printer = {.table = {.alignment = "lll"}, .root = json_object(), .ok = true};
    struct weir__config *config = NULL;
    int code;
    if (weir__config_load(&params, &config) < 0 || check(file) < 0 || show(&printer, config) < 0)
        code = cli_weir_error();
    else
        code = print(&printer, file, as_json);
    weir_table_finish(&printer.table);
    json_decref(printer.root);
    weir__config_destroy(&config);
    return code;
}

static int check_main(int argc, char **argv)
{
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print the settings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir config check",
        .operands = "F",
        .operand = "a file",
        .about = "Checks an INI file and prints the settings that follow from it, and from where.",
        .manual = "weir-config(1)",
        .options = options,
        .option_count = 1,
        .operand_minimum = 1,
        .operand_maximum = 1,
    };
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    cli_log_to_stderr();
    return check_file(argv[0], as_json);
}

static int config_main(int argc, char **argv)
{
    const struct cli_command members[] = {
        {.name = "check",
         .summary = "check a file and print the settings in force",
         .main = check_main},
    };
    const struct cli_command group = {.what = "COMMAND",
                                      .summary = "Looks at configuration files.",
                                      .members = members,
                                      .member_count = 1};
    return cli_dispatch(&group, "weir config", "weir-config(1)", argc, argv);
}

const struct cli_command cli_config = {
    .name = "config",
    .summary = "check a configuration file",
    .main = config_main,
};
