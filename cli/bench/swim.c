// weir bench swim: the puzzle "Swimming in streams". docs/swim.md tells what there is to see.
//
// Three kinds of work, each `side` x `side` floats at a time: products of matrices;
// copies from the device to the host ("down"); copies from the host to the device
// ("up"). The host's side of a copy is a pinned buffer, copied in the queue, or plain
// memory, through weir_download() and weir_upload(), which return when it is done.
//
// Factors are small whole numbers, so that every sum of products is exact and a result is right or wrong; each copy
// has bytes of its own.
#include <math.h>

#include "cli/bench/bench.h"
#include "kernels/conformance/conformance.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_tensor.h"
#include "kernels/matmul/tile.cl.h"
#include "pipelines/train/product.h"

enum {
    RING = 8, // matrices that the products use in turn
    PRODUCTS_MOST = 1000
};

enum swim_part {
    PRODUCTS = 1,
    DOWN = 2,
    UP = 4,
    ALL = 7
};

// The code that multiplies.
enum swim_product {
    PORTABLE, // kernels/matmul
    TWIN,     // its twin in CUDA C++, on tensor cores
    BLAS,     // cuBLAS
    TENSOR    // cuBLAS on tensor cores
};

// Light kernels over as many matrices as there are products: after them in the same queue, beside them in another
// queue, or in one of the highest priority.
enum swim_light {
    NONE,
    AFTER,
    BESIDE,
    FIRST
};

// One way of doing some of the work.
struct swim_way {
    const char *name;
    unsigned parts;
    bool pageable;
    bool spread; // a queue for each part, else one for all
    enum swim_product product;
    enum swim_light light;
};

static const struct swim_way ways[] = {
    {"products", PRODUCTS, false, true, PORTABLE, NONE},
    {"down, pinned", DOWN, false, true, PORTABLE, NONE},
    {"down, pageable", DOWN, true, true, PORTABLE, NONE},
    {"up, pinned", UP, false, true, PORTABLE, NONE},
    {"up, pageable", UP, true, true, PORTABLE, NONE},
    {"pinned, one queue", ALL, false, false, PORTABLE, NONE},
    {"pinned, three queues", ALL, false, true, PORTABLE, NONE},
    {"pageable, one queue", ALL, true, false, PORTABLE, NONE},
    {"pageable, three queues", ALL, true, true, PORTABLE, NONE},
    {"products, twin", PRODUCTS, false, true, TWIN, NONE},
    {"products, cuBLAS", PRODUCTS, false, true, BLAS, NONE},
    {"products, tensor cores", PRODUCTS, false, true, TENSOR, NONE},
    {"after them, same queue", PRODUCTS, false, true, PORTABLE, AFTER},
    {"beside them, own queue", PRODUCTS, false, true, PORTABLE, BESIDE},
    {"beside them, highest priority", PRODUCTS, false, true, PORTABLE, FIRST},
    {"after tensor cores, same queue", PRODUCTS, false, true, TENSOR, AFTER},
    {"beside tensor cores, own queue", PRODUCTS, false, true, TENSOR, BESIDE},
};

enum way_number {
    WAY_PRODUCTS,
    DOWN_PINNED,
    DOWN_PAGEABLE,
    UP_PINNED,
    UP_PAGEABLE,
    WAYS = sizeof ways / sizeof *ways
};

// Milliseconds from a way's first submit on.
enum moment {
    DONE,       // until the end of all work
    RETURNED,   // until the last call of the way returned
    LIGHT_DONE, // until the light kernels were done
    MOMENTS
};

struct swim {
    // Set by the command line.
    uint64_t side;
    uint64_t copies;
    uint64_t products; // 0: as many as last as long as the copies one way
    bool portable;     // no kernel or library that only one backend has

