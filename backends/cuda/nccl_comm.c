// NCCL: the library, its communicators, and the threads that create and end them.
//
// They are blocking ones: a call of one that does not block is carried out by a thread of its own
// each time. So what may wait for other ranks without end, which is the creation, the end and the abort,
// is called on threads that nothing joins.
#include <dlfcn.h>
#include <weir/kit/symbols.h>

#include "backends/cuda/nccl.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"

enum {
    REASON_SIZE = 384
};

#define CALL_ENDS_MS 50
#define CREATION_BEAT_NS UINT64_C(10000000)
#define ENDS_NS \
    UINT64_C(2000000000) // for ends of others before a creation; one may wait for other ranks

// The library. It is large, and most programs do not need it, so it is opened when the first communicator is
// created. Opened earlier, it would also be the one that a framework gets that brings its own.

#define LIBRARY "libnccl.so.2"

static const struct weir_kit_symbol table[] = {
#define NCCL_SYMBOL(result, name, parameters) {#name, offsetof(struct nccl_symbols, name), false},
    NCCL_SYMBOLS(NCCL_SYMBOL)
#undef NCCL_SYMBOL
};

static bool take_library(struct cu_nccl *nccl, void *handle, char *reason)
{
    int version = 0;
    if (!weir_kit_symbols_load(handle, LIBRARY, table, sizeof table / sizeof *table, &nccl->api,
                               reason, REASON_SIZE))
        return false;
    if (nccl->api.ncclGetVersion(&version) != ncclSuccess) {
        snprintf(reason, REASON_SIZE, "ncclGetVersion fails");
        return false;
    }
    nccl->version = version;
    snprintf(nccl->engine, sizeof nccl->engine, "NCCL %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    if (version < NCCL_OLDEST)
        snprintf(reason, REASON_SIZE, "%s is older than 2.18", nccl->engine);
    return version >= NCCL_OLDEST;
}

// Loads the library at the first call. False: there is none, with a clause in `reason`. A library that is refused is let
// go; one that is taken stays to the end of the process.
static bool load(struct cu_nccl *nccl, char reason[REASON_SIZE])
{
    pthread_mutex_lock(&nccl->lock);
    if (!nccl->loaded) {
        // The one that the program has loaded already wins, unless the setting is a path.
        const bool named = strcmp(nccl->setting, "auto") != 0;
        const char *name = named ? nccl->setting : LIBRARY;
        void *handle = named ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
        if (!handle)
            handle = weir_kit_library_open(&name, 1, reason, REASON_SIZE);
        nccl->loaded = handle && take_library(nccl, handle, reason);
        if (handle && !nccl->loaded)
            dlclose(handle);
    }
    const bool loaded = nccl->loaded;
    pthread_mutex_unlock(&nccl->lock);
    return loaded;
}

// Threads. Work of threads that nothing joins, since it may wait for other ranks without end: the creation of a
// communicator of NCCL, its end and its abort.

// A task belongs to its thread once it is abandoned, as that of an end always is; else to what waits for it.
enum state {
    DONE,
    PENDING,
    ABANDONED,
};

// Shared by the thread and one other. The thread may outlive the module.
struct cu_task {
    struct cu_comm_threads *comm_threads;
    CUresult (*set_context)(CUcontext);
    CUresult (*set_capture_mode)(CUstreamCaptureMode *);
    CUcontext context;
    struct nccl_symbols nccl;
    ncclComm_t native;
    ncclResult_t (*end)(ncclComm_t); // ncclCommDestroy or ncclCommAbort; NULL: create
    atomic_uint state;

    // Of a creation.
    ncclUniqueId id;
    int rank;
    int count;
    ncclResult_t code;
};

#define LEAVE_NS UINT64_C(5000000000) // for threads to end before their device closes

#define POLL_NS UINT64_C(1000000)

// Ends under way beside which a communicator is made at once.
enum {
    MOST_ENDS = 4
};

// The threads of a device's communicators. Lives until the last of them, and the device, are gone.
struct cu_comm_threads {
    const struct weir_host *host;
    atomic_uint users;  // the device, and the threads
    atomic_uint ending; // of these, threads that end a communicator
};

struct cu_comm_threads *cu_comm_threads_create(const struct weir_host *host)
{
    struct cu_comm_threads *comm_threads = host->allocate(sizeof *comm_threads);
    if (!comm_threads)
        return NULL;
    comm_threads->host = host;
    comm_threads->users = 1;
    return comm_threads;
}

// Waits until the number is at most `most`. False: the time is over.
static bool await(const atomic_uint *number, unsigned most, uint64_t timeout_ns)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    while (atomic_load(number) > most)
        if (!weir_clock_pause(start_ns, timeout_ns, &pause_ns))
            return false;
    return true;
}

