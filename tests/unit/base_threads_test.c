// Threads and workers of the library.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/thread.h"
#include "base/workers.h"
#include "tests/support/gate.h"
#include "tests/support/test.h"

// As many threads as there are left. The linker puts this in the place of pthread_create().
static atomic_int threads_left = 1000;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *argument)
{
    return atomic_fetch_sub(&threads_left, 1) > 0
               ? __real_pthread_create(thread, attributes, begin, argument)
               : EAGAIN;
}

struct seen {
    struct weir_thread thread;
    bool is_current;
    int cancel_state;
};

static void look(void *user)
{
    struct seen *seen = user;
    seen->is_current = weir_thread_is_current(&seen->thread);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &seen->cancel_state);
}

WEIR_TEST(Thread, KnowsItselfAndTakesNoCancellation)
{
    struct seen seen = {.cancel_state = PTHREAD_CANCEL_ENABLE};
    ASSERT_INT_EQ(weir_thread_start(&seen.thread, look, &seen), 0);
    weir_thread_join(&seen.thread);
    EXPECT_TRUE(seen.is_current);
    EXPECT_FALSE(weir_thread_is_current(&seen.thread));
    EXPECT_INT_EQ(seen.cancel_state, PTHREAD_CANCEL_DISABLE);
}

static void read_mask(void *user)
{
    pthread_sigmask(SIG_SETMASK, NULL, user);
}

WEIR_TEST(Thread, SignalsAreTheProgramsOwn)
{
    struct weir_thread thread;
    sigset_t inside;
    sigset_t after;
    sigemptyset(&inside);
    ASSERT_INT_EQ(weir_thread_start(&thread, read_mask, &inside), 0);
    weir_thread_join(&thread);
    EXPECT_INT_EQ(sigismember(&inside, SIGTERM), 1);
    EXPECT_INT_EQ(sigismember(&inside, SIGUSR1), 1);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    EXPECT_INT_EQ(sigismember(&after, SIGTERM), 0);
}

// Tasks run on threads of their own, or on the thread that waits for them.

enum {
    TASKS = 40
};

static const struct weir_lock_kind kind = {"the lock of the test", 0};

// Notes the thread that ran it, and when.
struct noted {
    struct weir_task task;
    pthread_t thread;
    int number;
};

static atomic_int numbers;

static void note_run(void *user)
{
    struct noted *noted = user;
    noted->thread = pthread_self();
    noted->number = atomic_fetch_add(&numbers, 1);
}

static void post_all(struct weir_workers *workers, struct noted *noted, size_t count)
{
    atomic_store(&numbers, 0);
    for (size_t i = 0; i < count; i++) {
        noted[i] = (struct noted){.task = {.run = note_run, .user = &noted[i]}, .number = -1};
        weir_workers_post(workers, &noted[i].task, WEIR_WORKERS_MAX);
    }
}

#define WORKERS_TEST(suite, name)                             \
    WEIR_TEST_WITH(suite, name, struct weir_workers, workers, \
                   (weir_workers_init(workers, &kind), true), weir_workers_finish(workers))

WORKERS_TEST(Workers, WithoutThreadsTheWaitingOneRunsThem)
{
    struct noted noted[3];
    post_all(workers, noted, 3);
    EXPECT_INT_EQ(noted[0].number, -1);
    static const int order[] = {1, 2, 0};
    for (int i = 0; i < 3; i++) {
        weir_workers_wait(workers, &noted[order[i]].task);
        EXPECT_INT_EQ(noted[order[i]].number, i);
        EXPECT_TRUE(pthread_equal(noted[order[i]].thread, pthread_self()));
    }
    post_all(workers, noted, 1); // the list is whole
    weir_workers_wait(workers, &noted[0].task);
    EXPECT_INT_EQ(noted[0].number, 0);
}

// A task, in which a thread is held.
struct held {
    struct weir_task task;
    struct gate gate;
};

static void pass_gate(void *user)
{
    EXPECT_OK(gate_pass(user));
}

static void post_held(struct weir_workers *workers, struct held *held)
{
    *held = (struct held){.task = {.run = pass_gate, .user = &held->gate}};
    weir_workers_post(workers, &held->task, WEIR_WORKERS_MAX);
}

// The next task.
static void hold_thread(struct weir_workers *workers, struct held *held)
{
    post_held(workers, held);
    ASSERT_TRUE(gate_await(&held->gate, 1));
}

