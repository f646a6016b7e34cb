// What ranks say of their calls, its comparison, and the sentences of failures.
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "transports/local/local.h"

#define DESCRIPTION_SIZE 128

static const char *name_of(const struct local_head *head)
{
    if (head->kind == LOCAL_MEETING)
        return "meeting";
    return head->kind == LOCAL_SPLIT ? "split" : weir_collective_name(head->kind);
}

// The end of a path, which names the file, matters more than its beginning.
static void set_file(struct local_head *head, const char *file)
{
    const size_t length = file ? strlen(file) : 0;
    const char *end = length < sizeof head->file ? file : file + length - sizeof head->file + 1;
    if (file)
        snprintf(head->file, sizeof head->file, "%s", end);
}

// What a kind does not use is 0, and so equal on all ranks.
struct local_head local_head_of(const struct weir_transport_call *call)
{
    const weir_collective kind = call->kind;
    const bool rooted = kind == WEIR_REDUCE || kind == WEIR_BROADCAST || kind == WEIR_GATHER ||
                        kind == WEIR_SCATTER || kind == WEIR_SEND || kind == WEIR_RECV;
    const bool sized = kind != WEIR_EXCHANGE && kind != WEIR_BARRIER;
    struct local_head head = {
        .kind = kind,
        .element = sized ? call->element : 0,
        .reduction = local_is_reduction(kind) ? call->reduction : 0,
        .root = rooted ? call->root : 0,
        .count = sized ? call->count : 0,
        .number = call->number,
        .line = call->line,
    };
    set_file(&head, call->file);
    return head;
}

struct local_head local_head_of_split(const struct weir_transport_split *split, size_t record_size)
{
    struct local_head head = {
        .kind = LOCAL_SPLIT,
        .element = WEIR_U8,
        .count = record_size,
        .number = split->number,
        .line = split->line,
    };
    set_file(&head, split->file);
    return head;
}

static void append_call(char *text, size_t size, size_t *used, const struct local_head *head)
{
    weir_text_append(text, size, used, "%s", name_of(head));
    if (local_is_numbered(head->kind))
        weir_text_append(text, size, used, " %llu", (unsigned long long)head->number);
}

// Of another rank, which may name its file as it likes.
static void describe(const struct local_head *head, char *text, size_t size)
{
    char file[LOCAL_FILE_SIZE];
    size_t used = 0;
    weir_text_escape(file, sizeof file, head->file, "");
    append_call(text, size, &used, head);
    if (file[0])
        weir_text_append(text, size, &used, " (%s:%d)", file, (int)head->line);
}

WEIR_PRINTF(4, 0)
static bool fail(const struct local_run *run, enum weir_transport_fault fault, uint32_t rank,
                 const char *format, va_list arguments)
{
    struct local_cause cause = {.number = run->head.number, .fault = fault, .rank = rank};
    size_t used = 0;
    append_call(cause.text, sizeof cause.text, &used, &run->head);
    weir_text_append(cause.text, sizeof cause.text, &used, " of '%s'", run->group->label);
    if (run->head.file[0])
        weir_text_append(cause.text, sizeof cause.text, &used, ", %s:%d", run->head.file,
                         (int)run->head.line);
    weir_text_append(cause.text, sizeof cause.text, &used, ": ");
    if (used < sizeof cause.text)
        vsnprintf(cause.text + used, sizeof cause.text - used, format, arguments);
    run->group->wire->fail(run->group, &cause);
    return false;
}

bool local_fail(const struct local_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(run, WEIR_FAULT_OTHER, run->group->rank, format, arguments);
    va_end(arguments);
    return false;
}

// The failure of another rank.
WEIR_PRINTF(4, 5)
static bool blame(const struct local_run *run, enum weir_transport_fault fault, uint32_t rank,
                  const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(run, fault, rank, format, arguments);
    va_end(arguments);
    return false;
}

static bool other_call(const struct local_run *run, uint32_t peer, const struct local_head *theirs)
{
    char description[DESCRIPTION_SIZE];
    describe(theirs, description, sizeof description);
    return blame(run, WEIR_FAULT_DIFFERS, peer, "rank %u has called %s instead", peer, description);
}

