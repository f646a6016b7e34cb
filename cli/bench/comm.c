// weir bench comm: how long collectives take, and their bandwidths as nccl-tests compute them. The ranks are
// the one that a launcher started, or several in this process.
#include "cli/bench/comm.h"

#include "base/bus.h"

enum {
    ITERATIONS_MOST = 100000
};

#define SIZE_MOST (UINT64_C(1) << 40)

static const char *const memories[] = {"device", "host", NULL};

// In the order of weir_collective, but for the last.
static const char *const kind_names[] = {"all-reduce",     "reduce",     "broadcast", "all-gather",
                                         "reduce-scatter", "all-to-all", "exchange",  NULL};

// Ranks.

CLI_DESTROYER(destroy_comm, weir_comm_destroy)

// A device that another rank has is shared.
static void create_all(uint64_t asked, struct bench_ranks *all)
{
    const size_t there = weir_device_count(bench.runtime);
    weir_device *devices[BENCH_RANKS_MAX];
    weir_comm *comms[BENCH_RANKS_MAX];
    all->local_count = (uint32_t)asked;
    devices[0] = all->ranks[0].device;
    for (uint32_t i = 1; i < all->local_count; i++) {
        devices[i] =
            i < there ? cli_device(bench.runtime, cli_text("%u", i), NULL) : devices[i % there];
        all->ranks[i].device = devices[i];
    }
    cli_fine(weir_comm_create_all(devices, all->local_count,
                                  WEIR_PARAMS(weir_comm, .label = "bench"), comms));
    for (uint32_t i = 0; i < all->local_count; i++) {
        all->ranks[i].comm = comms[i];
        cli_own(destroy_comm, &all->ranks[i].comm);
    }
}

void bench_ranks_open(uint64_t asked, struct bench_ranks *out_ranks)
{
    struct bench_rank *first = &out_ranks->ranks[0];
    uint32_t local;
    *out_ranks = (struct bench_ranks){.local_count = 1};
    bench.runtime = cli_open(bench.config);
    const size_t there = weir_device_count(bench.runtime);
    cli_local_rank(&local);
    first->device =
        cli_device(bench.runtime, there > 1 ? cli_text("%zu", local % there) : NULL, NULL);
    cli_fine(
        weir_comm_create(first->device, WEIR_PARAMS(weir_comm, .label = "bench"), &first->comm));
    if (weir_comm_count(first->comm) > 1) {
        cli_own(destroy_comm, &first->comm);
    } else {
        weir_comm_destroy(&first->comm);
        create_all(asked, out_ranks);
    }
    for (uint32_t i = 0; i < out_ranks->local_count; i++) {
        struct bench_rank *rank = &out_ranks->ranks[i];
        bench_queue(rank->device, "bench", 0, &rank->queue);
        bench_buffer(rank->device, "bench/value", sizeof(double), WEIR_PLACE_DEVICE, &rank->value);
    }
    out_ranks->first = weir_comm_rank(first->comm);
    out_ranks->count = weir_comm_count(first->comm);
    bench.silent = out_ranks->first > 0;
    bench.quiet = bench.quiet || bench.silent;
}

void bench_ranks_sync(const struct bench_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->local_count; i++)
        bench_sync(ranks->ranks[i].queue);
}

void bench_ranks_meet(const struct bench_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->local_count; i++)
        cli_fine(weir_queue_barrier(ranks->ranks[i].queue, ranks->ranks[i].comm));
    bench_ranks_sync(ranks);
}

double bench_ranks_slowest(const struct bench_ranks *ranks, double value)
{
    const struct bench_rank *first = &ranks->ranks[0];
    double slowest = value;
    for (uint32_t i = 0; i < ranks->local_count; i++) {
        const struct bench_rank *rank = &ranks->ranks[i];
        cli_fine(weir_upload(rank->queue, rank->value, 0, &value, sizeof value));
        cli_fine(weir_queue_all_reduce(rank->queue, rank->comm, rank->value, 0, rank->value, 0, 1,
                                       WEIR_F64, WEIR_MAXIMUM));
    }
    bench_ranks_sync(ranks);
    cli_fine(weir_download(first->queue, &slowest, first->value, 0, sizeof slowest));
    return slowest;
}

