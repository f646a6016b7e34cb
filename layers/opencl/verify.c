// --verify: which bytes a launch uses is found by running it on copies, in a process of its own (trial.c). The program's
// buffers are read before the launch, when what it waits for has ended; nothing else of the program's is touched.
//
// A launch with the same arguments but for the contents of its buffers is not run again, if other contents did not change
// which bytes it wrote. What cannot be run keeps its whole buffers, and is told once.
#define _GNU_SOURCE // memfd_create
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "layers/opencl/layer.h"

enum {
    KNOWN = 1024, // launches that are kept
    TOLD = 64,
    TURNS = 16, // of a launch whose bytes depend on contents
    PLACES = 64,
};

#define BYTES_MOST (UINT64_C(256) << 20)      // of a launch's buffers
#define READY_NS (UINT64_C(10) * 1000000000u) // until what a launch waits for has ended
#define TRIAL_NS (UINT64_C(60) * 1000000000u) // of a launch
#define ALL_NS (UINT64_C(600) * 1000000000u)

// A launch, without its place.
struct known {
    uint64_t key; // 0: none
    struct trial *found;
    const char *reason; // why there is none, and will be none
    uint32_t turns;
    uint32_t fragile; // a bit for each buffer
};

static pthread_mutex_t busy =
    PTHREAD_MUTEX_INITIALIZER; // guards what follows; taken before layer.lock
static struct known known[KNOWN];
static uint64_t spent_ns;
static bool impatient;
static pid_t child = -1;
static int child_socket = -1;
static int child_file = -1;

// What is being asked.
struct question {
    const struct launch *launch;
    cl_command_queue queue;
    cl_context context;
    cl_device_id device;
    const char *name;    // of the kernel
    const char *reason;  // why there is no answer
    struct trial *trial; // without what follows it in the file
    cl_mem memories[TRIAL_BUFFERS];
    unsigned char *binary;
};

static bool refuse(struct question *it, const char *reason)
{
    it->reason = reason;
    return false;
}

static void tell_reason(const struct question *it)
{
    static struct {
        const char *name, *reason;
    } told[TOLD];
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (told[i].name == it->name && told[i].reason == it->reason)
            return;
    if (!it->reason || !it->name || count == TOLD)
        return;
    told[count].name = it->name;
    told[count++].reason = it->reason;
    layer_tell("'%s' is not verified: %s; which bytes it uses stays assumed", it->name, it->reason);
}

// The launch, as it is known. With the layer's lock held.

static bool add_buffer(struct question *it, cl_mem handle, const struct memory *memory,
                       const struct parameter *parameter, struct trial_argument *argument)
{
    struct trial *trial = it->trial;
    const weir_access access =
        parameter->known ? (weir_access)parameter->access : WEIR_ACCESS_READ_WRITE;
    uint32_t i = 0;
    while (i < trial->buffer_count && it->memories[i] != handle)
        i++;
    if (i == TRIAL_BUFFERS)
        return refuse(it, "it has more than 32 buffers");
    argument->kind = TRIAL_BUFFER;
    argument->buffer = i;
    if (i < trial->buffer_count) { // what one parameter only writes, another may read
        trial->buffers[i].access = WEIR_ACCESS_READ_WRITE;
        return true;
    }
    if (memory->element || memory->size == 0)
        return refuse(it, "it uses images");
    for (uint32_t k = 0; k < i; k++) {
        size_t begin = 0, other = 0;
        struct memory *mine = memory_find(it->memories[k]);
        if (memory_root((struct memory *)(uintptr_t)memory, &begin) == memory_root(mine, &other) &&
            begin < other + mine->size && other < begin + memory->size)
            return refuse(it, "parts of a buffer that it uses overlap");
    }
    it->memories[i] = handle;
    trial->buffers[i].size = memory->size;
    trial->buffers[i].access = access;
    trial->buffer_count++;
    return true;
}

