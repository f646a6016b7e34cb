// What queues, buffers, programs and kernels share: the slots for their links,
// membership of a device, and destruction that is put off while work uses them.
//
// Deferred destruction needs no bookkeeping on the submit path. When an object
// is destroyed, every busy queue of its device, and of its peers, gets a record (or
// has one at its end already); when all of these are complete, nothing can use the
// object any more. Until then it waits in the device's list of retired objects, which is
// looked through whenever something is created, destroyed, synced or trimmed.
//
// What a graph uses waits there until the graph is gone, and only then learns which
// queues are busy.
#ifndef WEIR_CORE_OBJECT_OBJECT_H
#define WEIR_CORE_OBJECT_OBJECT_H

#include <stdatomic.h>

#include <weir/module/module.h>

#define WEIR__LINE_BYTES 64 // of a cache
#define WEIR__SLOTS_INSIDE 4

enum weir__kind {
    WEIR__QUEUE = 1,
    WEIR__BUFFER,
    WEIR__PROGRAM,
    WEIR__KERNEL,
    WEIR__POOL,
    WEIR__GRAPH,
};

// The first member of every object but the device. What operations read of it is in one
// cache line with the slots of a chain of usual length; what a type adds begins another.
struct weir__member {
    _Alignas(WEIR__LINE_BYTES) struct weir_object object;
    weir_device *device;
    void *slots[WEIR__SLOTS_INSIDE];
    enum weir__kind kind;
    bool internal;                 // the library's own; does not keep a device from closing
    struct weir__member *previous; // the device's list: of live objects, or,
    struct weir__member *next;     // after destruction, of retired ones
    bool marked;                   // retired: the frontier stands
    atomic_uint uses;              // by captures and graphs, which keep it from going
    struct weir_event *frontier;   // to be complete before it may go
    uint32_t frontier_count;
    void *block; // the memory that the object lies in
};

// A zeroed object of `size` bytes, which begins with a weir__member, with slots
// for the device's chain and a copy of `label`; or NULL.
void *weir__member_allocate(weir_device *device, enum weir__kind kind, size_t size,
                            const char *label);

// Frees an object that never was, or no longer is, on a list.
void weir__member_free(struct weir__member *member);

// Puts a complete object on its device's list of live ones.
void weir__member_enlist(struct weir__member *member);

// Takes it off that list.
void weir__member_delist(struct weir__member *member);

// Takes it off that list and destroys it as soon as no work of the
// device uses it: at once if the device is idle. Never waits for the device.
void weir__member_retire(struct weir__member *member);

// Destroys retired objects of the device that nothing uses any more. It stops at
// the eighth that is still used, so that no call pays for a long list; those
// looked at go to its end.
void weir__device_reap(weir_device *device);

// The same, but looks at every one.
void weir__device_reap_all(weir_device *device);

// The next queue of the device with a reference taken, or NULL; drops the one on
// `queue`, which kept it on the list. NULL starts. Queues that come to the list
// meanwhile stand before its start.
weir_queue *weir__device_next_queue(weir_device *device, weir_queue *queue);

// An object id; they start at 1 and are never used again.
uint64_t weir__object_next_id(void);

#endif
