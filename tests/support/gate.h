// A gate: holds the host calls and threads that come to it until it is opened. Zeroed it is closed:
//
//     struct gate gate = {0};
//     ASSERT_OK(weir_queue_host_call(queue, gate_pass, &gate));
//     ...
//     gate_open(&gate);
//
// It lives until all that came to it have left. It has no lock and no semaphore, so that what looks for these (the
// plugin check, wrapped functions of the C library) sees nothing of it.
#ifndef WEIR_TESTS_SUPPORT_GATE_H
#define WEIR_TESTS_SUPPORT_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/weir.h>

struct gate {
    atomic_uint entered; // how many have come, since it was shut
    atomic_uint is_open; // 0 or 1
    weir_status status;  // that gate_pass() returns
};

// A host call, and for threads: waits until the gate, its `user`, is open. After two minutes it returns
// WEIR_ERROR_HOST_CALL, so that no test hangs.
weir_status gate_pass(void *gate);

void gate_open(struct gate *gate);

// As it was at first, but for its status.
void gate_shut(struct gate *gate);

// Waits until `count` have come to the gate. False after two minutes.
bool gate_await(struct gate *gate, unsigned count);

#endif
