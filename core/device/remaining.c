// What keeps a device from being closed.
#include <stdio.h>
#include <string.h>

#include "core/buffer/buffer.h"
#include "core/device/remaining.h"
#include "core/object/device.h"
#include "core/support/error.h"
#include "core/support/locks.h"

// The user's objects that still exist, as text: all but the first one, as far as there is room.
struct remaining {
    struct weir__member *first;
    uint32_t count;
    char others[440];
    size_t used;
    uint32_t untold;
};

enum {
    ONE_SIZE = 160,
    PLACE_SIZE = 120
};

static bool is_users(struct weir__member *member)
{
    return weir__buffer_is_only_shared(member) || !member->internal;
}

// "main.c:12"; of a long path the end, which tells one file from another. "" if it is not known.
static const char *place_of(const struct weir__member *member, char text[PLACE_SIZE])
{
    const int room = PLACE_SIZE - 24;
    const size_t length = member->file ? strlen(member->file) : 0;
    text[0] = '\0';
    if (length > (size_t)room)
        snprintf(text, PLACE_SIZE, "…%s:%d", member->file + length - (size_t)room, member->line);
    else if (length > 0)
        snprintf(text, PLACE_SIZE, "%s:%d", member->file, member->line);
    return text;
}

// "the buffer 'h'".
static void describe(const struct weir__member *member, char text[ONE_SIZE])
{
    const char *label = member->object.label;
    if (label[0])
        snprintf(text, ONE_SIZE, "the %s '%s'", member->class->name, weir__label_shown(label));
    else
        snprintf(text, ONE_SIZE, "a %s without a label", member->class->name);
}

static void tell_one(struct remaining *remaining, const struct weir__member *member)
{
    const size_t room = sizeof remaining->others - remaining->used - sizeof ", 4294967295 more";
    char text[ONE_SIZE], place[PLACE_SIZE];
    describe(member, text);
    place_of(member, place);
    const int written = snprintf(remaining->others + remaining->used, room, ", %s%s%s%s", text,
                                 place[0] ? " (" : "", place, place[0] ? ")" : "");
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
    char text[ONE_SIZE], place[PLACE_SIZE];
    describe(first, text);
    place_of(first, place);
    const bool several = remaining->count > 1;
    const char *remedy = several ? "destroy them first" : "destroy it first";
    if (!label[0])
        remedy = several ? "destroy them first; params.label gives names"
                         : "destroy it first; params.label gives a name";
    return weir__fail_at(NULL, 0, device->info.name, WEIR_ERROR_INVALID, remedy,
                         "weir_device_close: %s still exists%s%s%s%s%s", text,
                         place[0] ? " (created at " : "", place, place[0] ? ")" : "", also, others);
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
