// Shared by the files of the records: records.c has the ring and its events, records_answer.c what is
// answered about them.
#ifndef WEIR_BACKENDS_KIT_RECORDS_PARTS_H
#define WEIR_BACKENDS_KIT_RECORDS_PARTS_H

#include <stdatomic.h>
#include <weir/kit/records.h>

#include "base/biased_lock.h"

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
    struct weir_kit_records_head head; // of the thread that submits
    bool reused;    // `ops->create` is set; a copy, as append reads nothing else of the table
    bool asks_each; // an event may be the only one that tells a failure
    const struct weir_host *host;
    const struct weir_kit_record_ops *ops;
    void *queue;
    _Atomic uint64_t completed;
    // Used by the thread that submits only.
    size_t reap_at; // the number of records in the ring at which it is checked
    size_t reap_least;
    size_t reap_most; // of `reap_least`
    unsigned reaps;   // at this one
    struct event_block *blocks;
    // Under the lock.
    struct weir_biased_lock lock;
    struct record *ring;
    size_t first;
    size_t count;
    size_t capacity;                 // a power of two
    uint64_t recorded;               // records so far
    struct weir_kit_event *returned; // free, but not in the submitter's list yet
    enum weir_kit_state asked;       // the result of the last query of weir__kit_ask_each()
    int asked_code;
    _Atomic uint64_t failed; // the first record that failed; 0: none
    int failed_code;
    struct record_time *times; // ring, by the number of the record
    uint32_t history;          // its size; 0: no times
    uint64_t converted;        // records whose time is known
    struct weir_kit_event *converted_event;
};

static inline struct record *weir__kit_record_at(const weir_kit_records *records, size_t index)
{
    return &records->ring[(records->first + index) & (records->capacity - 1)];
}

static inline struct record_time *weir__kit_time_at(const weir_kit_records *records,
                                                    uint64_t number)
{
    return &records->times[number % records->history];
}

// Raises what is known to be complete.
static inline void weir__kit_note_complete(weir_kit_records *records, uint64_t sequence)
{
    uint64_t known = atomic_load_explicit(&records->completed, memory_order_relaxed);
    while (known < sequence &&
           !atomic_compare_exchange_weak_explicit(&records->completed, &known, sequence,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

// The index of the first record with this number or a later one, or the count. Under the lock.
static inline size_t weir__kit_find_record(const weir_kit_records *records, uint64_t sequence)
{
    size_t low = 0;
    size_t high = records->count;
    // A wait is mostly for the latest.
    if (high > 1 && weir__kit_record_at(records, high - 1)->sequence == sequence)
        return high - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (weir__kit_record_at(records, middle)->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// How many records at the front are known to be complete. Under the lock.
static inline size_t weir__kit_count_known(const weir_kit_records *records)
{
    return weir__kit_find_record(records, weir_kit_records_completed(records) + 1);
}

// records.c. All under the lock.

void weir__kit_note_failure(weir_kit_records *records, uint64_t sequence, int code);

// Stores the times of the first `count` records of the ring, which are complete. Times of a queue
// never decrease, although the driver may measure two records from different points.
void weir__kit_convert(weir_kit_records *records, size_t count);

// Queries the oldest records that are not known to be complete, at most `limit`, until one is
// pending. A record whose query fails may still be pending, so it stays.
void weir__kit_ask_each(weir_kit_records *records, size_t limit);

// Returns the events of the first `complete` records, up to one that is held. The last event of a
// timed queue stays, since the next time is measured from it.
void weir__kit_take_back(weir_kit_records *records, size_t complete);

#endif
