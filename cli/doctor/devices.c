// weir devices: the devices that the configured backend lists, with their limits, for which each is opened;
// and the tests of a device of `weir doctor`.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/doctor/doctor.h"
#include "cli/runtime/open.h"
#include "kernels/conformance/conformance.h"
#include "kernels/drivers/drivers.h"

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
        else if (limit->form == KIND)
            value = json_string(kind_name(limit->value));
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
    listing.entries = cli_allocate(listing.count + 1, sizeof *listing.entries);
    for (size_t i = 0; i < listing.count; i++) {
        look_at(runtime, i, &listing.entries[i]);
        if (listing.entries[i].opened)
            continue;
        cli_error("device %zu: %s", i, listing.entries[i].problem);
        code = CLI_SETUP;
    }
    if (as_json)
        return print_json(&listing, code);
    printf("module %s\n\n", listing.backend);
    for (size_t i = 0; i < listing.count; i++)
        print_device(&listing.entries[i], i);
    return code;
}

static int devices_main(int argc, char **argv)
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

const struct cli_command cli_devices = {
    .name = "devices",
    .summary = "list devices and their limits",
    .main = devices_main,
};

// Kernels that some drivers compile to something else (kernels/drivers), on the device that the
// configuration selects.

enum {
    BLOCK = 32 // some drivers have no larger ones
};
static const uint32_t untouched = UINT32_MAX;
static const size_t bytes = BLOCK * sizeof(uint32_t);

static const struct probe {
    const char *kernel;
    uint32_t right; // of the numbers 1 to BLOCK
    bool local;     // the kernel takes local memory
    const char *fault;
} probes[] = {
    {"barrier_in_loop", BLOCK *(BLOCK + 1) / 2, true,
     "this driver miscompiles a barrier at the end of a loop: sums of a block come out wrong; set "
     "build_options = -cl-opt-disable in [opencl], or update the driver"},
    {"written_by_all", BLOCK, false,
     "this driver gives each work-item its own copy of a __local variable that all of them write "
     "first, and what one writes later the others do not see; let one work-item write it first, "
     "declare it volatile, or set build_options = -cl-opt-disable in [opencl]"},
};

struct bench {
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_buffer *in;
    weir_buffer *out;
};

static weir_status make(struct bench *bench)
{
    const struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = bytes};
    weir_device *device = bench->device;
    uint32_t numbers[BLOCK];
    weir_status status;
    for (uint32_t i = 0; i < BLOCK; i++)
        numbers[i] = i + 1;
    if ((status = weir_queue_create(device, NULL, &bench->queue)) ||
        (status = weir_program_create(
             device, WEIR_PARAMS(weir_program, .label = "driver", .bundle = &drivers_kernels),
             &bench->program)) ||
        (status = weir_buffer_create(device, &buffer, &bench->in)) ||
        (status = weir_buffer_create(device, &buffer, &bench->out)))
        return status;
    return weir_upload(bench->queue, bench->in, 0, numbers, bytes);
}

static weir_status launch(const struct bench *bench, const struct probe *probe, weir_kernel *kernel,
                          uint32_t *out)
{
    const struct weir_argument arguments[] = {weir_in(bench->in, 0, bytes),
                                              weir_inout(bench->out, 0, bytes), weir_local(bytes)};
    weir_queue *queue = bench->queue;
    weir_status status;
    if ((status = weir_queue_fill(queue, bench->out, 0, bytes, &untouched, sizeof untouched)) ||
        (status = weir_queue_launch_array(queue, kernel, weir_dim(1, 1, 1), weir_dim(BLOCK, 1, 1),
                                          arguments, probe->local ? 3 : 2)))
        return status;
    return weir_download(queue, out, bench->out, 0, sizeof *out);
}

static weir_status run(const struct bench *bench, const struct probe *probe, uint32_t *out)
{
    weir_kernel *kernel;
    weir_status status = weir_kernel_create(bench->program, probe->kernel, &kernel);
    if (status == WEIR_OK)
        status = launch(bench, probe, kernel, out);
    weir_kernel_destroy(&kernel);
    return status;
}

