// weir doctor: what was found on this machine, what is missing and what to do, and a small test on the device.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for environ
#define _GNU_SOURCE
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/inspect.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/runtime/open.h"
#include "kernels/compiler/compiler.h"

// weir config check: reads the file as weir_open() does and prints the settings in force. No driver is loaded.

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
    cli_parse(&usage, argc, argv);
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

// The chain, and the module files that are installed, in the chain or not.

static void add_module(struct doctor *doctor, const struct weir_load_entry *module)
{
    const bool is_plain = !module->sanitizer[0];
    if (module->outcome != WEIR_LOAD_USED) {
        doctor_add(doctor, DOCTOR_NOTE, "module", NULL, "%s cannot be used: %s; %s", module->module,
                   module->reason, module->remedy);
        return;
    }
    doctor_add(doctor, DOCTOR_OK, "module", NULL, "%s %s, a %s, ABI %u, %s%s%s: %s", module->module,
               module->version, module->kind, (unsigned)module->abi_seen,
               is_plain ? "" : "built with the ", module->sanitizer,
               is_plain ? "plain build" : " sanitizer", module->path);
    for (const char *const *about = module->about; about && about[0] && about[1]; about += 2)
        doctor_add(doctor, DOCTOR_OK, "module", NULL, "%s, %s: %s", module->module, about[0],
                   about[1]);
}

static void add_entry(struct doctor *doctor, const struct weir_load_entry *entry)
{
    switch (entry->outcome) {
    case WEIR_LOAD_USED:
        doctor_add(doctor, DOCTOR_OK, "chain", NULL, "%s is used%s%s", entry->module,
                   entry->driver[0] ? ", driver " : "", entry->driver);
        break;
    case WEIR_LOAD_REFUSED:
        doctor_add(doctor, DOCTOR_NOTE, "chain", NULL, "%s was refused: %s", entry->module,
                   entry->reason);
        break;
    case WEIR_LOAD_MISSING:
        doctor_add(doctor, DOCTOR_NOTE, "chain", NULL, "%s is not there: no %s", entry->module,
                   entry->path);
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

enum {
    PATH_SIZE = 4096
};

// Variables whose names begin with WEIR_: those that nothing reads are told with the nearest name that
// something does.

enum {
    VARIABLES_MOST = 128,
    VARIABLE_SIZE = 128
};

struct variable {
    const char *text; // NAME=VALUE, after WEIR_
    char name[VARIABLE_SIZE];
    char nearest[VARIABLE_SIZE];
    bool known;
};

struct variables {
    struct variable items[VARIABLES_MOST];
    size_t count;
};

static const char variable_lead[] = "WEIR_";

static void take_variables(struct variables *variables)
{
    const size_t lead = strlen(variable_lead);
    for (char **at = environ; *at && variables->count < VARIABLES_MOST; at++) {
        struct variable *it = &variables->items[variables->count];
        if (strncmp(*at, variable_lead, lead) != 0)
            continue;
        it->text = *at + lead;
        snprintf(it->name, sizeof it->name, "%.*s", (int)strcspn(it->text, "="), it->text);
        variables->count++;
    }
}

static void know(struct variables *variables, const char *name)
{
    for (size_t i = 0; i < variables->count; i++) {
        struct variable *it = &variables->items[i];
        it->known = it->known || strcmp(it->name, name) == 0;
        if (weir_text_nearer(it->name, *it->nearest ? it->nearest : NULL, name) == name)
            snprintf(it->nearest, sizeof it->nearest, "%s", name);
    }
}

static bool know_setting(void *user, const char *section, const struct weir_setting *setting)
{
    char name[2 * VARIABLE_SIZE];
    if (setting) {
        weir_text_variable(name, sizeof name, section, setting->key->name);
        know(user, name + strlen(variable_lead));
    }
    return true;
}

// Those of keys follow from the tables of all modules that are installed, in the chain or not. False if a
// value is wrong, which opening tells.
static bool know_all(const struct doctor *doctor, struct variables *variables)
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
        know(variables, others[i]);
    params.plugins = names;
    return weir_inspect_settings(&params, know_setting, variables) >= 0;
}

static void add_variable(struct doctor *doctor, const struct variable *it)
{
    if (strcmp(it->name, "COMM_SECRET") == 0)
        doctor_add(doctor, DOCTOR_NOTE, "environment", NULL, "WEIR_COMM_SECRET is set");
    else if (it->known)
        doctor_add(doctor, DOCTOR_NOTE, "environment", NULL, "%s%s", variable_lead, it->text);
    else
        doctor_add(doctor, DOCTOR_NOTE, "environment", NULL, "nothing of Weir reads %s%s%s%s%s%s",
                   variable_lead, it->name, *it->nearest ? "; did you mean " : "",
                   *it->nearest ? variable_lead : "", it->nearest, *it->nearest ? "?" : "");
}

static void doctor_environment(struct doctor *doctor)
{
    static const char *const drivers[] = {
        "OCL_ICD_VENDORS",        "OCL_ICD_FILENAMES",    "POCL_CACHE_DIR", "POCL_DEVICES",
        "POCL_MAX_PTHREAD_COUNT", "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME",
    };
    struct variables variables = {0};
    take_variables(&variables);
    const bool all = know_all(doctor, &variables);
    for (size_t i = 0; i < variables.count; i++)
        if (all || variables.items[i].known)
            add_variable(doctor, &variables.items[i]);
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        const char *value = getenv(drivers[i]);
        if (value)
            doctor_add(doctor, DOCTOR_NOTE, "environment", NULL, "%s=%s", drivers[i], value);
    }
}

