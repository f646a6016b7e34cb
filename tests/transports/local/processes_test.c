// Ranks in processes, which are killed and stopped.
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"

#define PROGRAM "tests/transports/local/program"

extern char **environ;

struct process {
    pid_t id;
    FILE *in;  // its standard input
    FILE *out; // its standard output
    int status;
    uint64_t time_ns;
    char message[1024];
};

// Files of other processes are closed over exec, so that each process alone holds its own.
static void set_up_pipe(int ends[2])
{
    ASSERT_INT_EQ(pipe(ends), 0);
    for (int i = 0; i < 2; i++)
        ASSERT_INT_EQ(fcntl(ends[i], F_SETFD, FD_CLOEXEC), 0);
}

static void start_with(struct process *process, uint32_t rank, uint32_t count,
                       const char *rendezvous, const char *steps, const char *timeout_ms,
                       const char *shrink_ms, const char *more)
{
    int in[2];
    int out[2];
    char rank_text[16];
    char count_text[16];
    posix_spawn_file_actions_t actions;
    char *arguments[] = {(char *)PROGRAM,    rank_text,     count_text,
                         (char *)rendezvous, (char *)steps, (char *)timeout_ms,
                         (char *)shrink_ms,  (char *)more,  NULL};
    snprintf(rank_text, sizeof rank_text, "%u", rank);
    snprintf(count_text, sizeof count_text, "%u", count);
    set_up_pipe(in);
    set_up_pipe(out);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ASSERT_INT_EQ(posix_spawn(&process->id, PROGRAM, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    process->in = fdopen(in[1], "w");
    process->out = fdopen(out[0], "r");
}

static void start(struct process *process, uint32_t rank, uint32_t count, const char *rendezvous,
                  const char *steps, const char *timeout_ms)
{
    start_with(process, rank, count, rendezvous, steps, timeout_ms, NULL, NULL);
}

static void start_all(struct process *processes, uint32_t count, const char *const *steps,
                      const char *timeout_ms)
{
    const struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < count; i++)
        start(&processes[i], i, count, setup.rendezvous, steps[i], timeout_ms);
}

static void expect_waiting(struct process *process)
{
    char line[1024] = "";
    EXPECT_NOT_NULL(fgets(line, sizeof line, process->out));
    EXPECT_STR_EQ(line, "waiting\n");
}

static void go_on(struct process *process)
{
    fputs("go\n", process->in);
    fflush(process->in);
}

// Reads the last line, unless the process was killed, and waits for its end.
static void finish(struct process *process)
{
    char line[1024] = "";
    process->status = 1;
    if (fgets(line, sizeof line, process->out))
        sscanf(line, "%d %" SCNu64 " %1023[^\n]", &process->status, // NOLINT(cert-err34-c)
               &process->time_ns, process->message);
    fclose(process->in);
    fclose(process->out);
    ASSERT_INT_EQ(waitpid(process->id, NULL, 0), process->id);
}

// RANKS_MEMORY is that of the others.
static void work(const char *memory_of_last)
{
    char others[8];
    snprintf(others, sizeof others, "%s", getenv("RANKS_MEMORY"));
    static const char *const steps[] = {"5", "5", "5"};
    struct process processes[3] = {{.id = 0}};
    const struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < 3; i++) {
        setenv("RANKS_MEMORY", i == 2 ? memory_of_last : others, 1);
        start(&processes[i], i, 3, setup.rendezvous, steps[i], "60000");
    }
    setenv("RANKS_MEMORY", others, 1);
    for (int i = 0; i < 3; i++)
        expect_waiting(&processes[i]);
    for (int i = 0; i < 3; i++)
        go_on(&processes[i]);
    for (int i = 0; i < 3; i++) {
        finish(&processes[i]);
        EXPECT_INT_EQ(processes[i].status, WEIR_OK);
        EXPECT_STR_EQ(processes[i].message, "");
    }
}

WEIR_TEST(Processes, Work)
{
    work("map");
}

// Then no rank reads another one's memory.
WEIR_TEST(Processes, WorkWithOneThatSends)
{
    work("send");
}

