// weir devices: the devices that the configured backend lists, with their limits. Only an
// open device has limits, so each is opened.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/json.h"
#include "cli/common/options.h"
#include "cli/common/table.h"
#include "cli/runtime/open.h"

struct entry {
    struct weir_device_info info;
    struct weir_limits limits;
    bool opened;
    char problem[1024];
};

struct listing {
    const char *backend;
    struct entry *entries;
    size_t count;
};

static void look_at(weir_runtime *runtime, size_t index, struct entry *entry)
{
    char select[32];
    weir_device *device = NULL;
    snprintf(select, sizeof select, "%zu", index);
    const struct weir_device_params params = {.struct_size = sizeof params, .select = select};
    if (weir_device_describe(runtime, index, &entry->info) < 0 ||
        weir_device_open_at(runtime, &params, &device, NULL, 0) < 0) {
        snprintf(entry->problem, sizeof entry->problem, "%s", weir_last_error_text());
        return;
    }
    entry->limits = *weir_device_limits(device);
    entry->opened = true;
    weir_device_close(&device);
}

// Limits, one line each. Zero: not supported.

enum form {
    NUMBER,
    BYTES,
    YES_OR_NO,
    EXTENT,
    NANOSECONDS
};

struct limit {
    const char *name; // in JSON
    const char *text; // in the table
    enum form form;
    uint64_t value;
    struct weir_extent extent; // EXTENT
};

enum {
    LIMIT_COUNT = 20
};

static void list_limits(const struct weir_limits *limits, struct limit out[LIMIT_COUNT])
{
    const struct weir_extent none = {0, 0, 0};
    const struct limit list[LIMIT_COUNT] = {
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
    char text[WEIR_TEXT_QUANTITY_SIZE];
    switch (limit->form) {
    case BYTES:
        weir_table_add(table, "%s", weir_text_bytes(text, limit->value));
        break;
    case NANOSECONDS:
        weir_table_add(table, "%s",
                       limit->value ? weir_text_duration(text, (double)limit->value) : "no");
        break;
    case YES_OR_NO:
        weir_table_add(table, "%s", limit->value ? "yes" : "no");
        break;
    case EXTENT:
        weir_table_add(table, "%" PRIu32 " x %" PRIu32 " x %" PRIu32, limit->extent.x,
                       limit->extent.y, limit->extent.z);
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
    for (size_t i = 0; entry->opened && i < LIMIT_COUNT; i++) {
        weir_table_add(&table, "%s", limits[i].text);
        add_limit(&table, &limits[i]);
    }
    if (!entry->opened) {
        weir_table_add(&table, "cannot be opened");
        weir_table_add(&table, "%s", entry->problem);
    }
    cli_table_print(&table, stdout, 2);
}

// JSON.

static json_t *describe_limits(const struct weir_limits *source, bool *ok)
{
    struct limit limits[LIMIT_COUNT];
    json_t *object = json_object();
    list_limits(source, limits);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        const struct limit *limit = &limits[i];
        json_t *value;
        if (limit->form == YES_OR_NO)
            value = json_boolean(limit->value);
        else if (limit->form == EXTENT)
            value = json_pack("[I, I, I]", (json_int_t)limit->extent.x, (json_int_t)limit->extent.y,
                              (json_int_t)limit->extent.z);
        else
            value = weir_json_count(limit->value);
        weir_json_set(object, limit->name, value, ok);
    }
    return object;
}

static json_t *describe_device(const struct entry *entry, size_t index, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "index", weir_json_count(index), ok);
    weir_json_set(object, "name", cli_json_string(entry->info.name), ok);
    weir_json_set(object, "platform", cli_json_string(entry->info.platform), ok);
    weir_json_set(object, "driver", cli_json_string(entry->info.driver), ok);
    if (entry->opened)
        weir_json_set(object, "limits", describe_limits(&entry->limits, ok), ok);
    else
        weir_json_set(object, "problem", cli_json_string(entry->problem), ok);
    return object;
}

static int print_json(const struct listing *listing, int code)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *devices = json_array();
    for (size_t i = 0; i < listing->count; i++)
        weir_json_append(devices, describe_device(&listing->entries[i], i, &ok), &ok);
    weir_json_set(root, "weir", json_string(weir_version()), &ok);
    weir_json_set(root, "module", cli_json_string(listing->backend), &ok);
    weir_json_set(root, "devices", devices, &ok);
    return cli_json_print(root, ok, code);
}

static int list_devices(weir_runtime *runtime, bool as_json)
{
    struct listing listing = {.backend = weir_runtime_backend(runtime),
                              .count = weir_device_count(runtime)};
    int code = CLI_OK;
    listing.entries = calloc(listing.count + 1, sizeof *listing.entries);
    if (!listing.entries) {
        cli_error("no memory for the list of devices");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < listing.count; i++) {
        look_at(runtime, i, &listing.entries[i]);
        if (listing.entries[i].opened)
            continue;
        cli_error("device %zu: %s", i, listing.entries[i].problem);
        code = CLI_SETUP;
    }
    if (as_json) {
        code = print_json(&listing, code);
    } else {
        printf("module %s\n\n", listing.backend);
        for (size_t i = 0; i < listing.count; i++)
            print_device(&listing.entries[i], i);
    }
    free(listing.entries);
    return code;
}

static int devices_main(int argc, char **argv)
{
    const char *config = NULL;
    bool as_json = false;
    const struct cli_option options[] = {
        {"config", "F", "the INI file; without it, the one that WEIR_CONFIG\nnames, or none",
         CLI_FILE, &config, 0, 0},
        {"json", NULL, "print JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM_PLAIN(
        "weir devices",
        "Lists the devices of the backend that the configuration selects, and their limits.",
        "weir-devices(1)", options);
    weir_runtime *runtime = NULL;
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    cli_log_to_stderr();
    if (cli_open(config, NULL, &runtime) < 0)
        return cli_weir_error();
    code = list_devices(runtime, as_json);
    return cli_close(NULL, &runtime, code);
}

const struct cli_command cli_devices = {
    .name = "devices",
    .summary = "list devices and their limits",
    .main = devices_main,
};
