// weir doctor comm: what communicators of this machine would use, and whether two machines reach each
// other.
#include <stdio.h>
#include <stdlib.h>

#include "cli/common/options.h"
#include "cli/doctor/comm.h"
#include "core/comm/comm.h"
#include "core/runtime/runtime.h"

enum {
    TIMEOUT_MOST = 86400
};

static void add_settings(struct doctor *doctor, const struct weir__config *config)
{
    static const char *const texts[] = {"transport", "rendezvous"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct weir_setting *setting = weir__config_comm(config, texts[i]);
        if (setting->text[0])
            doctor_add(doctor, DOCTOR_OK, "comm", NULL, "%s = %s (%s)", texts[i], setting->text,
                       setting->origin);
    }
    const struct weir_setting *timeout = weir__config_comm(config, "timeout");
    doctor_add(doctor, DOCTOR_OK, "comm", NULL, "timeout = %lld seconds (%s)",
               (long long)timeout->integer, timeout->origin);
}

static void add_place(struct doctor *doctor, const struct weir__config *config)
{
    const struct weir_comm_params params = {.struct_size = sizeof params};
    struct weir__comm_place place;
    if (weir__comm_place(config, &params, &place) < 0) {
        doctor_add_error(doctor, "comm", "correct what it names");
        return;
    }
    doctor_add(doctor, DOCTOR_OK, "comm", NULL, "rank %u of %u, %s%s", (unsigned)place.rank,
               (unsigned)place.count, place.has_rendezvous ? "meeting at " : "without a rendezvous",
               place.has_rendezvous ? place.rendezvous : "");
}

static void examine_configuration(struct doctor *doctor)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = doctor->config};
    struct weir__config *config = NULL;
    if (weir__config_load(&params, &config) < 0) {
        doctor_add_error(doctor, "configuration", "correct what it names");
        return;
    }
    add_settings(doctor, config);
    add_place(doctor, config);
    weir__config_destroy(&config);
}

weir_status doctor_comm_open(const struct doctor *doctor, const char *transport,
                             weir_runtime **out_runtime)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = doctor->config,
                                            .backend = "null",
                                            .plugins = ""};
    setenv("WEIR_COMM_TRANSPORT", transport, 1);
    return (weir_open)(&params, out_runtime);
}

// A transport that another program may want to use is no problem of this one.
static void try_transport(struct doctor *doctor, const char *name)
{
    const struct weir_transport_ops *ops = NULL;
    weir_runtime *runtime = NULL;
    void *state = NULL;
    if (doctor_comm_open(doctor, name, &runtime) < 0 ||
        weir__transport_get(runtime, &ops, &state) < 0)
        doctor_add(doctor, DOCTOR_NOTE, "transport", NULL, "%s cannot be used: %s; %s", name,
                   weir_last_error()->message, weir_last_error()->remedy);
    else
        doctor_add(doctor, DOCTOR_OK, "transport", NULL, "%s%s%s", name,
                   ops->library ? ", with " : "", ops->library ? ops->library(state) : "");
    (void)weir_close(&runtime);
}

static bool check_options(struct doctor_comm *comm)
{
    if (!comm->listen || !comm->connect)
        return true;
    cli_error(
        "weir doctor comm takes one of --listen and --connect; run the other one on the other "
        "machine");
    return false;
}

int doctor_comm_main(int argc, char **argv)
{
    struct doctor doctor = {0};
    struct doctor_comm comm = {.timeout = 60};
    bool as_json = false;
    const struct cli_option options[] = {
        {"listen", "PORT", "wait for the other machine at this port, or at HOST:PORT", CLI_TEXT,
         &comm.listen, 0, 0},
        {"connect", "HOST:PORT", "where the other machine listens", CLI_TEXT, &comm.connect, 0, 0},
        {"timeout", "SECONDS", "how long to wait for it (60)", CLI_COUNT, &comm.timeout, 1,
         TIMEOUT_MOST},
        {"config", "F", "the INI file; without it, the one that WEIR_CONFIG\nnames, or none",
         CLI_FILE, &doctor.config, 0, 0},
        {"json", NULL, "print the findings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir doctor comm",
        .operands = "",
        .operand = "",
        .about =
            "Tells what communicators would use: rank, rendezvous, transports and their "
            "libraries.\n"
            "With --listen on one machine and --connect on another it tries whether ranks there\n"
            "would meet, and tells what is in the way; then both exchange data.\n\n"
            "  weir doctor comm --listen 29500\n"
            "  weir doctor comm --connect node1:29500",
        .manual = "weir-doctor(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    if (!check_options(&comm))
        return CLI_USAGE;
    cli_log_to_stderr();
    examine_configuration(&doctor);
    try_transport(&doctor, "local");
    try_transport(&doctor, "mpi");
    doctor_comm_nccl(&doctor);
    if (comm.listen || comm.connect)
        doctor_comm_link(&doctor, &comm);
    return doctor_report(&doctor, as_json);
}
