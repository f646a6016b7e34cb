// The host in virtual time. Each thread that submits or waits has a clock of its own, so threads work side
// by side; what ties them together are devices, whose submits come one after the other, records, and
// waits: one ends only when all other threads rest, so whatever one of these does next, something that a
// thread did after its wait has woken it.
#define _GNU_SOURCE // syscall
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread_local.h"
#include "base/wait.h"
#include "plugins/sim/sim.h"

#define THREADS_MOST 256 // that are kept; one that is forgotten begins anew

void sim_take(struct sim *sim)
{
    atomic_fetch_add(&sim->entering, 1);
    pthread_mutex_lock(&sim->lock);
    atomic_fetch_sub(&sim->entering, 1);
}

// Jitter. A fixed sequence of numbers, so that two runs are the same. Bytes vary in place of bandwidths: their
// time is the same, and what both directions share stays the model's.

#define CALLS_A_SLOW_ONE 100
#define SLOW_ONE 10

uint64_t sim_vary(struct sim_jitter *jitter, uint64_t amount)
{
    if (!(jitter->share > 0))
        return amount;
    const double at = (double)(weir_random_next(&jitter->state) >> 11) * 0x1p-52 - 1; // -1 to 1
    return (uint64_t)((double)amount * (1 + jitter->share * at) + 0.5);
}

