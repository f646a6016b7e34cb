// Commands on their way between the program, the driver and Weir, and OpenCL's functions that enqueue them. Each has the
// same form: what is known of the command before the driver's call, that call, and what the driver said.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "layers/opencl/layer.h"

// Times.
//
// When commands ran: the driver's profiling of their events, asked for in the driver's callback. Its clock is not the
// host's. A command is queued after its call began, so the distance between the two clocks is at least the begin of the call
// less the driver's time of queueing, and the largest of these distances is the nearest.

enum {
    CLOCKS = 16 // devices; those after share the last
};

static struct {
    cl_device_id device;
    bool known;
    int64_t distance;
} clocks[CLOCKS];

struct watch {
    struct queue *queue; // held, so that its lanes stay
    struct event *event; // held
    uint64_t called_ns;
};

static int64_t distance(cl_device_id device, int64_t least)
{
    size_t i = 0;
    while (i + 1 < CLOCKS && clocks[i].known && clocks[i].device != device)
        i++;
    if (!clocks[i].known || clocks[i].distance < least)
        clocks[i].distance = least;
    clocks[i].device = device;
    clocks[i].known = true;
    return clocks[i].distance;
}

static bool read_times(cl_event event, cl_ulong times[3])
{
    static const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED,
                                              CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    for (size_t i = 0; i < 3; i++)
        if (layer.driver->clGetEventProfilingInfo(event, names[i], sizeof times[i], &times[i],
                                                  NULL) != CL_SUCCESS)
            return false;
    return times[1] <= times[2];
}

static void tell(const struct watch *watch, const cl_ulong times[3])
{
    const struct event *event = watch->event;
    const int64_t apart =
        distance(watch->queue->device, (int64_t)watch->called_ns - (int64_t)times[0]);
    const int64_t begin = (int64_t)times[1] + apart;
    const int64_t end = (int64_t)times[2] + apart;
    if (event->note && begin > 0)
        WEIR_IGNORE(
            weir_queue_note_times(event->lane, event->note, (uint64_t)begin, (uint64_t)end));
}

static void CL_CALLBACK ended(cl_event event, cl_int status, void *user)
{
    struct watch *watch = user;
    cl_ulong times[3];
    const bool known = status == CL_COMPLETE && read_times(event, times);
    layer_lock();
    if (known && layer_is_on())
        tell(watch, times);
    object_drop(&watch->event->object);
    object_drop(&watch->queue->object);
    layer_unlock();
    layer.driver->clReleaseEvent(event);
    free(watch);
}

// The driver may call back at once, on this thread: without the lock.
// Tells Weir the times of the command once the driver knows them. With the lock held.
static void watch_times(const struct command *command, cl_event event)
{
    struct watch *watch = malloc(sizeof *watch);
    if (!watch) {
        layer_lose(LAYER_LOSS_MEMORY);
        return;
    }
    *watch = (struct watch){command->task.queue, command->task.event, command->called_ns};
    object_hold(&watch->queue->object);
    object_hold(&watch->event->object);
    layer_unlock();
    const bool retained = layer.driver->clRetainEvent(event) == CL_SUCCESS;
    const bool set = retained && layer.driver->clSetEventCallback(event, CL_COMPLETE, ended,
                                                                  watch) == CL_SUCCESS;
    if (retained && !set)
        layer.driver->clReleaseEvent(event);
    layer_lock();
    if (set)
        return;
    object_drop(&watch->event->object);
    object_drop(&watch->queue->object);
    free(watch);
}

// Commands.

// One that an extension has made. It is held for ever.
static struct event unknown_event = {.object = {.kind = OBJECT_EVENT, .holds = 1},
                                     .state = EVENT_SET};

static void find_waits(struct command *command, cl_uint count, const cl_event *waits)
{
    struct task *task = &command->task;
    if (!waits)
        return;
    if (count > sizeof command->few / sizeof *command->few) {
        task->waits = malloc(count * sizeof(struct event *));
        if (!task->waits) {
            layer_lose(LAYER_LOSS_MEMORY);
            return;
        }
    }
    for (cl_uint i = 0; i < count; i++) {
        struct event *event = (struct event *)object_find(OBJECT_EVENT, waits[i]);
        if (!event) // a list of such events must not become one that is empty
            event = &unknown_event;
        object_hold(&event->object);
        task->waits[task->wait_count++] = event;
    }
}

