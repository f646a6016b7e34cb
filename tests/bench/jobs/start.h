// What main() does in a process that the job `start` measures.
#ifndef WEIR_TESTS_BENCH_JOBS_START_H
#define WEIR_TESTS_BENCH_JOBS_START_H

#define START_FIRST "first" // before the side: "weir" or "raw"

int start_first(const char *side);

#endif