    size_t matrix_bytes;
    size_t all_bytes;      // of the copies, one way
    weir_queue *queues[3]; // products, down, up
    weir_queue *first;     // of the highest priority; NULL where there are none
    weir_kernel *matmul;
    weir_kernel *twin; // NULL where there is no CUDA
    weir_kernel *light;
    weir_buffer *factors; // RING matrices
    weir_buffer *results; // and their squares
    weir_buffer *scaled;  // what the light kernel writes
    weir_buffer *down_from, *up_to;
    weir_buffer *down_pinned, *up_pinned;
    uint32_t *down_plain, *up_plain;
    void *read_back;                        // for checks
    struct train_engine engine;             // without cuBLAS where there is none
    struct train_product by_blas[2 * RING]; // those on tensor cores last
    struct bench_samples ms[WAYS][MOMENTS];
};

enum {
    SAMPLES = 256 // of a product, that are checked
};

static const float light_factor = 3.0f;

// Data.

static float factor_at(size_t matrix, size_t row, size_t column)
{
    return (float)((row * 7 + column * 13 + matrix * 5) % 11) - 5.0f;
}

enum seed {
    SEED_DOWN = 1,
    SEED_UP = 2
};

// Set-up.

static void make_buffers(struct swim *swim)
{
    const size_t ring = RING * swim->matrix_bytes, all = swim->all_bytes;
    weir_device *on = bench.device;
    bench_buffer(on, "factors", ring, WEIR_PLACE_DEVICE, &swim->factors);
    bench_buffer(on, "products", ring, WEIR_PLACE_DEVICE, &swim->results);
    bench_buffer(on, "scaled", ring, WEIR_PLACE_DEVICE, &swim->scaled);
    bench_buffer(on, "down/from", all, WEIR_PLACE_DEVICE, &swim->down_from);
    bench_buffer(on, "up/to", all, WEIR_PLACE_DEVICE, &swim->up_to);
    bench_buffer(on, "down/to", all, WEIR_PLACE_HOST, &swim->down_pinned);
    bench_buffer(on, "up/from", all, WEIR_PLACE_HOST, &swim->up_pinned);
}

static void make_queues(struct swim *swim)
{
    static const char *const labels[] = {"products", "down", "up"};
    const struct weir_limits *limits = bench.limits;
    for (int i = 0; i < 3; i++)
        bench_queue(bench.device, labels[i], 0, &swim->queues[i]);
    if (limits->priority_highest != limits->priority_lowest)
        bench_queue(bench.device, "first", limits->priority_highest, &swim->first);
    else
        bench_note("this device has no priorities of queues");
}

CLI_DESTROYER(destroy_kernel, weir_kernel_destroy)

// Only CUDA runs the twin; elsewhere its bundle has the kernel that is measured already.
static void make_twin(struct swim *swim)
{
    const weir_status status =
        weir_kernel_load(bench.device, &matmul_tensor_kernels, "matmul", &swim->twin);
    cli_own(destroy_kernel, &swim->twin);
    if (status == WEIR_ERROR_UNSUPPORTED)
        bench_note("not measured: twin: %s", weir_last_error_text());
    else
        cli_fine(status);
}

static void fill_factors(struct swim *swim)
{
    const size_t side = (size_t)swim->side, size = swim->matrix_bytes;
    float *matrix = cli_allocate(1, size);
    for (size_t i = 0; i < RING; i++) {
        for (size_t at = 0; at < side * side; at++)
            matrix[at] = factor_at(i, at / side, at % side);
        cli_fine(weir_upload(swim->queues[0], swim->factors, i * size, matrix, size));
    }
}

static void fill_copies(struct swim *swim)
{
    const size_t size = swim->all_bytes;
    bench_work_fill(swim->up_pinned, size, SEED_UP);
    bench_work_numbers(swim->up_plain, size, SEED_UP);
    bench_work_numbers(swim->read_back, size, SEED_DOWN);
    cli_fine(weir_upload(swim->queues[1], swim->down_from, 0, swim->read_back, size));
}

