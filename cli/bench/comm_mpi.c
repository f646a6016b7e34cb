// MPI's own collectives, on the library that the transport `mpi` has started. Its headers are not
// needed: handles, which are pointers in Open MPI and ints in MPICH, are passed as words, of which an
// int is the lower half in the registers and stack slots of Linux's calling conventions.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/comm.h"

typedef uintptr_t handle;

struct comm_mpi {
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
};

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

static bool find_functions(struct comm_mpi *mpi)
{
    const struct {
        const char *name;
        void *at;
    } symbols[] = {
        {"MPI_Barrier", &mpi->barrier},      {"MPI_Allreduce", &mpi->all_reduce},
        {"MPI_Reduce", &mpi->reduce},        {"MPI_Bcast", &mpi->broadcast},
        {"MPI_Allgather", &mpi->all_gather}, {"MPI_Reduce_scatter_block", &mpi->reduce_scatter},
        {"MPI_Alltoall", &mpi->all_to_all},  {"MPI_Sendrecv", &mpi->exchange},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(mpi->library, symbols[i].name);
        if (!symbol)
            return false;
        memcpy(symbols[i].at, &symbol, sizeof symbol);
    }
    return true;
}

static bool is_started(const struct comm_mpi *mpi)
{
    int (*initialized)(int *);
    int flag = 0;
    void *symbol = dlsym(mpi->library, "MPI_Initialized");
    memcpy(&initialized, &symbol, sizeof initialized);
    return symbol && initialized(&flag) == 0 && flag;
}

static bool find_handles(struct comm_mpi *mpi)
{
    int (*version)(char *, int *);
    int size = 0;
    void *symbol = dlsym(mpi->library, "MPI_Get_library_version");
    memcpy(&version, &symbol, sizeof version);
    if (!symbol || version(mpi->version, &size) != 0)
        return false;
    mpi->version[strcspn(mpi->version, ",\n")] = '\0';
    mpi->world = (handle)dlsym(mpi->library, "ompi_mpi_comm_world");
    mpi->element = (handle)dlsym(mpi->library, "ompi_mpi_float");
    mpi->sum = (handle)dlsym(mpi->library, "ompi_mpi_op_sum");
    if (mpi->world)
        return mpi->element && mpi->sum;
    mpi->world = MPICH_WORLD;
    mpi->element = MPICH_FLOAT;
    mpi->sum = MPICH_SUM;
    return strstr(mpi->version, "MPICH") != NULL;
}

struct comm_mpi *comm_mpi_open(size_t bytes)
{
    struct comm_mpi *mpi = calloc(1, sizeof *mpi);
    if (!mpi)
        return NULL;
    mpi->library = find_library();
    if (mpi->library && is_started(mpi) && find_functions(mpi) && find_handles(mpi)) {
        mpi->src = calloc(1, bytes);
        mpi->dst = calloc(1, bytes);
    }
    if (!mpi->src || !mpi->dst)
        comm_mpi_close(&mpi);
    return mpi;
}

void comm_mpi_close(struct comm_mpi **mpi)
{
    if (!*mpi)
        return;
    free((*mpi)->src);
    free((*mpi)->dst);
    if ((*mpi)->library)
        dlclose((*mpi)->library);
    free(*mpi);
    *mpi = NULL;
}

const char *comm_mpi_version(const struct comm_mpi *mpi)
{
    return mpi->version;
}

static int call(const struct comm_mpi *mpi, const struct comm_row *row, uint32_t rank,
                uint32_t ranks)
{
    const int count = (int)row->count;
    const handle type = mpi->element, world = mpi->world;
    const int next = (int)((rank + 1) % ranks), last = (int)((rank + ranks - 1) % ranks);
    char status[256]; // larger than any library's
    switch (row->kind) {
    case WEIR_ALL_REDUCE:
        return mpi->all_reduce(mpi->src, mpi->dst, count, type, mpi->sum, world);
    case WEIR_REDUCE:
        return mpi->reduce(mpi->src, mpi->dst, count, type, mpi->sum, 0, world);
    case WEIR_BROADCAST:
        return mpi->broadcast(mpi->dst, count, type, 0, world);
    case WEIR_ALL_GATHER:
        return mpi->all_gather(mpi->src, count, type, mpi->dst, count, type, world);
    case WEIR_REDUCE_SCATTER:
        return mpi->reduce_scatter(mpi->src, mpi->dst, count, type, mpi->sum, world);
    case WEIR_ALL_TO_ALL:
        return mpi->all_to_all(mpi->src, count, type, mpi->dst, count, type, world);
    case WEIR_EXCHANGE:
        return mpi->exchange(mpi->src, count, type, next, 1, mpi->dst, count, type, last, 1, world,
                             status);
    default:
        return -1;
    }
}

double comm_mpi_time(struct comm_mpi *mpi, const struct comm_row *row, uint32_t rank,
                     uint32_t count, uint64_t iterations)
{
    if (row->count > INT32_MAX || mpi->barrier(mpi->world) != 0)
        return -1;
    const uint64_t began = cli_now_ns();
    for (uint64_t i = 0; i < iterations; i++)
        if (call(mpi, row, rank, count) != 0)
            return -1;
    return (double)(cli_now_ns() - began) / (double)iterations;
}
