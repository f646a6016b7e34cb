// weir doctor: what was found on this machine, what is missing and what to do, and a small test on the device.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for environ
#define _GNU_SOURCE
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <libgen.h>
#include <unistd.h>

#include <weir/inspect.h>

#include "base/file.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/runtime/open.h"
#include "kernels/compiler/compiler.h"
#include "kernels/conformance/conformance.h"
#include "kernels/drivers/drivers.h"

// The chain, and the module files that are installed, in the chain or not.

static void add_module(struct doctor *doctor, const struct weir_load_entry *module)
{
    const bool is_plain = !module->sanitizer[0];
    if (module->outcome != WEIR_LOAD_USED) {
        doctor_note(doctor, "module", "%s cannot be used: %s; %s", module->module, module->reason,
                    module->remedy);
        return;
    }
    doctor_ok(doctor, "module", "%s %s, a %s, ABI %u, %s%s%s: %s", module->module, module->version,
              module->kind, (unsigned)module->abi_seen, is_plain ? "" : "built with the ",
              module->sanitizer, is_plain ? "plain build" : " sanitizer", module->path);
    for (const char *const *about = module->about; about && about[0] && about[1]; about += 2)
        doctor_ok(doctor, "module", "%s, %s: %s", module->module, about[0], about[1]);
}

static void add_entry(struct doctor *doctor, const struct weir_load_entry *entry)
{
    switch (entry->outcome) {
    case WEIR_LOAD_USED:
        doctor_ok(doctor, "chain", "%s is used%s%s", entry->module,
                  entry->driver[0] ? ", driver " : "", entry->driver);
        break;
    case WEIR_LOAD_REFUSED:
        doctor_note(doctor, "chain", "%s was refused: %s", entry->module, entry->reason);
        break;
    case WEIR_LOAD_MISSING:
        doctor_note(doctor, "chain", "%s is not there: no %s", entry->module, entry->path);
        break;
    }
}

static void doctor_modules(struct doctor *doctor)
{
    const struct weir_load_entry *entry;
    weir_load_report *installed;
    for (size_t i = 0; (entry = weir_load_report_entry(doctor->report, i)); i++)
        add_entry(doctor, entry);
    doctor->incomplete |= weir_inspect_modules(doctor->module_path, &installed) < 0;
    for (size_t i = 0; (entry = weir_load_report_entry(installed, i)); i++)
        add_module(doctor, entry);
    weir_load_report_destroy(&installed);
}

// Environment variables, devices, and PoCL's cache: without a folder that it can write to,
// PoCL offers no device.

// Variables whose names begin with WEIR_: those that nothing reads are told with the nearest name that
// something does.

struct names {
    const char **items; // after WEIR_
    size_t count;
    size_t capacity;
};

static const char variable_lead[] = "WEIR_";

static void know(struct names *names, const char *name)
{
    names->items = cli_grow(names->items, names->count, &names->capacity, sizeof *names->items);
    names->items[names->count++] = cli_copy(name);
}

static bool know_setting(void *user, const char *section, const struct weir_setting *setting)
{
    char name[256];
    if (setting) {
        weir_text_variable(name, sizeof name, section, setting->key->name);
        know(user, name + strlen(variable_lead));
    }
    return true;
}

// Those of keys follow from the tables of all modules that are installed, in the chain or not. False if a
// value is wrong, which opening tells.
static bool know_all(const struct doctor *doctor, struct names *known)
{
    static const char *const others[] = {
        "BACKEND",         "COMM_SECRET",  "CONFIG", "COPY_THREADS", "DEBUG",   "LIBCLC",
        "KERNELS_LIMIT_S", "LOCKS_OTHERS", "LOG",    "MODULE_PATH",  "PLUGINS",
    };
    const struct weir_load_entry *entry;
    struct weir_open_params params = cli_open_params(doctor->config);
    weir_load_report *installed = NULL;
    char names[1024] = "";
    size_t used = 0;
    if (weir_inspect_modules(doctor->module_path, &installed) < 0)
        return false;
    for (size_t i = 0; (entry = weir_load_report_entry(installed, i)); i++)
        if (entry->outcome == WEIR_LOAD_USED && strcmp(entry->kind, "transport") != 0)
            weir_text_append(names, sizeof names, &used, "%s%s", used ? ", " : "", entry->module);
    weir_load_report_destroy(&installed);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        know(known, others[i]);
    params.plugins = names;
    return weir_inspect_settings(&params, know_setting, known) >= 0;
}

