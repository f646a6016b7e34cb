// A plugin for tests that tells its own times of launches, if the chain keeps times: the n-th launch of
// a link took n microseconds for each block. It fails launches of 13 blocks.
#include <pthread.h>
#include <stdlib.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

enum {
    MOST = 4096, // launches of a link
};

struct paced {
    pthread_mutex_t lock;
    size_t count;
    size_t fetched;
    struct weir_operation_time times[MOST];
};

static weir_status paced_open(struct weir_link *link, const struct weir_setting *const *settings,
                              void **out_state)
{
    struct paced *paced = calloc(1, sizeof *paced);
    if (!paced)
        return weir_host_no_memory(link->host, "the plugin paced");
    pthread_mutex_init(&paced->lock, NULL);
    *out_state = paced;
    return WEIR_OK;
}

static void paced_close(const struct weir_link *link)
{
    struct paced *paced = link->state;
    pthread_mutex_destroy(&paced->lock);
    free(paced);
}

static void note(struct paced *paced, const struct weir_operation *operation)
{
    pthread_mutex_lock(&paced->lock);
    struct weir_operation_time *time = &paced->times[paced->count++ % MOST];
    *time = (struct weir_operation_time){.sequence = operation->sequence, .start_ns = 5000};
    time->end_ns =
        time->start_ns + (uint64_t)operation->u.launch.grid.x * paced->count * UINT64_C(1000);
    pthread_mutex_unlock(&paced->lock);
}

static weir_status paced_submit(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_LAUNCH && operation->u.launch.grid.x == 13)
        return weir_host_fail(link->host, WEIR_ERROR_DEVICE, NULL, "13 blocks are unlucky");
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        note(link->state, operation);
    return link->next->ops->queue_submit(link->next, queue, operation);
}

static weir_status paced_times(const struct weir_link *link, weir_queue *queue,
                               struct weir_operation_time *times, size_t time_size, size_t capacity,
                               size_t *out_count)
{
    struct paced *paced = link->state;
    *out_count = 0;
    pthread_mutex_lock(&paced->lock);
    for (; paced->fetched < paced->count && *out_count < capacity; paced->fetched++)
        weir_write((char *)times + (*out_count)++ * time_size, time_size,
                   &paced->times[paced->fetched % MOST], sizeof *paced->times);
    pthread_mutex_unlock(&paced->lock);
    return WEIR_OK;
}

static const struct weir_module_ops paced_ops = {
    .open = paced_open,
    .close = paced_close,
    .queue_submit = paced_submit,
    .queue_times = paced_times,
};

WEIR_MODULE(WEIR_MODULE_PLUGIN, "paced", WEIR_VERSION_STRING, WEIR_MODULE_OPS(paced_ops))