// Begins a command of the queue, and takes the lock, until hand_over(). If it is not followed, the other functions do
// nothing.
static void begin_command(struct command *command, cl_command_queue queue, const char *name,
                          enum weir_note_work work, void *caller, cl_uint wait_count,
                          const cl_event *waits, cl_event *out)
{
    command->on = false;
    command->out = out;
    command->own = NULL;
    if (!layer_is_on())
        return;
    const struct place place = place_find(caller);
    if (!layer_enter())
        return;
    struct queue *known = queue_find(queue);
    if (!known) {
        layer_unlock();
        return;
    }
    command->on = true;
    command->blocking = false;
    command->task = (struct task){
        .name = name,
        .place = place,
        .work = work,
        .order = ORDER_WORK,
        .queue = known,
        .waits = command->few,
        .memories = command->memories,
        .ranges = command->ranges,
    };
    object_hold(&known->object);
    find_waits(command, wait_count, waits);
}

bool command_fits(const struct weir_note_range *range, size_t size)
{
    const size_t rows = range->rows ? range->rows : 1;
    const size_t slices = range->slices ? range->slices : 1;
    size_t last;
    size_t end;
    return !__builtin_mul_overflow(rows - 1, range->pitch, &last) &&
           !__builtin_mul_overflow(slices - 1, range->slice_pitch, &end) &&
           !__builtin_add_overflow(end, last, &end) &&
           !__builtin_add_overflow(end, range->offset, &end) &&
           !__builtin_add_overflow(end, range->size, &end) && end <= size &&
           (rows == 1 || range->pitch >= range->size) &&
           (slices == 1 || range->slice_pitch >= last + range->size);
}

// Rows of `size` bytes and slices of them, as struct weir_note_range has them.
static void use_box(struct command *command, struct memory *memory,
                    const struct weir_note_range *range)
{
    if (!command->on || !memory || range->size == 0)
        return;
    size_t offset = range->offset;
    struct memory *root = memory_root(memory, &offset);
    if (!root->buffer)
        return;
    struct task *task = &command->task;
    if (task->use_count == COMMAND_USES) {
        layer_lose(LAYER_LOSS_ARGUMENTS);
        return;
    }
    struct weir_note_range *it = &task->ranges[task->use_count];
    *it = *range;
    it->buffer = root->buffer;
    it->offset = offset;
    it->assumed = range->assumed || root->assumed;
    if (!command_fits(it, root->size)) // the driver refuses it
        return;
    object_hold(&root->object);
    task->memories[task->use_count++] = root;
}

static void use_bytes(struct command *command, struct memory *memory, size_t offset, size_t size,
                      weir_access access, bool assumed)
{
    const struct weir_note_range range = {.offset = offset,
                                          .size = size,
                                          .access = access,
                                          .assumed = assumed};
    use_box(command, memory, &range);
}

// Before the driver's call. A command that blocks goes to Weir now, others after it.
static void hand_over(struct command *command)
{
    struct task *task = &command->task;
    if (!command->on)
        return;
    if (command->out || command->blocking || layer.times)
        task->event = object_make(OBJECT_EVENT, sizeof *task->event);
    if (task->event)
        task->event->profiled = task->queue->profiled;
    if (command->blocking)
        mirror_submit(task);
    layer_unlock();
    if (layer.times)
        command->called_ns = weir_clock_now_ns();
}

// What the driver's call gets for an event.
static cl_event *event_of(struct command *command)
{
    return command->out || !command->on || !layer.times ? command->out : &command->own;
}