// A NAME=VALUE, after WEIR_. Not all names are known unless `all`.
static void add_variable(struct doctor *doctor, const struct names *known, bool all,
                         const char *text)
{
    const char *name = cli_text("%.*s", (int)strcspn(text, "="), text);
    const char *nearest = weir_text_nearest(name, known->items, known->count);
    size_t at = 0;
    while (at < known->count && strcmp(known->items[at], name) != 0)
        at++;
    if (strcmp(name, "COMM_SECRET") == 0)
        doctor_note(doctor, "environment", "WEIR_COMM_SECRET is set");
    else if (at < known->count)
        doctor_note(doctor, "environment", "%s%s", variable_lead, text);
    else if (all)
        doctor_note(doctor, "environment", "nothing of Weir reads %s%s%s%s%s%s", variable_lead,
                    name, nearest ? "; did you mean " : "", nearest ? variable_lead : "",
                    nearest ? nearest : "", nearest ? "?" : "");
}

static void doctor_environment(struct doctor *doctor)
{
    static const char *const drivers[] = {
        "OCL_ICD_VENDORS",        "OCL_ICD_FILENAMES",    "POCL_CACHE_DIR", "POCL_DEVICES",
        "POCL_MAX_PTHREAD_COUNT", "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME",
    };
    struct names known = {0};
    const bool all = know_all(doctor, &known);
    for (char **at = environ; *at; at++)
        if (strncmp(*at, variable_lead, strlen(variable_lead)) == 0)
            add_variable(doctor, &known, all, *at + strlen(variable_lead));
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        const char *value = getenv(drivers[i]);
        if (value)
            doctor_note(doctor, "environment", "%s=%s", drivers[i], value);
    }
}

static void doctor_devices(struct doctor *doctor)
{
    const size_t count = doctor->runtime ? weir_device_count(doctor->runtime) : 0;
    for (size_t i = 0; i < count; i++) {
        struct weir_device_info info;
        if (weir_device_describe(doctor->runtime, i, &info) < 0) {
            doctor_add_error(doctor, "device", "update the driver");
            continue;
        }
        doctor_ok(doctor, "device", "%zu: %s (%s; %s), %s", i, info.name, info.platform,
                  info.driver, weir_text_bytes(info.memory_bytes).text);
    }
}

// Where PoCL keeps compiled kernels, as its manual says.
static const char *cache_path(void)
{
    const char *given = getenv("POCL_CACHE_DIR");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (given && *given)
        return given;
    if (cache && *cache)
        return cli_text("%s/pocl/kcache", cache);
    return home && *home ? cli_text("%s/.cache/pocl/kcache", home) : "/tmp/pocl/kcache";
}

static bool can_write_in(const char *directory, char *message, size_t size)
{
    weir_file_writer *probe =
        weir_file_writer_create(cli_text("%s/.weir-probe", directory), message, size);
    const bool can = probe != NULL;
    weir_file_writer_destroy(&probe);
    return can;
}

// The cache matters if PoCL is in use, or if OpenCL was asked for and could not be opened.
static bool pocl_matters(const struct doctor *doctor)
{
    struct weir_device_info info;
    if (!doctor->runtime)
        return true;
    for (size_t i = 0; i < weir_device_count(doctor->runtime); i++)
        if (weir_device_describe(doctor->runtime, i, &info) == WEIR_OK &&
            strcmp(info.platform, "Portable Computing Language") == 0)
            return true;
    return false;
}

