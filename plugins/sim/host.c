// The host in virtual time. Each thread that submits or waits has a clock of its own, so threads work side
// by side; what ties them together are devices, whose submits come one after the other, records, and
// waits: one ends only when all other threads rest, so whatever one of these does next, something that a
// thread did after its wait has woken it. Copies of memory that is not pinned take the host's time, too.
#define _GNU_SOURCE // gettid
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread_local.h"
#include "plugins/sim/sim.h"

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

// Threads.

static void put_up_to(uint64_t *ns, uint64_t to_ns)
{
    if (*ns < to_ns)
        *ns = to_ns;
}

// The calling thread's clock in the sim in which it called last; in another one it begins anew.
static WEIR_MODULE_THREAD_LOCAL struct {
    uint64_t thread; // its number, from 1; 0: none yet
    uint64_t sim;    // its number; 0: none
    uint64_t now_ns;
    uint64_t round; // the last one in which it called
} own;

// What the thread does now comes after the round's beginning, if it rested then.
static void see_round(struct sim *sim)
{
    static atomic_uint_fast64_t last_thread;
    if (own.thread == 0)
        own.thread = atomic_fetch_add(&last_thread, 1) + 1;
    if (own.sim != sim->number) {
        own.sim = sim->number;
        own.now_ns = sim->woken_ns;
        sim->thread = sim->thread ? sim->thread : own.thread;
        sim->is_shared = sim->is_shared || sim->thread != own.thread;
    } else if (own.round != sim->round) {
        put_up_to(&own.now_ns, sim->woken_ns);
    }
    own.round = sim->round;
}

// Calls.

void sim_enter(struct sim *sim)
{
    pthread_mutex_lock(&sim->lock);
    see_round(sim);
}

uint64_t sim_now_ns(void)
{
    return own.now_ns;
}

void sim_wait_until(uint64_t ns)
{
    put_up_to(&own.now_ns, ns);
}

// A call of the host.
static void spend(struct sim *sim, uint64_t ns)
{
    struct sim_jitter *jitter = &sim->jitter;
    if (sim->host == SIM_HOST_NONE)
        return;
    if (jitter->share > 0 && weir_random_next(&jitter->state) % CALLS_A_SLOW_ONE == 0)
        ns *= SLOW_ONE;
    sim_wait_until(own.now_ns + sim_vary(jitter, ns));
}

void sim_submit_for(struct sim_virtual_queue *queue, uint64_t ns)
{
    sim_wait_until(queue->device->free_ns);
    spend(queue->sim, ns);
    queue->device->free_ns = own.now_ns;
}

// Threads that have not submitted or waited, as those of plugins never do, ask whenever they like.
uint64_t sim_clock_now_ns(void *user)
{
    struct sim *sim = user;
    pthread_mutex_lock(&sim->lock);
    if (own.sim == sim->number)
        see_round(sim);
    const uint64_t now_ns = own.sim == sim->number ? own.now_ns : sim->woken_ns;
    pthread_mutex_unlock(&sim->lock);
    return now_ns;
}

// Memory that is not pinned: uploads and downloads copy through pinned pieces. Of a small transfer the
// calling thread copies one after the other; of a large one several threads do, each a part at a time,
// in the order in which the calling thread gives them away; one that has nothing to do sleeps, and has to
// wake first. That the calling thread copies a part which it waits for, and which none has begun, is left
// out.

static uint32_t threads_of(const struct weir_host_note *note)
{
    const uint32_t threads =
        (note->flags & WEIR_HOST_NOTE_THREADS_MASK) >> WEIR_HOST_NOTE_THREADS_SHIFT;
    return threads < SIM_COPIERS_MOST ? threads : SIM_COPIERS_MOST;
}

// The thread that is free first takes it. One that has no room takes its time when it ends, as if the calling thread
// copied it.
static void begin(struct sim *sim, const struct weir_host_note *note, uint64_t ns)
{
    struct sim_copiers *copiers = &sim->copiers;
    if (threads_of(note) == 0 || copiers->count == SIM_PIECES_MOST)
        return;
    uint64_t *first = copiers->free_ns;
    for (uint32_t i = 1; i < threads_of(note); i++)
        if (copiers->free_ns[i] < *first)
            first = &copiers->free_ns[i];
    *first = (*first > own.now_ns ? *first : own.now_ns + sim->model->wake_ns) + ns;
    copiers->pieces[copiers->count++] =
        (struct sim_piece){note->u.access.buffer, note->u.access.offset, *first};
}

