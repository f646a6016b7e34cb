// Commands and their wait lists, flushes, and launches that are made to fail.
#include <stdlib.h>
#include <string.h>

#include "tests/support/libopencl/fake.h"

// Gates, in a list that only grows; a slot is reused after its queue was released.
struct gate {
    struct gate *next;
    cl_command_queue queue; // NULL: free
    cl_event event;         // NULL: nothing is held back
};

static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gate *gates;

static struct gate *find_gate(cl_command_queue queue)
{
    struct gate *gate = gates;
    while (gate && gate->queue != queue)
        gate = gate->next;
    return gate;
}

static struct gate *need_gate(cl_command_queue queue)
{
    struct gate *gate = find_gate(queue);
    if (!gate)
        gate = find_gate(NULL);
    if (!gate) {
        gate = calloc(1, sizeof *gate);
        if (!gate)
            abort();
        gate->next = gates;
        gates = gate;
    }
    gate->queue = queue;
    if (!gate->event) {
        cl_context context = NULL;
        fake_real.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
        gate->event = fake_create_user_event(context, NULL);
    }
    return gate;
}

static void open_gate(cl_command_queue queue, bool forget)
{
    cl_event event = NULL;
    pthread_mutex_lock(&gates_lock);
    struct gate *gate = find_gate(queue);
    if (gate) {
        event = gate->event;
        gate->event = NULL;
        if (forget)
            gate->queue = NULL;
    }
    pthread_mutex_unlock(&gates_lock);
    if (event) {
        fake_set_user_event_status(event, CL_COMPLETE);
        fake_real.clReleaseEvent(event);
    }
}

// A wait list with the queue's gate at its end.
struct list {
    cl_event events[64];
    cl_uint count;
};

#define LIST list.count, list.count > 0 ? list.events : NULL

static void list_make(struct list *list, cl_command_queue queue, cl_uint count,
                      const cl_event *events)
{
    if (count >= sizeof list->events / sizeof *list->events)
        abort();
    for (cl_uint i = 0; i < count; i++)
        list->events[i] = events[i];
    list->count = count;
    if (!fake_withholds)
        return;
    pthread_mutex_lock(&gates_lock);
    struct gate *gate = need_gate(queue);
    list->events[list->count++] = gate->event;
    fake_real.clRetainEvent(gate->event); // it may be opened, and dropped, before it is used
    pthread_mutex_unlock(&gates_lock);
}

// A launch that fails as on PoCL 7: the queue goes on, and only the launch's own event tells, and those of
// commands that have it in their wait lists.
#define BROKEN 16
static struct {
    pthread_mutex_t lock;
    const char *name; // of the commands of which one fails
    long left;        // commands until it does; 0: none does
    cl_int status;
    cl_event events
        [BROKEN]; // the launch's first; with references, so that no others have their addresses
    size_t count;
} broken = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fake_fail_command(const char *name, long n, int status)
{
    pthread_mutex_lock(&broken.lock);
    while (broken.count > 0)
        fake_real.clReleaseEvent(broken.events[--broken.count]);
    broken.name = name;
    broken.left = n;
    broken.status = status;
    pthread_mutex_unlock(&broken.lock);
}

void fake_fail_launch(long n, int status)
{
    fake_fail_command("clEnqueueNDRangeKernel", n, status);
}

static bool breaks(const char *name)
{
    pthread_mutex_lock(&broken.lock);
    const bool breaks = broken.left > 0 && strcmp(broken.name, name) == 0 && --broken.left == 0;
    pthread_mutex_unlock(&broken.lock);
    return breaks;
}

// Under the lock. BROKEN: it is none of them.
static size_t find_broken(cl_event event)
{
    size_t i = 0;
    while (i < broken.count && broken.events[i] != event)
        i++;
    return i < broken.count ? i : BROKEN;
}

// Under the lock.
static void note_broken(cl_event event)
{
    if (broken.count == BROKEN)
        abort();
    broken.events[broken.count++] = event;
    fake_real.clRetainEvent(event);
}

static void note_launch(cl_event event)
{
    pthread_mutex_lock(&broken.lock);
    note_broken(event);
    pthread_mutex_unlock(&broken.lock);
}

// The driver ends a command that waits for a failed one.
static void pass_on(const struct list *list, cl_uint count, cl_event event)
{
    bool fails = false;
    pthread_mutex_lock(&broken.lock);
    for (cl_uint i = 0; i < count; i++)
        fails |= find_broken(list->events[i]) < BROKEN;
    if (fails)
        note_broken(event);
    pthread_mutex_unlock(&broken.lock);
}

