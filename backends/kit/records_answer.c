// What is answered about records: whether they are complete, and their times.
#include <inttypes.h>
#include <weir/module/error.h>

#include "backends/kit/records_parts.h"
#include "base/clock.h"

static weir_status report(weir_kit_records *records, enum weir_kit_question question, int code,
                          uint64_t sequence)
{
    return records->ops->report(records->queue, question, code, sequence);
}

static weir_status report_failure(weir_kit_records *records, uint64_t sequence)
{
    weir_biased_lock_take(&records->lock);
    const uint64_t failed = atomic_load_explicit(&records->failed, memory_order_relaxed);
    const int code = records->failed_code;
    weir_biased_lock_release(&records->lock);
    if (failed == 0 || failed > sequence)
        return WEIR_OK;
    return report(records, WEIR_KIT_WORKED, code, failed);
}

// The result for a complete record.
static weir_status answer_complete(weir_kit_records *records, uint64_t sequence)
{
    if (atomic_load_explicit(&records->failed, memory_order_acquire) == 0)
        return WEIR_OK;
    return report_failure(records, sequence);
}

static weir_status take_answer(weir_kit_records *records, enum weir_kit_state state, int code,
                               enum weir_kit_question question, uint64_t sequence)
{
    if (state == WEIR_KIT_PENDING)
        return WEIR_NOT_READY;
    if (state == WEIR_KIT_UNKNOWN)
        return report(records, question, code, sequence);
    if (state == WEIR_KIT_FAILED) {
        weir_biased_lock_take(&records->lock);
        weir__kit_note_failure(records, sequence, code);
        weir_biased_lock_release(&records->lock);
    }
    weir__kit_note_complete(records, sequence);
    return answer_complete(records, sequence);
}

static weir_status query_one(weir_kit_records *records, uint64_t sequence)
{
    int code = 0;
    struct weir_kit_event *event = weir_kit_records_hold(records, sequence);
    if (!event)
        return answer_complete(records, sequence);
    const enum weir_kit_state state = records->ops->query(records->queue, event->native, &code);
    weir_kit_records_release(records, event);
    return take_answer(records, state, code, WEIR_KIT_ASKED, sequence);
}

static weir_status query_each(weir_kit_records *records, uint64_t sequence)
{
    weir_biased_lock_take(&records->lock);
    weir__kit_ask_each(records, SIZE_MAX);
    const size_t known = weir__kit_count_known(records);
    const size_t index = weir__kit_find_record(records, sequence);
    const bool complete = index < known || index == records->count;
    const enum weir_kit_state state = records->asked;
    const int code = records->asked_code;
    weir__kit_take_back(records, known);
    weir_biased_lock_release(&records->lock);
    if (complete)
        return answer_complete(records, sequence);
    return take_answer(records, state, code, WEIR_KIT_ASKED, sequence);
}

weir_status weir_kit_records_query(weir_kit_records *records, uint64_t sequence)
{
    if (weir_kit_records_completed(records) >= sequence)
        return answer_complete(records, sequence);
    return records->asks_each ? query_each(records, sequence) : query_one(records, sequence);
}

static weir_status poll_until(weir_kit_records *records, uint64_t sequence, uint64_t timeout_ns)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    for (;;) {
        weir_status status = weir_kit_records_query(records, sequence);
        if (status != WEIR_NOT_READY)
            return status;
        if (!weir_clock_pause(start_ns, timeout_ns, &pause_ns))
            return WEIR_TIMEOUT;
    }
}

// Some drivers return from the wait a moment before the event reads complete, so where each record
// has to be queried, they are queried after the wait too.
static weir_status wait_in_driver(weir_kit_records *records, uint64_t sequence)
{
    int code = 0;
    struct weir_kit_event *event = weir_kit_records_hold(records, sequence);
    if (!event)
        return weir_kit_records_query(records, sequence);
    const enum weir_kit_state state = records->ops->wait(records->queue, event->native, &code);
    weir_kit_records_release(records, event);
    if (state != WEIR_KIT_UNKNOWN && records->asks_each)
        return poll_until(records, sequence, WEIR_FOREVER);
    return take_answer(records, state, code, WEIR_KIT_WAITED, sequence);
}

weir_status weir_kit_records_wait(weir_kit_records *records, uint64_t sequence, uint64_t timeout_ns)
{
    if (timeout_ns == WEIR_FOREVER && records->ops->wait)
        return wait_in_driver(records, sequence);
    return poll_until(records, sequence, timeout_ns);
}

// Searches the kept times, which are in the order of their records. Under the lock.
static bool find_time(const weir_kit_records *records, uint64_t sequence,
                      struct record_time *out_time)
{
    const uint64_t end = records->converted;
    uint64_t low = records->recorded > records->history ? records->recorded - records->history : 0;
    uint64_t high = end;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (weir__kit_time_at(records, middle)->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= end || weir__kit_time_at(records, low)->sequence != sequence)
        return false;
    *out_time = *weir__kit_time_at(records, low);
    return true;
}

weir_status weir_kit_records_time(weir_kit_records *records, uint64_t sequence,
                                  uint64_t *out_time_ns)
{
    struct record_time time = {0};
    *out_time_ns = 0;
    if (records->history == 0)
        return weir_host_fail(records->host, WEIR_ERROR_INVALID, "create the queue with timing",
                              "the queue takes no times");
    weir_status status = weir_kit_records_query(records, sequence);
    if (status != WEIR_OK)
        return status;
    weir_biased_lock_take(&records->lock);
    const size_t index = weir__kit_find_record(records, sequence);
    weir__kit_convert(records, index < records->count ? index + 1 : records->count);
    const bool found = find_time(records, sequence, &time);
    weir_biased_lock_release(&records->lock);
    *out_time_ns = time.time_ns;
    if (found && time.code != 0)
        return report(records, WEIR_KIT_TIMED, time.code, sequence);
    if (found)
        return WEIR_OK;
    return weir_host_fail(records->host, WEIR_ERROR_EXPIRED, "read times sooner",
                          "the time of operation %" PRIu64
                          " is not kept; a queue keeps its last %u",
                          sequence, (unsigned)records->history);
}

weir_status weir_kit_records_settle(weir_kit_records *records)
{
    weir_biased_lock_take(&records->lock);
    const uint64_t last = records->count > 0
                              ? weir__kit_record_at(records, records->count - 1)->sequence
                              : UINT64_MAX;
    weir_biased_lock_release(&records->lock);
    weir_status status = weir_kit_records_query(records, last);
    atomic_store_explicit(&records->failed, 0, memory_order_relaxed);
    return status == WEIR_NOT_READY ? WEIR_OK : status;
}
