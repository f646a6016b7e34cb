#include "tests/abi/frozen/cuda/base/barrier.h"

#include <linux/membarrier.h>
#include <pthread.h>
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

void weir_barrier_heavy(void)
{
    if (weir_barrier_is_shared)
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    else
        weir_barrier_full();
}