static void end(struct sim *sim, const struct weir_host_note *note, uint64_t ns)
{
    struct sim_copiers *copiers = &sim->copiers;
    struct sim_piece *piece = copiers->pieces;
    const struct sim_piece *after = piece + copiers->count;
    while (piece < after &&
           (piece->buffer != note->u.access.buffer || piece->offset != note->u.access.offset))
        piece++;
    if (piece == after) {
        spend(sim, ns);
        return;
    }
    sim_wait_until(piece->end_ns);
    *piece = copiers->pieces[--copiers->count];
}

static void take_time(struct sim *sim, const struct weir_host_note *note)
{
    const struct sim_staging_rate *rate = &sim->model->staging;
    const uint32_t threads = threads_of(note);
    const uint64_t part = threads ? rate->all_bytes_per_s / threads : 0; // of one of them
    uint64_t bytes_per_s = rate->bytes_per_s;                            // 0: no limit
    if (part && (!bytes_per_s || part < bytes_per_s))
        bytes_per_s = part;
    const double bytes = (double)note->u.access.size;
    sim_enter(sim);
    const uint64_t ns =
        sim_vary(&sim->jitter,
                 (uint64_t)(bytes_per_s ? bytes * 1e9 / (double)bytes_per_s + 0.5 : 0));
    (note->kind == WEIR_HOST_NOTE_BEGIN ? begin : end)(sim, note, ns);
    pthread_mutex_unlock(&sim->lock);
}

// A beginning that a link refuses was none.
weir_status sim_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    struct sim *sim = sim_of(link);
    const bool piece = sim->host == SIM_HOST_FIXED && note->flags & WEIR_HOST_NOTE_INTERNAL;
    if (piece && note->kind == WEIR_HOST_NOTE_END)
        take_time(sim, note);
    const weir_status status = link->next->ops->host_note(link->next, note);
    if (piece && note->kind == WEIR_HOST_NOTE_BEGIN && status >= 0)
        take_time(sim, note);
    return status;
}

// When a wait may end. Which of two calls comes first on the wall clock says nothing about virtual time, so
// a wait ends only when no other thread can go on: what these would have submitted before is posted by then, and
// the wait that ends first in virtual time is the first to return. Without that the pipelines of `weir bench`
// lose a third of their frames in the median. Only the kernel tells which threads sleep, since a thread may sleep
// anywhere.

#define PATIENCE_NS UINT64_C(30000000000) // the message below has it, too
#define SHORTEST_NAP_NS 10000
#define LONGEST_NAP_NS 1000000

// One that has ended sleeps.
static bool sleeps(const char *thread)
{
    char path[64];
    char text[128]; // the name has 15 bytes at most
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return !name_end || strlen(name_end) < 3 || !strchr("RD", name_end[2]);
}

