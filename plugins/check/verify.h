// `verify = 1`: what a launch declares, compared with what its kernel does.
//
//   verify.c        what is verified, and what is found
//   verify_graph.c  the nodes of a graph, one by one
//   verify_trial.c  runs of one launch on copies of its buffers
//   verify_memory.c the copies: buffers of the plugin's own
//
// A kernel runs on copies of its buffers, with guards around each, before the launch itself is
// handed on. The program's memory is only read for that, so what other queues and the host do
// meanwhile with bytes that the launch does not declare changes nothing.
#ifndef WEIR_PLUGINS_CHECK_VERIFY_H
#define WEIR_PLUGINS_CHECK_VERIFY_H

#include "plugins/check/parts.h"

enum {
    CHECK_GUARD_BYTES = 65536, // in front of a copy and after it
};

// What a launch declares of a byte.
enum check_declared {
    CHECK_DECLARED_READ = WEIR_ACCESS_READ,
    CHECK_DECLARED_WRITTEN = WEIR_ACCESS_WRITE,
};

// A buffer of the launch, and its copy. The arrays have `total` bytes: a guard, the buffer, a guard.
struct check_twin {
    struct check_twin *next;
    weir_buffer *original;
    size_t size;
    size_t total;
    weir_buffer *device;      // what the kernel gets
    weir_buffer *host;        // between `device` and the plugin
    unsigned char *bytes;     // the host's: after a run, what the kernel left
    unsigned char *truth;     // before the launch
    unsigned char *initial;   // before the last run
    unsigned char *first;     // after the first run
    unsigned char *declared;  // enum check_declared
    struct check_span strays; // from check_twin_find_strays()
};

// A launch that is verified. `arguments` name the copies.
struct check_trial {
    const struct weir_link *link;
    weir_queue *queue;
    const struct weir_operation *operation;
    struct weir_argument *arguments;
    struct check_twin *twins;
    size_t total; // bytes of all copies
};

// verify_memory.c

// A buffer of the links after `link`. `*out_pointer` is its memory if it is a HOST buffer.
//
// Ownership: the caller's, until check_own_destroy(), by when all work that uses it has finished.
// Errors: those of the links; WEIR_ERROR_OUT_OF_MEMORY, reported.
weir_status check_own_create(const struct weir_link *link, weir_device *device, size_t size,
                             weir_placement placement, weir_buffer **out_buffer,
                             void **out_pointer);
void check_own_destroy(const struct weir_link *link, weir_buffer **buffer);

// verify_trial.c

// Copies what the launch names. The queue has finished what was submitted before.
//
// Ownership: the caller's, until check_trial_end(), also after an error.
// Errors: those of the links; WEIR_ERROR_OUT_OF_MEMORY.
weir_status check_trial_begin(struct check_trial *trial, const struct weir_link *link,
                              weir_queue *queue, const struct weir_operation *operation);
void check_trial_end(struct check_trial *trial);

// Runs the launch once and waits for it. Of the bytes that it does not declare to be read, those
// with numbers below `flipped`, counted through all copies, have other contents than in truth.
weir_status check_trial_run(struct check_trial *trial, size_t flipped);
// Keeps the results of the last run, with `flipped` 0, as the ones to compare with.
void check_trial_keep(struct check_trial *trial);
// Whether the last run wrote other results than the one that was kept. A byte that neither of them
// changed has none.
bool check_trial_differs(const struct check_trial *trial);
// Adds the bytes of the copy that the last run changed and the launch does not declare to be
// written, from the first to the last.
void check_twin_find_strays(struct check_twin *twin);

// verify.c

// Verifies the launch, or those of a graph. `*out_done`: nothing is left to hand on. Returns the
// error of a finding with `report = fail`, or one of the device.
weir_status check_verify(const struct weir_link *link, weir_queue *queue,
                         const struct weir_operation *operation, bool *out_done);
// Whether it is a launch with a buffer.
bool check_has_buffers(const struct weir_operation *operation);
// Verifies one launch, after the queue has finished.
weir_status check_verify_launch(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation);

// verify_graph.c

// Verifies the launches of a graph, and runs all its nodes, after the queue has finished.
weir_status check_verify_nodes(const struct weir_link *link, weir_queue *queue,
                               const struct weir_operation *launch);

#endif
