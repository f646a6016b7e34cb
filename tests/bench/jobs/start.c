// The job `start`: a process, from before it is made until the first result of a kernel is on the host, and until its
// end, with Weir and with the CUDA driver alone. Both are this program again, which writes the time, the system's, when
// its main() begins and when it has the result.
#define _GNU_SOURCE // pipe2()
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/conformance/conformance.h"
#include "tests/bench/jobs/drivers.h"

extern char **environ;

enum {
    NUMBERS = 1024
};

// From before the process was made.
enum figure {
    MAIN, // until its main() began
    FIRST_RESULT,
    ENDED,
    FIGURES
};

static const char *const names[FIGURES] = {"main", "first_result", "ended"};
static const char *const sides[] = {"weir", "raw"};

// The process that starts.

static void compute(struct side *side, bool raw)
{
    static uint32_t numbers[NUMBERS], results[NUMBERS];
    static const struct side_launch launch = {
        .size = sizeof numbers, .blocks = NUMBERS / 64, .block = 64, .a = 1, .b = NUMBERS};
    const struct side_calls *calls = raw ? &side_cuda_calls : &side_weir_calls;
    char message[1024];
    side->calls = calls;
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    if (!calls->open(side, &conformance_kernels, message, sizeof message))
        cli_fail(CLI_SETUP, "%s", message);
    calls->kernel(side, 0, "increment");
    calls->open_queue(side, 0);
    calls->memory(side, sizeof numbers);
    calls->upload(side, numbers, sizeof numbers);
    calls->launch(side, 0, &launch);
    calls->download(side, results, sizeof results);
    for (size_t i = 0; i < NUMBERS; i++)
        if (results[i] != numbers[i] + 1)
            cli_fail(CLI_FAILED, "number %zu is %u, not %u", i, (unsigned)results[i],
                     (unsigned)numbers[i] + 1);
}

static void stamp(void)
{
    printf("%llu\n", (unsigned long long)cli_now_ns());
}

int start_first(const char *side)
{
    static struct side it;
    stamp();
    compute(&it, strcmp(side, sides[1]) == 0);
    stamp();
    cli_destroy_owned();
    return cli_flush(CLI_OK);
}

// The one that measures.

struct start {
    size_t side_count; // the driver too, or Weir alone
    struct bench_samples ms[FIGURES][2];
};

// Runs the process, and stores the times that it has written, and that of its end.
static void run_process(const char *side, unsigned long long stamps[FIGURES])
{
    char *arguments[] = {"/proc/self/exe", START_FIRST, cli_copy(side), NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1;
    pid_t child = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        cli_fail(CLI_FAILED, "a pipe cannot be made");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (posix_spawn(&child, arguments[0], &actions, NULL, arguments, environ) != 0)
        cli_fail(CLI_FAILED, "a process cannot be made");
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    const bool told = file && fscanf(file, "%llu %llu", &stamps[MAIN], &stamps[FIRST_RESULT]) == 2;
    if (waitpid(child, &status, 0) != child || status != 0 || !told)
        cli_fail(CLI_SETUP, "the process of %s has failed", side);
    stamps[ENDED] = cli_now_ns();
    fclose(file);
}

// Each side goes first in turn. A process compares its results before it succeeds.
static void measure(struct start *start)
{
    unsigned long long stamps[FIGURES];
    for (size_t i = 0; i < start->side_count; i++) {
        const size_t side = (size_t)((i + bench.turn) % start->side_count);
        const uint64_t began = cli_now_ns();
        run_process(sides[side], stamps);
        bench.checked += NUMBERS;
        for (size_t k = 0; k < FIGURES; k++)
            bench_keep(&start->ms[k][side], (double)(stamps[k] - began) * 1e-6);
    }
}

static void report(struct start *start)
{
    struct bench_table *table =
        bench_table("start", "a process until its first result, and until its end");
    bench_plot("Starting", "", "milliseconds");
    for (size_t i = 0; i < FIGURES; i++) {
        const struct bench_samples weir = start->ms[i][0], raw = start->ms[i][1];
        bench_text(table, "step", "step", names[i]);
        bench_value(table, "weir_ms", "Weir ms", 3, weir);
        bench_plot_bar("Weir", names[i], weir);
        if (start->side_count == 1)
            continue;
        bench_value(table, "raw_ms", "raw ms", 3, raw);
        bench_value(table, "added_ms", "added", 3, bench_difference(weir, raw));
        bench_value(table, "ratio", "over raw", 3, bench_ratio(weir, raw));
        bench_plot_bar("raw", names[i], raw);
    }
}

// What the processes open is not open here.
static void run(void *user)
{
    struct start *start = user;
    if (bench.config)
        setenv("WEIR_CONFIG", bench.config, 1);
    weir_runtime *runtime;
    cli_fine(weir_open(NULL, &runtime));
    start->side_count = strcmp(weir_runtime_backend(runtime), "cuda") == 0 ? 2 : 1;
    WEIR_IGNORE(weir_close(&runtime));
    if (start->side_count == 1)
        bench_note("not measured: raw CUDA: this is not CUDA");
    for (bench_start(); bench_turn();)
        measure(start);
    report(start);
}

int job_start(int argc, char **argv)
{
    static struct start start;
    static const struct bench_program program = {.opens_devices = true, .run = run};
    return bench_main(&program, &start, argc, argv);
}
