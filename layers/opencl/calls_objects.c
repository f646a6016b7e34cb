// OpenCL's functions about objects: contexts, queues, memory, programs, kernels, events.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/opencl/layer.h"

// Contexts. The first one begins the layer's work.

cl_context CL_API_CALL layer_clCreateContext(
    const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code)
{
    layer_start();
    return layer.driver->clCreateContext(properties, count, devices, notify, user, code);
}

cl_context CL_API_CALL layer_clCreateContextFromType(
    const cl_context_properties *properties, cl_device_type type,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code)
{
    layer_start();
    return layer.driver->clCreateContextFromType(properties, type, notify, user, code);
}

// Retains and releases.

static void retain(enum object_kind kind, const void *handle, cl_int code)
{
    if (code != CL_SUCCESS || !layer_is_on())
        return;
    layer_lock();
    object_retain(kind, handle);
    layer_unlock();
}

static void release(enum object_kind kind, const void *handle)
{
    if (!layer_is_on())
        return;
    layer_lock();
    if (layer_is_on())
        object_release(kind, handle);
    layer_unlock();
}

#define RETAIN_AND_RELEASE(type, noun, kind)                      \
    cl_int CL_API_CALL layer_clRetain##noun(type handle)          \
    {                                                             \
        const cl_int code = layer.driver->clRetain##noun(handle); \
        retain(kind, handle, code);                               \
        return code;                                              \
    }                                                             \
    cl_int CL_API_CALL layer_clRelease##noun(type handle)         \
    {                                                             \
        release(kind, handle);                                    \
        return layer.driver->clRelease##noun(handle);             \
    }

RETAIN_AND_RELEASE(cl_command_queue, CommandQueue, OBJECT_QUEUE)
RETAIN_AND_RELEASE(cl_mem, MemObject, OBJECT_MEMORY)
RETAIN_AND_RELEASE(cl_program, Program, OBJECT_PROGRAM)
RETAIN_AND_RELEASE(cl_kernel, Kernel, OBJECT_KERNEL)
RETAIN_AND_RELEASE(cl_event, Event, OBJECT_EVENT)
#undef RETAIN_AND_RELEASE

// Queues.

static cl_command_queue add_queue(cl_command_queue handle, bool profiled)
{
    if (!handle || !layer_is_on())
        return handle;
    layer_lock();
    struct queue *queue = layer_is_on() ? queue_find(handle) : NULL;
    if (queue)
        queue->profiled = profiled;
    layer_unlock();
    return handle;
}

cl_command_queue CL_API_CALL layer_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                        cl_command_queue_properties properties,
                                                        cl_int *code)
{
    return add_queue(layer.driver->clCreateCommandQueue(context, device, times_add(properties),
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
            to[used + 1] = (cl_queue_properties)times_add((cl_command_queue_properties)from[1]);
        }
        used += 2;
    }
    if (!found && layer.times) {
        to[used++] = CL_QUEUE_PROPERTIES;
        to[used++] = (cl_queue_properties)times_add(0);
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
cl_int CL_API_CALL layer_clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info name,
                                               size_t size, void *value, size_t *out_size)
{
    const cl_int code = layer.driver->clGetCommandQueueInfo(handle, name, size, value, out_size);
    if (code != CL_SUCCESS || name != CL_QUEUE_PROPERTIES || !value || !layer.times ||
        !layer_is_on())
        return code;
    layer_lock();
    const struct queue *queue = (struct queue *)object_find(OBJECT_QUEUE, handle);
    if (queue && !queue->profiled)
        *(cl_command_queue_properties *)value &=
            ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
    layer_unlock();
    return code;
}

// Memory.

static void describe(char *label, size_t size, const char *what, const struct place *place)
{
    static unsigned number;
    const char *slash = place->file ? strrchr(place->file, '/') : NULL;
    const char *file = slash ? slash + 1 : place->file;
    if (file && place->line)
        snprintf(label, size, "%s %u, %.60s:%d", what, number++, file, place->line);
    else
        snprintf(label, size, "%s %u", what, number++);
}

static bool has_contents(cl_mem_flags flags, const void *host)
{
    return host && flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
}

static cl_mem add_buffer(cl_mem handle, cl_mem_flags flags, size_t size, const void *host,
                         void *caller)
{
    char label[128];
    if (!handle || !layer_is_on())
        return handle;
    const struct place place = place_find(caller);
    layer_lock();
    struct memory *memory =
        layer_is_on() ? object_add(OBJECT_MEMORY, handle, sizeof *memory) : NULL;
    if (memory) {
        memory->size = size;
        describe(label, sizeof label, "buffer", &place);
        memory_open(memory, label, has_contents(flags, host), &place);
    }
    layer_unlock();
    return handle;
}

cl_mem CL_API_CALL layer_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                        void *host, cl_int *code)
{
    return add_buffer(layer.driver->clCreateBuffer(context, flags, size, host, code), flags, size,
                      host, CALLER);
}

