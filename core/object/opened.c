// See the header. The list is guarded by its lock.
#include "core/object/opened.h"

#include <stdio.h>

#include "base/text.h"
#include "core/object/left.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/file_name.h"
#include "core/support/locks.h"

void weir__opened_add(weir_device *device)
{
    struct weir__shared *shared = device->shared;
    weir_lock_take(&shared->devices_lock);
    device->next = shared->devices;
    shared->devices = device;
    weir_lock_release(&shared->devices_lock);
    weir__debug_begin(device, "device",
                      device->object.label[0] ? device->object.label : device->info.name);
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
        char text[256];
        size_t used = 0;
        const char *name = device->object.label[0] ? device->object.label : device->info.name;
        weir_text_append(text, sizeof text, &used, "'%.60s'", weir__label_shown(name));
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