static weir_status prepare_products(struct swim *swim)
{
    const uint32_t side = (uint32_t)swim->side;
    const size_t bytes = swim->matrix_bytes;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < 2 * RING && status == WEIR_OK; i++) {
        const size_t at = i % RING * bytes;
        const struct train_range from = {swim->factors, at, bytes}, to = {swim->results, at, bytes};
        struct train_product *product = &swim->by_blas[i];
        *product = (struct train_product){from, from, to, .m = side, .n = side, .k = side};
        status = train_product_prepare(&swim->engine, product);
        product->tensor = i >= RING;
    }
    return status;
}

static void close_blas(void *object)
{
    struct swim *swim = object;
    WEIR_IGNORE(weir_queue_sync(swim->queues[0], WEIR_FOREVER));
    train_blas_close(&swim->engine.blas);
}

static void open_blas(struct swim *swim)
{
    if (train_blas_open(bench.device, NULL, &swim->engine.blas) == WEIR_OK &&
        prepare_products(swim) == WEIR_OK) {
        cli_own(close_blas, swim);
        return;
    }
    train_blas_close(&swim->engine.blas);
    bench_note("not measured: cuBLAS: %.250s", weir_last_error()->message);
}

static void open_swim(struct swim *swim)
{
    const uint64_t matrix = swim->side * swim->side * sizeof(float);
    const uint64_t most = bench.limits->max_buffer_bytes;
    if (matrix > most / RING || matrix > most / swim->copies)
        cli_fail(CLI_USAGE,
                 "%llu copies of %llu x %llu floats are more than the largest buffer of "
                 "this device, %llu bytes; give a smaller --side or --copies",
                 (unsigned long long)swim->copies, (unsigned long long)swim->side,
                 (unsigned long long)swim->side, (unsigned long long)most);
    swim->matrix_bytes = (size_t)matrix;
    swim->all_bytes = (size_t)(matrix * swim->copies);
    swim->down_plain = cli_allocate(swim->all_bytes, 1);
    swim->up_plain = cli_allocate(swim->all_bytes, 1);
    swim->read_back =
        cli_allocate(swim->all_bytes > matrix ? swim->all_bytes : swim->matrix_bytes, 1);
    make_queues(swim);
    bench_kernel(bench.device, &matmul_kernels, "matmul", &swim->matmul);
    bench_kernel(bench.device, &conformance_kernels, "scale", &swim->light);
    make_buffers(swim);
    fill_factors(swim);
    fill_copies(swim);
    if (swim->portable || strcmp(weir_runtime_backend(bench.runtime), "cuda") != 0)
        return;
    make_twin(swim);
    open_blas(swim);
}

// The parts.

static void submit_products(struct swim *swim, weir_queue *queue, enum swim_product product)
{
    const uint32_t side = (uint32_t)swim->side;
    const size_t bytes = swim->matrix_bytes;
    const struct weir_extent grid = weir_dim((side + MATMUL_COLUMNS - 1) / MATMUL_COLUMNS,
                                             (side + MATMUL_ROWS - 1) / MATMUL_ROWS, 1);
    const struct weir_extent block = weir_dim(MATMUL_BLOCK_X, MATMUL_BLOCK_Y, 1);
    for (uint64_t i = 0; i < swim->products; i++) {
        const size_t number = (size_t)(i % RING);
        const struct weir_argument from = weir_in(swim->factors, number * bytes, bytes);
        const struct weir_argument to = weir_out(swim->results, number * bytes, bytes);
        if (product >= BLAS)
            cli_fine(train_product_submit(&swim->engine, queue,
                                          &swim->by_blas[number + (product - BLAS) * RING]));
        else
            cli_fine(weir_queue_launch(queue, product == TWIN ? swim->twin : swim->matmul, grid,
                                       block, from, from, to, side, side, side));
    }
}

