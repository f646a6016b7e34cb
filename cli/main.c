// The `weir` command: the table of its commands, each in the room of its name.
#include <signal.h>

#include "cli/bench/command.h"
#include "cli/common/options.h"
#include "cli/conform/command.h"
#include "cli/doctor/command.h"
#include "cli/run/command.h"
#include "cli/trace/command.h"

int main(int argc, char **argv)
{
    const struct cli_command members[] = {
        cli_run, cli_doctor, cli_devices, cli_config, cli_bench, cli_conform, cli_trace,
    };
    const struct cli_command weir = {
        .what = "COMMAND",
        .summary = "Multi-stage GPU pipelines on the backend that an INI file selects.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    // A file beyond the size limit is then an error of write(), with a sentence.
    signal(SIGXFSZ, SIG_IGN);
    return cli_flush(cli_dispatch(&weir, "weir", "weir(1)", argc, argv));
}
