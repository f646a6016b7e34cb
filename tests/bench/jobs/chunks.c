// The job `chunks`: bytes that are uploaded, multiplied and downloaded in chunks, by patterns/chunks.h as `auto`
// does it and in other forms, beside the driver's own calls in every common order.
#include "tests/bench/jobs/chunks.h"

#include <stdio.h>

#include "cli/bench/work.h"
#include "kernels/conformance/conformance.h"
#include "patterns/chunks.h"

#define SIZE_UNIT ((size_t)64 * CHUNK_BLOCK * sizeof(float)) // what every way can cut

struct form {
    const char *name;
    weir_chunks_order order;
    weir_chunks_layout layout;
    uint32_t queues, chunks;
};

static const struct form forms[] = {
    {"auto", WEIR_CHUNKS_ORDER_AUTO, WEIR_CHUNKS_LAYOUT_AUTO, 0, 0},
    {"one_queue", WEIR_CHUNKS_DEPTH_FIRST, WEIR_CHUNKS_BY_CHUNK, 1, 1},
    {"depth_first_8", WEIR_CHUNKS_DEPTH_FIRST, WEIR_CHUNKS_BY_CHUNK, 8, 8},
    {"depth_first_16", WEIR_CHUNKS_DEPTH_FIRST, WEIR_CHUNKS_BY_CHUNK, 16, 16},
    {"interleaved_8_64_chunks", WEIR_CHUNKS_INTERLEAVED, WEIR_CHUNKS_BY_CHUNK, 8, 64},
    {"three_queues_64_chunks", WEIR_CHUNKS_INTERLEAVED, WEIR_CHUNKS_BY_ENGINE, 0, 64},
};

enum {
    FORMS = sizeof forms / sizeof *forms
};

struct chunks {
    struct bench *bench;
    const char *asked_size;
    struct bench_list sizes;
    size_t size;
    float factor;
    weir_queue *up, *down;
    weir_program *program;
    weir_kernel *scale;
    weir_buffer *src, *in, *out, *dst;
    struct chunks_raw *raw; // NULL: there is none
    struct bench_samples copies, forms[FORMS], ways[CHUNKS_RAW_MOST];
};

static float number_at(size_t index)
{
    // Whole, so that every multiple is exact.
    return (float)(index * 2654435761u >> 12 & 0xfffff);
}

void chunks_fill(float *src, size_t size)
{
    for (size_t i = 0; i < size / sizeof *src; i++)
        src[i] = number_at(i);
}

size_t chunks_wrong(const float *dst, size_t size, float factor)
{
    size_t wrong = 0;
    for (size_t i = 0; i < size / sizeof *dst; i++)
        wrong += dst[i] != factor * number_at(i);
    return wrong;
}

// Weir's side.

static weir_status multiply(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct chunks *c = user;
    const struct weir_extent grid =
        weir_dim((uint32_t)((chunk->count + CHUNK_BLOCK - 1) / CHUNK_BLOCK), 1, 1);
    return weir_queue_launch(queue, c->scale, grid, weir_dim(CHUNK_BLOCK, 1, 1),
                             weir_in(c->in, chunk->in_offset, chunk->in_size),
                             weir_out(c->out, chunk->out_offset, chunk->out_size), c->factor,
                             (uint32_t)chunk->count);
}

static bool make_chunks(struct chunks *c, const struct form *form, weir_chunks **out_chunks)
{
    return bench_fine(
        c->bench,
        weir_chunks_create(WEIR_PARAMS(weir_chunks, .device = c->bench->device, .label = form->name,
                                       .element_count = c->size / sizeof(float),
                                       .in_bytes = sizeof(float), .out_bytes = sizeof(float),
                                       .granularity = CHUNK_BLOCK, .src = {c->src, 0},
                                       .in = {c->in, 0}, .out = {c->out, 0}, .dst = {c->dst, 0},
                                       .kernel = multiply, .user = c, .order = form->order,
                                       .layout = form->layout, .queue_count = form->queues,
                                       .chunk_count = form->chunks),
                           out_chunks));
}

// With queues that are new; the milliseconds of the last time.
static bool run_form(struct chunks *c, const struct form *form, int times, double *out_ms)
{
    weir_chunks *chunks;
    struct weir_event done;
    bool fine = make_chunks(c, form, &chunks);
    for (int i = 0; i < times && fine; i++) {
        const uint64_t began = cli_now_ns();
        fine = bench_fine(c->bench, weir_chunks_run(chunks, NULL, 0, &done)) &&
               bench_fine(c->bench, weir_event_sync(done, WEIR_FOREVER));
        *out_ms = (double)(cli_now_ns() - began) * 1e-6;
    }
    weir_chunks_destroy(&chunks);
    return fine;
}

