// See the header. The library stays open until the process ends.
#include "tests/bench/jobs/nccl.h"

#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

static const struct weir_kit_symbol nccl_table[] = {
#define SYMBOL(result, name, parameters) {#name, offsetof(struct raw_nccl, nccl.name), false},
    NCCL_SYMBOLS(SYMBOL)
#undef SYMBOL
};

static bool load(struct raw_nccl *raw, const char *file, char *message, size_t size)
{
    const char *name = file ? file : "libnccl.so.2";
    int version = 0;
    if (!cu_symbols_load("", &raw->cu, &version, message, size))
        return false;
    void *library = weir_kit_library_open(&name, 1, message, size);
    if (!library || !weir_kit_symbols_load(library, name, nccl_table, BENCH_COUNT(nccl_table), raw,
                                           message, size))
        return false;
    const ncclResult_t error = raw->nccl.ncclGetVersion(&version);
    snprintf(raw->name, sizeof raw->name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    if (error != ncclSuccess)
        snprintf(message, size, "ncclGetVersion fails: %s", raw->nccl.ncclGetErrorString(error));
    else if (version < NCCL_OLDEST)
        snprintf(message, size, "%s is older than 2.18", raw->name);
    return error == ncclSuccess && version >= NCCL_OLDEST;
}

// An id on rank 0, nothing on others.
static bool make_id(struct raw_nccl *raw, uint32_t rank, char *message, size_t size)
{
    const ncclResult_t error = rank == 0 ? raw->nccl.ncclGetUniqueId(&raw->id) : ncclSuccess;
    if (error != ncclSuccess)
        snprintf(message, size, "ncclGetUniqueId fails: %s", raw->nccl.ncclGetErrorString(error));
    return error == ncclSuccess;
}

// Brings rank 0's id to the other ranks, each of which calls it with its own.
static void share(const struct bench_rank *rank, ncclUniqueId *id)
{
    const size_t size = sizeof *id;
    weir_buffer **buffer = cli_allocate(1, sizeof *buffer);
    bench_buffer(rank->device, "bench/id", size, WEIR_PLACE_DEVICE, buffer);
    cli_fine(weir_upload(rank->queue, *buffer, 0, id, size));
    cli_fine(
        weir_queue_broadcast(rank->queue, rank->comm, *buffer, 0, *buffer, 0, size, WEIR_U8, 0));
    cli_fine(weir_download(rank->queue, id, *buffer, 0, size));
}

static bool make_stream(struct raw_nccl *raw, const struct bench_rank *rank, char *message,
                        size_t size)
{
    struct weir_native_device device;
    if (weir_device_get_native(rank->device, &device) < 0 ||
        strcmp(device.api, WEIR_NATIVE_CUDA) != 0) {
        snprintf(message, size, "the device is none of CUDA");
        return false;
    }
    raw->context = device.context;
    CUresult error = raw->cu.cuCtxSetCurrent(raw->context);
    if (error == CUDA_SUCCESS)
        error = raw->cu.cuStreamCreateWithPriority(&raw->stream, CU_STREAM_NON_BLOCKING, 0);
    if (error != CUDA_SUCCESS)
        snprintf(message, size, "the driver refused a stream (%d)", (int)error);
    return error == CUDA_SUCCESS;
}

static bool join(struct raw_nccl *raw, const struct bench_ranks *all, char *message, size_t size)
{
    share(&all->ranks[0], &raw->id);
    const ncclResult_t error =
        raw->cu.cuCtxSetCurrent(raw->context)
            ? ncclUnhandledCudaError
            : raw->nccl.ncclCommInitRank(&raw->comm, (int)all->count, raw->id, (int)all->first);
    if (error != ncclSuccess)
        snprintf(message, size, "%s refused a communicator: %s", raw->name,
                 raw->nccl.ncclGetErrorString(error));
    return error == ncclSuccess;
}

// Whether all ranks say so, since a communicator waits for all.
static bool agree(const struct bench_ranks *all, bool fine, char *message, size_t size)
{
    const bool lacks = bench_ranks_slowest(all, fine ? 0 : 1) != 0;
    if (fine && lacks)
        snprintf(message, size, "another rank lacks it");
    return !lacks;
}

static void close_nccl(void *object)
{
    struct raw_nccl *raw = object;
    if (raw->comm)
        (raw->failed ? raw->nccl.ncclCommAbort : raw->nccl.ncclCommDestroy)(raw->comm);
    if (raw->stream && raw->cu.cuCtxSetCurrent(raw->context) == CUDA_SUCCESS)
        raw->cu.cuStreamDestroy(raw->stream);
}

bool raw_nccl_open(struct raw_nccl *raw, const struct bench_ranks *all, bool wanted,
                   const char *file, char *message, size_t size)
{
    const bool alone = all->local_count == 1;
    if (wanted && !alone)
        snprintf(message, size, "it is for one rank a process, as under weir launch or --ranks 1");
    const bool fine = wanted && alone && load(raw, file, message, size) &&
                      make_stream(raw, &all->ranks[0], message, size) &&
                      make_id(raw, all->first, message, size);
    cli_own(close_nccl, raw);
    if (!agree(all, fine, message, size))
        return false;
    raw->failed = !agree(all, join(raw, all, message, size), message, size);
    return !raw->failed;
}

static _Noreturn void refuse(const char *call, int code, const char *name)
{
    cli_fail(CLI_SETUP, "a raw call was refused (%s returned %s, %d)", call, name, code);
}

void raw_nccl_check(struct raw_nccl *raw, ncclResult_t code, const char *call)
{
    raw->failed = raw->failed || code != ncclSuccess;
    if (code != ncclSuccess)
        refuse(call, (int)code, raw->nccl.ncclGetErrorString(code));
}

void raw_nccl_check_driver(struct raw_nccl *raw, CUresult code, const char *call)
{
    raw->failed = raw->failed || code != CUDA_SUCCESS;
    if (code != CUDA_SUCCESS)
        refuse(call, (int)code, "an error");
}
