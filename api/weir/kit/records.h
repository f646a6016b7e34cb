// The records of a queue: which native event stands for which record, which of them are
// complete, and when they were. A record of Weir is a number, and a driver has events; what
// lies between the two is the same for every driver whose queues are in order.
//
//     weir_kit_records_take(records, &event);        // queue_submit of a RECORD
//     driver_event_record(event->native, stream);
//     weir_kit_records_append(records, sequence, event);
//
//     event = weir_kit_records_hold(of_producer, sequence);     // of a WAIT
//     if (event) {
//         driver_stream_wait(stream, event->native);
//         weir_kit_records_release(of_producer, event);
//     }
//
// event_query, event_wait and event_time are one call each.
//
// Native events are used again: the driver is asked about old ones when there is no free one
// left, which is every few hundred records. Where the driver makes an event with
// each record (no `create`), an event is given back as soon as it is complete, and each
// record asks about two earlier ones.
//
// Threads: take, append and cancel are calls of the thread that submits to the queue; all
// others are safe. The ops may be called under a lock of the records, so they take
// none of the backend's that is held around a call of these functions.
#ifndef WEIR_KIT_RECORDS_H
#define WEIR_KIT_RECORDS_H

#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

// A native event, in use by a record or free. `native` is the backend's, the rest is not.
struct weir_kit_event {
    void *native;
    uint32_t users;
    struct weir_kit_event *next;
};

typedef struct weir_kit_records weir_kit_records;

// What records begin with, for the function below.
struct weir_kit_records_head {
    struct weir_kit_event *free;
};

enum weir_kit_state {
    WEIR_KIT_PENDING,  // the work before the event is under way
    WEIR_KIT_COMPLETE, // it has finished, and the calling thread sees what it wrote
    WEIR_KIT_FAILED,   // it has ended with the error in `*out_code`
    WEIR_KIT_UNKNOWN,  // the driver refused the question, with the error in `*out_code`
};

// What a code that is reported came from.
enum weir_kit_question {
    WEIR_KIT_ASKED,  // `query` came to UNKNOWN
    WEIR_KIT_WAITED, // `wait` did
    WEIR_KIT_WORKED, // FAILED
    WEIR_KIT_TIMED,  // `time`
};

// How the driver's events are used. `queue` is that of the params. M: mandatory.
struct weir_kit_record_ops {
    // Makes a native event, which later records use again. NULL: the driver makes one with
    // each record, and the backend stores it in `native` between take and append.
    weir_status (*create)(void *queue, void **out_native);
    // M. Gives a native event back to the driver: with `create` when the records are destroyed,
    // without it as soon as the event is complete.
    void (*destroy)(void *queue, void *native);
    // M. Never waits.
    enum weir_kit_state (*query)(void *queue, void *native, int *out_code);
    // Blocks in the driver until the event is complete. NULL: host waits ask again and
    // again, with pauses of 2 us to 1 ms, as waits with a timeout always do.
    enum weir_kit_state (*wait)(void *queue, void *native, int *out_code);
    // M with timing. Stores the time of a complete event on the device's timeline, and returns
    // 0 or the driver's error, which is reported when that time is asked for. `before` is the event of the record before it, whose time is `before_ns`, or NULL.
    // Called once for each record of a queue with timing, in their order.
    int (*time)(void *queue, void *native, void *before, uint64_t before_ns, uint64_t *out_time_ns);
    // M. Reports `code`, and returns what host->error returns.
    weir_status (*report)(void *queue, enum weir_kit_question question, int code,
                          uint64_t sequence);
};

struct weir_kit_records_params {
    const struct weir_host *host;
    const struct weir_kit_record_ops *ops;
    void *queue;
    // How many records the driver takes before a submit blocks, a power of two: as many need
    // no more memory than there is from the start. 0: 256.
    uint32_t depth;
    // The queue takes times, and keeps those of so many records; limits.timing_history. 0: none.
    uint32_t timing_history;
};

// Ownership: the caller's, until weir_kit_records_destroy(), which accepts a pointer to NULL.
weir_status weir_kit_records_create(const struct weir_kit_records_params *params,
                                    weir_kit_records **out_records);
void weir_kit_records_destroy(weir_kit_records **records);

// Stores an event for the next record, or NULL on an error. Append follows, or cancel if the
// driver refused to record it.
//
// Errors: what `create` returns; WEIR_ERROR_OUT_OF_MEMORY.
static inline weir_status weir_kit_records_take(weir_kit_records *records,
                                                struct weir_kit_event **out_event);
// Notes that the driver has recorded the event as number `sequence`, which rises from record to
// record.
//
// Errors: WEIR_ERROR_OUT_OF_MEMORY. The event is free again, and the number is not known.
weir_status weir_kit_records_append(weir_kit_records *records, uint64_t sequence,
                                    struct weir_kit_event *event);
void weir_kit_records_cancel(weir_kit_records *records, struct weir_kit_event *event);

// What take calls where no event is free.
weir_status weir_kit_records_refill(weir_kit_records *records, struct weir_kit_event **out_event);

static inline weir_status weir_kit_records_take(weir_kit_records *records,
                                                struct weir_kit_event **out_event)
{
    struct weir_kit_records_head *head = (struct weir_kit_records_head *)(void *)records;
    *out_event = head->free;
    if (!*out_event)
        return weir_kit_records_refill(records, out_event);
    head->free = (*out_event)->next;
    return WEIR_OK;
}

// Returns the event of record `sequence`, or of the first one after it, if that is not known to
// be complete; else NULL. Its native event is not used again until it is released.
struct weir_kit_event *weir_kit_records_hold(weir_kit_records *records, uint64_t sequence);
void weir_kit_records_release(weir_kit_records *records, struct weir_kit_event *event);
// The same of the last record.
struct weir_kit_event *weir_kit_records_hold_last(weir_kit_records *records);

// Returns the number up to which every record is known to be complete, without asking the driver.
uint64_t weir_kit_records_completed(const weir_kit_records *records);

// What event_query, event_wait and event_time of <weir/module/module.h> do, without a flush:
// WEIR_OK, WEIR_NOT_READY or WEIR_TIMEOUT, or the error of the first record up to `sequence` that
// failed.
weir_status weir_kit_records_query(weir_kit_records *records, uint64_t sequence);
weir_status weir_kit_records_wait(weir_kit_records *records, uint64_t sequence,
                                  uint64_t timeout_ns);
weir_status weir_kit_records_time(weir_kit_records *records, uint64_t sequence,
                                  uint64_t *out_time_ns);

// For queue_finish, once the driver has finished everything: asks about all records. Reports
// the first failure, if there was one, and clears it.
weir_status weir_kit_records_settle(weir_kit_records *records);

#ifdef __cplusplus
}
#endif

#endif