static void doctor_devices(struct doctor *doctor)
{
    const size_t count = doctor->runtime ? weir_device_count(doctor->runtime) : 0;
    for (size_t i = 0; i < count; i++) {
        struct weir_device_info info;
        char memory[WEIR_TEXT_QUANTITY_SIZE];
        if (weir_device_describe(doctor->runtime, i, &info) < 0) {
            doctor_add_error(doctor, "device", "update the driver");
            continue;
        }
        doctor_add(doctor, DOCTOR_OK, "device", NULL, "%zu: %s (%s; %s), %s", i, info.name,
                   info.platform, info.driver, weir_text_bytes(memory, info.memory_bytes));
    }
}

// Where PoCL keeps compiled kernels, as its manual says.
static void cache_path(char path[PATH_SIZE])
{
    const char *given = getenv("POCL_CACHE_DIR");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (given && *given)
        snprintf(path, PATH_SIZE, "%s", given);
    else if (cache && *cache)
        snprintf(path, PATH_SIZE, "%s/pocl/kcache", cache);
    else if (home && *home)
        snprintf(path, PATH_SIZE, "%s/.cache/pocl/kcache", home);
    else
        snprintf(path, PATH_SIZE, "/tmp/pocl/kcache");
}

// The folder itself, or the one that it would be made in.
static void existing_part(const char *path, char existing[PATH_SIZE])
{
    struct stat status;
    snprintf(existing, PATH_SIZE, "%s", path);
    while (stat(existing, &status) != 0 && errno == ENOENT) {
        char *slash = strrchr(existing, '/');
        if (!slash) {
            snprintf(existing, PATH_SIZE, ".");
            return;
        }
        if (slash == existing) {
            slash[1] = '\0';
            return;
        }
        *slash = '\0';
    }
}

static bool can_write_in(const char *directory, char *message, size_t size)
{
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/.weir-probe", directory);
    weir_file_writer *probe = weir_file_writer_create(path, message, size);
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
        if (weir_device_describe(doctor->runtime, i, &info) == WEIR_OK && cli_is_pocl(&info))
            return true;
    return false;
}

