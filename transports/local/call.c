// What ranks say of their calls, its comparison, and the sentences of failures.
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/odd.h"
#include "base/text.h"
#include "transports/local/local.h"

// Which rank needs which piece of which other rank's memory. A collective on the whole of a buffer is
// made of chunks, one for each rank: rank i reduces, or receives of the root, chunk i, and all ranks
// copy it from there. So no rank, the root included, sends more than about twice what it holds.
// And the loop over the pieces of a phase, for ranks that read each other's memory.

struct chunk {
    size_t offset;
    size_t size;
};

static struct chunk chunk_of(const struct local_run *run, uint32_t index)
{
    const uint32_t n = run->group->count;
    const size_t element = weir_datatype_size(run->head.element);
    const uint64_t each = run->head.count / n;
    const uint64_t longer = run->head.count % n; // the first ones have one element more
    const uint64_t begin = each * index + (index < longer ? index : longer);
    return (struct chunk){(size_t)begin * element, (size_t)(each + (index < longer)) * element};
}

static size_t whole_of(const struct local_run *run)
{
    return (size_t)run->head.count * weir_datatype_size(run->head.element);
}

uint32_t local_phases(uint32_t kind)
{
    switch (kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_BROADCAST:
        return 2;
    case WEIR_REDUCE:
    case WEIR_ALL_GATHER:
    case WEIR_REDUCE_SCATTER:
    case WEIR_ALL_TO_ALL:
    case WEIR_GATHER:
    case WEIR_SCATTER:
    case LOCAL_SPLIT:
    case LOCAL_MEETING:
        return 1;
    default:
        return 0;
    }
}