static weir_status judge(struct doctor *doctor, const struct bench *bench)
{
    const size_t count = sizeof probes / sizeof *probes;
    size_t right = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t result = untouched;
        const weir_status status = run(bench, &probes[i], &result);
        if (status < 0)
            return status;
        right += result == probes[i].right;
        // A device that runs no kernels is the self-test's finding.
        if (result != probes[i].right && result != untouched)
            doctor_add(doctor, DOCTOR_NOTE, "driver", NULL, "%s", probes[i].fault);
    }
    if (right == count)
        doctor_add(doctor, DOCTOR_OK, "driver", NULL,
                   "kernels that some drivers miscompile gave the right numbers");
    return WEIR_OK;
}

static void probe_driver(struct doctor *doctor, weir_device *device)
{
    struct bench bench = {.device = device};
    weir_status status = make(&bench);
    if (status == WEIR_OK)
        status = judge(doctor, &bench);
    if (status < 0)
        doctor_add_error(doctor, "driver", "update the driver, or choose another device");
    weir_buffer_destroy(&bench.out);
    weir_buffer_destroy(&bench.in);
    weir_program_destroy(&bench.program);
    weir_queue_destroy(&bench.queue);
}

// A round trip on the device that the configuration selects: copy in, one kernel,
// copy out, and the time between two events.

enum {
    COUNT = 1024,
    ADDED = 7
};
static const size_t trip_bytes = COUNT * sizeof(uint32_t);
static const uint64_t limit_ns = UINT64_C(120) * 1000000000;

struct round_trip {
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *in;
    weir_buffer *values;
    weir_buffer *out;
    struct weir_event before;
    struct weir_event after;
};

static weir_status make_buffer(struct round_trip *trip, const char *label, weir_placement placement,
                               weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = trip_bytes,
                                              .placement = placement};
    return weir_buffer_create(trip->device, &params, out_buffer);
}

static weir_status make_objects(struct round_trip *trip)
{
    const struct weir_queue_params queue = {
        .struct_size = sizeof queue,
        .label = "self-test",
        .timing = weir_device_limits(trip->device)->timing_history > 0,
    };
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "self-test",
                                                .bundle = &conformance_kernels};
    weir_status status;
    if ((status = weir_queue_create(trip->device, &queue, &trip->queue)) ||
        (status = weir_program_create(trip->device, &program, &trip->program)) ||
        (status = weir_kernel_create(trip->program, "increment", &trip->kernel)) ||
        (status = make_buffer(trip, "in", WEIR_PLACE_HOST, &trip->in)) ||
        (status = make_buffer(trip, "values", WEIR_PLACE_DEVICE, &trip->values)))
        return status;
    return make_buffer(trip, "out", WEIR_PLACE_HOST, &trip->out);
}

static weir_status fill(weir_buffer *buffer)
{
    void *pointer;
    weir_status status = weir_host_begin(buffer, 0, trip_bytes, WEIR_ACCESS_WRITE, &pointer);
    if (status < 0)
        return status;
    uint32_t *values = pointer;
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = i;
    return weir_host_end(buffer, 0, trip_bytes, WEIR_ACCESS_WRITE);
}

// A divisor of COUNT, within what the driver tells of the kernel.
static uint32_t choose_block(const struct round_trip *trip)
{
    uint32_t items = 64;
    while (items > weir_kernel_get_info(trip->kernel)->max_block_items)
        items /= 2;
    return items;
}

