// The job `devices`: copies between two devices, and a job that goes through both: what its pieces take
// one way, both ways at once, beside uploads, and from the host through one device and the other back.
#include <inttypes.h>
#include <stdio.h>

#include "cli/bench/work.h"
#include "cli/runtime/open.h"

enum {
    QUEUES = 8, // of each device, which the pieces of a job take in turn
    PIECES_MOST = 256,
    SEED = 31,
    ALIGNED = 256, // pieces begin at multiples of this, as devices ask of a kernel's ranges
};

#define SIZE_MOST (UINT64_C(1) << 34)

enum way {
    ACROSS,
    BOTH,
    BESIDE,
    APART,
    JOB,
    WAYS
};

static const struct {
    const char *key;
    const char *about;
    uint32_t rounds; // of the kernel that the numbers have been through
} ways[WAYS] = {
    [ACROSS] = {"across", "from the first device to the second", 0},
    [BOTH] = {"both", "the same, and as much back at once", 0},
    [BESIDE] = {"beside", "the same way, beside uploads to the first device", 0},
    [APART] = {"apart", "up to the first device and down from the second at once", 0},
    [JOB] = {"job", "up, a kernel, across, and down from the second device", 1},
};

struct row {
    size_t size;
    size_t pieces;
    enum way way;
    struct bench_samples ms, gb_per_s;
};

struct side {
    weir_device *device;
    weir_queue *queues[QUEUES];
    weir_buffer *host;
    weir_buffer *own;   // numbers that are sent, or that an upload brings
    weir_buffer *other; // what the other side sends
};

struct devices_bench {
    struct bench *bench;
    struct bench_list sizes, pieces;
    struct bench_work work;
    struct side sides[2];
    struct row rows[BENCH_LIST_MAX * BENCH_LIST_MAX * WAYS];
    size_t row_count;
};

// Work.

static void copy(weir_queue *queue, weir_buffer *dst, weir_buffer *src, size_t at, size_t bytes)
{
    cli_fine(weir_queue_copy(queue, dst, at, src, at, bytes));
}

// All pieces of one copy, in order.
static void copy_pieces(const struct row *row, weir_queue *queue, weir_buffer *dst,
                        weir_buffer *src)
{
    const size_t bytes = row->size / row->pieces;
    for (size_t i = 0; i < row->pieces; i++)
        copy(queue, dst, src, i * bytes, bytes);
}

// A piece of the job: the second device's queue copies when the kernel of the first has ended.
static void submit_piece(const struct devices_bench *b, const struct row *row, size_t piece)
{
    const struct side *first = &b->sides[0], *second = &b->sides[1];
    const size_t bytes = row->size / row->pieces, at = piece * bytes;
    weir_queue *up = first->queues[piece % QUEUES], *down = second->queues[piece % QUEUES];
    struct weir_event computed;
    copy(up, first->own, first->host, at, bytes);
    cli_fine(bench_work_launch(&b->work, up, first->own, at, bytes, ways[JOB].rounds));
    cli_fine(weir_queue_record(up, &computed));
    cli_fine(weir_queue_wait(down, computed));
    copy(down, second->other, first->own, at, bytes);
    copy(down, second->host, second->other, at, bytes);
}

static void submit(const struct devices_bench *b, const struct row *row)
{
    const struct side *first = &b->sides[0], *second = &b->sides[1];
    for (size_t i = 0; row->way == JOB && i < row->pieces; i++)
        submit_piece(b, row, i);
    if (row->way == APART) {
        copy_pieces(row, first->queues[0], first->other, first->host);
        copy_pieces(row, second->queues[0], second->host, second->own);
    }
    if (row->way == BESIDE)
        copy_pieces(row, first->queues[1], first->other, first->host);
    if (row->way == BOTH)
        copy_pieces(row, second->queues[0], first->other, second->own);
    if (row->way != JOB && row->way != APART)
        copy_pieces(row, first->queues[0], second->other, first->own);
}

// Waits for the queues that the work ends in.
static void finish(const struct devices_bench *b, const struct row *row)
{
    const struct side *first = &b->sides[0], *second = &b->sides[1];
    for (size_t i = 0; row->way == JOB && i < row->pieces && i < QUEUES; i++)
        bench_sync(second->queues[i]);
    if (row->way != JOB)
        bench_sync(first->queues[0]);
    if (row->way == BESIDE)
        bench_sync(first->queues[1]);
    if (row->way == BOTH || row->way == APART)
        bench_sync(second->queues[0]);
}

static double time_row(const struct devices_bench *b, const struct row *row)
{
    const uint64_t began = cli_now_ns();
    submit(b, row);
    finish(b, row);
    return (double)(cli_now_ns() - began) * 1e-6;
}

static void measure_row(struct devices_bench *b, struct row *row)
{
    const double ms = time_row(b, row);
    bench_keep(b->bench, &row->ms, ms);
    bench_keep(b->bench, &row->gb_per_s, ms > 0 ? (double)row->size / ms * 1e-6 : 0);
}

// Checking: each side's numbers are in its host memory and on its device before; what the other one
// has sent is read back after.

static void fill_side(const struct devices_bench *b, const struct row *row, size_t index)
{
    const struct side *side = &b->sides[index];
    bench_work_fill(side->host, row->size, SEED + (uint32_t)index);
    copy(side->queues[0], side->own, side->host, 0, row->size);
    bench_sync(side->queues[0]);
}

