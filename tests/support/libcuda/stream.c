// A thread for each stream takes one operation after the other. In a dead context
// operations are skipped, but points are still reached, so that waits do not
// hang.
#include "fake.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    pthread_t thread;
    struct fake_operation *first;
    struct fake_operation **end;
    bool busy; // with an operation that was taken off the list
    bool stop;
    bool detached; // destroyed while it worked: its thread frees it
};

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;
long fake_live;
CUresult fake_sticky;
bool fake_dead;
int fake_held;
bool fake_lets_go;

static struct CUstream_st *streams;
static unsigned working; // streams that are in the middle of an operation

// The kernel that is to fault.
static struct {
    char name[64];
    long left; // runs until it faults
} fault;

struct fake_fence *fake_fence_create(void)
{
    struct fake_fence *fence = calloc(1, sizeof *fence);
    if (!fence)
        abort();
    fence->references = 1;
    return fence;
}

void fake_fence_retain(struct fake_fence *fence)
{
    fence->references++;
}

void fake_fence_release(struct fake_fence *fence)
{
    if (fence && --fence->references == 0)
        free(fence);
}

void fake_fence_wait(struct fake_fence *fence)
{
    fake_fence_retain(fence);
    while (!fence->done)
        pthread_cond_wait(&fake_changed, &fake_lock);
    fake_fence_release(fence);
}

void fake_fence_reach(struct fake_fence *fence)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    fence->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    fence->done = true;
    pthread_cond_broadcast(&fake_changed);
}

static void copy_rows(const struct fake_operation *operation)
{
    for (size_t slice = 0; slice == 0 || slice < operation->depth; slice++)
        for (size_t row = 0; row < operation->height; row++)
            memcpy(operation->dst + slice * operation->dst_slice + row * operation->dst_pitch,
                   operation->src + slice * operation->src_slice + row * operation->src_pitch,
                   operation->width);
}

static void set_elements(const struct fake_operation *operation)
{
    for (size_t row = 0; row < operation->height; row++)
        for (size_t i = 0; i < operation->width; i++)
            memcpy(operation->dst + row * operation->dst_pitch + i * operation->element,
                   &operation->value, operation->element);
}

// Without the lock.
static void work(const struct fake_operation *operation)
{
    switch (operation->kind) {
    case FAKE_COPY:
        copy_rows(operation);
        break;
    case FAKE_SET:
        set_elements(operation);
        break;
    case FAKE_LAUNCH:
        operation->function->twin.run(&operation->launch);
        break;
    case FAKE_CALL:
        operation->call(operation->user);
        break;
    default:
        break;
    }
}

void fake_set_fault(const char *kernel, long n)
{
    snprintf(fault.name, sizeof fault.name, "%s", kernel);
    fault.left = n;
}

static void die(void)
{
    fake_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    fake_dead = true;
    pthread_cond_broadcast(&fake_changed);
}

bool twin_may_write(const void *pointer, size_t size)
{
    pthread_mutex_lock(&fake_lock);
    const bool may = fake_memory_holds(pointer, size, FAKE_DEVICE | FAKE_HOST);
    if (!may)
        die();
    pthread_mutex_unlock(&fake_lock);
    return may;
}

static bool must_fault(const struct fake_operation *operation)
{
    return operation->kind == FAKE_LAUNCH && fault.left > 0 &&
           strcmp(operation->function->twin.name, fault.name) == 0 && --fault.left == 0;
}

// The host reads it at any time.
static void write_value(const struct fake_operation *operation)
{
    atomic_store((atomic_uint *)(void *)operation->dst, operation->value);
}

