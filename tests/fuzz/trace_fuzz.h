// Properties that hold for any bytes given to the reader of traces.
#ifndef WEIR_TESTS_FUZZ_TRACE_FUZZ_H
#define WEIR_TESTS_FUZZ_TRACE_FUZZ_H

#include <stddef.h>
#include <stdint.h>

// Reads `size` bytes as a trace, and makes a report of it if they are one. Returns NULL,
// or which rule was broken:
//   - a refusal is one sentence that begins with the file's name, and leaves no trace;
//   - queues, operations and waits of a trace point to what is there, and stand in order;
//   - of a report, busy times lie in the span, shares between 0 and 1, and idle, compute and
//     the rest add up to the span, as does the critical path.
const char *trace_fuzz_check(const uint8_t *data, size_t size);

// The number of inputs read so far.
size_t trace_fuzz_accepted(void);

#endif
