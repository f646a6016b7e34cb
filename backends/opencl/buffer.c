// Memory: buffers, and memory of the caller. DEVICE memory is a buffer object. On a device
// that uses memory in place (PoCL) it lies over shared memory, so that kernels can follow addresses, and
// get ranges at any offset, for which sub-buffers are too coarse:
// docs/decisions/0016-byte-offsets-on-opencl.md. HOST memory always has an address that both the host and
// copies use:
//
//   - fine-grained shared memory (CPUs, some integrated GPUs): kernels see it too, and it serves as
//     MANAGED memory;
//   - else a buffer of the driver's pinned memory, mapped for all its life;
//   - memory of the caller: a buffer object over it, which makes drivers pin it. It is
//     not mapped: mapping does not make copies faster on NVIDIA, and waits for running
//     kernels on NVIDIA and on PoCL.
//
// Maps use a separate queue, so they do not wait for the user's work.
//
// NVIDIA's driver waits for the whole device when it releases pinned memory. So pinned memory of
// destroyed buffers is kept by the device for later buffers, until the device is trimmed or closed.
// Wrapped memory cannot be kept: the caller may unmap it after the destroy, and a driver that still
// has the address would use unmapped pages.
#include "backends/opencl/opencl.h"

static weir_status refuse(const struct ocl_buffer *buffer, const char *call, cl_int code,
                          const char *what)
{
    return clc_native_error(buffer->device->module->host, call, code, "cannot make %s of %zu bytes",
                            what, buffer->size);
}

static weir_status create_memory(struct ocl_buffer *buffer, cl_mem_flags flags, void *user,
                                 const char *what)
{
    const struct ocl_module *module = buffer->device->module;
    cl_int code;
    buffer->memory = module->cl.clCreateBuffer(buffer->device->context, CL_MEM_READ_WRITE | flags,
                                               buffer->size, user, &code);
    if (!buffer->memory)
        return refuse(buffer, "clCreateBuffer", code, what);
    module->host->count_driver_object();
    return WEIR_OK;
}

static weir_status allocate_shared(struct ocl_buffer *buffer, const char *what)
{
    const struct ocl_module *module = buffer->device->module;
    buffer->address =
        module->cl.clSVMAlloc(buffer->device->context,
                              CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, buffer->size, 0);
    if (!buffer->address) // the call returns no error code
        return weir_host_fail(module->host, WEIR_ERROR_OUT_OF_MEMORY,
                              "destroy buffers that are no longer needed, or use smaller ones",
                              "clSVMAlloc gives no %s buffer of %zu bytes", what, buffer->size);
    module->host->count_driver_object();
    return WEIR_OK;
}

// Creates pinned memory, which belongs to the block once it is mapped.
static weir_status create_block(struct ocl_buffer *buffer, struct weir_kit_block *block)
{
    static const char what[] = "a pinned HOST buffer";
    const struct ocl_device *device = buffer->device;
    cl_int code;
    TRY(create_memory(buffer, CL_MEM_ALLOC_HOST_PTR, NULL, what));
    block->pointer = device->module->cl.clEnqueueMapBuffer(device->mapper, buffer->memory, CL_TRUE,
                                                           CL_MAP_READ | CL_MAP_WRITE, 0,
                                                           buffer->size, 0, NULL, NULL, &code);
    if (!block->pointer)
        return refuse(buffer, "clEnqueueMapBuffer", code, what);
    block->native = buffer->memory;
    block->size = buffer->size;
    return WEIR_OK;
}

// Uses kept memory that is at most twice as large.
static weir_status create_pinned(struct ocl_buffer *buffer)
{
    const struct weir_host *host = buffer->device->module->host;
    const size_t limit = buffer->size <= SIZE_MAX / 2 ? 2 * buffer->size : SIZE_MAX;
    struct weir_kit_block *block =
        weir_kit_block_take(&buffer->device->spares, buffer->size, limit);
    if (!block) {
        block = host->allocate(sizeof *block);
        if (!block)
            return weir_host_no_memory(host, "a buffer");
        weir_status status = create_block(buffer, block);
        if (status < 0) {
            host->release(block);
            return status;
        }
    }
    buffer->block = block;
    buffer->memory = block->native;
    buffer->pointer = block->pointer;
    return WEIR_OK;
}

// Memory of the caller is checked, above all its context: the driver accepts an object of another context
// without an error and fails later, or not at all. It is retained, so that the caller may release it at once.

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
        return clc_native_error(module->host, "clGetMemObjectInfo", code,
                                "params.native is no cl_mem");
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

