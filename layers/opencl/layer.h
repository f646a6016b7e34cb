// An OpenCL layer: programs that do not know of Weir are seen by its plugins. The driver does the work, as without
// the layer, and the layer says the same to queues of Weir's on the backend `null`, as notes. What it does not
// follow costs knowledge, and never changes a result.
//
//   layer.c    the entry points of a layer; the runtime; what is not followed; the end
//   entries.h  the list of OpenCL's functions, and what the layer does about each
//   objects.c  what is known of queues, memory, events, kernels, by their handles
//   mirror.c   what Weir gets: lanes of queues, waits, what a user event holds up
//   place.c    the program's line of a call
//   access.c   what the arguments of kernels are used for
//   verify.c   what a launch really uses, found on copies; trial.h, trial.c: the program that runs it
//   child.c    programs that the layer runs
//   calls_commands.c  functions that enqueue commands, which go to Weir too; when commands ran, for traces
//   calls_objects.c   the others
//
// Threads: one lock, `layer.lock`, guards all that is said below, unless it says otherwise. With it held no function of
// the program's runs, and no function of the driver's that may wait or call back. Weir is called with it held, so that
// commands come to its queues in the order in which they are known. Places are found before it is taken, since that may
// take the lock of an interpreter.
#ifndef WEIR_LAYERS_OPENCL_LAYER_H
#define WEIR_LAYERS_OPENCL_LAYER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS

#include <CL/cl.h>
#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/weir.h>

#include "layers/opencl/entries.h"
#include "layers/opencl/trial.h"

// layer.c

// Why a call was not followed, or not all of it; told at the end.
enum layer_loss {
    LAYER_LOSS_MEMORY, // no memory for what has to be known
    LAYER_LOSS_ARGUMENTS,
    LAYER_LOSS_WEIR, // Weir has refused it
    LAYER_LOSSES
};

struct layer {
    const cl_icd_dispatch *driver; // what comes after the layer
    atomic_bool on;                // calls are followed
    bool times;                    // the driver's times are asked for
    bool verify;                   // launches are run on copies
    pthread_mutex_t lock;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *host; // for memory that comes with its contents
    atomic_uint_fast64_t losses[LAYER_LOSSES];
};

extern struct layer layer;

// Begins to follow, at the first context, unless the process uses Weir itself.
void layer_start(void);

// Of entries.h.
#define LAYER_ONE(...) +1
enum {
    LAYER_ENTRY_COUNT = 0 LAYER_ENTRIES(LAYER_ONE, LAYER_ONE, LAYER_ONE, LAYER_ONE)
};
#undef LAYER_ONE

// A function that is not followed was called, or asked for: one of an extension, whose calls are not seen.
void layer_count_lost(const char *name, bool called);

// A sentence on standard error.
void layer_tell(const char *format, ...) WEIR_PRINTF(1, 2);
// The folder of this library. False if it is not known, or too long.
bool layer_directory(char *directory, size_t size);

static inline void layer_lose(enum layer_loss loss)
{
    atomic_fetch_add_explicit(&layer.losses[loss], 1, memory_order_relaxed);
}

static inline bool layer_is_on(void)
{
    return atomic_load_explicit(&layer.on, memory_order_acquire);
}

static inline void layer_lock(void)
{
    pthread_mutex_lock(&layer.lock);
}

static inline void layer_unlock(void)
{
    pthread_mutex_unlock(&layer.lock);
}

// Takes the lock if calls are followed; returns whether they are.
static inline bool layer_enter(void)
{
    if (!layer_is_on())
        return false;
    layer_lock();
    if (layer_is_on())
        return true;
    layer_unlock();
    return false;
}

// place.c

// A line of the program's. Texts are kept for the process.
struct place {
    const char
        *file; // "libavfilter.so.8(function+0x1f)" with line 0 where there is no debug information
    int line;
};

// The place of the call that returns to `address`. No lock is held.
struct place place_find(void *address);

// A text, kept for the process. "" if out of memory.
const char *place_keep(const char *text);

void place_init(void);

// objects.c

enum object_kind {
    OBJECT_QUEUE,
    OBJECT_MEMORY,
    OBJECT_EVENT,
    OBJECT_KERNEL,
    OBJECT_PROGRAM,
    OBJECT_ADDRESS, // of a call: place.c
};

