#include "tests/comm/nccl.h"

#include "base/clock.h"

// The backend, too, keeps the libraries.

const struct weir_test_cuda *cuda(void)
{
    return weir_test_symbol("tests/support/libcuda/libcuda.so.1", WEIR_TEST_CUDA_SYMBOL);
}

const struct weir_test_nccl *nccl(void)
{
    return weir_test_symbol(NCCL_LIBRARY, WEIR_TEST_NCCL_SYMBOL);
}

void nccl_create(struct comm_rig *rig, uint32_t count, uint64_t timeout_ns)
{
    rig->count = count;
    ASSERT_OK(
        weir_comm_create_all(rig->devices, count,
                             WEIR_PARAMS(weir_comm, .label = "grads", .timeout_ns = timeout_ns),
                             rig->comms));
}

void nccl_open(struct comm_rig *rig, uint32_t count, uint64_t timeout_ns)
{
    comm_rig_open_ranks(rig, "", count);
    nccl_create(rig, count, timeout_ns);
}

void nccl_await_ends(void)
{
    // An end that takes long, as on a busy machine, is left to a thread.
    for (int i = 0; i < 1000 && nccl()->live() > 0; i++)
        weir_clock_sleep_ns(10 * 1000000);
    EXPECT_INT_EQ((int)nccl()->live(), 0);
}

void nccl_close(struct comm_rig *rig)
{
    comm_rig_close(rig);
    nccl_await_ends();
}

static void pass(void *user)
{
    (void)gate_pass(user);
}

static weir_status enqueue_gate(const struct weir_native_queue *native, void *user)
{
    cuda()->enqueue(native->queue, pass, user);
    return WEIR_OK;
}

void nccl_submit_gate(weir_queue *queue, struct gate *gate)
{
    EXPECT_OK(weir_queue_native_array(queue, enqueue_gate, gate, NULL, 0));
}