// How often the process's threads have gone to sleep, or had to wait for a processor.
static long count_switches(void)
{
    struct rusage usage = {.ru_nvcsw = 0};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void give_up(struct sim *sim, const char *why)
{
    char text[256];
    snprintf(text, sizeof text,
             "%s, so sim waits for threads no longer: times may differ from run to run", why);
    sim->restless = true;
    sim->link->host->log(WEIR_LOG_WARNING, "sim", text);
}

// Releases the lock meanwhile, so that none sleeps for it. A thread that slept may have been woken by one that has
// gone to sleep since then.
static bool others_sleep(struct sim *sim)
{
    pthread_mutex_unlock(&sim->lock);
    const long switches = count_switches();
    DIR *threads = opendir("/proc/self/task");
    const bool opened = threads;
    bool sleep = true;
    const struct dirent *entry;
    while (sleep && threads && (entry = readdir(threads)))
        sleep = entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == gettid() ||
                sleeps(entry->d_name);
    if (threads)
        closedir(threads);
    pthread_mutex_lock(&sim->lock);
    if (!opened)
        give_up(sim, "/proc/self/task cannot be opened");
    return sleep && count_switches() == switches;
}

// Waits: those under way are in a list; the thread of one of them, the leader, goes on for all.

struct sim_wait {
    struct sim_wait *next;
    struct sim_point point;
    uint64_t begin_ns;
    uint64_t cost_ns;
};

// When the thread goes on if its wait ends now; UINT64_MAX: it does not.
static uint64_t end_of(const struct sim *sim, const struct sim_wait *wait)
{
    uint64_t ns = sim_engine_now_ns(sim->engine);
    if (!sim_engine_complete(sim->engine, wait->point))
        return UINT64_MAX;
    put_up_to(&ns, wait->begin_ns);
    return ns + (sim->host == SIM_HOST_NONE ? 0 : wait->cost_ns);
}

// The first of all waits; UINT64_MAX: none has ended.
static uint64_t first_end(const struct sim *sim)
{
    uint64_t first_ns = UINT64_MAX;
    for (const struct sim_wait *wait = sim->waits; wait; wait = wait->next)
        if (end_of(sim, wait) < first_ns)
            first_ns = end_of(sim, wait);
    return first_ns;
}

static bool must_pause(struct sim *sim)
{
    struct stat status;
    if (first_end(sim) != UINT64_MAX) {
        pthread_cond_broadcast(&sim->moved);
        return true;
    }
    // The folder has a link for each thread, and two of its own.
    const bool alone = stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
    return !sim->restless && !alone && !others_sleep(sim);
}

// A wait that has ended, by another thread's submit, returns first.
static void await_rest(struct sim *sim, const struct sim_wait *leader)
{
    const uint64_t began_ns = weir_clock_now_ns();
    uint64_t nap_ns = SHORTEST_NAP_NS;
    while (!sim_engine_complete(sim->engine, leader->point) && must_pause(sim)) {
        if (!sim->restless && weir_clock_now_ns() - began_ns > PATIENCE_NS)
            give_up(sim, "a thread ran for 30 seconds while another one waited");
        pthread_mutex_unlock(&sim->lock);
        weir_clock_sleep_ns(nap_ns);
        pthread_mutex_lock(&sim->lock);
        nap_ns = nap_ns < LONGEST_NAP_NS ? 2 * nap_ns : nap_ns;
    }
}

// Goes on until the first wait has ended. False if nothing is under way.
static bool lead(struct sim *sim, const struct sim_wait *leader)
{
    bool moves = true;
    sim->led = true;
    await_rest(sim, leader);
    const bool ended = first_end(sim) != UINT64_MAX;
    while (moves && first_end(sim) == UINT64_MAX)
        moves = sim_engine_step(sim->engine, UINT64_MAX);
    if (moves && !ended) {
        sim->round++;
        put_up_to(&sim->woken_ns,
                  first_end(sim) + (sim->host == SIM_HOST_FIXED ? sim->model->wake_ns : 0));
    }
    sim->led = false;
    pthread_cond_broadcast(&sim->moved);
    return moves;
}

// Of two waits that end at once neither wakes the other thread.
static void wait_for(struct sim *sim, struct sim_point point, uint64_t cost_ns)
{
    struct sim_wait wait = {sim->waits, point, own.now_ns, cost_ns};
    if (sim_engine_complete(sim->engine, point))
        return;
    sim->waits = &wait;
    while (!sim_engine_complete(sim->engine, point)) {
        if (sim->led)
            pthread_cond_wait(&sim->moved, &sim->lock);
        else if (!lead(sim, &wait))
            break;
    }
    struct sim_wait **at = &sim->waits;
    while (*at != &wait)
        at = &(*at)->next;
    *at = wait.next;
    own.round = sim->round;
}

// Nothing if the record is gone, as it was complete then.
static void wait_for_record(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t cost_ns)
{
    const struct sim_record *record = sim_record_find(queue, sequence);
    if (!record)
        return;
    sim_wait_until(record->submit_ns);
    wait_for(queue->sim, record->point, cost_ns);
    record = sim_record_find(queue, sequence);
    if (record)
        sim_wait_until(record->end_ns);
}

weir_status sim_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    const uint64_t cost_ns = queue->sim->model->wait_ns;
    sim_enter(queue->sim);
    pthread_mutex_unlock(&queue->sim->lock);
    const weir_status status =
        link->next->ops->event_wait(link->next, object, sequence, timeout_ns);
    pthread_mutex_lock(&queue->sim->lock);
    if (status == WEIR_OK) {
        wait_for_record(queue, sequence, cost_ns);
        spend(queue->sim, cost_ns);
    }
    pthread_mutex_unlock(&queue->sim->lock);
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
    sim_wait_until(record->submit_ns);
    if (!sim->is_shared) // no other one is at an earlier time
        sim_engine_advance(sim->engine, own.now_ns);
    if (record->complete && record->end_ns <= own.now_ns)
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
    pthread_mutex_unlock(&queue->sim->lock);
    return complete ? WEIR_OK : WEIR_NOT_READY;
}

weir_status sim_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    sim_enter(queue->sim);
    pthread_mutex_unlock(&queue->sim->lock);
    const weir_status status = link->next->ops->queue_finish(link->next, object);
    pthread_mutex_lock(&queue->sim->lock);
    wait_for(queue->sim, sim_engine_last(queue->sim->engine, queue->lanes[0]), 0);
    sim_wait_until(queue->end_ns);
    pthread_mutex_unlock(&queue->sim->lock);
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
    pthread_mutex_unlock(&queue->sim->lock);
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
    *out_host_ns = *out_device_ns = sim_clock_now_ns(sim_of(link));
    return WEIR_OK;
}
