// The device of a rank that a launcher has started.
#ifndef WEIR_TESTS_COMM_LOCAL_DEVICE_H
#define WEIR_TESTS_COMM_LOCAL_DEVICE_H

#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

// Opens that of LOCAL_RANK, the rank's number on this machine; ranks share devices if there are fewer.
static inline weir_status local_device_open(weir_runtime *runtime, weir_device **out_device)
{
    const char *local = getenv("LOCAL_RANK");
    const size_t count = weir_device_count(runtime);
    char select[24];
    struct weir_device_params params = {.struct_size = sizeof params, .select = select};
    if (!local || count == 0)
        return weir_device_open(runtime, NULL, out_device);
    snprintf(select, sizeof select, "%zu", (size_t)strtoul(local, NULL, 10) % count);
    return weir_device_open(runtime, &params, out_device);
}

#endif
