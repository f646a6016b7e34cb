// One rank of a program in several processes: `rank STEPS` reduces STEPS times, and prints what came out, or why it did
// not. Ranks that fail are in tests/bench/failures.
#include "tests/comm/local_device.h"

enum {
    N = 5000
};

static float numbers[N];

// Each step multiplies by the count of ranks.
static void run(const struct local *local, weir_comm *comm, long steps)
{
    weir_queue *queue = local->queue;
    weir_buffer *buffer = local->buffer;
    check(weir_upload(queue, buffer, 0, numbers, sizeof numbers));
    for (long step = 1; step <= steps; step++) {
        check(weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, N, WEIR_F32, WEIR_SUM));
        check(weir_queue_sync(queue, WEIR_FOREVER));
    }
    check(weir_download(queue, numbers, buffer, 0, sizeof numbers));
    printf("rank %u of %u: %g\n", weir_comm_rank(comm), weir_comm_count(comm),
           (double)numbers[N - 1]);
}

int main(int argc, char **argv)
{
    struct local local;
    weir_comm *comm;
    for (int i = 0; i < N; i++)
        numbers[i] = 1;
    local_open(&local, sizeof numbers);
    check(weir_comm_create(local.device, WEIR_PARAMS(weir_comm, .label = "grads"), &comm));
    run(&local, comm, argc > 1 ? strtol(argv[1], NULL, 10) : 1);
    weir_comm_destroy(&comm);
    local_close(&local);
    return 0;
}