static void submit_light(struct swim *swim, weir_queue *queue)
{
    const uint32_t count = (uint32_t)(swim->side * swim->side);
    const size_t bytes = swim->matrix_bytes;
    for (uint64_t i = 0; i < swim->products; i++) {
        const size_t at = (size_t)(i % RING) * bytes;
        cli_fine(weir_queue_launch_count(queue, swim->light, count,
                                         weir_in(swim->factors, at, bytes),
                                         weir_out(swim->scaled, at, bytes), light_factor, count));
    }
}

// Of all matrices; `pageable` ones through plain memory, and each copy has returned when it is done.
static void copy(struct swim *swim, weir_queue *queue, bool up, bool pageable)
{
    const size_t size = swim->matrix_bytes;
    char *plain = (char *)(up ? swim->up_plain : swim->down_plain);
    for (size_t at = 0; at < swim->all_bytes; at += size)
        if (pageable && up)
            cli_fine(weir_upload(queue, swim->up_to, at, plain + at, size));
        else if (pageable)
            cli_fine(weir_download(queue, plain + at, swim->down_from, at, size));
        else
            cli_fine(weir_queue_copy(queue, up ? swim->up_to : swim->down_pinned, at,
                                     up ? swim->up_pinned : swim->down_from, at, size));
}

// In the order of the puzzle: products, down, up.
static void submit_parts(struct swim *swim, const struct swim_way *way)
{
    weir_queue *const *queues = swim->queues;
    if (way->parts & PRODUCTS)
        submit_products(swim, queues[0], way->product);
    // Hands the products to the device before a copy blocks the host.
    cli_fine(weir_queue_flush(queues[0]));
    if (way->parts & DOWN)
        copy(swim, queues[way->spread ? 1 : 0], false, way->pageable);
    cli_fine(weir_queue_flush(queues[way->spread ? 1 : 0]));
    if (way->parts & UP)
        copy(swim, queues[way->spread ? 2 : 0], true, way->pageable);
}

static double milliseconds_since(uint64_t began_ns)
{
    return (double)(cli_now_ns() - began_ns) / 1e6;
}

// Does the work once.
static void run_way(struct swim *swim, const struct swim_way *way, double ms[MOMENTS])
{
    weir_queue *of_light[] = {NULL, swim->queues[0], swim->queues[1], swim->first};
    const uint64_t began = cli_now_ns();
    struct weir_event done;
    submit_parts(swim, way);
    if (way->light) {
        submit_light(swim, of_light[way->light]);
        cli_fine(weir_queue_record(of_light[way->light], &done));
    }
    ms[RETURNED] = milliseconds_since(began);
    ms[LIGHT_DONE] = 0;
    if (way->light) {
        cli_fine(weir_event_sync(done, WEIR_FOREVER));
        ms[LIGHT_DONE] = milliseconds_since(began);
    }
    for (int i = 2; i >= 0; i--)
        cli_fine(weir_queue_flush(swim->queues[i]));
    for (int i = 0; i < 3; i++)
        bench_sync(swim->queues[i]);
    ms[DONE] = milliseconds_since(began);
}

// Checking.

static double exact_element(size_t matrix, size_t side, size_t row, size_t column)
{
    double sum = 0;
    for (size_t i = 0; i < side; i++)
        sum += (double)factor_at(matrix, row, i) * (double)factor_at(matrix, i, column);
    return sum;
}

// How many of the samples are wrong in one matrix of the ring.
static size_t wrong_samples(const struct swim *swim, size_t matrix, const float *values, bool light)
{
    const size_t side = (size_t)swim->side;
    size_t wrong = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        // The corners first, then spread by a step that is prime.
        const size_t at = i < 4 ? (i & 1) * (side - 1) + (i >> 1) * side * (side - 1)
                                : i * 1000003 % (side * side);
        const size_t row = at / side, column = at % side;
        const double wanted = light ? (double)(light_factor * factor_at(matrix, row, column))
                                    : exact_element(matrix, side, row, column);
        wrong += (double)values[at] != wanted;
    }
    return wrong;
}