static void doctor_pocl_cache(struct doctor *doctor)
{
    char message[512];
    if (!pocl_matters(doctor))
        return;
    const char *path = cache_path();
    // The folder itself, or the one that it would be made in.
    char *existing = cli_copy(path);
    while (access(existing, F_OK) != 0 && errno == ENOENT)
        existing = dirname(existing);
    if (can_write_in(existing, message, sizeof message))
        doctor_ok(doctor, "PoCL cache", "%s can be written%s", path,
                  strcmp(path, existing) == 0 ? "" : " once it is made");
    else
        doctor_add(doctor, DOCTOR_PROBLEM, "PoCL cache",
                   "make the folder writable, or set POCL_CACHE_DIR to one that is",
                   "PoCL cannot keep compiled kernels in %s, and then has no device: %s", path,
                   message);
}

// What `weir kernels` needs. Programs run without all of it, so what is missing is a note.

static void add_part(struct doctor *doctor, const char *name, const char *path)
{
    if (path[0] != '\0')
        doctor_ok(doctor, "weir kernels", "%s: %s", name, path);
}

static void doctor_kernel_compiler(struct doctor *doctor)
{
    struct kc_tools tools = {0};
    kc_tools_find(&tools);
    add_part(doctor, "clang", tools.clang);
    add_part(doctor, "libclc", tools.libclc);
    add_part(doctor, "libdevice", tools.libdevice);
    add_part(doctor, "ptxas", tools.ptxas);
    add_part(doctor, "nvcc", tools.nvcc); // only for CUDA C++, so not missed
    const char *lack = kc_tools_lack(&tools, true);
    if (tools.clang[0] == '\0')
        doctor_note(doctor, "weir kernels",
                    "clang is not installed, and compiling kernels needs it; install clang and "
                    "libclc of one version, such as clang-22 and libclc-22");
    else if (lack)
        doctor_note(doctor, "weir kernels", "%s", lack);
}

// weir doctor: opens what the configuration names, checks each step, and gives one remedy
// for each problem.

static const char *const state_names[] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_NOTE] = "note",
    [DOCTOR_PROBLEM] = "problem",
};

void doctor_add(struct doctor *doctor, enum doctor_state state, const char *topic,
                const char *remedy, const char *format, ...)
{
    doctor->findings =
        cli_grow(doctor->findings, doctor->count, &doctor->capacity, sizeof *doctor->findings);
    struct doctor_finding *finding = &doctor->findings[doctor->count++];
    doctor->problems += state == DOCTOR_PROBLEM;
    char raw[sizeof finding->text];
    va_list arguments;
    finding->state = state;
    snprintf(finding->topic, sizeof finding->topic, "%s", topic);
    snprintf(finding->remedy, sizeof finding->remedy, "%s", remedy ? remedy : "");
    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    weir_text_escape(finding->text, sizeof finding->text, raw, "\n\t");
}

void doctor_add_error(struct doctor *doctor, const char *topic, const char *remedy)
{
    const struct weir_error error = *weir_last_error();
    const char *native =
        error.native_call[0] ? cli_text(" (%s: %s)", error.native_call, error.native_name) : "";
    doctor_add(doctor, DOCTOR_PROBLEM, topic, error.remedy[0] ? error.remedy : remedy, "%s%s",
               error.message, native);
}

// The configuration.

static bool add_setting(void *user, const char *section, const struct weir_setting *setting)
{
    struct doctor *doctor = user;
    if (strcmp(section, "weir") != 0)
        return false;
    if (strcmp(setting->key->name, "module_path") == 0)
        snprintf(doctor->module_path, sizeof doctor->module_path, "%s", setting->text);
    if (setting->text[0])
        doctor_ok(doctor, "configuration", "%s = %s (%s)", setting->key->name, setting->text,
                  setting->origin);
    return true;
}

