// Heads, their comparison, and the sentences of failures.
#include "transports/kit/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/odd.h"
#include "base/text.h"

// When two have called different things, so long the calls of the others are waited for, which tell
// which of the two is wrong.
#define JUDGE_NS (UINT64_C(500) * 1000 * 1000)

static const char *name_of(const struct weir_head *head)
{
    if (head->kind == WEIR_CALL_JOIN)
        return "join";
    return head->kind == WEIR_CALL_SPLIT ? "split" : weir_collective_name(head->kind);
}

// The end of a path, which names the file, matters more than its beginning.
struct weir_head weir_head_of_line(uint32_t kind, uint64_t number, const char *file, int line)
{
    struct weir_head head = {.kind = kind, .number = number, .line = line};
    const size_t length = file ? strlen(file) : 0;
    const char *end = length < sizeof head.file ? file : file + length - sizeof head.file + 1;
    if (file)
        snprintf(head.file, sizeof head.file, "%s", end);
    return head;
}

struct weir_head weir_head_of(const struct weir_transport_call *call)
{
    const weir_collective kind = call->kind;
    const bool rooted = kind == WEIR_REDUCE || kind == WEIR_BROADCAST || kind == WEIR_GATHER ||
                        kind == WEIR_SCATTER || kind == WEIR_SEND || kind == WEIR_RECV;
    const bool sized = kind != WEIR_EXCHANGE && kind != WEIR_BARRIER;
    struct weir_head head = weir_head_of_line(kind, call->number, call->file, call->line);
    head.element = sized ? call->element : 0;
    head.reduction = weir_is_reduction(kind) ? call->reduction : 0;
    head.root = rooted ? call->root : 0;
    head.count = sized ? call->count : 0;
    return head;
}

static void append_call(char *text, size_t size, size_t *used, const struct weir_head *head)
{
    weir_text_append(text, size, used, "%s", name_of(head));
    if (weir_is_numbered(head->kind))
        weir_text_append(text, size, used, " %llu", (unsigned long long)head->number);
}

static bool escape_file(const struct weir_head *head, char file[WEIR_HEAD_FILE_SIZE])
{
    char said[WEIR_HEAD_FILE_SIZE];
    snprintf(said, sizeof said, "%.*s", WEIR_HEAD_FILE_SIZE - 1, head->file);
    weir_text_escape(file, WEIR_HEAD_FILE_SIZE, said, "");
    return file[0];
}

const char *weir_head_describe(const struct weir_head *head, char text[WEIR_HEAD_TEXT_SIZE])
{
    char file[WEIR_HEAD_FILE_SIZE];
    size_t used = 0;
    append_call(text, WEIR_HEAD_TEXT_SIZE, &used, head);
    if (escape_file(head, file))
        weir_text_append(text, WEIR_HEAD_TEXT_SIZE, &used, " (%s:%d)", file, (int)head->line);
    return text;
}

struct weir_cause weir_cause_heard(const struct weir_cause *told, uint32_t count)
{
    struct weir_cause heard = *told;
    char text[WEIR_CAUSE_SIZE];
    snprintf(text, sizeof text, "%.*s", WEIR_CAUSE_SIZE - 1, told->text);
    weir_text_escape(heard.text, sizeof heard.text, text, "");
    if (heard.fault > WEIR_FAULT_ABORTED)
        heard.fault = WEIR_FAULT_OTHER;
    if (heard.rank >= count)
        heard.rank = UINT32_MAX;
    return heard;
}

WEIR_PRINTF(4, 0)
static bool fail(const struct weir_caller *caller, enum weir_transport_fault fault, uint32_t rank,
                 const char *format, va_list arguments)
{
    const struct weir_head *head = &caller->head;
    struct weir_cause cause = {.number = head->number, .fault = fault, .rank = rank};
    char file[WEIR_HEAD_FILE_SIZE];
    size_t used = 0;
    append_call(cause.text, sizeof cause.text, &used, head);
    weir_text_append(cause.text, sizeof cause.text, &used, " of '%s'", caller->label);
    if (escape_file(head, file))
        weir_text_append(cause.text, sizeof cause.text, &used, ", %s:%d", file, (int)head->line);
    weir_text_append(cause.text, sizeof cause.text, &used, ": ");
    if (used < sizeof cause.text)
        vsnprintf(cause.text + used, sizeof cause.text - used, format, arguments);
    caller->fail(caller->group, &cause);
    return false;
}

bool weir_caller_fail(const struct weir_caller *caller, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(caller, WEIR_FAULT_OTHER, caller->rank, format, arguments);
    va_end(arguments);
    return false;
}

bool weir_caller_blame(const struct weir_caller *caller, enum weir_transport_fault fault,
                       uint32_t rank, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(caller, fault, rank, format, arguments);
    va_end(arguments);
    return false;
}

// Differences.

// Two ranks whose calls differ.
struct pair {
    const struct weir_caller *caller; // with the call of `rank`
    uint32_t rank;
    uint32_t peer;
    const struct weir_head *theirs;
    uint32_t
        fault; // the peer, if most have called what `rank` has; UINT32_MAX: either may be wrong
};

// A message and its receiver are a pair: neither has a number of its own.
static bool is_message(const struct weir_head *own, const struct weir_head *theirs)
{
    return !weir_is_numbered(own->kind) && !weir_is_numbered(theirs->kind);
}

bool weir_head_equals(const struct weir_head *own, const struct weir_head *theirs)
{
    return own->element == theirs->element && own->count == theirs->count &&
           (is_message(own, theirs) ||
            (own->kind == theirs->kind && own->number == theirs->number &&
             own->reduction == theirs->reduction && own->root == theirs->root));
}

