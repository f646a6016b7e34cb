// weir bench submit: what Weir adds to a call. Results are verified before anything
// is timed. No time makes the command fail.
#include "cli/bench/submit.h"

#include <stdio.h>

enum {
    OPERATIONS_MOST = 100000000
};

static void plot_rows(struct cli_plot *plot, const char *other, const struct submit_row *rows,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct bench_spread weir = bench_spread(&rows[i].weir);
        const struct bench_spread below = bench_spread(&rows[i].other);
        const double group = (double)cli_plot_group(plot, rows[i].name);
        cli_plot_add(cli_plot_series(plot, other),
                     (struct cli_plot_point){group, below.median, below.minimum, below.maximum});
        cli_plot_add(cli_plot_series(plot, "Weir"),
                     (struct cli_plot_point){group, weir.median, weir.minimum, weir.maximum});
    }
}

void submit_table(struct bench *bench, const char *key, const char *title, const char *other,
                  const struct submit_row *rows, size_t count, bool ratio)
{
    const struct bench_column columns[] = {
        {"name", "call", BENCH_TEXT, 0},        {"about", "", BENCH_TEXT, 0},
        {"weir_ns", "Weir", BENCH_SPREAD, 1},   {"other_ns", other, BENCH_SPREAD, 1},
        {"added_ns", "added", BENCH_SPREAD, 1}, {"ratio", "ratio", BENCH_SPREAD, 3},
    };
    struct bench_table *table =
        bench_table(bench, key, title, columns, sizeof columns / sizeof *columns - !ratio);
    for (size_t i = 0; i < count; i++) {
        const struct bench_samples added = bench_difference(&rows[i].weir, &rows[i].other);
        const struct bench_samples times = bench_ratio(&rows[i].weir, &rows[i].other);
        bench_put_text(table, "%s", rows[i].name);
        bench_put_text(table, "%s", rows[i].about);
        bench_put(table, &rows[i].weir);
        bench_put(table, &rows[i].other);
        bench_put(table, &added);
        if (ratio)
            bench_put(table, &times);
    }
    // Of one driver only: the calls of several drivers differ too much for one scale.
    if (bench->plot.series_count == 0 && count > 1) {
        snprintf(bench->plot.title, sizeof bench->plot.title, "The cost of submitting: %s", title);
        snprintf(bench->plot.y_name, sizeof bench->plot.y_name, "ns a call");
        plot_rows(&bench->plot, other, rows, count);
    }
}

// CUDA first, so that it is the one drawn where it is present.
static bool run(struct bench *bench, void *user)
{
    struct submit *submit = user;
    submit->bench = bench;
    bench_parameter(bench, "operations", (double)submit->operations);
    return submit_cuda(submit) && submit_null(submit) && submit_opencl(submit);
}

static int submit_main(int argc, char **argv)
{
    struct submit submit = {.operations = 10000};
    const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &submit.operations, 1,
         OPERATIONS_MOST},
    };
    const struct bench_program program = {
        .name = "submit",
        .about =
            "Measures what a call costs above the null backend; on CUDA beside the same calls of\n"
            "the driver; and on OpenCL beside a plain program; each in the same run. What is\n"
            "not on this machine is left out with a note.\n\n"
            "  weir bench submit\n"
            "  weir bench submit --turns 31 --json",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .run = run,
    };
    return bench_main(&program, &submit, argc, argv);
}

const struct cli_command cli_bench_submit = {
    .name = "submit",
    .summary = "the cost of submitting work",
    .main = submit_main,
};
