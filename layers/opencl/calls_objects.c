// OpenCL's functions about objects: contexts, queues, memory, programs, kernels, events; and those that wait.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/opencl/layer.h"

// The parameters of all of them.
struct call {
    void *made;   // by the driver
    void *caller; // the address that the call returns to
    cl_platform_id platform;
    cl_context context;
    cl_command_queue queue;
    cl_mem memory;
    cl_program program;
    cl_kernel kernel;
    cl_event this_event;
    const cl_context_properties *context_properties;
    const cl_mem_properties *memory_properties;
    cl_bitfield flags;
    cl_bitfield *out_flags;
    cl_uint name; // of what is asked for, or given
    cl_uint index;
    size_t size;
    const void *from;
    void *value;
    size_t *out_size;
    cl_uint alignment;
    void *host;
    const cl_image_format *format;
    const cl_image_desc *shape;
    size_t width, height, depth, row, slice;
    cl_uint count;
    const cl_device_id *devices;
    const cl_mem *memories;
    const cl_event *events;
    const char *text, *options;
    const char **texts;
    const size_t *lengths;
    const unsigned char **binaries;
    cl_int *states;
    cl_uint header_count;
    const cl_program *headers;
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
    void(CL_CALLBACK *built)(cl_program, void *);
    void *user;
    cl_int status;
    cl_bool enable;
    cl_uint wait_count;
    const cl_event *waits;
    cl_event *event;
    cl_GLsync gl_sync;
    CLeglSyncKHR egl_sync;
    CLeglDisplayKHR egl_display;
    cl_int *code;
};

// The first context begins the layer's work.
static void start(const struct call *call)
{
    layer_start();
}

// Finds the place of the call, and takes the lock if calls are followed.
static bool enter_at(const struct call *call, struct place *out_place)
{
    if (!layer_is_on())
        return false;
    *out_place = place_find(call->caller);
    return layer_enter();
}

static void retain(enum object_kind kind, const void *handle)
{
    if (!layer_enter())
        return;
    struct object *object = object_find(kind, handle);
    if (object)
        object->references++;
    layer_unlock();
}

static void release(enum object_kind kind, const void *handle)
{
    if (!layer_enter())
        return;
    object_release(kind, handle);
    layer_unlock();
}

// Queues.

// The properties with the driver's times, where they are asked for.
static cl_command_queue_properties with_times(cl_command_queue_properties properties)
{
    return layer.times ? properties | CL_QUEUE_PROFILING_ENABLE : properties;
}

static cl_command_queue add_queue(cl_command_queue handle, bool profiled)
{
    if (!handle || !layer_enter())
        return handle;
    struct queue *queue = queue_find(handle);
    if (queue)
        queue->profiled = profiled;
    layer_unlock();
    return handle;
}

cl_command_queue CL_API_CALL layer_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                        cl_command_queue_properties properties,
                                                        cl_int *code)
{
    return add_queue(layer.driver->clCreateCommandQueue(context, device, with_times(properties),
                                                        code),
                     properties & CL_QUEUE_PROFILING_ENABLE);
}

enum {
    PROPERTIES_MOST = 32
};

// The list with the driver's times; NULL: it is too long. Stores what the program's list asks for.
static const cl_queue_properties *add_times(const cl_queue_properties *from,
                                            cl_queue_properties to[PROPERTIES_MOST],
                                            bool *out_profiled)
{
    size_t used = 0;
    bool found = false;
    *out_profiled = false;
    for (; from && *from; from += 2) {
        if (used + 5 > PROPERTIES_MOST)
            return NULL;
        to[used] = from[0];
        to[used + 1] = from[1];
        if (from[0] == CL_QUEUE_PROPERTIES) {
            found = true;
            *out_profiled = from[1] & CL_QUEUE_PROFILING_ENABLE;
            to[used + 1] = (cl_queue_properties)with_times((cl_command_queue_properties)from[1]);
        }
        used += 2;
    }
    if (!found && layer.times) {
        to[used++] = CL_QUEUE_PROPERTIES;
        to[used++] = (cl_queue_properties)with_times(0);
    }
    to[used] = 0;
    return to;
}

cl_command_queue CL_API_CALL layer_clCreateCommandQueueWithProperties(
    cl_context context, cl_device_id device, const cl_queue_properties *properties, cl_int *code)
{
    cl_queue_properties room[PROPERTIES_MOST];
    bool profiled;
    const cl_queue_properties *more = add_times(properties, room, &profiled);
    cl_command_queue queue = NULL;
    if (more && layer.times)
        queue = layer.driver->clCreateCommandQueueWithProperties(context, device, more, code);
    if (!queue)
        queue = layer.driver->clCreateCommandQueueWithProperties(context, device, properties, code);
    return add_queue(queue, profiled);
}