// Opening.

static bool on_host(const struct comm_bench *b)
{
    return b->memory.values[0] == BENCH_WORD + 1;
}

static void open_ranks(struct comm_bench *b)
{
    const weir_placement place = on_host(b) ? WEIR_PLACE_HOST : WEIR_PLACE_DEVICE;
    size_t bytes = 0;
    for (size_t i = 0; i < b->sizes.count; i++)
        bytes = b->sizes.values[i] > bytes ? (size_t)b->sizes.values[i] : bytes;
    bench_ranks_open(b->asked_ranks, &b->all);
    for (uint32_t i = 0; i < b->all.local_count; i++) {
        struct bench_rank *rank = &b->all.ranks[i];
        bench_buffer(rank->device, "bench", bytes, place, &rank->src);
        bench_buffer(rank->device, "bench", bytes, place, &rank->dst);
    }
}

// Collectives.

static void submit_all(const struct comm_bench *b, const struct comm_row *row)
{
    for (uint32_t i = 0; i < b->all.local_count; i++) {
        const struct bench_rank *rank = &b->all.ranks[i];
        const uint32_t own = weir_comm_rank(rank->comm);
        struct weir_collective_params params = {
            .struct_size = sizeof params,
            .kind = row->kind,
            .element = WEIR_F32,
            .reduction = WEIR_SUM,
            .dst = rank->dst,
            .src = rank->src,
            .count = row->count,
        };
        const struct weir_exchange ring[] = {
            {rank->src, 0, row->count, WEIR_F32, (own + 1) % b->all.count, false},
            {rank->dst, 0, row->count, WEIR_F32, (own + b->all.count - 1) % b->all.count, true},
        };
        if (row->kind == WEIR_EXCHANGE) {
            params.src = params.dst = NULL;
            params.count = 0;
            params.exchanges = ring;
            params.exchange_count = 2;
        }
        cli_fine(weir_queue_collective(rank->queue, rank->comm, &params));
    }
}

static void sync_all(const struct comm_bench *b)
{
    bench_ranks_sync(&b->all);
}

static const struct comm_way weir_way = {
    .kinds = ~0u,
    .on_weirs_memory = true,
    .submit = submit_all,
    .sync = sync_all,
};

static double time_row(struct comm_bench *b, const struct comm_row *row, const struct comm_way *way)
{
    bench_ranks_meet(&b->all);
    const uint64_t began = cli_now_ns();
    for (uint64_t i = 0; i < b->iterations; i++)
        way->submit(b, row);
    way->sync(b);
    return bench_ranks_slowest(&b->all, (double)(cli_now_ns() - began) / (double)b->iterations);
}

// Checking.

// Sums of them over all ranks are exact.
static float number(uint32_t rank, uint64_t index)
{
    return (float)((rank + 1) * (1 + index % 5));
}

static float total(uint32_t ranks, uint64_t index)
{
    const uint64_t sum = (uint64_t)ranks * (ranks + 1) / 2 * (1 + index % 5);
    return (float)sum;
}

static float expected(const struct comm_row *row, uint32_t rank, uint32_t count, uint64_t index)
{
    const uint32_t part = (uint32_t)(index / row->count);
    const uint64_t within = index % row->count;
    switch (row->kind) {
    case WEIR_BROADCAST:
        return number(0, index);
    case WEIR_ALL_GATHER:
        return number(part, within);
    case WEIR_REDUCE_SCATTER:
        return total(count, rank * row->count + index);
    case WEIR_ALL_TO_ALL:
        return number(part, rank * row->count + within);
    case WEIR_EXCHANGE:
        return number((rank + count - 1) % count, index);
    default:
        return total(count, index);
    }
}

// The elements that a rank has written.
static uint64_t written(const struct comm_row *row, uint32_t rank, uint32_t count)
{
    if (row->kind == WEIR_REDUCE)
        return rank == 0 ? row->count : 0;
    return row->kind == WEIR_ALL_GATHER || row->kind == WEIR_ALL_TO_ALL ? row->count * count
                                                                        : row->count;
}

