// Ranks in processes: some are killed and stopped, and others are on two hosts, which are two namespaces of the network
// with a cable between them: the control line, which needs one secret on both, and what it refuses.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for unshare() and setns()
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/support/test.h"
#include "tests/transports/local/places.h"
#include "tests/transports/local/ranks.h"

#define SECRET "one text on both hosts"
#define LARGE ((size_t)1 << 16) // elements: too much for the line
#define LONG ((size_t)1 << 18)  // elements, for which a collective takes several steps
#define MOST 5

enum host {
    HERE, // of this process, and of rank 0
    THERE,
    HOSTS
};

// What a rank has come to, in memory that all share.
struct told {
    atomic_int process;
    weir_status joined;
    weir_status worked;
    weir_status went_on; // with the ranks that were left
    weir_status parted;
    weir_status refused; // of all ranks
    uint32_t number;
    uint32_t count; // these two of the group in which it went on, or of its part
    bool carries;
    bool part_carries;
    atomic_int calls;
    atomic_bool works;
    struct weir_error error; // of the first that failed
    struct weir_error last;  // of what went on
};

struct plan {
    const char *rendezvous; // NULL: that of both hosts
    const char *secrets[HOSTS];
    uint32_t count;
    enum host hosts[MOST];
    uint64_t timeout_ns; // of the meeting; 0: RANKS_PATIENCE
    void (*body)(struct rank *rank, struct told *told);
};

static int spaces[HOSTS] = {-1, -1};
static pid_t holder;
static struct told *told; // by rank, and one more, of the test:
static atomic_bool *over; // all ranks have ended
static char at[64];       // a rendezvous; its port is in a name of a file, which both hosts have

static void share_memory(void)
{
    void *memory = told ? told
                        : mmap(NULL, (MOST + 1) * sizeof *told, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(memory, 0, (MOST + 1) * sizeof *told);
    told = memory;
    over = &told[MOST].works;
}

// The hosts.

static bool command(enum host host, const char *text)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(setns(spaces[host], CLONE_NEWNET) == 0 && system(text) == 0 ? 0 : 1);
    return waitpid(child, &status, 0) == child && status == 0;
}

// A process that does nothing keeps the second one.
static bool hold_space(void)
{
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0)
        return false;
    holder = fork();
    if (holder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) != 0 || write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    const bool held = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    return held;
}

static int space_of(pid_t process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)process);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool lay_cable(void)
{
    char text[128];
    snprintf(text, sizeof text, "ip link set w1 netns %ld", (long)holder);
    return command(HERE, "ip link set lo up && ip link add w0 type veth peer name w1 && "
                         "ip addr add 10.214.0.1/24 dev w0 && ip link set w0 up") &&
           command(HERE, text) &&
           command(THERE, "ip link set lo up && ip addr add 10.214.0.2/24 dev w1 && "
                          "ip link set w1 up");
}

static bool make_hosts(void)
{
    static int made; // 1: they are; -1: they cannot be
    if (made == 0) {
        made = -1;
        snprintf(at, sizeof at, "tcp://10.214.0.1:%ld", 20000 + (long)getpid() % 10000);
        unsetenv("WEIR_COMM_SECRET");
        if (unshare(CLONE_NEWNET) == 0 && hold_space()) {
            spaces[HERE] = space_of(getpid());
            spaces[THERE] = space_of(holder);
            made = lay_cable() ? 1 : -1;
        }
    }
    return made > 0;
}

#define HOSTS_TEST(name)                                                                          \
    static void name(void);                                                                       \
    WEIR_TEST(Hosts, name)                                                                        \
    {                                                                                             \
        if (!make_hosts())                                                                        \
            WEIR_SKIP(                                                                            \
                "this process cannot make namespaces of the network with a cable (ip, unshare)"); \
        name();                                                                                   \
    }                                                                                             \
    static void name(void)

// The ranks.