static bool add_argument(struct question *it, const struct argument *from,
                         const struct parameter *parameter)
{
    struct trial_argument *argument = &it->trial->arguments[it->trial->argument_count++];
    argument->size = from->size;
    if (from->svm)
        return refuse(it, "it uses shared virtual memory");
    if (from->size && !from->given) {
        argument->kind = TRIAL_LOCAL;
        return true;
    }
    if (from->size > sizeof from->bytes)
        return refuse(it, "it has an argument of more than 128 bytes");
    memcpy(argument->value, from->bytes, from->size);
    cl_mem handle = (cl_mem)(uintptr_t)from->bits;
    const bool may_point = !parameter->known || parameter->access;
    const struct memory *memory = may_point && handle && from->size == sizeof handle
                                      ? (struct memory *)object_find(OBJECT_MEMORY, handle)
                                      : NULL;
    return !memory || add_buffer(it, handle, memory, parameter, argument);
}

static void copy_sizes(uint64_t to[3], const size_t *from, cl_uint count)
{
    for (cl_uint i = 0; from && i < count; i++)
        to[i] = from[i];
}

static bool is_ready(const struct question *it)
{
    const struct queue *queue = queue_find(it->queue);
    for (cl_uint i = 0; queue && i < it->launch->wait_count; i++) {
        const struct event *event = (struct event *)object_find(OBJECT_EVENT, it->launch->waits[i]);
        if (!event || event->state == EVENT_WAITING)
            return false;
    }
    return queue && queue->deferred == 0;
}

static bool take_launch(struct question *it)
{
    const struct launch *launch = it->launch;
    const struct kernel *kernel = (struct kernel *)object_find(OBJECT_KERNEL, launch->kernel);
    struct trial *trial = it->trial;
    if (!kernel || launch->dimensions == 0 || launch->dimensions > 3 || !launch->global)
        return false;
    it->name = kernel->name;
    if (kernel->count > TRIAL_ARGUMENTS || kernel->pointer_count)
        return refuse(it, kernel->pointer_count ? "it uses shared virtual memory"
                                                : "it has more than 64 arguments");
    for (uint32_t i = 0; i < kernel->count; i++)
        if (!add_argument(it, &kernel->arguments[i], &kernel->parameters[i]))
            return false;
    if (trial->buffer_count == 0)
        return false;
    if (!is_ready(it))
        return refuse(it, "it waits for an event of the program's or of an extension");
    snprintf(trial->name, sizeof trial->name, "%s", kernel->name);
    trial->dimensions = launch->dimensions;
    trial->has_offset = launch->offset != NULL;
    trial->has_local = launch->local != NULL;
    copy_sizes(trial->offset, launch->offset, launch->dimensions);
    copy_sizes(trial->global, launch->global, launch->dimensions);
    copy_sizes(trial->local, launch->local, launch->dimensions);
    return true;
}

// Without the layer's lock.

// The device's number among those of its platform, and that one's.
static bool number_device(struct question *it)
{
    const cl_icd_dispatch *cl = layer.driver;
    cl_platform_id platforms[PLACES];
    cl_device_id devices[PLACES];
    cl_uint platform_count = 0;
    if (cl->clGetPlatformIDs(PLACES, platforms, &platform_count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < platform_count && i < PLACES; i++) {
        cl_uint count = 0;
        if (cl->clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, PLACES, devices, &count) !=
            CL_SUCCESS)
            continue;
        for (cl_uint j = 0; j < count && j < PLACES; j++)
            if (devices[j] == it->device) {
                it->trial->platform = i;
                it->trial->device = j;
                return true;
            }
    }
    return refuse(it, "it runs on a part of a device");
}

