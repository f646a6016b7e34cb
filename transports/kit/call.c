// The sentences of failures.
#include "transports/kit/call.h"

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

void weir_group_place(const void *group, uint32_t *out_rank, uint32_t *out_count)
{
    const struct weir_group *own = group;
    *out_rank = own->rank;
    *out_count = own->count;
}

void weir_group_abort(void *group, const char *reason)
{
    struct weir_group *own = group;
    struct weir_cause cause = {.fault = WEIR_FAULT_ABORTED, .rank = own->rank};
    snprintf(cause.text, sizeof cause.text, "rank %u has aborted '%s': %s", own->rank, own->label,
             reason);
    own->fail(own, &cause);
}

bool weir_group_cause(void *group, struct weir_transport_cause *out_cause)
{
    const struct weir_group *own = group;
    if (!own->failed)
        return false;
    out_cause->fault = (enum weir_transport_fault)own->cause.fault;
    out_cause->rank = own->cause.rank;
    return true;
}

weir_status weir_group_report(const void *group, weir_status status, const char *remedy)
{
    const struct weir_group *own = group;
    return own->failed ? weir_host_fail(own->host, status, remedy, "%s", own->cause.text) : WEIR_OK;
}

struct weir_caller weir_caller_begin(struct weir_group *group, struct weir_head head,
                                     uint64_t timeout_ns)
{
    const uint64_t limit_ns = timeout_ns < UINT64_MAX / 2 ? timeout_ns : UINT64_MAX / 2;
    return (struct weir_caller){.head = head,
                                .group = group,
                                .timeout_ns = limit_ns,
                                .deadline_ns = weir_clock_now_ns() + limit_ns};
}

bool weir_caller_blame(const struct weir_caller *caller, enum weir_transport_fault fault,
                       uint32_t rank, const char *format, ...)
{
    const struct weir_head *head = &caller->head;
    struct weir_cause cause = {.fault = fault, .rank = rank};
    char file[WEIR_HEAD_FILE_SIZE];
    size_t used = 0;
    va_list arguments;
    weir_head_append(cause.text, sizeof cause.text, &used, head);
    weir_text_append(cause.text, sizeof cause.text, &used, " of '%s'", caller->group->label);
    if (weir_head_file(head, file))
        weir_text_append(cause.text, sizeof cause.text, &used, ", %s:%d", file, (int)head->line);
    weir_text_append(cause.text, sizeof cause.text, &used, ": ");
    va_start(arguments, format);
    if (used < sizeof cause.text)
        vsnprintf(cause.text + used, sizeof cause.text - used, format, arguments);
    va_end(arguments);
    caller->group->fail(caller->group, &cause);
    return false;
}

// Differences.

// Of `rank`, whose call the caller has, and `peer`, which is at fault if it `blames` it; else either may be wrong.
static bool fail_of_pair(const struct weir_caller *caller, uint32_t rank,
                         const struct weir_head *theirs, uint32_t peer, bool blames)
{
    char text[WEIR_CALLS_TEXT_SIZE];
    return weir_caller_blame(caller, WEIR_FAULT_DIFFERS, blames ? peer : UINT32_MAX, "%s",
                             weir_head_differ(&caller->head, rank, theirs, peer, blames, text));
}

bool weir_caller_agrees(const struct weir_caller *caller, uint32_t peer,
                        const struct weir_head *theirs)
{
    return weir_head_equals(&caller->head, theirs) ||
           fail_of_pair(caller, caller->group->rank, theirs, peer, false);
}

// The sentence is about the call of the rank that is right, whichever rank makes it.
bool weir_caller_judge(const struct weir_caller *caller, weir_head_find *find, const void *user)
{
    struct weir_odd odd;
    struct weir_caller right = *caller;
    if (!weir_heads_find_odd(caller->group->count, find, user, &odd))
        return true;
    right.head = *find(user, odd.rank);
    return fail_of_pair(&right, odd.rank, find(user, odd.peer), odd.peer, odd.is_odd);
}

uint64_t weir_judge_by(uint64_t deadline_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    return deadline_ns < now_ns + JUDGE_NS ? deadline_ns : now_ns + JUDGE_NS;
}

// Ranks that do not come. The program's own calls are numbered from 1; the front end has others.

bool weir_caller_late(const struct weir_caller *caller, uint32_t peer, const struct weir_head *last)
{
    const struct weir_quantity duration = weir_text_duration((double)caller->timeout_ns);
    char call[WEIR_HEAD_TEXT_SIZE];
    if (last->number == 0)
        return weir_caller_blame(caller, WEIR_FAULT_SILENT, peer,
                                 "rank %u has submitted nothing in %s", peer, duration.text);
    weir_head_describe(last, call);
    if (weir_is_numbered(caller->head.kind) && last->number == caller->head.number)
        return weir_caller_blame(
            caller, WEIR_FAULT_SILENT, peer,
            "rank %u has come to %s and has not finished in %s: it is stopped, or cut off", peer,
            call, duration.text);
    return weir_caller_blame(caller, WEIR_FAULT_SILENT, peer,
                             "rank %u has submitted nothing after %s in %s", peer, call,
                             duration.text);
}

bool weir_caller_lost(const struct weir_caller *caller, enum weir_transport_fault fault,
                      uint32_t peer, const struct weir_head *last)
{
    const bool died = fault == WEIR_FAULT_DIED;
    const char *what = died ? "died" : "destroyed the communicator";
    char call[WEIR_HEAD_TEXT_SIZE];
    if (last->number == 0)
        return weir_caller_blame(caller, fault, peer, "rank %u has %s before its first collective",
                                 peer, what);
    return weir_caller_blame(caller, fault, peer, "rank %u has %s%s%s", peer, what,
                             died ? "; its last collective was " : " after ",
                             weir_head_describe(last, call));
}
