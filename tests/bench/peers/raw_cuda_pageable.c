// The job through the CUDA driver: its own copy of pageable memory; threads that copy pieces to and from
// pinned memory of their own and submit them to streams of their own; and bare copies of pinned memory.
#include <pthread.h>
#include <string.h>

#include "tests/bench/peers/pageable_job.h"
#include "tests/bench/peers/raw_peer.h"

enum {
    THREADS_MAX = 16,
    SLOTS = 2 // of a thread
};

static const size_t pinned_bytes = (size_t)64 << 20;

struct raw;

struct thread {
    struct raw *raw;
    pthread_t id;
    bool started;
    CUstream stream;
    unsigned char *slots[SLOTS];
    CUevent events[SLOTS];
    bool fine;
};

struct raw {
    struct raw_cuda cu;
    struct pageable_job job;
    uint64_t thread_count;
    uint64_t piece;
    CUstream stream;
    CUdeviceptr memory;
    unsigned char *pinned;
    struct thread threads[THREADS_MAX];
    bool has_barrier;
    pthread_barrier_t barrier; // the threads and main(): a copy begins, and ends
    // The copy that begins.
    const unsigned char *from;
    unsigned char *to;
    size_t size; // 0: the threads end
};

// The driver's own copy.

static bool up_driver(void *user, const void *from, size_t size)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuMemcpyHtoD, raw->memory, from, size);
}

static bool down_driver(void *user, void *to, size_t size)
{
    struct raw *raw = user;
    return RAW_CUDA(&raw->cu, cuMemcpyDtoH, to, raw->memory, size);
}

// Threads.

static bool copy_up(struct thread *thread, unsigned slot, size_t at, size_t size)
{
    struct raw *raw = thread->raw;
    if (!RAW_CUDA(&raw->cu, cuEventSynchronize, thread->events[slot]))
        return false;
    memcpy(thread->slots[slot], raw->from + at, size);
    return RAW_CUDA(&raw->cu, cuMemcpyHtoDAsync, raw->memory + at, thread->slots[slot], size,
                    thread->stream) &&
           RAW_CUDA(&raw->cu, cuEventRecord, thread->events[slot], thread->stream);
}

static bool request_down(struct thread *thread, unsigned slot, size_t at, size_t size)
{
    struct raw *raw = thread->raw;
    return RAW_CUDA(&raw->cu, cuMemcpyDtoHAsync, thread->slots[slot], raw->memory + at, size,
                    thread->stream) &&
           RAW_CUDA(&raw->cu, cuEventRecord, thread->events[slot], thread->stream);
}

static bool take_down(struct thread *thread, unsigned slot, size_t at, size_t size)
{
    struct raw *raw = thread->raw;
    if (!RAW_CUDA(&raw->cu, cuEventSynchronize, thread->events[slot]))
        return false;
    memcpy(raw->to + at, thread->slots[slot], size);
    return true;
}

static size_t size_at(const struct raw *raw, size_t at)
{
    return raw->size - at < raw->piece ? raw->size - at : raw->piece;
}

// Every thread_count-th piece.
static bool copy_share(struct thread *thread)
{
    const struct raw *raw = thread->raw;
    const size_t stride = raw->piece * raw->thread_count;
    const size_t first = raw->piece * (size_t)(thread - raw->threads);
    bool fine = true;
    size_t index = 0;
    for (size_t at = first; fine && at < raw->size; at += stride, index++) {
        if (raw->from)
            fine = copy_up(thread, index % SLOTS, at, size_at(raw, at));
        else
            fine = request_down(thread, index % SLOTS, at, size_at(raw, at)) &&
                   (index == 0 ||
                    take_down(thread, (index - 1) % SLOTS, at - stride, size_at(raw, at - stride)));
    }
    if (fine && !raw->from && index > 0) {
        const size_t at = first + (index - 1) * stride;
        fine = take_down(thread, (index - 1) % SLOTS, at, size_at(raw, at));
    }
    return fine && RAW_CUDA(&thread->raw->cu, cuStreamSynchronize, thread->stream);
}

static void *work(void *user)
{
    struct thread *thread = user;
    struct raw *raw = thread->raw;
    bool fine = RAW_CUDA(&raw->cu, cuCtxSetCurrent, raw->cu.context);
    for (;;) {
        pthread_barrier_wait(&raw->barrier);
        if (raw->size == 0)
            return NULL;
        thread->fine = fine && copy_share(thread);
        pthread_barrier_wait(&raw->barrier);
    }
}

static bool copy_by_threads(struct raw *raw, const void *from, void *to, size_t size)
{
    bool fine = true;
    raw->from = from;
    raw->to = to;
    raw->size = size;
    pthread_barrier_wait(&raw->barrier);
    pthread_barrier_wait(&raw->barrier);
    for (size_t i = 0; i < raw->thread_count; i++)
        fine = fine && raw->threads[i].fine;
    return fine;
}

static bool up_threads(void *user, const void *from, size_t size)
{
    return copy_by_threads(user, from, NULL, size);
}

static bool down_threads(void *user, void *to, size_t size)
{
    return copy_by_threads(user, NULL, to, size);
}

