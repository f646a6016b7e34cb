// Several threads. Which of two calls comes first on the wall clock says nothing about virtual time, so
// a wait ends only when no other thread can go on: all sleep, or wait here too. What these would have
// submitted before is posted by then, and the wait that ends first in virtual time is the first
// to return. The kernel tells which threads sleep, since a thread may sleep anywhere.
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
#include "base/wait.h"
#include "plugins/sim/sim.h"

// So long sleeps what waits on the next link for something that only a waiting thread can do.
#define AWAY_NS UINT64_C(50000000)
#define POLL_MOST_NS 1000000

#define QUIET_ROUNDS 256 // of other threads; one that has not called since then sleeps

struct sim_waiter {
    struct sim_waiter *next;
    struct sim_point point;
    uint64_t cost_ns;
    struct sim_thread *self;
    long thread; // the kernel's number
};

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
    for (const struct sim_waiter *at = sim->waiters; at; at = at->next)
        if (at->thread == number)
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

static bool has_ended(const struct sim *sim)
{
    for (const struct sim_waiter *at = sim->waiters; at; at = at->next)
        if (sim_engine_complete(sim->engine, at->point))
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

// When the thread goes on.
static uint64_t end_of(const struct sim *sim, const struct sim_waiter *waiter)
{
    return sim_end_of_wait(sim, waiter->self, waiter->cost_ns);
}

// What these do does not come after the round's beginning, but after their own waits.
static void join_round(struct sim *sim)
{
    for (const struct sim_waiter *at = sim->waiters; at; at = at->next)
        if (sim_engine_complete(sim->engine, at->point))
            at->self->round = sim->round;
}

static void begin_round(struct sim *sim)
{
    uint64_t first_ns = UINT64_MAX;
    for (const struct sim_waiter *at = sim->waiters; at; at = at->next)
        if (sim_engine_complete(sim->engine, at->point) && end_of(sim, at) < first_ns)
            first_ns = end_of(sim, at);
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
    if (sim->restless || is_alone())
        return false;
    struct sim_waiter self = {.next = sim->waiters,
                              .point = point,
                              .cost_ns = cost_ns,
                              .self = sim_self(sim),
                              .thread = syscall(SYS_gettid)};
    struct sim_waiter **at = &sim->waiters;
    sim->waiters = &self;
    self.self->waits = true;
    // Files of /proc are read with the lock taken, in any call that asks for an event.
    const int before = weir_cancel_disable();
    rest_until(sim, point);
    weir_cancel_restore(before);
    while (*at && *at != &self)
        at = &(*at)->next;
    if (*at)
        *at = self.next;
    self.self->waits = false;
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
