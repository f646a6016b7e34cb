// weir sim: a first word that is not the name of a member begins the options of a run.
#include "cli/sim/command.h"

#include <string.h>

#include "base/text.h"
#include "cli/sim/sim.h"

static const struct cli_command learn = {
    .name = "learn",
    .summary = "what kernels cost, from traces",
    .main = cli_sim_learn,
};

static const struct cli_command others = {
    .summary = "For the models",
    .members = &learn,
    .member_count = 1,
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
    if (strcmp(first, learn.name) == 0)
        return cli_sim_learn(argc - 1, argv + 1);
    if (first[0] != '-' && weir_text_nearer(first, NULL, learn.name)) {
        cli_error("weir sim has no '%s'; did you mean '%s'?", first, learn.name);
        return CLI_USAGE;
    }
    return cli_sim_run(argc, argv);
}

const struct cli_command cli_sim = {
    .name = "sim",
    .summary = "run a program on a modelled GPU, in virtual time",
    .main = sim_main,
};