// The checks, each of which appends its findings.
static void doctor_configuration(struct doctor *doctor)
{
    const struct weir_open_params params = cli_open_params(doctor->config);
    const char *variable = getenv("WEIR_CONFIG");
    if (doctor->config)
        doctor_ok(doctor, "configuration", "%s (--config)", doctor->config);
    else if (variable && *variable)
        doctor_ok(doctor, "configuration", "%s (WEIR_CONFIG)", variable);
    else
        doctor_ok(doctor, "configuration", "no file: the defaults hold");
    // Opening the runtime fails with the same error, which is reported then.
    WEIR_IGNORE(weir_inspect_settings(&params, add_setting, doctor));
}

static void open_runtime(struct doctor *doctor)
{
    struct weir_open_params params = cli_open_params(doctor->config);
    params.out_report = &doctor->report;
    if (weir_open_at(&params, &doctor->runtime, NULL, 0) >= 0) {
        cli_own_runtime(doctor->runtime);
        return;
    }
    // Where several backends failed, the library's remedy is `weir doctor` itself.
    struct weir_error error = *weir_last_error();
    if (strstr(error.remedy, "weir doctor"))
        error.remedy[0] = '\0';
    weir_error_set(&error);
    // The first finding names the configuration file; it is a problem if the file was refused.
    if (doctor->count > 0 && (error.status == WEIR_ERROR_CONFIG || error.status == WEIR_ERROR_IO))
        doctor->findings[0].state = DOCTOR_NOTE;
    doctor_add_error(doctor, "opening",
                     error.status == WEIR_ERROR_CONFIG
                         ? "correct what it names; conf/reference.ini documents every key"
                         : "the notes on the chain below say what each backend lacks: "
                           "fix the one that is meant for this machine");
}

// A round trip on the device that the configuration selects: copy in, one kernel, copy out, and the time between two
// events. And kernels that some drivers compile to something else (kernels/drivers).

enum {
    COUNT = 1024,
    ADDED = 7,
    BLOCK = 32 // some drivers have no larger ones
};
static const uint64_t limit_ns = UINT64_C(120) * 1000000000;
static const uint32_t untouched = UINT32_MAX;

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

struct round_trip {
    weir_device *device;
    weir_queue *queue;
    weir_kernel *kernel;
    weir_buffer *values, *result; // the latter of a probe
    weir_buffer *host;
    struct weir_event before, after;
    uint32_t numbers[COUNT]; // that came down
};

static weir_status make_objects(struct round_trip *trip)
{
    const struct weir_queue_params queue = {
        .struct_size = sizeof queue,
        .label = "self-test",
        .timing = weir_device_limits(trip->device)->timing_history > 0,
    };
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer,
                                        .label = "self-test",
                                        .size = sizeof trip->numbers};
    weir_status status;
    if ((status = weir_queue_create(trip->device, &queue, &trip->queue)) ||
        (status =
             weir_kernel_load(trip->device, &conformance_kernels, "increment", &trip->kernel)) ||
        (status = weir_buffer_create(trip->device, &buffer, &trip->values)) ||
        (status = weir_buffer_create(trip->device, &buffer, &trip->result)))
        return status;
    buffer.placement = WEIR_PLACE_HOST;
    return weir_buffer_create(trip->device, &buffer, &trip->host);
}

