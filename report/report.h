// Shared by the parts of the report.
#ifndef WEIR_REPORT_REPORT_H
#define WEIR_REPORT_REPORT_H

#include <stddef.h>

#include <weir/report.h>

#include "base/names.h"
#include "base/sized.h"
#include "report/trace.h"

// The length of a union that grows by intervals of time in the order of their ends, the last one first, in whole
// nanoseconds. An interval holds its begin and not its end. Zeroed before use.
struct weir__cover {
    uint64_t covered; // so far; 0: nothing
    uint64_t begin;   // of all that is covered
};

// Adds an interval whose end is not after that of the one before. Those that hold nothing add nothing.
void weir__cover_add(struct weir__cover *it, uint64_t begin, uint64_t end);

// One operation that was timed, inside the window.
struct weir__run {
    uint64_t begin;   // its earliest start
    uint64_t certain; // its latest start; >= begin
    uint64_t end;
    size_t operation; // index into the trace's
    uint32_t lane;    // the engine of the device
    uint32_t before;  // of those on its lane that began before it, the one with the last end, as
                      // index + 1; 0: none
    bool of_device;   // not a host call
};

// One engine of one device is a lane, by its number.

// An index into trace.devices.
static inline uint32_t weir__lane_device(uint32_t lane)
{
    return lane / WEIR_ENGINE_COUNT;
}

static inline enum weir_trace_engine weir__lane_engine(uint32_t lane)
{
    return (enum weir_trace_engine)(lane % WEIR_ENGINE_COUNT);
}

// Rows and bubbles as they are returned to users.
struct weir__row {
    WEIR_SIZED_CELL(struct weir_report_row, row, 256);
};

struct weir__bubble {
    WEIR_SIZED_CELL(struct weir_report_bubble, bubble, 256);
};

struct weir__rows_of_table {
    struct weir__row *rows;
    size_t count;
};

struct weir__bubbles {
    struct weir__bubble *items;
    size_t count; // kept
};

enum {
    WEIR__TABLE_COUNT = WEIR_REPORT_PATH + 1
};

struct weir_report {
    struct weir_trace *trace; // the report's
    struct weir_report_params params;
    WEIR_SIZED_CELL(struct weir_report_summary, summary, WEIR_SIZED_ROOM);
    uint64_t origin_ns;     // the first start of a device's operation, inside the window or not
    struct weir__run *runs; // by begin
    size_t run_count;
    uint32_t *by_end;  // the same, by end
    uint32_t *run_of;  // of each operation the run's index + 1, or 0
    bool *lane_used;   // by a run
    size_t lane_count; // all engines of all devices
    uint32_t bound_lane;
    struct weir__rows_of_table tables[WEIR__TABLE_COUNT];
    struct weir__bubbles bubbles[2]; // of devices; of the bound
    char serial_reason[256];
    struct weir_names *names; // texts of rows and sentences
};

// Makes a report of a trace that was already read.
//
// Ownership: takes ownership of `trace`, also on failure.
weir_status weir__report_make(struct weir_trace *trace, const struct weir_report_params *params,
                              weir_report **out_report);

// When the first operation of a device began; 0: none did.
uint64_t weir__first_start(const struct weir_trace *trace);

// Reports an error of the public functions and returns its status.
weir_status weir__report_fail(weir_status status, const char *remedy, const char *format, ...)
    WEIR_PRINTF(3, 4);

// Reads "1.5ms": a number and ns, us, ms or s; or 0. False for anything else.
bool weir__report_time(const char *text, double *out_ns);

// The last parts of the measurement, after runs and tables: bubbles and the path. False if out of memory.
bool weir__measure_path(weir_report *report);

// Compares struct weir__row for qsort(): the busiest first, equal ones by name.
int weir__rows_by_busy(const void *a, const void *b);

// The name of a run's row in the table of queues, kinds, names or regions; "": it has none.
struct weir_trace_name weir__run_name(const weir_report *report, weir_report_table table,
                                      const struct weir__run *run);

#endif
