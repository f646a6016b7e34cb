// weir doctor: a first word that is not the name of a member begins its own options.
#include <string.h>

#include "cli/common/options.h"
#include "cli/doctor/comm.h"

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

static int print_help(int argc, char **argv)
{
    const int code = doctor_examine_main(argc, argv);
    cli_help_members(&others, "weir doctor");
    return code;
}

static int doctor_main(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        return print_help(argc, argv);
    for (size_t i = 0; i < others.member_count; i++)
        if (strcmp(first, members[i].name) == 0)
            return members[i].main(argc - 1, argv + 1);
    return doctor_examine_main(argc, argv);
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .summary = "find out what keeps weir from running, and what to do",
    .main = doctor_main,
};
