// A libOpenCL.so.1 for tests: it forwards every call that the OpenCL backend makes to
// the machine's own libOpenCL, and interferes on request.
//
//   WEIR_TEST_REAL_OPENCL=PATH     the library to forward to; by default the
//                                  libOpenCL.so.1 of the usual system folders. Always
//                                  a path: the bare name would find this file again.
//   WEIR_TEST_OPENCL_WITHHOLD=1    holds back what is enqueued until its queue is
//                                  flushed. Each queue has a gate, which is a user
//                                  event that every command waits for beside its own
//                                  wait list; clFlush and clFinish of the queue,
//                                  blocking commands and its release open the gate,
//                                  and the next command gets a new one. Waiting for an
//                                  event opens nothing. So if the backend misses a
//                                  flush, the waiter hangs, and the test times out.
//                                  For PoCL's threaded device: on its serial one
//                                  commands do not wait for user events.
//   WEIR_TEST_OPENCL_FAIL=NAME:N   makes the N-th call of function NAME, from 1, fail
//                                  with CL_OUT_OF_RESOURCES without being forwarded.
//   WEIR_TEST_OPENCL_NO_SVM=1      every device says that it has no shared virtual
//                                  memory, so that HOST buffers are pinned memory.
//   WEIR_TEST_OPENCL_NO_TIMES=1    every device says that it has no times.
//
// The environment is read once, when the library is loaded. In the process that
// loaded it, a test may look up `weir_test_opencl` in it: control.h.
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/symbols.h"
#include "tests/support/libopencl/control.h"

#define EXPORT __attribute__((visibility("default")))
#define WAIT_LIMIT 64

// What is exported, by its declarations.
#define DECLARE(since, result, name, parameters) EXPORT result name parameters;
OCL_SYMBOLS(DECLARE)
#undef DECLARE

// Not in the backend's list, because it uses no user events and shares none of its own.
#define CL_OUT_OF_RESOURCES (-5)
#define CL_INVALID_MEM_OBJECT (-38)
#define CL_MEM_REFERENCE_COUNT 0x1105
static cl_event (*create_user_event)(cl_context, cl_int *);
static cl_int (*set_user_event_status)(cl_event, cl_int);

static struct ocl_symbols real;
static bool withhold;
static bool no_svm;

// Failing on request.

static const char *const names[] = {
#define NAME(since, result, name, parameters) #name,
    OCL_SYMBOLS(NAME)
#undef NAME
};

#define NAME_COUNT (sizeof names / sizeof *names)

static struct {
    pthread_mutex_t lock;
    size_t index; // of the function that is to fail; NAME_COUNT: none
    long left;    // calls until it fails
    int code;
    long struck;
    long calls[NAME_COUNT];
} failure = {.lock = PTHREAD_MUTEX_INITIALIZER, .index = NAME_COUNT};

static const char *const real_paths[] = {
    "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1",
    "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1",
    "/usr/lib64/libOpenCL.so.1",
    "/usr/lib/libOpenCL.so.1",
};

