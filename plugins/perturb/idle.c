// A program may wait for what a host call sets, for a descriptor, or for memory that a kernel
// writes, and then asks for nothing. Work goes on without being asked for on every backend, so
// here it does after a pause.
#include "base/clock.h"
#include "plugins/perturb/perturb.h"

// When work that is pending runs unasked, if the program does not call before.
static uint64_t due_ns(const struct perturb *perturb)
{
    const bool idle = perturb->pending && perturb->waiting == 0;
    return idle ? perturb->touched_ns + perturb->idle_ns : WEIR_FOREVER;
}

static void run(void *argument)
{
    struct perturb *perturb = argument;
    pthread_mutex_lock(&perturb->lock);
    while (!perturb->stop) {
        const uint64_t due = due_ns(perturb);
        if (weir_clock_now_ns() < due)
            perturb_wait(perturb, due);
        else if (perturb_run_one(perturb, NULL, 0, 0))
            perturb->counts.idle++;
        else if (!perturb->stop) // it may be set since: running one waits for those that run
            pthread_cond_wait(&perturb->changed, &perturb->lock);
    }
    pthread_mutex_unlock(&perturb->lock);
}

bool perturb_idle_start(struct perturb *perturb)
{
    if (!perturb->has_idle)
        perturb->has_idle = weir_thread_start(&perturb->idle, run, perturb) == 0;
    return perturb->has_idle;
}

void perturb_idle_finish(struct perturb *perturb)
{
    pthread_mutex_lock(&perturb->lock);
    perturb->stop = true;
    pthread_cond_broadcast(&perturb->changed);
    pthread_mutex_unlock(&perturb->lock);
    if (perturb->has_idle)
        weir_thread_join(&perturb->idle);
}
