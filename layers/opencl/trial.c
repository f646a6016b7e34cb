// Finds the bytes that a launch uses. It is run on what its buffers hold, then with other contents in some bytes: those that
// change its results are read, and those that a run changes are written. The first and the last byte that is read are found
// by halving. Two kinds of other contents are tried, since a comparison may hide one.
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <weir/buffer.h>

#include "layers/opencl/trial.h"

#define FUNCTIONS(X)             \
    X(clGetPlatformIDs)          \
    X(clGetDeviceIDs)            \
    X(clGetDeviceInfo)           \
    X(clCreateContext)           \
    X(clCreateCommandQueue)      \
    X(clCreateProgramWithBinary) \
    X(clBuildProgram)            \
    X(clReleaseProgram)          \
    X(clCreateKernel)            \
    X(clReleaseKernel)           \
    X(clSetKernelArg)            \
    X(clCreateBuffer)            \
    X(clReleaseMemObject)        \
    X(clEnqueueWriteBuffer)      \
    X(clEnqueueReadBuffer)       \
    X(clEnqueueNDRangeKernel)    \
    X(clFinish)

static struct {
#define POINTER(name) __typeof__(&name) name;
    FUNCTIONS(POINTER)
#undef POINTER
} cl;

#define GUARD_BYTES ((size_t)1 << 30)

enum {
    PROGRAMS = 16,
    DEVICES = 64,
    PATIENCE_S = 20, // of a run on the buffers' own contents
    WORD = 4,
    // Of a byte.
    WRITTEN = 1,
    MOVED = 2, // changed by a run whose results are others
};

struct copy {
    cl_mem memory;
    size_t size;
    unsigned char *place; // with guards, if it is the host's memory
    const unsigned char *truth;
    unsigned char *first;   // after the first run
    unsigned char *initial; // before the last run
    unsigned char *bytes;   // after it
    unsigned char *marks;
    bool reads;
    size_t read_begin, read_end;
};

static struct trial *trial;
static cl_context context;
static cl_command_queue queue;
static cl_device_id device;
static cl_kernel kernel;
static struct copy copies[TRIAL_BUFFERS];
static unsigned patience_s = PATIENCE_S;

// Runs.

