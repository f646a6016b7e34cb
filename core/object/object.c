// See the header. A device's lists are guarded by its lock.
#include "core/object/object.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

uint64_t weir__object_next_id(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void *weir__member_allocate(weir_device *device, const struct weir__class *class, size_t size,
                            const char *label)
{
    const bool inside = device->chain->count <= WEIR__SLOTS_INSIDE;
    size_t slots = inside ? 0 : device->chain->count * sizeof(void *);
    char shown[WEIR__LABEL_SIZE];
    const char *text = label ? label : "";
    if (!class->is_named) {
        weir_text_escape(shown, sizeof shown, text, "");
        text = shown;
    }
    char *block = weir__allocate(WEIR__LINE_BYTES - 1 + size + slots + strlen(text) + 1);
    if (!block)
        return NULL;

    char *line = block + (-(uintptr_t)block & (WEIR__LINE_BYTES - 1));
    struct weir__member *member = (struct weir__member *)(void *)line;
    char *copy = line + size + slots;
    memcpy(copy, text, strlen(text) + 1);
    member->block = block;
    // A type begins with a member, so its size is a multiple of the line's.
    member->object.data = inside ? member->slots : (void **)(void *)(line + size);
    member->object.label = copy;
    member->object.id = weir__object_next_id();
    member->device = device;
    member->class = class;
    return line;
}

void weir__member_free(struct weir__member *member)
{
    weir__release(member->frontier);
    if (!weir__debug_keep(member, member->block))
        weir__release(member->block);
}

void weir__member_insert(struct weir__member **list, struct weir__member *member)
{
    member->previous = NULL;
    member->next = *list;
    if (*list)
        (*list)->previous = member;
    *list = member;
}

void weir__member_take(struct weir__member **list, struct weir__member *member)
{
    if (member->previous)
        member->previous->next = member->next;
    else
        *list = member->next;
    if (member->next)
        member->next->previous = member->previous;
}

void weir__member_enlist(struct weir__member *member)
{
    weir_device *device = member->device;
    weir_lock_take(&device->lock);
    weir__member_insert(&device->live, member);
    weir_lock_release(&device->lock);
    weir__debug_begin(member, member->class->name, member->object.label);
}

void weir__member_place(struct weir__member *member, const char *file, int line)
{
    weir_device *device = member->device;
    weir_lock_take(&device->lock);
    member->file = weir__file_name(file);
    member->line = line;
    weir_lock_release(&device->lock);
    weir__debug_place(member, file, line);
}

// The end of a path tells one file from another.
void weir__member_created(const struct weir__member *member, char text[WEIR__PLACE_SIZE])
{
    const size_t room = WEIR__PLACE_SIZE - sizeof " (created at …:2147483647)";
    const size_t length = member->file ? strlen(member->file) : 0;
    text[0] = '\0';
    if (length > 0)
        snprintf(text, WEIR__PLACE_SIZE, " (created at %s%s:%d)", length > room ? "…" : "",
                 member->file + (length > room ? length - room : 0), member->line);
}

bool weir__buffer_holds(const weir_buffer *buffer, size_t offset, size_t size)
{
    return offset <= buffer->size && size <= buffer->size - offset;
}

weir_status weir__buffer_check_range(const weir_buffer *buffer, const struct weir__role *role,
                                     size_t offset, size_t size, const char *file, int line)
{
    const char *label = buffer->member.object.label;
    if (weir__buffer_holds(buffer, offset, size))
        return WEIR_OK;
    char call[192], place[WEIR__PLACE_SIZE];
    snprintf(call, sizeof call, "%s%s%s", role->call, role->name ? ": " : "",
             role->name ? role->name : "");
    if (buffer->lender && buffer->size == 0)
        return buffer->lender->refuse_freed(buffer, call, file, line);
    if (atomic_load(&buffer->abandoned))
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "destroy a buffer after the last call that uses it",
                             "%s: the buffer has been destroyed; only the work that was submitted "
                             "before still uses its memory",
                             call);
    weir__member_created(&buffer->member, place);
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                         "offset and size count bytes; give less, or create a larger buffer",
                         "%s: %zu bytes at offset %zu do not lie in a buffer of %zu bytes%s", call,
                         size, offset, buffer->size, place);
}

void weir__member_delist(struct weir__member *member)
{
    weir_device *device = member->device;
    weir_lock_take(&device->lock);
    weir__member_take(&device->live, member);
    weir_lock_release(&device->lock);
    weir__debug_went(member);
}

void weir__shared_init(struct weir__shared *shared)
{
    weir_lock_init(&shared->walk_lock, &weir__locks[WEIR__LOCK_WALK]);
    weir_lock_init(&shared->peers_lock, &weir__locks[WEIR__LOCK_PEERS]);
    weir_lock_init(&shared->devices_lock, &weir__locks[WEIR__LOCK_DEVICES]);
    weir_lock_init(&shared->captures_lock, &weir__locks[WEIR__LOCK_CAPTURES]);
}

