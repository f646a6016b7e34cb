// The functions of the fake driver, and the two that are looked up by name. See
// control.h.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"

#define EXPORT __attribute__((visibility("default")))

static struct CUctx_st contexts[FAKE_DEVICE_LIMIT];
static struct CUctx_st foreign = {.references = 1};
_Thread_local CUcontext fake_current;

#ifdef FAKE_OLD_DRIVER
int fake_version = 11080;
#else
int fake_version = 13000;
#endif
static int device_count = 1;
int fake_architecture = 90;
size_t fake_pinned_bytes = (size_t)1 << 30;
bool fake_peers = true;
int fake_registers = 16;
int fake_own_local = 0;
static bool fake_cooperative = true;
bool fake_managed = true;
static bool initialised;

// The functions that the backend may call.

static const char *const names[] = {
#define NAME(since, result, name, parameters) #name,
    CU_SYMBOLS(NAME)
#undef NAME
};

#define NAME_COUNT (sizeof names / sizeof *names)

#include "tests/support/calls.h"

// Failing on request.

static CUresult failing_code;

static void set_failure(const char *name, long n, int code)
{
    pthread_mutex_lock(&fake_lock);
    failing_code = code ? code : FAKE_UNKNOWN;
    calls_fail(name, n);
    pthread_mutex_unlock(&fake_lock);
}

// A fault belongs to a context, so there is none without a context.
static bool is_fatal(CUresult code)
{
    bool alive = false;
    for (size_t i = 0; i < FAKE_DEVICE_LIMIT; i++)
        alive = alive || contexts[i].references > 0;
    return alive && code >= 700 && code < 800 &&
           code != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED && code != FAKE_NOT_REGISTERED;
}

// Under the lock. Counts the call, and returns whether it has to fail.
CUresult fake_admit(const char *name, bool needs_context)
{
    if (calls_strike(name)) {
        if (is_fatal(failing_code))
            fake_sticky = failing_code;
        pthread_cond_broadcast(&fake_changed);
        return failing_code;
    }
    if (!initialised && strcmp(name, "cuInit") != 0)
        return 3;
    if (needs_context &&
        (!fake_current || fake_current == &foreign || fake_current->references == 0))
        return FAKE_INVALID_CONTEXT;
    if (fake_spoils_others(name))
        return FAKE_CAPTURE_UNSUPPORTED;
    return needs_context ? fake_sticky : CUDA_SUCCESS;
}

// Errors, devices and contexts.

CUresult cuGetErrorName(CUresult error, const char **name)
{
    switch (error) {
#define NAME(constant, value) \
    case value:               \
        *name = #constant;    \
        return CUDA_SUCCESS;
    case 0:
        *name = "CUDA_SUCCESS";
        return CUDA_SUCCESS;
        NAME(CUDA_ERROR_INVALID_VALUE, 1)
        NAME(CUDA_ERROR_OUT_OF_MEMORY, 2)
        NAME(CUDA_ERROR_NO_DEVICE, 100)
        NAME(CUDA_ERROR_INVALID_IMAGE, 200)
        NAME(CUDA_ERROR_INVALID_CONTEXT, 201)
        NAME(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)
        NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)
        NAME(CUDA_ERROR_INVALID_HANDLE, 400)
        NAME(CUDA_ERROR_NOT_FOUND, 500)
        NAME(CUDA_ERROR_ILLEGAL_ADDRESS, 700)
        NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)
        NAME(CUDA_ERROR_LAUNCH_FAILED, 719)
        NAME(CUDA_ERROR_UNKNOWN, 999)
#undef NAME
    default:
        return FAKE_INVALID_VALUE;
    }
}

CUresult cuInit(unsigned flags)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    BEGIN(false);
    if (code == CUDA_SUCCESS && (device_count == 0 || (visible && !visible[0])))
        code = CUDA_ERROR_NO_DEVICE;
    initialised = initialised || code == CUDA_SUCCESS;
    END;
}

CUresult cuDeviceGetCount(int *count)
{
    BEGIN(false);
    *count = device_count;
    END;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    BEGIN(false);
    *device = ordinal;
    END;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    BEGIN(false);
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    END;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    BEGIN(false);
    *bytes = FAKE_MEMORY_BYTES;
    END;
}

static const int attributes[][2] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT32_MAX},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, FAKE_UNITS},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, FAKE_LOCAL_LIMIT},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, FAKE_UNIT_ITEMS},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, FAKE_UNIT_BLOCKS},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, FAKE_UNIT_REGISTERS},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, FAKE_UNIT_LOCAL},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, FAKE_RESERVED_LOCAL},
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    BEGIN(false);
    *value = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        *value = attributes[i][0] == attribute ? attributes[i][1] : *value;
    if (attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
        *value = fake_managed;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = fake_architecture / 10;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = fake_architecture % 10;
    if (attribute == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)
        *value = fake_cooperative;
    END;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ADMIT(false);
    *context = &contexts[device];
    contexts[device].device = device;
    contexts[device].references++;
    fake_live++;
    END;
}

