// weir bench swim: the puzzle "Swimming in streams". Products of matrices, copies down
// and copies up, in one queue and in three, from pinned memory and from pageable; and
// light kernels beside the products. docs/swim.md tells what there is to see.
#include <stdio.h>

#include "cli/bench/swim.h"

static const struct swim_way ways[] = {
    {"products", "products", SWIM_PRODUCTS, false, true, SWIM_PORTABLE},
    {"down_pinned", "down, pinned", SWIM_DOWN, false, true, SWIM_PORTABLE},
    {"down_pageable", "down, pageable", SWIM_DOWN, true, true, SWIM_PORTABLE},
    {"up_pinned", "up, pinned", SWIM_UP, false, true, SWIM_PORTABLE},
    {"up_pageable", "up, pageable", SWIM_UP, true, true, SWIM_PORTABLE},
    {"pinned_one_queue", "pinned, one queue", SWIM_ALL, false, false, SWIM_PORTABLE},
    {"pinned_three_queues", "pinned, three queues", SWIM_ALL, false, true, SWIM_PORTABLE},
    {"pageable_one_queue", "pageable, one queue", SWIM_ALL, true, false, SWIM_PORTABLE},
    {"pageable_three_queues", "pageable, three queues", SWIM_ALL, true, true, SWIM_PORTABLE},
    {"products_twin", "products, twin", SWIM_PRODUCTS, false, true, SWIM_TWIN},
    {"products_cublas", "products, cuBLAS", SWIM_PRODUCTS, false, true, SWIM_BLAS},
    {"products_tensor", "products, tensor cores", SWIM_PRODUCTS, false, true, SWIM_TENSOR},
};

enum way_number {
    PRODUCTS,
    DOWN_PINNED,
    DOWN_PAGEABLE,
    UP_PINNED,
    UP_PAGEABLE,
    PARTS, // those above do one part
    PINNED_ONE = PARTS,
    PINNED_THREE,
    PAGEABLE_ONE,
    PAGEABLE_THREE,
    PORTABLE, // what needs neither CUDA nor cuBLAS
    WAYS = sizeof ways / sizeof *ways
};

static const struct {
    const char *name;
    enum swim_beside beside;
    enum swim_product product;
} besides[] = {
    {"after them, same queue", SWIM_AFTER, SWIM_PORTABLE},
    {"beside them, own queue", SWIM_BESIDE, SWIM_PORTABLE},
    {"beside them, highest priority", SWIM_FIRST, SWIM_PORTABLE},
    {"after tensor cores, same queue", SWIM_AFTER, SWIM_TENSOR},
    {"beside tensor cores, own queue", SWIM_BESIDE, SWIM_TENSOR},
};

enum {
    TENSOR_AFTER = 3,
    TENSOR_BESIDE = 4,
    BESIDES = sizeof besides / sizeof *besides
};

struct figures {
    struct bench_samples all[WAYS];
    struct bench_samples host[WAYS];
    struct bench_samples beside_all[BESIDES];
    struct bench_samples beside_light[BESIDES];
};

// Measuring.

static bool has_product(const struct swim *swim, enum swim_product product)
{
    return product == SWIM_PORTABLE ||
           (product == SWIM_TWIN ? swim->twin != NULL : swim->blas != NULL);
}

static bool has_way(const struct swim *swim, size_t way)
{
    return has_product(swim, ways[way].product);
}

static bool has_beside(const struct swim *swim, size_t index)
{
    return (besides[index].beside != SWIM_FIRST || swim->first) &&
           has_product(swim, besides[index].product);
}

// As many products as take as long as the copies one way, so that the two can overlap.
static void choose_products(struct swim *swim)
{
    struct swim_times product = {0}, copies = {0};
    if (swim->products)
        return;
    swim->products = 1;
    for (int i = 0; i < 3; i++) {
        product = swim_run(swim, &ways[PRODUCTS]);
        copies = swim_run(swim, &ways[UP_PINNED]);
    }
    const double count = product.all_ms > 0 ? copies.all_ms / product.all_ms + 0.5 : 1;
    swim->products = count < 1                   ? 1
                     : count > SWIM_PRODUCTS_MAX ? SWIM_PRODUCTS_MAX
                                                 : (uint64_t)count;
}

