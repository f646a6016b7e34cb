// In debug mode: the addresses at which the host uses a HOST buffer's memory. The backend has the same
// memory at others, so the pages of these are closed while no access is open: a pointer of
// weir_host_begin() that is used after weir_host_end(), or a write during an access that only reads,
// faults at once, and a line on standard error names the buffer and the calls. Accesses are told apart by
// pages.
//
// Threads: safe.
#ifndef WEIR_CORE_BUFFER_VIEW_H
#define WEIR_CORE_BUFFER_VIEW_H

#include <stddef.h>

#include <weir/buffer.h>

#include "base/cold.h"

struct weir__view;

// NULL if the system or the limit of views refuses one. `*out_memory` is for the backend, until
// weir__view_destroy().
WEIR_COLD struct weir__view *weir__view_create(size_t size, void **out_memory);

// The buffer, for messages.
WEIR_COLD void weir__view_name(struct weir__view *view, const char *label, const char *file,
                               int line);

// Opens the range, and closes what no other access has open. The range is inside the buffer.
WEIR_COLD void *weir__view_begin(struct weir__view *view, size_t offset, size_t size,
                                 weir_access access, const char *file, int line);
WEIR_COLD void weir__view_end(struct weir__view *view, size_t offset, size_t size,
                              weir_access access, const char *file, int line);

// The buffer is destroyed; the log is told of an access that has not ended.
WEIR_COLD void weir__view_close(struct weir__view *view);

// The backend does not use the memory any more. The addresses stay closed until their room is needed.
WEIR_COLD void weir__view_destroy(struct weir__view *view);

#endif
