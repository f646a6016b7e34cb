// The functions: each checks that its context is current, and changes state under the one lock.
// Those that wait for the device do so as in a real driver, so that tests detect a backend that
// calls them at the wrong moment.
#define _GNU_SOURCE // asprintf
#include "tests/support/libtarn/tarn.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/libtarn/control.h"
#include "tests/support/libtarn/device.h"

#define EXPORT __attribute__((visibility("default")))
#define MEMORY_BYTES ((uint64_t)1 << 30)
#define MAGIC "TARN BINARY 1\n"
#define ALIGNMENT 256

enum {
    MAX_THREADS = 1024,
    MAX_LOCAL_BYTES = 48 * 1024,
};

// Memory that kernels and copies may touch.
struct range {
    struct range *next;
    char *start;
    size_t size;
    enum {
        ON_DEVICE,
        ON_HOST,
        REGISTERED
    } kind;
};

struct tarn_context {
    int ordinal;
    tarn_stream *streams;
};

struct tarn_event {
    tarn_context *context;
    struct tarn_fence *fence; // of the last record; NULL: none
};

struct tarn_kernel {
    struct tarn_kernel *next;
    const struct twin *twin;
};

struct tarn_module {
    tarn_context *context;
    char *text;
    struct tarn_kernel *kernels;
};

static _Thread_local tarn_context *current;
static _Thread_local tarn_result answer; // of a call that is to fail, and did its work
static struct range *ranges;
static uint64_t used_bytes;
static long live;
static bool started;

// Functions for tests.

#define CALLS(X)                \
    X(tarn_init)                \
    X(tarn_version)             \
    X(tarn_device_count)        \
    X(tarn_device_describe)     \
    X(tarn_context_create)      \
    X(tarn_context_destroy)     \
    X(tarn_context_get_current) \
    X(tarn_context_set_current) \
    X(tarn_stream_create)       \
    X(tarn_stream_destroy)      \
    X(tarn_stream_query)        \
    X(tarn_stream_synchronize)  \
    X(tarn_stream_wait_event)   \
    X(tarn_event_create)        \
    X(tarn_event_destroy)       \
    X(tarn_event_record)        \
    X(tarn_event_query)         \
    X(tarn_event_synchronize)   \
    X(tarn_event_time)          \
    X(tarn_memory_allocate)     \
    X(tarn_memory_free)         \
    X(tarn_memory_query)        \
    X(tarn_host_allocate)       \
    X(tarn_host_free)           \
    X(tarn_host_register)       \
    X(tarn_host_unregister)     \
    X(tarn_copy)                \
    X(tarn_copy_2d)             \
    X(tarn_fill)                \
    X(tarn_launch)              \
    X(tarn_compile)             \
    X(tarn_module_load)         \
    X(tarn_module_unload)       \
    X(tarn_module_kernel)       \
    X(tarn_kernel_describe)

static struct call {
    const char *name;
    long calls;
} calls[] = {
#define CALL(name) {#name, 0},
    CALLS(CALL)
#undef CALL
};

static struct {
    const char *name;
    long left;
    tarn_result result;
} failure;

static struct call *find_call(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}

EXPORT void tarn_test_fail(const char *name, long n, tarn_result result)
{
    const struct call *call = find_call(name);
    pthread_mutex_lock(&tarn_lock);
    failure.name = n > 0 && call ? call->name : NULL;
    failure.left = n;
    failure.result = result;
    pthread_mutex_unlock(&tarn_lock);
}

EXPORT long tarn_test_calls(const char *name)
{
    const struct call *call = find_call(name);
    pthread_mutex_lock(&tarn_lock);
    const long count = call ? call->calls : -1;
    pthread_mutex_unlock(&tarn_lock);
    return count;
}

EXPORT long tarn_test_live(void)
{
    return live;
}

EXPORT const char *tarn_test_name(size_t i)
{
    return i < sizeof calls / sizeof *calls ? calls[i].name : NULL;
}

static bool gives_back(const char *name)
{
    return strstr(name, "_destroy") || strstr(name, "_free") || strstr(name, "_un");
}

// Counts a call, and says whether it is to fail.
static tarn_result admit(const char *name, bool needs_context)
{
    struct call *call = find_call(name);
    call->calls++;
    if (failure.name == call->name && --failure.left == 0) {
        failure.name = NULL;
        if (!gives_back(name))
            return failure.result;
        answer = failure.result;
    }
    return needs_context && !current ? TARN_NO_CONTEXT : TARN_OK;
}

