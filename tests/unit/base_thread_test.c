// Threads that the program's code ends go on with their work.
#include "base/thread.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/support/test.h"

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

// Another thread in the place of each that is ended.

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
