// weir bench: the table of the benchmarks. Each is in its <name>.c.
#include "cli/common/options.h"

extern const struct cli_command cli_bench_submit;
extern const struct cli_command cli_bench_overlap;
extern const struct cli_command cli_bench_pipeline;
extern const struct cli_command cli_bench_arr_coc;
extern const struct cli_command cli_bench_swim;
extern const struct cli_command cli_bench_comm;

static int main_of_bench(int argc, char **argv)
{
    const struct cli_command members[] = {
        cli_bench_submit,  cli_bench_overlap, cli_bench_pipeline,
        cli_bench_arr_coc, cli_bench_swim,    cli_bench_comm,
    };
    const struct cli_command group = {
        .what = "BENCHMARK",
        .summary = "Measures what Weir costs, and what it gains beside what the device can do.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    return cli_dispatch(&group, "weir bench", "weir-bench(1)", argc, argv);
}

const struct cli_command cli_bench = {
    .name = "bench",
    .summary = "measure what Weir costs and what it gains",
    .main = main_of_bench,
};
