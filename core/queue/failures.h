// The failures of one queue. Each covers a range of operations; what a queue recovers from ends the
// range. The causes of the latest WEIR__CAUSES_KEPT ranges are kept, and of older ones the range and
// the status, so that a queue that fails and recovers for days neither grows much nor gets slow.
//
// Threads: under a lock of the caller's.
#ifndef WEIR_CORE_QUEUE_FAILURES_H
#define WEIR_CORE_QUEUE_FAILURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>

enum {
    WEIR__CAUSES_KEPT = 32
};

struct weir__failure;

// A failure whose cause is no longer kept.
struct weir__past {
    uint64_t first;
    uint64_t last;
    weir_status status;
};

struct weir__failures {
    struct weir__failure *latest; // the newest first
    struct weir__failure *spare;  // for a cause for which there is no memory
    struct weir__past *past;      // the oldest first
    size_t past_count;
    size_t past_capacity;
    bool shared; // the lists belong to weir__failures_share()'s copy, except for
    const struct weir__failure *shared_from; // failures that came before this one in the list
};

// Returns false if out of memory; finishing it is still legal.
bool weir__failures_init(struct weir__failures *failures);
void weir__failures_finish(struct weir__failures *failures);

// The lists so far, for use after weir__failures_finish(); that of the copy frees them.
struct weir__failures weir__failures_share(struct weir__failures *failures);

// Copies the cause of the earliest failure that covers the operation; false: none.
bool weir__failures_find(const struct weir__failures *failures, uint64_t sequence,
                         struct weir_error *out_cause);

// The first operation of the failures that are not recovered; 1 if no memory was left to keep them.
uint64_t weir__failures_open(const struct weir__failures *failures);

// Memory for one failure, to be obtained without the lock; NULL if there is none.
struct weir__failure *weir__failure_make(void);

// Adds a failure of `first` and all later operations, if none covers these yet. `made` may be NULL.
// Returns what is to be released without the lock.
struct weir__failure *weir__failures_add(struct weir__failures *failures,
                                         struct weir__failure *made, uint64_t first,
                                         const struct weir_error *cause);

// Memory that a recovery may need, to be obtained without the lock, by the one thread that recovers.
struct weir__recovery {
    struct weir__failure *spare;
    struct weir__past *past;
    size_t past_capacity;
};
void weir__recovery_begin(const struct weir__failures *failures, struct weir__recovery *recovery);

// Ends the present failure after `sequence`.
void weir__failures_recover(struct weir__failures *failures, uint64_t sequence,
                            struct weir__recovery *recovery);

// Releases what was not used, or was replaced; without the lock.
void weir__recovery_end(struct weir__recovery *recovery);

#endif