static void *open_real(void)
{
    const char *path = getenv("WEIR_TEST_REAL_OPENCL");
    if (path)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof real_paths / sizeof *real_paths; i++) {
        void *library = dlopen(real_paths[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

static void find(void *library, const char *name, void *out_function)
{
    void *address = dlsym(library, name);
    memcpy(out_function, &address, sizeof address);
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && strcmp(value, "1") == 0;
}

// NAME_COUNT: no such function.
static size_t index_of(const char *name)
{
    size_t index = 0;
    while (index < NAME_COUNT && strcmp(names[index], name) != 0)
        index++;
    return index;
}

static void set_failure(const char *name, long n, int code)
{
    pthread_mutex_lock(&failure.lock);
    failure.index = name ? index_of(name) : NAME_COUNT;
    failure.left = n;
    failure.code = code ? code : CL_OUT_OF_RESOURCES;
    failure.struck = 0;
    pthread_mutex_unlock(&failure.lock);
}

// Counts a call. CL_SUCCESS: it is to be made.
static cl_int admit(const char *name)
{
    const size_t index = index_of(name);
    pthread_mutex_lock(&failure.lock);
    failure.calls[index]++;
    const bool strikes = index == failure.index && --failure.left == 0;
    failure.struck += strikes;
    const cl_int code = strikes ? failure.code : CL_SUCCESS;
    pthread_mutex_unlock(&failure.lock);
    return code;
}

static long count_struck(void)
{
    pthread_mutex_lock(&failure.lock);
    const long struck = failure.struck;
    pthread_mutex_unlock(&failure.lock);
    return struck;
}

static long count_calls(const char *name)
{
    const size_t index = index_of(name);
    pthread_mutex_lock(&failure.lock);
    const long calls = index < NAME_COUNT ? failure.calls[index] : -1;
    pthread_mutex_unlock(&failure.lock);
    return calls;
}

static const char *name_of(size_t index)
{
    return index < NAME_COUNT ? names[index] : NULL;
}

static void hide_svm(int hidden)
{
    no_svm = hidden;
}

static bool offers_prints;
static struct {
    void (*function)(const char *, size_t, size_t, void *);
    void *user;
} printer;

static void offer_prints(int offered)
{
    offers_prints = offered;
    printer.function = NULL;
}

static int print(const char *text, size_t size, size_t is_last)
{
    if (printer.function)
        printer.function(text, size, is_last, printer.user);
    return printer.function != NULL;
}

// A launch that fails as on PoCL 7: the queue goes on, and only the launch's own event tells.
static struct {
    pthread_mutex_t lock;
    long left; // launches until one fails; 0: none does
    cl_int status;
    cl_event event; // of the launch that failed, with a reference, so that no other has its address
} broken = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fail_launch(long n, int status)
{
    pthread_mutex_lock(&broken.lock);
    if (broken.event)
        real.clReleaseEvent(broken.event);
    broken.event = NULL;
    broken.left = n;
    broken.status = status;
    pthread_mutex_unlock(&broken.lock);
}

// What other drivers do.
static unsigned played;
static void (*hear)(const char *, const void *, size_t, void *);
static bool was_misused;

static bool plays(enum weir_test_opencl_play bit)
{
    return (played & bit) != 0;
}

static void play(unsigned bits)
{
    played = bits;
    was_misused = false;
}

static void notice(const char *text)
{
    hear(text, NULL, 0, NULL);
}

static int misused(void)
{
    return was_misused;
}

EXPORT extern const struct weir_test_opencl weir_test_opencl;
const struct weir_test_opencl weir_test_opencl = {
    .fail = set_failure,
    .struck = count_struck,
    .calls = count_calls,
    .name = name_of,
    .hide_svm = hide_svm,
    .offer_prints = offer_prints,
    .print = print,
    .fail_launch = fail_launch,
    .play = play,
    .notice = notice,
    .misused = misused,
};

__attribute__((constructor)) static void start(void)
{
    void *library = open_real();
    if (!library) {
        fprintf(stderr,
                "tests/support/libopencl: no real libOpenCL.so.1 (%s); set "
                "WEIR_TEST_REAL_OPENCL to its path\n",
                dlerror());
        exit(1);
    }
#define FIND(since, result, name, parameters) find(library, #name, &real.name);
    OCL_SYMBOLS(FIND)
#undef FIND
    find(library, "clCreateUserEvent", &create_user_event);
    find(library, "clSetUserEventStatus", &set_user_event_status);

    withhold = is_set("WEIR_TEST_OPENCL_WITHHOLD");
    no_svm = is_set("WEIR_TEST_OPENCL_NO_SVM");
    if (is_set("WEIR_TEST_OPENCL_NO_TIMES"))
        played = WEIR_TEST_OPENCL_NO_TIMES;
    const char *fail = getenv("WEIR_TEST_OPENCL_FAIL");
    const char *colon = fail ? strchr(fail, ':') : NULL;
    char name[64] = "";
    if (colon && (size_t)(colon - fail) < sizeof name) {
        memcpy(name, fail, (size_t)(colon - fail));
        set_failure(name, strtol(colon + 1, NULL, 10), 0);
    }
}

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
        real.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
        gate->event = create_user_event(context, NULL);
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
        set_user_event_status(event, CL_COMPLETE);
        real.clReleaseEvent(event);
    }
}

// A wait list with the queue's gate at its end.
struct wait_list {
    cl_event events[WAIT_LIMIT];
    cl_uint count;
};

static void make_list(struct wait_list *list, cl_command_queue queue, cl_uint count,
                      const cl_event *events)
{
    if (count >= WAIT_LIMIT)
        abort();
    for (cl_uint i = 0; i < count; i++)
        list->events[i] = events[i];
    list->count = count;
    if (!withhold)
        return;
    pthread_mutex_lock(&gates_lock);
    struct gate *gate = need_gate(queue);
    list->events[list->count++] = gate->event;
    real.clRetainEvent(gate->event); // it may be opened, and dropped, before it is used
    pthread_mutex_unlock(&gates_lock);
}

static void finish_list(struct wait_list *list, cl_uint count)
{
    if (list->count > count)
        real.clReleaseEvent(list->events[count]);
}

// Calls that are forwarded unchanged. `failed` is what they return instead.
#define FORWARD(result, failed, name, parameters, arguments) \
    EXPORT result name parameters                            \
    {                                                        \
        const cl_int code = admit(#name);                    \
        (void)code;                                          \
        if (code != CL_SUCCESS)                              \
            return failed;                                   \
        return real.name arguments;                          \
    }

// A call that releases something does so even when it is made to fail.
#define FORWARD_RELEASE(name, parameters, arguments) \
    EXPORT cl_int name parameters                    \
    {                                                \
        const cl_int code = admit(#name);            \
        const cl_int answer = real.name arguments;   \
        return code == CL_SUCCESS ? answer : code;   \
    }

// Calls that store an error code and return a handle.
#define FORWARD_CREATE(result, name, parameters, arguments) \
    EXPORT result name parameters                           \
    {                                                       \
        const cl_int code = admit(#name);                   \
        if (code != CL_SUCCESS) {                           \
            if (error)                                      \
                *error = code;                              \
            return NULL;                                    \
        }                                                   \
        return real.name arguments;                         \
    }

// Commands. The three last parameters of all are `count`, `events` and `event`,
// and `arguments` ends with LIST for the first two.
#define LIST list.count, list.count > 0 ? list.events : NULL
#define FORWARD_ENQUEUE(name, parameters, arguments) \
    EXPORT cl_int name parameters                    \
    {                                                \
        struct wait_list list;                       \
        cl_int code = admit(#name);                  \
        if (code != CL_SUCCESS)                      \
            return code;                             \
        make_list(&list, queue, count, events);      \
        code = real.name arguments;                  \
        finish_list(&list, count);                   \
        return code;                                 \
    }

// The same for reads and writes, where a blocking one flushes its queue.
#define FORWARD_TRANSFER(name, parameters, arguments) \
    EXPORT cl_int name parameters                     \
    {                                                 \
        struct wait_list list;                        \
        cl_int code = admit(#name);                   \
        if (code != CL_SUCCESS)                       \
            return code;                              \
        make_list(&list, queue, count, events);       \
        if (blocking)                                 \
            open_gate(queue, false);                  \
        code = real.name arguments;                   \
        finish_list(&list, count);                    \
        return code;                                  \
    }

#define ERROR code

// clang-format off
FORWARD(cl_int, ERROR, clGetPlatformIDs, (cl_uint size, cl_platform_id *list, cl_uint *count), (size, list, count))
FORWARD(cl_int, ERROR, clGetDeviceIDs, (cl_platform_id platform, cl_device_type type, cl_uint size, cl_device_id *list, cl_uint *count), (platform, type, size, list, count))
FORWARD_RELEASE(clReleaseContext, (cl_context context), (context))
FORWARD_CREATE(cl_command_queue, clCreateCommandQueue, (cl_context context, cl_device_id device, cl_command_queue_properties flags, cl_int *error), (context, device, flags, error))
FORWARD_CREATE(cl_command_queue, clCreateCommandQueueWithProperties, (cl_context context, cl_device_id device, const cl_queue_properties *properties, cl_int *error), (context, device, properties, error))
FORWARD(cl_int, ERROR, clRetainCommandQueue, (cl_command_queue queue), (queue))
FORWARD(cl_int, ERROR, clGetCommandQueueInfo, (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value, size_t *used), (queue, what, size, value, used))
FORWARD(cl_int, ERROR, clRetainMemObject, (cl_mem memory), (memory))
FORWARD(cl_int, ERROR, clWaitForEvents, (cl_uint count, const cl_event *events), (count, events))
FORWARD(cl_int, ERROR, clGetEventProfilingInfo, (cl_event event, cl_profiling_info what, size_t size, void *value, size_t *used), (event, what, size, value, used))
FORWARD(cl_int, ERROR, clRetainEvent, (cl_event event), (event))
FORWARD_RELEASE(clReleaseEvent, (cl_event event), (event))
FORWARD_CREATE(cl_program, clCreateProgramWithBinary, (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *sizes, const unsigned char **binaries, cl_int *states, cl_int *error), (context, count, devices, sizes, binaries, states, error))
FORWARD(cl_int, ERROR, clBuildProgram, (cl_program program, cl_uint count, const cl_device_id *devices, const char *options, void (*notify)(cl_program, void *), void *user), (program, count, devices, options, notify, user))
FORWARD(cl_int, ERROR, clGetProgramInfo, (cl_program program, cl_program_info what, size_t size, void *value, size_t *used), (program, what, size, value, used))
FORWARD(cl_int, ERROR, clGetProgramBuildInfo, (cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value, size_t *used), (program, device, what, size, value, used))
FORWARD_RELEASE(clReleaseProgram, (cl_program program), (program))
FORWARD_CREATE(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *error), (program, name, error))
FORWARD(cl_int, ERROR, clCreateKernelsInProgram, (cl_program program, cl_uint size, cl_kernel *list, cl_uint *count), (program, size, list, count))
FORWARD_RELEASE(clReleaseKernel, (cl_kernel kernel), (kernel))
FORWARD(cl_int, ERROR, clGetKernelInfo, (cl_kernel kernel, cl_kernel_info what, size_t size, void *value, size_t *used), (kernel, what, size, value, used))
FORWARD(cl_int, ERROR, clGetKernelArgInfo, (cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t size, void *value, size_t *used), (kernel, index, what, size, value, used))
FORWARD(cl_int, ERROR, clSetKernelArgSVMPointer, (cl_kernel kernel, cl_uint index, const void *pointer), (kernel, index, pointer))

FORWARD_ENQUEUE(clEnqueueUnmapMemObject, (cl_command_queue queue, cl_mem memory, void *pointer, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, pointer, LIST, event))
FORWARD_ENQUEUE(clEnqueueCopyBuffer, (cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset, size_t size, cl_uint count, const cl_event *events, cl_event *event), (queue, src, dst, src_offset, dst_offset, size, LIST, event))
FORWARD_ENQUEUE(clEnqueueCopyBufferRect, (cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_origin, const size_t *dst_origin, const size_t *region, size_t src_row, size_t src_slice, size_t dst_row, size_t dst_slice, cl_uint count, const cl_event *events, cl_event *event), (queue, src, dst, src_origin, dst_origin, region, src_row, src_slice, dst_row, dst_slice, LIST, event))
FORWARD_ENQUEUE(clEnqueueFillBuffer, (cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_size, size_t offset, size_t size, cl_uint count, const cl_event *events, cl_event *event), (queue, memory, pattern, pattern_size, offset, size, LIST, event))
FORWARD_ENQUEUE(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event *events, cl_event *event), (queue, LIST, event))
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
    struct wait_list list;
    const cl_int code = admit("clEnqueueMapBuffer");
    if (code != CL_SUCCESS) {
        if (error)
            *error = code;
        return NULL;
    }
    make_list(&list, queue, count, events);
    if (blocking)
        open_gate(queue, false);
    void *pointer =
        real.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, LIST, event, error);
    finish_list(&list, count);
    return pointer;
}

static bool breaks(void)
{
    pthread_mutex_lock(&broken.lock);
    const bool breaks = broken.left > 0 && --broken.left == 0;
    pthread_mutex_unlock(&broken.lock);
    return breaks;
}

static void note_broken(cl_event event)
{
    pthread_mutex_lock(&broken.lock);
    broken.event = event;
    real.clRetainEvent(event);
    pthread_mutex_unlock(&broken.lock);
}

EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                     const size_t *offset, const size_t *global,
                                     const size_t *local, cl_uint count, const cl_event *events,
                                     cl_event *event)
{
    struct wait_list list;
    cl_int code = admit("clEnqueueNDRangeKernel");
    if (code != CL_SUCCESS)
        return code;
    make_list(&list, queue, count, events);
    if (!breaks())
        code = real.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, LIST,
                                           event);
    else if ((code = real.clEnqueueMarkerWithWaitList(queue, LIST, event)) == CL_SUCCESS && event)
        note_broken(*event);
    finish_list(&list, count);
    return code;
}