static void check_all(struct swim *swim)
{
    for (size_t i = 0; i < WAYS; i++)
        if (has_way(swim, i))
            swim_check(swim, &ways[i]);
    for (size_t i = 0; i < BESIDES; i++)
        if (has_beside(swim, i))
            swim_check_beside(swim, besides[i].beside, besides[i].product);
}

static void measure_ways(struct swim *swim, struct figures *figures)
{
    for (size_t i = 0; i < WAYS; i++) {
        if (!has_way(swim, i))
            continue;
        const struct swim_times times = swim_run(swim, &ways[i]);
        bench_keep(swim->bench, &figures->all[i], times.all_ms);
        bench_keep(swim->bench, &figures->host[i], times.host_ms);
    }
    for (size_t i = 0; i < BESIDES; i++) {
        if (!has_beside(swim, i))
            continue;
        const struct swim_times times =
            swim_run_beside(swim, besides[i].beside, besides[i].product);
        bench_keep(swim->bench, &figures->beside_all[i], times.all_ms);
        bench_keep(swim->bench, &figures->beside_light[i], times.light_ms);
    }
}

// Of each turn: the longest of the three parts, and all three one after the other.
static void parts_of(const struct figures *figures, bool pageable,
                     struct bench_samples *out_longest, struct bench_samples *out_sum)
{
    const double *products = figures->all[PRODUCTS].values;
    const double *down = figures->all[pageable ? DOWN_PAGEABLE : DOWN_PINNED].values;
    const double *up = figures->all[pageable ? UP_PAGEABLE : UP_PINNED].values;
    out_longest->count = out_sum->count = figures->all[PRODUCTS].count;
    for (size_t i = 0; i < out_sum->count; i++) {
        const double copies = down[i] > up[i] ? down[i] : up[i];
        out_longest->values[i] = products[i] > copies ? products[i] : copies;
        out_sum->values[i] = products[i] + down[i] + up[i];
    }
}

static struct bench_samples rate(const struct bench_samples *ms, double amount)
{
    struct bench_samples result = {.count = ms->count};
    for (size_t i = 0; i < ms->count; i++)
        result.values[i] = ms->values[i] > 0 ? amount / ms->values[i] / 1e6 : 0;
    return result;
}

// Tables.

static void report_parts(struct swim *swim, const struct figures *figures)
{
    static const struct bench_column columns[] = {
        {"part", "part", BENCH_TEXT, 0},
        {"ms", "ms", BENCH_SPREAD, 2},
        {"giga_per_second", "Gflop/s, GB/s", BENCH_SPREAD, 1},
    };
    struct bench_table *table = bench_table(swim->bench, "parts", "each part alone", columns);
    const double side = (double)swim->side;
    for (size_t i = 0; i < WAYS; i++) {
        if (!has_way(swim, i) || ways[i].parts == SWIM_ALL)
            continue;
        const double amount = ways[i].parts == SWIM_PRODUCTS
                                  ? 2 * side * side * side * (double)swim->products
                                  : (double)swim->all_bytes;
        const struct bench_samples rates = rate(&figures->all[i], amount);
        bench_row(table, ways[i].name, &figures->all[i], &rates);
    }
}

static void report_ways(struct swim *swim, const struct figures *figures)
{
    static const struct bench_column columns[] = {
        {"way", "way", BENCH_TEXT, 0},
        {"ms", "ms", BENCH_SPREAD, 2},
        {"host_ms", "host busy, ms", BENCH_SPREAD, 2},
        {"of_longest", "of the longest part", BENCH_SPREAD, 3},
        {"of_sum", "of all parts in turn", BENCH_SPREAD, 3},
    };
    struct bench_table *table = bench_table(swim->bench, "ways", "all three parts", columns);
    for (size_t i = PARTS; i < PORTABLE; i++) {
        struct bench_samples longest, sum;
        parts_of(figures, ways[i].pageable, &longest, &sum);
        const struct bench_samples of_longest = bench_ratio(&figures->all[i], &longest);
        const struct bench_samples of_sum = bench_ratio(&figures->all[i], &sum);
        bench_row(table, ways[i].name, &figures->all[i], &figures->host[i], &of_longest, &of_sum);
    }
}

