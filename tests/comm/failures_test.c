// Failures of collectives: what every rank is told, and what is refused after them.

#include "tests/comm/rig.h"

// The transport's sentence is the first cause: of the queue, of the communicator, and of calls after
// it, none of which reaches the transport.
COMM_FAKE_TEST(CommFailures, ATransportFails, "fail_at = 2", 2)
{
    for (uint32_t r = 0; r < 2; r++) {
        EXPECT_OK(COMM_RIG_REDUCE(rig, r, 2));
        EXPECT_OK(weir_queue_barrier(rig->queues[r], rig->comms[r]));
    }
    for (uint32_t r = 0; r < 2; r++) {
        COMM_RIG_EXPECT_CAUSE(rig->queues[r], "barrier 2 of 'grads', ",
                              "failures_test.c:", "rank 1 has died", "start it again");
        EXPECT_FAILURE(weir_comm_error(rig->comms[r]), WEIR_ERROR_COMM, "barrier 2 of 'grads'");
        EXPECT_OK(weir_queue_recover(rig->queues[r]));
        EXPECT_FAILURE(COMM_RIG_REDUCE(rig, r, 2), WEIR_ERROR_COMM, "barrier 2 of 'grads'");
        EXPECT_OK(weir_queue_sync(rig->queues[r], WEIR_FOREVER));
    }
}

// A collective that waits is ended on both ranks, which both tell why.
COMM_FAKE_TEST(CommFailures, Abort, "hang_at = 1", 2)
{
    EXPECT_OK(weir_comm_error(rig->comms[0]));
    COMM_RIG_REDUCE_ALL(rig, 2);
    EXPECT_OK(weir_comm_abort(rig->comms[1], "the loss is no number"));
    EXPECT_OK(weir_comm_abort(rig->comms[1], "a second reason"));
    for (uint32_t r = 0; r < 2; r++)
        COMM_RIG_EXPECT_CAUSE(rig->queues[r], "rank 1 has aborted 'grads', ",
                              "the loss is no number", "failures_test.c:");
    EXPECT_FAILURE(weir_comm_error(rig->comms[1]), WEIR_ERROR_COMM, "the loss is no number");
}

// What is before rank 0's collective fails once the gate is open.
static void expect_failure_at(struct comm_rig *rig, struct gate *gate)
{
    COMM_RIG_REDUCE_ALL(rig, 2);
    gate_open(gate);
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "the function returned WEIR_ERROR_IO");
    COMM_RIG_EXPECT_CAUSE(rig->queues[1], "all-reduce 1 of 'grads', ",
                          "rank 0 cannot take part: ", "the function returned WEIR_ERROR_IO");
    EXPECT_INT_EQ(weir_comm_error(rig->comms[0]), WEIR_ERROR_IO);
}

// A collective whose queue failed before it does not run. The other rank does not wait for it.
COMM_FAKE_TEST(CommFailures, TheQueueFailsBefore, "", 2)
{
    struct gate gate = {.status = WEIR_ERROR_IO};
    EXPECT_OK(weir_queue_host_call(rig->queues[0], gate_pass, &gate));
    expect_failure_at(rig, &gate);
}

// The same where the failure comes through a wait for another queue.
COMM_FAKE_TEST(CommFailures, AQueueThatItWaitsForFailsBefore, "", 2)
{
    struct gate gate = {.status = WEIR_ERROR_IO};
    comm_rig_open_others(rig);
    EXPECT_OK(weir_queue_host_call(rig->others[0], gate_pass, &gate));
    EXPECT_OK(weir_queue_after(rig->queues[0], rig->others[0]));
    expect_failure_at(rig, &gate);
}

// A queue that refuses the collective has not numbered it: the program may recover and go on.
COMM_FAKE_TEST(CommFailures, ARefusedCollectiveHasNoNumber, "", 2)
{
    struct gate gate = {.is_open = 1, .status = WEIR_ERROR_IO};
    EXPECT_OK(weir_queue_host_call(rig->queues[0], gate_pass, &gate));
    EXPECT_INT_LT(weir_queue_sync(rig->queues[0], WEIR_FOREVER), 0);
    EXPECT_INT_EQ(COMM_RIG_REDUCE(rig, 0, 2), WEIR_ERROR_IO);
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    COMM_RIG_REDUCE_ALL(rig, 2);
    comm_rig_sync(rig, WEIR_FOREVER);
}

// An earlier collective of another queue fails: the one that waits for its turn ends too.
COMM_FAKE_TEST(CommFailures, WhileAnotherWaitsForItsTurn, "hang_at = 1", 2)
{
    comm_rig_open_others(rig);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 2));
    EXPECT_OK(weir_queue_barrier(rig->others[0], rig->comms[0]));
    EXPECT_OK(weir_comm_abort(rig->comms[0], "enough"));
    COMM_RIG_EXPECT_CAUSE(rig->others[0], "rank 0 has aborted 'grads'", "enough");
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "rank 0 has aborted 'grads'", "enough");
}

