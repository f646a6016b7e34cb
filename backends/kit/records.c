// Records of a queue, whether they are complete, and their times: a ring, the oldest first. Records of an
// in-order queue complete in order, so one number (`completed`) answers for most of them, and a binary
// search finds the others.
//
// Reused events are only returned from the ring by the thread that submits, when no event is free.
// At most two queries find out which part of the ring is complete. Other threads hold an event, by
// its count of users, while they query it; a held event and all later ones stay in the ring.
#include <weir/kit/records.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <weir/module/error.h>

#include "base/clock.h"
#include "base/lock.h"

#define DEPTH 256
// How often, while `depth` records are added, the ring is checked for complete ones: rarely enough
// for the queries to cost a few nanoseconds a record, and often enough for the ring not to grow.
#define LOOKS_IN_DEPTH 8
// A new queue looks sooner, from FIRST_LOOK records on and LOOKS_ALIKE times each at so many, twice as
// many and so on: to create an event takes 0.8 us on an H200, a query 0.2 to 1.2.
#define FIRST_LOOK 8
#define LOOKS_ALIKE 8

static const struct weir_lock_kind records_lock = {"the lock of a queue's records", 0};

struct record {
    uint64_t sequence;
    struct weir_kit_event *event;
};

struct event_block {
    struct event_block *next;
    size_t used; // events that have been in use
    size_t capacity;
    struct weir_kit_event events[];
};

struct record_time {
    uint64_t sequence;
    uint64_t time_ns;
    int code; // the driver's error; 0: none
};

struct weir_kit_records {
    bool reused; // `ops->create` is set; a copy, as append reads nothing else of the table
    const struct weir_host *host;
    const struct weir_kit_record_ops *ops;
    void *queue;
    _Atomic uint64_t completed;
    // Used by the thread that submits only.
    struct weir_kit_event *free;
    size_t reap_at; // the number of records in the ring at which it is checked
    size_t reap_least;
    size_t reap_most; // of `reap_least`
    unsigned reaps;   // at this one
    struct event_block *blocks;
    // Under the lock.
    struct weir_lock lock;
    struct record *ring;
    size_t first;
    size_t count;
    size_t capacity;           // a power of two
    uint64_t recorded;         // records so far
    struct record_time *times; // ring, by the number of the record
    uint32_t history;          // its size; 0: no times
    uint64_t converted;        // records whose time is known
};

