// The host in virtual time. There is one host for the whole chain: with several threads, the time of
// a call is that of the last one before it, of whichever thread.
#include "base/clock.h"
#include "plugins/sim/sim.h"

void sim_take(struct sim *sim)
{
    atomic_fetch_add(&sim->entering, 1);
    pthread_mutex_lock(&sim->lock);
    atomic_fetch_sub(&sim->entering, 1);
}

// A thread is told apart from others by the place of this.
static _Thread_local char own;

// A wait ends when no other thread can go on, so the next one that submits was woken after it. Threads
// of plugins, which submit nothing, come whenever they like.
void sim_be_woken(struct sim *sim)
{
    const uint64_t due_ns = sim->rested_ns + sim->model->wake_ns;
    if (!sim->rested || sim->rested == &own)
        return;
    sim->rested = NULL;
    if (sim->host == SIM_HOST_FIXED && sim->host_ns < due_ns)
        sim->host_ns = due_ns;
}

void sim_enter(struct sim *sim)
{
    sim_take(sim);
    if (sim->host != SIM_HOST_MEASURED)
        return;
    const uint64_t now_ns = weir_clock_now_ns();
    if (sim->away == 0 && now_ns > sim->left_ns)
        sim->host_ns += now_ns - sim->left_ns;
    sim->left_ns = now_ns;
}

void sim_leave(struct sim *sim)
{
    if (sim->host == SIM_HOST_MEASURED)
        sim->left_ns = weir_clock_now_ns();
    pthread_mutex_unlock(&sim->lock);
}

void sim_go(struct sim *sim)
{
    sim->away++;
    pthread_mutex_unlock(&sim->lock);
}

void sim_return(struct sim *sim)
{
    sim_take(sim);
    sim->away--;
    if (sim->host == SIM_HOST_MEASURED)
        sim->left_ns = weir_clock_now_ns();
}

void sim_spend(struct sim *sim, uint64_t ns)
{
    if (sim->host != SIM_HOST_NONE)
        sim->host_ns += sim_vary_call(&sim->jitter, ns);
}

uint64_t sim_clock_now_ns(void *user)
{
    struct sim *sim = user;
    sim_enter(sim);
    const uint64_t now_ns = sim->host_ns;
    sim_leave(sim);
    return now_ns;
}

// Waits.

static void wait_for(struct sim *sim, struct sim_point point)
{
    if (!sim_engine_complete(sim->engine, point))
        sim_rest(sim, point);
    sim_engine_wait(sim->engine, point);
    const uint64_t now_ns = sim_engine_now_ns(sim->engine);
    if (now_ns > sim->host_ns)
        sim->host_ns = now_ns;
}

static struct sim_point point_of(const struct sim_virtual_queue *queue, uint64_t sequence)
{
    const struct sim_record *record = sim_record_find(queue, sequence);
    return record ? record->point : (struct sim_point){0};
}

weir_status sim_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    sim_enter(queue->sim);
    sim_go(queue->sim);
    const weir_status status =
        link->next->ops->event_wait(link->next, object, sequence, timeout_ns);
    sim_return(queue->sim);
    if (status == WEIR_OK) {
        wait_for(queue->sim, point_of(queue, sequence));
        sim_spend(queue->sim, queue->sim->model->wait_ns);
        queue->sim->rested = &own;
        queue->sim->rested_ns = queue->sim->host_ns;
    }
    sim_leave(queue->sim);
    return status;
}

// The library asks too, each time for another record. A program that asks until one is complete asks
// for it again, and has waited for it then.
static bool is_complete(struct sim_virtual_queue *queue, uint64_t sequence)
{
    const struct sim_point point = point_of(queue, sequence);
    struct sim *sim = queue->sim;
    sim_engine_advance(sim->engine, sim->host_ns);
    if (sim_engine_complete(sim->engine, point))
        return true;
    const bool again = queue->asked == sequence;
    queue->asked = sequence;
    if (again)
        wait_for(sim, point);
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
    wait_for(queue->sim, queue->last[0]);
    sim_leave(queue->sim);
    return status;
}

// Times.

weir_status sim_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    sim_enter(queue->sim);
    const struct sim_record *record = sim_record_find(queue, sequence);
    if (record)
        wait_for(queue->sim, record->point);
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
