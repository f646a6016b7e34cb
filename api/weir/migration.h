// Default queues, which the library creates on first use: for programs that are ported
// from CUDA's default streams, and for teaching. New code creates its queues and states
// what waits for what; docs/migration.md shows both side by side.
#ifndef WEIR_MIGRATION_H
#define WEIR_MIGRATION_H

#include <weir/common.h>
#include <weir/status.h>

// Stores the calling thread's default queue of the device, creating it on first use. It
// is an ordinary queue, so the default queues of two threads can overlap.
//
// Ownership: the library's. It is destroyed, as by weir_queue_destroy(), when the
// thread exits or the device closes, whichever comes first; its events stay valid.
// weir_queue_destroy() on it only sets the pointer to NULL and reports an error in the
// thread's error detail and in the log.
// Threads: safe. Other threads may use the queue as long as its own thread lives.
// Errors: as weir_queue_create(); WEIR_ERROR_INVALID in a host call, which runs on a
// library thread.
WEIR_CALL weir_status weir_thread_queue_at(weir_device *device, weir_queue **out_queue,
                                           const char *file, int line);
#define weir_thread_queue(...) weir_thread_queue_at(__VA_ARGS__, __FILE__, __LINE__)

// Stores the device's one legacy queue, creating it on first use. It is ordered against
// every other queue of the device, as CUDA's legacy default stream is: an operation on
// it waits for everything that was submitted before to any other queue, and everything
// that is submitted later to any queue waits for it. Records and syncs are operations
// too: a sync with the legacy queue waits for all queues of the device.
//
// So its work overlaps with no other work of the device. Each operation on it costs a
// record on every queue that was used since its last operation and a wait for each, and
// then one wait at the next operation on every other queue. On a device without a
// legacy queue each operation costs one load and one comparison.
//
// Times: its events have times, for weir_event_time_ns() and weir_event_elapsed_ns(), on a device
// that was opened with `default_timing`, and so have those of threads' default queues. A queue keeps
// the times of its last `limits.timing_history` records, among them the library's own: one for each
// time that another queue comes after the legacy queue. On OpenCL each record of such a queue is a
// command of the driver's: docs/migration.md has what times cost.
//
// Failures: if work that it waits for failed, the legacy queue fails with the first
// cause. Its own failure does not spread: other queues still run after it but do not
// fail with it.
//
// Ownership: the library's, until the device closes. weir_queue_destroy() behaves as
// for a thread's default queue.
// Errors: as weir_queue_create().
WEIR_CALL weir_status weir_legacy_queue_at(weir_device *device, weir_queue **out_queue,
                                           const char *file, int line);
#define weir_legacy_queue(...) weir_legacy_queue_at(__VA_ARGS__, __FILE__, __LINE__)

#endif