static void fill(const struct bench_rank *rank, float *numbers, size_t bytes)
{
    const uint32_t own = weir_comm_rank(rank->comm);
    for (size_t i = 0; i < bytes / sizeof *numbers; i++)
        numbers[i] = number(own, i);
    bench_fill(rank->queue, rank->dst, bytes);
    cli_fine(weir_upload(rank->queue, rank->src, 0, numbers, bytes));
}

static void compare(struct comm_bench *b, const struct comm_row *row, const struct comm_way *way,
                    const struct bench_rank *rank)
{
    const uint32_t own = weir_comm_rank(rank->comm);
    const uint64_t elements = written(row, own, b->all.count);
    cli_fine(weir_download(rank->queue, b->numbers, rank->dst, 0, elements * sizeof(float)));
    bench.checked++;
    for (uint64_t i = 0; i < elements; i++)
        if (b->numbers[i] != expected(row, own, b->all.count, i))
            cli_fail(CLI_FAILED, "%s%s of %zu bytes: element %llu of rank %u is %g in place of %g",
                     way->open ? "raw " : "", weir_collective_name(row->kind), row->bytes,
                     (unsigned long long)i, (unsigned)own, (double)b->numbers[i],
                     (double)expected(row, own, b->all.count, i));
}

static void check_row(struct comm_bench *b, const struct comm_row *row, const struct comm_way *way)
{
    for (uint32_t i = 0; i < b->all.local_count; i++)
        fill(&b->all.ranks[i], b->numbers, row->bytes);
    bench_ranks_sync(&b->all); // what fills them is on Weir's queues
    way->submit(b, row);
    way->sync(b);
    for (uint32_t i = 0; i < b->all.local_count; i++)
        compare(b, row, way, &b->all.ranks[i]);
}

// Rows.

static void make_rows(struct comm_bench *b)
{
    b->rows = cli_allocate(b->kinds.count * b->sizes.count, sizeof *b->rows);
    for (size_t i = 0; i < b->kinds.count * b->sizes.count; i++) {
        const uint64_t size = b->sizes.values[i % b->sizes.count];
        struct comm_row *row = &b->rows[b->row_count++];
        const uint64_t word = b->kinds.values[i / b->sizes.count] - BENCH_WORD;
        row->kind = word < WEIR_ALL_TO_ALL ? (weir_collective)(word + 1) : WEIR_EXCHANGE;
        const uint32_t parts = (row->kind == WEIR_ALL_GATHER || row->kind == WEIR_REDUCE_SCATTER ||
                                row->kind == WEIR_ALL_TO_ALL)
                                   ? b->all.count
                                   : 1;
        row->count = size / sizeof(float) / parts;
        row->bytes = (size_t)(row->count * parts * sizeof(float));
        b->largest = row->bytes > b->largest ? row->bytes : b->largest;
        if (row->count == 0)
            cli_fail(CLI_USAGE, "--size: %llu bytes are less than one number for each of %u ranks",
                     (unsigned long long)size, (unsigned)b->all.count);
    }
    b->numbers = cli_allocate(b->largest, 1);
}

// Measuring.

static bool has(const struct comm_way *way, const struct comm_row *row)
{
    return way->kinds >> row->kind & 1;
}

static void check_all(struct comm_bench *b)
{
    for (size_t i = 0; i < b->row_count; i++)
        for (size_t k = 0; k < b->way_count; k++)
            if (b->ways[k]->on_weirs_memory && has(b->ways[k], &b->rows[i]))
                check_row(b, &b->rows[i], b->ways[k]);
}

// Each way goes first in turn.
static void measure_row(struct comm_bench *b, struct comm_row *row)
{
    for (size_t i = 0; i < b->way_count; i++) {
        const size_t way = (i + bench.turn) % b->way_count;
        if (has(b->ways[way], row))
            bench_keep(&row->ns[way], time_row(b, row, b->ways[way]));
    }
}

// Reporting.