// The job, and what comes down beside uploads, are in the host's memory already.
static void check_side(const struct devices_bench *b, const struct row *row, size_t index)
{
    const struct side *side = &b->sides[index];
    char what[96];
    snprintf(what, sizeof what, "%s, %zu bytes in %zu pieces, device %zu", ways[row->way].key,
             row->size, row->pieces, index + 1);
    if (row->way != JOB && row->way != APART) {
        copy(side->queues[0], side->host, side->other, 0, row->size);
        bench_sync(side->queues[0]);
    }
    const uint32_t from = row->way == APART ? (uint32_t)index : !index;
    (void)bench_work_check(b->bench, side->host, row->size, SEED + from, ways[row->way].rounds,
                           what);
    bench_judge(b->bench);
}

static void check_row(const struct devices_bench *b, const struct row *row)
{
    fill_side(b, row, 0);
    fill_side(b, row, 1);
    bench_work_spoil(b->sides[1].host, row->size);
    (void)time_row(b, row);
    check_side(b, row, 1);
    if (row->way == BOTH)
        check_side(b, row, 0);
}

// Set-up and report.

static void make_rows(struct devices_bench *b)
{
    for (size_t i = 0; i < b->sizes.count * b->pieces.count * WAYS; i++) {
        const uint64_t pieces = b->pieces.values[i / WAYS % b->pieces.count];
        const uint64_t size = b->sizes.values[i / WAYS / b->pieces.count];
        if (size % (ALIGNED * pieces) != 0)
            cli_fail(CLI_USAGE,
                     "--size: %" PRIu64 " bytes have no %" PRIu64
                     " equal pieces of whole multiples of %d bytes",
                     size, pieces, ALIGNED);
        b->rows[b->row_count++] = (struct row){.size = (size_t)size,
                                               .pieces = (size_t)pieces,
                                               .way = (enum way)(i % WAYS)};
    }
}

static void make_side(struct devices_bench *b, struct side *side)
{
    size_t size = 0;
    for (size_t i = 0; i < b->row_count; i++)
        size = b->rows[i].size > size ? b->rows[i].size : size;
    for (size_t i = 0; i < QUEUES; i++)
        bench_queue(side->device, "bench", 0, &side->queues[i]);
    bench_buffer(side->device, "host", size, WEIR_PLACE_HOST, &side->host);
    bench_buffer(side->device, "own", size, WEIR_PLACE_DEVICE, &side->own);
    bench_buffer(side->device, "other", size, WEIR_PLACE_DEVICE, &side->other);
}

static void make_objects(struct devices_bench *b)
{
    struct bench *bench = b->bench;
    b->sides[0].device = bench->device;
    b->sides[1].device = cli_open_other(bench->runtime, bench->device);
    if (!b->sides[1].device)
        cli_fail(CLI_SETUP, "there is one device, and this needs two; `weir devices` lists them");
    if (!weir_device_can_peer(b->sides[0].device, b->sides[1].device))
        cli_fail(CLI_SETUP, "the devices cannot reach each other's memory, so there are no copies "
                            "between them; `weir devices` lists them");
    make_rows(b);
    bench_work_open(bench, &b->work);
    make_side(b, &b->sides[0]);
    make_side(b, &b->sides[1]);
}

static void report(struct devices_bench *b)
{
    static const struct bench_column columns[] = {
        {"bytes", "bytes", BENCH_NUMBER, 0},   {"pieces", "pieces", BENCH_NUMBER, 0},
        {"way", "way", BENCH_TEXT, 0},         {"ms", "ms", BENCH_SPREAD, 3},
        {"gb_per_s", "GB/s", BENCH_SPREAD, 1}, {"about", "", BENCH_TEXT, 0},
    };
    struct bench_table *table =
        bench_table(b->bench, "ways",
                    "two devices: until all is done, and the bytes of one way over that", columns);
    bench_plot(b->bench, "Copies between two devices", "", "ms");
    for (size_t i = 0; i < b->row_count; i++) {
        const struct row *row = &b->rows[i];
        char group[48];
        snprintf(group, sizeof group, "%zu bytes, %zu", row->size, row->pieces);
        bench_row(table, (double)row->size, (double)row->pieces, ways[row->way].key, &row->ms,
                  &row->gb_per_s, ways[row->way].about);
        bench_plot_bar(b->bench, ways[row->way].key, group, &row->ms);
    }
}

static void run(struct bench *bench, void *user)
{
    struct devices_bench *b = user;
    b->bench = bench;
    make_objects(b);
    for (size_t i = 0; i < b->row_count; i++)
        check_row(b, &b->rows[i]);
    for (bench_start(bench); bench_turn(bench);)
        for (size_t i = 0; i < b->row_count; i++)
            measure_row(b, &b->rows[i]);
    report(b);
}

static int devices_main(int argc, char **argv)
{
    static struct devices_bench b = {
        .sizes = {.text = "1M,16M,256M", .minimum = ALIGNED, .maximum = SIZE_MOST},
        .pieces = {.text = "1,16", .minimum = 1, .maximum = PIECES_MOST},
    };
    static const struct cli_option options[] = {
        {"size", "LIST", "bytes that go each way (1M,16M,256M)", CLI_VALUES, &b.sizes, 0, 0},
        {"pieces", "LIST", "in how many copies (1,16)", CLI_VALUES, &b.pieces, 0, 0},
    };
    static const struct bench_program program = {
        .group = "jobs",
        .name = "devices",
        .about = "Measures copies between two devices: one way, both ways at once, and beside\n"
                 "uploads; and a job whose pieces go up to the first device, through a kernel,\n"
                 "across to the second, and down from there. The first device is the one that the\n"
                 "configuration names, the second the first of the others.\n",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .run = run,
    };
    return bench_main(&program, &b, argc, argv);
}

const struct cli_command job_devices = {
    .name = "devices",
    .summary = "copies between two devices, and a job that goes through both",
    .main = devices_main,
};
