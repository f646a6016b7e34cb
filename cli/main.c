// The `weir` command: the table of its commands. Each is in the folder of its name;
// `devices` and `config` are in doctor/.
#include <signal.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/common/own.h"

static int completion_main(int argc, char **argv);

static int weir_main(int argc, char **argv)
{
    const struct cli_command completion = {
        .name = "completion",
        .summary = "print what completes weir's command lines in a shell",
        .main = completion_main,
    };
    const struct cli_command members[] = {
        cli_doctor,  cli_devices, cli_config, cli_check,   cli_trace,     cli_sim,
        cli_perturb, cli_fault,   cli_launch, cli_kernels, cli_calibrate, cli_bench,
        cli_conform, cli_run,     cli_train,  completion,
    };
    const struct cli_command weir = {
        .what = "COMMAND",
        .summary = "Looks at programs that copy and compute at once, on GPUs and without one:\n"
                   "\n"
                   "  weir check ./program                        what is it that nothing orders?\n"
                   "  weir trace --report ./program               how much of the work overlaps?\n"
                   "  weir sim --gpu h200 --scale 0.05 ./program  and how much would on that GPU?\n"
                   "\n"
                   "`weir doctor` says what this machine lacks. ./program is any program that uses "
                   "Weir.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    return cli_dispatch(&weir, "weir", "weir(1)", argc, argv);
}

static int completion_main(int argc, char **argv)
{
    return cli_completion(weir_main, argc, argv);
}

int main(int argc, char **argv)
{
    // Without the signal, write() past the limit on file sizes returns an error, which is reported.
    signal(SIGXFSZ, SIG_IGN);
    // Some programs that start others ignore it, and their children inherit that: then no wait tells
    // how a process ended, neither here nor in PoCL, whose linker is one.
    signal(SIGCHLD, SIG_DFL);
    return cli_flush(weir_main(argc, argv));
}
