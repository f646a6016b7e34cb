// The ranks of weir launch: their start, the signals between them and the command, and their ends.
#define _GNU_SOURCE // pipe2
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/own.h"
#include "cli/common/signals.h"
#include "cli/launch/launch.h"

// The lines of the ranks. One thread reads those for standard output and another one those for standard error, so lines
// do not mix; where both are one file one thread reads all. A thread waits where this process's own output is not read:
// that delays the lines for this output, but not those for the other one.

enum {
    LINE_LIMIT = 65536, // a longer line is cut
    READ_SIZE = 8192,
    LATE_LIMIT = 1 << 20, // no pipe of a program without privileges holds more
    PREFIX_SIZE = 8,      // "[1023] " and a NUL
    ESCAPE_SIZE = 4,      // "\x1b"
};

// Standard output or standard error of one rank.
struct stream {
    int from; // -1: at its end
    int to;   // of this process's own
    size_t prefix;
    size_t late;   // how many bytes were read after the end of all ranks
    bool returned; // the last line ended with a carriage return
    size_t used;   // of a line that has not ended
    char bytes[PREFIX_SIZE + LINE_LIMIT + 1];
};

// A thread, and the streams that it reads.
struct relay {
    struct stream *streams;
    size_t count;
    struct stream **open; // those that have not ended
    struct pollfd *polled;
    pthread_t thread;
};

enum {
    READ,
    WRITE,
    OUTPUT = 0,
    MESSAGES,
    PIPE_COUNT
};

// What the threads share.
static struct {
    struct stream *streams; // of outputs, then of messages; NULL: ranks write to this process's own
    struct relay each[2];
    size_t started;
    atomic_size_t running;
    atomic_int error; // of errno's, of standard output
    int over[2];      // a pipe, whose end says that all ranks have ended
} relays;

static bool is_one_file(int a, int b)
{
    struct stat first;
    struct stat second;
    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool write_all(int descriptor, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = write(descriptor, bytes, size);
        if (count < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = descriptor, .events = POLLOUT}, 1, -1);
        else if (count < 0 && errno != EINTR)
            return false;
        bytes += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

// Lets the main thread look again.
static void wake(void)
{
    kill(getpid(), SIGCHLD);
}

static void add_line(struct stream *stream)
{
    const size_t size = stream->prefix + stream->used;
    stream->bytes[size] = '\n';
    stream->used = 0;
    if (!write_all(stream->to, stream->bytes, size + 1) && stream->to == STDOUT_FILENO &&
        relays.error == 0) {
        relays.error = errno;
        wake();
    }
}

static char *end_of(struct stream *stream)
{
    return stream->bytes + stream->prefix + stream->used;
}

static void add_text(struct stream *stream, const char *text, size_t size)
{
    if (stream->used + size > LINE_LIMIT)
        add_line(stream);
    memcpy(end_of(stream), text, size);
    stream->used += size;
    if (stream->used == LINE_LIMIT)
        add_line(stream);
}

// U+0080 to U+009F control terminals as ESC and a character do. In UTF-8 they follow a C2.
static bool is_control(struct stream *stream, unsigned char byte)
{
    if (byte >= 0x80 && byte <= 0x9f)
        return stream->used > 0 && (unsigned char)end_of(stream)[-1] == 0xc2;
    return (byte < ' ' && byte != '\t') || byte == 0x7f;
}

static void add_escaped(struct stream *stream, unsigned char byte)
{
    char text[ESCAPE_SIZE + 1];
    snprintf(text, sizeof text, "\\x%02x", byte);
    stream->used -= byte >= 0x80;
    add_text(stream, text, ESCAPE_SIZE);
}

// What a terminal would act on is spelt out: a rank could write over other ranks' lines with it. A carriage
// return, which lines of progress end with, ends a line.
static void take(struct stream *stream, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const bool had_returned = stream->returned;
        stream->returned = bytes[i] == '\r' && (stream->used > 0 || had_returned);
        if (bytes[i] == '\r' ? stream->used > 0 : bytes[i] == '\n' && !had_returned)
            add_line(stream);
        else if (bytes[i] == '\r' || bytes[i] == '\n')
            continue;
        else if (is_control(stream, (unsigned char)bytes[i]))
            add_escaped(stream, (unsigned char)bytes[i]);
        else
            add_text(stream, &bytes[i], 1);
    }
}

// Adds what is held as a line, and closes the stream.
static void stream_end(struct stream *stream)
{
    if (stream->used)
        add_line(stream);
    close(stream->from);
    stream->from = -1;
}

