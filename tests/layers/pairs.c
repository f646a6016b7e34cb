// Plain OpenCL programs in pairs, which know nothing of Weir: the broken one lacks an order that the mended one has.
//
// usage: pairs broken|mended|killed|forked|crashed|left|signalled [CASE...], or pairs --list. Prints each case's name
// and two lines. $PAIRS_BUILD has options for OpenCL's compiler, and $PAIRS_SOURCE what is before the source.
#include "tests/layers/pair.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HALF = BYTES / 2,
};

static cl_command_queue free_order; // keeps none
static cl_kernel inc, dbl;          // a[i]++; b[i] = 2 * a[i]
static cl_event done;
static float back[N];
static const size_t items = N;
static const size_t corner[3], whole[3] = {SIDE, SIDE, 1}; // of an image

static const char *const source =
    "kernel void inc(global float *a) { a[get_global_id(0)] += 1; }\n"
    "kernel void dbl(global const float *a, global float *b) {\n"
    "    size_t i = get_global_id(0); b[i] = 2 * a[i]; }\n"
    "kernel void paint(write_only image2d_t to) {\n"
    "    write_imagef(to, (int2)(get_global_id(0) % 64, get_global_id(0) / 64), (float4)(1)); }\n"
    "kernel void look(read_only image2d_t from, global float *b) {\n"
    "    size_t i = get_global_id(0); const sampler_t s = CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n"
    "    b[i] = read_imagef(from, s, (int2)(i % 64, i / 64)).x; }\n";

// Commands, and a list of one event, or none.
#define MAP(line, ...) (line = __LINE__, clEnqueueMapBuffer(__VA_ARGS__))
#define IF(condition, event) (condition), (condition) ? &(event) : NULL
#define NONE 0, NULL
#define RUN(queue, kernel, ...) \
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, __VA_ARGS__)
#define WRITE(queue, to, at, size, ...) \
    clEnqueueWriteBuffer(queue, to, CL_FALSE, at, size, host, __VA_ARGS__)
#define READ(queue, from, at, size, ...) \
    clEnqueueReadBuffer(queue, from, CL_FALSE, at, size, back, __VA_ARGS__)

static cl_mem buffer(size_t size)
{
    return clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, NULL);
}

static cl_mem picture(void)
{
    const cl_image_format format = {CL_R, CL_FLOAT};
    const cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                 .image_width = SIDE,
                                 .image_height = SIDE};
    return clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &shape, host,
                         NULL);
}

// Buffers.

static void write_kernel(bool mended)
{
    A(WRITE(one, a, 0, BYTES, NONE, &done));
    B(RUN(two, dbl, IF(mended, done), NULL));
}

static void kernel_read(bool mended)
{
    A(RUN(one, inc, NONE, &done));
    B(READ(two, a, 0, BYTES, IF(mended, done), NULL));
}

static void write_write(bool mended)
{
    A(WRITE(one, a, 0, HALF, NONE, NULL));
    B(WRITE(two, a, mended ? HALF : HALF - 4, HALF, NONE, NULL));
}

static void copy_parts(bool mended)
{
    A(clEnqueueCopyBuffer(one, a, b, 0, 0, HALF, NONE, NULL));
    B(clEnqueueCopyBuffer(two, a, b, HALF, mended ? HALF : HALF - 8, HALF, NONE, NULL));
}

static void fill_kernel(bool mended)
{
    const float zero = 0;
    A(clEnqueueFillBuffer(one, a, &zero, sizeof zero, 0, BYTES, NONE, &done));
    B(RUN(two, dbl, IF(mended, done), NULL));
}

// The columns of a matrix of 64 rows of 256 bytes.
static void columns(bool mended)
{
    const size_t left[3] = {0, 0, 0}, right[3] = {mended ? 128 : 124, 0, 0};
    const size_t region[3] = {128, 64, 1};
    A(clEnqueueWriteBufferRect(one, a, CL_FALSE, left, left, region, 256, 0, 256, 0, host, NONE,
                               NULL));
    B(clEnqueueWriteBufferRect(two, a, CL_FALSE, right, left, region, 256, 0, 256, 0, host, NONE,
                               NULL));
}

