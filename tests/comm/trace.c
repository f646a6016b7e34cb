#include "tests/comm/trace.h"

#include <stdio.h>

#include "tests/support/test.h"

void comm_trace_path(char path[COMM_TRACE_PATH_SIZE], const char *name)
{
    snprintf(path, COMM_TRACE_PATH_SIZE, "%s/%s.trace.json", weir_test_temp_dir(), name);
}

struct weir_trace *comm_trace_read(const char *path)
{
    struct weir_trace *trace = NULL;
    char message[512] = "";
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return trace;
}