EXPORT cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t size, void *value,
                             size_t *used)
{
    cl_int code = admit("clGetEventInfo");
    if (code != CL_SUCCESS)
        return code;
    code = real.clGetEventInfo(event, what, size, value, used);
    pthread_mutex_lock(&broken.lock);
    if (event == broken.event && what == CL_EVENT_COMMAND_EXECUTION_STATUS && code == CL_SUCCESS &&
        *(cl_int *)value == CL_COMPLETE)
        *(cl_int *)value = broken.status;
    pthread_mutex_unlock(&broken.lock);
    return code;
}

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
    if (admit("clSVMAlloc") != CL_SUCCESS)
        return NULL;
    void *memory = real.clSVMAlloc(context, flags, size, alignment);
    if (memory)
        note_shared(NULL, memory, size);
    return memory;
}

EXPORT void clSVMFree(cl_context context, void *pointer)
{
    admit("clSVMFree"); // which cannot fail
    note_shared(pointer, NULL, 0);
    real.clSVMFree(context, pointer);
}

EXPORT cl_int clEnqueueSVMMemFill(cl_command_queue queue, void *pointer, const void *pattern,
                                  size_t pattern_size, size_t size, cl_uint count,
                                  const cl_event *events, cl_event *event)
{
    struct wait_list list;
    cl_int code = admit("clEnqueueSVMMemFill");
    if (code == CL_SUCCESS && plays(WEIR_TEST_OPENCL_SYSTEM_SVM) && !is_shared(pointer))
        code = CL_OUT_OF_RESOURCES; // where PoCL 6 crashes
    if (code != CL_SUCCESS)
        return code;
    make_list(&list, queue, count, events);
    code = real.clEnqueueSVMMemFill(queue, pointer, pattern, pattern_size, size, LIST, event);
    finish_list(&list, count);
    return code;
}