static bool check_form(struct chunks *c, const struct form *form, float factor)
{
    void *dst = NULL;
    double ms;
    c->factor = factor;
    if (!bench_fill(c->bench, c->up, c->in, c->size) ||
        !bench_fill(c->bench, c->up, c->out, c->size) || !run_form(c, form, 1, &ms) ||
        !bench_fine(c->bench, weir_host_begin(c->dst, 0, c->size, WEIR_ACCESS_READ, &dst)))
        return false;
    const size_t wrong = chunks_wrong(dst, c->size, factor);
    c->bench->checked++;
    return bench_fine(c->bench, weir_host_end(c->dst, 0, c->size, WEIR_ACCESS_READ)) &&
           (!wrong || !c->bench->runs_kernels ||
            bench_fail_result(c->bench, "%s: %zu numbers are wrong; nothing was timed", form->name,
                              wrong));
}

static bool note_plan(struct chunks *c)
{
    weir_chunks *chunks;
    struct weir_chunks_plan plan;
    if (!make_chunks(c, &forms[0], &chunks))
        return false;
    weir_chunks_get_plan(chunks, &plan);
    weir_chunks_destroy(&chunks);
    bench_note(c->bench, "auto: %u chunks in %u queues", (unsigned)plan.chunk_count,
               (unsigned)plan.queue_count);
    return true;
}

// Each in its queue.
static bool time_copies(struct chunks *c, double *out_ms)
{
    weir_status status = WEIR_OK;
    for (int i = 0; i < 2 && status == WEIR_OK; i++) {
        const uint64_t began = cli_now_ns();
        if ((status = weir_queue_copy(c->up, c->in, 0, c->src, 0, c->size)) == WEIR_OK &&
            (status = weir_queue_flush(c->up)) == WEIR_OK &&
            (status = weir_queue_copy(c->down, c->dst, 0, c->out, 0, c->size)) == WEIR_OK &&
            (status = weir_queue_flush(c->down)) == WEIR_OK &&
            (status = weir_queue_sync(c->up, WEIR_FOREVER)) == WEIR_OK)
            status = weir_queue_sync(c->down, WEIR_FOREVER);
        *out_ms = (double)(cli_now_ns() - began) * 1e-6;
    }
    return bench_fine(c->bench, status);
}

// Both sides.

static bool open_all(struct chunks *c)
{
    struct bench *bench = c->bench;
    void *src = NULL;
    if (!bench_queue(bench, "up", 0, &c->up) || !bench_queue(bench, "down", 0, &c->down) ||
        !bench_kernel_on(bench, bench->device, &conformance_kernels, "scale", &c->program,
                         &c->scale) ||
        !bench_buffer(bench, "src", c->size, WEIR_PLACE_HOST, &c->src) ||
        !bench_buffer(bench, "dst", c->size, WEIR_PLACE_HOST, &c->dst) ||
        !bench_buffer(bench, "in", c->size, WEIR_PLACE_DEVICE, &c->in) ||
        !bench_buffer(bench, "out", c->size, WEIR_PLACE_DEVICE, &c->out) ||
        !bench_fine(bench, weir_host_begin(c->src, 0, c->size, WEIR_ACCESS_WRITE, &src)))
        return false;
    chunks_fill(src, c->size);
    if (!bench_fine(bench, weir_host_end(c->src, 0, c->size, WEIR_ACCESS_WRITE)))
        return false;
    c->raw = chunks_raw_open(bench, c->size);
    return bench->code == CLI_OK && note_plan(c);
}

// Every way has a factor of its own, so that results of another one are wrong.
static bool check_all(struct chunks *c)
{
    double ms;
    for (size_t i = 0; i < FORMS; i++)
        if (!check_form(c, &forms[i], (float)(2 + i)))
            return false;
    for (size_t i = CHUNKS_RAW_COPIES; c->raw && i < chunks_raw_count(c->raw); i++)
        if (!chunks_raw_run(c->raw, i, true, &ms))
            return false;
    return true;
}

static bool measure_weir(struct chunks *c)
{
    double ms;
    if (!time_copies(c, &ms))
        return false;
    bench_figure(c->bench, &c->copies, ms, "weir_both_ways");
    for (size_t i = 0; i < FORMS; i++) {
        if (!run_form(c, &forms[i], 2, &ms))
            return false;
        bench_figure(c->bench, &c->forms[i], ms, "weir_%s", forms[i].name);
    }
    return true;
}

