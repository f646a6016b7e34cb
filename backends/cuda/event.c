// A record is a native event, which is kept in a ring until it is known to be
// complete and then used again. Records of a stream complete in order, so one or
// two questions tell how much of the ring is complete, and they are only asked when
// there is no free event left: every few hundred records.
//
// Only the thread that submits takes marks and gives them back, so that side needs
// no lock. Other threads hold a mark by its count of users while they ask the
// driver about it; a held mark, and what lies behind it, stays in the ring.
#include <inttypes.h>
#include <string.h>

#include "backends/cuda/cu.h"
#include "base/clock.h"

// The driver takes about a thousand operations before a submit blocks, so a ring
// of this size rarely grows.
#define RECORDS_AT_FIRST 2048
// Rare enough for the questions to cost a record a few nanoseconds.
#define REAP_AT_FIRST 256

struct cu_mark_block {
    struct cu_mark_block *next;
    size_t count; // marks whose event exists
    size_t capacity;
    struct cu_mark marks[];
};

static struct cu_record *record_at(const struct cu_queue *queue, size_t index)
{
    return &queue->records[(queue->first + index) & (queue->capacity - 1)];
}

static bool add_marks(struct cu_queue *queue, size_t capacity)
{
    struct cu_mark_block *block =
        queue->device->module->host->allocate(sizeof *block + capacity * sizeof block->marks[0]);
    if (!block)
        return false;
    block->capacity = capacity;
    block->next = queue->mark_blocks;
    queue->mark_blocks = block;
    return true;
}

weir_status cu_records_init(struct cu_queue *queue)
{
    const struct weir_host *host = queue->device->module->host;
    queue->records = host->allocate(RECORDS_AT_FIRST * sizeof *queue->records);
    if (queue->timing)
        queue->times = host->allocate(CU_TIMING_HISTORY * sizeof *queue->times);
    if (!queue->records || (queue->timing && !queue->times) || !add_marks(queue, RECORDS_AT_FIRST))
        return weir_host_no_memory(host, "the records of a queue");
    queue->capacity = RECORDS_AT_FIRST;
    queue->reap_at = REAP_AT_FIRST;
    return WEIR_OK;
}

void cu_records_finish(struct cu_queue *queue)
{
    const struct cu_module *module = queue->device->module;
    while (queue->mark_blocks) {
        struct cu_mark_block *block = queue->mark_blocks;
        queue->mark_blocks = block->next;
        for (size_t i = 0; i < block->count; i++)
            module->cu.cuEventDestroy(block->marks[i].event);
        module->host->release(block);
    }
    module->host->release(queue->records);
    module->host->release(queue->times);
}

