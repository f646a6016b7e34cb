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
    const char *asked_sizes;
    const char *asked_pieces;
    struct bench_list sizes;
    struct bench_list pieces;
    struct bench_work work;
    struct side sides[2];
    struct row rows[BENCH_LIST_MAX * BENCH_LIST_MAX * WAYS];
    size_t row_count;
};

// Work.

// All pieces of one copy, in order.
static weir_status copy_pieces(const struct row *row, weir_queue *queue, weir_buffer *dst,
                               weir_buffer *src)
{
    const size_t bytes = row->size / row->pieces;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < row->pieces && status >= 0; i++)
        status = weir_queue_copy(queue, dst, i * bytes, src, i * bytes, bytes);
    return status;
}

// A piece of the job: the second device's queue copies when the kernel of the first has ended.
static weir_status submit_piece(const struct devices_bench *b, const struct row *row, size_t piece)
{
    const struct side *first = &b->sides[0], *second = &b->sides[1];
    const size_t bytes = row->size / row->pieces, at = piece * bytes;
    weir_queue *up = first->queues[piece % QUEUES], *down = second->queues[piece % QUEUES];
    struct weir_event computed;
    weir_status status = weir_queue_copy(up, first->own, at, first->host, at, bytes);
    if (status >= 0)
        status = bench_work_launch(&b->work, up, first->own, at, bytes, ways[JOB].rounds);
    if (status >= 0)
        status = weir_queue_record(up, &computed);
    if (status >= 0)
        status = weir_queue_wait(down, computed);
    if (status >= 0)
        status = weir_queue_copy(down, second->other, at, first->own, at, bytes);
    return status >= 0 ? weir_queue_copy(down, second->host, at, second->other, at, bytes) : status;
}

static weir_status submit(const struct devices_bench *b, const struct row *row)
{
    const struct side *first = &b->sides[0], *second = &b->sides[1];
    weir_status status = WEIR_OK;
    if (row->way == JOB) {
        for (size_t i = 0; i < row->pieces && status >= 0; i++)
            status = submit_piece(b, row, i);
        return status;
    }
    if (row->way == APART) {
        status = copy_pieces(row, first->queues[0], first->other, first->host);
        return status >= 0 ? copy_pieces(row, second->queues[0], second->host, second->own)
                           : status;
    }
    if (row->way == BESIDE)
        status = copy_pieces(row, first->queues[1], first->other, first->host);
    if (row->way == BOTH)
        status = copy_pieces(row, second->queues[0], first->other, second->own);
    return status >= 0 ? copy_pieces(row, first->queues[0], second->other, first->own) : status;
}

// Waits for the queues that the work ends in.
static bool finish(const struct devices_bench *b, const struct row *row)
{
    const struct side *first = &b->sides[0], *second = &b->sides[1];
    weir_status status = WEIR_OK;
    for (size_t i = 0; row->way == JOB && i < row->pieces && i < QUEUES && status >= 0; i++)
        status = weir_queue_sync(second->queues[i], WEIR_FOREVER);
    if (row->way != JOB)
        status = weir_queue_sync(first->queues[0], WEIR_FOREVER);
    if (row->way == BESIDE && status >= 0)
        status = weir_queue_sync(first->queues[1], WEIR_FOREVER);
    if ((row->way == BOTH || row->way == APART) && status >= 0)
        status = weir_queue_sync(second->queues[0], WEIR_FOREVER);
    return bench_fine(b->bench, status);
}

static bool time_row(const struct devices_bench *b, const struct row *row, double *out_ms)
{
    const uint64_t began = cli_now_ns();
    *out_ms = 0;
    if (submit(b, row) < 0)
        return bench_fail_weir(b->bench);
    if (!finish(b, row))
        return false;
    *out_ms = (double)(cli_now_ns() - began) * 1e-6;
    return true;
}

static bool measure(struct devices_bench *b)
{
    for (bench_start(b->bench); bench_turn(b->bench);)
        for (size_t i = 0; i < b->row_count; i++) {
            struct row *row = &b->rows[i];
            double ms;
            if (!time_row(b, row, &ms))
                return false;
            bench_keep(b->bench, &row->ms, ms);
            bench_keep(b->bench, &row->gb_per_s, ms > 0 ? (double)row->size / ms * 1e-6 : 0);
        }
    return true;
}

