// Ranks of the tests' NCCL on the tests' driver, and the controls of both.
#ifndef WEIR_TESTS_COMM_NCCL_H
#define WEIR_TESTS_COMM_NCCL_H

#include "tests/comm/rig.h"
#include "tests/support/libcuda/control.h"
#include "tests/support/libnccl/control.h"

#define NCCL_LIBRARY "tests/support/libnccl/libnccl.so.2"

const struct weir_test_cuda *cuda(void);
const struct weir_test_nccl *nccl(void);

// Communicators "grads" of the first `count` of the rig's devices.
void nccl_create(struct comm_rig *rig, uint32_t count, uint64_t timeout_ns);
// A rig with them.
void nccl_open(struct comm_rig *rig, uint32_t count, uint64_t timeout_ns);
// Waits for native communicators, which end on threads that nothing joins.
void nccl_await_ends(void);
// Closes the rig, and waits for them.
void nccl_close(struct comm_rig *rig);
#define own_nccl OWN(nccl_close) struct comm_rig
#define NCCL_TEST(suite, name, count, timeout_ns) \
    COMM_RIG_TEST_BY(suite, name, nccl_open(rig, count, timeout_ns), nccl_close(rig))
// A gate in the stream itself, of which the library knows nothing.
void nccl_submit_gate(weir_queue *queue, struct gate *gate);

#endif