cl_mem CL_API_CALL layer_clCreateBufferWithProperties(cl_context context,
                                                      const cl_mem_properties *properties,
                                                      cl_mem_flags flags, size_t size, void *host,
                                                      cl_int *code)
{
    return add_buffer(layer.driver->clCreateBufferWithProperties(context, properties, flags, size,
                                                                 host, code),
                      flags, size, host, CALLER);
}

cl_mem CL_API_CALL layer_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                           cl_buffer_create_type type, const void *info,
                                           cl_int *code)
{
    const cl_mem handle = layer.driver->clCreateSubBuffer(buffer, flags, type, info, code);
    if (!handle || !layer_is_on())
        return handle;
    layer_lock();
    struct memory *parent = layer_is_on() ? memory_find(buffer) : NULL;
    struct memory *memory = parent ? object_add(OBJECT_MEMORY, handle, sizeof *memory) : NULL;
    if (memory && type == CL_BUFFER_CREATE_TYPE_REGION) {
        const cl_buffer_region *region = info;
        memory->parent = parent;
        memory->offset = region->origin;
        memory->size = region->size;
        object_hold(&parent->object);
    }
    layer_unlock();
    return handle;
}

static size_t image_size(cl_mem image, cl_image_info name)
{
    size_t size = 0;
    layer.driver->clGetImageInfo(image, name, sizeof size, &size, NULL);
    return size;
}

static size_t at_least_one(size_t size)
{
    return size ? size : 1;
}

// Elements as they would lie without gaps, or as they lie in the buffer that has them.
static void measure_image(struct memory *memory, cl_mem handle)
{
    cl_mem_object_type type = 0;
    cl_uint levels = 0;
    const cl_icd_dispatch *cl = layer.driver;
    cl->clGetMemObjectInfo(handle, CL_MEM_TYPE, sizeof type, &type, NULL);
    cl->clGetImageInfo(handle, CL_IMAGE_NUM_MIP_LEVELS, sizeof levels, &levels, NULL);
    const size_t array = at_least_one(image_size(handle, CL_IMAGE_ARRAY_SIZE));
    const size_t element = image_size(handle, CL_IMAGE_ELEMENT_SIZE);
    memory->width = at_least_one(image_size(handle, CL_IMAGE_WIDTH));
    memory->height = type == CL_MEM_OBJECT_IMAGE1D_ARRAY
                         ? array
                         : at_least_one(image_size(handle, CL_IMAGE_HEIGHT));
    memory->depth = type == CL_MEM_OBJECT_IMAGE2D_ARRAY
                        ? array
                        : at_least_one(image_size(handle, CL_IMAGE_DEPTH));
    memory->row = memory->parent && memory->height > 1 ? image_size(handle, CL_IMAGE_ROW_PITCH)
                                                       : element * memory->width;
    memory->slice = memory->row * memory->height;
    memory->size = memory->slice * memory->depth;
    memory->element = levels > 1 ? 0 : element;
}

