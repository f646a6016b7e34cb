// The ranks of weir launch: their start, the signals between them and the command, and their ends.
#define _GNU_SOURCE // pipe2, ppoll
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/own.h"
#include "cli/launch/launch.h"

// The lines of the ranks.

enum {
    LINE_LIMIT = 65536, // a longer line is cut
    READ_SIZE = 8192,
    LATE_LIMIT = 1 << 20, // no pipe of a program without privileges holds more
    PREFIX_SIZE = 8,      // "[1023] " and a NUL
    ESCAPE_SIZE = 4,      // "\x1b"
    // A held line and as many empty lines as one read can bring, and the line that an escape ends.
    SINK_SIZE = LINE_LIMIT + (READ_SIZE + 1) * (PREFIX_SIZE + 1) + ESCAPE_SIZE,
};

// Standard output or standard error of this process.
struct sink {
    int descriptor;
    size_t used;
    size_t written; // of `used`
    bool broken;    // what comes is dropped
    char bytes[SINK_SIZE];
};

// Standard output or standard error of one rank.
struct stream {
    int from; // -1: at its end
    struct sink *to;
    char prefix[PREFIX_SIZE];
    size_t late;   // how many bytes were read after the end of all ranks
    bool returned; // the last line ended with a carriage return
    size_t used;   // of a line that has not ended
    char line[LINE_LIMIT];
};

// A line is written whole, so that lines of several ranks never mix, on one pipe for standard output
// and standard error either.

static void add(struct sink *sink, const char *bytes, size_t size)
{
    memcpy(sink->bytes + sink->used, bytes, size);
    sink->used += size;
}

static void add_line(struct stream *stream)
{
    if (!stream->to->broken) {
        add(stream->to, stream->prefix, strlen(stream->prefix));
        add(stream->to, stream->line, stream->used);
        add(stream->to, "\n", 1);
    }
    stream->used = 0;
}

static void add_text(struct stream *stream, const char *text, size_t size)
{
    if (stream->used + size > LINE_LIMIT)
        add_line(stream);
    memcpy(stream->line + stream->used, text, size);
    stream->used += size;
    if (stream->used == LINE_LIMIT)
        add_line(stream);
}

// U+0080 to U+009F control terminals as ESC and a character do. In UTF-8 they follow a C2.
static bool is_control(const struct stream *stream, unsigned char byte)
{
    if (byte >= 0x80 && byte <= 0x9f)
        return stream->used > 0 && (unsigned char)stream->line[stream->used - 1] == 0xc2;
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

// Reads what is there, at most READ_SIZE, and adds the lines to the sink, which must be empty. What
// remains at the end of the stream becomes a line. Returns how many bytes were read.
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

// Up to the end of the last line that fits.
static size_t part(const struct sink *sink)
{
    const char *from = sink->bytes + sink->written;
    const size_t left = sink->used - sink->written;
    size_t size = left < PIPE_BUF ? left : PIPE_BUF;
    while (size > 0 && from[size - 1] != '\n')
        size--;
    return size ? size : PIPE_BUF;
}

// Writes a part that ends with a line, or, of a line that is too long for that, PIPE_BUF bytes: as
// much as does not block where poll() found room. `*out_middle` is set if a line is not written whole.
//
// Errors: false with errno set; the sink is broken then.
static bool sink_write(struct sink *sink, bool *out_middle)
{
    const ssize_t count = write(sink->descriptor, sink->bytes + sink->written, part(sink));
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
        sink->broken = true;
        sink->used = sink->written = 0;
        *out_middle = false;
        return false;
    }
    sink->written += count > 0 ? (size_t)count : 0;
    *out_middle = sink->written && sink->bytes[sink->written - 1] != '\n';
    if (sink->written == sink->used)
        sink->used = sink->written = 0;
    return true;
}

// Signals are blocked but in ppoll(), so that none is missed and no code of a handler runs elsewhere.

static const int numbers[] = {SIGCHLD, SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                              SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};

enum {
    NUMBER_COUNT = sizeof numbers / sizeof *numbers
};

static struct sigaction old_actions[NUMBER_COUNT];
static volatile sig_atomic_t received[NUMBER_COUNT];
static volatile sig_atomic_t ended; // the process that the first SIGCHLD was about

// A second SIGCHLD before the first is taken is not delivered, so this one names the first process.
static void note(int number, siginfo_t *about, void *context)
{
    (void)context;
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (numbers[i] == number)
            received[i] = 1;
    if (number == SIGCHLD && !ended)
        ended = about->si_pid;
}

