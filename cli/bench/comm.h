// What the files of `weir bench comm` share.
#ifndef WEIR_CLI_BENCH_COMM_H
#define WEIR_CLI_BENCH_COMM_H

#include "cli/bench/bench.h"
#include "cli/bench/ranks.h"

// A rank of this process.
struct comm_rank {
    weir_device *device;
    weir_comm *comm;
    weir_queue *queue;
    weir_buffer *src;
    weir_buffer *dst;
    weir_buffer *time; // 8 bytes
};

struct comm_mpi; // the MPI that the transport has started
struct comm_raw; // NCCL without Weir

struct comm_bench {
    struct bench *bench;
    const char *config;
    const char *asked_sizes;
    const char *asked_kinds;
    const char *asked_memory;
    const char *nccl; // the file; NULL: the one that is loaded, or the linker's
    struct bench_list sizes;
    struct bench_list kinds; // of comm_kinds
    bool host_memory;
    uint64_t asked_ranks;
    uint64_t iterations;

    struct bench_ranks all;
    struct comm_rank ranks[BENCH_RANKS_MAX];
    uint32_t local_count; // of `ranks`
    uint32_t first;       // the rank of the first of them
    uint32_t count;       // of all ranks
    struct comm_mpi *mpi; // NULL: there is none
    struct comm_raw *raw; // the same, and why:
    char raw_message[512];
    struct comm_row *rows;
    size_t row_count;
};

// The collectives that are measured, by the numbers of struct comm_row.
extern const weir_collective comm_kinds[];
extern const char *const comm_kind_names[]; // NULL-terminated

struct comm_row {
    weir_collective kind;
    size_t bytes;   // the larger one of what a rank reads and writes
    uint64_t count; // elements, as in <weir/comm.h>
    struct bench_samples ns;
    struct bench_samples algorithm; // GB/s
    struct bench_samples bus;
    struct bench_samples mpi_ns;
    struct bench_samples raw_ns;
};

// Which calls carry a row out.
enum comm_way {
    COMM_WEIR,
    COMM_RAW
};

// comm_ranks.c

// Opens devices and communicators: the rank that the environment tells, else `asked_ranks` in this process.
bool comm_open(struct comm_bench *b);
void comm_close(struct comm_bench *b);
// Runs each row once with numbers that are exact in float32, and compares what comes out.
bool comm_check(struct comm_bench *b, const struct comm_row *row, enum comm_way way);
// Nanoseconds of one collective, by the slowest rank; negative on failure.
double comm_time(struct comm_bench *b, const struct comm_row *row, enum comm_way way);
// The largest value that any rank gives; negative on failure.
double comm_slowest(struct comm_bench *b, double value);

// comm_mpi.c

// NULL if this process has started no MPI, or none whose ABI is known. Room for `bytes` on each side.
struct comm_mpi *comm_mpi_open(size_t bytes);
void comm_mpi_close(struct comm_mpi **mpi);
const char *comm_mpi_version(const struct comm_mpi *mpi);
// Nanoseconds of one call on this rank; negative on failure, or for a kind that MPI has no call for.
double comm_mpi_time(struct comm_mpi *mpi, const struct comm_row *row, uint32_t rank,
                     uint32_t count, uint64_t iterations);

// comm_nccl.c

// NULL, with the reason in `message`, on all ranks if one of them cannot have it.
struct comm_raw *comm_raw_open(struct comm_bench *b, char *message, size_t size);
void comm_raw_close(struct comm_raw **raw);
const char *comm_raw_name(const struct comm_raw *raw); // "NCCL 2.28.9"
// The row's call on all ranks of this process, and the end of all such calls.
weir_status comm_raw_submit(struct comm_raw *raw, const struct comm_row *row);
weir_status comm_raw_sync(struct comm_raw *raw);

#endif
