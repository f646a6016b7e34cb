// The `weir` command: the table of its commands.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/common/own.h"

static const struct cli_command doctor[] = {
    {.name = "comm",
     .summary = "what communicators use, and whether two machines reach each other",
     .main = cli_doctor_comm},
    {0},
};

static const struct cli_command config[] = {
    {.name = "check",
     .summary = "check a file and print the settings in force",
     .main = cli_config_check},
    {0},
};

static const struct cli_command kernels[] = {
    {.name = "build", .summary = "make a bundle, as C", .main = cli_kernels_build},
    {.name = "check", .summary = "report what does not compile", .main = cli_kernels_check},
    {.name = "compare",
     .summary = "run CUDA C++ against the OpenCL C beside it",
     .main = cli_kernels_compare},
    {.name = "list", .summary = "the kernels and their parameters", .main = cli_kernels_list},
    {.name = "ptx", .summary = "print PTX of one architecture", .main = cli_kernels_ptx},
    {.name = "sass", .summary = "print machine code of one GPU", .main = cli_kernels_sass},
    {.name = "resources",
     .summary = "registers and memory of each kernel",
     .main = cli_kernels_resources},
    {0},
};

static const struct cli_command bench[] = {
    {.name = "submit", .summary = "the cost of submitting work", .main = cli_bench_submit},
    {.name = "overlap",
     .summary = "copies and kernels in chunks, beside the limit of bare copies",
     .main = cli_bench_overlap},
    {.name = "pipeline",
     .summary = "frames/s of a pipeline with one slot and with more",
     .main = cli_bench_pipeline},
    {.name = "arr-coc",
     .summary = "frames/s of the vision pipeline, beside bare copies",
     .main = cli_bench_arr_coc},
    {.name = "swim",
     .summary = "products and copies: pinned and pageable, one queue and three",
     .main = cli_bench_swim},
    {.name = "comm", .summary = "the time and bandwidth of collectives", .main = cli_bench_comm},
    {0},
};

static const struct cli_command run[] = {
    {.name = "arr-coc",
     .summary = "find where in an image to spend tokens, given a query",
     .main = cli_run_arr_coc},
    {0},
};

static const struct cli_command train[] = {
    {.name = "ddp", .summary = "ranks that share each batch", .main = cli_train},
    {.name = "accumulate", .summary = "several passes a step", .main = cli_train},
    {.name = "augment", .summary = "images augmented on the device", .main = cli_train},
    {.name = "encdec", .summary = "a head on a frozen encoder", .main = cli_train},
    {0},
};

static const struct cli_command completion[] = {
    {.name = "bash", .summary = "for bash", .main = cli_completion},
    {.name = "fish", .summary = "for fish", .main = cli_completion},
    {.name = "zsh", .summary = "for zsh", .main = cli_completion},
    {0},
};

static const struct cli_command commands[] = {
    {.name = "doctor",
     .summary = "find out what keeps weir from running, and what to do",
     .main = cli_doctor,
     .about = "For communicators",
     .members = doctor},
    {.name = "devices", .summary = "list devices and their limits", .main = cli_devices},
    {.name = "config",
     .summary = "check a configuration file",
     .what = "COMMAND",
     .about = "Looks at configuration files.",
     .members = config},
    {.name = "check", .summary = "find missing waits in a program", .main = cli_check},
    {.name = "trace",
     .summary = "trace a program, and read traces",
     .main = cli_trace,
     .about = "To read traces",
     .members = cli_trace_members},
    {.name = "sim",
     .summary = "run a program on a modelled GPU, in virtual time",
     .main = cli_sim,
     .about = "For the models, and over them",
     .members = cli_sim_members},
    {.name = "perturb",
     .summary = "run a program in other orders, to find missing waits",
     .main = cli_perturb},
    {.name = "fault", .summary = "run a program with faults in its operations", .main = cli_fault},
    {.name = "launch",
     .summary = "run a program as several ranks on this machine",
     .main = cli_launch},
    {.name = "kernels",
     .summary = "compile kernels to bundles, and look at them",
     .what = "COMMAND",
     .about = "Compiles OpenCL C for every device.",
     .members = kernels},
    {.name = "calibrate", .summary = "measure a device, for weir sim", .main = cli_calibrate},
    {.name = "bench",
     .summary = "measure what Weir costs and what it gains",
     .what = "BENCHMARK",
     .about = "Measures what Weir costs, and what it gains beside what the device can do.",
     .members = bench},
    {.name = "conform", .summary = "run the conformance suite", .main = cli_conform},
    {.name = "run",
     .summary = "run a pipeline over images",
     .what = "PIPELINE",
     .about = "Runs a pipeline.",
     .members = run},
    {.name = "train",
     .summary = "train a small network, on one device or on several ranks",
     .what = "PROGRAM",
     .about = "Trains a small network, on one device or on several ranks.",
     .members = train},
    {.name = "completion",
     .summary = "print what completes weir's command lines in a shell",
     .what = "SHELL",
     .about = "Prints what completes weir's command lines in a shell.",
     .members = completion},
    {0},
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
    .members = commands,
};

int main(int argc, char **argv)
{
    // What is opened later gets none of the standard descriptors; a program that is started has those that were closed
    // closed.
    int descriptor;
    while ((descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 &&
           descriptor <= STDERR_FILENO)
        continue;
    close(descriptor);
    // Without the signal, write() past the limit on file sizes returns an error, which is reported.
    signal(SIGXFSZ, SIG_IGN);
    // Some programs that start others ignore it, and their children inherit that: then no wait tells
    // how a process ended, neither here nor in PoCL, whose linker is one.
    signal(SIGCHLD, SIG_DFL);
    return cli_flush(cli_dispatch(&weir, "weir", argc, argv));
}
