// Devices that are given up.
//
// NCCL's kernels wait for other ranks, and its abort ends them; one that it does not end keeps its stream, and
// what waits for that in the driver is never let go: no call of CUDA's ends a kernel. So while there are
// communicators of NCCL the host asks in place of waiting in the driver, and once a device is given up no call
// is made that may wait for it: memory, modules and the context stay until the process ends. All that have the
// device open share its context, and so the kernel: those of other runtimes too.
#include <sched.h>

#include "backends/cuda/ask.h"
#include "backends/cuda/cu.h"
#include "base/clock.h"

#define RESTART "restart the process: a kernel that does not end leaves the device only with it"

enum {
    MOST_DEVICES = 64
};

// The devices that were given up in this process, and why; a cause is never changed.
static pthread_mutex_t causes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_error causes[MOST_DEVICES];
static struct cu_device *open_devices;

static void lose(struct cu_device *device, const struct weir_error *cause)
{
    pthread_mutex_lock(&device->lock);
    if (!atomic_load(&device->lost))
        device->first_fault = *cause;
    atomic_store(&device->given_up, true);
    atomic_store(&device->lost, true);
    pthread_mutex_unlock(&device->lock);
}

void cu_give_up(const struct cu_device *device, const struct weir_error *cause)
{
    const CUdevice native = device->listed->native;
    pthread_mutex_lock(&causes_lock);
    if (native >= 0 && native < MOST_DEVICES && causes[native].status == WEIR_OK)
        causes[native] = *cause;
    for (struct cu_device *each = open_devices; each; each = each->next_open)
        if (each->listed->native == native)
            lose(each, cause);
    pthread_mutex_unlock(&causes_lock);
}

weir_status cu_enlist_open(struct cu_device *device)
{
    const CUdevice native = device->listed->native;
    struct weir_error cause = {.status = WEIR_OK};
    pthread_mutex_lock(&causes_lock);
    if (native >= 0 && native < MOST_DEVICES)
        cause = causes[native];
    if (cause.status == WEIR_OK) {
        device->next_open = open_devices;
        open_devices = device;
    }
    pthread_mutex_unlock(&causes_lock);
    if (cause.status == WEIR_OK)
        return WEIR_OK;
    return weir_host_fail(device->module->host, cause.status, RESTART,
                          "'%s': this process has lost the device before: %.600s",
                          device->listed->info.name, cause.message);
}

void cu_delist_open(const struct cu_device *device)
{
    pthread_mutex_lock(&causes_lock);
    struct cu_device **at = &open_devices;
    while (*at && *at != device)
        at = &(*at)->next_open;
    if (*at)
        *at = device->next_open;
    pthread_mutex_unlock(&causes_lock);
}

// Waits.

// As cu_ask_event() and cu_ask_stream() do.
struct question {
    CUstream stream;
    CUevent event; // NULL: the stream
};

static CUresult ask(const struct cu_device *device, const struct question *question)
{
    const struct cu_symbols *cu = &device->module->cu;
    if (cu_is_given_up(device))
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    return question->event ? cu_ask_event(cu, question->event)
                           : cu_ask_stream(cu, question->stream);
}

// The driver's own waits spin, unless a program sets another way for the context, and a sleep ends some 60 us
// late: so a wait sleeps only when that makes it longer by less than a hundredth.
#define SPIN_NS UINT64_C(10000000)
#define MOST_PAUSE_NS UINT64_C(1000000)

static CUresult await(const struct cu_device *device, const struct question *question)
{
    const uint64_t start_ns = weir_clock_now_ns();
    CUresult code;
    while ((code = ask(device, question)) == CUDA_ERROR_NOT_READY) {
        const uint64_t passed_ns = weir_clock_now_ns() - start_ns;
        if (passed_ns < SPIN_NS)
            sched_yield();
        else
            weir_clock_sleep_ns(passed_ns / 256 < MOST_PAUSE_NS ? passed_ns / 256 : MOST_PAUSE_NS);
    }
    return code;
}

CUresult cu_await_work(const struct cu_device *device, CUstream stream)
{
    if (cu_nccl_is_used(device->module->nccl))
        return await(device, &(struct question){.stream = stream});
    return cu_await_stream(&device->module->cu, stream);
}

CUresult cu_await_record(const struct cu_device *device, CUevent event)
{
    if (cu_nccl_is_used(device->module->nccl))
        return await(device, &(struct question){.event = event});
    return cu_await_event(&device->module->cu, event);
}
