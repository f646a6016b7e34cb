// One rank of a program that outlives the deaths of others: `again STEPS EVERY`. Rank 1 ends with SIGKILL
// every EVERY steps, and the shell that runs this starts it again; the other ranks make a new communicator
// then, and all go on with the step that was not finished. Each step's result is checked, and none is
// left out.
#include <signal.h>

#include "tests/comm/local_device.h"

enum {
    N = 3000
};

struct rank {
    struct local local;
    weir_comm *comm;
    int32_t step;  // the next one
    int32_t begun; // the first of this communicator
    unsigned communicators;
};

static int32_t numbers[N];

// Sums `value` of all ranks, or takes the largest. The communicator's failure is returned.
static weir_status reduce(const struct rank *it, int32_t value, weir_reduction reduction)
{
    for (int i = 0; i < N; i++)
        numbers[i] = value;
    check(weir_upload(it->local.queue, it->local.buffer, 0, numbers, sizeof numbers));
    weir_status status = weir_queue_all_reduce(it->local.queue, it->comm, it->local.buffer, 0,
                                               it->local.buffer, 0, N, WEIR_I32, reduction);
    if (status == WEIR_OK)
        status = weir_queue_sync(it->local.queue, WEIR_FOREVER);
    if (status == WEIR_OK)
        check(weir_download(it->local.queue, numbers, it->local.buffer, 0, sizeof numbers));
    return status;
}

// A new communicator, in which a rank that was started again learns the step of the others.
static void meet(struct rank *it)
{
    for (;;) {
        check(weir_comm_create(it->local.device, WEIR_PARAMS(weir_comm, .label = "again"),
                               &it->comm));
        it->communicators++;
        if (reduce(it, it->step, WEIR_MAXIMUM) == WEIR_OK)
            break;
        check(weir_queue_recover(it->local.queue));
        weir_comm_destroy(&it->comm);
    }
    it->step = it->begun = numbers[0];
}

static void expect_sum(const struct rank *it)
{
    const int32_t count = (int32_t)weir_comm_count(it->comm);
    const int32_t expected = count * (count - 1) / 2 + count * it->step;
    for (int i = 0; i < N; i++)
        if (numbers[i] != expected) {
            printf("step %d: %d in place of %d\n", (int)it->step, (int)numbers[i], (int)expected);
            exit(4);
        }
}

static void run(struct rank *it, int32_t steps, int32_t every)
{
    meet(it);
    while (it->step < steps) {
        const uint32_t own = weir_comm_rank(it->comm);
        if (own == 1 && it->step % every == 0 && it->step != it->begun)
            raise(SIGKILL);
        if (reduce(it, (int32_t)own + it->step, WEIR_SUM) == WEIR_OK) {
            expect_sum(it);
            it->step++;
            continue;
        }
        check(weir_queue_recover(it->local.queue));
        weir_comm_destroy(&it->comm);
        meet(it);
    }
    printf("rank %u of %u: %d steps, %u communicators\n", weir_comm_rank(it->comm),
           weir_comm_count(it->comm), (int)it->step, it->communicators);
}

int main(int argc, char **argv)
{
    struct rank it = {.step = 0};
    local_open(&it.local, sizeof numbers);
    run(&it, argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 10,
        argc > 2 ? (int32_t)strtol(argv[2], NULL, 10) : 5);
    weir_comm_destroy(&it.comm);
    local_close(&it.local);
    return 0;
}