EXPORT cl_int clReleaseMemObject(cl_mem memory)
{
    cl_mem whole = NULL;
    cl_uint users = 0;
    const cl_int code = admit("clReleaseMemObject");
    real.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof users, &users, NULL);
    real.clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(whole), &whole, NULL);
    if (users == 1)
        note_worn(memory, NULL);
    if (users == 1 && whole && plays(WEIR_TEST_OPENCL_SUB_BUFFERS) && !note_worn(whole, whole))
        note_worn(NULL, whole);
    const cl_int answer = real.clReleaseMemObject(memory);
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
    cl_int code = admit("clGetMemObjectInfo");
    if (code == CL_SUCCESS && is_inner(memory))
        code = CL_INVALID_MEM_OBJECT;
    if (code != CL_SUCCESS)
        return code;
    code = real.clGetMemObjectInfo(memory, what, size, value, used);
    if (plays(WEIR_TEST_OPENCL_INNER_OBJECT) && what == CL_MEM_ASSOCIATED_MEMOBJECT && value)
        *(void **)value = &inner_object;
    return code;
}

EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *user,
                             cl_int *error)
{
    const cl_int code = admit("clCreateBuffer");
    if (code == CL_SUCCESS)
        return new_memory(real.clCreateBuffer(context, flags, size, user, error));
    if (error)
        *error = code;
    return NULL;
}