static cl_mem add_image(cl_mem handle, cl_mem_flags flags, const void *host, void *caller)
{
    char label[128];
    cl_mem parent = NULL;
    if (!handle || !layer_is_on())
        return handle;
    const struct place place = place_find(caller);
    layer_lock();
    struct memory *memory =
        layer_is_on() ? object_add(OBJECT_MEMORY, handle, sizeof *memory) : NULL;
    if (memory) {
        layer.driver->clGetMemObjectInfo(handle, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem),
                                         &parent, NULL);
        memory->parent = parent ? memory_find(parent) : NULL;
        if (memory->parent)
            object_hold(&memory->parent->object);
        measure_image(memory, handle);
        describe(label, sizeof label, "image", &place);
        memory_open(memory, label, has_contents(flags, host), &place);
    }
    layer_unlock();
    return handle;
}

cl_mem CL_API_CALL layer_clCreateImage(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *shape,
                                       void *host, cl_int *code)
{
    return add_image(layer.driver->clCreateImage(context, flags, format, shape, host, code), flags,
                     host, CALLER);
}

cl_mem CL_API_CALL layer_clCreateImageWithProperties(
    cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
    const cl_image_format *format, const cl_image_desc *shape, void *host, cl_int *code)
{
    return add_image(layer.driver->clCreateImageWithProperties(context, properties, flags, format,
                                                               shape, host, code),
                     flags, host, CALLER);
}

cl_mem CL_API_CALL layer_clCreateImage2D(cl_context context, cl_mem_flags flags,
                                         const cl_image_format *format, size_t width, size_t height,
                                         size_t row, void *host, cl_int *code)
{
    return add_image(layer.driver->clCreateImage2D(context, flags, format, width, height, row, host,
                                                   code),
                     flags, host, CALLER);
}

cl_mem CL_API_CALL layer_clCreateImage3D(cl_context context, cl_mem_flags flags,
                                         const cl_image_format *format, size_t width, size_t height,
                                         size_t depth, size_t row, size_t slice, void *host,
                                         cl_int *code)
{
    return add_image(layer.driver->clCreateImage3D(context, flags, format, width, height, depth,
                                                   row, slice, host, code),
                     flags, host, CALLER);
}

void *CL_API_CALL layer_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                   cl_uint alignment)
{
    void *address = layer.driver->clSVMAlloc(context, flags, size, alignment);
    if (!address || !layer_is_on())
        return address;
    const struct place place = place_find(CALLER);
    layer_lock();
    if (layer_is_on())
        svm_add(address, size, &place);
    layer_unlock();
    return address;
}

