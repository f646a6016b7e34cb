// The services of the front end, for tests that call parts of modules without it: memory that is counted and can run
// out, and the last error and message of each thread.
#ifndef WEIR_TESTS_SUPPORT_HOST_H
#define WEIR_TESTS_SUPPORT_HOST_H

#include <weir/module/module.h>

struct test_host_state {
    struct weir_error error; // the last one
    unsigned error_count;
    weir_log_level level; // of the last message
    char source[64];
    char message[1024];
    long left; // allocations until memory runs out; -1: never
};

extern const struct weir_host test_host;

// The calling thread's. The second function resets it.
struct test_host_state *test_host_state(void);
struct test_host_state *test_host_reset(void);
// Blocks that are allocated now, by all threads.
long test_host_blocks(void);
// How many descriptors this process has open.
int test_descriptors(void);

#endif
