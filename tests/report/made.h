// Synthetic traces for tests.
#ifndef WEIR_TESTS_REPORT_MADE_H
#define WEIR_TESTS_REPORT_MADE_H

#include <weir/report.h>

#include "report/trace.h"
#include "tests/support/own.h"

#define own_trace OWN(weir_trace_destroy) struct weir_trace *
#define own_report OWN(weir_report_destroy) weir_report *
#define own_text OWN(weir_report_free_text) char *

enum {
    MADE_DEVICES = 2,
    MADE_QUEUES = 6,
    MADE_OPERATIONS = 48,
    MADE_WAITS = 64,
    MADE_SPANS = 8,
};

struct made {
    struct weir_trace_meta meta;
    struct weir_trace_device devices[MADE_DEVICES];
    size_t device_count;
    struct weir_trace_queue queues[MADE_QUEUES];
    size_t queue_count;
    struct weir_trace_operation operations[MADE_OPERATIONS]; // of a queue, in order
    size_t operation_count;
    struct weir_trace_wait waits[MADE_WAITS];
    size_t wait_count;
    struct weir_trace_span spans[MADE_SPANS];
    size_t span_count;
};

// A device whose limits allow overlap, with so many queues of these labels.
void made_begin(struct made *made, size_t queue_count, ...);

// Adds a queue of device 0; its id is 10 more than its index.
void made_queue(struct made *made, const char *label);

// Adds an operation to queue `queue`, by index, that ran from `start_ns` to `end_ns` and was
// submitted 1 us before, or at 0. Its sequence number is two more than the previous one of
// its queue, so that a record fits in between.
struct weir_trace_operation *made_operation(struct made *made, size_t queue,
                                            enum weir_trace_engine engine, uint64_t start_ns,
                                            uint64_t end_ns);

// The newest operation waits for everything submitted to queue `queue` so far.
void made_wait(struct made *made, size_t queue);

// Random operations on a grid of `cell_ns`: of all engines, on up to six queues and two
// devices, some of them with only a lower bound of the start, some of zero length. The same
// for the same seed.
void made_random(struct made *made, uint32_t seed, uint64_t cell_ns);

// Writes it through the writer. The second one fails the test if that fails.
bool made_try_write(const struct made *made, const char *path, char *message, size_t size);
void made_write(const struct made *made, const char *path);

// A path in a folder of this program. One is kept.
const char *made_path(const char *name);
// The report on it, as it is written and read. On error the test fails and NULL is returned.
weir_report *made_report(const struct made *made, const struct weir_report_params *params);

// xorshift32, from 0 to `limit` - 1.
uint32_t made_below(uint32_t *state, uint32_t limit);

#endif
