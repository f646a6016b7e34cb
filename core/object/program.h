// The front end's programs and kernels.
#ifndef WEIR_CORE_OBJECT_PROGRAM_H
#define WEIR_CORE_OBJECT_PROGRAM_H

#include <stdatomic.h>

#include "base/sized.h"
#include "core/object/object.h"

// A program that was made for several devices is one of these for each: the caller's, of the first
// device, and those that go with it.
struct weir_program {
    struct weir__member member;
    weir_program *next;     // on the next device; NULL: this is the last
    atomic_uint references; // the user's, and one per kernel
    const struct weir_kernel_signature *signatures;
    uint32_t signature_count;
};

struct weir_kernel {
    struct weir__member member;
    weir_program *program;
    weir_kernel *first; // the caller's, on the first device, with which the others go
    weir_kernel *next;  // on the next device; NULL: this is the last
    atomic_uint told;   // what debug mode has told of its launches: core/queue/launch.c
    const struct weir_kernel_signature *signature;
    WEIR_SIZED_CELL(struct weir_kernel_info, info, WEIR_SIZED_ROOM);
};

static inline const struct weir_kernel_signature *weir__signature_at(const weir_program *program,
                                                                     uint32_t index)
{
    const char *first = (const char *)program->signatures;
    return (const void *)(first + index * program->signatures->struct_size);
}

// The kernel as `device` has it, NULL if its program was not made for that.
weir_kernel *weir__kernel_on(weir_kernel *kernel, const weir_device *device);

// Where an array of local memory begins that comes after others of `used` bytes: a device may want
// this alignment.
static inline uint64_t weir__local_start(uint64_t used)
{
    return (used + 15) / 16 * 16;
}

// Arguments of a launch that has bools.
enum {
    WEIR__WIDEN_LIMIT = 64
};

// Checks one launch's arguments against the kernel's signature. `peers`: buffers may belong to other
// devices whose memory the kernel's device reaches. Backends take a bool only as an integer of the parameter's type:
// `*arguments` becomes a copy in `widened` then.
weir_status weir__kernel_check(const weir_kernel *kernel, const struct weir_argument **arguments,
                               size_t argument_count, bool peers,
                               struct weir_argument widened[WEIR__WIDEN_LIMIT], const char *file,
                               int line);

#endif
