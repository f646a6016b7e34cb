// What the front end is to a module, for tests of the kit: it keeps the last error and
// message, counts memory, and has none when told so.
#ifndef WEIR_TESTS_KIT_HOST_H
#define WEIR_TESTS_KIT_HOST_H

#include <weir/module/module.h>

struct kit_host {
    struct weir_error error;
    unsigned error_count;
    weir_log_level level;
    char source[64];
    char message[1024];
    long allocations; // that are not released yet
    long objects;     // of the driver
    long left;        // allocations until there is no memory; -1: there always is
};

// One for each process. The second forgets what was.
struct kit_host *kit_host(void);
struct kit_host *kit_host_reset(void);
extern const struct weir_host kit_test_host;

#endif
