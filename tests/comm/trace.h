// The traces of runs of the rig.
#ifndef WEIR_TESTS_COMM_TRACE_H
#define WEIR_TESTS_COMM_TRACE_H

#include <stdio.h>

#include "report/trace.h"
#include "tests/support/own.h"

enum {
    COMM_TRACE_PATH_SIZE = 512
};

// The path of a trace in the test's folder.
static inline void comm_trace_path(char path[COMM_TRACE_PATH_SIZE], const char *name)
{
    snprintf(path, COMM_TRACE_PATH_SIZE, "%s/%s.trace.json", weir_test_temp_dir(), name);
}

#define own_trace OWN(weir_trace_destroy) struct weir_trace *
// On error the test fails and NULL is returned.
static inline struct weir_trace *comm_trace_read(const char *path)
{
    struct weir_trace *trace = NULL;
    char message[512] = "";
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return trace;
}

#endif