static void leave(struct cu_comm_threads *comm_threads)
{
    const struct weir_host *host = comm_threads->host;
    if (atomic_fetch_sub(&comm_threads->users, 1) == 1)
        host->release(comm_threads);
}

bool cu_comm_threads_leave(struct cu_comm_threads *comm_threads)
{
    if (!comm_threads)
        return true;
    const bool alone = await(&comm_threads->users, 1, LEAVE_NS);
    leave(comm_threads);
    return alone;
}

// Ends a thread's part.
static void end_thread(struct cu_comm_threads *comm_threads, bool has_ended_one)
{
    atomic_fetch_sub(&comm_threads->ending, has_ended_one);
    leave(comm_threads);
}

// With NCCL_COMM_BLOCKING=0 NCCL goes on with it after the call. One that failed since, or is given up, is
// aborted.
static ncclResult_t create(struct cu_task *task)
{
    ncclResult_t code =
        task->nccl.ncclCommInitRank(&task->native, task->count, task->id, task->rank);
    if (code != ncclInProgress)
        return code;
    while (code == ncclInProgress && atomic_load(&task->state) == PENDING) {
        weir_clock_sleep_ns(POLL_NS);
        const ncclResult_t asked = task->nccl.ncclCommGetAsyncError(task->native, &code);
        code = asked == ncclSuccess ? code : asked;
    }
    if (code != ncclSuccess)
        (void)task->nccl.ncclCommAbort(task->native);
    return code;
}

static void *run(void *argument)
{
    struct cu_task *task = argument;
    struct cu_comm_threads *comm_threads = task->comm_threads;
    const bool ends_one = task->end;
    task->set_context(task->context);
    // What NCCL does must not spoil what other threads capture: cu_relax().
    task->set_capture_mode(&(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_RELAXED});
    task->code = ends_one ? task->end(task->native) : create(task);
    if (atomic_exchange(&task->state, DONE) == ABANDONED) {
        if (!ends_one && task->code == ncclSuccess)
            (void)task->nccl.ncclCommAbort(task->native);
        comm_threads->host->release(task);
    }
    end_thread(comm_threads, ends_one);
    return NULL;
}

// Starts the task's thread. False: there is no thread, and no task.
static bool start(struct cu_task *task)
{
    struct cu_comm_threads *comm_threads = task->comm_threads;
    const bool ends_one = task->end;
    pthread_t thread;
    atomic_fetch_add(&comm_threads->users, 1);
    atomic_fetch_add(&comm_threads->ending, ends_one);
    sigset_t before;
    weir_thread_hold_signals(&before); // NCCL's own threads are created on this one
    const bool started = pthread_create(&thread, NULL, run, task) == 0;
    weir_thread_release_signals(&before);
    if (started) {
        pthread_detach(thread);
    } else {
        comm_threads->host->release(task);
        end_thread(comm_threads, ends_one);
    }
    return started;
}

// NULL if out of memory. It is released with the host's release(), or by its thread.
static struct cu_task *create_task(const struct cu_comm *comm)
{
    const struct cu_module *module = comm->device->module;
    struct cu_task *task = module->host->allocate(sizeof *task);
    if (!task)
        return NULL;
    task->state = PENDING;
    task->comm_threads = comm->device->comm_threads;
    task->set_context = module->cu.cuCtxSetCurrent;
    task->set_capture_mode = module->cu.cuThreadExchangeStreamCaptureMode;
    task->context = comm->device->context;
    task->nccl = comm->nccl->api;
    return task;
}

// Communicators.

// The task's thread ends the native communicator; if there is none, this one does.
static void end_native(struct cu_comm *comm, ncclResult_t (*end)(ncclComm_t))
{
    struct cu_task *task = comm->parting;
    comm->parting = NULL;
    task->native = comm->native;
    task->end = end;
    task->state = ABANDONED;
    if (!start(task))
        comm->device->module->host->log(WEIR_LOG_WARNING, "cuda",
                                        "no thread to end a communicator of NCCL: it stays");
}

// Creation.

// What each rank tells of its library.
struct intro {
    bool there;
    bool required;
    int version;
    ncclUniqueId id; // of rank 0
    char reason[REASON_SIZE];
};

