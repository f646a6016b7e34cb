// weir devices: the devices that the configured backend lists, with their limits, for which each is opened; and
// weir config check: the settings that follow from a file.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inspect.h>

#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/runtime/open.h"

// What is told of a device, as text and as JSON.
struct entry {
    struct weir_table rows;
    json_t *members;
};

static void add(struct entry *entry, const char *name, const char *words, const char *text,
                json_t *value)
{
    weir_table_add(&entry->rows, "%s", words);
    weir_table_add(&entry->rows, "%s", text);
    cli_json_set(entry->members, name, value);
}

static void add_text(struct entry *entry, const char *name, const char *words, const char *text)
{
    add(entry, name, words, text, cli_json_string(text));
}

static void add_number(struct entry *entry, const char *name, const char *words, uint64_t number)
{
    add(entry, name, words, cli_text("%" PRIu64, number), weir_json_count(number));
}

static void add_bytes(struct entry *entry, const char *name, const char *words, uint64_t bytes)
{
    add(entry, name, words, weir_text_bytes(bytes).text, weir_json_count(bytes));
}

static void add_answer(struct entry *entry, const char *name, const char *words, bool yes)
{
    add(entry, name, words, yes ? "yes" : "no", json_boolean(yes));
}

static void add_extent(struct entry *entry, const char *name, const char *words,
                       struct weir_extent extent)
{
    add(entry, name, words,
        cli_text("%" PRIu32 " x %" PRIu32 " x %" PRIu32, extent.x, extent.y, extent.z),
        json_pack("[I, I, I]", (json_int_t)extent.x, (json_int_t)extent.y, (json_int_t)extent.z));
}

static const char *kind_name(uint64_t kind)
{
    return kind == WEIR_DEVICE_CPU           ? "cpu"
           : kind == WEIR_DEVICE_GPU         ? "gpu"
           : kind == WEIR_DEVICE_ACCELERATOR ? "accelerator"
                                             : "other";
}

// Zero: not supported.
static void add_limits(struct entry *entry, const struct weir_limits *limits)
{
    const uint64_t tick_ns = limits->timing_resolution_ns;
    add_text(entry, "kind", "kind", kind_name(limits->kind));
    add_bytes(entry, "memory_bytes", "memory", limits->memory_bytes);
    add_bytes(entry, "max_buffer_bytes", "largest buffer", limits->max_buffer_bytes);
    add_bytes(entry, "argument_alignment_bytes", "alignment of arguments",
              limits->argument_alignment_bytes);
    add_answer(entry, "byte_offsets", "offsets of any element", limits->byte_offsets);
    add_answer(entry, "device_addresses", "addresses in kernels", limits->device_addresses);
    add_bytes(entry, "max_constant_bytes", "largest constant", limits->max_constant_bytes);
    add_answer(entry, "unified_memory", "shares the host's memory", limits->unified_memory);
    add_answer(entry, "host_in_kernels", "host buffers in kernels", limits->host_in_kernels);
    add_answer(entry, "managed_memory", "managed memory", limits->managed_memory);
    add_number(entry, "compute_units", "compute units", limits->compute_units);
    add_number(entry, "max_block_items", "work-items in a block", limits->max_block_items);
    add_extent(entry, "max_block", "block", limits->max_block);
    add_extent(entry, "max_grid", "grid", limits->max_grid);
    add_bytes(entry, "max_local_bytes", "local memory of a block", limits->max_local_bytes);
    add_number(entry, "concurrent_kernels", "kernels at once", limits->concurrent_kernels);
    add_number(entry, "copy_engines_to_device", "copy engines to the device",
               limits->copy_engines_to_device);
    add_number(entry, "copy_engines_to_host", "copy engines to the host",
               limits->copy_engines_to_host);
    add_number(entry, "priority_levels", "priorities of queues",
               (uint64_t)labs((long)limits->priority_highest - limits->priority_lowest) + 1);
    add(entry, "timing_resolution_ns", "resolution of times",
        tick_ns ? weir_text_duration((double)tick_ns).text : "no", weir_json_count(tick_ns));
    add_number(entry, "timing_history", "times kept of a queue", limits->timing_history);
}