EXPORT cl_mem clCreateSubBuffer(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type,
                                const void *region, cl_int *error)
{
    cl_int code = admit("clCreateSubBuffer");
    if (code == CL_SUCCESS && is_inner(memory))
        code = CL_INVALID_MEM_OBJECT;
    if (code == CL_SUCCESS)
        return new_memory(real.clCreateSubBuffer(memory, flags, type, region, error));
    if (error)
        *error = code;
    return NULL;
}

// A launch uses what is set before it.
EXPORT cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    cl_int code = admit("clSetKernelArg");
    cl_mem memory = NULL;
    if (value && size == sizeof(memory))
        memcpy(&memory, value, sizeof(memory));
    if (code == CL_SUCCESS && memory && note_worn(memory, memory)) {
        was_misused = true;
        code = CL_OUT_OF_RESOURCES; // where PoCL 7 ends the process
    }
    return code != CL_SUCCESS ? code : real.clSetKernelArg(kernel, index, size, value);
}

EXPORT cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                       cl_kernel_work_group_info what, size_t size, void *value,
                                       size_t *used)
{
    cl_int code = admit("clGetKernelWorkGroupInfo");
    if (code != CL_SUCCESS)
        return code;
    code = real.clGetKernelWorkGroupInfo(kernel, device, what, size, value, used);
    if (plays(WEIR_TEST_OPENCL_SMALL_TOLD) && what == CL_KERNEL_WORK_GROUP_SIZE && value)
        *(size_t *)value = 32;
    return code;
}