static void run_rank(const struct plan *plan, uint32_t number)
{
    const char *secret = plan->secrets[plan->hosts[number]];
    struct rank rank = {.rank = number};
    struct told *it = &told[number];
    const struct weir_transport_setup setup =
        place_setup(plan->rendezvous ? plan->rendezvous : at, plan->count,
                    plan->timeout_ns ? plan->timeout_ns : RANKS_PATIENCE);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    it->process = getpid();
    if (spaces[HERE] >= 0 && setns(spaces[plan->hosts[number]], CLONE_NEWNET) != 0)
        _exit(1);
    if (secret)
        setenv("WEIR_COMM_SECRET", secret, 1);
    it->joined = rank_join(&rank, &setup);
    if (it->joined)
        it->error = rank.error;
    else if (plan->body)
        plan->body(&rank, it);
    rank_leave(&rank);
    _exit(0);
}

static void start(const struct plan *plan, pid_t *processes)
{
    share_memory();
    for (uint32_t i = 0; i < plan->count; i++) {
        processes[i] = fork();
        if (processes[i] == 0)
            run_rank(plan, i);
    }
}

static void await(const struct plan *plan, const pid_t *processes)
{
    for (uint32_t i = 0; i < plan->count; i++)
        EXPECT_INT_EQ(waitpid(processes[i], NULL, 0), processes[i]);
    *over = true;
}

static void run(const struct plan *plan)
{
    pid_t processes[MOST];
    start(plan, processes);
    await(plan, processes);
}

// All ranks' numbers.
static weir_status gather(struct rank *rank, uint64_t timeout_ns)
{
    uint32_t numbers[MOST] = {0};
    struct weir_transport_call call = call_of(WEIR_ALL_GATHER, WEIR_U32, 1, &rank->rank, numbers);
    call.timeout_ns = timeout_ns;
    weir_status status = rank_call(rank, call);
    for (uint32_t i = 0; status == WEIR_OK && i < rank->count; i++)
        status = numbers[i] == i ? WEIR_OK : WEIR_ERROR_INVALID;
    return status;
}

// Of `count` numbers at most LONG.
static weir_status find_most(struct rank *rank, size_t count, uint64_t timeout_ns)
{
    static float memory[LONG];
    for (size_t i = 0; i < count; i++)
        memory[i] = (float)(rank->rank + i % 9);
    struct weir_transport_call call = call_of(WEIR_ALL_REDUCE, WEIR_F32, count, memory, memory);
    call.reduction = WEIR_MAXIMUM;
    call.timeout_ns = timeout_ns;
    weir_status status = rank_call(rank, call);
    for (size_t i = 0; status == WEIR_OK && i < count; i++)
        status = memory[i] == (float)(rank->count - 1 + i % 9) ? WEIR_OK : WEIR_ERROR_INVALID;
    return status;
}

// More than the line takes.
static weir_status gather_much(struct rank *rank)
{
    static float src[LARGE];
    static float dst[MOST * LARGE];
    return rank_call(rank, call_of(WEIR_ALL_GATHER, WEIR_F32, LARGE, src, dst));
}

static weir_status pass_on(struct rank *rank)
{
    const uint32_t before = (rank->rank + rank->count - 1) % rank->count;
    uint32_t numbers[2] = {rank->rank, 0};
    const struct weir_transport_part ring[] = {
        {sizeof ring[0], (rank->rank + 1) % rank->count, false, WEIR_U32, 1, &numbers[0]},
        {sizeof ring[0], before, true, WEIR_U32, 1, &numbers[1]},
    };
    weir_status status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_EXCHANGE,
                                                                      .parts = ring,
                                                                      .part_count = 2});
    return status == WEIR_OK && numbers[1] != before ? WEIR_ERROR_INVALID : status;
}

// All that the line carries.
static void work(struct rank *rank, struct told *it)
{
    it->carries = ranks_ops()->carries_data(rank->group);
    it->worked = gather(rank, RANKS_PATIENCE);
    if (it->worked == WEIR_OK)
        it->worked = pass_on(rank);
    if (it->worked == WEIR_OK)
        it->worked = rank_barrier(rank);
    if (it->worked == WEIR_OK) // compared alone
        it->worked = rank_call(rank, call_of(WEIR_ALL_REDUCE, WEIR_F32, LARGE, NULL, NULL));
    if (it->worked)
        it->error = rank->error;
}