void weir__shared_finish(struct weir__shared *shared)
{
    weir_lock_finish(&shared->captures_lock);
    weir_lock_finish(&shared->devices_lock);
    weir_lock_finish(&shared->peers_lock);
    weir_lock_finish(&shared->walk_lock);
}

// The open devices of a runtime, and what keeps one from being closed, as text.

// The lines are kept until no lock is held, since a log callback may call Weir.

// Room for ", 4294967295 more; the log (weir_log_set) has all".
enum {
    END_SIZE = 64,
    LINE_SIZE = 400,
    LINES_FIRST = 4096
};

// False: no memory.
static bool make_room(struct weir__left *left, size_t size)
{
    if (left->lines_size - left->lines_used >= size)
        return true;
    const size_t larger = left->lines_size > 0 ? 2 * left->lines_size : LINES_FIRST;
    char *lines = weir__allocate(larger);
    if (!lines)
        return false;
    if (left->lines_used > 0)
        memcpy(lines, left->lines, left->lines_used);
    weir__release(left->lines);
    left->lines = lines;
    left->lines_size = larger;
    return true;
}

static void add_line(struct weir__left *left, const char *text)
{
    const size_t size = strlen(text) + 1;
    if (left->lines_cut || !make_room(left, size)) {
        left->lines_cut = true;
        return;
    }
    memcpy(left->lines + left->lines_used, text, size);
    left->lines_used += size;
}

void weir__left_add(struct weir__left *left, const char *text, bool listed)
{
    const size_t room = sizeof left->list - left->used - END_SIZE;
    left->count++;
    add_line(left, text);
    if (!listed)
        return;
    if (left->untold > 0 || strlen(text) + sizeof ", " > room)
        left->untold++;
    else
        weir_text_append(left->list, sizeof left->list, &left->used, ", %s", text);
}

void weir__left_end(struct weir__left *left)
{
    if (left->untold > 0)
        weir_text_append(left->list, sizeof left->list, &left->used, ", %u more%s", left->untold,
                         left->lines_cut ? "" : "; the log (weir_log_set) has all");
}

void weir__left_log(struct weir__left *left, const char *prefix)
{
    if (left->untold > 0)
        for (size_t at = 0; at < left->lines_used; at += strlen(left->lines + at) + 1) {
            char line[LINE_SIZE];
            snprintf(line, sizeof line, "%s%s still exists", prefix, left->lines + at);
            weir__log(WEIR_LOG_ERROR, "core", line);
        }
    weir__release(left->lines);
    left->lines = NULL;
}

// The list is guarded by its lock.

static const char *name_of(const weir_device *device)
{
    return device->object.label[0] ? device->object.label : device->info.name;
}

void weir__opened_add(weir_device *device)
{
    struct weir__shared *shared = device->shared;
    weir_lock_take(&shared->devices_lock);
    device->next = shared->devices;
    shared->devices = device;
    weir_lock_release(&shared->devices_lock);
    weir__debug_begin(device, "device", name_of(device));
}

void weir__opened_remove(weir_device *device)
{
    struct weir__shared *shared = device->shared;
    weir_lock_take(&shared->devices_lock);
    weir_device **at = &shared->devices;
    while (*at != device)
        at = &(*at)->next;
    *at = device->next;
    weir_lock_release(&shared->devices_lock);
}

void weir__opened_place(weir_device *device, const char *file, int line)
{
    struct weir__shared *shared = device->shared;
    weir_lock_take(&shared->devices_lock);
    device->file = weir__file_name(file);
    device->line = line;
    weir_lock_release(&shared->devices_lock);
    weir__debug_place(device, file, line);
}

weir_status weir__opened_refuse(struct weir__shared *shared)
{
    struct weir__left left = {.count = 0};
    weir_lock_take(&shared->devices_lock);
    for (const weir_device *device = shared->devices; device; device = device->next) {
        char text[256], name[64];
        size_t used = 0;
        weir_text_escape(name, sizeof name, name_of(device), "");
        weir_text_append(text, sizeof text, &used, "'%s'", name);
        if (device->file)
            weir_text_append(text, sizeof text, &used, " (opened at %s:%d)", device->file,
                             device->line);
        weir__left_add(&left, text, true);
    }
    weir__left_end(&left);
    weir_lock_release(&shared->devices_lock);
    weir__left_log(&left, "weir_close: the device ");
    if (left.count == 0)
        return WEIR_OK;
    return weir__fail(WEIR_ERROR_INVALID, "call weir_device_close() first",
                      "weir_close: %u device%s of the runtime %s still open: %s", left.count,
                      left.count == 1 ? "" : "s", left.count == 1 ? "is" : "are", left.list + 2);
}