// Reads what is there, at most READ_SIZE. What remains at the end of the stream becomes a line. Returns how many bytes were
// read.
static size_t stream_read(struct stream *stream)
{
    char bytes[READ_SIZE];
    const ssize_t count = read(stream->from, bytes, sizeof bytes);
    if (count > 0)
        take(stream, bytes, (size_t)count);
    else
        stream_end(stream);
    return count > 0 ? (size_t)count : 0;
}

// When all ranks have ended, what is not there will not come.
static void stream_look(struct stream *stream, bool ready, bool at_end)
{
    if (stream->from >= 0 && ready)
        stream->late += stream_read(stream) * at_end;
    else if (stream->from >= 0 && at_end)
        stream_end(stream);
    if (stream->from >= 0 && stream->late > LATE_LIMIT)
        stream_end(stream);
}

// Lists the streams that have not ended, and after them the pipe. Returns how many these are.
static size_t list_open(struct relay *relay)
{
    size_t count = 0;
    for (size_t i = 0; i < relay->count; i++)
        if (relay->streams[i].from >= 0)
            relay->open[count++] = &relay->streams[i];
    for (size_t i = 0; i < count; i++)
        relay->polled[i] = (struct pollfd){.fd = relay->open[i]->from, .events = POLLIN};
    relay->polled[count] = (struct pollfd){.fd = relays.over[READ], .events = POLLIN};
    return count;
}

static void *run_relay(void *argument)
{
    struct relay *relay = argument;
    size_t count;
    while ((count = list_open(relay)) > 0)
        if (poll(relay->polled, count + 1, -1) > 0)
            for (size_t i = 0; i < count; i++)
                stream_look(relay->open[i], relay->polled[i].revents, relay->polled[count].revents);
    if (atomic_fetch_sub(&relays.running, 1) == 1)
        wake();
    return NULL;
}

// Signals are blocked in all threads, and taken by the main thread.

static struct {
    sigset_t signals;      // that this process takes
    sigset_t before;       // the process's mask
    struct sigaction pipe; // of SIGPIPE before
    pid_t process;         // this one
} held;

// A second SIGCHLD before the first is taken is not delivered, so that names the first process that has ended.
static void signals_take(void)
{
    static const int numbers[] = {SIGCHLD, SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                                  SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    const struct sigaction ends = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    sigaction(SIGPIPE, &ignored, &held.pipe);
    sigaction(SIGCHLD, &ends, NULL); // as it was, but for the flag, which no program inherits
    cli_signals_list(numbers, sizeof numbers / sizeof *numbers, &held.signals);
    sigprocmask(SIG_BLOCK, &held.signals, &held.before);
    held.process = getpid();
}

// In a new process too.
static void signals_restore(void)
{
    sigaction(SIGPIPE, &held.pipe, NULL);
    sigprocmask(SIG_SETMASK, &held.before, NULL);
}

// One rank. It leads a process group, so that what it starts is ended with it.

static void close_pipes(int pipes[PIPE_COUNT][2])
{
    for (size_t i = 0; i < PIPE_COUNT; i++)
        for (size_t end = READ; end <= WRITE; end++)
            if (pipes[i][end] >= 0)
                close(pipes[i][end]);
}

static bool open_pipes(int pipes[PIPE_COUNT][2])
{
    for (size_t i = 0; i < PIPE_COUNT; i++)
        pipes[i][READ] = pipes[i][WRITE] = -1;
    for (size_t i = 0; relays.streams && i < PIPE_COUNT; i++)
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            return false;
    return true;
}

// In the new process.
static void prepare(void)
{
    setpgid(0, 0);
    signals_restore();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != held.process)
        _exit(CLI_FAILED);
}

// As cli_program_start().
static int start(const struct launch *launch, int pipes[PIPE_COUNT][2], pid_t *out_process)
{
    const size_t rank = launch->started;
    const uint64_t count = launch->options->count;
    const char *const variables[] = {
        cli_text("RANK=%zu", rank),
        cli_text("LOCAL_RANK=%zu", rank),
        cli_text("WORLD_SIZE=%" PRIu64, count),
        cli_text("LOCAL_WORLD_SIZE=%" PRIu64, count),
        "MASTER_ADDR=127.0.0.1",
        cli_text("MASTER_PORT=%s", launch->port),
        // What this process has been given is of another job, and would come before RANK.
        "WEIR_COMM_RANK",
        "WEIR_COMM_COUNT",
        // The last, which a user's own goes before.
        cli_text("WEIR_COMM_RENDEZVOUS=%s", launch->place),
    };
    const size_t variable_count = sizeof variables / sizeof *variables;
    const bool open = relays.streams;
    const struct cli_program program = {
        .command = launch->options->command,
        .variables = variables,
        .variable_count = variable_count - (getenv("WEIR_COMM_RENDEZVOUS") != NULL),
        .no_input = true,
        .output = open                    ? pipes[OUTPUT][WRITE]
                  : launch->options->json ? STDERR_FILENO
                                          : 0,
        .messages = open ? pipes[MESSAGES][WRITE] : 0,
        .prepare = prepare,
    };
    return cli_program_start(&program, out_process);
}

