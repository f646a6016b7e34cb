// See the header.
#include "tests/patterns/rig.h"

#include <time.h>

#include "tests/support/memory.h"

struct rig rig;

void rig_sleep_ns(long duration_ns)
{
    const struct timespec duration = {.tv_nsec = duration_ns};
    nanosleep(&duration, NULL);
}

weir_status rig_dawdle(void *user)
{
    rig_sleep_ns((long)((uintptr_t)user * 7919 % 5) * 100000);
    return WEIR_OK;
}

weir_status rig_fail(void *user)
{
    return WEIR_ERROR_IO;
}

weir_status rig_fail_late(void *user)
{
    rig_sleep_ns(3000000);
    return rig_fail(user);
}

weir_status rig_error(weir_status status, const char *message)
{
    struct weir_error error = {.status = status};
    snprintf(error.message, sizeof error.message, "%s", message);
    return weir_error_set(&error);
}

void rig_expect_refused(weir_status status, const char *words, const char *remedy)
{
    EXPECT_FAILURE(status, WEIR_ERROR_INVALID, words);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
}

struct rig_flat rig_flat_begin(void)
{
    struct rig_flat now;
    weir_counters_read(&now.counters);
    now.allocations = weir_test_allocations();
    return now;
}

void rig_flat_expect(const struct rig_flat *since)
{
    const struct rig_flat now = rig_flat_begin();
    EXPECT_UINT_EQ(now.allocations, since->allocations);
    EXPECT_UINT_EQ(now.counters.allocations, since->counters.allocations);
    EXPECT_UINT_EQ(now.counters.driver_objects, since->counters.driver_objects);
    EXPECT_UINT_GT(since->allocations, 0);
}

weir_status rig_open(const char *config)
{
    weir_status status = weir_open(
        WEIR_PARAMS(weir_open, .config_path = config ? "rig.ini" : "", .config_text = config,
                    .backend = getenv("WEIR_BACKEND") ? NULL : "null",
                    .sections = (const struct weir_section *const[]){weir_pipeline_section()},
                    .section_count = 1),
        &rig.runtime);
    if (status != WEIR_OK)
        return status;
    return weir_device_open(rig.runtime, NULL, &rig.device);
}

void rig_close(void)
{
    ASSERT_OK(weir_device_close(&rig.device));
    ASSERT_OK(weir_close(&rig.runtime));
}

void rig_write_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first)
{
    void *pointer;

    if (weir_host_begin(buffer, at * 4, count * 4, WEIR_ACCESS_WRITE, &pointer) != WEIR_OK)
        WEIR_FAIL("%s", weir_last_error_text());
    for (size_t i = 0; i < count; i++)
        ((uint32_t *)pointer)[i] = first + (uint32_t)i;
    WEIR_IGNORE(weir_host_end(buffer, at * 4, count * 4, WEIR_ACCESS_WRITE));
}

size_t rig_wrong_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first)
{
    void *pointer;
    size_t wrong = 0;

    if (weir_host_begin(buffer, at * 4, count * 4, WEIR_ACCESS_READ, &pointer) != WEIR_OK)
        return count + 1;
    for (size_t i = 0; i < count; i++)
        wrong += ((uint32_t *)pointer)[i] != first + (uint32_t)i;
    WEIR_IGNORE(weir_host_end(buffer, at * 4, count * 4, WEIR_ACCESS_READ));
    return wrong;
}

// Deliveries are copied, because results are valid only during their callback.

void recorder_init(struct recorder *recorder)
{
    recorder->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    recorder->count = 0;
}

void recorder_add(struct recorder *recorder, void *frame, void *slot,
                  const struct weir_pipeline_result *result)
{
    struct delivery delivery = {
        .frame = frame,
        .slot = slot,
        .sequence = result->sequence,
        .status = result->status,
        .has_error = result->error != NULL,
        .timed = result->spans != NULL,
    };
    snprintf(delivery.stage, sizeof delivery.stage, "%s", result->stage);
    if (result->error) {
        delivery.error_status = result->error->status;
        snprintf(delivery.message, sizeof delivery.message, "%.*s",
                 (int)sizeof delivery.message - 1, result->error->message);
        snprintf(delivery.remedy, sizeof delivery.remedy, "%.*s", (int)sizeof delivery.remedy - 1,
                 result->error->remedy);
    }
    pthread_mutex_lock(&recorder->lock);
    if (recorder->count < DELIVERIES)
        recorder->list[recorder->count] = delivery;
    recorder->count++;
    pthread_mutex_unlock(&recorder->lock);
}

unsigned recorder_count(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    unsigned count = recorder->count;
    pthread_mutex_unlock(&recorder->lock);
    return count;
}

unsigned recorder_count_of(struct recorder *recorder, weir_status status)
{
    unsigned count = 0;
    pthread_mutex_lock(&recorder->lock);
    for (unsigned i = 0; i < recorder->count; i++)
        count += recorder->list[i].status == status;
    pthread_mutex_unlock(&recorder->lock);
    return count;
}

const struct delivery *recorder_at(struct recorder *recorder, unsigned index)
{
    static const struct delivery missing = {.status = WEIR_ERROR_NOT_FOUND, .sequence = UINT64_MAX};
    return index < recorder_count(recorder) ? &recorder->list[index] : &missing;
}

bool recorder_is_in_order(struct recorder *recorder, unsigned count)
{
    pthread_mutex_lock(&recorder->lock);
    bool in_order = recorder->count == count;
    for (unsigned i = 0; i < recorder->count && in_order; i++)
        in_order = recorder->list[i].sequence == i;
    pthread_mutex_unlock(&recorder->lock);
    return in_order;
}

static _Thread_local bool is_watched;
static atomic_bool is_blocked;

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    if (is_watched)
        is_blocked = true;
    return __real_pthread_cond_wait(condition, lock);
}

void blocked_begin(void)
{
    is_blocked = false;
}

void blocked_watch(void)
{
    is_watched = true;
}

void blocked_await(void)
{
    while (!is_blocked)
        rig_sleep_ns(1000000);
}
