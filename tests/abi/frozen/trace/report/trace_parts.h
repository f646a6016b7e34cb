// Shared by the writer and the reader of traces.
#ifndef WEIR_REPORT_TRACE_PARTS_H
#define WEIR_REPORT_TRACE_PARTS_H

#include "tests/abi/frozen/trace/report/trace.h"

// "Device", "Pinned", "Pageable", "Unknown".
const char *weir__trace_memory_name(enum weir_trace_memory memory);

// The pid of the host's rows: the process's number, to which this is added if it could be mistaken
// for a device's.
#define WEIR__TRACE_LEAST_PROCESS 4096u
#define WEIR__TRACE_PROCESS_OFFSET 1000000u

// The names of rows that only Weir reads.
#define WEIR__TRACE_DEVICE_ROW "process_name"
#define WEIR__TRACE_QUEUE_ROW "thread_name"
#define WEIR__TRACE_END_ROW "weir_end"

#endif
