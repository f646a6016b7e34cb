// Records of a queue, whether they are complete, and their times: a ring, the oldest first. Records of an
// in-order queue complete in order, so one number (`completed`) answers for most of them, and a binary
// search finds the others.
//
// A place of the ring keeps the event of its record for the next one, if events are used again. A ring with enough of
// them is emptied by the thread that submits: at most two queries find out which part of it is complete. Other threads
// hold an event, by its count of users, while they query it; a held event and all later ones stay in the ring.
#include <weir/kit/records.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/module/error.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/try.h"

// A ring grows if more than half of it is in use, and up to a size at which queries cost a few nanoseconds a record
// if so many looks at a full one had to ask the driver: to create an event takes 0.8 us on an H200, a query 0.2 to
// 1.2. Events of one use are given back sooner.
#define LEAST_CAPACITY 8
#define LOOKS_ALIKE 8
#define ENOUGH_REUSED 256
#define ENOUGH_OF_ONE_USE 32

static const struct weir_lock_kind records_lock = {"the lock of a queue's records", 0};

struct record {
    uint64_t sequence;
    void *native; // also in a free place; NULL: none
    uint32_t users;
};

struct record_time {
    uint64_t sequence;
    uint64_t time_ns;
    int code; // the driver's error; 0: none
};

struct weir_kit_records {
    const struct weir_host *host;
    const struct weir_kit_record_ops *ops;
    void *queue;
    _Atomic uint64_t completed;
    // Under the lock. Only the thread that submits changes the ring's size and ends.
    struct weir_lock lock;
    struct record *ring;       // by the number of the record
    size_t capacity;           // a power of two, up to
    size_t room;               // the places that there is memory for
    size_t look_at;            // so many records, at which complete ones are taken out
    size_t least;              // of `look_at`
    unsigned looks;            // that asked the driver, at this least
    uint64_t first;            // the ring's first record
    uint64_t recorded;         // records so far
    struct record_time *times; // ring, by the number of the record
    uint32_t history;          // its size; 0: no times
    uint64_t converted;        // records whose time is known
};

static struct record *record_at(const weir_kit_records *records, uint64_t number)
{
    return &records->ring[number & (records->capacity - 1)];
}

static struct record_time *time_at(const weir_kit_records *records, uint64_t number)
{
    return &records->times[number % records->history];
}