// Checking: each side's numbers are in its host memory and on its device before; what the other one
// has sent is read back after.

static bool fill_side(const struct devices_bench *b, const struct row *row, size_t index)
{
    const struct side *side = &b->sides[index];
    if (!bench_work_fill(b->bench, side->host, row->size, SEED + (uint32_t)index))
        return false;
    return (weir_queue_copy(side->queues[0], side->own, 0, side->host, 0, row->size) >= 0 &&
            weir_queue_sync(side->queues[0], WEIR_FOREVER) >= 0) ||
           bench_fail_weir(b->bench);
}

// The job, and what comes down beside uploads, are in the host's memory already.
static bool has_arrived(const struct devices_bench *b, const struct row *row, size_t index)
{
    const struct side *side = &b->sides[index];
    char what[96];
    snprintf(what, sizeof what, "%s, %zu bytes in %zu pieces, device %zu", ways[row->way].key,
             row->size, row->pieces, index + 1);
    if (row->way != JOB && row->way != APART &&
        (weir_queue_copy(side->queues[0], side->host, 0, side->other, 0, row->size) < 0 ||
         weir_queue_sync(side->queues[0], WEIR_FOREVER) < 0))
        return bench_fail_weir(b->bench);
    const uint32_t from = row->way == APART ? (uint32_t)index : !index;
    return bench_work_check(b->bench, side->host, row->size, SEED + from, ways[row->way].rounds,
                            what);
}

static bool check_row(const struct devices_bench *b, const struct row *row)
{
    double ms;
    if (!fill_side(b, row, 0) || !fill_side(b, row, 1) ||
        !bench_work_spoil(b->bench, b->sides[1].host, row->size) || !time_row(b, row, &ms) ||
        !has_arrived(b, row, 1))
        return false;
    return row->way != BOTH || has_arrived(b, row, 0);
}

static bool check_all(const struct devices_bench *b)
{
    for (size_t i = 0; i < b->row_count; i++)
        if (!check_row(b, &b->rows[i]))
            return false;
    return true;
}

// Set-up and report.

static bool make_row(struct devices_bench *b, uint64_t size, uint64_t pieces, enum way way)
{
    if (size % (ALIGNED * pieces) != 0)
        return bench_fail(b->bench, CLI_USAGE,
                          "--size: %" PRIu64 " bytes have no %" PRIu64
                          " equal pieces of whole multiples of %d bytes",
                          size, pieces, ALIGNED);
    b->rows[b->row_count++] =
        (struct row){.size = (size_t)size, .pieces = (size_t)pieces, .way = way};
    return true;
}

static bool make_rows(struct devices_bench *b)
{
    for (size_t i = 0; i < b->sizes.count; i++)
        for (size_t k = 0; k < b->pieces.count; k++)
            for (int way = 0; way < WAYS; way++)
                if (!make_row(b, b->sizes.values[i], b->pieces.values[k], (enum way)way))
                    return false;
    return true;
}

static bool make_side(struct devices_bench *b, struct side *side)
{
    size_t size = 0;
    for (size_t i = 0; i < b->row_count; i++)
        size = b->rows[i].size > size ? b->rows[i].size : size;
    for (size_t i = 0; i < QUEUES; i++)
        if (!bench_queue_on(b->bench, side->device, "bench", &side->queues[i]))
            return false;
    return bench_buffer_on(b->bench, side->device, "host", size, WEIR_PLACE_HOST, &side->host) &&
           bench_buffer_on(b->bench, side->device, "own", size, WEIR_PLACE_DEVICE, &side->own) &&
           bench_buffer_on(b->bench, side->device, "other", size, WEIR_PLACE_DEVICE, &side->other);
}

