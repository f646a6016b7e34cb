// weir bench: the table of the benchmarks. Each is in its <name>.c.
#include "cli/bench/command.h"

#include "cli/common/options.h"

extern const struct cli_command cli_bench_submit;
extern const struct cli_command cli_bench_overlap;
extern const struct cli_command cli_bench_pipeline;
extern const struct cli_command cli_bench_pool;
extern const struct cli_command cli_bench_graph;
extern const struct cli_command cli_bench_comm;
extern const struct cli_command cli_bench_ddp;
extern const struct cli_command cli_bench_priority;
extern const struct cli_command cli_bench_arr_coc;
extern const struct cli_command cli_bench_images;
extern const struct cli_command cli_bench_swim;
extern const struct cli_command cli_bench_devices;

static int bench_main(int argc, char **argv)
{
    const struct cli_command members[] = {
        cli_bench_submit, cli_bench_overlap,  cli_bench_pipeline, cli_bench_pool,
        cli_bench_graph,  cli_bench_priority, cli_bench_arr_coc,  cli_bench_devices,
        cli_bench_images, cli_bench_swim,     cli_bench_comm,     cli_bench_ddp,
    };
    const struct cli_command group = {
        .what = "BENCHMARK",
        .summary = "Measures Weir beside what it stands on, and beside what the device can do.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    return cli_dispatch(&group, "weir bench", "weir-bench(1)", argc, argv);
}

const struct cli_command cli_bench = {
    .name = "bench",
    .summary = "measure what Weir costs and what it gains",
    .main = bench_main,
};
