// The `weir` command: the table of its commands. Each is in the folder of its name;
// `devices` and `config` are in doctor/.
#include <signal.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/common/own.h"

static const struct cli_command *const members[] = {
    &cli_doctor,  &cli_devices, &cli_config, &cli_check,      &cli_trace,     &cli_sim,
    &cli_perturb, &cli_fault,   &cli_launch, &cli_kernels,    &cli_calibrate, &cli_bench,
    &cli_conform, &cli_run,     &cli_train,  &cli_completion, NULL,
};

static const struct cli_command weir = {
    .what = "COMMAND",
    .about = "Looks at programs that copy and compute at once, on GPUs and without one:\n"
             "\n"
             "  weir check ./program                        what is it that nothing orders?\n"
             "  weir trace --report ./program               how much of the work overlaps?\n"
             "  weir sim --gpu h200 --scale 0.05 ./program  and how much would on that GPU?\n"
             "\n"
             "`weir doctor` says what this machine lacks. ./program is any program that uses "
             "Weir.",
    .manual = "weir(1)",
    .members = members,
};

int main(int argc, char **argv)
{
    // Without the signal, write() past the limit on file sizes returns an error, which is reported.
    signal(SIGXFSZ, SIG_IGN);
    // Some programs that start others ignore it, and their children inherit that: then no wait tells
    // how a process ended, neither here nor in PoCL, whose linker is one.
    signal(SIGCHLD, SIG_DFL);
    return cli_flush(cli_dispatch(&weir, "weir", argc, argv));
}
