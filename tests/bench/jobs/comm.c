// The job `comm`: weir bench comm beside NCCL's own calls on CUDA, on the same memory, and MPI's own where the
// transport is mpi. NCCL has a communicator and a stream of its own.
#define _GNU_SOURCE // RTLD_NOLOAD
#include <dlfcn.h>

#include "tests/bench/jobs/drivers.h"

// NCCL.

static struct comm_raw {
    const char *file; // NULL: the one that is loaded, or the linker's
    struct raw_nccl api;
    char *src, *dst;
} raw;

static bool open_nccl(struct comm_bench *b)
{
    struct weir_native_buffer src, dst;
    if (!raw_nccl_open(&raw.api, &b->all, raw.file)) {
        bench_note("no raw NCCL beside it: %.250s", raw.api.message);
        return false;
    }
    cli_fine(weir_buffer_get_native(b->all.ranks[0].src, &src));
    cli_fine(weir_buffer_get_native(b->all.ranks[0].dst, &dst));
    raw.src = (char *)(uintptr_t)src.address;
    raw.dst = (char *)(uintptr_t)dst.address;
    bench_note("raw: %s on a stream of its own, the same memory", raw.api.name);
    return true;
}

static void submit_nccl(const struct comm_bench *b, const struct comm_row *row)
{
    const ncclComm_t comm = raw.api.comm;
    const CUstream stream = raw.api.cuda.cu->queues[0];
    const size_t count = row->count;
    if (row->kind == WEIR_BROADCAST)
        RAW_NCCL(&raw.api, ncclBroadcast, raw.src, raw.dst, count, ncclFloat32, 0, comm, stream);
    else if (row->kind == WEIR_ALL_GATHER)
        RAW_NCCL(&raw.api, ncclAllGather, raw.src, raw.dst, count, ncclFloat32, comm, stream);
    else
        RAW_NCCL(&raw.api, ncclAllReduce, raw.src, raw.dst, count, ncclFloat32, ncclSum, comm,
                 stream);
}

static void sync_nccl(const struct comm_bench *b)
{
    raw.api.cuda.calls->finish(&raw.api.cuda, 0);
}

// MPI, by the library that the transport has started. Its headers are not needed: handles, which are pointers
// in Open MPI and ints in MPICH, are passed as words, of which an int is the lower half in the registers and
// stack slots of Linux's calling conventions.

typedef uintptr_t handle;

static struct comm_mpi {
    handle world, element, sum;
    float *src, *dst;
    int (*all_reduce)(const void *, void *, int, handle, handle, handle);
} mpi = {.world = 0x44000000, .element = 0x4c00040a, .sum = 0x58000003}; // MPICH's

static void close_mpi(void *object)
{
    dlclose(object);
}

static bool open_mpi(struct comm_bench *b)
{
    static const char *const names[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};
    const char *engine = weir_comm_engine(b->all.ranks[0].comm);
    void *library = NULL;
    if (b->all.local_count > 1 || !strstr(engine, "MPI"))
        return false;
    for (size_t i = 0; i < BENCH_COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return false;
    cli_own(close_mpi, library);
    if (dlsym(library, "ompi_mpi_comm_world")) {
        mpi.world = (handle)dlsym(library, "ompi_mpi_comm_world");
        mpi.element = (handle)dlsym(library, "ompi_mpi_float");
        mpi.sum = (handle)dlsym(library, "ompi_mpi_op_sum");
    }
    void *symbol = dlsym(library, "MPI_Allreduce");
    memcpy(&mpi.all_reduce, &symbol, sizeof symbol);
    mpi.src = cli_allocate(1, b->largest);
    mpi.dst = cli_allocate(1, b->largest);
    bench_note("beside %.200s on memory of the host", engine);
    return true;
}

static void submit_mpi(const struct comm_bench *b, const struct comm_row *row)
{
    if (row->count > INT32_MAX ||
        mpi.all_reduce(mpi.src, mpi.dst, (int)row->count, mpi.element, mpi.sum, mpi.world) != 0)
        cli_fail(CLI_SETUP, "MPI refused a collective of %zu bytes", row->bytes);
}

// Its calls return when they are done.
static void sync_mpi(const struct comm_bench *b)
{
}

// The job.

int job_comm(int argc, char **argv)
{
    static const struct comm_way by_nccl = {
        .name = "raw",
        .kinds = 1u << WEIR_ALL_REDUCE | 1u << WEIR_BROADCAST | 1u << WEIR_ALL_GATHER,
        .on_weirs_memory = true,
        .open = open_nccl,
        .submit = submit_nccl,
        .sync = sync_nccl,
    };
    static const struct comm_way by_mpi = {
        .name = "mpi",
        .kinds = 1u << WEIR_ALL_REDUCE,
        .open = open_mpi,
        .submit = submit_mpi,
        .sync = sync_mpi,
    };
    const struct comm_with with = {
        .others = {&by_nccl, &by_mpi},
        .option = {"nccl", "F",
                   "the file of NCCL for the raw calls; without it, the one\nthat is loaded, or "
                   "that the linker finds",
                   CLI_FILE, &raw.file, 0, 0},
    };
    return bench_comm_main(&with, argc, argv);
}
