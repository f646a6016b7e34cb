// `weir calibrate`: measures a device, and writes the model of it that the plugin sim reads.
//
//   command.c  the command line, figures, and the model, the table and the JSON; the device, its queues, buffers and
//              graphs, and work that is timed
//   measure.c  bandwidths and latencies, alone, both ways, between devices and of memory that is not pinned;
//              what submits, waits, graphs and waking threads take; engines, channels, also of copies, and kernels at once
//
// All times are the host's, from before the first submit until after the wait: those of one
// operation are the difference between a run with more of them and one with fewer, which both begin
// with a copy that is long enough for all submits (the gate). So they hold in virtual time too, where
// the figures of the modelled GPU are found again.
//
// Ownership, threads and errors are those of cli/bench/bench.h.
#ifndef WEIR_CLI_CALIBRATE_H
#define WEIR_CLI_CALIBRATE_H

#include <weir/weir.h>

#include "cli/bench/bench.h"

enum {
    CAL_QUEUES = 256,
    CAL_SIZES = 8,
    CAL_IN_A_ROW = 32, // small operations of a run
    CAL_SUBMITS = 128, // of which the first few take longer than the others
    CAL_BLOCK = 64,    // work-items of a kernel's one block
    CAL_BRANCHES = 4,  // of a graph, and queues of submits
    CAL_LENGTH = 18,   // of another graph
};

// Keys of a model, in the order in which they are written, each with its unit and how it is measured. A
// WORD is 0 for engine and 1 for stream.
#define CAL_FIGURES(X)                                                                         \
    X(QUEUE_KIND, "queues", WORD,                                                              \
      "whether a kernel that waits for a copy holds up one in another queue")                  \
    X(CHANNELS, "channels", NUMBER,                                                            \
      "the first queue after another one whose kernel waits for that one's; 0: none of 128")   \
    X(COPY_ENGINES, "copy_engines", NUMBER,                                                    \
      "whether an upload and a download at once take less than both in turn, and a copy to "   \
      "another device and a download")                                                         \
    X(COPY_CHANNELS, "copy_channels", NUMBER,                                                  \
      "with what number the engine of uploads takes those of 24 queues in groups, each of "    \
      "which has every queue of that distance, in most turns")                                 \
    X(KERNELS, "kernels", NUMBER,                                                              \
      "how many kernels of one block, each in a queue of its own, take as long as one")        \
    X(MULTIPROCESSORS, "multiprocessors", NUMBER, "what the driver says")                      \
    X(THREADS, "threads_per_multiprocessor", NUMBER, "what the driver says")                   \
    X(GREATEST_PRIORITY, "greatest_priority", NUMBER, "what the driver says")                  \
    X(H2D, "h2d_gb_per_s", GB_PER_S, "the line through the times of all sizes")                \
    X(D2H, "d2h_gb_per_s", GB_PER_S, "the line through the times of all sizes")                \
    X(H2D_BOTH, "h2d_both_gb_per_s", GB_PER_S,                                                 \
      "the same line, of copies while downloads keep the other direction busy")                \
    X(D2H_BOTH, "d2h_both_gb_per_s", GB_PER_S,                                                 \
      "the same line, of copies while uploads keep the other direction busy")                  \
    X(D2D, "d2d_gb_per_s", GB_PER_S, "the line through the times of all sizes")                \
    X(PEER, "peer_gb_per_s", GB_PER_S, "the line through the times of all sizes")              \
    X(LATENCY, "copy_latency_ns", NS,                                                          \
      "the mean of the lines of uploads and of downloads, at no bytes")                        \
    X(BOTH_LATENCY, "copy_both_latency_ns", NS,                                                \
      "the same of the lines beside the other direction")                                      \
    X(PULL_LATENCY, "pull_latency_ns", NS,                                                     \
      "a copy of 4 KiB from another device, of many in a row, without the time of its bytes "  \
      "and the signal")                                                                        \
    X(SIGNAL, "signal_ns", NS,                                                                 \
      "a third of what an upload, a kernel and a download in turn take more than each of "     \
      "them in a row")                                                                         \
    X(KERNEL_GAP, "kernel_gap_ns", NS,                                                         \
      "what a kernel takes longer in a queue, of many in a row, than in a graph")              \
    X(GRAPH_PAUSE, "graph_ns", NS,                                                             \
      "half of what a graph of a kernel and four branches after it takes, of many in a "       \
      "queue, without its kernels")                                                            \
    X(HOST_CALL, "host_call_ns", NS, "a function that does nothing, of many in a queue")       \
    X(SUBMIT_KERNEL, "submit_kernel_ns", NS,                                                   \
      "a launch, of many to four queues in turn, which are idle at first")                     \
    X(SUBMIT_COPY, "submit_copy_ns", NS, "an upload or a download of 4 KiB, of as many")       \
    X(SUBMIT_MARK, "submit_mark_ns", NS,                                                       \
      "half of a record and a wait for it, of many between two busy queues")                   \
    X(SUBMIT_GRAPH, "submit_graph_ns", NS, "a graph of one kernel, of as many to one queue")   \
    X(SUBMIT_BRANCH, "submit_branch_ns", NS,                                                   \
      "a third of what a graph of four branches adds to the submit of one of two kernels")     \
    X(WAIT, "wait_ns", NS,                                                                     \
      "what a copy of 1 MiB and the wait for it take, without the submit and the time that a " \
      "second copy adds")                                                                      \
    X(WAKE, "wake_ns", NS,                                                                     \
      "what a copy takes longer if another thread waits for it, and then wakes the one that "  \
      "submitted it")                                                                          \
    X(STAGING, "staging_gb_per_s", GB_PER_S,                                                   \
      "memory that is not pinned, both ways, the difference of 1 and 3 MiB, which one thread " \
      "copies")                                                                                \
    X(STAGING_ALL, "staging_all_gb_per_s", GB_PER_S,                                           \
      "the same of large copies, which several threads copy")