static struct record *record_at(const weir_kit_records *records, size_t index)
{
    return &records->ring[(records->first + index) & (records->capacity - 1)];
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

// The index of the first record with this number or a later one, or the count. Under the lock.
static size_t find_record(const weir_kit_records *records, uint64_t sequence)
{
    size_t low = 0;
    size_t high = records->count;
    // A wait is mostly for the latest.
    if (high > 1 && record_at(records, high - 1)->sequence == sequence)
        return high - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (record_at(records, middle)->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool add_events(weir_kit_records *records, size_t capacity)
{
    struct event_block *block =
        records->host->allocate(sizeof *block + capacity * sizeof block->events[0]);
    if (!block)
        return false;
    block->capacity = capacity;
    block->next = records->blocks;
    records->blocks = block;
    return true;
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
    records->reused = params->ops->create != NULL;
    records->queue = params->queue;
    records->capacity = params->depth ? params->depth : DEPTH;
    records->history = params->timing_history;
    records->reap_most = records->capacity / LOOKS_IN_DEPTH;
    records->reap_least = records->reap_most < FIRST_LOOK ? records->reap_most : FIRST_LOOK;
    records->reap_at = records->reap_least;
    weir_lock_init(&records->lock, &records_lock);
    records->ring = host->allocate(records->capacity * sizeof *records->ring);
    if (records->history > 0)
        records->times = host->allocate(records->history * sizeof *records->times);
    if (!records->ring || (records->history > 0 && !records->times) ||
        !add_events(records, records->capacity)) {
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
    while (records->blocks) {
        struct event_block *block = records->blocks;
        records->blocks = block->next;
        for (size_t i = 0; i < block->used; i++) {
            if (block->events[i].native)
                records->ops->destroy(records->queue, block->events[i].native);
        }
        host->release(block);
    }
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

struct weir_kit_event *weir_kit_records_hold(weir_kit_records *records, uint64_t sequence)
{
    struct weir_kit_event *event = NULL;
    if (weir_kit_records_completed(records) >= sequence)
        return NULL;
    weir_lock_take(&records->lock);
    const size_t index = find_record(records, sequence);
    if (index < records->count) {
        event = record_at(records, index)->event;
        event->users++;
    }
    weir_lock_release(&records->lock);
    return event;
}

void weir_kit_records_release(weir_kit_records *records, struct weir_kit_event *event)
{
    weir_lock_take(&records->lock);
    event->users--;
    weir_lock_release(&records->lock);
}

// Returning events. All under the lock.

// Stores the times of the first `count` records of the ring, which are complete. Times of a queue
// never decrease, although the driver may measure two records from different points.
static void convert(weir_kit_records *records, size_t count)
{
    const uint64_t first = records->recorded - records->count; // number of the ring's first
    for (; records->converted < first + count; records->converted++) {
        const struct record *record = record_at(records, (size_t)(records->converted - first));
        const uint64_t before_ns =
            records->converted ? time_at(records, records->converted - 1)->time_ns : 0;
        uint64_t time_ns = before_ns;
        const int code = records->ops->time(records->queue, record->event->native, &time_ns);
        const uint64_t later_ns = time_ns > before_ns ? time_ns : before_ns;
        *time_at(records, records->converted) =
            (struct record_time){record->sequence, code == 0 ? later_ns : before_ns, code};
    }
}

// The number of records at the front that are complete. The driver is queried
// only if none is known to be, and at most twice: a query takes 1.2 us on an H200, ten times as
// long as a record.
static size_t count_complete(const weir_kit_records *records)
{
    static const size_t quarters[] = {3, 1};
    const size_t complete = find_record(records, weir_kit_records_completed(records) + 1);
    for (size_t i = 0; i < 2 && complete == 0 && records->count > 0; i++) {
        const size_t asked = records->count * quarters[i] / 4;
        int code = 0;
        if (records->ops->query(records->queue, record_at(records, asked)->event->native, &code) ==
            WEIR_KIT_COMPLETE)
            return asked + 1;
    }
    return complete;
}

// Returns the events of the first `complete` records, up to one that is held.
static void take_back(weir_kit_records *records, size_t complete)
{
    if (records->history > 0)
        convert(records, complete);
    for (; complete > 0 && record_at(records, 0)->event->users == 0; complete--) {
        struct weir_kit_event *event = record_at(records, 0)->event;
        if (!records->reused) {
            records->ops->destroy(records->queue, event->native);
            event->native = NULL;
        }
        event->next = records->free;
        records->free = event;
        records->first = (records->first + 1) & (records->capacity - 1);
        records->count--;
    }
}

// Returns the events of complete records.
static void reap(weir_kit_records *records)
{
    if (records->count >= records->reap_at && records->reap_least < records->reap_most &&
        ++records->reaps == LOOKS_ALIKE) {
        records->reaps = 0;
        records->reap_least *= 2;
    }
    weir_lock_take(&records->lock);
    const size_t complete = count_complete(records);
    if (complete > 0)
        note_complete(records, record_at(records, complete - 1)->sequence);
    take_back(records, complete);
    const size_t left = records->count;
    weir_lock_release(&records->lock);
    records->reap_at = 2 * left > records->reap_least ? 2 * left : records->reap_least;
}

static weir_status create_event(weir_kit_records *records, struct weir_kit_event **out_event)
{
    struct event_block *block = records->blocks;
    if (block->used == block->capacity) {
        if (!add_events(records, block->capacity))
            return weir_host_no_memory(records->host, "the records of a queue");
        block = records->blocks;
    }
    struct weir_kit_event *event = &block->events[block->used];
    if (records->reused) {
        weir_status status = records->ops->create(records->queue, &event->native);
        if (status < 0) {
            event->native = NULL;
            return status;
        }
    }
    block->used++;
    *out_event = event;
    return WEIR_OK;
}

weir_status weir_kit_records_take(weir_kit_records *records, struct weir_kit_event **out_event)
{
    // Only the submitter moves the ring's ends, so it can read them without the lock.
    if (!records->free && records->count > 0 &&
        (records->count >= records->reap_at ||
         weir_kit_records_completed(records) >= record_at(records, 0)->sequence))
        reap(records);
    *out_event = records->free;
    if (!*out_event)
        return create_event(records, out_event);
    records->free = (*out_event)->next;
    return WEIR_OK;
}

void weir_kit_records_cancel(weir_kit_records *records, struct weir_kit_event *event)
{
    if (!records->reused && event->native) {
        records->ops->destroy(records->queue, event->native);
        event->native = NULL;
    }
    event->next = records->free;
    records->free = event;
}

// Doubles the ring. Under the lock.
static bool grow(weir_kit_records *records)
{
    struct record *ring = records->host->allocate(2 * records->capacity * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < records->count; i++)
        ring[i] = *record_at(records, i);
    records->host->release(records->ring);
    records->ring = ring;
    records->capacity *= 2;
    records->first = 0;
    return true;
}

weir_status weir_kit_records_append(weir_kit_records *records, uint64_t sequence,
                                    struct weir_kit_event *event)
{
    weir_lock_take(&records->lock);
    const bool fits = records->count < records->capacity || grow(records);
    if (fits) {
        *record_at(records, records->count) = (struct record){sequence, event};
        records->count++;
        records->recorded++;
    }
    weir_lock_release(&records->lock);
    if (fits)
        return WEIR_OK;
    weir_kit_records_cancel(records, event);
    return weir_host_no_memory(records->host, "the records of a queue");
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
    struct weir_kit_event *event = weir_kit_records_hold(records, sequence);
    *out_code = 0;
    if (!event)
        return WEIR_KIT_COMPLETE;
    const enum weir_kit_state state = question(records->queue, event->native, out_code);
    weir_kit_records_release(records, event);
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

// Searches the kept times, which are in the order of their records. Under the lock.
static bool find_time(const weir_kit_records *records, uint64_t sequence,
                      struct record_time *out_time)
{
    const uint64_t end = records->converted;
    uint64_t low = records->recorded > records->history ? records->recorded - records->history : 0;
    uint64_t high = end;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (time_at(records, middle)->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= end || time_at(records, low)->sequence != sequence)
        return false;
    *out_time = *time_at(records, low);
    return true;
}

weir_status weir_kit_records_time(weir_kit_records *records, uint64_t sequence,
                                  uint64_t *out_time_ns)
{
    struct record_time time = {0};
    *out_time_ns = 0;
    weir_status status = weir_kit_records_query(records, sequence);
    if (status != WEIR_OK)
        return status;
    weir_lock_take(&records->lock);
    const size_t index = find_record(records, sequence);
    convert(records, index < records->count ? index + 1 : records->count);
    const bool found = find_time(records, sequence, &time);
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
    const uint64_t last = records->count > 0 ? record_at(records, records->count - 1)->sequence : 0;
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
