// The order of locks is held to in builds that check it; this test is compiled as one.
#include "base/lock.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

static const struct weir_lock_kind outer_kind = {"the outer lock", 1};
static const struct weir_lock_kind inner_kind = {"the inner lock", 2};
static struct weir_lock outer = WEIR_LOCK_INITIALIZER(&outer_kind);
static struct weir_lock inner = WEIR_LOCK_INITIALIZER(&inner_kind);

// Runs `body` in a child process and stores what it wrote to standard error. Returns whether it
// was ended by abort().
static bool aborts(void (*body)(void), char *out_text, size_t size)
{
    int ends[2];
    int status = 0;
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        body();
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], out_text, size - 1);
    out_text[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void take_in_order(void)
{
    weir_lock_take(&outer);
    weir_lock_take(&inner);
    weir_lock_release(&outer); // not the reverse of how they were taken
    weir_lock_release(&inner);
    weir_lock_take(&outer);
    weir_lock_release(&outer);
    weir_lock_order_expect_none("the test ends");
}

static void take_against_order(void)
{
    weir_lock_take(&inner);
    weir_lock_take(&outer);
}

static void take_one_kind_twice(void)
{
    static struct weir_lock other = WEIR_LOCK_INITIALIZER(&outer_kind);
    weir_lock_take(&outer);
    weir_lock_take(&other);
}

static void hold_where_none_may_be(void)
{
    weir_lock_take(&inner);
    weir_lock_order_expect_none("a queue is finalized");
}

WEIR_TEST(LockOrder, EndsTheProcessWhereItIsBroken)
{
    static const struct {
        void (*body)(void);
        const char *told; // NULL: it goes on
    } rows[] = {
        {take_in_order, NULL},
        {take_against_order, "the outer lock is taken while the thread holds the inner lock"},
        {take_one_kind_twice, "the outer lock is taken while the thread holds the outer lock"},
        {hold_where_none_may_be, "a queue is finalized while the thread holds the inner lock"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        weir_test_note("row %zu", i);
        EXPECT_INT_EQ(aborts(rows[i].body, text, sizeof text), rows[i].told != NULL);
        if (rows[i].told)
            EXPECT_CONTAINS(text, rows[i].told);
        else
            EXPECT_STR_EQ(text, "");
    }
}
