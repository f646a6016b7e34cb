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
    bool peers;       // memory of other devices may be used, which graphs do not allow
    bool cooperative; // its launch is
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

static inline struct weir_volume weir__slice_of(const struct weir_plane *plane)
{
    return (struct weir_volume){plane->buffer, plane->offset, plane->pitch, 0};
}

// Each checks its operands and describes the operation in `*out_operation`.

weir_status weir__operation_copy(const struct weir__caller *caller, weir_buffer *dst,
                                 size_t dst_offset, weir_buffer *src, size_t src_offset,
                                 size_t size, struct weir_operation *out_operation);

// Rows and slices. `call` is the name of the user's call.
weir_status weir__operation_box(const struct weir__caller *caller, const char *call,
                                const struct weir_volume *dst, const struct weir_volume *src,
                                size_t width, size_t height, size_t depth,
                                struct weir_operation *out_operation);

// `height` rows. `pattern` is not NULL.
weir_status weir__operation_fill(const struct weir__caller *caller, const char *call,
                                 const struct weir_volume *dst, size_t width, size_t height,
                                 const void *pattern, size_t pattern_size,
                                 struct weir_operation *out_operation);

// `kernel` is not NULL. `widened` is room for arguments that have to be changed: it lives as long as the operation.
weir_status weir__operation_launch(const struct weir__caller *caller, weir_kernel *kernel,
                                   struct weir_extent grid, struct weir_extent block,
                                   const struct weir_argument *arguments, size_t argument_count,
                                   struct weir_argument widened[WEIR__WIDEN_LIMIT],
                                   struct weir_operation *out_operation);

// `function` is not NULL, nor are `arguments` unless there are none.
weir_status weir__operation_native(const struct weir__caller *caller, weir_native_function function,
                                   void *user, const struct weir_argument *arguments,
                                   size_t argument_count, struct weir_operation *out_operation);

// Whether it is a copy, a fill or a launch.
static inline bool weir__is_device_work(enum weir_operation_kind kind)
{
    return kind <= WEIR_OPERATION_LAUNCH;
}

#endif
