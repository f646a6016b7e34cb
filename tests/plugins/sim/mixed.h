// A load of all kinds of operations on the null backend, in the order of a pipeline's: uploads, kernels, fills,
// downloads, records, waits for another queue, host calls, and launches of graphs with two branches.
#ifndef WEIR_TESTS_PLUGINS_SIM_MIXED_H
#define WEIR_TESTS_PLUGINS_SIM_MIXED_H

#include <stdbool.h>
#include <stdint.h>

struct mixed;

// `plugins` as in [weir]; a GPU and kernels' costs are there. `calls`: with host calls, each queue of which has
// a thread. Ends the program on errors.
struct mixed *mixed_open(const char *plugins, uint32_t queue_count, bool calls);
// Submits at least that many operations, of which a launch's nodes are some, and waits after each thousand.
// `sample`, which may be NULL, is called before each of these waits.
void mixed_run(struct mixed *mixed, uint64_t operations, void (*sample)(void *user), void *user);
void mixed_close(struct mixed **mixed);

#endif