// After it. Returns `code`.
static cl_int command_after(struct command *command, cl_int code)
{
    struct task *task = &command->task;
    if (!command->on)
        return code;
    layer_lock();
    if (code == CL_SUCCESS && layer_is_on()) {
        if (!command->blocking)
            mirror_submit(task);
        if (task->event && command->out)
            object_name(&task->event->object, *command->out);
        if (task->event && command->blocking)
            mirror_learn_event(task->event, &task->place);
        if (task->event && layer.times && task->order == ORDER_WORK)
            watch_times(command, command->out ? *command->out : command->own);
    }
    task_each_object(task, object_drop);
    if (task->waits != command->few)
        free(task->waits);
    layer_unlock();
    if (command->own)
        layer.driver->clReleaseEvent(command->own);
    return code;
}

// The parameters of all of them. What is copied goes from one side to the other; that of the host counts for nothing.
struct call {
    cl_command_queue queue;
    cl_mem from, to, from_image, to_image;
    cl_bool blocking;
    size_t size; // of both sides
    size_t from_offset, to_offset;
    const size_t *region; // of both sides
    const size_t *from_origin, *to_origin, *host_origin;
    size_t from_row, from_slice, to_row, to_slice, host_row, host_slice;
    void *to_host;
    const void *from_host, *pattern;
    size_t pattern_size;
    cl_bitfield flags;
    size_t *out_row, *out_slice;
    void *address; // of a map, or of shared virtual memory
    const void *source;
    cl_kernel kernel;
    cl_uint dimensions;
    const size_t *offsets, *global, *local;
    cl_uint count;
    const cl_mem *memories;
    const void **places;
    const size_t *sizes;
    void **addresses;
    void(CL_CALLBACK *native)(void *);
    void(CL_CALLBACK *freeing)(cl_command_queue, cl_uint, void **, void *);
    void *arguments;
    cl_uint wait_count;
    const cl_event *waits;
    cl_event *event;
    cl_int *code;
};

static void use_nothing(struct command *command, const struct call *call)
{
}

// Copies.

struct side {
    cl_mem buffer, image;
    size_t offset;
    const size_t *origin;
    size_t row, slice; // 0: that of adjacent rows or slices
};

static void use_rows(struct command *command, const struct call *call, const struct side *side,
                     weir_access access)
{
    const size_t *origin = side->origin, *region = call->region;
    const size_t row = side->row ? side->row : region[0];
    const size_t slice = side->slice ? side->slice : row * region[1];
    use_box(command, memory_find(side->buffer),
            &(struct weir_note_range){
                .offset = origin[0] + origin[1] * row + origin[2] * slice,
                .size = region[0],
                .access = access,
                .rows = region[1],
                .pitch = row,
                .slices = region[2],
                .slice_pitch = slice,
            });
}

// All of an image that has no elements which are known.
static void use_image(struct command *command, const struct call *call, const struct side *side,
                      weir_access access)
{
    struct memory *memory = memory_find(side->image);
    const size_t *origin = side->origin, *region = call->region;
    if (!memory || !origin || !region)
        return;
    if (!memory->element) {
        use_bytes(command, memory, 0, memory->size, access, true);
        return;
    }
    use_box(command, memory,
            &(struct weir_note_range){
                .offset = origin[0] * memory->element + origin[1] * memory->row +
                          origin[2] * memory->slice,
                .size = region[0] * memory->element,
                .access = access,
                .rows = region[1],
                .pitch = memory->row,
                .slices = region[2],
                .slice_pitch = memory->slice,
            });
}

// A region of an image has no gaps in a buffer.
static size_t size_of(const struct call *call)
{
    const size_t *region = call->region;
    const struct memory *image = memory_find(call->from_image ? call->from_image : call->to_image);
    return !region ? call->size : image ? image->element * region[0] * region[1] * region[2] : 0;
}

static void use_side(struct command *command, const struct call *call, const struct side *side,
                     weir_access access)
{
    if (side->image)
        use_image(command, call, side, access);
    else if (side->origin && call->region)
        use_rows(command, call, side, access);
    else if (side->buffer)
        use_bytes(command, memory_find(side->buffer), side->offset, size_of(call), access, false);
}

static struct side side_from(const struct call *call)
{
    return (struct side){call->from,        call->from_image, call->from_offset,
                         call->from_origin, call->from_row,   call->from_slice};
}