#define REMEDY_LIBRARY                                                                        \
    "install NCCL 2.18 or newer (libnccl2), or name the libnccl.so.2 of a Python wheel with " \
    "`nccl` in [cuda]"

// Whether all ranks can use NCCL. If not the reason is in the log, or is the error where a rank has named a library.
// All ranks tell the same, so each waits until all have heard it: one that fails ends what is under way.
static weir_status agree(const struct weir_host *host, const struct weir_comm_setup *setup,
                         struct intro *all, bool *out_usable)
{
    char reason[REASON_SIZE + 128] = "";
    char text[sizeof reason + 256];
    bool required = false;
    for (uint32_t i = 0; i < setup->count; i++) {
        required = required || all[i].required;
        if (reason[0])
            continue;
        if (!all[i].there)
            snprintf(reason, sizeof reason, "rank %u has no usable NCCL: %s", i, all[i].reason);
        else if (all[i].version != all[0].version)
            snprintf(reason, sizeof reason,
                     "rank %u has NCCL of version %d, and rank 0 of version %d", i, all[i].version,
                     all[0].version);
    }
    *out_usable = !reason[0];
    if (*out_usable)
        return WEIR_OK;
    const uint8_t heard = 1;
    (void)setup->all_gather(setup, &heard, all, sizeof heard);
    if (required)
        return weir_host_fail(host, WEIR_ERROR_MODULE, REMEDY_LIBRARY, "%s", reason);
    snprintf(text, sizeof text, "collectives run through the host: %s; " REMEDY_LIBRARY, reason);
    host->log(WEIR_LOG_WARNING, "cuda", text);
    return WEIR_OK;
}

// Until the threads of all ranks have ended. NCCL waits without end for a rank that has died or failed,
// so the ranks exchange meanwhile how far they are; `ends` has a byte for each.
static weir_status await_creation(const struct cu_comm *comm, struct cu_task *task,
                                  const struct weir_comm_setup *setup, uint8_t *ends)
{
    const uint64_t start_ns = weir_clock_now_ns();
    weir_status status = WEIR_OK;
    do {
        const uint64_t passed_ns = weir_clock_now_ns() - start_ns;
        const uint64_t left_ns = passed_ns < setup->timeout_ns ? setup->timeout_ns - passed_ns : 0;
        const bool is_last = left_ns <= CREATION_BEAT_NS;
        const uint8_t done = await(&task->state, DONE, is_last ? left_ns : CREATION_BEAT_NS);
        if (done && task->code != ncclSuccess)
            return cu_nccl_error(comm, "ncclCommInitRank", task->code);
        if (!done && is_last)
            return weir_host_fail(comm->device->module->host, WEIR_ERROR_COMM,
                                  "NCCL_DEBUG=INFO makes NCCL print where it waits",
                                  "ncclCommInitRank has not returned in %s on rank %u",
                                  weir_text_duration((double)setup->timeout_ns).text, comm->rank);
        status = setup->all_gather(setup, &done, ends, sizeof done);
    } while (status == WEIR_OK && memchr(ends, 0, setup->count));
    return status;
}

// The task belongs to its thread if that has not ended.
static void end_creation(struct cu_comm *comm, struct cu_task *task, weir_status status)
{
    const struct weir_host *host = comm->device->module->host;
    if (atomic_exchange(&task->state, ABANDONED) == PENDING)
        return;
    if (task->code == ncclSuccess) {
        comm->native = task->native;
        if (status < 0)
            end_native(comm, comm->nccl->api.ncclCommAbort);
    }
    host->release(task);
}

static weir_status make_native(struct cu_comm *comm, const ncclUniqueId *id,
                               const struct weir_comm_setup *setup)
{
    const struct weir_host *host = comm->device->module->host;
    struct cu_task *task = create_task(comm);
    uint8_t *ends = host->allocate(setup->count);
    comm->parting = create_task(comm);
    weir_status status = WEIR_OK;
    if (!task || !ends || !comm->parting) {
        host->release(task);
        host->release(ends);
        return weir_host_no_memory(host, "a communicator");
    }
    task->id = *id;
    task->rank = (int)comm->rank;
    task->count = (int)comm->count;
    // Until its end each communicator has its memory and its threads, and NCCL's end takes longer than its creation may.
    (void)await(&comm->device->comm_threads->ending, MOST_ENDS, ENDS_NS);
    if (start(task)) {
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
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuMemAllocFromPoolAsync, &comm->scratch, 16, device->pool,
           device->memory_stream);
    CU_TRY(&trial, cuMemsetD8Async, comm->scratch, 0, 16, device->memory_stream);
    CU_TRY_AWAIT(&trial, device->memory_stream);
    return cu_tried(&trial, "make a communicator");
}

