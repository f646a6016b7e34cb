// A thread for each stream runs one command after the other, without the lock.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/libtarn/device.h"

pthread_mutex_t tarn_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t tarn_changed = PTHREAD_COND_INITIALIZER;

struct tarn_fence *tarn_fence_create(void)
{
    struct tarn_fence *fence = calloc(1, sizeof *fence);
    if (!fence)
        abort();
    fence->users = 1;
    return fence;
}

void tarn_fence_retain(struct tarn_fence *fence)
{
    fence->users++;
}

void tarn_fence_release(struct tarn_fence *fence)
{
    if (fence && --fence->users == 0)
        free(fence);
}

void tarn_fence_wait(const struct tarn_fence *fence)
{
    while (!fence->reached)
        pthread_cond_wait(&tarn_changed, &tarn_lock);
}

static void reach(struct tarn_fence *fence)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    fence->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    fence->reached = true;
}

bool twin_may_write(const void *pointer, size_t size)
{
    (void)pointer;
    (void)size;
    return true;
}

int twin_print(const char *format, const void *arguments, size_t argument_bytes, const char *text,
               bool whole)
{
    (void)format;
    (void)arguments;
    (void)argument_bytes;
    (void)text;
    (void)whole;
    return -1;
}

// Without the lock.
static void execute(const struct tarn_command *command)
{
    switch (command->kind) {
    case TARN_COPY:
        for (size_t row = 0; row < command->height; row++)
            memmove(command->dst + row * command->dst_pitch,
                    command->src + row * command->src_pitch, command->width);
        break;
    case TARN_FILL:
        for (size_t at = 0; at < command->width; at += command->src_pitch)
            memcpy(command->dst + at, command->pattern, command->src_pitch);
        break;
    case TARN_LAUNCH:
        command->twin->run(&command->launch);
        break;
    case TARN_REACH:
    case TARN_AWAIT:
        break;
    }
}

static void run_first(tarn_stream *stream)
{
    struct tarn_command *command = stream->first;
    stream->first = command->next;
    if (!stream->first)
        stream->end = &stream->first;
    stream->busy = true;
    if (command->kind == TARN_AWAIT)
        tarn_fence_wait(command->fence);
    pthread_mutex_unlock(&tarn_lock);
    execute(command);
    pthread_mutex_lock(&tarn_lock);
    if (command->kind == TARN_REACH)
        reach(command->fence);
    tarn_fence_release(command->fence);
    free(command);
    stream->busy = false;
    pthread_cond_broadcast(&tarn_changed);
}

static void *run(void *user)
{
    tarn_stream *stream = user;
    pthread_mutex_lock(&tarn_lock);
    while (stream->first || !stream->stop) {
        if (stream->first)
            run_first(stream);
        else
            pthread_cond_wait(&tarn_changed, &tarn_lock);
    }
    pthread_mutex_unlock(&tarn_lock);
    return NULL;
}

bool tarn_stream_start(tarn_stream *stream)
{
    stream->end = &stream->first;
    return pthread_create(&stream->thread, NULL, run, stream) == 0;
}

void tarn_stream_stop(tarn_stream *stream)
{
    stream->stop = true;
    pthread_cond_broadcast(&tarn_changed);
    pthread_mutex_unlock(&tarn_lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&tarn_lock);
}

void tarn_stream_add(tarn_stream *stream, const struct tarn_command *command)
{
    struct tarn_command *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *command;
    copy->next = NULL;
    *stream->end = copy;
    stream->end = &copy->next;
    pthread_cond_broadcast(&tarn_changed);
}

bool tarn_stream_is_idle(const tarn_stream *stream)
{
    return !stream->first && !stream->busy;
}

void tarn_stream_finish(const tarn_stream *stream)
{
    while (!tarn_stream_is_idle(stream))
        pthread_cond_wait(&tarn_changed, &tarn_lock);
}
