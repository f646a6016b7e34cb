// The open devices of a runtime, and what keeps one from being closed, as text.
#include "core/object/opened.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/file_name.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

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
