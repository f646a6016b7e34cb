// weir config check: reads the file as weir_open() does and prints the settings in force. No driver is loaded.
#include <stdio.h>
#include <string.h>

#include <weir/inspect.h>

#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/runtime/open.h"

struct printer {
    struct weir_table table;
    json_t *root;
    struct weir_setting module_path, plugins, backend, transport;
    size_t missing; // modules that the file, a variable or an option names, and that have no file
    bool ok;
};

static void remember(struct printer *printer, const char *section,
                     const struct weir_setting *setting)
{
    static const char *const names[][2] = {{"weir", "module_path"},
                                           {"weir", "plugins"},
                                           {"weir", "backend"},
                                           {"comm", "transport"}};
    struct weir_setting *const places[] = {&printer->module_path, &printer->plugins,
                                           &printer->backend, &printer->transport};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(section, names[i][0]) == 0 && strcmp(setting->key->name, names[i][1]) == 0)
            *places[i] = *setting;
}

static bool is_installed(const weir_load_report *installed, const char *name, char near[64])
{
    const struct weir_load_entry *entry;
    const char *nearest = NULL;
    for (size_t i = 0; (entry = weir_load_report_entry(installed, i)); i++) {
        if (strcmp(entry->module, name) == 0)
            return true;
        nearest = weir_text_nearer(name, nearest, entry->module);
    }
    snprintf(near, 64, "%s", nearest ? nearest : "");
    return false;
}

// `key` is NULL for a section. A module that is not installed here may be on the machine that uses the file,
// so a section, and a backend of the default's, is a note.
static void tell_absent(struct printer *printer, const struct weir_setting *key, const char *name)
{
    const char *path = printer->module_path.text;
    const bool named = key && strcmp(key->origin, "default") != 0;
    weir_load_report *installed = NULL;
    char near[64] = "";
    const bool there =
        weir_inspect_modules(path, &installed) == WEIR_OK && is_installed(installed, name, near);
    weir_load_report_destroy(&installed);
    if (there)
        return;
    (named ? cli_error : cli_note)("%s%s%s names '%s', and there is no weir_%s.so in %s%s%s%s%s",
                                   key ? key->origin : "", key ? ": " : "",
                                   key ? key->key->name : "a section", name, name,
                                   *path ? path : "the folder of modules",
                                   *near ? "; did you mean '" : ": check the spelling", near,
                                   *near ? "'?" : "", *near || !*path ? "" : " and module_path");
    printer->missing += named;
}

static bool show(void *user, const char *section, const struct weir_setting *setting)
{
    struct printer *printer = user;
    if (!setting) {
        tell_absent(printer,
                    strstr(printer->plugins.text, section)   ? &printer->plugins
                    : strstr(printer->backend.text, section) ? &printer->backend
                                                             : NULL,
                    section);
        return true;
    }
    remember(printer, section, setting);
    if (strcmp(section, "comm") == 0 && strcmp(setting->key->name, "transport") == 0 &&
        strcmp(setting->origin, "default") != 0)
        tell_absent(printer, &printer->transport, setting->text);
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
    const int code = printer->missing > 0 ? CLI_FAILED : CLI_OK;
    if (as_json) {
        json_t *root = json_object();
        weir_json_set(root, "file", cli_json_string(file), &printer->ok);
        weir_json_set(root, "missing", weir_json_count(printer->missing), &printer->ok);
        weir_json_set(root, "settings", json_incref(printer->root), &printer->ok);
        return cli_json_print(root, printer->ok, code);
    }
    if (printer->missing > 0)
        printf("%s needs %zu module%s that %s not here\n\n", file, printer->missing,
               printer->missing == 1 ? "" : "s", printer->missing == 1 ? "is" : "are");
    else
        printf("%s is sound\n\n", file);
    cli_table_print(&printer->table, stdout, 0);
    return code;
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