static weir_status submit(struct round_trip *trip)
{
    const uint32_t items = choose_block(trip);
    weir_status status;
    if ((status = fill(trip->in)) ||
        (status = weir_queue_copy(trip->queue, trip->values, 0, trip->in, 0, trip_bytes)) ||
        (status = weir_queue_record(trip->queue, &trip->before)) ||
        (status = weir_queue_launch(trip->queue, trip->kernel, weir_dim(COUNT / items, 1, 1),
                                    weir_dim(items, 1, 1), weir_inout(trip->values, 0, trip_bytes),
                                    (uint32_t)ADDED, (uint32_t)COUNT)) ||
        (status = weir_queue_record(trip->queue, &trip->after)) ||
        (status = weir_queue_copy(trip->queue, trip->out, 0, trip->values, 0, trip_bytes)))
        return status;
    return weir_queue_sync(trip->queue, limit_ns);
}

// How many numbers have the right value, and how many are unchanged.
static weir_status compare(struct round_trip *trip, uint32_t *out_right, uint32_t *out_unchanged)
{
    void *pointer;
    *out_right = *out_unchanged = 0;
    weir_status status = weir_host_begin(trip->out, 0, trip_bytes, WEIR_ACCESS_READ, &pointer);
    if (status < 0)
        return status;
    const uint32_t *values = pointer;
    for (uint32_t i = 0; i < COUNT; i++) {
        *out_right += values[i] == i + ADDED;
        *out_unchanged += values[i] == i;
    }
    return weir_host_end(trip->out, 0, trip_bytes, WEIR_ACCESS_READ);
}

static void judge_result(struct doctor *doctor, struct round_trip *trip)
{
    uint32_t right, unchanged;
    if (compare(trip, &right, &unchanged) < 0)
        doctor_add_error(doctor, "self-test", "update the driver");
    else if (right == COUNT)
        doctor_add(doctor, DOCTOR_OK, "self-test", NULL,
                   "copy, kernel and copy back gave the right %d numbers", (int)COUNT);
    else if (unchanged == COUNT)
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test",
                   "choose a backend that runs kernels, such as opencl",
                   "copies work, but the kernel changed nothing: this device runs no kernels");
    else
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test",
                   "update the driver, or choose another device",
                   "of %d numbers %u came back right", (int)COUNT, (unsigned)right);
}

static void judge_times(struct doctor *doctor, struct round_trip *trip)
{
    uint64_t before, after;
    char text[WEIR_TEXT_QUANTITY_SIZE];
    if (weir_device_limits(trip->device)->timing_history == 0)
        doctor_add(doctor, DOCTOR_NOTE, "self-test", NULL, "the device keeps no times of events");
    else if (weir_event_time_ns(trip->before, &before) < 0 ||
             weir_event_time_ns(trip->after, &after) < 0)
        doctor_add_error(doctor, "self-test", "update the driver");
    else if (after < before)
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test", "update the driver",
                   "the later of two events has the earlier time");
    else
        doctor_add(doctor, DOCTOR_OK, "self-test", NULL, "events are timed: the kernel took %s",
                   weir_text_duration(text, (double)(after - before)));
}

static void destroy_objects(struct round_trip *trip)
{
    weir_buffer_destroy(&trip->out);
    weir_buffer_destroy(&trip->values);
    weir_buffer_destroy(&trip->in);
    weir_kernel_destroy(&trip->kernel);
    weir_program_destroy(&trip->program);
    weir_queue_destroy(&trip->queue);
}

void doctor_self_test(struct doctor *doctor)
{
    struct round_trip trip = {0};
    if (!doctor->runtime)
        return;
    if (weir_device_open_at(doctor->runtime, NULL, &trip.device, NULL, 0) < 0) {
        doctor_add_error(doctor, "self-test", "correct `device` in [weir]");
        return;
    }
    weir_status status = make_objects(&trip);
    if (status == WEIR_OK)
        status = submit(&trip);
    if (status == WEIR_TIMEOUT) {
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test", "restart or update the driver",
                   "a copy and a kernel did not finish within two minutes");
    } else if (status < 0) {
        doctor_add_error(doctor, "self-test", "update the driver, or choose another device");
    } else {
        judge_result(doctor, &trip);
        judge_times(doctor, &trip);
    }
    destroy_objects(&trip);
    probe_driver(doctor, trip.device);
    WEIR_IGNORE(weir_device_close(&trip.device));
}