static weir_status adopt(struct ocl_buffer *buffer, cl_mem native)
{
    const struct ocl_module *module = buffer->device->module;
    struct facts facts = {0};
    cl_uint type;
    TRY(check_memory(buffer, native, &facts));
    cl_int code = module->cl.clRetainMemObject(native);
    if (code != CL_SUCCESS)
        return clc_native_error(module->host, "clRetainMemObject", code,
                                "adopt a buffer of %zu bytes", buffer->size);
    buffer->memory = native;
    // Intel's runtime associates memory over shared memory with an object of its own, which it then refuses.
    if (facts.whole && module->cl.clGetMemObjectInfo(facts.whole, CL_MEM_TYPE, sizeof type, &type,
                                                     NULL) == CL_SUCCESS) {
        buffer->whole = facts.whole;
        buffer->origin = facts.origin;
    }
    return WEIR_OK;
}

// Buffers.

static weir_status allocate(struct ocl_buffer *buffer, const struct weir_buffer_setup *setup)
{
    const struct ocl_device *device = buffer->device;
    weir_status status = WEIR_OK;
    if (setup->native)
        return adopt(buffer, (cl_mem)(uintptr_t)setup->native);
    if (setup->placement == WEIR_PLACE_DEVICE) {
        if (device->in_place)
            status = allocate_shared(buffer, "DEVICE");
        return status < 0 ? status
                          : create_memory(buffer, buffer->address ? CL_MEM_USE_HOST_PTR : 0,
                                          buffer->address, "a DEVICE buffer");
    }
    if (setup->user_pointer) {
        buffer->pointer = setup->user_pointer;
        buffer->svm = device->svm_system;
        return buffer->svm ? WEIR_OK
                           : create_memory(buffer, CL_MEM_USE_HOST_PTR, buffer->pointer,
                                           "a buffer over existing memory");
    }
    if (!device->svm)
        return create_pinned(buffer);
    status = allocate_shared(buffer, "HOST");
    buffer->pointer = buffer->address;
    buffer->svm = status == WEIR_OK;
    return status;
}

static void release(struct ocl_buffer *buffer)
{
    struct ocl_device *device = buffer->device;
    const struct ocl_symbols *cl = &device->module->cl;
    if (buffer->block)
        weir_kit_block_put(&device->spares, buffer->block);
    else if (buffer->memory)
        cl->clReleaseMemObject(buffer->memory);
    if (buffer->address)
        cl->clSVMFree(device->context, buffer->address);
    device->module->host->release(buffer);
}

static void release_block(void *user, struct weir_kit_block *block)
{
    const struct ocl_device *device = user;
    const struct ocl_symbols *cl = &device->module->cl;
    cl->clEnqueueUnmapMemObject(device->mapper, block->native, block->pointer, 0, NULL, NULL);
    cl->clReleaseMemObject(block->native);
    device->module->host->release(block);
}

void ocl_spares_release(struct ocl_device *device)
{
    weir_kit_blocks_empty(&device->spares, release_block, device);
    device->module->cl.clFlush(device->mapper);
}

weir_status ocl_buffer_create(const struct weir_link *link, weir_device *device,
                              weir_buffer *object, const struct weir_buffer_setup *setup,
                              void **out_data, void **out_pointer)
{
    struct ocl_buffer *buffer = link->host->allocate(sizeof *buffer);
    if (!buffer)
        return weir_host_no_memory(link->host, "a buffer");
    buffer->device = ocl_device_of(link, device);
    buffer->size = setup->size;
    weir_status status = allocate(buffer, setup);
    if (status < 0) {
        release(buffer);
        return status;
    }
    pthread_mutex_init(&buffer->lock, NULL);
    *out_data = buffer;
    if (setup->placement != WEIR_PLACE_DEVICE)
        *out_pointer = buffer->pointer;
    return WEIR_OK;
}

void ocl_buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
    struct ocl_buffer *buffer = ocl_buffer_of(link, object);
    for (uint32_t i = 0; i < buffer->view_count; i++)
        ocl_view_release(buffer->views[i]);
    buffer->device->module->host->release(buffer->views);
    pthread_mutex_destroy(&buffer->lock);
    release(buffer);
}

weir_status ocl_buffer_address(const struct weir_link *link, weir_buffer *object,
                               uint64_t *out_address)
{
    const struct ocl_buffer *buffer = ocl_buffer_of(link, object);
    // A processor uses memory of the host's where it is, if that is aligned as its drivers ask.
    const bool is_wrapped = buffer->device->in_place && !buffer->address && buffer->pointer &&
                            (uintptr_t)buffer->pointer % 4096 == 0;
    const void *address = buffer->svm || is_wrapped ? buffer->pointer : buffer->address;
    *out_address = (uint64_t)(uintptr_t)address;
    if (address)
        return WEIR_OK;
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED, "copy it to a buffer of Weir's",
                          "OpenCL tells no address of wrapped or adopted memory");
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
