// Ids of queues: never reused, and looked up while queues are created and
// destroyed.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/queue/queue.h"
#include "tests/unit/core_backend.h"

#define QUEUE_LIMIT 65536

static uint64_t id_of(const weir_queue *queue)
{
    return weir_queue_object(queue)->id;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

WEIR_TEST(Registry, NeverUsesAnIdAgain)
{
    enum {
        ROUNDS = 5000,
        AT_ONCE = 3
    };
    struct control control;
    uint64_t *ids = calloc(ROUNDS * AT_ONCE, sizeof *ids);
    weir_queue *queues[AT_ONCE];

    ASSERT_NOT_NULL(ids);
    ASSERT_TRUE(control_open(&control));
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < AT_ONCE; k++) {
            queues[k] = control_queue(&control, "q");
            ids[i * AT_ONCE + k] = id_of(queues[k]);
            weir_queue *pinned = weir__registry_pin(id_of(queues[k]));
            ASSERT_PTR_EQ(pinned, queues[k]);
            weir__registry_unpin(pinned);
        }
        for (int k = 0; k < AT_ONCE; k++)
            weir_queue_destroy(&queues[(k + i) % AT_ONCE]);
    }
    qsort(ids, ROUNDS * AT_ONCE, sizeof *ids, compare);
    for (int i = 0; i < ROUNDS * AT_ONCE; i++) {
        ASSERT_UINT_NE(ids[i], i ? ids[i - 1] : 0);
        ASSERT_NULL(weir__registry_pin(ids[i]));
    }
    ASSERT_NULL(weir__registry_pin(0));
    ASSERT_NULL(weir__registry_pin(UINT64_MAX));
    free(ids);
    control_close(&control);
}

// A reference keeps a destroyed queue findable and alive.
CONTROL_TEST(Registry, AReferenceKeepsTheQueue)
{
    weir_queue *queue = control_queue(control, "kept");
    const uint64_t id = id_of(queue);
    weir_queue *pinned = weir__registry_pin(id);
    weir_queue_destroy(&queue);
    EXPECT_STR_EQ(weir_queue_label(pinned), "kept");
    EXPECT_PTR_EQ(weir__registry_pin(id), pinned);
    weir__registry_unpin(pinned);
    weir__registry_unpin(pinned);
    EXPECT_NULL(weir__registry_pin(id));
}

WEIR_TEST(Registry, HasALimitAndSaysSo)
{
    struct control control;
    weir_queue **queues = calloc(QUEUE_LIMIT, sizeof(weir_queue *));
    weir_queue *more;

    ASSERT_NOT_NULL(queues);
    ASSERT_TRUE(control_open(&control));
    for (int i = 0; i < QUEUE_LIMIT; i++)
        ASSERT_OK(weir_queue_create(control.devices[0], NULL, &queues[i]));
    EXPECT_INT_EQ(weir_queue_create(control.devices[0], NULL, &more), WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_NULL(more);
    EXPECT_CONTAINS(weir_last_error()->message, "65,536");
    weir_queue_destroy(&queues[QUEUE_LIMIT / 2]);
    EXPECT_OK(weir_queue_create(control.devices[0], NULL, &queues[QUEUE_LIMIT / 2]));
    for (int i = 0; i < QUEUE_LIMIT; i++)
        weir_queue_destroy(&queues[i]);
    free(queues);
    control_close(&control);
}

// Threads pin old, current and future ids while one slot is reused again and
// again. They get the queue of that id, or nothing.

#define WATCHED 64

struct watch {
    _Atomic(uint64_t) ids[WATCHED];
    atomic_bool stop;
    atomic_int wrong;
    atomic_int found;
};

static void *pin_all(void *user)
{
    struct watch *watch = user;
    while (!atomic_load(&watch->stop)) {
        for (int i = 0; i < WATCHED; i++) {
            const uint64_t id = atomic_load(&watch->ids[i]);
            weir_queue *queue = id ? weir__registry_pin(id) : NULL;
            if (!queue)
                continue;
            if (id_of(queue) != id)
                atomic_fetch_add(&watch->wrong, 1);
            atomic_fetch_add(&watch->found, 1);
            weir__registry_unpin(queue);
        }
    }
    return NULL;
}

CONTROL_TEST(Registry, IsSafeWhileQueuesComeAndGo)
{
    enum {
        THREADS = 3,
        ROUNDS = 4000
    };
    static struct watch watch;
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, pin_all, &watch), 0);
    for (int i = 0; i < ROUNDS || (atomic_load(&watch.found) == 0 && i < 1000000); i++) {
        weir_queue *queue = control_queue(control, "q");
        // The id itself, and the next id of the slot.
        atomic_store(&watch.ids[i % WATCHED], id_of(queue));
        atomic_store(&watch.ids[(i + 1) % WATCHED], id_of(queue) + 0x10000);
        weir_queue_destroy(&queue);
    }
    atomic_store(&watch.stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_INT_EQ(atomic_load(&watch.wrong), 0);
    EXPECT_INT_GT(atomic_load(&watch.found), 0);
}

static void count_line(void *user, weir_log_level level, const char *source, const char *message)
{
    *(size_t *)user += strstr(message, "the buffer without a label") != NULL;
}

// A close that is refused walks the list of what is left a few times, not once for each object.
CONTROL_TEST(Registry, ManyObjectsLeftAtClose)
{
    enum {
        LEFT = 60000
    };
    weir_buffer **buffers = calloc(LEFT, sizeof *buffers);
    size_t lines = 0;
    ASSERT_NOT_NULL(buffers);
    for (size_t i = 0; i < LEFT; i++)
        buffers[i] = control_buffer(control, 1);
    const uint64_t begin_ns = weir_clock_now_ns();
    weir_log_set(count_line, &lines, WEIR_LOG_ERROR);
    EXPECT_INT_EQ(weir_device_close(&control->devices[0]), WEIR_ERROR_INVALID);
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_UINT_LT(weir_clock_now_ns() - begin_ns, 3 * UINT64_C(1000000000));
    EXPECT_UINT_EQ(lines, LEFT);
    for (size_t i = 0; i < LEFT; i++)
        weir_buffer_destroy(&buffers[i]);
    free(buffers);
}
