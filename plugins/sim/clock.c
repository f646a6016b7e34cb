// The host in virtual time. Each thread that submits or waits has a clock of its own, so threads work side
// by side; what ties them together are devices, whose submits come one after the other, records, and
// waits: one ends only when all other threads rest (threads.c), so whatever one of these does next,
// something that a thread did after its wait has woken it.
#include <stdlib.h>

#include "base/thread_local.h"
#include "plugins/sim/sim.h"

#define THREADS_MOST 256 // that are kept; one that is forgotten begins anew

void sim_take(struct sim *sim)
{
    atomic_fetch_add(&sim->entering, 1);
    pthread_mutex_lock(&sim->lock);
    atomic_fetch_sub(&sim->entering, 1);
}

// Threads.

static void put_up_to(uint64_t *ns, uint64_t to_ns)
{
    if (*ns < to_ns)
        *ns = to_ns;
}

static uint64_t own_id(void)
{
    static atomic_uint_fast64_t last;
    static WEIR_MODULE_THREAD_LOCAL uint64_t own;
    if (own == 0)
        own = atomic_fetch_add(&last, 1) + 1;
    return own;
}

// Comes first from now on. NULL: the thread has not called before.
static struct sim_thread *find_self(struct sim *sim)
{
    const uint64_t id = own_id();
    for (struct sim_thread **at = &sim->threads; *at; at = &(*at)->next) {
        struct sim_thread *thread = *at;
        if (thread->id != id)
            continue;
        *at = thread->next;
        thread->next = sim->threads;
        return sim->threads = thread;
    }
    return NULL;
}

// That of the thread which called least recently, if there are many, and it does not wait.
static struct sim_thread *take_oldest(struct sim *sim)
{
    struct sim_thread **oldest = NULL;
    if (sim->thread_count < THREADS_MOST)
        return NULL;
    for (struct sim_thread **at = &sim->threads; *at; at = &(*at)->next)
        if (!(*at)->waits)
            oldest = at;
    if (!oldest)
        return NULL;
    struct sim_thread *thread = *oldest;
    put_up_to(&sim->newest_ns, thread->now_ns); // its time does not go back if it comes again
    *oldest = thread->next;
    sim->thread_count--;
    return thread;
}

static struct sim_thread *add_self(struct sim *sim)
{
    struct sim_thread *thread = take_oldest(sim);
    if (!thread)
        thread = malloc(sizeof *thread);
    if (!thread) {
        put_up_to(&sim->every.now_ns, sim->newest_ns);
        return &sim->every;
    }
    *thread = (struct sim_thread){.next = sim->threads,
                                  .id = own_id(),
                                  .now_ns = sim->newest_ns,
                                  .round = UINT64_MAX};
    sim->thread_count++;
    return sim->threads = thread;
}

void sim_forget_threads(struct sim *sim)
{
    while (sim->threads) {
        struct sim_thread *next = sim->threads->next;
        free(sim->threads);
        sim->threads = next;
    }
    sim->thread_count = 0;
}

struct sim_thread *sim_self(struct sim *sim)
{
    struct sim_thread *self = find_self(sim);
    return self ? self : add_self(sim);
}

uint64_t sim_not_before(const struct sim *sim, const struct sim_thread *thread)
{
    return thread->round != sim->round && thread->now_ns < sim->woken_ns ? sim->woken_ns
                                                                         : thread->now_ns;
}

static void see_round(const struct sim *sim, struct sim_thread *self)
{
    self->now_ns = sim_not_before(sim, self);
    self->round = sim->round;
}

uint64_t sim_end_of_wait(const struct sim *sim, const struct sim_thread *thread, uint64_t cost_ns)
{
    const uint64_t now_ns = sim_engine_now_ns(sim->engine);
    return (thread->now_ns > now_ns ? thread->now_ns : now_ns) +
           (sim->host == SIM_HOST_NONE ? 0 : cost_ns);
}

void sim_begin_round(struct sim *sim, uint64_t ended_ns)
{
    sim->round++;
    sim->woken_ns = ended_ns + (sim->host == SIM_HOST_FIXED ? sim->model->wake_ns : 0);
    put_up_to(&sim->newest_ns, sim->woken_ns);
}

// Calls.

void sim_enter(struct sim *sim)
{
    sim_take(sim);
    see_round(sim, sim_self(sim));
}

void sim_leave(struct sim *sim)
{
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
}

void sim_wait_until(struct sim *sim, uint64_t ns)
{
    put_up_to(&sim_self(sim)->now_ns, ns);
}

void sim_spend(struct sim *sim, uint64_t ns)
{
    if (sim->host != SIM_HOST_NONE)
        sim_wait_until(sim, sim_self(sim)->now_ns + sim_vary_call(&sim->jitter, ns));
}

void sim_submit_for(struct sim_virtual_queue *queue, uint64_t ns)
{
    struct sim *sim = queue->sim;
    sim_wait_until(sim, queue->device->free_ns);
    sim_spend(sim, ns);
    queue->device->free_ns = sim_self(sim)->now_ns;
}

// Threads that have not submitted or waited, as those of plugins never do, ask whenever they like.
uint64_t sim_clock_now_ns(void *user)
{
    struct sim *sim = user;
    sim_take(sim);
    struct sim_thread *self = find_self(sim);
    if (self)
        see_round(sim, self);
    const uint64_t now_ns = self ? self->now_ns : sim->newest_ns;
    pthread_mutex_unlock(&sim->lock);
    return now_ns;
}