// `event` is that of the command; NULL: it has none.
static void list_finish(struct list *list, cl_uint count, cl_event event)
{
    if (event && count > 0)
        pass_on(list, count, event);
    if (list->count > count)
        fake_real.clReleaseEvent(list->events[count]);
}

// The event of a command that the driver took.
static cl_event event_of(cl_int code, const cl_event *event)
{
    return code == CL_SUCCESS && event ? *event : NULL;
}

// Whether PoCL 6 crashes at a fill of the memory.
static bool crashes(const void *pointer);

// Commands. The three last parameters of all are `count`, `events` and `event`, and `arguments` ends with LIST
// for the first two. One that is `blocking` flushes its queue.
#define FORWARD(name, parameters, arguments, blocking, refused)                      \
    EXPORT cl_int name parameters                                                    \
    {                                                                                \
        struct list list;                                                            \
        cl_int code = fake_admit(#name);                                             \
        if (code != CL_SUCCESS || (refused))                                         \
            return code != CL_SUCCESS ? code : CL_OUT_OF_RESOURCES;                  \
        list_make(&list, queue, count, events);                                      \
        if (blocking)                                                                \
            open_gate(queue, false);                                                 \
        const bool is_broken = breaks(#name);                                        \
        code = is_broken ? fake_real.clEnqueueMarkerWithWaitList(queue, LIST, event) \
                         : fake_real.name arguments;                                 \
        if (is_broken && event_of(code, event))                                      \
            note_launch(*event);                                                     \
        list_finish(&list, count, event_of(code, event));                            \
        return code;                                                                 \
    }
#define FORWARD_ENQUEUE(name, parameters, arguments) \
    FORWARD(name, parameters, arguments, false, false)
#define FORWARD_TRANSFER(name, parameters, arguments) \
    FORWARD(name, parameters, arguments, blocking, false)

// clang-format off
FORWARD_ENQUEUE(clEnqueueUnmapMemObject, (cl_command_queue queue, cl_mem memory, void *pointer, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, pointer, LIST, event))
FORWARD_ENQUEUE(clEnqueueCopyBuffer, (cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset, size_t size, cl_uint count, const cl_event *events, cl_event *event), (queue, src, dst, src_offset, dst_offset, size, LIST, event))
FORWARD_ENQUEUE(clEnqueueCopyBufferRect, (cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_origin, const size_t *dst_origin, const size_t *region, size_t src_row, size_t src_slice, size_t dst_row, size_t dst_slice, cl_uint count, const cl_event *events, cl_event *event), (queue, src, dst, src_origin, dst_origin, region, src_row, src_slice, dst_row, dst_slice, LIST, event))
FORWARD_ENQUEUE(clEnqueueFillBuffer, (cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_size, size_t offset, size_t size, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, pattern, pattern_size, offset, size, LIST, event))
FORWARD_ENQUEUE(clEnqueueNDRangeKernel, (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *global, const size_t *local, cl_uint count, const cl_event *events, cl_event *event), (queue, kernel, dimensions, offset, global, local, LIST, event))
FORWARD(clEnqueueSVMMemFill, (cl_command_queue queue, void *pointer, const void *pattern, size_t pattern_size, size_t size, cl_uint count, const cl_event *events, cl_event *event), (queue, pointer, pattern, pattern_size, size, LIST, event), false, crashes(pointer))
FORWARD_ENQUEUE(clEnqueueBarrierWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event *events, cl_event *event), (queue, LIST, event))

FORWARD_TRANSFER(clEnqueueReadBuffer, (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size, void *pointer, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, blocking, offset, size, pointer, LIST, event))
FORWARD_TRANSFER(clEnqueueWriteBuffer, (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size, const void *pointer, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, blocking, offset, size, pointer, LIST, event))
FORWARD_TRANSFER(clEnqueueReadBufferRect, (cl_command_queue queue, cl_mem memory, cl_bool blocking, const size_t *origin, const size_t *host_origin, const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice, void *pointer, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, blocking, origin, host_origin, region, row, slice, host_row, host_slice, pointer, LIST, event))
FORWARD_TRANSFER(clEnqueueWriteBufferRect, (cl_command_queue queue, cl_mem memory, cl_bool blocking, const size_t *origin, const size_t *host_origin, const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice, const void *pointer, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, blocking, origin, host_origin, region, row, slice, host_row, host_slice, pointer, LIST, event))
FORWARD_TRANSFER(clEnqueueSVMMemcpy, (cl_command_queue queue, cl_bool blocking, void *dst, const void *src, size_t size, cl_uint count, const cl_event *events, cl_event *event), (queue, blocking, dst, src, size, LIST, event))
// clang-format on

// A map returns a pointer, so it is the one transfer that does not fit the macros
// above.
EXPORT void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                cl_map_flags flags, size_t offset, size_t size, cl_uint count,
                                const cl_event *events, cl_event *event, cl_int *error)
{
    struct list list;
    ADMIT_CREATE();
    list_make(&list, queue, count, events);
    if (blocking)
        open_gate(queue, false);
    void *pointer = fake_real.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, LIST,
                                                 event, error);
    list_finish(&list, count, NULL);
    return pointer;
}

