// The traces of runs of the rig.
#ifndef WEIR_TESTS_COMM_TRACE_H
#define WEIR_TESTS_COMM_TRACE_H

#include "report/trace.h"

enum {
    COMM_TRACE_PATH_SIZE = 512
};

// The path of a trace in the test's folder.
void comm_trace_path(char path[COMM_TRACE_PATH_SIZE], const char *name);

// On error the test fails and NULL is returned.
struct weir_trace *comm_trace_read(const char *path);

#endif
