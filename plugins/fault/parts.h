// Shared by the files of the plugin.
//
//   module.c   keys, the section and what the environment replaces of it, the ops table, and a link's life
//   submit.c   which operations are chosen, their numbers, and the list; what becomes of those that get a fault;
//              host calls that the plugin puts into queues
//
// Each chosen operation of a runtime gets a number, counted from 1, and the number alone decides
// whether it gets a fault: a run whose calls come in the same order gets the same faults.
//
// No locks. What a queue keeps is changed only by its submits, which are never concurrent.
#ifndef WEIR_PLUGINS_FAULT_PARTS_H
#define WEIR_PLUGINS_FAULT_PARTS_H

#include <stdatomic.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

enum {
    FAULT_GARBAGE = -4711, // no status of Weir's
};

// What can get a fault: operations and creations.
enum fault_target {
    FAULT_NOTHING,
    FAULT_COPY,
    FAULT_FILL,
    FAULT_LAUNCH,
    FAULT_HOST_CALL,
    FAULT_RECORD,
    FAULT_WAIT,
    FAULT_GRAPH,
    FAULT_NATIVE,
    FAULT_COLLECTIVE,
    FAULT_NEW_DEVICE,
    FAULT_NEW_QUEUE,
    FAULT_NEW_BUFFER,
    FAULT_NEW_PROGRAM,
    FAULT_NEW_KERNEL,
    FAULT_NEW_GRAPH,
    FAULT_TARGETS,
};

// What happens to it.
enum fault_kind {
    FAULT_REFUSE,
    FAULT_FAIL,
    FAULT_SLOW,
    FAULT_LOSE,
    FAULT_GARBAGE_STATUS,
    FAULT_MEMORY,
    FAULT_KINDS,
};

// In the order of the key table.
enum fault_key {
    FAULT_KEY_FAULT,
    FAULT_KEY_AT,
    FAULT_KEY_ONE_IN,
    FAULT_KEY_SEED,
    FAULT_KEY_TARGETS,
    FAULT_KEY_QUEUE,
    FAULT_KEY_LABEL,
    FAULT_KEY_DELAY,
    FAULT_KEY_LIST,
    FAULT_KEY_COUNT,
};

extern const char *const fault_kind_names[FAULT_KINDS + 1]; // ended by NULL
extern const char *const fault_target_names[FAULT_TARGETS];

// The link's state.
struct fault {
    const struct weir_link *link;
    const struct weir_setting *const
        *settings; // by enum fault_key; 0 and "" choose nothing, or any
    enum fault_kind kind;
    uint32_t targets;           // a bit for each
    char remedy[192];           // the options of `weir fault` that choose the same operations
    atomic_uint_fast64_t count; // of chosen operations
    // Indexes of devices that were lost, below 64, for a second opening.
    atomic_uint_fast64_t lost;
    int list; // a descriptor, or -1
};

enum fault_loss {
    FAULT_PRESENT,
    FAULT_LEAVING, // a thread writes the cause
    FAULT_LOST,
};

struct fault_device {
    size_t index;
    atomic_int loss;         // enum fault_loss
    struct weir_error cause; // of the loss
};

// A host call that the plugin has put into a queue, or around the user's.
struct fault_call {
    struct fault_call *next;
    const struct fault *fault;
    uint64_t number;
    enum fault_target target;
    atomic_bool done;
    weir_host_function function; // the user's
    void *user;
};

struct fault_queue {
    struct fault_device *device;
    struct fault_call *calls; // those that may still run
    // Numbers of calls: the last one that has been submitted, and the last one up to which none runs any more.
    atomic_uint_fast64_t submitted;
    atomic_uint_fast64_t finished;
};

WEIR_STATE_OF(fault_of, struct fault)
WEIR_DATA_OF(fault_device_of, struct fault_device, weir_device)
WEIR_DATA_OF(fault_queue_of, struct fault_queue, weir_queue)
// A program keeps a pointer to its device's.
WEIR_DATA_OF(fault_program_device, struct fault_device, weir_program)

static inline uint64_t fault_number(const struct fault *fault, enum fault_key key)
{
    return (uint64_t)fault->settings[key]->integer;
}

static inline const char *fault_text(const struct fault *fault, enum fault_key key)
{
    return fault->settings[key]->text;
}

// module.c

extern const struct weir_key fault_keys[FAULT_KEY_COUNT];

// submit.c

// An operation or a creation, as it is asked about.
struct fault_candidate {
    enum fault_target target;
    const char *queue;     // its label, or NULL
    const char *labels[2]; // of what it uses or creates, or NULL
    const char *file;      // or NULL
    int line;
};

// Whether it gets the fault; its number is in `*out_number` then. The list and the log are told.
bool fault_choose(struct fault *fault, const struct fault_candidate *candidate,
                  uint64_t *out_number);

// Reports the fault as an error: `what` is a noun, such as "a refusal". Returns `status`.
weir_status fault_report(const struct fault *fault, weir_status status, const char *what,
                         enum fault_target target, uint64_t number);

// Frees the calls of the queue that have run; `all`: none of them runs any more.
void fault_calls_collect(const struct weir_link *link, struct fault_queue *queue, bool all);

// module.c

// WEIR_OK, or the first cause of the device's loss as the thread's error.
weir_status fault_loss(const struct weir_link *link, const struct fault_device *device);

// submit.c

weir_status fault_queue_submit(const struct weir_link *link, weir_queue *queue,
                               const struct weir_operation *operation);

#endif