// Every call begins and ends with one of these.
#define BEGIN(needs_context)                             \
    pthread_mutex_lock(&tarn_lock);                      \
    tarn_result result = admit(__func__, needs_context); \
    do {                                                 \
    } while (0)
#define END                                       \
    result = answer == TARN_OK ? result : answer; \
    answer = TARN_OK;                             \
    pthread_mutex_unlock(&tarn_lock);             \
    return result

// The library, devices and contexts.

EXPORT tarn_result tarn_init(void)
{
    BEGIN(false);
    started = started || result == TARN_OK;
    END;
}

EXPORT const char *tarn_result_name(tarn_result result)
{
    static const char *const names[] = {
        "TARN_OK",
        "TARN_NOT_READY",
        "TARN_OUT_OF_MEMORY",
        "TARN_INVALID_VALUE",
        "TARN_NO_CONTEXT",
        "TARN_NOT_FOUND",
        "TARN_BUILD_FAILED",
        "TARN_ALREADY_REGISTERED",
        "TARN_UNKNOWN_MEMORY",
        "TARN_NO_DEVICE",
    };
    return (size_t)result < sizeof names / sizeof *names ? names[result] : NULL;
}

EXPORT tarn_result tarn_version(int *version)
{
    BEGIN(false);
    *version = 10200;
    END;
}

EXPORT tarn_result tarn_device_count(int *count)
{
    BEGIN(false);
    const char *devices = getenv("TARN_DEVICES");
    if (result == TARN_OK)
        *count = devices ? (int)strtol(devices, NULL, 10) : 1;
    END;
}

EXPORT tarn_result tarn_device_describe(int ordinal, struct tarn_device_info *info)
{
    BEGIN(false);
    if (result == TARN_OK) {
        *info = (struct tarn_device_info){
            .memory_bytes = MEMORY_BYTES,
            .max_threads = MAX_THREADS,
            .max_local_bytes = MAX_LOCAL_BYTES,
            .compute_units = 4,
            .engines = 2,
            .priority_lowest = -1,
            .priority_highest = 1,
        };
        snprintf(info->name, sizeof info->name, "Tarn %d", ordinal);
    }
    END;
}

EXPORT tarn_result tarn_context_create(tarn_context **context, int ordinal)
{
    BEGIN(false);
    if (result == TARN_OK && !started)
        result = TARN_INVALID_VALUE;
    *context = result == TARN_OK ? calloc(1, sizeof **context) : NULL;
    if (*context) {
        (*context)->ordinal = ordinal;
        live++;
    }
    END;
}

EXPORT tarn_result tarn_context_destroy(tarn_context *context)
{
    BEGIN(false);
    if (context->streams)
        result = TARN_INVALID_VALUE;
    if (result == TARN_OK) {
        free(context);
        live--;
    }
    END;
}

EXPORT tarn_result tarn_context_get_current(tarn_context **context)
{
    BEGIN(false);
    *context = current;
    END;
}

EXPORT tarn_result tarn_context_set_current(tarn_context *context)
{
    BEGIN(false);
    if (result == TARN_OK)
        current = context;
    END;
}

// Waits until all work is finished that was submitted before the call.
static void finish_device(void)
{
    for (tarn_stream *stream = current->streams; stream; stream = stream->next)
        tarn_stream_finish(stream);
}

// Streams.

static tarn_result check_stream(const tarn_stream *stream)
{
    return stream->context == current ? TARN_OK : TARN_NO_CONTEXT;
}

EXPORT tarn_result tarn_stream_create(tarn_stream **stream, int priority)
{
    BEGIN(true);
    *stream = NULL;
    if (result == TARN_OK && (priority < -1 || priority > 1))
        result = TARN_INVALID_VALUE;
    if (result == TARN_OK) {
        *stream = calloc(1, sizeof **stream);
        if (!*stream || !tarn_stream_start(*stream))
            abort();
        (*stream)->context = current;
        (*stream)->next = current->streams;
        current->streams = *stream;
        live++;
    }
    END;
}

EXPORT tarn_result tarn_stream_destroy(tarn_stream *stream)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_stream(stream);
    if (result == TARN_OK) {
        tarn_stream_stop(stream);
        tarn_stream **at = &stream->context->streams;
        while (*at != stream)
            at = &(*at)->next;
        *at = stream->next;
        free(stream);
        live--;
    }
    END;
}

