// Communicators of NCCL.
//
// They are blocking ones: a call of one that does not block is carried out by a thread of its own
// each time. So what may wait for other ranks without end, which is the creation, the end and the abort,
// is called on threads that nothing joins (nccl_task.c).
#include "backends/cuda/ask.h"
#include "backends/cuda/nccl_task.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/text.h"

#define CALL_ENDS_MS 50
#define CREATION_BEAT_NS UINT64_C(10000000)
#define ENDS_NS \
    UINT64_C(2000000000) // for ends of others before a creation; one may wait for other ranks

// The task's thread ends the native communicator; if there is none, this one does.
static void end_native(struct cu_comm *comm, ncclResult_t (*end)(ncclComm_t))
{
    struct cu_task *task = comm->parting;
    comm->parting = NULL;
    task->native = comm->native;
    task->end = end;
    if (!cu_task_start_end(task))
        comm->device->module->host->log(WEIR_LOG_WARNING, "cuda",
                                        "no thread to end a communicator of NCCL: it stays");
}

weir_status cu_nccl_error(const struct cu_comm *comm, const char *call, ncclResult_t code)
{
    struct weir_error detail = {.status = WEIR_ERROR_COMM, .native_code = (int)code};
    const struct nccl_symbols *nccl = &comm->nccl->api;
    const char *last = nccl->ncclGetLastError(NULL);
    snprintf(detail.native_call, sizeof detail.native_call, "%s", call);
    snprintf(detail.native_name, sizeof detail.native_name, "%s", nccl->ncclGetErrorString(code));
    snprintf(detail.remedy, sizeof detail.remedy,
             "NCCL_DEBUG=WARN makes NCCL print what it has met");
    return weir_host_report(comm->device->module->host, &detail, "%s: %s%s%.600s",
                            comm->nccl->engine, detail.native_name, last && last[0] ? ": " : "",
                            last ? last : "");
}

// Creation.

// What each rank tells of its library.
struct intro {
    bool there;
    bool required;
    int version;
    ncclUniqueId id; // of rank 0
    char reason[CU_NCCL_REASON];
};

static void introduce(struct cu_nccl *nccl, uint32_t rank, struct intro *own)
{
    own->required = strcmp(nccl->setting, "auto") != 0;
    own->there = cu_nccl_load(nccl, own->reason);
    own->version = own->there ? nccl->version : 0;
    if (!own->there || rank != 0 || nccl->api.ncclGetUniqueId(&own->id) == ncclSuccess)
        return;
    own->there = false;
    snprintf(own->reason, sizeof own->reason, "ncclGetUniqueId fails: %s",
             nccl->api.ncclGetLastError(NULL));
}

#define REMEDY_LIBRARY                                                                        \
    "install NCCL 2.18 or newer (libnccl2), or name the libnccl.so.2 of a Python wheel with " \
    "`nccl` in [cuda]"

// Why not all ranks can use NCCL, and whether one of them has named a library.
struct refusal {
    char reason[CU_NCCL_REASON + 128];
    bool required;
};

static bool is_usable(const struct intro *all, uint32_t count, struct refusal *refusal)
{
    for (uint32_t i = 0; i < count; i++) {
        refusal->required = refusal->required || all[i].required;
        if (refusal->reason[0])
            continue;
        if (!all[i].there)
            snprintf(refusal->reason, sizeof refusal->reason, "rank %u has no usable NCCL: %s", i,
                     all[i].reason);
        else if (all[i].version != all[0].version)
            snprintf(refusal->reason, sizeof refusal->reason,
                     "rank %u has NCCL of version %d, and rank 0 of version %d", i, all[i].version,
                     all[0].version);
    }
    return refusal->reason[0] == '\0';
}

// In the log, or as an error where a rank has named a library. All ranks tell the same, so each waits
// until all have heard it: one that fails ends what is under way.
static weir_status tell(const struct weir_host *host, const struct weir_comm_setup *setup,
                        const struct refusal *refusal, struct intro *all)
{
    const uint8_t heard = 1;
    (void)setup->all_gather(setup, &heard, all, sizeof heard);
    if (refusal->required)
        return weir_host_fail(host, WEIR_ERROR_MODULE, REMEDY_LIBRARY, "%s", refusal->reason);
    char text[sizeof refusal->reason + 256];
    snprintf(text, sizeof text, "collectives run through the host: %s; " REMEDY_LIBRARY,
             refusal->reason);
    host->log(WEIR_LOG_WARNING, "cuda", text);
    return WEIR_OK;
}