static void open_streams(struct launch *launch, int pipes[PIPE_COUNT][2])
{
    const uint64_t last = launch->options->count - 1;
    const int width = last > 999 ? 4 : last > 99 ? 3 : last > 9 ? 2 : 1;
    for (size_t i = 0; relays.streams && i < PIPE_COUNT; i++) {
        struct stream *stream = &relays.streams[i * launch->options->count + launch->started];
        stream->from = pipes[i][READ];
        stream->to = i == OUTPUT && !launch->options->json ? STDOUT_FILENO : STDERR_FILENO;
        stream->prefix =
            (size_t)snprintf(stream->bytes, PREFIX_SIZE, "[%*zu] ", width, launch->started);
        pipes[i][READ] = -1;
    }
}

// Starts the next rank, as the leader of a process group. False after a message, with launch->failure set.
static bool rank_start(struct launch *launch)
{
    int pipes[PIPE_COUNT][2];
    pid_t process = -1;
    const int error = open_pipes(pipes) ? start(launch, pipes, &process) : errno;
    if (error == 0) {
        open_streams(launch, pipes);
        launch->ranks[launch->started++] = (struct rank){.process = process};
        launch->running++;
    } else {
        launch->failure = CLI_SETUP;
        if (process > 0)
            launch->failure = cli_program_tell_missing(launch->options->command[0], error);
        else
            cli_error("rank %zu of %" PRIu64
                      " cannot be started: %s; start fewer, or raise the limit%s",
                      launch->started, launch->options->count, strerror(error),
                      error == EMFILE ? " on open files (ulimit -n)" : " on processes (ulimit -u)");
    }
    close_pipes(pipes);
    return error == 0;
}

// Sends a signal to the process groups of all ranks that run.
static void rank_signal_all(const struct launch *launch, int number)
{
    for (size_t i = 0; i < launch->started; i++)
        if (!launch->ranks[i].ended)
            kill(-launch->ranks[i].process, number);
}

