// Tasks run on threads of their own, or on the thread that waits for them.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "base/workers.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/test.h"

enum {
    TASKS = 40
};

static const struct weir_lock_kind kind = {"the lock of the test", 0};

// The linker puts this in the place of pthread_create().
static atomic_int threads_left = 1000;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return atomic_fetch_sub(&threads_left, 1) > 0
               ? __real_pthread_create(thread, attributes, run, argument)
               : EAGAIN;
}

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

WEIR_TEST(Workers, WithoutThreadsTheWaitingOneRunsThem)
{
    struct weir_workers workers;
    struct noted noted[3];
    weir_workers_init(&workers, &kind);
    post_all(&workers, noted, 3);
    EXPECT_INT_EQ(noted[0].number, -1);
    static const int order[] = {1, 2, 0};
    for (int i = 0; i < 3; i++) {
        weir_workers_wait(&workers, &noted[order[i]].task);
        EXPECT_INT_EQ(noted[order[i]].number, i);
        EXPECT_TRUE(pthread_equal(noted[order[i]].thread, pthread_self()));
    }
    post_all(&workers, noted, 1); // the list is whole
    weir_workers_wait(&workers, &noted[0].task);
    EXPECT_INT_EQ(noted[0].number, 0);
    weir_workers_finish(&workers);
}

struct gate {
    struct weir_task task;
    sem_t begun;
    sem_t open;
};

static void pass_gate(void *user)
{
    struct gate *gate = user;
    sem_post(&gate->begun);
    while (sem_wait(&gate->open) != 0)
        ;
}

static void gate_init(struct gate *gate)
{
    *gate = (struct gate){.task = {.run = pass_gate, .user = gate}};
    sem_init(&gate->begun, 0, 0);
    sem_init(&gate->open, 0, 0);
}

static void gate_finish(struct gate *gate)
{
    sem_destroy(&gate->begun);
    sem_destroy(&gate->open);
}

// Every thread is in a task at once.
WEIR_TEST(Workers, RunBesideEachOther)
{
    struct weir_workers workers;
    struct gate gates[4];
    weir_workers_init(&workers, &kind);
    EXPECT_INT_EQ(weir_workers_start(&workers, 4), 4);
    for (int i = 0; i < 4; i++) {
        gate_init(&gates[i]);
        weir_workers_post(&workers, &gates[i].task, WEIR_WORKERS_MAX);
    }
    for (int i = 0; i < 4; i++)
        EXPECT_INT_EQ(sem_wait(&gates[i].begun), 0);
    for (int i = 0; i < 4; i++)
        sem_post(&gates[i].open);
    for (int i = 0; i < 4; i++) {
        weir_workers_wait(&workers, &gates[i].task);
        gate_finish(&gates[i]);
    }
    weir_workers_finish(&workers);
}

// One thread is held at a gate, so what comes after it has not begun.
WEIR_TEST(Workers, BeginInOrder)
{
    struct weir_workers workers;
    struct gate gate;
    static struct noted noted[TASKS];
    weir_workers_init(&workers, &kind);
    ASSERT_INT_EQ(weir_workers_start(&workers, 1), 1);
    gate_init(&gate);
    weir_workers_post(&workers, &gate.task, WEIR_WORKERS_MAX);
    ASSERT_INT_EQ(sem_wait(&gate.begun), 0);
    post_all(&workers, noted, TASKS);
    weir_workers_wait(&workers, &noted[TASKS - 1].task); // taken from the end of the list
    EXPECT_TRUE(pthread_equal(noted[TASKS - 1].thread, pthread_self()));
    weir_workers_wait(&workers, &noted[7].task);
    sem_post(&gate.open);
    for (int i = 0; i < TASKS - 1; i++) {
        weir_workers_wait(&workers, &noted[i].task);
        const int before = i < 7 ? 2 : 1;
        if (i != 7 && !pthread_equal(noted[i].thread, pthread_self()))
            EXPECT_INT_EQ(noted[i].number, i + before);
    }
    weir_workers_wait(&workers, &gate.task);
    gate_finish(&gate);
    weir_workers_finish(&workers);
}

// Two threads are asked for, and a third one stays asleep, so what is posted meanwhile is not begun.
WEIR_TEST(Workers, NoMoreAreWokenThanAskedFor)
{
    struct weir_workers workers;
    struct gate gates[3];
    weir_workers_init(&workers, &kind);
    ASSERT_INT_EQ(weir_workers_start(&workers, 3), 3);
    for (bool asleep = false; !asleep; sched_yield()) {
        weir_lock_take(&workers.lock);
        asleep = workers.awake == 0;
        weir_lock_release(&workers.lock);
    }
    for (int i = 0; i < 3; i++) {
        gate_init(&gates[i]);
        weir_workers_post(&workers, &gates[i].task, 2);
    }
    EXPECT_INT_EQ(sem_wait(&gates[0].begun), 0);
    EXPECT_INT_EQ(sem_wait(&gates[1].begun), 0);
    weir_lock_take(&workers.lock);
    EXPECT_INT_EQ(workers.awake, 2);
    EXPECT_INT_EQ(gates[2].task.state, WEIR_TASK_POSTED);
    weir_lock_release(&workers.lock);
    for (int i = 0; i < 3; i++)
        sem_post(&gates[i].open);
    for (int i = 0; i < 3; i++) {
        weir_workers_wait(&workers, &gates[i].task);
        gate_finish(&gates[i]);
    }
    weir_workers_finish(&workers);
}