static void expect_work(const struct plan *plan)
{
    run(plan);
    for (uint32_t i = 0; i < plan->count; i++) {
        EXPECT_STR_EQ(told[i].error.message, "");
        EXPECT_INT_EQ(told[i].joined, WEIR_OK);
        EXPECT_INT_EQ(told[i].worked, WEIR_OK);
        EXPECT_FALSE(told[i].carries);
    }
}

HOSTS_TEST(MeetWithOneSecret)
{
    expect_work(&(struct plan){.secrets = {SECRET, SECRET},
                               .count = 4,
                               .hosts = {HERE, THERE, HERE, THERE},
                               .body = work});
}

// The file has a secret of its own.
HOSTS_TEST(MeetAtAFileThatBothSee)
{
    struct place place = place_open("file:");
    expect_work(&(struct plan){.rendezvous = place.rendezvous,
                               .count = 4,
                               .hosts = {HERE, THERE, THERE, HERE},
                               .body = work});
    EXPECT_FALSE(place_is_taken(&place));
    EXPECT_TRUE(place_close(&place));
}

// All are told at once, also those that wait for more bytes than come.
static void gather_oddly(struct rank *rank, struct told *it)
{
    static const uint32_t src[LARGE / 64];
    static uint32_t dst[3 * LARGE / 64];
    const uint64_t before_ns = weir_clock_now_ns();
    it->worked = rank_call(rank, call_of(WEIR_ALL_GATHER, WEIR_U32,
                                         rank->rank == 1 ? 1 : LARGE / 64, src, dst));
    it->error = rank->error;
    it->calls = (int)((weir_clock_now_ns() - before_ns) / 1000000);
}

HOSTS_TEST(TellOfCallsThatDiffer)
{
    run(&(struct plan){.secrets = {SECRET, SECRET},
                       .count = 3,
                       .hosts = {HERE, THERE, HERE},
                       .body = gather_oddly});
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT_EQ(told[i].joined, WEIR_OK);
        EXPECT_INT_EQ(told[i].worked, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(told[i].error.message, "rank 1 has called all-gather 1 (app.c:101) with 1");
        EXPECT_INT_LT(told[i].calls, RANKS_PATIENCE / 1000000 / 2);
    }
}

