// A runtime, a device and buffers for a pattern's tests on a real chain: null by
// default, or what WEIR_BACKEND names.
#ifndef WEIR_TESTS_PATTERNS_RIG_H
#define WEIR_TESTS_PATTERNS_RIG_H

#include <pthread.h>

#include "patterns/pipeline.h"
#include "tests/support/gate.h"
#include "tests/support/own.h"

// One at a time.
struct rig {
    weir_runtime *runtime;
    weir_device *device;
};

extern struct rig rig;

// `config` is INI text, in which [pipeline] may stand; NULL: none.
weir_status rig_open(const char *config);

// Closes it; fails the test if a queue or buffer of the device is left.
void rig_close(void);

// Writes words `first`, `first` + 1 … to a HOST buffer, from its word `at` on.
void rig_write_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first);

// The number of these words of a HOST buffer that are not `first`, `first` + 1
// ….
size_t rig_wrong_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first);

// Host functions: the first takes from 0 to 400 µs, by `user`; the others fail with WEIR_ERROR_IO, at once or in 3 ms.
weir_status rig_dawdle(void *user);
weir_status rig_fail(void *user);
weir_status rig_fail_late(void *user);

// Sets the thread's error detail and returns `status`.
weir_status rig_error(weir_status status, const char *message);

// That a call returned WEIR_ERROR_INVALID, with these words in the message and in the remedy.
void rig_expect_refused(weir_status status, const char *words, const char *remedy);

// Allocations of this program's C code and of modules, and native objects, from the begin on: there are none.
struct rig_flat {
    struct weir_counters counters;
    unsigned long allocations;
};

struct rig_flat rig_flat_begin(void);
void rig_flat_expect(const struct rig_flat *since);

// A function that the linker puts before the library's (BUILD), which is __real_weir_name() then.
#define WRAP(result, name, ...)             \
    result __real_weir_##name(__VA_ARGS__); \
    result __wrap_weir_##name(__VA_ARGS__); \
    result __wrap_weir_##name(__VA_ARGS__)

void rig_sleep_ns(long duration_ns);

static inline struct weir_pipeline_statistics rig_figures(weir_pipeline *pipeline)
{
    struct weir_pipeline_statistics figures = {.accepted = 1}; // replaced, also without a pipeline
    weir_pipeline_get_statistics(pipeline, &figures);
    return figures;
}

// The deliveries of a pipeline.

#define DELIVERIES 4096

struct delivery {
    void *frame;
    void *slot;
    uint64_t sequence;
    weir_status status;
    bool has_error;
    weir_status error_status;
    char message[160];
    char remedy[160];
    char stage[32];
    bool timed;
};

struct recorder {
    pthread_mutex_t lock;
    unsigned count;
    struct delivery list[DELIVERIES];
};

void recorder_init(struct recorder *recorder);
void recorder_add(struct recorder *recorder, void *frame, void *slot,
                  const struct weir_pipeline_result *result);
unsigned recorder_count(struct recorder *recorder);

// The number of deliveries so far with that status.
unsigned recorder_count_of(struct recorder *recorder, weir_status status);

// Delivery `index`, which must exist and is no longer written.
const struct delivery *recorder_at(struct recorder *recorder, unsigned index);

// True if the sequences are 0, 1, 2 … `count` - 1.
bool recorder_is_in_order(struct recorder *recorder, unsigned count);

// Learns that a submit is blocked: its thread waits for a condition. The linker uses this function instead of the C
// library's.

// None is blocked so far.
void blocked_begin(void);

// On the thread that is going to submit.
void blocked_watch(void);

// Waits until such a thread is blocked.
void blocked_await(void);

#endif