// What is known of one of the driver's objects. It is found by its handle until the program's last release, and stays
// for as long as something here holds it.
struct object {
    struct object *next;  // of its bucket
    struct object *older; // of all, also of those that are only held
    struct object *newer;
    const void *handle;
    enum object_kind kind;
    uint32_t references; // the program's
    uint32_t holds;
};

enum {
    LAYER_LANES = 32
};

// A command queue, as queues of Weir's: one, or LAYER_LANES in turn if its order is not kept.
struct queue {
    struct object object;
    weir_queue *lanes[LAYER_LANES];
    uint32_t lane_count; // that exist
    uint32_t turn;
    weir_queue *control; // markers and barriers of a queue that keeps no order; made when needed
    cl_device_id device;
    bool unordered;
    bool profiled; // by the program's wish
    uint32_t number;
    uint32_t deferred;          // commands that wait for user events
    uint32_t deferred_barriers; // those of them that later ones come after
    struct weir_event barrier;  // that new lanes come after; sequence 0: none
};

struct memory {
    struct object object;
    struct memory *parent; // whose bytes it has, or NULL
    size_t offset;         // of its first byte in the parent's
    size_t size;
    weir_buffer *buffer; // the parent's own, if it has one
    bool assumed;        // its bytes may be used in ways that are not seen
    // Of images: how many bytes lead from an element, a row, a slice to the next.
    size_t element; // 0: no image
    size_t row, slice;
    struct mapping *mappings;
};

// A part that the host has, in bytes of the memory.
struct mapping {
    struct mapping *next;
    const void *pointer;
    struct weir_note_range range;
};

enum event_state {
    EVENT_WAITING,   // for user events, or is one: Weir does not have it yet
    EVENT_SUBMITTED, // `point` is its end
    EVENT_SET,       // nothing is known that it comes after
    EVENT_FAILED,
};

struct event {
    struct object object;
    enum event_state state;
    struct weir_event point;
    bool profiled;    // the program may ask for its times
    uint64_t note;    // the number of its command's note, and the queue; 0: none
    weir_queue *lane; //
};

struct argument {
    size_t size;
    const void *svm; // set by clSetKernelArgSVMPointer
    bool given;      // not local memory
    union {
        uint64_t bits; // of up to 8 bytes
        unsigned char bytes[TRIAL_VALUE_BYTES];
    };
};

// What a kernel does with a pointer or an image.
struct parameter {
    uint8_t access; // of weir_access; 0: it is neither
    bool known;     // `access` is what may be used at most; else the kernel may do anything
};

struct kernel {
    struct object object;
    const char *name; // kept for the process
    uint32_t count;
    struct argument *arguments;
    struct parameter *parameters;
    const void **pointers; // of clSetKernelExecInfo
    size_t pointer_count;
};

struct program {
    struct object object;
    char *kernels; // what clang says of them; NULL: it was not asked
    char *source;  // NULL: none was seen
    char *options; // of its build
};

// With the lock held: the object of a handle, or NULL.
struct object *object_find(enum object_kind kind, const void *handle);
// Adds one with a reference of the program's; NULL if out of memory. It is zero apart from that.
void *object_add(enum object_kind kind, const void *handle, size_t size);
// Makes one that has no handle yet, and is held once; and gives it one.
void *object_make(enum object_kind kind, size_t size);
void object_name(struct object *object, const void *handle);
// Before the driver's own release: the handle may be another object's from then on.
void object_release(enum object_kind kind, const void *handle);
void object_hold(struct object *object);
void object_drop(struct object *object);

// Destroys what all objects have of Weir's, at the end; they may still be dropped.
void objects_finish(void);

// The queue, which need not be known yet; NULL if out of memory.
struct queue *queue_find(cl_command_queue handle);
struct memory *memory_find(cl_mem handle);
// That of a kernel's argument, or NULL.
struct memory *argument_memory(const struct argument *argument);
// The shared virtual memory that has the address, and its offset there.
struct memory *memory_at(const void *address, size_t *out_offset);
// Adds what the program has made; `written`: it has contents from the beginning. NULL if out of memory. Without a place it
// was made elsewhere: by an extension, or from an object of OpenGL.
struct memory *memory_add(cl_mem handle, bool written, const struct place *place);
// The offset of bytes in the buffer that they lie in, which is that of the outermost parent.
struct memory *memory_root(struct memory *memory, size_t *offset);
void svm_add(const void *address, size_t size, const struct place *place);
void svm_remove(const void *address);

