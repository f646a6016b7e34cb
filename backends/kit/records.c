// A ring of records, the oldest first. Records of an in-order queue complete in order,
// so one number (`completed`) answers for most of them, and a binary search finds the others.
//
// Reused events are only returned from the ring by the thread that submits, when no event is free.
// At most two queries find out which part of the ring is complete. Other threads hold an event, by
// its count of users, while they query it; a held event and all later ones stay in the ring.
//
// Events that the driver creates with each record may report a failure at one record only, so each
// is queried, under the lock, by the first thread that needs to know, unless failures last.
#include <weir/module/error.h>

#include "backends/kit/records_parts.h"

#define DEPTH 256
// How often, while `depth` records are added, the ring is checked for complete ones: rarely enough
// for the queries to cost a few nanoseconds a record, and often enough for the ring not to grow.
#define LOOKS_IN_DEPTH 8
// A new queue looks sooner, from FIRST_LOOK records on and LOOKS_ALIKE times each at so many, twice as
// many and so on: to create an event takes 0.8 us on an H200, a query 0.2 to 1.2.
#define FIRST_LOOK 8
#define LOOKS_ALIKE 8
// Two queries for each record: the ring shrinks as long as the device keeps up.
#define ASKED_AT_RECORD 2

static const struct weir_lock_kind records_lock = {"the lock of a queue's records", 0};

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
    records->asks_each = !records->reused && !params->failures_last;
    records->queue = params->queue;
    records->capacity = params->depth ? params->depth : DEPTH;
    records->history = params->timing_history;
    records->reap_most = records->capacity / LOOKS_IN_DEPTH;
    records->reap_least = records->reap_most < FIRST_LOOK ? records->reap_most : FIRST_LOOK;
    records->reap_at = records->reap_least;
    weir_biased_lock_init(&records->lock, &records_lock);
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
    weir_biased_lock_finish(&records->lock);
    host->release(records->ring);
    host->release(records->times);
    host->release(records);
    *out_records = NULL;
}

uint64_t weir_kit_records_completed(const weir_kit_records *records)
{
    return atomic_load_explicit(&records->completed, memory_order_acquire);
}

void weir__kit_note_failure(weir_kit_records *records, uint64_t sequence, int code)
{
    if (atomic_load_explicit(&records->failed, memory_order_relaxed) != 0)
        return;
    records->failed_code = code;
    atomic_store_explicit(&records->failed, sequence, memory_order_release);
}

struct weir_kit_event *weir_kit_records_hold(weir_kit_records *records, uint64_t sequence)
{
    struct weir_kit_event *event = NULL;
    if (weir_kit_records_completed(records) >= sequence)
        return NULL;
    weir_biased_lock_take(&records->lock);
    const size_t index = weir__kit_find_record(records, sequence);
    if (index < records->count) {
        event = weir__kit_record_at(records, index)->event;
        event->users++;
    }
    weir_biased_lock_release(&records->lock);
    return event;
}

struct weir_kit_event *weir_kit_records_hold_last(weir_kit_records *records)
{
    struct weir_kit_event *event = NULL;
    weir_biased_lock_take(&records->lock);
    if (records->count > 0) {
        event = weir__kit_record_at(records, records->count - 1)->event;
        event->users++;
    }
    weir_biased_lock_release(&records->lock);
    return event;
}

void weir_kit_records_release(weir_kit_records *records, struct weir_kit_event *event)
{
    weir_biased_lock_take(&records->lock);
    event->users--;
    weir_biased_lock_release(&records->lock);
}

// Returning events. All under the lock.

void weir__kit_convert(weir_kit_records *records, size_t count)
{
    const uint64_t first = records->recorded - records->count; // number of the ring's first
    for (; records->converted < first + count; records->converted++) {
        const struct record *record =
            weir__kit_record_at(records, (size_t)(records->converted - first));
        const struct weir_kit_event *before = records->converted_event;
        const uint64_t before_ns =
            records->converted ? weir__kit_time_at(records, records->converted - 1)->time_ns : 0;
        uint64_t time_ns = before_ns;
        const int code = records->ops->time(records->queue, record->event->native,
                                            before ? before->native : NULL, before_ns, &time_ns);
        const uint64_t later_ns = time_ns > before_ns ? time_ns : before_ns;
        *weir__kit_time_at(records, records->converted) =
            (struct record_time){record->sequence, code == 0 ? later_ns : before_ns, code};
        records->converted_event = code == 0 ? record->event : NULL;
    }
}

static enum weir_kit_state ask(const weir_kit_records *records, size_t index, int *out_code)
{
    *out_code = 0;
    return records->ops->query(records->queue, weir__kit_record_at(records, index)->event->native,
                               out_code);
}