static bool take_binary(struct question *it)
{
    const cl_icd_dispatch *cl = layer.driver;
    cl_program program = NULL;
    cl_device_id devices[PLACES];
    size_t sizes[PLACES];
    unsigned char *binaries[PLACES] = {NULL};
    size_t used = 0;
    if (cl->clGetKernelInfo(it->launch->kernel, CL_KERNEL_PROGRAM, sizeof program, &program,
                            NULL) != CL_SUCCESS ||
        cl->clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof devices, devices, &used) !=
            CL_SUCCESS ||
        cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL) !=
            CL_SUCCESS)
        return refuse(it, "the driver gives no binary of its program");
    const size_t count = used / sizeof *devices;
    size_t i = 0;
    while (i < count && devices[i] != it->device)
        i++;
    it->binary = i < count && sizes[i] ? malloc(sizes[i]) : NULL;
    binaries[i < count ? i : 0] = it->binary;
    if (!it->binary || cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries,
                                            binaries, NULL) != CL_SUCCESS)
        return refuse(it, "the driver gives no binary of its program");
    it->trial->binary_size = sizes[i];
    it->trial->binary_hash = weir_hash(0, it->binary, sizes[i]);
    return true;
}

static uint64_t align(uint64_t size)
{
    return (size + 4095) / 4096 * 4096;
}

static bool place_parts(struct question *it)
{
    struct trial *trial = it->trial;
    uint64_t all = 0;
    trial->binary_at = align(sizeof *trial);
    trial->size = trial->binary_at + align(trial->binary_size);
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        if (trial->buffers[i].size > BYTES_MOST - all)
            return refuse(it, "its buffers have more than 256 MiB");
        all += trial->buffers[i].size;
        trial->buffers[i].at = trial->size;
        trial->size += align(trial->buffers[i].size);
    }
    return true;
}

static bool await(cl_event event, uint64_t limit_ns)
{
    const uint64_t start = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    cl_int state = CL_QUEUED;
    do {
        if (layer.driver->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                         &state, NULL) != CL_SUCCESS ||
            state < 0)
            return false;
    } while (state != CL_COMPLETE && weir_clock_pause(start, limit_ns, &pause_ns));
    return state == CL_COMPLETE;
}

static void flush_waits(const struct launch *launch)
{
    const cl_icd_dispatch *cl = layer.driver;
    for (cl_uint i = 0; i < launch->wait_count; i++) {
        cl_command_queue other = NULL;
        if (cl->clGetEventInfo(launch->waits[i], CL_EVENT_COMMAND_QUEUE, sizeof(cl_command_queue),
                               &other, NULL) == CL_SUCCESS &&
            other)
            (void)cl->clFlush(other);
    }
}

// What the launch comes after has ended then. It may need the thread that launches, so there is a limit.
static bool await_turn(struct question *it)
{
    const struct launch *launch = it->launch;
    const cl_icd_dispatch *cl = layer.driver;
    cl_event marker = NULL;
    if (cl->clEnqueueMarkerWithWaitList(it->queue, launch->wait_count, launch->waits, &marker) !=
        CL_SUCCESS)
        return refuse(it, "the driver has no markers");
    flush_waits(launch);
    const bool ended = cl->clFlush(it->queue) == CL_SUCCESS &&
                       await(marker, impatient ? READY_NS / 100 : READY_NS);
    cl->clReleaseEvent(marker);
    impatient = !ended;
    return ended || refuse(it, "what it waits for did not end within 10 s, without the host");
}

// Reads the buffers into the file. On a queue of its own the program's is left alone.
static bool read_buffers(struct question *it, unsigned char *file, bool *out_busy)
{
    const cl_icd_dispatch *cl = layer.driver;
    cl_command_queue own = cl->clCreateCommandQueue(it->context, it->device, 0, NULL);
    cl_event last = NULL;
    bool ok = own;
    *out_busy = false;
    for (uint32_t i = 0; ok && i < it->trial->buffer_count; i++) {
        const struct trial_buffer *buffer = &it->trial->buffers[i];
        if (last)
            cl->clReleaseEvent(last);
        last = NULL;
        ok = cl->clEnqueueReadBuffer(own, it->memories[i], CL_FALSE, 0, buffer->size,
                                     file + buffer->at, 0, NULL, &last) == CL_SUCCESS;
        *out_busy = *out_busy || ok;
    }
    if (last && cl->clFlush(own) == CL_SUCCESS && await(last, READY_NS))
        *out_busy = false;
    if (last)
        cl->clReleaseEvent(last);
    if (own)
        cl->clReleaseCommandQueue(own);
    return (ok && last && !*out_busy) || refuse(it, "the driver does not let its buffers be read");
}

