// Host calls and native calls: what runs in them, and what they order.
#include "tests/races/race.h"

#include <semaphore.h>

// Work of a host function: `value` to all bytes of pinned memory, or a look at them.
struct task {
    struct race *race;
    weir_buffer *buffer;
    weir_queue *queue;
    weir_buffer *dst;
    int value;
    sem_t begin;
};

static weir_status wait_for_begin(void *user)
{
    struct task *task = user;

    while (sem_wait(&task->begin) != 0)
        continue;
    return WEIR_OK;
}

static weir_status write_bytes(void *user)
{
    struct task *task = user;
    void *bytes;

    wait_for_begin(task);
    must(weir_host_begin(task->buffer, 0, SIZE, WEIR_ACCESS_WRITE, &bytes)); // second
    memset(bytes, task->value, SIZE);
    must(weir_host_end(task->buffer, 0, SIZE, WEIR_ACCESS_WRITE));
    return WEIR_OK;
}

// A host call makes the next input while another queue still copies the last one.
RACE(host_call_writes_too_early, HOST_WRITE)
{
    struct task task = {.buffer = in, .value = 9};

    sem_init(&task.begin, 0, 0);
    must(weir_queue_copy(two, b, 0, in, 0, SIZE)); // first
    mend(race, one, two);
    must(weir_queue_host_call(one, write_bytes, &task));
    sem_post(&task.begin);
    race_expect(race, b, 0, SIZE, 7);
    sem_destroy(&task.begin);
}

static weir_status look_at_bytes(void *user)
{
    struct task *task = user;
    void *bytes;

    wait_for_begin(task);
    must(weir_host_begin(task->buffer, 0, SIZE, WEIR_ACCESS_READ, &bytes)); // second
    race_saw(task->race, all_bytes(bytes, SIZE, task->value));
    must(weir_host_end(task->buffer, 0, SIZE, WEIR_ACCESS_READ));
    return WEIR_OK;
}

// The callback is on the wrong queue: nothing there comes after the copy.
RACE(callback_on_the_wrong_queue, HOST_READ)
{
    struct task task = {.race = race, .buffer = out, .value = 7};

    sem_init(&task.begin, 0, 0);
    must(weir_queue_copy(two, out, 0, a, 0, SIZE)); // first
    must(weir_queue_host_call(race->mended ? two : one, look_at_bytes, &task));
    sem_post(&task.begin);
    if (!race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    must(weir_queue_sync(two, WEIR_FOREVER));
    sem_destroy(&task.begin);
}

static weir_status submit_copy(void *user)
{
    struct task *task = user;

    must(weir_queue_copy(task->queue, task->dst, 0, task->buffer, 0, SIZE)); // second
    return WEIR_OK;
}

// A host function may submit work. What came before the host call in its queue is done then, and
// what another queue does is not.
RACE(host_call_submits_a_copy, READ_AFTER_WRITE)
{
    struct task task = {.buffer = b, .queue = three, .dst = c};

    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_host_call(race->mended ? one : two, submit_copy, &task));
    must(weir_queue_sync(race->mended ? one : two, WEIR_FOREVER));
    race_expect(race, c, 0, SIZE, 7);
}

static weir_status do_nothing(void *user)
{
    return WEIR_OK;
}

// A host call orders its own queue only. None runs before all is submitted: what comes before a
// host call that has run is known to the program, as far as can be seen.
RACE(host_call_between_two_queues, WRITE_AFTER_WRITE)
{
    struct task task = {.buffer = b};

    sem_init(&task.begin, 0, 0);
    must(weir_queue_host_call(one, wait_for_begin, &task));
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    must(weir_queue_host_call(one, do_nothing, NULL));
    mend(race, two, one);
    must(weir_queue_fill(two, b, 0, SIZE, &nine, 1)); // second
    sem_post(&task.begin);
    race_expect(race, b, 0, SIZE, 9);
    sem_destroy(&task.begin);
}

static weir_status submit_nothing(const struct weir_native_queue *native, void *user)
{
    return WEIR_OK;
}

// The work of another library, by the buffers that the program names.
RACE(native_call_reads_too_early, READ_AFTER_WRITE, .native = true,
     .steady = "the native call of this program submits no work")
{
    must(weir_queue_copy(one, b, 0, in, 0, SIZE)); // first
    mend(race, two, one);
    must(weir_queue_native(two, submit_nothing, NULL, weir_in(b, 0, SIZE), // second
                           weir_out(c, 0, SIZE)));
}

RACE(native_call_is_overwritten, WRITE_AFTER_WRITE, .native = true,
     .steady = "the native call of this program submits no work")
{
    must(weir_queue_native(one, submit_nothing, NULL, weir_out(b, 0, SIZE))); // first
    mend(race, two, one);
    must(weir_queue_fill(two, b, 0, SIZE, &nine, 1)); // second
}
