// When a wait of one of several threads may end in virtual time.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "plugins/sim/sim.h"
#include "tests/plugins/sim/program.h"
#include "tests/support/test.h"

static char logged[512];

static void keep_log(weir_log_level level, const char *source, const char *message)
{
    EXPECT_INT_EQ(level, WEIR_LOG_WARNING);
    EXPECT_STR_EQ(source, "sim");
    snprintf(logged, sizeof logged, "%s", message);
}

static void ignore(const struct sim_done *done)
{
    (void)done;
}

// A copy of 1000 ns on one queue, and of 500 ns on another, of two engines.
struct rig {
    struct weir_host host;
    struct weir_link link;
    struct sim_model model;
    struct sim sim;
    struct sim_point longer;
    struct sim_point shorter;
};

static struct sim_point copy(struct rig *rig, uint32_t device, enum sim_kind kind, uint64_t bytes)
{
    const struct sim_queue_params params = {.device = device};
    const struct sim_work work = {.kind = kind, .bytes = bytes};
    struct sim_point point;
    uint32_t queue;
    EXPECT_TRUE(sim_engine_add_queue(rig->sim.engine, &params, &queue));
    EXPECT_TRUE(program_submit(rig->sim.engine, queue, 0, &work, &point));
    return point;
}

static void start(struct rig *rig)
{
    uint32_t device;
    *rig = (struct rig){.host = {.log = keep_log}, .model = plain_model()};
    rig->link.host = &rig->host;
    rig->sim.link = &rig->link;
    rig->sim.patience_ns = SIM_PATIENCE_NS;
    rig->sim.model = &rig->model;
    rig->sim.engine = sim_engine_create(ignore);
    pthread_mutex_init(&rig->sim.lock, NULL);
    logged[0] = '\0';
    EXPECT_TRUE(sim_engine_add_device(rig->sim.engine, &rig->model, &device));
    rig->longer = copy(rig, device, SIM_H2D, 1000);
    rig->shorter = copy(rig, device, SIM_D2H, 500);
}

static void finish(struct rig *rig)
{
    sim_engine_destroy(&rig->sim.engine);
    sim_forget_threads(&rig->sim);
    pthread_mutex_destroy(&rig->sim.lock);
}

#define THREADS_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, (start(rig), true), finish(rig))

// Returns the virtual time at which the wait ended.
static uint64_t rest(struct rig *rig, struct sim_point point)
{
    sim_take(&rig->sim);
    sim_rest(&rig->sim, point, 0);
    const uint64_t now_ns = sim_engine_now_ns(rig->sim.engine);
    pthread_mutex_unlock(&rig->sim.lock);
    return now_ns;
}

// A thread that sleeps until it is told to end.
struct sleeper {
    sem_t end;
    pthread_t thread;
};

static void *sleep_until_told(void *argument)
{
    struct sleeper *sleeper = argument;
    sem_wait(&sleeper->end);
    return NULL;
}

static void start_sleeper(struct sleeper *sleeper)
{
    sem_init(&sleeper->end, 0, 0);
    ASSERT_INT_EQ(pthread_create(&sleeper->thread, NULL, sleep_until_told, sleeper), 0);
}

static void finish_sleeper(struct sleeper *sleeper)
{
    sem_post(&sleeper->end);
    pthread_join(sleeper->thread, NULL);
    sem_destroy(&sleeper->end);
}

THREADS_TEST(SimThreads, AllOthersSleep)
{
    struct sleeper sleeper;
    start_sleeper(&sleeper);
    EXPECT_UINT_EQ(rest(rig, rig->shorter), 500);
    EXPECT_UINT_EQ(rest(rig, rig->longer), 1000);
    finish_sleeper(&sleeper);
    EXPECT_FALSE(rig->sim.threads->waits);
    EXPECT_STR_EQ(logged, "");
}

// Two wait. The one whose operation ends first goes on first, although the other one came first.
struct other {
    struct rig *rig;
    pthread_t thread;
    uint64_t ended_ns;
};

static void *wait_longer(void *argument)
{
    struct other *other = argument;
    other->ended_ns = rest(other->rig, other->rig->longer);
    return NULL;
}

// Returns when it waits.
static void start_other(struct other *other, struct rig *rig)
{
    *other = (struct other){.rig = rig};
    ASSERT_INT_EQ(pthread_create(&other->thread, NULL, wait_longer, other), 0);
    for (bool waits = false; !waits;) {
        sim_take(&rig->sim);
        waits = rig->sim.threads && rig->sim.threads->waits;
        pthread_mutex_unlock(&rig->sim.lock);
    }
}