static bool make_objects(struct devices_bench *b)
{
    struct bench *bench = b->bench;
    b->sides[0].device = bench->device;
    if (cli_open_other(bench->runtime, bench->device, &b->sides[1].device) < 0)
        return bench_fail_weir(bench);
    if (!b->sides[1].device)
        return bench_fail(bench, CLI_SETUP,
                          "there is one device, and this needs two; `weir devices` lists them");
    if (!weir_device_can_peer(b->sides[0].device, b->sides[1].device))
        return bench_fail(bench, CLI_SETUP,
                          "the devices cannot reach each other's memory, so there are no copies "
                          "between them; `weir devices` lists them");
    return make_rows(b) && bench_work_open(bench, &b->work) && make_side(b, &b->sides[0]) &&
           make_side(b, &b->sides[1]);
}

static bool destroy_objects(struct devices_bench *b)
{
    for (size_t k = 0; k < 2; k++) {
        struct side *side = &b->sides[k];
        for (size_t i = 0; i < QUEUES; i++)
            weir_queue_destroy(&side->queues[i]);
        weir_buffer_destroy(&side->host);
        weir_buffer_destroy(&side->own);
        weir_buffer_destroy(&side->other);
    }
    bench_work_close(&b->work);
    return bench_fine(b->bench, weir_device_close(&b->sides[1].device));
}

static void plot_row(struct bench *bench, const struct row *row)
{
    char group[48];
    snprintf(group, sizeof group, "%zu bytes, %zu", row->size, row->pieces);
    bench_plot_bar(bench, ways[row->way].key, group, &row->ms);
}

static void report(struct devices_bench *b)
{
    static const struct bench_column columns[] = {
        {"bytes", "bytes", BENCH_NUMBER, 0},   {"pieces", "pieces", BENCH_NUMBER, 0},
        {"way", "way", BENCH_TEXT, 0},         {"ms", "ms", BENCH_SPREAD, 3},
        {"gb_per_s", "GB/s", BENCH_SPREAD, 1}, {"about", "", BENCH_TEXT, 0},
    };
    struct cli_plot *plot = &b->bench->plot;
    struct bench_table *table =
        bench_table(b->bench, "ways",
                    "two devices: until all is done, and the bytes of one way over that", columns,
                    sizeof columns / sizeof *columns);
    snprintf(plot->title, sizeof plot->title, "Copies between two devices");
    snprintf(plot->y_name, sizeof plot->y_name, "ms");
    for (size_t i = 0; i < b->row_count; i++) {
        const struct row *row = &b->rows[i];
        bench_row(table, (double)row->size, (double)row->pieces, ways[row->way].key, &row->ms,
                  &row->gb_per_s, ways[row->way].about);
        plot_row(b->bench, row);
    }
}

static bool check_options(struct bench *bench, void *user)
{
    struct devices_bench *b = user;
    return bench_parse_list(bench, "size", b->asked_sizes, NULL, ALIGNED, SIZE_MOST, &b->sizes) &&
           bench_parse_list(bench, "pieces", b->asked_pieces, NULL, 1, PIECES_MOST, &b->pieces);
}

static bool run(struct bench *bench, void *user)
{
    struct devices_bench *b = user;
    b->bench = bench;
    const bool fine = make_objects(b) && check_all(b) && measure(b);
    if (fine)
        report(b);
    return destroy_objects(b) && fine;
}

static int devices_main(int argc, char **argv)
{
    struct devices_bench b = {.asked_sizes = "1M,16M,256M", .asked_pieces = "1,16"};
    const struct cli_option options[] = {
        {"size", "LIST", "bytes that go each way (1M,16M,256M)", CLI_TEXT, &b.asked_sizes, 0, 0},
        {"pieces", "LIST", "in how many copies (1,16)", CLI_TEXT, &b.asked_pieces, 0, 0},
    };
    const struct bench_program program = {
        .group = "jobs",
        .name = "devices",
        .about = "Measures copies between two devices: one way, both ways at once, and beside\n"
                 "uploads; and a job whose pieces go up to the first device, through a kernel,\n"
                 "across to the second, and down from there. The first device is the one that the\n"
                 "configuration names, the second the first of the others.\n",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .check = check_options,
        .run = run,
    };
    return bench_main(&program, &b, argc, argv);
}

const struct cli_command job_devices = {
    .name = "devices",
    .summary = "copies between two devices, and a job that goes through both",
    .main = devices_main,
};
