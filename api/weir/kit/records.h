// The records of a queue. Weir identifies a record by its sequence number, a driver by a native
// event. Records map the one to the other and keep which records are complete, and their times.
// They serve every driver with in-order queues.
//
//     weir_kit_records_add(records, sequence);               // queue_submit of a RECORD
//
//     event = weir_kit_records_hold(of_producer, sequence);  // of a WAIT
//     if (event) {
//         driver_stream_wait(stream, event);
//         weir_kit_records_release(of_producer, sequence);
//     }
//
// event_query, event_wait and event_time are one call each.
//
// Native events are reused: when no free event is left, which is every few hundred records, the
// driver is queried for those that are complete. With a driver that creates an event for each
// record (not `reused`), events are released a few at a time, when they are known to be complete. Not each is
// queried: a failure that one event alone tells is the backend's to keep.
//
// Threads: add must be called by the thread that submits to the queue; all others are safe. The ops may be called with
// a lock of the records held, so they must not take a lock of the backend that is held during a call of these
// functions.
#ifndef WEIR_KIT_RECORDS_H
#define WEIR_KIT_RECORDS_H

#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_kit_records weir_kit_records;

enum weir_kit_state {
    WEIR_KIT_PENDING,  // the work before the event has not finished
    WEIR_KIT_COMPLETE, // it has finished, and the calling thread sees the bytes that it wrote
    WEIR_KIT_FAILED,   // it has ended with the error in `*out_code`
    WEIR_KIT_UNKNOWN,  // the query itself failed, with the error in `*out_code`
};

// The source of an error code that is reported.
enum weir_kit_question {
    WEIR_KIT_ASKED,  // `query` returned UNKNOWN
    WEIR_KIT_WAITED, // `wait` returned UNKNOWN
    WEIR_KIT_WORKED, // `query` or `wait` returned FAILED: the queue's work failed
    WEIR_KIT_TIMED,  // `time` failed
};

// The driver's functions for events. `queue` is that of the params. M: mandatory.
struct weir_kit_record_ops {
    // Later records use native events again; else the driver creates one with each record.
    bool reused;
    // M. Records the present end of the queue: in `*native`, which is complete, or if that is NULL in a new native
    // event, which it stores. May block, with no lock held. One that it stores and does not record is used or destroyed
    // later.
    weir_status (*record)(void *queue, void **native);
    // M. Destroys a native event: if it is reused when the records are destroyed, else once it is known to be
    // complete.
    void (*destroy)(void *queue, void *native);
    // M. Must not wait.
    enum weir_kit_state (*query)(void *queue, void *native, int *out_code);
    // M. Blocks in the driver until the event is complete. Waits with a timeout poll, with pauses of 2 us to 1 ms.
    enum weir_kit_state (*wait)(void *queue, void *native, int *out_code);
    // M with timing. Stores the time of a complete event on the device's timeline, and returns 0
    // or the driver's error, which is reported when that time is requested. Called once for each record of a
    // queue with timing, in order.
    int (*time)(void *queue, void *native, uint64_t *out_time_ns);
    // M. Reports `code`, and returns what host->error returns.
    weir_status (*report)(void *queue, enum weir_kit_question question, int code,
                          uint64_t sequence);
};

struct weir_kit_records_params {
    const struct weir_host *host;
    const struct weir_kit_record_ops *ops;
    void *queue;
    // The number of records whose times are kept: limits.timing_history. 0: a queue without timing.
    uint32_t timing_history;
};

// Ownership: the caller's, until weir_kit_records_destroy(), which accepts a pointer to NULL.
weir_status weir_kit_records_create(const struct weir_kit_records_params *params,
                                    weir_kit_records **out_records);
void weir_kit_records_destroy(weir_kit_records **records);

// Records the present end of the queue, with number `sequence`. The numbers of records ascend.
//
// Errors: what `record` returns; WEIR_ERROR_OUT_OF_MEMORY. There is no such record then.
weir_status weir_kit_records_add(weir_kit_records *records, uint64_t sequence);

// Returns the native event of record `sequence`, or of the first record after that number, unless that is
// known to be complete; else NULL. The native event is not reused until it is released, by the same number.
void *weir_kit_records_hold(weir_kit_records *records, uint64_t sequence);
void weir_kit_records_release(weir_kit_records *records, uint64_t sequence);
// Returns the number of the last record; 0: no record is kept.
uint64_t weir_kit_records_last(weir_kit_records *records);

// Returns the number up to which all records are known to be complete, without querying the driver.
uint64_t weir_kit_records_completed(const weir_kit_records *records);

// Do the work of event_query, event_wait and event_time of <weir/module/module.h>, except for the
// flush. Return WEIR_OK, WEIR_NOT_READY or WEIR_TIMEOUT, or the error of that record.
weir_status weir_kit_records_query(weir_kit_records *records, uint64_t sequence);
weir_status weir_kit_records_wait(weir_kit_records *records, uint64_t sequence,
                                  uint64_t timeout_ns);
weir_status weir_kit_records_time(weir_kit_records *records, uint64_t sequence,
                                  uint64_t *out_time_ns);

// For queue_finish, after the driver has finished all work: queries the last record. Reports its failure, once: all
// records are complete then.
weir_status weir_kit_records_settle(weir_kit_records *records);

#ifdef __cplusplus
}
#endif

#endif