static void rows_read(bool mended)
{
    const size_t upper[3] = {0, 0, 0}, lower[3] = {0, mended ? 32 : 31, 0};
    const size_t region[3] = {256, 32, 1};
    A(clEnqueueCopyBufferRect(one, b, a, upper, upper, region, 256, 0, 256, 0, NONE, NULL));
    B(clEnqueueReadBufferRect(two, a, CL_FALSE, lower, upper, region, 256, 0, 256, 0, back, NONE,
                              NULL));
}

static cl_mem part(cl_mem of, size_t origin, size_t size)
{
    const cl_buffer_region region = {origin, size};
    return clCreateSubBuffer(of, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
}

static void parts(bool mended)
{
    const size_t half = N / 2;
    const cl_mem low = part(a, 0, HALF), high = part(a, mended ? HALF : HALF / 2, HALF);
    const cl_kernel lower = kernel("inc", &low, 1), upper = kernel("inc", &high, 1);
    A(clEnqueueNDRangeKernel(one, lower, 1, NULL, &half, NULL, NONE, NULL));
    B(clEnqueueNDRangeKernel(two, upper, 1, NULL, &half, NULL, NONE, NULL));
}

static void unwritten(bool mended)
{
    const cl_mem fresh = buffer(BYTES);
    if (mended)
        DO(WRITE(one, fresh, 0, BYTES, NONE, NULL));
    B(READ(one, fresh, 0, BYTES, NONE, NULL));
}

// What the host waits for.

static void flush(bool mended)
{
    A(RUN(one, inc, NONE, NULL));
    DO(mended ? clFinish(one) : clFlush(one));
    B(RUN(two, dbl, NONE, NULL));
}

static void blocking(bool mended)
{
    A(RUN(one, inc, NONE, NULL));
    DO(clEnqueueReadBuffer(mended ? one : two, b, CL_TRUE, 0, 4, back, NONE, NULL));
    B(RUN(two, dbl, NONE, NULL));
}

static void wait_for_events(bool mended)
{
    cl_event other;
    DO(WRITE(one, b, 0, 4, NONE, &other));
    A(RUN(one, inc, NONE, &done));
    DO(clWaitForEvents(1, mended ? &done : &other));
    B(READ(two, a, 0, BYTES, NONE, NULL));
}

static void status(bool mended)
{
    cl_int state = CL_QUEUED;
    A(RUN(one, inc, NONE, &done));
    DO(clFlush(one));
    while (mended && state != CL_COMPLETE)
        DO(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    B(READ(two, a, 0, BYTES, NONE, NULL));
}

static void CL_CALLBACK post(cl_event event, cl_int state, void *semaphore)
{
    sem_post(semaphore);
}

static void callback(bool mended)
{
    static sem_t ended;
    sem_init(&ended, 0, 0);
    A(RUN(one, inc, NONE, &done));
    if (mended)
        DO(clSetEventCallback(done, CL_COMPLETE, post, &ended));
    DO(clFlush(one));
    if (mended)
        sem_wait(&ended);
    B(READ(two, a, 0, BYTES, NONE, NULL));
}

// Queues without order.

static void unordered(bool mended)
{
    A(RUN(free_order, inc, NONE, &done));
    B(RUN(free_order, dbl, IF(mended, done), NULL));
}

static void barrier(bool mended)
{
    A(RUN(free_order, inc, NONE, NULL));
    DO(mended ? clEnqueueBarrierWithWaitList(free_order, NONE, NULL)
              : clEnqueueMarkerWithWaitList(free_order, NONE, &done));
    B(RUN(free_order, dbl, NONE, NULL));
}

static void old_barrier(bool mended)
{
    A(RUN(free_order, inc, NONE, NULL));
    if (mended)
        DO(clEnqueueBarrier(free_order));
    B(RUN(free_order, dbl, NONE, NULL));
}

static void barrier_of_one(bool mended)
{
    cl_event other;
    DO(WRITE(free_order, b, 0, 4, NONE, &other));
    DO(clWaitForEvents(1, &other));
    A(RUN(free_order, inc, NONE, &done));
    DO(clEnqueueBarrierWithWaitList(free_order, 1, mended ? &done : &other, NULL));
    B(RUN(free_order, dbl, NONE, NULL));
}

static void marker(bool mended)
{
    cl_event mark;
    DO(WRITE(free_order, b, 0, 4, NONE, &done));
    A(RUN(free_order, inc, NONE, NULL));
    DO(clEnqueueMarkerWithWaitList(free_order, mended ? 0 : 1, mended ? NULL : &done, &mark));
    B(READ(two, a, 0, BYTES, 1, &mark, NULL));
}

static void old_marker(bool mended)
{
    cl_event mark;
    if (!mended)
        DO(clEnqueueMarker(one, &mark));
    A(RUN(one, inc, NONE, NULL));
    if (mended)
        DO(clEnqueueMarker(one, &mark));
    B(READ(two, a, 0, BYTES, 1, &mark, NULL));
}

// More in flight than a queue has lanes.
static void forty(bool mended)
{
    cl_event events[40];
    cl_mem each[40];
    for (int i = 0; i < 40; i++) {
        each[i] = filled(host, BYTES);
        const cl_kernel own = kernel("inc", &each[i], 1);
        A(RUN(free_order, own, NONE, &events[i]));
    }
    B(READ(free_order, each[33], 0, BYTES, 1, &events[mended ? 33 : 32], NULL));
}

// Maps.

static void map_read(bool mended)
{
    cl_int code;
    A(RUN(one, inc, NONE, &done));
    DO(clFlush(one));
    const cl_uint count = mended;
    void *at = MAP(second, two, a, CL_TRUE, CL_MAP_READ, 0, BYTES, count, count ? &done : NULL,
                   NULL, &code);
    DO(code);
    DO(clEnqueueUnmapMemObject(two, a, at, NONE, NULL));
}

static void map_part(bool mended)
{
    cl_int code;
    void *at = MAP(first, one, a, CL_FALSE, CL_MAP_READ, 0, HALF, NONE, NULL, &code);
    DO(code);
    B(WRITE(two, a, mended ? HALF : HALF - 4, HALF, NONE, NULL));
    DO(clEnqueueUnmapMemObject(one, a, at, NONE, NULL));
}

static void unmap(bool mended)
{
    cl_int code;
    float *at = clEnqueueMapBuffer(one, a, CL_TRUE, CL_MAP_WRITE, 0, BYTES, NONE, NULL, &code);
    DO(code);
    at[0] = 1;
    A(clEnqueueUnmapMemObject(one, a, at, NONE, &done));
    B(RUN(two, dbl, IF(mended, done), NULL));
}

// User events.

static void user_event(bool mended)
{
    const cl_event user = clCreateUserEvent(context, NULL);
    A(RUN(one, inc, NONE, &done));
    B(RUN(two, dbl, 1, &user, NULL));
    if (mended)
        DO(clWaitForEvents(1, &done));
    DO(clSetUserEventStatus(user, CL_COMPLETE));
}

// What comes after a command that waits, in its queue and through its event.
static void user_chain(bool mended)
{
    const cl_event user = clCreateUserEvent(context, NULL);
    DO(WRITE(one, filled(host, BYTES), 0, 4, 1, &user, NULL));
    A(RUN(one, inc, NONE, &done));
    B(RUN(two, dbl, IF(mended, done), NULL));
    DO(clSetUserEventStatus(user, CL_COMPLETE));
}

// The broken one is in order, by a flag, which is not seen: the finding says so.

static atomic_bool raised;

static void CL_CALLBACK raise_flag(cl_event event, cl_int state, void *unused)
{
    atomic_store(&raised, true);
}

static void flag(bool mended)
{
    const cl_event user = clCreateUserEvent(context, NULL);
    A(RUN(one, inc, 1, &user, &done));
    DO(clSetEventCallback(done, CL_COMPLETE, raise_flag, NULL));
    DO(clSetUserEventStatus(user, CL_COMPLETE));
    DO(clFlush(one));
    while (!atomic_load(&raised))
        usleep(100);
    if (mended)
        DO(clWaitForEvents(1, &done));
    B(RUN(two, dbl, NONE, NULL));
}

// Images.

static void image_kernel(bool mended)
{
    const cl_mem image = picture();
    const cl_kernel look = kernel("look", (cl_mem[]){image, b}, 2);
    A(clEnqueueWriteImage(one, image, CL_FALSE, corner, whole, 0, 0, host, NONE, &done));
    B(RUN(two, look, IF(mended, done), NULL));
}

static void image_paint(bool mended)
{
    const cl_mem image = picture();
    const cl_kernel paint = kernel("paint", &image, 1);
    A(RUN(one, paint, NONE, &done));
    B(clEnqueueReadImage(two, image, CL_FALSE, corner, whole, 0, 0, back, IF(mended, done), NULL));
}

static void image_columns(bool mended)
{
    const size_t left[3] = {0, 0, 0}, right[3] = {mended ? 32 : 31, 0, 0};
    const size_t region[3] = {32, SIDE, 1};
    const cl_mem image = picture();
    A(clEnqueueWriteImage(one, image, CL_FALSE, left, region, 0, 0, host, NONE, NULL));
    B(clEnqueueReadImage(two, image, CL_FALSE, right, region, 0, 0, back, NONE, NULL));
}

static void image_copy(bool mended)
{
    const size_t upper[3] = {0, 0, 0}, lower[3] = {0, 32, 0}, region[3] = {SIDE, 32, 1};
    const cl_mem from = picture(), to = picture();
    A(clEnqueueCopyImage(one, from, to, upper, lower, region, NONE, NULL));
    B(clEnqueueReadImage(two, to, CL_FALSE, mended ? upper : lower, region, 0, 0, back, NONE,
                         NULL));
}

static void image_to_buffer(bool mended)
{
    const size_t origin[3] = {0, 0, 0}, region[3] = {SIDE, SIDE / 2, 1};
    const cl_mem image = picture();
    A(clEnqueueCopyImageToBuffer(one, image, a, origin, region, 0, NONE, NULL));
    B(READ(two, a, mended ? HALF : HALF - 4, HALF, NONE, NULL));
}

static void buffer_to_image(bool mended)
{
    const cl_mem image = picture();
    A(RUN(one, inc, NONE, &done));
    B(clEnqueueCopyBufferToImage(two, a, image, 0, corner, whole, IF(mended, done), NULL));
}

static void image_fill(bool mended)
{
    const float color[4] = {1, 1, 1, 1};
    const cl_mem image = picture();
    A(clEnqueueFillImage(one, image, color, corner, whole, NONE, &done));
    B(clEnqueueReadImage(two, image, CL_FALSE, corner, whole, 0, 0, back, IF(mended, done), NULL));
}

static void image_map(bool mended)
{
    size_t pitch;
    cl_int code;
    const cl_mem image = picture();
    float *at = clEnqueueMapImage(one, image, CL_TRUE, CL_MAP_WRITE, corner, whole, &pitch, NULL,
                                  NONE, NULL, &code);
    DO(code);
    at[0] = 1;
    A(clEnqueueUnmapMemObject(one, image, at, NONE, &done));
    B(clEnqueueReadImage(two, image, CL_FALSE, corner, whole, 0, 0, back, IF(mended, done), NULL));
}

// Shared virtual memory.

static void svm_copy(bool mended)
{
    float *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    A(clEnqueueSVMMemcpy(one, CL_FALSE, shared, host, HALF, NONE, NULL));
    B(clEnqueueSVMMemcpy(two, CL_FALSE, back, (char *)shared + (mended ? HALF : HALF - 4), HALF,
                         NONE, NULL));
}

static void svm_kernel(bool mended)
{
    const float zero = 0;
    float *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    const cl_kernel own = clCreateKernel(program, "inc", NULL);
    DO(clSetKernelArgSVMPointer(own, 0, shared));
    A(clEnqueueSVMMemFill(one, shared, &zero, sizeof zero, BYTES, NONE, &done));
    B(RUN(two, own, IF(mended, done), NULL));
}

static void svm_map(bool mended)
{
    float *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    const cl_kernel own = clCreateKernel(program, "inc", NULL);
    DO(clSetKernelArgSVMPointer(own, 0, shared));
    A(RUN(one, own, NONE, &done));
    DO(clFlush(one));
    B(clEnqueueSVMMap(two, CL_TRUE, CL_MAP_READ, shared, BYTES, IF(mended, done), NULL));
    DO(clEnqueueSVMUnmap(two, shared, NONE, NULL));
}

// Others.

static void task(bool mended)
{
    A(clEnqueueTask(one, inc, NONE, &done));
    B(READ(two, a, 0, BYTES, IF(mended, done), NULL));
}

static void migration(bool mended)
{
    cl_event moved;
    A(RUN(one, inc, NONE, &done));
    DO(clEnqueueMigrateMemObjects(two, 1, &a, 0, IF(mended, done), &moved));
    B(READ(free_order, a, 0, BYTES, 1, &moved, NULL));
}

static void CL_CALLBACK zero_first(void *arguments)
{
    **(float **)arguments = 0;
}

static void native(bool mended)
{
    void *pointer = NULL;
    const void *place = &pointer;
    A(clEnqueueNativeKernel(one, zero_first, &pointer, sizeof pointer, 1, &a, &place, NONE, &done));
    B(READ(two, a, 0, BYTES, IF(mended, done), NULL));
}

static void two_contexts(bool mended)
{
    const cl_context other = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    const cl_command_queue left = clCreateCommandQueue(other, device, 0, NULL);
    const cl_command_queue right = clCreateCommandQueue(other, device, 0, NULL);
    const cl_mem memory = clCreateBuffer(other, CL_MEM_READ_WRITE, BYTES, NULL, NULL);
    A(WRITE(left, memory, 0, BYTES, NONE, &done));
    B(READ(right, memory, 0, BYTES, IF(mended, done), NULL));
    DO(clFinish(left));
    DO(clFinish(right));
}

// The program uses the memory until its last command has run.
static void released(bool mended)
{
    const cl_mem memory = filled(host, BYTES);
    const cl_kernel own = kernel("inc", &memory, 1);
    A(RUN(one, own, NONE, &done));
    B(READ(two, memory, 0, BYTES, IF(mended, done), NULL));
    DO(clReleaseMemObject(memory));
    DO(clReleaseKernel(own));
    DO(clReleaseMemObject(filled(host, BYTES)));
}

static void from_binary(bool mended)
{
    size_t size = 0;
    DO(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    unsigned char *bytes = malloc(size);
    DO(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL));
    const cl_program copy = clCreateProgramWithBinary(context, 1, &device, &size,
                                                      (const unsigned char **)&bytes, NULL, NULL);
    DO(clBuildProgram(copy, 1, &device, "", NULL, NULL));
    const cl_kernel own = clCreateKernel(copy, "inc", NULL);
    DO(clSetKernelArg(own, 0, sizeof a, &a));
    A(RUN(one, own, NONE, &done));
    B(READ(two, a, 0, BYTES, IF(mended, done), NULL));
    free(bytes);
}

static void all_kernels(bool mended)
{
    cl_kernel kernels[8];
    cl_uint count = 0;
    DO(clCreateKernelsInProgram(program, 8, kernels, &count));
    char name[32] = "";
    cl_uint i = 0;
    for (; i < count && strcmp(name, "inc") != 0; i++)
        DO(clGetKernelInfo(kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL));
    const cl_kernel own = kernels[i - 1];
    DO(clSetKernelArg(own, 0, sizeof a, &a));
    A(RUN(one, own, NONE, &done));
    B(READ(two, a, 0, BYTES, IF(mended, done), NULL));
}

// Two that read the same are no race.
static void readers(bool mended)
{
    const cl_kernel other = kernel("dbl", (cl_mem[]){a, mended ? filled(host, BYTES) : b}, 2);
    A(RUN(one, dbl, NONE, NULL));
    B(RUN(two, other, NONE, NULL));
}

static const struct {
    const char *name;
    void (*run)(bool mended);
} cases[] = {
#define CASE(name)  \
    {               \
#name, name \
    }
    CASE(write_kernel),    CASE(kernel_read),    CASE(write_write), CASE(copy_parts),
    CASE(fill_kernel),     CASE(columns),        CASE(rows_read),   CASE(parts),
    CASE(unwritten),       CASE(flush),          CASE(blocking),    CASE(wait_for_events),
    CASE(status),          CASE(callback),       CASE(unordered),   CASE(barrier),
    CASE(old_barrier),     CASE(barrier_of_one), CASE(marker),      CASE(old_marker),
    CASE(forty),           CASE(map_read),       CASE(map_part),    CASE(unmap),
    CASE(user_event),      CASE(user_chain),     CASE(flag),        CASE(image_kernel),
    CASE(image_paint),     CASE(image_columns),  CASE(image_copy),  CASE(image_to_buffer),
    CASE(buffer_to_image), CASE(image_fill),     CASE(image_map),   CASE(svm_copy),
    CASE(svm_kernel),      CASE(svm_map),        CASE(task),        CASE(migration),
    CASE(native),          CASE(two_contexts),   CASE(released),    CASE(from_binary),
    CASE(all_kernels),     CASE(readers),
#undef CASE
};

static void set_up(void)
{
    const char *const before = getenv("PAIRS_SOURCE"), *const options = getenv("PAIRS_BUILD");
    cl_int code;
    open_device((const char *[]){before ? before : "", source}, options ? options : "");
    free_order =
        clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    DO(code);
    a = filled(host, BYTES);
    b = filled(host, BYTES);
    inc = kernel("inc", &a, 1);
    dbl = kernel("dbl", (cl_mem[]){a, b}, 2);
}

// Neither may use OpenCL any more, but releases what it has when it ends.
static void fork_a_child(void)
{
    int state = 1;
    const pid_t child = fork();
    if (child == 0)
        exit(clReleaseMemObject(a) == CL_SUCCESS ? 0 : 4);
    waitpid(child, &state, 0);
    if (state != 0)
        exit(4);
}

// The driver ends the process on its own thread.
static void CL_CALLBACK crash(cl_event event, cl_int state, void *unused)
{
    abort();
}

static void crash_the_driver(void)
{
    cl_event last;
    DO(RUN(one, inc, NONE, &last));
    DO(clSetEventCallback(last, CL_COMPLETE, crash, NULL));
    DO(clFinish(one));
    sleep(20);
}

// At an exit with commands in flight others still come.
static void *enqueue_for_ever(void *unused)
{
    for (;;)
        WRITE(two, b, 0, 4, NONE, NULL);
    return unused;
}

static void leave(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, enqueue_for_ever, NULL);
    for (int i = 0; i < 1000; i++)
        DO(RUN(one, inc, NONE, NULL));
    exit(0);
}

static atomic_uint signals;

static void count_signal(int number)
{
    atomic_fetch_add(&signals, 1);
}

static void signal_often(void)
{
    const struct itimerval often = {{0, 300}, {0, 300}};
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = count_signal, .sa_flags = SA_RESTART},
              NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static bool is_wanted(const char *name, int count, char **names)
{
    bool found = count == 0;
    for (int i = 0; i < count; i++)
        found = found || strcmp(names[i], name) == 0;
    return found;
}

// The cases that this device can run.
static void list(void)
{
    cl_device_exec_capabilities ways = 0;
    cl_device_svm_capabilities shared = 0;
    DO(clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof ways, &ways, NULL));
    clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof shared, &shared, NULL);
    const struct {
        const char *word;
        bool left_out;
        const char *reason;
    } kinds[] = {{"image", !picture(), "images: this driver makes none of floats"},
                 {"native", !(ways & CL_EXEC_NATIVE_KERNEL), "native: this device runs none"},
                 {"svm_", !shared, "svm: this device shares no memory"}};
    const size_t count = sizeof kinds / sizeof *kinds;
    for (size_t k = 0; k < count; k++)
        if (kinds[k].left_out)
            fprintf(stderr, "left out: %s\n", kinds[k].reason);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool wanted = true;
        for (size_t k = 0; k < count; k++)
            wanted = wanted && !(kinds[k].left_out && strstr(cases[i].name, kinds[k].word));
        if (wanted)
            puts(cases[i].name);
    }
}