// False if the driver refuses it.
static bool run(void)
{
    cl_int code = CL_SUCCESS;
    alarm(patience_s);
    for (uint32_t i = 0; i < trial->buffer_count && code == CL_SUCCESS; i++)
        code = cl.clEnqueueWriteBuffer(queue, copies[i].memory, CL_TRUE, 0, copies[i].size,
                                       copies[i].initial, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = cl.clEnqueueNDRangeKernel(queue, kernel, trial->dimensions,
                                         trial->has_offset ? trial->offset : NULL, trial->global,
                                         trial->has_local ? trial->local : NULL, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = cl.clFinish(queue);
    for (uint32_t i = 0; i < trial->buffer_count && code == CL_SUCCESS; i++)
        code = cl.clEnqueueReadBuffer(queue, copies[i].memory, CL_TRUE, 0, copies[i].size,
                                      copies[i].bytes, 0, NULL, NULL);
    alarm(0);
    return code == CL_SUCCESS;
}

static void restore(void)
{
    for (uint32_t i = 0; i < trial->buffer_count; i++)
        memcpy(copies[i].initial, copies[i].truth, copies[i].size);
}

static void spoil(struct copy *copy, size_t i, int kind)
{
    // The first is far outside of any buffer where it is an index.
    copy->initial[i] = kind ? (unsigned char)~copy->truth[i] : 0x7f;
}

// A byte that no run has changed has no result.
static bool has_other_results(void)
{
    for (uint32_t k = 0; k < trial->buffer_count; k++) {
        const struct copy *it = &copies[k];
        if (memcmp(it->bytes, it->first, it->size) == 0)
            continue;
        for (size_t i = 0; i < it->size; i++)
            if (it->bytes[i] != it->first[i] &&
                (it->bytes[i] != it->initial[i] || it->first[i] != it->truth[i]))
                return true;
    }
    return false;
}

static void mark(unsigned char how)
{
    for (uint32_t k = 0; k < trial->buffer_count; k++)
        for (size_t i = 0; i < copies[k].size; i++)
            if (copies[k].bytes[i] != copies[k].initial[i])
                copies[k].marks[i] |= how;
}

// Runs with the contents that `initial` has. One that does not end well ends this process, and the layer asks again
// without changing that buffer.
static bool run_changed(struct copy *changed)
{
    if (changed)
        trial->changed = 1 + (uint32_t)(changed - copies);
    if (!run())
        _exit(1);
    const bool other = has_other_results();
    mark(other ? MOVED : WRITTEN);
    // What is written over in its place is written, though other contents give other results.
    for (size_t i = 0; other && changed && i < changed->size; i++)
        if (changed->initial[i] != changed->truth[i] && changed->bytes[i] != changed->initial[i])
            changed->marks[i] |= WRITTEN;
    return other;
}

// Whether the results depend on these bytes; on those of them alone that `besides` does not mark, if that is given.
static bool depends(struct copy *copy, size_t begin, size_t end, const unsigned char *besides)
{
    for (int kind = 0; kind < 2; kind++) {
        restore();
        for (size_t i = begin; i < end; i++)
            if (!besides || !(besides[i] & WRITTEN))
                spoil(copy, i, kind);
        if (run_changed(copy))
            return true;
    }
    return false;
}

// What is read.

static size_t grain(const struct copy *copy)
{
    return copy->size % WORD == 0 ? WORD : 1;
}

static bool depends_on_end(struct copy *copy, bool front, size_t size)
{
    return depends(copy, front ? 0 : copy->size - size, front ? size : copy->size, NULL);
}

// How many bytes of the front or of the back are not read. They are guessed first.
static size_t find_unread(struct copy *copy, bool front, size_t guess)
{
    const size_t step = grain(copy);
    size_t low = 0;
    size_t high = copy->size;
    guess -= guess % step;
    if (guess > 0 && guess < high)
        *(depends_on_end(copy, front, guess) ? &high : &low) = guess;
    for (size_t jump = step; low + jump < high; jump *= 16) {
        if (depends_on_end(copy, front, low + jump)) {
            high = low + jump;
            break;
        }
        low += jump;
    }
    while (high - low > step) {
        const size_t middle = low + (high - low) / 2 / step * step;
        *(depends_on_end(copy, front, middle) ? &high : &low) = middle;
    }
    return low;
}

static bool find_hull(const struct copy *copy, unsigned char how, size_t *begin, size_t *end)
{
    *begin = 0;
    *end = copy->size;
    while (*begin < *end && !(copy->marks[*begin] & how))
        ++*begin;
    while (*end > *begin && !(copy->marks[*end - 1] & how))
        --*end;
    return *begin < *end;
}

// Elements of one number are often used together.
static void guess_hull(const struct copy *copy, size_t *begin, size_t *end)
{
    if (find_hull(copy, WRITTEN, begin, end))
        return;
    for (uint32_t k = 0; k < trial->buffer_count; k++)
        if (copies[k].size == copy->size && find_hull(&copies[k], WRITTEN, begin, end))
            return;
    *begin = 0;
    *end = copy->size;
}

static void find_reads(struct copy *copy, const struct trial_buffer *buffer)
{
    copy->read_begin = 0;
    copy->read_end = copy->size;
    copy->reads = buffer->access & WEIR_ACCESS_READ;
    if (!copy->reads || buffer->fragile)
        return;
    copy->reads = depends(copy, 0, copy->size, NULL);
    if (!copy->reads)
        return;
    size_t begin, end;
    guess_hull(copy, &begin, &end);
    copy->read_begin = find_unread(copy, true, begin);
    copy->read_end = copy->size - find_unread(copy, false, copy->size - end);
}

// All that is not read has other contents at once, so that each write to it shows.
static bool confirm(void)
{
    for (int kind = 0; kind < 2; kind++) {
        restore();
        for (uint32_t k = 0; k < trial->buffer_count; k++)
            for (size_t i = 0; !trial->buffers[k].fragile && i < copies[k].size; i++)
                if (!copies[k].reads || i < copies[k].read_begin || i >= copies[k].read_end)
                    spoil(&copies[k], i, kind);
        if (run_changed(NULL))
            return false;
    }
    return true;
}

// Ranges.

static void add(struct trial_buffer *buffer, struct trial_range range)
{
    buffer->ranges[buffer->range_count++] = range;
}

// Words of which a byte is written are written: of a result that differs in one byte the others may be as before.
static void close_words(struct copy *copy)
{
    const size_t step = grain(copy);
    for (size_t i = 0; i < copy->size; i += step) {
        unsigned char marks = 0;
        for (size_t j = i; j < i + step; j++)
            marks |= copy->marks[j];
        for (size_t j = i; j < i + step; j++)
            copy->marks[j] |= marks;
    }
}

static void add_hull(struct trial_buffer *buffer, size_t begin, size_t end, uint32_t access)
{
    add(buffer, (struct trial_range){begin, end - begin, 1, 0, access, true});
}

// Equal runs at equal distances are one range. False, and none, if there are too many.
static bool add_marked(struct trial_buffer *buffer, const struct copy *copy, uint32_t access,
                       uint32_t most)
{
    const uint32_t before = buffer->range_count;
    struct trial_range *range = NULL;
    for (size_t i = 0, end; i < copy->size; i = end) {
        for (end = i; end < copy->size && copy->marks[end] & WRITTEN;)
            end++;
        if (end == i) {
            end++;
            continue;
        }
        if (range && end - i == range->size &&
            (range->rows == 1 || i == range->offset + range->rows * range->pitch)) {
            if (range->rows++ == 1)
                range->pitch = i - range->offset;
            continue;
        }
        if (buffer->range_count == most) {
            buffer->range_count = before;
            return false;
        }
        range = &buffer->ranges[buffer->range_count];
        add(buffer, (struct trial_range){i, end - i, 1, 0, access, false});
    }
    return true;
}

static bool has_gaps(const struct copy *copy, const struct copy *marked)
{
    for (size_t i = copy->read_begin; i < copy->read_end; i++)
        if (!(marked->marks[i] & WRITTEN))
            return true;
    return false;
}

// The buffer whose written bytes are all that this one reads, too, or NULL.
static const struct copy *find_pattern(struct copy *copy, const struct trial_buffer *buffer)
{
    size_t begin, end;
    if (!copy->reads || buffer->fragile)
        return NULL;
    const bool own = find_hull(copy, WRITTEN, &begin, &end);
    for (uint32_t k = 0; k < trial->buffer_count; k++) {
        const struct copy *it = own ? copy : &copies[k];
        if (it->size == copy->size && find_hull(it, WRITTEN, &begin, &end) &&
            begin <= copy->read_begin && end >= copy->read_end &&
            (!has_gaps(copy, it) || !depends(copy, copy->read_begin, copy->read_end, it->marks)))
            return it;
        if (own)
            break;
    }
    return NULL;
}

// The last of its ranges is kept for what is written.
static void describe(struct copy *copy, struct trial_buffer *buffer)
{
    const uint32_t room = TRIAL_ALL_RANGES / trial->buffer_count;
    const uint32_t most = room < TRIAL_RANGES ? room : TRIAL_RANGES;
    const struct copy *pattern = find_pattern(copy, buffer);
    size_t begin, end;
    buffer->range_count = 0;
    if (pattern == copy && add_marked(buffer, copy, WEIR_ACCESS_READ_WRITE, most))
        return;
    if (copy->reads &&
        (!pattern || pattern == copy || !add_marked(buffer, pattern, WEIR_ACCESS_READ, most - 1)))
        add_hull(buffer, copy->read_begin, copy->read_end, WEIR_ACCESS_READ);
    if (find_hull(copy, WRITTEN, &begin, &end) &&
        !add_marked(buffer, copy, WEIR_ACCESS_WRITE, most))
        add_hull(buffer, begin, end, WEIR_ACCESS_WRITE);
}

static bool is_steady(void)
{
    for (uint32_t k = 0; k < trial->buffer_count; k++) {
        if (trial->buffers[k].fragile)
            return false;
        for (size_t i = 0; i < copies[k].size; i++)
            if ((copies[k].marks[i] & (WRITTEN | MOVED)) == MOVED)
                return false;
    }
    return true;
}

static enum trial_result learn(void)
{
    struct timespec begin, end;
    patience_s = PATIENCE_S;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    restore();
    if (!run())
        return TRIAL_FAILED;
    clock_gettime(CLOCK_MONOTONIC, &end);
    mark(WRITTEN);
    for (uint32_t k = 0; k < trial->buffer_count; k++)
        memcpy(copies[k].first, copies[k].bytes, copies[k].size);
    if (!run())
        return TRIAL_FAILED;
    for (uint32_t k = 0; k < trial->buffer_count; k++)
        if (memcmp(copies[k].first, copies[k].bytes, copies[k].size) != 0)
            return TRIAL_RANDOM;
    patience_s = 2 + 4 * (unsigned)(end.tv_sec - begin.tv_sec);
    for (uint32_t k = 0; k < trial->buffer_count; k++)
        find_reads(&copies[k], &trial->buffers[k]);
    if (!confirm())
        return TRIAL_RANDOM;
    for (uint32_t k = 0; k < trial->buffer_count; k++)
        close_words(&copies[k]);
    for (uint32_t k = 0; k < trial->buffer_count; k++)
        describe(&copies[k], &trial->buffers[k]);
    trial->steady = is_steady();
    return TRIAL_FOUND;
}

// The copies and the kernel.

static bool open_device(void)
{
    static uint32_t platform_index, device_index;
    cl_platform_id platforms[DEVICES];
    cl_device_id devices[DEVICES];
    cl_uint count = 0;
    if (context && platform_index == trial->platform && device_index == trial->device)
        return queue != NULL;
    if (context) // the layer begins another process for another device
        return false;
    if (cl.clGetPlatformIDs(DEVICES, platforms, &count) != CL_SUCCESS || trial->platform >= count ||
        trial->platform >= DEVICES ||
        cl.clGetDeviceIDs(platforms[trial->platform], CL_DEVICE_TYPE_ALL, DEVICES, devices,
                          &count) != CL_SUCCESS ||
        trial->device >= count || trial->device >= DEVICES)
        return false;
    platform_index = trial->platform;
    device_index = trial->device;
    device = devices[trial->device];
    context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = context ? cl.clCreateCommandQueue(context, device, 0, NULL) : NULL;
    return queue != NULL;
}

static cl_program find_program(void)
{
    static struct {
        uint64_t hash;
        cl_program program;
    } programs[PROGRAMS];
    static size_t turn;
    for (size_t i = 0; i < PROGRAMS; i++)
        if (programs[i].program && programs[i].hash == trial->binary_hash)
            return programs[i].program;
    const unsigned char *binary = (const unsigned char *)trial + trial->binary_at;
    const size_t size = trial->binary_size;
    cl_program program =
        cl.clCreateProgramWithBinary(context, 1, &device, &size, &binary, NULL, NULL);
    if (program && cl.clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
        cl.clReleaseProgram(program);
        program = NULL;
    }
    if (!program)
        return NULL;
    const size_t at = turn++ % PROGRAMS;
    if (programs[at].program)
        cl.clReleaseProgram(programs[at].program);
    programs[at].program = program;
    programs[at].hash = trial->binary_hash;
    return program;
}

// The memory of a processor's buffer: an access outside of it ends this process.
static void *make_place(struct copy *copy)
{
    cl_device_type type = 0;
    if (cl.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL) != CL_SUCCESS ||
        !(type & CL_DEVICE_TYPE_CPU))
        return NULL;
    unsigned char *place = mmap(NULL, copy->size + 2 * GUARD_BYTES, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return NULL;
    copy->place = place;
    if (mprotect(place + GUARD_BYTES, copy->size, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    return place + GUARD_BYTES;
}

static bool make_copy(struct copy *copy, const struct trial_buffer *buffer)
{
    const size_t size = buffer->size;
    copy->size = size;
    copy->truth = (const unsigned char *)trial + buffer->at;
    copy->first = malloc(size);
    copy->initial = malloc(size);
    copy->bytes = malloc(size);
    copy->marks = calloc(1, size);
    void *place = make_place(copy);
    copy->memory = cl.clCreateBuffer(context, CL_MEM_READ_WRITE | (place ? CL_MEM_USE_HOST_PTR : 0),
                                     size, place, NULL);
    return copy->first && copy->initial && copy->bytes && copy->marks && copy->memory;
}

static bool set_argument(cl_uint index, const struct trial_argument *it)
{
    const void *value = it->kind == TRIAL_BUFFER  ? (const void *)&copies[it->buffer].memory
                        : it->kind == TRIAL_VALUE ? it->value
                                                  : NULL;
    return cl.clSetKernelArg(kernel, index, it->size, value) == CL_SUCCESS;
}

static bool prepare(void)
{
    cl_program program = open_device() ? find_program() : NULL;
    kernel = program ? cl.clCreateKernel(program, trial->name, NULL) : NULL;
    bool ok = kernel;
    memset(copies, 0, sizeof copies);
    for (uint32_t i = 0; ok && i < trial->buffer_count; i++)
        ok = make_copy(&copies[i], &trial->buffers[i]);
    for (uint32_t i = 0; ok && i < trial->argument_count; i++)
        ok = set_argument(i, &trial->arguments[i]);
    return ok;
}

static void finish(void)
{
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        free(copies[i].first);
        free(copies[i].initial);
        free(copies[i].bytes);
        free(copies[i].marks);
        if (copies[i].memory)
            cl.clReleaseMemObject(copies[i].memory);
        if (copies[i].place)
            munmap(copies[i].place, copies[i].size + 2 * GUARD_BYTES);
    }
    if (kernel)
        cl.clReleaseKernel(kernel);
}

static bool load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (!library)
        return false;
#define LOAD(name)                                      \
    void *name##_ = dlsym(library, #name);              \
    memcpy((void *)&cl.name, &name##_, sizeof name##_); \
    if (!name##_)                                       \
        return false;
    FUNCTIONS(LOAD)
#undef LOAD
    return true;
}

static void answer(void)
{
    struct stat status;
    if (fstat(TRIAL_FILE, &status) != 0 || (size_t)status.st_size < sizeof *trial)
        _exit(1);
    trial = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, TRIAL_FILE, 0);
    if (trial == MAP_FAILED)
        _exit(1);
    trial->result = prepare() ? learn() : TRIAL_FAILED;
    finish();
    munmap(trial, (size_t)status.st_size);
}

// Only the layer runs it.
int main(void)
{
    char byte;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); // the program's thread may have blocked the alarm
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGALRM, SIG_DFL);
    if (!load())
        return 1;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        answer();
        if (write(STDIN_FILENO, &byte, 1) != 1)
            return 1;
    }
    return 0;
}
