// The host services of a module, for tests of the kit: it keeps the last error and
// message, counts memory, and can be set to run out of it.
#ifndef WEIR_TESTS_KIT_HOST_H
#define WEIR_TESTS_KIT_HOST_H

#include <weir/module/module.h>

struct kit_host {
    struct weir_error error;
    unsigned error_count;
    weir_log_level level;
    char source[64];
    char message[1024];
    long allocations; // allocations that are not released yet
    long left;        // allocations until memory runs out; -1: never
};

// There is one per process. The second function resets it.
struct kit_host *kit_host(void);
struct kit_host *kit_host_reset(void);
extern const struct weir_host kit_test_host;

#endif