EXPORT cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **parts,
                                            const size_t *sizes, cl_int *error)
{
    static const char without[] = "#define wait_group_events(count, events) not_in_the_library\n";
    const char *longer[5] = {without};
    cl_int code = admit("clCreateProgramWithSource");
    if (code != CL_SUCCESS) {
        if (error)
            *error = code;
        return NULL;
    }
    if (!plays(WEIR_TEST_OPENCL_NO_GROUP_WAITS) || sizes || count > 4)
        return real.clCreateProgramWithSource(context, count, parts, sizes, error);
    memcpy(longer + 1, parts, count * sizeof *parts);
    return real.clCreateProgramWithSource(context, count + 1, longer, NULL, error);
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size,
                                void *value, size_t *used)
{
    cl_int code = admit("clGetPlatformInfo");
    if (code != CL_SUCCESS)
        return code;
    code = real.clGetPlatformInfo(platform, what, size, value, used);
    if (what == CL_PLATFORM_NAME && value && plays(WEIR_TEST_OPENCL_ANOTHER_NAME))
        snprintf(value, size, "the platform of the tests");
    if (what != CL_PLATFORM_VERSION || !value)
        return code;
    if (plays(WEIR_TEST_OPENCL_SUB_BUFFERS))
        snprintf(value, size, "OpenCL 3.0 PoCL 7.1 of the tests");
    if (plays(WEIR_TEST_OPENCL_NO_GROUP_WAITS))
        snprintf(value, size, "OpenCL 3.0 PoCL 5.0 of the tests");
    return code;
}

