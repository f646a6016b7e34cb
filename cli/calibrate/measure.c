// What is measured. First what copies take: bandwidths and latencies alone, while the other direction is busy, to and
// from another device, and of memory that is not pinned.
#include <math.h>
#include <pthread.h>
#include <semaphore.h>

#include "cli/calibrate/calibrate.h"

// A gate is as long as this many times the submits after it take.
#define GATE_MARGIN 3

#define MOST_GB_PER_S 100000.0 // that a model has

// The other direction is busy for so many times as long as the copies would take alone.
#define BUSY_MARGIN 2.5

// How long the gate has to be.

static double measure_large(struct calibration *c)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    return cal_time(c, &large, 1);
}

static double measure_submits(struct calibration *c)
{
    const struct cal_work works[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                     {.kind = CAL_DOWN, .bytes = c->sizes[0]},
                                     {.kind = CAL_WITHIN, .bytes = c->sizes[0]},
                                     {.kind = CAL_LAUNCH, .rounds = 1},
                                     {.kind = CAL_CALL}};
    return cal_submits(c, 1, works, sizeof works / sizeof *works);
}

// Alone.

// How many copies of that size are timed in a row.
static uint64_t fitting(const struct calibration *c, size_t bytes)
{
    const uint64_t count = c->large / bytes;
    return count < CAL_IN_A_ROW ? count : CAL_IN_A_ROW;
}

// Copies to another device that are submitted meanwhile take 0.4 us less on an H200 than those that all
// wait already, and programs have few at once.
static double measure_copy(struct calibration *c)
{
    const struct cal_work copy = {.kind = (enum cal_kind)(c->at / CAL_SIZES),
                                  .bytes = c->sizes[c->at % CAL_SIZES]};
    const uint64_t count = fitting(c, copy.bytes);
    if (copy.kind != CAL_ACROSS)
        return cal_each(c, &copy, 1, count);
    const double few = cal_time(c, &copy, count);
    return (cal_time(c, &copy, 2 * count) - few) / (double)count;
}

// ns = latency + bytes * per_byte, with the least squares of relative errors. A time that was too
// small to be measured says nothing.
static double fit_line(const struct calibration *c, const double ns[CAL_SIZES],
                       double *out_per_byte)
{
    double s = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
    for (size_t i = 0; i < c->size_count; i++) {
        const double x = (double)c->sizes[i], y = ns[i];
        const double weight = y > 0 ? 1 / (y * y) : 0;
        s += weight;
        sx += weight * x;
        sxx += weight * x * x;
        sy += weight * y;
        sxy += weight * x * y;
    }
    *out_per_byte = (s * sxy - sx * sy) / (s * sxx - sx * sx);
    const double latency = (sy - *out_per_byte * sx) / s;
    if (latency > 0)
        return latency;
    *out_per_byte = sxy / sxx;
    return 0;
}

// Sets the rate of the line through the times, which it measures; returns where it begins.
static double measure_line(struct calibration *c, cal_measure measure, enum cal_kind kind,
                           enum cal_key rate, double ns[CAL_SIZES])
{
    double per_byte;
    for (size_t i = 0; i < c->size_count; i++)
        ns[i] = cal_median(c, measure, (size_t)kind * CAL_SIZES + i).value;
    const double latency = fit_line(c, ns, &per_byte);
    if (!(per_byte > 0))
        cli_fail(CLI_FAILED,
                 "larger copies took no longer than smaller ones, so there is no bandwidth; is the "
                 "machine busy? Try more --turns");
    cal_figure_set(c, rate, fmin(1 / per_byte, MOST_GB_PER_S));
    return latency;
}

static double measure_alone(struct calibration *c, enum cal_kind kind, enum cal_key rate)
{
    return measure_line(c, measure_copy, kind, rate, c->copy_ns[kind]);
}

// Both ways.