static void put_row(const struct comm_bench *b, struct bench_table *table,
                    const struct comm_row *row)
{
    const char *name = weir_collective_name(row->kind);
    const struct bench_samples rate = bench_rate(row->ns[0], (double)row->bytes); // GB/s
    const struct bench_samples bus = bench_scaled(rate, weir_bus_factor(name, b->all.count));
    bench_plot_bar(name, cli_text("%zu", row->bytes), bus);
    bench_text(table, "collective", "collective", name);
    bench_number(table, "bytes", "bytes", (double)row->bytes);
    bench_value(table, "ns", "ns", 0, row->ns[0]);
    bench_value(table, "algorithm_gbs", "GB/s", 2, rate);
    bench_value(table, "bus_gbs", "bus GB/s", 2, bus);
    for (size_t i = 1; i < b->way_count; i++) {
        const char *way = b->ways[i]->name;
        bench_value(table, cli_text("%s_ns", way), cli_text("%s ns", way), 0, row->ns[i]);
        bench_value(table, cli_text("of_%s", way), cli_text("over %s", way), 3,
                    bench_ratio(row->ns[0], row->ns[i]));
    }
}

static void report(struct comm_bench *b)
{
    struct bench_table *table = bench_table("collectives", "one collective, by the slowest rank");
    bench_parameter("ranks", b->all.count);
    bench_parameter("ranks_of_this_process", b->all.local_count);
    bench_parameter("iterations", (double)b->iterations);
    bench_note("through %s; %s memory; %u ranks%s", weir_comm_engine(b->all.ranks[0].comm),
               on_host(b) ? "the host's" : "the device's", (unsigned)b->all.count,
               b->all.local_count > 1 ? " in this process" : ", one a process");
    bench_plot(cli_text("Collectives of %u ranks", (unsigned)b->all.count), "", "bus GB/s");
    for (size_t i = 0; i < b->row_count; i++)
        put_row(b, table, &b->rows[i]);
}

// The command.

// What this machine lacks leaves a note.
static void run(void *user)
{
    struct comm_bench *b = user;
    open_ranks(b);
    make_rows(b);
    b->ways[b->way_count++] = &weir_way;
    for (size_t i = 0; b->with && b->with->others[i]; i++)
        if (b->with->others[i]->open(b))
            b->ways[b->way_count++] = b->with->others[i];
    check_all(b);
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < b->row_count; i++)
            measure_row(b, &b->rows[i]);
    report(b);
}

int bench_comm_main(const struct comm_with *with, int argc, char **argv)
{
    static struct comm_bench b = {
        .sizes = {.text = "4K,64K,1M,16M", .minimum = sizeof(float), .maximum = SIZE_MOST},
        .kinds = {.text = "all-reduce", .words = kind_names},
        .memory = {.text = "device", .words = memories, .most = 1},
        .asked_ranks = 2,
        .iterations = 10,
    };
    const struct cli_option options[] = {
        {"collectives", "LIST",
         "some of all-reduce, reduce, broadcast, all-gather,\nreduce-scatter, all-to-all, exchange "
         "(all-reduce)",
         CLI_VALUES, &b.kinds, 0, 0},
        {"size", "LIST", "bytes, of the larger side (4K,64K,1M,16M)", CLI_VALUES, &b.sizes, 0, 0},
        {"memory", "M", "device or host (device)", CLI_VALUES, &b.memory, 0, 0},
        {"ranks", "N", "ranks in this process, if no launcher started it (2)", CLI_COUNT,
         &b.asked_ranks, 1, BENCH_RANKS_MAX},
        {"iterations", "N", "collectives in a turn (10)", CLI_COUNT, &b.iterations, 1,
         ITERATIONS_MOST},
        with ? with->option : (struct cli_option){0},
    };
    const struct bench_program program = {
        .about = "Measures collectives of float32 numbers: how long one takes, by the slowest "
                 "rank, and\nthe bandwidths that nccl-tests compute of it. Rank 0 prints.\n\n"
                 "  weir bench comm --ranks 4\n"
                 "  weir launch -n 2 weir bench comm --size 1M,64M --memory host\n"
                 "  WEIR_COMM_TRANSPORT=mpi mpirun -n 2 weir bench comm",
        .options = options,
        .option_count = BENCH_COUNT(options) - !with,
        .opens_devices = true,
        .run = run,
    };
    b.with = with;
    return bench_main(&program, &b, argc, argv);
}

int cli_bench_comm(int argc, char **argv)
{
    return bench_comm_main(NULL, argc, argv);
}
