// A rank of several processes, of which rank 1 fails in one way: `failing WAY`. measure.py starts it, and reads what
// it appends to the file FAILING_LOG, a line each: "at TIME" when rank 1 is about to fail, and "cause RANK TIME
// SENTENCE". Times are nanoseconds of the monotonic clock. FAILING_TIMEOUT is that of the communicator, in seconds.
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "base/clock.h"

enum {
    COUNT = 1 << 18, // elements: 1 MiB
    STEPS = 5,       // collectives of all ranks before the failure
    VICTIM = 1
};

#define MS UINT64_C(1000000)

static struct {
    struct weir_comm_params params;
    uint32_t number;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_comm *meeting; // made before, so that the timeout is not that of the ranks' start
    weir_comm *comm;
} it;

static const char *way;
static uint64_t timeout_ns;
static weir_runtime *runtime;

static bool is(const char *name)
{
    return strcmp(way, name) == 0;
}

// One line, by one write, so that those of other processes stay whole.
static void tell(const char *format, ...)
{
    FILE *file = fopen(getenv("FAILING_LOG"), "ae");
    va_list arguments;
    va_start(arguments, format);
    if (!file || vfprintf(file, format, arguments) < 0 || fclose(file) != 0)
        exit(4);
    va_end(arguments);
}

static void tell_cause(void)
{
    tell("cause %u %llu %s\n", it.number, (unsigned long long)weir_clock_now_ns(),
         weir_last_error_text());
}

static void check(weir_status status)
{
    if (status < 0) {
        tell_cause();
        exit(3);
    }
}

// Collectives.

static weir_status all_reduce(uint64_t count)
{
    return weir_queue_all_reduce(it.queue, it.comm, it.buffer, 0, it.buffer, 0, count, WEIR_F32,
                                 WEIR_SUM);
}

static weir_status broadcast(void)
{
    return weir_queue_broadcast(it.queue, it.comm, it.buffer, 0, it.buffer, 0, COUNT, WEIR_F32, 0);
}

// What `status` of a submit comes to.
static weir_status finished(weir_status status)
{
    return status < 0 ? status : weir_queue_sync(it.queue, WEIR_FOREVER);
}

// Until the communicator has failed, which some engines find out after a collective has ended. Rank 1 stays
// until the others have been told; a transport need not tell it, if it calls nothing.
static void await_cause(weir_status status)
{
    const uint64_t most_ns = (it.number == VICTIM ? 1000 : 20000) * MS;
    const uint64_t end_ns = weir_clock_now_ns() + timeout_ns + most_ns;
    while (status == WEIR_OK && weir_clock_now_ns() < end_ns) {
        status = weir_comm_error(it.comm);
        if (status == WEIR_OK)
            weir_clock_sleep_ns(MS / 5);
    }
    if (status < 0)
        tell_cause();
}

// Returns the status of rank 1's call; some ways do not return.
static weir_status misbehave(void)
{
    if (is("kill") || is("shrink"))
        raise(SIGKILL);
    if (is("stop"))
        raise(SIGSTOP);
    if (is("missing"))
        return WEIR_OK;
    if (is("skip"))
        return broadcast();
    if (is("count"))
        return all_reduce(COUNT / 2);
    if (is("kind"))
        return weir_queue_barrier(it.queue, it.comm);
    return weir_comm_abort(it.comm, "the loss is no number");
}

static void fail_as_victim(void)
{
    // The others wait in the collective meanwhile.
    if (!is("stop") && !is("missing"))
        weir_clock_sleep_ns(50 * MS);
    tell("at %llu\n", (unsigned long long)weir_clock_now_ns());
    await_cause(finished(misbehave()));
}

// With the ranks that are left.
static void shrink(void)
{
    weir_comm *left;
    check(weir_queue_recover(it.queue));
    check(weir_comm_shrink(it.comm, "left", &left));
    weir_comm_destroy(&it.comm);
    it.comm = left;
    check(finished(all_reduce(COUNT)));
    tell("cause %u %llu rank %u of %u goes on without one of 'grads'\n", it.number,
         (unsigned long long)weir_clock_now_ns(), weir_comm_rank(left), weir_comm_count(left));
}

static void go_on_as_other(void)
{
    weir_status status = finished(all_reduce(COUNT));
    if (status == WEIR_OK && is("skip"))
        status = finished(broadcast());
    if (status < 0 && is("shrink"))
        shrink();
    else
        await_cause(status);
}

// Ranks.

// Not before a timeout that is long enough for their start.
static void meet(void)
{
    if (timeout_ns >= 5000 * MS)
        return;
    struct weir_comm_params params = it.params;
    params.label = "meeting";
    params.timeout_ns = 100000 * MS;
    check(weir_comm_create(it.device, &params, &it.meeting));
}

static void run_rank(void)
{
    if (is("absent") && it.number == VICTIM) { // it never comes
        tell("at %llu\n", (unsigned long long)weir_clock_now_ns());
        weir_clock_sleep_ns(timeout_ns + 1000 * MS);
        return;
    }
    if (!is("absent"))
        meet();
    check(weir_comm_create(it.device, &it.params, &it.comm));
    for (int step = 1; step <= STEPS; step++)
        check(finished(all_reduce(COUNT)));
    check(finished(weir_queue_barrier(it.queue, it.comm)));
    if (it.number == VICTIM)
        fail_as_victim();
    else
        go_on_as_other();
}

static uint32_t number_of_process(void)
{
    static const char *const names[] = {"WEIR_COMM_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return (uint32_t)strtoul(getenv(names[i]), NULL, 10);
    return 0;
}

int main(int argc, char **argv)
{
    const char *seconds = getenv("FAILING_TIMEOUT");
    if (argc != 2 || !seconds || !getenv("FAILING_LOG")) {
        fprintf(stderr, "usage: FAILING_LOG=FILE FAILING_TIMEOUT=SECONDS failing WAY\n");
        return 2;
    }
    way = argv[1];
    timeout_ns = strtoull(seconds, NULL, 10) * 1000 * MS;
    it.number = number_of_process();
    it.params = (struct weir_comm_params){.struct_size = sizeof it.params,
                                          .label = "grads",
                                          .timeout_ns = timeout_ns};
    check(weir_open(NULL, &runtime));
    // Rank i has device i if LOCAL_RANK is set.
    char index[16];
    snprintf(index, sizeof index, "%u", it.number);
    const char *select = getenv("LOCAL_RANK") ? index : NULL;
    check(weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = select), &it.device));
    check(weir_queue_create(it.device, NULL, &it.queue));
    check(weir_buffer_create(it.device, WEIR_PARAMS(weir_buffer, .size = COUNT * 4), &it.buffer));
    run_rank();
    weir_comm_destroy(&it.comm);
    weir_comm_destroy(&it.meeting);
    weir_buffer_destroy(&it.buffer);
    weir_queue_destroy(&it.queue);
    WEIR_IGNORE(weir_device_close(&it.device));
    return weir_close(&runtime) < 0;
}
