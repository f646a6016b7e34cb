// Ranks in processes, which are killed and stopped.
#include <fcntl.h>
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

static void expect_waiting(struct process *process)
{
    char line[1024] = "";
    EXPECT_NOT_NULL(fgets(line, sizeof line, process->out));
    EXPECT_STR_EQ(line, "waiting\n");
}

// All with the same arguments but for what rank `odd` has more, until they wait.
static void start_all(struct process *processes, uint32_t count, const char *steps,
                      const char *timeout_ms, const char *shrink_ms, uint32_t odd, const char *more)
{
    const struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < count; i++)
        start_with(&processes[i], i, count, setup.rendezvous, steps, timeout_ms, shrink_ms,
                   i == odd ? more : NULL);
    for (uint32_t i = 0; i < count; i++)
        expect_waiting(&processes[i]);
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
        sscanf(line, "%d %1023[^\n]", &process->status, process->message); // NOLINT(cert-err34-c)
    fclose(process->in);
    fclose(process->out);
    ASSERT_INT_EQ(waitpid(process->id, NULL, 0), process->id);
}

// It has failed, and says that.
static void expect_told(struct process *process, const char *text)
{
    finish(process);
    EXPECT_INT_EQ(process->status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(process->message, text);
}

WEIR_TEST(Processes, Work)
{
    struct process processes[3] = {{.id = 0}};
    start_all(processes, 3, "5", "60000", NULL, 3, NULL);
    for (int i = 0; i < 3; i++)
        go_on(&processes[i]);
    for (int i = 0; i < 3; i++) {
        finish(&processes[i]);
        EXPECT_INT_EQ(processes[i].status, WEIR_OK);
        EXPECT_STR_EQ(processes[i].message, "");
    }
}

// The others wait for the one that is killed, and have a minute's patience. A child that it has forked, and that lives
// on, keeps none of its connections.
static void expect_death_told(const char *more)
{
    struct process processes[3] = {{.id = 0}};
    start_all(processes, 3, "3", "60000", "0", 1, more);
    go_on(&processes[0]);
    go_on(&processes[2]);
    kill(processes[1].id, SIGKILL);
    for (int i = 0; i < 3; i += 2)
        expect_told(&processes[i], "all-reduce 4 of 'grads', app.c:104: rank 1 has died; its last "
                                   "collective was all-reduce 3 (app.c:103)");
    finish(&processes[1]);
}

WEIR_TEST(Processes, TellOfOneThatIsKilled)
{
    expect_death_told(NULL);
    expect_death_told("fork");
}

// Messages of those that are left.
WEIR_TEST(Processes, TellOfOneThatIsKilledAfterAnotherHasLeft)
{
    struct process processes[3] = {{.id = 0}};
    const struct weir_transport_setup setup = ranks_setup("file");
    for (uint32_t i = 0; i < 3; i++)
        start_with(&processes[i], i, 3, setup.rendezvous, "-1", "60000", NULL, NULL);
    finish(&processes[2]);
    EXPECT_INT_EQ(processes[2].status, WEIR_OK);
    expect_waiting(&processes[0]);
    expect_waiting(&processes[1]);
    kill(processes[1].id, SIGKILL);
    expect_told(&processes[0], "rank 1 has died; its last collective was all-reduce 1");
    finish(&processes[1]);
}

// Anywhere within a collective.
WEIR_TEST(Processes, TellOfOneThatIsKilledAtWork)
{
    for (int turn = 0; turn < 6; turn++) {
        struct process processes[3] = {{.id = 0}};
        char expected[64];
        start_all(processes, 3, "0", "60000", NULL, 3, NULL);
        kill(processes[turn % 3].id, SIGKILL);
        snprintf(expected, sizeof expected, "rank %d has died; its last collective was all-reduce",
                 turn % 3);
        for (int n = 1; n < 3; n++)
            expect_told(&processes[(turn + n) % 3], expected);
        finish(&processes[turn % 3]);
    }
}

// One that is stopped is late; when it goes on it gets the first cause.
WEIR_TEST(Processes, TellOfOneThatIsStopped)
{
    static const char expected[] = "all-reduce 3 of 'grads', app.c:103: rank 1 has submitted "
                                   "nothing after all-reduce 2 (app.c:102) in 2.00 s";
    struct process processes[2] = {{.id = 0}};
    start_all(processes, 2, "2", "2000", NULL, 2, NULL);
    kill(processes[1].id, SIGSTOP);
    go_on(&processes[1]);
    go_on(&processes[0]);
    expect_told(&processes[0], expected);
    kill(processes[1].id, SIGCONT);
    expect_told(&processes[1], expected);
}

// So is one that is stopped while it waits: the others have come since, and it does not wait for them any more.
WEIR_TEST(Processes, TellOfOneThatIsStoppedWhileItWaits)
{
    struct process processes[2] = {{.id = 0}};
    start_all(processes, 2, "2", "2000", NULL, 2, NULL);
    go_on(&processes[1]);
    weir_clock_sleep_ns(UINT64_C(300) * 1000 * 1000);
    kill(processes[1].id, SIGSTOP);
    go_on(&processes[0]);
    expect_told(&processes[0], ": rank 1 has ");
    kill(processes[1].id, SIGCONT);
    expect_told(&processes[1], ": rank 1 has ");
}

// The same within a collective: what it has begun it does not finish.
WEIR_TEST(Processes, TellOfOneThatIsStoppedAtWork)
{
    struct process processes[2] = {{.id = 0}};
    start_all(processes, 2, "0", "2000", NULL, 2, NULL);
    kill(processes[1].id, SIGSTOP);
    expect_told(&processes[0], ": rank 1 has ");
    kill(processes[1].id, SIGCONT);
    expect_told(&processes[1], "");
}

static void expect_place(struct process *process, int rank, int count)
{
    char expected[32];
    snprintf(expected, sizeof expected, "rank %d of %d", rank, count);
    finish(process);
    EXPECT_INT_EQ(process->status, WEIR_OK);
    EXPECT_CONTAINS(process->message, expected);
}

// Three of four go on when one is killed, whichever it is.
static void expect_to_go_on(int victim)
{
    struct process processes[4] = {{.id = 0}};
    start_all(processes, 4, "0", "60000", "60000", 4, NULL);
    kill(processes[victim].id, SIGKILL);
    for (int i = 0, rank = 0; i < 4; i++)
        if (i != victim)
            expect_place(&processes[i], rank++, 3);
    finish(&processes[victim]);
}

WEIR_TEST(Processes, GoOnWithoutOneThatIsKilled)
{
    expect_to_go_on(0);
    expect_to_go_on(3);
}

// The first three of five have stopped, and the others do not wait long for them. When they go on, the others have
// gone.
WEIR_TEST(Processes, GoOnWithoutThoseThatAreStopped)
{
    struct process processes[5] = {{.id = 0}};
    start_all(processes, 5, "0", "2000", "12000", 5, NULL);
    for (int i = 0; i < 3; i++)
        kill(processes[i].id, SIGSTOP);
    for (int i = 3; i < 5; i++)
        expect_place(&processes[i], i - 3, 2);
    for (int i = 0; i < 3; i++)
        kill(processes[i].id, SIGCONT);
    for (int i = 0; i < 3; i++)
        expect_told(&processes[i], "the other ranks have gone on without rank ");
}

// Rank 3 is left, but cannot join the others: none goes on, and all know why. The next attempt is
// without it.
WEIR_TEST(Processes, GoOnTogetherOrNot)
{
    struct process processes[4] = {{.id = 0}};
    start_all(processes, 4, "0", "60000", "60000", 3, "poor");
    kill(processes[1].id, SIGKILL);
    finish(&processes[1]);
    expect_place(&processes[0], 0, 2);
    expect_place(&processes[2], 1, 2);
    expect_told(&processes[3], "Too many open files");
    for (int i = 0; i < 3; i += 2)
        EXPECT_CONTAINS(processes[i].message, ", after: rank 3 of 'grads' cannot go on: ");
}