// A large copy, and one to the host, at once, each on a queue of its own: how much of the shorter one the other one
// hides.
static double measure_at_once(struct calibration *c)
{
    const struct cal_work one = {.kind = (enum cal_kind)c->at, .bytes = c->large};
    const struct cal_work other = {.kind = CAL_DOWN, .bytes = c->large};
    const double one_ns = cal_time(c, &one, 1), other_ns = cal_time(c, &other, 1);
    cal_prepare(c, 0, &one);
    cal_prepare(c, 1, &other);
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, &one, 1);
    cal_submit(c, 1, &other, 1);
    cli_fine(weir_queue_flush(c->queues[1]));
    cal_sync(c, 0);
    cal_sync(c, 1);
    const double both_ns = (double)(cli_now_ns() - began);
    return (one_ns + other_ns - both_ns) / fmin(one_ns, other_ns);
}

// Copies of one size on the first queue, after a gate of their kind, while the other queue is busy with
// longer work in the other direction.
static double time_beside(struct calibration *c, enum cal_kind kind, size_t size, uint64_t count)
{
    const struct cal_work other = {.kind = kind == CAL_UP ? CAL_DOWN : CAL_UP, .bytes = c->large};
    const struct cal_work gate = {.kind = kind, .bytes = c->large};
    const struct cal_work work = {.kind = kind, .bytes = c->sizes[size]};
    // Large copies of the other direction outlast the gate and the copies.
    const size_t last = c->size_count - 1;
    const double wanted =
        (double)c->gate_count * c->copy_ns[kind][last] + (double)count * c->copy_ns[kind][size];
    const double each = c->copy_ns[other.kind][last];
    cal_prepare(c, 0, &work);
    cal_prepare(c, 1, &other);
    const uint64_t began = cli_now_ns();
    cal_submit(c, 1, &other, each > 0 ? 1 + (uint64_t)(BUSY_MARGIN * wanted / each) : 1);
    cli_fine(weir_queue_flush(c->queues[1]));
    cal_submit(c, 0, &gate, c->gate_count);
    cal_submit(c, 0, &work, count);
    cal_sync(c, 0);
    const double ns = (double)(cli_now_ns() - began);
    cal_sync(c, 1);
    return ns;
}

static double measure_beside(struct calibration *c)
{
    const enum cal_kind kind = (enum cal_kind)(c->at / CAL_SIZES);
    const size_t size = c->at % CAL_SIZES;
    const uint64_t count = fitting(c, c->sizes[size]);
    const double few = time_beside(c, kind, size, count);
    return (time_beside(c, kind, size, 2 * count) - few) / (double)count;
}

// A copy is not faster beside others than alone, and does not begin earlier, whatever the clock says.
static double measure_both(struct calibration *c, enum cal_kind kind, enum cal_key rate,
                           enum cal_key alone)
{
    double ns[CAL_SIZES];
    const double latency = measure_line(c, measure_beside, kind, rate, ns);
    c->figures[rate].value = fmin(c->figures[rate].value, c->figures[alone].value);
    return latency;
}

static void measure_copies(struct calibration *c)
{
    static const char why[] = "copies in both directions take turns";
    double up = measure_alone(c, CAL_UP, CAL_H2D), down = measure_alone(c, CAL_DOWN, CAL_D2H);
    measure_alone(c, CAL_WITHIN, CAL_D2D);
    cal_figure_set(c, CAL_LATENCY, (up + down) / 2);
    const bool one = cal_median(c, measure_at_once, CAL_UP).value < 0.5;
    cal_figure_set(c, CAL_COPY_ENGINES, one ? 1 : 2);
    if (one) {
        cal_figure_leave(c, CAL_H2D_BOTH, why);
        cal_figure_leave(c, CAL_D2H_BOTH, why);
        cal_figure_leave(c, CAL_BOTH_LATENCY, why);
        return;
    }
    up = measure_both(c, CAL_UP, CAL_H2D_BOTH, CAL_H2D);
    down = measure_both(c, CAL_DOWN, CAL_D2H_BOTH, CAL_D2H);
    cal_figure_set(c, CAL_BOTH_LATENCY, fmax((up + down) / 2, c->figures[CAL_LATENCY].value));
}