// Raises what is known to be complete.
static void note_complete(weir_kit_records *records, uint64_t sequence)
{
    uint64_t known = atomic_load_explicit(&records->completed, memory_order_relaxed);
    while (known < sequence &&
           !atomic_compare_exchange_weak_explicit(&records->completed, &known, sequence,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

// Of a record in the ring, or one whose time is kept. Under the lock.
static uint64_t sequence_of(const weir_kit_records *records, uint64_t number)
{
    return number < records->first ? time_at(records, number)->sequence
                                   : record_at(records, number)->sequence;
}

// The first record from `low` on with this sequence or a later one, or the end. Under the lock.
static uint64_t find(const weir_kit_records *records, uint64_t low, uint64_t sequence)
{
    uint64_t high = records->recorded;
    // A wait is mostly for the latest.
    if (low < high && sequence_of(records, high - 1) == sequence)
        return high - 1;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (sequence_of(records, middle) < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

weir_status weir_kit_records_create(const struct weir_kit_records_params *params,
                                    weir_kit_records **out_records)
{
    const struct weir_host *host = params->host;
    *out_records = NULL;
    weir_kit_records *records = host->allocate(sizeof *records);
    if (!records)
        return weir_host_no_memory(host, "the records of a queue");
    records->host = host;
    records->ops = params->ops;
    records->queue = params->queue;
    records->capacity = records->look_at = records->least = LEAST_CAPACITY;
    records->room = ENOUGH_REUSED;
    records->history = params->timing_history;
    weir_lock_init(&records->lock, &records_lock);
    records->ring = host->allocate(records->room * sizeof *records->ring);
    if (records->history > 0)
        records->times = host->allocate(records->history * sizeof *records->times);
    if (!records->ring || (records->history > 0 && !records->times)) {
        weir_kit_records_destroy(&records);
        return weir_host_no_memory(host, "the records of a queue");
    }
    *out_records = records;
    return WEIR_OK;
}

void weir_kit_records_destroy(weir_kit_records **out_records)
{
    weir_kit_records *records = *out_records;
    if (!records)
        return;
    const struct weir_host *host = records->host;
    for (size_t i = 0; records->ring && i < records->capacity; i++)
        if (records->ring[i].native)
            records->ops->destroy(records->queue, records->ring[i].native);
    weir_lock_finish(&records->lock);
    host->release(records->ring);
    host->release(records->times);
    host->release(records);
    *out_records = NULL;
}

uint64_t weir_kit_records_completed(const weir_kit_records *records)
{
    return atomic_load_explicit(&records->completed, memory_order_acquire);
}

void *weir_kit_records_hold(weir_kit_records *records, uint64_t sequence)
{
    void *native = NULL;
    if (weir_kit_records_completed(records) >= sequence)
        return NULL;
    weir_lock_take(&records->lock);
    const uint64_t number = find(records, records->first, sequence);
    // The thread that submits may have taken it out since: a later record may wait for the caller.
    if (number < records->recorded && weir_kit_records_completed(records) < sequence) {
        native = record_at(records, number)->native;
        record_at(records, number)->users++;
    }
    weir_lock_release(&records->lock);
    return native;
}

// A held record has stayed, and so it is found again.
void weir_kit_records_release(weir_kit_records *records, uint64_t sequence)
{
    weir_lock_take(&records->lock);
    record_at(records, find(records, records->first, sequence))->users--;
    weir_lock_release(&records->lock);
}

// Recording.

// Stores the times of the records before `end`, which are complete. Times of a queue never decrease, although the
// driver may measure two records from different points. Under the lock.
static void convert(weir_kit_records *records, uint64_t end)
{
    for (; records->converted < end; records->converted++) {
        const struct record *record = record_at(records, records->converted);
        const uint64_t before_ns =
            records->converted ? time_at(records, records->converted - 1)->time_ns : 0;
        uint64_t time_ns = before_ns;
        const int code = records->ops->time(records->queue, record->native, &time_ns);
        const uint64_t later_ns = time_ns > before_ns ? time_ns : before_ns;
        *time_at(records, records->converted) =
            (struct record_time){record->sequence, code == 0 ? later_ns : before_ns, code};
    }
}

// Doubles the ring, if there is memory. Events of free places move too. Under the lock.
static void grow(weir_kit_records *records)
{
    const size_t capacity = records->capacity;
    if (capacity == records->room) {
        struct record *ring = records->host->allocate(2 * capacity * sizeof *ring);
        if (!ring)
            return;
        memcpy(ring, records->ring, capacity * sizeof *ring);
        records->host->release(records->ring);
        records->ring = ring;
        records->room *= 2;
    }
    for (uint64_t i = records->first; i < records->first + capacity; i++)
        if (i & capacity) { // the others stay in place
            records->ring[i & (2 * capacity - 1)] = *record_at(records, i);
            *record_at(records, i) = (struct record){0};
        }
    records->capacity *= 2;
}

// Takes complete records out of the ring, up to one that is held, and decides how soon it is looked at again: after a
// burst as before it, so that no submit pays for all of it. The driver is queried only if none is known to be
// complete, and at most twice: a query takes 1.2 us on an H200, ten times as long as a record. Under the lock.
static void make_room(weir_kit_records *records)
{
    static const size_t quarters[] = {3, 1};
    const size_t enough = records->ops->reused ? ENOUGH_REUSED : ENOUGH_OF_ONE_USE;
    uint64_t end = find(records, records->first, weir_kit_records_completed(records) + 1);
    records->looks += end == records->first;
    for (size_t i = 0; i < 2 && end == records->first; i++) {
        const uint64_t asked = records->first + records->look_at * quarters[i] / 4;
        int code = 0;
        if (records->ops->query(records->queue, record_at(records, asked)->native, &code) ==
            WEIR_KIT_COMPLETE) {
            end = asked + 1;
            note_complete(records, record_at(records, asked)->sequence);
        }
    }
    if (records->history > 0)
        convert(records, end);
    for (; records->first < end && record_at(records, records->first)->users == 0;
         records->first++) {
        struct record *record = record_at(records, records->first);
        if (records->ops->reused)
            continue;
        records->ops->destroy(records->queue, record->native);
        record->native = NULL;
    }
    if (records->looks >= LOOKS_ALIKE && records->least < enough) {
        records->least *= 2;
        records->looks = 0;
    }
    const size_t twice = 2 * (size_t)(records->recorded - records->first);
    const size_t wanted = twice > records->least ? twice : records->least;
    if (wanted > records->capacity)
        grow(records);
    records->look_at = wanted < records->capacity ? wanted : records->capacity;
}

weir_status weir_kit_records_add(weir_kit_records *records, uint64_t sequence)
{
    if (records->recorded - records->first == records->look_at) {
        weir_lock_take(&records->lock);
        make_room(records);
        weir_lock_release(&records->lock);
    }
    if (records->recorded - records->first == records->capacity)
        return weir_host_no_memory(records->host, "the records of a queue");
    struct record *record = record_at(records, records->recorded); // no other thread reads it yet
    TRY(records->ops->record(records->queue, &record->native));
    weir_lock_take(&records->lock);
    record->sequence = sequence;
    records->recorded++;
    weir_lock_release(&records->lock);
    return WEIR_OK;
}

// Answers: whether records are complete, and their times.

static weir_status report(weir_kit_records *records, enum weir_kit_question question, int code,
                          uint64_t sequence)
{
    return records->ops->report(records->queue, question, code, sequence);
}

static weir_status answer(weir_kit_records *records, enum weir_kit_state state, int code,
                          enum weir_kit_question question, uint64_t sequence)
{
    if (state == WEIR_KIT_COMPLETE)
        return WEIR_OK;
    if (state == WEIR_KIT_PENDING)
        return WEIR_NOT_READY;
    return report(records, state == WEIR_KIT_FAILED ? WEIR_KIT_WORKED : question, code, sequence);
}

// Asks the driver by its query or its wait, unless the record is known to be complete.
static enum weir_kit_state ask(weir_kit_records *records, uint64_t sequence,
                               enum weir_kit_state (*question)(void *queue, void *native,
                                                               int *out_code),
                               int *out_code)
{
    void *native = weir_kit_records_hold(records, sequence);
    *out_code = 0;
    if (!native)
        return WEIR_KIT_COMPLETE;
    const enum weir_kit_state state = question(records->queue, native, out_code);
    weir_kit_records_release(records, sequence);
    if (state == WEIR_KIT_COMPLETE)
        note_complete(records, sequence);
    return state;
}

weir_status weir_kit_records_query(weir_kit_records *records, uint64_t sequence)
{
    int code;
    const enum weir_kit_state state = ask(records, sequence, records->ops->query, &code);
    return answer(records, state, code, WEIR_KIT_ASKED, sequence);
}

static weir_status poll_until(weir_kit_records *records, uint64_t sequence, uint64_t timeout_ns)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    for (;;) {
        weir_status status = weir_kit_records_query(records, sequence);
        if (status != WEIR_NOT_READY)
            return status;
        if (!weir_clock_pause(start_ns, timeout_ns, &pause_ns))
            return WEIR_TIMEOUT;
    }
}

weir_status weir_kit_records_wait(weir_kit_records *records, uint64_t sequence, uint64_t timeout_ns)
{
    if (timeout_ns != WEIR_FOREVER)
        return poll_until(records, sequence, timeout_ns);
    int code;
    const enum weir_kit_state state = ask(records, sequence, records->ops->wait, &code);
    return answer(records, state, code, WEIR_KIT_WAITED, sequence);
}

weir_status weir_kit_records_time(weir_kit_records *records, uint64_t sequence,
                                  uint64_t *out_time_ns)
{
    struct record_time time = {0};
    *out_time_ns = 0;
    TRY(weir_kit_records_query(records, sequence));
    weir_lock_take(&records->lock);
    const uint64_t end = records->recorded;
    const uint64_t number =
        find(records, end > records->history ? end - records->history : 0, sequence);
    const bool found = number < end && sequence_of(records, number) == sequence;
    if (found) {
        convert(records, number + 1);
        time = *time_at(records, number);
    }
    weir_lock_release(&records->lock);
    *out_time_ns = time.time_ns;
    if (found && time.code != 0)
        return report(records, WEIR_KIT_TIMED, time.code, sequence);
    if (found)
        return WEIR_OK;
    return weir_host_fail(records->host, WEIR_ERROR_EXPIRED, "read times sooner",
                          "the time of operation %" PRIu64
                          " is not kept; a queue keeps its last %u",
                          sequence, (unsigned)records->history);
}

uint64_t weir_kit_records_last(weir_kit_records *records)
{
    weir_lock_take(&records->lock);
    const uint64_t end = records->recorded;
    const uint64_t last = end > records->first ? record_at(records, end - 1)->sequence : 0;
    weir_lock_release(&records->lock);
    return last;
}

weir_status weir_kit_records_settle(weir_kit_records *records)
{
    int code;
    const uint64_t last = weir_kit_records_last(records);
    const enum weir_kit_state state = ask(records, last, records->ops->query, &code);
    if (state == WEIR_KIT_FAILED)
        note_complete(records, last);
    return state == WEIR_KIT_PENDING ? WEIR_OK : answer(records, state, code, WEIR_KIT_ASKED, last);
}