// The others wait for the one that is killed, and have a minute's patience.
WEIR_TEST(Processes, TellOfOneThatIsKilled)
{
    static const char *const steps[] = {"3", "3", "3"};
    struct process processes[3] = {{.id = 0}};
    start_all(processes, 3, steps, "60000");
    for (int i = 0; i < 3; i++)
        expect_waiting(&processes[i]);
    go_on(&processes[0]);
    go_on(&processes[2]);
    const uint64_t killed_ns = weir_clock_now_ns();
    kill(processes[1].id, SIGKILL);
    for (int i = 0; i < 3; i++)
        finish(&processes[i]);
    for (int i = 0; i < 3; i += 2) {
        EXPECT_INT_EQ(processes[i].status, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(processes[i].message,
                        "all-reduce 4 of 'grads', app.c:104: rank 1 has died; its last collective "
                        "was all-reduce 3 (app.c:103)");
        printf("rank %d: the cause %.3f ms after the kill\n", i,
               (double)(processes[i].time_ns - killed_ns) / 1e6);
    }
}

// A child that the rank has forked, and that lives on, keeps none of its connections: the others know at once.
WEIR_TEST(Processes, TellOfOneThatIsKilledWhileItsChildLives)
{
    struct process processes[3] = {{.id = 0}};
    const struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < 3; i++)
        start_with(&processes[i], i, 3, setup.rendezvous, "3", "60000", "0",
                   i == 1 ? "fork" : NULL);
    for (int i = 0; i < 3; i++)
        expect_waiting(&processes[i]);
    go_on(&processes[0]);
    go_on(&processes[2]);
    const uint64_t killed_ns = weir_clock_now_ns();
    kill(processes[1].id, SIGKILL);
    for (int i = 0; i < 3; i += 2) {
        finish(&processes[i]);
        EXPECT_INT_EQ(processes[i].status, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(processes[i].message,
                        "all-reduce 4 of 'grads', app.c:104: rank 1 has died; its last collective "
                        "was all-reduce 3 (app.c:103)");
        printf("rank %d: the cause %.3f ms after the kill\n", i,
               (double)(processes[i].time_ns - killed_ns) / 1e6);
    }
    finish(&processes[1]);
}

// Messages of those that are left.
WEIR_TEST(Processes, TellOfOneThatIsKilledAfterAnotherHasLeft)
{
    static const char *const steps[] = {"-1", "-1", "-1"};
    struct process processes[3] = {{.id = 0}};
    start_all(processes, 3, steps, "60000");
    finish(&processes[2]);
    EXPECT_INT_EQ(processes[2].status, WEIR_OK);
    expect_waiting(&processes[0]);
    expect_waiting(&processes[1]);
    kill(processes[1].id, SIGKILL);
    finish(&processes[0]);
    finish(&processes[1]);
    EXPECT_INT_EQ(processes[0].status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(processes[0].message, "exchange of 'grads', app.c:");
    EXPECT_CONTAINS(processes[0].message, "rank 1 has died; its last collective was all-reduce 1");
}

// Anywhere within a collective.
WEIR_TEST(Processes, TellOfOneThatIsKilledAtWork)
{
    static const char *const steps[] = {"0", "0", "0"};
    for (int turn = 0; turn < 6; turn++) {
        struct process processes[3] = {{.id = 0}};
        start_all(processes, 3, steps, "60000");
        for (int i = 0; i < 3; i++)
            expect_waiting(&processes[i]);
        kill(processes[turn % 3].id, SIGKILL);
        for (int i = 0; i < 3; i++)
            finish(&processes[i]);
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d has died; its last collective was all-reduce",
                 turn % 3);
        for (int i = 0; i < 3; i++) {
            EXPECT_INT_EQ(processes[i].status, i == turn % 3 ? 1 : WEIR_ERROR_COMM);
            if (i != turn % 3)
                EXPECT_CONTAINS(processes[i].message, expected);
        }
    }
}

// One that is stopped is late; when it goes on it gets the first cause.
WEIR_TEST(Processes, TellOfOneThatIsStopped)
{
    static const char *const steps[] = {"2", "2"};
    struct process processes[2] = {{.id = 0}};
    start_all(processes, 2, steps, "2000");
    for (int i = 0; i < 2; i++)
        expect_waiting(&processes[i]);
    kill(processes[1].id, SIGSTOP);
    go_on(&processes[1]);
    go_on(&processes[0]);
    finish(&processes[0]);
    kill(processes[1].id, SIGCONT);
    finish(&processes[1]);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT_EQ(processes[i].status, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(processes[i].message,
                        "all-reduce 3 of 'grads', app.c:103: rank 1 has submitted nothing after "
                        "all-reduce 2 (app.c:102) in 2.00 s");
    }
}

// The same within a collective: what it has begun it does not finish.
WEIR_TEST(Processes, TellOfOneThatIsStoppedAtWork)
{
    static const char *const steps[] = {"0", "0"};
    struct process processes[2] = {{.id = 0}};
    start_all(processes, 2, steps, "2000");
    for (int i = 0; i < 2; i++)
        expect_waiting(&processes[i]);
    kill(processes[1].id, SIGSTOP);
    finish(&processes[0]);
    kill(processes[1].id, SIGCONT);
    finish(&processes[1]);
    EXPECT_INT_EQ(processes[0].status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(processes[0].message, "in 2.00 s");
    EXPECT_CONTAINS(processes[0].message, ": rank 1 has ");
    EXPECT_INT_EQ(processes[1].status, WEIR_ERROR_COMM);
}

// Nothing ends: the others know at the timeout, and which one. With memory that is sent, for a rank of another host
// has no other way.
static void expect_cut_off(int victim)
{
    static const char *const steps[] = {"0", "0", "0"};
    struct process processes[3] = {{.id = 0}};
    char expected[32];
    start_all(processes, 3, steps, "2000");
    for (int i = 0; i < 3; i++)
        expect_waiting(&processes[i]);
    const uint64_t cut_ns = weir_clock_now_ns();
    kill(processes[victim].id, SIGUSR1);
    snprintf(expected, sizeof expected, ": rank %d has ", victim);
    for (int n = 1; n <= 3; n++) {
        const int i = (victim + n) % 3; // it is the last one
        finish(&processes[i]);
        EXPECT_INT_EQ(processes[i].status, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(processes[i].message, " in 2.00 s");
        if (i == victim)
            continue;
        EXPECT_CONTAINS(processes[i].message, expected);
        printf("rank %d: the cause %.3f s after rank %d was cut off\n", i,
               (double)(processes[i].time_ns - cut_ns) / 1e9, victim);
    }
}

WEIR_TEST(Processes, TellOfOneThatIsCutOff)
{
    char others[8];
    snprintf(others, sizeof others, "%s", getenv("RANKS_MEMORY"));
    setenv("RANKS_MEMORY", "send", 1);
    for (int victim = 0; victim < 2; victim++)
        expect_cut_off(victim);
    setenv("RANKS_MEMORY", others, 1);
}

// Three of four go on when one is killed, whichever it is.
static void expect_to_go_on(int victim)
{
    struct process processes[4] = {{.id = 0}};
    const struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < 4; i++)
        start_with(&processes[i], i, 4, setup.rendezvous, "0", "60000", "60000", NULL);
    for (int i = 0; i < 4; i++)
        expect_waiting(&processes[i]);
    kill(processes[victim].id, SIGKILL);
    for (int i = 0, rank = 0; i < 4; i++) {
        char expected[32];
        finish(&processes[i]);
        if (i == victim)
            continue;
        snprintf(expected, sizeof expected, "rank %d of 3", rank++);
        EXPECT_INT_EQ(processes[i].status, WEIR_OK);
        EXPECT_STR_EQ(processes[i].message, expected);
    }
}

WEIR_TEST(Processes, GoOnWithoutOneThatIsKilled)
{
    expect_to_go_on(0);
    expect_to_go_on(3);
}

// The first `stopped` of the ranks have stopped, and the others do not wait long for them. When they go on,
// the others have gone.
static void expect_to_go_on_without(int stopped, int count)
{
    struct process processes[6] = {{.id = 0}};
    const struct weir_transport_setup setup = ranks_setup("file");
    for (int i = 0; i < count; i++)
        start_with(&processes[i], (uint32_t)i, (uint32_t)count, setup.rendezvous, "0", "2000",
                   "12000", NULL);
    for (int i = 0; i < count; i++)
        expect_waiting(&processes[i]);
    for (int i = 0; i < stopped; i++)
        kill(processes[i].id, SIGSTOP);
    for (int i = stopped; i < count; i++) {
        char expected[32];
        finish(&processes[i]);
        snprintf(expected, sizeof expected, "rank %d of %d", i - stopped, count - stopped);
        EXPECT_INT_EQ(processes[i].status, WEIR_OK);
        EXPECT_STR_EQ(processes[i].message, expected);
    }
    for (int i = 0; i < stopped; i++)
        kill(processes[i].id, SIGCONT);
    for (int i = 0; i < stopped; i++) {
        finish(&processes[i]);
        EXPECT_INT_EQ(processes[i].status, WEIR_ERROR_COMM);
        EXPECT_CONTAINS(processes[i].message, "the other ranks have gone on without rank ");
    }
}

WEIR_TEST(Processes, GoOnWithoutThoseThatAreStopped)
{
    expect_to_go_on_without(3, 5);
}

// Rank 3 is left, but cannot join the others: none goes on, and all know why. The next attempt is
// without it.
WEIR_TEST(Processes, GoOnTogetherOrNot)
{
    struct process processes[4] = {{.id = 0}};
    const struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < 4; i++)
        start_with(&processes[i], i, 4, setup.rendezvous, "0", "60000", "60000",
                   i == 3 ? "poor" : NULL);
    for (int i = 0; i < 4; i++)
        expect_waiting(&processes[i]);
    kill(processes[1].id, SIGKILL);
    for (int i = 0; i < 4; i++)
        finish(&processes[i]);
    EXPECT_INT_EQ(processes[3].status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(processes[3].message, "'left': rank 2 cannot connect to rank 0 at ");
    EXPECT_CONTAINS(processes[3].message, "Too many open files");
    for (int i = 0; i < 3; i += 2) {
        EXPECT_INT_EQ(processes[i].status, WEIR_OK);
        EXPECT_CONTAINS(processes[i].message, i == 0 ? "rank 0 of 2" : "rank 1 of 2");
        EXPECT_CONTAINS(processes[i].message,
                        ", after: 'left': rank 3, which was to go on too, has not joined");
    }
}
