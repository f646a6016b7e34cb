// The open devices of a runtime, which keep it from being closed.
#ifndef WEIR_CORE_OBJECT_OPENED_H
#define WEIR_CORE_OBJECT_OPENED_H

#include "core/object/device.h"

// Puts a device that has been opened on its runtime's list, and takes it off.
void weir__opened_add(weir_device *device);
void weir__opened_remove(weir_device *device);

// Notes the line of the program that opened it.
void weir__opened_place(weir_device *device, const char *file, int line);

// WEIR_ERROR_INVALID, with their names and lines, while devices are open.
weir_status weir__opened_refuse(struct weir__shared *shared);

#endif
