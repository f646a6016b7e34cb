#include <stdlib.h>

#include "cli/calibrate/calibrate.h"
#include "cli/common/signals.h"

static const char line[] = "the line through the times of all sizes";
static const char line_beginning[] = "the same line, at no bytes";
static const char one_thread[] =
    "memory that is not pinned, the difference of 1 and 3 MiB, which one thread copies";
static const char all_threads[] = "the same of large copies, which several threads copy";

const struct cal_about cal_keys[CAL_KEYS] = {
    [CAL_QUEUE_KIND] = {"queues", CAL_WORD,
                        "whether a kernel that waits for a copy holds up one in another queue"},
    [CAL_LATE_SIGNALS] = {"late_signals", CAL_NUMBER,
                          "whether a download after a short kernel also waits for a long one that "
                          "was submitted to another queue"},
    [CAL_CHANNELS] =
        {"channels", CAL_NUMBER,
         "the first queue after another one whose kernel waits for that one's; 0: none "
         "of 128"},
    [CAL_COPY_ENGINES] = {"copy_engines", CAL_NUMBER,
                          "whether an upload and a download at once take less than both in turn"},
    [CAL_COPY_CHANNELS] =
        {"copy_channels", CAL_NUMBER,
         "with what number the engine of uploads takes those of 24 queues in groups, each of which "
         "has every queue of that distance, in most turns; 1: as submitted; 0: as ready"},
    [CAL_PEER_ENGINE] = {"peer_engine", CAL_NUMBER,
                         "the same of a copy to another device and a download"},
    [CAL_KERNELS] = {"kernels", CAL_NUMBER,
                     "how many kernels of one block, each in a queue of its own, take as long as "
                     "one"},
    [CAL_MULTIPROCESSORS] = {"multiprocessors", CAL_NUMBER, "what the driver says"},
    [CAL_THREADS] = {"threads_per_multiprocessor", CAL_NUMBER, "what the driver says"},
    [CAL_LEAST_PRIORITY] = {"least_priority", CAL_NUMBER, "what the driver says"},
    [CAL_GREATEST_PRIORITY] = {"greatest_priority", CAL_NUMBER, "what the driver says"},
    [CAL_H2D] = {"h2d_gb_per_s", CAL_GB_PER_S, line},
    [CAL_D2H] = {"d2h_gb_per_s", CAL_GB_PER_S, line},
    [CAL_H2D_BOTH] = {"h2d_both_gb_per_s", CAL_GB_PER_S,
                      "the same line, of copies while downloads keep the other direction busy"},
    [CAL_D2H_BOTH] = {"d2h_both_gb_per_s", CAL_GB_PER_S,
                      "the same line, of copies while uploads keep the other direction busy"},
    [CAL_D2D] = {"d2d_gb_per_s", CAL_GB_PER_S, line},
    [CAL_PEER] = {"peer_gb_per_s", CAL_GB_PER_S, line},
    [CAL_H2D_LATENCY] = {"h2d_latency_ns", CAL_NS, line_beginning},
    [CAL_D2H_LATENCY] = {"d2h_latency_ns", CAL_NS, line_beginning},
    [CAL_H2D_BOTH_LATENCY] = {"h2d_both_latency_ns", CAL_NS,
                              "the line beside downloads, at no bytes"},
    [CAL_D2H_BOTH_LATENCY] = {"d2h_both_latency_ns", CAL_NS,
                              "the line beside uploads, at no bytes"},
    [CAL_D2D_LATENCY] = {"d2d_latency_ns", CAL_NS, line_beginning},
    [CAL_PEER_LATENCY] = {"peer_latency_ns", CAL_NS, line_beginning},
    [CAL_PULL_LATENCY] = {"pull_latency_ns", CAL_NS,
                          "a copy of 4 KiB from another device, of many in a row, without the time "
                          "of its bytes and the signal"},
    [CAL_SIGNAL] = {"signal_ns", CAL_NS,
                    "what an upload, a kernel and a download in turn take more than each of them "
                    "in a row, but for the signals of the copies"},
    [CAL_SIGNAL_COPY] =
        {"signal_copy_ns", CAL_NS,
         "what a turn of an upload, a kernel and a download takes more than one of a "
         "kernel and an upload, but for the download"},
    [CAL_KERNEL_GAP] = {"kernel_gap_ns", CAL_NS,
                        "what a kernel takes longer in a queue, of many in a row, than in a graph"},
    [CAL_HOST_CALL] = {"host_call_ns", CAL_NS, "a function that does nothing, of many in a queue"},
    [CAL_SUBMIT_KERNEL] = {"submit_kernel_ns", CAL_NS,
                           "a launch, of many to a queue that is idle at first"},
    [CAL_SUBMIT_COPY] = {"submit_copy_ns", CAL_NS,
                         "an upload or a download of 4 KiB, of many uploads and as many downloads"},
    [CAL_SUBMIT_PEER] = {"submit_peer_ns", CAL_NS, "a copy of 4 KiB to another device, of as many"},
    [CAL_SUBMIT_PULL] = {"submit_pull_ns", CAL_NS,
                         "a copy of 4 KiB from another device, of as many"},
    [CAL_SUBMIT_HOST] = {"submit_host_ns", CAL_NS, "a host call, of as many"},
    [CAL_SUBMIT_MARK] = {"submit_mark_ns", CAL_NS,
                         "half of a record and a wait for it, of many between two busy queues"},
    [CAL_SUBMIT_CHANGE] = {"submit_change_ns", CAL_NS,
                           "a third of what the submits of an upload, a kernel and a download take "
                           "longer, of many such chunks to four queues in turn"},
    [CAL_SUBMIT_PEER_WAIT] = {"submit_peer_wait_ns", CAL_NS,
                              "what a record and a wait for it in a queue of another device take, "
                              "of many, without the record"},
    [CAL_SUBMIT_GRAPH] = {"submit_graph_ns", CAL_NS, "a graph of one kernel, of as many"},
    [CAL_SUBMIT_NODE] =
        {"submit_node_ns", CAL_NS,
         "a sixteenth of what a graph of 18 kernels in a row adds to the submit of one of two"},
    [CAL_SUBMIT_BRANCH] =
        {"submit_branch_ns", CAL_NS,
         "a third of what a graph of four branches adds to the submit of one of two kernels, "
         "without its three nodes more"},
    [CAL_GRAPH_BEGIN] = {"graph_begin_ns", CAL_NS,
                         "where the times of graphs of two kernels and of 18, of many in a queue, "
                         "meet that of none"},
    [CAL_GRAPH_JOIN] = {"graph_join_ns", CAL_NS,
                        "the same of a kernel and four branches after it, more than a graph of two "
                        "kernels"},
    [CAL_SUBMIT_COLD] =
        {"submit_cold_ns", CAL_NS,
         "what a chunk of an upload, a kernel and a download takes longer to submit "
         "to each of 256 queues in turn than to each of four, if much other memory "
         "was used since"},
    [CAL_WAIT] = {"wait_ns", CAL_NS,
                  "what a copy of 1 MiB and the wait for it take, without the submit and the time "
                  "that a second copy adds"},
    [CAL_WAKE] =
        {"wake_ns", CAL_NS,
         "what a copy of 4 MiB takes longer if another thread waits for it, and then wakes "
         "the one that submitted it"},
    [CAL_UPLOAD] = {"upload_gb_per_s", CAL_GB_PER_S, one_thread},
    [CAL_UPLOAD_ALL] = {"upload_all_gb_per_s", CAL_GB_PER_S, all_threads},
    [CAL_DOWNLOAD] = {"download_gb_per_s", CAL_GB_PER_S, one_thread},
    [CAL_DOWNLOAD_ALL] = {"download_all_gb_per_s", CAL_GB_PER_S, all_threads},
};

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

