#include "backends/cuda/nccl_task.h"

#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

#define LEAVE_NS UINT64_C(5000000000) // for threads to end before their device closes

#define POLL_NS UINT64_C(1000000)

// Ends under way beside which a communicator is made at once.
enum {
    MOST_ENDS = 4
};

// The threads of a device's communicators. Lives until the last of them, and the device, are gone.
struct cu_comm_threads {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned running;
    unsigned ending; // of these, those that end a communicator
    bool left;       // by the device
};

struct cu_comm_threads *cu_comm_threads_create(const struct weir_host *host)
{
    struct cu_comm_threads *comm_threads = host->allocate(sizeof *comm_threads);
    pthread_condattr_t attributes;
    if (!comm_threads)
        return NULL;
    pthread_mutex_init(&comm_threads->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&comm_threads->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return comm_threads;
}

static void release_threads(struct cu_comm_threads *comm_threads, const struct weir_host *host)
{
    pthread_cond_destroy(&comm_threads->changed);
    pthread_mutex_destroy(&comm_threads->lock);
    host->release(comm_threads);
}

bool cu_comm_threads_leave(struct cu_comm_threads *comm_threads, const struct weir_host *host)
{
    if (!comm_threads)
        return true;
    const struct timespec until = weir_clock_timespec(weir_clock_now_ns() + LEAVE_NS);
    int error = 0;
    pthread_mutex_lock(&comm_threads->lock);
    while (comm_threads->running > 0 && error == 0)
        error = pthread_cond_timedwait(&comm_threads->changed, &comm_threads->lock, &until);
    const bool alone = comm_threads->running == 0;
    comm_threads->left = true;
    pthread_mutex_unlock(&comm_threads->lock);
    if (alone)
        release_threads(comm_threads, host);
    return alone;
}

// Ends a thread's part. The last one frees what is left.
static void end_thread(struct cu_comm_threads *comm_threads, const struct weir_host *host,
                       bool has_ended_one)
{
    pthread_mutex_lock(&comm_threads->lock);
    comm_threads->ending -= has_ended_one;
    const bool last = --comm_threads->running == 0 && comm_threads->left;
    pthread_cond_broadcast(&comm_threads->changed);
    pthread_mutex_unlock(&comm_threads->lock);
    if (last)
        release_threads(comm_threads, host);
}

static void release_task(struct cu_task *task)
{
    struct cu_comm_threads *comm_threads = task->comm_threads;
    const struct weir_host *host = task->host;
    const bool ends_one = task->end;
    host->release(task);
    end_thread(comm_threads, host, ends_one);
}

// What NCCL does must not spoil what other threads capture: ask.h.
static void enter(const struct cu_task *task)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    task->set_context(task->context);
    task->set_capture_mode(&mode);
}

static void *run_end(void *argument)
{
    struct cu_task *task = argument;
    enter(task);
    (void)task->end(task->native);
    release_task(task);
    return NULL;
}

void cu_task_await_ends(struct cu_comm_threads *comm_threads, uint64_t until_ns)
{
    const struct timespec until = weir_clock_timespec(until_ns);
    int error = 0;
    pthread_mutex_lock(&comm_threads->lock);
    while (comm_threads->ending > MOST_ENDS && error == 0)
        error = pthread_cond_timedwait(&comm_threads->changed, &comm_threads->lock, &until);
    pthread_mutex_unlock(&comm_threads->lock);
}

static bool is_abandoned(struct cu_task *task)
{
    pthread_mutex_lock(&task->comm_threads->lock);
    const bool abandoned = task->abandoned;
    pthread_mutex_unlock(&task->comm_threads->lock);
    return abandoned;
}

// With NCCL_COMM_BLOCKING=0 NCCL goes on with it after the call. One that failed since, or is given up, is aborted.
static ncclResult_t create(struct cu_task *task)
{
    ncclResult_t code =
        task->nccl->ncclCommInitRank(&task->native, task->count, task->id, task->rank);
    if (code != ncclInProgress)
        return code;
    while (code == ncclInProgress && !is_abandoned(task)) {
        weir_clock_sleep_ns(POLL_NS);
        const ncclResult_t asked = task->nccl->ncclCommGetAsyncError(task->native, &code);
        code = asked == ncclSuccess ? code : asked;
    }
    if (code != ncclSuccess)
        (void)task->nccl->ncclCommAbort(task->native);
    return code;
}

// The task belongs to what waits for it, unless that has given up.
static void *run_creation(void *argument)
{
    struct cu_task *task = argument;
    struct cu_comm_threads *comm_threads = task->comm_threads;
    const struct weir_host *host = task->host;
    enter(task);
    const ncclResult_t code = create(task);
    pthread_mutex_lock(&comm_threads->lock);
    task->code = code;
    task->done = true;
    const bool abandoned = task->abandoned;
    pthread_cond_broadcast(&comm_threads->changed);
    pthread_mutex_unlock(&comm_threads->lock);
    if (abandoned && code == ncclSuccess)
        (void)task->nccl->ncclCommAbort(task->native);
    if (abandoned)
        host->release(task);
    end_thread(comm_threads, host, false);
    return NULL;
}

static bool start(struct cu_task *task, void *(*run)(void *))
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_mutex_lock(&task->comm_threads->lock);
    task->comm_threads->running++;
    task->comm_threads->ending += task->end != NULL;
    pthread_mutex_unlock(&task->comm_threads->lock);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t before;
    weir_thread_hold_signals(&before); // NCCL's own threads are created on this one
    const bool started = pthread_create(&thread, &attributes, run, task) == 0;
    weir_thread_release_signals(&before);
    pthread_attr_destroy(&attributes);
    if (!started)
        release_task(task);
    return started;
}

struct cu_task *cu_task_create(const struct cu_comm *comm)
{
    const struct cu_module *module = comm->device->module;
    struct cu_task *task = module->host->allocate(sizeof *task);
    if (!task)
        return NULL;
    task->host = module->host;
    task->comm_threads = comm->device->comm_threads;
    task->set_context = module->cu.cuCtxSetCurrent;
    task->set_capture_mode = module->cu.cuThreadExchangeStreamCaptureMode;
    task->context = comm->device->context;
    task->nccl = &comm->nccl->api;
    return task;
}

bool cu_task_start_creation(struct cu_task *task)
{
    return start(task, run_creation);
}

bool cu_task_start_end(struct cu_task *task)
{
    return start(task, run_end);
}

bool cu_task_wait(struct cu_task *task, uint64_t until_ns)
{
    const struct timespec until = weir_clock_timespec(until_ns);
    int error = 0;
    pthread_mutex_lock(&task->comm_threads->lock);
    while (!task->done && error == 0)
        error =
            pthread_cond_timedwait(&task->comm_threads->changed, &task->comm_threads->lock, &until);
    const bool done = task->done;
    pthread_mutex_unlock(&task->comm_threads->lock);
    return done;
}

bool cu_task_take(struct cu_task *task)
{
    pthread_mutex_lock(&task->comm_threads->lock);
    const bool done = task->done;
    task->abandoned = !done;
    pthread_mutex_unlock(&task->comm_threads->lock);
    return done;
}
