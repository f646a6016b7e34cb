// The job `comm`: weir bench comm beside NCCL's own calls on CUDA, on the same memory, and MPI's own where the
// transport is mpi. NCCL has a communicator and a stream of its own.
#define _GNU_SOURCE // RTLD_NOLOAD
#include "cli/bench/comm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/jobs/nccl.h"

// NCCL.

static struct comm_raw {
    const char *file; // NULL: the one that is loaded, or the linker's
    struct raw_nccl api;
    char *src, *dst;
} raw;

static bool open_nccl(struct comm_bench *b)
{
    struct weir_native_buffer src, dst;
    char message[512] = "";
    if (!raw_nccl_open(&raw.api, &b->all, true, raw.file, message, sizeof message)) {
        bench_note("no raw NCCL beside it: %.250s", message);
        return false;
    }
    cli_fine(weir_buffer_get_native(b->all.ranks[0].src, &src));
    cli_fine(weir_buffer_get_native(b->all.ranks[0].dst, &dst));
    raw.src = (char *)(uintptr_t)src.address;
    raw.dst = (char *)(uintptr_t)dst.address;
    bench_note("raw: %s on a stream of its own, the same memory", raw.api.name);
    return true;
}

// Calls.

static const char *call_name;

static ncclResult_t send(size_t at, size_t count, uint32_t peer)
{
    call_name = "ncclSend";
    return raw.api.nccl.ncclSend(raw.src + at * sizeof(float), count, ncclFloat32, (int)peer,
                                 raw.api.comm, raw.api.stream);
}

static ncclResult_t receive(size_t at, size_t count, uint32_t peer)
{
    call_name = "ncclRecv";
    return raw.api.nccl.ncclRecv(raw.dst + at * sizeof(float), count, ncclFloat32, (int)peer,
                                 raw.api.comm, raw.api.stream);
}

static ncclResult_t all_to_all(size_t count, uint32_t ranks)
{
    ncclResult_t error = ncclSuccess;
    for (uint32_t i = 0; i < ranks && error == ncclSuccess; i++) {
        error = send(i * count, count, i);
        error = error ? error : receive(i * count, count, i);
    }
    return error;
}

static ncclResult_t exchange(size_t count, uint32_t own, uint32_t ranks)
{
    const ncclResult_t error = send(0, count, (own + 1) % ranks);
    return error ? error : receive(0, count, (own + ranks - 1) % ranks);
}

static ncclResult_t carry(const struct comm_bench *b, const struct comm_row *row)
{
    const struct nccl_symbols *nccl = &raw.api.nccl;
    const ncclComm_t comm = raw.api.comm;
    const CUstream stream = raw.api.stream;
    const size_t count = row->count;
    const ncclDataType_t type = ncclFloat32;
    const ncclRedOp_t sum = ncclSum;
    switch (row->kind) {
    case WEIR_REDUCE:
        call_name = "ncclReduce";
        return nccl->ncclReduce(raw.src, raw.dst, count, type, sum, 0, comm, stream);
    case WEIR_BROADCAST:
        call_name = "ncclBroadcast";
        return nccl->ncclBroadcast(raw.src, raw.dst, count, type, 0, comm, stream);
    case WEIR_ALL_GATHER:
        call_name = "ncclAllGather";
        return nccl->ncclAllGather(raw.src, raw.dst, count, type, comm, stream);
    case WEIR_REDUCE_SCATTER:
        call_name = "ncclReduceScatter";
        return nccl->ncclReduceScatter(raw.src, raw.dst, count, type, sum, comm, stream);
    case WEIR_ALL_TO_ALL:
        return all_to_all(count, b->all.count);
    case WEIR_EXCHANGE:
        return exchange(count, b->all.first, b->all.count);
    default:
        call_name = "ncclAllReduce";
        return nccl->ncclAllReduce(raw.src, raw.dst, count, type, sum, comm, stream);
    }
}