// Every thread is in a task at once.
WORKERS_TEST(Workers, RunBesideEachOther)
{
    struct held held[4];
    EXPECT_INT_EQ(weir_workers_start(workers, 4), 4);
    for (int i = 0; i < 4; i++) {
        post_held(workers, &held[i]);
    }
    for (int i = 0; i < 4; i++)
        EXPECT_TRUE(gate_await(&held[i].gate, 1));
    for (int i = 0; i < 4; i++)
        gate_open(&held[i].gate);
    for (int i = 0; i < 4; i++)
        weir_workers_wait(workers, &held[i].task);
}

// One thread is held at a gate, so what comes after it has not begun.
WORKERS_TEST(Workers, BeginInOrder)
{
    struct held held;
    static struct noted noted[TASKS];
    ASSERT_INT_EQ(weir_workers_start(workers, 1), 1);
    hold_thread(workers, &held);
    post_all(workers, noted, TASKS);
    weir_workers_wait(workers, &noted[TASKS - 1].task); // taken from the end of the list
    EXPECT_TRUE(pthread_equal(noted[TASKS - 1].thread, pthread_self()));
    weir_workers_wait(workers, &noted[7].task);
    gate_open(&held.gate);
    for (int i = 0; i < TASKS - 1; i++) {
        weir_workers_wait(workers, &noted[i].task);
        const int before = i < 7 ? 2 : 1;
        if (i != 7 && !pthread_equal(noted[i].thread, pthread_self()))
            EXPECT_INT_EQ(noted[i].number, i + before);
    }
    weir_workers_wait(workers, &held.task);
}

WORKERS_TEST(Workers, AsManyThreadsAsThereAre)
{
    struct noted noted;
    atomic_store(&threads_left, 2);
    EXPECT_INT_EQ(weir_workers_start(workers, 3), 2);
    EXPECT_INT_EQ(weir_workers_start(workers, 1), 2);
    atomic_store(&threads_left, 1000);
    EXPECT_INT_EQ(weir_workers_start(workers, 1000), WEIR_WORKERS_MAX);
    post_all(workers, &noted, 1);
    weir_workers_wait(workers, &noted.task);
}

// Tasks that no thread has begun stay, and threads can be started again.
WORKERS_TEST(Workers, Stop)
{
    struct noted noted[2];
    for (int round = 0; round < 3; round++) {
        EXPECT_INT_EQ(weir_workers_start(workers, 2), 2);
        weir_workers_stop(workers);
        post_all(workers, noted, 2);
        EXPECT_INT_EQ(noted[0].number, -1);
        EXPECT_INT_EQ(weir_workers_start(workers, 1), 1);
        weir_workers_wait(workers, &noted[1].task);
        weir_workers_wait(workers, &noted[0].task);
    }
    weir_workers_stop(workers);
    weir_workers_stop(workers);
}

static void *stop(void *user)
{
    weir_workers_stop(user);
    return NULL;
}

// A thread waits in stop for a task that is held at a gate; meanwhile none is started.
WORKERS_TEST(Workers, StopWaitsForWhatHasBegun)
{
    struct held held;
    pthread_t stopper;
    ASSERT_INT_EQ(weir_workers_start(workers, 1), 1);
    hold_thread(workers, &held);
    ASSERT_INT_EQ(pthread_create(&stopper, NULL, stop, workers), 0);
    while (weir_workers_start(workers, 1) != 0)
        sched_yield();
    gate_open(&held.gate);
    pthread_join(stopper, NULL);
    EXPECT_INT_EQ(weir_workers_start(workers, 1), 1);
    weir_workers_wait(workers, &held.task);
}

static char *guarded;
static volatile sig_atomic_t faults;

static void unprotect(int signal)
{
    faults++;
    mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
}

static void write_guarded(void *user)
{
    memset(user, 1, 4096);
}

// Programs that protect pages and handle the fault, as collectors of garbage do, keep working.
WORKERS_TEST(Workers, FaultsAreTheProgramsOwn)
{
    struct held held;
    struct sigaction before;
    struct weir_task task = {.run = write_guarded};
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(guarded != MAP_FAILED);
    task.user = guarded;
    ASSERT_INT_EQ(sigaction(SIGSEGV, &(struct sigaction){.sa_handler = unprotect}, &before), 0);
    ASSERT_INT_EQ(weir_workers_start(workers, 1), 1);
    weir_workers_post(workers, &task, WEIR_WORKERS_MAX);
    hold_thread(workers, &held); // begun after the task, by the thread
    gate_open(&held.gate);
    weir_workers_wait(workers, &task);
    weir_workers_wait(workers, &held.task);
    sigaction(SIGSEGV, &before, NULL);
    EXPECT_INT_EQ(faults, 1);
    EXPECT_INT_EQ(guarded[4095], 1);
    munmap(guarded, 4096);
}
