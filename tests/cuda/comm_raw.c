// See the header.
#define _GNU_SOURCE // RTLD_NOLOAD
#include "tests/cuda/comm_raw.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/nccl.h"
#include "backends/cuda/symbols.h"
#include "base/clock.h"
#include "core/object/comm.h"
#include "tests/cuda/comm_speed.h"

static struct nccl_symbols nccl;
static struct cu_symbols cu;
static ncclComm_t raws[2]; // enum comm_raw_which
static CUstream stream;
static void *memory;
static CUgraphExec executable;
static char reason[512];

static bool find(void)
{
    void *handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    int version;
    if (!handle || !cu_symbols_load("", &cu, &version, reason, sizeof reason))
        return false;
#define FIND(result, name, parameters)                \
    do {                                              \
        void *address = dlsym(handle, #name);         \
        memcpy(&nccl.name, &address, sizeof address); \
        if (!address)                                 \
            return false;                             \
    } while (0);
    NCCL_SYMBOLS(FIND)
#undef FIND
    return true;
}

// Rank 0's id, to all.
static bool share(weir_queue *queue, weir_comm *comm, weir_buffer *buffer, ncclUniqueId *id)
{
    if (weir_comm_rank(comm) == 0 && nccl.ncclGetUniqueId(id) != ncclSuccess)
        return false;
    return weir_upload(queue, buffer, 0, id, sizeof *id) == WEIR_OK &&
           weir_queue_broadcast(queue, comm, buffer, 0, buffer, 0, sizeof *id, WEIR_U8, 0) ==
               WEIR_OK &&
           weir_download(queue, id, buffer, 0, sizeof *id) == WEIR_OK;
}

// Then NCCL's calls return before they are done, and its own ones here do not wait for that.
static bool may_block(void)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    if (!blocking || strcmp(blocking, "0") != 0)
        return true;
    snprintf(reason, sizeof reason,
             "NCCL_COMM_BLOCKING=0 is set, and raw calls cannot take turns with Weir's then");
    return false;
}

bool comm_raw_open(weir_queue *queue, weir_comm *comm, weir_buffer *buffer)
{
    ncclUniqueId id = {{0}};
    struct weir_native_device device = {.struct_size = sizeof device};
    struct weir_native_buffer native = {.struct_size = sizeof native};
    if (!may_block() || !find() || !share(queue, comm, buffer, &id) ||
        weir_device_get_native(weir_comm_device(comm), &device) < 0 ||
        weir_buffer_get_native(buffer, &native) < 0 ||
        cu.cuCtxSetCurrent(device.context) != CUDA_SUCCESS ||
        cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS ||
        nccl.ncclCommInitRank(&raws[COMM_RAW_OTHER], (int)weir_comm_count(comm), id,
                              (int)weir_comm_rank(comm)) != ncclSuccess) {
        if (!reason[0])
            snprintf(reason, sizeof reason, "%s", weir_last_error_text());
        return false;
    }
    raws[COMM_RAW_SAME] = cu_comm_of(comm->engine, comm)->native;
    memory = (void *)(uintptr_t)native.address;
    return true;
}

const char *comm_raw_reason(void)
{
    return reason;
}

static void drop_graph(void)
{
    if (executable)
        cu.cuGraphExecDestroy(executable);
    executable = NULL;
}

void comm_raw_close(void)
{
    drop_graph();
    nccl.ncclCommDestroy(raws[COMM_RAW_OTHER]);
    cu.cuStreamDestroy(stream);
}

bool comm_raw_all_reduce(enum comm_raw_which which, size_t bytes)
{
    return nccl.ncclAllReduce(memory, memory, bytes / 4, ncclFloat32, ncclSum, raws[which],
                              stream) == ncclSuccess;
}

bool comm_raw_finish(void)
{
    return cu.cuStreamSynchronize(stream) == CUDA_SUCCESS;
}

bool comm_raw_capture(size_t bytes, int calls)
{
    CUgraph graph = NULL;
    drop_graph();
    bool good = cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS;
    for (int i = 0; i < calls && good; i++)
        good = comm_raw_all_reduce(COMM_RAW_OTHER, bytes);
    good = cu.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && good &&
           cu.cuGraphInstantiateWithFlags(&executable, graph, 0) == CUDA_SUCCESS &&
           cu.cuGraphUpload(executable, stream) == CUDA_SUCCESS;
    if (graph)
        cu.cuGraphDestroy(graph);
    return good;
}

bool comm_raw_launch(void)
{
    return cu.cuGraphLaunch(executable, stream) == CUDA_SUCCESS;
}

// The shortest of some rows, in nanoseconds a call.
#define SHORTEST(statement, out_ns)                                             \
    do {                                                                        \
        *(out_ns) = 1e9;                                                        \
        for (int row = 0; row < 100; row++) {                                   \
            const uint64_t start_ns = weir_clock_now_ns();                      \
            for (int i = 0; i < 100; i++)                                       \
                statement;                                                      \
            const double took = (double)(weir_clock_now_ns() - start_ns) / 100; \
            *(out_ns) = took < *(out_ns) ? took : *(out_ns);                    \
        }                                                                       \
    } while (0)

static double record_after_call(CUevent event)
{
    double sum_ns = 0;
    for (int i = 0; i < 1000; i++) {
        (void)comm_raw_all_reduce(COMM_RAW_SAME, 1024);
        const uint64_t start_ns = weir_clock_now_ns();
        (void)cu.cuEventRecord(event, stream);
        sum_ns += (double)(weir_clock_now_ns() - start_ns);
        if (i % 40 == 39)
            (void)comm_raw_finish();
    }
    return sum_ns / 1000;
}

void comm_raw_driver_calls(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CUcontext context;
    CUevent event;
    double clock_ns, current_ns, lock_ns, query_ns;
    if (cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return;
    SHORTEST((void)weir_clock_now_ns(), &clock_ns);
    SHORTEST((void)cu.cuCtxGetCurrent(&context), &current_ns);
    SHORTEST((pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex)), &lock_ns);
    const double record_ns = record_after_call(event);
    (void)comm_raw_finish();
    SHORTEST((void)cu.cuEventQuery(event), &query_ns);
    cu.cuEventDestroy(event);
    comm_check(true,
               "the clock takes %.0f ns, cuCtxGetCurrent %.0f, a mutex %.0f, cuEventQuery %.0f, "
               "cuEventRecord after an all-reduce %.0f with the clock",
               clock_ns, current_ns, lock_ns, query_ns, record_ns);
}
#undef SHORTEST