// Another device.

// One comes after the other, so that each waits for a signal of the other device.
static double measure_pull(struct calibration *c)
{
    const struct cal_work pull = {.kind = CAL_PULL, .bytes = c->sizes[0]};
    return cal_each(c, &pull, 1, CAL_IN_A_ROW) - (double)pull.bytes / c->figures[CAL_PEER].value -
           c->figures[CAL_SIGNAL].value;
}

// Whether they are one device of the machine. A driver lists equal GPUs under one name; what has nothing
// native has names of its own.
static bool is_same(weir_device *a, weir_device *b)
{
    struct weir_native_device one, other;
    if (weir_device_get_native(a, &one) == WEIR_OK && weir_device_get_native(b, &other) == WEIR_OK)
        return one.device == other.device && one.ordinal == other.ordinal;
    return strcmp(weir_device_get_info(a)->name, weir_device_get_info(b)->name) == 0;
}

// The first device of the machine that is not `device`, whichever way that one was chosen; NULL: there is none.
static weir_device *open_other(weir_runtime *runtime, weir_device *device)
{
    const size_t count = weir_device_count(runtime);
    for (size_t i = 0; i < count; i++) {
        weir_device *other;
        const char *index = cli_text("%zu", i);
        cli_fine(weir_device_open_at(runtime,
                                     WEIR_PARAMS(weir_device, .label = "other", .select = index),
                                     &other, NULL, 0));
        if (!is_same(device, other)) {
            cli_own_device(other);
            return other;
        }
        cli_fine(weir_device_close(&other));
    }
    return NULL;
}

static void measure_peers(struct calibration *c)
{
    c->peer = open_other(bench.runtime, bench.device);
    if (!c->peer || !weir_device_can_peer(bench.device, c->peer)) {
        const char *why = c->peer ? "the devices cannot reach each other" : "there is one device";
        cal_figure_leave(c, CAL_PEER, why);
        cal_figure_leave(c, CAL_PULL_LATENCY, why);
        return;
    }
    bench_buffer(bench.device, "calibrate", c->large, WEIR_PLACE_DEVICE, &c->from[CAL_ACROSS]);
    bench_buffer(c->peer, "calibrate", c->large, WEIR_PLACE_DEVICE, &c->to[CAL_ACROSS]);
    bench_buffer(c->peer, "calibrate", c->large, WEIR_PLACE_DEVICE, &c->from[CAL_PULL]);
    bench_buffer(bench.device, "calibrate", c->large, WEIR_PLACE_DEVICE, &c->to[CAL_PULL]);
    measure_alone(c, CAL_ACROSS, CAL_PEER);
    cal_measure_figure(c, CAL_PULL_LATENCY, measure_pull);
    if (c->figures[CAL_COPY_ENGINES].value > 1 &&
        cal_median(c, measure_at_once, CAL_ACROSS).value > 0.5)
        cal_figure_set(c, CAL_COPY_ENGINES, 3);
}

// Memory that is not pinned goes through pinned pieces: of small copies the calling thread copies four in
// turn, and the device's copy of one of them comes before or after all; of large ones several threads copy.
// Each copy takes memory that none used lately, as copies of much data do: one that the processors' caches
// hold tells nothing of these.

#define SMALLER ((size_t)1 << 20)
#define SMALL ((size_t)3 << 20)
#define PIECES 4
#define LARGE_COPIES 4 // that the memory has room for

// Above these shares of the device's own rate the host hides its part, and nothing is known of it.
#define SHARE_MOST 0.8
#define SHARE_MOST_ALL 0.85

// The part of the memory after that of the copy before.
static char *next_part(struct calibration *c, size_t size)
{
    if (c->pageable_used + size > LARGE_COPIES * c->large)
        c->pageable_used = 0;
    char *part = c->pageable + c->pageable_used;
    c->pageable_used += size;
    return part;
}

