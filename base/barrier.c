#include "base/barrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool weir_barrier_is_shared;

static pthread_once_t once = PTHREAD_ONCE_INIT;

// syscall() is declared with more than POSIX only.
long syscall(long number, ...);

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

static void register_process(void)
{
    weir_barrier_is_shared = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void weir_barrier_init(void)
{
    pthread_once(&once, register_process);
}

// Not a fence: the thread sanitizer knows none.
void weir_barrier_full(void)
{
    static atomic_uint turn;
    atomic_fetch_add_explicit(&turn, 1, memory_order_seq_cst);
}

// The frequent side of other threads has no barrier of its own, so going on could lose a wake-up or
// free memory in use.
static _Noreturn void end_program(int error)
{
    fprintf(
        stderr,
        "weir: the kernel refuses membarrier(2) now, which it allowed when the library was "
        "first used: %s; let filters of system calls (seccomp) pass it, or install them before\n",
        strerror(error));
    abort();
}

void weir_barrier_heavy(void)
{
    if (!weir_barrier_is_shared)
        weir_barrier_full();
    else if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
        end_program(errno);
}
