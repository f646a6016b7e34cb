// A biased lock excludes like a mutex, whichever thread takes it first and
// whenever another one comes.
#include "base/biased_lock.h"
#include "base/clock.h"
#include "tests/support/test.h"

enum {
    THREADS = 4,
    ROUNDS = 20000
};

static const struct weir_lock_kind kind = {"the lock of the test", 0};

struct shared {
    struct weir_biased_lock lock;
    uint64_t count; // plain: the lock must guard it
    atomic_bool inside;
    atomic_uint broken;
    atomic_bool go;
};

static void step(struct shared *shared)
{
    weir_biased_lock_take(&shared->lock);
    if (atomic_exchange(&shared->inside, true))
        atomic_fetch_add(&shared->broken, 1);
    shared->count++;
    atomic_store(&shared->inside, false);
    weir_biased_lock_release(&shared->lock);
}

static void *work(void *argument)
{
    struct shared *shared = argument;
    while (!atomic_load(&shared->go))
        weir_clock_sleep_ns(1000);
    for (int i = 0; i < ROUNDS; i++)
        step(shared);
    return NULL;
}

static void open_shared(struct shared *shared)
{
    *shared = (struct shared){.count = 0};
    weir_biased_lock_init(&shared->lock, &kind);
}

WEIR_TEST(BiasedLock, OneThreadAlone)
{
    struct shared shared;
    open_shared(&shared);
    for (int i = 0; i < ROUNDS; i++)
        step(&shared);
    EXPECT_UINT_EQ(shared.count, ROUNDS);
    EXPECT_UINT_EQ(atomic_load(&shared.broken), 0);
    weir_biased_lock_finish(&shared.lock);
}

// The owner is in the middle of its rounds when the others come.
WEIR_TEST(BiasedLock, OthersComeWhileTheOwnerWorks)
{
    for (int turn = 0; turn < 20; turn++) {
        struct shared shared;
        pthread_t threads[THREADS];
        open_shared(&shared);
        for (int i = 0; i < THREADS; i++)
            ASSERT_INT_EQ(pthread_create(&threads[i], NULL, work, &shared), 0);
        for (int i = 0; i < ROUNDS; i++) {
            if (i == 100 * turn)
                atomic_store(&shared.go, true);
            step(&shared);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        EXPECT_UINT_EQ(shared.count, (uint64_t)(THREADS + 1) * ROUNDS);
        EXPECT_UINT_EQ(atomic_load(&shared.broken), 0);
        weir_biased_lock_finish(&shared.lock);
    }
}

// Threads that follow each other often have the same identity.
WEIR_TEST(BiasedLock, ThreadsOneAfterTheOther)
{
    struct shared shared;
    open_shared(&shared);
    atomic_store(&shared.go, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        ASSERT_INT_EQ(pthread_create(&thread, NULL, work, &shared), 0);
        pthread_join(thread, NULL);
    }
    EXPECT_UINT_EQ(shared.count, (uint64_t)THREADS * ROUNDS);
    weir_biased_lock_finish(&shared.lock);
}

// A holder that takes its time is waited for.
static void *hold_long(void *argument)
{
    struct shared *shared = argument;
    step(shared); // the bias is this thread's
    weir_biased_lock_take(&shared->lock);
    atomic_store(&shared->go, true);
    weir_clock_sleep_ns(20000000);
    shared->count = 1000;
    weir_biased_lock_release(&shared->lock);
    return NULL;
}

WEIR_TEST(BiasedLock, ALongHolderIsWaitedFor)
{
    struct shared shared;
    pthread_t thread;
    open_shared(&shared);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, hold_long, &shared), 0);
    while (!atomic_load(&shared.go))
        weir_clock_sleep_ns(1000);
    step(&shared);
    EXPECT_UINT_EQ(shared.count, 1001);
    pthread_join(thread, NULL);
    weir_biased_lock_finish(&shared.lock);
}
