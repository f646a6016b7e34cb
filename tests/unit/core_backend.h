// A backend under a test's control: the null module with some of its slots
// replaced, so that a test can see the calls that reach a backend, complete a
// queue's work, and make calls fail. Only one at a time.
#ifndef WEIR_TESTS_UNIT_CORE_BACKEND_H
#define WEIR_TESTS_UNIT_CORE_BACKEND_H

#include <weir/module/module.h>

#include "core/queue/queue.h"
#include "tests/support/gate.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

// One operation that was submitted.
struct seen {
    enum weir_operation_kind kind;
    uint32_t flags;
    uint64_t sequence;
    const weir_queue *queue;
    const weir_queue *producer; // WAIT
    uint64_t awaited;           // the producer's operation
    size_t offset;              // FILL
};

struct control {
    weir_runtime *runtime;
    weir_device *devices[2];
};

// A test whose body gets such a `control`.
#define CONTROL_TEST(suite, name)                                               \
    WEIR_TEST_WITH(suite, name, struct control, control, control_open(control), \
                   control_close(control))

// Opens and closes a runtime with two devices; closing them must succeed.
bool control_open(struct control *control);
void control_close(struct control *control);

weir_queue *control_legacy(const struct control *control);
weir_queue *control_queue(const struct control *control, const char *label);
weir_buffer *control_buffer(const struct control *control, size_t size);

// The operations submitted so far, oldest first; false past the last.
// control_open() and control_forget() clear them.
bool control_seen(size_t index, struct seen *out_seen);
size_t control_count(enum weir_operation_kind kind);
void control_forget(void);

// Whether the two devices are peers; after control_open() they are not.
void control_peers(bool on);

// While set, no record completes, on any queue.
void control_stall(bool on);

// While set, no record of this queue completes, and a wait for one blocks; NULL ends that.
void control_stall_queue(const weir_queue *queue);
// Calls that wait for it so.
size_t control_blocked_count(void);

// The `after`-th submit of this kind from now on, 0 for the next one, fails once
// with WEIR_ERROR_DEVICE and a native error.
void control_refuse(enum weir_operation_kind kind, int after);

// Queries and waits return this error; WEIR_OK ends that.
void control_fault(weir_status status);

// The same without a detail of the error, and flushes return it too.
void control_silent_fault(weir_status status);

// Calls since control_open().
size_t control_query_count(void);
size_t control_flush_count(void);
size_t control_buffer_destroy_count(void);

// One gate, closed by control_open().
extern struct gate control_gate;

#endif