WEIR_TEST(Workers, AsManyThreadsAsThereAre)
{
    struct weir_workers workers;
    struct noted noted;
    weir_workers_init(&workers, &kind);
    atomic_store(&threads_left, 2);
    EXPECT_INT_EQ(weir_workers_start(&workers, 3), 2);
    EXPECT_INT_EQ(weir_workers_start(&workers, 1), 2);
    atomic_store(&threads_left, 1000);
    EXPECT_INT_EQ(weir_workers_start(&workers, 1000), WEIR_WORKERS_MAX);
    post_all(&workers, &noted, 1);
    weir_workers_wait(&workers, &noted.task);
    weir_workers_finish(&workers);
}

// Tasks that no thread has begun stay, and threads can be started again.
WEIR_TEST(Workers, Stop)
{
    struct weir_workers workers;
    struct noted noted[2];
    weir_workers_init(&workers, &kind);
    for (int round = 0; round < 3; round++) {
        EXPECT_INT_EQ(weir_workers_start(&workers, 2), 2);
        weir_workers_stop(&workers);
        post_all(&workers, noted, 2);
        EXPECT_INT_EQ(noted[0].number, -1);
        EXPECT_INT_EQ(weir_workers_start(&workers, 1), 1);
        weir_workers_wait(&workers, &noted[1].task);
        weir_workers_wait(&workers, &noted[0].task);
    }
    weir_workers_stop(&workers);
    weir_workers_stop(&workers);
    weir_workers_finish(&workers);
}

static void *stop(void *user)
{
    weir_workers_stop(user);
    return NULL;
}

// A thread waits in stop for a task that is held at a gate; meanwhile none is started.
WEIR_TEST(Workers, StopWaitsForWhatHasBegun)
{
    struct weir_workers workers;
    struct gate gate;
    pthread_t stopper;
    weir_workers_init(&workers, &kind);
    ASSERT_INT_EQ(weir_workers_start(&workers, 1), 1);
    gate_init(&gate);
    weir_workers_post(&workers, &gate.task, WEIR_WORKERS_MAX);
    ASSERT_INT_EQ(sem_wait(&gate.begun), 0);
    ASSERT_INT_EQ(pthread_create(&stopper, NULL, stop, &workers), 0);
    while (weir_workers_start(&workers, 1) != 0)
        sched_yield();
    sem_post(&gate.open);
    pthread_join(stopper, NULL);
    EXPECT_INT_EQ(weir_workers_start(&workers, 1), 1);
    weir_workers_wait(&workers, &gate.task);
    gate_finish(&gate);
    weir_workers_finish(&workers);
}

static char *guarded;
static volatile sig_atomic_t faults;

static void unprotect(int signal)
{
    (void)signal;
    faults++;
    mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
}

static void write_guarded(void *user)
{
    memset(user, 1, 4096);
}

// Programs that protect pages and handle the fault, as collectors of garbage do, keep working.
WEIR_TEST(Workers, FaultsAreTheProgramsOwn)
{
    struct weir_workers workers;
    struct gate gate;
    struct sigaction before;
    struct weir_task task = {.run = write_guarded};
    weir_workers_init(&workers, &kind);
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(guarded != MAP_FAILED);
    task.user = guarded;
    ASSERT_INT_EQ(sigaction(SIGSEGV, &(struct sigaction){.sa_handler = unprotect}, &before), 0);
    ASSERT_INT_EQ(weir_workers_start(&workers, 1), 1);
    gate_init(&gate);
    weir_workers_post(&workers, &task, WEIR_WORKERS_MAX);
    weir_workers_post(&workers, &gate.task,
                      WEIR_WORKERS_MAX); // begun after the task, by the thread
    ASSERT_INT_EQ(sem_wait(&gate.begun), 0);
    sem_post(&gate.open);
    weir_workers_wait(&workers, &task);
    weir_workers_wait(&workers, &gate.task);
    sigaction(SIGSEGV, &before, NULL);
    EXPECT_INT_EQ(faults, 1);
    EXPECT_INT_EQ(guarded[4095], 1);
    munmap(guarded, 4096);
    gate_finish(&gate);
    weir_workers_finish(&workers);
}

WEIR_TEST(Workers, Processors)
{
    EXPECT_TRUE(weir_workers_processors() >= 1);
}
