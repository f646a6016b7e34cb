// What copies and fills share.
#ifndef WEIR_BACKENDS_CUDA_COPY_PARTS_H
#define WEIR_BACKENDS_CUDA_COPY_PARTS_H

#include "backends/cuda/cu.h"

// The most temporary memory of an operation.
#define CU_STAGING_BYTES ((size_t)16 << 20)

struct cu_box {
    const struct cu_buffer *to;
    const struct cu_buffer *from;
    struct weir_volume dst;
    struct weir_volume src;
    struct cu_size size;
};

static inline const struct cu_symbols *cu_symbols_of(const struct cu_queue *queue)
{
    return &queue->device->module->cu;
}

static inline weir_status cu_copy_check(const struct cu_queue *queue, const char *call,
                                        CUresult code, const char *what, size_t size)
{
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, call, code, "%s of %zu bytes", what, size);
}

// A command of the operation.
static inline weir_status cu_copy_command(const struct cu_queue *queue, const char *call,
                                          CUresult code, const char *what, size_t size)
{
    cu_watch_command(queue);
    return cu_copy_check(queue, call, code, what, size);
}

static inline size_t cu_piece_of(size_t size, size_t done)
{
    return size - done < CU_STAGING_BYTES ? size - done : CU_STAGING_BYTES;
}

// The slice pitch of a plane is only used by commands that have one.
static inline struct weir_volume cu_volume_of(const struct weir_plane *plane, size_t height)
{
    return (struct weir_volume){plane->buffer, plane->offset, plane->pitch, plane->pitch * height};
}

static inline weir_status cu_copy_device(const struct cu_target *target, CUdeviceptr dst,
                                         CUdeviceptr src, size_t size)
{
    return target->commands->copy(target, dst, src, size);
}

// fill.c
weir_status cu_split_fill(const struct weir_link *link, const struct cu_target *target,
                          const struct weir_operation *operation);
weir_status cu_split_fill_2d(const struct weir_link *link, const struct cu_target *target,
                             const struct weir_operation *operation);

// copy.c
weir_status cu_copy_box(const struct cu_target *target, const struct cu_box *box);
// Memset commands of a stream.
weir_status cu_set_in_stream(const struct cu_target *target, const CUDA_MEMSET_NODE_PARAMS *set);

#endif
