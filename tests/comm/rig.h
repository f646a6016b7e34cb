// Ranks in one process: a communicator, a queue and buffers for each. They share a device, unless
// WEIR_TEST_COMM_DEVICES says how many there are for them.
#ifndef WEIR_TESTS_COMM_RIG_H
#define WEIR_TESTS_COMM_RIG_H

#include <weir/short.h>
#include <weir/weir.h>

#include "tests/support/gate.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)
#define GUARD_NS (60 * SECOND) // of what is to end long before

enum {
    COMM_RIG_MOST = 4,
    COMM_RIG_BYTES = 4096,
};

struct comm_rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_device *devices[COMM_RIG_MOST]; // of each rank
    uint32_t count;
    weir_comm *comms[COMM_RIG_MOST];
    weir_queue *queues[COMM_RIG_MOST];
    weir_buffer *src[COMM_RIG_MOST];
    weir_buffer *dst[COMM_RIG_MOST];
    // What a test makes: a graph, a second queue and a second communicator of a rank.
    weir_graph *graphs[COMM_RIG_MOST];
    weir_queue *others[COMM_RIG_MOST];
    weir_comm *copies[COMM_RIG_MOST];
};

// Opens a runtime with this text in its INI file, a device, and `count` ranks of it, whose buffers
// have that placement; with a count of 0 the device only.
void comm_rig_open(struct comm_rig *rig, const char *more, uint32_t count,
                   weir_placement placement);

// The same without communicators.
void comm_rig_open_ranks(struct comm_rig *rig, const char *more, uint32_t count);

// The transport fake with the line `more` in its section.
void comm_rig_open_fake(struct comm_rig *rig, const char *more, uint32_t count,
                        weir_placement placement);

// Destroys what is left and closes all, which must succeed.
void comm_rig_close(struct comm_rig *rig);
#define own_comm_rig OWN(comm_rig_close) struct comm_rig
// Tests with a rig, `rig`: opened and closed by these two calls, or with buffers on the device.
#define COMM_RIG_TEST_BY(suite, name, open, close) \
    WEIR_TEST_WITH(suite, name, struct comm_rig, rig, ((open), !weir_test_has_failed()), close)
#define COMM_RIG_TEST(suite, name, count) COMM_TEXT_TEST(suite, name, "", count)
#define COMM_TEXT_TEST(suite, name, more, count)                                      \
    COMM_RIG_TEST_BY(suite, name, comm_rig_open(rig, more, count, WEIR_PLACE_DEVICE), \
                     comm_rig_close(rig))
#define COMM_FAKE_TEST(suite, name, more, count)                                           \
    COMM_RIG_TEST_BY(suite, name, comm_rig_open_fake(rig, more, count, WEIR_PLACE_DEVICE), \
                     comm_rig_close(rig))

// Makes `others`.
void comm_rig_open_others(struct comm_rig *rig);
// Launches each rank's graph on its queue.
void comm_rig_launch(struct comm_rig *rig);
// Waits for each rank's queue.
void comm_rig_sync(struct comm_rig *rig, uint64_t timeout_ns);

// Submits the sum of the first `n` i32 of the rank's `src` to its `dst`, from the caller's line.
#define COMM_RIG_REDUCE_ON(rig, rank, queue, comm, n)                                     \
    weir_queue_all_reduce((queue), (comm), (rig)->dst[rank], 0, (rig)->src[rank], 0, (n), \
                          WEIR_I32, WEIR_SUM)
#define COMM_RIG_REDUCE(rig, rank, n) \
    COMM_RIG_REDUCE_ON(rig, rank, (rig)->queues[rank], (rig)->comms[rank], n)
// On each rank.
#define COMM_RIG_REDUCE_ALL(rig, n)                         \
    for (uint32_t rank_ = 0; rank_ < (rig)->count; rank_++) \
    EXPECT_OK(COMM_RIG_REDUCE(rig, rank_, n))

// Writes and reads `count` numbers of a buffer, of one rank's or of those of all.
void comm_rig_write(struct comm_rig *rig, uint32_t rank, weir_buffer *buffer, size_t first,
                    const int32_t *numbers, size_t count);
void comm_rig_expect(struct comm_rig *rig, uint32_t rank, weir_buffer *buffer, size_t first,
                     const int32_t *numbers, size_t count);
void comm_rig_write_all(struct comm_rig *rig, weir_buffer *const *buffers, size_t first,
                        const int32_t *numbers, size_t count);
void comm_rig_expect_all(struct comm_rig *rig, weir_buffer *const *buffers, size_t first,
                         const int32_t *numbers, size_t count);

// Of the first four elements of `dst`.
static inline void comm_rig_expect_number(struct comm_rig *rig, int32_t number)
{
    const int32_t numbers[] = {number, number, number, number};
    comm_rig_expect_all(rig, rig->dst, 0, numbers, 4);
}

// Waits for the queue and expects that its first cause has all of these words.
#define COMM_RIG_EXPECT_CAUSE(queue, ...)                         \
    do {                                                          \
        EXPECT_INT_LT(weir_queue_sync((queue), WEIR_FOREVER), 0); \
        EXPECT_ERROR(__VA_ARGS__);                                \
    } while (0)

// The same for the thread's error.
void comm_rig_expect_words(const char *const *words, size_t count);

// Waits until the communicator has failed, which an engine tells later than the queue, and expects that its first
// cause has all of these words.
void comm_rig_await_failure(weir_comm *comm);
#define COMM_RIG_AWAIT_FAILURE(comm, ...) \
    do {                                  \
        comm_rig_await_failure(comm);     \
        EXPECT_ERROR(__VA_ARGS__);        \
    } while (0)

#endif