int main(int argc, char **argv)
{
    const char *const way = argc > 1 ? argv[1] : "--list";
    const size_t count = sizeof cases / sizeof *cases;
    set_up();
    if (strcmp(way, "--list") == 0) {
        list();
        return 0;
    }
    if (strcmp(way, "signalled") == 0)
        signal_often();
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(cases[i].name, argc - 2, argv + 2))
            continue;
        first = second = 0;
        cases[i].run(strcmp(way, "mended") == 0 || strcmp(way, "signalled") == 0);
        const cl_command_queue queues[] = {one, two, free_order};
        for (size_t k = 0; k < 3; k++) // they wait for each other
            DO(clFlush(queues[k]));
        for (size_t k = 0; k < 3; k++)
            DO(clFinish(queues[k]));
        printf("%s %d %d\n", cases[i].name, first, second);
    }
    if (strcmp(way, "killed") == 0)
        raise(SIGKILL);
    if (strcmp(way, "forked") == 0)
        fork_a_child();
    fflush(stdout);
    if (strcmp(way, "crashed") == 0)
        crash_the_driver();
    if (strcmp(way, "left") == 0)
        leave();
    if (strcmp(way, "signalled") == 0 && atomic_load(&signals) == 0)
        return 4;
    return second ? 0 : 2;
}
