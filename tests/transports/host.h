// The services of the front end, for tests that call a transport: counted memory, and the last error of each thread.
#ifndef WEIR_TESTS_TRANSPORTS_HOST_H
#define WEIR_TESTS_TRANSPORTS_HOST_H

#include <weir/module/transport.h>

extern const struct weir_host ranks_host;
// Blocks that are allocated now.
long ranks_blocks(void);
// From now on the calling thread's allocations fail after `count` more; -1: none does.
void ranks_fail_after(long count);
// How many descriptors this process has open.
int ranks_descriptors(void);
// The calling thread's last one.
const struct weir_error *ranks_error(void);

#endif