// A difference of times that is negative was too small to be measured.
static double at_least_none(double value)
{
    return value > 0 ? value : 0;
}

static struct cal_figure figure_of(struct cal_samples *samples)
{
    const size_t count = samples->count;
    double *values = samples->values;
    qsort(values, count, sizeof *values, compare_numbers);
    return (struct cal_figure){
        .measured = true,
        .spreads = true,
        .value = at_least_none((values[(count - 1) / 2] + values[count / 2]) / 2),
        .least = at_least_none(values[0]),
        .most = at_least_none(values[count - 1]),
    };
}

bool cal_figure_measure(struct calibration *c, cal_measure measure, size_t at,
                        struct cal_figure *out_figure)
{
    struct cal_samples samples = {0};
    double value;
    // Virtual time needs no warming up.
    for (uint64_t turn = cli_clock_is_virtual(); turn <= c->turns; turn++) {
        if (cli_signal())
            return cal_fail(c, CLI_SIGNALLED + cli_signal(), "interrupted: there is no model");
        if (!measure(c, at, &value))
            return false;
        if (turn > 0)
            samples.values[samples.count++] = value;
    }
    *out_figure = figure_of(&samples);
    return true;
}

void cal_figure_set(struct calibration *c, enum cal_key key, double value)
{
    c->figures[key] = (struct cal_figure){.measured = true, .value = value};
}

void cal_figure_leave(struct calibration *c, enum cal_key key, const char *why)
{
    c->figures[key] = (struct cal_figure){.why = why};
}
