// The thread that turns results into files, so that compressing a picture
// does not hold a slot of the pipeline.
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/run.h"

enum {
    WAITING_LIMIT = 8
};

static struct run_image *next_image(struct run_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    while (!writer->first && !writer->ending)
        pthread_cond_wait(&writer->changed, &writer->lock);
    struct run_image *image = writer->first;
    if (image) {
        writer->first = image->next;
        writer->waiting--;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->lock);
    return image;
}

static void *write_images(void *user)
{
    struct run *run = user;
    struct run_image *image;
    while ((image = next_image(&run->writer))) {
        image->written = run_write_image(run, image);
        if (!image->written)
            image->failed = true;
        free(image->result.memory);
        image->result.memory = NULL;
    }
    return NULL;
}

bool run_writer_start(struct run *run)
{
    struct run_writer *writer = &run->writer;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    const int error = pthread_create(&writer->thread, NULL, write_images, run);
    writer->started = error == 0;
    if (error != 0)
        cli_error("the thread that writes files cannot be created: %s", strerror(error));
    return writer->started;
}

void run_writer_push(struct run *run, struct run_image *image)
{
    struct run_writer *writer = &run->writer;
    image->queued = true;
    pthread_mutex_lock(&writer->lock);
    while (writer->waiting >= WAITING_LIMIT)
        pthread_cond_wait(&writer->changed, &writer->lock);
    image->next = NULL;
    if (writer->first)
        writer->last->next = image;
    else
        writer->first = image;
    writer->last = image;
    writer->waiting++;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

void run_writer_end(struct run *run)
{
    struct run_writer *writer = &run->writer;
    if (!writer->started)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->ending = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    writer->started = false;
}
