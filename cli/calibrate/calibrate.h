// What the files of `weir calibrate` share.
//
//   command.c  the command line
//   rig.c      the device, its queues and buffers, and work that is timed
//   figures.c  samples, and what becomes of them
//   copies.c   bandwidths and latencies
//   both.c     the same while the other direction is busy
//   host.c     what submits and waits take
//   pageable.c memory that is not pinned
//   graphs.c   what graphs take
//   wake.c     how long a thread takes to wake another one
//   engines.c  engines, channels, and kernels at once
//   channels.c channels of copies
//   votes.c    how many there are, by all turns
//   peers.c    another device
//   write.c    the model, the table and the JSON
//
// All times are the host's, from before the first submit until after the wait: those of one
// operation are the difference between a run with more of them and one with fewer, which both begin
// with a copy that is long enough for all submits (the gate). So they hold in virtual time too, where
// the figures of the modelled GPU are found again.
//
// Errors: functions that return bool have printed a sentence and set `code` when they fail.
#ifndef WEIR_CLI_CALIBRATE_H
#define WEIR_CLI_CALIBRATE_H

#include <weir/weir.h>

#include "cli/calibrate/votes.h"
#include "cli/common/cli.h"
#include "cli/common/progress.h"

enum {
    CAL_TURNS_MOST = 101,
    CAL_QUEUES = 256,
    CAL_SIZES = 8,
    CAL_ORDER = 2 * CAL_CHANNELS_MOST,
    CAL_IN_A_ROW = 32, // small operations of a run
    CAL_SUBMITS = 128, // of which the first few take longer than the others
    CAL_BLOCK = 64,    // work-items of a kernel's one block
    CAL_BRANCHES = 4,  // of a graph
    CAL_LENGTH = 18,   // of another one
};

// Keys of a model, in the order in which they are written.
enum cal_key {
    CAL_QUEUE_KIND, // 0: engine, 1: stream
    CAL_LATE_SIGNALS,
    CAL_CHANNELS,
    CAL_COPY_ENGINES,
    CAL_COPY_CHANNELS,
    CAL_PEER_ENGINE,
    CAL_KERNELS,
    CAL_MULTIPROCESSORS,
    CAL_THREADS,
    CAL_LEAST_PRIORITY,
    CAL_GREATEST_PRIORITY,
    CAL_H2D,
    CAL_D2H,
    CAL_H2D_BOTH,
    CAL_D2H_BOTH,
    CAL_D2D,
    CAL_PEER,
    CAL_H2D_LATENCY,
    CAL_D2H_LATENCY,
    CAL_H2D_BOTH_LATENCY,
    CAL_D2H_BOTH_LATENCY,
    CAL_D2D_LATENCY,
    CAL_PEER_LATENCY,
    CAL_PULL_LATENCY,
    CAL_SIGNAL,
    CAL_SIGNAL_COPY,
    CAL_KERNEL_GAP,
    CAL_HOST_CALL,
    CAL_SUBMIT_KERNEL,
    CAL_SUBMIT_COPY,
    CAL_SUBMIT_PEER,
    CAL_SUBMIT_PULL,
    CAL_SUBMIT_HOST,
    CAL_SUBMIT_MARK,
    CAL_SUBMIT_CHANGE,
    CAL_SUBMIT_PEER_WAIT,
    CAL_SUBMIT_GRAPH,
    CAL_SUBMIT_NODE,
    CAL_SUBMIT_BRANCH,
    CAL_GRAPH_BEGIN,
    CAL_GRAPH_JOIN,
    CAL_SUBMIT_COLD,
    CAL_WAIT,
    CAL_WAKE,
    CAL_UPLOAD,
    CAL_UPLOAD_ALL,
    CAL_DOWNLOAD,
    CAL_DOWNLOAD_ALL,
    CAL_KEYS
};

enum cal_unit {
    CAL_WORD, // engine or stream
    CAL_NUMBER,
    CAL_GB_PER_S,
    CAL_NS,
};

// Each with its name, its unit and how it is measured; figures.c.
extern const struct cal_about {
    const char *name;
    enum cal_unit unit;
    const char *how;
} cal_keys[CAL_KEYS];

// Of one turn after the other.
struct cal_samples {
    size_t count;
    double values[CAL_TURNS_MOST];
};

struct cal_figure {
    bool measured;
    bool spreads; // `least` and `most` were found
    double value; // in the key's unit
    double least;
    double most;
    const char *why; // it was not measured; NULL: nothing is known of it
};

// What is done over and over.
enum cal_kind {
    CAL_UP,     // host to device
    CAL_DOWN,   // and back
    CAL_WITHIN, // within the device
    CAL_ACROSS, // to another device
    CAL_PULL,   // from another device
    CAL_COPIES, // kinds of copies
    CAL_LAUNCH = CAL_COPIES,
    CAL_CALL,  // a function of the host
    CAL_GRAPH, // of one kernel
    CAL_CHAIN, // of two, one after the other
    CAL_LONG,  // of CAL_LENGTH, one after the other
    CAL_FORK,  // of one, and of CAL_BRANCHES after it
    CAL_KINDS,
};

struct cal_work {
    enum cal_kind kind;
    size_t bytes;
    uint32_t rounds; // of a launch
};

