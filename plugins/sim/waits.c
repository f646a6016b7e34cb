// What the host waits for and asks, in virtual time: a wait first waits for the next link, where the work
// really runs.
#include "plugins/sim/sim.h"

static void wait_for(struct sim *sim, struct sim_point point, uint64_t cost_ns)
{
    if (sim_engine_complete(sim->engine, point) || sim_rest(sim, point, cost_ns))
        return;
    sim_engine_wait(sim->engine, point);
    struct sim_thread *self = sim_self(sim);
    sim_begin_round(sim, sim_end_of_wait(sim, self, cost_ns));
    self->round = sim->round;
}

// Nothing if the record is gone, as it was complete then.
static void wait_for_record(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t cost_ns)
{
    const struct sim_record *record = sim_record_find(queue, sequence);
    if (!record)
        return;
    sim_wait_until(queue->sim, record->submit_ns);
    wait_for(queue->sim, record->point, cost_ns);
    record = sim_record_find(queue, sequence);
    if (record)
        sim_wait_until(queue->sim, record->end_ns);
}

weir_status sim_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    const uint64_t cost_ns = queue->sim->model->wait_ns;
    sim_enter(queue->sim);
    sim_go(queue->sim);
    const weir_status status =
        link->next->ops->event_wait(link->next, object, sequence, timeout_ns);
    sim_return(queue->sim);
    if (status == WEIR_OK) {
        wait_for_record(queue, sequence, cost_ns);
        sim_spend(queue->sim, cost_ns);
    }
    sim_leave(queue->sim);
    return status;
}

// The library asks too, each time for another record. A program that asks until one is complete asks
// for it again, and has waited for it then. Other threads' waits may have brought the engine to a later
// time than the thread's.
static bool is_complete(struct sim_virtual_queue *queue, uint64_t sequence)
{
    struct sim *sim = queue->sim;
    struct sim_record *record = sim_record_find(queue, sequence);
    if (!record)
        return true;
    sim_wait_until(sim, record->submit_ns);
    sim_catch_up(sim, sim_self(sim)->now_ns);
    if (record->complete && record->end_ns <= sim_self(sim)->now_ns)
        return true;
    const bool again = record->asked;
    record->asked = true;
    if (again)
        wait_for_record(queue, sequence, 0);
    return again;
}

weir_status sim_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    const weir_status status = link->next->ops->event_query(link->next, object, sequence);
    if (status != WEIR_OK)
        return status;
    sim_enter(queue->sim);
    const bool complete = is_complete(queue, sequence);
    sim_leave(queue->sim);
    return complete ? WEIR_OK : WEIR_NOT_READY;
}

weir_status sim_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    sim_enter(queue->sim);
    sim_go(queue->sim);
    const weir_status status = link->next->ops->queue_finish(link->next, object);
    sim_return(queue->sim);
    wait_for(queue->sim, queue->last[0], 0);
    sim_wait_until(queue->sim, queue->end_ns);
    sim_leave(queue->sim);
    return status;
}

// Times.

weir_status sim_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    sim_enter(queue->sim);
    wait_for_record(queue, sequence, 0);
    const struct sim_record *record = sim_record_find(queue, sequence);
    *out_time_ns = record ? record->end_ns : 0;
    sim_leave(queue->sim);
    if (record)
        return WEIR_OK;
    return weir_host_fail(link->host, WEIR_ERROR_EXPIRED,
                          "ask for times before they are overwritten",
                          "the time of record %llu is gone: a queue keeps its last %d",
                          (unsigned long long)sequence, SIM_HISTORY);
}

// The host's timeline and the devices' are one.
weir_status sim_device_clock(const struct weir_link *link, weir_device *object,
                             uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    (void)object;
    *out_host_ns = *out_device_ns = sim_clock_now_ns(sim_of(link));
    return WEIR_OK;
}