CUcontext fake_context(int device)
{
    return &contexts[device];
}

// The last release destroys a dead context. Like all destroying calls, this
// works even when it is made to fail.
CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    BEGIN(false);
    fake_live--;
    if (--contexts[device].references == 0 && !fake_dead)
        fake_sticky = CUDA_SUCCESS;
    END;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    BEGIN(false);
    *context = fake_current;
    END;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ADMIT(false);
    fake_current = context;
    END;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    BEGIN(true);
    *least = 0;
    *greatest = -5;
    END;
}

// Functions that are looked up by name.

EXPORT CUresult cuDriverGetVersion(int *out_version);
CUresult cuDriverGetVersion(int *out_version)
{
    *out_version = fake_version;
    return CUDA_SUCCESS;
}

#ifndef FAKE_OLD_DRIVER
static const struct {
    int version;
    void (*address)(void);
} functions[NAME_COUNT] = {
#define ENTRY(since, result, name, parameters) {since, (void (*)(void))name},
    CU_SYMBOLS(ENTRY)
#undef ENTRY
};

static CUresult get_address(const char *name, void **address, int wanted)
{
    const size_t index = calls_index(name);
    *address = NULL;
    if (index == NAME_COUNT || functions[index].version != wanted || wanted > fake_version)
        return CUDA_ERROR_NOT_FOUND;
    memcpy(address, &functions[index].address, sizeof *address);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **address, int wanted, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *found);
CUresult cuGetProcAddress_v2(const char *name, void **address, int wanted, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *found)
{
    const CUresult code = get_address(name, address, wanted);
    if (found)
        *found = code != CUDA_SUCCESS;
    return code;
}
#endif

static void set_fault(const char *name, long n)
{
    pthread_mutex_lock(&fake_lock);
    fake_set_fault(name, n);
    pthread_mutex_unlock(&fake_lock);
}

static long count_live(void)
{
    pthread_mutex_lock(&fake_lock);
    const long live = fake_live;
    pthread_mutex_unlock(&fake_lock);
    return live;
}

static void hold(int held)
{
    pthread_mutex_lock(&fake_lock);
    fake_held = held;
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
}

static void let_go(int lets_go)
{
    pthread_mutex_lock(&fake_lock);
    fake_lets_go = lets_go;
    pthread_mutex_unlock(&fake_lock);
}

static void enqueue(void *stream, void (*function)(void *user), void *user)
{
    const struct fake_operation call = {.kind = FAKE_CALL, .call = function, .user = user};
    pthread_mutex_lock(&fake_lock);
    fake_stream_check(stream, "a call of a library");
    fake_stream_add(stream, &call);
    pthread_mutex_unlock(&fake_lock);
}

static bool capture(void *stream, void (*function)(void *user), void *user,
                    void *(*clone)(void *user), void (*drop)(void *user))
{
    const struct fake_operation call = {
        .kind = FAKE_CALL, .call = function, .user = user, .clone = clone, .drop = drop};
    pthread_mutex_lock(&fake_lock);
    const bool captured = fake_capture_take(stream, &call);
    pthread_mutex_unlock(&fake_lock);
    return captured;
}

static bool spoil(void *stream)
{
    pthread_mutex_lock(&fake_lock);
    const bool captured = fake_capture_spoil(stream);
    pthread_mutex_unlock(&fake_lock);
    return captured;
}

static void *create_stream(void)
{
    pthread_mutex_lock(&fake_lock);
    CUstream stream = fake_stream_create(0);
    pthread_mutex_unlock(&fake_lock);
    return stream;
}

static void finish_stream(void *stream)
{
    pthread_mutex_lock(&fake_lock);
    fake_stream_finish(stream);
    pthread_mutex_unlock(&fake_lock);
}

static void destroy_stream(void *stream)
{
    pthread_mutex_lock(&fake_lock);
    fake_stream_destroy(stream);
    pthread_mutex_unlock(&fake_lock);
}

static void set_foreign(int on)
{
    fake_current = on ? &foreign : NULL;
}

static int has_foreign(void)
{
    return fake_current == &foreign ? 1 : fake_current ? -1 : 0;
}

EXPORT extern const struct weir_test_cuda weir_test_cuda;
static void fork_captures(int fork)
{
    pthread_mutex_lock(&fake_lock);
    fake_captures_fork = fork != 0;
    pthread_mutex_unlock(&fake_lock);
}

