// Makes a queue operation out of a call: all checks of its operands, independent of any
// queue's state. Shared by submits, captures and graph updates.
#ifndef WEIR_CORE_QUEUE_OPERATION_H
#define WEIR_CORE_QUEUE_OPERATION_H

#include <weir/module/module.h>
#include <weir/module/operation.h>

#include "base/cold.h"
#include "base/sized.h"
#include "core/object/program.h"
#include "core/support/memory.h"

// The caller, for messages.
struct weir__caller {
    weir_device *device;
    const char *label; // of the queue, or the graph
    const char *file;
    int line;
    bool peers; // memory of other devices may be used, which graphs do not allow
};

// Begins an operation, whose operands are written next. The rest is not cleared: that
// would take as long as all checks of a copy, and the operands of other kinds are never
// read.
static inline void weir__operation_begin(struct weir_operation *operation,
                                         enum weir_operation_kind kind, uint32_t flags,
                                         const char *file, int line)
{
    operation->struct_size = sizeof *operation;
    operation->kind = kind;
    operation->flags = flags;
    operation->sequence = 0;
    operation->file = weir__file_name(file);
    operation->line = line;
}

// Copies what this library knows of an operation, which a plugin may have made with its own
// headers; what a shorter one lacks is zero.
static inline void weir__operation_take(struct weir_operation *to,
                                        const struct weir_operation *from)
{
    weir_sized_write(to, sizeof *to, from, from->struct_size);
    to->struct_size = sizeof *to;
}

// Describe a copy of rows, and a fill of rows.

static inline void weir__box_copy(struct weir_box *box, struct weir_plane dst,
                                  struct weir_plane src, size_t width, size_t height)
{
    weir_box_row(box, dst.buffer, dst.offset, src.buffer, src.offset, width);
    box->dst.pitch = dst.pitch;
    box->src.pitch = src.pitch;
    box->height = height;
}

static inline void weir__box_fill(struct weir_box *box, struct weir_plane dst, size_t width,
                                  size_t height, const void *pattern, size_t pattern_size)
{
    weir_box_row(box, dst.buffer, dst.offset, NULL, 0, width);
    box->dst.pitch = dst.pitch;
    box->height = height;
    box->pattern = pattern;
    box->pattern_size = pattern_size;
}

// Each checks the operands that the caller has written to an operation which it has begun, and flags one that is EMPTY.

// A copy, or a fill with its pattern. `call` is the name of the user's call.
weir_status weir__operation_box(const struct weir__caller *caller, const char *call,
                                struct weir_operation *operation);

// A launch, whose kernel is not NULL, and which is COOPERATIVE if the call is. It gets the kernel of the caller's device,
// and the sizes without zeros, which are passed since reading them back would stall. `widened` is room for arguments that
// have to be changed: it lives as long as the operation.
weir_status weir__operation_launch(const struct weir__caller *caller,
                                   struct weir_operation *operation, struct weir_extent grid,
                                   struct weir_extent block,
                                   struct weir_argument widened[WEIR__WIDEN_LIMIT]);

// A native call; `arguments` are not NULL unless there are none.
weir_status weir__operation_native(const struct weir__caller *caller,
                                   const struct weir_operation *operation);

// Whether it is a copy, a fill or a launch.
static inline bool weir__is_device_work(enum weir_operation_kind kind)
{
    return kind <= WEIR_OPERATION_LAUNCH;
}

#endif