static weir_status fail_late(const struct cu_comm *comm, uint64_t timeout_ns)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, (double)timeout_ns);
    return weir_host_fail(comm->device->module->host, WEIR_ERROR_COMM,
                          "NCCL_DEBUG=INFO makes NCCL print where it waits",
                          "ncclCommInitRank has not returned in %s on rank %u", duration,
                          comm->rank);
}

// Until the threads of all ranks have ended. NCCL waits without end for a rank that has died or failed,
// so the ranks exchange meanwhile how far they are; `ends` has a byte for each.
static weir_status await_creation(const struct cu_comm *comm, struct cu_task *task,
                                  const struct weir_comm_setup *setup, uint8_t *ends)
{
    const uint64_t start_ns = weir_clock_now_ns();
    const uint64_t until_ns = setup->timeout_ns > UINT64_MAX / 2 - start_ns
                                  ? UINT64_MAX / 2
                                  : start_ns + setup->timeout_ns;
    weir_status status = WEIR_OK;
    do {
        const uint64_t next_ns = weir_clock_now_ns() + CREATION_BEAT_NS;
        const uint8_t done = cu_task_wait(task, next_ns < until_ns ? next_ns : until_ns);
        if (done && task->code != ncclSuccess)
            return cu_nccl_error(comm, "ncclCommInitRank", task->code);
        if (!done && weir_clock_now_ns() >= until_ns)
            return fail_late(comm, setup->timeout_ns);
        status = setup->all_gather(setup, &done, ends, sizeof done);
    } while (status == WEIR_OK && memchr(ends, 0, setup->count));
    return status;
}

// The task belongs to its thread if that has not ended.
static void end_creation(struct cu_comm *comm, struct cu_task *task, weir_status status)
{
    if (!cu_task_take(task))
        return;
    if (task->code == ncclSuccess) {
        comm->native = task->native;
        if (status < 0)
            end_native(comm, comm->nccl->api.ncclCommAbort);
    }
    task->host->release(task);
}

static weir_status make_native(struct cu_comm *comm, const ncclUniqueId *id,
                               const struct weir_comm_setup *setup)
{
    const struct weir_host *host = comm->device->module->host;
    struct cu_task *task = cu_task_create(comm);
    uint8_t *ends = host->allocate(setup->count);
    comm->parting = cu_task_create(comm);
    weir_status status = WEIR_OK;
    if (!task || !ends || !comm->parting) {
        host->release(task);
        host->release(ends);
        return weir_host_no_memory(host, "a communicator");
    }
    task->id = *id;
    task->rank = (int)comm->rank;
    task->count = (int)comm->count;
    cu_task_await_ends(comm->device->comm_threads, weir_clock_now_ns() + ENDS_NS);
    if (cu_task_start_creation(task)) {
        status = await_creation(comm, task, setup, ends);
        end_creation(comm, task, status);
    } else {
        status = weir_host_fail(host, WEIR_ERROR_SYSTEM, "raise the limit of threads",
                                "no thread to create a communicator");
    }
    host->release(ends);
    return status;
}

// Within the device's context.
static weir_status make_parts(struct cu_comm *comm)
{
    struct cu_device *device = comm->device;
    const struct cu_symbols *cu = &device->module->cu;
    const char *call = "cuMemAllocFromPoolAsync";
    CUresult code =
        cu->cuMemAllocFromPoolAsync(&comm->scratch, 16, device->pool, device->memory_stream);
    if (code == CUDA_SUCCESS) {
        call = "cuMemsetD8Async";
        code = cu->cuMemsetD8Async(comm->scratch, 0, 16, device->memory_stream);
    }
    if (code == CUDA_SUCCESS) {
        call = "cuStreamSynchronize";
        code = cu_await_stream(cu, device->memory_stream);
    }
    if (code == CUDA_SUCCESS) {
        call = "cuEventCreate";
        code = cu_comm_create_marks(comm);
    }
    return code == CUDA_SUCCESS ? WEIR_OK
                                : cu_native_error(device, call, code, "make a communicator");
}

// Within the device's context.
static void release_parts(struct cu_comm *comm)
{
    const struct cu_symbols *cu = &comm->device->module->cu;
    if (comm->scratch && !cu_is_given_up(comm->device))
        cu->cuMemFreeAsync(comm->scratch, comm->device->memory_stream);
    cu_comm_destroy_marks(comm);
    pthread_mutex_destroy(&comm->lock);
    comm->device->module->host->release(comm->parting);
    comm->device->module->host->release(comm);
}