static void use_sides(struct command *command, const struct call *call)
{
    const struct side read = side_from(call);
    const struct side written = {call->to,        call->to_image, call->to_offset,
                                 call->to_origin, call->to_row,   call->to_slice};
    use_side(command, call, &read, WEIR_ACCESS_READ);
    use_side(command, call, &written, WEIR_ACCESS_WRITE);
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

static void use_map(struct command *command, const struct call *call)
{
    const struct side side = side_from(call);
    use_side(command, call, &side, access_of(call->flags));
}

// With the lock held, after the map: it is all that the command uses.
static void keep_mapping(const struct command *command, struct memory *memory, const void *pointer)
{
    size_t offset = 0;
    if (!memory || command->task.use_count == 0)
        return;
    struct mapping *mapping = malloc(sizeof *mapping);
    if (!mapping) {
        layer_lose(LAYER_LOSS_MEMORY);
        return;
    }
    (void)memory_root(memory, &offset);
    *mapping = (struct mapping){memory->mappings, pointer, command->ranges[0]};
    mapping->range.offset -= offset;
    memory->mappings = mapping;
}

static void end_map(const struct command *command, cl_mem handle, const void *pointer)
{
    if (!pointer || !command->on || !layer_enter())
        return;
    keep_mapping(command, memory_find(handle), pointer);
    layer_unlock();
}

// Uses what is written, and forgets the part.
static void unmap(struct command *command, struct memory *memory, const void *pointer)
{
    struct mapping **at = memory ? &memory->mappings : NULL;
    while (at && *at && (*at)->pointer != pointer)
        at = &(*at)->next;
    struct mapping *mapping = at ? *at : NULL;
    if (!mapping)
        return;
    if (mapping->range.access & WEIR_ACCESS_WRITE) {
        mapping->range.access = WEIR_ACCESS_WRITE;
        use_box(command, memory, &mapping->range);
    }
    *at = mapping->next;
    free(mapping);
}

static void use_unmap(struct command *command, const struct call *call)
{
    unmap(command, memory_find(call->from), call->address);
}

// Shared virtual memory.

static void use_address(struct command *command, const void *address, size_t size,
                        weir_access access)
{
    size_t offset = 0;
    struct memory *memory = memory_at(address, &offset);
    use_bytes(command, memory, offset, size, access, false);
}

static void use_svm(struct command *command, const struct call *call)
{
    use_address(command, call->source, call->size, WEIR_ACCESS_READ);
    use_address(command, call->address, call->size, WEIR_ACCESS_WRITE);
}

static void use_svm_map(struct command *command, const struct call *call)
{
    size_t offset = 0;
    use_address(command, call->address, call->size, access_of(call->flags));
    keep_mapping(command, memory_at(call->address, &offset), call->address);
}

static void use_svm_unmap(struct command *command, const struct call *call)
{
    size_t offset = 0;
    unmap(command, memory_at(call->address, &offset), call->address);
}

// The memory is the driver's once the command runs, unless the program frees it in its own function.
static void use_svm_free(struct command *command, const struct call *call)
{
    for (cl_uint i = 0; call->addresses && i < call->count; i++) {
        size_t offset = 0;
        struct memory *memory = memory_at(call->addresses[i], &offset);
        if (!memory)
            continue;
        use_bytes(command, memory, 0, memory->size, WEIR_ACCESS_WRITE, true);
        svm_remove(call->addresses[i]);
    }
}

// Kernels. Which part of a buffer a kernel uses is not known, unless that is found on copies: all of it may be.

static void use_argument(struct command *command, const struct parameter *parameter,
                         const struct argument *argument)
{
    size_t offset = 0;
    if (parameter->known && !parameter->access)
        return;
    struct memory *memory =
        argument->svm ? memory_at(argument->svm, &offset) : argument_memory(argument);
    if (memory)
        use_bytes(command, memory, offset, memory->size - offset,
                  parameter->known ? (weir_access)parameter->access : WEIR_ACCESS_READ_WRITE, true);
}

// What was found on copies.
static void use_found(struct command *command, const struct kernel *kernel,
                      const struct trial *found)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < kernel->count && i < found->argument_count; i++) {
        const uint32_t number = found->arguments[i].buffer;
        const struct trial_buffer *buffer = &found->buffers[number];
        if (found->arguments[i].kind != TRIAL_BUFFER || done >> number & 1u)
            continue;
        done |= 1u << number;
        for (uint32_t k = 0; k < buffer->range_count; k++) {
            const struct weir_note_range range = verify_range(&buffer->ranges[k]);
            use_box(command, argument_memory(&kernel->arguments[i]), &range);
        }
    }
}

