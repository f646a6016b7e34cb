// Memory, and what drivers do with it that others do not.
#include <string.h>

#include "tests/support/libopencl/fake.h"

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

EXPORT cl_int clEnqueueSVMMemFill(cl_command_queue queue, void *pointer, const void *pattern,
                                  size_t pattern_size, size_t size, cl_uint count,
                                  const cl_event *events, cl_event *event)
{
    struct fake_list list;
    cl_int code = fake_admit("clEnqueueSVMMemFill");
    if (code == CL_SUCCESS && fake_plays(WEIR_TEST_OPENCL_SYSTEM_SVM) && !is_shared(pointer))
        code = CL_OUT_OF_RESOURCES; // where PoCL 6 crashes
    if (code != CL_SUCCESS)
        return code;
    fake_list_make(&list, queue, count, events);
    code = fake_real.clEnqueueSVMMemFill(queue, pointer, pattern, pattern_size, size, LIST, event);
    fake_list_finish(&list, count, code == CL_SUCCESS && event ? *event : NULL);
    return code;
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
    cl_int code = fake_admit("clGetMemObjectInfo");
    if (code == CL_SUCCESS && is_inner(memory))
        code = CL_INVALID_MEM_OBJECT;
    if (code != CL_SUCCESS)
        return code;
    code = fake_real.clGetMemObjectInfo(memory, what, size, value, used);
    if (fake_plays(WEIR_TEST_OPENCL_INNER_OBJECT) && what == CL_MEM_ASSOCIATED_MEMOBJECT && value)
        *(void **)value = &inner_object;
    return code;
}

EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *user,
                             cl_int *error)
{
    const cl_int code = fake_admit("clCreateBuffer");
    if (code == CL_SUCCESS)
        return new_memory(fake_real.clCreateBuffer(context, flags, size, user, error));
    if (error)
        *error = code;
    return NULL;
}

EXPORT cl_mem clCreateSubBuffer(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type,
                                const void *region, cl_int *error)
{
    cl_int code = fake_admit("clCreateSubBuffer");
    if (code == CL_SUCCESS && is_inner(memory))
        code = CL_INVALID_MEM_OBJECT;
    if (code == CL_SUCCESS)
        return new_memory(fake_real.clCreateSubBuffer(memory, flags, type, region, error));
    if (error)
        *error = code;
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
