// Tables and the plot.
#include "cli/bench/overlap.h"

#include <stdio.h>

#include "base/text.h"

static struct bench_samples scaled(const struct bench_samples *samples, double by)
{
    struct bench_samples result = *samples;
    for (size_t i = 0; i < result.count; i++)
        result.values[i] *= by;
    return result;
}

static void put_bare(struct bench_table *table, const struct overlap_reference *reference,
                     const char *what, const struct bench_samples *ns, double bytes)
{
    char size[WEIR_TEXT_QUANTITY_SIZE];
    struct bench_samples ms = scaled(ns, 1e-6), rate = {0};
    for (size_t i = 0; i < ns->count && bytes > 0; i++)
        rate.values[rate.count++] = bytes / ns->values[i];
    bench_put_text(table, "%s", weir_text_bytes(size, reference->size));
    bench_put_text(table, "%s", what);
    bench_put(table, &ms);
    bench_put(table, &rate);
}

static void report_references(struct overlap *o)
{
    static const struct bench_column columns[] = {
        {"size", "size", BENCH_TEXT, 0},
        {"what", "what", BENCH_TEXT, 0},
        {"ms", "ms", BENCH_SPREAD, 3},
        {"gb_per_s", "GB/s", BENCH_SPREAD, 1},
    };
    struct bench_table *table = bench_table(o->bench, "alone", "each part alone", columns, 4);
    for (size_t i = 0; i < o->reference_count; i++) {
        const struct overlap_reference *reference = &o->references[i];
        const double size = (double)reference->size;
        char name[64];
        if (i == 0 || reference->size != o->references[i - 1].size) {
            put_bare(table, reference, "bare copy up", &reference->up, size);
            put_bare(table, reference, "bare copy down", &reference->down, size);
            put_bare(table, reference, "both at once (the limit)", &reference->both, 2 * size);
        }
        snprintf(name, sizeof name, "kernel, %s", reference->kernel_name);
        put_bare(table, reference, name, &reference->kernel_alone, 0);
        snprintf(name, sizeof name, "one queue, one piece, %s", reference->kernel_name);
        put_bare(table, reference, name, &reference->one_queue, 0);
    }
}

static void plot_way(struct overlap *o, const struct overlap_way *way,
                     const struct bench_samples *ratio)
{
    const struct overlap_reference *reference = &o->references[way->reference];
    const struct bench_spread spread = bench_spread(ratio);
    char name[CLI_PLOT_TEXT], size[WEIR_TEXT_QUANTITY_SIZE], queues[24] = "";
    if (o->queues.count > 1 && way->order != BENCH_WORD)
        snprintf(queues, sizeof queues, ", %u queues", (unsigned)way->plan.queue_count);
    snprintf(name, sizeof name, "%s%s, %s%s%s", overlap_orders[way->order - BENCH_WORD], queues,
             reference->kernel_name, o->sizes.count > 1 ? ", " : "",
             o->sizes.count > 1 ? weir_text_bytes(size, reference->size) : "");
    struct cli_plot_series *series = cli_plot_series(&o->bench->plot, name);
    const struct cli_plot_point point = {way->plan.chunk_count, spread.median, spread.minimum,
                                         spread.maximum};
    size_t at = series->count;
    cli_plot_add(series, point);
    // The points are sorted by x; `auto` may have chosen any number of chunks.
    for (; at > 0 && at < series->count && series->points[at - 1].x > point.x; at--) {
        series->points[at] = series->points[at - 1];
        series->points[at - 1] = point;
    }
}