// An upload and a download.
static double time_staged(struct calibration *c, size_t size)
{
    char *up = next_part(c, size), *down = next_part(c, size);
    const uint64_t began = cli_now_ns();
    cli_fine(weir_upload(c->queues[0], c->to[CAL_UP], 0, up, size));
    cal_sync(c, 0);
    cli_fine(weir_download(c->queues[0], down, c->from[CAL_DOWN], 0, size));
    return (double)(cli_now_ns() - began);
}

// The mean of a byte up and one down.
static double measure_staging(struct calibration *c)
{
    const bool one = c->at == CAL_STAGING;
    const size_t less = one ? SMALLER : c->large / 2, more = one ? SMALL : c->large;
    const double few = time_staged(c, less);
    double ns = (time_staged(c, more) - few) / (double)(more - less) / 2;
    if (one)
        ns -= (1 / c->figures[CAL_H2D].value + 1 / c->figures[CAL_D2H].value) / (2 * PIECES);
    return ns > 0 ? 1 / ns : 0;
}

static void measure_rate(struct calibration *c, enum cal_key key, double share)
{
    const double device = fmin(c->figures[CAL_H2D].value, c->figures[CAL_D2H].value);
    cal_measure_figure(c, key, measure_staging);
    if (!(c->figures[key].value > 0 && c->figures[key].value < share * device))
        cal_figure_leave(c, key, "the host copies as fast as the device");
}

// What the host's calls take: submits, waits, graphs, and waking another thread.

enum {
    PAIRS = CAL_SUBMITS / 2,
    WARM_PAIRS = 1024, // after which a queue has all events that it keeps
};

#define WAIT_BYTES ((size_t)1 << 20)

static const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = 1};

// Records on one queue, and a wait for each on the other one.
static void submit_pairs(struct calibration *c, uint64_t count)
{
    struct weir_event event;
    for (; count > 0; count--) {
        cli_fine(weir_queue_record(c->queues[1], &event));
        cli_fine(weir_queue_wait(c->queues[0], event));
    }
}

// Submits. Programs seldom submit many of one kind to one queue, which take less each.

static double measure_submit(struct calibration *c)
{
    const struct cal_work copies[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                      {.kind = CAL_DOWN, .bytes = c->sizes[0]}};
    const struct cal_work graph = {.kind = CAL_GRAPH};
    if (c->at == CAL_SUBMIT_COPY)
        return cal_submits(c, CAL_BRANCHES, copies, 2);
    // One graph in several queues would take waits.
    return c->at == CAL_SUBMIT_GRAPH ? cal_submits(c, 1, &graph, 1)
                                     : cal_submits(c, CAL_BRANCHES, &launch, 1);
}

static double measure_branch(struct calibration *c)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, fork = {.kind = CAL_FORK};
    const double plain = cal_submits(c, 1, &chain, 1);
    return (cal_submits(c, 1, &fork, 1) - plain) / (CAL_BRANCHES - 1);
}

static double measure_mark(struct calibration *c)
{
    cal_gate(c, 0);
    cal_gate(c, 1);
    const uint64_t began = cli_now_ns();
    submit_pairs(c, PAIRS);
    const double ns = (double)(cli_now_ns() - began) / (2 * PAIRS);
    cal_sync(c, 0);
    cal_sync(c, 1);
    return ns;
}

static double measure_call(struct calibration *c)
{
    const struct cal_work call = {.kind = CAL_CALL};
    return cal_each(c, &call, 1, CAL_IN_A_ROW);
}

// One copy takes submit + copy + wait, two take one copy more.
static double measure_wait(struct calibration *c)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = WAIT_BYTES};
    const double one = cal_time(c, &copy, 1);
    return 2 * one - cal_time(c, &copy, 2) - c->figures[CAL_SUBMIT_COPY].value;
}

