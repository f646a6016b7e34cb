// Destruction of objects that work may still use.
//
// It needs no bookkeeping on the submit path. When an object is destroyed, its frontier is
// made: every busy queue of its device, and of the device's peers, gets a record, unless its
// last operation is one. When all of these are complete, nothing can use the object any more.
// Until then the object stays on the device's list of retired objects, which is checked at
// every create, destroy, sync and trim.
//
// An object that a graph uses gets its frontier after the graph was destroyed.
#ifndef WEIR_CORE_QUEUE_RETIRE_H
#define WEIR_CORE_QUEUE_RETIRE_H

#include "core/object/object.h"

// Removes the object from its device's list of live objects and finalizes it as soon as no
// work uses it: at once if the device is idle. Never waits for the device.
//
// Threads: safe; the caller holds no lock.
void weir__member_retire(struct weir__member *member);

// The same without a call of the chain: the next check of the list finds out whether work uses it.
void weir__member_retire_later(struct weir__member *member);

// Finalizes retired objects of the device that nothing uses any more. It stops at the eighth
// object that is still used, so that no call pays for a long list; each checked object moves
// to the end of the list.
void weir__device_reap(weir_device *device);

// The same, but checks every object.
void weir__device_reap_all(weir_device *device);

// The next queue of the device, with a reference taken, or NULL; drops the reference on
// `queue`, which kept it on the list. NULL starts. Queues that are created meanwhile come
// before the first one and are not visited.
weir_queue *weir__device_next_queue(weir_device *device, weir_queue *queue);

#endif
