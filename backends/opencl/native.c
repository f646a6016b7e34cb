// Objects of the caller are checked, above all their context: the driver accepts an object of
// another context without an error and fails later, or not at all. They are retained, so that the
// caller may release them at once.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

// kDLOpenCL of <dlpack/dlpack.h>.
#define DLPACK_OPENCL 4

weir_status ocl_device_native(const struct weir_link *link, weir_device *object,
                              struct weir_native_device *out_native)
{
    const struct ocl_device *device = ocl_device_of(link, object);
    out_native->api = WEIR_NATIVE_OPENCL;
    out_native->context = device->context;
    out_native->device = device->listed->device;
    out_native->ordinal = (int)(device->listed - device->module->listed);
    out_native->dlpack = DLPACK_OPENCL;
    return WEIR_OK;
}

static struct weir_native_queue describe(const struct ocl_queue *queue)
{
    return (struct weir_native_queue){
        .struct_size = sizeof(struct weir_native_queue),
        .api = WEIR_NATIVE_OPENCL,
        .context = queue->device->context,
        .queue = queue->queue,
    };
}

weir_status ocl_queue_native(const struct weir_link *link, weir_queue *object,
                             struct weir_native_queue *out_native)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    const struct weir_native_queue native = describe(queue);
    weir_status status = ocl_commands_share(queue);
    if (status == WEIR_OK)
        WEIR_WRITE(out_native, &native);
    return status;
}

weir_status ocl_buffer_native(const struct weir_link *link, weir_buffer *object,
                              struct weir_native_buffer *out_native)
{
    const struct ocl_buffer *buffer = ocl_buffer_of(link, object);
    out_native->api = WEIR_NATIVE_OPENCL;
    out_native->memory = buffer->memory;
    out_native->host = buffer->pointer;
    return WEIR_OK;
}

weir_status ocl_submit_native(struct ocl_queue *queue, const struct weir_operation *operation)
{
    const struct weir_native_queue native = describe(queue);
    weir_status status = ocl_commands_settle(queue);
    if (status < 0)
        return status;
    status = operation->u.native.function(&native, operation->u.native.user);
    ocl_commands_forget(queue);
    return status;
}

// Queues.

static weir_status refuse_queue(const struct ocl_queue *queue, const char *remedy, const char *why)
{
    return weir_host_fail(queue->device->module->host, WEIR_ERROR_INVALID, remedy,
                          "the command queue %s", why);
}

static weir_status check_queue(const struct ocl_queue *queue, cl_command_queue native, bool timing,
                               cl_command_queue_properties *out_properties)
{
    const struct ocl_symbols *cl = &queue->device->module->cl;
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_int code =
        cl->clGetCommandQueueInfo(native, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetCommandQueueInfo(native, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetCommandQueueInfo(native, CL_QUEUE_PROPERTIES, sizeof *out_properties,
                                         out_properties, NULL);
    if (code != CL_SUCCESS)
        return ocl_native_error(queue->device->module, "clGetCommandQueueInfo", code,
                                "params.native is no command queue");
    if (context != queue->device->context)
        return refuse_queue(queue, "create it in the context that weir_device_get_native() tells",
                            "is of another context than the device");
    if (device != queue->device->listed->device)
        return refuse_queue(queue, "create it for the device that weir_device_get_native() tells",
                            "is of another device of the context");
    if (*out_properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return refuse_queue(queue, "create it without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE",
                            "runs its commands out of order");
    if (timing && !(*out_properties & CL_QUEUE_PROFILING_ENABLE))
        return refuse_queue(queue,
                            "create it with CL_QUEUE_PROFILING_ENABLE, or wrap it without "
                            "timing",
                            "takes no times");
    return WEIR_OK;
}

weir_status ocl_wrap_queue(struct ocl_queue *queue, cl_command_queue native, bool timing,
                           bool *out_profiling)
{
    const struct ocl_module *module = queue->device->module;
    cl_command_queue_properties properties = 0;
    weir_status status = check_queue(queue, native, timing, &properties);
    *out_profiling = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    if (status < 0)
        return status;
    cl_int code = module->cl.clRetainCommandQueue(native);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clRetainCommandQueue", code, "wrap a command queue");
    queue->queue = native;
    return ocl_commands_share(queue);
}

// Memory.

static weir_status refuse_memory(const struct ocl_buffer *buffer, const char *remedy,
                                 const char *why)
{
    return weir_host_fail(buffer->device->module->host, WEIR_ERROR_INVALID, remedy, "the cl_mem %s",
                          why);
}

struct facts {
    cl_uint type;
    cl_mem_flags flags;
    size_t size;
    cl_context context;
    cl_mem whole;
    size_t origin;
};

static cl_int read_facts(const struct ocl_symbols *cl, cl_mem native, struct facts *facts)
{
    const struct {
        cl_mem_info what;
        size_t size;
        void *place;
    } questions[] = {
        {CL_MEM_TYPE, sizeof facts->type, &facts->type},
        {CL_MEM_FLAGS, sizeof facts->flags, &facts->flags},
        {CL_MEM_SIZE, sizeof facts->size, &facts->size},
        {CL_MEM_CONTEXT, sizeof(facts->context), &facts->context},
        {CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(facts->whole), &facts->whole},
        {CL_MEM_OFFSET, sizeof facts->origin, &facts->origin},
    };
    cl_int code = CL_SUCCESS;
    for (size_t i = 0; i < sizeof questions / sizeof *questions && code == CL_SUCCESS; i++)
        code = cl->clGetMemObjectInfo(native, questions[i].what, questions[i].size,
                                      questions[i].place, NULL);
    return code;
}

static weir_status check_memory(const struct ocl_buffer *buffer, cl_mem native, struct facts *facts)
{
    const struct ocl_module *module = buffer->device->module;
    cl_int code = read_facts(&module->cl, native, facts);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clGetMemObjectInfo", code, "params.native is no cl_mem");
    if (facts->context != buffer->device->context)
        return refuse_memory(buffer, "create it in the context that weir_device_get_native() tells",
                             "is of another context than the device");
    if (facts->type != CL_MEM_OBJECT_BUFFER)
        return refuse_memory(buffer, "copy it into a buffer", "is no buffer");
    if (facts->flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY))
        return refuse_memory(buffer, "create it with CL_MEM_READ_WRITE",
                             "is not for kernels that read and write");
    if (facts->size < buffer->size)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID, "adopt as much as there is",
                              "the cl_mem has %zu bytes, and %zu were asked for", facts->size,
                              buffer->size);
    return WEIR_OK;
}

// Intel's runtime associates memory over shared memory with an object of its own, which it then refuses.
static bool is_sub_buffer(const struct ocl_module *module, const struct facts *facts)
{
    cl_uint type = 0;
    return facts->whole && module->cl.clGetMemObjectInfo(facts->whole, CL_MEM_TYPE, sizeof type,
                                                         &type, NULL) == CL_SUCCESS;
}

weir_status ocl_adopt_memory(struct ocl_buffer *buffer, cl_mem native)
{
    const struct ocl_module *module = buffer->device->module;
    struct facts facts = {0};
    weir_status status = check_memory(buffer, native, &facts);
    if (status < 0)
        return status;
    cl_int code = module->cl.clRetainMemObject(native);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clRetainMemObject", code, "adopt a buffer of %zu bytes",
                                buffer->size);
    buffer->memory = native;
    buffer->whole = is_sub_buffer(module, &facts) ? facts.whole : NULL;
    buffer->origin = buffer->whole ? facts.origin : 0;
    return WEIR_OK;
}