// Graphs. A kernel of a graph takes less than one of a queue, so both lengths are of graphs.

static double measure_node(struct calibration *c)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, lengthy = {.kind = CAL_LONG};
    const double two = cal_each(c, &chain, 1, CAL_IN_A_ROW);
    return (cal_each(c, &lengthy, 1, CAL_IN_A_ROW) - two) / (CAL_LENGTH - 2);
}

static double measure_gap(struct calibration *c)
{
    const double node = measure_node(c);
    return cal_each(c, &launch, 1, CAL_IN_A_ROW) - node;
}

// The kernels of the branches run at once, as far as there is room for them.
static double measure_pause(struct calibration *c)
{
    const struct cal_work fork = {.kind = CAL_FORK};
    const uint64_t places = (uint64_t)c->figures[CAL_KERNELS].value;
    const uint64_t turns = places ? (CAL_BRANCHES + places - 1) / places : 1;
    const double node = measure_node(c);
    return (cal_each(c, &fork, 1, CAL_IN_A_ROW) - (double)(1 + turns) * node) / 2;
}

// Signals: each operation comes after another engine's. Copies of both directions in turn tell nothing
// of them: on a GPU they meet its looks for signals at other times than jobs do.
static double measure_signal(struct calibration *c)
{
    const struct cal_work chunk[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                     launch,
                                     {.kind = CAL_DOWN, .bytes = c->sizes[0]}};
    const double turn = cal_each(c, chunk, 3, CAL_IN_A_ROW / 3);
    const double kernel = cal_each(c, &launch, 1, CAL_IN_A_ROW) - c->figures[CAL_KERNEL_GAP].value;
    return (turn - kernel - c->copy_ns[CAL_UP][0] - c->copy_ns[CAL_DOWN][0]) / 3;
}

static void measure_host(struct calibration *c)
{
    submit_pairs(c, WARM_PAIRS);
    cal_sync(c, 0);
    cal_sync(c, 1);
    cal_measure_figure(c, CAL_SUBMIT_KERNEL, measure_submit);
    cal_measure_figure(c, CAL_SUBMIT_COPY, measure_submit);
    cal_measure_figure(c, CAL_SUBMIT_GRAPH, measure_submit);
    cal_measure_figure(c, CAL_SUBMIT_MARK, measure_mark);
    cal_measure_figure(c, CAL_KERNEL_GAP, measure_gap);
    cal_measure_figure(c, CAL_SIGNAL, measure_signal);
    cal_measure_figure(c, CAL_HOST_CALL, measure_call);
    cal_measure_figure(c, CAL_WAIT, measure_wait);
}

// A thread that waits for the device, and then wakes the one that submitted, which goes on with a submit.

struct waiter {
    sem_t ended;
    struct weir_event event;
    weir_status status;
};

static void *wait_for_event(void *user)
{
    struct waiter *waiter = user;
    waiter->status = weir_event_sync(waiter->event, WEIR_FOREVER);
    sem_post(&waiter->ended);
    return NULL;
}

// The copy is long enough for a thread to begin its wait.
static double time_waiter(struct calibration *c, struct waiter *waiter, const struct cal_work *copy)
{
    struct weir_event event;
    pthread_t thread;
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, copy, 1);
    cli_fine(weir_queue_record(c->queues[0], &waiter->event));
    const int error = pthread_create(&thread, NULL, wait_for_event, waiter);
    if (error)
        cli_fail(CLI_FAILED, "no thread can be started: %s", strerror(error));
    while (sem_wait(&waiter->ended) != 0) {
    }
    cli_fine(weir_queue_record(c->queues[0], &event));
    const double ns = (double)(cli_now_ns() - began);
    pthread_join(thread, NULL);
    return ns;
}

