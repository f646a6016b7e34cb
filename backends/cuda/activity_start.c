// Times of operations from CUPTI, which writes a record with start and end for everything that the
// device runs (activity.c). There is one CUPTI in a process and its callbacks have no user
// pointer, so the state here is global too.
//
// Each operation has a number, made of its queue's and its own, which is pushed as an external
// correlation id around its calls of the driver.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

#include "backends/cuda/activity_parts.h"
#include "backends/cuda/ask.h"
#include "base/clock.h"

#define PROBE_SLACK_NS UINT64_C(1000000)

enum state {
    UNTRIED,
    OFF,
    ON
};

static struct {
    pthread_mutex_t start_lock; // guards starting and stopping; taken before that of the records
    enum state state;
    size_t users;   // queues
    bool idle;      // was in use, and is switched off
    bool all_calls; // all calls must be recorded to get the external ids
} activity = {
    .start_lock = PTHREAD_MUTEX_INITIALIZER,
};

struct cupti_symbols cu_cupti;

// Starting.

static const unsigned kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE,       CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)

// CUPTI writes external ids only for calls that are recorded themselves. So the calls that
// operations consist of are recorded, or all calls if CUPTI cannot select them.
static void record_calls(bool on)
{
    const struct cupti_symbols *cupti = &cu_cupti;
    if (activity.all_calls || !cupti->cuptiActivityEnableDriverApi) {
        if (on)
            cupti->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
        else
            cupti->cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
        return;
    }
#define CALL(name, number) cupti->cuptiActivityEnableDriverApi(number, on);
    CUPTI_CALLS(CALL)
#undef CALL
}

// Not every version has the activities of peer copies and graphs.
static CUptiResult enable(void)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        CUptiResult result = cu_cupti.cuptiActivityEnable(kinds[i]);
        if (result != CUPTI_SUCCESS && kinds[i] != CUPTI_ACTIVITY_KIND_MEMCPY2 &&
            kinds[i] != CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
            return result;
    }
    record_calls(true);
    return CUPTI_SUCCESS;
}

static void disable(void)
{
    record_calls(false);
    for (size_t i = 0; i < KIND_COUNT; i++)
        cu_cupti.cuptiActivityDisable(kinds[i]);
}

// Makes one fill, whose record must arrive with times between those of the calls around it. This
// detects a CUPTI that does not fit the driver before it spoils a trace.
static bool probe(struct cu_device *device)
{
    const struct cu_symbols *cu = &device->module->cu;
    CUdeviceptr memory;
    cu_activity_forget_probe();
    if (cu->cuMemAllocFromPoolAsync(&memory, 256, device->pool, device->memory_stream) !=
        CUDA_SUCCESS)
        return false;
    const uint64_t before_ns = weir_clock_now_ns();
    cu_cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                    ((uint64_t)CU_PROBE << CU_SEQUENCE_BITS) | 1);
    cu->cuMemsetD8Async(memory, 0, 256, device->memory_stream);
    cu_cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL);
    cu->cuMemFreeAsync(memory, device->memory_stream);
    cu_await_stream(cu, device->memory_stream);
    const uint64_t after_ns = weir_clock_now_ns();
    cu_activity_deliver(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    return cu_activity_probe(&start_ns, &end_ns) && start_ns + PROBE_SLACK_NS >= before_ns &&
           end_ns <= after_ns + PROBE_SLACK_NS;
}

static const char *result_text(CUptiResult result)
{
    const char *text = NULL;
    cu_cupti.cuptiGetResultString(result, &text);
    return text ? text : "an unknown error";
}

static bool load(const struct cu_module *module, char *message, size_t size)
{
    static const struct weir_kit_symbol table[] = {
#define CUPTI_ENTRY(optional, result, name, parameters) \
    {#name, offsetof(struct cupti_symbols, name), optional},
        CUPTI_SYMBOLS(CUPTI_ENTRY)
#undef CUPTI_ENTRY
    };
    static const char *const names_13[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    static const char *const names_12[] = {"libcupti.so.12", "libcupti.so",
                                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    const bool named = strcmp(module->cupti, "auto") != 0;
    const char *const *names = named                      ? &module->cupti
                               : module->version >= 13000 ? names_13
                                                          : names_12;
    const size_t count = named ? 1 : module->version >= 13000 ? 4 : 3;
    if (!named && getenv("CUDA_INJECTION64_PATH")) {
        snprintf(message, size, "another profiler has it: CUDA_INJECTION64_PATH is set");
        return false;
    }
    void *handle = weir_kit_library_open(names, count, message, size);
    return handle && weir_kit_symbols_load(handle, names[0], table, sizeof table / sizeof *table,
                                           &cu_cupti, message, size);
}

static bool try_start(struct cu_device *device, char *message, size_t size)
{
    if (!load(device->module, message, size))
        return false;
    if (!cu_activity_allocate()) {
        snprintf(message, size, "there is no memory");
        return false;
    }
    CUptiResult result =
        cu_cupti.cuptiActivityRegisterCallbacks(cu_activity_request, cu_activity_complete);
    if (result == CUPTI_SUCCESS)
        result = enable();
    if (result != CUPTI_SUCCESS) {
        disable();
        snprintf(message, size, "it refuses: %s", result_text(result));
        return false;
    }
    if (probe(device))
        return true;
    activity.all_calls = true;
    record_calls(true);
    if (probe(device))
        return true;
    disable();
    uint64_t start_ns, end_ns;
    snprintf(message, size, "its record of a fill %s",
             cu_activity_probe(&start_ns, &end_ns) ? "has times that cannot be" : "did not come");
    return false;
}

// With start_lock held.
static void start(struct cu_device *device)
{
    char message[512] = "";
    char text[640];
    if (strcmp(device->module->cupti, "off") == 0)
        return; // another runtime of the process may use it
    activity.state = try_start(device, message, sizeof message) ? ON : OFF;
    if (activity.state == ON)
        return;
    cu_activity_free();
    snprintf(text, sizeof text,
             "CUPTI is not used, so starts of operations are only the earliest possible: %s",
             message);
    device->module->host->log(strcmp(device->module->cupti, "auto") == 0 ? WEIR_LOG_INFO
                                                                         : WEIR_LOG_WARNING,
                              "cuda", text);
}

bool cu_activity_enlist(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    pthread_mutex_lock(&activity.start_lock);
    if (activity.state == UNTRIED)
        start(device);
    bool on = activity.state == ON && strcmp(device->module->cupti, "off") != 0;
    if (on) {
        on = cu_activity_number(queue);
    }
    if (on && activity.users++ == 0 && activity.idle) {
        activity.idle = false;
        enable();
    }
    pthread_mutex_unlock(&activity.start_lock);
    return on;
}

void cu_activity_delist(struct cu_queue *queue)
{
    pthread_mutex_lock(&activity.start_lock);
    cu_activity_drop_number(queue);
    activity.users--;
    pthread_mutex_unlock(&activity.start_lock);
}

// Switching is too expensive to be done each time the last watched queue is destroyed.
void cu_activity_rest(void)
{
    pthread_mutex_lock(&activity.start_lock);
    if (activity.state == ON && activity.users == 0 && !activity.idle) {
        activity.idle = true;
        disable();
    }
    pthread_mutex_unlock(&activity.start_lock);
}

// Submitting.

void cu_activity_push(const struct cu_queue *queue, uint64_t sequence)
{
    cu_cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                    (queue->watch->number << CU_SEQUENCE_BITS) |
                                                        (sequence & CU_SEQUENCE_MASK));
}

void cu_activity_pop(void)
{
    cu_cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL);
}
