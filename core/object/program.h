// The front end's programs and kernels.
#ifndef WEIR_CORE_OBJECT_PROGRAM_H
#define WEIR_CORE_OBJECT_PROGRAM_H

#include <stdatomic.h>

#include "base/sized.h"
#include "core/object/object.h"

struct weir_program {
    struct weir__member member;
    atomic_uint references; // the user's, and one per kernel
    const struct weir_kernel_signature *signatures;
    uint32_t signature_count;
};

struct weir_kernel {
    struct weir__member member;
    weir_program *program;
    const struct weir_kernel_signature *signature;
    WEIR_SIZED_CELL(struct weir_kernel_info, info, WEIR_SIZED_ROOM);
};

// Checks one launch's arguments against the kernel's signature. `peers`: buffers may belong to other
// devices whose memory the kernel's device reaches.
weir_status weir__kernel_check(const weir_kernel *kernel, const struct weir_argument *arguments,
                               size_t argument_count, bool peers, const char *file, int line);

#endif