// weir_upload() and weir_download() wait without a limit, so the copies are the queue's.
static weir_status submit(struct round_trip *trip)
{
    const size_t bytes = sizeof trip->numbers;
    uint32_t *numbers;
    weir_status status = weir_host_whole(trip->host, WEIR_ACCESS_WRITE, &numbers);
    for (uint32_t i = 0; status == WEIR_OK && i < COUNT; i++)
        numbers[i] = i;
    if (status || (status = weir_host_whole_end(trip->host, WEIR_ACCESS_WRITE)) ||
        (status = weir_queue_copy(trip->queue, trip->values, 0, trip->host, 0, bytes)) ||
        (status =
             weir_queue_fill(trip->queue, trip->host, 0, bytes, &untouched, sizeof untouched)) ||
        (status = weir_queue_record(trip->queue, &trip->before)) ||
        (status = weir_queue_launch_count(trip->queue, trip->kernel, COUNT,
                                          weir_inout(trip->values, 0, bytes), (uint32_t)ADDED,
                                          (uint32_t)COUNT)) ||
        (status = weir_queue_record(trip->queue, &trip->after)) ||
        (status = weir_queue_copy(trip->queue, trip->host, 0, trip->values, 0, bytes)) ||
        (status = weir_queue_sync(trip->queue, limit_ns)) ||
        (status = weir_host_whole(trip->host, WEIR_ACCESS_READ, &numbers)))
        return status;
    memcpy(trip->numbers, numbers, bytes);
    return weir_host_whole_end(trip->host, WEIR_ACCESS_READ);
}

static void judge_result(struct doctor *doctor, const struct round_trip *trip)
{
    uint32_t right = 0, unchanged = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        right += trip->numbers[i] == i + ADDED;
        unchanged += trip->numbers[i] == i;
    }
    if (right == COUNT)
        doctor_ok(doctor, "self-test", "copy, kernel and copy back gave the right %d numbers",
                  (int)COUNT);
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
    if (weir_device_limits(trip->device)->timing_history == 0)
        doctor_note(doctor, "self-test", "the device keeps no times of events");
    else if (weir_event_time_ns(trip->before, &before) < 0 ||
             weir_event_time_ns(trip->after, &after) < 0)
        doctor_add_error(doctor, "self-test", "update the driver");
    else if (after < before)
        doctor_add(doctor, DOCTOR_PROBLEM, "self-test", "update the driver",
                   "the later of two events has the earlier time");
    else
        doctor_ok(doctor, "self-test", "events are timed: the kernel took %s",
                  weir_text_duration((double)(after - before)).text);
}

// The probes.

static weir_status launch_probe(const struct round_trip *trip, const struct probe *probe,
                                weir_kernel *kernel, uint32_t *out)
{
    const size_t bytes = BLOCK * sizeof *out;
    const struct weir_argument arguments[] = {weir_in(trip->values, 0, bytes),
                                              weir_inout(trip->result, 0, bytes),
                                              weir_local(bytes)};
    uint32_t numbers[BLOCK];
    weir_status status;
    for (uint32_t i = 0; i < BLOCK; i++)
        numbers[i] = i + 1;
    if ((status = weir_upload(trip->queue, trip->values, 0, numbers, bytes)) ||
        (status =
             weir_queue_fill(trip->queue, trip->result, 0, bytes, &untouched, sizeof untouched)) ||
        (status = weir_queue_launch_array(trip->queue, kernel, weir_dim(1, 1, 1),
                                          weir_dim(BLOCK, 1, 1), arguments, probe->local ? 3 : 2)))
        return status;
    return weir_download(trip->queue, out, trip->result, 0, sizeof *out);
}

static void probe_driver(struct doctor *doctor, const struct round_trip *trip)
{
    const size_t count = sizeof probes / sizeof *probes;
    size_t right = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t result = untouched;
        weir_kernel *kernel;
        weir_status status =
            weir_kernel_load(trip->device, &drivers_kernels, probes[i].kernel, &kernel);
        if (status == WEIR_OK)
            status = launch_probe(trip, &probes[i], kernel, &result);
        weir_kernel_destroy(&kernel);
        if (status < 0) {
            doctor_add_error(doctor, "driver", "update the driver, or choose another device");
            return;
        }
        right += result == probes[i].right;
        // A device that runs no kernels is the self-test's finding.
        if (result != probes[i].right && result != untouched)
            doctor_note(doctor, "driver", "%s", probes[i].fault);
    }
    if (right == count)
        doctor_ok(doctor, "driver", "kernels that some drivers miscompile gave the right numbers");
}