// What a call of the host takes, this time.
static uint64_t vary_call(struct sim_jitter *jitter, uint64_t ns)
{
    if (!(jitter->share > 0))
        return ns;
    const bool slow = weir_random_next(&jitter->state) % CALLS_A_SLOW_ONE == 0;
    return sim_vary(jitter, slow ? SLOW_ONE * ns : ns);
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

// When the thread goes on if its wait ends now.
static uint64_t end_of_wait(const struct sim *sim, const struct sim_thread *thread,
                            uint64_t cost_ns)
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
        sim_wait_until(sim, sim_self(sim)->now_ns + vary_call(&sim->jitter, ns));
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

// When a wait may end. Which of two calls comes first on the wall clock says nothing about virtual time, so
// a wait ends only when no other thread can go on: all sleep, or wait here too. What these would have
// submitted before is posted by then, and the wait that ends first in virtual time is the first
// to return. The kernel tells which threads sleep, since a thread may sleep anywhere.

// So long sleeps what waits on the next link for something that only a waiting thread can do.
#define AWAY_NS UINT64_C(50000000)
#define POLL_MOST_NS 1000000

#define QUIET_ROUNDS 256 // of other threads; one that has not called since then sleeps

enum rest {
    ALL_REST,
    SOME_AWAY, // all sleep, but some on the next link
    SOME_RUN,
    NOT_KNOWN,
};

// What the kernel tells.

static bool read_text(const char *thread, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/%s", thread, file);
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = from >= 0 ? read(from, text, size - 1) : -1;
    if (from >= 0)
        close(from);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

// Whether the thread sleeps, and how often it has run until now. One that has ended sleeps.
static bool sleeps(const char *thread, uint64_t *runs)
{
    char text[512];
    if (!read_text(thread, "stat", text, sizeof text))
        return true;
    const char *name_end = strrchr(text, ')');
    if (!name_end || strlen(name_end) < 3 || strchr("RD", name_end[2]))
        return false;
    // Nanoseconds on a processor, nanoseconds of waiting for one, and how often.
    if (read_text(thread, "schedstat", text, sizeof text) && strrchr(text, ' '))
        *runs += strtoull(strrchr(text, ' '), NULL, 10);
    return true;
}

// The folder has a link for each thread, and two of its own.
static bool is_alone(void)
{
    struct stat status;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

static bool is_waiting_here(const struct sim *sim, const char *thread)
{
    const long number = strtol(thread, NULL, 10);
    for (const struct sim_thread *at = sim->threads; at; at = at->next)
        if (at->waits && at->number == number)
            return true;
    return false;
}

// Whether all threads but those that wait here sleep.
static enum rest look(const struct sim *sim, uint64_t *runs)
{
    DIR *threads = opendir("/proc/self/task");
    enum rest rest = threads ? ALL_REST : NOT_KNOWN;
    const struct dirent *entry;
    while (rest == ALL_REST && (entry = readdir(threads)))
        if (entry->d_name[0] != '.' && !is_waiting_here(sim, entry->d_name) &&
            !sleeps(entry->d_name, runs))
            rest = SOME_RUN;
    if (threads)
        closedir(threads);
    return rest;
}

static bool wait_has_ended(const struct sim *sim, const struct sim_thread *thread)
{
    return thread->waits && sim_engine_complete(sim->engine, thread->point);
}

static bool has_ended(const struct sim *sim)
{
    for (const struct sim_thread *at = sim->threads; at; at = at->next)
        if (wait_has_ended(sim, at))
            return true;
    return false;
}

// With the lock held. Looks twice: a thread that slept may have been woken by one that sleeps now. One
// that waits for the lock, or whose wait has ended, goes on.
static enum rest find_rest(struct sim *sim)
{
    uint64_t runs[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const enum rest rest = look(sim, &runs[i]);
        if (rest != ALL_REST)
            return rest;
    }
    if (runs[0] != runs[1] || atomic_load(&sim->entering) > 0 || has_ended(sim))
        return SOME_RUN;
    return sim->away > 0 ? SOME_AWAY : ALL_REST;
}

// Waiting.

// What these do does not come after the round's beginning, but after their own waits.
static void join_round(struct sim *sim)
{
    for (struct sim_thread *at = sim->threads; at; at = at->next)
        if (wait_has_ended(sim, at))
            at->round = sim->round;
}

static void begin_round(struct sim *sim)
{
    uint64_t first_ns = UINT64_MAX;
    for (const struct sim_thread *at = sim->threads; at; at = at->next)
        if (wait_has_ended(sim, at) && end_of_wait(sim, at, at->cost_ns) < first_ns)
            first_ns = end_of_wait(sim, at, at->cost_ns);
    sim_begin_round(sim, first_ns);
    join_round(sim);
}

// Until the first wait has ended. False if nothing is under way.
static bool go_on(struct sim *sim)
{
    while (!has_ended(sim))
        if (!sim_engine_step(sim->engine, UINT64_MAX))
            return false;
    begin_round(sim);
    return true;
}

static void give_up(struct sim *sim, enum rest rest)
{
    sim->restless = true;
    sim->link->host->log(WEIR_LOG_WARNING, "sim",
                         rest == NOT_KNOWN
                             ? "/proc/self/task cannot be read, so sim cannot tell when other "
                               "threads rest: with several, times may differ from run to run"
                             : "a thread ran for 30 seconds while another one waited, so sim "
                               "waits for threads no longer: times may differ from run to run");
}

// Released in between, the lock lets other threads go on.
static void pause_for(struct sim *sim, long ns)
{
    pthread_mutex_unlock(&sim->lock);
    weir_clock_sleep_ns((uint64_t)ns);
    pthread_mutex_lock(&sim->lock);
}

static void rest_until(struct sim *sim, struct sim_point point)
{
    const uint64_t began_ns = weir_clock_now_ns();
    long poll_ns = 10000;
    while (!sim->restless && !sim_engine_complete(sim->engine, point)) {
        const enum rest rest = find_rest(sim);
        const uint64_t waited_ns = weir_clock_now_ns() - began_ns;
        if (rest == ALL_REST || (rest == SOME_AWAY && waited_ns > AWAY_NS)) {
            if (!go_on(sim))
                return;
        } else if (rest == NOT_KNOWN || waited_ns > sim->patience_ns) {
            give_up(sim, rest);
        } else {
            pause_for(sim, poll_ns);
            poll_ns = poll_ns < POLL_MOST_NS ? 2 * poll_ns : POLL_MOST_NS;
        }
    }
}

bool sim_rest(struct sim *sim, struct sim_point point, uint64_t cost_ns)
{
    struct sim_thread *self = sim_self(sim);
    if (sim->restless || self == &sim->every || is_alone())
        return false;
    self->waits = true;
    self->point = point;
    self->cost_ns = cost_ns;
    self->number = syscall(SYS_gettid);
    rest_until(sim, point);
    self->waits = false;
    return sim_engine_complete(sim->engine, point);
}

// Before which none of the other threads will do anything. One that has not called for long sleeps, and
// one that waits goes on when its wait has ended.
static uint64_t horizon_of(struct sim *sim)
{
    const struct sim_thread *self = sim_self(sim);
    uint64_t horizon_ns = UINT64_MAX;
    for (const struct sim_thread *at = sim->threads; at; at = at->next)
        if (at != self && !at->waits && sim->round - at->round < QUIET_ROUNDS &&
            sim_not_before(sim, at) < horizon_ns)
            horizon_ns = sim_not_before(sim, at);
    return horizon_ns;
}

void sim_catch_up(struct sim *sim, uint64_t until_ns)
{
    const uint64_t horizon_ns = horizon_of(sim);
    until_ns = until_ns < horizon_ns ? until_ns : horizon_ns;
    while (!has_ended(sim) && sim_engine_step(sim->engine, until_ns)) {
    }
    join_round(sim);
}

// Waits and queries: a wait first waits for the next link, where the work really runs.

static void wait_for(struct sim *sim, struct sim_point point, uint64_t cost_ns)
{
    if (sim_engine_complete(sim->engine, point) || sim_rest(sim, point, cost_ns))
        return;
    sim_engine_wait(sim->engine, point);
    struct sim_thread *self = sim_self(sim);
    sim_begin_round(sim, end_of_wait(sim, self, cost_ns));
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
    wait_for(queue->sim, sim_engine_last(queue->sim->engine, queue->lanes[0]), 0);
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
