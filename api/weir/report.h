// Reports on traces: how much of the work overlapped, what did not, and why.
//
// The plugin `trace` (docs/trace.md) writes a trace while a program runs. After its runtime
// is closed the file can be read here, by the program itself, by a test of it, or by `weir
// trace report`, which prints the same figures.
//
//     weir_report *report;
//     if (weir_report_read("trace.json", NULL, &report) == WEIR_OK) {
//         struct weir_report_overlap overlap;
//         weir_report_get_overlap(report, "copy", "compute", &overlap);
//         printf("%.0f %% of the copies' time was hidden\n", 100 * overlap.least);
//     }
//     weir_report_destroy(&report);
//
// What is measured. The operations of devices: copies, fills, launches, graphs and native
// work, from their start to their end on the engine that ran them. Host calls run on
// threads of the host; they are named where they caused something, and have separate rows,
// but do not count for span, busy, idle, overlap or speed-up. All times are on one clock,
// in nanoseconds since the trace began. The time of a set of operations is the length of
// their *union*: two operations at once count once, so no such time exceeds the span.
//
// Least and most. Some drivers report when an operation ended, but for its start only a
// lower bound. Such an operation may have begun
//   - at the earliest at that bound: the figures called `most`;
//   - at the latest when the last other operation of its engine between the bound and its
//     own end had ended, since an engine does not idle while work is ready for it: `least`.
// A copy in a direction for which the device has one engine began exactly then. If all
// starts are known the two are equal, and `exact` is set.
//
// Threads: a report is never changed; any number of threads may read it.
#ifndef WEIR_REPORT_H
#define WEIR_REPORT_H

#include <weir/common.h>
#include <weir/status.h>

typedef struct weir_report weir_report;

struct weir_report_params {
    size_t struct_size;
    // Only operations between these times, cut off at them. 0 and 0: all.
    uint64_t from_ns;
    uint64_t to_ns;
    // How many bubbles of each list are kept, longest first; 0: 100.
    uint32_t bubble_limit;
};

// Reads a trace and measures it. `params` may be NULL.
//
// Errors: WEIR_ERROR_IO for a file that cannot be read or is not a trace, with the reason;
// WEIR_ERROR_INVALID for a window that holds no operation; WEIR_ERROR_OUT_OF_MEMORY.
WEIR_CALL weir_status weir_report_read(const char *path, const struct weir_report_params *params,
                                       weir_report **out_report);

// Destroys the report.
WEIR_API void weir_report_destroy(weir_report **report);

// Closed.
struct weir_report_time {
    uint64_t least_ns;
    uint64_t most_ns;
};

// What limits the run: see `host_share`.
typedef enum weir_report_verdict {
    WEIR_REPORT_NOTHING_RAN = 0,
    WEIR_REPORT_DEVICE_BOUND = 1, // host_share <= 0.1
    WEIR_REPORT_MIXED = 2,
    WEIR_REPORT_SUBMIT_BOUND = 3, // host_share >= 0.5
} weir_report_verdict;

struct weir_report_summary {
    uint64_t operations; // measured, host calls included
    uint64_t untimed;    // operations without times, not part of any figure
    uint64_t dropped;    // operations that the trace does not hold
    bool truncated;      // the trace has no end, or lost lines
    bool exact;          // all starts are known

    // Span: from the first start of a device's operation to the last end.
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t span_ns; // end - begin

    // Parts of the span, by unions over all devices, with each start at its earliest; the
    // three add up to the span. They are HTA's temporal breakdown.
    uint64_t idle_ns;        // no operation ran
    uint64_t compute_ns;     // a kernel ran; communication is none
    uint64_t non_compute_ns; // something ran, but no such kernel

    // Effective speed-up: the sum of the durations of all operations, divided by the span.
    // 1.0 means one operation after the other without pauses; idle time makes it less.
    double speedup_least;
    double speedup_most;

    // The bound: the longest busy time (most) of one engine of one device. No order of this
    // work can take less time than its busiest engine.
    uint64_t bound_ns;
    uint32_t bound_device;
    const char *bound_engine; // "to_device", "to_host", "on_device", "kernels", "communication"
    double bound_distance;    // span / bound, 1.0 at best

    // If the devices run one operation at a time, overlap and speed-up mean nothing; this
    // is then the reason, else "".
    const char *serial_reason;

    // Bubbles: intervals inside a device's own span in which it ran nothing.
    uint64_t bubbles;
    uint64_t bubbles_ns;
    uint64_t longest_bubble_ns;

    // Parts of the critical path (see WEIR_REPORT_PATH), as shares of the span.
    double device_share;  // operations of devices
    double host_share;    // the next operation was not submitted yet, or a host call ran
    double latency_share; // it was submitted and free to run, and had not begun
    weir_report_verdict verdict;
};

// Ownership: the report's, as are all texts in it.
WEIR_API const struct weir_report_summary *weir_report_get_summary(const weir_report *report);

typedef enum weir_report_table {
    WEIR_REPORT_DEVICES = 1,
    WEIR_REPORT_QUEUES = 2,  // by label
    WEIR_REPORT_ENGINES = 3, // of each device; "host" for host calls
    WEIR_REPORT_KINDS = 4,   // "copy", "fill", "launch" ...
    WEIR_REPORT_NAMES = 5,   // kernels by name, copies by direction
    WEIR_REPORT_REGIONS = 6, // paths of regions, numbers left out: "frame/texture"
    // The critical path: what the end of the span waited for, followed back to the begin of
    // the span. From the operation that ended last it goes to whichever of these ended
    // last: the operation before it in its queue, the one whose event it waited for, the
    // one before it on its engine; and so on. If an operation was submitted after all of
    // these had ended, it goes to the operation that ended last before the submit. Rows are
    // by name, with WEIR_REPORT_SUBMITTING and _LATENCY for the parts without an operation.
    // `busy` is the time on the path; the rows add up to the span.
    WEIR_REPORT_PATH = 7,
} weir_report_table;

