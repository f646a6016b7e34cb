// Another clock for the host's part of a program than the system's: that of a plugin in virtual time. A
// plugin offers it to the links before it as the extension WEIR_HOST_CLOCK
// (weir_module_ops.extension), and they use it for what they note of the host.
#ifndef WEIR_BASE_HOST_CLOCK_H
#define WEIR_BASE_HOST_CLOCK_H

#include <stdint.h>

#define WEIR_HOST_CLOCK "weir.host_clock"

// Lives as long as the link that offers it. Threads: safe.
struct weir_host_clock {
    // Nanoseconds on the timeline of `device_clock`; never goes back.
    uint64_t (*now_ns)(void *user);
    void *user;
};

#endif