// A rank of the other host is refused by a sentence; rank 0 is told of it at its timeout.
HOSTS_TEST(NeedTheSameSecret)
{
    static const struct {
        const char *here, *there;
        weir_status status; // of rank 1
        const char *words[2], *remedy;
    } rows[] = {
        {SECRET,
         "another text, as long as it is",
         WEIR_ERROR_COMM,
         {"refused", "not the same secret"},
         "WEIR_COMM_SECRET"},
        {NULL, SECRET, WEIR_ERROR_COMM, {"rank 1 has not come", ""}, ""},
        {SECRET, NULL, WEIR_ERROR_CONFIG, {"", "no secret is set"}, "WEIR_COMM_SECRET"},
    };
    for (int i = 0; i < 3; i++) {
        run(&(struct plan){.secrets = {rows[i].here, rows[i].there},
                           .count = 2,
                           .hosts = {HERE, THERE},
                           .timeout_ns = RANKS_SECOND});
        EXPECT_INT_EQ(told[0].joined, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(told[0].error.message, "rank 1 has not come");
        EXPECT_CONTAINS(told[0].error.message, rows[i].words[0]);
        EXPECT_INT_EQ(told[1].joined, rows[i].status);
        EXPECT_CONTAINS(told[1].error.message, rows[i].words[1]);
        EXPECT_CONTAINS(told[1].error.remedy, rows[i].remedy);
    }
}

// Ranks of a host are a part in which host memory is carried; all together have the line alone, which takes no reductions.
static bool refuses_kind;

static void part(struct rank *rank, struct told *it)
{
    void *group = NULL;
    const int host = (int)(rank->rank % 2);
    it->worked = gather(rank, RANKS_PATIENCE);
    it->parted = rank_split(rank, (struct weir_transport_split){.color = host}, &group);
    if (it->parted == WEIR_OK) {
        struct rank own = {.group = group};
        ranks_ops()->place(group, &own.rank, &own.count);
        it->number = own.rank;
        it->count = own.count;
        it->part_carries = ranks_ops()->carries_data(group);
        it->parted = find_most(&own, LARGE, RANKS_PATIENCE);
        rank_leave(&own);
    }
    // The refusal fails the whole group, so it waits until all have had their part.
    const uint64_t deadline = weir_clock_now_ns() + RANKS_PATIENCE;
    it->works = true;
    for (uint32_t i = 0; i < rank->count; i++)
        while (!told[i].works && weir_clock_now_ns() < deadline)
            usleep(1000);
    it->refused = refuses_kind ? find_most(rank, 1, RANKS_PATIENCE) : gather_much(rank);
    it->error = rank->error;
}

static void expect_memory_on_each_alone(void)
{
    run(&(struct plan){.secrets = {SECRET, SECRET},
                       .count = 4,
                       .hosts = {HERE, THERE, HERE, THERE},
                       .body = part});
    int refused = 0;
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_INT_EQ(told[i].joined, WEIR_OK);
        EXPECT_INT_EQ(told[i].parted, WEIR_OK);
        EXPECT_TRUE(told[i].part_carries);
        EXPECT_INT_EQ(told[i].number, i / 2);
        EXPECT_INT_EQ(told[i].count, 2);
        EXPECT_INT_EQ(told[i].worked, WEIR_OK);
        EXPECT_CONTAINS(told[i].error.message, "host memory to another machine");
        if (told[i].refused == WEIR_ERROR_COMM) // another rank was refused before
            continue;
        EXPECT_INT_EQ(told[i].refused, WEIR_ERROR_UNSUPPORTED);
        EXPECT_CONTAINS(told[i].error.remedy, "WEIR_COMM_TRANSPORT=mpi");
        refused++;
    }
    EXPECT_INT_LT(0, refused);
}

HOSTS_TEST(ShareMemoryOnEachAndNoneTogether)
{
    for (int i = 0; i < 2; i++) {
        refuses_kind = i;
        expect_memory_on_each_alone();
    }
}

// What remains when ranks fail.

// When the victims get a signal.
enum when {
    BEFORE,  // their fourth call
    WAITING, // in it, while another rank has not come
    AT_WORK, // anywhere in a later one
};

// Ranks that call until one fails, and then may go on with those that are left.
static struct scene {
    unsigned victims; // a bit for each
    int signal;
    enum when when;
    bool far;  // over the control line
    bool ring; // messages
    size_t count;
    uint64_t timeout_ns;
    uint64_t shrink_ns; // 0: they do not
    bool forks;         // a victim, which leaves a child
    uint32_t poor;      // a rank that has no descriptors to go on
} scene;

static bool is_victim(uint32_t rank)
{
    return scene.victims >> rank & 1;
}

static void signal_victims(int number)
{
    for (uint32_t i = 0; i < MOST; i++)
        if (is_victim(i) && told[i].process)
            kill(told[i].process, number);
}

// What is left is enough to listen, and to make a group without a connection.
static void use_up_descriptors(void)
{
    struct rlimit limit;
    const int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)next + 2;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// A failure of the first attempt stays in `last`.
static void go_on(struct rank *rank, struct told *it)
{
    const bool poor = scene.poor && rank->rank == scene.poor;
    if (poor)
        use_up_descriptors();
    it->went_on = rank_shrink(rank, scene.shrink_ns);
    if (it->went_on != WEIR_OK)
        it->last = rank->error;
    if (it->went_on != WEIR_OK && !poor)
        it->went_on = rank_shrink(rank, scene.shrink_ns);
    if (it->went_on != WEIR_OK)
        return;
    it->number = rank->rank;
    it->count = rank->count;
    it->went_on = gather(rank, RANKS_PATIENCE);
}

static void before_call(const struct rank *rank, int call)
{
    const uint32_t sender = is_victim(0); // the first that is none
    if (call != 3 || scene.when == AT_WORK || is_victim(rank->rank) != (scene.when == BEFORE))
        return;
    if (scene.when == BEFORE)
        raise(scene.signal);
    else if (rank->rank == sender) {
        weir_clock_sleep_ns(RANKS_SECOND / 3);
        signal_victims(scene.signal);
    }
}

