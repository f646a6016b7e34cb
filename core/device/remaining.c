// What keeps a device from being closed.
#include <stdio.h>

#include "core/buffer/buffer.h"
#include "core/device/remaining.h"
#include "core/object/device.h"
#include "core/support/error.h"
#include "core/support/locks.h"

// The user's objects that still exist, as text: all but the first one, as far as there is room.
struct remaining {
    struct weir__member *first;
    uint32_t count;
    char others[512];
    size_t used;
    uint32_t untold;
};

static bool is_users(struct weir__member *member)
{
    return weir__buffer_is_only_shared(member) || !member->internal;
}

static void tell_one(struct remaining *remaining, const struct weir__member *member)
{
    const char *label = member->object.label;
    const size_t room = sizeof remaining->others - remaining->used - sizeof ", 4294967295 more";
    const int written = label[0]
                            ? snprintf(remaining->others + remaining->used, room, ", the %s '%s'",
                                       member->class->name, weir__label_shown(label))
                            : snprintf(remaining->others + remaining->used, room,
                                       ", a %s without a label", member->class->name);
    if (written < 0 || (size_t)written >= room) {
        remaining->others[remaining->used] = '\0';
        remaining->untold++;
        return;
    }
    remaining->used += (size_t)written;
}

static void gather_remaining(weir_device *device, struct remaining *remaining)
{
    for (struct weir__member *member = device->live; member; member = member->next) {
        if (!is_users(member))
            continue;
        if (remaining->count++ == 0)
            remaining->first = member;
        else
            tell_one(remaining, member);
    }
    if (remaining->untold > 0)
        snprintf(remaining->others + remaining->used, sizeof remaining->others - remaining->used,
                 ", %u more", remaining->untold);
}

static weir_status fail_close(const weir_device *device, const struct remaining *remaining)
{
    struct weir__member *first = remaining->first;
    const char *label = first->object.label;
    const char *also = remaining->count > 1 ? "; so do" : "";
    const char *others = remaining->count > 1 ? remaining->others + 1 : ""; // without the comma
    if (weir__buffer_is_only_shared(first))
        return weir__fail_at(NULL, 0, device->info.name, WEIR_ERROR_INVALID,
                             "let the tensor's user call its deleter first",
                             "weir_device_close: a DLPack tensor still holds the buffer '%s'",
                             weir__label_shown(label));
    if (label[0])
        return weir__fail_at(NULL, 0, device->info.name, WEIR_ERROR_INVALID,
                             remaining->count > 1 ? "destroy them first" : "destroy it first",
                             "weir_device_close: the %s '%s' still exists%s%s", first->class->name,
                             weir__label_shown(label), also, others);
    return weir__fail_at(NULL, 0, device->info.name, WEIR_ERROR_INVALID,
                         remaining->count > 1 ? "destroy them first; params.label gives names"
                                              : "destroy it first; params.label gives a name",
                         "weir_device_close: a %s without a label still exists%s%s",
                         first->class->name, also, others);
}

weir_status weir__device_refuse_close(weir_device *device)
{
    struct remaining remaining = {.count = 0};
    weir_status status = WEIR_OK;
    weir_lock_take(&device->lock);
    gather_remaining(device, &remaining);
    if (remaining.count > 0)
        status = fail_close(device, &remaining);
    weir_lock_release(&device->lock);
    return status;
}
