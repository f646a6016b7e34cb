// What calls look at first: forks, and in debug mode whether objects and memory are still there.
#define _GNU_SOURCE // RTLD_DEFAULT
#include "core/support/debug.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

atomic_uint weir__unusual;

// Driver threads and locks do not survive a fork, so in the child every call
// returns an error instead of hanging.

void weir__report_forked(const char *function, const char *file, int line)
{
    weir__report_at(
        file, line, NULL, WEIR_ERROR_FORKED,
        "open a runtime in the child before the parent opens one, or use exec",
        "%.*s: this process was forked after Weir was used; drivers do not survive that",
        weir__name_length(function), function);
}

typedef void *(*poison_function)(void *begin, size_t size);

// Why the range may not be used any more: "is not mapped any more", or, in a program with the address
// sanitizer, "was freed"; NULL if nothing speaks against it. Pages that may not be read count as
// mapped, and so does memory that another mapping has taken since.
static const char *probe(const void *memory, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)memory & ~(page - 1);
    const int error = errno;
    // msync() with MS_ASYNC writes nothing on Linux, and fails if a page of the range is not mapped; it looks at
    // mappings, not at pages, so a large range costs no more than a small one.
    const int result = msync((void *)begin, (uintptr_t)memory + size - begin, MS_ASYNC);
    const bool gone = result != 0 && errno == ENOMEM;
    errno = error;
    if (gone)
        return "is not mapped any more";
    void *symbol = dlsym(RTLD_DEFAULT, "__asan_region_is_poisoned");
    poison_function is_poisoned;
    *(void **)&is_poisoned = symbol;
    return symbol && is_poisoned((void *)(uintptr_t)memory, size)
               ? "was freed, says the address sanitizer"
               : NULL;
}

// Records of objects are in a table by address, under one lock. A record is dropped
// when its object's memory is freed, or when another object has the address.

enum {
    BUCKETS = 1024,
    LABEL_SIZE = 64
};

struct place {
    const char *file; // kept by weir__file_name(); NULL: not known
    int line;
};

struct record {
    struct record *next; // of its bucket
    const void *object;
    const char *kind;
    char label[LABEL_SIZE];
    struct place begin;
    struct place end;
    bool ended;
    bool went;          // with what it belongs to: no call destroyed it
    const void *memory; // that a buffer wraps, or NULL
    size_t size;
    void *block; // memory of the object that is kept, or NULL
};

static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_DEBUG]);
static struct record *buckets[BUCKETS];
static struct record *kept[WEIR__DEBUG_KEPT]; // destroyed, with their memory, in turn
static size_t kept_count;                     // so far
static size_t wrapped_count;                  // records with memory that have not ended
// There are, or may be, objects without a record.
static bool is_incomplete;

