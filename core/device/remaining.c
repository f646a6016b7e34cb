// What keeps a device from being closed.
#include <stdio.h>

#include "core/buffer/buffer.h"
#include "core/device/remaining.h"
#include "core/object/device.h"
#include "core/object/left.h"
#include "core/support/error.h"
#include "core/support/locks.h"

enum {
    NAME_SIZE = 160,
    TEXT_SIZE = NAME_SIZE + WEIR__PLACE_SIZE + sizeof " of a DLPack tensor"
};

// The user's objects that still exist.
struct remaining {
    struct weir__left left;
    char first[TEXT_SIZE]; // "the buffer 'h' still exists (created at a.c:3)"
    bool first_is_shared;  // a tensor's
    bool first_has_label;
};

static bool is_users(struct weir__member *member)
{
    return weir__buffer_is_only_shared(member) || !member->internal;
}

static void name_one(const struct weir__member *member, char name[NAME_SIZE])
{
    const char *label = member->object.label;
    if (label[0])
        snprintf(name, NAME_SIZE, "the %s '%s'", member->class->name, weir__label_shown(label));
    else
        snprintf(name, NAME_SIZE, "the %s without a label", member->class->name);
}

static void tell_first(struct remaining *remaining, const struct weir__member *member,
                       bool is_shared, const char *name, const char *place)
{
    remaining->first_is_shared = is_shared;
    remaining->first_has_label = member->object.label[0] != '\0';
    if (is_shared)
        snprintf(remaining->first, sizeof remaining->first, "a DLPack tensor still holds %s", name);
    else
        snprintf(remaining->first, sizeof remaining->first, "%s still exists%s", name, place);
}

static void tell_one(struct remaining *remaining, struct weir__member *member)
{
    const bool is_first = remaining->left.count == 0;
    const bool is_shared = weir__buffer_is_only_shared(member);
    char name[NAME_SIZE], place[WEIR__PLACE_SIZE], text[TEXT_SIZE];
    name_one(member, name);
    weir__member_created(member, place);
    if (is_first)
        tell_first(remaining, member, is_shared, name, place);
    snprintf(text, sizeof text, "%s%s%s", name, is_shared ? " of a DLPack tensor" : "", place);
    weir__left_add(&remaining->left, text, !is_first);
}

static void gather(weir_device *device, struct remaining *remaining)
{
    for (struct weir__member *member = device->live; member; member = member->next)
        if (is_users(member))
            tell_one(remaining, member);
    weir__left_end(&remaining->left);
}

static weir_status fail_close(const weir_device *device, const struct remaining *remaining)
{
    const bool several = remaining->left.count > 1;
    const char *also = !several                     ? ""
                       : remaining->first_is_shared ? "; these exist too:"
                                                    : "; so do";
    const char *others = several ? remaining->left.list + 1 : ""; // without the comma
    const char *remedy = several ? "destroy them first" : "destroy it first";
    if (remaining->first_is_shared)
        remedy = several ? "destroy them, and let the tensor's user call its deleter, first"
                         : "let the tensor's user call its deleter first";
    else if (!remaining->first_has_label)
        remedy = several ? "destroy them first; params.label gives names"
                         : "destroy it first; params.label gives a name";
    return weir__fail_at(NULL, 0, device->info.name, WEIR_ERROR_INVALID, remedy,
                         "weir_device_close: %s%s%s", remaining->first, also, others);
}

weir_status weir__device_refuse_close(weir_device *device)
{
    struct remaining remaining = {.first_is_shared = false};
    weir_lock_take(&device->lock);
    gather(device, &remaining);
    weir_lock_release(&device->lock);
    weir__left_log(&remaining.left, "weir_device_close: ");
    return remaining.left.count > 0 ? fail_close(device, &remaining) : WEIR_OK;
}