static double measure_wake(struct calibration *c)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = c->sizes[c->size_count - 2]};
    struct waiter waiter = {.status = WEIR_OK};
    const double alone = cal_time(c, &copy, 1) + c->figures[CAL_SUBMIT_MARK].value;
    sem_init(&waiter.ended, 0, 0);
    const double ns = time_waiter(c, &waiter, &copy);
    sem_destroy(&waiter.ended);
    if (waiter.status != WEIR_OK)
        cli_fail(CLI_FAILED, "a wait in another thread failed: %s",
                 weir_status_text(waiter.status));
    return ns - alone;
}

// Which work runs at once, and which holds up what: channels of kernels and of copies, and kernels at once.

enum {
    CHANNELS_MOST = 128,
    VOTES = 3, // runs that decide what is true or false
};

#define ROUNDS_MOST (UINT32_C(1) << 26)
#define KERNEL_NS 5e6

static uint64_t votes_of(void)
{
    return cli_clock_is_virtual() ? 1 : VOTES;
}

// Channels. A kernel waits for a large copy of its queue; the same, of another queue, is submitted after
// it. Whether that waits too.

static const struct cal_work blocked = {.kind = CAL_LAUNCH, .rounds = 1};

static bool holds_up(struct calibration *c, size_t queue)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, &large, 1);
    cal_submit(c, 0, &blocked, 1);
    cli_fine(weir_queue_flush(c->queues[0]));
    cal_submit(c, queue, &blocked, 1);
    cal_sync(c, queue);
    const double other_ns = (double)(cli_now_ns() - began);
    cal_sync(c, 0);
    return other_ns > 0.75 * (double)(cli_now_ns() - began);
}

static bool is_held_up(struct calibration *c, size_t queue)
{
    uint64_t yes = 0;
    for (uint64_t i = 0; i < votes_of(); i++)
        yes += holds_up(c, queue);
    return 2 * yes > votes_of();
}

// By the first queue that is held up; 0: none.
static void measure_channels(struct calibration *c)
{
    size_t queue = 1;
    cal_reserve_queues(c, CHANNELS_MOST + 1);
    while (queue <= CHANNELS_MOST && !is_held_up(c, queue))
        queue++;
    cal_figure_set(c, CAL_QUEUE_KIND, queue != 1);
    if (queue == 1)
        cal_figure_leave(c, CAL_CHANNELS, "each queue holds up all others");
    else
        cal_figure_set(c, CAL_CHANNELS, queue <= CHANNELS_MOST ? (double)queue : 0);
}

// Kernels at once.

static double time_kernels(struct calibration *c, uint32_t rounds, size_t count)
{
    const struct cal_work kernel = {.kind = CAL_LAUNCH, .rounds = rounds};
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < count; i++) {
        cal_submit(c, i, &kernel, 1);
        cli_fine(weir_queue_flush(c->queues[i]));
    }
    for (size_t i = 0; i < count; i++)
        cal_sync(c, i);
    return (double)(cli_now_ns() - began);
}

static double least_kernels(struct calibration *c, uint32_t rounds, size_t count)
{
    cal_reserve_queues(c, count);
    double least = time_kernels(c, rounds, count);
    for (uint64_t i = 1; i < votes_of(); i++) {
        const double ns = time_kernels(c, rounds, count);
        least = ns < least ? ns : least;
    }
    return least;
}

// Much longer than all the submits.
static uint32_t find_rounds(struct calibration *c)
{
    const double submits = 4 * CAL_QUEUES * cal_submits(c, 1, &launch, 1);
    const double wanted = submits > KERNEL_NS ? submits : KERNEL_NS;
    double ns = 0;
    for (uint32_t rounds = 1; rounds <= ROUNDS_MOST; rounds *= 2) {
        ns = least_kernels(c, rounds, 1);
        if (ns >= wanted)
            return rounds;
    }
    cli_fail(CLI_FAILED,
             "the kernel 'advance' with %u rounds took %.0f ns: its time does not grow with "
             "its work, so kernels at once cannot be counted%s",
             (unsigned)ROUNDS_MOST, ns,
             cli_clock_is_virtual() ? "; give it a cost with per_item_argument_1_ns" : "");
    return 1;
}

