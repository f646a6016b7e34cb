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

struct entry {
    struct weir_device_info info;
    struct weir_limits limits;
    const char *problem; // NULL: it was opened
};

static void look_at(weir_runtime *runtime, size_t index, struct entry *entry)
{
    weir_device *device = NULL;
    const struct weir_device_params params = {.struct_size = sizeof params,
                                              .select = cli_text("%zu", index)};
    if (weir_device_describe(runtime, index, &entry->info) < 0 ||
        weir_device_open_at(runtime, &params, &device, NULL, 0) < 0) {
        entry->problem = cli_copy(weir_last_error_text());
        return;
    }
    entry->limits = *weir_device_limits(device);
    WEIR_IGNORE(weir_device_close(&device));
}

// Limits, one line each. Zero: not supported.

enum form {
    NUMBER,
    BYTES,
    YES_OR_NO,
    EXTENT,
    NANOSECONDS,
    KIND
};

struct limit {
    const char *name; // in JSON
    const char *text; // in the table
    enum form form;
    uint64_t value;
    struct weir_extent extent; // EXTENT
};

enum {
    LIMIT_COUNT = 21
};

static const char *kind_name(uint64_t kind)
{
    return kind == WEIR_DEVICE_CPU           ? "cpu"
           : kind == WEIR_DEVICE_GPU         ? "gpu"
           : kind == WEIR_DEVICE_ACCELERATOR ? "accelerator"
                                             : "other";
}

static void list_limits(const struct weir_limits *limits, struct limit out[LIMIT_COUNT])
{
    const struct weir_extent none = {0, 0, 0};
    const struct limit list[LIMIT_COUNT] = {
        {"kind", "kind", KIND, limits->kind, none},
        {"memory_bytes", "memory", BYTES, limits->memory_bytes, none},
        {"max_buffer_bytes", "largest buffer", BYTES, limits->max_buffer_bytes, none},
        {"argument_alignment_bytes", "alignment of arguments", BYTES,
         limits->argument_alignment_bytes, none},
        {"byte_offsets", "offsets of any element", YES_OR_NO, limits->byte_offsets, none},
        {"device_addresses", "addresses in kernels", YES_OR_NO, limits->device_addresses, none},
        {"max_constant_bytes", "largest constant", BYTES, limits->max_constant_bytes, none},
        {"unified_memory", "shares the host's memory", YES_OR_NO, limits->unified_memory, none},
        {"host_in_kernels", "host buffers in kernels", YES_OR_NO, limits->host_in_kernels, none},
        {"managed_memory", "managed memory", YES_OR_NO, limits->managed_memory, none},
        {"compute_units", "compute units", NUMBER, limits->compute_units, none},
        {"max_block_items", "work-items in a block", NUMBER, limits->max_block_items, none},
        {"max_block", "block", EXTENT, 0, limits->max_block},
        {"max_grid", "grid", EXTENT, 0, limits->max_grid},
        {"max_local_bytes", "local memory of a block", BYTES, limits->max_local_bytes, none},
        {"concurrent_kernels", "kernels at once", NUMBER, limits->concurrent_kernels, none},
        {"copy_engines_to_device", "copy engines to the device", NUMBER,
         limits->copy_engines_to_device, none},
        {"copy_engines_to_host", "copy engines to the host", NUMBER, limits->copy_engines_to_host,
         none},
        {"priority_levels", "priorities of queues", NUMBER,
         (uint64_t)labs((long)limits->priority_highest - limits->priority_lowest) + 1, none},
        {"timing_resolution_ns", "resolution of times", NANOSECONDS, limits->timing_resolution_ns,
         none},
        {"timing_history", "times kept of a queue", NUMBER, limits->timing_history, none},
    };
    memcpy(out, list, sizeof list);
}

