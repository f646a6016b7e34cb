// weir config check: reads the file as weir_open() does and prints the settings in force. No driver is loaded.
#include <stdio.h>
#include <string.h>

#include <weir/inspect.h>

#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/runtime/open.h"

struct printer {
    struct weir_table table;
    json_t *root;
    const char *module_path, *plugins, *backend; // of [weir]
    bool ok;
};

// A module that is not installed here may be installed on the machine that uses the file,
// so this is a note and not an error. The name may also be misspelt.
static void note_absent(const struct printer *printer, const char *name)
{
    const char *path = printer->module_path;
    const char *key = strstr(printer->plugins, name)   ? "plugins"
                      : strstr(printer->backend, name) ? "backend"
                                                       : "a section";
    cli_note("%s names '%s', and there is no weir_%s.so in %s: check the spelling%s", key, name,
             name, *path ? path : "the folder of modules", *path ? " and module_path" : "");
}

static void remember(struct printer *printer, const struct weir_setting *setting)
{
    const char **const texts[] = {&printer->module_path, &printer->plugins, &printer->backend};
    static const char *const keys[] = {"module_path", "plugins", "backend"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(setting->key->name, keys[i]) == 0)
            *texts[i] = setting->text;
}

static bool show(void *user, const char *section, const struct weir_setting *setting)
{
    struct printer *printer = user;
    if (!setting) {
        note_absent(printer, section);
        return true;
    }
    if (strcmp(section, "weir") == 0)
        remember(printer, setting);
    weir_table_add(&printer->table, "[%s]", section);
    weir_table_add(&printer->table, "%s = %s", setting->key->name, setting->text);
    weir_table_add(&printer->table, "%s", setting->origin);
    if (!json_object_get(printer->root, section))
        weir_json_set(printer->root, section, json_object(), &printer->ok);
    json_t *entry = json_object();
    weir_json_set(entry, "value", cli_json_string(setting->text), &printer->ok);
    weir_json_set(entry, "origin", cli_json_string(setting->origin), &printer->ok);
    weir_json_set(json_object_get(printer->root, section), setting->key->name, entry, &printer->ok);
    return true;
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
    struct printer printer = {.table = {.alignment = "lll"}, .root = json_object(), .ok = true};
    const struct weir_open_params params = cli_open_params(file);
    const int code = weir_inspect_settings(&params, show, &printer) < 0
                         ? cli_weir_error()
                         : print(&printer, file, as_json);
    weir_table_finish(&printer.table);
    json_decref(printer.root);
    return code;
}

static int check_main(int argc, char **argv)
{
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print the settings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM("weir config check", "F", "a file", 1, 1,
                 "Checks an INI file and prints the settings that follow from it, and from where.",
                 "weir-config(1)", options);
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