enum cal_key {
#define X(key, name, unit, how) CAL_##key,
    CAL_FIGURES(X)
#undef X
    CAL_KEYS
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

struct calibration {
    const char *out;
    weir_device *peer; // NULL: none
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

    size_t at; // what is measured: the figure, or a kind and a size of copies
    struct cal_figure figures[CAL_KEYS];
    double copy_ns[CAL_COPIES][CAL_SIZES]; // medians, of each kind and size alone
};

// command.c

// A sample.
typedef double (*cal_measure)(struct calibration *c);

// The median over the turns, and the spread; the first turn warms up and does not count. `at` is what is measured.
struct cal_figure cal_median(struct calibration *c, cal_measure measure, size_t at);
// Sets a figure to that.
void cal_measure_figure(struct calibration *c, enum cal_key key, cal_measure measure);
// A figure that is known at once.
void cal_figure_set(struct calibration *c, enum cal_key key, double value);
// Why it was not measured: a literal.
void cal_figure_leave(struct calibration *c, enum cal_key key, const char *why);

// Creates queues until there are `count`, one after the other.
void cal_reserve_queues(struct calibration *c, size_t count);
void cal_submit(struct calibration *c, size_t queue, const struct cal_work *work, uint64_t count);
// Waits for what the queue has; the host has then waited once.
void cal_sync(struct calibration *c, size_t queue);
// One of them, and the wait: what is timed next on the queue does not come after another engine's work.
void cal_prepare(struct calibration *c, size_t queue, const struct cal_work *work);
// A copy, or several, of the large size to the device, which keep the queue busy.
void cal_gate(struct calibration *c, size_t queue);
// Nanoseconds of `count` of them on the first queue, from the first submit until after the wait.
double cal_time(struct calibration *c, const struct cal_work *work, uint64_t count);
// What one turn of them, in a row on the first queue after the gate, adds to those before it.
double cal_each(struct calibration *c, const struct cal_work *works, size_t kinds, uint64_t turns);
// Nanoseconds of one submit, of many in turn to the first queues, which are idle at first.
double cal_submits(struct calibration *c, size_t queues, const struct cal_work *works,
                   size_t kinds);

// measure.c: all figures, of the device that is open.
void cal_measure_all(struct calibration *c);

#endif
