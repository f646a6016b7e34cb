// Threads and workers of the library, and the lock of which one thread is the owner.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/workers.h"
#include "tests/support/test.h"

// Threads that the program's code ends go on with their work.

enum {
    STEPS = 6
};

// A worker with a number of steps, each of which calls the program's code.
struct work {
    void (*code[STEPS])(struct work *work);
    int step;
    int returned[STEPS];
    int ended[STEPS];
    int done; // how often the work's end was reached
    int at_exit;
};

static pthread_key_t key;

static void call(void *user)
{
    struct work *work = user;
    work->code[work->step](work);
}

static void run(void *user);

static void ended(void *user)
{
    struct work *work = user;
    work->ended[work->step++]++;
    run(work);
}

static void run(void *user)
{
    struct work *work = user;
    while (work->step < STEPS) {
        weir_thread_call(call, ended, work);
        work->returned[work->step++]++;
    }
    work->done++;
}

static void return_plainly(struct work *work)
{
    (void)work;
}

static void leave(struct work *work)
{
    pthread_exit(work);
}

static void be_cancelled(struct work *work)
{
    (void)work;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

static void allow_and_ask(struct work *work)
{
    int before;
    (void)work;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    EXPECT_INT_EQ(before, PTHREAD_CANCEL_DISABLE);
}

static void ask_now(struct work *work)
{
    int before;
    (void)work;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    EXPECT_INT_EQ(before, PTHREAD_CANCEL_DISABLE);
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

static void count_exit(void *user)
{
    ((struct work *)user)->at_exit++;
}

static void note_exit(struct work *work)
{
    pthread_setspecific(key, work);
}

static void expect_work(struct work *work)
{
    struct weir_thread thread;
    ASSERT_INT_EQ(weir_thread_start(&thread, run, work), 0);
    weir_thread_join(&thread);
    EXPECT_INT_EQ(work->step, STEPS);
    EXPECT_INT_EQ(work->done, 1);
    bool ending = false; // a thread that is ending is not cancelled
    for (int i = 0; i < STEPS; i++) {
        const bool leaves = work->code[i] == leave || (work->code[i] == be_cancelled && !ending);
        ending = ending || leaves;
        weir_test_note("step %d", i);
        EXPECT_INT_EQ(work->ended[i], leaves);
        EXPECT_INT_EQ(work->returned[i], !leaves);
    }
    weir_test_note(NULL);
}

WEIR_TEST(Thread, CodeThatReturns)
{
    struct work work = {
        .code = {return_plainly, allow_and_ask, ask_now, ask_now, return_plainly, return_plainly}};
    expect_work(&work);
}

WEIR_TEST(Thread, CodeThatEndsItsThread)
{
    struct work once = {
        .code = {return_plainly, leave, return_plainly, allow_and_ask, ask_now, return_plainly}};
    struct work often = {.code = {leave, leave, return_plainly, be_cancelled, leave, leave}};
    expect_work(&once);
    expect_work(&often);
}

WEIR_TEST(Thread, CodeThatIsCancelled)
{
    struct work once = {.code = {return_plainly, be_cancelled, return_plainly, allow_and_ask,
                                 ask_now, return_plainly}};
    struct work often = {
        .code = {be_cancelled, be_cancelled, return_plainly, leave, be_cancelled, be_cancelled}};
    expect_work(&once);
    expect_work(&often);
}

// What the thread keeps for its end is still there while it goes on.
WEIR_TEST(Thread, ItsEndComesOnce)
{
    struct work work = {
        .code = {note_exit, leave, return_plainly, leave, return_plainly, return_plainly}};
    ASSERT_INT_EQ(pthread_key_create(&key, count_exit), 0);
    expect_work(&work);
    EXPECT_INT_EQ(work.at_exit, 1);
    pthread_key_delete(key);
}

// Another thread in the place of each that is ended, as long as there are some. The linker puts this in the
// place of pthread_create().

enum {
    RENEWALS = 20
};

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

struct line {
    struct weir_thread thread;
    pthread_mutex_t lock; // of the thread's structure
    int calls;
    int refused;
    sigset_t mask; // of the last thread
    atomic_int at_exit;
    sem_t told;
};

static void end_in_line(void *user)
{
    struct line *line = user;
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL); // not the next one's
    pthread_setspecific(key, line);
    line->calls++;
    pthread_exit(NULL);
}

static void run_line(void *user);

static void renew(void *user)
{
    struct line *line = user;
    EXPECT_TRUE(weir_thread_is_current(&line->thread));
    pthread_mutex_lock(&line->lock);
    const bool renewed = weir_thread_renew() == 0;
    pthread_mutex_unlock(&line->lock);
    if (renewed)
        return;
    line->refused++;
    run_line(line);
}

static void run_line(void *user)
{
    struct line *line = user;
    if (line->calls < RENEWALS)
        weir_thread_call(end_in_line, renew, line);
    pthread_sigmask(SIG_SETMASK, NULL, &line->mask);
    sem_post(&line->told);
}

static void note_end(void *user)
{
    atomic_fetch_add(&((struct line *)user)->at_exit, 1);
}

// Of the threads that are ended, all have when the last one is joined.
static void expect_line(int left, int refused, int ended)
{
    struct line line = {.lock = PTHREAD_MUTEX_INITIALIZER};
    ASSERT_INT_EQ(pthread_key_create(&key, note_end), 0);
    ASSERT_INT_EQ(sem_init(&line.told, 0, 0), 0);
    atomic_store(&threads_left, 1 + left);
    ASSERT_INT_EQ(weir_thread_start_known(&line.thread, run_line, &line), 0);
    while (sem_wait(&line.told) != 0)
        continue;
    EXPECT_FALSE(weir_thread_is_current(&line.thread));
    pthread_mutex_lock(&line.lock);
    pthread_mutex_unlock(&line.lock);
    weir_thread_join(&line.thread);
    atomic_store(&threads_left, 1000);
    EXPECT_INT_EQ(line.calls, RENEWALS);
    EXPECT_INT_EQ(line.refused, refused);
    EXPECT_INT_EQ(atomic_load(&line.at_exit), ended);
    EXPECT_INT_EQ(sigismember(&line.mask, SIGTERM), refused == 0);
    sem_destroy(&line.told);
    pthread_key_delete(key);
}

WEIR_TEST(Thread, AnotherGoesOn)
{
    expect_line(1000, 0, RENEWALS);
    expect_line(5, RENEWALS - 5, 6);
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
WORKERS_TEST(Workers, RunBesideEachOther)
{
    struct gate gates[4];
    EXPECT_INT_EQ(weir_workers_start(workers, 4), 4);
    for (int i = 0; i < 4; i++) {
        gate_init(&gates[i]);
        weir_workers_post(workers, &gates[i].task, WEIR_WORKERS_MAX);
    }
    for (int i = 0; i < 4; i++)
        EXPECT_INT_EQ(sem_wait(&gates[i].begun), 0);
    for (int i = 0; i < 4; i++)
        sem_post(&gates[i].open);
    for (int i = 0; i < 4; i++) {
        weir_workers_wait(workers, &gates[i].task);
        gate_finish(&gates[i]);
    }
}

// One thread is held at a gate, so what comes after it has not begun.
WORKERS_TEST(Workers, BeginInOrder)
{
    struct gate gate;
    static struct noted noted[TASKS];
    ASSERT_INT_EQ(weir_workers_start(workers, 1), 1);
    gate_init(&gate);
    weir_workers_post(workers, &gate.task, WEIR_WORKERS_MAX);
    ASSERT_INT_EQ(sem_wait(&gate.begun), 0);
    post_all(workers, noted, TASKS);
    weir_workers_wait(workers, &noted[TASKS - 1].task); // taken from the end of the list
    EXPECT_TRUE(pthread_equal(noted[TASKS - 1].thread, pthread_self()));
    weir_workers_wait(workers, &noted[7].task);
    sem_post(&gate.open);
    for (int i = 0; i < TASKS - 1; i++) {
        weir_workers_wait(workers, &noted[i].task);
        const int before = i < 7 ? 2 : 1;
        if (i != 7 && !pthread_equal(noted[i].thread, pthread_self()))
            EXPECT_INT_EQ(noted[i].number, i + before);
    }
    weir_workers_wait(workers, &gate.task);
    gate_finish(&gate);
}

// Two threads are asked for, and a third one stays asleep, so what is posted meanwhile is not begun.
WORKERS_TEST(Workers, NoMoreAreWokenThanAskedFor)
{
    struct gate gates[3];
    ASSERT_INT_EQ(weir_workers_start(workers, 3), 3);
    for (bool asleep = false; !asleep; sched_yield()) {
        weir_lock_take(&workers->lock);
        asleep = workers->awake == 0;
        weir_lock_release(&workers->lock);
    }
    for (int i = 0; i < 3; i++) {
        gate_init(&gates[i]);
        weir_workers_post(workers, &gates[i].task, 2);
    }
    EXPECT_INT_EQ(sem_wait(&gates[0].begun), 0);
    EXPECT_INT_EQ(sem_wait(&gates[1].begun), 0);
    weir_lock_take(&workers->lock);
    EXPECT_INT_EQ(workers->awake, 2);
    EXPECT_INT_EQ(gates[2].task.state, WEIR_TASK_POSTED);
    weir_lock_release(&workers->lock);
    for (int i = 0; i < 3; i++)
        sem_post(&gates[i].open);
    for (int i = 0; i < 3; i++) {
        weir_workers_wait(workers, &gates[i].task);
        gate_finish(&gates[i]);
    }
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
    struct gate gate;
    pthread_t stopper;
    ASSERT_INT_EQ(weir_workers_start(workers, 1), 1);
    gate_init(&gate);
    weir_workers_post(workers, &gate.task, WEIR_WORKERS_MAX);
    ASSERT_INT_EQ(sem_wait(&gate.begun), 0);
    ASSERT_INT_EQ(pthread_create(&stopper, NULL, stop, workers), 0);
    while (weir_workers_start(workers, 1) != 0)
        sched_yield();
    sem_post(&gate.open);
    pthread_join(stopper, NULL);
    EXPECT_INT_EQ(weir_workers_start(workers, 1), 1);
    weir_workers_wait(workers, &gate.task);
    gate_finish(&gate);
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
WORKERS_TEST(Workers, FaultsAreTheProgramsOwn)
{
    struct gate gate;
    struct sigaction before;
    struct weir_task task = {.run = write_guarded};
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(guarded != MAP_FAILED);
    task.user = guarded;
    ASSERT_INT_EQ(sigaction(SIGSEGV, &(struct sigaction){.sa_handler = unprotect}, &before), 0);
    ASSERT_INT_EQ(weir_workers_start(workers, 1), 1);
    gate_init(&gate);
    weir_workers_post(workers, &task, WEIR_WORKERS_MAX);
    weir_workers_post(workers, &gate.task,
                      WEIR_WORKERS_MAX); // begun after the task, by the thread
    ASSERT_INT_EQ(sem_wait(&gate.begun), 0);
    sem_post(&gate.open);
    weir_workers_wait(workers, &task);
    weir_workers_wait(workers, &gate.task);
    sigaction(SIGSEGV, &before, NULL);
    EXPECT_INT_EQ(faults, 1);
    EXPECT_INT_EQ(guarded[4095], 1);
    munmap(guarded, 4096);
    gate_finish(&gate);
}

WEIR_TEST(Workers, Processors)
{
    EXPECT_TRUE(weir_workers_processors() >= 1);
}
