// Ranks in one process: a communicator, a queue and buffers for each. They share a device, unless
// WEIR_TEST_COMM_DEVICES says how many there are for them.
#ifndef WEIR_TESTS_COMM_RIG_H
#define WEIR_TESTS_COMM_RIG_H

#include <pthread.h>

#include <weir/weir.h>

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
// Tests with a rig, `rig`, whose buffers are on the device.
#define COMM_RIG_TEST(suite, name, count)                                                       \
    WEIR_TEST_WITH(suite, name, struct comm_rig, rig,                                           \
                   (comm_rig_open(rig, "", count, WEIR_PLACE_DEVICE), !weir_test_has_failed()), \
                   comm_rig_close(rig))
#define COMM_FAKE_TEST(suite, name, more, count)                             \
    WEIR_TEST_WITH(suite, name, struct comm_rig, rig,                        \
                   (comm_rig_open_fake(rig, more, count, WEIR_PLACE_DEVICE), \
                    !weir_test_has_failed()),                                \
                   comm_rig_close(rig))

// Writes and reads `count` numbers of a buffer.
void comm_rig_write(struct comm_rig *rig, uint32_t rank, weir_buffer *buffer, size_t first,
                    const int32_t *numbers, size_t count);
void comm_rig_expect(struct comm_rig *rig, uint32_t rank, weir_buffer *buffer, size_t first,
                     const int32_t *numbers, size_t count);

// Waits for the queue and expects that its first cause has all of these words.
void comm_rig_expect_cause(weir_queue *queue, const char *const *words, size_t count);
#define COMM_RIG_EXPECT_CAUSE(queue, ...)                              \
    comm_rig_expect_cause((queue), (const char *const[]){__VA_ARGS__}, \
                          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// The same for the thread's error.
void comm_rig_expect_words(const char *const *words, size_t count);
#define COMM_RIG_EXPECT_WORDS(...)                            \
    comm_rig_expect_words((const char *const[]){__VA_ARGS__}, \
                          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// Waits until the communicator has failed, which an engine tells later than the queue, and expects that its first
// cause has all of these words.
void comm_rig_await_failure(weir_comm *comm, const char *const *words, size_t count);
#define COMM_RIG_AWAIT_FAILURE(comm, ...)                              \
    comm_rig_await_failure((comm), (const char *const[]){__VA_ARGS__}, \
                           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// A host call that holds a queue until it is opened.
struct comm_rig_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    weir_status status; // that the host call returns
};
#define COMM_RIG_GATE                                                       \
    {                                                                       \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, WEIR_OK \
    }

weir_status comm_rig_pass(void *user); // a struct comm_rig_gate
void comm_rig_open_gate(struct comm_rig_gate *gate);

#endif