static void report_besides(struct swim *swim, const struct figures *figures)
{
    static const struct bench_column columns[] = {
        {"light_kernels", "light kernels", BENCH_TEXT, 0},
        {"ms", "all done, ms", BENCH_SPREAD, 2},
        {"light_ms", "light ones done, ms", BENCH_SPREAD, 2},
    };
    struct bench_table *table =
        bench_table(swim->bench, "kernels", "products, and as many light kernels", columns);
    for (size_t i = 0; i < BESIDES; i++) {
        if (!has_beside(swim, i))
            continue;
        bench_row(table, besides[i].name, &figures->beside_all[i], &figures->beside_light[i]);
    }
}

// Explanations of the figures, two sentences each.

static double median(const struct bench_samples *samples)
{
    return bench_spread(samples).median;
}

static double median_ratio(const struct figures *figures, size_t way)
{
    struct bench_samples longest, sum;
    parts_of(figures, ways[way].pageable, &longest, &sum);
    const struct bench_samples ratio = bench_ratio(&figures->all[way], &longest);
    return median(&ratio);
}

// Shorter parts are not explained: their times are mostly the host's calls.
static const double ms_to_say_anything = 1;

static bool is_too_short(const struct figures *figures)
{
    struct bench_samples longest, sum;
    parts_of(figures, false, &longest, &sum);
    return median(&longest) < ms_to_say_anything;
}

static void explain_queues(struct swim *swim, const struct figures *figures)
{
    const struct weir_limits *limits = swim->bench->limits;
    const double one = median_ratio(figures, PINNED_ONE);
    const double three = median_ratio(figures, PINNED_THREE);
    bench_note(swim->bench,
               "pinned, one queue: %.2f times the longest part. A queue runs what it is given one "
               "after the other, so nothing overlaps.",
               one);
    if (three < 1.2)
        bench_note(swim->bench,
                   "pinned, three queues: %.2f times the longest part, so the other two run "
                   "during it. Both directions of the link and the processors are separate "
                   "engines, and each queue feeds one.",
                   three);
    else
        bench_note(
            swim->bench,
            "pinned, three queues: %.2f times the longest part, so the parts compete "
            "for the same engines. The device says that it has %u copy engines up and %u down; "
            "without any, copies are done by the processors that compute.",
            three, limits->copy_engines_to_device, limits->copy_engines_to_host);
}

static void explain_pageable(struct swim *swim, const struct figures *figures)
{
    const double copies = median(&figures->all[DOWN_PAGEABLE]) + median(&figures->all[UP_PAGEABLE]);
    const double pinned = median(&figures->all[DOWN_PINNED]) + median(&figures->all[UP_PINNED]);
    bench_note(
        swim->bench,
        "pageable: the copies take %.2f times as long as pinned ones. Only pinned memory can be "
        "copied without the host, so every byte of other memory is moved once more, by it.",
        pinned > 0 ? copies / pinned : 0);
    bench_note(swim->bench,
               "pageable, three queues: the host was busy for %.0f ms of %.0f, with pinned memory "
               "for %.1f of %.0f. Each copy returns when it is done, so those up begin when the "
               "last one down has ended; only the products run during them.",
               median(&figures->host[PAGEABLE_THREE]), median(&figures->all[PAGEABLE_THREE]),
               median(&figures->host[PINNED_THREE]), median(&figures->all[PINNED_THREE]));
}

