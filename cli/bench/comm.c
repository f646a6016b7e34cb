// weir bench comm: how long collectives take, and their bandwidths as nccl-tests compute them; beside
// NCCL's own on CUDA, and MPI's own where the transport is mpi.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bus.h"
#include "cli/bench/comm.h"
#include "cli/runtime/open.h"

enum {
    ITERATIONS_MOST = 100000
};

#define SIZE_MOST (UINT64_C(1) << 40)

static const char *const memories[] = {"device", "host", NULL};

// Rows.

// Whether the larger side has a part for each rank.
static bool has_parts(weir_collective kind)
{
    return kind == WEIR_ALL_GATHER || kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_TO_ALL;
}

static bool make_rows(struct comm_bench *b)
{
    b->rows = calloc(b->kinds.count * b->sizes.count, sizeof *b->rows);
    if (!b->rows)
        return bench_fail(b->bench, CLI_FAILED, "no memory for the figures");
    for (size_t kind = 0; kind < b->kinds.count; kind++)
        for (size_t i = 0; i < b->sizes.count; i++) {
            struct comm_row *row = &b->rows[b->row_count++];
            row->kind = comm_kinds[b->kinds.values[kind] - BENCH_WORD];
            const uint32_t parts = has_parts(row->kind) ? b->count : 1;
            row->count = b->sizes.values[i] / sizeof(float) / parts;
            row->bytes = (size_t)(row->count * parts * sizeof(float));
            if (row->count == 0)
                return bench_fail(
                    b->bench, CLI_USAGE,
                    "--size: %llu bytes are less than one number for each of %u ranks",
                    (unsigned long long)b->sizes.values[i], (unsigned)b->count);
        }
    return true;
}

// Measuring.

static void keep(struct comm_bench *b, struct comm_row *row, double ns)
{
    const double rate = (double)row->bytes / ns; // bytes a nanosecond are GB a second
    const double factor = weir_bus_factor(weir_collective_name(row->kind), b->count);
    struct bench_samples *kept[] = {&row->algorithm, &row->bus};
    bench_keep(b->bench, &row->ns, ns);
    for (size_t i = 0; i < 2 && b->bench->turn > 0; i++)
        kept[i]->values[kept[i]->count++] = i == 0 ? rate : rate * factor;
}

static bool measure_way(struct comm_bench *b, struct comm_row *row, enum comm_way way)
{
    const double ns = comm_time(b, row, way);
    if (ns < 0)
        return bench_fail_weir(b->bench);
    if (way == COMM_RAW)
        bench_keep(b->bench, &row->raw_ns, ns);
    else
        keep(b, row, ns);
    return true;
}

// Weir and NCCL take turns in going first.
static bool measure_row(struct comm_bench *b, struct comm_row *row)
{
    const bool raw_first = b->bench->turn % 2 == 1;
    for (int i = 0; i < 2; i++) {
        const enum comm_way way = (i == 0) == raw_first ? COMM_RAW : COMM_WEIR;
        if ((way == COMM_WEIR || b->raw) && !measure_way(b, row, way))
            return false;
    }
    if (!b->mpi)
        return true;
    double other = comm_mpi_time(b->mpi, row, b->first, b->count, b->iterations);
    if (other < 0)
        return bench_fail(b->bench, CLI_SETUP, "MPI refused a collective of %zu bytes", row->bytes);
    other = comm_slowest(b, other);
    if (other < 0)
        return bench_fail_weir(b->bench);
    bench_keep(b->bench, &row->mpi_ns, other);
    return true;
}

static bool measure(struct comm_bench *b)
{
    for (size_t i = 0; i < b->row_count; i++)
        if (!comm_check(b, &b->rows[i], COMM_WEIR) ||
            (b->raw && !comm_check(b, &b->rows[i], COMM_RAW)))
            return false;
    const size_t ways = 1 + (b->mpi != NULL) + (b->raw != NULL);
    for (bench_start(b->bench, b->row_count * ways); bench_turn(b->bench);)
        for (size_t i = 0; i < b->row_count; i++)
            if (!measure_row(b, &b->rows[i]))
                return false;
    return true;
}

