// One thread and one poll(): the ranks' output, what can be written, signals, and the end of the
// grace time. It never blocks elsewhere, so a reader that stops reading delays nothing but output.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/launch/launch.h"

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
    if (!rank_note_end(launch, index) || !rank_failed(rank))
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

void watch(struct launch *launch)
{
    signals_take(launch);
    guard_start(launch);
    while (launch->started < launch->options->count && !launch->stopping) {
        if (!rank_start(launch))
            stop(launch, SIGTERM);
    }
    while (!is_done(launch))
        turn(launch);
    guard_end(launch);
    rank_release_all(launch);
    signals_restore(launch);
}
