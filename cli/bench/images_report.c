// What weir bench images says.
#include "cli/bench/images.h"

#include "cli/common/processors.h"

static void plot_rate(struct bench *bench, const char *name, double threads,
                      const struct bench_samples *rate)
{
    const struct bench_spread spread = bench_spread(rate);
    cli_plot_add(cli_plot_series(&bench->plot, name),
                 (struct cli_plot_point){threads, spread.median, spread.minimum, spread.maximum});
}

static void report_rates(struct images_bench *images)
{
    static const struct bench_column columns[] = {
        {"threads", "threads", BENCH_NUMBER, 0},
        {"slots", "slots", BENCH_NUMBER, 0},
        {"decoder", "decoder alone", BENCH_SPREAD, 1},
        {"pinned", "decoder alone, pinned", BENCH_SPREAD, 1},
        {"pipeline", "pipeline alone", BENCH_SPREAD, 1},
        {"both", "both", BENCH_SPREAD, 1},
        {"of_slower", "both / slower alone", BENCH_SPREAD, 3},
        {"of_slower_pinned", "both / slower alone, pinned", BENCH_SPREAD, 3},
        {"decoder_busy", "processors: decoder", BENCH_SPREAD, 2},
        {"pinned_busy", "decoder, pinned", BENCH_SPREAD, 2},
        {"pipeline_busy", "pipeline", BENCH_SPREAD, 2},
        {"both_busy", "both", BENCH_SPREAD, 2},
    };
    static const char *const names[] = {"decoder alone", "decoder alone, pinned", "pipeline alone",
                                        "both"};
    struct bench *bench = images->bench;
    struct bench_table *table =
        bench_table(bench, "images", "images a second", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < images->threads.count; i++) {
        const struct images_row *row = &images->rows[i];
        bench_put_number(table, row->threads);
        bench_put_number(table, row->slots);
        for (int way = 0; way < IMAGES_WAYS; way++) {
            bench_put(table, &row->rate[way]);
            plot_rate(bench, names[way], row->threads, &row->rate[way]);
        }
        bench_put(table, &row->of_slower);
        bench_put(table, &row->of_slower_pinned);
        for (int way = 0; way < IMAGES_WAYS; way++)
            bench_put(table, &row->busy[way]);
    }
}

// Of each turn: what both cost more than the decoder and the pipeline alone.
static struct bench_samples rest(const struct images_row *row, enum images_way decoder)
{
    const struct bench_samples more =
        bench_difference(&row->cost[IMAGES_BOTH], &row->cost[decoder]);
    return bench_difference(&more, &row->cost[IMAGES_PIPELINE]);
}

static void report_costs(struct images_bench *images)
{
    static const struct bench_column columns[] = {
        {"threads", "threads", BENCH_NUMBER, 0},
        {"decoder", "decoder alone", BENCH_SPREAD, 3},
        {"pinned", "decoder alone, pinned", BENCH_SPREAD, 3},
        {"pipeline", "pipeline alone", BENCH_SPREAD, 3},
        {"both", "both", BENCH_SPREAD, 3},
        {"rest", "both - decoder - pipeline", BENCH_SPREAD, 3},
        {"rest_pinned", "both - pinned - pipeline", BENCH_SPREAD, 3},
    };
    struct bench_table *table =
        bench_table(images->bench, "processor_time", "processor time, ms an image", columns,
                    sizeof columns / sizeof *columns);
    for (size_t i = 0; i < images->threads.count; i++) {
        const struct images_row *row = &images->rows[i];
        const struct bench_samples own = rest(row, IMAGES_DECODER);
        const struct bench_samples pinned = rest(row, IMAGES_PINNED);
        bench_put_number(table, row->threads);
        for (int way = 0; way < IMAGES_WAYS; way++)
            bench_put(table, &row->cost[way]);
        bench_put(table, &own);
        bench_put(table, &pinned);
    }
}

void images_report(struct images_bench *images)
{
    struct bench *bench = images->bench;
    snprintf(bench->plot.title, sizeof bench->plot.title, "JPEGs through ARR-COC");
    snprintf(bench->plot.x_name, sizeof bench->plot.x_name, "threads that decode");
    snprintf(bench->plot.y_name, sizeof bench->plot.y_name, "images a second");
    report_rates(images);
    report_costs(images);
    bench_parameter(bench, "frames", (double)images->frames);
    bench_parameter(bench, "processors", cli_processors(UINT32_MAX));
    bench_note(bench, "%zu image%s, the first of %u x %u pixels, %s", images->image_count,
               images->image_count == 1 ? "" : "s", (unsigned)images->images[0].info.width,
               (unsigned)images->images[0].info.height, images->images[0].info.kind);
}