static void add_limit(struct weir_table *table, const struct limit *limit)
{
    switch (limit->form) {
    case BYTES:
        weir_table_add(table, "%s", weir_text_bytes(limit->value).text);
        break;
    case NANOSECONDS:
        weir_table_add(table, "%s",
                       limit->value ? weir_text_duration((double)limit->value).text : "no");
        break;
    case YES_OR_NO:
        weir_table_add(table, "%s", limit->value ? "yes" : "no");
        break;
    case EXTENT:
        weir_table_add(table, "%" PRIu32 " x %" PRIu32 " x %" PRIu32, limit->extent.x,
                       limit->extent.y, limit->extent.z);
        break;
    case KIND:
        weir_table_add(table, "%s", kind_name(limit->value));
        break;
    case NUMBER:
        weir_table_add(table, "%" PRIu64, limit->value);
        break;
    }
}

static void print_device(const struct entry *entry, size_t index)
{
    struct weir_table table = {.alignment = "ll"};
    struct limit limits[LIMIT_COUNT];
    printf("%s%zu: %s\n", index ? "\n" : "", index, entry->info.name);
    weir_table_add(&table, "platform");
    weir_table_add(&table, "%s", entry->info.platform);
    weir_table_add(&table, "driver");
    weir_table_add(&table, "%s", entry->info.driver);
    list_limits(&entry->limits, limits);
    for (size_t i = 0; !entry->problem && i < LIMIT_COUNT; i++) {
        weir_table_add(&table, "%s", limits[i].text);
        add_limit(&table, &limits[i]);
    }
    if (entry->problem) {
        weir_table_add(&table, "cannot be opened");
        weir_table_add(&table, "%s", entry->problem);
    }
    cli_table_print(&table, stdout, 2);
}

// JSON.

static json_t *describe_limits(const struct weir_limits *source)
{
    struct limit limits[LIMIT_COUNT];
    json_t *object = json_object();
    list_limits(source, limits);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        const struct limit *limit = &limits[i];
        json_t *value;
        if (limit->form == YES_OR_NO)
            value = json_boolean(limit->value);
        else if (limit->form == KIND)
            value = json_string(kind_name(limit->value));
        else if (limit->form == EXTENT)
            value = json_pack("[I, I, I]", (json_int_t)limit->extent.x, (json_int_t)limit->extent.y,
                              (json_int_t)limit->extent.z);
        else
            value = weir_json_count(limit->value);
        cli_json_set(object, limit->name, value);
    }
    return object;
}

static int print_json(const char *backend, const struct entry *entries, size_t count, int code)
{
    json_t *root = json_object();
    json_t *devices = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        cli_json_set(object, "index", weir_json_count(i));
        cli_json_set(object, "name", cli_json_string(entries[i].info.name));
        cli_json_set(object, "platform", cli_json_string(entries[i].info.platform));
        cli_json_set(object, "driver", cli_json_string(entries[i].info.driver));
        if (entries[i].problem)
            cli_json_set(object, "problem", cli_json_string(entries[i].problem));
        else
            cli_json_set(object, "limits", describe_limits(&entries[i].limits));
        cli_json_append(devices, object);
    }
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "module", cli_json_string(backend));
    cli_json_set(root, "devices", devices);
    return cli_json_print(root, code);
}

static int list_devices(weir_runtime *runtime, bool as_json)
{
    const char *backend = weir_runtime_backend(runtime);
    const size_t count = weir_device_count(runtime);
    struct entry *entries = cli_allocate(count + 1, sizeof *entries);
    int code = CLI_OK;
    for (size_t i = 0; i < count; i++) {
        look_at(runtime, i, &entries[i]);
        if (!entries[i].problem)
            continue;
        cli_error("device %zu: %s", i, entries[i].problem);
        code = CLI_SETUP;
    }
    if (as_json)
        return print_json(backend, entries, count, code);
    printf("module %s\n\n", backend);
    for (size_t i = 0; i < count; i++)
        print_device(&entries[i], i);
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
        "weir-devices(1)", options);
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
                 "weir-config(1)", options);
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