// Reporting.

static void plot_row(struct bench *bench, const struct comm_row *row)
{
    const struct bench_spread bus = bench_spread(&row->bus);
    char group[32];
    snprintf(group, sizeof group, "%zu", row->bytes);
    cli_plot_add(cli_plot_series(&bench->plot, weir_collective_name(row->kind)),
                 (struct cli_plot_point){(double)cli_plot_group(&bench->plot, group), bus.median,
                                         bus.minimum, bus.maximum});
}

static void put_row(const struct comm_bench *b, struct bench_table *table,
                    const struct comm_row *row)
{
    const struct bench_samples of_raw = bench_ratio(&row->ns, &row->raw_ns);
    const struct bench_samples ratio = bench_ratio(&row->mpi_ns, &row->ns);
    bench_put_text(table, "%s", weir_collective_name(row->kind));
    bench_put_number(table, (double)row->bytes);
    bench_put(table, &row->ns);
    bench_put(table, &row->algorithm);
    bench_put(table, &row->bus);
    if (b->raw) {
        bench_put(table, &row->raw_ns);
        bench_put(table, &of_raw);
    }
    if (b->mpi) {
        bench_put(table, &row->mpi_ns);
        bench_put(table, &ratio);
    }
}

static void report(struct comm_bench *b)
{
    enum {
        FIRST_OF_RAW = 5,
        FIRST_OF_MPI = 7
    };
    static const struct bench_column all[] = {
        {"collective", "collective", BENCH_TEXT, 0},
        {"bytes", "bytes", BENCH_NUMBER, 0},
        {"ns", "ns", BENCH_SPREAD, 0},
        {"algorithm_gbs", "GB/s", BENCH_SPREAD, 2},
        {"bus_gbs", "bus GB/s", BENCH_SPREAD, 2},
        {"raw_ns", "raw ns", BENCH_SPREAD, 0},
        {"of_raw", "over raw", BENCH_SPREAD, 3},
        {"mpi_ns", "MPI ns", BENCH_SPREAD, 0},
        {"ratio", "MPI / Weir", BENCH_SPREAD, 3},
    };
    struct bench_column columns[sizeof all / sizeof *all];
    struct bench *bench = b->bench;
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (i < FIRST_OF_RAW || (i < FIRST_OF_MPI ? b->raw != NULL : b->mpi != NULL))
            columns[count++] = all[i];
    struct bench_table *table =
        bench_table(bench, "collectives", "one collective, by the slowest rank", columns, count);
    snprintf(bench->plot.title, sizeof bench->plot.title, "Collectives of %u ranks",
             (unsigned)b->count);
    snprintf(bench->plot.y_name, sizeof bench->plot.y_name, "bus GB/s");
    for (size_t i = 0; i < b->row_count; i++) {
        put_row(b, table, &b->rows[i]);
        plot_row(bench, &b->rows[i]);
    }
}

static void describe(struct comm_bench *b)
{
    bench_parameter(b->bench, "ranks", b->count);
    bench_parameter(b->bench, "ranks_of_this_process", b->local_count);
    bench_parameter(b->bench, "iterations", (double)b->iterations);
    bench_note(b->bench, "through %s; %s memory; %u ranks%s", weir_comm_engine(b->ranks[0].comm),
               b->host_memory ? "the host's" : "the device's", (unsigned)b->count,
               b->local_count > 1 ? " in this process" : ", one a process");
    if (b->raw)
        bench_note(b->bench, "raw: %s on streams of its own, the same memory",
                   comm_raw_name(b->raw));
    else
        bench_note(b->bench, "no raw NCCL beside it: %.250s", b->raw_message);
    if (b->mpi)
        bench_note(b->bench, "beside %s on memory of the host", comm_mpi_version(b->mpi));
}

// The command.