// Adds the device to the list, and unless `as_json` prints it. Returns an exit code.
static int show_device(weir_runtime *runtime, size_t index, json_t *devices, bool as_json)
{
    struct entry entry = {.rows = {.alignment = "ll"}, .members = json_object()};
    struct weir_device_info info = {0};
    weir_device *device = NULL;
    const char *number = cli_text("%zu", index), *problem = NULL;
    if (weir_device_describe(runtime, index, &info) < 0 ||
        weir_device_open_at(runtime, WEIR_PARAMS(weir_device, .select = number), &device, NULL, 0) <
            0)
        problem = cli_copy(weir_last_error_text());
    json_t *object = entry.members;
    cli_json_set(object, "index", weir_json_count(index));
    cli_json_set(object, "name", cli_json_string(info.name));
    add_text(&entry, "platform", "platform", info.platform);
    add_text(&entry, "driver", "driver", info.driver);
    if (problem) {
        cli_error("device %s: %s", number, problem);
        add_text(&entry, "problem", "cannot be opened", problem);
    } else {
        entry.members = json_object();
        add_limits(&entry, weir_device_limits(device));
        cli_json_set(object, "limits", entry.members);
        WEIR_IGNORE(weir_device_close(&device));
    }
    cli_json_append(devices, object);
    if (!as_json) {
        printf("\n%s: %s\n", number, info.name);
        cli_table_print(&entry.rows, stdout, 2);
    }
    weir_table_finish(&entry.rows);
    return problem ? CLI_SETUP : CLI_OK;
}

static int list_devices(weir_runtime *runtime, bool as_json)
{
    json_t *root = json_object(), *devices = json_array();
    int code = CLI_OK;
    if (!as_json)
        printf("module %s\n", weir_runtime_backend(runtime));
    for (size_t i = 0; i < weir_device_count(runtime); i++) {
        const int shown = show_device(runtime, i, devices, as_json);
        code = shown ? shown : code;
    }
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "module", cli_json_string(weir_runtime_backend(runtime)));
    cli_json_set(root, "devices", devices);
    if (as_json)
        return cli_json_print(root, code);
    json_decref(root);
    return code;
}

int cli_devices(int argc, char **argv)
{
    const char *config = NULL;
    bool as_json = false;
    const struct cli_option options[] = {
        CLI_CONFIG(&config),
        {"json", NULL, "print JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM_PLAIN(
        "weir devices",
        "Lists the devices of the backend that the configuration selects, and their limits.",
        options);
    cli_parse(&usage, argc, argv);
    cli_log_to_stderr();
    return list_devices(cli_open(config), as_json);
}

// weir config check: reads the file as weir_open() does and prints the settings in force. No driver is loaded.

struct printer {
    struct weir_table table;
    json_t *root;
    struct weir_setting module_path, plugins, backend, transport;
    size_t missing; // modules that the file, a variable or an option names, and that have no file
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
    if (named || !cli_quiet)
        cli_error("%s%s%s names '%s', and there is no weir_%s.so in %s%s%s%s%s",
                  key ? key->origin : "", key ? ": " : "", key ? key->key->name : "a section", name,
                  name, *path ? path : "the folder of modules",
                  *near ? "; did you mean '" : ": check the spelling", near, *near ? "'?" : "",
                  *near || !*path ? "" : " and module_path");
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
        cli_json_set(printer->root, section, json_object());
    json_t *entry = json_object();
    cli_json_set(entry, "value", cli_json_string(setting->text));
    cli_json_set(entry, "origin", cli_json_string(setting->origin));
    cli_json_set(json_object_get(printer->root, section), setting->key->name, entry);
    return true;
}

static int print_settings(struct printer *printer, const char *file, bool as_json)
{
    const int code = printer->missing > 0 ? CLI_FAILED : CLI_OK;
    if (as_json) {
        json_t *root = json_object();
        cli_json_set(root, "file", cli_json_string(file));
        cli_json_set(root, "missing", weir_json_count(printer->missing));
        cli_json_set(root, "settings", json_incref(printer->root));
        return cli_json_print(root, code);
    }
    if (printer->missing > 0)
        printf("%s needs %zu module%s that %s not here\n\n", file, printer->missing,
               printer->missing == 1 ? "" : "s", printer->missing == 1 ? "is" : "are");
    else
        printf("%s is sound\n\n", file);
    cli_table_print(&printer->table, stdout, 0);
    return code;
}

int cli_config_check(int argc, char **argv)
{
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print the settings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM("weir config check", "F", "a file", 1, 1,
                 "Checks an INI file and prints the settings that follow from it, and from where.",
                 options);
    cli_parse(&usage, argc, argv);
    cli_log_to_stderr();
    struct printer printer = {.table = {.alignment = "lll"}, .root = json_object()};
    const struct weir_open_params params = cli_open_params(argv[0]);
    const int code = weir_inspect_settings(&params, show, &printer) < 0
                         ? cli_weir_error()
                         : print_settings(&printer, argv[0], as_json);
    weir_table_finish(&printer.table);
    json_decref(printer.root);
    return code;
}