// Raises what is known to be complete.
static void note_complete(struct cu_queue *queue, uint64_t sequence)
{
    uint64_t known = atomic_load_explicit(&queue->completed, memory_order_relaxed);
    while (known < sequence &&
           !atomic_compare_exchange_weak_explicit(&queue->completed, &known, sequence,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

static bool known_complete(const struct cu_queue *queue, uint64_t sequence)
{
    return atomic_load_explicit(&queue->completed, memory_order_acquire) >= sequence;
}

// The index of the first record at or behind `sequence`, or the count. Under the lock.
static size_t find_record(const struct cu_queue *queue, uint64_t sequence)
{
    size_t low = 0;
    size_t high = queue->count;
    // A wait is mostly for the latest.
    if (high > 1 && record_at(queue, high - 1)->sequence == sequence)
        return high - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (record_at(queue, middle)->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Holds the mark of a record, or returns NULL when the record is complete.
static struct cu_mark *hold(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_mark *mark = NULL;
    if (known_complete(queue, sequence))
        return NULL;
    weir_biased_lock_take(&queue->lock);
    const size_t index = find_record(queue, sequence);
    if (index < queue->count) {
        mark = record_at(queue, index)->mark;
        mark->users++;
    }
    weir_biased_lock_release(&queue->lock);
    return mark;
}

static void let_go(struct cu_queue *queue, struct cu_mark *mark)
{
    weir_biased_lock_take(&queue->lock);
    mark->users--;
    weir_biased_lock_release(&queue->lock);
}

CUevent cu_records_end(struct cu_queue *queue)
{
    CUevent end = NULL;
    weir_biased_lock_take(&queue->lock);
    if (queue->count > 0) {
        struct cu_mark *mark = record_at(queue, queue->count - 1)->mark;
        mark->users++;
        end = mark->event;
    }
    weir_biased_lock_release(&queue->lock);
    return end;
}

// Times.

// Converts the first `count` records of the ring that are not yet converted, all
// of them complete. Times of a queue never fall, although neighbours may be
// measured from different anchors. Under the queue's lock.
static weir_status convert(struct cu_queue *queue, size_t count)
{
    const uint64_t first = queue->recorded - queue->count; // number of the ring's first
    for (; queue->converted < first + count; queue->converted++) {
        const struct cu_record *record = record_at(queue, (size_t)(queue->converted - first));
        const uint64_t before =
            queue->converted ? queue->times[(queue->converted - 1) % CU_TIMING_HISTORY].time_ns : 0;
        uint64_t time_ns;
        weir_status status =
            cu_timeline_convert(queue->device, record->mark->event,
                                queue->converted_mark ? queue->converted_mark->event : NULL, before,
                                &time_ns);
        if (status < 0)
            return status;
        queue->times[queue->converted % CU_TIMING_HISTORY] =
            (struct cu_time){record->sequence, time_ns > before ? time_ns : before};
        queue->converted_mark = record->mark;
    }
    return WEIR_OK;
}

// Taking marks back.

static bool is_complete(const struct cu_queue *queue, size_t index)
{
    return queue->device->module->cu.cuEventQuery(record_at(queue, index)->mark->event) ==
           CUDA_SUCCESS;
}

// How many records at the front are known to be complete. Under the lock. The
// driver is asked only where nothing is known, and twice at most: a question costs
// 1.2 µs on an H200, ten times what a record does.
static size_t count_complete(const struct cu_queue *queue)
{
    static const size_t quarters[] = {3, 1};
    const uint64_t known = atomic_load_explicit(&queue->completed, memory_order_relaxed);
    const size_t complete = find_record(queue, known + 1);
    // The last complete one of a timed queue is not taken back.
    if (complete > (queue->timing ? 1 : 0))
        return complete;
    for (size_t i = 0; i < 2 && queue->count > 0; i++) {
        const size_t asked = queue->count * quarters[i] / 4;
        if (is_complete(queue, asked))
            return asked + 1;
    }
    return complete;
}

// Takes marks of complete records back, up to the first that is held. The last
// converted one of a timed queue stays, to measure its successor from.
static weir_status reap(struct cu_queue *queue)
{
    weir_status status = WEIR_OK;
    weir_biased_lock_take(&queue->lock);
    size_t complete = count_complete(queue);
    if (complete > 0)
        note_complete(queue, record_at(queue, complete - 1)->sequence);
    if (queue->timing) {
        status = convert(queue, complete);
        complete = complete > 0 ? complete - 1 : 0;
    }
    while (complete > 0 && status == WEIR_OK) {
        struct cu_mark *mark = record_at(queue, 0)->mark;
        if (mark->users > 0)
            break;
        mark->next_free = queue->free_marks;
        queue->free_marks = mark;
        queue->first = (queue->first + 1) & (queue->capacity - 1);
        queue->count--;
        complete--;
    }
    const size_t left = queue->count;
    weir_biased_lock_release(&queue->lock);
    queue->reap_at = 2 * left > REAP_AT_FIRST ? 2 * left : REAP_AT_FIRST;
    return status;
}

static weir_status create_mark(struct cu_queue *queue, struct cu_mark **out_mark)
{
    struct cu_device *device = queue->device;
    const unsigned timing = queue->timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    const unsigned blocking = device->module->spin ? CU_EVENT_DEFAULT : CU_EVENT_BLOCKING_SYNC;
    struct cu_mark_block *block = queue->mark_blocks;
    if (block->count == block->capacity) {
        if (!add_marks(queue, block->capacity))
            return weir_host_no_memory(device->module->host, "the records of a queue");
        block = queue->mark_blocks;
    }
    struct cu_mark *mark = &block->marks[block->count];
    CUresult code = device->module->cu.cuEventCreate(&mark->event, timing | blocking);
    if (code != CUDA_SUCCESS)
        return cu_native_error(device, "cuEventCreate", code, "record");
    block->count++;
    *out_mark = mark;
    return WEIR_OK;
}

static weir_status take_mark(struct cu_queue *queue, struct cu_mark **out_mark)
{
    weir_status status = WEIR_OK;
    // Only the submitter moves the ring's ends.
    if (!queue->free_marks && queue->count > 0 &&
        (queue->count >= queue->reap_at || known_complete(queue, record_at(queue, 0)->sequence)))
        status = reap(queue);
    if (status < 0)
        return status;
    if (!queue->free_marks)
        return create_mark(queue, out_mark);
    *out_mark = queue->free_marks;
    queue->free_marks = queue->free_marks->next_free;
    return WEIR_OK;
}

// Doubles the ring. Under the lock.
static bool grow(struct cu_queue *queue)
{
    const struct weir_host *host = queue->device->module->host;
    struct cu_record *records = host->allocate(2 * queue->capacity * sizeof *records);
    if (!records)
        return false;
    for (size_t i = 0; i < queue->count; i++)
        records[i] = *record_at(queue, i);
    host->release(queue->records);
    queue->records = records;
    queue->capacity *= 2;
    queue->first = 0;
    return true;
}

static bool append(struct cu_queue *queue, uint64_t sequence, struct cu_mark *mark)
{
    weir_biased_lock_take(&queue->lock);
    const bool fits = queue->count < queue->capacity || grow(queue);
    if (fits) {
        *record_at(queue, queue->count) = (struct cu_record){sequence, mark};
        queue->count++;
        queue->recorded++;
    }
    weir_biased_lock_release(&queue->lock);
    return fits;
}

// The driver may block in cuEventRecord when its queue is full, so no lock is held.
weir_status cu_submit_record(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_device *device = queue->device;
    struct cu_mark *mark = NULL;
    if (queue->timing)
        cu_timeline_advance(device);
    weir_status status = take_mark(queue, &mark);
    if (!mark)
        return status;
    CUresult code = device->module->cu.cuEventRecord(mark->event, queue->stream);
    if (code == CUDA_SUCCESS && append(queue, sequence, mark))
        return WEIR_OK;
    mark->next_free = queue->free_marks;
    queue->free_marks = mark;
    return code == CUDA_SUCCESS
               ? weir_host_no_memory(device->module->host, "the records of a queue")
               : cu_native_error(device, "cuEventRecord", code, "record");
}

weir_status cu_submit_wait(struct cu_queue *queue, struct cu_queue *producer, uint64_t sequence)
{
    struct cu_mark *mark = hold(producer, sequence);
    if (!mark)
        return WEIR_OK;
    CUresult code = queue->device->module->cu.cuStreamWaitEvent(queue->stream, mark->event, 0);
    let_go(producer, mark);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuStreamWaitEvent", code, "wait");
}

// Waiting on the host.

static weir_status answer(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_mark *mark = hold(queue, sequence);
    if (!mark)
        return WEIR_OK;
    CUresult code = queue->device->module->cu.cuEventQuery(mark->event);
    let_go(queue, mark);
    if (code == CUDA_ERROR_NOT_READY)
        return WEIR_NOT_READY;
    if (code != CUDA_SUCCESS)
        return cu_native_error(queue->device, "cuEventQuery", code,
                               "ask whether operation %" PRIu64 " is complete", sequence);
    note_complete(queue, sequence);
    return WEIR_OK;
}

weir_status cu_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    if (known_complete(queue, sequence))
        return WEIR_OK;
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    status = answer(queue, sequence);
    cu_leave(queue->device, &scope);
    return status;
}

// CUDA has no wait with a timeout, so this asks, with pauses that grow to 1 ms.
static weir_status poll_until(struct cu_queue *queue, uint64_t sequence, uint64_t timeout_ns)
{
    const uint64_t start = weir_clock_now_ns();
    for (uint64_t pause_ns = 2000;; pause_ns = pause_ns < 500000 ? 2 * pause_ns : 1000000) {
        weir_status status = answer(queue, sequence);
        if (status != WEIR_NOT_READY)
            return status;
        const uint64_t passed_ns = weir_clock_now_ns() - start;
        if (passed_ns >= timeout_ns)
            return WEIR_TIMEOUT;
        const uint64_t left_ns = timeout_ns - passed_ns;
        weir_clock_sleep_ns(pause_ns < left_ns ? pause_ns : left_ns);
    }
}

static weir_status wait_for_ever(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_mark *mark = hold(queue, sequence);
    if (!mark)
        return WEIR_OK;
    CUresult code = queue->device->module->cu.cuEventSynchronize(mark->event);
    let_go(queue, mark);
    if (code != CUDA_SUCCESS)
        return cu_native_error(queue->device, "cuEventSynchronize", code,
                               "wait for operation %" PRIu64, sequence);
    note_complete(queue, sequence);
    return WEIR_OK;
}

weir_status cu_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t timeout_ns)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    status = timeout_ns == WEIR_FOREVER ? wait_for_ever(queue, sequence)
                                        : poll_until(queue, sequence, timeout_ns);
    if (status == WEIR_OK)
        cu_idle_settle(queue->device);
    cu_leave(queue->device, &scope);
    return status;
}

// Looks among the kept times, which are in order of their records. Under the lock.
static bool find_time(const struct cu_queue *queue, uint64_t sequence, uint64_t *out_time_ns)
{
    const uint64_t end = queue->converted;
    uint64_t low = queue->recorded > CU_TIMING_HISTORY ? queue->recorded - CU_TIMING_HISTORY : 0;
    uint64_t high = end;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (queue->times[middle % CU_TIMING_HISTORY].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= end || queue->times[low % CU_TIMING_HISTORY].sequence != sequence)
        return false;
    *out_time_ns = queue->times[low % CU_TIMING_HISTORY].time_ns;
    return true;
}

static weir_status read_time(struct cu_queue *queue, uint64_t sequence, bool *out_found,
                             uint64_t *out_time_ns)
{
    weir_biased_lock_take(&queue->lock);
    const size_t index = find_record(queue, sequence);
    weir_status status = convert(queue, index < queue->count ? index + 1 : queue->count);
    *out_found = status == WEIR_OK && find_time(queue, sequence, out_time_ns);
    weir_biased_lock_release(&queue->lock);
    return status;
}

weir_status cu_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                          uint64_t *out_time_ns)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    const struct weir_host *host = queue->device->module->host;
    struct cu_scope scope;
    bool found = false;
    if (!queue->timing)
        return weir_host_fail(host, WEIR_ERROR_INVALID, "create the queue with timing",
                              "the queue takes no times");
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    status = answer(queue, sequence);
    if (status == WEIR_OK)
        status = read_time(queue, sequence, &found, out_time_ns);
    cu_leave(queue->device, &scope);
    if (status != WEIR_OK || found)
        return status;
    return weir_host_fail(host, WEIR_ERROR_EXPIRED, "read times sooner",
                          "the time of operation %" PRIu64
                          " is not kept; a queue keeps its last %d",
                          sequence, CU_TIMING_HISTORY);
}
