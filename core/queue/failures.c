// The failures that a queue has had. See the header.
#include "core/queue/failures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/support/memory.h"

// The ranges of `past` are disjoint and ascend.

// One failure: operations first..last report `cause`.
struct weir__failure {
    struct weir__failure *next;
    uint64_t first;
    uint64_t last; // UINT64_MAX until recovered
    struct weir_error cause;
};

struct weir__failure *weir__failure_make(void)
{
    return weir__allocate(sizeof(struct weir__failure));
}

bool weir__failures_init(struct weir__failures *failures)
{
    failures->spare = weir__failure_make();
    return failures->spare != NULL;
}

static void free_list(struct weir__failure *failure, const struct weir__failure *end)
{
    while (failure != end) {
        struct weir__failure *next = failure->next;
        weir__release(failure);
        failure = next;
    }
}

void weir__failures_finish(struct weir__failures *failures)
{
    free_list(failures->latest, failures->shared_from);
    if (!failures->shared)
        weir__release(failures->past);
    weir__release(failures->spare);
}

struct weir__failures weir__failures_share(struct weir__failures *failures)
{
    struct weir__failures copy = *failures;
    copy.spare = NULL;
    failures->shared = true;
    failures->shared_from = failures->latest;
    return copy;
}

// The earliest failure of the list that covers `sequence`.
static const struct weir__failure *find_latest(const struct weir__failures *failures,
                                               uint64_t sequence)
{
    const struct weir__failure *found = NULL;
    for (const struct weir__failure *f = failures->latest; f; f = f->next)
        if (f->first <= sequence && sequence <= f->last && (!found || f->first < found->first))
            found = f;
    return found;
}

uint64_t weir__failures_open(const struct weir__failures *failures)
{
    const struct weir__failure *first = find_latest(failures, UINT64_MAX);
    return first ? first->first : 1;
}

static const struct weir__past *find_past(const struct weir__failures *failures, uint64_t sequence)
{
    size_t low = 0;
    size_t high = failures->past_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (failures->past[middle].last < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == failures->past_count || failures->past[low].first > sequence)
        return NULL;
    return &failures->past[low];
}

static void describe_past(const struct weir__past *past, struct weir_error *out_cause)
{
    memset(out_cause, 0, sizeof *out_cause);
    out_cause->status = past->status;
    snprintf(out_cause->message, sizeof out_cause->message,
             "operation %" PRIu64 " of the queue failed, or its driver found a failure there; the "
             "cause is no longer kept, since %d recoveries came after it",
             past->first, WEIR__CAUSES_KEPT);
    snprintf(out_cause->remedy, sizeof out_cause->remedy,
             "ask for an event's error before its queue recovers so often");
}

bool weir__failures_find(const struct weir__failures *failures, uint64_t sequence,
                         struct weir_error *out_cause)
{
    const struct weir__past *past = find_past(failures, sequence);
    const struct weir__failure *latest = past ? NULL : find_latest(failures, sequence);
    if (past)
        describe_past(past, out_cause);
    else if (latest)
        *out_cause = latest->cause;
    return past || latest;
}

struct weir__failure *weir__failures_add(struct weir__failures *failures,
                                         struct weir__failure *made, uint64_t first,
                                         const struct weir_error *cause)
{
    const struct weir__failure *known = find_latest(failures, UINT64_MAX);
    if (!made) {
        made = failures->spare;
        failures->spare = NULL;
    }
    if (!made || (known && known->first <= first))
        return made;
    *made = (struct weir__failure){.next = failures->latest,
                                   .first = first,
                                   .last = UINT64_MAX,
                                   .cause = *cause};
    failures->latest = made;
    return NULL;
}

// Recovery.

void weir__recovery_begin(const struct weir__failures *failures, struct weir__recovery *recovery)
{
    const size_t capacity = failures->past_capacity;
    *recovery = (struct weir__recovery){.spare = weir__failure_make()};
    if (failures->past_count < capacity)
        return;
    recovery->past_capacity = capacity ? 2 * capacity : 64;
    recovery->past = weir__allocate(recovery->past_capacity * sizeof *recovery->past);
}

// Ends the open failures. The first in the list has the lowest number, and covers the others, which
// are removed.
static void close_open(struct weir__failures *failures, uint64_t sequence)
{
    struct weir__failure *first = failures->latest;
    if (!first || first->last != UINT64_MAX)
        return;
    first->last = sequence;
    while (first->next && first->next->last == UINT64_MAX) {
        struct weir__failure *covered = first->next;
        first->next = covered->next;
        weir__release(covered);
    }
}

static void take_room(struct weir__failures *failures, struct weir__recovery *recovery)
{
    struct weir__past *old = failures->past;
    if (!recovery->past)
        return;
    if (old)
        memcpy(recovery->past, old, failures->past_count * sizeof *old);
    failures->past = recovery->past;
    failures->past_capacity = recovery->past_capacity;
    recovery->past = old;
}

// Two ranges overlap if a driver reported a failure without its operation.
static bool joins(struct weir__past *last, const struct weir__failure *failure)
{
    if (failure->first > last->last)
        return false;
    last->last = failure->last > last->last ? failure->last : last->last;
    return true;
}

static void add_past(struct weir__failures *failures, const struct weir__failure *failure)
{
    if (failures->past_count > 0 && joins(&failures->past[failures->past_count - 1], failure))
        return;
    failures->past[failures->past_count++] =
        (struct weir__past){failure->first, failure->last, failure->cause.status};
}

// The oldest failure becomes a past one if the list is longer than it may be.
static void shorten(struct weir__failures *failures)
{
    struct weir__failure **at = &failures->latest;
    size_t count = 0;
    if (failures->past_count == failures->past_capacity)
        return;
    for (; *at && (*at)->next; at = &(*at)->next)
        count++;
    if (count < WEIR__CAUSES_KEPT)
        return;
    add_past(failures, *at);
    weir__release(*at);
    *at = NULL;
}

void weir__failures_recover(struct weir__failures *failures, uint64_t sequence,
                            struct weir__recovery *recovery)
{
    if (!failures->spare) {
        failures->spare = recovery->spare;
        recovery->spare = NULL;
    }
    if (failures->shared) {
        for (struct weir__failure *f = failures->latest; f; f = f->next)
            f->last = f->last == UINT64_MAX ? sequence : f->last;
        return;
    }
    close_open(failures, sequence);
    take_room(failures, recovery);
    shorten(failures);
}

void weir__recovery_end(struct weir__recovery *recovery)
{
    weir__release(recovery->spare);
    weir__release(recovery->past);
}