static void submit_nccl(const struct comm_bench *b, const struct comm_row *row)
{
    const bool grouped = row->kind == WEIR_ALL_TO_ALL || row->kind == WEIR_EXCHANGE;
    ncclResult_t error = grouped ? raw.api.nccl.ncclGroupStart() : ncclSuccess;
    call_name = "ncclGroupStart";
    error = error ? error : carry(b, row);
    const ncclResult_t ended = grouped ? raw.api.nccl.ncclGroupEnd() : ncclSuccess;
    raw_nccl_check(&raw.api, error, call_name);
    raw_nccl_check(&raw.api, ended, "ncclGroupEnd");
}

// The context stays current: it is the one that Weir uses too.
static void sync_nccl(const struct comm_bench *b)
{
    (void)b;
    CUresult error = raw.api.cu.cuCtxSetCurrent(raw.api.context);
    error = error ? error : raw.api.cu.cuStreamSynchronize(raw.api.stream);
    raw_nccl_check_driver(&raw.api, error, "cuStreamSynchronize");
}

// MPI, by the library that the transport has started. Its headers are not needed: handles, which are pointers
// in Open MPI and ints in MPICH, are passed as words, of which an int is the lower half in the registers and
// stack slots of Linux's calling conventions.

typedef uintptr_t handle;

static struct comm_mpi {
    void *library;
    char version[8192]; // as long as MPICH's may be
    handle world, element, sum;
    float *src, *dst;
    int (*barrier)(handle);
    int (*all_reduce)(const void *, void *, int, handle, handle, handle);
    int (*reduce)(const void *, void *, int, handle, handle, int, handle);
    int (*broadcast)(void *, int, handle, int, handle);
    int (*all_gather)(const void *, int, handle, void *, int, handle, handle);
    int (*reduce_scatter)(const void *, void *, int, handle, handle, handle);
    int (*all_to_all)(const void *, int, handle, void *, int, handle, handle);
    int (*exchange)(const void *, int, handle, int, int, void *, int, handle, int, int, handle,
                    void *);
} mpi;

#define MPICH_WORLD 0x44000000
#define MPICH_FLOAT 0x4c00040a
#define MPICH_SUM 0x58000003

