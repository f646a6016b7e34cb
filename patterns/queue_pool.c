// Each class has one atomic counter, which selects the next queue.
#include "patterns/queue_pool.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/sized.h"
#include "patterns/shared.h"

#define CHANNELS_MAX 8

struct class
{
    int32_t priority;
    uint32_t count;
    atomic_uint_fast64_t gets;
    weir_queue *queues[WEIR_QUEUE_POOL_MAX];
};

struct weir_queue_pool {
    struct weir_queue_pool_params params; // `label` is the copy
    char label[WEIR__PATTERN_LABEL_SIZE];
    uint32_t channel_count;
    struct class classes[WEIR_QUEUE_CLASSES];
};

static const char *const class_names[WEIR_QUEUE_CLASSES] = {"normal", "high", "low"};

const char *weir_queue_class_name(weir_queue_class kind)
{
    return (unsigned)kind < WEIR_QUEUE_CLASSES ? class_names[kind] : "unknown class";
}

// --- creation and destruction ---

static weir_status check_params(const struct weir_queue_pool_params *params)
{
    if (!params->device)
        return weir__pattern_refuse(params->label, "set it",
                                    "weir_queue_pool_create: params->device is NULL");
    for (int i = 0; i < WEIR_QUEUE_CLASSES; i++) {
        if (params->queue_counts[i] > WEIR_QUEUE_POOL_MAX)
            return weir__pattern_refuse(params->label, NULL,
                                        "weir_queue_pool_create: %" PRIu32
                                        " queues of class %s; the limit is %d",
                                        params->queue_counts[i], class_names[i],
                                        WEIR_QUEUE_POOL_MAX);
    }
    return WEIR_OK;
}

static uint32_t count_channels(const struct weir_queue_pool_params *params)
{
    const struct weir_limits *limits = weir_device_limits(params->device);
    uint64_t at_once = (uint64_t)limits->concurrent_kernels + limits->copy_engines_to_device +
                       limits->copy_engines_to_host;

    if (params->channel_count > 0)
        return params->channel_count;
    if (at_once == 0)
        return 1;
    return at_once < CHANNELS_MAX ? (uint32_t)at_once : CHANNELS_MAX;
}

static weir_status make_classes(weir_queue_pool *pool, struct weir__place place)
{
    const struct weir_queue_pool_params *params = &pool->params;
    const struct weir_limits *limits = weir_device_limits(params->device);
    uint32_t *counts = pool->params.queue_counts;
    pool->classes[WEIR_QUEUE_HIGH].priority = limits->priority_highest;
    pool->classes[WEIR_QUEUE_LOW].priority = limits->priority_lowest;
    if (counts[0] + counts[1] + counts[2] == 0)
        counts[WEIR_QUEUE_NORMAL] =
            pool->channel_count < WEIR_QUEUE_POOL_MAX ? pool->channel_count : WEIR_QUEUE_POOL_MAX;
    for (int i = 0; i < WEIR_QUEUE_CLASSES; i++)
        for (struct class *class = &pool->classes[i]; class->count < counts[i]; class->count++)
            TRY(weir__pattern_queue(params->device, class->priority, params->timing, place,
                                    &class->queues[class->count], "%s/%s/%" PRIu32, pool->label,
                                    class_names[i], class->count));
    return WEIR_OK;
}

static weir_status fill_pool(weir_queue_pool *pool, const struct weir_queue_pool_params *given,
                             struct weir__place place)
{
    struct weir_queue_pool_params *params = &pool->params;
    TRY(weir__pattern_params("weir_queue_pool_create", "weir_queue_pool_params", given, params,
                             sizeof *params));
    params->label = weir__pattern_keep(pool->label, params->label, "pool");
    TRY(check_params(params));
    pool->channel_count = count_channels(params);
    return make_classes(pool, place);
}

weir_status weir_queue_pool_create_at(const struct weir_queue_pool_params *params,
                                      weir_queue_pool **out_pool, const char *file, int line)
{
    weir_queue_pool *pool = *out_pool = calloc(1, sizeof *pool);
    const weir_status status = pool ? fill_pool(pool, params, (struct weir__place){file, line})
                                    : weir__pattern_no_memory(NULL, "a pool of queues");
    if (status != WEIR_OK)
        weir_queue_pool_destroy(out_pool);
    return weir__pattern_placed(status, file, line);
}

void weir_queue_pool_destroy(weir_queue_pool **pool)
{
    if (!pool || !*pool)
        return;
    weir_queue_pool *gone = *pool;

    for (int i = 0; i < WEIR_QUEUE_CLASSES; i++) {
        struct class *class = &gone->classes[i];
        for (uint32_t q = 0; q < class->count; q++)
            weir_queue_destroy(&class->queues[q]);
    }
    free(gone);
    *pool = NULL;
}

// --- use ---

weir_status weir_queue_pool_get(weir_queue_pool *pool, weir_queue_class kind,
                                weir_queue **out_queue)
{
    *out_queue = NULL;
    if (!pool)
        return weir__pattern_refuse_null("weir_queue_pool_get", "pool");
    if ((unsigned)kind >= WEIR_QUEUE_CLASSES || pool->classes[kind].count == 0)
        return weir__pattern_refuse(pool->label, "set queue_counts for every class that is used",
                                    "weir_queue_pool_get: the pool has no queues of class %d (%s)",
                                    (int)kind, weir_queue_class_name(kind));

    struct class *class = &pool->classes[kind];
    *out_queue = class->queues[atomic_fetch_add(&class->gets, 1) % class->count];
    return WEIR_OK;
}

weir_status weir_queue_pool_sync_all(weir_queue_pool *pool, uint64_t timeout_ns)
{
    const uint64_t deadline_ns = weir_clock_deadline(timeout_ns);
    struct weir__pattern_first first = {.status = WEIR_OK};

    if (!pool)
        return weir__pattern_refuse_null("weir_queue_pool_sync_all", "pool");
    for (int i = 0; i < WEIR_QUEUE_CLASSES; i++) {
        struct class *class = &pool->classes[i];
        for (uint32_t q = 0; q < class->count; q++)
            weir__pattern_note(&first,
                               weir_queue_sync(class->queues[q], weir_clock_left(deadline_ns)));
    }
    return weir__pattern_first(&first);
}

void weir_queue_pool_get_statistics_sized(weir_queue_pool *pool,
                                          struct weir_queue_pool_statistics *out_statistics,
                                          size_t size)
{
    struct weir_queue_pool_statistics statistics = {.channel_count = pool->channel_count};
    for (int i = 0; i < WEIR_QUEUE_CLASSES; i++) {
        struct class *class = &pool->classes[i];
        statistics.classes[i] = (struct weir_queue_pool_class_statistics){
            .priority = class->priority,
            .queue_count = class->count,
            .gets = atomic_load(&class->gets),
        };
        statistics.queue_count += class->count;
    }
    if (statistics.queue_count > statistics.channel_count)
        snprintf(statistics.advice, sizeof statistics.advice,
                 "pool '%s' holds %" PRIu32 " queues, but '%.80s' keeps only %" PRIu32
                 " apart: work of queues that share a channel can wait for each other; use fewer, "
                 "or set channel_count",
                 pool->label, statistics.queue_count,
                 weir_device_get_info(pool->params.device)->name, statistics.channel_count);
    weir_sized_write(out_statistics, size, &statistics, sizeof statistics);
}