static void perform(struct fake_operation *operation)
{
    if (operation->kind == FAKE_WAIT) {
        while (!operation->fence->done)
            pthread_cond_wait(&fake_changed, &fake_lock);
    } else if (operation->kind == FAKE_SIGNAL) {
        fake_fence_reach(operation->fence);
    } else if (operation->kind == FAKE_FREE) {
        // In a dead context this is not ordered after work that still runs here.
        while (fake_sticky != CUDA_SUCCESS && working > 0)
            pthread_cond_wait(&fake_changed, &fake_lock);
        if (fake_memory_remove(operation->dst, FAKE_DEVICE))
            free(operation->dst);
    } else if (fake_sticky == CUDA_SUCCESS && must_fault(operation)) {
        die();
    } else if (fake_sticky == CUDA_SUCCESS && operation->kind == FAKE_WRITE) {
        write_value(operation);
    } else if (fake_sticky == CUDA_SUCCESS || operation->kind == FAKE_CALL) {
        const uint64_t start_ns = fake_cupti_now();
        working++;
        pthread_mutex_unlock(&fake_lock);
        work(operation);
        pthread_mutex_lock(&fake_lock);
        working--;
        fake_cupti_note(operation, start_ns);
    }
}

static void *run_stream(void *argument)
{
    struct CUstream_st *stream = argument;
    pthread_mutex_lock(&fake_lock);
    for (;;) {
        while ((!stream->first || fake_held) && !(stream->stop && !stream->first))
            pthread_cond_wait(&fake_changed, &fake_lock);
        if (!stream->first)
            break;
        struct fake_operation *operation = stream->first;
        stream->first = operation->next;
        if (!stream->first)
            stream->end = &stream->first;
        stream->busy = true;
        perform(operation);
        fake_fence_release(operation->fence);
        free(operation);
        stream->busy = false;
        pthread_cond_broadcast(&fake_changed);
    }
    if (stream->detached)
        free(stream);
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

CUstream fake_stream_create(int device)
{
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->device = device;
    stream->end = &stream->first;
    if (pthread_create(&stream->thread, NULL, run_stream, stream) != 0) {
        free(stream);
        return NULL;
    }
    stream->next = streams;
    streams = stream;
    fake_live++;
    return stream;
}

// What was submitted still runs to its end. The real call does not wait for that; this one does unless it is told
// otherwise, since the tested code never destroys a busy stream but one whose work may have no end.
void fake_stream_destroy(CUstream stream)
{
    struct CUstream_st **at = &streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    stream->stop = true;
    stream->detached = fake_lets_go && stream->busy;
    fake_live--;
    pthread_cond_broadcast(&fake_changed);
    if (stream->detached) {
        pthread_detach(stream->thread);
        return;
    }
    pthread_mutex_unlock(&fake_lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&fake_lock);
    free(stream);
}

bool fake_stream_known(CUstream stream)
{
    const struct CUstream_st *at = streams;
    while (at && at != stream)
        at = at->next;
    return at != NULL;
}

void fake_stream_check(CUstream stream, const char *call)
{
    if (fake_stream_known(stream))
        return;
    fprintf(stderr, "%s of a stream that was destroyed\n", call);
    abort();
}

int fake_stream_device(CUstream stream)
{
    return stream->device;
}

bool fake_stream_idle(CUstream stream)
{
    return !stream->first && !stream->busy;
}

void fake_stream_add(CUstream stream, const struct fake_operation *operation)
{
    if (fake_capture_take(stream, operation))
        return;
    struct fake_operation *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *operation;
    copy->next = NULL;
    if (!copy->of_graph && (copy->kind == FAKE_COPY || copy->kind == FAKE_SET ||
                            copy->kind == FAKE_LAUNCH || copy->kind == FAKE_CALL))
        copy->correlation = fake_cupti_call();
    *stream->end = copy;
    stream->end = &copy->next;
    pthread_cond_broadcast(&fake_changed);
}

void fake_stream_finish(CUstream stream)
{
    while (!fake_stream_idle(stream))
        pthread_cond_wait(&fake_changed, &fake_lock);
}

// Of the device of the current context.
static bool any_busy(void)
{
    for (struct CUstream_st *stream = streams; stream; stream = stream->next) {
        if (fake_current && stream->device == fake_current->device && !fake_stream_idle(stream))
            return true;
    }
    return false;
}

void fake_device_finish(void)
{
    while (any_busy())
        pthread_cond_wait(&fake_changed, &fake_lock);
}