EXPORT tarn_result tarn_stream_query(tarn_stream *stream)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_stream(stream);
    if (result == TARN_OK && !tarn_stream_is_idle(stream))
        result = TARN_NOT_READY;
    END;
}

EXPORT tarn_result tarn_stream_synchronize(tarn_stream *stream)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_stream(stream);
    if (result == TARN_OK)
        tarn_stream_finish(stream);
    END;
}

EXPORT tarn_result tarn_stream_wait_event(tarn_stream *stream, tarn_event *event)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_stream(stream);
    if (result == TARN_OK && event->fence && !event->fence->reached) {
        tarn_fence_retain(event->fence);
        tarn_stream_add(stream, &(struct tarn_command){.kind = TARN_AWAIT, .fence = event->fence});
    }
    END;
}

// Events.

EXPORT tarn_result tarn_event_create(tarn_event **event)
{
    BEGIN(true);
    *event = result == TARN_OK ? calloc(1, sizeof **event) : NULL;
    if (*event) {
        (*event)->context = current;
        live++;
    }
    END;
}

static tarn_result check_event(const tarn_event *event)
{
    return event->context == current ? TARN_OK : TARN_NO_CONTEXT;
}

EXPORT tarn_result tarn_event_destroy(tarn_event *event)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_event(event);
    if (result == TARN_OK) {
        tarn_fence_release(event->fence);
        free(event);
        live--;
    }
    END;
}

EXPORT tarn_result tarn_event_record(tarn_event *event, tarn_stream *stream)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_stream(stream);
    if (result == TARN_OK) {
        tarn_fence_release(event->fence);
        event->fence = tarn_fence_create();
        tarn_fence_retain(event->fence);
        tarn_stream_add(stream, &(struct tarn_command){.kind = TARN_REACH, .fence = event->fence});
    }
    END;
}

EXPORT tarn_result tarn_event_query(tarn_event *event)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_event(event);
    if (result == TARN_OK && event->fence && !event->fence->reached)
        result = TARN_NOT_READY;
    END;
}

EXPORT tarn_result tarn_event_synchronize(tarn_event *event)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_event(event);
    if (result == TARN_OK && event->fence) {
        struct tarn_fence *fence = event->fence;
        tarn_fence_retain(fence);
        tarn_fence_wait(fence);
        tarn_fence_release(fence);
    }
    END;
}

EXPORT tarn_result tarn_event_time(tarn_event *event, uint64_t *time_ns)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = check_event(event);
    if (result == TARN_OK && !(event->fence && event->fence->reached))
        result = TARN_NOT_READY;
    if (result == TARN_OK)
        *time_ns = event->fence->time_ns;
    END;
}

// Memory.

static void add_range(void *start, size_t size, int kind)
{
    struct range *range = calloc(1, sizeof *range);
    if (!range)
        abort();
    range->start = start;
    range->size = size;
    range->kind = kind;
    range->next = ranges;
    ranges = range;
    live++;
}

static tarn_result remove_range(const void *start, int kind)
{
    struct range **at = &ranges;
    while (*at && ((*at)->start != start || (int)(*at)->kind != kind))
        at = &(*at)->next;
    struct range *range = *at;
    if (!range)
        return TARN_INVALID_VALUE;
    *at = range->next;
    used_bytes -= kind == ON_DEVICE ? range->size : 0;
    free(range);
    live--;
    return TARN_OK;
}

static bool is_known(const char *start, size_t size)
{
    for (const struct range *range = ranges; range; range = range->next)
        if (start >= range->start && start + size <= range->start + range->size)
            return true;
    return false;
}

static tarn_result allocate(void **pointer, size_t size, int kind)
{
    *pointer = NULL;
    if (size > MEMORY_BYTES || (kind == ON_DEVICE && size > MEMORY_BYTES - used_bytes) ||
        posix_memalign(pointer, ALIGNMENT, size) != 0)
        return TARN_OUT_OF_MEMORY;
    used_bytes += kind == ON_DEVICE ? size : 0;
    add_range(*pointer, size, kind);
    return TARN_OK;
}

static tarn_result release(void *pointer, int kind)
{
    finish_device();
    tarn_result result = remove_range(pointer, kind);
    if (result == TARN_OK && kind != REGISTERED)
        free(pointer);
    return result;
}