static void destroy_marks(const struct cu_comm *comm, const struct cu_marks *marks)
{
    for (uint32_t i = 0; i < CU_MARKS; i++)
        if (marks->ring[i].event)
            comm->device->module->cu.cuEventDestroy(marks->ring[i].event);
}

// Within the device's context.
static void release_parts(struct cu_comm *comm)
{
    const struct cu_symbols *cu = &comm->device->module->cu;
    if (comm->scratch && !cu_is_given_up(comm->device))
        cu->cuMemFreeAsync(comm->scratch, comm->device->memory_stream);
    destroy_marks(comm, &comm->after);
    destroy_marks(comm, &comm->before);
    pthread_mutex_destroy(&comm->lock);
    comm->device->module->host->release(comm->parting);
    comm->device->module->host->release(comm);
}

static weir_status make_comm(struct cu_device *device, const struct weir_comm_setup *setup,
                             const ncclUniqueId *id, struct cu_comm **out_comm)
{
    struct cu_module *module = device->module;
    struct cu_scope scope;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    struct cu_comm *comm = module->host->allocate(sizeof *comm);
    if (comm) {
        pthread_mutex_init(&comm->lock, NULL);
        comm->device = device;
        comm->nccl = &module->nccl;
        comm->rank = setup->rank;
        comm->count = setup->count;
        status = make_parts(comm);
        if (status == WEIR_OK)
            status = make_native(comm, id, setup);
        if (status < 0)
            release_parts(comm);
    } else {
        status = weir_host_no_memory(module->host, "a communicator");
    }
    cu_leave(device, &scope);
    if (status < 0)
        return status;
    pthread_mutex_lock(&device->lock);
    comm->next = device->comms;
    device->comms = comm;
    atomic_fetch_add(&module->comms, 1);
    pthread_mutex_unlock(&device->lock);
    *out_comm = comm;
    return WEIR_OK;
}

weir_status cu_comm_create(const struct weir_link *link, weir_device *object,
                           weir_comm *comm_object, const struct weir_comm_setup *setup,
                           void **out_data)
{
    struct cu_device *device = cu_device_of(link, object);
    struct cu_nccl *nccl = &device->module->nccl;
    struct intro own = {.there = false};
    struct intro *all = link->host->allocate(setup->count * sizeof *all);
    struct cu_comm *comm = NULL;
    bool usable;
    if (!all)
        return weir_host_no_memory(link->host, "a communicator");
    own.required = strcmp(nccl->setting, "auto") != 0;
    own.there = load(nccl, own.reason);
    own.version = own.there ? nccl->version : 0;
    if (own.there && setup->rank == 0 && nccl->api.ncclGetUniqueId(&own.id) != ncclSuccess) {
        own.there = false;
        snprintf(own.reason, sizeof own.reason, "ncclGetUniqueId fails: %s",
                 nccl->api.ncclGetLastError(NULL));
    }
    weir_status status = setup->all_gather(setup, &own, all, sizeof own);
    if (status == WEIR_OK)
        status = agree(link->host, setup, all, &usable);
    if (status == WEIR_OK && usable)
        status = make_comm(device, setup, &all[0].id, &comm);
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
    pthread_mutex_lock(&device->lock);
    struct cu_comm **at = &device->comms;
    while (*at != comm)
        at = &(*at)->next;
    *at = comm->next;
    atomic_fetch_sub(&device->module->comms, 1);
    pthread_mutex_unlock(&device->lock);
    if (!comm->aborted)
        end_native(comm, comm->nccl->api.ncclCommDestroy);
    cu_enter_to_destroy(device, &scope);
    release_parts(comm);
    cu_leave(device, &scope);
}

void cu_comm_abort(const struct weir_link *link, weir_comm *object)
{
    struct cu_comm *comm = cu_comm_of(link, object);
    comm->aborted = true; // begin() sees it, or this sees the call
    // NCCL frees the communicator when it is aborted. A call that had begun is left time to end: it takes
    // microseconds, unless it waits for other ranks, which only the abort ends.
    for (int i = 0; i < CALL_ENDS_MS && atomic_load(&comm->inside); i++)
        weir_clock_sleep_ns(1000000);
    end_native(comm, comm->nccl->api.ncclCommAbort);
}

const char *cu_comm_engine(const struct weir_link *link, weir_comm *object)
{
    return cu_comm_of(link, object)->nccl->engine;
}
