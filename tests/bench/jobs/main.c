// The jobs: comparisons of Weir with what stands beside it on a machine, each in turns within one process, in
// the frame of `weir bench`. Each is in its <name>.c.

#include "cli/common/options.h"

extern const struct cli_command job_submit;
extern const struct cli_command job_graph;
extern const struct cli_command job_pool;
extern const struct cli_command job_priority;
extern const struct cli_command job_devices;
extern const struct cli_command job_images;
extern const struct cli_command job_comm;
extern const struct cli_command job_ddp;

int main(int argc, char **argv)
{
    const struct cli_command members[] = {job_submit,  job_graph,  job_pool, job_priority,
                                          job_devices, job_images, job_comm, job_ddp};
    const struct cli_command group = {
        .what = "JOB",
        .summary = "Compares Weir with what stands beside it on this machine.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    return cli_flush(cli_dispatch(&group, "jobs", "weir-bench(1)", argc, argv));
}