EXPORT tarn_result tarn_memory_allocate(void **pointer, size_t size)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = allocate(pointer, size, ON_DEVICE);
    END;
}

EXPORT tarn_result tarn_memory_free(void *pointer)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = release(pointer, ON_DEVICE);
    END;
}

EXPORT tarn_result tarn_memory_query(const void *pointer, size_t size)
{
    BEGIN(true);
    if (result == TARN_OK && !is_known(pointer, size))
        result = TARN_UNKNOWN_MEMORY;
    END;
}

EXPORT tarn_result tarn_host_allocate(void **pointer, size_t size)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = allocate(pointer, size, ON_HOST);
    END;
}

EXPORT tarn_result tarn_host_free(void *pointer)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = release(pointer, ON_HOST);
    END;
}

EXPORT tarn_result tarn_host_register(void *pointer, size_t size)
{
    BEGIN(true);
    const char *start = pointer;
    for (const struct range *range = ranges; range && result == TARN_OK; range = range->next)
        if (start < range->start + range->size && range->start < start + size)
            result = TARN_ALREADY_REGISTERED;
    if (result == TARN_OK)
        add_range(pointer, size, REGISTERED);
    END;
}

EXPORT tarn_result tarn_host_unregister(void *pointer)
{
    BEGIN(true);
    if (result == TARN_OK)
        result = release(pointer, REGISTERED);
    END;
}

// Work.

static tarn_result check_ranges(const struct tarn_command *command)
{
    const size_t last = command->height - 1;
    if (!is_known(command->dst, last * command->dst_pitch + command->width) ||
        (command->src && !is_known(command->src, last * command->src_pitch + command->width)))
        return TARN_UNKNOWN_MEMORY;
    return TARN_OK;
}

static tarn_result add(tarn_stream *stream, const struct tarn_command *command)
{
    tarn_result result = check_stream(stream);
    if (result == TARN_OK && command->kind != TARN_LAUNCH)
        result = check_ranges(command);
    if (result == TARN_OK)
        tarn_stream_add(stream, command);
    return result;
}

EXPORT tarn_result tarn_copy(void *dst, const void *src, size_t size, tarn_stream *stream)
{
    const struct tarn_command command = {
        .kind = TARN_COPY, .dst = dst, .src = src, .width = size, .height = 1};
    BEGIN(true);
    if (result == TARN_OK)
        result = add(stream, &command);
    END;
}

EXPORT tarn_result tarn_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                size_t width, size_t height, tarn_stream *stream)
{
    const struct tarn_command command = {
        .kind = TARN_COPY,
        .dst = dst,
        .src = src,
        .dst_pitch = dst_pitch,
        .src_pitch = src_pitch,
        .width = width,
        .height = height,
    };
    BEGIN(true);
    if (result == TARN_OK)
        result = add(stream, &command);
    END;
}

EXPORT tarn_result tarn_fill(void *dst, size_t size, const void *pattern, size_t pattern_size,
                             tarn_stream *stream)
{
    struct tarn_command command = {
        .kind = TARN_FILL, .dst = dst, .width = size, .src_pitch = pattern_size, .height = 1};
    BEGIN(true);
    if (result == TARN_OK &&
        (pattern_size == 0 || pattern_size > sizeof command.pattern || size % pattern_size != 0))
        result = TARN_INVALID_VALUE;
    if (result == TARN_OK) {
        memcpy(command.pattern, pattern, pattern_size);
        result = add(stream, &command);
    }
    END;
}

// Local memory follows one after the other, each piece at a multiple of 16.
static bool pack(struct tarn_command *command, const struct tarn_argument *arguments, size_t count)
{
    uint64_t local = 0;
    size_t i = 0;
    for (; i < count; i++) {
        const size_t size = arguments[i].value ? arguments[i].size : sizeof local;
        const void *value = arguments[i].value ? arguments[i].value : &local;
        if (i == TWIN_PARAMETERS || size != command->twin->sizes[i])
            return false;
        memcpy(command->launch.values[i], value, size);
        if (!arguments[i].value)
            local = (local + arguments[i].size + 15) / 16 * 16;
    }
    return local <= MAX_LOCAL_BYTES && (i == TWIN_PARAMETERS || command->twin->sizes[i] == 0);
}