// Notes the rank's end if it has ended. Its process stays, so that its number, which is also its
// group's, is not given to another one.
//
// Returns whether it was found ended by this call.
static bool rank_note_end(struct launch *launch, size_t index)
{
    struct rank *rank = &launch->ranks[index];
    siginfo_t end = {.si_pid = 0};
    if (rank->ended || waitid(P_PID, (id_t)rank->process, &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        end.si_pid == 0)
        return false;
    rank->ended = true;
    rank->signal = end.si_code == CLD_EXITED ? 0 : end.si_status;
    rank->code = rank->signal ? CLI_SIGNALLED + rank->signal : end.si_status;
    launch->running--;
    return true;
}

// Tells all ranks to end. The grace time begins with the first call.
static void stop(struct launch *launch, int number)
{
    rank_signal_all(launch, number);
    for (size_t i = 0; i < launch->started && !launch->stopping; i++)
        launch->ranks[i].stopped = !launch->ranks[i].ended;
    if (!launch->stopping)
        launch->kill_ns = weir_clock_now_ns() + launch->options->grace_s * 1000000000;
    launch->stopping = true;
}

static void kill_all(struct launch *launch)
{
    for (size_t i = 0; i < launch->started; i++)
        launch->ranks[i].killed = launch->ranks[i].killed || !launch->ranks[i].ended;
    rank_signal_all(launch, SIGKILL);
    launch->kill_ns = UINT64_MAX;
}

// The second one asks not to wait, for output neither.
static void interrupt(struct launch *launch, int number)
{
    if (launch->signal) {
        launch->hurried = true;
        kill_all(launch);
        return;
    }
    launch->signal = number;
    stop(launch, number);
}

// A process that SIGKILL ends closes its connections before its end is told: another rank may have heard of
// it, and have ended with an error, before. Not so one that this process has killed.
static bool died_first(const struct launch *launch, const struct rank *rank)
{
    return rank->signal == SIGKILL && !rank->killed && launch->first_failed >= 0 &&
           launch->ranks[launch->first_failed].signal == 0;
}

static void note_end(struct launch *launch, size_t index)
{
    struct rank *rank = &launch->ranks[index];
    if (!rank_note_end(launch, index) || (!rank->signal && !rank->code))
        return;
    if (died_first(launch, rank)) {
        launch->first_failed = (int)index;
        rank->stopped = false;
    } else if (!launch->stopping) {
        launch->first_failed = (int)index;
        stop(launch, SIGTERM);
    }
}

static void note_ends(struct launch *launch, pid_t first)
{
    for (size_t i = 0; i < launch->started; i++)
        if (launch->ranks[i].process == first)
            note_end(launch, i);
    for (size_t i = 0; i < launch->started; i++)
        note_end(launch, i);
    for (size_t i = 0; launch->running == 0 && i < launch->started; i++)
        kill(-launch->ranks[i].process, SIGKILL); // what it has left in its process group
}

static void handle_signal(struct launch *launch, int number, pid_t process)
{
    if (number == SIGCHLD)
        note_ends(launch, process);
    else if (number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP)
        interrupt(launch, number);
    else
        rank_signal_all(launch, number);
    if (number == SIGTSTP)
        raise(SIGSTOP);
}

static void look_at_output(struct launch *launch)
{
    const int error = relays.error;
    if (error == 0 || launch->failure)
        return;
    launch->failure = CLI_FAILED;
    cli_error("standard output cannot be written: %s; the ranks are ended", strerror(error));
    stop(launch, SIGTERM);
}

// Waits for a signal, or the end of the grace time.
static void turn(struct launch *launch)
{
    const bool kills = launch->stopping && launch->running && launch->kill_ns != UINT64_MAX;
    const struct timespec until = weir_clock_timespec(weir_clock_left(launch->kill_ns));
    siginfo_t about = {.si_pid = 0};
    const int number =
        kills ? sigtimedwait(&held.signals, &about, &until) : sigwaitinfo(&held.signals, &about);
    if (number > 0)
        handle_signal(launch, number, about.si_pid);
    look_at_output(launch);
    if (kills && launch->running && weir_clock_now_ns() >= launch->kill_ns)
        kill_all(launch);
}

// After the last fork.
static void start_relays(struct launch *launch)
{
    const size_t count = PIPE_COUNT * launch->options->count;
    const bool one = launch->options->json || is_one_file(STDOUT_FILENO, STDERR_FILENO);
    const size_t most = relays.streams ? PIPE_COUNT - one : 0;
    int error = 0;
    for (; relays.started < most && error == 0; relays.started += error == 0) {
        struct relay *relay = &relays.each[relays.started];
        relay->count = count / most;
        relay->streams = &relays.streams[relays.started * relay->count];
        relay->open = cli_allocate(relay->count, sizeof(struct stream *));
        relay->polled = cli_allocate(relay->count + 1, sizeof *relay->polled);
        relays.running++;
        error = pthread_create(&relay->thread, NULL, run_relay, relay);
    }
    if (error == 0)
        return;
    relays.running--;
    launch->failure = CLI_SETUP;
    cli_error("there is no thread for the output of the ranks: %s; raise the limit on processes "
              "(ulimit -u)",
              strerror(error));
    stop(launch, SIGTERM);
}

static void end_relays(struct launch *launch)
{
    while (relays.running > 0 && !launch->hurried)
        turn(launch);
    for (size_t i = 0; i < relays.started; i++) {
        if (launch->hurried)
            pthread_cancel(relays.each[i].thread);
        pthread_join(relays.each[i].thread, NULL);
    }
    look_at_output(launch);
}

void watch(struct launch *launch)
{
    const size_t count = launch->options->count;
    if (!launch->options->no_prefix)
        relays.streams = cli_allocate(PIPE_COUNT * count, sizeof *relays.streams);
    for (size_t i = 0; relays.streams && i < PIPE_COUNT * count; i++)
        relays.streams[i].from = -1;
    if (pipe2(relays.over, O_CLOEXEC) != 0)
        cli_fail(CLI_SETUP, "a pipe cannot be made: %s", strerror(errno));
    signals_take();
    while (launch->started < count && !launch->stopping) {
        if (!rank_start(launch))
            stop(launch, SIGTERM);
    }
    start_relays(launch);
    while (launch->running)
        turn(launch);
    close(relays.over[WRITE]);
    end_relays(launch);
    close(relays.over[READ]);
    for (size_t i = 0; i < launch->started; i++)
        waitpid(launch->ranks[i].process, NULL, 0);
    signals_restore();
}