void CL_API_CALL layer_clSVMFree(cl_context context, void *address)
{
    if (address && layer_is_on()) {
        layer_lock();
        if (layer_is_on())
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

// Takes over both texts.
static cl_program add_program(cl_program handle, char *source, char *kernels)
{
    layer_lock();
    struct program *program =
        handle && layer_is_on() ? object_add(OBJECT_PROGRAM, handle, sizeof *program) : NULL;
    if (program) {
        program->source = source;
        program->kernels = kernels;
    }
    layer_unlock();
    if (!program) {
        free(source);
        free(kernels);
    }
    return handle;
}

cl_program CL_API_CALL layer_clCreateProgramWithSource(cl_context context, cl_uint count,
                                                       const char **texts, const size_t *lengths,
                                                       cl_int *code)
{
    const cl_program handle =
        layer.driver->clCreateProgramWithSource(context, count, texts, lengths, code);
    return handle && layer_is_on() ? add_program(handle, join(count, texts, lengths), NULL)
                                   : handle;
}

// Without a source there is what clang said when the program was made of one, else what the driver tells of arguments.
cl_program CL_API_CALL layer_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                                       const cl_device_id *devices,
                                                       const size_t *lengths,
                                                       const unsigned char **binaries,
                                                       cl_int *states, cl_int *code)
{
    const cl_program handle =
        layer.driver->clCreateProgramWithBinary(context, count, devices, lengths, binaries, states,
                                                code);
    return handle && layer_is_on()
               ? add_program(handle, NULL, access_of_binary(binaries[0], lengths[0]))
               : handle;
}

cl_program CL_API_CALL layer_clCreateProgramWithIL(cl_context context, const void *text,
                                                   size_t length, cl_int *code)
{
    return add_program(layer.driver->clCreateProgramWithIL(context, text, length, code), NULL,
                       NULL);
}

cl_int CL_API_CALL layer_clGetProgramInfo(cl_program handle, cl_program_info name, size_t size,
                                          void *value, size_t *out_size)
{
    const cl_int code = layer.driver->clGetProgramInfo(handle, name, size, value, out_size);
    if (code != CL_SUCCESS || name != CL_PROGRAM_BINARIES || !value || !layer_is_on())
        return code;
    layer_lock();
    struct program *program = (struct program *)object_find(OBJECT_PROGRAM, handle);
    if (program)
        object_hold(&program->object);
    layer_unlock();
    if (!program)
        return code;
    access_keep_binaries(program, handle, value, size / sizeof(unsigned char *));
    layer_lock();
    object_drop(&program->object);
    layer_unlock();
    return code;
}

// Another build may have other kernels.
static void note_options(cl_program handle, const char *options, bool with_headers)
{
    if (!layer_is_on())
        return;
    layer_lock();
    struct program *program = (struct program *)object_find(OBJECT_PROGRAM, handle);
    if (program) {
        free(program->options);
        program->options = options ? strdup(options) : NULL;
        if (program->source) {
            free(program->kernels);
            program->kernels = NULL;
        }
        if (with_headers) {
            free(program->source);
            program->source = NULL;
        }
    }
    layer_unlock();
}

cl_int CL_API_CALL layer_clBuildProgram(cl_program program, cl_uint count,
                                        const cl_device_id *devices, const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    note_options(program, options, false);
    return layer.driver->clBuildProgram(program, count, devices, options, notify, user);
}

cl_int CL_API_CALL layer_clCompileProgram(cl_program program, cl_uint count,
                                          const cl_device_id *devices, const char *options,
                                          cl_uint header_count, const cl_program *headers,
                                          const char **names,
                                          void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    note_options(program, options, header_count > 0);
    return layer.driver->clCompileProgram(program, count, devices, options, header_count, headers,
                                          names, notify, user);
}

// Kernels.

static struct kernel *make_kernel(cl_kernel handle, uint32_t count)
{
    struct kernel *kernel = object_make(OBJECT_KERNEL, sizeof *kernel);
    if (!kernel)
        return NULL;
    (void)handle;
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

static cl_kernel add_kernel(cl_kernel handle, cl_program program_handle)
{
    cl_uint count = 0;
    if (!handle || !layer_is_on() ||
        layer.driver->clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) !=
            CL_SUCCESS)
        return handle;
    layer_lock();
    struct kernel *kernel = layer_is_on() ? make_kernel(handle, count) : NULL;
    struct program *program = (struct program *)object_find(OBJECT_PROGRAM, program_handle);
    if (program)
        object_hold(&program->object);
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
    return handle;
}

cl_kernel CL_API_CALL layer_clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    return add_kernel(layer.driver->clCreateKernel(program, name, code), program);
}

cl_int CL_API_CALL layer_clCreateKernelsInProgram(cl_program program, cl_uint room,
                                                  cl_kernel *kernels, cl_uint *out_count)
{
    cl_uint count = 0;
    const cl_int code = layer.driver->clCreateKernelsInProgram(program, room, kernels, &count);
    if (out_count)
        *out_count = count;
    for (cl_uint i = 0; code == CL_SUCCESS && kernels && i < count && i < room; i++)
        add_kernel(kernels[i], program);
    return code;
}