static void *find_library(void)
{
    static const char *const names[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    return library;
}

static bool find_functions(void)
{
    const struct {
        const char *name;
        void *at;
    } symbols[] = {
        {"MPI_Barrier", &mpi.barrier},      {"MPI_Allreduce", &mpi.all_reduce},
        {"MPI_Reduce", &mpi.reduce},        {"MPI_Bcast", &mpi.broadcast},
        {"MPI_Allgather", &mpi.all_gather}, {"MPI_Reduce_scatter_block", &mpi.reduce_scatter},
        {"MPI_Alltoall", &mpi.all_to_all},  {"MPI_Sendrecv", &mpi.exchange},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(mpi.library, symbols[i].name);
        if (!symbol)
            return false;
        memcpy(symbols[i].at, &symbol, sizeof symbol);
    }
    return true;
}

static bool is_started(void)
{
    int (*initialized)(int *);
    int flag = 0;
    void *symbol = dlsym(mpi.library, "MPI_Initialized");
    memcpy(&initialized, &symbol, sizeof initialized);
    return symbol && initialized(&flag) == 0 && flag;
}

static bool find_handles(void)
{
    int (*version)(char *, int *);
    int size = 0;
    void *symbol = dlsym(mpi.library, "MPI_Get_library_version");
    memcpy(&version, &symbol, sizeof version);
    if (!symbol || version(mpi.version, &size) != 0)
        return false;
    mpi.version[strcspn(mpi.version, ",\n")] = '\0';
    mpi.world = (handle)dlsym(mpi.library, "ompi_mpi_comm_world");
    mpi.element = (handle)dlsym(mpi.library, "ompi_mpi_float");
    mpi.sum = (handle)dlsym(mpi.library, "ompi_mpi_op_sum");
    if (mpi.world)
        return mpi.element && mpi.sum;
    mpi.world = MPICH_WORLD;
    mpi.element = MPICH_FLOAT;
    mpi.sum = MPICH_SUM;
    return strstr(mpi.version, "MPICH") != NULL;
}

static void close_mpi(void *object, void *with)
{
    (void)with;
    dlclose(object);
}

static bool open_mpi(struct comm_bench *b)
{
    mpi.library = b->all.local_count == 1 ? find_library() : NULL;
    if (mpi.library)
        cli_own(close_mpi, mpi.library, NULL);
    if (!mpi.library || !is_started() || !find_functions() || !find_handles())
        return false;
    mpi.src = cli_allocate(1, b->largest);
    mpi.dst = cli_allocate(1, b->largest);
    bench_note("beside %.200s on memory of the host", mpi.version);
    return true;
}

static int call_mpi(const struct comm_row *row, uint32_t rank, uint32_t ranks)
{
    const int count = (int)row->count;
    const handle type = mpi.element, world = mpi.world;
    const int next = (int)((rank + 1) % ranks), last = (int)((rank + ranks - 1) % ranks);
    char status[256]; // larger than any library's
    switch (row->kind) {
    case WEIR_ALL_REDUCE:
        return mpi.all_reduce(mpi.src, mpi.dst, count, type, mpi.sum, world);
    case WEIR_REDUCE:
        return mpi.reduce(mpi.src, mpi.dst, count, type, mpi.sum, 0, world);
    case WEIR_BROADCAST:
        return mpi.broadcast(mpi.dst, count, type, 0, world);
    case WEIR_ALL_GATHER:
        return mpi.all_gather(mpi.src, count, type, mpi.dst, count, type, world);
    case WEIR_REDUCE_SCATTER:
        return mpi.reduce_scatter(mpi.src, mpi.dst, count, type, mpi.sum, world);
    case WEIR_ALL_TO_ALL:
        return mpi.all_to_all(mpi.src, count, type, mpi.dst, count, type, world);
    case WEIR_EXCHANGE:
        return mpi.exchange(mpi.src, count, type, next, 1, mpi.dst, count, type, last, 1, world,
                            status);
    default:
        return -1;
    }
}

static void submit_mpi(const struct comm_bench *b, const struct comm_row *row)
{
    if (row->count > INT32_MAX || call_mpi(row, b->all.first, b->all.count) != 0)
        cli_fail(CLI_SETUP, "MPI refused a collective of %zu bytes", row->bytes);
}

// Its calls return when they are done.
static void sync_mpi(const struct comm_bench *b)
{
    (void)b;
}

// The job.

static int comm_main(int argc, char **argv)
{
    static const struct comm_peer by_nccl = {{{"raw_ns", "raw ns", BENCH_SPREAD, 0},
                                              {"of_raw", "over raw", BENCH_SPREAD, 3}},
                                             true,
                                             open_nccl,
                                             submit_nccl,
                                             sync_nccl};
    static const struct comm_peer by_mpi = {{{"mpi_ns", "MPI ns", BENCH_SPREAD, 0},
                                             {"of_mpi", "over MPI", BENCH_SPREAD, 3}},
                                            false,
                                            open_mpi,
                                            submit_mpi,
                                            sync_mpi};
    static const struct comm_peer *const peers[] = {&by_nccl, &by_mpi};
    const struct comm_with with = {
        .group = "jobs",
        .about = "Measures what `weir bench comm` does, beside the same calls of NCCL on CUDA, and "
                 "of\nMPI where the transport is mpi.\n",
        .peers = peers,
        .peer_count = sizeof peers / sizeof *peers,
        .option = {"nccl", "F",
                   "the file of NCCL for the raw calls; without it, the one\nthat is loaded, or "
                   "that the linker finds",
                   CLI_FILE, &raw.file, 0, 0},
    };
    return bench_comm_main(&with, argc, argv);
}

const struct cli_command job_comm = {
    .name = "comm",
    .summary = "collectives beside NCCL's own and MPI's",
    .main = comm_main,
};