// Nanoseconds of a copy, by size.
struct cal_by_size {
    struct cal_figure ns[CAL_SIZES];
};

// In which order copies of several queues went.
struct cal_order {
    size_t queues[CAL_ORDER];    // in the last turn
    size_t turns;                // 0: not measured
    int numbers[CAL_TURNS_MOST]; // of channels that each turn is for, or CAL_NO_VOTE
};

struct calibration {
    // The command line.
    const char *config;
    const char *select;
    const char *out;
    uint64_t turns;
    bool json;
    bool quiet;

    // Where it runs.
    weir_runtime *runtime;
    weir_device *device;
    const struct weir_limits *limits;
    weir_device *peer; // NULL: none
    weir_program *program;
    weir_kernel *kernel;
    weir_graph *graphs[CAL_KINDS - CAL_GRAPH];
    weir_queue *queues[CAL_QUEUES]; // the first `queue_count`
    size_t queue_count;
    weir_buffer *from[CAL_COPIES]; // of each kind of copy
    weir_buffer *to[CAL_COPIES];   // NULL: there are no such copies
    weir_buffer *numbers;          // the kernel's
    char *pageable;                // while that is measured
    size_t pageable_used;          // of it, by the copies before
    size_t sizes[CAL_SIZES];
    size_t size_count;
    size_t large;        // the last size
    uint64_t gate_count; // copies of that size before what is timed

    struct cal_figure figures[CAL_KEYS];
    struct cal_by_size by_size[CAL_COPIES];
    struct cal_by_size beside[CAL_DOWN + 1]; // uploads and downloads, both ways
    struct cal_order order;
    int code;
};

// rig.c

bool cal_open(struct calibration *c);
void cal_close(struct calibration *c);
// Prints the thread's Weir error, or the sentence. Both return false.
bool cal_fail_weir(struct calibration *c);
bool cal_fail(struct calibration *c, int code, const char *format, ...) WEIR_PRINTF(3, 4);
// Creates queues until there are `count`, one after the other.
bool cal_reserve_queues(struct calibration *c, size_t count);
bool cal_submit(struct calibration *c, size_t queue, const struct cal_work *work, uint64_t count);
// So many records in one queue, and a wait for each in the other one.
bool cal_submit_pairs(struct calibration *c, weir_queue *waits, weir_queue *records,
                      uint64_t count);
// Waits for what the queue has; the host has then waited once.
bool cal_sync(struct calibration *c, size_t queue);
// One of them, and the wait: what is timed next on the queue does not come after another engine's work.
bool cal_prepare(struct calibration *c, size_t queue, const struct cal_work *work);
// A copy, or several, of the large size to the device, which keep the queue busy.
bool cal_gate(struct calibration *c, size_t queue);
// `count` of them on the first queue, from the first submit until after the wait.
bool cal_time(struct calibration *c, const struct cal_work *work, uint64_t count, double *out_ns);
// What one of them adds to those before it.
bool cal_each(struct calibration *c, const struct cal_work *work, uint64_t count, double *out_ns);
// A large copy of each kind at once: how much of the shorter one the other one hides.
bool cal_hidden(struct calibration *c, enum cal_kind a, enum cal_kind b, double *out_share);
// Nanoseconds of one submit, of many to a queue that is idle at first.
bool cal_submits(struct calibration *c, const struct cal_work *work, double *out_ns);

// figures.c

// A sample; `at` is the measurement's own.
typedef bool (*cal_measure)(struct calibration *c, size_t at, double *out_value);

// The median over the turns, and the spread; the first turn warms up and does not count.
bool cal_figure_measure(struct calibration *c, cal_measure measure, size_t at,
                        struct cal_figure *out_figure);
// A figure that is known at once.
void cal_figure_set(struct calibration *c, enum cal_key key, double value);
// Why it was not measured: a literal.
void cal_figure_leave(struct calibration *c, enum cal_key key, const char *why);

// copies.c

bool cal_measure_gate(struct calibration *c);
// How many copies of that size are timed in a row.
uint64_t cal_fitting(const struct calibration *c, size_t bytes);
// Sets the two figures of the line that fits the times of copies by size best.
bool cal_fit_copies(struct calibration *c, const struct cal_by_size *by_size, enum cal_key rate,
                    enum cal_key latency);
// Fills in `by_size` of a kind of copy, and with it the two figures.
bool cal_measure_copies(struct calibration *c, enum cal_kind kind);

// both.c

bool cal_measure_both(struct calibration *c);

// graphs.c

bool cal_create_graphs(struct calibration *c);
bool cal_measure_graphs(struct calibration *c);
// Kernels of a queue beside those of a graph.
bool cal_measure_gap(struct calibration *c);

// host.c, pageable.c, wake.c, engines.c, channels.c, peers.c

bool cal_measure_host(struct calibration *c);
// With as many queues as there may be: after what counts queues.
bool cal_measure_cold(struct calibration *c);
bool cal_measure_pageable(struct calibration *c);
bool cal_measure_wake(struct calibration *c);
bool cal_measure_copy_channels(struct calibration *c);
bool cal_measure_engines(struct calibration *c);
bool cal_measure_peers(struct calibration *c);

// write.c

// Writes the model, and prints what the command line asks for. Returns an exit code.
int cal_report(struct calibration *c);

#endif
