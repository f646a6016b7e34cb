// The edges of the plugin `check` hold in virtual time: of two operations of which it knows that one comes
// after the other, the later one starts when the earlier one has ended. Random programs (calls.h) with
// graphs, two devices, host calls and waits of the host.
//
// `check` tells races, not edges, and goes on after one as if it were mended. So a program runs once for each
// pair of operations that is asked for: after the earlier one its queue writes a byte, which the queue of the
// later one reads before that. If that is no race there is an edge. A pair that overlaps must be a race.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/check.h>

#include "tests/plugins/sim/calls.h"
#include "tests/plugins/sim/job.h"

enum {
    PAIRS = 4 // of a program that are asked for, of those that overlap and of others
};

static const char file[] = "probe";

static struct {
    int earlier; // lines; -1: none
    int later;
    weir_buffer *cells[CALLS_DEVICES];
    weir_buffer *copies[CALLS_DEVICES];
} probe;

struct times {
    uint64_t queue; // 0: the line has no times
    uint64_t start_ns;
    uint64_t end_ns;
    bool launch; // of a graph
};

struct outcome {
    int overlaps;
    int edges;  // between queues
    int broken; // pairs that have one, and overlap
};

static uint64_t seed;

static int below(int count)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)count);
}

// The one probe.

static void read_byte(const struct calls *calls, const struct calls_stream *stream, int line)
{
    (void)calls;
    if (line == probe.later)
        for (int device = 0; device < CALLS_DEVICES; device++)
            EXPECT_OK(weir_queue_copy_at(stream->object, probe.copies[stream->device], 0,
                                         probe.cells[device], 0, 1, file, line));
}

static void write_byte(const struct calls *calls, const struct calls_stream *stream, int line)
{
    (void)calls;
    if (line == probe.earlier)
        EXPECT_OK(weir_queue_fill_at(stream->object, probe.cells[stream->device], 0, 1, "x", 1,
                                     file, line));
}

static bool make_memory(const struct calls *calls)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = 1};
    bool fine = true;
    for (int i = 0; i < CALLS_DEVICES && fine; i++)
        fine = weir_buffer_create(calls->device[i], &params, &probe.cells[i]) == WEIR_OK &&
               weir_buffer_create(calls->device[i], &params, &probe.copies[i]) == WEIR_OK;
    EXPECT_TRUE(fine);
    return fine;
}

static bool is_race(const struct calls *calls)
{
    bool race = false;
    for (size_t i = 0; i < weir_check_count(calls->rig.runtime); i++) {
        struct weir_check_finding found;
        EXPECT_OK(weir_check_get(calls->rig.runtime, i, &found));
        race =
            race || (found.kind == WEIR_CHECK_READ_AFTER_WRITE &&
                     strcmp(found.first.file, file) == 0 && strcmp(found.second.file, file) == 0);
    }
    return race;
}

// Host calls have no times in virtual time: they are between operations that have.
static void read_times(struct times times[CALLS_LINES], const char *path)
{
    struct weir_trace *trace = rig_read(path);
    memset(times, 0, CALLS_LINES * sizeof *times);
    for (size_t i = 0; trace && i < trace->operation_count; i++) {
        const struct weir_trace_operation *it = &trace->operations[i];
        if (it->timed && it->kind != WEIR_TRACE_HOST_CALL && strcmp(it->file, CALLS_FILE) == 0)
            times[it->line] =
                (struct times){it->queue, it->start_ns, it->end_ns, it->kind == WEIR_TRACE_GRAPH};
    }
    weir_trace_destroy(&trace);
}

// The whole program, with the probe between two lines; -1: with none. Returns how many lines there are.
static int run(uint64_t program, int earlier, int later, struct times times[CALLS_LINES],
               bool *out_race)
{
    static struct calls calls;
    const char *path = job_trace();
    calls.before = read_byte;
    calls.after = write_byte;
    probe.earlier = earlier;
    probe.later = later;
    if (!calls_start(&calls, program, path, "trace, check, sim") || !make_memory(&calls))
        return 0;
    calls_run(&calls, 20 + (int)(program % 40));
    *out_race = is_race(&calls);
    for (int i = 0; i < CALLS_DEVICES; i++) {
        weir_buffer_destroy(&probe.cells[i]);
        weir_buffer_destroy(&probe.copies[i]);
    }
    calls_finish(&calls);
    read_times(times, path);
    return calls.line;
}

static bool overlap(const struct times *times, int earlier, int later)
{
    return times[later].start_ns < times[earlier].end_ns;
}

// Two lines of different queues that overlap, or do not; `launch`: the earlier one launches a graph. False: no such pair was found.
static bool pick_pair(const struct times *times, int lines, bool overlaps, bool launch,
                      int *out_earlier, int *out_later)
{
    for (int tries = 0; tries < 1000 && lines > 1; tries++) {
        const int later = 1 + below(lines - 1), earlier = below(later);
        *out_earlier = earlier;
        *out_later = later;
        if (times[earlier].queue && times[later].queue &&
            times[earlier].queue != times[later].queue && times[earlier].launch == launch &&
            overlap(times, earlier, later) == overlaps)
            return true;
    }
    return false;
}

// The probe takes time, too, so it is the run with it that counts.
static void ask(struct outcome *outcome, uint64_t program, int earlier, int later)
{
    static struct times times[CALLS_LINES];
    bool race = false;
    run(program, earlier, later, times, &race);
    const bool overlaps = overlap(times, earlier, later);
    outcome->overlaps += overlaps;
    outcome->edges += !overlaps && !race;
    outcome->broken += overlaps && !race;
    if (overlaps && !race)
        WEIR_FAIL("program %llu: line %d comes after line %d, and starts before its end",
                  (unsigned long long)program, later, earlier);
}

static void ask_some(struct outcome *outcome, uint64_t program)
{
    static struct times times[CALLS_LINES];
    bool race;
    const int lines = run(program, -1, -1, times, &race);
    int earlier, later;
    seed = program;
    for (int i = 0; i < 2 * PAIRS; i++)
        if (pick_pair(times, lines, i < PAIRS, i % 2, &earlier, &later))
            ask(outcome, program, earlier, later);
}

WEIR_TEST(Edges, HoldInVirtualTime)
{
    const char *count = getenv("SIM_PROGRAMS");
    const uint64_t programs = count ? strtoull(count, NULL, 10) : 40;
    struct outcome outcome = {0};
    // What the host learns as the function of a host call begins is no edge then.
    ASSERT_INT_EQ(setenv("WEIR_CHECK_THREADS", "strict", 1), 0);
    for (uint64_t i = 1; i <= programs; i++)
        ask_some(&outcome, i);
    printf("%d pairs overlap; %d others have an edge\n", outcome.overlaps, outcome.edges);
    EXPECT_INT_EQ(outcome.broken, 0);
    EXPECT_TRUE(outcome.overlaps > (int)programs / 2);
    EXPECT_TRUE(outcome.edges > (int)programs / 4);
}