cl_kernel CL_API_CALL layer_clCloneKernel(cl_kernel source, cl_int *code)
{
    const cl_kernel handle = layer.driver->clCloneKernel(source, code);
    if (!handle || !layer_is_on())
        return handle;
    layer_lock();
    const struct kernel *from =
        layer_is_on() ? (struct kernel *)object_find(OBJECT_KERNEL, source) : NULL;
    struct kernel *kernel = from ? make_kernel(handle, from->count) : NULL;
    if (kernel) {
        kernel->name = from->name;
        memcpy(kernel->arguments, from->arguments, from->count * sizeof *from->arguments);
        memcpy(kernel->parameters, from->parameters, from->count * sizeof *from->parameters);
        object_name(&kernel->object, handle);
        object_drop(&kernel->object);
    }
    layer_unlock();
    return handle;
}

cl_int CL_API_CALL layer_clSetKernelArg(cl_kernel handle, cl_uint index, size_t size,
                                        const void *value)
{
    const cl_int code = layer.driver->clSetKernelArg(handle, index, size, value);
    if (code != CL_SUCCESS || !layer_is_on())
        return code;
    layer_lock();
    struct kernel *kernel = (struct kernel *)object_find(OBJECT_KERNEL, handle);
    if (kernel && index < kernel->count) {
        struct argument *argument = &kernel->arguments[index];
        *argument = (struct argument){.size = size, .given = value != NULL};
        if (value && size <= sizeof argument->bytes)
            memcpy(argument->bytes, value, size);
    }
    layer_unlock();
    return code;
}

cl_int CL_API_CALL layer_clSetKernelArgSVMPointer(cl_kernel handle, cl_uint index,
                                                  const void *address)
{
    const cl_int code = layer.driver->clSetKernelArgSVMPointer(handle, index, address);
    if (code != CL_SUCCESS || !layer_is_on())
        return code;
    layer_lock();
    struct kernel *kernel = (struct kernel *)object_find(OBJECT_KERNEL, handle);
    if (kernel && index < kernel->count)
        kernel->arguments[index] = (struct argument){.svm = address};
    layer_unlock();
    return code;
}

cl_int CL_API_CALL layer_clSetKernelExecInfo(cl_kernel handle, cl_kernel_exec_info name,
                                             size_t size, const void *value)
{
    const cl_int code = layer.driver->clSetKernelExecInfo(handle, name, size, value);
    if (code != CL_SUCCESS || name != CL_KERNEL_EXEC_INFO_SVM_PTRS || !layer_is_on())
        return code;
    layer_lock();
    struct kernel *kernel = (struct kernel *)object_find(OBJECT_KERNEL, handle);
    const void **pointers = kernel ? malloc(size) : NULL;
    if (pointers) {
        memcpy(pointers, value, size);
        free(kernel->pointers);
        kernel->pointers = pointers;
        kernel->pointer_count = size / sizeof(void *);
    } else if (kernel) {
        layer_lose(LAYER_LOSS_MEMORY);
    }
    layer_unlock();
    return code;
}

// Events.

cl_event CL_API_CALL layer_clCreateUserEvent(cl_context context, cl_int *code)
{
    const cl_event handle = layer.driver->clCreateUserEvent(context, code);
    if (!handle || !layer_is_on())
        return handle;
    layer_lock();
    if (layer_is_on())
        (void)object_add(OBJECT_EVENT, handle, sizeof(struct event)); // EVENT_WAITING
    layer_unlock();
    return handle;
}

// Weir has what waits for the event before the driver runs it.
cl_int CL_API_CALL layer_clSetUserEventStatus(cl_event handle, cl_int status)
{
    if (layer_is_on()) {
        layer_lock();
        struct event *event =
            layer_is_on() ? (struct event *)object_find(OBJECT_EVENT, handle) : NULL;
        if (event && status <= CL_COMPLETE)
            mirror_set(event, status < 0);
        layer_unlock();
    }
    return layer.driver->clSetUserEventStatus(handle, status);
}

cl_int CL_API_CALL layer_clWaitForEvents(cl_uint count, const cl_event *events)
{
    const cl_int code = layer.driver->clWaitForEvents(count, events);
    if (code != CL_SUCCESS || !layer_is_on())
        return code;
    const struct place place = place_find(CALLER);
    for (cl_uint i = 0; i < count; i++)
        mirror_learn(events[i], &place);
    return code;
}