static void measure_kernels(struct calibration *c, uint32_t rounds)
{
    size_t most = 1, next = CAL_QUEUES + 1;
    // `most` fit, and `next` do not, or are more than there may be.
    while (next - most > 1) {
        const size_t middle = (most + next) / 2;
        const double one_ns = least_kernels(c, rounds, 1);
        *(least_kernels(c, rounds, middle) < 1.5 * one_ns ? &most : &next) = middle;
    }
    cal_figure_set(c, CAL_KERNELS, (double)most);
}

// Copy channels: in which order the engine of uploads takes the copies of several queues. While a long
// copy keeps it busy each other queue gets one; records tell when each ended. A second one of a queue
// would say nothing: on a GPU it is not ready at once when the first has ended.
//
// With N channels copies go in N groups, each of which has every queue of that distance, so of two copies
// in a row all but N - 1 are of one group. A turn whose order says so, but for few copies that are out of
// their place, is for the largest such N, and else for none. One channel and none look alike.

enum {
    COPIES = 24,
    QUEUES = COPIES + 1, // the first has the long copy
    TRIES = 3,           // of a turn, as the long copy ended before all others were submitted
    COPY_CHANNELS_MOST = 12,
};

#define WORK_BYTES ((size_t)1 << 20)

// One copy out of its place breaks two pairs. Of 24 in a random order no number explains 18, one time in
// thousands.
#define BROKEN_SHARE 8

// Of the turns, so many have to be for one number.
#define TURNS_SHARE 0.6

struct order {
    struct calibration *c;
    weir_queue *queues[QUEUES]; // timed, and in the order in which they were created
    struct weir_event ends[QUEUES];
    size_t first[COPIES]; // the other queues in the order in which their copies ended
};

static void destroy_queues(void *object)
{
    struct order *order = object;
    for (size_t i = 0; i < QUEUES; i++)
        weir_queue_destroy(&order->queues[i]);
}

static void submit_copy(struct order *order, size_t queue, size_t bytes)
{
    struct calibration *c = order->c;
    weir_queue *on = order->queues[queue];
    cli_fine(weir_queue_copy(on, c->to[CAL_UP], 0, c->from[CAL_UP], 0, bytes));
    cli_fine(weir_queue_record(on, &order->ends[queue]));
    cli_fine(weir_queue_flush(on));
}

static void wait_for_all(struct order *order)
{
    for (size_t i = 0; i < QUEUES; i++)
        cli_fine(weir_event_sync(order->ends[i], WEIR_FOREVER));
}

static void sort_by_end(struct order *order)
{
    uint64_t ends[QUEUES] = {0};
    for (size_t i = 1; i < QUEUES; i++) {
        size_t at = i - 1;
        cli_fine(weir_event_time_ns(order->ends[i], &ends[i]));
        for (; at > 0 && ends[order->first[at - 1]] > ends[i]; at--)
            order->first[at] = order->first[at - 1];
        order->first[at] = i;
    }
}

// The largest number that explains the order: groups of 4 in the order 0, 2, 1, 3 are two of 2. 0: none
// does.
static int channels_of(const struct order *order)
{
    for (size_t channels = COPY_CHANNELS_MOST; channels > 1; channels--) {
        size_t changes = 0; // pairs of copies in a row that are not of one channel
        for (size_t i = 1; i < COPIES; i++)
            changes += order->first[i] % channels != order->first[i - 1] % channels;
        if (changes <= channels - 1 + (COPIES - channels) / BROKEN_SHARE)
            return (int)channels;
    }
    return 0;
}

