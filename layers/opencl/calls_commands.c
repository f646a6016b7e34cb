// OpenCL's functions that enqueue commands, and those that wait for them. Each has the same form: what is known of the
// command before the driver's call, that call, and what the driver said.
#include <stdlib.h>
#include <string.h>

#include "layers/opencl/layer.h"

#define BEGIN(work)                                                                          \
    struct command command;                                                                  \
    command_begin(&command, queue, __func__ + sizeof "layer_" - 1, WEIR_NOTE_##work, CALLER, \
                  wait_count, waits, event)

#define END(...)              \
    command_before(&command); \
    return command_after(&command, layer.driver->__VA_ARGS__)

static void use(struct command *command, cl_mem handle, size_t offset, size_t size,
                weir_access access)
{
    if (command->on)
        command_use(command, memory_find(handle), offset, size, access, false);
}

// All of it, as far as is known.
static void use_whole(struct command *command, cl_mem handle, weir_access access)
{
    struct memory *memory = command->on ? memory_find(handle) : NULL;
    if (memory)
        command_use(command, memory, 0, memory->size, access, true);
}

// Buffers.

cl_int CL_API_CALL layer_clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer,
                                             cl_bool blocking, size_t offset, size_t size,
                                             void *pointer, cl_uint wait_count,
                                             const cl_event *waits, cl_event *event)
{
    BEGIN(TO_HOST);
    use(&command, buffer, offset, size, WEIR_ACCESS_READ);
    command.blocking = blocking;
    END(clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, wait_count, waits,
                            command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer,
                                              cl_bool blocking, size_t offset, size_t size,
                                              const void *pointer, cl_uint wait_count,
                                              const cl_event *waits, cl_event *event)
{
    BEGIN(TO_DEVICE);
    use(&command, buffer, offset, size, WEIR_ACCESS_WRITE);
    command.blocking = blocking;
    END(clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, wait_count, waits,
                             command_event(&command)));
}

// A pitch of 0 is that of adjacent rows or slices.
static void use_box(struct command *command, cl_mem handle, const size_t *origin,
                    const size_t *region, size_t row, size_t slice, weir_access access)
{
    if (!command->on || !origin || !region)
        return;
    const size_t pitch = row ? row : region[0];
    const size_t slice_pitch = slice ? slice : pitch * region[1];
    const struct weir_note_range range = {
        .offset = origin[0] + origin[1] * pitch + origin[2] * slice_pitch,
        .size = region[0],
        .access = access,
        .rows = region[1],
        .pitch = pitch,
        .slices = region[2],
        .slice_pitch = slice_pitch,
    };
    command_use_box(command, memory_find(handle), &range);
}