// From this call until signals_restore() signals arrive in signals_wait() only. A new process
// restores them too.
static void signals_take(struct launch *launch)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    const struct sigaction noted = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP};
    sigset_t all;
    sigemptyset(&all);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        sigaddset(&all, numbers[i]);
    sigprocmask(SIG_BLOCK, &all, &launch->old_mask);
    sigaction(SIGPIPE, &ignored, &launch->old_pipe);
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        sigaction(numbers[i], &noted, &old_actions[i]);
        // One that is ignored, as nohup does with SIGHUP, stays ignored.
        if (old_actions[i].sa_handler == SIG_IGN && numbers[i] != SIGCHLD)
            sigaction(numbers[i], &ignored, NULL);
    }
}

static void signals_restore(const struct launch *launch)
{
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        sigaction(numbers[i], &old_actions[i], NULL);
    sigaction(SIGPIPE, &launch->old_pipe, NULL);
    sigprocmask(SIG_SETMASK, &launch->old_mask, NULL);
}

// poll() for at most `timeout_ns`, UINT64_MAX for ever; -1 after a signal.
static int signals_wait(struct pollfd *polled, size_t count, uint64_t timeout_ns)
{
    const struct timespec timeout = weir_clock_timespec(timeout_ns);
    sigset_t none;
    sigprocmask(SIG_BLOCK, NULL, &none);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        sigdelset(&none, numbers[i]);
    return ppoll(polled, count, timeout_ns == UINT64_MAX ? NULL : &timeout, &none);
}

// Returns the next signal that arrived, or 0, and for SIGCHLD the process that was the first to end
// since the last one.
static int signals_next(pid_t *out_process)
{
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        if (!received[i])
            continue;
        received[i] = 0;
        if (numbers[i] == SIGCHLD) {
            *out_process = ended;
            ended = 0;
        }
        return numbers[i];
    }
    return 0;
}

// One rank. It leads a process group, so that what it starts is ended with it.

enum {
    READ,
    WRITE,
    OUTPUT = 0,
    MESSAGES,
    REPORT, // in which a process that cannot become the program tells why
    PIPE_COUNT
};

static void close_pipes(int pipes[PIPE_COUNT][2])
{
    for (size_t i = 0; i < PIPE_COUNT; i++)
        for (size_t end = READ; end <= WRITE; end++)
            if (pipes[i][end] >= 0)
                close(pipes[i][end]);
}

static bool open_pipes(const struct launch *launch, int pipes[PIPE_COUNT][2])
{
    for (size_t i = 0; i < PIPE_COUNT; i++)
        pipes[i][READ] = pipes[i][WRITE] = -1;
    for (size_t i = launch->streams ? OUTPUT : REPORT; i < PIPE_COUNT; i++)
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            return false;
    return true;
}

// In the new process.
static void become(const struct launch *launch, const struct cli_program *program, pid_t parent,
                   int report)
{
    setpgid(0, 0);
    signals_restore(launch);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_FAILED);
    const int error = cli_program_become(program);
    const ssize_t written = write(report, &error, sizeof error);
    _exit(written == sizeof error ? CLI_NOT_FOUND : CLI_FAILED);
}

static pid_t create(const struct launch *launch, int pipes[PIPE_COUNT][2],
                    const struct cli_program *program)
{
    const pid_t parent = getpid();
    fflush(stdout);
    const pid_t process = fork();
    if (process == 0)
        become(launch, program, parent, pipes[REPORT][WRITE]);
    return process;
}