// Whether the long copy still ran when all others had been submitted. A copy of each queue comes first, so
// that none is new when it matters, and each turn begins where the others do: an H200 takes the channels of
// a turn that follows another one at once in another order.
static bool measure_order(struct order *order)
{
    for (size_t i = 0; i < QUEUES; i++)
        submit_copy(order, i, order->c->sizes[0]);
    wait_for_all(order);
    submit_copy(order, 0, order->c->large);
    for (size_t i = 1; i < QUEUES; i++)
        submit_copy(order, i, WORK_BYTES);
    const bool valid = weir_event_query(order->ends[0]) == WEIR_NOT_READY;
    wait_for_all(order);
    sort_by_end(order);
    return valid;
}

// That of most turns.
static void decide(struct order *order)
{
    struct calibration *c = order->c;
    uint64_t turns_for[COPY_CHANNELS_MOST + 1] = {0};
    int best = 0;
    for (uint64_t turn = 0; turn < bench.turns; turn++) {
        bool valid = false;
        for (int i = 0; i < TRIES && !valid; i++)
            valid = measure_order(order);
        turns_for[valid ? channels_of(order) : 0]++;
    }
    for (int i = 1; i <= COPY_CHANNELS_MOST; i++)
        best = turns_for[i] > turns_for[best] ? i : best;
    if ((double)turns_for[best] >= TURNS_SHARE * (double)bench.turns)
        cal_figure_set(c, CAL_COPY_CHANNELS, best);
    else
        cal_figure_leave(c, CAL_COPY_CHANNELS,
                         "copies of 24 queues went in no order that most turns had in common, so "
                         "the model has none");
}

static void measure_copy_channels(struct calibration *c)
{
    static struct order order;
    order.c = c;
    if (bench.limits->timing_history == 0 || c->figures[CAL_QUEUE_KIND].value == 0) {
        cal_figure_leave(c, CAL_COPY_CHANNELS,
                         bench.limits->timing_history == 0 ? "the device keeps no times"
                                                           : "each queue holds up all others");
        return;
    }
    cli_own(destroy_queues, &order);
    for (size_t i = 0; i < QUEUES; i++)
        cli_fine(
            weir_queue_create(bench.device,
                              WEIR_PARAMS(weir_queue, .label = "calibrate/order", .timing = true),
                              &order.queues[i]));
    decide(&order);
}

// All of them.

static void ask_driver(struct calibration *c)
{
    struct weir_occupancy occupancy = {0};
    cli_fine(weir_kernel_occupancy(c->kernel, weir_dim(CAL_BLOCK, 1, 1), 0, &occupancy));
    cal_figure_set(c, CAL_MULTIPROCESSORS, (double)bench.limits->compute_units);
    cal_figure_set(c, CAL_THREADS, (double)occupancy.max_unit_items);
    if (occupancy.max_unit_items == 0)
        cal_figure_leave(c, CAL_THREADS, "the driver does not tell");
    // A model has CUDA's order, in which smaller numbers go first.
    cal_figure_set(c, CAL_GREATEST_PRIORITY, -bench.limits->priority_highest);
}

void cal_measure_all(struct calibration *c)
{
    const double large = cal_median(c, measure_large, 0).value;
    const double submit = cal_median(c, measure_submits, 0).value;
    // The slowest submit takes a few times the mean.
    c->gate_count = 1 + (uint64_t)(GATE_MARGIN * 4.0 * CAL_IN_A_ROW * submit / fmax(large, 1));
    measure_copies(c);
    measure_host(c);
    c->pageable = cli_allocate(LARGE_COPIES, c->large);
    memset(c->pageable, 1, LARGE_COPIES * c->large);
    measure_rate(c, CAL_STAGING, SHARE_MOST);
    measure_rate(c, CAL_STAGING_ALL, SHARE_MOST_ALL);
    cal_measure_figure(c, CAL_WAKE, measure_wake);
    measure_channels(c);
    const uint32_t rounds = find_rounds(c);
    measure_copy_channels(c);
    measure_kernels(c, rounds);
    ask_driver(c);
    cal_measure_figure(c, CAL_SUBMIT_BRANCH, measure_branch);
    cal_measure_figure(c, CAL_GRAPH_PAUSE, measure_pause);
    measure_peers(c);
}