EXPORT cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t size, void *value,
                             size_t *used)
{
    ADMIT();
    cl_int code = fake_real.clGetEventInfo(event, what, size, value, used);
    pthread_mutex_lock(&broken.lock);
    const size_t found = find_broken(event);
    const bool is_early = found > 0 && fake_plays(WEIR_TEST_OPENCL_EARLY_ERRORS);
    if (found < BROKEN && what == CL_EVENT_COMMAND_EXECUTION_STATUS && code == CL_SUCCESS &&
        (*(cl_int *)value == CL_COMPLETE || is_early))
        *(cl_int *)value =
            found == 0 ? broken.status : CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    pthread_mutex_unlock(&broken.lock);
    return code;
}

// Markers without a time; with references, so that no others have their addresses.
#define UNTIMED 16
static struct {
    pthread_mutex_t lock;
    cl_event events[UNTIMED];
    size_t count; // of all that ever were
} untimed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_untimed(cl_event event)
{
    pthread_mutex_lock(&untimed.lock);
    cl_event *place = &untimed.events[untimed.count++ % UNTIMED];
    if (*place)
        fake_real.clReleaseEvent(*place);
    *place = event;
    fake_real.clRetainEvent(event);
    pthread_mutex_unlock(&untimed.lock);
}

static bool is_untimed(cl_event event)
{
    bool found = false;
    pthread_mutex_lock(&untimed.lock);
    for (size_t i = 0; i < UNTIMED; i++)
        found |= untimed.events[i] == event;
    pthread_mutex_unlock(&untimed.lock);
    return found;
}

EXPORT cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count,
                                          const cl_event *events, cl_event *event)
{
    struct list list;
    ADMIT();
    list_make(&list, queue, count, events);
    cl_int code = fake_real.clEnqueueMarkerWithWaitList(queue, LIST, event);
    if (code == CL_SUCCESS && event && count > 0 && fake_plays(WEIR_TEST_OPENCL_UNTIMED_MARKERS))
        note_untimed(*event);
    list_finish(&list, count, event_of(code, event));
    return code;
}

EXPORT cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size,
                                      void *value, size_t *used)
{
    ADMIT();
    cl_int code = fake_real.clGetEventProfilingInfo(event, what, size, value, used);
    if (code == CL_SUCCESS && value && is_untimed(event))
        *(cl_ulong *)value = 0;
    return code;
}

EXPORT cl_int clFlush(cl_command_queue queue)
{
    ADMIT();
    open_gate(queue, false);
    return fake_real.clFlush(queue);
}

// PoCL's own waits for what other threads enqueue meanwhile too, and their gate may stay closed.
EXPORT cl_int clFinish(cl_command_queue queue)
{
    cl_event last = NULL;
    ADMIT();
    if (!fake_withholds)
        return fake_real.clFinish(queue);
    const cl_int code = fake_real.clEnqueueMarkerWithWaitList(queue, 0, NULL, &last);
    open_gate(queue, false);
    if (code != CL_SUCCESS)
        return code;
    fake_real.clWaitForEvents(1, &last); // whether a command failed is not told here
    return fake_real.clReleaseEvent(last);
}

EXPORT cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    const cl_int code = fake_admit("clReleaseCommandQueue");
    open_gate(queue, true);
    const cl_int answer = fake_real.clReleaseCommandQueue(queue);
    return code == CL_SUCCESS ? answer : code;
}

// Memory, and what drivers do with it that others do not.

bool fake_misused;