static bool start_thread(struct raw *raw, size_t index)
{
    struct raw_cuda *cu = &raw->cu;
    struct thread *thread = &raw->threads[index];
    thread->raw = raw;
    if (!RAW_CUDA(cu, cuStreamCreateWithPriority, &thread->stream, CU_STREAM_NON_BLOCKING, 0))
        return false;
    for (int i = 0; i < SLOTS; i++)
        if (!RAW_CUDA(cu, cuMemHostAlloc, (void **)&thread->slots[i], raw->piece, 0) ||
            !RAW_CUDA(cu, cuEventCreate, &thread->events[i], CU_EVENT_DISABLE_TIMING))
            return false;
    thread->started = pthread_create(&thread->id, NULL, work, thread) == 0;
    return thread->started || peer_fail("a thread cannot be created");
}

static void end_threads(struct raw *raw)
{
    struct raw_cuda *cu = &raw->cu;
    if (raw->has_barrier && raw->threads[raw->thread_count - 1].started) {
        raw->size = 0;
        pthread_barrier_wait(&raw->barrier);
        for (size_t i = 0; i < raw->thread_count; i++)
            pthread_join(raw->threads[i].id, NULL);
    }
    for (size_t i = 0; i < THREADS_MAX; i++) {
        struct thread *thread = &raw->threads[i];
        for (int slot = 0; slot < SLOTS; slot++) {
            if (thread->slots[slot])
                cu->cuMemFreeHost(thread->slots[slot]);
            if (thread->events[slot])
                cu->cuEventDestroy(thread->events[slot]);
        }
        if (thread->stream)
            cu->cuStreamDestroy(thread->stream);
    }
}

// Pinned memory.

static bool up_pinned(void *user, const void *from, size_t size)
{
    struct raw *raw = user;
    (void)from;
    for (size_t at = 0; at < size; at += pinned_bytes)
        if (!RAW_CUDA(&raw->cu, cuMemcpyHtoDAsync, raw->memory + at, raw->pinned,
                      size - at < pinned_bytes ? size - at : pinned_bytes, raw->stream))
            return false;
    return RAW_CUDA(&raw->cu, cuStreamSynchronize, raw->stream);
}

static bool down_pinned(void *user, void *to, size_t size)
{
    struct raw *raw = user;
    (void)to;
    for (size_t at = 0; at < size; at += pinned_bytes)
        if (!RAW_CUDA(&raw->cu, cuMemcpyDtoHAsync, raw->pinned, raw->memory + at,
                      size - at < pinned_bytes ? size - at : pinned_bytes, raw->stream))
            return false;
    return RAW_CUDA(&raw->cu, cuStreamSynchronize, raw->stream);
}

static const struct pageable_way ways[] = {
    {"driver", up_driver, down_driver, false},
    {"threads", up_threads, down_threads, false},
    {"pinned", up_pinned, down_pinned, true},
};

// The peer.

static bool open_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    raw->job.ways = ways;
    raw->job.way_count = sizeof ways / sizeof *ways;
    raw->job.user = raw;
    if (!raw_peer_cuda(cu) ||
        !RAW_CUDA(cu, cuStreamCreateWithPriority, &raw->stream, CU_STREAM_NON_BLOCKING, 0) ||
        !RAW_CUDA(cu, cuMemAlloc, &raw->memory, raw->job.most) ||
        !RAW_CUDA(cu, cuMemHostAlloc, (void **)&raw->pinned, pinned_bytes, 0))
        return false;
    raw->has_barrier =
        pthread_barrier_init(&raw->barrier, NULL, (unsigned)raw->thread_count + 1) == 0;
    for (size_t i = 0; i < raw->thread_count; i++)
        if (!start_thread(raw, i))
            return false;
    peer_fact("threads", (double)raw->thread_count);
    peer_fact("piece", (double)raw->piece);
    return pageable_open(&raw->job);
}

static bool round_raw(void *user)
{
    return pageable_round(&((struct raw *)user)->job);
}

static void close_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    end_threads(raw);
    if (raw->pinned)
        cu->cuMemFreeHost(raw->pinned);
    if (raw->memory)
        cu->cuMemFree(raw->memory);
    if (raw->stream)
        cu->cuStreamDestroy(raw->stream);
    raw_cuda_close(cu);
    pageable_close(&raw->job);
}

int main(int argc, char **argv)
{
    static struct raw raw = {.thread_count = 8, .piece = (uint64_t)4 << 20};
    struct peer_option options[PAGEABLE_OPTIONS + 2] = {
        [PAGEABLE_OPTIONS] = {.name = "threads",
                              .help = "threads that copy",
                              .value = &raw.thread_count,
                              .least = 1,
                              .most = THREADS_MAX},
        [PAGEABLE_OPTIONS + 1] = {.name = "piece",
                                  .help = "bytes that a thread copies at a time",
                                  .value = &raw.piece,
                                  .least = 4096,
                                  .most = 64 << 20},
    };
    pageable_options(&raw.job, options);
    const struct peer peer = {
        .name = "raw_cuda_pageable",
        .about = "Copies memory that is not pinned up and down: the driver's way, and by threads.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .open = open_raw,
        .round = round_raw,
        .close = close_raw,
    };
    return peer_main(&peer, &raw, argc, argv);
}