static bool other_call(const struct pair *pair)
{
    char theirs[WEIR_HEAD_TEXT_SIZE];
    char own[WEIR_HEAD_TEXT_SIZE];
    weir_head_describe(pair->theirs, theirs);
    if (pair->fault == pair->peer)
        return weir_caller_blame(pair->caller, WEIR_FAULT_DIFFERS, pair->fault,
                                 "rank %u has called %s instead", pair->peer, theirs);
    return weir_caller_blame(pair->caller, WEIR_FAULT_DIFFERS, pair->fault,
                             "rank %u has called %s, and rank %u %s", pair->peer, theirs,
                             pair->rank, weir_head_describe(&pair->caller->head, own));
}

struct difference {
    char text[48];
};

// What `head` has that `other` has not: "64 f32", "the reduction sum", "the root 1".
static struct difference difference(const struct weir_head *head, const struct weir_head *other)
{
    struct difference found;
    if (head->element != other->element || head->count != other->count)
        snprintf(found.text, sizeof found.text, "%llu %s", (unsigned long long)head->count,
                 weir_datatype_name(head->element));
    else if (head->reduction != other->reduction)
        snprintf(found.text, sizeof found.text, "the reduction %s",
                 weir_reduction_name(head->reduction));
    else
        snprintf(found.text, sizeof found.text, "the root %u", head->root);
    return found;
}

static bool fail_of_pair(const struct pair *pair)
{
    const struct weir_head *own = &pair->caller->head;
    const struct weir_head *theirs = pair->theirs;
    char call[WEIR_HEAD_TEXT_SIZE];
    if (!is_message(own, theirs) && (theirs->kind != own->kind || theirs->number != own->number))
        return other_call(pair);
    return weir_caller_blame(pair->caller, WEIR_FAULT_DIFFERS, pair->fault,
                             "rank %u has called %s with %s, and rank %u with %s", pair->peer,
                             weir_head_describe(theirs, call), difference(theirs, own).text,
                             pair->rank, difference(own, theirs).text);
}

bool weir_caller_agrees(const struct weir_caller *caller, uint32_t peer,
                        const struct weir_head *theirs)
{
    const struct pair pair = {caller, caller->rank, peer, theirs, UINT32_MAX};
    return weir_head_equals(&caller->head, theirs) || fail_of_pair(&pair);
}

struct met {
    const struct weir_caller *caller;
    const struct weir_head *(*head_of)(const void *user, uint32_t rank);
    const void *user;
};

static const struct weir_head *head_of(const struct met *met, uint32_t rank)
{
    return rank == met->caller->rank ? &met->caller->head : met->head_of(met->user, rank);
}

static bool have_called_the_same(const void *things, uint32_t a, uint32_t b)
{
    const struct weir_head *first = head_of(things, a);
    const struct weir_head *second = head_of(things, b);
    return first && second && weir_head_equals(first, second);
}

bool weir_caller_judge(const struct weir_caller *caller,
                       const struct weir_head *(*find)(const void *user, uint32_t rank),
                       const void *user)
{
    const struct met met = {caller, find, user};
    const uint32_t count = caller->count;
    uint32_t rank = 0;
    uint32_t peer = weir_odd_one(&met, count, have_called_the_same, &rank);
    const uint32_t fault = peer;
    while (peer == WEIR_ODD_NONE && rank < count && !head_of(&met, rank))
        rank++;
    for (uint32_t i = rank + 1; peer == WEIR_ODD_NONE && i < count; i++)
        if (head_of(&met, i) && !have_called_the_same(&met, rank, i))
            peer = i;
    if (peer == WEIR_ODD_NONE)
        return true;
    // The sentence is about the call of the rank that is right, whichever rank makes it.
    struct weir_caller right = *caller;
    right.head = *head_of(&met, rank);
    return fail_of_pair(&(struct pair){&right, rank, peer, head_of(&met, peer), fault});
}

uint64_t weir_judge_by(uint64_t deadline_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    return deadline_ns < now_ns + JUDGE_NS ? deadline_ns : now_ns + JUDGE_NS;
}

// Ranks that do not come.

// The program's own are numbered from 1; the front end has others.
static bool is_known(const struct weir_head *last)
{
    return last && last->number > 0;
}

bool weir_caller_late(const struct weir_caller *caller, uint32_t peer, const struct weir_head *last)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    char call[WEIR_HEAD_TEXT_SIZE];
    weir_text_duration(duration, (double)caller->timeout_ns);
    if (!is_known(last))
        return weir_caller_blame(caller, WEIR_FAULT_SILENT, peer,
                                 "rank %u has submitted nothing in %s", peer, duration);
    weir_head_describe(last, call);
    if (weir_is_numbered(caller->head.kind) && last->number == caller->head.number)
        return weir_caller_blame(
            caller, WEIR_FAULT_SILENT, peer,
            "rank %u has come to %s and has not finished in %s: it is stopped, or cut off", peer,
            call, duration);
    return weir_caller_blame(caller, WEIR_FAULT_SILENT, peer,
                             "rank %u has submitted nothing after %s in %s", peer, call, duration);
}

bool weir_caller_lost(const struct weir_caller *caller, enum weir_transport_fault fault,
                      uint32_t peer, const struct weir_head *last)
{
    const bool died = fault == WEIR_FAULT_DIED;
    const char *what = died ? "died" : "destroyed the communicator";
    char call[WEIR_HEAD_TEXT_SIZE];
    if (!is_known(last))
        return weir_caller_blame(caller, fault, peer, "rank %u has %s before its first collective",
                                 peer, what);
    return weir_caller_blame(caller, fault, peer, "rank %u has %s%s%s", peer, what,
                             died ? "; its last collective was " : " after ",
                             weir_head_describe(last, call));
}
