// Shared by the files of libtarn: streams. One lock guards everything, and every change of state
// wakes all waiting threads.
#ifndef WEIR_TESTS_SUPPORT_LIBTARN_DEVICE_H
#define WEIR_TESTS_SUPPORT_LIBTARN_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "tests/support/libtarn/tarn.h"
#include "tests/support/twins/twins.h"

extern pthread_mutex_t tarn_lock;
extern pthread_cond_t tarn_changed;

// A point of a stream.
struct tarn_fence {
    unsigned users;
    bool reached;
    uint64_t time_ns;
};

struct tarn_fence *tarn_fence_create(void);
void tarn_fence_retain(struct tarn_fence *fence);
// Accepts NULL.
void tarn_fence_release(struct tarn_fence *fence);
void tarn_fence_wait(const struct tarn_fence *fence);

enum tarn_command_kind {
    TARN_COPY, // `height` rows
    TARN_FILL,
    TARN_LAUNCH,
    TARN_REACH, // the fence
    TARN_AWAIT,
};

struct tarn_command {
    struct tarn_command *next;
    enum tarn_command_kind kind;
    char *dst;
    const char *src;
    size_t dst_pitch;
    size_t src_pitch;
    size_t width;
    size_t height;
    unsigned char pattern[16];
    struct tarn_fence *fence; // the command's own reference
    const struct twin *twin;
    struct twin_launch launch;
};

struct tarn_stream {
    tarn_context *context;
    pthread_t thread;
    struct tarn_command *first;
    struct tarn_command **end;
    bool busy; // with a command that is off the list
    bool stop;
    tarn_stream *next; // of the context's
};

// False if the thread cannot be created.
bool tarn_stream_start(tarn_stream *stream);
// Ends the thread after its work.
void tarn_stream_stop(tarn_stream *stream);
// Copies the command to the end of the stream's.
void tarn_stream_add(tarn_stream *stream, const struct tarn_command *command);
bool tarn_stream_is_idle(const tarn_stream *stream);
void tarn_stream_finish(const tarn_stream *stream);

#endif
