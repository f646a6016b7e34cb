// Launches that are valid and look like mistakes: debug mode tells the log, once for each kernel and
// mistake. The launch goes on.
#ifndef WEIR_CORE_QUEUE_HINTS_H
#define WEIR_CORE_QUEUE_HINTS_H

#include <weir/launch.h>
#include <weir/program.h>

#include "base/cold.h"

struct weir__launch {
    weir_kernel *kernel; // that of the queue's device
    struct weir_extent grid;
    struct weir_extent block;
    const struct weir_argument *arguments;
    size_t argument_count;
    const char *file;
    int line;
};

// A grid of work-items instead of blocks, one without blocks, and ranges that count elements instead of
// bytes.
WEIR_COLD void weir__hint_launch(const struct weir__launch *launch);

#endif