static void use_kernel(struct command *command, const struct call *call)
{
    static const struct parameter any = {0, false};
    const struct kernel *kernel = (struct kernel *)object_find(OBJECT_KERNEL, call->kernel);
    if (!kernel)
        return;
    command->task.name = kernel->name;
    if (command->found) {
        use_found(command, kernel, command->found);
        return;
    }
    for (uint32_t i = 0; i < kernel->count; i++)
        use_argument(command, &kernel->parameters[i], &kernel->arguments[i]);
    for (size_t i = 0; i < kernel->pointer_count; i++)
        use_argument(command, &any, &(struct argument){.svm = kernel->pointers[i]});
}

// On copies, before the command begins. A task is one work-item.
static struct trial *verify(const struct call *call)
{
    static const size_t one = 1;
    const bool task = call->dimensions == 0 && !call->global;
    const struct launch launch = {
        .kernel = call->kernel,
        .dimensions = task ? 1 : call->dimensions,
        .offset = call->offsets,
        .global = task ? &one : call->global,
        .local = task ? &one : call->local,
        .wait_count = call->wait_count,
        .waits = call->waits,
    };
    return verify_launch(call->queue, &launch);
}

static void use_native(struct command *command, const struct call *call)
{
    for (cl_uint i = 0; call->memories && i < call->count; i++) {
        struct memory *memory = memory_find(call->memories[i]);
        if (memory)
            use_bytes(command, memory, 0, memory->size, WEIR_ACCESS_READ_WRITE, true);
    }
}

// Order.

static void use_marker(struct command *command, const struct call *call)
{
    command->task.order = ORDER_MARKER;
}

static void use_barrier(struct command *command, const struct call *call)
{
    command->task.order = ORDER_BARRIER;
}

// The functions.

static void begin(struct command *command, struct call *call, const char *name,
                  enum weir_note_work work, void (*use)(struct command *, const struct call *),
                  void *caller)
{
    command->found = use == use_kernel && layer.verify ? verify(call) : NULL;
    begin_command(command, call->queue, name, work, caller, call->wait_count, call->waits,
                  call->event);
    command->blocking = call->blocking;
    if (command->on)
        use(command, call);
    free(command->found);
    hand_over(command);
    call->event = event_of(command);
}

#define COMMAND(name, work, use, ...)                                       \
    LAYER_FUNCTION(cl_int, name, __VA_ARGS__)                               \
    {                                                                       \
        struct command command;                                             \
        LAYER_CALL(__VA_ARGS__);                                            \
        begin(&command, &call, #name, WEIR_NOTE_##work, use_##use, CALLER); \
        return command_after(&command, LAYER_DRIVER(name, __VA_ARGS__));    \
    }

#define MAP(name, ...)                                                       \
    LAYER_FUNCTION(void *, name, __VA_ARGS__)                                \
    {                                                                        \
        struct command command;                                              \
        cl_int result = CL_SUCCESS;                                          \
        LAYER_CALL(__VA_ARGS__);                                             \
        begin(&command, &call, #name, WEIR_NOTE_TO_HOST, use_map, CALLER);   \
        call.code = &result;                                                 \
        void *pointer = LAYER_DRIVER(name, __VA_ARGS__);                     \
        end_map(&command, call.from ? call.from : call.from_image, pointer); \
        command_after(&command, result);                                     \
        if (code)                                                            \
            *code = result;                                                  \
        return pointer;                                                      \
    }

LAYER_ENTRIES(LAYER_NOTHING, LAYER_NOTHING, COMMAND, MAP)