THREADS_TEST(SimThreads, TheFirstToEndGoesFirst)
{
    struct other other;
    start_other(&other, rig);
    EXPECT_UINT_EQ(rest(rig, rig->shorter), 500);
    pthread_join(other.thread, NULL);
    EXPECT_UINT_EQ(other.ended_ns, 1000);
    EXPECT_STR_EQ(logged, "");
}

// A thread that sleeps on the next link may wait for what this one does later.
THREADS_TEST(SimThreads, OneIsAway)
{
    struct sleeper sleeper;
    start_sleeper(&sleeper);
    rig->sim.away = 1;
    EXPECT_UINT_EQ(rest(rig, rig->shorter), 500);
    EXPECT_STR_EQ(logged, "");
    finish_sleeper(&sleeper);
}

static void *run(void *argument)
{
    atomic_bool *stop = argument;
    while (!atomic_load(stop)) {
    }
    return NULL;
}

// It does not wait for ever for one that runs, and says so once.
WEIR_TEST(SimThreads, OneNeverRests)
{
    struct rig rig;
    atomic_bool stop = false;
    pthread_t thread;
    start(&rig);
    rig.sim.patience_ns = 200000000;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, run, &stop), 0);
    EXPECT_UINT_EQ(rest(&rig, rig.shorter), 0);
    EXPECT_TRUE(rig.sim.restless);
    EXPECT_CONTAINS(logged, "a thread ran for 30 seconds while another one waited");
    logged[0] = '\0';
    EXPECT_UINT_EQ(rest(&rig, rig.longer), 0);
    EXPECT_STR_EQ(logged, "");
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    finish(&rig);
}

THREADS_TEST(SimThreads, WithoutWhatTheKernelTells)
{
    struct rlimit limit;
    struct sleeper sleeper;
    start_sleeper(&sleeper);
    ASSERT_INT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max}), 0);
    EXPECT_UINT_EQ(rest(rig, rig->shorter), 0);
    ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_TRUE(rig->sim.restless);
    EXPECT_CONTAINS(logged, "/proc/self/task cannot be read");
    finish_sleeper(&sleeper);
}

// Of two threads one is at an earlier time, to which the engine goes on, unless that one has not called
// for long.
struct caller {
    struct rig *rig;
    uint64_t until_ns;
};

static void *call_and_catch_up(void *argument)
{
    const struct caller *caller = argument;
    struct sim *sim = &caller->rig->sim;
    sim_enter(sim);
    sim_wait_until(sim, caller->until_ns);
    sim_catch_up(sim, caller->until_ns);
    sim_leave(sim);
    return NULL;
}

static void catch_up(struct rig *rig, uint64_t until_ns)
{
    struct caller caller = {rig, until_ns};
    pthread_t thread;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, call_and_catch_up, &caller), 0);
    pthread_join(thread, NULL);
}

THREADS_TEST(SimThreads, OneIsAtAnEarlierTime)
{
    sim_enter(&rig->sim);
    sim_wait_until(&rig->sim, 400);
    sim_leave(&rig->sim);
    catch_up(rig, 10000);
    EXPECT_FALSE(sim_engine_complete(rig->sim.engine, rig->shorter));
    sim_enter(&rig->sim);
    sim_wait_until(&rig->sim, 700);
    sim_leave(&rig->sim);
    catch_up(rig, 10000);
    EXPECT_TRUE(sim_engine_complete(rig->sim.engine, rig->shorter));
    EXPECT_FALSE(sim_engine_complete(rig->sim.engine, rig->longer));
    for (int i = 0; i < 300; i++)
        sim_begin_round(&rig->sim, 700);
    catch_up(rig, 10000);
    EXPECT_TRUE(sim_engine_complete(rig->sim.engine, rig->longer));
}

// A wait that ends because another thread goes on is not put off by a round that began before.
THREADS_TEST(SimThreads, AWaitEndsInAQuery)
{
    struct other other;
    start_other(&other, rig);
    sim_take(&rig->sim);
    sim_begin_round(&rig->sim, 5000);
    sim_catch_up(&rig->sim, sim_self(&rig->sim)->now_ns);
    EXPECT_TRUE(sim_engine_complete(rig->sim.engine, rig->longer));
    const struct sim_thread *waiting = rig->sim.threads->next; // this one is the first
    ASSERT_TRUE(waiting && waiting->waits);
    EXPECT_UINT_EQ(sim_not_before(&rig->sim, waiting), 0);
    pthread_mutex_unlock(&rig->sim.lock);
    pthread_join(other.thread, NULL);
}
