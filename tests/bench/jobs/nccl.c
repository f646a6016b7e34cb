// See the header. The library stays open until the process ends.
#include "tests/bench/jobs/drivers.h"

#include <weir/kit/symbols.h>

static const struct weir_kit_symbol nccl_table[] = {
#define SYMBOL(result, name, parameters) {#name, offsetof(struct raw_nccl, nccl.name), false},
    NCCL_SYMBOLS(SYMBOL)
#undef SYMBOL
};

static bool works(struct raw_nccl *raw, ncclResult_t code, const char *call)
{
    if (code != ncclSuccess)
        snprintf(raw->message, sizeof raw->message, "%s fails: %s", call,
                 raw->nccl.ncclGetErrorString(code));
    return code == ncclSuccess;
}

static bool load(struct raw_nccl *raw, const char *file)
{
    const char *name = file ? file : "libnccl.so.2";
    const size_t size = sizeof raw->message;
    int version = 0;
    void *library = weir_kit_library_open(&name, 1, raw->message, size);
    if (!library ||
        !weir_kit_symbols_load(library, name, nccl_table, BENCH_COUNT(nccl_table), raw,
                               raw->message, size) ||
        !works(raw, raw->nccl.ncclGetVersion(&version), "ncclGetVersion"))
        return false;
    snprintf(raw->name, sizeof raw->name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    snprintf(raw->message, size, "%s is older than 2.18", raw->name);
    return version >= NCCL_OLDEST;
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

// Whether all ranks say so, since a communicator waits for all.
static bool agree(struct raw_nccl *raw, const struct bench_ranks *all, bool fine)
{
    const bool lacks = bench_ranks_slowest(all, fine ? 0 : 1) != 0;
    if (fine && lacks)
        snprintf(raw->message, sizeof raw->message, "another rank lacks it");
    return !lacks;
}

// After a call that was refused NCCL may still wait for other ranks, unless it is told to abort.
static void close_nccl(void *object)
{
    struct raw_nccl *raw = object;
    if (raw->comm)
        raw->nccl.ncclCommAbort(raw->comm);
}

bool raw_nccl_open(struct raw_nccl *raw, const struct bench_ranks *all, const char *file)
{
    struct side *cuda = &raw->cuda;
    cuda->calls = &side_cuda_calls;
    cuda->weir.device = all->ranks[0].device;
    snprintf(raw->message, sizeof raw->message,
             "it is for one rank a process, as under weir launch or --ranks 1");
    const bool fine =
        all->local_count == 1 && cuda->calls->open(cuda, NULL, raw->message, sizeof raw->message) &&
        load(raw, file) &&
        (all->first > 0 || works(raw, raw->nccl.ncclGetUniqueId(&raw->id), "ncclGetUniqueId"));
    if (!agree(raw, all, fine))
        return false;
    side_queues(cuda, 1);
    cli_own(close_nccl, raw);
    share(&all->ranks[0], &raw->id);
    const ncclResult_t code =
        raw->nccl.ncclCommInitRank(&raw->comm, (int)all->count, raw->id, (int)all->first);
    return agree(raw, all, works(raw, code, "ncclCommInitRank"));
}

void raw_nccl_check(struct raw_nccl *raw, ncclResult_t code, const char *call)
{
    if (code != ncclSuccess)
        cli_fail(CLI_SETUP, "a raw call was refused (%s returned %s, %d)", call,
                 raw->nccl.ncclGetErrorString(code), (int)code);
}
