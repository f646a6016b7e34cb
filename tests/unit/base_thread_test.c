// Threads of the library.
#include "base/thread.h"

#include <signal.h>
#include <stdbool.h>

#include "tests/support/test.h"

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
    ASSERT_INT_EQ(weir_thread_start_known(&seen.thread, look, &seen), 0);
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