// Memory of clSVMAlloc(), and buffers of which a sub-buffer was released: tables that a test fills only
// in part.
#define TABLE 256
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *start;
    size_t size;
} shared[TABLE];
static cl_mem worn[TABLE];

static void note_shared(const void *old, const void *start, size_t size)
{
    size_t i = 0;
    pthread_mutex_lock(&tables_lock);
    while (i < TABLE && shared[i].start != old)
        i++;
    if (i < TABLE) {
        shared[i].start = start;
        shared[i].size = size;
    }
    pthread_mutex_unlock(&tables_lock);
}

static bool is_shared(const char *pointer)
{
    bool found = false;
    pthread_mutex_lock(&tables_lock);
    for (size_t i = 0; i < TABLE; i++)
        found |= pointer >= shared[i].start && pointer < shared[i].start + shared[i].size;
    pthread_mutex_unlock(&tables_lock);
    return found;
}

static bool crashes(const void *pointer)
{
    return fake_plays(WEIR_TEST_OPENCL_SYSTEM_SVM) && !is_shared(pointer);
}

// Replaces `old` in the table of worn buffers. Returns whether it was there.
static bool note_worn(cl_mem old, cl_mem memory)
{
    size_t i = 0;
    pthread_mutex_lock(&tables_lock);
    while (i < TABLE && worn[i] != old)
        i++;
    if (i < TABLE)
        worn[i] = memory;
    pthread_mutex_unlock(&tables_lock);
    return i < TABLE;
}

// Memory that commands held when it was released may have been worn, and has its address again.
static cl_mem new_memory(cl_mem memory)
{
    if (memory)
        note_worn(memory, NULL);
    return memory;
}

EXPORT void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    if (fake_admit("clSVMAlloc") != CL_SUCCESS)
        return NULL;
    void *memory = fake_real.clSVMAlloc(context, flags, size, alignment);
    if (memory)
        note_shared(NULL, memory, size);
    return memory;
}

EXPORT void clSVMFree(cl_context context, void *pointer)
{
    fake_admit("clSVMFree"); // which cannot fail
    note_shared(pointer, NULL, 0);
    fake_real.clSVMFree(context, pointer);
}

EXPORT cl_int clReleaseMemObject(cl_mem memory)
{
    cl_mem whole = NULL;
    cl_uint users = 0;
    const cl_int code = fake_admit("clReleaseMemObject");
    fake_real.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof users, &users, NULL);
    fake_real.clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(whole), &whole, NULL);
    if (users == 1)
        note_worn(memory, NULL);
    if (users == 1 && whole && fake_plays(WEIR_TEST_OPENCL_SUB_BUFFERS) && !note_worn(whole, whole))
        note_worn(NULL, whole);
    const cl_int answer = fake_real.clReleaseMemObject(memory);
    return code == CL_SUCCESS ? answer : code;
}

// What INNER_OBJECT associates memory with.
static char inner_object;

static bool is_inner(cl_mem memory)
{
    return (const void *)memory == &inner_object;
}

EXPORT cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t size, void *value,
                                 size_t *used)
{
    ADMIT();
    if (is_inner(memory))
        return CL_INVALID_MEM_OBJECT;
    const cl_int code = fake_real.clGetMemObjectInfo(memory, what, size, value, used);
    if (fake_plays(WEIR_TEST_OPENCL_INNER_OBJECT) && what == CL_MEM_ASSOCIATED_MEMOBJECT && value)
        *(void **)value = &inner_object;
    return code;
}

EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *user,
                             cl_int *error)
{
    ADMIT_CREATE();
    return new_memory(fake_real.clCreateBuffer(context, flags, size, user, error));
}

EXPORT cl_mem clCreateSubBuffer(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type,
                                const void *region, cl_int *error)
{
    ADMIT_CREATE();
    if (!is_inner(memory))
        return new_memory(fake_real.clCreateSubBuffer(memory, flags, type, region, error));
    if (error)
        *error = CL_INVALID_MEM_OBJECT;
    return NULL;
}

// A launch uses what is set before it.
EXPORT cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    cl_int code = fake_admit("clSetKernelArg");
    cl_mem memory = NULL;
    if (value && size == sizeof(memory))
        memcpy(&memory, value, sizeof(memory));
    if (code == CL_SUCCESS && memory && note_worn(memory, memory)) {
        fake_misused = true;
        code = CL_OUT_OF_RESOURCES; // where PoCL 7 ends the process
    }
    return code != CL_SUCCESS ? code : fake_real.clSetKernelArg(kernel, index, size, value);
}