// Returns 0, or the number of the error; `*out_missing` if it is the program that cannot be run.
static int start(struct launch *launch, int pipes[PIPE_COUNT][2], pid_t *out_process,
                 bool *out_missing)
{
    char rank[24];
    char count[24];
    snprintf(rank, sizeof rank, "%zu", launch->started);
    snprintf(count, sizeof count, "%" PRIu64, launch->options->count);
    const struct cli_program_variable variables[] = {
        {"RANK", rank},
        {"LOCAL_RANK", rank},
        {"WORLD_SIZE", count},
        {"LOCAL_WORLD_SIZE", count},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", launch->port},
        // What this process has been given is of another job, and would come before RANK.
        {"WEIR_COMM_RANK", NULL},
        {"WEIR_COMM_COUNT", NULL},
        {"WEIR_COMM_RENDEZVOUS", launch->place}, // the last, which a user's own goes before
    };
    const size_t variable_count = sizeof variables / sizeof *variables;
    const bool open = launch->streams;
    const struct cli_program program = {
        .command = launch->options->command,
        .variables = variables,
        .variable_count = variable_count - (getenv("WEIR_COMM_RENDEZVOUS") != NULL),
        .input = launch->input,
        .output = open                    ? pipes[OUTPUT][WRITE]
                  : launch->options->json ? STDERR_FILENO
                                          : 0,
        .messages = open ? pipes[MESSAGES][WRITE] : 0,
    };
    int error = 0;
    *out_process = create(launch, pipes, &program);
    if (*out_process < 0)
        return errno;
    close(pipes[REPORT][WRITE]);
    pipes[REPORT][WRITE] = -1;
    *out_missing = read(pipes[REPORT][READ], &error, sizeof error) == sizeof error;
    if (*out_missing)
        waitpid(*out_process, NULL, 0);
    return error;
}

static void open_streams(struct launch *launch, int pipes[PIPE_COUNT][2])
{
    const uint64_t last = launch->options->count - 1;
    const int width = last > 999 ? 4 : last > 99 ? 3 : last > 9 ? 2 : 1;
    for (size_t i = OUTPUT; launch->streams && i <= MESSAGES; i++) {
        struct stream *stream = &launch->streams[2 * launch->started + i];
        stream->from = pipes[i][READ];
        stream->to = i == OUTPUT && !launch->options->json ? launch->output : launch->messages;
        snprintf(stream->prefix, sizeof stream->prefix, "[%*zu] ", width, launch->started);
        pipes[i][READ] = -1;
    }
}

static void tell_failure(struct launch *launch, int error, bool missing)
{
    const struct cli_program program = {.command = launch->options->command};
    launch->failure = CLI_SETUP;
    if (missing)
        launch->failure = cli_program_tell_missing(&program, error);
    else
        cli_error("rank %zu of %" PRIu64
                  " cannot be started: %s; start fewer, or raise the limit%s",
                  launch->started, launch->options->count, strerror(error),
                  error == EMFILE ? " on open files (ulimit -n)" : " on processes (ulimit -u)");
}

