// See the header.
#include "core/object/device.h"

#include <sched.h>

#include "core/object/buffer.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// Asks the chain about two devices of one runtime.
static weir_status ask(weir_device *device, weir_device *other, bool *out_peers)
{
    *out_peers = false;
    return device->first->ops->device_peer(device->first, device, other, out_peers);
}

weir_status weir__peer_allow(weir_device *device, weir_device *other, bool *out_allowed)
{
    *out_allowed = false;
    if (device->runtime != other->runtime)
        return WEIR_OK;
    const weir_status status = ask(device, other, out_allowed);
    if (*out_allowed)
        atomic_store(&other->has_peers, true);
    return status;
}

weir_device *weir__peer_next(weir_device *owner, weir_device *user)
{
    struct weir__shared *shared = owner->shared;
    if (!user && !atomic_load(&owner->has_peers))
        return NULL;
    weir_lock_take(&shared->devices_lock);
    weir_device *next = user ? user->next : shared->devices;
    while (next && (next == owner || next->closing))
        next = next->next;
    if (next)
        next->visits++;
    if (user)
        user->visits--;
    weir_lock_release(&shared->devices_lock);
    return next;
}

void weir__peer_forget(weir_device *device)
{
    struct weir__shared *shared = device->shared;
    weir_lock_take(&shared->devices_lock);
    device->closing = true;
    while (device->visits > 0) {
        weir_lock_release(&shared->devices_lock);
        sched_yield();
        weir_lock_take(&shared->devices_lock);
    }
    weir_lock_release(&shared->devices_lock);
}

bool weir__peer_can(weir_device *device, weir_device *other)
{
    bool peers = false;
    return device == other ||
           (device->runtime == other->runtime && ask(device, other, &peers) == WEIR_OK && peers);
}

bool weir_device_can_peer(weir_device *device, weir_device *other)
{
    return WEIR_IS_ALIVE(device) && WEIR_IS_ALIVE(other) && !atomic_load(&weir__forked) &&
           weir__peer_can(device, other);
}

bool weir_device_can_reach(weir_device *device, weir_device *other)
{
    bool reaches = false;
    if (!weir_device_can_peer(device, other))
        return false;
    return device == other || (device->first->ops->device_reach(device->first, device, other, NULL,
                                                                &reaches) == WEIR_OK &&
                               reaches);
}
