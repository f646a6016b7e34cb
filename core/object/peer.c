// See the header. The list of pairs is short, so it is searched linearly, under one
// lock, which is a leaf.
#include "core/object/device.h"

#include <pthread.h>
#include <sched.h>

#include "core/object/buffer.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

struct weir__peer {
    struct weir__peer *next;
    weir_device *owner; // of the buffers
    weir_device *user;  // whose queues may use them
    uint32_t given_out;
};

// The first pair of the owner in a part of the list. Under the lock.
static struct weir__peer *find_owner(struct weir__peer *at, const weir_device *owner)
{
    while (at && at->owner != owner)
        at = at->next;
    return at;
}

// Under the lock.
static bool is_noted(struct weir__peer *first, const weir_device *user, const weir_device *owner)
{
    struct weir__peer *at = find_owner(first, owner);
    while (at && at->user != user)
        at = find_owner(at->next, owner);
    return at != NULL;
}

static bool note(weir_device *user, weir_device *owner)
{
    bool noted = true;
    struct weir__shared *shared = user->shared;
    weir_lock_take(&shared->peers_lock);
    if (!is_noted(shared->peers, user, owner)) {
        struct weir__peer *pair = weir__allocate(sizeof *pair);
        noted = pair != NULL;
        if (pair) {
            *pair = (struct weir__peer){.next = shared->peers, .owner = owner, .user = user};
            shared->peers = pair;
            atomic_store(&owner->has_peers, true);
        }
    }
    weir_lock_release(&shared->peers_lock);
    return noted;
}

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
    weir_status status = ask(device, other, out_allowed);
    if (status < 0 || !*out_allowed || note(device, other))
        return status;
    *out_allowed = false;
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to note two devices as peers");
}

struct weir__peer *weir__peer_next(weir_device *owner, struct weir__peer *peer)
{
    if (!peer && !atomic_load(&owner->has_peers))
        return NULL;
    struct weir__shared *shared = owner->shared;
    weir_lock_take(&shared->peers_lock);
    struct weir__peer *next = find_owner(peer ? peer->next : shared->peers, owner);
    if (next)
        next->given_out++;
    if (peer)
        peer->given_out--;
    weir_lock_release(&shared->peers_lock);
    return next;
}

weir_device *weir__peer_user(const struct weir__peer *peer)
{
    return peer->user;
}

// Takes the device's pairs off the list; false if one of them is in use by
// weir__peer_next().
static bool take_pairs(const weir_device *device, struct weir__peer **out_taken)
{
    struct weir__shared *shared = device->shared;
    bool all = true;
    weir_lock_take(&shared->peers_lock);
    for (struct weir__peer **at = &shared->peers; *at;) {
        struct weir__peer *pair = *at;
        const bool wanted = pair->owner == device || pair->user == device;
        if (!wanted || pair->given_out > 0) {
            all = all && !wanted;
            at = &pair->next;
            continue;
        }
        *at = pair->next;
        pair->next = *out_taken;
        *out_taken = pair;
    }
    weir_lock_release(&shared->peers_lock);
    return all;
}

void weir__peer_forget(weir_device *device)
{
    struct weir__peer *taken = NULL;
    while (!take_pairs(device, &taken))
        sched_yield();
    while (taken) {
        struct weir__peer *next = taken->next;
        weir__release(taken);
        taken = next;
    }
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
