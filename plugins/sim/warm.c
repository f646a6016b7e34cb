// Queues whose data the host's caches hold: those that were used last. What the driver, and Weir, keep of
// another one has to come from memory.
#include "plugins/sim/sim.h"

static void unlink_queue(struct sim_warm *warm, struct sim_virtual_queue *queue)
{
    if (queue->warmer)
        queue->warmer->colder = queue->colder;
    else
        warm->first = queue->colder;
    if (queue->colder)
        queue->colder->warmer = queue->warmer;
    else
        warm->last = queue->warmer;
    queue->warmer = queue->colder = NULL;
    queue->is_warm = false;
    warm->count--;
}

static void put_first(struct sim_warm *warm, struct sim_virtual_queue *queue)
{
    queue->colder = warm->first;
    if (warm->first)
        warm->first->warmer = queue;
    else
        warm->last = queue;
    warm->first = queue;
    queue->is_warm = true;
    warm->count++;
}

uint64_t sim_warm_use(struct sim_virtual_queue *queue)
{
    struct sim_warm *warm = &queue->sim->warm;
    const struct sim_model *model = queue->sim->model;
    const bool cold = !queue->is_warm;
    if (model->submit_cold_ns == 0 || warm->first == queue)
        return 0;
    if (!cold)
        unlink_queue(warm, queue);
    put_first(warm, queue);
    if (warm->count > model->warm_queues)
        unlink_queue(warm, warm->last);
    return cold ? model->submit_cold_ns : 0;
}

void sim_warm_forget(struct sim_virtual_queue *queue)
{
    if (queue->is_warm)
        unlink_queue(&queue->sim->warm, queue);
}