cl_int CL_API_CALL layer_clEnqueueReadBufferRect(
    cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
    const size_t *host_origin, const size_t *region, size_t row, size_t slice, size_t host_row,
    size_t host_slice, void *pointer, cl_uint wait_count, const cl_event *waits, cl_event *event)
{
    BEGIN(TO_HOST);
    use_box(&command, buffer, origin, region, row, slice, WEIR_ACCESS_READ);
    command.blocking = blocking;
    END(clEnqueueReadBufferRect(queue, buffer, blocking, origin, host_origin, region, row, slice,
                                host_row, host_slice, pointer, wait_count, waits,
                                command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer,
                                                  cl_bool blocking, const size_t *origin,
                                                  const size_t *host_origin, const size_t *region,
                                                  size_t row, size_t slice, size_t host_row,
                                                  size_t host_slice, const void *pointer,
                                                  cl_uint wait_count, const cl_event *waits,
                                                  cl_event *event)
{
    BEGIN(TO_DEVICE);
    use_box(&command, buffer, origin, region, row, slice, WEIR_ACCESS_WRITE);
    command.blocking = blocking;
    END(clEnqueueWriteBufferRect(queue, buffer, blocking, origin, host_origin, region, row, slice,
                                 host_row, host_slice, pointer, wait_count, waits,
                                 command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                             size_t from_offset, size_t to_offset, size_t size,
                                             cl_uint wait_count, const cl_event *waits,
                                             cl_event *event)
{
    BEGIN(ON_DEVICE);
    use(&command, from, from_offset, size, WEIR_ACCESS_READ);
    use(&command, to, to_offset, size, WEIR_ACCESS_WRITE);
    END(clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, size, wait_count, waits,
                            command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem from, cl_mem to,
                                                 const size_t *from_origin, const size_t *to_origin,
                                                 const size_t *region, size_t from_row,
                                                 size_t from_slice, size_t to_row, size_t to_slice,
                                                 cl_uint wait_count, const cl_event *waits,
                                                 cl_event *event)
{
    BEGIN(ON_DEVICE);
    use_box(&command, from, from_origin, region, from_row, from_slice, WEIR_ACCESS_READ);
    use_box(&command, to, to_origin, region, to_row, to_slice, WEIR_ACCESS_WRITE);
    END(clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region, from_row,
                                from_slice, to_row, to_slice, wait_count, waits,
                                command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer,
                                             const void *pattern, size_t pattern_size,
                                             size_t offset, size_t size, cl_uint wait_count,
                                             const cl_event *waits, cl_event *event)
{
    BEGIN(ON_DEVICE);
    use(&command, buffer, offset, size, WEIR_ACCESS_WRITE);
    END(clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset, size, wait_count, waits,
                            command_event(&command)));
}

// Images.

cl_int CL_API_CALL layer_clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                            const size_t *origin, const size_t *region, size_t row,
                                            size_t slice, void *pointer, cl_uint wait_count,
                                            const cl_event *waits, cl_event *event)
{
    BEGIN(TO_HOST);
    command_use_image(&command, image, origin, region, WEIR_ACCESS_READ);
    command.blocking = blocking;
    END(clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, pointer, wait_count,
                           waits, command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                             const size_t *origin, const size_t *region, size_t row,
                                             size_t slice, const void *pointer, cl_uint wait_count,
                                             const cl_event *waits, cl_event *event)
{
    BEGIN(TO_DEVICE);
    command_use_image(&command, image, origin, region, WEIR_ACCESS_WRITE);
    command.blocking = blocking;
    END(clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, pointer, wait_count,
                            waits, command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueCopyImage(cl_command_queue queue, cl_mem from, cl_mem to,
                                            const size_t *from_origin, const size_t *to_origin,
                                            const size_t *region, cl_uint wait_count,
                                            const cl_event *waits, cl_event *event)
{
    BEGIN(ON_DEVICE);
    command_use_image(&command, from, from_origin, region, WEIR_ACCESS_READ);
    command_use_image(&command, to, to_origin, region, WEIR_ACCESS_WRITE);
    END(clEnqueueCopyImage(queue, from, to, from_origin, to_origin, region, wait_count, waits,
                           command_event(&command)));
}

// Of a region of an image, without gaps.
static size_t bytes_of(const struct command *command, cl_mem image, const size_t *region)
{
    const struct memory *memory = command->on && region ? memory_find(image) : NULL;
    return memory ? memory->element * region[0] * region[1] * region[2] : 0;
}

cl_int CL_API_CALL layer_clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image,
                                                    cl_mem buffer, const size_t *origin,
                                                    const size_t *region, size_t offset,
                                                    cl_uint wait_count, const cl_event *waits,
                                                    cl_event *event)
{
    BEGIN(ON_DEVICE);
    command_use_image(&command, image, origin, region, WEIR_ACCESS_READ);
    use(&command, buffer, offset, bytes_of(&command, image, region), WEIR_ACCESS_WRITE);
    END(clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, wait_count, waits,
                                   command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer,
                                                    cl_mem image, size_t offset,
                                                    const size_t *origin, const size_t *region,
                                                    cl_uint wait_count, const cl_event *waits,
                                                    cl_event *event)
{
    BEGIN(ON_DEVICE);
    use(&command, buffer, offset, bytes_of(&command, image, region), WEIR_ACCESS_READ);
    command_use_image(&command, image, origin, region, WEIR_ACCESS_WRITE);
    END(clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, wait_count, waits,
                                   command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *color,
                                            const size_t *origin, const size_t *region,
                                            cl_uint wait_count, const cl_event *waits,
                                            cl_event *event)
{
    BEGIN(ON_DEVICE);
    command_use_image(&command, image, origin, region, WEIR_ACCESS_WRITE);
    END(clEnqueueFillImage(queue, image, color, origin, region, wait_count, waits,
                           command_event(&command)));
}

// Maps. What the host does with a part that it has begins with the map and ends with the unmap: what it reads is read at the
// map, and what it writes is written at both.

static weir_access access_of(cl_map_flags flags)
{
    const weir_access read = flags & CL_MAP_READ ? WEIR_ACCESS_READ : (weir_access)0;
    const weir_access write = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)
                                  ? WEIR_ACCESS_WRITE
                                  : (weir_access)0;
    return (weir_access)(read | write);
}

// With the lock held. `range` is that of the map.
static void keep_mapping(struct memory *memory, const void *pointer,
                         const struct weir_note_range *range)
{
    struct mapping *mapping = malloc(sizeof *mapping);
    if (!mapping) {
        layer_lose(LAYER_LOSS_MEMORY);
        return;
    }
    *mapping = (struct mapping){memory->mappings, pointer, *range};
    memory->mappings = mapping;
}

// Uses what is written, and forgets the part.
static void use_mapping(struct command *command, struct memory *memory, const void *pointer)
{
    if (!command->on || !memory)
        return;
    struct mapping **at = &memory->mappings;
    while (*at && (*at)->pointer != pointer)
        at = &(*at)->next;
    struct mapping *mapping = *at;
    if (!mapping)
        return;
    if (mapping->range.access & WEIR_ACCESS_WRITE) {
        mapping->range.access = WEIR_ACCESS_WRITE;
        command_use_box(command, memory, &mapping->range);
    }
    *at = mapping->next;
    free(mapping);
}

static void *map_buffer(struct command *command, cl_command_queue queue, cl_mem buffer,
                        cl_bool blocking, cl_map_flags flags, size_t offset, size_t size,
                        cl_uint wait_count, const cl_event *waits, cl_int *code)
{
    const struct weir_note_range range = {.offset = offset,
                                          .size = size,
                                          .access = access_of(flags)};
    if (command->on)
        command_use_box(command, memory_find(buffer), &range);
    command->blocking = blocking;
    command_before(command);
    void *pointer =
        layer.driver->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, wait_count,
                                         waits, command_event(command), code);
    if (pointer && command->on) {
        layer_lock();
        struct memory *memory = layer_is_on() ? memory_find(buffer) : NULL;
        if (memory)
            keep_mapping(memory, pointer, &range);
        layer_unlock();
    }
    command_after(command, *code);
    return pointer;
}

void *CL_API_CALL layer_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                           cl_map_flags flags, size_t offset, size_t size,
                                           cl_uint wait_count, const cl_event *waits,
                                           cl_event *event, cl_int *out_code)
{
    cl_int code = CL_SUCCESS;
    BEGIN(TO_HOST);
    void *pointer = map_buffer(&command, queue, buffer, blocking, flags, offset, size, wait_count,
                               waits, &code);
    if (out_code)
        *out_code = code;
    return pointer;
}

void *CL_API_CALL layer_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                          cl_map_flags flags, const size_t *origin,
                                          const size_t *region, size_t *row, size_t *slice,
                                          cl_uint wait_count, const cl_event *waits,
                                          cl_event *event, cl_int *out_code)
{
    cl_int code = CL_SUCCESS;
    BEGIN(TO_HOST);
    command_use_image(&command, image, origin, region, access_of(flags));
    struct weir_note_range range = {.size = 0};
    if (command.on && command.use_count)
        range = command.ranges[0];
    command.blocking = blocking;
    command_before(&command);
    void *pointer =
        layer.driver->clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice,
                                        wait_count, waits, command_event(&command), &code);
    if (pointer && range.size) {
        layer_lock();
        struct memory *memory = layer_is_on() ? memory_find(image) : NULL;
        size_t from_root = 0;
        if (memory) {
            (void)memory_root(memory, &from_root);
            range.offset -= from_root;
            keep_mapping(memory, pointer, &range);
        }
        layer_unlock();
    }
    command_after(&command, code);
    if (out_code)
        *out_code = code;
    return pointer;
}

cl_int CL_API_CALL layer_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory,
                                                 void *pointer, cl_uint wait_count,
                                                 const cl_event *waits, cl_event *event)
{
    BEGIN(TO_DEVICE);
    use_mapping(&command, command.on ? memory_find(memory) : NULL, pointer);
    END(clEnqueueUnmapMemObject(queue, memory, pointer, wait_count, waits,
                                command_event(&command)));
}

// Kernels. Which part of a buffer a kernel uses is not known, unless that is found on copies: all of it may be.

static void use_argument(struct command *command, const struct parameter *parameter,
                         const struct argument *argument)
{
    size_t offset = 0;
    struct memory *memory = NULL;
    if (parameter->known && !parameter->access)
        return;
    if (argument->svm)
        memory = memory_at(argument->svm, &offset);
    else if (argument->size == sizeof(cl_mem) && argument->bits)
        memory =
            (struct memory *)object_find(OBJECT_MEMORY, (const void *)(uintptr_t)argument->bits);
    if (memory)
        command_use(command, memory, offset, memory->size - offset,
                    parameter->known ? (weir_access)parameter->access : WEIR_ACCESS_READ_WRITE,
                    true);
}

static void use_found(struct command *command, const struct kernel *kernel,
                      const struct found *found)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < kernel->count; i++) {
        const uint32_t buffer = found->buffer[i];
        struct memory *memory =
            buffer && !(done >> (buffer - 1) & 1u)
                ? (struct memory *)object_find(OBJECT_MEMORY,
                                               (const void *)(uintptr_t)kernel->arguments[i].bits)
                : NULL;
        for (uint32_t k = 0; memory && k < found->range_count[buffer - 1]; k++)
            command_use_box(command, memory, &found->ranges[buffer - 1][k]);
        if (buffer)
            done |= 1u << (buffer - 1);
    }
}