// Starts the next rank, as the leader of a process group. False after a message, with launch->failure set.
static bool rank_start(struct launch *launch)
{
    int pipes[PIPE_COUNT][2];
    pid_t process = -1;
    bool missing = false;
    const int error = open_pipes(launch, pipes) ? start(launch, pipes, &process, &missing) : errno;
    if (error == 0) {
        open_streams(launch, pipes);
        launch->ranks[launch->started++] = (struct rank){.process = process};
        launch->running++;
    } else {
        tell_failure(launch, error, missing);
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

// Kills what all ranks, which have ended, have left in their process groups.
static void rank_kill_left(const struct launch *launch)
{
    for (size_t i = 0; i < launch->started; i++)
        kill(-launch->ranks[i].process, SIGKILL);
}

// Releases the processes of all ranks.
static void rank_release_all(const struct launch *launch)
{
    for (size_t i = 0; i < launch->started; i++)
        waitpid(launch->ranks[i].process, NULL, 0);
}

// One thread and one poll(): the ranks' output, what can be written, signals, and the end of the
// grace time. It never blocks elsewhere, so a reader that stops reading delays nothing but output.

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

// Signals.

static void drop(struct sink *sink)
{
    sink->broken = true;
    sink->used = sink->written = 0;
}

// The second one asks not to wait, for output neither.
static void interrupt(struct launch *launch, int number)
{
    if (launch->signal) {
        launch->hurried = true;
        kill_all(launch);
        drop(launch->output);
        drop(launch->messages);
        launch->middle = NULL;
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
    if (launch->running == 0)
        rank_kill_left(launch);
}

static void handle_signals(struct launch *launch)
{
    pid_t process;
    for (int number; (number = signals_next(&process)) != 0;) {
        if (number == SIGCHLD)
            note_ends(launch, process);
        else if (number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP)
            interrupt(launch, number);
        else
            rank_signal_all(launch, number);
        if (number == SIGTSTP)
            raise(SIGSTOP);
    }
}

// Output.

static bool is_empty(const struct sink *sink)
{
    return sink->used == 0;
}

static bool can_write(const struct launch *launch, const struct sink *sink)
{
    return !is_empty(sink) && (!launch->middle || launch->middle == sink);
}

// Entries of launch->polled: both sinks, then the streams.
static size_t prepare(struct launch *launch)
{
    const size_t streams = launch->streams ? 2 * launch->started : 0;
    struct sink *const sinks[] = {launch->output, launch->messages};
    for (size_t i = 0; i < 2; i++)
        launch->polled[i] =
            (struct pollfd){.fd = can_write(launch, sinks[i]) ? sinks[i]->descriptor : -1,
                            .events = POLLOUT};
    for (size_t i = 0; i < streams; i++) {
        const struct stream *stream = &launch->streams[i];
        launch->polled[2 + i] =
            (struct pollfd){.fd = is_empty(stream->to) ? stream->from : -1, .events = POLLIN};
    }
    return 2 + streams;
}

static void write_sink(struct launch *launch, struct sink *sink)
{
    bool middle = false;
    if (sink_write(sink, &middle)) {
        launch->middle = middle ? sink : NULL;
        return;
    }
    launch->middle = NULL;
    if (sink == launch->messages || launch->failure)
        return;
    launch->failure = CLI_FAILED;
    cli_error("standard output cannot be written: %s; the ranks are ended", strerror(errno));
    stop(launch, SIGTERM);
}

// One of them at a time: both may be the same pipe, which then has room for one.
static void write_one(struct launch *launch)
{
    struct sink *const sinks[] = {launch->output, launch->messages};
    const size_t first = launch->turn % 2;
    if (launch->polled[first].revents)
        write_sink(launch, sinks[first]);
    else if (launch->polled[!first].revents)
        write_sink(launch, sinks[!first]);
}

// Begins with another stream each time, so that one that is never empty does not keep the others
// waiting. When all ranks have ended, what is not there will not come.
static void read_streams(struct launch *launch, bool at_end)
{
    const size_t count = launch->streams ? 2 * launch->started : 0;
    for (size_t i = 0; i < count; i++) {
        const size_t at = (launch->turn + i) % count;
        struct stream *stream = &launch->streams[at];
        const struct pollfd *polled = &launch->polled[2 + at];
        if (polled->fd < 0 || !is_empty(stream->to))
            continue;
        if (polled->revents)
            stream->late += stream_read(stream) * at_end;
        else if (at_end)
            stream_end(stream);
        if (stream->from >= 0 && is_empty(stream->to) && stream->late > LATE_LIMIT)
            stream_end(stream);
    }
    launch->turn++;
}

static bool is_done(const struct launch *launch)
{
    if (launch->running || !is_empty(launch->output) || !is_empty(launch->messages))
        return false;
    for (size_t i = 0; launch->streams && i < 2 * launch->started; i++)
        if (launch->streams[i].from >= 0)
            return false;
    return true;
}

// The loop.

static uint64_t timeout_ns(const struct launch *launch, bool at_end)
{
    const uint64_t now_ns = weir_clock_now_ns();
    if (at_end && is_empty(launch->output) && is_empty(launch->messages))
        return 0;
    if (!launch->stopping || !launch->running || launch->kill_ns == UINT64_MAX)
        return UINT64_MAX;
    return launch->kill_ns > now_ns ? launch->kill_ns - now_ns : 0;
}

static void turn(struct launch *launch)
{
    const bool at_end = launch->running == 0;
    const size_t count = prepare(launch);
    if (signals_wait(launch->polled, count, timeout_ns(launch, at_end)) >= 0) {
        write_one(launch);
        read_streams(launch, at_end);
    }
    handle_signals(launch);
    if (launch->stopping && launch->running && weir_clock_now_ns() >= launch->kill_ns)
        kill_all(launch);
}

static void open_all(struct launch *launch)
{
    const size_t count = launch->options->count;
    if (!launch->options->no_prefix)
        launch->streams = cli_allocate(2 * count, sizeof *launch->streams);
    launch->polled = cli_allocate(2 + 2 * count, sizeof *launch->polled);
    launch->output = cli_allocate(1, sizeof *launch->output);
    launch->messages = cli_allocate(1, sizeof *launch->messages);
    launch->output->descriptor = STDOUT_FILENO;
    launch->messages->descriptor = STDERR_FILENO;
}

void watch(struct launch *launch)
{
    open_all(launch);
    signals_take(launch);
    while (launch->started < launch->options->count && !launch->stopping) {
        if (!rank_start(launch))
            stop(launch, SIGTERM);
    }
    while (!is_done(launch))
        turn(launch);
    rank_release_all(launch);
    signals_restore(launch);
}
