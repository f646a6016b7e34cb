// The path of an operation. What has no cost is refused before anything is placed.
#include "plugins/sim/sim.h"

// From then on the engine goes on with each submit, as far as it may; and from then on it does not wait for
// threads that are at an earlier time.
#define POSTED_MANY 1024
#define POSTED_MOST 65536

// Whether it reads the memory of another device than its queue's.
static void see_pull(const struct sim_virtual_queue *queue, struct sim_work *work)
{
    work->pulls = work->kind == SIM_PEER && work->device != queue->params.device;
}

// Threads may be at an earlier time, also those that have not called yet.
static bool post(struct sim *sim, uint32_t lane, const struct sim_work *work,
                 struct sim_point *out_point)
{
    const uint64_t now_ns = sim_self(sim)->now_ns;
    if (!sim_engine_post(sim->engine, lane, now_ns, work, out_point))
        return false;
    if (sim_engine_posted(sim->engine) > POSTED_MOST)
        sim_engine_advance(sim->engine, now_ns);
    else if (sim_engine_posted(sim->engine) > POSTED_MANY)
        sim_catch_up(sim, now_ns);
    return true;
}

weir_status sim_place(struct sim_virtual_queue *queue, uint32_t lane, const struct sim_work *work,
                      struct sim_point *out_point)
{
    struct sim *sim = queue->sim;
    struct sim_work varied = *work;
    see_pull(queue, &varied);
    varied.bytes = sim_vary(&sim->jitter, work->bytes);
    if (varied.bytes >= SIM_BYTES_MOST)
        varied.bytes = SIM_BYTES_MOST - 1;
    varied.duration_ns = sim_vary(&sim->jitter, work->duration_ns);
    if (!post(sim, queue->lanes[lane], &varied, out_point))
        return weir_host_no_memory(sim->link->host, "an operation in virtual time");
    queue->last[lane] = *out_point;
    return WEIR_OK;
}

// The record is there before it can be complete.
weir_status sim_place_record(struct sim_virtual_queue *queue, const struct sim_work *work)
{
    struct sim_point point = {queue->lanes[0], queue->last[0].number + 1};
    if (!sim_record_add(queue, work->tag >> SIM_TAG_BITS, point, sim_self(queue->sim)->now_ns))
        return weir_host_no_memory(queue->sim->link->host, "a record in virtual time");
    const weir_status status = sim_place(queue, 0, work, &point);
    if (status < 0)
        queue->next_record--;
    return status;
}

static enum sim_tag tag_of(const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_RECORD:
        return SIM_TAG_RECORD;
    case WEIR_OPERATION_WAIT:
        return SIM_TAG_OTHER;
    default:
        return SIM_TAG_TIMED;
    }
}

// The point that a wait names; {0, 0} if it is complete. A wait comes after the record, of whichever
// thread.
static struct sim_point awaited(const struct weir_link *link,
                                const struct weir_operation *operation)
{
    const struct sim_virtual_queue *producer = sim_queue_of(link, operation->u.wait.producer);
    const struct sim_record *record = sim_record_find(producer, operation->u.wait.event.sequence);
    if (!record)
        return (struct sim_point){0};
    sim_wait_until(producer->sim, record->submit_ns);
    return record->point;
}

static weir_status place_one(const struct weir_link *link, struct sim_virtual_queue *queue,
                             const struct weir_operation *operation, struct sim_work work)
{
    struct sim_point wait = {0};
    struct sim_point point = {0};
    if (operation->kind == WEIR_OPERATION_WAIT) {
        wait = awaited(link, operation);
        work.waits = &wait;
        work.wait_count = 1;
    }
    sim_submit_for(queue, queue->sim->model->submit_ns[work.kind]);
    work.tag = operation->sequence << SIM_TAG_BITS | tag_of(operation);
    if (operation->kind == WEIR_OPERATION_RECORD)
        return sim_place_record(queue, &work);
    return sim_place(queue, 0, &work, &point);
}

// With the lock held.
static weir_status place(const struct weir_link *link, struct sim_virtual_queue *queue,
                         const struct weir_operation *operation)
{
    struct sim_work work = {0};
    if (operation->kind == WEIR_OPERATION_GRAPH)
        return sim_graph_place(link, queue, operation);
    const weir_status status = sim_describe(link, operation, &work);
    return status < 0 ? status : place_one(link, queue, operation, work);
}

weir_status sim_queue_submit(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    struct sim *sim = queue->sim;
    struct weir_operation own = *operation;
    bool ran = false;
    sim_enter(sim);
    weir_status status = WEIR_OK;
    if (sim_is_placed(operation)) {
        status = sim_scale_launch(link, object, operation, &ran);
        status = status == WEIR_OK ? place(link, queue, operation) : status;
        status = status == WEIR_OK ? sim_scale_call(link, &own) : status;
    }
    if (status == WEIR_OK && !ran) {
        sim_go(sim);
        status = link->next->ops->queue_submit(link->next, object, &own);
        sim_return(sim);
    }
    sim_leave(sim);
    return status;
}
