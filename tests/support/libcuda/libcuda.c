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
int fake_pinned_bytes = 1 << 30;
int fake_peers = 1;
int fake_registers = 16;
int fake_own_local;
static int fake_cooperative = 1;
int fake_managed = 1;
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

static const struct {
    int code;
    const char *name;
} errors[] = {
    {0, "CUDA_SUCCESS"},
    {1, "CUDA_ERROR_INVALID_VALUE"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
    {100, "CUDA_ERROR_NO_DEVICE"},
    {200, "CUDA_ERROR_INVALID_IMAGE"},
    {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {400, "CUDA_ERROR_INVALID_HANDLE"},
    {500, "CUDA_ERROR_NOT_FOUND"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {999, "CUDA_ERROR_UNKNOWN"},
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)error) {
            *name = errors[i].name;
            return CUDA_SUCCESS;
        }
    return FAKE_INVALID_VALUE;
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

SIMPLE(cuDeviceGetCount, (int *count), false, *count = device_count)
SIMPLE(cuDeviceGet, (CUdevice * device, int ordinal), false, *device = ordinal)
SIMPLE(cuDeviceGetName, (char *name, int size, CUdevice device), false,
       snprintf(name, (size_t)size, "Fake GPU %d", device))
SIMPLE(cuDeviceTotalMem, (size_t * bytes, CUdevice device), false, *bytes = FAKE_MEMORY_BYTES)
SIMPLE(cuCtxGetCurrent, (CUcontext * context), false, *context = fake_current)
SIMPLE(cuCtxGetStreamPriorityRange, (int *least, int *greatest), true, (*least = 0, *greatest = -5))

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
    if (--contexts[device].references == 0) {
        fake_access_end(device);
        if (!fake_dead)
            fake_sticky = CUDA_SUCCESS;
    }
    END;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ADMIT(false);
    fake_current = context;
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

// The controls.

LOCKED_VOID(set_fault, (const char *name, long n), fake_set_fault(name, n))
LOCKED(long, count_live, (void), fake_live)
LOCKED_VOID(hold, (int held), fake_held = held)
LOCKED_VOID(let_go, (int lets_go), fake_lets_go = lets_go)
LOCKED_VOID(fork_captures, (int fork), fake_captures_fork = fork)
LOCKED(bool, spoil, (void *stream), fake_capture_spoil(stream))
LOCKED(void *, create_stream, (void), fake_stream_create(0))
LOCKED_VOID(destroy_stream, (void *stream), fake_stream_destroy(stream))

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

static void set_foreign(int on)
{
    fake_current = on ? &foreign : NULL;
}

static int has_foreign(void)
{
    return fake_current == &foreign ? 1 : fake_current ? -1 : 0;
}

EXPORT extern const struct weir_test_cuda weir_test_cuda;
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
    .destroy_stream = destroy_stream,
    .has_foreign_context = has_foreign,
};

static const struct {
    const char *variable;
    int *value;
} settings[] = {
    {"WEIR_TEST_CUDA_VERSION", &fake_version},
    {"WEIR_TEST_CUDA_DEVICES", &device_count},
    {"WEIR_TEST_CUDA_ARCH", &fake_architecture},
    {"WEIR_TEST_CUDA_PINNED", &fake_pinned_bytes},
    {"WEIR_TEST_CUDA_PEERS", &fake_peers},
    {"WEIR_TEST_CUDA_COOPERATIVE", &fake_cooperative},
    {"WEIR_TEST_CUDA_REGISTERS", &fake_registers},
    {"WEIR_TEST_CUDA_LOCAL", &fake_own_local},
    {"WEIR_TEST_CUDA_MANAGED", &fake_managed},
};

__attribute__((constructor)) static void start(void)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *value = getenv(settings[i].variable);
        if (value && value[0])
            *settings[i].value = (int)strtol(value, NULL, 10);
    }
    device_count = device_count < FAKE_DEVICE_LIMIT ? device_count : FAKE_DEVICE_LIMIT;
    const int code = calls_fail_by("WEIR_TEST_CUDA_FAIL");
    failing_code = code ? code : FAKE_UNKNOWN;
}

// Ranges of memory in one list. It is short, so it is searched linearly.

static struct fake_range *ranges;

bool fake_memory_add(const void *pointer, size_t size, enum fake_kind kind, int device)
{
    struct fake_range *range = malloc(sizeof *range);
    if (!range)
        return false;
    *range = (struct fake_range){ranges, (uintptr_t)pointer, size, kind, device};
    ranges = range;
    fake_live++;
    return true;
}

bool fake_memory_remove(const void *pointer, int kinds)
{
    for (struct fake_range **at = &ranges; *at; at = &(*at)->next) {
        struct fake_range *range = *at;
        if (range->start != (uintptr_t)pointer || !(range->kind & kinds))
            continue;
        *at = range->next;
        free(range);
        fake_live--;
        return true;
    }
    return false;
}

const struct fake_range *fake_memory_find(uintptr_t byte)
{
    const struct fake_range *range = ranges;
    while (range && (byte < range->start || byte - range->start >= range->size))
        range = range->next;
    return range;
}

bool fake_memory_holds(const void *pointer, size_t size, int kinds)
{
    const struct fake_range *range = fake_memory_find((uintptr_t)pointer);
    if (kinds & FAKE_DEVICE)
        kinds |= FAKE_MANAGED;
    return range && (range->kind & kinds) &&
           size <= range->size - ((uintptr_t)pointer - range->start);
}

bool fake_memory_overlaps(const void *pointer, size_t size)
{
    const uintptr_t start = (uintptr_t)pointer;
    const struct fake_range *range = ranges;
    while (range && (start >= range->start + range->size || range->start >= start + size))
        range = range->next;
    return range;
}

size_t fake_memory_used(enum fake_kind kind, int device)
{
    size_t used = 0;
    for (const struct fake_range *range = ranges; range; range = range->next)
        used += range->kind == kind && range->device == device ? range->size : 0;
    return used;
}