EXPORT tarn_result tarn_launch(tarn_kernel *kernel, const uint32_t grid[3], const uint32_t block[3],
                               const struct tarn_argument *arguments, size_t count,
                               tarn_stream *stream)
{
    struct tarn_command command = {.kind = TARN_LAUNCH, .twin = kernel->twin};
    BEGIN(true);
    for (int i = 0; i < 3; i++) {
        command.launch.grid[i] = grid[i];
        command.launch.block[i] = block[i];
    }
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (result == TARN_OK &&
        (threads > kernel->twin->max_threads || !pack(&command, arguments, count)))
        result = TARN_INVALID_VALUE;
    if (result == TARN_OK)
        result = add(stream, &command);
    END;
}

// Modules.

static const char *name_of_kernel(const char *at, size_t *out_length)
{
    const char *name = strstr(at, "void ");
    if (!name)
        return NULL;
    for (name += 5; *name == ' '; name++) {
    }
    for (*out_length = 0; isalnum((unsigned char)name[*out_length]) || name[*out_length] == '_';)
        ++*out_length;
    return name;
}

// The first kernel of the text that the device has no function for.
static const char *find_unknown(const char *source, char *name, size_t size)
{
    for (const char *at = strstr(source, "__kernel"); at; at = strstr(at + 1, "__kernel")) {
        size_t length;
        const char *begin = name_of_kernel(at, &length);
        if (!begin)
            return NULL;
        snprintf(name, size, "%.*s", (int)length, begin);
        if (begin[length] == '(' && !twin_find(name))
            return at;
    }
    return NULL;
}

EXPORT tarn_result tarn_compile(const char *source, const char *options, void **binary,
                                size_t *size, char *log, size_t log_size)
{
    char name[64];
    char *text = NULL;
    BEGIN(true);
    (void)options;
    *binary = NULL;
    snprintf(log, log_size, "%s", "");
    const char *unknown = result == TARN_OK ? find_unknown(source, name, sizeof name) : NULL;
    if (unknown) {
        snprintf(log, log_size, "error: the device has no function '%s': %.*s\n", name,
                 (int)strcspn(unknown, "\n"), unknown);
        result = TARN_BUILD_FAILED;
    }
    if (result == TARN_OK && asprintf(&text, MAGIC "%s", source) < 0)
        abort();
    *binary = text;
    *size = text ? strlen(text) + 1 : 0;
    END;
}

EXPORT tarn_result tarn_module_load(tarn_module **module, const void *binary, size_t size)
{
    BEGIN(true);
    *module = NULL;
    if (result == TARN_OK && (size <= strlen(MAGIC) || memcmp(binary, MAGIC, strlen(MAGIC)) != 0 ||
                              ((const char *)binary)[size - 1] != '\0'))
        result = TARN_INVALID_VALUE;
    if (result == TARN_OK) {
        *module = calloc(1, sizeof **module);
        if (!*module)
            abort();
        (*module)->context = current;
        (*module)->text = strdup((const char *)binary + strlen(MAGIC));
        live++;
    }
    END;
}

EXPORT tarn_result tarn_module_unload(tarn_module *module)
{
    BEGIN(true);
    if (result == TARN_OK && module->context != current)
        result = TARN_NO_CONTEXT;
    if (result == TARN_OK) {
        finish_device();
        while (module->kernels) {
            tarn_kernel *next = module->kernels->next;
            free(module->kernels);
            module->kernels = next;
        }
        free(module->text);
        free(module);
        live--;
    }
    END;
}

static bool defines(const tarn_module *module, const char *name)
{
    char wanted[80];
    snprintf(wanted, sizeof wanted, " %s(", name);
    return strstr(module->text, wanted);
}

EXPORT tarn_result tarn_module_kernel(tarn_module *module, const char *name, tarn_kernel **kernel)
{
    BEGIN(true);
    const struct twin *twin = twin_find(name);
    *kernel = NULL;
    if (result == TARN_OK && (!twin || !defines(module, name)))
        result = TARN_NOT_FOUND;
    if (result == TARN_OK) {
        *kernel = calloc(1, sizeof **kernel);
        if (!*kernel)
            abort();
        (*kernel)->twin = twin;
        (*kernel)->next = module->kernels;
        module->kernels = *kernel;
    }
    END;
}

EXPORT tarn_result tarn_kernel_describe(tarn_kernel *kernel, struct tarn_kernel_info *info)
{
    BEGIN(true);
    if (result == TARN_OK)
        *info = (struct tarn_kernel_info){
            .max_threads = kernel->twin->max_threads,
            .preferred_threads = 32,
        };
    END;
}
