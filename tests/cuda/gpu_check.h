// Shared by the files of gpu_check.
#ifndef WEIR_TESTS_CUDA_GPU_CHECK_H
#define WEIR_TESTS_CUDA_GPU_CHECK_H

#include <weir/weir.h>

#include "tests/cuda/check.h"

struct bench {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_program *program;
    weir_kernel *iota;
    weir_kernel *spin;
    weir_buffer *memory; // DEVICE
    weir_buffer *pinned;
};

// Opens everything with the lines of a configuration, or NULL for that of the environment.
// False, without printing a line, if that fails.
bool start_with(struct bench *bench, const char *config);
void finish(struct bench *bench);

// On error the check fails and NULL is returned.
weir_buffer *buffer_of(const struct bench *bench, size_t size, weir_placement placement);

// Times a call that must not wait for the work of its queue: prints a line with the time;
// from 20 ms on the check fails.
void begin_call(void);
void end_call(const char *what);
#define TIMED(what, call) \
    do {                  \
        begin_call();     \
        call;             \
        end_call(what);   \
    } while (0)

// gpu_graphs.c

// `spin` keeps the queue busy for `steps`.
void check_graphs(const struct bench *bench, weir_status (*spin)(const struct bench *, uint64_t),
                  uint64_t steps);

// gpu_faults.c

// The messages for requests that are too large, and for images that do not fit.
void check_messages(const struct bench *bench);

// Kills a process in the middle of its run and then uses the device. Must be called before
// anything is opened in this process.
void check_killed(const char *program);

// The other modes: `fault`, `messages`, and those of the processes that are started for them.
// Returns 0 on success.
int run_mode(const char *program, const char *mode, const char *argument);

#endif