static struct local_piece all_reduce_piece(const struct local_run *run, uint32_t phase,
                                           uint32_t reader, uint32_t owner)
{
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    const bool wanted = phase == 0 || reader != owner;
    return (struct local_piece){
        .of_result = phase == 1,
        .reduced = phase == 0,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

// The root copies its own `src` to its `dst`, unless that is in place.
static struct local_piece broadcast_piece(const struct local_run *run, uint32_t phase,
                                          uint32_t reader, uint32_t owner)
{
    const uint32_t root = run->head.root;
    if (reader == root)
        return (struct local_piece){.size = phase == 0 && owner == root ? whole_of(run) : 0};

    const bool wanted = phase == 0 ? owner == root : owner != reader;
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    return (struct local_piece){
        .of_result = owner != root,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

static struct local_piece single_piece(const struct local_run *run, uint32_t reader, uint32_t owner)
{
    const size_t whole = whole_of(run);
    const uint32_t root = run->head.root;
    switch (run->head.kind) {
    case WEIR_REDUCE:
        return (struct local_piece){.reduced = true, .size = reader == root ? whole : 0};
    case WEIR_REDUCE_SCATTER:
        return (struct local_piece){.reduced = true, .size = whole, .offset = reader * whole};
    case WEIR_ALL_GATHER:
    case LOCAL_SPLIT:
    case LOCAL_MEETING:
        return (struct local_piece){.size = whole, .target = owner * whole};
    case WEIR_ALL_TO_ALL:
        return (
            struct local_piece){.size = whole, .offset = reader * whole, .target = owner * whole};
    case WEIR_GATHER:
        return (struct local_piece){.size = reader == root ? whole : 0, .target = owner * whole};
    case WEIR_SCATTER:
        return (struct local_piece){.size = owner == root ? whole : 0, .offset = reader * whole};
    default:
        return (struct local_piece){.size = 0};
    }
}

bool local_piece(const struct local_run *run, uint32_t phase, uint32_t reader, uint32_t owner,
                 struct local_piece *out_piece)
{
    if (run->head.kind == WEIR_ALL_REDUCE)
        *out_piece = all_reduce_piece(run, phase, reader, owner);
    else if (run->head.kind == WEIR_BROADCAST)
        *out_piece = broadcast_piece(run, phase, reader, owner);
    else
        *out_piece = single_piece(run, reader, owner);
    return out_piece->size > 0;
}

static bool reduce(struct local_run *run, uint32_t phase, size_t size,
                   const struct local_reads *reads)
{
    for (size_t at = 0; at < size; at += LOCAL_SEGMENT_BYTES) {
        const size_t left = size - at;
        const size_t part = left < LOCAL_SEGMENT_BYTES ? left : LOCAL_SEGMENT_BYTES;
        if (!reads->reduce_segment(run, phase, at, part))
            return false;
    }
    return true;
}

bool local_read_pieces(struct local_run *run, uint32_t phase, const struct local_reads *reads)
{
    const uint32_t count = run->group->count;
    const uint32_t own = run->group->rank;
    struct local_piece piece;
    // Each rank begins with another owner, so that not all read the same memory.
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t owner = (own + i) % count;
        if (!local_piece(run, phase, own, owner, &piece))
            continue;
        if (piece.reduced)
            return reduce(run, phase, piece.size, reads);
        if (!reads->copy(run, owner, &piece))
            return false;
    }
    return true;
}

// When two have called different things, so long the calls of the others are waited for, which tell
// which of the two is wrong.
#define JUDGE_NS (UINT64_C(200) * 1000 * 1000)

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
void local_describe(const struct local_head *head, char *text, size_t size)
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
    char file[LOCAL_FILE_SIZE];
    size_t used = 0;
    weir_text_escape(file, sizeof file, run->head.file, "");
    append_call(cause.text, sizeof cause.text, &used, &run->head);
    weir_text_append(cause.text, sizeof cause.text, &used, " of '%s'", run->group->label);
    if (file[0])
        weir_text_append(cause.text, sizeof cause.text, &used, ", %s:%d", file,
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

// Two ranks whose calls differ.
struct pair {
    const struct local_run *run; // its head is the call of `rank`
    uint32_t rank;
    uint32_t peer;
    const struct local_head *theirs;
    uint32_t
        fault; // the peer, if most ranks have called what `rank` has; UINT32_MAX: either may be wrong
};

static bool other_call(const struct pair *pair)
{
    char theirs[LOCAL_CALL_SIZE];
    char own[LOCAL_CALL_SIZE];
    local_describe(pair->theirs, theirs, sizeof theirs);
    local_describe(&pair->run->head, own, sizeof own);
    if (pair->fault == pair->peer)
        return blame(pair->run, WEIR_FAULT_DIFFERS, pair->fault, "rank %u has called %s instead",
                     pair->peer, theirs);
    return blame(pair->run, WEIR_FAULT_DIFFERS, pair->fault,
                 "rank %u has called %s, and rank %u %s", pair->peer, theirs, pair->rank, own);
}

static bool other_argument(const struct pair *pair, const char *what)
{
    char description[LOCAL_CALL_SIZE];
    local_describe(pair->theirs, description, sizeof description);
    return blame(pair->run, WEIR_FAULT_DIFFERS, pair->fault, "rank %u has called %s with %s",
                 pair->peer, description, what);
}

static bool other_count(const struct pair *pair)
{
    char what[LOCAL_CALL_SIZE];
    snprintf(what, sizeof what, "%llu elements, and rank %u with %llu",
             (unsigned long long)pair->theirs->count, pair->rank,
             (unsigned long long)pair->run->head.count);
    return other_argument(pair, what);
}

static bool other_name(const struct pair *pair, const char *what, const char *name, const char *own)
{
    char text[LOCAL_CALL_SIZE];
    snprintf(text, sizeof text, "the %s %s, and rank %u with %s", what, name, pair->rank, own);
    return other_argument(pair, text);
}

static bool other_root(const struct pair *pair)
{
    char theirs[16];
    char own[16];
    snprintf(theirs, sizeof theirs, "%u", pair->theirs->root);
    snprintf(own, sizeof own, "%u", pair->run->head.root);
    return other_name(pair, "root", theirs, own);
}

// A message and its receiver are a pair: neither has a number of its own.
static bool is_message(const struct local_head *own, const struct local_head *theirs)
{
    return !local_is_numbered(own->kind) && !local_is_numbered(theirs->kind);
}

bool local_is_same(const struct local_head *own, const struct local_head *theirs)
{
    const bool message = is_message(own, theirs);
    return own->element == theirs->element && own->count == theirs->count &&
           (message || (own->kind == theirs->kind && own->number == theirs->number &&
                        own->reduction == theirs->reduction && own->root == theirs->root));
}

static bool fail_of_pair(const struct pair *pair)
{
    const struct local_head *own = &pair->run->head;
    const struct local_head *theirs = pair->theirs;
    if (!is_message(own, theirs) && (theirs->kind != own->kind || theirs->number != own->number))
        return other_call(pair);
    if (theirs->element != own->element)
        return other_name(pair, "datatype", weir_datatype_name(theirs->element),
                          weir_datatype_name(own->element));
    if (theirs->count != own->count)
        return other_count(pair);
    if (theirs->reduction != own->reduction)
        return other_name(pair, "reduction", weir_reduction_name(theirs->reduction),
                          weir_reduction_name(own->reduction));
    return other_root(pair);
}

bool local_same(const struct local_run *run, uint32_t peer, const struct local_head *theirs)
{
    const struct pair pair = {run, run->group->rank, peer, theirs, UINT32_MAX};
    return local_is_same(&run->head, theirs) || fail_of_pair(&pair);
}

static const struct local_head *head_of(const struct local_met *met, uint32_t rank)
{
    return rank == met->run->group->rank ? &met->run->head : met->head_of(met, rank);
}

static bool have_called_the_same(const void *things, uint32_t a, uint32_t b)
{
    const struct local_head *first = head_of(things, a);
    const struct local_head *second = head_of(things, b);
    return first && second && local_is_same(first, second);
}

bool local_judge(const struct local_met *met)
{
    const uint32_t count = met->run->group->count;
    uint32_t rank = 0;
    uint32_t peer = weir_odd_one(met, count, have_called_the_same, &rank);
    const uint32_t fault = peer;
    while (peer == WEIR_ODD_NONE && rank < count && !head_of(met, rank))
        rank++;
    for (uint32_t i = rank + 1; peer == WEIR_ODD_NONE && i < count; i++)
        if (head_of(met, i) && !have_called_the_same(met, rank, i))
            peer = i;
    if (peer == WEIR_ODD_NONE)
        return true;
    // The sentence is about the call of the rank that is right, whichever rank makes it.
    struct local_run run = *met->run;
    run.head = *head_of(met, rank);
    return fail_of_pair(&(struct pair){&run, rank, peer, head_of(met, peer), fault});
}

uint64_t local_judge_by(uint64_t deadline_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    return deadline_ns < now_ns + JUDGE_NS ? deadline_ns : now_ns + JUDGE_NS;
}

// The program's own are numbered from 1; the front end has others.
static bool is_known(const struct local_head *last)
{
    return last && last->number > 0;
}

bool local_late(const struct local_run *run, uint32_t peer, const struct local_head *last)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    char description[LOCAL_CALL_SIZE];
    weir_text_duration(duration, (double)run->timeout_ns);
    if (!is_known(last))
        return blame(run, WEIR_FAULT_SILENT, peer, "rank %u has submitted nothing in %s", peer,
                     duration);
    local_describe(last, description, sizeof description);
    if (local_is_numbered(run->head.kind) && last->number == run->head.number)
        return blame(run, WEIR_FAULT_SILENT, peer,
                     "rank %u has come to %s and has not finished in %s: it is stopped, or cut off",
                     peer, description, duration);
    return blame(run, WEIR_FAULT_SILENT, peer, "rank %u has submitted nothing after %s in %s", peer,
                 description, duration);
}

void local_append_wait(char *text, const struct local_wait *wait)
{
    static const char more[] = ", and so on";
    size_t used = strlen(text);
    const bool full = used > LOCAL_CAUSE_SIZE - LOCAL_CALL_SIZE - LOCAL_CALL_SIZE / 2;
    if (!full)
        weir_text_append(text, LOCAL_CAUSE_SIZE, &used, "%srank %u waits in %.80s for rank %u",
                         used ? ", " : "", wait->rank, wait->call, wait->awaits);
    else if (strcmp(text + used - strlen(more), more) != 0)
        weir_text_append(text, LOCAL_CAUSE_SIZE, &used, "%s", more);
}

bool local_circle(const struct local_run *run, const char *waits)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    return blame(run, WEIR_FAULT_SILENT, UINT32_MAX, "the ranks wait in a circle, for %s: %s",
                 weir_text_duration(duration, (double)run->timeout_ns), waits);
}

bool local_late_elsewhere(const struct local_run *run, uint32_t peer, const char *elsewhere)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    return blame(run, WEIR_FAULT_SILENT, peer,
                 "rank %u has not come to it in %s: it waits in %s; use communicators in the same "
                 "order on all ranks",
                 peer, weir_text_duration(duration, (double)run->timeout_ns), elsewhere);
}

bool local_gone(const struct local_run *run, uint32_t peer, const struct local_head *last)
{
    char description[LOCAL_CALL_SIZE];
    if (!is_known(last))
        return blame(run, WEIR_FAULT_LEFT, peer,
                     "rank %u has destroyed the communicator before its first collective", peer);
    local_describe(last, description, sizeof description);
    return blame(run, WEIR_FAULT_LEFT, peer, "rank %u has destroyed the communicator after %s",
                 peer, description);
}

bool local_died(const struct local_run *run, uint32_t peer, const struct local_head *last)
{
    char description[LOCAL_CALL_SIZE];
    if (!is_known(last))
        return blame(run, WEIR_FAULT_DIED, peer, "rank %u has died before its first collective",
                     peer);
    local_describe(last, description, sizeof description);
    return blame(run, WEIR_FAULT_DIED, peer, "rank %u has died; its last collective was %s", peer,
                 description);
}