void weir__kit_ask_each(weir_kit_records *records, size_t limit)
{
    records->asked = WEIR_KIT_COMPLETE;
    for (size_t index = weir__kit_count_known(records); index < records->count && limit > 0;
         limit--) {
        const uint64_t sequence = weir__kit_record_at(records, index)->sequence;
        records->asked = ask(records, index++, &records->asked_code);
        if (records->asked == WEIR_KIT_PENDING || records->asked == WEIR_KIT_UNKNOWN)
            return;
        if (records->asked == WEIR_KIT_FAILED)
            weir__kit_note_failure(records, sequence, records->asked_code);
        weir__kit_note_complete(records, sequence);
    }
}

// Where not each is asked: the number of records at the front that are complete. The driver is queried
// only if none is known to be, and at most twice: a query takes 1.2 us on an H200, ten times as
// long as a record.
static size_t count_complete(const weir_kit_records *records)
{
    static const size_t quarters[] = {3, 1};
    const size_t complete = weir__kit_count_known(records);
    int code;
    // The event of a timed queue's last complete record is not returned.
    if (complete > (records->history > 0 ? 1 : 0))
        return complete;
    for (size_t i = 0; i < 2 && records->count > 0; i++) {
        const size_t asked = records->count * quarters[i] / 4;
        if (ask(records, asked, &code) == WEIR_KIT_COMPLETE)
            return asked + 1;
    }
    return complete;
}

void weir__kit_take_back(weir_kit_records *records, size_t complete)
{
    if (records->history > 0) {
        weir__kit_convert(records, complete);
        complete = complete > 0 ? complete - 1 : 0;
    }
    for (; complete > 0 && weir__kit_record_at(records, 0)->event->users == 0; complete--) {
        struct weir_kit_event *event = weir__kit_record_at(records, 0)->event;
        if (!records->reused) {
            records->ops->destroy(records->queue, event->native);
            event->native = NULL;
        }
        event->next = records->returned;
        records->returned = event;
        records->first = (records->first + 1) & (records->capacity - 1);
        records->count--;
    }
}

// Moves the returned events to the submitter's list.
static void take_over(weir_kit_records *records)
{
    if (records->head.free)
        return;
    records->head.free = records->returned;
    records->returned = NULL;
}

// After a look that the number of records was the reason for.
static void look_later(weir_kit_records *records)
{
    if (records->reap_least >= records->reap_most || ++records->reaps < LOOKS_ALIKE)
        return;
    records->reaps = 0;
    records->reap_least *= 2;
}

// Returns the events of complete records to the submitter's list.
static void reap(weir_kit_records *records)
{
    if (records->count >= records->reap_at)
        look_later(records);
    weir_biased_lock_take(&records->lock);
    if (!records->asks_each) {
        const size_t complete = count_complete(records);
        if (complete > 0)
            weir__kit_note_complete(records, weir__kit_record_at(records, complete - 1)->sequence);
        weir__kit_take_back(records, complete);
    }
    take_over(records);
    const size_t left = records->count;
    weir_biased_lock_release(&records->lock);
    records->reap_at = 2 * left > records->reap_least ? 2 * left : records->reap_least;
}

// Where not each is asked only the submitter moves the ring's ends, so it can read them without the
// lock.
static bool is_worth_it(const weir_kit_records *records)
{
    if (records->asks_each)
        return true;
    return records->count > 0 &&
           (records->count >= records->reap_at ||
            weir_kit_records_completed(records) >= weir__kit_record_at(records, 0)->sequence);
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

weir_status weir_kit_records_refill(weir_kit_records *records, struct weir_kit_event **out_event)
{
    *out_event = NULL;
    if (is_worth_it(records))
        reap(records);
    if (!records->head.free)
        return create_event(records, out_event);
    return weir_kit_records_take(records, out_event);
}

void weir_kit_records_cancel(weir_kit_records *records, struct weir_kit_event *event)
{
    if (!records->reused && event->native) {
        records->ops->destroy(records->queue, event->native);
        event->native = NULL;
    }
    event->next = records->head.free;
    records->head.free = event;
}

// Doubles the ring. Under the lock.
static bool grow(weir_kit_records *records)
{
    struct record *ring = records->host->allocate(2 * records->capacity * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < records->count; i++)
        ring[i] = *weir__kit_record_at(records, i);
    records->host->release(records->ring);
    records->ring = ring;
    records->capacity *= 2;
    records->first = 0;
    return true;
}

weir_status weir_kit_records_append(weir_kit_records *records, uint64_t sequence,
                                    struct weir_kit_event *event)
{
    weir_biased_lock_take(&records->lock);
    if (records->asks_each) {
        weir__kit_ask_each(records, ASKED_AT_RECORD);
        weir__kit_take_back(records, weir__kit_count_known(records));
        take_over(records);
    }
    const bool fits = records->count < records->capacity || grow(records);
    if (fits) {
        *weir__kit_record_at(records, records->count) = (struct record){sequence, event};
        records->count++;
        records->recorded++;
    }
    weir_biased_lock_release(&records->lock);
    if (fits)
        return WEIR_OK;
    weir_kit_records_cancel(records, event);
    return weir_host_no_memory(records->host, "the records of a queue");
}