static bool other_argument(const struct local_run *run, uint32_t peer,
                           const struct local_head *theirs, const char *what)
{
    char description[DESCRIPTION_SIZE];
    describe(theirs, description, sizeof description);
    return blame(run, WEIR_FAULT_DIFFERS, peer, "rank %u has called %s with %s", peer, description,
                 what);
}

static bool other_count(const struct local_run *run, uint32_t peer, const struct local_head *theirs)
{
    char what[DESCRIPTION_SIZE];
    snprintf(what, sizeof what, "%llu elements, and rank %u with %llu",
             (unsigned long long)theirs->count, run->group->rank,
             (unsigned long long)run->head.count);
    return other_argument(run, peer, theirs, what);
}

static bool other_name(const struct local_run *run, uint32_t peer, const struct local_head *theirs,
                       const char *what, const char *name, const char *own)
{
    char text[DESCRIPTION_SIZE];
    snprintf(text, sizeof text, "the %s %s, and rank %u with %s", what, name, run->group->rank,
             own);
    return other_argument(run, peer, theirs, text);
}

static bool other_root(const struct local_run *run, uint32_t peer, const struct local_head *theirs)
{
    char theirs_text[16];
    char own_text[16];
    snprintf(theirs_text, sizeof theirs_text, "%u", theirs->root);
    snprintf(own_text, sizeof own_text, "%u", run->head.root);
    return other_name(run, peer, theirs, "root", theirs_text, own_text);
}

// A message and its receiver are a pair: neither has a number of its own.
static bool same_message(const struct local_run *run, uint32_t peer,
                         const struct local_head *theirs)
{
    if (local_is_numbered(theirs->kind))
        return other_call(run, peer, theirs);
    if (theirs->element != run->head.element)
        return other_name(run, peer, theirs, "datatype", weir_datatype_name(theirs->element),
                          weir_datatype_name(run->head.element));
    return theirs->count == run->head.count || other_count(run, peer, theirs);
}

bool local_same(const struct local_run *run, uint32_t peer, const struct local_head *theirs)
{
    const struct local_head *own = &run->head;
    if (!local_is_numbered(own->kind))
        return same_message(run, peer, theirs);
    if (theirs->kind != own->kind || theirs->number != own->number)
        return other_call(run, peer, theirs);
    if (theirs->element != own->element)
        return other_name(run, peer, theirs, "datatype", weir_datatype_name(theirs->element),
                          weir_datatype_name(own->element));
    if (theirs->count != own->count)
        return other_count(run, peer, theirs);
    if (theirs->reduction != own->reduction)
        return other_name(run, peer, theirs, "reduction", weir_reduction_name(theirs->reduction),
                          weir_reduction_name(own->reduction));
    return theirs->root == own->root || other_root(run, peer, theirs);
}

bool local_late(const struct local_run *run, uint32_t peer, const struct local_head *last)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    char description[DESCRIPTION_SIZE];
    weir_text_duration(duration, (double)run->timeout_ns);
    if (!last)
        return blame(run, WEIR_FAULT_SILENT, peer, "rank %u has submitted nothing in %s", peer,
                     duration);
    describe(last, description, sizeof description);
    if (local_is_numbered(run->head.kind) && last->number == run->head.number)
        return blame(run, WEIR_FAULT_SILENT, peer,
                     "rank %u has come to %s and has not finished in %s: it is stopped, or cut off",
                     peer, description, duration);
    return blame(run, WEIR_FAULT_SILENT, peer, "rank %u has submitted nothing after %s in %s", peer,
                 description, duration);
}

bool local_gone(const struct local_run *run, uint32_t peer, const struct local_head *last)
{
    char description[DESCRIPTION_SIZE];
    if (!last)
        return blame(run, WEIR_FAULT_LEFT, peer,
                     "rank %u has destroyed the communicator before its first collective", peer);
    describe(last, description, sizeof description);
    return blame(run, WEIR_FAULT_LEFT, peer, "rank %u has destroyed the communicator after %s",
                 peer, description);
}

bool local_died(const struct local_run *run, uint32_t peer, const struct local_head *last)
{
    char description[DESCRIPTION_SIZE];
    if (!last)
        return blame(run, WEIR_FAULT_DIED, peer, "rank %u has died before its first collective",
                     peer);
    describe(last, description, sizeof description);
    return blame(run, WEIR_FAULT_DIED, peer, "rank %u has died; its last collective was %s", peer,
                 description);
}
