// Mode `random`: each queue has a priority, the highest of those that may run goes first, and
// after some of the choices the chosen queue gets a new one. With priorities that change seldom
// a queue runs far ahead of another one, which an independent choice at every step reaches once
// in two to the power of the distance (Burckhardt and others, "A randomized scheduler with
// probabilistic guarantees of finding bugs", 2010); with such that change at each step any order
// can occur. How often they change, and how often something runs before it is asked for, is a
// matter of the seed.
#include "plugins/perturb/perturb.h"

// SplitMix64, of Vigna's.
uint64_t perturb_random(struct perturb *perturb)
{
    uint64_t z = perturb->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void perturb_choice_init(struct perturb *perturb)
{
    static const uint64_t redraws[] = {1, 1, 2, 4, 8, 16, 64, 0};
    static const uint64_t eagers[] = {0, 0, 0, 16, 64, 128, 192, 256};
    perturb->random = perturb->seed;
    perturb->redraw = redraws[perturb_random(perturb) % 8];
    perturb->eager = eagers[perturb_random(perturb) % 8];
    if (perturb->mode != PERTURB_RANDOM)
        perturb->eager = 0;
}

static bool is_awaited(const struct perturb_operation *operation)
{
    return operation->producer && operation->producer->done < operation->awaited;
}

bool perturb_may_run(const struct perturb_queue *queue, unsigned flags)
{
    const struct perturb_operation *first = queue->first;
    return first && queue->in_flight == 0 && !is_awaited(first) &&
           !(flags & PERTURB_NO_HOST_CALLS && first->is_of_host);
}

// The earliest submitted of those that may run; `holds` leaves out what the pair holds back.
static struct perturb_queue *earliest(const struct perturb *perturb, unsigned flags, bool holds)
{
    struct perturb_queue *found = NULL;
    for (struct perturb_queue *queue = perturb->queues; queue; queue = queue->next) {
        if (!perturb_may_run(queue, flags) || (holds && perturb_pair_holds(perturb, queue->first)))
            continue;
        if (!found || queue->first->number < found->first->number)
            found = queue;
    }
    return found;
}

static struct perturb_queue *choose_random(struct perturb *perturb, unsigned flags)
{
    struct perturb_queue *found = NULL;
    for (struct perturb_queue *queue = perturb->queues; queue; queue = queue->next)
        if (perturb_may_run(queue, flags) && (!found || queue->priority > found->priority))
            found = queue;
    if (found && perturb->redraw && perturb_random(perturb) % perturb->redraw == 0)
        found->priority = perturb_random(perturb);
    return found;
}

// The goal's queue, or the one that it waits for in the end. What the goal needs may have been
// handed on before, and then all that is left may be needed.
static struct perturb_queue *choose_needed(const struct perturb *perturb,
                                           struct perturb_queue *goal, unsigned flags)
{
    struct perturb_queue *at = goal;
    while (at && at->first && at->in_flight == 0 && is_awaited(at->first))
        at = at->first->producer;
    return at && perturb_may_run(at, flags) ? at : earliest(perturb, flags, false);
}

static struct perturb_queue *choose_pair(const struct perturb *perturb, unsigned flags)
{
    struct perturb_queue *found = earliest(perturb, flags, true);
    return found ? found : earliest(perturb, flags, false);
}

static void count(struct perturb *perturb, unsigned flags)
{
    uint64_t candidates = 0;
    for (const struct perturb_queue *queue = perturb->queues; queue && candidates < 2;
         queue = queue->next)
        candidates += perturb_may_run(queue, flags);
    perturb->counts.choices += candidates > 1;
}

struct perturb_queue *perturb_choose(struct perturb *perturb, struct perturb_queue *goal,
                                     unsigned flags)
{
    count(perturb, flags);
    switch (perturb->mode) {
    case PERTURB_LATE:
        return choose_needed(perturb, goal, flags);
    case PERTURB_PAIR:
        return choose_pair(perturb, flags);
    case PERTURB_RANDOM:
        break;
    }
    return choose_random(perturb, flags);
}
