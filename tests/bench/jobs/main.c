// The jobs: comparisons of Weir with what stands beside it on a machine, each in turns within one process, in
// the frame of `weir bench`. Each is in its <name>.c.
#include <string.h>

#include "cli/common/options.h"
#include "cli/common/own.h"
#include "tests/bench/jobs/drivers.h"

extern const struct cli_command job_overlap;
extern const struct cli_command job_pageable;
extern const struct cli_command job_start;
extern const struct cli_command job_submit;
extern const struct cli_command job_graph;
extern const struct cli_command job_pool;
extern const struct cli_command job_priority;
extern const struct cli_command job_comm;
extern const struct cli_command job_ddp;

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], START_FIRST) == 0)
        return start_first(argv[2]);
    const struct cli_command members[] = {job_overlap, job_pageable, job_start,    job_submit,
                                          job_graph,   job_pool,     job_priority, job_comm,
                                          job_ddp,     {0}};
    const struct cli_command group = {
        .what = "JOB",
        .about = "Compares Weir with what stands beside it on this machine.",
        .manual = "weir-bench(1)",
        .members = members,
    };
    return cli_flush(cli_dispatch(&group, "jobs", argc, argv));
}