static void enlist(struct cu_comm *comm)
{
    struct cu_device *device = comm->device;
    pthread_mutex_lock(&device->lock);
    comm->next = device->comms;
    comm->link = &device->comms;
    if (comm->next)
        comm->next->link = &comm->next;
    device->comms = comm;
    atomic_fetch_add(&device->module->nccl->comms, 1);
    pthread_mutex_unlock(&device->lock);
}

static void delist(struct cu_comm *comm)
{
    pthread_mutex_lock(&comm->device->lock);
    *comm->link = comm->next;
    if (comm->next)
        comm->next->link = comm->link;
    atomic_fetch_sub(&comm->device->module->nccl->comms, 1);
    pthread_mutex_unlock(&comm->device->lock);
}

static weir_status make_comm(struct cu_device *device, const struct weir_comm_setup *setup,
                             const ncclUniqueId *id, struct cu_comm **out_comm)
{
    struct cu_module *module = device->module;
    struct cu_scope scope;
    struct cu_comm *comm = module->host->allocate(sizeof *comm);
    if (!comm)
        return weir_host_no_memory(module->host, "a communicator");
    weir_barrier_init();
    pthread_mutex_init(&comm->lock, NULL);
    comm->device = device;
    comm->nccl = module->nccl;
    comm->rank = setup->rank;
    comm->count = setup->count;
    weir_status status = cu_enter(device, &scope);
    if (status == WEIR_OK) {
        status = make_parts(comm);
        if (status == WEIR_OK)
            status = make_native(comm, id, setup);
        if (status < 0)
            release_parts(comm);
        cu_leave(device, &scope);
    } else {
        pthread_mutex_destroy(&comm->lock);
        module->host->release(comm);
    }
    if (status < 0)
        return status;
    enlist(comm);
    *out_comm = comm;
    return WEIR_OK;
}

weir_status cu_comm_create(const struct weir_link *link, weir_device *object,
                           weir_comm *comm_object, const struct weir_comm_setup *setup,
                           void **out_data)
{
    struct cu_device *device = cu_device_of(link, object);
    struct intro own = {.there = false};
    struct intro *all = link->host->allocate(setup->count * sizeof *all);
    struct cu_comm *comm = NULL;
    struct refusal refusal = {.required = false};
    (void)comm_object;
    if (!all)
        return weir_host_no_memory(link->host, "a communicator");
    introduce(device->module->nccl, setup->rank, &own);
    weir_status status = setup->all_gather(setup, &own, all, sizeof own);
    if (status == WEIR_OK)
        status = is_usable(all, setup->count, &refusal)
                     ? make_comm(device, setup, &all[0].id, &comm)
                     : tell(link->host, setup, &refusal, all);
    link->host->release(all);
    *out_data = comm;
    return status;
}

// Its end.

void cu_comm_destroy(const struct weir_link *link, weir_comm *object)
{
    struct cu_comm *comm = cu_comm_of(link, object);
    struct cu_device *device = comm->device;
    struct cu_scope scope;
    delist(comm);
    if (!comm->aborted)
        end_native(comm, comm->nccl->api.ncclCommDestroy);
    cu_enter_to_destroy(device, &scope);
    release_parts(comm);
    cu_leave(device, &scope);
}

static bool is_inside(struct cu_comm *comm)
{
    return atomic_load_explicit(&comm->inside, memory_order_acquire);
}

// NCCL frees the communicator when it is aborted. A call that had begun is left time to end: it takes
// microseconds, unless it waits for other ranks, which only the abort ends.
static void let_call_end(struct cu_comm *comm)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < CALL_ENDS_MS && is_inside(comm); i++)
        nanosleep(&pause, NULL);
}

void cu_comm_abort(const struct weir_link *link, weir_comm *object)
{
    struct cu_comm *comm = cu_comm_of(link, object);
    comm->aborted = true;
    weir_barrier_heavy(); // cu_comm_begin() sees it, or is_inside() sees the call
    let_call_end(comm);
    end_native(comm, comm->nccl->api.ncclCommAbort);
}

void cu_comm_give_up(const struct weir_link *link, weir_comm *object,
                     const struct weir_error *cause)
{
    cu_give_up(cu_comm_of(link, object)->device, cause);
}

const char *cu_comm_engine(const struct weir_link *link, weir_comm *object)
{
    return cu_comm_of(link, object)->nccl->engine;
}