// mirror.c

enum {
    COMMAND_USES = 64
};

// What orders commands of a queue.
enum order {
    ORDER_WORK,    // the queue's own order
    ORDER_MARKER,  // it comes after its waits, or without any after all that the queue has
    ORDER_BARRIER, // and before all that comes
};

// What Weir gets of a command.
struct task {
    struct task *next; // of those that wait for user events
    const char *name;
    struct place place;
    enum weir_note_work work;
    enum order order;
    struct queue *queue; // held, as all that follow
    struct event *event; // NULL: not needed
    uint32_t wait_count;
    uint32_t use_count;
    struct event **waits;
    struct memory **memories; // of the ranges, the outermost
    struct weir_note_range *ranges;
};

// A command of the driver's, from before its call until after.
struct command {
    bool on;       // it is followed
    bool blocking; // Weir has it before the driver
    struct task task;
    struct trial *found; // of a launch that was run on copies
    cl_event *out;       // the program's
    cl_event own;        // the layer's, for times
    uint64_t called_ns;  // with times: before the call
    struct event *few[8];
    struct memory *memories[COMMAND_USES];
    struct weir_note_range ranges[COMMAND_USES];
};

// The command goes to Weir, or waits for user events. With the lock held.
void mirror_submit(const struct task *task);
// object_hold() or object_drop() of all that the task names.
void task_each_object(const struct task *task, void (*act)(struct object *object));
// The host knows that the event is complete. With the lock held.
void mirror_learn_event(const struct event *event, const struct place *place);
// The same without the lock.
void mirror_learn(cl_event handle, const struct place *place);
// A user event has got its status: what waits for it goes to Weir. With the lock held.
void mirror_set(struct event *event, bool failed);

// access.c

// What is known of the kernel's parameters, from the program and the driver. Without the lock; the kernel is new. `program`
// is held, or NULL.
void access_of_kernel(struct kernel *kernel, cl_kernel handle, struct program *program);
// What is kept on disk of the kernels of a binary, or NULL; and keeps it, since the program is asked for its binaries.
// Without the lock; the program is held.
char *access_of_binary(const void *binary, size_t size);
void access_keep_binaries(struct program *program, cl_program handle,
                          unsigned char *const *binaries, size_t count);

// verify.c

struct launch {
    cl_kernel kernel;
    cl_uint dimensions;
    const size_t *offset, *global, *local;
    cl_uint wait_count;
    const cl_event *waits;
};

// Runs a launch on copies, before the driver gets it. Without the lock. NULL if that was not asked for, or is not possible.
//
// Ownership: the caller's, to be freed with free().
struct trial *verify_launch(cl_command_queue queue, const struct launch *launch);
// A range of the trial's, of a buffer of the launch.
struct weir_note_range verify_range(const struct trial_range *from);
// At the end.
void verify_finish(void);

// child.c

enum {
    CHILD_KEPT = TRIAL_FILE
};

// Starts a program with these descriptors as its standard streams, or nowhere for -1; messages go nowhere. `kept` is its
// descriptor CHILD_KEPT. -1 if it cannot be started.
pid_t child_start(char **arguments, int input, int output, int kept);
// Waits for its end, and kills it at the deadline. Returns whether it ended with 0.
bool child_wait(pid_t child, uint64_t deadline_ns);

// calls_commands.c

// Whether rows and slices lie inside of memory of that size, so that Weir takes them.
bool command_fits(const struct weir_note_range *range, size_t size);

// calls_*.c

#define CALLER __builtin_return_address(0)

#define LAYER_DECLARE(name, ...) __typeof__(*((const cl_icd_dispatch *)NULL)->name) layer_##name;
LAYER_ENTRIES(LAYER_NOTHING, LAYER_DECLARE, LAYER_DECLARE, LAYER_DECLARE)
#undef LAYER_DECLARE

#endif
