// weir sim: a first word that is not the name of a member begins the options of a run.
#include <string.h>

#include "base/text.h"
#include "cli/sim/sim.h"

static const struct cli_command members[] = {
    {.name = "learn", .summary = "what kernels cost, from traces", .main = cli_sim_learn},
    {.name = "sweep", .summary = "the best of many settings", .main = cli_sim_sweep},
};

enum {
    MEMBERS = sizeof members / sizeof *members
};

static const struct cli_command others = {
    .summary = "For the models, and over them",
    .members = members,
    .member_count = MEMBERS,
};

static int print_help(int argc, char **argv)
{
    const int code = cli_sim_run(argc, argv);
    cli_help_members(&others, "weir sim");
    return code;
}

static int sim_main(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        return print_help(argc, argv);
    const char *nearest = NULL;
    for (size_t i = 0; i < MEMBERS; i++) {
        if (strcmp(first, members[i].name) == 0)
            return members[i].main(argc - 1, argv + 1);
        nearest = weir_text_nearer(first, nearest, members[i].name);
    }
    if (first[0] != '-' && nearest) {
        cli_error("weir sim has no '%s'; did you mean '%s'?", first, nearest);
        return CLI_USAGE;
    }
    return cli_sim_run(argc, argv);
}

const struct cli_command cli_sim = {
    .name = "sim",
    .summary = "run a program on a modelled GPU, in virtual time",
    .main = sim_main,
};
