// The decoder alone: threads that take the next image until all are decoded.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/images.h"

struct share {
    struct images_bench *images;
    atomic_uint_fast64_t next;
    pthread_mutex_t lock; // of what follows
    bool has_problem;
    struct weir_error problem; // status WEIR_OK: of an image or the system, and has a message only
    // The buffers in which no thread decodes: those from `taken` to `left`, modulo `slots`.
    uint32_t slots; // 0: each thread has memory of its own
    pthread_cond_t freed;
    weir_buffer *free[WEIR_PIPELINE_SLOTS_MAX];
    uint64_t taken, left;
};

// Keeps the first problem.
static void keep(struct share *share, const struct weir_error *problem)
{
    pthread_mutex_lock(&share->lock);
    if (!share->has_problem)
        share->problem = *problem;
    share->has_problem = true;
    pthread_mutex_unlock(&share->lock);
}

static void note(struct share *share, const char *message)
{
    struct weir_error problem = {.status = WEIR_OK};
    snprintf(problem.message, sizeof problem.message, "%s", message);
    keep(share, &problem);
}

static bool report(const struct share *share)
{
    struct bench *bench = share->images->bench;
    if (!share->has_problem)
        return true;
    if (share->problem.status == WEIR_OK)
        return bench_fail(bench, CLI_FAILED, "%s", share->problem.message);
    weir_error_set(&share->problem);
    return bench_fail_weir(bench);
}

static bool read_image(struct share *share, uint64_t number, unsigned char *rgb)
{
    const struct images_bench *images = share->images;
    struct weir_io_image_info info;
    struct weir_io_error error;
    const bool fine = weir_io_image_read(images->images[number % images->image_count].path, 0, rgb,
                                         images->image_bytes, &info, &error);
    if (!fine)
        note(share, error.message);
    return fine;
}

// The number of an image that this thread is to decode; false at the end.
static bool take_image(struct share *share, uint64_t *out_number)
{
    *out_number = atomic_fetch_add(&share->next, 1);
    return *out_number < share->images->frames;
}

static void *decode_to_own(void *argument)
{
    struct share *share = argument;
    unsigned char *rgb = malloc(share->images->image_bytes);
    uint64_t number;
    bool fine = rgb != NULL;
    if (!fine)
        note(share, "no memory for an image");
    while (fine && take_image(share, &number))
        fine = read_image(share, number, rgb);
    free(rgb);
    return NULL;
}

static weir_buffer *take_buffer(struct share *share)
{
    pthread_mutex_lock(&share->lock);
    while (share->taken == share->left)
        pthread_cond_wait(&share->freed, &share->lock);
    weir_buffer *buffer = share->free[share->taken++ % share->slots];
    pthread_mutex_unlock(&share->lock);
    return buffer;
}

static void leave_buffer(struct share *share, weir_buffer *buffer)
{
    pthread_mutex_lock(&share->lock);
    share->free[share->left++ % share->slots] = buffer;
    pthread_cond_signal(&share->freed);
    pthread_mutex_unlock(&share->lock);
}

static bool read_to_buffer(struct share *share, uint64_t number, weir_buffer *buffer)
{
    const size_t bytes = share->images->image_bytes;
    void *rgb;
    if (weir_host_begin(buffer, 0, bytes, WEIR_ACCESS_WRITE, &rgb) < 0) {
        keep(share, weir_last_error());
        return false;
    }
    const bool fine = read_image(share, number, rgb);
    weir_host_end(buffer, 0, bytes, WEIR_ACCESS_WRITE);
    return fine;
}

static void *decode_to_pinned(void *argument)
{
    struct share *share = argument;
    uint64_t number;
    bool fine = true;
    while (fine && take_image(share, &number)) {
        weir_buffer *buffer = take_buffer(share);
        fine = read_to_buffer(share, number, buffer);
        leave_buffer(share, buffer);
    }
    return NULL;
}

bool images_decode(struct images_bench *images, uint32_t threads, uint32_t slots)
{
    struct share share = {.images = images, .slots = slots, .left = slots};
    pthread_t running[IMAGES_THREADS_MOST];
    uint32_t started = 0;
    memcpy(share.free, images->pinned, sizeof share.free);
    pthread_mutex_init(&share.lock, NULL);
    pthread_cond_init(&share.freed, NULL);
    while (started < threads &&
           pthread_create(&running[started], NULL, slots > 0 ? decode_to_pinned : decode_to_own,
                          &share) == 0)
        started++;
    if (started < threads) {
        atomic_store(&share.next, images->frames);
        note(&share, "a thread cannot be started");
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(running[i], NULL);
    pthread_cond_destroy(&share.freed);
    pthread_mutex_destroy(&share.lock);
    return report(&share);
}
