// The decoder alone: threads that take the next image until all are decoded.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/images.h"

struct share {
    struct images_bench *images;
    atomic_uint_fast64_t next;
    size_t capacity;
    pthread_mutex_t lock; // of `problem`
    char problem[sizeof((struct weir_io_error *)NULL)->message];
};

static void note(struct share *share, const char *problem)
{
    pthread_mutex_lock(&share->lock);
    if (!share->problem[0])
        snprintf(share->problem, sizeof share->problem, "%s", problem);
    pthread_mutex_unlock(&share->lock);
}

static void *decode(void *argument)
{
    struct share *share = argument;
    const struct images_bench *images = share->images;
    struct weir_io_image_info info;
    struct weir_io_error error = {.message = "no memory for an image"};
    unsigned char *rgb = malloc(share->capacity);
    uint64_t i;
    bool fine = rgb != NULL;
    while (fine && (i = atomic_fetch_add(&share->next, 1)) < images->frames)
        fine = weir_io_image_read(images->images[i % images->image_count].path, 0, rgb,
                                  share->capacity, &info, &error);
    if (!fine)
        note(share, error.message);
    free(rgb);
    return NULL;
}

static size_t largest(const struct images_bench *images)
{
    size_t most = 0;
    for (size_t i = 0; i < images->image_count; i++) {
        const size_t bytes = (size_t)weir_io_image_bytes(&images->images[i].info);
        most = bytes > most ? bytes : most;
    }
    return most;
}

bool images_decode(struct images_bench *images, uint32_t threads)
{
    struct share share = {.images = images, .capacity = largest(images)};
    pthread_t running[IMAGES_THREADS_MOST];
    uint32_t started = 0;
    pthread_mutex_init(&share.lock, NULL);
    while (started < threads && pthread_create(&running[started], NULL, decode, &share) == 0)
        started++;
    if (started < threads) {
        atomic_store(&share.next, images->frames);
        note(&share, "a thread cannot be started");
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(running[i], NULL);
    pthread_mutex_destroy(&share.lock);
    return !share.problem[0] || bench_fail(images->bench, CLI_FAILED, "%s", share.problem);
}