static void self_test(struct doctor *doctor)
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
        probe_driver(doctor, &trip);
    }
    weir_buffer_destroy(&trip.host);
    weir_buffer_destroy(&trip.result);
    weir_buffer_destroy(&trip.values);
    weir_kernel_destroy(&trip.kernel);
    weir_queue_destroy(&trip.queue);
    WEIR_IGNORE(weir_device_close(&trip.device));
}

// Output.

enum {
    ROWS_MOST = 2 // of one topic: of more that are well the first is shown without --all
};

// Findings in a row, from this one on, that are well and of its topic.
static size_t count_well(const struct doctor *doctor, size_t first)
{
    const struct doctor_finding *from = &doctor->findings[first];
    size_t count = 0;
    while (first + count < doctor->count && from[count].state == DOCTOR_OK &&
           strcmp(from[count].topic, from->topic) == 0)
        count++;
    return count;
}

static void print_text(const struct doctor *doctor, bool all)
{
    printf("weir %s\n\n", weir_version());
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        const size_t well = all ? 0 : count_well(doctor, i);
        const bool folded = well > ROWS_MOST;
        const char *more = folded ? cli_text(" (%zu more: --all)", well - 1) : "";
        i += folded ? well - 1 : 0;
        printf("%-8s %-14s %s%s\n", state_names[finding->state], finding->topic, finding->text,
               more);
        if (finding->state == DOCTOR_PROBLEM)
            printf("%-8s %-14s %s\n", "", "what to do:", finding->remedy);
    }
    if (doctor->incomplete)
        printf("\nmemory ran out: some findings are missing\n");
    if (doctor->problems == 0)
        printf("\nall is well\n");
    else
        printf("\n%zu problem%s\n", doctor->problems, doctor->problems == 1 ? "" : "s");
}

static int print_json(const struct doctor *doctor, int code)
{
    json_t *root = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        json_t *entry = json_object();
        cli_json_set(entry, "state", json_string(state_names[finding->state]));
        cli_json_set(entry, "topic", json_string(finding->topic));
        cli_json_set(entry, "text", cli_json_string(finding->text));
        if (finding->state == DOCTOR_PROBLEM)
            cli_json_set(entry, "remedy", cli_json_string(finding->remedy));
        cli_json_append(list, entry);
    }
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "problems", weir_json_count(doctor->problems));
    cli_json_set(root, "complete", json_boolean(!doctor->incomplete));
    cli_json_set(root, "findings", list);
    cli_json_set(root, "load_report", cli_json_string(weir_load_report_text(doctor->report)));
    return cli_json_print(root, code);
}

int doctor_report(struct doctor *doctor, bool all, bool as_json)
{
    int code = doctor->problems > 0 || doctor->incomplete ? CLI_SETUP : CLI_OK;
    if (as_json)
        code = print_json(doctor, code);
    else
        print_text(doctor, all);
    weir_load_report_destroy(&doctor->report);
    return code;
}

int cli_doctor(int argc, char **argv)
{
    struct doctor doctor = {0};
    bool all = false, as_json = false;
    const struct cli_option options[] = {
        CLI_CONFIG(&doctor.config),
        {"all", NULL, "print all that is well too, one finding a line", CLI_FLAG, &all, 0, 0},
        {"json", NULL, "print the findings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM_PLAIN(
        "weir doctor",
        "Examines the configuration, modules, devices and caches, runs a small test on the\n"
        "device, and tells what to do about each problem.",
        options);
    cli_parse(&usage, argc, argv);
    cli_log_to_stderr();
    doctor_configuration(&doctor);
    doctor_environment(&doctor);
    open_runtime(&doctor);
    doctor_modules(&doctor);
    doctor_devices(&doctor);
    doctor_pocl_cache(&doctor);
    doctor_kernel_compiler(&doctor);
    self_test(&doctor);
    return doctor_report(&doctor, all, as_json);
}