// The child has the parent's files as they are after fork().
static void fork_child(void)
{
    if (fork() != 0)
        return;
    while (!*over)
        weir_clock_sleep_ns(RANKS_SECOND / 100);
    _exit(0);
}

static void call_until_failure(struct rank *rank, struct told *it)
{
    const bool victim = is_victim(rank->rank);
    if (scene.forks && victim)
        fork_child();
    while (it->worked == WEIR_OK) {
        before_call(rank, it->calls);
        it->worked = scene.far    ? gather(rank, scene.timeout_ns)
                     : scene.ring ? pass_on(rank)
                                  : find_most(rank, scene.count, scene.timeout_ns);
        it->calls++;
    }
    it->error = rank->error;
    if (scene.shrink_ns)
        go_on(rank, it);
    if (scene.signal == SIGSTOP && !victim)
        signal_victims(SIGCONT);
}

// So many ranks on this host, or with rank 1 on the other one.
static struct plan plan_of(uint32_t count)
{
    struct plan plan = {.count = count,
                        .body = call_until_failure,
                        .rendezvous = scene.far ? NULL : ranks_setup("file").rendezvous};
    if (scene.far) {
        plan.secrets[HERE] = plan.secrets[THERE] = SECRET;
        plan.hosts[1] = THERE;
    }
    return plan;
}

static void await_calls(const struct plan *plan, const pid_t *processes)
{
    for (uint32_t i = 0; i < plan->count; i++)
        while (told[i].calls < 3 && !told[i].joined && kill(processes[i], 0) == 0)
            weir_clock_sleep_ns(RANKS_SECOND / 10000);
}

static void play(struct scene played, uint32_t count)
{
    pid_t processes[MOST];
    scene = played;
    const struct plan plan = plan_of(count);
    start(&plan, processes);
    if (scene.when == AT_WORK) {
        await_calls(&plan, processes);
        signal_victims(scene.signal);
    }
    await(&plan, processes);
}

// All but the victims; and these too, when they go on after they were stopped.
static void expect_told(uint32_t count, const char *text)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_victim(i) && scene.signal == SIGKILL)
            continue;
        EXPECT_INT_EQ(told[i].joined, WEIR_OK);
        EXPECT_INT_EQ(told[i].worked, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(told[i].error.message, text);
    }
}

// `left` of them, in their order.
static void expect_to_go_on(uint32_t count, uint32_t left)
{
    for (uint32_t i = 0, number = 0; i < count; i++) {
        if (is_victim(i) || (scene.poor && i == scene.poor))
            continue;
        EXPECT_INT_EQ(told[i].went_on, WEIR_OK);
        EXPECT_INT_EQ(told[i].number, number++);
        EXPECT_INT_EQ(told[i].count, left);
    }
}

// The others wait for the one that is killed, and have a minute's patience. A child that it has forked, and that lives
// on, keeps none of its connections.
WEIR_TEST(Processes, TellOfOneThatIsKilled)
{
    for (int forks = 0; forks < 2; forks++) {
        play((struct scene){.victims = 2, .signal = SIGKILL, .count = 3, .forks = forks}, 3);
        expect_told(3, "all-reduce 4 of 'grads', app.c:104: rank 1 has died; its last "
                       "collective was all-reduce 3 (app.c:103)");
    }
    play((struct scene){.victims = 2, .signal = SIGKILL, .ring = true}, 3);
    expect_told(3, "exchange of 'grads', app.c:100: rank 1 has died before its first collective");
}

WEIR_TEST(Processes, TellOfOneThatIsKilledAtWork)
{
    for (uint32_t turn = 0; turn < 6; turn++) {
        char expected[64];
        snprintf(expected, sizeof expected, "rank %u has died; its last collective was all-reduce",
                 turn % 3);
        play((struct scene){.victims = 1u << turn % 3,
                            .signal = SIGKILL,
                            .when = AT_WORK,
                            .count = LONG},
             3);
        expect_told(3, expected);
    }
}