static void explain_kernels(struct swim *swim, const struct figures *figures)
{
    const double after = median(&figures->beside_light[SWIM_AFTER]);
    const double beside = median(&figures->beside_light[SWIM_BESIDE]);
    bench_note(
        swim->bench,
        "light kernels: done after %.2f ms in a queue of their own, and after %.2f ms in "
        "that of the products. Kernels of two queues share the processors as blocks become free; "
        "where one fills them, a second queue decides the order and not the sum.",
        beside, after);
    if (swim->first)
        bench_note(swim->bench,
                   "highest priority: the light kernels were done after %.2f ms. Blocks of that "
                   "queue are placed before waiting blocks of others; blocks that run are not "
                   "stopped.",
                   median(&figures->beside_light[SWIM_FIRST]));
    else
        bench_note(swim->bench, "this device has no priorities of queues");
    if (swim->blas)
        bench_note(swim->bench,
                   "tensor cores: %.2f ms for both kinds in two queues, %.2f ms in one. What two "
                   "save over one is how far light kernels ran on lanes that the products left.",
                   median(&figures->beside_all[TENSOR_BESIDE]),
                   median(&figures->beside_all[TENSOR_AFTER]));
}

static void explain(struct swim *swim, const struct figures *figures)
{
    if (is_too_short(figures)) {
        bench_note(swim->bench, "the parts last less than a millisecond, so the host's calls are "
                                "most of what was measured; give a larger --side or more --copies");
        return;
    }
    explain_queues(swim, figures);
    explain_pageable(swim, figures);
    explain_kernels(swim, figures);
}

// The plot.

static void draw(struct swim *swim, const struct figures *figures)
{
    char title[96];
    snprintf(title, sizeof title, "Products, %llu copies down and %llu up",
             (unsigned long long)swim->copies, (unsigned long long)swim->copies);
    bench_plot(swim->bench, title, "", "milliseconds");
    for (size_t i = 0; i < WAYS; i++)
        bench_plot_bar(swim->bench, "all done", ways[i].name, &figures->all[i]);
    for (size_t i = 0; i < WAYS; i++)
        bench_plot_bar(swim->bench, "host busy", ways[i].name, &figures->host[i]);
}

// The command.

static void run(struct bench *bench, void *user)
{
    static struct figures figures;
    struct swim *swim = user;
    swim->bench = bench;
    if (swim->side % 8 != 0)
        cli_fail(CLI_USAGE, "--side is a multiple of 8, not %llu", (unsigned long long)swim->side);
    swim_open(swim);
    choose_products(swim);
    check_all(swim);
    for (bench_start(bench); bench_turn(bench);)
        measure_ways(swim, &figures);
    bench_parameter(bench, "side", (double)swim->side);
    bench_parameter(bench, "copies", (double)swim->copies);
    bench_parameter(bench, "products", (double)swim->products);
    report_parts(swim, &figures);
    report_ways(swim, &figures);
    report_besides(swim, &figures);
    explain(swim, &figures);
    draw(swim, &figures);
}

static int swim_main(int argc, char **argv)
{
    static struct swim swim = {.side = 1024, .copies = 100};
    static const struct cli_option options[] = {
        {"side", "N", "rows and columns of a matrix, a multiple of 8 (1024)", CLI_COUNT, &swim.side,
         8, 8192},
        {"copies", "N", "matrices that are copied each way (100)", CLI_COUNT, &swim.copies, 1,
         10000},
        {"products", "N",
         "products of matrices; without it, as many as last as\nlong as the "
         "copies one way",
         CLI_COUNT, &swim.products, 1, SWIM_PRODUCTS_MAX},
        {"portable", NULL, "no products of cuBLAS and of kernels for CUDA alone", CLI_FLAG,
         &swim.portable, 0, 0},
    };
    static const struct bench_program program = {
        .name = "swim",
        .about =
            "Multiplies matrices, copies others down and others up: in one queue and in\n"
            "three, from pinned memory and from pageable. The puzzle \"Swimming in streams\".\n\n"
            "  weir bench swim --plot swim.svg\n"
            "  weir bench swim --side 512 --copies 50",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .run = run,
    };
    return bench_main(&program, &swim, argc, argv);
}

const struct cli_command cli_bench_swim = {
    .name = "swim",
    .summary = "products and copies: pinned and pageable, one queue and three",
    .main = swim_main,
};