#define WEIR_REPORT_SUBMITTING "(not submitted yet)"
#define WEIR_REPORT_LATENCY "(latency)"

// A sum that would exceed UINT64_MAX stays at UINT64_MAX.
struct weir_report_row {
    const char *name;
    uint32_t device; // index; of DEVICES, QUEUES and ENGINES
    uint64_t queue;  // id; of QUEUES
    uint64_t count;  // operations
    uint64_t bytes;
    struct weir_report_time sum;  // of the durations
    struct weir_report_time busy; // of their union
    uint64_t longest_ns;          // the longest operation, from its earliest start
    double utilisation;           // busy.most / span
};

// The number of rows of a table. Devices, queues and engines are in order, the others by
// descending busy time.
WEIR_API size_t weir_report_row_count(const weir_report *report, weir_report_table table);

// NULL past the last.
WEIR_API const struct weir_report_row *weir_report_get_row(const weir_report *report,
                                                           weir_report_table table, size_t index);

// The first row with that name, or NULL.
WEIR_API const struct weir_report_row *weir_report_find_row(const weir_report *report,
                                                            weir_report_table table,
                                                            const char *name);

struct weir_report_overlap {
    bool applies;     // the figures are meaningful; if not, `reason` says why
    char reason[256]; // "" or a sentence
    // The time in which an operation of one set and another operation of the other set were
    // running.
    struct weir_report_time both;
    struct weir_report_time first; // busy time of the first set
    struct weir_report_time second;
    // The share of the first set's time in which the second ran too: both.least /
    // first.most and both.most / first.least, the latter at most 1.
    double least;
    double most;
};

// Measures the overlap of two sets of operations. A set is
//     copy                 all copies and fills
//     compute, kernels     launches, graphs and native work
//     to_device, h2d       copies from host to device memory
//     to_host, d2h         and back
//     on_device, d2d       copies and fills within devices or between them
//     communication        collectives, and kernels of NCCL
//     host                 host calls
//     all                  operations of devices
//     queue:LABEL  name:NAME  region:PATH   as in the tables
// "copy", "copy" is the time in which two copies ran at once.
//
// Errors: WEIR_ERROR_INVALID for a name of any other form, with the nearest valid one.
WEIR_CALL weir_status weir_report_get_overlap_sized(const weir_report *report, const char *first,
                                                    const char *second,
                                                    struct weir_report_overlap *out_overlap,
                                                    size_t size);
#define weir_report_get_overlap(report, first, second, out_overlap)   \
    weir_report_get_overlap_sized(report, first, second, out_overlap, \
                                  sizeof(struct weir_report_overlap))

typedef enum weir_report_cause {
    WEIR_REPORT_CAUSE_NONE = 0,    // no operation followed
    WEIR_REPORT_CAUSE_SUBMIT = 1,  // the next operation was not submitted yet
    WEIR_REPORT_CAUSE_WAIT = 2,    // the next operation waited for an event
    WEIR_REPORT_CAUSE_QUEUE = 3,   // it waited for an earlier operation of its queue
    WEIR_REPORT_CAUSE_LATENCY = 4, // it was ready to run most of the time, but had not
                                   // begun
} weir_report_cause;

// An interval in which a device, or one of its engines, ran nothing.
struct weir_report_bubble {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t device;
    const char *engine; // "" for the whole device
    weir_report_cause cause;
    const char *sentence; // names the operation that ended it, what it waited for, and where
    const char *file;     // the line that caused it, or ""
    int line;
};

// The number of bubbles, longest first: of devices, or, with `of_bound`, of the engine that
// is the bound, inside the span. The time that this engine idles is the time that the run
// loses.
WEIR_API size_t weir_report_bubble_count(const weir_report *report, bool of_bound);

// NULL past the last.
WEIR_API const struct weir_report_bubble *weir_report_get_bubble(const weir_report *report,
                                                                 bool of_bound, size_t index);

struct weir_report_finding {
    bool holds;
    char sentence[384]; // the condition, and the figure that was found
};

// Checks a condition, as `weir trace check` does. If `least` and `most` differ, it holds
// only if it holds for both. A condition on a figure that does not apply (n/a) does not
// hold.
//     overlap A/B >= SHARE     0 to 1, or a percentage: "overlap copy/compute>=60%"
//     bubbles <= TIME          the longest bubble: "bubbles<=1ms"; units ns, us, ms, s
//     span <= TIME
//     idle <= SHARE            idle / span
//     speedup >= NUMBER
//     bound <= NUMBER          span / bound
//     busy SET >= SHARE        busy of a set / span
//     host <= SHARE            host_share
//     dropped <= NUMBER
// Each takes <=, >=, < and >.
//
// Errors: WEIR_ERROR_INVALID for a condition that cannot be parsed, with the valid forms.
WEIR_CALL weir_status weir_report_check_sized(const weir_report *report, const char *condition,
                                              struct weir_report_finding *out_check, size_t size);
#define weir_report_check(report, condition, out_check) \
    weir_report_check_sized(report, condition, out_check, sizeof(struct weir_report_finding))

// The report as text with several tables, and as a JSON object.
//
// Ownership: the caller's, to be freed with weir_report_free_text().
// Errors: NULL if out of memory.
WEIR_API char *weir_report_text(const weir_report *report);
WEIR_API char *weir_report_json(const weir_report *report);
WEIR_API void weir_report_free_text(char **text);

#endif