static struct record **bucket_of(const void *object)
{
    const uint64_t number = (uint64_t)(uintptr_t)object / 64;
    return &buckets[(number * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

// All functions down to the next such line are called with the lock held.

static struct record *find(const void *object)
{
    struct record *at = *bucket_of(object);
    while (at && at->object != object)
        at = at->next;
    return at;
}

static void forget(struct record *record)
{
    struct record **at = bucket_of(record->object);
    while (*at != record)
        at = &(*at)->next;
    *at = record->next;
    if (record->memory && !record->ended)
        wrapped_count--;
    weir__release(record);
}

static void set_end(struct record *record, const char *file, int line)
{
    if (!record->ended && record->memory)
        wrapped_count--;
    record->ended = true;
    if (!record->end.file)
        record->end = (struct place){weir__file_name(file), line};
}

// It ends with what it belongs to, unless it was destroyed before.
static void set_went(struct record *record)
{
    record->went = record->went || !record->ended;
    set_end(record, NULL, 0);
}

// With the lock free from here on.

// The object's record, with the lock taken; NULL, without it: there is none, or no debug mode.
static struct record *take(const void *object)
{
    if (!weir__debugging())
        return NULL;
    weir_lock_take(&lock);
    struct record *record = find(object);
    if (!record)
        weir_lock_release(&lock);
    return record;
}

// And closed, where others are created and destroyed.
static bool is_opened(const struct record *record)
{
    return strcmp(record->kind, "runtime") == 0 || strcmp(record->kind, "device") == 0;
}

// "the buffer 'frames', created at main.c:12".
static void describe(const struct record *record, char *text, size_t size)
{
    char place[WEIR__PLACE_SIZE];
    weir__place_text(place, is_opened(record) ? " opened at " : " created at ", record->begin.file,
                     record->begin.line, "");
    if (record->label[0])
        snprintf(text, size, "the %s '%s'%s%s", record->kind, weir__label_or_none(record->label),
                 place[0] ? "," : "", place);
    else
        snprintf(text, size, "a %s without a label%s%s", record->kind, place[0] ? "," : "", place);
}

struct call {
    const char *function;
    const char *file;
    int line;
};

static weir_status refuse_kind(const struct call *call, const struct weir__use *use,
                               const struct record *record)
{
    char text[LABEL_SIZE + WEIR__PLACE_SIZE + 64];
    describe(record, text, sizeof text);
    return weir__refuse(call, record->label, "remove the cast that hides it from the compiler",
                        "%.*s: %s is to be a %s, and points to %s",
                        weir__name_length(call->function), call->function, use->name, use->kind,
                        text);
}

static weir_status refuse_ended(const struct call *call, const struct weir__use *use,
                                const struct record *record, bool destroys)
{
    char text[LABEL_SIZE + WEIR__PLACE_SIZE + 64], place[WEIR__PLACE_SIZE];
    const bool opened = is_opened(record);
    const char *verb = opened ? "closed" : "destroyed";
    char remedy[128];
    describe(record, text, sizeof text);
    weir__place_text(place, opened ? " closed at " : " destroyed at ", record->end.file,
                     record->end.line, "");
    snprintf(remedy, sizeof remedy,
             destroys ? "let one place own the %s: a %s call sets only the pointer that it is given"
                      : "move the %s's %s call after the last call that uses it",
             record->kind, opened ? "close" : "destroy");
    return weir__refuse(call, record->label, remedy, "%.*s: %s points to %s, which was%s%s%s",
                        weir__name_length(call->function), call->function, use->name, text,
                        place[0] ? "" : " ", place[0] ? "" : verb,
                        place[0]                  ? place
                        : record->went && !opened ? " with what it belongs to"
                                                  : "");
}

static weir_status refuse_memory(const struct call *call, const struct record *record,
                                 const char *why)
{
    char text[LABEL_SIZE + WEIR__PLACE_SIZE + 64];
    describe(record, text, sizeof text);
    return weir__refuse(call, record->label,
                        "keep the memory until the buffer is destroyed and all work that uses it "
                        "has ended",
                        "%.*s: memory of the program's, %zu bytes at %p, %s, and %s wraps it",
                        weir__name_length(call->function), call->function, record->size,
                        record->memory, why, text);
}

// The object's record as it is; false if it has none, which `*out_incomplete` may explain.
static bool look_up(const void *object, struct record *out_record, bool *out_incomplete)
{
    weir_lock_take(&lock);
    const struct record *found = find(object);
    if (found)
        *out_record = *found;
    *out_incomplete = is_incomplete;
    weir_lock_release(&lock);
    return found != NULL;
}

static weir_status check(const struct call *call, const struct weir__use *use, bool destroys)
{
    struct record record;
    bool incomplete;
    if (!use->object)
        return WEIR_OK;
    if (!look_up(use->object, &record, &incomplete))
        return incomplete ? WEIR_OK
                          : weir__refuse(call, NULL,
                                         "pass what the create call has stored, and nothing after "
                                         "its destruction",
                                         "%.*s: %s points to no object of Weir's, or to one that "
                                         "was destroyed before the last %d were",
                                         weir__name_length(call->function), call->function,
                                         use->name, WEIR__DEBUG_KEPT);
    if (strcmp(record.kind, use->kind) != 0)
        return refuse_kind(call, use, &record);
    if (record.ended)
        return refuse_ended(call, use, &record, destroys);
    const char *why = record.memory ? probe(record.memory, record.size) : NULL;
    return why ? refuse_memory(call, &record, why) : WEIR_OK;
}

weir_status weir__enter(const char *function, const char *file, int line,
                        const struct weir__use *uses, size_t count)
{
    const struct call call = {function, file, line};
    if (weir__is_forked())
        return (weir__report_forked(function, file, line), WEIR_ERROR_FORKED);
    for (size_t i = 0; i < count; i++) {
        const weir_status status = check(&call, &uses[i], false);
        if (status < 0)
            return weir__told(status);
    }
    return WEIR_OK;
}

weir_status weir__enter_arguments(const char *function, const char *file, int line,
                                  const struct weir_argument *arguments, size_t count)
{
    const struct call call = {function, file, line};
    for (size_t i = 0; weir__debugging() && arguments && i < count; i++) {
        if (arguments[i].kind != WEIR_PARAMETER_BUFFER)
            continue;
        char name[32];
        snprintf(name, sizeof name, "argument %zu", i);
        TRY(check(&call, &(struct weir__use){arguments[i].buffer, "buffer", name}, false));
    }
    return WEIR_OK;
}

static bool may_use(const struct call *call, const struct weir__use *use, bool destroys)
{
    if (check(call, use, destroys) == WEIR_OK)
        return true;
    weir__tell();
    return false;
}

bool weir__is_alive(const char *function, const struct weir__use *use)
{
    const struct call call = {function, NULL, 0};
    return weir__is_forked() || may_use(&call, use, false);
}

bool weir__may_end(const char *function, const char *file, int line, const struct weir__use *use)
{
    const struct call call = {function, file, line};
    if (weir__is_forked())
        return false;
    struct record record;
    bool incomplete;
    // A buffer whose memory is gone is destroyed all the same.
    return may_use(&call, use, true) ||
           (look_up(use->object, &record, &incomplete) && record.memory && !record.ended &&
            strcmp(record.kind, use->kind) == 0);
}

void weir__debug_opened(bool debug)
{
    weir_lock_take(&lock);
    if (debug)
        atomic_fetch_or(&weir__unusual, WEIR__UNUSUAL_DEBUG);
    else if (!weir__debugging())
        is_incomplete = true;
    weir_lock_release(&lock);
}

void weir__debug_begin(const void *object, const char *kind, const char *label)
{
    if (!weir__debugging())
        return;
    struct record *record = weir__allocate(sizeof *record);
    weir_lock_take(&lock);
    struct record *before = find(object);
    if (before && !before->block)
        forget(before);
    if (record) {
        *record = (struct record){.next = *bucket_of(object), .object = object, .kind = kind};
        weir_text_escape(record->label, sizeof record->label, label, "");
        *bucket_of(object) = record;
    } else {
        is_incomplete = true;
    }
    weir_lock_release(&lock);
}

void weir__debug_place(const void *object, const char *file, int line)
{
    struct record *record = take(object);
    if (!record)
        return;
    record->begin = (struct place){weir__file_name(file), line};
    weir_lock_release(&lock);
}

void weir__debug_end(const void *object, const char *file, int line)
{
    struct record *record = take(object);
    if (!record)
        return;
    set_end(record, file, line);
    weir_lock_release(&lock);
}

void weir__debug_went(const void *object)
{
    struct record *record = take(object);
    if (!record)
        return;
    set_went(record);
    weir_lock_release(&lock);
}

bool weir__debug_keep(const void *object, void *block)
{
    struct record *record = take(object);
    if (!record)
        return false;
    set_went(record);
    record->block = block;
    struct record **oldest = &kept[kept_count++ % WEIR__DEBUG_KEPT];
    if (*oldest) {
        weir__release((*oldest)->block);
        forget(*oldest);
    }
    *oldest = record;
    weir_lock_release(&lock);
    return true;
}

void weir__debug_wraps(const void *buffer, const void *memory, size_t size)
{
    struct record *record = take(buffer);
    if (!record)
        return;
    record->memory = memory;
    record->size = size;
    wrapped_count++;
    weir_lock_release(&lock);
}

// The first record with memory that may not be used; with the lock held.
static const char *find_unmapped(struct record *out_record)
{
    for (size_t i = 0; wrapped_count > 0 && i < BUCKETS; i++)
        for (const struct record *at = buckets[i]; at; at = at->next) {
            const bool looks = at->memory && !at->ended;
            const char *why = looks ? probe(at->memory, at->size) : NULL;
            *out_record = *at;
            if (why)
                return why;
        }
    return NULL;
}

weir_status weir__debug_check_memory(const char *function, const char *file, int line)
{
    const struct call call = {function, file, line};
    struct record record;
    if (!weir__debugging())
        return WEIR_OK;
    weir_lock_take(&lock);
    const char *why = find_unmapped(&record);
    weir_lock_release(&lock);
    return why ? refuse_memory(&call, &record, why) : WEIR_OK;
}

weir_status weir__debug_check_host(const char *function, const char *file, int line,
                                   const char *name, const void *memory, size_t size)
{
    const char *why = weir__debugging() && size > 0 ? probe(memory, size) : NULL;
    if (!why)
        return WEIR_OK;
    return weir__fail_at(file, line, NULL, WEIR_ERROR_INVALID,
                         "keep the memory until the call has returned",
                         "%s: memory of the program's, '%s', %zu bytes at %p, %s", function, name,
                         size, memory, why);
}

void weir__debug_deferred(const void *buffer, bool in_graph)
{
    struct record record;
    bool incomplete;
    char text[LABEL_SIZE + WEIR__PLACE_SIZE + 64], place[WEIR__PLACE_SIZE], message[640];
    if (!weir__debugging() || !look_up(buffer, &record, &incomplete) || !record.memory)
        return;
    describe(&record, text, sizeof text);
    weir__place_text(place, " destroyed at ", record.end.file, record.end.line, "");
    snprintf(message, sizeof message,
             "%s, wraps memory of the program's and was%s%s while %s: keep the memory until %s",
             text, place[0] ? "" : " destroyed", place,
             in_graph ? "a graph uses it" : "its device works",
             in_graph ? "the graph is destroyed and its launches have ended"
                      : "that work has ended");
    weir__log(WEIR_LOG_WARNING, "core", message);
}