static void doctor_pocl_cache(struct doctor *doctor)
{
    char path[PATH_SIZE];
    char existing[PATH_SIZE];
    char message[512];
    if (!pocl_matters(doctor))
        return;
    cache_path(path);
    existing_part(path, existing);
    if (can_write_in(existing, message, sizeof message))
        doctor_add(doctor, DOCTOR_OK, "PoCL cache", NULL, "%s can be written%s", path,
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
        doctor_add(doctor, DOCTOR_OK, "weir kernels", NULL, "%s: %s", name, path);
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
        doctor_add(doctor, DOCTOR_NOTE, "weir kernels", NULL,
                   "clang is not installed, and compiling kernels needs it; install clang and "
                   "libclc of one version, such as clang-22 and libclc-22");
    else if (lack)
        doctor_add(doctor, DOCTOR_NOTE, "weir kernels", NULL, "%s", lack);
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
    char native[160] = "";
    if (error.native_call[0])
        snprintf(native, sizeof native, " (%s: %s)", error.native_call, error.native_name);
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
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "%s = %s (%s)", setting->key->name,
                   setting->text, setting->origin);
    return true;
}

// The checks, each of which appends its findings.
static void doctor_configuration(struct doctor *doctor)
{
    const struct weir_open_params params = cli_open_params(doctor->config);
    const char *variable = getenv("WEIR_CONFIG");
    if (doctor->config)
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "%s (--config)", doctor->config);
    else if (variable && *variable)
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "%s (WEIR_CONFIG)", variable);
    else
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "no file: the defaults hold");
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

static void examine(struct doctor *doctor)
{
    doctor_configuration(doctor);
    doctor_environment(doctor);
    open_runtime(doctor);
    doctor_modules(doctor);
    doctor_devices(doctor);
    doctor_pocl_cache(doctor);
    doctor_kernel_compiler(doctor);
    doctor_self_test(doctor);
}

// Output.

static void print_text(const struct doctor *doctor)
{
    printf("weir %s\n\n", weir_version());
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        printf("%-8s %-14s %s\n", state_names[finding->state], finding->topic, finding->text);
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
    bool ok = true;
    json_t *root = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        json_t *entry = json_object();
        weir_json_set(entry, "state", json_string(state_names[finding->state]), &ok);
        weir_json_set(entry, "topic", json_string(finding->topic), &ok);
        weir_json_set(entry, "text", cli_json_string(finding->text), &ok);
        if (finding->state == DOCTOR_PROBLEM)
            weir_json_set(entry, "remedy", cli_json_string(finding->remedy), &ok);
        weir_json_append(list, entry, &ok);
    }
    weir_json_set(root, "weir", json_string(weir_version()), &ok);
    weir_json_set(root, "problems", weir_json_count(doctor->problems), &ok);
    weir_json_set(root, "complete", json_boolean(!doctor->incomplete), &ok);
    weir_json_set(root, "findings", list, &ok);
    weir_json_set(root, "load_report", cli_json_string(weir_load_report_text(doctor->report)), &ok);
    return cli_json_print(root, ok, code);
}

int doctor_report(struct doctor *doctor, bool as_json)
{
    int code = doctor->problems > 0 || doctor->incomplete ? CLI_SETUP : CLI_OK;
    if (as_json)
        code = print_json(doctor, code);
    else
        print_text(doctor);
    weir_load_report_destroy(&doctor->report);
    return code;
}

// The command. A first word that is not the name of a member begins its own options.

static const struct cli_command members[] = {
    {.name = "comm",
     .summary = "what communicators use, and whether two machines reach each other",
     .main = doctor_comm_main},
};

static const struct cli_command others = {
    .summary = "For communicators",
    .members = members,
    .member_count = sizeof members / sizeof *members,
};

static int doctor_examine_main(int argc, char **argv)
{
    struct doctor doctor = {0};
    bool as_json = false;
    const struct cli_option options[] = {
        CLI_CONFIG(&doctor.config),
        {"json", NULL, "print the findings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    struct cli_usage usage = CLI_FORM_PLAIN(
        "weir doctor",
        "Examines the configuration, modules, devices and caches, runs a small test on the\n"
        "device, and tells what to do about each problem.",
        "weir-doctor(1)", options);
    usage.beside = &others;
    cli_parse(&usage, argc, argv);
    cli_log_to_stderr();
    examine(&doctor);
    return doctor_report(&doctor, as_json);
}

static int doctor_main(int argc, char **argv)
{
    return cli_dispatch_beside(&others, doctor_examine_main, argc, argv);
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .summary = "find out what keeps weir from running, and what to do",
    .main = doctor_main,
};