static bool check_options(struct bench *bench, void *user)
{
    struct comm_bench *b = user;
    struct bench_list memory;
    if (!bench_parse_list(bench, "size", b->asked_sizes, NULL, sizeof(float), SIZE_MOST,
                          &b->sizes) ||
        !bench_parse_list(bench, "collectives", b->asked_kinds, comm_kind_names, 0, 0, &b->kinds) ||
        !bench_parse_list(bench, "memory", b->asked_memory, memories, 0, 0, &memory))
        return false;
    b->host_memory = memory.values[0] == BENCH_WORD + 1;
    return memory.count == 1 ||
           bench_fail(bench, CLI_USAGE, "--memory takes one of device and host");
}

static void open_mpi(struct comm_bench *b)
{
    size_t bytes = 0;
    for (size_t i = 0; i < b->row_count; i++)
        bytes = b->rows[i].bytes > bytes ? b->rows[i].bytes : bytes;
    b->mpi = b->local_count == 1 ? comm_mpi_open(bytes) : NULL;
}

// The other ranks measure the same, and rank 0 tells it.
static bool run(struct bench *bench, void *user)
{
    struct comm_bench *b = user;
    b->bench = bench;
    if (cli_open(b->config, NULL, &bench->runtime) < 0)
        return bench_fail_weir(bench);
    bool fine = comm_open(b) && make_rows(b);
    bench->silent = b->first > 0;
    bench->quiet = bench->quiet || bench->silent;
    if (fine) {
        b->raw = comm_raw_open(b, b->raw_message, sizeof b->raw_message);
        open_mpi(b);
    }
    fine = fine && measure(b);
    if (fine) {
        describe(b);
        report(b);
    }
    comm_mpi_close(&b->mpi);
    comm_raw_close(&b->raw);
    comm_close(b);
    free(b->rows);
    return fine;
}

static int comm_main(int argc, char **argv)
{
    struct comm_bench b = {
        .asked_sizes = "4K,64K,1M,16M",
        .asked_kinds = "all-reduce",
        .asked_memory = "device",
        .asked_ranks = 2,
        .iterations = 10,
    };
    const struct cli_option options[] = {
        {"collectives", "LIST",
         "some of all-reduce, reduce, broadcast, all-gather,\nreduce-scatter, all-to-all, exchange "
         "(all-reduce)",
         CLI_TEXT, &b.asked_kinds, 0, 0},
        {"size", "LIST", "bytes, of the larger side (4K,64K,1M,16M)", CLI_TEXT, &b.asked_sizes, 0,
         0},
        {"memory", "M", "device or host (device)", CLI_TEXT, &b.asked_memory, 0, 0},
        {"ranks", "N", "ranks in this process, if no launcher started it (2)", CLI_COUNT,
         &b.asked_ranks, 1, BENCH_RANKS_MAX},
        {"iterations", "N", "collectives in a turn (10)", CLI_COUNT, &b.iterations, 1,
         ITERATIONS_MOST},
        {"nccl", "F",
         "the file of NCCL for the raw calls; without it, the one\nthat is loaded, or that the "
         "linker finds",
         CLI_FILE, &b.nccl, 0, 0},
        {"config", "F", "the INI file; without it, the one that WEIR_CONFIG\nnames, or none",
         CLI_FILE, &b.config, 0, 0},
    };
    const struct bench_program program = {
        .name = "comm",
        .about =
            "Measures collectives of float32 numbers: how long one takes, by the slowest rank, "
            "and\n"
            "the bandwidths that nccl-tests compute of it. In the same turns run NCCL's own calls\n"
            "on CUDA, and MPI's own where the transport is mpi. Rank 0 prints.\n\n"
            "  weir bench comm --ranks 4\n"
            "  weir launch -n 2 weir bench comm --size 1M,64M --memory host\n"
            "  WEIR_COMM_TRANSPORT=mpi mpirun -n 2 weir bench comm",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .check = check_options,
        .run = run,
    };
    return bench_main(&program, &b, argc, argv);
}

const struct cli_command cli_bench_comm = {
    .name = "comm",
    .summary = "the time and bandwidth of collectives",
    .main = comm_main,
};