static void use_kernel(struct command *command, cl_kernel handle, const struct found *found)
{
    const struct kernel *kernel =
        command->on ? (struct kernel *)object_find(OBJECT_KERNEL, handle) : NULL;
    if (!kernel)
        return;
    command->name = kernel->name;
    if (found) {
        use_found(command, kernel, found);
        return;
    }
    for (uint32_t i = 0; i < kernel->count; i++)
        use_argument(command, &kernel->parameters[i], &kernel->arguments[i]);
    for (size_t i = 0; i < kernel->pointer_count; i++) {
        const struct argument argument = {.svm = kernel->pointers[i]};
        use_argument(command, &(struct parameter){0, false}, &argument);
    }
}

cl_int CL_API_CALL layer_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                cl_uint dimensions, const size_t *offset,
                                                const size_t *global, const size_t *local,
                                                cl_uint wait_count, const cl_event *waits,
                                                cl_event *event)
{
    struct found *found = verify_launch(queue, &(struct launch){kernel, dimensions, offset, global,
                                                                local, wait_count, waits});
    BEGIN(KERNEL);
    use_kernel(&command, kernel, found);
    free(found);
    END(clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, wait_count, waits,
                               command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count,
                                       const cl_event *waits, cl_event *event)
{
    static const size_t one = 1;
    struct found *found =
        verify_launch(queue, &(struct launch){kernel, 1, NULL, &one, &one, wait_count, waits});
    BEGIN(KERNEL);
    use_kernel(&command, kernel, found);
    free(found);
    END(clEnqueueTask(queue, kernel, wait_count, waits, command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueNativeKernel(cl_command_queue queue,
                                               void(CL_CALLBACK *function)(void *), void *arguments,
                                               size_t size, cl_uint count, const cl_mem *memory,
                                               const void **places, cl_uint wait_count,
                                               const cl_event *waits, cl_event *event)
{
    BEGIN(ON_HOST);
    for (cl_uint i = 0; memory && i < count; i++)
        use_whole(&command, memory[i], WEIR_ACCESS_READ_WRITE);
    END(clEnqueueNativeKernel(queue, function, arguments, size, count, memory, places, wait_count,
                              waits, command_event(&command)));
}

// Moves bytes, and changes none that are defined.
cl_int CL_API_CALL layer_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count,
                                                    const cl_mem *memory,
                                                    cl_mem_migration_flags flags,
                                                    cl_uint wait_count, const cl_event *waits,
                                                    cl_event *event)
{
    BEGIN(TO_DEVICE);
    END(clEnqueueMigrateMemObjects(queue, count, memory, flags, wait_count, waits,
                                   command_event(&command)));
}

// Shared virtual memory.

cl_int CL_API_CALL layer_clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to,
                                            const void *from, size_t size, cl_uint wait_count,
                                            const cl_event *waits, cl_event *event)
{
    BEGIN(ON_DEVICE);
    command_use_svm(&command, from, size, WEIR_ACCESS_READ);
    command_use_svm(&command, to, size, WEIR_ACCESS_WRITE);
    command.blocking = blocking;
    END(clEnqueueSVMMemcpy(queue, blocking, to, from, size, wait_count, waits,
                           command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueSVMMemFill(cl_command_queue queue, void *address,
                                             const void *pattern, size_t pattern_size, size_t size,
                                             cl_uint wait_count, const cl_event *waits,
                                             cl_event *event)
{
    BEGIN(ON_DEVICE);
    command_use_svm(&command, address, size, WEIR_ACCESS_WRITE);
    END(clEnqueueSVMMemFill(queue, address, pattern, pattern_size, size, wait_count, waits,
                            command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking,
                                         cl_map_flags flags, void *address, size_t size,
                                         cl_uint wait_count, const cl_event *waits, cl_event *event)
{
    struct weir_note_range range = {.size = size, .access = access_of(flags)};
    BEGIN(TO_HOST);
    struct memory *memory = command.on ? memory_at(address, &range.offset) : NULL;
    command_use_box(&command, memory, &range);
    if (memory)
        keep_mapping(memory, address, &range);
    command.blocking = blocking;
    END(clEnqueueSVMMap(queue, blocking, flags, address, size, wait_count, waits,
                        command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueSVMUnmap(cl_command_queue queue, void *address,
                                           cl_uint wait_count, const cl_event *waits,
                                           cl_event *event)
{
    size_t offset = 0;
    BEGIN(TO_DEVICE);
    use_mapping(&command, command.on ? memory_at(address, &offset) : NULL, address);
    END(clEnqueueSVMUnmap(queue, address, wait_count, waits, command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count,
                                                const void **pointers, const size_t *sizes,
                                                cl_mem_migration_flags flags, cl_uint wait_count,
                                                const cl_event *waits, cl_event *event)
{
    BEGIN(TO_DEVICE);
    END(clEnqueueSVMMigrateMem(queue, count, pointers, sizes, flags, wait_count, waits,
                               command_event(&command)));
}

// The memory is the driver's once the command runs, unless the program frees it in its own function.
cl_int CL_API_CALL layer_clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void **pointers,
                                          void(CL_CALLBACK *function)(cl_command_queue, cl_uint,
                                                                      void **, void *),
                                          void *user, cl_uint wait_count, const cl_event *waits,
                                          cl_event *event)
{
    BEGIN(ON_DEVICE);
    for (cl_uint i = 0; command.on && pointers && i < count; i++) {
        size_t offset = 0;
        struct memory *memory = memory_at(pointers[i], &offset);
        if (memory)
            command_use(&command, memory, 0, memory->size, WEIR_ACCESS_WRITE, true);
        if (memory)
            svm_remove(pointers[i]);
    }
    END(clEnqueueSVMFree(queue, count, pointers, function, user, wait_count, waits,
                         command_event(&command)));
}

// Order.

cl_int CL_API_CALL layer_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count,
                                                     const cl_event *waits, cl_event *event)
{
    BEGIN(ON_DEVICE);
    command.order = ORDER_MARKER;
    END(clEnqueueMarkerWithWaitList(queue, wait_count, waits, command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint wait_count,
                                                      const cl_event *waits, cl_event *event)
{
    BEGIN(ON_DEVICE);
    command.order = ORDER_BARRIER;
    END(clEnqueueBarrierWithWaitList(queue, wait_count, waits, command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
    const cl_uint wait_count = 0;
    const cl_event *const waits = NULL;
    BEGIN(ON_DEVICE);
    command.order = ORDER_MARKER;
    END(clEnqueueMarker(queue, command_event(&command)));
}

cl_int CL_API_CALL layer_clEnqueueWaitForEvents(cl_command_queue queue, cl_uint wait_count,
                                                const cl_event *waits)
{
    cl_event *const event = NULL;
    BEGIN(ON_DEVICE);
    command.order = ORDER_BARRIER;
    END(clEnqueueWaitForEvents(queue, wait_count, waits));
}

cl_int CL_API_CALL layer_clEnqueueBarrier(cl_command_queue queue)
{
    const cl_uint wait_count = 0;
    const cl_event *const waits = NULL;
    cl_event *const event = NULL;
    BEGIN(ON_DEVICE);
    command.order = ORDER_BARRIER;
    END(clEnqueueBarrier(queue));
}

cl_int CL_API_CALL layer_clFinish(cl_command_queue queue)
{
    const cl_int code = layer.driver->clFinish(queue);
    if (code == CL_SUCCESS && layer_is_on()) {
        const struct place place = place_find(CALLER);
        mirror_learn_all(queue, &place);
    }
    return code;
}
