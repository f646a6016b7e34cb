// See the header. The library stays open until the process ends.
#include "tests/bench/jobs/nccl.h"

#include <stdio.h>
#include <weir/kit/symbols.h>

static const struct weir_kit_symbol nccl_table[] = {
#define SYMBOL(result, name, parameters) {#name, offsetof(struct raw_nccl, nccl.name), false},
    NCCL_SYMBOLS(SYMBOL)
#undef SYMBOL
};

bool raw_nccl_load(struct raw_nccl *raw, const char *file, char *message, size_t size)
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

bool raw_nccl_make_id(const struct raw_nccl *raw, uint32_t rank, ncclUniqueId *id, char *message,
                      size_t size)
{
    const ncclResult_t error = rank == 0 ? raw->nccl.ncclGetUniqueId(id) : ncclSuccess;
    if (error != ncclSuccess)
        snprintf(message, size, "ncclGetUniqueId fails: %s", raw->nccl.ncclGetErrorString(error));
    return error == ncclSuccess;
}

void raw_nccl_share(const struct bench_rank *rank, ncclUniqueId *id)
{
    const size_t size = sizeof *id;
    weir_buffer **buffer = cli_allocate(1, sizeof *buffer);
    bench_buffer(rank->device, "bench/id", size, WEIR_PLACE_DEVICE, buffer);
    cli_fine(weir_upload(rank->queue, *buffer, 0, id, size));
    cli_fine(
        weir_queue_broadcast(rank->queue, rank->comm, *buffer, 0, *buffer, 0, size, WEIR_U8, 0));
    cli_fine(weir_download(rank->queue, id, *buffer, 0, size));
}

static _Noreturn void refuse(const char *call, int code, const char *name)
{
    cli_fail(CLI_SETUP, "a raw call was refused (%s returned %s, %d)", call, name, code);
}

void raw_nccl_check(const struct raw_nccl *raw, ncclResult_t code, const char *call)
{
    if (code != ncclSuccess)
        refuse(call, (int)code, raw->nccl.ncclGetErrorString(code));
}

void raw_nccl_check_driver(CUresult code, const char *call)
{
    if (code != CUDA_SUCCESS)
        refuse(call, (int)code, "an error");
}
