// Queues that nobody creates, for programs that come from CUDA's default streams
// and for teaching. New code creates its queues and says what waits for what:
// docs/migration.md shows both side by side.
#ifndef WEIR_MIGRATION_H
#define WEIR_MIGRATION_H

#include <weir/common.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// Stores the calling thread's default queue of the device, made at its first use:
// a queue like any other, so that the default queues of two threads overlap.
//
// Ownership: the library's. It is destroyed, as by weir_queue_destroy(), when the
// thread exits or the device closes, whichever comes first; its events stay valid.
// weir_queue_destroy() on it sets the pointer to NULL, leaves an error in the thread's
// detail and in the log, and does nothing else.
// Threads: safe. Other threads may use the queue as long as its own thread lives.
// Errors: as weir_queue_create(); WEIR_ERROR_INVALID in a host call, which runs on a
// thread of the library's.
WEIR_API weir_status weir_thread_queue(weir_device *device, weir_queue **out_queue);

// Stores the device's legacy queue, of which there is one, made at its first use. It is
// ordered against every other queue of the device, as CUDA's legacy default stream is:
// an operation on it waits for everything that was submitted to any other queue before,
// and whatever is submitted to any queue later waits for it. Records and syncs are
// operations too: to sync with the legacy queue is to sync with all of the device's.
//
// So no work beside it overlaps: an operation on it costs a record on every queue that
// was used since the last one and a wait for each, and the next operation on
// every other queue costs one wait. A device whose legacy queue nobody asked for pays a
// load and a comparison for each operation.
//
// Failures: what it waits for fails it, with the first cause. Its own failure stays its
// own: other queues keep their order behind it and are not failed by it.
//
// Ownership: the library's, until the device closes. weir_queue_destroy() on it does
// what it does on a thread's queue.
// Threads: safe.
// Errors: as weir_queue_create().
WEIR_API weir_status weir_legacy_queue(weir_device *device, weir_queue **out_queue);

#ifdef __cplusplus
}
#endif

#endif
