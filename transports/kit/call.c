// The sentences of failures.
#include "transports/kit/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

// When two have called different things, so long the calls of the others are waited for, which tell
// which of the two is wrong.
#define JUDGE_NS (UINT64_C(500) * 1000 * 1000)

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
    weir_head_append(cause.text, sizeof cause.text, &used, head);
    weir_text_append(cause.text, sizeof cause.text, &used, " of '%s'", caller->label);
    if (weir_head_file(head, file))
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

static bool fail_of_pair(const struct pair *pair)
{
    char text[WEIR_CALLS_TEXT_SIZE];
    return weir_caller_blame(pair->caller, WEIR_FAULT_DIFFERS, pair->fault, "%s",
                             weir_head_differ(&pair->caller->head, pair->rank, pair->theirs,
                                              pair->peer, pair->fault == pair->peer, text));
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

// One that is not known has not even called the same as itself.
static bool have_called_the_same(const struct met *met, uint32_t a, uint32_t b)
{
    const struct weir_head *first = head_of(met, a);
    const struct weir_head *second = head_of(met, b);
    return first && second && weir_head_equals(first, second);
}

// The first rank that has called what more than half have; the number of ranks if there is no such half. Each rank is
// set off against one that has called something else, and only a call of more than half is left over.
static uint32_t first_of_most(const struct met *met, uint32_t count)
{
    uint32_t candidate = 0;
    uint32_t first = count;
    uint32_t left = 0;
    uint32_t alike = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (left == 0)
            candidate = i;
        left = left == 0 || have_called_the_same(met, candidate, i) ? left + 1 : left - 1;
    }
    for (uint32_t i = count; i-- > 0;) {
        if (!have_called_the_same(met, candidate, i))
            continue;
        alike++;
        first = i;
    }
    return alike > count / 2 ? first : count;
}

bool weir_caller_judge(const struct weir_caller *caller,
                       const struct weir_head *(*find)(const void *user, uint32_t rank),
                       const void *user)
{
    const struct met met = {caller, find, user};
    const uint32_t count = caller->count;
    uint32_t rank = first_of_most(&met, count);
    uint32_t peer = 0;
    const bool is_most = rank < count;
    for (rank = is_most ? rank : 0; rank < count && !head_of(&met, rank);)
        rank++;
    while (peer < count && (!head_of(&met, peer) || have_called_the_same(&met, rank, peer)))
        peer++;
    if (peer == count)
        return true;
    // The sentence is about the call of the rank that is right, whichever rank makes it.
    struct weir_caller right = *caller;
    right.head = *head_of(&met, rank);
    return fail_of_pair(
        &(struct pair){&right, rank, peer, head_of(&met, peer), is_most ? peer : UINT32_MAX});
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
