// The jobs: comparisons of Weir with what stands beside it on a machine, each in turns within one process, in
// the frame of `weir bench`. Each is in its <name>.c.

#include "tests/bench/jobs/drivers.h"

static const struct cli_command jobs[] = {
    {.name = "overlap",
     .summary = "chunks up, through a kernel and down, beside the driver's own calls",
     .main = job_overlap},
    {.name = "pageable", .summary = "copies of memory that is not pinned", .main = job_pageable},
    {.name = "start", .summary = "a process until the first result of a kernel", .main = job_start},
    {.name = "submit", .summary = "the cost of calls beside the driver's own", .main = job_submit},
    {.name = "graph",
     .summary = "graphs beside single launches, and beside raw CUDA graphs",
     .main = job_graph},
    {.name = "pool",
     .summary = "memory out of a pool beside buffers created and destroyed",
     .main = job_pool},
    {.name = "priority",
     .summary = "the latency of a queue of high priority beside a busy one",
     .main = job_priority},
    {.name = "comm", .summary = "collectives beside NCCL's own and MPI's", .main = job_comm},
    {.name = "ddp",
     .summary = "a training step, its gradients reduced in buckets",
     .main = job_ddp},
    {0},
};

int main(int argc, char **argv)
{
    static const struct cli_command group = {
        .what = "JOB",
        .about = "Compares Weir with what stands beside it on this machine.",
        .members = jobs,
    };
    if (argc == 3 && strcmp(argv[1], START_FIRST) == 0)
        return start_first(argv[2]);
    bench.group = "jobs";
    return cli_flush(cli_dispatch(&group, "jobs", argc, argv));
}