// The process.

static void end_child(void)
{
    if (child_socket >= 0)
        close(child_socket);
    child_socket = -1;
    if (child > 0)
        (void)child_wait(child, WEIR_MS(100));
    child = -1;
}

static bool start_child(void)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + sizeof "/" TRIAL_PROGRAM];
    char *arguments[] = {path, NULL};
    int sockets[2];
    if (child > 0)
        return true;
    if (!layer_directory(folder, sizeof folder))
        return false;
    snprintf(path, sizeof path, "%s/" TRIAL_PROGRAM, folder);
    if (access(path, X_OK) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return false;
    child = child_start(arguments, sockets[1], -1, child_file);
    close(sockets[1]);
    child_socket = sockets[0];
    if (child < 0)
        end_child();
    return child > 0;
}

// Whether it answers in time. Signals of the program's may come meanwhile.
static bool hear_child(void)
{
    const uint64_t start = weir_clock_now_ns();
    uint64_t passed_ns = 0;
    char byte;
    int ready;
    do {
        struct pollfd wait = {.fd = child_socket, .events = POLLIN};
        ready = poll(&wait, 1, (int)((TRIAL_NS - passed_ns) / 1000000u));
        passed_ns = weir_clock_now_ns() - start;
    } while (ready < 0 && errno == EINTR && passed_ns < TRIAL_NS);
    return ready == 1 && read(child_socket, &byte, 1) == 1;
}

// Whether it has answered.
static bool ask_child(void)
{
    const char byte = 0;
    if (send(child_socket, &byte, 1, MSG_NOSIGNAL) == 1 && hear_child())
        return true;
    kill(child, SIGKILL);
    end_child();
    return false;
}

// Asks again as often as a buffer turns out that must keep its contents.
static bool ask(struct question *it, struct trial *file, struct known *entry)
{
    for (uint32_t turn = 0; turn <= it->trial->buffer_count; turn++) {
        *file = *it->trial;
        for (uint32_t i = 0; i < file->buffer_count; i++)
            file->buffers[i].fragile = entry->fragile >> i & 1u;
        if (!start_child())
            return refuse(it, TRIAL_PROGRAM " cannot be run; install all of Weir");
        if (ask_child())
            return file->result == TRIAL_FOUND ||
                   refuse(it, file->result == TRIAL_RANDOM
                                  ? "on copies its results differ from run to run"
                                  : "it cannot be run on copies");
        if (file->changed == 0 || file->changed > it->trial->buffer_count)
            return refuse(it, "on copies it does not end well");
        entry->fragile |= 1u << (file->changed - 1);
    }
    return refuse(it, "on copies it does not end well");
}

struct weir_note_range verify_range(const struct trial_range *from)
{
    return (struct weir_note_range){
        .offset = from->offset,
        .size = from->size,
        .rows = from->rows,
        .pitch = from->pitch,
        .access = (weir_access)(from->access & WEIR_ACCESS_READ_WRITE),
        .assumed = from->assumed,
    };
}

// A kernel that ran on copies may have written to the file, so that what was asked is not taken from there.
static bool take_ranges(struct question *it, const struct trial *file)
{
    for (uint32_t i = 0; i < it->trial->buffer_count; i++) {
        struct trial_buffer *buffer = &it->trial->buffers[i];
        buffer->range_count = file->buffers[i].range_count;
        memcpy(buffer->ranges, file->buffers[i].ranges, sizeof buffer->ranges);
        bool sound = buffer->range_count <= TRIAL_RANGES;
        for (uint32_t k = 0; sound && k < buffer->range_count; k++) {
            const struct weir_note_range range = verify_range(&buffer->ranges[k]);
            sound = range.size > 0 && command_fits(&range, buffer->size);
        }
        if (!sound)
            return refuse(it, "on copies it does not end well");
    }
    return true;
}

