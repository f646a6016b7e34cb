// The tables and the plot of `weir bench arr-coc`.
#include <stdio.h>

#include "cli/bench/arr_coc_parts.h"

static void plot_rate(struct cli_plot *plot, const char *series, const char *image,
                      const struct bench_samples *rate)
{
    const struct bench_spread spread = bench_spread(rate);
    cli_plot_add(cli_plot_series(plot, series),
                 (struct cli_plot_point){(double)cli_plot_group(plot, image), spread.median,
                                         spread.minimum, spread.maximum});
}

static void report_copies(struct arr_coc_bench *a)
{
    static const struct bench_column columns[] = {
        {"image", "image", BENCH_TEXT, 0},
        {"devices", "devices", BENCH_NUMBER, 0},
        {"bytes_in", "bytes in", BENCH_NUMBER, 0},
        {"bytes_out", "bytes out", BENCH_NUMBER, 0},
        {"frames_per_second", "frames/s", BENCH_SPREAD, 1},
    };
    const struct weir_limits *limits = a->bench->limits;
    struct bench_table *table =
        bench_table(a->bench, "copies", "bare copies of the frames, in two queues of a device",
                    columns, sizeof columns / sizeof *columns);
    for (size_t k = 0; k < a->image_count; k++)
        for (uint32_t all = 0; all < (a->device_count > 1 ? 2 : 1); all++) {
            const struct arr_coc_image *image = &a->images[k];
            bench_put_text(table, "%s", image->name);
            bench_put_number(table, all ? a->device_count : 1);
            bench_put_number(table, 3.0 * image->width * image->height);
            bench_put_number(table, (double)a->result_bytes);
            bench_put(table, &image->copies[all]);
            // Where the processor copies, the copies' rate is far above the pipeline's scale.
            if (!all && limits->copy_engines_to_device > 0)
                plot_rate(&a->bench->plot, "bare copies", image->name, &image->copies[0]);
        }
}

static void plot_line(struct arr_coc_bench *a, const struct arr_coc_image *image, size_t index)
{
    const struct arr_coc_line *line = &a->lines[index];
    char devices[32] = "", name[80];
    if (line->devices > 1)
        snprintf(devices, sizeof devices, ", %u devices", (unsigned)line->devices);
    snprintf(name, sizeof name, "%u slot%s%s%s", (unsigned)line->slots, line->slots == 1 ? "" : "s",
             line->graphs ? ", graphs" : "", devices);
    plot_rate(&a->bench->plot, name, image->name, &image->rate[index]);
}

static void report_rate(struct arr_coc_bench *a, struct bench_table *table,
                        const struct arr_coc_image *image, size_t index)
{
    const struct arr_coc_line *line = &a->lines[index];
    const struct bench_samples *rate = &image->rate[index];
    const struct bench_samples share = bench_ratio(rate, &image->copies[line->devices > 1]);
    const struct bench_samples gain = bench_ratio(rate, &image->rate[0]);
    const struct bench_samples more =
        bench_ratio(rate, &image->rate[index % arr_coc_lines_of_one(a)]);
    bench_put_text(table, "%s", image->name);
    bench_put_number(table, line->devices);
    bench_put_number(table, line->slots);
    bench_put_text(table, "%s", arr_coc_graph_words[line->graphs]);
    bench_put(table, rate);
    bench_put(table, &share);
    bench_put(table, &gain);
    bench_put(table, &more);
    plot_line(a, image, index);
}

static void report_rates(struct arr_coc_bench *a)
{
    static const struct bench_column columns[] = {
        {"image", "image", BENCH_TEXT, 0},
        {"devices", "devices", BENCH_NUMBER, 0},
        {"slots", "slots", BENCH_NUMBER, 0},
        {"graphs", "graphs", BENCH_TEXT, 0},
        {"frames_per_second", "frames/s", BENCH_SPREAD, 1},
        {"of_copies", "x bare copies", BENCH_SPREAD, 3},
        {"speed_up", "x first", BENCH_SPREAD, 2},
        {"of_one_device", "x one device", BENCH_SPREAD, 3},
    };
    struct bench_table *table = bench_table(a->bench, "frames", "the pipeline, from pinned memory",
                                            columns, sizeof columns / sizeof *columns);
    for (size_t k = 0; k < a->image_count; k++)
        for (size_t i = 0; i < a->line_count; i++)
            report_rate(a, table, &a->images[k], i);
}

static void report_stages(struct arr_coc_bench *a)
{
    static const struct bench_column columns[] = {
        {"image", "image", BENCH_TEXT, 0},
        {"stage", "stage", BENCH_TEXT, 0},
        {"busy_us", "us", BENCH_SPREAD, 1},
    };
    struct bench_table *table = bench_table(a->bench, "stages",
                                            "busy time of a frame's stages, "
                                            "one frame at a time",
                                            columns, 3);
    struct weir_pipeline_statistics statistics;
    if (!a->timed.owner)
        return;
    weir_pipeline_group_get_statistics(a->timed.group, &statistics);
    for (size_t k = 0; k < a->image_count; k++)
        for (uint32_t i = 0; i < statistics.stage_count; i++) {
            bench_put_text(table, "%s", a->images[k].name);
            bench_put_text(table, "%s", statistics.stages[i].name);
            bench_put(table, &a->images[k].stage_us[i]);
        }
}

void arr_coc_report(struct arr_coc_bench *a)
{
    struct cli_plot *plot = &a->bench->plot;
    bench_parameter(a->bench, "frames", (double)a->frames);
    bench_parameter(a->bench, "side", a->sizes.side);
    snprintf(plot->title, sizeof plot->title, "ARR-COC: frames a second by slots");
    snprintf(plot->y_name, sizeof plot->y_name, "frames/s");
    report_copies(a);
    report_rates(a);
    report_stages(a);
}
