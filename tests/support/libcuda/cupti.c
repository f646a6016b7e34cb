// A CUPTI in the same library: `cupti` of [cuda] names this file too. Records of
// activities, and those that relate the caller's numbers to calls, come in separate
// buffers, the latter last, since CUPTI does not specify their order.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cuda/libraries.h"
#include "fake.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(optional, result, name, parameters) EXPORT result name parameters;
CUPTI_SYMBOLS(DECLARE)
#undef DECLARE

enum {
    KINDS = 64,
    CALLS = 1024,
    DEPTH = 16,
    RECORD_BYTES = 96, // of any kind; a multiple of eight
    PENDING = 1 << 16,
    FAKE_NO_RECORDS = 12, // CUPTI_ERROR_MAX_LIMIT_REACHED
    FAKE_NOT_FOUND = 1,
};

// All under fake_lock.
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static bool kinds_on[KINDS];
static bool calls_on[CALLS];
static uint32_t last_correlation;
static long noted; // records of activities so far
static unsigned char (*activities)[RECORD_BYTES];
static size_t activity_count;
static unsigned char (*relations)[RECORD_BYTES];
static size_t relation_count;

static _Thread_local uint64_t ids[DEPTH];
static _Thread_local size_t depth;

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

uint64_t fake_cupti_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static unsigned char *append(unsigned char (**records)[RECORD_BYTES], size_t *count)
{
    if (!*records)
        *records = calloc(PENDING, RECORD_BYTES);
    if (!*records || *count == PENDING)
        return NULL;
    memset((*records)[*count], 0, RECORD_BYTES);
    return (*records)[(*count)++];
}

static void put_32(unsigned char *record, size_t at, uint32_t value)
{
    memcpy(record + at, &value, sizeof value);
}

static void put_64(unsigned char *record, size_t at, uint64_t value)
{
    memcpy(record + at, &value, sizeof value);
}

static bool any_call_on(void)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (calls_on[i])
            return true;
    }
    return false;
}

uint32_t fake_cupti_call(void)
{
    const uint32_t correlation = ++last_correlation;
    // An old CUPTI records all calls or none.
    const bool recorded = kinds_on[CUPTI_ACTIVITY_KIND_DRIVER] ||
                          (any_call_on() && !is_set("WEIR_TEST_CUPTI_ALL_OR_NONE"));
    if (!recorded || !kinds_on[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] || depth == 0)
        return correlation;
    unsigned char *record = append(&relations, &relation_count);
    if (record) {
        put_32(record, 0, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
        put_32(record, CUPTI_EXTERNAL_KIND_AT, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1);
        put_64(record, CUPTI_EXTERNAL_ID_AT, ids[depth - 1]);
        put_32(record, CUPTI_EXTERNAL_CORRELATION_AT, correlation);
    }
    return correlation;
}

static unsigned kind_of(const struct fake_operation *operation)
{
    switch (operation->kind) {
    case FAKE_COPY:
        return CUPTI_ACTIVITY_KIND_MEMCPY;
    case FAKE_SET:
        return CUPTI_ACTIVITY_KIND_MEMSET;
    case FAKE_LAUNCH:
    case FAKE_CALL: // in place of a library's kernel
        return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    default:
        return 0;
    }
}

// A graph is one activity, if graph activities are enabled.
static unsigned note_node(const struct fake_operation *operation, uint64_t *start_ns)
{
    static struct {
        uint32_t correlation;
        uint64_t start_ns;
    } graphs[64];
    const size_t at = operation->correlation % 64;
    if (graphs[at].correlation != operation->correlation) {
        graphs[at].correlation = operation->correlation;
        graphs[at].start_ns = *start_ns;
    }
    *start_ns = graphs[at].start_ns;
    return operation->ends_graph ? CUPTI_ACTIVITY_KIND_GRAPH_TRACE : 0;
}

void fake_cupti_note(const struct fake_operation *operation, uint64_t start_ns)
{
    const char *lose = getenv("WEIR_TEST_CUPTI_LOSE");
    unsigned kind = kind_of(operation);
    if (operation->of_graph && kinds_on[CUPTI_ACTIVITY_KIND_GRAPH_TRACE])
        kind = note_node(operation, &start_ns);
    if (!kinds_on[kind] || kind == 0 || is_set("WEIR_TEST_CUPTI_MUTE"))
        return;
    noted++;
    if (lose && *lose && noted % strtol(lose, NULL, 10) == 0)
        return;
    unsigned char *record = append(&activities, &activity_count);
    if (!record)
        return;
    put_32(record, 0, kind);
#define PUT(number, structure, start_at, end_at, correlation_at) \
    if (kind == (number)) {                                      \
        put_64(record, start_at, start_ns);                      \
        put_64(record, end_at, fake_cupti_now());                \
        put_32(record, correlation_at, operation->correlation);  \
    }
    CUPTI_TIMED_RECORDS(PUT)
#undef PUT
}

// The functions.

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = fake_cupti_now();
    return CUPTI_SUCCESS;
}

static CUptiResult set_kind(unsigned kind, bool on)
{
    if (is_set("WEIR_TEST_CUPTI_REFUSE"))
        return 999;
    pthread_mutex_lock(&fake_lock);
    kinds_on[kind] = on;
    pthread_mutex_unlock(&fake_lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    return set_kind(kind, true);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    return set_kind(kind, false);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, uint8_t on)
{
    pthread_mutex_lock(&fake_lock);
    calls_on[call] = on != 0;
    pthread_mutex_unlock(&fake_lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc on_request,
                                           CUpti_BuffersCallbackCompleteFunc on_complete)
{
    pthread_mutex_lock(&fake_lock);
    request = on_request;
    complete = on_complete;
    pthread_mutex_unlock(&fake_lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t size, CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)(void *)*record + RECORD_BYTES : buffer;
    if ((size_t)(next - buffer) + RECORD_BYTES > size)
        return FAKE_NO_RECORDS;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

static void deliver(unsigned char (**pending)[RECORD_BYTES], size_t *pending_count)
{
    pthread_mutex_lock(&fake_lock);
    unsigned char(*records)[RECORD_BYTES] = *pending;
    const size_t count = *pending_count;
    *pending = NULL;
    *pending_count = 0;
    pthread_mutex_unlock(&fake_lock);
    for (size_t done = 0; done < count;) {
        uint8_t *buffer = NULL;
        size_t size = 0;
        size_t most = 0;
        request(&buffer, &size, &most);
        if (!buffer)
            break;
        const size_t room = size / RECORD_BYTES;
        const size_t piece = count - done < room ? count - done : room;
        memcpy(buffer, records[done], piece * RECORD_BYTES);
        complete(NULL, 0, buffer, size, piece * RECORD_BYTES);
        done += piece;
    }
    free(records);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    deliver(&activities, &activity_count);
    deliver(&relations, &relation_count);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1 || depth == DEPTH)
        return FAKE_NOT_FOUND;
    ids[depth++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t *last)
{
    if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1 || depth == 0)
        return FAKE_NOT_FOUND;
    depth--;
    if (last)
        *last = ids[depth];
    return CUPTI_SUCCESS;
}