// The memory stays if the driver may still write to it, and the next launch gets another file.
static bool try(struct question *it, struct known *entry)
{
    bool found = false;
    bool in_use = false;
    const size_t size = it->trial->size;
    if (child_file < 0)
        child_file = memfd_create("weir trial", MFD_CLOEXEC);
    const bool grown = child_file >= 0 && ftruncate(child_file, (off_t)size) == 0;
    unsigned char *file =
        grown ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, child_file, 0) : MAP_FAILED;
    if (file == MAP_FAILED)
        return refuse(it, "there is no memory for copies");
    memcpy(file + it->trial->binary_at, it->binary, it->trial->binary_size);
    if (read_buffers(it, file, &in_use) && ask(it, (struct trial *)file, entry)) {
        found = take_ranges(it, (struct trial *)file);
        entry->turns = ((struct trial *)file)->steady ? 0 : entry->turns + 1;
    }
    if (!in_use) {
        munmap(file, size);
        return found;
    }
    end_child();
    close(child_file);
    child_file = -1;
    return found;
}

static bool find_or_try(struct question *it)
{
    const uint64_t key = weir_hash(0, it->trial, sizeof *it->trial) | 1;
    struct known *entry = &known[key / 2 % KNOWN];
    if (entry->key != key) {
        free(entry->found);
        *entry = (struct known){.key = key};
    }
    if (entry->found) {
        *it->trial = *entry->found;
        return true;
    }
    if (entry->turns == TURNS)
        entry->reason = "its bytes depend on data, and it was run 16 times";
    if (spent_ns > ALL_NS)
        entry->reason = "10 minutes were spent on copies";
    if (entry->reason)
        return refuse(it, entry->reason);
    if (!await_turn(it))
        return false;
    const uint64_t start = weir_clock_now_ns();
    const bool found = try(it, entry);
    spent_ns += weir_clock_now_ns() - start;
    if (!found)
        entry->reason = it->reason;
    if (found && entry->turns == 0 && (entry->found = malloc(sizeof *entry->found)))
        *entry->found = *it->trial;
    return found;
}

static bool take(struct question *it)
{
    const cl_icd_dispatch *cl = layer.driver;
    if (cl->clGetCommandQueueInfo(it->queue, CL_QUEUE_DEVICE, sizeof it->device, &it->device,
                                  NULL) != CL_SUCCESS ||
        cl->clGetCommandQueueInfo(it->queue, CL_QUEUE_CONTEXT, sizeof it->context, &it->context,
                                  NULL) != CL_SUCCESS)
        return false;
    layer_lock();
    const bool taken = layer_is_on() && take_launch(it);
    layer_unlock();
    return taken && number_device(it) && take_binary(it) && place_parts(it);
}

struct trial *verify_launch(cl_command_queue queue, const struct launch *launch)
{
    struct question it = {.launch = launch, .queue = queue};
    if (!layer.verify || !layer_is_on() || !(it.trial = calloc(1, sizeof *it.trial)))
        return NULL;
    pthread_mutex_lock(&busy);
    const bool found = take(&it) && find_or_try(&it);
    if (!found)
        tell_reason(&it);
    pthread_mutex_unlock(&busy);
    free(it.binary);
    if (found)
        return it.trial;
    free(it.trial);
    return NULL;
}

// The child of a thread that still waits for it ends with this process, since their socket closes then.
void verify_finish(void)
{
    if (pthread_mutex_trylock(&busy) != 0)
        return;
    end_child();
    pthread_mutex_unlock(&busy);
}
