// Several devices of one command: --devices.
#ifndef WEIR_CLI_RUNTIME_DEVICES_H
#define WEIR_CLI_RUNTIME_DEVICES_H

#include <stdbool.h>
#include <weir/weir.h>

enum {
    CLI_DEVICES_MAX = 64
};

// PoCL compiles a kernel when it is launched first.
bool cli_is_pocl(const struct weir_device_info *info);

// What --devices asks for.
struct cli_devices {
    bool all;
    uint32_t count; // of `indices`; 0 and not `all`: the device that the configuration names
    uint32_t indices[CLI_DEVICES_MAX];
};

// Reads "0,1", the indices of `weir devices`, or "all". NULL is the configuration's device.
//
// Errors: false after a message: not an index, one that is named twice, too many.
bool cli_devices_parse(const char *text, struct cli_devices *out_devices);

// Opens them in this order, and stores them and how many there are. What is open after an error is
// stored too.
//
// Errors: those of weir_device_open(); nothing is printed.
weir_status cli_devices_open(weir_runtime *runtime, const struct cli_devices *devices,
                             weir_device *out_list[CLI_DEVICES_MAX], uint32_t *out_count);

// This process's number among those of its machine, as launchers tell it. False: none does, and 0 is
// stored.
bool cli_local_rank(uint32_t *out_rank);

// The device of a rank that a launcher has started: where there are several, that of its number on the
// machine. None is named without a launcher, so that the configuration chooses.
void cli_devices_of_rank(weir_runtime *runtime, struct cli_devices *out_devices);

#endif