static void check_ring(struct swim *swim, weir_buffer *buffer, bool light)
{
    const size_t used = swim->products < RING ? (size_t)swim->products : RING;
    size_t wrong = 0;
    for (size_t i = 0; i < used; i++) {
        cli_fine(weir_download(swim->queues[0], swim->read_back, buffer, i * swim->matrix_bytes,
                               swim->matrix_bytes));
        wrong += wrong_samples(swim, i, swim->read_back, light);
        bench.checked += SAMPLES;
    }
    if (wrong)
        cli_fail(CLI_FAILED, "%zu of %zu samples of the %s are wrong", wrong, used * SAMPLES,
                 light ? "scaled matrices" : "products");
}

// Clears what a way writes, runs the way, and compares every number that it copied, and samples of its products, with
// their expected values. What is compared is cleared too.
static void check_way(struct swim *swim, const struct swim_way *way)
{
    const bool products = way->parts & PRODUCTS && bench.runs_kernels;
    const size_t ring = RING * swim->matrix_bytes, all = swim->all_bytes;
    double ms[MOMENTS];
    if (products)
        bench_fill(swim->queues[0], swim->results, ring);
    if (products && way->light)
        bench_fill(swim->queues[0], swim->scaled, ring);
    if (way->parts & UP)
        bench_fill(swim->queues[2], swim->up_to, all);
    run_way(swim, way, ms);
    if (products)
        check_ring(swim, swim->results, false);
    if (products && way->light)
        check_ring(swim, swim->scaled, true);
    if (way->parts & DOWN && way->pageable)
        bench_work_compare(swim->down_plain, all, SEED_DOWN, 0, way->name);
    else if (way->parts & DOWN)
        bench_work_check(swim->down_pinned, all, SEED_DOWN, 0, way->name);
    if (way->parts & UP) {
        cli_fine(weir_download(swim->queues[2], swim->read_back, swim->up_to, 0, all));
        bench_work_compare(swim->read_back, all, SEED_UP, 0, way->name);
    }
    bench_judge();
}

// Measuring.

static bool has_way(const struct swim *swim, size_t way)
{
    const enum swim_product product = ways[way].product;
    return (ways[way].light != FIRST || swim->first) &&
           (product == PORTABLE ||
            (product == TWIN ? swim->twin != NULL : swim->engine.blas != NULL));
}

// As many products as take as long as the copies one way, so that the two can overlap.
static void choose_products(struct swim *swim)
{
    double product[MOMENTS], copies[MOMENTS];
    if (swim->products)
        return;
    swim->products = 1;
    for (int i = 0; i < 3; i++) {
        run_way(swim, &ways[WAY_PRODUCTS], product);
        run_way(swim, &ways[UP_PINNED], copies);
    }
    const double count = product[DONE] > 0 ? copies[DONE] / product[DONE] + 0.5 : 1;
    swim->products = count < 1 ? 1 : count > PRODUCTS_MOST ? PRODUCTS_MOST : (uint64_t)count;
}

static void measure_ways(struct swim *swim)
{
    for (size_t i = 0; i < WAYS; i++) {
        if (!has_way(swim, i))
            continue;
        double ms[MOMENTS];
        run_way(swim, &ways[i], ms);
        for (int k = 0; k < MOMENTS; k++)
            bench_keep(&swim->ms[i][k], ms[k]);
    }
}

// Of each turn: the longest of the three parts, and all three one after the other.
static void parts_of(const struct swim *swim, bool pageable, struct bench_samples *out_longest,
                     struct bench_samples *out_sum)
{
    const struct bench_samples *products = &swim->ms[WAY_PRODUCTS][DONE];
    const struct bench_samples *down = &swim->ms[pageable ? DOWN_PAGEABLE : DOWN_PINNED][DONE];
    const struct bench_samples *up = &swim->ms[pageable ? UP_PAGEABLE : UP_PINNED][DONE];
    *out_longest = *out_sum = *products;
    for (size_t i = 0; i < products->count; i++) {
        out_longest->values[i] = fmax(products->values[i], fmax(down->values[i], up->values[i]));
        out_sum->values[i] += down->values[i] + up->values[i];
    }
}