static bool measure_raw(struct chunks *c)
{
    double ms;
    for (size_t i = 0; c->raw && i < chunks_raw_count(c->raw); i++) {
        if (!chunks_raw_run(c->raw, i, false, &ms))
            return false;
        bench_figure(c->bench, &c->ways[i], ms, "raw_%s", chunks_raw_name(i));
    }
    return true;
}

// Each side goes first in turn.
static bool measure(struct chunks *c)
{
    for (bench_start(c->bench); bench_turn(c->bench);) {
        const bool weir_first = c->bench->turn % 2 == 0;
        if (!(weir_first ? measure_weir : measure_raw)(c) ||
            !(weir_first ? measure_raw : measure_weir)(c))
            return false;
    }
    return true;
}

static void put(struct chunks *c, struct bench_table *table, const char *by, const char *way,
                const struct bench_samples *ms)
{
    const struct bench_samples *limit = c->raw ? &c->ways[CHUNKS_RAW_BOTH] : &c->copies;
    const struct bench_samples of_copies = bench_ratio(ms, limit);
    const struct bench_samples to_auto = bench_ratio(&c->forms[0], ms);
    bench_row(table, by, way, ms, &of_copies, &to_auto);
}

static void report(struct chunks *c)
{
    static const struct bench_column columns[] = {
        {"by", "by", BENCH_TEXT, 0},
        {"way", "way", BENCH_TEXT, 0},
        {"ms", "ms", BENCH_SPREAD, 3},
        {"of_copies", "of copies both ways", BENCH_SPREAD, 3},
        {"auto_to_it", "auto to it", BENCH_SPREAD, 3},
    };
    struct bench_table *table = bench_table(c->bench, "ways", "up, multiplied, down", columns, 5);
    bench_parameter(c->bench, "bytes", (double)c->size);
    snprintf(c->bench->plot.title, sizeof c->bench->plot.title, "Chunks up, multiplied, down");
    snprintf(c->bench->plot.y_name, sizeof c->bench->plot.y_name, "milliseconds");
    put(c, table, "Weir", "both_ways", &c->copies);
    for (size_t i = 0; i < FORMS; i++) {
        put(c, table, "Weir", forms[i].name, &c->forms[i]);
        bench_plot_bar(c->bench, "Weir", forms[i].name, &c->forms[i]);
    }
    for (size_t i = 0; c->raw && i < chunks_raw_count(c->raw); i++)
        put(c, table, "raw", chunks_raw_name(i), &c->ways[i]);
}

static void close_all(struct chunks *c)
{
    chunks_raw_close(&c->raw);
    weir_buffer_destroy(&c->src);
    weir_buffer_destroy(&c->in);
    weir_buffer_destroy(&c->out);
    weir_buffer_destroy(&c->dst);
    weir_kernel_destroy(&c->scale);
    weir_program_destroy(&c->program);
    weir_queue_destroy(&c->up);
    weir_queue_destroy(&c->down);
}

static bool check_options(struct bench *bench, void *user)
{
    struct chunks *c = user;
    c->bench = bench;
    if (!bench_parse_list(bench, "size", c->asked_size, NULL, SIZE_UNIT, UINT64_C(1) << 33,
                          &c->sizes))
        return false;
    c->size = (size_t)c->sizes.values[0] / SIZE_UNIT * SIZE_UNIT;
    return c->sizes.count == 1 || bench_fail(bench, CLI_USAGE, "--size takes one number");
}

static bool run(struct bench *bench, void *user)
{
    struct chunks *c = user;
    (void)bench;
    const bool fine = open_all(c) && check_all(c) && measure(c);
    if (fine)
        report(c);
    close_all(c);
    return fine;
}

static int chunks_main(int argc, char **argv)
{
    struct chunks c = {.asked_size = "1G"};
    const struct cli_option options[] = {
        {"size", "BYTES", "bytes each way (1G)", CLI_TEXT, &c.asked_size, 0, 0},
    };
    const struct bench_program program = {
        .group = "jobs",
        .name = "chunks",
        .about =
            "Measures bytes that are uploaded, multiplied and downloaded in chunks, beside the\n"
            "driver's own calls on CUDA, and plain OpenCL on OpenCL.\n",
        .options = options,
        .option_count = 1,
        .opens_device = true,
        .serves = true,
        .check = check_options,
        .run = run,
    };
    return bench_main(&program, &c, argc, argv);
}

const struct cli_command job_chunks = {
    .name = "chunks",
    .summary = "chunks up, multiplied and down",
    .main = chunks_main,
};