// The third rank does not come.
COMM_FAKE_TEST(CommFailures, JoinFails, "", 0)
{
    weir_comm *comms[2];
    weir_device *const devices[] = {rig->device, rig->device};
    EXPECT_FAILURE(weir_comm_create_all(devices, 2,
                                        WEIR_PARAMS(weir_comm, .label = "grads", .count = 3,
                                                    .rendezvous = "process:failures",
                                                    .timeout_ns = 1),
                                        comms),
                   WEIR_ERROR_COMM, "creation of 'grads': some of 3 ranks are missing at 'process:",
                   "failures_test.c:");
    EXPECT_TRUE(comms[0] == NULL && comms[1] == NULL);
}

// There is no communicator yet that could be shrunk, and no queue to recover.
COMM_FAKE_TEST(CommFailures, CreationFailsAfterTheJoin, "creation_fails = 1", 0)
{
    weir_comm *comm;
    EXPECT_FAILURE(weir_comm_create(rig->device, NULL, &comm), WEIR_ERROR_COMM, "rank 1 has died",
                   "create the communicator again on all ranks");
    EXPECT_TRUE(comm == NULL);
}

COMM_FAKE_TEST(CommFailures, TheTransportDoesNotOpen, "open_fails = 1", 0)
{
    weir_comm *comm;
    for (int i = 0; i < 2; i++) {
        EXPECT_FAILURE(weir_comm_create(rig->device, NULL, &comm), WEIR_ERROR_MODULE,
                       "libabsent is missing", "install libabsent");
        EXPECT_TRUE(comm == NULL);
    }
}

static void expect_no_transport(const char *text, const char *message, const char *remedy)
{
    own_comm_rig rig = {0};
    weir_comm *comm;
    comm_rig_open(&rig, text, 0, WEIR_PLACE_DEVICE);
    EXPECT_FAILURE(weir_comm_create(rig.device, NULL, &comm), WEIR_ERROR_MODULE, message, remedy);
}

WEIR_TEST(CommFailures, NoSuchTransport)
{
    expect_no_transport("[comm]\ntransport = fakes\n", "there is no transport 'fakes'",
                        "did you mean 'fake'?");
    expect_no_transport("[comm]\ntransport = null\n",
                        "'null' is a backend, and a transport was asked for",
                        "name it under `backend` in [weir]");
}

WEIR_TEST(CommFailures, ATransportIsNoBackend)
{
    weir_runtime *runtime;
    EXPECT_FAILURE(weir_open(WEIR_PARAMS(weir_open, .backend = "fake", .config_text = ""),
                             &runtime),
                   WEIR_ERROR_MODULE, "'fake' is a transport, and a backend was asked for",
                   "name it under `transport` in [comm]");
}

static weir_status create_in_host_call(void *user)
{
    struct comm_rig *rig = user;
    weir_comm *comm;
    EXPECT_FAILURE(weir_comm_create(rig->device, NULL, &comm), WEIR_ERROR_INVALID,
                   "weir_comm_create: a host call may submit work, and may not wait");
    EXPECT_FAILURE(weir_comm_create_all(&rig->device, 1, NULL, &comm), WEIR_ERROR_INVALID,
                   "weir_comm_create_all: a host call");
    EXPECT_FAILURE(weir_comm_split(rig->comms[0], 0, 0, NULL, &comm), WEIR_ERROR_INVALID,
                   "weir_comm_split: a host call");
    return WEIR_OK;
}

COMM_FAKE_TEST(CommFailures, HostCallsDoNotWait, "", 1)
{
    EXPECT_OK(weir_queue_host_call(rig->queues[0], create_in_host_call, rig));
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
}

// A split of a dead communicator is refused with its first cause; one that waits ends with it.
COMM_FAKE_TEST(CommFailures, Splits, "hang_at = 1", 2)
{
    weir_comm *part;
    EXPECT_OK(weir_comm_abort(rig->comms[0], "enough"));
    EXPECT_FAILURE(weir_comm_duplicate(rig->comms[0], "copy", &part), WEIR_ERROR_COMM,
                   "rank 0 has aborted 'grads'");
    EXPECT_TRUE(part == NULL);
    // Rank 1 hears of it from the transport.
    EXPECT_FAILURE(weir_comm_duplicate(rig->comms[1], "copy", &part), WEIR_ERROR_COMM,
                   "rank 0 has aborted 'grads'", "enough");
    EXPECT_INT_EQ(weir_comm_error(rig->comms[1]), WEIR_ERROR_COMM);
}

// In messages of the transport, which other ranks see too.
COMM_FAKE_TEST(CommFailures, NoLabel, "", 0)
{
    static const char *const labels[] = {NULL, ""};
    weir_comm *comm;
    for (int i = 0; i < 2; i++) {
        EXPECT_FAILURE(weir_comm_create(rig->device,
                                        WEIR_PARAMS(weir_comm, .label = labels[i], .count = 2,
                                                    .rendezvous = "process:empty",
                                                    .timeout_ns = 1000000),
                                        &comm),
                       WEIR_ERROR_COMM, "creation of '(no label)': some of 2 ranks are missing");
    }
}

COMM_FAKE_TEST(CommFailures, TheDeviceStaysOpen, "", 0)
{
    own_device device = NULL;
    own_comm comm = NULL;
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &device));
    ASSERT_OK(weir_comm_create(device, WEIR_PARAMS(weir_comm, .label = "grads"), &comm));
    EXPECT_FAILURE(weir_device_close(&device), WEIR_ERROR_INVALID, "communicator", "grads");
}