static void report_ways(struct overlap *o)
{
    static const char *const plan_orders[] = {"auto", "depth", "breadth", "interleaved"};
    static const struct bench_column columns[] = {
        {"size", "size", BENCH_TEXT, 0},          {"kernel", "kernel", BENCH_TEXT, 0},
        {"asked", "order", BENCH_TEXT, 0},        {"order", "runs as", BENCH_TEXT, 0},
        {"queues", "queues", BENCH_NUMBER, 0},    {"layout", "by", BENCH_TEXT, 0},
        {"chunks", "chunks", BENCH_NUMBER, 0},    {"ms", "ms", BENCH_SPREAD, 3},
        {"to_limit", "x limit", BENCH_SPREAD, 3}, {"speed_up", "x one queue", BENCH_SPREAD, 2},
    };
    struct bench_table *table =
        bench_table(o->bench, "ways",
                    "in chunks: time, as a multiple of the bare copies in both "
                    "directions, and speed-up to one queue in one piece",
                    columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < o->way_count; i++) {
        const struct overlap_way *way = &o->ways[i];
        const struct overlap_reference *reference = &o->references[way->reference];
        const struct bench_samples ms = scaled(&way->ns, 1e-6);
        const struct bench_samples ratio = bench_ratio(&way->ns, &reference->both);
        const struct bench_samples gain = bench_ratio(&reference->one_queue, &way->ns);
        char size[WEIR_TEXT_QUANTITY_SIZE];
        bench_put_text(table, "%s", weir_text_bytes(size, reference->size));
        bench_put_text(table, "%s", reference->kernel_name);
        bench_put_text(table, "%s", overlap_orders[way->order - BENCH_WORD]);
        bench_put_text(table, "%s", plan_orders[way->plan.order]);
        bench_put_number(table, way->plan.queue_count);
        bench_put_text(table, "%s", way->plan.layout == WEIR_CHUNKS_BY_ENGINE ? "engine" : "chunk");
        bench_put_number(table, way->plan.chunk_count);
        bench_put(table, &ms);
        bench_put(table, &ratio);
        bench_put(table, &gain);
        plot_way(o, way, &ratio);
    }
}

// The plans that `auto` chose.
static void report_plans(struct overlap *o)
{
    static const struct bench_column columns[] = {
        {"size", "size", BENCH_TEXT, 0},
        {"chunks", "chunks", BENCH_NUMBER, 0},
        {"first", "the first", BENCH_TEXT, 0},
        {"largest", "the largest", BENCH_TEXT, 0},
    };
    struct bench_table *table =
        bench_table(o->bench, "plans", "chunks of auto", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < o->way_count; i++) {
        const struct weir_chunks_plan *plan = &o->ways[i].plan;
        const struct overlap_reference *reference = &o->references[o->ways[i].reference];
        char text[WEIR_TEXT_QUANTITY_SIZE];
        const bool other = reference > o->references && reference->size == reference[-1].size;
        if (o->ways[i].order != BENCH_WORD + OVERLAP_AUTO || other)
            continue;
        bench_put_text(table, "%s", weir_text_bytes(text, reference->size));
        bench_put_number(table, plan->chunk_count);
        bench_put_text(table, "%s", weir_text_bytes(text, plan->first_count * sizeof(uint32_t)));
        bench_put_text(table, "%s", weir_text_bytes(text, plan->most_count * sizeof(uint32_t)));
    }
}

static bool has_order(const struct overlap *o, uint64_t order)
{
    for (size_t i = 0; i < o->orders.count; i++)
        if (o->orders.values[i] == BENCH_WORD + order)
            return true;
    return false;
}

static void set_plot(struct cli_plot *plot)
{
    snprintf(plot->title, sizeof plot->title, "Chunked copies and a kernel: time over the limit");
    snprintf(plot->x_name, sizeof plot->x_name, "chunks");
    snprintf(plot->y_name, sizeof plot->y_name, "multiple of the bare copies' time");
    snprintf(plot->level_name, sizeof plot->level_name, "bare copies, both ways");
    plot->level = 1;
    plot->doubling = true;
}

void overlap_report(struct overlap *o)
{
    set_plot(&o->bench->plot);
    report_references(o);
    report_ways(o);
    if (has_order(o, OVERLAP_AUTO))
        report_plans(o);
}
