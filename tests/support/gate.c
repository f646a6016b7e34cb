// Futexes, which need nothing that must be made or destroyed.
#define _DEFAULT_SOURCE // syscall()

#include "tests/support/gate.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// False if nothing has changed for two minutes.
static bool reaches(atomic_uint *word, unsigned least)
{
    const struct timespec guard = {.tv_sec = 120};
    for (unsigned seen; (seen = *word) < least;)
        if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &guard, NULL, 0) != 0 &&
            errno == ETIMEDOUT)
            return false;
    return true;
}

weir_status gate_pass(void *user)
{
    struct gate *gate = user;
    atomic_fetch_add(&gate->entered, 1);
    wake_all(&gate->entered);
    return reaches(&gate->is_open, 1) ? gate->status : WEIR_ERROR_HOST_CALL;
}

void gate_open(struct gate *gate)
{
    gate->is_open = 1;
    wake_all(&gate->is_open);
}

void gate_shut(struct gate *gate)
{
    gate->is_open = 0;
    gate->entered = 0;
}

bool gate_await(struct gate *gate, unsigned count)
{
    return reaches(&gate->entered, count);
}