// One that is stopped is late, also where the others have come while it waited, and where it does not finish what it has
// begun; when it goes on it gets the first cause.
WEIR_TEST(Processes, TellOfOneThatIsStopped)
{
    for (enum when when = BEFORE; when <= AT_WORK; when++) {
        play((struct scene){.victims = 2,
                            .signal = SIGSTOP,
                            .when = when,
                            .count = when == AT_WORK ? LONG : 3,
                            .timeout_ns = 2 * RANKS_SECOND},
             2);
        expect_told(2, when > BEFORE ? ": rank 1 has "
                                     : "all-reduce 4 of 'grads', app.c:104: rank 1 has submitted "
                                       "nothing after all-reduce 3 (app.c:103) in 2.00 s");
    }
}

// Three of four go on when one is killed, whichever it is.
WEIR_TEST(Processes, GoOnWithoutOneThatIsKilled)
{
    for (uint32_t victim = 0; victim < 4; victim += 3) {
        play((struct scene){.victims = 1u << victim,
                            .signal = SIGKILL,
                            .when = AT_WORK,
                            .count = LONG,
                            .shrink_ns = RANKS_PATIENCE},
             4);
        expect_to_go_on(4, 3);
    }
}

// The first three of five have stopped, and the others do not wait long for them. When they go on, the others have
// gone.
WEIR_TEST(Processes, GoOnWithoutThoseThatAreStopped)
{
    play((struct scene){.victims = 7,
                        .signal = SIGSTOP,
                        .when = AT_WORK,
                        .count = LONG,
                        .timeout_ns = 2 * RANKS_SECOND,
                        .shrink_ns = 12 * RANKS_SECOND},
         5);
    expect_to_go_on(5, 2);
    for (int i = 0; i < 3; i++) {
        EXPECT_INT_EQ(told[i].went_on, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(told[i].last.message, "the other ranks have gone on without rank ");
    }
}

// Rank 3 is left, but cannot join the others: none goes on, and all know why. The next attempt is
// without it.
WEIR_TEST(Processes, GoOnTogetherOrNot)
{
    play((struct scene){.victims = 2,
                        .signal = SIGKILL,
                        .when = AT_WORK,
                        .count = LONG,
                        .shrink_ns = RANKS_PATIENCE,
                        .poor = 3},
         4);
    expect_to_go_on(4, 2);
    EXPECT_INT_EQ(told[3].went_on, WEIR_ERROR_COMM);
    for (int i = 0; i < 4; i++)
        if (!is_victim((uint32_t)i))
            EXPECT_CONTAINS(told[i].last.message, "rank 3 of 'grads' cannot go on: ");
}

static const struct scene far_scene = {.victims = 2,
                                       .far = true,
                                       .timeout_ns = RANKS_SECOND,
                                       .shrink_ns = 4 * RANKS_SECOND};

HOSTS_TEST(AreToldOfADeathAtOnce)
{
    struct scene dies = far_scene;
    dies.signal = SIGKILL;
    dies.timeout_ns = dies.shrink_ns = RANKS_PATIENCE;
    play(dies, 3);
    expect_told(3, "rank 1 has died"); // and not that it is late
    expect_to_go_on(3, 2);
}

static void expect_cut(enum host host, const char *cut, const char *mended)
{
    scene = far_scene;
    const struct plan plan = plan_of(3);
    pid_t processes[MOST];
    scene.when = AT_WORK;
    start(&plan, processes);
    await_calls(&plan, processes);
    EXPECT_TRUE(command(host, cut));
    await(&plan, processes);
    EXPECT_TRUE(command(host, mended));
    expect_told(3, "rank ");
    expect_to_go_on(3, 2);
}

HOSTS_TEST(AreToldOfACutCableAtTheTimeout)
{
    expect_cut(THERE, "ip link set w1 down", "ip link set w1 up");
}

// There is no way to the other host any more, which those that go on do not need.
HOSTS_TEST(GoOnWithoutANetwork)
{
    expect_cut(HERE, "ip link set w0 down", "ip link set w0 up");
}
