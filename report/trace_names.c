// Names of the parts of a trace, in files and for users.
#include <stdio.h>
#include <string.h>

#include "report/trace.h"
#include "report/trace_out.h"

static const char *const engine_names[WEIR_ENGINE_COUNT] = {
    [WEIR_ENGINE_NONE] = "none",
    [WEIR_ENGINE_TO_DEVICE] = "to_device",
    [WEIR_ENGINE_TO_HOST] = "to_host",
    [WEIR_ENGINE_ON_DEVICE] = "on_device",
    [WEIR_ENGINE_KERNELS] = "kernels",
    [WEIR_ENGINE_HOST] = "host",
    [WEIR_ENGINE_COMMUNICATION] = "communication",
};

const char *weir_trace_engine_name(enum weir_trace_engine engine)
{
    return (unsigned)engine < WEIR_ENGINE_COUNT ? engine_names[engine] : engine_names[0];
}

const char *weir_trace_engine_colour(enum weir_trace_engine engine)
{
    static const char *const colours[WEIR_ENGINE_COUNT] = {
        [WEIR_ENGINE_NONE] = "#8a9199",          [WEIR_ENGINE_TO_DEVICE] = "#3b75b4",
        [WEIR_ENGINE_TO_HOST] = "#d9822b",       [WEIR_ENGINE_ON_DEVICE] = "#8d6cab",
        [WEIR_ENGINE_KERNELS] = "#2f9e77",       [WEIR_ENGINE_HOST] = "#8a9199",
        [WEIR_ENGINE_COMMUNICATION] = "#b8503f",
    };
    return colours[(unsigned)engine < WEIR_ENGINE_COUNT ? engine : WEIR_ENGINE_NONE];
}

const char *weir_trace_kind_name(enum weir_trace_kind kind)
{
    static const char *const names[] = {
        [WEIR_TRACE_COPY] = "copy",           [WEIR_TRACE_COPY_2D] = "copy_2d",
        [WEIR_TRACE_COPY_3D] = "copy_3d",     [WEIR_TRACE_FILL] = "fill",
        [WEIR_TRACE_FILL_2D] = "fill_2d",     [WEIR_TRACE_LAUNCH] = "launch",
        [WEIR_TRACE_HOST_CALL] = "host_call", [WEIR_TRACE_GRAPH] = "graph",
        [WEIR_TRACE_NATIVE] = "native",       [WEIR_TRACE_COLLECTIVE] = "collective",
        [WEIR_TRACE_NOTE] = "note",
    };
    const bool known = (unsigned)kind < sizeof names / sizeof *names && names[kind];
    return known ? names[kind] : "operation";
}

const char *weir__trace_memory_name(enum weir_trace_memory memory)
{
    static const char *const names[] = {"Unknown", "Device", "Pinned", "Pageable", "Managed"};
    return names[(unsigned)memory < sizeof names / sizeof *names ? memory : 0];
}

static char letter(enum weir_trace_memory memory)
{
    return memory == WEIR_TRACE_DEVICE_MEMORY || memory == WEIR_TRACE_MANAGED_MEMORY ? 'D' : 'H';
}

const char *weir_trace_operation_title(const struct weir_trace_operation *operation, char *text,
                                       size_t size)
{
    const char *name = operation->name ? operation->name : "";
    switch (operation->kind) {
    case WEIR_TRACE_COPY:
    case WEIR_TRACE_COPY_2D:
    case WEIR_TRACE_COPY_3D:
        snprintf(text, size, "Memcpy %cto%c (%s -> %s)", letter(operation->src_memory),
                 letter(operation->dst_memory), weir__trace_memory_name(operation->src_memory),
                 weir__trace_memory_name(operation->dst_memory));
        break;
    case WEIR_TRACE_FILL:
    case WEIR_TRACE_FILL_2D:
        snprintf(text, size, "Memset (%s)", weir__trace_memory_name(operation->dst_memory));
        break;
    case WEIR_TRACE_HOST_CALL:
        snprintf(text, size, "host call%s%s", *name ? " " : "", name);
        break;
    case WEIR_TRACE_GRAPH:
        snprintf(text, size, "graph%s%s", *name ? " " : "", name);
        break;
    case WEIR_TRACE_NATIVE:
        snprintf(text, size, "native work%s%s", *name ? " " : "", name);
        break;
    default:
        snprintf(text, size, "%s", *name ? name : weir_trace_kind_name(operation->kind));
        break;
    }
    return text;
}

bool weir_trace_is_communication(const char *name)
{
    return strncmp(name, "nccl", 4) == 0 && strstr(name + 4, "Kernel");
}