cl_int CL_API_CALL layer_clGetEventInfo(cl_event event, cl_event_info name, size_t size,
                                        void *value, size_t *out_size)
{
    const cl_int code = layer.driver->clGetEventInfo(event, name, size, value, out_size);
    if (code == CL_SUCCESS && name == CL_EVENT_COMMAND_EXECUTION_STATUS && value &&
        *(const cl_int *)value == CL_COMPLETE && layer_is_on()) {
        const struct place place = place_find(CALLER);
        mirror_learn(event, &place);
    }
    return code;
}

// Times that only the layer asked for are none of the program's.
cl_int CL_API_CALL layer_clGetEventProfilingInfo(cl_event handle, cl_profiling_info name,
                                                 size_t size, void *value, size_t *out_size)
{
    bool hidden = false;
    if (layer.times && layer_is_on()) {
        layer_lock();
        const struct event *event = (struct event *)object_find(OBJECT_EVENT, handle);
        hidden = event && !event->profiled;
        layer_unlock();
    }
    if (hidden)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    const cl_int code = layer.driver->clGetEventProfilingInfo(handle, name, size, value, out_size);
    if (code == CL_SUCCESS && name == CL_PROFILING_COMMAND_END && layer_is_on()) {
        const struct place place = place_find(CALLER);
        mirror_learn(handle, &place);
    }
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

// Extensions.

// Of those, the functions whose names begin so enqueue commands.
static void *note_extension(void *function, const char *name)
{
    static const char *const prefixes[] = {"clEnqueue", "clCommand"};
    for (size_t i = 0; function && layer_is_on() && i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            layer_count_extension(name);
    return function;
}

void *CL_API_CALL layer_clGetExtensionFunctionAddress(const char *name)
{
    return note_extension(layer.driver->clGetExtensionFunctionAddress(name), name);
}

void *CL_API_CALL layer_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                 const char *name)
{
    return note_extension(layer.driver->clGetExtensionFunctionAddressForPlatform(platform, name),
                          name);
}

// What is not followed.

#define LOST(name, parameters, arguments)      \
    cl_int CL_API_CALL layer_##name parameters \
    {                                          \
        layer_count_lost(LAYER_ENTRY_##name);  \
        return layer.driver->name arguments;   \
    }

#define OBJECTS                                                                        \
    (cl_command_queue queue, cl_uint count, const cl_mem *objects, cl_uint wait_count, \
     const cl_event *waits, cl_event *event)

LOST(clSetCommandQueueProperty,
     (cl_command_queue queue, cl_command_queue_properties properties, cl_bool enable,
      cl_command_queue_properties *old),
     (queue, properties, enable, old))
LOST(clEnqueueAcquireGLObjects, OBJECTS, (queue, count, objects, wait_count, waits, event))
LOST(clEnqueueReleaseGLObjects, OBJECTS, (queue, count, objects, wait_count, waits, event))
LOST(clEnqueueAcquireEGLObjectsKHR, OBJECTS, (queue, count, objects, wait_count, waits, event))
LOST(clEnqueueReleaseEGLObjectsKHR, OBJECTS, (queue, count, objects, wait_count, waits, event))
#undef LOST
#undef OBJECTS

cl_event CL_API_CALL layer_clCreateEventFromGLsyncKHR(cl_context context, cl_GLsync sync,
                                                      cl_int *code)
{
    layer_count_lost(LAYER_ENTRY_clCreateEventFromGLsyncKHR);
    return layer.driver->clCreateEventFromGLsyncKHR(context, sync, code);
}

cl_event CL_API_CALL layer_clCreateEventFromEGLSyncKHR(cl_context context, CLeglSyncKHR sync,
                                                       CLeglDisplayKHR display, cl_int *code)
{
    layer_count_lost(LAYER_ENTRY_clCreateEventFromEGLSyncKHR);
    return layer.driver->clCreateEventFromEGLSyncKHR(context, sync, display, code);
}