// Tables.

static void report_part(struct swim *swim, struct bench_table *table, size_t way)
{
    const double side = (double)swim->side;
    const double amount = ways[way].parts == PRODUCTS
                              ? 2 * side * side * side * (double)swim->products
                              : (double)swim->all_bytes;
    bench_text(table, "part", "part", ways[way].name);
    bench_value(table, "ms", "ms", 2, swim->ms[way][DONE]);
    bench_value(table, "giga_per_second", "Gflop/s, GB/s", 1,
                bench_rate(swim->ms[way][DONE], amount * 1e-6));
}

static void report_way(struct swim *swim, struct bench_table *table, size_t way)
{
    const struct bench_samples ms = swim->ms[way][DONE];
    struct bench_samples longest, sum;
    parts_of(swim, ways[way].pageable, &longest, &sum);
    bench_text(table, "way", "way", ways[way].name);
    bench_value(table, "ms", "ms", 2, ms);
    bench_value(table, "host_ms", "host busy, ms", 2, swim->ms[way][RETURNED]);
    bench_value(table, "of_longest", "of the longest part", 3, bench_ratio(ms, longest));
    bench_value(table, "of_sum", "of all parts in turn", 3, bench_ratio(ms, sum));
}

static void report_light(struct swim *swim, struct bench_table *table, size_t way)
{
    bench_text(table, "light_kernels", "light kernels", ways[way].name);
    bench_value(table, "ms", "all done, ms", 2, swim->ms[way][DONE]);
    bench_value(table, "light_ms", "light ones done, ms", 2, swim->ms[way][LIGHT_DONE]);
}

static void report(struct swim *swim)
{
    struct bench_table *parts = bench_table("parts", "each part alone");
    struct bench_table *all = bench_table("ways", "all three parts");
    struct bench_table *light = bench_table("kernels", "products, and as many light kernels");
    bench_plot(cli_text("Products, %llu copies down and %llu up", (unsigned long long)swim->copies,
                        (unsigned long long)swim->copies),
               "", "milliseconds");
    for (size_t i = 0; i < WAYS; i++) {
        if (!has_way(swim, i))
            continue;
        if (ways[i].light)
            report_light(swim, light, i);
        else if (ways[i].parts == ALL)
            report_way(swim, all, i);
        else
            report_part(swim, parts, i);
        if (ways[i].light)
            continue;
        bench_plot_bar("all done", ways[i].name, swim->ms[i][DONE]);
        bench_plot_bar("host busy", ways[i].name, swim->ms[i][RETURNED]);
    }
}

// The command.

static void run(void *user)
{
    struct swim *swim = user;
    if (swim->side % 8 != 0)
        cli_fail(CLI_USAGE, "--side is a multiple of 8, not %llu", (unsigned long long)swim->side);
    open_swim(swim);
    choose_products(swim);
    for (size_t i = 0; i < WAYS; i++)
        if (has_way(swim, i))
            check_way(swim, &ways[i]);
    for (bench_start(); bench_turn();)
        measure_ways(swim);
    bench_parameter("side", (double)swim->side);
    bench_parameter("copies", (double)swim->copies);
    bench_parameter("products", (double)swim->products);
    report(swim);
}

int cli_bench_swim(int argc, char **argv)
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
         CLI_COUNT, &swim.products, 1, PRODUCTS_MOST},
        {"portable", NULL, "no products of cuBLAS and of kernels for CUDA alone", CLI_FLAG,
         &swim.portable, 0, 0},
    };
    static const struct bench_program program = {
        .about =
            "Multiplies matrices, copies others down and others up: in one queue and in\n"
            "three, from pinned memory and from pageable. The puzzle \"Swimming in streams\".\n\n"
            "  weir bench swim --plot swim.svg\n"
            "  weir bench swim --side 512 --copies 50",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run,
    };
    return bench_main(&program, &swim, argc, argv);
}