const struct weir_test_cuda weir_test_cuda = {
    .fail = set_failure,
    .fault = set_fault,
    .struck = calls_struck,
    .live = count_live,
    .calls = calls_count,
    .name = calls_name,
    .hold = hold,
    .let_go = let_go,
    .enqueue = enqueue,
    .capture = capture,
    .fork_captures = fork_captures,
    .spoil = spoil,
    .others_capture = fake_capture_others,
    .set_foreign_context = set_foreign,
    .create_stream = create_stream,
    .finish_stream = finish_stream,
    .destroy_stream = destroy_stream,
    .has_foreign_context = has_foreign,
};

static long number_in(const char *variable, long fallback)
{
    const char *value = getenv(variable);
    return value && value[0] ? strtol(value, NULL, 10) : fallback;
}

__attribute__((constructor)) static void start(void)
{
    char name[64] = "";
    fake_version = (int)number_in("WEIR_TEST_CUDA_VERSION", fake_version);
    device_count = (int)number_in("WEIR_TEST_CUDA_DEVICES", device_count);
    device_count = device_count < FAKE_DEVICE_LIMIT ? device_count : FAKE_DEVICE_LIMIT;
    fake_architecture = (int)number_in("WEIR_TEST_CUDA_ARCH", fake_architecture);
    fake_pinned_bytes = (size_t)number_in("WEIR_TEST_CUDA_PINNED", (long)fake_pinned_bytes);
    fake_peers = number_in("WEIR_TEST_CUDA_PEERS", 1) != 0;
    fake_cooperative = number_in("WEIR_TEST_CUDA_COOPERATIVE", 1) != 0;
    fake_registers = (int)number_in("WEIR_TEST_CUDA_REGISTERS", fake_registers);
    fake_own_local = (int)number_in("WEIR_TEST_CUDA_LOCAL", fake_own_local);
    fake_managed = number_in("WEIR_TEST_CUDA_MANAGED", 1) != 0;
    const char *fail = getenv("WEIR_TEST_CUDA_FAIL");
    const char *first = fail ? strchr(fail, ':') : NULL;
    const char *second = first ? strchr(first + 1, ':') : NULL;
    if (!first || (size_t)(first - fail) >= sizeof name)
        return;
    memcpy(name, fail, (size_t)(first - fail));
    set_failure(name, strtol(first + 1, NULL, 10), second ? (int)strtol(second + 1, NULL, 10) : 0);
}

// Ranges of memory in one list. It is short, so it is searched linearly.

struct range {
    struct range *next;
    uintptr_t start;
    size_t size;
    enum fake_kind kind;
    int device;
};

static struct range *ranges;

bool fake_memory_add(const void *pointer, size_t size, enum fake_kind kind, int device)
{
    struct range *range = malloc(sizeof *range);
    if (!range)
        return false;
    *range = (struct range){ranges, (uintptr_t)pointer, size, kind, device};
    ranges = range;
    fake_live++;
    return true;
}

size_t fake_memory_remove(const void *pointer, int kinds)
{
    for (struct range **at = &ranges; *at; at = &(*at)->next) {
        struct range *range = *at;
        if (range->start != (uintptr_t)pointer || !(range->kind & kinds))
            continue;
        const size_t size = range->size;
        *at = range->next;
        free(range);
        fake_live--;
        return size;
    }
    return 0;
}

bool fake_memory_holds(const void *pointer, size_t size, int kinds)
{
    const uintptr_t start = (uintptr_t)pointer;
    if (kinds & FAKE_DEVICE)
        kinds |= FAKE_MANAGED;
    for (const struct range *range = ranges; range; range = range->next) {
        if ((range->kind & kinds) && start >= range->start && size <= range->size &&
            start - range->start <= range->size - size)
            return true;
    }
    return false;
}

bool fake_memory_find(const void *pointer, const void **out_start, size_t *out_size,
                      enum fake_kind *out_kind, int *out_device)
{
    const uintptr_t byte = (uintptr_t)pointer;
    for (const struct range *range = ranges; range; range = range->next) {
        if (byte < range->start || byte - range->start >= range->size)
            continue;
        *out_start = (const void *)range->start;
        *out_size = range->size;
        *out_kind = range->kind;
        *out_device = range->device;
        return true;
    }
    return false;
}

bool fake_memory_overlaps(const void *pointer, size_t size)
{
    const uintptr_t start = (uintptr_t)pointer;
    for (const struct range *range = ranges; range; range = range->next) {
        if (start < range->start + range->size && range->start < start + size)
            return true;
    }
    return false;
}

size_t fake_memory_used(int device)
{
    size_t used = 0;
    for (const struct range *range = ranges; range; range = range->next)
        used += range->kind == FAKE_DEVICE && range->device == device ? range->size : 0;
    return used;
}

size_t fake_memory_pinned(void)
{
    size_t pinned = 0;
    for (const struct range *range = ranges; range; range = range->next)
        pinned += range->kind == FAKE_PINNED ? range->size : 0;
    return pinned;
}
