// Names of what is made from a trace.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace/trace.h"

static bool ends_in(const char *text, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length > size && strncmp(text + length - size, end, size) == 0;
}

bool cli_trace_is_compressed(const char *trace)
{
    return ends_in(trace, strlen(trace), ".gz");
}

char *cli_trace_name(const char *trace, const char *end)
{
    size_t length = strlen(trace);
    if (ends_in(trace, length, ".gz"))
        length -= 3;
    if (ends_in(trace, length, ".json"))
        length -= 5;
    const size_t size = length + strlen(end) + 1;
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%.*s%s", (int)length, trace, end);
    return name;
}
