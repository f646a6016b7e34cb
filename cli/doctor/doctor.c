// weir doctor: opens what the configuration names, checks each step, and gives one remedy
// for each problem.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/json.h"
#include "cli/common/options.h"
#include "cli/doctor/comm.h"
#include "cli/runtime/open.h"
#include "core/config/config.h"

static const char *const state_names[] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_NOTE] = "note",
    [DOCTOR_PROBLEM] = "problem",
};

static struct doctor_finding *next_finding(struct doctor *doctor)
{
    if (doctor->count == doctor->capacity) {
        const size_t capacity = doctor->capacity ? 2 * doctor->capacity : 32;
        struct doctor_finding *findings = realloc(doctor->findings, capacity * sizeof *findings);
        if (!findings) {
            doctor->incomplete = true;
            return NULL;
        }
        doctor->findings = findings;
        doctor->capacity = capacity;
    }
    return &doctor->findings[doctor->count++];
}

void doctor_add(struct doctor *doctor, enum doctor_state state, const char *topic,
                const char *remedy, const char *format, ...)
{
    struct doctor_finding *finding = next_finding(doctor);
    doctor->problems += state == DOCTOR_PROBLEM;
    if (!finding)
        return;
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

static void add_setting(struct doctor *doctor, const struct weir__config *config, const char *key)
{
    const struct weir_setting *setting = weir__config_weir(config, key);
    if (setting->text[0])
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "%s = %s (%s)", key, setting->text,
                   setting->origin);
}

void doctor_configuration(struct doctor *doctor)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = doctor->config};
    const char *variable = getenv("WEIR_CONFIG");
    struct weir__config *config = NULL;
    if (doctor->config)
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "%s (--config)", doctor->config);
    else if (variable && *variable)
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "%s (WEIR_CONFIG)", variable);
    else
        doctor_add(doctor, DOCTOR_OK, "configuration", NULL, "no file: the defaults hold");
    if (weir__config_load(&params, &config) < 0)
        return; // opening the runtime fails with the same error, which is reported then
    for (uint32_t i = 0; i < weir__config_weir_table.key_count; i++)
        add_setting(doctor, config, weir__config_weir_table.keys[i].name);
    weir__config_destroy(&config);
}

static void open_runtime(struct doctor *doctor)
{
    doctor->opened = cli_open(doctor->config, &doctor->report, &doctor->runtime);
    if (doctor->opened >= 0)
        return;
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
    doctor_driver(doctor);
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
        cli_json_set(entry, "state", json_string(state_names[finding->state]), &ok);
        cli_json_set(entry, "topic", json_string(finding->topic), &ok);
        cli_json_set(entry, "text", cli_json_string(finding->text), &ok);
        if (finding->state == DOCTOR_PROBLEM)
            cli_json_set(entry, "remedy", cli_json_string(finding->remedy), &ok);
        cli_json_append(list, entry, &ok);
    }
    cli_json_set(root, "weir", json_string(weir_version()), &ok);
    cli_json_set(root, "problems", cli_json_count(doctor->problems), &ok);
    cli_json_set(root, "complete", json_boolean(!doctor->incomplete), &ok);
    cli_json_set(root, "findings", list, &ok);
    cli_json_set(root, "load_report", cli_json_string(weir_load_report_text(doctor->report)), &ok);
    return cli_json_print(root, ok, code);
}

int doctor_report(struct doctor *doctor, bool as_json)
{
    int code = doctor->problems > 0 || doctor->incomplete ? CLI_SETUP : CLI_OK;
    if (as_json)
        code = print_json(doctor, code);
    else
        print_text(doctor);
    code = cli_close(NULL, &doctor->runtime, code);
    weir_load_report_destroy(&doctor->report);
    free(doctor->findings);
    return code;
}

int doctor_examine_main(int argc, char **argv)
{
    struct doctor doctor = {0};
    bool as_json = false;
    const struct cli_option options[] = {
        {"config", "F", "the INI file; without it, the one that WEIR_CONFIG\nnames, or none",
         CLI_FILE, &doctor.config, 0, 0},
        {"json", NULL, "print the findings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir doctor",
        .operands = "",
        .operand = "",
        .about =
            "Examines the configuration, modules, devices and caches, runs a small test on the\n"
            "device, and tells what to do about each problem.",
        .manual = "weir-doctor(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    cli_log_to_stderr();
    examine(&doctor);
    return doctor_report(&doctor, as_json);
}
