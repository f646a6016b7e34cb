// Serves requests that come at any time from any thread: each consists of a few
// operations in order, and takes the next queue of the pool. Urgent ones have
// separate queues.
#include <stdint.h>
#include <stdio.h>

#include "patterns/queue_pool.h"

enum {
    REQUESTS = 12
};

// A request fills its word of the device's memory, and copies it to its word of the
// results. Both go to one queue, and so run in this order.
static weir_status answer(weir_queue_pool *pool, uint32_t number, weir_buffer *memory,
                          weir_buffer *results)
{
    weir_queue *queue;
    weir_status status =
        weir_queue_pool_get(pool, number % 4 == 0 ? WEIR_QUEUE_HIGH : WEIR_QUEUE_NORMAL, &queue);
    if (status != WEIR_OK)
        return status;
    printf("request %u: queue '%s'\n", (unsigned)number, weir_queue_label(queue));
    status = weir_queue_fill(queue, memory, number * 4, 4, &number, sizeof number);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, results, number * 4, memory, number * 4, 4);
    return status == WEIR_OK ? weir_queue_flush(queue) : status;
}

static weir_status run(weir_device *device, weir_buffer *memory, weir_buffer *results)
{
    const struct weir_queue_pool_params params = {
        .struct_size = sizeof params,
        .device = device,
        .label = "requests",
        .queue_counts = {[WEIR_QUEUE_NORMAL] = 3, [WEIR_QUEUE_HIGH] = 1},
    };
    struct weir_queue_pool_statistics figures;
    weir_queue_pool *pool;

    weir_status status = weir_queue_pool_create(&params, &pool);
    if (status != WEIR_OK)
        return status;
    for (uint32_t i = 0; i < REQUESTS && status == WEIR_OK; i++)
        status = answer(pool, i, memory, results);
    if (status == WEIR_OK)
        status = weir_queue_pool_sync_all(pool, WEIR_FOREVER);
    weir_queue_pool_get_statistics(pool, &figures);
    printf("%u queues, %u channels. %s\n", (unsigned)figures.queue_count,
           (unsigned)figures.channel_count, figures.advice);
    weir_queue_pool_destroy(&pool);
    return status;
}

static int count_right(weir_buffer *results)
{
    void *words;
    int right = 0;
    if (weir_host_begin(results, 0, REQUESTS * 4, WEIR_ACCESS_READ, &words) != WEIR_OK)
        return 0;
    for (uint32_t i = 0; i < REQUESTS; i++)
        right += ((uint32_t *)words)[i] == i;
    WEIR_CHECK(weir_host_end(results, 0, REQUESTS * 4, WEIR_ACCESS_READ));
    return right;
}

int main(void)
{
    const struct weir_buffer_params on_device = {
        .struct_size = sizeof on_device,
        .size = REQUESTS * 4,
    };
    const struct weir_buffer_params on_host = {
        .struct_size = sizeof on_host,
        .size = REQUESTS * 4,
        .placement = WEIR_PLACE_HOST,
    };
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_buffer *memory = NULL, *results = NULL;
    int right = 0;

    if (weir_open(NULL, &runtime) || weir_device_open(runtime, NULL, &device) ||
        weir_buffer_create(device, &on_device, &memory) ||
        weir_buffer_create(device, &on_host, &results) || run(device, memory, results))
        fprintf(stderr, "%s\n", weir_last_error_text());
    else
        right = count_right(results);
    printf("%d of %d right\n", right, REQUESTS);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&results);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return right == REQUESTS ? 0 : 1;
}
