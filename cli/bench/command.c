// weir bench: the table of the benchmarks. Each is in its <name>.c.
#include "cli/common/cli.h"

extern const struct cli_command cli_bench_submit;
extern const struct cli_command cli_bench_overlap;
extern const struct cli_command cli_bench_pipeline;
extern const struct cli_command cli_bench_arr_coc;
extern const struct cli_command cli_bench_swim;
extern const struct cli_command cli_bench_comm;

static const struct cli_command *const members[] = {
    &cli_bench_submit,
    &cli_bench_overlap,
    &cli_bench_pipeline,
    &cli_bench_arr_coc,
    &cli_bench_swim,
    &cli_bench_comm,
    NULL,
};

const struct cli_command cli_bench = {
    .name = "bench",
    .summary = "measure what Weir costs and what it gains",
    .what = "BENCHMARK",
    .about = "Measures what Weir costs, and what it gains beside what the device can do.",
    .manual = "weir-bench(1)",
    .members = members,
};