// The driver's list and one name more.
static cl_int list_extensions(cl_device_id device, size_t size, void *value, size_t *used)
{
    static const char more[] = " cl_arm_printf";
    size_t length = 0;
    cl_int code = real.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &length);
    if (code == CL_SUCCESS && value && size < length + sizeof more - 1)
        code = CL_OUT_OF_RESOURCES;
    if (code == CL_SUCCESS && value)
        code = real.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, length, value, NULL);
    if (code == CL_SUCCESS && value)
        memcpy((char *)value + length - 1, more, sizeof more);
    if (code == CL_SUCCESS && used)
        *used = length + sizeof more - 1;
    return code;
}

// The driver is not told of what only this library offers.
EXPORT cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                                  const cl_device_id *devices,
                                  void (*message)(const char *, const void *, size_t, void *),
                                  void *user, cl_int *error)
{
    cl_context_properties kept[16] = {0};
    size_t used = 0;
    const cl_int code = admit("clCreateContext");
    if (error)
        *error = code;
    if (code != CL_SUCCESS)
        return NULL;
    hear = message;
    for (; properties && *properties; properties += 2) {
        if (properties[0] == OCL_PRINTF_CALLBACK_ARM) {
            memcpy(&printer.function, &properties[1], sizeof printer.function);
            printer.user = user;
        } else if (properties[0] != OCL_PRINTF_BUFFERSIZE_ARM && used + 3 < 16) {
            kept[used++] = properties[0];
            kept[used++] = properties[1];
        }
    }
    return real.clCreateContext(kept, count, devices, message, user, error);
}

static void play_limits(cl_device_info what, void *value)
{
    if (plays(WEIR_TEST_OPENCL_SYSTEM_SVM) && what == CL_DEVICE_SVM_CAPABILITIES)
        *(cl_device_svm_capabilities *)value |= CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    if (plays(WEIR_TEST_OPENCL_NO_TIMES) && what == CL_DEVICE_PROFILING_TIMER_RESOLUTION)
        *(size_t *)value = 0;
    if (plays(WEIR_TEST_OPENCL_NO_BLOCKS) && what == CL_DEVICE_MAX_WORK_GROUP_SIZE)
        *(size_t *)value = 0;
    if (plays(WEIR_TEST_OPENCL_NO_BUFFERS) && what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        *(cl_ulong *)value = 0;
}

EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *value,
                              size_t *used)
{
    cl_int code = admit("clGetDeviceInfo");
    if (code != CL_SUCCESS)
        return code;
    if (offers_prints && what == CL_DEVICE_EXTENSIONS)
        return list_extensions(device, size, value, used);
    code = real.clGetDeviceInfo(device, what, size, value, used);
    if (no_svm && what == CL_DEVICE_SVM_CAPABILITIES && value && code == CL_SUCCESS)
        memset(value, 0, sizeof(cl_device_svm_capabilities));
    if (value && code == CL_SUCCESS)
        play_limits(what, value);
    return code;
}

EXPORT cl_int clFlush(cl_command_queue queue)
{
    const cl_int code = admit("clFlush");
    if (code != CL_SUCCESS)
        return code;
    open_gate(queue, false);
    return real.clFlush(queue);
}

EXPORT cl_int clFinish(cl_command_queue queue)
{
    const cl_int code = admit("clFinish");
    if (code != CL_SUCCESS)
        return code;
    open_gate(queue, false);
    return real.clFinish(queue);
}

EXPORT cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    const cl_int code = admit("clReleaseCommandQueue");
    open_gate(queue, true);
    const cl_int answer = real.clReleaseCommandQueue(queue);
    return code == CL_SUCCESS ? answer : code;
}