// The program sees the properties that it asked for.
static void hide_times(const struct call *call)
{
    if (call->name != CL_QUEUE_PROPERTIES || !call->value || !layer.times || !layer_enter())
        return;
    const struct queue *queue = (struct queue *)object_find(OBJECT_QUEUE, call->queue);
    if (queue && !queue->profiled)
        *(cl_command_queue_properties *)call->value &=
            ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
    layer_unlock();
}

static void sync(weir_queue *lane, const struct place *place)
{
    if (lane && weir_queue_sync_at(lane, WEIR_FOREVER, place->file, place->line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
}

// The host knows that all is complete that the queue has. Without the lock.
static void sync_all(cl_command_queue handle, const struct place *place)
{
    if (!layer_enter())
        return;
    struct queue *queue = queue_find(handle);
    for (uint32_t i = 0; queue && i < queue->lane_count; i++)
        sync(queue->lanes[i], place);
    if (queue)
        sync(queue->control, place);
    layer_unlock();
}

static void learn_all(const struct call *call)
{
    if (!layer_is_on())
        return;
    const struct place place = place_find(call->caller);
    sync_all(call->queue, &place);
}

// Memory.

static void add_memory(const struct call *call)
{
    struct place place;
    if (!enter_at(call, &place))
        return;
    (void)memory_add(call->made,
                     call->host && call->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR),
                     &place);
    layer_unlock();
}

static void add_svm(const struct call *call)
{
    struct place place;
    if (!enter_at(call, &place))
        return;
    svm_add(call->made, call->size, &place);
    layer_unlock();
}

void CL_API_CALL layer_clSVMFree(cl_context context, void *address)
{
    if (address && layer_enter()) {
        svm_remove(address);
        layer_unlock();
    }
    layer.driver->clSVMFree(context, address);
}

// Programs.

static char *join(cl_uint count, const char **texts, const size_t *lengths)
{
    size_t size = 1;
    for (cl_uint i = 0; i < count; i++)
        size += lengths && lengths[i] ? lengths[i] : strlen(texts[i]);
    char *all = malloc(size);
    char *at = all;
    for (cl_uint i = 0; i < count && all; i++) {
        const size_t length = lengths && lengths[i] ? lengths[i] : strlen(texts[i]);
        memcpy(at, texts[i], length);
        at += length;
    }
    if (all)
        *at = '\0';
    else
        layer_lose(LAYER_LOSS_MEMORY);
    return all;
}

// Without a source there is what clang said when the program was made of one, else what the driver tells of arguments.
static void add_program(const struct call *call)
{
    if (!layer_is_on())
        return;
    char *source = call->texts ? join(call->count, call->texts, call->lengths) : NULL;
    char *kernels = call->binaries ? access_of_binary(call->binaries[0], call->lengths[0]) : NULL;
    struct program *program = NULL;
    if (layer_enter()) {
        program = object_add(OBJECT_PROGRAM, call->made, sizeof *program);
        if (program) {
            program->source = source;
            program->kernels = kernels;
        }
        layer_unlock();
    }
    if (!program) {
        free(source);
        free(kernels);
    }
}

static struct program *hold_program(cl_program handle)
{
    struct program *program = (struct program *)object_find(OBJECT_PROGRAM, handle);
    if (program)
        object_hold(&program->object);
    return program;
}

static void keep_binaries(const struct call *call)
{
    if (call->name != CL_PROGRAM_BINARIES || !call->value || !layer_enter())
        return;
    struct program *program = hold_program(call->program);
    layer_unlock();
    if (!program)
        return;
    access_keep_binaries(program, call->program, call->value, call->size / sizeof(unsigned char *));
    layer_lock();
    object_drop(&program->object);
    layer_unlock();
}

// Another build may have other kernels. With headers there is no source.
static void keep_options(const struct call *call)
{
    if (!layer_enter())
        return;
    struct program *program = (struct program *)object_find(OBJECT_PROGRAM, call->program);
    if (program) {
        free(program->options);
        program->options = call->options ? strdup(call->options) : NULL;
    }
    if (program && program->source) {
        free(program->kernels);
        program->kernels = NULL;
    }
    if (program && call->header_count > 0) {
        free(program->source);
        program->source = NULL;
    }
    layer_unlock();
}

// Kernels.

static struct kernel *make_kernel(uint32_t count)
{
    struct kernel *kernel = object_make(OBJECT_KERNEL, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->arguments = calloc(count + 1, sizeof *kernel->arguments);
    kernel->parameters = calloc(count + 1, sizeof *kernel->parameters);
    if (kernel->arguments && kernel->parameters) {
        kernel->count = count;
        return kernel;
    }
    layer_lose(LAYER_LOSS_MEMORY);
    object_drop(&kernel->object);
    return NULL;
}

static void add_kernel(const struct call *call)
{
    cl_uint count = 0;
    cl_kernel handle = call->made;
    if (!layer_is_on() ||
        layer.driver->clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) !=
            CL_SUCCESS ||
        !layer_enter())
        return;
    struct kernel *kernel = make_kernel(count);
    struct program *program = hold_program(call->program);
    layer_unlock();
    if (kernel)
        access_of_kernel(kernel, handle, program);
    layer_lock();
    if (program)
        object_drop(&program->object);
    if (kernel) {
        object_name(&kernel->object, handle);
        object_drop(&kernel->object);
    }
    layer_unlock();
}

cl_int CL_API_CALL layer_clCreateKernelsInProgram(cl_program program, cl_uint room,
                                                  cl_kernel *kernels, cl_uint *out_count)
{
    cl_uint count = 0;
    const cl_int code = layer.driver->clCreateKernelsInProgram(program, room, kernels, &count);
    if (out_count)
        *out_count = count;
    for (cl_uint i = 0; code == CL_SUCCESS && kernels && i < count && i < room; i++)
        add_kernel(&(struct call){.made = kernels[i], .program = program});
    return code;
}

static void clone_kernel(const struct call *call)
{
    if (!layer_enter())
        return;
    const struct kernel *from = (struct kernel *)object_find(OBJECT_KERNEL, call->kernel);
    struct kernel *kernel = from ? make_kernel(from->count) : NULL;
    if (kernel) {
        kernel->name = from->name;
        memcpy(kernel->arguments, from->arguments, from->count * sizeof *from->arguments);
        memcpy(kernel->parameters, from->parameters, from->count * sizeof *from->parameters);
        object_name(&kernel->object, call->made);
        object_drop(&kernel->object);
    }
    layer_unlock();
}

// With the lock held; NULL if it is not known.
static struct argument *argument_of(const struct call *call)
{
    struct kernel *kernel = (struct kernel *)object_find(OBJECT_KERNEL, call->kernel);
    return kernel && call->index < kernel->count ? &kernel->arguments[call->index] : NULL;
}

static void set_argument(const struct call *call)
{
    if (!layer_enter())
        return;
    struct argument *argument = argument_of(call);
    if (argument)
        *argument = (struct argument){.size = call->size, .given = call->from != NULL};
    if (argument && call->from && call->size <= sizeof argument->bytes)
        memcpy(argument->bytes, call->from, call->size);
    layer_unlock();
}

static void set_svm(const struct call *call)
{
    if (!layer_enter())
        return;
    struct argument *argument = argument_of(call);
    if (argument)
        *argument = (struct argument){.svm = call->from};
    layer_unlock();
}

static void set_pointers(const struct call *call)
{
    if (call->name != CL_KERNEL_EXEC_INFO_SVM_PTRS || !layer_enter())
        return;
    struct kernel *kernel = (struct kernel *)object_find(OBJECT_KERNEL, call->kernel);
    const void **pointers = kernel ? malloc(call->size) : NULL;
    if (pointers) {
        memcpy(pointers, call->from, call->size);
        free(kernel->pointers);
        kernel->pointers = pointers;
        kernel->pointer_count = call->size / sizeof(void *);
    } else if (kernel) {
        layer_lose(LAYER_LOSS_MEMORY);
    }
    layer_unlock();
}

// Events.

static void add_user_event(const struct call *call)
{
    if (!layer_enter())
        return;
    (void)object_add(OBJECT_EVENT, call->made, sizeof(struct event)); // EVENT_WAITING
    layer_unlock();
}

// Weir has what waits for the event before the driver runs it.
static void set_user_event(const struct call *call)
{
    if (call->status > CL_COMPLETE || !layer_enter())
        return;
    struct event *event = (struct event *)object_find(OBJECT_EVENT, call->this_event);
    if (event)
        mirror_set(event, call->status < 0);
    layer_unlock();
}

static void learn_events(const struct call *call)
{
    if (!layer_is_on())
        return;
    const struct place place = place_find(call->caller);
    for (cl_uint i = 0; i < call->count; i++)
        mirror_learn(call->events[i], &place);
}

static void learn_status(const struct call *call)
{
    if (call->name == CL_EVENT_COMMAND_EXECUTION_STATUS && call->value &&
        *(const cl_int *)call->value == CL_COMPLETE)
        learn_events(
            &(struct call){.caller = call->caller, .count = 1, .events = &call->this_event});
}

// Times that only the layer asked for are none of the program's.
cl_int CL_API_CALL layer_clGetEventProfilingInfo(cl_event handle, cl_profiling_info name,
                                                 size_t size, void *value, size_t *out_size)
{
    bool hidden = false;
    if (layer.times && layer_enter()) {
        const struct event *event = (struct event *)object_find(OBJECT_EVENT, handle);
        hidden = event && !event->profiled;
        layer_unlock();
    }
    if (hidden)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    const cl_int code = layer.driver->clGetEventProfilingInfo(handle, name, size, value, out_size);
    if (code == CL_SUCCESS && name == CL_PROFILING_COMMAND_END)
        learn_events(&(struct call){.caller = CALLER, .count = 1, .events = &handle});
    return code;
}

struct callback {
    void(CL_CALLBACK *function)(cl_event, cl_int, void *);
    void *user;
    struct place place;
};

// The thread that runs it knows that the event is complete, and so does what it tells.
static void CL_CALLBACK call_back(cl_event event, cl_int status, void *user)
{
    struct callback *callback = user;
    if (status == CL_COMPLETE && layer_is_on())
        mirror_learn(event, &callback->place);
    callback->function(event, status, callback->user);
    free(callback);
}

cl_int CL_API_CALL layer_clSetEventCallback(cl_event event, cl_int type,
                                            void(CL_CALLBACK *function)(cl_event, cl_int, void *),
                                            void *user)
{
    struct callback *callback = function && layer_is_on() ? malloc(sizeof *callback) : NULL;
    if (!callback)
        return layer.driver->clSetEventCallback(event, type, function, user);
    *callback = (struct callback){function, user, place_find(CALLER)};
    const cl_int code = layer.driver->clSetEventCallback(event, type, call_back, callback);
    if (code != CL_SUCCESS)
        free(callback);
    return code;
}

// Of extensions, the functions whose names begin so enqueue commands.
static void count_extension(const struct call *call)
{
    static const char *const prefixes[] = {"clEnqueue", "clCommand"};
    for (size_t i = 0; layer_is_on() && i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(call->text, prefixes[i], strlen(prefixes[i])) == 0)
            layer_count_lost(call->text, false);
}

// The functions.

#define MAKE(function, result, act, ...)                   \
    LAYER_FUNCTION(result, function, __VA_ARGS__)          \
    {                                                      \
        LAYER_CALL(__VA_ARGS__);                           \
        result made = LAYER_DRIVER(function, __VA_ARGS__); \
        call.made = made;                                  \
        call.caller = CALLER;                              \
        if (made)                                          \
            act(&call);                                    \
        return made;                                       \
    }

#define BEFORE(function, result, act, ...)          \
    LAYER_FUNCTION(result, function, __VA_ARGS__)   \
    {                                               \
        LAYER_CALL(__VA_ARGS__);                    \
        act(&call);                                 \
        return LAYER_DRIVER(function, __VA_ARGS__); \
    }

#define AFTER(function, act, ...)                                  \
    LAYER_FUNCTION(cl_int, function, __VA_ARGS__)                  \
    {                                                              \
        LAYER_CALL(__VA_ARGS__);                                   \
        const cl_int result = LAYER_DRIVER(function, __VA_ARGS__); \
        call.caller = CALLER;                                      \
        if (result == CL_SUCCESS)                                  \
            act(&call);                                            \
        return result;                                             \
    }

#define RETAIN(function, kind, handle)                        \
    LAYER_FUNCTION(cl_int, function, handle)                  \
    {                                                         \
        const cl_int result = layer.driver->function(handle); \
        if (result == CL_SUCCESS)                             \
            retain(OBJECT_##kind, handle);                    \
        return result;                                        \
    }

#define RELEASE(function, kind, handle)        \
    LAYER_FUNCTION(cl_int, function, handle)   \
    {                                          \
        release(OBJECT_##kind, handle);        \
        return layer.driver->function(handle); \
    }

#define LOST(function, result, ...)                 \
    LAYER_FUNCTION(result, function, __VA_ARGS__)   \
    {                                               \
        LAYER_CALL(__VA_ARGS__);                    \
        layer_count_lost(#function, true);          \
        return LAYER_DRIVER(function, __VA_ARGS__); \
    }

#define OWN(function, result)
#define OBJECT(function, how, ...) how(function, __VA_ARGS__)

LAYER_ENTRIES(LAYER_NOTHING, OBJECT, LAYER_NOTHING, LAYER_NOTHING)
